/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_lcore.h>

#include "base/compiler.h"
#include "h1.h"
#include "h2.h"
#include "tcp/mbuf_priv.h"
#include "telem/counters.h"

#define POOL_MBUFS   8191u        /* for all packets in flight of most shapes */
#define TURN_MBUFS   32767u       /* with in_turn: also for responses that wait for a delayed ACK */
#define POOL_CACHE   256u         /* as in the server */
#define TURN         (10 * NJ_US) /* simulated time of a turn, as of a busy server */
#define IN_TURN      (50 * NJ_US) /* the same with in_turn */
#define IDLE_MAX     NJ_MS        /* maximum of time to skip when there is no work */
#define SERVER_PORT  80u
#define TLS_PORT     443u
#define FILE_PATH    "/file"
#define HOST         "198.18.0.1"
#define CLIENT_ADDRS 4 /* with in_turn: enough ports for 100,000 connections */
#define START_AT     (1000 * NJ_SEC)
#define TIME_WAIT    NJ_SEC
/* Turns without a byte of a body after which the exchange has failed: more than an hour of waiting,
 * or 10 MiB in single segments. */
#define VAIN_MAX     (1u << 22)

static const struct nj_iface ifaces[2] = {
    {.mac = {{2, 0, 0, 0, 0, 1}}, .mtu = 1500, .n_addrs = 1},
    {.mac = {{2, 0, 0, 0, 0, 2}}, .mtu = 1500, .n_addrs = 1},
};

/* ---- functions of the shards ---- */

static uint32_t server_rx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    return wire_receive(&((struct pair *)ctx)->up, m, n);
}

static uint32_t server_tx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    return wire_send(&((struct pair *)ctx)->down, m, n);
}

static uint32_t client_rx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    return wire_receive(&((struct pair *)ctx)->down, m, n);
}

static uint32_t client_tx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    return wire_send(&((struct pair *)ctx)->up, m, n);
}

static uint32_t rx_none(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    return 0;
}

static bool forward_none(void *ctx, uint32_t shard, struct rte_mbuf *m)
{
    return false;
}

static void replicate_none(void *ctx, const struct rte_mbuf *m)
{
}

/* ---- setup ---- */

/* Address 0, 198.18.0.1, is the server's. The next ones are the client's. */
static struct nj_addr address(uint32_t i)
{
    return nj_addr_from_v4(rte_cpu_to_be_32(0xc6120001u + i));
}

static struct nj_shard_config common(struct pair *p, bool client)
{
    struct nj_shard_config c = {
        .n_shards = 1,
        .reta_size = 128,
        .iface = ifaces[client],
        .ops = {.ctx = p,
                .rx_steered = rx_none,
                .forward = forward_none,
                .replicate = replicate_none},
        .tx_pool = client ? p->client_tx : p->server_tx,
        .conns_max = p->shape->n_conns + p->shape->n_conns / 8 + 64, /* far from full */
        .half_open_max = 1024,
        .time_wait = TIME_WAIT,
        .flow_key = {{1, 2, 3, client}},
        .isn_key = {{4, 5, 6, client}},
        .seed = 7 + client,
        .conns.wall_s_at_zero = 1700000000,
    };
    if (client && p->shape->in_turn)
        c.iface.n_addrs = CLIENT_ADDRS;
    for (uint32_t i = 0; i < c.iface.n_addrs; i++)
        c.iface.addr[i] = (struct nj_iface_addr){.ip = address(client + i), .prefix_bits = 24};
    return c;
}

static struct nj_shard *start(const struct nj_shard_config *c)
{
    struct nj_shard *s = aligned_alloc(NJ_CACHE_LINE, RTE_CACHE_LINE_ROUNDUP(sizeof *s));

    if (s && !nj_shard_init(s, c, START_AT)) {
        free(s);
        return NULL;
    }
    return s;
}

static bool start_server(struct pair *p)
{
    struct nj_shard_config c = common(p, false);

    c.listeners = (struct nj_listeners){1, {{.port = SERVER_PORT}}};
    c.ecn = true; /* the server's default */
    c.ops.rx = server_rx;
    c.ops.tx = server_tx;
    c.conns.ops.cycles = p->cycles;
    c.conns.ops.files = file_port(&p->file);
    c.conns.routes = p->handler.routes;
    c.conns.policy = &p->sites.policy;
    if (p->shape->tls) {
        c.conns.tls = &p->tls.current;
        c.listeners.at[c.listeners.n++] = (struct nj_listener){.port = TLS_PORT, .is_tls = true};
        c.conns.ops.tls_workers = server_tls_workers(&p->tls);
    }
    p->server = start(&c);
    p->handler.server = p->server;
    return p->server != NULL;
}

