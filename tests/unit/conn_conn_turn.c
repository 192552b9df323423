/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of a whole shard, with events in every order. The rig checks bounds and counters
 * after each step, and at the end that all objects were returned. */
#include <criterion/criterion.h>

#include "conn/conn.h"
#include "support/shard_rig.h"
#include "telem/counters.h"

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7 };

static const char http1_505[] =
    "HTTP/1.1 505 HTTP Version Not Supported\r\n"
    "content-type: text/plain; charset=utf-8\r\n"
    "content-length: 79\r\n"
    "connection: close\r\n"
    "\r\n"
    "This server speaks HTTP/2 only. Try: curl --http2-prior-knowledge, or nghttp.\r\n";

static uint32_t goaway_last(const struct rig_peer *p)
{
    const uint8_t *f = NULL;
    cr_assert_gt(rig_h2_frames(p, GOAWAY, &f), 0);
    return (uint32_t)f[0] << 24 | (uint32_t)f[1] << 16 | (uint32_t)f[2] << 8 | f[3];
}

static uint32_t goaway_code(const struct rig_peer *p)
{
    const uint8_t *f = NULL;
    cr_assert_gt(rig_h2_frames(p, GOAWAY, &f), 0);
    return f[7];
}

Test(conn_conn_turn, preface_byte_by_byte)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    uint8_t hello[128];
    uint32_t n = rig_h2_hello(hello);

    for (uint32_t i = 0; i < n; i++) {
        cr_expect_eq(rig_count(r, NJ_C_conn_h2), i >= 4, "after %u bytes", i);
        rig_send(r, p, &hello[i], 1);
        rig_settle(r);
    }
    const uint8_t *settings = NULL;
    cr_assert_geq(rig_h2_frames(p, SETTINGS, &settings), 2, "settings and their acknowledgment");
    cr_expect_eq(p->got[3], SETTINGS);
    cr_expect(!p->got_fin && !p->got_rst);
    rig_get(r, p, 1, "/index.html");
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(p, HEADERS, NULL), 1);
    cr_expect_eq(rig_count(r, NJ_C_status_2xx), 1);
    cr_expect_eq(rig_count(r, NJ_C_responses), 1);
    rig_free(r);
}

Test(conn_conn_turn, http1_is_told)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    r->http.no_http1 = true;
    const char *body = strstr(http1_505, "\r\n\r\n") + 4;
    cr_assert_eq(strlen(body), strtoul(strstr(http1_505, "length: ") + 8, NULL, 10));
    rig_send(r, p, "GET / HTTP/1.1\r\nhost: a\r\n\r\n", 27);
    rig_settle(r);
    cr_assert_eq(p->n_got, sizeof http1_505 - 1);
    cr_expect_eq(memcmp(p->got, http1_505, sizeof http1_505 - 1), 0);
    cr_expect(p->got_fin && !p->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_http1), 1);
    /* it keeps sending: no reset */
    rig_run(r, NJ_SEC);
    rig_send(r, p, "GET / HTTP/1.1\r\nhost: a\r\n\r\n", 27);
    rig_run(r, 500 * NJ_MS);
    cr_expect(!p->got_rst);
    rig_fin(r, p);
    rig_run(r, NJ_SEC);
    cr_expect(!p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    rig_run(r, 3 * NJ_SEC);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    cr_expect_eq(rig_count(r, NJ_C_tcp_closed), 1);
    rig_free(r);
}

/* A peer that does not close after our FIN is dropped after two seconds; later segments are reset.
 */
Test(conn_conn_turn, lingering_ends)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    rig_send(r, p, "\x16\x03\x01", 3);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_conn_unknown), 1);
    cr_expect(p->got_fin && !p->got_rst);
    cr_expect_eq(p->n_got, 0);
    for (int i = 0; i < 30; i++) { /* sending does not extend the time */
        rig_send(r, p, "abc", 3);
        rig_run(r, 100 * NJ_MS);
        if (i < 18)
            cr_expect(!p->got_rst, "round %d", i);
    }
    cr_expect(p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    rig_free(r);
}

