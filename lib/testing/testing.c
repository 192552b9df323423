/* SPDX-License-Identifier: BSD-3-Clause */
/* Begin and end of a test without a server. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/page_alloc.h"
#include "base/set_error.h"
#include "config/config_abi_copy.h"
#include "dpdk/lcore_loop.h"
#include "log/log.h"
#include "testing/mbuf_pool.h"
#include "testing/testing_internal.h"

#define BEGAN        (1000 * NJ_SEC)
#define UNIX_S       1700000000 /* 2023-11-14 22:13:20 UTC */
#define MBUFS        32768u     /* of each pool; they are allocated when they are used */
#define CONNS_MAX    1024u
#define CLIENTS_MAX  1024u
#define TIME_WAIT    (60 * NJ_SEC)
#define CACHE_BYTES  (32u << 20)  /* of file contents */
#define CLIENT_BYTES (256u << 20) /* for header tables of clients */
#define MTU          1500u
#define SERVER_IP    0xc0000201u /* 192.0.2.1 */
#define GATEWAY_IP   0xc00002feu /* 192.0.2.254: every client is behind it */
#define PORT         80u

static void log_line(void *test, const char *line)
{
    const struct nj_test *t = test;

    if (t->given.log)
        t->given.log(t->given.log_ctx, NJ_LOG_WARNING, line);
    else
        nj_log(NJ_LEVEL_WARNING, "%s", line);
}

static int read_settings(struct nj_test *t, const struct nj_route *routes, uint32_t n_routes,
                         const struct nj_server_config *config, char *why, size_t why_bytes)
{
    if (!config)
        nj_server_config_init(&t->given);
    else if (nj_config_convert_version(&t->given, config, why, why_bytes) != 0)
        return -1;
    if (n_routes > 0) {
        t->given.routes = routes;
        t->given.n_routes = n_routes;
    }
    int rc = nj_settings_from_partial_config(&t->settings, &t->given, why, why_bytes);
    if (t->settings.faults.text)
        nj_log(NJ_LEVEL_ERROR, "%s", t->settings.faults.text);
    return rc;
}

static int open_files(struct nj_test *t, char *why, size_t why_bytes)
{
    const struct nj_server_config *config = t->settings.config;
    const struct nj_file_store_options o = {.root = config->root,
                                            .cache_bytes = CACHE_BYTES,
                                            .symlinks = config->symlinks,
                                            .n_threads = 1};

    if (!o.root)
        return 0;
    t->file_workers = nj__test_workers_new(1, &t->now);
    return nj_file_store_open(&o, &t->store, why, why_bytes) < 0 ? -1 : 0;
}

static struct nj_addr address_of(uint32_t ip)
{
    return nj_addr_from_v4(htonl(ip));
}

static struct nj_shard_config shard_config(struct nj_test *t)
{
    const struct nj_settings *set = &t->settings;
    struct nj_shard_config c = {
        .n_shards = 1,
        .reta_size = 128,
        .iface = {.mac = nj__test_server_mac,
                  .mtu = MTU,
                  .has_gateway = true,
                  .gateway = address_of(GATEWAY_IP),
                  .n_addrs = 1,
                  .addr = {{address_of(SERVER_IP), 24, NJ_ADDR_READY}},
                  .n_fixed = 1,
                  .fixed = {{address_of(GATEWAY_IP), nj__test_link_mac}}},
        .ops = {.ctx = t,
                .rx = nj__test_link_rx,
                .rx_steered = nj__test_no_rx,
                .tx = nj__test_link_tx},
        .tx_pool = t->tx_pool,
        .listeners = {1, {{.port = PORT}}},
        .conns_max = nj_min_u32(set->config->conns_max, CONNS_MAX),
        .half_open_max = CONNS_MAX,
        .time_wait = TIME_WAIT,
        .no_dad = true,
        .flow_key = {{1}},
        .isn_key = {{2}},
        .ndp_key = {{3}},
        .seed = 4,
        .conns = {.preface_timeout = set->http.preface_timeout,
                  .idle_timeout = set->http.idle_timeout,
                  .wall_s_at_zero = UNIX_S - (int64_t)(BEGAN / NJ_SEC),
                  .routes = set->routes,
                  .http = &set->http,
                  .fibers_max = set->config->fibers_max,
                  .strategy = set->config->strategy,
                  .shape = t->shape,
                  .policy = nj_policies_initial(t->policies),
                  .client_key = {{5}},
                  .ops = {.workers = nj__test_workers_ops(t->workers),
                          .waits = nj_fd_waits_ops(&t->waits),
                          .log = log_line,
                          .log_ctx = t}},
    };
    if (t->store) {
        struct nj_worker_ops workers = nj__test_workers_ops(t->file_workers), none = {0};
        c.conns.ops.files = nj_file_client_init(&t->file_client, &workers, &none, t->store);
    }
    return c;
}

