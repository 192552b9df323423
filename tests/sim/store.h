/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file store of the simulated server, in place of lib/store/file_store.c and file_read.c: what
 * asks the system for names, times and contents. Cache, pieces and memory are the server's. Bytes
 * follow from the name, which is <kind>-<id>-<size>:
 *
 *   w  held whole         k  read in pieces
 *   t  in pieces, and cannot be read from half of it on (EIO)
 *   e  in pieces, and now and then a read fails (EIO), until the faults are over
 *   r  in pieces, and replaced at some time by other bytes
 *   x  in pieces, and cut to half at some time
 *   d  a folder           a  absent                p  no permission      b  broken     m  no memory
 */
#ifndef NJ_TESTS_SIM_STORE_H
#define NJ_TESTS_SIM_STORE_H

#include "http/files/file_ops.h"
#include "store/file_store.h"

struct sim;

/* What a seed brings. */
struct sim_store_plan {
    uint64_t cache_bytes;
    uint64_t lent_max;    /* bytes of pieces that bodies may hold; 0: as the server's */
    uint32_t distant;     /* chance that a file is another machine's: workers read it */
    uint32_t read_errors; /* chance that a read of an 'e' fails */
};

struct sim_name {
    char kind;
    uint32_t id;
    uint64_t size;
};

/* What a file of this name is in its first (0) and second (1) version. */
uint64_t nj_sim_version_size(const struct sim_name *n, uint32_t version);
/* Bytes of `data` that are as they should be, from the start. */
size_t nj_sim_file_check(uint32_t id, uint32_t version, uint64_t off, const uint8_t *data,
                         size_t n_bytes);
/* The version of an answer, by its last-modified; UINT32_MAX: it is none. */
uint32_t nj_sim_version_of(const char *modified, size_t n);
/* May a body of the file that was asked for at `asked_at` have broken by now? */
bool nj_sim_may_have_broken(const struct sim *sim, const struct sim_name *n, nj_ns asked_at);

struct nj_file_store *nj_sim_store_new(struct sim *sim);
/* Files and pieces that somebody still holds: 0, or there is a leak and nothing is freed. */
uint32_t nj_sim_store_free(struct nj_file_store *s);
/* Pieces that were read ahead, and nobody asked for, grow old: what is done once a second. */
void nj_sim_store_age(struct nj_file_store *s);
/* What pread(2) of this descriptor does: bytes, or a negative errno. */
int32_t nj_sim_store_read(struct nj_file_store *s, int fd, uint8_t *out, uint32_t n_bytes,
                          uint64_t off);

#endif
