/* SPDX-License-Identifier: BSD-3-Clause */
/* Drain and upgrade of connections that speak HTTP/1 (RFC 9112 9.6): a request that was received is
 * answered, and is the last one. */
#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

/* A graceful shutdown, or an upgrade, in which another process accepts connections. */
static void drain(struct rig *r, bool yields)
{
    if (yields)
        nj_conns_yield(&r->s->conns, true, r->now);
    else
        nj_conns_drain(&r->s->conns, r->now);
}

static void step_out(struct rig *r, struct rig_peer *p)
{
    rig_fin(r, p);
    rig_settle(r);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_not(nj_shard_has_unfinished_work(r->s));
}

Test(conn_http1_drain, idle_connections_end_at_once)
{
    for (int yields = 0; yields < 2; yields++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        http1_get(r, p, "/index.html");
        rig_settle(r);
        drain(r, yields);
        rig_settle(r);
        cr_expect_eq(http1_count(p, NULL), 1);
        http1_expect_closed(r, p);
        step_out(r, p);
        rig_free(r);
    }
}

/* Nothing was asked on it: it ends in a shutdown. In an upgrade it may ask once. */
Test(conn_http1_drain, new_connections)
{
    for (int yields = 0; yields < 2; yields++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        drain(r, yields);
        rig_settle(r);
        cr_expect_eq(p->got_fin, !yields);
        if (yields) {
            http1_get(r, p, "/whole");
            rig_run(r, NJ_SEC);
            struct http1_reply a = http1_first(p);
            cr_expect(a.status == 200 && a.is_whole && a.says_close, "%s", a.head);
        }
        http1_expect_closed(r, p);
        step_out(r, p);
        rig_free(r);
    }
}

/* The head of its response is not sent yet, and says so. Sentence 345. */
Test(conn_http1_drain, open_requests_are_the_last)
{
    for (int yields = 0; yields < 2; yields++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        r->files_slow = true;
        http1_get(r, p, "/whole");
        http1_get(r, p, "/index.html");
        rig_settle(r);
        drain(r, yields);
        rig_run(r, NJ_SEC);
        cr_expect(!p->got_fin && p->n_got == 0);
        r->files_slow = false;
        rig_run(r, NJ_SEC);
        struct http1_reply a = {0};
        cr_expect_eq(http1_count(p, &a), 1, "RFC 9112 9.6: further requests are not processed");
        cr_expect(a.status == 200 && a.n_body == RIG_WHOLE && a.says_close);
        http1_expect_closed(r, p);
        cr_expect_eq(rig_count(r, NJ_C_requests), 1);
        step_out(r, p);
        rig_free(r);
    }
}

/* The head was sent before: the body ends, then the connection. */
Test(conn_http1_drain, responses_that_have_begun)
{
    for (int yields = 0; yields < 2; yields++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        p->rcv_wnd = 3000;
        p->manual = true;
        http1_get(r, p, "/whole");
        rig_settle(r);
        cr_expect_gt(p->n_got, 0);
        drain(r, yields);
        rig_settle(r);
        cr_expect(!p->got_fin);
        p->manual = false;
        p->rcv_wnd = 65535;
        rig_ack(r, p);
        rig_run(r, NJ_SEC);
        struct http1_reply a = http1_first(p);
        cr_expect(a.is_whole && a.n_body == RIG_WHOLE && !a.wrong && !a.says_close);
        http1_expect_closed(r, p);
        step_out(r, p);
        rig_free(r);
    }
}

/* The bytes of a request have come before, and are read in the turn that ends the connection. */
Test(conn_http1_drain, requests_that_are_not_read_yet)
{
    static const char *const paths[] = {"/index.html", "/whole", "/none"};

    for (int yields = 0; yields < 2; yields++)
        for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
            struct rig *r = rig_new();
            struct rig_peer *p = rig_connect(r, 1000);
            http1_get(r, p, "/index.html");
            rig_settle(r);
            http1_get(r, p, paths[i]);
            drain(r, yields);
            rig_run(r, NJ_SEC);
            struct http1_reply a = {0};
            cr_expect_eq(http1_count(p, &a), 2, "%s", paths[i]);
            cr_expect_eq(a.status, i == 2 ? 404 : 200);
            http1_expect_closed(r, p);
            step_out(r, p);
            rig_free(r);
        }
}

/* The same, and nothing was read before. */
Test(conn_http1_drain, first_requests_that_are_not_read_yet)
{
    for (int yields = 0; yields < 2; yields++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        http1_get(r, p, "/whole");
        nj_conns_begin_step(&r->s->conns, r->now);
        nj__net_rx_burst(r->s, r->now);
        drain(r, yields);
        rig_run(r, NJ_SEC);
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 200 && a.is_whole && a.says_close, "%s", a.head);
        http1_expect_closed(r, p);
        step_out(r, p);
        rig_free(r);
    }
}

