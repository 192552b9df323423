/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attackers over HTTP/1 whose time-outs expire all at once, beside an innocent client of HTTP/2:
 * its request is answered in the step in which it arrives. What each of the attackers gets, and
 * what is counted.
 */
#define N_ATTACKERS 1000u
#define RIG_PEERS   (N_ATTACKERS + 8)
#define RIG_GOT_MAX 65536u

#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

#define ENDS_MAX   64u /* EXPIRE_MAX in conn_timeouts.c, CHECK_MAX in request_timeouts.c */
#define STEPS_MAX  4000u
#define ANSWER_MAX 16u

static void read_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[1000];

    while (nj_request_read(req, buf, sizeof buf) > 0)
        ;
    nj_response_write(resp, "heard", 5);
}

static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello", 5);
}

/* The innocent asks for /hello: a file is checked once a second, by a worker. */
static const struct nj_route routes[] = {
    {.path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
    {.path = "/pack", .type = NJ_OS_BLOCKING, .handle = read_body},
    {.path = "/read_body", .type = NJ_BLOCKING, .handle = read_body},
};

struct scene {
    struct hr *h;
    struct rig *r;
    struct rig_peer *innocent, *attacker[N_ATTACKERS];
    uint32_t stream;
    nj_counter counter; /* of the time-out that attackers reach */
};

/* The innocent is connected, and was answered. Each attacker has sent `text`. */
static struct scene begin(const char *text)
{
    struct scene s = {.stream = 1, .counter = NJ_C_conn_timeout};

    s.h = hr_new(routes, NJ_ARRAY_LEN(routes));
    s.h->config.conns_max = 2 * RIG_PEERS; /* so that none is short of places */
    hr_start(s.h);
    s.r = s.h->r;
    s.innocent = rig_connect_h2(s.r, 999);
    rig_get(s.r, s.innocent, 1, "/hello");
    hr_settle(s.h);
    for (uint32_t i = 0; i < N_ATTACKERS; i++) {
        s.attacker[i] = rig_syn_from(s.r, RIG_PEER_IP + 4 + i % 50, (uint16_t)(1000 + i));
        hr_settle(s.h);
        http1_send(s.r, s.attacker[i], text);
    }
    hr_settle(s.h);
    cr_assert_eq(nj_h1_context_n_conns(s.r->s->conns.h1), *text ? N_ATTACKERS : 0);
    return s;
}

/* A step, in which at most ENDS_MAX attackers reach their time-out. A pipeline has turns of 4
 * requests, and a step has 4 second turns: with 8 pipelines it answers fewer than ENDS_MAX. */
static uint32_t one_step(struct scene *s)
{
    uint64_t before = rig_count(s->r, s->counter);
    uint32_t work = rig_step(s->r);

    cr_expect_leq(rig_count(s->r, s->counter) - before, ENDS_MAX);
    return work;
}

/* The innocent asks, and is answered within a few steps. It waits behind the packets that came
 * before its own, of which a step takes 64; those are ACKs of attackers that have just ended. */
static void ask(struct scene *s)
{
    uint64_t before = s->innocent->n_got;
    uint32_t n = 0;

    s->stream += 2;
    rig_get(s->r, s->innocent, s->stream, "/hello");
    while (s->innocent->n_got == before && n++ < ANSWER_MAX)
        one_step(s);
    cr_expect_gt(s->innocent->n_got, before, "stream %u", s->stream);
}

/* Time passes in steps of a millisecond, until `counter` has reached the number of attackers.
 * Returns the time. */
static nj_ns until_all_ended(struct scene *s, nj_counter counter, nj_ns most)
{
    nj_ns begun = s->r->now;

    s->counter = counter;
    while (rig_count(s->r, counter) < N_ATTACKERS && s->r->now - begun < most) {
        s->r->now += NJ_MS;
        if (rig_count(s->r, counter) > 0 || one_step(s) > 0)
            ask(s);
    }
    cr_expect_eq(rig_count(s->r, counter), N_ATTACKERS);
    return s->r->now - begun;
}

/* Expects that each attacker got `status` (0: no response) and FIN, and that the server holds no
 * object of it. */
static void end(struct scene *s, int status, uint32_t n_before)
{
    uint32_t n_right = 0, n_closed = 0;

    hr_settle(s->h);
    for (uint32_t i = 0; i < N_ATTACKERS; i++) {
        struct http1_reply a = {0};
        uint32_t n = http1_count(s->attacker[i], &a);
        n_right += status ? n == n_before + 1 && a.status == status && a.says_close : n == n_before;
        n_closed += s->attacker[i]->got_fin && !s->attacker[i]->got_rst;
    }
    cr_expect_eq(n_right, N_ATTACKERS, "%u", n_right);
    cr_expect_eq(n_closed, N_ATTACKERS, "%u", n_closed);
    cr_expect_eq(nj_h1_context_n_conns(s->r->s->conns.h1), 0);
    cr_expect_eq(s->r->s->conns.txns.pool.n_used, 0);
    hr_run(s->h, 3 * NJ_SEC);
    cr_expect_eq(s->r->s->conns.pool.n_used, 1);
    cr_expect(!s->innocent->got_fin && !s->innocent->got_rst);
    hr_free(s->h);
}

Test(conn_http1_attacks, slow_heads)
{
    struct scene s = begin("GET / HTTP/1.1\r\nHost: a\r\nx: ");
    nj_ns took = until_all_ended(&s, NJ_C_h1_head_timeout, 20 * NJ_SEC);

    cr_expect(took >= 9900 * NJ_MS && took <= 11 * NJ_SEC, "%lu ms", took / NJ_MS);
    cr_expect_eq(rig_count(s.r, NJ_C_conn_timeout), N_ATTACKERS);
    cr_expect_eq(rig_count(s.r, NJ_C_status_4xx), N_ATTACKERS);
    end(&s, 408, 0);
}

Test(conn_http1_attacks, slow_bodies)
{
    struct scene s = begin("POST /pack HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\nsome");
    nj_ns took = until_all_ended(&s, NJ_C_body_timeout, 80 * NJ_SEC);

    cr_expect(took >= 60 * NJ_SEC && took <= 68 * NJ_SEC, "%lu ms", took / NJ_MS);
    cr_expect_eq(rig_count(s.r, NJ_C_status_4xx), N_ATTACKERS);
    end(&s, 408, 0);
}

Test(conn_http1_attacks, idle_connections)
{
    struct scene s = begin("GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n");
    nj_ns took = until_all_ended(&s, NJ_C_conn_timeout, 90 * NJ_SEC);

    cr_expect(took >= 74 * NJ_SEC && took <= 77 * NJ_SEC, "%lu ms", took / NJ_MS);
    cr_expect_eq(rig_count(s.r, NJ_C_status_4xx), 0);
    end(&s, 0, 1);
}

/* Bytes that come one by one and are no bytes of the body: a chunk size, trailers, an extension. */
Test(conn_http1_attacks, chunk_syntax_that_dribbles)
{
    static const struct {
        const char *begin, *byte;
        nj_counter counter;
        int status;
        nj_ns most;
    } rows[] = {
        {"4\r\nsome\r\n", "0", NJ_C_h1_chunk, 400, 68 * NJ_SEC},
        {"4\r\nsome\r\n0\r\nx: ", "a", NJ_C_h1_head_timeout, 408, 12 * NJ_SEC},
        {"4\r\nsome\r\n4;x=", "b", NJ_C_body_timeout, 408, 68 * NJ_SEC},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
        struct rig_peer *p = rig_connect(h->r, 1000);
        nj_ns begun = h->r->now;
        http1_ask(h->r, p, "POST", "/pack", "Transfer-Encoding: chunked\r\n");
        http1_send(h->r, p, rows[i].begin);
        while (!p->got_fin && !p->got_rst && h->r->now - begun < 100 * NJ_SEC) {
            http1_send(h->r, p, rows[i].byte);
            hr_run(h, NJ_SEC);
        }
        nj_ns took = h->r->now - begun;
        struct http1_reply a = http1_first(p);
        cr_expect_leq(took, rows[i].most, "%zu: %lu ms", i, took / NJ_MS);
        cr_expect(a.is_whole && a.says_close && a.status == rows[i].status, "%zu: %s", i, a.head);
        cr_expect_eq(rig_count(h->r, rows[i].counter), 1, "%zu", i);
        http1_expect_closed(h->r, p);
        hr_free(h);
    }
}

/* Pipelined requests of some connections, more than are answered in a step. The innocent, whose
 * request comes behind them, does not wait for all of them. */
Test(conn_http1_attacks, pipelined_floods)
{
    enum { N_FLOODERS = 8, N_SEGMENTS = 6, N_ROUNDS = 10 };
    struct scene s = begin("");
    char text[1460];
    uint32_t n = 0, n_requests = 0, n_steps = 0;

    s.counter = NJ_C_status_4xx;
    for (; n + 27 <= sizeof text; n_requests += N_FLOODERS * N_SEGMENTS * N_ROUNDS)
        n += (uint32_t)sprintf(text + n, "GET /n HTTP/1.1\r\nHost:a\r\n\r\n");
    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        for (uint32_t i = 0; i < N_FLOODERS * N_SEGMENTS; i++)
            NJ_CHECK(rig_send(s.r, s.attacker[i % N_FLOODERS], text, n));
        ask(&s);
    }
    for (; rig_count(s.r, NJ_C_status_4xx) < n_requests && n_steps < STEPS_MAX; n_steps++)
        ask(&s);
    cr_expect_eq(rig_count(s.r, NJ_C_status_4xx), n_requests);
    cr_expect_gt(n_steps, 0);
    hr_free(s.h);
}

