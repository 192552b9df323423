/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many connections that leave something unfinished, so that the shard holds what they sent. After
 * each round of segments a new client of another address connects, and is served at once. In each
 * round 10 ms pass, so a round is a round trip.
 */
#define RIG_PEERS   2400
#define RIG_GOT_MAX (16u * 1024u)
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "conn/conn_tls.h"
#include "h2/h2_internal.h"
#include "support/shard_rig.h"
#include "support/tls_peer.h"
#include "telem/counters.h"

enum { DATA, HEADERS, CONTINUATION = 9, UNKNOWN = 0x42 };

enum {
    HELD_MAX = 8191, /* as with one lcore */
    SEGMENTS = 54,
    SEGMENT_BYTES = 300,
    ATTACKERS = 2000,
    NEWCOMERS = 50,
    ROUND_TRIPS_MAX = 10,
    HEADS_MEMORY_MAX = 32 << 20, /* of HTTP/2: a third of what the peers can make it hold */
    QUERY_BYTES = 4000,
    REQUESTS = 128,
};

enum unfinished {
    SYN,
    PREFACE,
    FRAME,
    HEADER_BLOCK,
    CONTINUATIONS,
    OUT_OF_ORDER,
    CLIENT_HELLO,
    RECORD,
    HEADS,
    HEADS_TLS,
    N_UNFINISHED,
};
static const char *const name[N_UNFINISHED] = {
    "SYN",          "preface",     "frame",  "header block", "CONTINUATION",
    "out of order", "ClientHello", "record", "unread heads", "unread heads of TLS"};

struct attacker {
    struct rig_peer *p;
    struct tls_peer *tls;
};

static struct tls_rig *t;
static struct attacker attacker[ATTACKERS];
static uint16_t next_port;

static bool is_of_tls(enum unfinished what)
{
    return what == CLIENT_HELLO || what == RECORD || what == HEADS_TLS;
}

static bool is_of_heads(enum unfinished what)
{
    return what == HEADS || what == HEADS_TLS;
}

/* A session of TLS is open before the segments are sent. */
static bool has_session(enum unfinished what)
{
    return what == RECORD || what == HEADS_TLS;
}

static bool is_gone(const struct attacker *a)
{
    return a->p->got_rst || a->p->got_fin;
}

static void send_bytes(struct attacker *a, const uint8_t *bytes, uint32_t n)
{
    if (a->tls) {
        tls_peer_write(a->tls, bytes, n);
        tls_peer_send(t, a->tls, 1400);
        return;
    }
    for (uint32_t at = 0; at < n; at += 1400)
        rig_send(t->r, a->p, bytes + at, nj_min_u32(1400, n - at));
}

/* A response that the peer does not read. */
static void request_big(struct attacker *a)
{
    uint8_t bytes[512];
    uint32_t n = rig_h2_hello(bytes);

    a->p->rcv_wnd = 0;
    n += rig_h2_get(bytes + n, 1, "/big");
    send_bytes(a, bytes, n);
}

/* Requests of a few bytes each, whose responses repeat the query: the path is in the dynamic table
 * of HPACK (RFC 7541 6.2.1). The peer reads no response. */
static void request_long_heads(struct attacker *a)
{
    static const uint8_t first[] = {0x82, 0x86, 0x01, 1, 'a', 0x44, 0x7f, 0xa6, 0x1e};
    static const uint8_t next[] = {0x82, 0x86, 0x01, 1, 'a', 0xbe};
    uint8_t block[sizeof first + 5 + QUERY_BYTES], bytes[2 * QUERY_BYTES];
    uint32_t n = a->tls ? 0 : rig_h2_hello(bytes); /* the length of the path is 127 + 3,878 */

    memset(block, 'q', sizeof block);
    memcpy(block, first, sizeof first);
    memcpy(block + sizeof first, "/dir?", 5);
    n += rig_h2(bytes + n, HEADERS, 5, 1, block, sizeof block);
    for (uint32_t i = 1; i < REQUESTS; i++)
        n += rig_h2(bytes + n, HEADERS, 5, 2 * i + 1, next, sizeof next);
    NJ_CHECK(n <= sizeof bytes);
    a->p->rcv_wnd = 0;
    send_bytes(a, bytes, n);
    rig_settle(t->r);
}