static bool start_client(struct pair *p)
{
    static const char *const fields[] = {"user-agent: nightjar-load"};
    struct nj_shard_config c = common(p, true);
    struct load_options *o = &p->options;

    *o = (struct load_options){
        .n_to = 1,
        .to = {address(0)},
        .port = p->shape->tls ? TLS_PORT : SERVER_PORT,
        .n_conns = p->shape->n_conns,
        .in_flight = p->shape->in_turn,
        .timeout = 10000 * NJ_SEC,
        .weights = 1,
        .weight = {1},
        .plan = {.framing = p->shape->http1 ? &h1_framing : &h2_framing,
                 .n_paths = 1,
                 .path = {{.text = FILE_PATH, .n_bytes = sizeof FILE_PATH - 1}},
                 .streams = p->shape->streams,
                 .is_https = p->shape->tls,
                 .upload_bytes = handler_upload(&p->handler),
                 .window = 16u << 20},
    };
    c.conns.fibers_max = 1;
    c.ops.rx = client_rx;
    c.ops.tx = client_tx;
    p->client = start(&c);
    return p->client && o->plan.framing->make(&o->plan, HOST, fields, NJ_ARRAY_LEN(fields)) &&
           crowd_init(&p->crowd, o, p->client, 0, 1);
}

static struct rte_mempool *make_pool(const struct shape *shape, const char *kind)
{
    char name[RTE_MEMPOOL_NAMESIZE];