/* Request, further bytes and FIN in one burst: the response is still sent. */
Test(conn_conn_turn, last_words_survive_a_fin)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    r->http.no_http1 = true;
    rig_send(r, p, "GET / HTTP/1.1\r\n", 16);
    for (int i = 0; i < 10; i++)
        rig_send(r, p, "x-y: z\r\n", 8);
    rig_fin(r, p);
    rig_settle(r);
    cr_expect_eq(p->n_got, sizeof http1_505 - 1);
    cr_expect(p->got_fin && !p->got_rst);
    rig_free(r);
}

/* An error, unread bytes behind it, and FIN: GOAWAY is still sent. */
static void error_then_fin(bool after_pile)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    uint8_t buf[64];

    if (after_pile) { /* input waits, since the peer does not read responses */
        p->rcv_wnd = 0;
        rig_get(r, p, 1, "/big");
        rig_run(r, NJ_SEC);
    }
    rig_send(r, p, buf, rig_h2(buf, DATA, 0, 0, "abc", 3)); /* DATA on stream 0 */
    for (int i = 0; i < (after_pile ? 200 : 10); i++)
        rig_send(r, p, "abcdefgh", 8);
    rig_fin(r, p);
    rig_settle(r);
    p->rcv_wnd = 65535;
    if (after_pile)
        rig_ack(r, p);
    rig_run(r, NJ_SEC);
    cr_expect_eq(goaway_code(p), 1);
    cr_expect(p->got_fin && !p->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_h2_error), 1);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    rig_free(r);
}

Test(conn_conn_turn, goaway_survives_a_fin)
{
    error_then_fin(false);
}

Test(conn_conn_turn, goaway_survives_a_fin_behind_a_pile)
{
    error_then_fin(true);
}

Test(conn_conn_turn, fin_at_once)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    rig_fin(r, p);
    rig_settle(r);
    cr_expect(p->got_fin && !p->got_rst);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    rig_free(r);
}

Test(conn_conn_turn, how_long_they_may_be_silent_can_be_set)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config config = rig_config(r);
    config.conns.preface_timeout = 100 * NJ_SEC;
    config.conns.idle_timeout = 3 * NJ_SEC;
    rig_new_with(r, &config);
    struct rig_peer *silent = rig_connect(r, 1000), *idle = rig_connect_h2(r, 1001);

    rig_run(r, 2900 * NJ_MS);
    cr_expect(!idle->got_fin);
    rig_run(r, 200 * NJ_MS);
    cr_expect(idle->got_fin);
    rig_run(r, 96800 * NJ_MS);
    cr_expect(!silent->got_rst);
    rig_run(r, 200 * NJ_MS);
    cr_expect(silent->got_rst);
    rig_free(r);
}

/* Peers connect one after the other, and every third sends a byte later. Each has its own ten
 * seconds, and the shard never sleeps beyond their end. */
Test(conn_conn_turn, time_is_up_for_each_by_itself)
{
    enum { N = 60 };
    struct rig *r = rig_new();
    struct rig_peer *p[N];
    nj_ns quiet_at[N], gone_at[N] = {0}, begin = r->now;
    uint32_t n_gone = 0;

    for (nj_ns at = 0; n_gone < N && at < 30 * NJ_SEC; at += 20 * NJ_MS) {
        uint32_t k = (uint32_t)(at / (100 * NJ_MS));
        r->now = begin + at;
        if (at % (100 * NJ_MS) == 0 && k < N) {
            p[k] = rig_connect(r, (uint16_t)(1000 + k));
            quiet_at[k] = r->now;
        }
        if (at % (100 * NJ_MS) == 0 && k >= 70 && k - 70 < N && (k - 70) % 3 == 0) {
            rig_send(r, p[k - 70], "P", 1); /* 7 s after it connected */
            quiet_at[k - 70] = r->now;
        }
        nj_ns next = nj_shard_next_at(r->s);
        for (uint32_t i = 0; i < N && i <= k; i++)
            cr_assert(gone_at[i] || next <= quiet_at[i] + 10064 * NJ_MS, "peer %u", i);
        rig_settle(r);
        for (uint32_t i = 0; i < N && i <= k; i++) {
            if (gone_at[i] || !p[i]->got_rst)
                continue;
            gone_at[i] = r->now;
            n_gone++;
            cr_expect_geq(gone_at[i] - quiet_at[i], 10 * NJ_SEC, "peer %u", i);
            cr_expect_leq(gone_at[i] - quiet_at[i], 10100 * NJ_MS, "peer %u", i);
        }
    }
    cr_expect_eq(n_gone, N);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), N);
    rig_free(r);
}

