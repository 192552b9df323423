/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-tcpsim: run seeds of the simulator of TCP until one fails.
 *
 * Seeds that have failed before are listed in tcp_seeds.txt and run first.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "runner.h"
#include "tcp_golden.h"
#include "tcp_sim.h"

/* The simulator of one process. */
struct world {
    struct tsim sim;
    struct tsim_env env;
};

static int usage(void)
{
    fputs("usage: nj-tcpsim [--seeds N] [--first S] [--jobs N] [--check-replay] [--counters]\n"
          "                 [--keep-going]\n"
          "       nj-tcpsim --seed S [--trace] [--pcap FILE] [--check-replay] [--counters]\n"
          "       nj-tcpsim --golden | --golden-check FILE [--jobs N]\n",
          stderr);
    return 2;
}

static void *start(const struct sim_record *record)
{
    struct world *w = calloc(1, sizeof *w);

    NJ_CHECK(w);
    w->env = nj_tsim_env_new();
    w->sim.record = *record;
    return w;
}

static void run(void *world, uint64_t seed, struct sim_outcome *out)
{
    struct world *w = world;

    out->ok = nj_tsim_run(&w->sim, seed, &w->env);
    out->hash = w->sim.record.hash;
    out->link = w->sim.channel.stats;
    memcpy(out->why, w->sim.record.why, sizeof out->why);
    memcpy(out->counter, w->sim.counter, sizeof out->counter);
}

static void stop(void *world)
{
    struct world *w = world;

    nj_tsim_env_free(&w->env);
    free(w);
}

int main(int argc, char **argv)
{
    static const struct sim_program program = {
        .name = "nj-tcpsim",
        .seeds_file = NJ_SIM_SEEDS_FILE,
        .replay_every = 20,
        .progress_every = 1000,
        .start = start,
        .run = run,
        .stop = stop,
    };
    struct sim_options o;

    if (!nj_sim_options(argc, argv, true, &o))
        return usage();
    if (o.golden)
        return nj_tsim_golden(o.golden_file, o.jobs);
    return nj_sim_run_seeds(&program, &o);
}
