/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that speak HTTP/1 under a policy, and while mbufs, memory or places are short. */
#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

/* ---- policy ---- */

static void says_hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello", 5);
}

static void joins(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_class(resp, HR_CLASS);
    nj_response_write(resp, "hello", 5);
}

static void reads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char some[100];

    while (nj_request_read(req, some, sizeof some) > 0)
        ;
    nj_response_write(resp, "read", 4);
}

/* With `arg` the response begins first. */
static void waits(struct nj_request *req, struct nj_response *resp, void *arg)
{
    if (arg) {
        nj_response_write(resp, "a", 1);
        nj_response_flush(resp);
    }
    nj_sleep(1000 * NJ_SEC);
}

static const struct nj_route routes[] = {
    {.path = "/reads", .type = NJ_BLOCKING, .handle = reads},
    {.path = "/waits", .type = NJ_BLOCKING, .handle = waits},
    {.path = "/begins", .type = NJ_BLOCKING, .handle = waits, .arg = (void *)1},
    {.path = "/hello", .type = NJ_BLOCKING, .handle = says_hello},
    {.path = "/joins", .type = NJ_BLOCKING, .handle = joins},
};

/* With the action for requests of /index.html, and for responses that join HR_CLASS. */
static struct hr *start_with(struct nj_policy *policy, enum nj_action action)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    hr_two_classes(h, policy);
    policy->classes[1].action = action;
    policy->classes[1].retry_after_s = 7;
    policy->rules[0] = (struct nj_class_rule){.class_index = 1, .path_prefix = NJ_STR("/index")};
    policy->n_rules = 1;
    return hr_start(h);
}

Test(conn_http1_limits, refused_by_policy)
{
    static const struct {
        enum nj_action action;
        int status;
    } rows[] = {{NJ_ACTION_FORBID, 403}, {NJ_ACTION_TOO_MANY, 429}};
    static const char *const paths[] = {"/index.html", "/joins"};
    struct nj_policy policy;

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct hr *h = start_with(&policy, rows[i].action);
        struct rig_peer *p = rig_connect(h->r, 1000);
        struct http1_reply a = {0};
        for (uint32_t k = 0; k < 4; k++) {
            http1_get(h->r, p, paths[k % 2]);
            hr_settle(h);
            cr_expect_eq(http1_count(p, &a), 2 * k + 1);
            cr_expect(a.status == rows[i].status && !a.says_close, "%s", a.head);
            cr_expect_eq(http1_field_is(&a, "Retry-After", "7"), rows[i].status == 429);
            http1_get(h->r, p, "/hello");
            hr_settle(h);
            cr_expect_eq(http1_count(p, &a), 2 * k + 2);
            cr_expect_eq(a.status, 200);
        }
        cr_expect_eq(rig_count(h->r, NJ_C_request_refused), 4);
        cr_expect(!p->got_fin);
        hr_free(h);
    }
}

/* HTTP/1 cannot reset a request alone: the connection ends without a response. */
Test(conn_http1_limits, reset_by_policy)
{
    static const enum nj_action actions[] = {NJ_ACTION_DROP, NJ_ACTION_RESET};
    static const char *const paths[] = {"/index.html", "/joins"};
    struct nj_policy policy;

    for (size_t i = 0; i < 4; i++) {
        struct hr *h = start_with(&policy, actions[i / 2]);
        struct rig_peer *p = rig_connect(h->r, 1000);
        http1_get(h->r, p, "/hello");
        http1_get(h->r, p, paths[i % 2]);
        http1_get(h->r, p, "/hello");
        hr_settle(h);
        cr_expect_eq(http1_count(p, NULL), 1);
        cr_expect(p->got_fin || p->got_rst);
        cr_expect_eq(rig_count(h->r, NJ_C_requests), 2);
        cr_expect_eq(rig_count(h->r, NJ_C_request_refused), 1);
        cr_expect_eq(nj_h1_context_n_conns(h->r->s->conns.h1), 0);
        hr_free(h);
    }
}

/* Handlers of one client have all stacks, and another client needs some. Those that lose theirs get
 * 503, or RST if their response has begun, as that is incomplete. */
