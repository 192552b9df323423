/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS connections of a shard, with OpenSSL as the client. At the end of each test the rig checks
 * that all objects were returned. */
#define RIG_GOT_MAX (512u * 1024u)
#include <criterion/criterion.h>

#include "support/shard_rig.h"

#include "support/tls_peer.h"

enum { DATA = 0, HEADERS = 1 };

static void expect_whole(const struct tls_peer *c)
{
    bool good;

    cr_expect_eq(tls_peer_body(c, &good), RIG_WHOLE);
    cr_expect(good);
    cr_expect(!c->failed);
}

Test(conn_conn_tls, a_file_byte_for_byte)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_connect_h2(t, 1000);

    tls_peer_get(c, 1, "/whole");
    tls_peer_pump(t, c, 1400);
    expect_whole(c);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes), 1);
    cr_expect_geq(rig_count(t->r, NJ_C_tls_tx_bytes), RIG_WHOLE);
    cr_expect_eq(t->n_run, 2); /* a flight each: ClientHello, Finished */
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, everything_in_single_bytes)
{
    struct tls_rig *t = tls_rig_new(16384, 8192);
    struct tls_peer *c = tls_peer_new(t, 1000);
    uint8_t hello[128];

    tls_peer_pump(t, c, 1);
    tls_peer_write(c, hello, rig_h2_hello(hello));
    tls_peer_get(c, 1, "/whole");
    tls_peer_pump(t, c, 1);
    expect_whole(c);
    tls_peer_free(c);
    tls_rig_free(t);
}

/* Records of 194 bytes have ten times the overhead of those that fill a segment of Ethernet. */
Test(conn_conn_tls, a_client_with_the_smallest_segments)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);

    t->r->peer_mss = 1; /* TCP raises it to 216 */
    struct tls_peer *c = tls_peer_connect_h2(t, 1000);
    tls_peer_get(c, 1, "/whole");
    tls_peer_pump(t, c, 1400);
    expect_whole(c);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, a_client_leaves_while_a_worker_has_its_handshake)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_new(t, 1000);

    t->slow = true;
    tls_peer_pump(t, c, 1400);
    cr_assert_eq(t->n_tasks, 1);
    rig_seg(t->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    rig_settle(t->r);
    cr_expect_eq(t->r->s->conns.n_used, 0);
    t->slow = false;
    rig_settle(t->r);
    cr_expect_eq(t->n_tasks, 0);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes), 0);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, bytes_behind_the_clienthello_wait_for_the_worker)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_new(t, 1000);
    static const uint8_t ccs[] = {20, 3, 3, 0, 1, 1}; /* RFC 8446 D.4 */

    t->slow = true;
    tls_peer_send(t, c, 1400);
    rig_settle(t->r);
    rig_send(t->r, c->p, ccs, sizeof ccs);
    rig_settle(t->r);
    cr_expect_eq(t->n_tasks, 1);
    t->slow = false;
    tls_peer_pump(t, c, 1400);
    cr_expect(SSL_is_init_finished(c->ssl));
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, a_full_queue_of_workers_ends_the_connection)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_new(t, 1000);

    t->full = true;
    tls_peer_pump(t, c, 1400);
    cr_expect(c->p->got_fin || c->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes_full), 1);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, a_displaced_handshake_ends_its_connection)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_new(t, 1000);

    t->slow = true;
    tls_peer_pump(t, c, 1400);
    cr_assert_eq(t->n_tasks, 1);
    t->n_tasks = 0;
    t->task[0]->ops->reject(t->task[0]);
    rig_settle(t->r);
    cr_expect(c->p->got_fin || c->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes_full), 1);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, a_handshake_that_does_not_go_on_is_closed)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_new(t, 1000);

    tls_peer_pump(t, c, 1400); /* its Finished is sent */
    struct tls_peer *idle = tls_peer_new(t, 1001);
    rig_run(t->r, 11 * NJ_SEC);
    cr_expect(c->p->got_fin || c->p->got_rst);
    cr_expect(idle->p->got_fin || idle->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_timeout), 2);
    tls_peer_free(c);
    tls_peer_free(idle);
    tls_rig_free(t);
}

