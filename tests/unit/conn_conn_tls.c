/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS connections of a shard, with OpenSSL as the client. At the end of each test the rig checks
 * that all objects were returned. */
#define RIG_GOT_MAX (512u * 1024u)
#include <criterion/criterion.h>

#include "conn/abuse_reason_counts.h"
#include "conn/conn_tls.h"
#include "h2/h2_internal.h"
#include "support/shard_rig.h"
#include "support/tls_peer.h"
#include "telem/counters.h"

static struct tls_rig *t;
static struct tls_peer *c; /* the client; NULL: none */

/* A client that has its ClientHello to send. */
static void begin(void)
{
    t = tls_rig_new(8192, 8192);
    c = tls_peer_new(t, 1000);
}

/* A client that speaks HTTP/2. */
static void connect_h2(void)
{
    t = tls_rig_new(8192, 8192);
    c = tls_peer_connect_h2(t, 1000);
}

static void end(void)
{
    if (c)
        tls_peer_free(c);
    tls_rig_free(t);
}

TestSuite(conn_conn_tls, .fini = end);

static void expect_whole(void)
{
    bool good;

    cr_expect_eq(tls_peer_body(c, &good), RIG_WHOLE);
    cr_expect(good);
    cr_expect(!c->failed);
}

Test(conn_conn_tls, a_file_byte_for_byte, .init = connect_h2)
{
    tls_peer_get(c, 1, "/whole");
    tls_peer_pump(t, c, 1400);
    expect_whole();
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes), 1);
    cr_expect_geq(rig_count(t->r, NJ_C_tls_tx_bytes), RIG_WHOLE);
    cr_expect_eq(t->n_run, 2); /* a flight each: ClientHello, Finished */
    cr_expect_eq(nj_histogram_count(&t->r->s->conns.tls_handshake_ns), 1);
}

Test(conn_conn_tls, a_handshake_lasts_from_the_first_bytes_to_its_end, .init = begin)
{
    const struct nj_histogram *h = &t->r->s->conns.tls_handshake_ns;

    t->slow = true;
    tls_peer_pump(t, c, 1400);
    rig_run(t->r, 300 * NJ_MS);
    cr_expect_eq(nj_histogram_count(h), 0);
    t->slow = false;
    tls_peer_pump(t, c, 1400);
    cr_expect(SSL_is_init_finished(c->ssl));
    cr_expect_eq(nj_histogram_count(h), 1);
    cr_expect(h->max_ns >= 300 * NJ_MS && h->max_ns < NJ_SEC, "%lu", (unsigned long)h->max_ns);
}

Test(conn_conn_tls, everything_in_single_bytes)
{
    t = tls_rig_new(16384, 8192);
    c = tls_peer_new(t, 1000);
    uint8_t hello[128];

    tls_peer_pump(t, c, 1);
    tls_peer_write(c, hello, rig_h2_hello(hello));
    tls_peer_get(c, 1, "/whole");
    tls_peer_pump(t, c, 1);
    expect_whole();
}

/* Records of 194 bytes have ten times the overhead of those that fill a segment of Ethernet. */
Test(conn_conn_tls, a_client_with_the_smallest_segments)
{
    t = tls_rig_new(8192, 8192);

    t->r->peer_mss = 1; /* TCP raises it to 216 */
    c = tls_peer_connect_h2(t, 1000);
    tls_peer_get(c, 1, "/whole");
    tls_peer_pump(t, c, 1400);
    expect_whole();
}

Test(conn_conn_tls, a_client_leaves_while_a_worker_has_its_handshake, .init = begin)
{
    t->slow = true;
    tls_peer_pump(t, c, 1400);
    cr_assert_eq(t->n_tasks, 1);
    rig_seg(t->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    rig_settle(t->r);
    cr_expect_eq(t->r->s->conns.pool.n_used, 0);
    t->slow = false;
    rig_settle(t->r);
    cr_expect_eq(t->n_tasks, 0);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes), 0);
}

Test(conn_conn_tls, bytes_behind_the_clienthello_wait_for_the_worker, .init = begin)
{
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
}