Test(conn_http1_limits, stacks_that_are_taken_back)
{
    enum { STACKS = 16 };

    for (int begun = 0; begun < 2; begun++) {
        struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
        struct rig_peer *p[STACKS], *q[4];
        uint32_t n_told = 0, n_cut = 0, n_served = 0;
        h->config.conns.fibers_max = STACKS;
        hr_start(h);
        for (uint16_t i = 0; i < STACKS; i++) {
            p[i] = rig_connect(h->r, 1000 + i);
            http1_get(h->r, p[i], begun ? "/begins" : "/waits");
        }
        hr_run(h, 3 * NJ_SEC);
        for (uint16_t i = 0; i < 4; i++) {
            q[i] = rig_syn_from(h->r, RIG_PEER_IP + 5, 2000 + i);
            hr_settle(h);
            http1_get(h->r, q[i], "/hello");
        }
        hr_run(h, 3 * NJ_SEC);
        for (uint16_t i = 0; i < STACKS; i++) {
            struct http1_reply a = http1_first(p[i]);
            n_told += a.status == 503 && a.is_whole && a.says_close && p[i]->got_fin;
            n_cut += a.status == 200 && !a.is_whole && (p[i]->got_fin || p[i]->got_rst);
        }
        for (uint16_t i = 0; i < 4; i++)
            n_served += http1_first(q[i]).status == 200;
        cr_expect_eq(n_served, 4);
        cr_expect_gt(rig_count(h->r, NJ_C_stack_evicted), 0);
        cr_expect_eq(begun ? n_cut : n_told, rig_count(h->r, NJ_C_stack_evicted));
        cr_expect_eq(begun ? n_told : n_cut, 0);
        hr_free(h);
    }
}

/* A response of a class with a rate; the next request waits behind it. */
Test(conn_http1_limits, paced_bodies)
{
    struct nj_policy policy = nj_policy_none;
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    struct http1_reply a;

    policy.classes[0].request = (struct nj_limit){.rate = 10000, .ceiling = 10000};
    h->config.conns.policy = &policy;
    h->r->http.min_rate = 1000000; /* time that is paced does not count against the peer */
    hr_start(h);
    struct rig_peer *p = rig_connect(h->r, 1000);
    http1_get(h->r, p, "/whole");
    http1_get(h->r, p, "/none");
    hr_run(h, 15 * NJ_SEC);
    a = http1_first(p);
    cr_expect(a.n_body >= 145000 && a.n_body <= 175000, "%lu", a.n_body);
    hr_run(h, 6 * NJ_SEC);
    cr_expect_eq(http1_count(p, &a), 2);
    cr_expect_eq(a.status, 404);
    cr_expect(http1_first(p).is_whole && !http1_first(p).wrong);
    cr_expect_eq(rig_count(h->r, NJ_C_shape_bytes), rig_count(h->r, NJ_C_body_bytes));
    hr_free(h);
}

/* The limit of open requests of a client, over connections, each of which has one. */
Test(conn_http1_limits, requests_of_a_client)
{
    struct nj_policy policy = nj_policy_none;
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    struct rig_peer *p[6];

    policy.classes[0].caps.streams_max = 4;
    h->config.conns.policy = &policy;
    hr_start(h);
    h->r->files_slow = true;
    for (uint16_t i = 0; i < 6; i++) {
        p[i] = rig_connect(h->r, 1000 + i);
        http1_get(h->r, p[i], "/whole");
        hr_settle(h);
        cr_expect_eq(http1_first(p[i]).status, i < 4 ? 0 : 429, "%u", i);
    }
    h->r->files_slow = false;
    hr_run(h, NJ_SEC);
    http1_get(h->r, p[5], "/index.html");
    hr_settle(h);
    struct http1_reply a;
    cr_expect_eq(http1_count(p[5], &a), 2);
    cr_expect_eq(a.status, 200);
    hr_free(h);
}

/* ---- mbufs for sending ---- */

static void some_steps(struct rig *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        rig_step(r);
        r->now += NJ_MS;
    }
}

/* With few mbufs left, connections wait; no response is cut off. */
Test(conn_http1_limits, low_pool_makes_them_wait)
{
    struct rig *r = rig_alloc(8192, 700);
    struct nj_shard_config c = rig_config(r);
    struct rig_peer *p[100];
    rig_new_with(r, &c);

    for (uint16_t i = 0; i < 100; i++)
        p[i] = rig_connect(r, 1000 + i);
    for (int i = 0; i < 100; i++) {
        p[i]->rcv_wnd = 0;
        http1_get(r, p[i], "/whole");
        http1_get(r, p[i], "/index.html");
    }
    some_steps(r, 100);
    for (int i = 0; i < 100; i++) {
        p[i]->rcv_wnd = 65535;
        rig_ack(r, p[i]);
    }
    some_steps(r, 20000);
    for (int i = 0; i < 100; i++) {
        cr_expect_eq(http1_count(p[i], NULL), 2, "peer %d: %lu", i, p[i]->n_got);
        cr_expect(!http1_first(p[i]).wrong && !p[i]->got_fin && !p[i]->got_rst);
    }
    cr_expect_eq(rig_count(r, NJ_C_responses), 200);
    rig_free(r);
}

