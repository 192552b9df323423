/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of nj-cache share: a trace of lookups, and policies that are asked to serve it. */
#ifndef NJ_PERF_CACHE_SIM_H
#define NJ_PERF_CACHE_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/prng.h"

/* What is kept as one: a file of up to so many bytes, or a chunk of a larger one. */
#define SIM_PIECE_BYTES (256u * 1024u)
#define SIM_FILE_LEAST  4096u
#define SIM_FILE_MOST   (UINT64_C(4) << 30)
#define SIM_PAGE_BYTES  4096u
/* The former store kept files of up to so many bytes whole. */
#define SIM_WHOLE_BYTES (16u * 1024u * 1024u)

enum sim_reader { SIM_NOBODY = 255 }; /* a crawl, which is no client */

struct sim_look {
    uint32_t entry;
    uint8_t reader; /* of a client, or SIM_NOBODY */
    bool is_last;   /* of its request */
};

struct sim_trace {
    uint32_t n_entries;
    uint32_t *n_bytes; /* of each entry, in whole pages */
    uint8_t *is_large; /* of each entry: a chunk of a file that the former store read by chunk */
    uint64_t footprint;
    uint32_t n_files, n_looks, n_client_looks, n_requests;
    struct sim_look *looks;
};

/* How a trace is made. */
struct sim_kind {
    double zipf;
    bool log_uniform;       /* sizes; else log-normal */
    uint64_t file_bytes;    /* all files have this size; 0: they differ */
    uint64_t footprint;     /* files are made until they have so many bytes together */
    uint32_t n_looks;       /* of clients */
    uint32_t range_percent; /* requests for a range */
    uint32_t n_crawls;      /* over everything, at even distances, as fast as all clients */
    uint32_t n_shifts;      /* how often popularity changes, at even distances */
    uint32_t shift_percent; /* of files, which change ranks with others then */
};

/* False: `why` says what is wrong with it. */
bool sim_trace_read(struct sim_trace *t, FILE *f, char *why, size_t n_why);
void sim_trace_make(struct sim_trace *t, const struct sim_kind *kind, uint64_t seed);
void sim_trace_free(struct sim_trace *t);

/* A policy that serves one trace with one budget. */
struct sim_policy {
    const char *name;
    void *(*make)(const struct sim_trace *t, uint64_t budget);
    /* Look number `i`. Returns whether its entry was there, and has it come in if not. */
    bool (*look)(void *self, uint32_t i);
    void (*free)(void *self);
};

extern const struct sim_policy sim_lru, sim_former, sim_trial, sim_sieve, sim_s3fifo, sim_tinylfu,
    sim_offline;

static inline double sim_uniform(struct nj_prng *r)
{
    return ((double)(nj_prng_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

#endif
