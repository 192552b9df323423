/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Common parts of the simulators' command lines: distributes seeds over the cores, runs earlier
 * failures first, reports a failure, and prints totals.
 *
 * Each core gets a process of its own, so that a crash loses only its seed.
 */
#pragma once

#include <stdio.h>

#include "channel.h"
#include "record.h"

#include "telem/counters.h"

#define SIM_JOBS_MAX 256u

struct sim_options {
    uint64_t first, n;
    uint32_t jobs;
    bool one, trace, check_replay, counters, keep_going, golden, tls, http1;
    const char *pcap, *golden_file;
};

/* Results of a seed. */
struct sim_outcome {
    bool ok;
    uint64_t hash;
    char why[SIM_WHY_BYTES];
    struct sim_channel_stats link;
    uint64_t counter[NJ_COUNTERS_MAX];
    uint64_t n_sealed; /* records of TLS */
    uint64_t n_again;  /* bytes that the server sent again, compared with what they were */
};

struct sim_program {
    const char *name;
    const char *seeds_file;  /* seeds that failed earlier, one per line */
    uint64_t replay_every;   /* one seed in this many is run twice */
    uint64_t progress_every; /* a progress line per this many seeds: about 1 to 2 s */
    /* Create the world, in the process that runs it; `record` selects the output. NULL is not
     * returned. */
    void *(*start)(const struct sim_record *record);
    void (*run)(void *world, uint64_t seed, struct sim_outcome *out);
    /* Called only if no seed failed. */
    void (*stop)(void *world);
};

/* False: invalid arguments. */
bool nj_sim_options(int argc, char **argv, bool has_golden, struct sim_options *o);
/* Returns the exit status. */
int nj_sim_run_seeds(const struct sim_program *p, const struct sim_options *o);
