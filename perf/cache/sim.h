/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface between the parts of nj-cache: a trace of lookups, and cache policies that serve it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/prng.h"

/* Bytes of a chunk. A cache entry is a file of up to this size, or a chunk of a larger file. */
#define SIM_PIECE_BYTES (256u * 1024u)
#define SIM_FILE_LEAST  4096u
#define SIM_FILE_MOST   (UINT64_C(4) << 30)
#define SIM_PAGE_BYTES  4096u
/* Maximum size of files that the former store kept as one entry. */
#define SIM_WHOLE_BYTES (16u * 1024u * 1024u)

enum sim_reader { SIM_CRAWL = 255 }; /* other readers are clients */

struct sim_lookup {
    uint32_t entry;
    uint8_t reader; /* number of a client, or SIM_CRAWL */
    bool is_last;   /* of its request */
};

struct sim_trace {
    uint32_t n_entries;
    uint32_t *n_bytes;  /* of each entry, in whole pages */
    bool *is_large;     /* of each entry: whether its file is larger than SIM_WHOLE_BYTES */
    uint64_t footprint; /* bytes of all entries */
    uint32_t n_files, n_lookups, n_client_lookups, n_requests;
    struct sim_lookup *lookups;
};

/* Parameters of a trace. */
struct sim_kind {
    double zipf;            /* exponent of the popularity of files */
    bool log_uniform;       /* distribution of sizes; else log-normal */
    uint64_t file_bytes;    /* size of all files; 0: sizes are drawn at random */
    uint64_t footprint;     /* minimum of the bytes of all entries, unless FILES_MAX is reached */
    uint32_t n_lookups;     /* of clients */
    uint32_t range_percent; /* share of requests for a range */
    uint32_t n_crawls; /* over all files, at equal intervals, with as many lookups as clients */
    uint32_t n_shifts; /* changes of popularity, at equal intervals */
    uint32_t shift_percent; /* share of files that exchange ranks in a change */
};

/* Reads a trace in the format of read_files() (trace.c). False: the trace is invalid, and `why` has
 * the reason. */
bool sim_trace_read(struct sim_trace *t, FILE *f, char *why, size_t n_why);
/* Makes a trace, which depends on `kind` and `seed` only. */
void sim_trace_make(struct sim_trace *t, const struct sim_kind *kind, uint64_t seed);
/* Frees the arrays of `t`, also after sim_trace_read() returned false. */
void sim_trace_free(struct sim_trace *t);

/* A cache policy. */
struct sim_policy {
    const char *name;
    /* Makes an empty cache of `budget` bytes for the lookups of `t`, which must outlive it. */
    void *(*make)(const struct sim_trace *t, uint64_t budget);
    /* Performs lookup `i` of the trace. Returns whether the entry was in the cache. After a miss it
     * adds the entry, if the policy admits it. */
    bool (*lookup)(void *self, uint32_t i);
    void (*free)(void *self);
};

extern const struct sim_policy sim_lru, sim_former, sim_trial, sim_sieve, sim_s3fifo, sim_tinylfu,
    sim_offline;

/* A random number between 0 and 1, both excluded. */
static inline double sim_uniform(struct nj_prng *r)
{
    return ((double)(nj_prng_next(r) >> 11) + 0.5) / 9007199254740992.0;
}