static int start(struct nj_test *t, char *why, size_t why_bytes)
{
    static const struct nj_hash_key hpack_key = {{6}};

    if (!nj_wakeup_open(&t->wakeup) || !nj_fd_waits_open(&t->waits, &t->wakeup))
        return nj_set_error(why, why_bytes, "cannot open a descriptor: %s", strerror(errno));
    nj_wakeup_arm(&t->wakeup);
    if (open_files(t, why, why_bytes) != 0)
        return -1;
    t->policies = nj_policies_new(&t->settings, nj_minute_of_day(UNIX_S), why, why_bytes);
    if (!t->policies)
        return -1;
    t->shape = nj_shape_shared_new(CLIENTS_MAX);
    t->rx_pool = nj__mbuf_pool_new(MBUFS);
    t->tx_pool = nj__mbuf_pool_new(MBUFS);
    t->workers = nj__test_workers_new(t->settings.config->workers, &t->now);
    nj_alloc_init(&t->alloc, CLIENT_BYTES);
    t->hpack = nj__hpack_shared_new(&t->alloc, &hpack_key);
    t->shard = nj_pages_map(sizeof *t->shard, 0);
    if (!t->shape || !t->rx_pool || !t->tx_pool || !t->hpack || !t->shard)
        return nj_set_error(why, why_bytes, "not enough memory");
    struct nj_shard_config c = shard_config(t);
    if (!nj_shard_init(t->shard, &c, t->now))
        return nj_set_error(why, why_bytes, "not enough memory for the lcore");
    t->has_shard = true;
    return 0;
}

struct nj_test *nj_test_new(const struct nj_route *routes, uint32_t n_routes,
                            const struct nj_server_config *config)
{
    struct nj_test *t = nj__test_alloc(sizeof *t);
    char why[512] = "";

    t->began = t->now = BEGAN;
    t->wakeup.fd = t->waits.epoll_fd = -1;
    t->next_port = 1024;
    t->link = (struct nj_iface){.mac = nj__test_link_mac,
                                .mtu = MTU,
                                .n_addrs = 1,
                                .addr = {{address_of(0), 0, NJ_ADDR_READY}}};
    if (read_settings(t, routes, n_routes, config, why, sizeof why) != 0 ||
        start(t, why, sizeof why) != 0) {
        nj_log(NJ_LEVEL_ERROR, "%s", why);
        nj_test_free(t);
        return NULL;
    }
    unsigned before = nj_lcore_set_id(0);
    if (t->given.lcore_init)
        t->given.lcore_init(0, t->given.lcore_ctx);
    nj_lcore_set_id(before);
    return t;
}

static uint32_t end_shard(struct nj_test *t)
{
    const char *route;
    unsigned before = nj_lcore_set_id(0);

    nj_tcp_abort_all(&t->shard->tcp, t->now);
    nj_shard_step(t->shard, t->now);
    nj_conns_end(&t->shard->conns);
    uint32_t n_stuck = nj_conns_stuck_fibers(&t->shard->conns, &route);
    if (n_stuck > 0)
        nj_log(NJ_LEVEL_ERROR, "%u handlers (%s) did not return after cancellation", n_stuck,
               route);
    if (t->given.lcore_fini)
        t->given.lcore_fini(0, t->given.lcore_ctx);
    nj_lcore_set_id(before);
    if (n_stuck == 0)
        nj_shard_fini(t->shard);
    return n_stuck;
}

static void free_shared(struct nj_test *t)
{
    for (size_t i = 0; i < t->n_in; i++)
        rte_pktmbuf_free(t->in[i]);
    nj_pages_unmap(t->shard, sizeof *t->shard);
    nj_fd_waits_close(&t->waits);
    nj_wakeup_close(&t->wakeup);
    nj__test_workers_free(t->workers);
    nj__test_workers_free(t->file_workers);
    if (t->store)
        nj_file_store_close(t->store);
    nj_shape_shared_free(t->shape);
    if (t->policies)
        nj_policies_free(t->policies);
    nj__mbuf_pool_free(t->rx_pool);
    nj__mbuf_pool_free(t->tx_pool);
    nj_settings_free(&t->settings);
}

uint32_t nj_test_free(struct nj_test *t)
{
    uint32_t n_stuck = 0;

    if (!t)
        return 0;
    if (t->has_shard)
        n_stuck = end_shard(t);
    nj__test_clients_free(t);
    if (t->hpack)
        nj__hpack_shared_free(t->hpack);
    nj_alloc_fini(&t->alloc);
    if (n_stuck > 0) /* they refer to it */
        return n_stuck;
    free_shared(t);
    free(t->in);
    free(t);
    return 0;
}