/* A pipeline is interrupted after some requests: the next one is the last, and says so. */
Test(conn_http1_drain, pipelines)
{
    enum { N = 20 };

    for (int yields = 0; yields < 2; yields++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        struct http1_reply a = {0};
        char text[1200] = "";
        for (int i = 0; i < N; i++)
            strcat(text, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
        http1_get(r, p, "/none"); /* a worker looks for the file */
        rig_settle(r);
        http1_send(r, p, text);
        drain(r, yields);
        rig_run(r, NJ_SEC);
        uint32_t n = http1_count(p, &a);
        cr_expect(n > 2 && n < 1 + N && a.status == 404 && a.says_close, "%u: %s", n, a.head);
        cr_expect_eq(rig_count(r, NJ_C_requests), n);
        http1_expect_closed(r, p);
        step_out(r, p);
        rig_free(r);
    }
}

/* A request whose head has begun to arrive is the last one. */
Test(conn_http1_drain, heads_that_are_incomplete)
{
    for (int yields = 0; yields < 2; yields++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        http1_send(r, p, "GET / HTTP/1.1\r\nHo");
        rig_settle(r);
        drain(r, yields);
        rig_settle(r);
        cr_expect(p->n_got == 0 && !p->got_fin);
        http1_send(r, p, "st: a\r\n\r\n");
        rig_settle(r);
        struct http1_reply a = {0};
        cr_expect_eq(http1_count(p, &a), 1);
        cr_expect(a.status == 200 && a.says_close);
        http1_expect_closed(r, p);
        step_out(r, p);
        rig_free(r);
    }
}

static void reads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char some[1000];
    int64_t n;

    while ((n = nj_request_read(req, some, sizeof some)) > 0)
        ;
    nj_response_write(resp, n == 0 ? "all" : "not", 3);
}

static const struct nj_route routes[] = {
    {.path = "/reads", .type = NJ_BLOCKING, .handle = reads},
    {.path = "/worker", .type = NJ_OS_BLOCKING, .handle = reads},
};

/* An upload goes on. Sentence 345. */
Test(conn_http1_drain, bodies_of_requests)
{
    for (int i = 0; i < 4; i++) {
        struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
        struct rig_peer *p = rig_connect(h->r, 1000);
        char some[1000];
        memset(some, 'b', sizeof some);
        http1_ask(h->r, p, "POST", i & 2 ? "/worker" : "/reads", "Content-Length: 50000\r\n");
        hr_settle(h);
        drain(h->r, i & 1);
        for (uint32_t k = 0; k < 50; k++) {
            rig_send(h->r, p, some, sizeof some);
            hr_run(h, 100 * NJ_MS);
        }
        struct http1_reply a = http1_first(p);
        cr_expect(a.status == 200 && a.is_whole && a.says_close && !strcmp(a.body, "all"), "%s",
                  a.head);
        http1_expect_closed(h->r, p);
        hr_free(h);
    }
}

/* An upgrade that was given up: new connections persist again. */
Test(conn_http1_drain, an_upgrade_that_fails)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000), *waits = rig_connect(r, 1001);

    http1_get(r, p, "/index.html");
    rig_settle(r);
    drain(r, true);
    rig_settle(r);
    cr_expect(p->got_fin && !waits->got_fin);
    nj_conns_yield(&r->s->conns, false, r->now);
    for (uint32_t i = 1; i < 4; i++) {
        struct http1_reply a;
        http1_get(r, waits, "/index.html");
        rig_run(r, NJ_SEC);
        cr_expect_eq(http1_count(waits, &a), i);
        cr_expect(!a.says_close && !waits->got_fin);
    }
    rig_free(r);
}

/* Each connection gets its turn. */
Test(conn_http1_drain, many_connections)
{
    struct rig *r = rig_new();
    struct rig_peer *p[60];

    r->files_slow = true;
    for (uint16_t i = 0; i < 60; i++) {
        p[i] = rig_connect(r, 1000 + i);
        p[i]->manual = i % 3 == 2;
        if (i % 3 != 0)
            http1_get(r, p[i], i % 3 == 1 ? "/none" : "/big");
    }
    rig_settle(r);
    nj_conns_drain(&r->s->conns, r->now);
    rig_settle(r);
    for (uint16_t i = 0; i < 60; i++)
        cr_expect_eq(p[i]->got_fin, i % 3 == 0, "%u", i);
    r->files_slow = false;
    rig_run(r, 100 * NJ_MS);
    for (uint16_t i = 0; i < 60; i++)
        cr_expect_eq(p[i]->got_fin, i % 3 != 2, "%u", i);
    nj_tcp_abort_all(&r->s->tcp, r->now);
    rig_settle(r);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_not(nj_shard_has_unfinished_work(r->s));
    rig_free(r);
}