/* Before the first segment: what the segments are a part of. */
static void begin(struct attacker *a, enum unfinished what, bool has_request)
{
    uint8_t bytes[512];
    uint32_t n = 0;

    if (has_request)
        request_big(a);
    if (is_of_heads(what))
        request_long_heads(a);
    if (what == FRAME || what == HEADER_BLOCK || what == CONTINUATIONS) {
        n = has_request ? 0 : rig_h2_hello(bytes);
        n += rig_h2(bytes + n, what == FRAME ? UNKNOWN : HEADERS, 0, 3, "", 0);
        if (what == CONTINUATIONS)
            n += rig_h2(bytes + n, CONTINUATION, 0, 3, "", 0);
        bytes[n - 8] = 0x40; /* its length is 16 KiB, of which nothing came yet */
    } else if (what == CLIENT_HELLO || what == RECORD) {
        static const uint8_t head[] = {22, 3, 3, 0x40, 0, 1, 0, 0x3f, 0xfc};
        memcpy(bytes, head, sizeof head);
        bytes[0] = what == RECORD ? 23 : 22;
        n = what == RECORD ? 5 : sizeof head;
    } else if (what == PREFACE) {
        memcpy(bytes, "PRI", n = 3);
    }
    if (n > 0)
        rig_send(t->r, a->p, bytes, n);
}

static void add_segment(struct attacker *a, enum unfinished what)
{
    static const uint8_t zeros[SEGMENT_BYTES];

    if (what == SYN || what == PREFACE || is_of_heads(what))
        return;
    if (what == OUT_OF_ORDER)
        a->p->snd_nxt += a->p->snd_nxt == a->p->snd_una; /* a hole of one byte */
    rig_send(t->r, a->p, zeros, sizeof zeros);
}

static void settle_if_many(void)
{
    if (t->r->n_in > 2048)
        rig_settle(t->r);
}

struct row {
    enum unfinished what;
    uint32_t n_addresses; /* of the attackers' own */
    bool has_request;
};

static void connect_attackers(const struct row *row, uint32_t n)
{
    enum unfinished what = row->what;
    uint32_t n_addresses = row->n_addresses;

    for (uint32_t i = 0; i < n; i++) {
        attacker[i].p = rig_syn_from(t->r, RIG_PEER_IP + 2 + i % n_addresses, (uint16_t)(1000 + i));
        attacker[i].p->manual = what == SYN;
        if (i < n_addresses) /* a few packets wait for an unknown neighbour */
            rig_settle(t->r);
        settle_if_many();
    }
    rig_settle(t->r);
    for (uint32_t i = 0; i < n && has_session(what); i++) {
        attacker[i].tls = tls_peer_new_on(t, attacker[i].p);
        tls_peer_pump(t, attacker[i].tls, 1400);
        uint8_t hello[128];
        if (!row->has_request)
            tls_peer_write(attacker[i].tls, hello, rig_h2_hello(hello));
        tls_peer_pump(t, attacker[i].tls, 1400);
    }
    for (uint32_t i = 0; i < n; i++) {
        begin(&attacker[i], what, row->has_request);
        settle_if_many();
    }
    rig_settle(t->r);
}

static void pass_round_trip(void)
{
    t->r->now += 10 * NJ_MS;
    rig_settle(t->r);
}