/* More input than one step processes arrives just in time; the timeout passes before the rest is
 * processed. */
Test(conn_conn_turn, what_came_in_time_counts)
{
    enum { N = NJ_READ_MBUFS_MAX + 6, BYTES = 17 };
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    nj_ns begin = r->now;
    uint8_t ping[BYTES];

    rig_h2(ping, PING, 0, 0, "01234567", 8);
    for (uint32_t i = N - 1; i > 0; i--) /* out of order: the others wait for the first */
        rig_seg(r, p, p->snd_nxt + i * BYTES, NJ_TCP_ACK, ping, BYTES);
    rig_settle(r);
    rig_run(r, 74990 * NJ_MS);
    rig_seg(r, p, p->snd_nxt, NJ_TCP_ACK, ping, BYTES);
    p->snd_nxt += N * BYTES;
    rig_step(r);
    r->now = begin + 75200 * NJ_MS;
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 0);
    cr_expect_eq(rig_h2_frames(p, PING, NULL), N, "each is answered");
    rig_free(r);
}

Test(conn_conn_turn, many_may_be_silent_at_once)
{
    struct rig *r = rig_new();
    for (uint32_t i = 0; i < RIG_PEERS; i++)
        rig_connect(r, (uint16_t)(1000 + i));
    r->now += 11 * NJ_SEC;
    rig_step(r);
    uint64_t n = rig_count(r, NJ_C_conn_timeout), all = rig_count(r, NJ_C_tcp_accepted);
    cr_expect_geq(all, RIG_PEERS - RIG_PEERS / 32, "the last blocks are not for new SYNs");
    cr_expect(n > 0 && n < all, "%lu in one step", n);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), all);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    rig_free(r);
}

Test(conn_conn_turn, silent_peers_are_closed)
{
    struct rig *r = rig_new();
    struct rig_peer *silent = rig_connect(r, 1000), *idle = rig_connect_h2(r, 1001);

    rig_run(r, 9900 * NJ_MS);
    cr_expect(!silent->got_rst);
    rig_run(r, 200 * NJ_MS);
    cr_expect(silent->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    rig_run(r, 64800 * NJ_MS);
    cr_expect_eq(rig_h2_frames(idle, GOAWAY, NULL), 0);
    rig_run(r, 200 * NJ_MS);
    cr_expect_geq(rig_h2_frames(idle, GOAWAY, NULL), 1);
    cr_expect_eq(goaway_last(idle), 0);
    cr_expect_eq(goaway_code(idle), 0);
    cr_expect(idle->got_fin && !idle->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 2);
    rig_free(r);
}

Test(conn_conn_turn, drain)
{
    struct rig *r = rig_new();
    struct rig_peer *idle = rig_connect_h2(r, 1000), *busy = rig_connect_h2(r, 1001);
    struct rig_peer *fresh = rig_connect(r, 1002);

    busy->rcv_wnd = 0;
    rig_get(r, busy, 1, "/whole");
    rig_settle(r);
    nj_conns_drain(&r->s->conns, r->now);
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(idle, GOAWAY, NULL), 1);
    cr_expect_eq(goaway_last(idle), 0x7fffffff);
    cr_expect(fresh->got_fin, "nothing was asked on it");
    struct rig_peer *late = rig_connect(r, 1003);
    cr_expect(late->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_draining), 1);

    rig_run(r, 600 * NJ_MS);
    cr_expect_eq(rig_h2_frames(idle, GOAWAY, NULL), 2);
    cr_expect_eq(goaway_last(idle), 0);
    cr_expect(idle->got_fin);
    rig_fin(r, idle);
    rig_fin(r, fresh);
    rig_settle(r);
    cr_expect(nj_shard_has_unfinished_work(r->s));

    busy->rcv_wnd = 65535;
    rig_ack(r, busy);
    rig_run(r, NJ_SEC);
    cr_expect_eq(rig_h2_frames(busy, GOAWAY, NULL), 2);
    cr_expect_gt(busy->n_got, RIG_WHOLE);
    cr_expect(busy->got_fin && !busy->got_rst);
    rig_fin(r, busy);
    rig_settle(r);
    cr_expect(!nj_shard_has_unfinished_work(r->s));
    cr_expect_eq(rig_count(r, NJ_C_responses), 1);
    rig_free(r);
}

