/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file store of the simulated server, in place of lib/store/file_store.c and verified_read.c,
 * which ask the system for names, times and contents. Cache, chunks and memory are the server's.
 * The bytes depend on the name, which is <kind>-<id>-<size>:
 *
 *   w  whole in memory    k  read in chunks
 *   t  in chunks, unreadable (EIO) in its second half
 *   e  in chunks, with occasional read errors (EIO) until the faults end
 *   r  in chunks, replaced by other bytes at some time
 *   x  in chunks, truncated to half at some time
 *   d  a folder           a  absent                p  no permission      b  broken     m  no memory
 */
#pragma once

#include "http/files/file_ops.h"
#include "store/file_store.h"

struct sim;

/* Drawn from a seed. */
struct sim_store_plan {
    uint64_t cache_bytes;
    uint64_t lent_max;    /* bytes of chunks that bodies may hold; 0: the server's limit */
    uint32_t distant;     /* probability that a file is on a network file system: workers read it */
    uint32_t read_errors; /* probability that a read of an 'e' fails */
};

struct sim_name {
    char kind;
    uint32_t id;
    uint64_t size;
};

/* Size of a file in its first (0) and second (1) version. */
uint64_t nj_sim_version_size(const struct sim_name *n, uint32_t version);
/* Number of correct bytes at the start of `data`. */
size_t nj_sim_file_check(uint32_t id, uint32_t version, uint64_t off, const uint8_t *data,
                         size_t n_bytes);
/* The version of a response, by last-modified; UINT32_MAX: none. */
uint32_t nj_sim_version_of(const char *modified, size_t n);
/* May a body of a file requested at `asked_at` be broken by now? */
bool nj_sim_may_have_broken(const struct sim *sim, const struct sim_name *n, nj_ns asked_at);

struct nj_file_store *nj_sim_store_new(struct sim *sim);
/* Number of files and chunks still referenced: if it is not 0, there is a leak and nothing is
 * freed. */
uint32_t nj_sim_store_free(struct nj_file_store *s);
/* The once-per-second task that ages unused readahead. */
void nj_sim_store_age(struct nj_file_store *s);
/* The result of pread(2) on this descriptor: bytes, or a negative errno. */
int32_t nj_sim_store_read(struct nj_file_store *s, int fd, uint8_t *out, uint32_t n_bytes,
                          uint64_t off);