/* Peers that do not read use up the pool: they are reset after a while, and others are served. */
Test(conn_http1_limits, stalled_peers_are_shed)
{
    struct rig *r = rig_alloc(8192, 400);
    struct nj_shard_config c = rig_config(r);
    rig_new_with(r, &c);

    for (uint16_t i = 0; i < 100; i++) {
        struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP, 1000 + i);
        some_steps(r, 10);
        p->rcv_wnd = 0;
        http1_get(r, p, "/whole");
        some_steps(r, 10);
    }
    struct rig_peer *q = rig_syn_from(r, RIG_PEER_IP, 2000);
    some_steps(r, 10);
    http1_get(r, q, "/whole");
    for (int i = 0; i < 45 * 20; i++) { /* less than the send timeout */
        r->now += 50 * NJ_MS;
        some_steps(r, 2);
    }
    cr_expect(http1_first(q).is_whole && !q->got_rst, "%lu", q->n_got);
    cr_expect_gt(rig_count(r, NJ_C_conn_shed), 0);
    rig_free(r);
}

/* ---- received mbufs ---- */

/* Requests that wait count for their client, until they are read or the connection ends. */
Test(conn_http1_limits, held_mbufs)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000), *q = rig_connect(r, 1001);
    char fields[1200];

    r->files_slow = true;
    snprintf(fields, sizeof fields, "a: %01000d\r\n", 0); /* short segments share mbufs */
    for (int i = 0; i < 10; i++) {
        http1_ask(r, p, "GET", "/whole", fields);
        http1_ask(r, q, "GET", "/whole", fields);
    }
    rig_settle(r);
    uint32_t n_held = r->s->conns.held_mbufs.n_held;
    cr_expect(n_held >= 10 && n_held == r->s->tcp.n_held, "%u", n_held);
    cr_expect_eq(r->s->conns.held_memory.n_held, 0);
    rig_seg(r, q, q->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    rig_settle(r);
    cr_expect_eq(r->s->conns.held_mbufs.n_held, n_held / 2);
    r->files_slow = false;
    p->n_got = 0;
    for (int i = 0; i < 10; i++) {
        rig_run(r, 20 * NJ_MS);
        p->n_got = 0;
    }
    cr_expect_eq(r->s->conns.held_mbufs.n_held, 0);
    cr_expect_eq(rig_count(r, NJ_C_responses), 10);
    rig_free(r);
}

/* Many peers whose requests wait hold most of the mbufs: those that hold most are reset, and a new
 * client of another address is served at once. */
Test(conn_http1_limits, mbufs_of_pipelined_requests)
{
    struct rig *r = rig_alloc(8191, 8191);
    struct nj_shard_config c = rig_config(r);
    struct rig_peer *p[40];
    char text[1400];
    uint32_t n = 0, n_gone = 0;

    c.held_max = 512;
    rig_new_with(r, &c);
    while (n + 27 <= sizeof text)
        n += (uint32_t)sprintf(text + n, "GET /n HTTP/1.1\r\nHost:a\r\n\r\n");
    for (uint16_t i = 0; i < 40; i++) {
        p[i] = rig_syn_from(r, RIG_PEER_IP + 2, 1000 + i);
        rig_settle(r);
        p[i]->rcv_wnd = 0;
        http1_get(r, p[i], "/big"); /* its response is not read */
    }
    for (uint32_t k = 0; k < 20; k++) {
        for (uint32_t i = 0; i < 40; i++)
            if (!p[i]->got_rst && p[i]->snd_nxt - p[i]->snd_una + n <= p[i]->srv_wnd)
                rig_send(r, p[i], text, n);
        rig_settle(r);
        r->now += 10 * NJ_MS;
    }
    struct rig_peer *q = rig_syn_from(r, RIG_PEER_IP + 3, 999);
    rig_settle(r);
    http1_get(r, q, "/index.html");
    rig_settle(r);
    cr_expect_eq(http1_first(q).status, 200);
    for (uint32_t i = 0; i < 40; i++)
        n_gone += p[i]->got_rst;
    cr_expect(n_gone > 0 && n_gone < 40, "%u", n_gone);
    cr_expect_eq(rig_count(r, NJ_C_conn_rx_limit), n_gone);
    cr_expect_leq(r->s->conns.held_mbufs.n_held, 512);
    rig_free(r);
}

