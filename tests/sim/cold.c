/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-sim-cold: hot clients without and with 100 cold readers, in virtual time.
 *
 * Hot clients request cached files repeatedly; each READ goes through the reader. Each cold reader
 * takes a large file of its own, as fast as the disk allows, so the disk is always busy. The hot
 * clients must keep 0.9 of their rate, and the 99th percentile of their time to the first byte must
 * stay below 1.2 times the value without cold readers. Measured with a disk of 1 GB/s, where cold
 * bytes cost CPU time, and with one of 100 MB/s, where a READ waits 0.3 s for the disk.
 *
 * Costs in virtual time: a shard takes CPU time for each step and each frame in or out, about that
 * of the real server: 250 ns for 1.5 KB are 6 GB/s. Its frames are sent after that time. The reader
 * takes one step each SIM_STEP_GAP, the disk is that of disk.h, and the round trip takes 0.5 ms. No
 * packet is lost.
 *
 * Cold bytes lengthen a shard's step by 20 to 40 us in the 99th percentile, independently of the
 * round trip. With a round trip of 0.1 ms the second bound would not hold beside the fast disk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "sim.h"
#include "support/mbuf_env.h"

#define HOT         4u /* number of clients */
#define HOT_FILES   SIM_REQUESTS_MAX
#define HOT_BYTES   (64u * 1024u)
#define COLD        100u
#define COLD_BYTES  (1024u * 1024u * 1024u)
#define CACHE_BYTES (64u * 1024u * 1024u) /* cold readers read several times as much */
#define HEAD_START  (30 * NJ_MS)          /* by then the hot files are cached */
#define WARM_UP     (80 * NJ_MS)
#define MEASURED    (200 * NJ_MS)
#define FIRSTS_MAX  100000u

#define RATE_LEAST 0.9
#define FIRST_MOST 1.2

struct scene {
    const char *name;
    uint32_t n_cold;
    uint64_t disk_rate;
};

struct figures {
    double rate, cold_bytes, core;
    nj_ns first_p50, first_p99;
};

struct world {
    struct sim sim;
    struct sim_pools pools;
    struct sim_watch hot, cold;
};

static void ask_for(struct sim_request *r, uint32_t id, uint64_t size)
{
    *r = (struct sim_request){.method = "GET",
                              .file = {'k', id, size},
                              .status = 200,
                              .length = size,
                              .body_bytes = size,
                              .reset_after = NJ_NEVER};
    snprintf(r->path, sizeof r->path, "/k-%u-%lu", id, (unsigned long)size);
}

/* All hot clients share an address; cold readers share the others of their host. */
static void plan(struct sim_conn *c, struct sim *sim, uint32_t index)
{
    struct world *w = nj_container_of(sim, struct world, sim);
    bool is_hot = index < HOT;

    *c = (struct sim_conn){.sim = sim,
                           .index = index,
                           .last_served = INT32_MAX,
                           .parallel = 1,
                           .window = 1u << 20,
                           .port = (uint16_t)(40000 + index),
                           .port_of = -1,
                           .addr = is_hot ? 0 : 1 + index % (NJ_ADDRS_MAX - 1),
                           .n_requests = is_hot ? UINT32_MAX : 1,
                           .watch = is_hot ? &w->hot : &w->cold};
    c->start_at = sim->now + index * 100 * NJ_US + (is_hot ? 0 : HEAD_START);
    c->stall_after = c->abort_after = c->close_at = NJ_NEVER;
    for (uint32_t i = 0; i < (is_hot ? HOT_FILES : 1); i++)
        ask_for(&c->req[i], is_hot ? i : 1000 + index, is_hot ? HOT_BYTES : COLD_BYTES);
}

static void run_until(struct sim *sim, nj_ns until)
{
    while (!sim->record.failed && sim->now < until)
        nj_sim_moment(sim, until);
}

static void begin_to_watch(struct sim_watch *w)
{
    w->n_bytes = w->n_done = w->n_first = 0;
}

static int by_size(const void *a, const void *b)
{
    nj_ns x = *(const nj_ns *)a, y = *(const nj_ns *)b;
    return x < y ? -1 : x > y;
}

/* Lets all connections end. */
static void let_go(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->client.n_conns; i++) {
        struct sim_conn *c = &sim->client.conn[i];
        c->n_requests = c->n_begun;
        if (i >= HOT)
            c->abort_after = 0;
    }
}