/* Returns the round trips until the response, or ROUND_TRIPS_MAX + 1. */
static uint32_t serve_newcomer(bool tls)
{
    struct rig_peer *p = rig_syn_from(t->r, RIG_PEER_IP + 100, next_port++);
    struct tls_peer *c = NULL;
    uint8_t bytes[512];
    uint32_t n = 0;
    bool good, served = false;

    for (; n <= ROUND_TRIPS_MAX && !served; n++) {
        pass_round_trip();
        if (!p->got_synack)
            continue;
        if (!tls && p->snd_nxt == p->snd_una) {
            uint32_t n_bytes = rig_h2_hello(bytes);
            n_bytes += rig_h2_get(bytes + n_bytes, 1, "/index.html");
            rig_send(t->r, p, bytes, n_bytes);
        } else if (!tls) {
            served = rig_h2_frames(p, DATA, NULL) > 0;
        } else {
            if (!c)
                c = tls_peer_new_on(t, p);
            tls_peer_read(c);
            if (SSL_is_init_finished(c->ssl) && c->n_got == 0 && !c->closed) {
                tls_peer_write(c, bytes, rig_h2_hello(bytes));
                tls_peer_get(c, 1, "/index.html");
            }
            tls_peer_send(t, c, 1400);
            served = tls_peer_body(c, &good) == 100;
        }
    }
    if (c)
        tls_peer_free(c);
    rig_seg(t->r, p, p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    rig_settle(t->r);
    p->used = false;
    return n;
}

/* The handshakes take time, and the open requests memory. */
static uint32_t n_attackers(const struct row *row)
{
    if (is_of_heads(row->what))
        return 200;
    return row->has_request ? 500 : row->what == RECORD ? 900 : ATTACKERS;
}

static void attack(const struct row *row)
{
    enum unfinished what = row->what;
    uint32_t n = n_attackers(row), n_gone = 0, worst = 0;

    next_port = 30000;
    t = tls_rig_alloc(16383, 32767);
    t->conns_max = 2 * RIG_PEERS;
    t->held_max = HELD_MAX;
    t->clear = !is_of_tls(what);
    tls_rig_start(t);
    if (is_of_heads(what))
        t->r->s->conns.session_memory.bytes_max = HEADS_MEMORY_MAX;
    connect_attackers(row, n);
    for (uint32_t round = 0; round < SEGMENTS; round++) {
        for (uint32_t i = 0; i < n; i++) {
            if (!is_gone(&attacker[i]))
                add_segment(&attacker[i], what);
            settle_if_many();
        }
        rig_settle(t->r);
        if (round >= SEGMENTS - NEWCOMERS) {
            uint32_t n_trips = serve_newcomer(is_of_tls(what));
            worst = n_trips > worst ? n_trips : worst;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        n_gone += is_gone(&attacker[i]);
        if (attacker[i].tls)
            tls_peer_free(attacker[i].tls);
    }
    cr_expect_leq(worst, ROUND_TRIPS_MAX, "%s of %u addresses, %s request: %u round trips",
                  name[what], row->n_addresses, row->has_request ? "a" : "no", worst);
    cr_log_info("%s of %u addresses: %u round trips, %u of %u attackers gone, %u mbufs held\n",
                name[what], row->n_addresses, worst, n_gone, n, t->r->s->tcp.n_held);
    cr_expect_eq(n_gone,
                 rig_count(t->r, is_of_heads(what) ? NJ_C_conn_memory_limit : NJ_C_conn_rx_limit),
                 "only to free what they hold");
    cr_expect(n_gone > 0 || !is_of_heads(what));
    memset(attacker, 0, sizeof attacker);
    tls_rig_free(t);
}

/* What is held in mbufs depends on the number of clients. With a sanitizer, which makes each row
 * three times as long, each kind is tested with one number of clients. */
static bool is_tested(enum unfinished what, uint32_t n_addresses)
{
#if defined(__SANITIZE_ADDRESS__)
    return n_addresses == 64;
#endif
    return n_addresses == 1 || n_addresses == 64 || what == OUT_OF_ORDER || what == CLIENT_HELLO ||
           what == RECORD;
}

static bool may_have_request(enum unfinished what)
{
    return what != SYN && what != PREFACE && what != CLIENT_HELLO && !is_of_heads(what);
}

ParameterizedTestParameters(conn_held_by_peers, a_newcomer_is_served)
{
    static struct row row[N_UNFINISHED * 4 * 2];
    static const uint32_t n_addresses[] = {1, 64, 2, 8};
    uint32_t n = 0;

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(n_addresses); i++)
        for (enum unfinished what = 0; what < N_UNFINISHED; what++)
            for (uint32_t k = 0;
                 is_tested(what, n_addresses[i]) && k < (may_have_request(what) ? 2u : 1u); k++)
                row[n++] = (struct row){what, n_addresses[i], k == 1};
    return cr_make_param_array(struct row, row, n);
}

ParameterizedTest(struct row *row, conn_held_by_peers, a_newcomer_is_served)
{
    attack(row);
}

/* `n_bytes` of a header block that stays incomplete. */
static void begin_header_block(struct rig *r, struct rig_peer *p, uint32_t n_bytes)
{
    static const uint8_t payload[16384];
    uint8_t bytes[9 + sizeof payload];

    for (uint32_t at = 0; at < n_bytes; at += sizeof payload) {
        uint32_t n_all = rig_h2(bytes, at == 0 ? HEADERS : CONTINUATION, 0, 1, payload,
                                nj_min_u32(sizeof payload, n_bytes - at));
        for (uint32_t k = 0; k < n_all; k += 1400)
            rig_send(r, p, bytes + k, nj_min_u32(1400, n_all - k));
        rig_settle(r);
    }
}

/* A client of another address, whose header block is the first one that is held. */
static struct rig_peer *connect_innocent(struct rig *r)
{
    struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP + 2, 999);

    rig_begin_h2(r, p);
    begin_header_block(r, p, 9 * 1024);
    return p;
}