/* ---- memory of sessions ---- */

/* `n_bytes` of a head that stays incomplete, less than --header-bytes allows. */
static void begin_head(struct rig *r, struct rig_peer *p, uint32_t n_bytes)
{
    char line[64];
    uint32_t n = 0;

    http1_send(r, p, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (uint32_t i = 0; n < n_bytes; i++) {
        uint32_t n_line = (uint32_t)sprintf(line, "field-%u: %020u\r\n", i, i);
        rig_send(r, p, line, n_line);
        n += n_line;
        if (i % 10 == 9)
            rig_settle(r);
    }
    rig_settle(r);
}

/* What an incomplete head takes is in the account of its client, and ends with it. */
Test(conn_http1_limits, memory_of_heads)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000), *q = rig_connect(r, 1001);
    size_t before = r->s->conns.session_memory.bytes_used;

    begin_head(r, p, 2000);
    begin_head(r, q, 2000);
    cr_expect_geq(r->s->conns.held_memory.n_held, 4);
    cr_expect_leq(r->s->conns.held_memory.n_held, 8);
    http1_send(r, p, "\r\n");
    rig_settle(r);
    cr_expect_leq(r->s->conns.held_memory.n_held, 4);
    rig_fin(r, q);
    rig_settle(r);
    cr_expect_eq(r->s->conns.held_memory.n_held, 0);
    rig_fin(r, p);
    rig_settle(r);
    cr_expect_eq(http1_first(p).status, 200);
    cr_expect_leq(r->s->conns.session_memory.bytes_used, before);
    rig_free(r);
}

/* The same for trailers. */
Test(conn_http1_limits, memory_of_trailers)
{
    struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
    struct rig_peer *p = rig_connect(h->r, 1000);

    http1_ask(h->r, p, "POST", "/reads", "Transfer-Encoding: chunked\r\n");
    http1_send(h->r, p, "4\r\nsome\r\n0\r\n");
    hr_settle(h);
    cr_expect_eq(h->r->s->conns.held_memory.n_held, 0);
    for (int i = 0; i < 100; i++) {
        http1_send(h->r, p, "field: 01234567890123456789\r\n");
        hr_settle(h);
    }
    cr_expect_geq(h->r->s->conns.held_memory.n_held, 2);
    http1_send(h->r, p, "\r\n");
    hr_settle(h);
    cr_expect_eq(http1_first(p).status, 200);
    cr_expect_eq(h->r->s->conns.held_memory.n_held, 0);
    hr_free(h);
}

/* Heads that stay incomplete, until memory is short. Their client loses some, another one none. */
Test(conn_http1_limits, memory_of_many_heads)
{
    enum { N = 100 };
    struct rig *r = rig_new();
    struct rig_peer *p[N];
    uint32_t n_gone = 0;

    r->s->conns.session_memory.bytes_max = 256 * 1024;
    struct rig_peer *innocent = rig_syn_from(r, RIG_PEER_IP + 2, 999);
    rig_settle(r);
    begin_head(r, innocent, 2000);
    for (uint16_t i = 0; i < N; i++) {
        p[i] = rig_connect(r, 1000 + i);
        begin_head(r, p[i], 6000);
    }
    struct rig_peer *q = rig_syn_from(r, RIG_PEER_IP + 2, 998);
    rig_settle(r);
    http1_get(r, q, "/index.html");
    http1_send(r, innocent, "\r\n");
    rig_settle(r);
    cr_expect_eq(http1_first(q).status, 200);
    cr_expect_eq(http1_first(innocent).status, 200);
    for (uint32_t i = 0; i < N; i++)
        n_gone += p[i]->got_rst;
    cr_expect(n_gone > 0 && n_gone < N, "%u", n_gone);
    cr_expect_eq(n_gone, rig_count(r, NJ_C_conn_memory_limit));
    rig_free(r);
}