/* The client closes its half after the request, which comes with its Finished. */
Test(conn_conn_tls, a_fin_behind_the_finished_waits_for_the_worker, .init = begin)
{
    uint8_t hello[128];

    tls_peer_send(t, c, 1400);
    rig_settle(t->r);
    tls_peer_read(c);
    cr_assert(SSL_is_init_finished(c->ssl));
    tls_peer_write(c, hello, rig_h2_hello(hello));
    tls_peer_get(c, 1, "/index.html");
    tls_peer_send(t, c, 1400);
    rig_fin(t->r, c->p);
    tls_peer_pump(t, c, 1400);
    cr_expect_eq(rig_count(t->r, NJ_C_status_2xx), 1);
    bool good;
    cr_expect_eq(tls_peer_body(c, &good), 100);
    cr_expect(c->closed);
    cr_expect(c->p->got_fin);
}

/* Bytes of a closed connection are discarded, also those that the worker has a copy of. */
Test(conn_conn_tls, a_flight_that_is_done_after_the_connection_was_closed, .init = begin)
{
    t->slow = true;
    tls_peer_pump(t, c, 1400);
    cr_assert_eq(t->n_tasks, 1);
    nj_conns_drain(&t->r->s->conns, t->r->now);
    rig_settle(t->r);
    cr_assert(c->p->got_fin);
    rig_send(t->r, c->p, "x", 1);
    rig_settle(t->r);
    t->slow = false;
    rig_send(t->r, c->p, "x", 1);
    rig_settle(t->r);
    cr_expect_eq(t->n_tasks, 0);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_failed_message), 0);
}

Test(conn_conn_tls, a_full_queue_of_workers_ends_the_connection, .init = begin)
{
    t->full = true;
    tls_peer_pump(t, c, 1400);
    cr_expect(c->p->got_fin || c->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes_full), 1);
}

Test(conn_conn_tls, a_displaced_handshake_ends_its_connection, .init = begin)
{
    t->slow = true;
    tls_peer_pump(t, c, 1400);
    cr_assert_eq(t->n_tasks, 1);
    t->n_tasks = 0;
    t->task[0]->ops->reject(t->task[0]);
    rig_settle(t->r);
    cr_expect(c->p->got_fin || c->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes_full), 1);
}

/* Workers free the memory of libssl, and the place is used again. */
Test(conn_conn_tls, a_client_leaves_after_the_first_flight, .init = begin)
{
    tls_peer_send(t, c, 1400);
    rig_settle(t->r);
    cr_expect_eq(t->n_run, 1);
    cr_expect_eq(nj__tls_n_handshakes(&t->r->s->conns), 1);
    rig_seg(t->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    rig_settle(t->r);
    cr_expect_eq(t->n_run, 2);
    cr_expect_eq(nj__tls_n_handshakes(&t->r->s->conns), 0);
}

/* A client that sends a part of a ClientHello. */
static struct rig_peer *begin_a_part(uint32_t host, uint16_t port)
{
    static const uint8_t part[] = {22, 3, 1, 0, 8, 1, 0, 2, 0, 3, 3, 0, 0};
    struct rig_peer *p = rig_syn_from(t->r, RIG_PEER_IP + host, port);

    rig_settle(t->r);
    rig_send(t->r, p, part, sizeof part);
    rig_settle(t->r);
    return p;
}

/* A flood of clients that stop after one record does not keep others out. */
Test(conn_conn_tls, a_new_handshake_ends_the_one_that_waited_longest)
{
    t = tls_rig_new(16384, 8192);
    struct rig_peer *p[122]; /* of RIG_PEERS places, a sixteenth is kept */

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(p); i++)
        p[i] = begin_a_part(10 + i, 2000); /* a client has half of them at most */
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes_full), 2);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(p); i++)
        cr_expect_eq(p[i]->got_fin || p[i]->got_rst, i < 2);
    c = tls_peer_connect_h2(t, 1000);
    tls_peer_get(c, 1, "/whole");
    tls_peer_pump(t, c, 1400);
    expect_whole();
}

/* A client that is at its bound takes no place from others. */
Test(conn_conn_tls, a_refused_handshake_ends_no_other)
{
    t = tls_rig_new(16384, 8192);
    struct rig_peer *other[112], *same[9]; /* 8 of RIG_PEERS places are then free */

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(other); i++)
        other[i] = begin_a_part(10 + i, 2000);
    for (uint16_t i = 0; i < NJ_ARRAY_LEN(same); i++)
        same[i] = begin_a_part(9, (uint16_t)(2000 + i));
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes_full), 1);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(other); i++)
        cr_expect(!other[i]->got_fin && !other[i]->got_rst, "%u", i);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(same); i++)
        cr_expect_eq(same[i]->got_fin || same[i]->got_rst, i == 8);
}

