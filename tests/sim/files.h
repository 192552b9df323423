/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file port of the simulated server: files whose bytes follow from their name, opened and read
 * after a delay. A name is <kind>-<id>-<size>:
 *
 *   w  held whole         k  read in chunks        t  in chunks, and reading breaks half way
 *   d  a folder           a  absent                p  no permission      b  broken     m  no memory
 */
#ifndef NJ_TESTS_SIM_FILES_H
#define NJ_TESTS_SIM_FILES_H

#include "base/list.h"
#include "http/file_port.h"
#include "mix.h"

struct sim;

#define SIM_FILE_JOBS_MAX 256u

/* What one shard has asked. */
struct sim_file_queue {
    struct sim *sim;
    uint32_t n_out, n_done; /* n_out: not polled yet */
    struct nj_file_job *done[SIM_FILE_JOBS_MAX];
};

struct sim_files {
    struct sim *sim;
    struct nj_prng prng;
    struct nj_list live; /* objects that somebody refers to */
    uint32_t n_objects, n_chunks;
};

/* The byte of file `id` at `off`. */
uint8_t nj_sim_file_byte(uint32_t id, uint64_t off);
/* Bytes of `data` that are as they should be, from the start. */
size_t nj_sim_file_check(uint32_t id, uint64_t off, const uint8_t *data, size_t n_bytes);

void nj_sim_files_init(struct sim_files *f, struct sim *sim);
struct nj_file_port nj_sim_files_port(struct sim_file_queue *q);
/* Its delay is over. `job` is what the agenda kept. */
void nj_sim_files_done(struct sim *sim, void *job);

#endif
