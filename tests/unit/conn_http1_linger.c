/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that still send behind the response that ends their connection (RFC 9112 9.6). */
#include <criterion/criterion.h>

#include "conn/conn.h"
#include "conn_http1_rig.h"
#include "telem/counters.h"

#define UPLOAD "Content-Length: 10485760\r\n"

/* An upload that the file server answers before its body has come. */
static struct rig_peer *begin_upload(struct rig *r, uint16_t port)
{
    struct rig_peer *p = rig_connect(r, port);

    http1_ask(r, p, "POST", "/index.html", UPLOAD);
    rig_settle(r);
    struct http1_reply a = http1_first(p);
    cr_assert(a.status == 405 && a.is_whole && a.says_close, "%s", a.head);
    http1_expect_closed(r, p);
    return p;
}

/* `n` bytes per `every`, for `time` or until the server resets the connection. Returns how long. */
static nj_ns send_on(struct rig *r, struct rig_peer *p, uint32_t n, nj_ns every, nj_ns time)
{
    static const uint8_t some[1400];
    nj_ns begun = r->now;

    while (r->now - begun < time && !p->got_rst) {
        rig_send(r, p, some, n);
        rig_run(r, every);
    }
    return r->now - begun;
}

/* The client reads the response when all is sent. Sentence 343. */
Test(conn_http1_linger, an_upload_over_a_slow_path)
{
    struct rig *r = rig_new();
    struct rig_peer *p = begin_upload(r, 1000);

    send_on(r, p, 1400, 100 * NJ_MS, 10 * NJ_SEC);
    send_on(r, p, 1400, 4 * NJ_SEC, 16 * NJ_SEC);
    cr_expect(!p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    cr_expect_eq(r->s->tcp.n_held, 0, "it is discarded");
    rig_fin(r, p);
    rig_settle(r);
    cr_expect(!p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_late_input), 0);
    rig_free(r);
}

/* It stops: the connection is forgotten after 5 s, and is not reset until the peer sends again. */
Test(conn_http1_linger, an_upload_that_stops)
{
    struct rig *r = rig_new();
    struct rig_peer *p = begin_upload(r, 1000), *silent = begin_upload(r, 1001);

    send_on(r, p, 1400, NJ_SEC, 3 * NJ_SEC);
    cr_expect_eq(r->s->conns.pool.n_used, 1, "2 s if it sends nothing");
    rig_run(r, 3800 * NJ_MS);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    rig_run(r, 400 * NJ_MS);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect(!p->got_rst && !silent->got_rst);
    send_on(r, p, 1, NJ_MS, NJ_MS);
    cr_expect(p->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_late_input), 0);
    rig_free(r);
}

/* However much it sends, for 30 s at most. */
Test(conn_http1_linger, for_how_long)
{
    static const uint32_t sizes[] = {1, 1400};

    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        struct rig *r = rig_new();
        struct rig_peer *p = begin_upload(r, 1000);
        nj_ns took = send_on(r, p, sizes[i], 500 * NJ_MS, 100 * NJ_SEC);
        cr_expect(took >= 30 * NJ_SEC && took <= 31 * NJ_SEC, "%lu ms", took / NJ_MS);
        cr_expect_eq(rig_count(r, NJ_C_conn_late_input), 1);
        cr_expect_eq(nj_abuse_get_count(&r->s->conns.abuse, NJ_C_conn_late_input), 1);
        rig_settle(r);
        cr_expect_eq(r->s->conns.pool.n_used, 0);
        cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
        rig_free(r);
    }
}

/* 256 MiB, of which the test sends the last part. */
Test(conn_http1_linger, how_much)
{
    struct rig *r = rig_new();
    struct rig_peer *p = begin_upload(r, 1000);

    send_on(r, p, 1400, NJ_MS, NJ_MS);
    struct nj_conn *c = nj_pool_at(&r->s->conns.pool, 0);
    c->active->late_from -= (256u << 20) - 14000;
    nj_ns took = send_on(r, p, 1400, NJ_MS, NJ_SEC);
    cr_expect(took >= 9 * NJ_MS && took <= 11 * NJ_MS, "%lu ms", took / NJ_MS);
    cr_expect_eq(rig_count(r, NJ_C_conn_late_input), 1);
    rig_free(r);
}

