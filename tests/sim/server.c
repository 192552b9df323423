/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "routes.h"
#include "sim.h"
#include "store/file_reader.h"
#include "tcp/mbuf_priv.h"
#include "telem/counters.h"
#include "tls.h"

/* Consecutive steps that request another step at once while no packet moves: a livelock beyond
 * this. */
#define VAIN_MAX 2000u

#define V4(a, b, c, d)                                                                             \
    {                                                                                              \
        {                                                                                          \
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, (a), (b), (c), (d)                           \
        }                                                                                          \
    }

const struct nj_iface nj_sim_iface[2] = {
    [SIM_SERVER] = {.mac = {{2, 0, 0, 0, 0, 1}},
                    .mtu = 1500,
                    .n_addrs = 1,
                    .addr = {{V4(10, 0, 0, 1), 24, 0}}},
    [SIM_CLIENT] = {.mac = {{2, 0, 0, 0, 0, 2}},
                    .mtu = 1500,
                    .n_addrs = 1,
                    .addr = {{V4(10, 0, 0, 2), 24, 0}}},
};

static uint32_t port_rx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct sim_lane *l = ctx;
    uint32_t n_taken = nj_sim_queue_take(&l->rx, m, n);

    l->spent += n_taken * l->sim->mix.frame_ns;
    return n_taken;
}

static uint32_t port_rx_steered(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct sim_lane *l = ctx;
    return nj_sim_queue_take(&l->steered, m, n);
}

static uint32_t port_tx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct sim_lane *l = ctx;
    struct sim *sim = l->sim;

    if (nj_sim_chance(&sim->server.prng, sim->mix.tx_short))
        n = nj_prng_below(&sim->server.prng, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        l->spent += sim->mix.frame_ns;
        nj_sim_link_send(sim, SIM_SERVER, m[i], sim->now + l->spent);
        rte_pktmbuf_free(m[i]);
    }
    return n;
}

static bool port_forward(void *ctx, uint32_t shard, struct rte_mbuf *m)
{
    struct sim_lane *l = ctx;
    NJ_CHECK(shard < SIM_SHARDS && shard != l->index);
    return nj_sim_queue_push(&l->sim->server.lane[shard].steered, m);
}

static void port_share(void *ctx, const struct rte_mbuf *m)
{
    struct sim_lane *l = ctx;
    struct rte_mbuf *copy = rte_pktmbuf_copy(m, l->sim->server.rx_pool, 0, UINT32_MAX);

    if (copy && !nj_sim_queue_push(&l->sim->server.lane[!l->index].steered, copy))
        rte_pktmbuf_free(copy);
}

/* Completed jobs arrive in bursts. */
static uint32_t poll_files(void *ctx, struct nj_file_job **jobs, uint32_t n)
{
    struct sim_lane *l = nj_container_of(ctx, struct sim_lane, files);
    uint32_t n_home = l->poll_files(ctx, jobs, n);

    l->has_files |= n_home > 0;
    return n_home;
}

static struct nj_file_ops files_port(struct sim_lane *l)
{
    struct nj_worker_ops workers = nj_sim_workers_port(&l->workers);
    struct nj_worker_ops reader = nj_file_reader_ops_of_shard(l->sim->server.reader, l->index);
    struct nj_file_ops port = nj_file_client_init(&l->files, &workers, &reader, l->sim->store);

    l->poll_files = port.poll;
    port.poll = poll_files;
    return port;
}

static void lane_init(struct sim *sim, uint32_t i, struct rte_mempool *tx_pool)
{
    struct sim_lane *l = &sim->server.lane[i];

    *l = (struct sim_lane){.sim = sim, .index = i};
    l->rx.n_max = SIM_QUEUE_MAX;
    l->steered.n_max = sim->mix.steer_queue;
    l->workers = (struct sim_workers){.sim = sim,
                                      .delay = sim->mix.file_delay,
                                      .queue = sim->mix.file_queue,
                                      .refuse = sim->mix.file_refuse};
    l->tls_workers = (struct sim_workers){.sim = sim,
                                          .delay = sim->mix.tls.delay,
                                          .queue = SIM_TASKS_MAX,
                                          .refuse = sim->mix.tls.refuse};
    struct nj_shard_config c = {
        .index = i,
        .n_shards = SIM_SHARDS,
        .steering = NJ_STEER_ALWAYS,
        .reta_size = 128,
        .iface = nj_sim_iface[SIM_SERVER],
        .ops = {l, port_rx, port_rx_steered, port_tx, port_forward, port_share},
        .conns.ops.files = files_port(l),
        .tx_pool = tx_pool,
        .listeners = {1, {{.port = SIM_SERVER_PORT}}},
        .conns_max = 64 + 2 * sim->mix.n_conns,
        .half_open_max = 32,
        .time_wait = sim->mix.time_wait,
        .seed = sim->seed + i,
        .conns.wall_s_at_zero = 1700000000,
        .conns.shape = sim->limits.shared,
        .conns.policy = nj_sim_limits_policy(sim),
        .conns.routes = sim->server.routes,
        .conns.fibers_max = 64,
    };
    if (sim->mix.tls.on) {
        c.conns.tls = nj_sim_tls_context(sim->tls);
        c.listeners.at[c.listeners.n++] =
            (struct nj_listener){.port = SIM_TLS_PORT, .is_tls = true};
        c.conns.ops.tls_workers = nj_sim_workers_port(&l->tls_workers);
    }
    for (uint32_t k = 0; k < NJ_RSS_KEY_BYTES; k++) /* the same for all lanes */
        c.rss_key.b[k] = (uint8_t)((sim->seed + k + 1) * 0x9e3779b97f4a7c15u >> 56);
    memcpy(c.flow_key.b, &sim->seed, sizeof sim->seed);
    memcpy(c.isn_key.b, &sim->seed, sizeof sim->seed);
    l->shard = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof *l->shard, 64));
    NJ_CHECK(l->shard && nj_shard_init(l->shard, &c, sim->now));
}

