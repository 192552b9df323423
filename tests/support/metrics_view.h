/* SPDX-License-Identifier: BSD-3-Clause */
/* A view of all parts of a server that metrics read: one shard of shard_rig.h, a port, workers, a
 * store, a policy with two classes and two sites, routes, and a certificate. Failed checks abort.
 */
#pragma once

#include "config/policy_snapshots.h"
#include "config/settings_validate.h"
#include "mgmt/metrics.h"
#include "support/shard_rig.h"
#include "support/tls_certs.h"

#define METRICS_ROUTES_MAX 40u

struct metrics_view {
    struct rig *r;
    struct nj_shard_config config;
    struct nj_tsc_clock clock;
    struct nj_dpdk_port dev;
    struct nj_port_stats stats;
    pthread_mutex_t stats_lock;
    struct nj_lcore lcore[2]; /* the second one is for tests that add a shard */
    struct nj_lcore_log log[2];
    struct nj_lcore_control control;
    struct nj_worker_pool *workers;
    struct nj_file_store *store;
    struct nj_file_reader *reader; /* NULL: the kernel has none */
    struct nj_route route[METRICS_ROUTES_MAX];
    char path[METRICS_ROUTES_MAX][16];
    char file[128]; /* of the policy; its name has to be escaped */
    struct nj_server_config given;
    struct nj_settings settings;
    struct nj_policies *policies;
    struct nj_mgmt_reloads reloads;
    _Atomic nj_ns supervised_at, unpolled[2], ready_stall;
    _Atomic bool is_stopping, is_yielding;
    struct test_cert cert;
    struct nj_tls_current_context tls;
    struct nj_mgmt_view v;
};

static inline void metrics_handler(struct nj_request *r, struct nj_response *to, void *arg)
{
    (void)r, (void)to, (void)arg;
}

static inline void metrics_view_open_policy(struct metrics_view *m, const char *folder,
                                            uint32_t n_routes)
{
    char why[256];

    for (uint32_t i = 0; i < n_routes; i++) {
        snprintf(m->path[i], sizeof m->path[i], "/route%u", i);
        m->route[i] = (struct nj_route){
            .method = "GET", .path = m->path[i], .type = NJ_BLOCKING, .handle = metrics_handler};
    }
    snprintf(m->file, sizeof m->file, "%s/a\"b\\c\nd\xff.conf", folder);
    FILE *f = fopen(m->file, "we");
    NJ_CHECK(f && fputs("[class slow]\npath = /slow/\nrequest_rate = 1MiB/s\n"
                        "[site www.example.org]\nname = *.example.net\n[site default]\n",
                        f) >= 0);
    fclose(f);
    nj_server_config_init(&m->given);
    m->given.policy_file = m->file;
    m->given.addr[0] = "198.18.0.2/24";
    m->given.root = folder;
    m->given.routes = m->route;
    m->given.n_routes = n_routes;
    NJ_CHECK(nj_settings_from_config(&m->settings, &m->given, why, sizeof why) == 0);
    m->policies = nj_policies_new(&m->settings, 0, why, sizeof why);
    NJ_CHECK(m->policies);
}

static inline void metrics_view_open_tls(struct metrics_view *m, const char *folder)
{
    char why[256];

    make_cert(&m->cert, folder, "dated", "a.test", false, NULL);
    const struct nj_tls_identity_files files = {m->cert.cert, m->cert.key};
    const struct nj_tls_server_config config = {.identities = &files, .n_identities = 1};
    struct nj_tls_server_context *context = nj_tls_server_context_new(&config, why, sizeof why);
    NJ_CHECK(context);
    nj_tls_current_context_init(&m->tls, context);
}

