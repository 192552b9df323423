/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-sim: run seeds of the simulated world until one fails.
 *
 * Seeds that have failed before are listed in seeds.txt and run first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "runner.h"
#include "sim.h"
#include "support/nonce_check.h"
#include "support/mbuf_env.h"
#include "tls.h"

/* The simulator of one process. */
struct world {
    struct sim sim;
    struct sim_pools pools;
};

static int usage(void)
{
    fputs("usage: nj-sim [--seeds N] [--first S] [--jobs N] [--check-replay] [--counters]\n"
          "              [--keep-going] [--tls] [--http1]\n"
          "       nj-sim --seed S [--trace] [--pcap FILE] [--counters] [--tls] [--http1]\n",
          stderr);
    return 2;
}

static void make_pools(struct sim_pools *p)
{
    p->server_rx = nj_test_pool(4096);
    p->client_rx = nj_test_pool(4096);
    p->client_tx = nj_test_pool(4096);
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        p->server_tx[i] = nj_test_pool(4096);
        p->server_tx_tight[i] = nj_test_pool(700);
    }
}

static void free_pools(const struct sim_pools *p)
{
    nj_test_pool_free(p->server_rx);
    nj_test_pool_free(p->client_rx);
    nj_test_pool_free(p->client_tx);
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        nj_test_pool_free(p->server_tx[i]);
        nj_test_pool_free(p->server_tx_tight[i]);
    }
}

static bool always_tls, always_http1; /* arguments of the program */

static void *start(const struct sim_record *record)
{
    struct world *w = calloc(1, sizeof *w);

    NJ_CHECK(w);
    make_pools(&w->pools);
    w->pools.tls = nj_sim_tls_new();
    w->pools.always_tls = always_tls;
    w->pools.always_http1 = always_http1;
    w->sim.record = *record;
    return w;
}

static void run(void *world, uint64_t seed, struct sim_outcome *out)
{
    struct world *w = world;

    out->ok = nj_sim_run(&w->sim, seed, &w->pools);
    out->hash = w->sim.record.hash;
    out->link = w->sim.link.stats;
    out->n_sealed = nj_test_nonces_seen();
    out->n_again = w->sim.resent.n_again;
    memcpy(out->why, w->sim.record.why, sizeof out->why);
    memcpy(out->counter, w->sim.served, sizeof out->counter);
}

static void stop(void *world)
{
    struct world *w = world;

    free_pools(&w->pools);
    nj_sim_tls_free(w->pools.tls);
    free(w);
}

int main(int argc, char **argv)
{
    static struct sim_program program = {
        .name = "nj-sim",
        .seeds_file = NJ_SIM_SEEDS_FILE,
        .replay_every = 20,
        .progress_every = 100,
        .start = start,
        .run = run,
        .stop = stop,
    };
    struct sim_options o;

    if (!nj_sim_options(argc, argv, false, &o))
        return usage();
    always_tls = o.tls;
    always_http1 = o.http1;
    if (o.tls || o.http1)
        program.name = !o.http1 ? "nj-sim --tls"
                       : !o.tls ? "nj-sim --http1"
                                : "nj-sim --http1 --tls";
    return nj_sim_run_seeds(&program, &o);
}