Test(conn_conn_tls, a_handshake_that_does_not_go_on_is_closed, .init = begin)
{
    tls_peer_pump(t, c, 1400); /* its Finished is sent */
    struct tls_peer *idle = tls_peer_new(t, 1001);
    rig_run(t->r, 11 * NJ_SEC);
    cr_expect(c->p->got_fin || c->p->got_rst);
    cr_expect(idle->p->got_fin || idle->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_timeout), 2);
    tls_peer_free(idle);
}

Test(conn_conn_tls, a_flight_that_never_ends_is_bounded)
{
    t = tls_rig_new(8192, 8192);
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
}

Test(conn_conn_tls, keys_change_on_both_sides, .init = connect_h2)
{
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
}

/* A byte of data after each KeyUpdate does not pay for it: 32 at once, then one per second. */
Test(conn_conn_tls, a_flood_of_key_updates_ends_the_connection, .init = connect_h2)
{
    uint32_t n_sent = 0;

    for (; n_sent < 100 && !c->failed; n_sent++) {
        cr_assert_eq(SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        tls_peer_get(c, 1 + 2 * n_sent, "/index.html");
        tls_peer_pump(t, c, 1400);
    }
    cr_expect(c->failed);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_key_updates), 32);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_flood), 1);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_bad_record), 0);
    cr_expect_not(nj_abuse_is_refusal(NJ_C_tls_flood));
}

/* Sentence 347. */
Test(conn_conn_tls, close_notify_of_the_client_closes, .init = connect_h2)
{
    tls_peer_get(c, 1, "/index.html");
    SSL_shutdown(c->ssl);
    tls_peer_pump(t, c, 1400);
    cr_expect_eq(rig_count(t->r, NJ_C_status_2xx), 1);
    cr_expect(c->closed); /* our close_notify came */
    cr_expect(c->p->got_fin);
}

/* RFC 8446 6.1: "Any data received after a closure alert has been received MUST be ignored." */
Test(conn_conn_tls, bytes_after_close_notify_are_ignored, .init = connect_h2)
{
    static const uint8_t no_record[] = {24, 3, 3, 0, 1, 0, 23, 3, 3, 0xff, 0xff};

    tls_peer_get(c, 1, "/whole");
    SSL_shutdown(c->ssl);
    tls_peer_send(t, c, 1400);
    rig_send(t->r, c->p, no_record, sizeof no_record);
    rig_settle(t->r);
    rig_send(t->r, c->p, "GET / HTTP/1.1\r\n", 16);
    tls_peer_pump(t, c, 1400);
    expect_whole();
    cr_expect_eq(rig_count(t->r, NJ_C_tls_bad_record), 0);
    cr_expect(c->closed);
    cr_expect(c->p->got_fin);
}

/* Without a worker, if no record came before it (RFC 8446 5, 5.1). */
Test(conn_conn_tls, a_record_that_cannot_be_one_gets_an_alert_in_a_handshake)
{
    static const char overflow[] = "\x15\x03\x03\x00\x02\x02\x16",
                      unexpected[] = "\x15\x03\x03\x00\x02\x02\x0a";
    static const uint8_t part[] = {22, 3, 1, 0, 8, 1, 0, 2, 0, 3, 3, 0, 0};
    static const uint8_t too_long[] = {22, 3, 1, 0x40, 1};

    t = tls_rig_new(8192, 8192);
    for (uint16_t i = 0; i < 3; i++) {
        struct rig_peer *p = rig_connect(t->r, (uint16_t)(1000 + i));
        if (i == 2) { /* behind a part of a ClientHello */
            rig_send(t->r, p, part, sizeof part);
            rig_settle(t->r);
        }
        if (i == 0)
            rig_send(t->r, p, "GET / HTTP/1.1\r\n", 16);
        else
            rig_send(t->r, p, too_long, sizeof too_long);
        rig_settle(t->r);
        cr_assert_eq(p->n_got, 7, "%u", i);
        cr_expect_arr_eq(p->got, i == 0 ? unexpected : overflow, 7, "%u", i);
        cr_expect(p->got_fin);
        cr_expect_eq(t->n_run, i < 2 ? 0 : 2);
    }
    cr_expect_eq(rig_count(t->r, NJ_C_tls_failed_message), 3);
}