/* Without memory a session does not begin; the connection ends, and nothing else happens. */
Test(conn_http1_limits, no_memory_for_a_session)
{
    struct rig *r = rig_new();

    for (uint16_t i = 0; i < 4; i++) {
        r->s->conns.session_memory.bytes_max = r->s->conns.session_memory.bytes_used + 64 * i;
        struct rig_peer *p = rig_connect(r, 1000 + i);
        http1_send(r, p, "GET / HTTP/1.1\r\nHo");
        rig_settle(r);
        http1_send(r, p, "st: a\r\n\r\n");
        rig_settle(r);
        cr_expect(p->got_fin || p->got_rst, "%u", i);
        cr_expect_eq(nj_h1_context_n_conns(r->s->conns.h1), 0);
    }
    r->s->conns.session_memory.bytes_max = 1u << 30;
    struct rig_peer *p = rig_connect(r, 2000);
    http1_get(r, p, "/index.html");
    rig_settle(r);
    cr_expect_eq(http1_first(p).status, 200);
    rig_free(r);
}

/* ---- places ---- */

#define PLACES 96u
#define FULL   (PLACES - PLACES / 32)

static struct rig_peer *open_from(struct rig *r, uint32_t ip, uint16_t port)
{
    struct rig_peer *p = rig_syn_from(r, ip, port);
    rig_settle(r);
    http1_get(r, p, "/index.html");
    rig_settle(r);
    return p;
}

/* A client fills the table, idle or busy; forty others connect, and each is served. */
static void fill(bool busy)
{
    struct rig *r = rig_alloc(16384, 16384);
    struct nj_shard_config c = rig_config(r);
    struct rig_peer *greedy[120];
    uint32_t n_served = 0, n_ended = 0;

    c.conns_max = c.half_open_max = PLACES;
    c.conns.client_key = (struct nj_hash_key){{7, 8, 9}};
    rig_new_with(r, &c);
    for (uint16_t i = 0; i < 88; i++) {
        greedy[i] = open_from(r, RIG_PEER_IP + 4, 1000 + i);
        if (busy) {
            greedy[i]->manual = true;
            http1_get(r, greedy[i], "/whole");
            rig_settle(r);
        }
    }
    for (uint16_t i = 0; i < 40; i++) {
        struct rig_peer *p = open_from(r, RIG_PEER_IP + 15 + i, 2000);
        n_served += http1_first(p).status == 200 && !p->got_rst && !p->got_fin;
    }
    for (uint32_t i = 0; i < 88; i++)
        n_ended += greedy[i]->got_fin || greedy[i]->got_rst;
    cr_expect_eq(n_served, 40, "%u", n_served);
    cr_expect_geq(n_ended, 20, "%u", n_ended);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), n_ended);
    rig_free(r);
}

Test(conn_http1_limits, idle_connections_yield)
{
    fill(false);
}

Test(conn_http1_limits, busy_connections_yield)
{
    fill(true);
}

/* A request that came in the step in which an idle connection would have to go is answered. */
Test(conn_http1_limits, requests_that_are_not_read_yet)
{
    struct rig *r = rig_alloc(16384, 16384);
    struct nj_shard_config c = rig_config(r);
    struct rig_peer *greedy[88];

    c.conns_max = c.half_open_max = PLACES;
    c.conns.client_key = (struct nj_hash_key){{7, 8, 9}};
    rig_new_with(r, &c);
    for (uint16_t i = 0; i < 88; i++)
        greedy[i] = open_from(r, RIG_PEER_IP + 4, 1000 + i);
    rig_syn_from(r, RIG_PEER_IP + 15, 2000);
    for (uint32_t i = 0; i < 10 && r->s->conns.shares.n_to_evict == 0; i++)
        rig_step(r);
    cr_assert_eq(r->s->conns.shares.n_to_evict, 1);
    for (uint32_t i = 0; i < 88; i++)
        http1_get(r, greedy[i], "/index.html");
    nj_conns_begin_step(&r->s->conns, r->now);
    while (r->n_in > 0)
        nj__net_rx_burst(r->s, r->now);
    rig_settle(r);
    for (uint32_t i = 0; i < 88; i++)
        cr_expect(http1_count(greedy[i], NULL) == 2 && !greedy[i]->got_fin, "%u", i);
    cr_expect_eq(rig_count(r, NJ_C_conn_evicted), 0);
    rig_free(r);
}