    snprintf(name, sizeof name, "%s%u", kind, rte_lcore_id());
    return rte_pktmbuf_pool_create(name, shape->in_turn ? TURN_MBUFS : POOL_MBUFS, POOL_CACHE,
                                   NJ_MBUF_PRIV_BYTES, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
}

static bool make_tls(struct pair *p)
{
    if (!p->shape->tls || server_tls_init(&p->tls, p->why, sizeof p->why))
        return true;
    fprintf(stderr, "%s: TLS: %s\n", p->shape->name, p->why);
    return false;
}

static bool make_answers(struct pair *p)
{
    const struct shape *s = p->shape;

    return file_init(&p->file, s->file_bytes) &&
           sites_init(&p->sites, s->n_sites, HOST, FILE_PATH) &&
           handler_init(&p->handler, &s->handler, s->n_conns, FILE_PATH, p->file.bytes,
                        (uint32_t)s->file_bytes);
}

struct pair *pair_new(const struct shape *shape, uint64_t (*cycles)(void))
{
    struct pair *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->shape = shape;
    p->cycles = cycles;
    p->now = START_AT;
    p->server_tx = make_pool(shape, "server_tx");
    p->client_tx = make_pool(shape, "client_tx");
    p->up.rx_pool = make_pool(shape, "server_rx");
    p->down.rx_pool = make_pool(shape, "client_rx");
    if (p->server_tx && p->client_tx && p->up.rx_pool && p->down.rx_pool && make_answers(p) &&
        make_tls(p) && start_server(p) && start_client(p))
        return p;
    pair_free(p);
    return NULL;
}

static void end_shards(struct pair *p)
{
    if (p->client)
        nj_conns_end(&p->client->conns); /* the crowd handles the ends of connections */
    crowd_fini(&p->crowd, p->now);
    p->crowd = (struct crowd){0};
    if (p->client)
        nj_shard_fini(p->client);
    if (p->server)
        nj_shard_fini(p->server);
    wire_fini(&p->up);
    wire_fini(&p->down);
    free(p->client);
    free(p->server);
    p->client = p->server = NULL;
}

void pair_free(struct pair *p)
{
    end_shards(p);
    server_tls_fini(&p->tls);
    handler_fini(&p->handler);
    file_fini(&p->file);
    sites_fini(&p->sites);
    rte_mempool_free(p->server_tx);
    rte_mempool_free(p->client_tx);
    rte_mempool_free(p->up.rx_pool);
    rte_mempool_free(p->down.rx_pool);
    free(p);
}

/* ---- turns ---- */

/* Keeps the function separate, so that callgrind finds it. clang, which builds the fuzzers, does
 * not know noipa. */
#ifdef __clang__
#define SEPARATE __attribute__((noinline))
#else
#define SEPARATE __attribute__((noipa))
#endif

SEPARATE uint32_t nj_exchange_server_step(struct pair *p)
{
    uint64_t from = p->cycles ? p->cycles() : 0;
    uint32_t work = nj_shard_step(p->server, p->now);

    p->spent += p->cycles ? p->cycles() - from : 0;
    p->n_steps++;
    return work;
}

/* Whether a step of the server has work. Steps without work are not measured, because they belong
 * to no request. */
static bool due(const struct pair *p)
{
    return p->up.arrived.n > 0 || p->file.n_jobs > 0 || server_tls_has_tasks(&p->tls) ||
           nj_shard_next_at(p->server) <= p->now;
}

static void turn(struct pair *p, bool measured)
{
    uint32_t work = crowd_run(&p->crowd, p->phase, p->now) + nj_shard_step(p->client, p->now);

    wire_carry(&p->up);
    if (due(p))
        work += measured ? nj_exchange_server_step(p) : nj_shard_step(p->server, p->now);
    wire_carry(&p->down);
    p->now += p->shape->in_turn ? IN_TURN : TURN;
    if (work > 0 || p->down.arrived.n > 0 || due(p))
        return;
    nj_ns server = nj_shard_next_at(p->server), client = nj_shard_next_at(p->client);
    nj_ns next = server < client ? server : client;
    nj_ns most = p->now + IDLE_MAX;
    if (next > p->now)
        p->now = next < most ? next : most;
}

void pair_turn(struct pair *p)
{
    turn(p, false);
}

static uint64_t done(const struct pair *p)
{
    return atomic_load_explicit(&p->crowd.counts.done, memory_order_relaxed);
}

static uint64_t failed(const struct pair *p)
{
    const struct load_counts *n = &p->crowd.counts;
    return n->reset + n->timeout + n->lost + n->refused + n->tls_failed + n->closed + n->cut +
           n->broken + p->up.n_lost + p->down.n_lost;
}

/* Performs turns until `n` requests are done in all. False: failed; p->why has the reason. */
static bool until_done(struct pair *p, uint64_t n, bool measured)
{
    uint64_t n_body = 0; /* bytes */

    for (uint32_t n_vain = 0; done(p) < n && failed(p) == 0; n_vain++) {
        turn(p, measured);
        if (p->crowd.counts.body_bytes != n_body)
            n_vain = 0;
        n_body = p->crowd.counts.body_bytes;
        if (n_vain == VAIN_MAX)
            break;
    }
    if (done(p) >= n && failed(p) == 0)
        return true;
    snprintf(p->why, sizeof p->why, "%lu of %lu requests were answered, %lu failures: %s",
             (unsigned long)done(p), (unsigned long)n, (unsigned long)failed(p),
             p->crowd.fault ? p->crowd.fault : "unknown reason");
    return false;
}

bool pair_begin(struct pair *p)
{
    for (uint32_t n = 0; p->crowd.n_open < p->shape->n_conns; n++) {
        turn(p, false);
        if (n == VAIN_MAX || failed(p) > 0) {
            snprintf(p->why, sizeof p->why, "%u of %u connections are open",
                     (unsigned)p->crowd.n_open, p->shape->n_conns);
            return false;
        }
    }
    p->phase = LOAD_WARMING;
    return until_done(p, p->shape->n_warm, false);
}

static struct cost account(const struct pair *p)
{
    const struct nj_stages *s = &p->server->stages;
    struct cost c = {
        .n_requests = done(p),
        .n_steps = p->n_steps,
        .rx_packets = nj_counter_read(&p->server->counters, NJ_C_rx_packets),
        .tx_packets = nj_counter_read(&p->server->counters, NJ_C_tx_packets),
        .cycles = p->spent,
    };
    for (uint32_t i = 0; i < NJ_N_STAGES; i++)
        c.stage[i] = s->spent[i];
    return c;
}

bool pair_run(struct pair *p, uint64_t n_requests, struct cost *cost)
{
    struct cost a = account(p);

    if (!until_done(p, a.n_requests + n_requests, true))
        return false;
    *cost = account(p);
    cost->n_requests -= a.n_requests;
    cost->n_steps -= a.n_steps;
    cost->rx_packets -= a.rx_packets;
    cost->tx_packets -= a.tx_packets;
    cost->cycles -= a.cycles;
    for (uint32_t i = 0; i < NJ_N_STAGES; i++)
        cost->stage[i] -= a.stage[i];
    return true;
}

static bool all_free(const struct rte_mempool *pool)
{
    return rte_mempool_avail_count(pool) == pool->size;
}

/* Ends the requests in flight and closes the connections. */
static bool settle(struct pair *p)
{
    p->phase = LOAD_FINISHING;
    if (!until_done(p, p->crowd.counts.asked, false))
        return false;
    p->phase = LOAD_CLOSING;
    for (uint32_t n = 0; n < VAIN_MAX && p->crowd.n_open > 0; n++)
        turn(p, false);
    return true;
}

bool pair_end(struct pair *p)
{
    if (!settle(p))
        return false;
    const struct load_counts *n = &p->crowd.counts;
    uint64_t asked = n->asked, good = n->status_2, bytes = n->body_bytes,
             seen = nj_counter_read(&p->server->counters, NJ_C_requests);
    uint64_t expected = asked * p->shape->file_bytes;
    snprintf(p->why, sizeof p->why,
             "%lu requests: the server counted %lu, %lu got a status 2xx, with %lu of %lu bytes",
             (unsigned long)asked, (unsigned long)seen, (unsigned long)good, (unsigned long)bytes,
             (unsigned long)expected);
    if (good != asked || seen != asked || bytes != expected)
        return false;
    end_shards(p);
    snprintf(p->why, sizeof p->why, "not all mbufs were freed");
    return all_free(p->server_tx) && all_free(p->client_tx) && all_free(p->up.rx_pool) &&
           all_free(p->down.rx_pool);
}