Test(conn_conn_tls, a_changed_record_is_answered_with_an_alert, .init = connect_h2)
{
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
}

/* HTTP/2 ends such a connection without asking for room. */
Test(conn_conn_tls, a_reset_in_the_step_of_a_timeout, .init = connect_h2)
{
    cr_assert_eq(SSL_write(c->ssl, "\0\0\4\10", 4), 4); /* a part of a frame's head */
    tls_peer_send(t, c, 1400);
    rig_settle(t->r);
    t->r->now += t->r->http.header_timeout + NJ_SEC;
    rig_seg(t->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    rig_settle(t->r);
    cr_expect_eq(t->r->s->conns.pool.n_used, 0);
}

/* Others have their turn after 64 records. */
Test(conn_conn_tls, input_of_a_turn_is_bounded, .init = connect_h2)
{
    static const uint8_t head[9] = {0, 0, 200, 0x77}; /* a frame of a type that is ignored */
    uint64_t n_read = rig_count(t->r, NJ_C_tls_rx_bytes);

    tls_peer_write(c, head, sizeof head);
    for (uint32_t i = 0; i < 200; i++)
        tls_peer_write(c, "x", 1);
    tls_peer_send(t, c, 1400); /* the rig has queued all of it */
    rig_step(t->r);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_rx_bytes) - n_read, 9 + 63);
    rig_step(t->r);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_rx_bytes) - n_read, 9 + 63 + 64);
    rig_settle(t->r);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_rx_bytes) - n_read, 9 + 200);
}

/* The client offered h2 and sends something else. Text in the clear would be no record. */
Test(conn_conn_tls, http1_within_tls_is_closed_without_a_reply, .init = begin)
{
    static const char get[] = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

    tls_peer_pump(t, c, 1400);
    cr_assert(SSL_is_init_finished(c->ssl));
    tls_peer_write(c, get, sizeof get - 1);
    tls_peer_pump(t, c, 1400);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_http1), 1);
    cr_expect(c->closed); /* by close_notify */
    cr_expect(!c->failed);
    cr_expect_eq(c->n_got, 0);
    cr_expect(c->p->got_fin);
}

/* The client takes `n_bytes` per second of a large file. Returns for how long it may. */
static nj_ns read_slowly(uint32_t n_bytes, nj_ns at_most)
{
    nj_ns begun = t->r->now;

    c->p->manual = true;
    tls_peer_get(c, 1, "/big");
    tls_peer_send(t, c, 1400);
    while (!c->p->got_rst && t->r->now - begun < at_most) {
        c->p->rcv_wnd = n_bytes;
        rig_ack(t->r, c->p);
        rig_run(t->r, NJ_SEC);
    }
    return t->r->now - begun;
}

/* The send queue of TLS is short, so that a client that takes little does not fill it. */
Test(conn_conn_tls, min_rate_holds_for_tls, .init = connect_h2)
{
    t->r->http.min_rate = 4000;
    nj_ns took = read_slowly(2000, 300 * NJ_SEC);
    cr_expect(took >= 60 * NJ_SEC && took <= 65 * NJ_SEC, "%lu s", took / NJ_SEC);
    cr_expect(c->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_timeout), 1);
}

Test(conn_conn_tls, who_takes_more_than_min_rate_stays, .init = connect_h2)
{
    t->r->http.min_rate = 1000;
    read_slowly(2000, 300 * NJ_SEC);
    cr_expect(!c->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_conn_timeout), 0);
}

static const struct nj_tcb *tcb_of_client(void)
{
    const struct nj_flow_table *flows = &t->r->s->tcp.flows;
    uint32_t i = 0;

    while (!nj_flow_tcb(nj_flow_at(flows, i)))
        i++;
    return nj_flow_tcb(nj_flow_at(flows, i));
}