/* All connections are reset while their pipelines wait for further turns: they end in one step. */
Test(conn_http1_attacks, ends_of_interrupted_pipelines)
{
    enum { N = 8, N_REQUESTS = 50 };
    struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
    struct rig_peer *p[N];
    char text[1460] = "";

    for (uint32_t i = 0; i < N_REQUESTS; i++)
        strcat(text, "GET /n HTTP/1.1\r\nHost:a\r\n\r\n");
    for (uint32_t i = 0; i < N; i++) {
        p[i] = rig_connect(h->r, (uint16_t)(1000 + i));
        http1_get(h->r, p[i], "/n");
    }
    hr_settle(h);
    uint64_t before = rig_count(h->r, NJ_C_requests);
    for (uint32_t i = 0; i < N; i++)
        http1_send(h->r, p[i], text);
    rig_step(h->r);
    uint64_t n_answered = rig_count(h->r, NJ_C_requests) - before;
    cr_expect(n_answered >= N && n_answered < N * N_REQUESTS, "%lu", n_answered);
    nj_tcp_abort_all(&h->r->s->tcp, h->r->now);
    rig_step(h->r);
    cr_expect_eq(h->r->s->conns.pool.n_used, 0);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 0);
    hr_settle(h);
    hr_free(h);
}