/* A peer that has acknowledged everything and does not close does not delay the shutdown. It may
 * still be reading from its kernel, so it is not reset. */
Test(conn_conn_turn, drain_does_not_wait_for_who_does_not_close)
{
    struct rig *r = rig_new();
    struct rig_peer *stays = rig_connect_h2(r, 1000), *leaves = rig_connect_h2(r, 1001);

    rig_get(r, stays, 1, "/whole");
    rig_settle(r);
    nj_conns_drain(&r->s->conns, r->now);
    rig_run(r, 600 * NJ_MS);
    cr_expect(stays->got_fin && leaves->got_fin);
    cr_expect_gt(stays->n_got, RIG_WHOLE);
    rig_fin(r, leaves);
    rig_settle(r);
    cr_expect(nj_shard_has_unfinished_work(r->s), "it lingers for a while");
    rig_run(r, 2 * NJ_SEC);
    cr_expect_eq(nj_tcp_conns(&r->s->tcp), 1);
    cr_expect_not(nj_shard_has_unfinished_work(r->s));
    rig_fin(r, stays); /* it closes in the end */
    rig_settle(r);
    cr_expect_eq(nj_tcp_conns(&r->s->tcp), 0);
    cr_expect_not(nj_shard_has_unfinished_work(r->s));
    cr_expect(!stays->got_rst && !leaves->got_rst);
    rig_free(r);
}

/* Abort ends everything that busy counts, half-open connections and those without a user included.
 */
Test(conn_conn_turn, abort_resets_everything)
{
    struct rig *r = rig_new();
    struct rig_peer *sniffed = rig_connect(r, 1000), *h2 = rig_connect_h2(r, 1001);
    struct rig_peer *orphan = rig_connect(r, 1002);

    rig_send(r, orphan, "\x16\x03", 2);
    rig_run(r, 2200 * NJ_MS); /* the server has released it */
    cr_expect(orphan->got_fin);
    struct rig_peer *half = rig_syn_from(r, RIG_PEER_IP, 1003);
    half->manual = true;
    h2->rcv_wnd = 0;
    rig_get(r, h2, 1, "/big");
    rig_settle(r);
    nj_conns_drain(&r->s->conns, r->now);
    nj_tcp_abort_all(&r->s->tcp, r->now);
    rig_settle(r);
    cr_expect(sniffed->got_rst && h2->got_rst && half->got_rst && orphan->got_rst);
    cr_expect(!nj_shard_has_unfinished_work(r->s));
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    rig_free(r);
}

/* The bound of the send queue holds for any requests while the peer does not read; rig_step()
 * checks it after each step. */