/* Of a new client that offers these protocols, each behind its length; NULL: no ALPN. */
static bool speaks_http1(const char *offered, uint16_t port)
{
    SSL_CTX_set_alpn_protos(t->client, (const uint8_t *)offered, offered ? strlen(offered) : 0);
    struct tls_peer *one = tls_peer_new(t, port);
    tls_peer_pump(t, one, 1400);
    cr_assert(SSL_is_init_finished(one->ssl));
    const bool http1 = nj__conn_tls_speaks_http1((const struct nj_conn *)tcb_of_client()->user);
    rig_seg(t->r, one->p, one->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    rig_settle(t->r);
    tls_peer_free(one);
    return http1;
}

Test(conn_conn_tls, the_connection_knows_the_protocol_of_the_handshake)
{
    t = tls_rig_new(8192, 8192);
    tls_rig_permit_http1(t);
    cr_expect_not(speaks_http1("\x08http/1.1\x02h2", 1000));
    cr_expect(speaks_http1("\x08http/1.1", 1001));
    cr_expect(speaks_http1(NULL, 1002));
    cr_expect_not(speaks_http1("\x02h2", 1003));
    cr_expect_eq(rig_count(t->r, NJ_C_tls_handshakes), 4);
}

/* The client closes its half, and its last ACKs are lost: then cwnd is smaller than the queue.
 * Sentence 347. */
Test(conn_conn_tls, close_notify_comes_behind_a_full_send_queue, .init = connect_h2)
{
    tls_peer_get(c, 1, "/whole"); /* cwnd grows */
    tls_peer_pump(t, c, 1400);
    tls_peer_get(c, 3, "/whole");
    c->p->manual = true;
    c->p->rcv_wnd = 2000; /* these, three windows and what is queued behind them are all of it */
    tls_peer_send(t, c, 1400);
    rig_settle(t->r);
    c->p->rcv_wnd = 65535;
    uint64_t at = 0;
    for (uint32_t i = 0; i < 3; i++) {
        at = c->p->n_got;
        rig_ack(t->r, c->p);
        rig_settle(t->r);
    }
    cr_assert_eq(t->r->s->conns.txns.pool.n_used, 0);
    c->p->rcv_nxt -= (uint32_t)(c->p->n_got - at); /* lost on the way */
    c->p->n_got = at;
    rig_run(t->r, NJ_SEC);
    cr_assert_geq(rig_count(t->r, NJ_C_tcp_retransmit), 1);
    cr_assert_eq(nj_tcp_send_room(tcb_of_client()), 0);
    rig_fin(t->r, c->p);
    rig_settle(t->r);
    cr_assert(tcb_of_client()->fin_queued);
    c->p->manual = false;
    rig_run(t->r, 20 * NJ_SEC);
    tls_peer_read(c);
    bool good;
    cr_expect_eq(tls_peer_body(c, &good), 2 * RIG_WHOLE);
    cr_expect(c->closed); /* RFC 8446 6.1: else it may have been truncated */
    cr_expect(!c->failed);
    cr_expect(c->p->got_fin);
}

Test(conn_conn_tls, no_data_follows_an_alert, .init = connect_h2)
{
    uint8_t bytes[256];

    c->p->manual = true;
    tls_peer_get(c, 1, "/big");
    tls_peer_send(t, c, 1400);
    rig_settle(t->r);
    tls_peer_get(c, 3, "/big");
    int n = BIO_read(c->out, bytes, sizeof bytes);
    bytes[n - 1] ^= 1;
    rig_send(t->r, c->p, bytes, (uint32_t)n);
    rig_settle(t->r);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_bad_record), 1);
    c->p->manual = false;
    tls_peer_pump(t, c, 1400);
    cr_expect(c->p->got_fin);
    cr_expect(c->failed);
    cr_expect_eq(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
}

Test(conn_conn_tls, a_retransmission_has_the_same_bytes, .init = connect_h2)
{
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
}

Test(conn_conn_tls, without_mbufs_the_connection_is_reset_and_nothing_is_garbled)
{
    t = tls_rig_new(8192, 700);
    c = tls_peer_connect_h2(t, 1000);
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
}