/* One more session of that address. */
static void expect_served(struct rig *r)
{
    struct rig_peer *q = rig_syn_from(r, RIG_PEER_IP + 2, 998);

    rig_begin_h2(r, q);
    rig_get(r, q, 1, "/index.html");
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(q, HEADERS, NULL), 1);
    cr_expect_eq(rig_count(r, NJ_C_h2_full), 0);
}

/* Header blocks that stay incomplete, until the memory of HTTP/2 is short: a few large ones, or
 * many small ones. Their client loses some of them, and another one none. */
static void use_up_memory(uint32_t n, uint32_t block_bytes, uint32_t bytes_max)
{
    struct rig *r = rig_new();
    struct rig_peer **p = calloc(n, sizeof *p);
    uint32_t n_gone = 0;

    r->s->conns.session_memory.bytes_max = bytes_max;
    struct rig_peer *innocent = connect_innocent(r);
    for (uint32_t i = 0; i < n; i++) {
        p[i] = rig_connect_h2(r, (uint16_t)(1000 + i));
        begin_header_block(r, p[i], block_bytes);
    }
    expect_served(r);
    cr_expect(!innocent->got_rst);
    for (uint32_t i = 0; i < n; i++)
        n_gone += p[i]->got_rst;
    cr_expect(n_gone > 0 && n_gone < n, "%u", n_gone);
    cr_expect_eq(n_gone, rig_count(r, NJ_C_conn_memory_limit));
    free(p);
    rig_free(r);
}

Test(conn_held_by_peers, memory_of_header_blocks)
{
    use_up_memory(100, 64 * 1024, 40 * 128 * 1024);
}

Test(conn_held_by_peers, memory_of_small_header_blocks)
{
    use_up_memory(500, 4 * 1024, 2 << 20);
}

/* A connection that is closed holds no memory of HTTP/2 any more, also if the peer is silent. */
Test(conn_held_by_peers, memory_of_a_closed_connection)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    begin_header_block(r, p, 64 * 1024);
    cr_expect_gt(r->s->conns.held_memory.n_held, 0);
    p->manual = true;
    for (uint32_t i = 0; i < 200 && rig_count(r, NJ_C_conn_timeout) == 0; i++)
        rig_run(r, 100 * NJ_MS);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    cr_expect(!p->got_rst);
    cr_expect_eq(r->s->conns.held_memory.n_held, 0);
    rig_free(r);
}