Test(conn_conn_turn, send_queue_is_bounded)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    p->rcv_wnd = 0;
    for (uint32_t i = 0; i < 100; i++) {
        rig_get(r, p, 1 + 2 * i, i % 3 ? "/big" : "/whole");
        if (i % 10 == 9)
            rig_settle(r);
    }
    rig_run(r, 30 * NJ_SEC);
    cr_expect_gt(r->sndq_max, NJ_SENDQ_BYTES_MIN / 2);
    cr_expect_leq(r->sndq_max, NJ_SENDQ_BYTES_MIN, "it has not acknowledged anything");
    cr_expect_lt(r->n_objects, 205, "two objects and at most two chunks of each stream");
    p->rcv_wnd = 20000;
    rig_ack(r, p);
    for (int i = 0; i < 2000; i++) {
        rig_step(r);
        r->now += NJ_MS;
    }
    cr_expect_gt(p->n_got, 1000000);
    rig_free(r);
}

/* GET of "/dir" followed by this many bytes, `c` each. */
static void get_long(struct rig *r, struct rig_peer *p, uint32_t stream, uint32_t n, uint8_t c)
{
    uint8_t block[8192] = {0x82, 0x86, 0x01, 1, 'a', 0x04, 0x7f}, frame[8300];
    uint32_t at = 7, left = n + 4 - 127;

    for (; left >= 128; left /= 128) /* RFC 7541 5.1 */
        block[at++] = (uint8_t)(0x80 | left % 128);
    block[at++] = (uint8_t)left;
    memcpy(block + at, "/dir", 4);
    memset(block + at + 4, c, n);
    uint32_t n_frame = rig_h2(frame, HEADERS, 0x5, stream, block, at + 4 + n);
    for (uint32_t off = 0; off < n_frame; off += 1400)
        rig_send(r, p, frame + off, n_frame - off < 1400 ? n_frame - off : 1400);
}

/* Response heads of 12 KB are the longest; they wait for room like all output. */
Test(conn_conn_turn, long_heads_are_bounded)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    p->rcv_wnd = 0;
    for (uint32_t i = 0; i < 40; i++) {
        get_long(r, p, 1 + 2 * i, 3900, '"');
        rig_run(r, 10 * NJ_MS);
    }
    cr_expect_geq(rig_count(r, NJ_C_status_3xx), 5);
    cr_expect_gt(r->sndq_max, NJ_SENDQ_BYTES_MIN / 2);
    cr_expect_leq(r->sndq_max, NJ_SENDQ_BYTES_MIN, "it has not acknowledged anything");
    p->rcv_wnd = 65535;
    rig_ack(r, p);
    rig_run(r, NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_responses), 40);
    rig_free(r);
}

/* Many long responses at once, followed by an error, all in one read of input. */
Test(conn_conn_turn, long_heads_and_an_error)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    uint8_t buf[64];

    get_long(r, p, 1, 3900, '"'); /* the response is cached: the others need no worker */
    rig_settle(r);
    p->rcv_wnd = 0;
    for (uint32_t i = 1; i < 10; i++)
        get_long(r, p, 1 + 2 * i, 3900, '"');
    rig_send(r, p, buf, rig_h2(buf, DATA, 0, 0, "abc", 3));
    rig_run(r, NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_h2_error), 1);
    rig_free(r);
}

/* The bytes sent are those of the file. */
Test(conn_conn_turn, body_arrives_whole)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    rig_get(r, p, 1, "/whole");
    rig_run(r, NJ_SEC);
    uint64_t at = 0, pos = 0;
    while (pos + 9 <= p->n_got) {
        const uint8_t *f = p->got + pos;
        uint32_t len = (uint32_t)f[0] << 16 | (uint32_t)f[1] << 8 | f[2];
        for (uint32_t i = 0; f[3] == DATA && i < len; i++, at++)
            cr_assert_eq(f[9 + i], rig_byte(at), "byte %lu", at);
        pos += 9 + len;
    }
    cr_expect_eq(at, RIG_WHOLE);
    rig_free(r);
}

