/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the simulators' command lines have in common: seeds spread over the cores, the list of seeds
 * that failed once, the word about the one that fails now, and totals.
 *
 * Each core gets a process of its own, so that a seed that crashes takes nothing with it but its
 * name.
 */
#ifndef NJ_TESTS_SIM_RUNNER_H
#define NJ_TESTS_SIM_RUNNER_H

#include <stdio.h>

#include "channel.h"
#include "record.h"
#include "telem/counters.h"

#define SIM_JOBS_MAX 256u

struct sim_options {
    uint64_t first, n;
    uint32_t jobs;
    bool one, trace, check_replay, counters, keep_going, golden;
    const char *pcap, *golden_file;
};

/* What a seed has to tell when it is over. */
struct sim_outcome {
    bool ok;
    uint64_t hash;
    char why[SIM_WHY_BYTES];
    struct sim_channel_stats link;
    uint64_t counter[NJ_N_COUNTERS];
};

struct sim_program {
    const char *name;
    const char *seeds_file;  /* seeds that failed once, one per line */
    uint64_t replay_every;   /* of so many seeds one is run twice */
    uint64_t progress_every; /* a line after so many: about a second or two */
    /* Make the world, in the process that will run it; `record` tells what to write where. NULL is
     * no answer. */
    void *(*start)(const struct sim_record *record);
    void (*run)(void *world, uint64_t seed, struct sim_outcome *out);
    /* Only after seeds that did not fail. */
    void (*stop)(void *world);
};

/* False: the arguments are wrong. */
bool nj_sim_options(int argc, char **argv, bool has_golden, struct sim_options *o);
/* Returns the exit status. */
int nj_sim_run_seeds(const struct sim_program *p, const struct sim_options *o);

#endif