Test(conn_conn_tls, a_flight_that_never_ends_is_bounded)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct rig_peer *p = rig_connect(t->r, 1000);
    static const uint8_t head[] = {22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff};
    uint8_t bytes[1000] = {0};

    /* A ClientHello of 65,535 bytes, in records of 16 KiB */
    for (uint32_t sent = 0; sent < 80000 && !p->got_fin && !p->got_rst; sent += sizeof bytes) {
        memset(bytes, 0, sizeof bytes);
        if (sent == 0)
            memcpy(bytes, head, sizeof head);
        rig_send(t->r, p, bytes, sizeof bytes);
        rig_settle(t->r);
    }
    cr_expect(p->got_fin || p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_failed_message), 1);
    tls_rig_free(t);
}

Test(conn_conn_tls, keys_change_on_both_sides)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_connect_h2(t, 1000);

    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(SSL_key_update(c->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        tls_peer_get(c, 1 + 2 * i, "/index.html");
        tls_peer_pump(t, c, 1400);
    }
    cr_expect(!c->failed);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_key_updates), 3);
    cr_expect_eq(rig_count(t->r, NJ_C_status_2xx), 3);
    bool good;
    cr_expect_eq(tls_peer_body(c, &good), 300);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, close_notify_of_the_client_closes)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_connect_h2(t, 1000);

    tls_peer_get(c, 1, "/index.html");
    SSL_shutdown(c->ssl);
    tls_peer_pump(t, c, 1400);
    cr_expect_eq(rig_count(t->r, NJ_C_status_2xx), 1);
    cr_expect(c->closed); /* our close_notify came */
    cr_expect(c->p->got_fin);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, a_changed_record_is_answered_with_an_alert)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_connect_h2(t, 1000);
    uint8_t bytes[256];

    tls_peer_get(c, 1, "/index.html");
    int n = BIO_read(c->out, bytes, sizeof bytes);
    bytes[n - 1] ^= 1;
    rig_send(t->r, c->p, bytes, (uint32_t)n);
    tls_peer_pump(t, c, 1400);
    cr_expect(c->failed); /* OpenSSL got the alert */
    cr_expect_eq(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_bad_record), 1);
    cr_expect_eq(rig_count(t->r, NJ_C_requests), 0);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, a_retransmission_has_the_same_bytes)
{
    struct tls_rig *t = tls_rig_new(8192, 8192);
    struct tls_peer *c = tls_peer_connect_h2(t, 1000);
    uint8_t first[4096];

    c->p->manual = true;
    tls_peer_get(c, 1, "/index.html");
    tls_peer_send(t, c, 1400);
    uint64_t at = c->p->n_got;
    rig_settle(t->r);
    uint32_t n = (uint32_t)(c->p->n_got - at);
    cr_assert(n > 100 && n <= sizeof first);
    memcpy(first, c->p->got + at, n);
    c->p->n_got = at; /* it was lost on the way */
    c->p->rcv_nxt -= n;
    rig_run(t->r, NJ_SEC);
    cr_assert_geq(rig_count(t->r, NJ_C_tcp_retransmit), 1);
    cr_assert_geq(c->p->n_got - at, n);
    cr_expect_arr_eq(c->p->got + at, first, n);
    tls_peer_free(c);
    tls_rig_free(t);
}

Test(conn_conn_tls, without_mbufs_the_connection_is_reset_and_nothing_is_garbled)
{
    struct tls_rig *t = tls_rig_new(8192, 700);
    struct tls_peer *c = tls_peer_connect_h2(t, 1000);
    struct rte_mbuf *taken[700];
    uint32_t n = 0;

    while (rte_mempool_avail_count(t->r->tx_pool) > 3 &&
           (taken[n] = rte_pktmbuf_alloc(t->r->tx_pool)))
        n++;
    tls_peer_get(c, 1, "/whole");
    tls_peer_send(t, c, 1400);
    for (uint32_t i = 0; i < 100; i++) /* it looks for mbufs in each step */
        rig_step(t->r);
    rte_pktmbuf_free_bulk(taken, n);
    rig_run(t->r, 2 * NJ_SEC);
    tls_peer_read(c);
    bool good;
    uint32_t n_body = tls_peer_body(c, &good);
    cr_expect(good);
    cr_expect(!c->failed);
    cr_expect(n_body == RIG_WHOLE || c->p->got_rst, "%u bytes", n_body);
    tls_peer_free(c);
    tls_rig_free(t);
}