/* Input of a peer that sends requests and reads nothing is no longer read. */
Test(conn_conn_turn, flood_without_reading)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    uint8_t buf[1500];
    uint32_t n = 0;

    while (n + 17 <= 1400)
        n += rig_h2(buf + n, PING, 0, 0, "12345678", 8);
    p->rcv_wnd = 0;
    rig_get(r, p, 1, "/big");
    rig_run(r, NJ_SEC);
    for (int i = 0; i < 2000; i++) {
        uint32_t room = p->snd_una + ((uint32_t)p->srv_wnd) - p->snd_nxt;
        if ((int32_t)room >= (int32_t)n)
            rig_send(r, p, buf, n);
        rig_step(r);
        r->now += NJ_MS;
    }
    cr_expect_lt(p->srv_wnd, 2000, "the window is %u", p->srv_wnd);
    cr_expect_eq(rig_count(r, NJ_C_h2_abuse), 0, "the server has not read these frames");
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    rig_run(r, 61 * NJ_SEC);
    cr_expect(p->got_rst);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    rig_free(r);
}

/* A peer does not read its last response: it is in the send queue, and no stream is open. The
 * connection ends in time, with the peer's FIN or without. */
Test(conn_conn_turn, unread_answers_do_not_pile_up)
{
    struct rig *r = rig_new();
    struct rig_peer *a = rig_connect_h2(r, 1000), *b = rig_connect_h2(r, 1001);

    a->rcv_wnd = b->rcv_wnd = 0;
    rig_get(r, a, 1, "/index.html");
    rig_get(r, b, 1, "/index.html");
    rig_fin(r, b);
    for (int i = 0; i < 300 * 20; i++) {
        rig_step(r);
        r->now += 50 * NJ_MS; /* zero-window probes are answered meanwhile */
    }
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    rig_free(r);
}

/* With few mbufs left, connections wait; no response is cut off. */
Test(conn_conn_turn, low_pool_makes_them_wait)
{
    struct rig *r = rig_alloc(8192, 700);
    struct nj_shard_config c = rig_config(r);
    struct rig_peer *p[100];
    rig_new_with(r, &c);

    for (uint16_t i = 0; i < 100; i++)
        p[i] = rig_connect_h2(r, 1000 + i);
    for (int i = 0; i < 100; i++) {
        p[i]->rcv_wnd = 0;
        rig_get(r, p[i], 1, "/whole");
    }
    for (int i = 0; i < 100; i++) {
        rig_step(r);
        r->now += NJ_MS;
    }
    for (int i = 0; i < 100; i++) {
        p[i]->rcv_wnd = 65535;
        rig_ack(r, p[i]);
    }
    for (int i = 0; i < 20000; i++) {
        rig_step(r);
        r->now += NJ_MS;
    }
    for (int i = 0; i < 100; i++)
        cr_expect(p[i]->n_got > RIG_WHOLE && !p[i]->got_fin && !p[i]->got_rst, "peer %d: %lu", i,
                  p[i]->n_got);
    cr_expect_eq(rig_count(r, NJ_C_responses), 100);
    rig_free(r);
}

/* Requests many streams with windows of 600 bytes, so that responses are many small frames. */
static void get_crumbs(struct rig *r, struct rig_peer *p)
{
    static const uint8_t window[] = {0, 4, 0, 0, 600 >> 8, 600 & 255};
    uint8_t buf[64];

    rig_send(r, p, buf, rig_h2(buf, SETTINGS, 0, 0, window, sizeof window));
    for (uint32_t k = 0; k < 100; k++)
        rig_get(r, p, 2 * k + 1, "/whole");
}

/* Like rig_settle(), which does not end while a connection waits for mbufs. */
static void some_steps(struct rig *r)
{
    for (int i = 0; i < 100; i++)
        rig_step(r);
}