Test(conn_conn_tls, a_client_that_closes_within_its_handshake_is_counted)
{
    t = tls_rig_new(8192, 8192);
    struct tls_peer *behind = tls_peer_new(t, 1000), *cut = tls_peer_new(t, 1001);
    struct tls_peer *silent = tls_peer_new(t, 1002), *reset = tls_peer_new(t, 1003);
    uint8_t part[100];

    t->slow = true; /* a worker has the handshake when the FIN comes */
    tls_peer_send(t, behind, 1400);
    rig_settle(t->r);
    cr_expect_eq(t->n_tasks, 1);
    rig_fin(t->r, behind->p);
    rig_settle(t->r);
    t->slow = false;
    rig_settle(t->r);
    cr_assert_eq(BIO_read(cut->out, part, sizeof part), sizeof part);
    rig_send(t->r, cut->p, part, sizeof part);
    rig_fin(t->r, cut->p);
    rig_fin(t->r, silent->p);
    tls_peer_send(t, reset, 1400);
    rig_settle(t->r);
    rig_seg(t->r, reset->p, reset->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    rig_settle(t->r);
    cr_expect(behind->p->got_fin && cut->p->got_fin && silent->p->got_fin);
    cr_expect_eq(rig_count(t->r, NJ_C_tls_failed_closed), 3); /* the silent one began none */
    cr_expect_eq(rig_count(t->r, NJ_C_tls_failed_memory), 0);
    cr_expect_eq(nj__tls_n_handshakes(&t->r->s->conns), 0);
    tls_peer_free(behind);
    tls_peer_free(cut);
    tls_peer_free(silent);
    tls_peer_free(reset);
}

/* The beginning of a record of 16 KiB, and then a byte each 100 ms. Returns how long the connection
 * lived. */
static nj_ns live_within_a_record(void)
{
    static const uint8_t head[] = {23, 3, 3, 0x40, 0};
    nj_ns began = t->r->now;

    rig_send(t->r, c->p, head, sizeof head);
    rig_settle(t->r);
    while (!c->p->got_fin && !c->p->got_rst && t->r->now - began < 200 * NJ_SEC) {
        rig_send(t->r, c->p, "x", 1);
        rig_run(t->r, 100 * NJ_MS);
    }
    return t->r->now - began;
}

Test(conn_conn_tls, a_record_that_stays_incomplete, .init = connect_h2)
{
    nj_ns lived = live_within_a_record();

    cr_expect_geq(lived, t->r->http.header_timeout);
    cr_expect_leq(lived, t->r->http.header_timeout + NJ_SEC, "%.1f s", (double)lived / NJ_SEC);
    cr_expect_eq(rig_count(t->r, NJ_C_h2_abuse_slow), 1);
}

/* A record of an upload may take longer. The request waits for its file meanwhile. */
Test(conn_conn_tls, a_record_that_stays_incomplete_beside_a_request, .init = connect_h2)
{
    t->r->files_slow = true;
    tls_peer_get(c, 1, "/whole");
    tls_peer_send(t, c, 1400);
    rig_settle(t->r);
    nj_ns lived = live_within_a_record(), most = t->r->http.body_timeout;

    cr_expect_geq(lived, t->r->http.header_timeout + NJ_SEC);
    cr_expect_leq(lived, most + most / 4, "%.1f s", (double)lived / NJ_SEC);
    cr_expect_eq(rig_count(t->r, NJ_C_h2_abuse_slow), 1);
}

/* Each record is complete in time: a slow client that does nothing wrong. */
Test(conn_conn_tls, slow_records_one_after_the_other, .init = connect_h2)
{
    uint8_t ping[32];

    for (uint32_t i = 0; i < 30; i++) {
        tls_peer_write(c, ping, rig_h2(ping, 6, 0, 0, "12345678", 8));
        for (uint32_t n; (n = (uint32_t)BIO_pending(c->out)) > 0;) {
            uint8_t byte;
            BIO_read(c->out, &byte, 1);
            rig_send(t->r, c->p, &byte, 1);
            rig_run(t->r, n % 8 == 0 ? NJ_SEC : NJ_MS);
        }
        tls_peer_read(c);
    }
    cr_expect(!c->p->got_fin && !c->p->got_rst);
    cr_expect_eq(rig_count(t->r, NJ_C_h2_abuse_slow), 0);
}

/* The memory of HTTP/2 is used up. The record with the preface has frames behind it. */
Test(conn_conn_tls, no_memory_for_a_session, .init = begin)
{
    uint8_t hello[128];

    t->r->s->conns.session_memory.bytes_max = 0;
    tls_peer_pump(t, c, 1400);
    tls_peer_write(c, hello, rig_h2_hello(hello));
    tls_peer_pump(t, c, 1400);
    cr_expect(c->closed && c->p->got_fin);
    cr_expect_eq(rig_count(t->r, NJ_C_h2_full), 1);
}