void nj_sim_server_init(struct sim *sim, const struct sim_pools *pools)
{
    nj_prng_init(&sim->server.prng, sim->seed ^ 0x5e44e4);
    sim->server.rx_pool = pools->server_rx;
    sim->server.routes = sim->mix.http1 ? nj_sim_routes_new() : NULL;
    struct nj_file_reader_config c = {.store = sim->store,
                                      .no_direct = true,
                                      .n_shards = SIM_SHARDS,
                                      .tasks_max = sim->mix.file_queue,
                                      .no_thread = true};
    NJ_CHECK(nj_file_reader_start(&c, &sim->server.reader) == 0);
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        lane_init(sim, i, sim->mix.tight ? pools->server_tx_tight[i] : pools->server_tx[i]);
}

static void log_files(const struct sim *sim)
{
    const struct nj_file_store_stats *s = nj_file_store_stats(sim->store);
    const struct nj_file_reader_stats *r = nj_file_reader_stats(sim->server.reader);

    nj_sim_log(sim,
               "files: %lu reads, %lu ahead, %lu failed, %lu put off; %lu hits, %lu evictions, "
               "%lu waits for memory, %lu for a read",
               s->reads, s->ahead, r->n_failed, r->n_to_workers, s->chunk_hits, s->evictions,
               s->waits, s->waits_for_read);
}

void nj_sim_server_fini(struct sim *sim)
{
    for (uint32_t i = 0; i < SIM_SHARDS; i++) {
        struct nj_shard *s = sim->server.lane[i].shard;
        nj_shard_fini(s);
        for (unsigned k = 0; k < NJ_COUNTERS_MAX; k++)
            sim->served[k] += nj_counter_read(&s->counters, (nj_counter)k);
        free(s);
    }
    log_files(sim);
    nj_file_reader_free(sim->server.reader);
    nj_routes_free(sim->server.routes);
}

void nj_sim_server_receive(struct sim *sim, const struct sim_frame *f)
{
    struct sim_lane *l = &sim->server.lane[nj_prng_below(&sim->server.prng, SIM_SHARDS)];
    struct rte_mbuf *m = rte_pktmbuf_alloc(sim->server.rx_pool);

    if (!m) {
        sim->link.stats.no_mbuf++;
        return;
    }
    memcpy(rte_pktmbuf_append(m, (uint16_t)f->n_bytes), f->bytes, f->n_bytes);
    if (!nj_sim_queue_push(&l->rx, m))
        rte_pktmbuf_free(m);
}

nj_ns nj_sim_lane_next(const struct sim_lane *l)
{
    bool input = l->rx.n > 0 || l->steered.n > 0 || l->workers.n_done > 0 ||
                 l->tls_workers.n_done > 0 || l->has_files;
    nj_ns next = input ? 0 : nj_shard_next_at(l->shard);
    nj_ns soonest = l->stepped_at + (l->spent > SIM_STEP_GAP ? l->spent : SIM_STEP_GAP);

    return next > soonest ? next : soonest;
}

void nj_sim_lane_step(struct sim_lane *l)
{
    struct sim *sim = l->sim;

    l->stepped_at = sim->now;
    l->has_files = false;
    l->spent = sim->mix.step_ns;
    nj_shard_step(l->shard, sim->now);
    l->worked += l->spent;
    nj_sim_check_sums(sim, l->shard);
    nj_sim_limits_check(sim);
    nj_sim_tls_check(sim);
    if (sim->progress != l->progress_seen || nj_shard_next_at(l->shard) > sim->now)
        l->n_vain = 0;
    l->progress_seen = sim->progress;
    if (++l->n_vain > VAIN_MAX)
        nj_sim_fail(sim,
                    "shard %u requests another step at once without an end, and no packet moves",
                    l->index);
}

void nj_sim_server_read(struct sim *sim)
{
    nj_sim_store_age(sim->store);
    bool any = nj_sim_reader_step(sim);

    sim->progress += any;
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        sim->server.lane[i].has_files |= any;
}

bool nj_sim_server_busy(const struct sim *sim)
{
    for (uint32_t i = 0; i < SIM_SHARDS; i++)
        if (nj_shard_has_unfinished_work(sim->server.lane[i].shard) ||
            nj_tcp_conns(&sim->server.lane[i].shard->tcp) > 0) /* including those that may remain */
            return true;
    return false;
}