/* A peer that gets as much as the pool allows. */
static struct rig_peer *ask_for_whole(struct rig *r, uint16_t port)
{
    uint8_t hello[128];
    struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP, port);

    some_steps(r);
    rig_send(r, p, hello, rig_h2_hello(hello));
    some_steps(r);
    p->rcv_wnd = port == 2000 ? 65535 : 0;
    rig_get(r, p, 1, "/whole");
    some_steps(r);
    return p;
}

/* Frames of a few hundred bytes take two mbufs each. Peers that do not read them must not use up
 * the pool: another peer is served at once. */
Test(conn_conn_turn, small_frames_do_not_drain_the_pool)
{
    struct rig *r = rig_alloc(8192, 2048);
    struct nj_shard_config c = rig_config(r);
    rig_new_with(r, &c);

    for (uint16_t i = 0; i < 40; i++) {
        struct rig_peer *p = rig_connect_h2(r, 1000 + i);
        p->rcv_wnd = 0;
        get_crumbs(r, p);
        some_steps(r);
    }
    struct rig_peer *q = ask_for_whole(r, 2000);
    some_steps(r);
    cr_expect_gt(q->n_got, RIG_WHOLE);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 0);
    rig_free(r);
}

/* Enough peers that do not read use up the pool anyway: they are reset after a while, and a peer
 * that reads is served. */
Test(conn_conn_turn, stalled_peers_are_shed)
{
    struct rig *r = rig_alloc(8192, 400);
    struct nj_shard_config c = rig_config(r);
    rig_new_with(r, &c);

    for (uint16_t i = 0; i < 100; i++)
        ask_for_whole(r, 1000 + i);
    struct rig_peer *q = ask_for_whole(r, 2000);
    cr_expect_lt(q->n_got, RIG_WHOLE, "the pool is used up");
    for (int i = 0; i < 45 * 20; i++) { /* less than the send timeout */
        r->now += 50 * NJ_MS;
        some_steps(r);
    }
    cr_expect_gt(q->n_got, RIG_WHOLE);
    cr_expect(!q->got_rst);
    cr_expect_gt(rig_count(r, NJ_C_conn_shed), 0);
    rig_free(r);
}

/* Connections end while a worker has their file. */
Test(conn_conn_turn, files_come_back_to_nobody)
{
    struct rig *r = rig_new();
    r->files_slow = true;
    for (uint16_t i = 0; i < 30; i++) {
        struct rig_peer *p = rig_connect_h2(r, 1000 + i);
        rig_get(r, p, 1, i % 2 ? "/big" : "/whole");
        rig_settle(r);
        if (i % 3 == 0)
            rig_seg(r, p, p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
        if (i % 3 == 1)
            rig_fin(r, p);
        rig_settle(r);
        if (i == 20) { /* some files are open, and wait for their first chunk */
            r->files_slow = false;
            nj_shard_step(r->s, r->now);
            r->files_slow = true;
        }
    }
    nj_shard_publish(r->s);
    cr_expect_gt(rig_count(r, NJ_C_file_jobs), 0);
    cr_expect(nj_shard_has_unfinished_work(r->s));
    nj_tcp_abort_all(&r->s->tcp, r->now);
    rig_settle(r);
    cr_expect(nj_shard_has_unfinished_work(r->s), "jobs are out");
    rig_free(r);
}

/* Without work, the loop may sleep. */
Test(conn_conn_turn, idle_is_idle)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000), *q = rig_connect_h2(r, 1001);

    cr_expect_gt(nj_shard_next_at(r->s), r->now);
    q->rcv_wnd = 0;
    rig_get(r, p, 1, "/whole");
    rig_get(r, q, 1, "/big");
    rig_run(r, NJ_SEC);
    cr_expect_gt(nj_shard_next_at(r->s), r->now);
    nj_conns_drain(&r->s->conns, r->now);
    rig_run(r, NJ_SEC);
    cr_expect_gt(nj_shard_next_at(r->s), r->now);
    rig_free(r);
}
