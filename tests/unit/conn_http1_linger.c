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

/* Who does not acknowledge our FIN gains nothing by sending. */
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