static inline void metrics_view_open_files(struct metrics_view *m, const char *folder)
{
    const struct nj_file_store_options options = {.root = folder, .cache_bytes = 1 << 20};
    const struct nj_worker_pool_config pool = {
        .n_shards = 1, .kind = {{.n_max = 1, .tasks_max = 4}, {.n_max = 1, .tasks_max = 4}}};
    char why[256];

    NJ_CHECK(nj_file_store_open(&options, &m->store, why, sizeof why) == 0);
    NJ_CHECK(nj_worker_pool_start(&pool, &m->workers) == 0);
    const struct nj_file_reader_config reader = {
        .store = m->store, .n_shards = 1, .tasks_max = 4, .no_thread = true};
    if (nj_file_reader_start(&reader, &m->reader) != 0)
        m->reader = NULL;
}

static inline void metrics_view_open_port(struct metrics_view *m)
{
    pthread_mutex_init(&m->stats_lock, NULL);
    m->dev = (struct nj_dpdk_port){.id = 2,
                                   .n_rxq = 1,
                                   .n_txq = 1,
                                   .mtu = 1500,
                                   .n_rxd = 1024,
                                   .n_txd = 512,
                                   .name = "net_tap0",
                                   .driver = "net_tap",
                                   .offloads = "none",
                                   .spread = "one queue",
                                   .rx_pool = {m->r->rx_pool},
                                   .tx_pool = {m->r->tx_pool}};
    m->stats = (struct nj_port_stats){
        .link_up = true, .mbps = 10000, .rx_missed = 3, .tx_packets = UINT64_MAX};
    m->lcore[0] = (struct nj_lcore){.id = 5, .cpu = 7, .node = -1, .control = &m->control};
    atomic_store(&m->control.phase, NJ_PHASE_RUN);
}

/* `folder` is the caller's and empty; n_routes: 1..METRICS_ROUTES_MAX, /route0 and so on. */
static inline struct metrics_view *metrics_view_new(const char *folder, uint32_t n_routes)
{
    struct metrics_view *m = calloc(1, sizeof *m);

    NJ_CHECK(m);
    m->r = rig_alloc(1024, 1024);
    metrics_view_open_policy(m, folder, n_routes);
    metrics_view_open_tls(m, folder);
    metrics_view_open_files(m, folder);
    metrics_view_open_port(m);
    m->config = rig_config(m->r);
    m->config.conns.routes = m->settings.routes;
    rig_new_with(m->r, &m->config);
    m->clock.ns_per_cycle_q32 = 1ull << 32; /* 1 GHz */
    atomic_store(&m->reloads.good_at_s, 1700000100);
    atomic_store(&m->supervised_at, UINT64_MAX - NJ_SEC * 10);
    atomic_store(&m->ready_stall, 300 * NJ_MS);
    m->v = (struct nj_mgmt_view){.clock = &m->clock,
                                 .n_ports = 1,
                                 .n_shards = 1,
                                 .port = {{&m->dev, &m->stats, 0, 1}},
                                 .port_stats_lock = &m->stats_lock,
                                 .shard = {m->r->s},
                                 .lcore = m->lcore,
                                 .lcore_log = m->log,
                                 .workers = m->workers,
                                 .store = m->store,
                                 .reader = m->reader,
                                 .policies = m->policies,
                                 .routes = m->settings.routes,
                                 .fibers_max = 256,
                                 .config = m->settings.config,
                                 .started_s = 1700000000,
                                 .reloads = &m->reloads,
                                 .supervised_at = &m->supervised_at,
                                 .is_stopping = &m->is_stopping,
                                 .is_yielding = &m->is_yielding,
                                 .unpolled = m->unpolled,
                                 .ready_stall = &m->ready_stall,
                                 .tls = &m->tls};
    return m;
}

static inline void metrics_view_free(struct metrics_view *m)
{
    nj_file_reader_free(m->reader);
    NJ_CHECK(nj_worker_pool_stop(m->workers, 60000) == 0);
    nj_worker_pool_free(m->workers);
    NJ_CHECK(nj_file_store_close(m->store) == 0);
    nj_conns_end(&m->r->s->conns);
    rig_free(m->r);
    nj_policies_free(m->policies);
    nj_settings_free(&m->settings);
    nj_tls_current_context_fini(&m->tls);
    free_cert(&m->cert);
    unlink(m->file);
    free(m);
}