static void set_mix(struct sim_mix *mix, const struct scene *scene)
{
    *mix = (struct sim_mix){
        .name = "cold",
        .net = {.delay = 250 * NJ_US},
        .steer_queue = SIM_QUEUE_MAX,
        .step_ns = NJ_US,
        .frame_ns = 250,
        .time_wait = NJ_SEC,
        .drain_at = NJ_NEVER,
        .file_delay = 50 * NJ_US,
        .file_queue = 200,
        .disk = {.depth = 32,
                 .latency = 80 * NJ_US,
                 .jitter = 40 * NJ_US,
                 .rate = scene->disk_rate},
        .store = {.cache_bytes = CACHE_BYTES},
        .plan = plan,
        .n_addrs = NJ_ADDRS_MAX,
        .n_conns = HOT + scene->n_cold,
        .client_mtu = 1500,
        .start_at = NJ_SEC,
        .calm_at = NJ_SEC,
    };
}

static nj_ns worked(const struct sim *sim)
{
    return sim->server.lane[0].worked + sim->server.lane[1].worked;
}

static bool measure(struct world *w, uint64_t seed, const struct scene *scene, struct figures *f)
{
    struct sim *sim = &w->sim;
    double s = (double)MEASURED / NJ_SEC;
    struct sim_mix mix;

    set_mix(&mix, scene);
    nj_sim_begin(sim, seed, &mix, &w->pools);
    run_until(sim, mix.start_at + WARM_UP);
    begin_to_watch(&w->hot);
    begin_to_watch(&w->cold);
    nj_ns before = worked(sim);
    run_until(sim, mix.start_at + WARM_UP + MEASURED);
    qsort(w->hot.first, w->hot.n_first, sizeof *w->hot.first, by_size);
    *f = (struct figures){
        .rate = (double)w->hot.n_done / s,
        .cold_bytes = (double)w->cold.n_bytes / s,
        .core = (double)(worked(sim) - before) / (double)MEASURED / SIM_SHARDS,
        .first_p50 = w->hot.first[w->hot.n_first / 2],
        .first_p99 = w->hot.first[w->hot.n_first * 99 / 100],
    };
    printf("%s: %.0f hot requests/s, first byte p50 %.1f us, p99 %.1f us; cold %.0f MB/s; cores "
           "busy %.0f %%\n",
           scene->name, f->rate, (double)f->first_p50 / 1e3, (double)f->first_p99 / 1e3,
           f->cold_bytes / 1e6, f->core * 100);
    let_go(sim);
    if (!sim->record.failed && nj_sim_end(sim, &w->pools))
        return true;
    printf("failed: %s\n", sim->record.why);
    return false;
}

static struct world *new_world(void)
{
    struct world *w = calloc(1, sizeof *w);

    NJ_CHECK(w);
    w->pools.server_rx = nj_test_pool(4096);
    w->pools.client_rx = nj_test_pool(4096);
    w->pools.client_tx = nj_test_pool(4096);
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        w->pools.server_tx[i] = nj_test_pool(16384);
        w->pools.server_tx_tight[i] = nj_test_pool(64);
    }
    w->hot.n_room = FIRSTS_MAX;
    w->hot.first = calloc(FIRSTS_MAX, sizeof *w->hot.first);
    NJ_CHECK(w->hot.first);
    return w;
}

static void free_world(struct world *w)
{
    nj_test_pool_free(w->pools.server_rx);
    nj_test_pool_free(w->pools.client_rx);
    nj_test_pool_free(w->pools.client_tx);
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        nj_test_pool_free(w->pools.server_tx[i]);
        nj_test_pool_free(w->pools.server_tx_tight[i]);
    }
    free(w->hot.first);
    free(w);
}

static bool is_kept(const struct figures *alone, const struct figures *beside)
{
    double rate = beside->rate / alone->rate;
    double first = (double)beside->first_p99 / (double)alone->first_p99;

    printf("    rate %.3f of that alone, at least %.1f; p99 of the first byte %.3f, at most %.1f\n",
           rate, RATE_LEAST, first, FIRST_MOST);
    return rate >= RATE_LEAST && first <= FIRST_MOST;
}

int main(int argc, char **argv)
{
    static const struct scene alone = {"alone", 0, 1000000000},
                              beside[] = {{"100 cold readers, 1 GB/s", COLD, 1000000000},
                                          {"100 cold readers, 100 MB/s", COLD, 100000000}};
    struct figures without, with;
    uint64_t seed = 1;

    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 0);
    } else if (argc != 1) {
        fputs("usage: nj-sim-cold [--seed S]\n", stderr);
        return 2;
    }
    struct world *w = new_world();
    printf("seed %" PRIu64 "\n", seed);
    bool ok = measure(w, seed, &alone, &without), kept = true;
    for (uint32_t i = 0; ok && i < NJ_ARRAY_LEN(beside); i++) {
        ok = measure(w, seed, &beside[i], &with);
        kept &= ok && is_kept(&without, &with);
    }
    if (!ok) { /* leaks of a failed run are not reported */
        fflush(stdout);
        _Exit(1);
    }
    free_world(w);
    return kept ? 0 : 1;
}