/* ... also before it has acknowledged our FIN, which it may do one byte at a time. */
Test(conn_http1_linger, how_much_before_the_end_is_acknowledged)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    p->rcv_wnd = 0;
    http1_ask(r, p, "POST", "/index.html", UPLOAD);
    rig_settle(r);
    struct nj_conn *c = nj_pool_at(&r->s->conns.pool, 0);
    cr_assert(c->state == NJ_CONN_LINGER && !nj__conn_is_fin_acked(c));
    c->active->late_from -= (256u << 20) - 14000;
    nj_ns took = send_on(r, p, 1400, NJ_MS, NJ_SEC);
    cr_expect(took >= 9 * NJ_MS && took <= 11 * NJ_MS, "%lu ms", took / NJ_MS);
    cr_expect_eq(rig_count(r, NJ_C_conn_late_input), 1);
    rig_free(r);
}

/* The server has sent FIN, and forgets the connection 2 s later, whatever the client sends. */
static void expect_no_time(struct rig *r, struct rig_peer *p)
{
    cr_assert(p->got_fin && !p->got_rst);
    nj_ns took = send_on(r, p, 1, 500 * NJ_MS, 100 * NJ_SEC);
    cr_expect(took >= NJ_SEC && took <= 3 * NJ_SEC, "%lu ms", took / NJ_MS);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(rig_count(r, NJ_C_conn_late_input), 0);
}

/* A connection that ends for a fault of its peer, or with no rest of a request, has no time more.
 */
Test(conn_http1_linger, only_uploads_have_time)
{
    static const char *const ends[] = {
        "GET /index.html HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
        "GET /index.html HTTP/1.1\r\nHost: a.test\r\n wrong\r\n\r\n",
        "POST /index.html HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\n1", /* slow */
        "GET /index.html HT",                                                      /* slow */
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(ends); i++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect(r, 1000);
        http1_send(r, p, ends[i]);
        for (nj_ns begun = r->now; !p->got_fin && r->now - begun < 20 * NJ_SEC;)
            rig_run(r, 50 * NJ_MS);
        expect_no_time(r, p);
        rig_free(r);
    }
}

Test(conn_http1_linger, abuse_has_no_time)
{
    static const uint8_t wrong[9] = {0}; /* DATA of stream 0 */
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    rig_send(r, p, wrong, sizeof wrong);
    rig_settle(r);
    expect_no_time(r, p);
    rig_free(r);
}

/* Uploads delay the end of the server no longer than silent clients. */
Test(conn_http1_linger, drain)
{
    struct rig *r = rig_new();
    struct rig_peer *p = begin_upload(r, 1000), *second = begin_upload(r, 1001);

    send_on(r, p, 1400, 500 * NJ_MS, 5 * NJ_SEC);
    cr_expect(!p->got_rst);
    struct rig_peer *third = begin_upload(r, 1002);
    nj_conns_drain(&r->s->conns, r->now);
    rig_settle(r);
    nj_ns begun = r->now;
    while (r->s->conns.pool.n_used > 0 && r->now - begun < 100 * NJ_SEC) {
        send_on(r, p, 1400, 50 * NJ_MS, 50 * NJ_MS);
        send_on(r, third, 1400, 50 * NJ_MS, 50 * NJ_MS);
    }
    nj_ns took = r->now - begun;
    cr_expect(took >= NJ_SEC && took <= 2500 * NJ_MS, "%lu ms", took / NJ_MS);
    cr_expect(!second->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_late_input), 0);
    rig_free(r);
}

/* A client that does not acknowledge the FIN is reset after --send-timeout, also while it sends. */
Test(conn_http1_linger, without_an_acknowledgement)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    p->rcv_wnd = 0;
    http1_ask(r, p, "POST", "/index.html", UPLOAD);
    rig_settle(r);
    nj_ns took = send_on(r, p, 1, NJ_SEC, 100 * NJ_SEC);
    cr_expect(took >= 59 * NJ_SEC && took <= 70 * NJ_SEC, "%lu s", took / NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    rig_free(r);
}