/* While memory is short, the shard does not wait for packets: holders are looked at in turn. */
Test(conn_held_by_peers, no_wait_while_memory_is_short)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    begin_header_block(r, p, 9 * 1024);
    cr_expect_gt(nj_shard_next_at(r->s), 0);
    r->s->conns.session_memory.bytes_max = 128 * 1024; /* the peer has less than its share */
    while (!nj_alloc_is_short(&r->s->conns.session_memory))
        r->s->conns.session_memory.bytes_max -= 1024;
    cr_expect_eq(nj_shard_next_at(r->s), 0);
    rig_free(r);
}

/* The first 8 mbufs of a record of 16,000 bytes. */
static void begin_record(struct tls_peer *c)
{
    static const uint8_t payload[16000 - 9];
    uint8_t bytes[9 + sizeof payload], segment[1400];

    tls_peer_write(c, bytes, rig_h2(bytes, UNKNOWN, 0, 0, payload, sizeof payload));
    for (uint32_t i = 0; i < 8; i++) {
        int n = BIO_read(c->out, segment, sizeof segment);
        rig_send(t->r, c->p, segment, (uint32_t)n);
    }
    settle_if_many();
}

static struct tls_peer *connect_uploader(uint32_t ip, uint16_t port)
{
    struct rig_peer *p = rig_syn_from(t->r, ip, port);
    uint8_t hello[128];

    rig_settle(t->r);
    struct tls_peer *c = tls_peer_new_on(t, p);
    tls_peer_pump(t, c, 1400);
    tls_peer_write(c, hello, rig_h2_hello(hello));
    tls_peer_pump(t, c, 1400);
    return c;
}

/* Clients that are in the middle of a record, and complete it within a round trip, hold more than
 * 3/4 of the mbufs. Those that leave a record incomplete are reset, and no other one. */
Test(conn_held_by_peers, uploads_go_on)
{
    enum { UPLOADS = 64, STALLED = 4, RECORDS = 5 };
    struct tls_peer *upload[UPLOADS], *stalled[STALLED];

    t = tls_rig_alloc(8191, 8191);
    t->conns_max = 2 * RIG_PEERS;
    t->held_max = 624;
    tls_rig_start(t);
    for (uint32_t i = 0; i < UPLOADS; i++)
        upload[i] = connect_uploader(RIG_PEER_IP + 2 + i, 1000);
    for (uint32_t i = 0; i < STALLED; i++)
        stalled[i] = connect_uploader(RIG_PEER_IP + 100, (uint16_t)(1000 + i));
    for (uint32_t k = 0; k < RECORDS; k++) {
        if (k == 1) {
            for (uint32_t i = 0; i < STALLED; i++)
                begin_record(stalled[i]);
            rig_settle(t->r);
            t->r->now += 60 * NJ_MS;
        }
        for (uint32_t i = 0; i < UPLOADS; i++)
            begin_record(upload[i]);
        rig_settle(t->r);
        cr_expect_gt(t->r->s->tcp.n_held, 468, "record %u", k);
        pass_round_trip();
        for (uint32_t i = 0; i < UPLOADS; i++)
            tls_peer_send(t, upload[i], 1400);
        rig_settle(t->r);
    }
    for (uint32_t i = 0; i < UPLOADS; i++) {
        cr_expect(!upload[i]->p->got_rst && !upload[i]->p->got_fin, "upload %u", i);
        tls_peer_free(upload[i]);
    }
    for (uint32_t i = 0; i < STALLED; i++) {
        cr_expect(stalled[i]->p->got_rst, "stalled %u", i);
        tls_peer_free(stalled[i]);
    }
    cr_expect_eq(rig_count(t->r, NJ_C_conn_rx_limit), STALLED);
    tls_rig_free(t);
}
