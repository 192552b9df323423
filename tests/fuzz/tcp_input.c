/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: a script of segments, user calls and time steps for one struct nj_tcp.
 *
 * Each step is an operation byte and a few bytes of operands. Sequence numbers are small offsets
 * from those that the connection expects, so that scripts reach far: past the handshake, into
 * recovery, to path MTU probes, into every closing state. nj__tcb_assert_valid() runs after every
 * segment. At the end everything is aborted and the pools must be full.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "support/mbuf_env.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PORTS     2u /* of the peer: two connections */
#define STEPS_MAX 400u

struct world {
    struct nj_tcp tcp;
    struct nj_counters counters;
    struct rte_mempool *pool, *rx_pool;
    struct rte_mbuf *hog[64];
    uint32_t n_hog, room;
    nj_ns now;
    uint64_t n_fed;
    uint32_t irs[PORTS]; /* the peer's initial number */
    uint32_t last_iss;   /* of sent SYNs: possibly a cookie */
    bool reads, ts;
    struct nj_tcb *held[8]; /* held by the user */
    const uint8_t *in;
    size_t left;
};

static uint8_t byte(struct world *w)
{
    if (w->left == 0)
        return 0;
    w->left--;
    return *w->in++;
}

static void emit(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct world *w = ctx;

    const uint8_t *h = rte_pktmbuf_mtod(m, const uint8_t *);

    (void)ip;
    (void)now;
    NJ_CHECK(m->pkt_len <= 1500 - 20 && m->pkt_len >= 20);
    if (h[13] & NJ_TCP_SYN)
        w->last_iss = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
    if (w->room > 0)
        w->room--;
    rte_pktmbuf_free(m);
}

static uint32_t room(void *ctx)
{
    return ((struct world *)ctx)->room;
}

static void hold(struct world *w, struct nj_tcb *t)
{
    for (unsigned i = 0; i < NJ_ARRAY_LEN(w->held); i++)
        if (w->held[i] == t)
            return;
    for (unsigned i = 0; i < NJ_ARRAY_LEN(w->held); i++) {
        if (!w->held[i]) {
            w->held[i] = t;
            t->user = w;
            return;
        }
    }
    NJ_UNREACHABLE("more connections than blocks");
}

static void release(struct world *w, struct nj_tcb *t)
{
    for (unsigned i = 0; i < NJ_ARRAY_LEN(w->held); i++)
        if (w->held[i] == t)
            w->held[i] = NULL;
    nj_tcp_release(&w->tcp, t, w->now);
}

static void user_turn(struct world *w)
{
    struct nj_tcb *t;
    uint8_t events;

    while ((t = nj_tcp_next_ready(&w->tcp.ready, &events))) {
        const uint8_t *bytes;
        uint32_t n;
        if (events & NJ_TCP_EV_DEAD) {
            release(w, t);
            continue;
        }
        hold(w, t);
        while (w->reads && (n = nj_tcp_recv_peek(t, &bytes)) > 0)
            nj_tcp_recv_take(&w->tcp, t, n);
    }
}

static struct nj_tuple tuple_of(uint8_t which)
{
    struct nj_tuple t = {.rport = (uint16_t)(1000 + which % PORTS), .lport = 80};
    t.remote.b[15] = 2;
    t.local.b[15] = 1;
    return t;
}

/* Mostly a small offset; sometimes a segment, sometimes a large one. */
static uint32_t near(struct world *w)
{
    uint8_t b = byte(w);
    switch (b >> 5) {
    case 5:
        return (b & 31) * 1460u;
    case 6:
        return 0u - (b & 31);
    case 7:
        return (uint32_t)(b & 31) << 27;
    default:
        return b;
    }
}

/* Blocks of our data that arrived out of order: `n`, from an offset after the ACK on. */
static void sack(struct world *w, struct nj_seg *seg, uint8_t n)
{
    uint32_t at = seg->ack;

    for (n &= 3; seg->opts.n_sack < n; seg->opts.n_sack++) {
        struct nj_sack_block *b = &seg->opts.sack[seg->opts.n_sack];
        b->first = at += near(w);
        b->end = at += near(w);
    }
}

static void segment(struct world *w, uint8_t which)
{
    static const uint8_t likely[8] = {0x10, 0x18, 0x02, 0x12, 0x11, 0x04, 0x14, 0x00};
    uint8_t shape = byte(w);
    struct nj_seg seg = {.tuple = tuple_of(which), .flags = likely[shape & 7]};
    struct nj_flow *f =
        nj_flow_find(&w->tcp.flows, nj_flow_hash(&w->tcp.flows, &seg.tuple), &seg.tuple);
    struct nj_tcb *t = nj_flow_tcb(f);
    struct nj_minisock *b = t ? NULL : (struct nj_minisock *)f;
    uint32_t n_bytes = shape & 0x20 ? byte(w) : shape & 0x40 ? byte(w) * 6u : 0;

    if (shape & 0x08)
        seg.flags = byte(w);
    seg.wnd = shape & 0x10 ? (uint16_t)(byte(w) << 4) : 0xffff;
    seg.seq = t ? t->rcv_nxt : b ? b->rcv_nxt : w->irs[which % PORTS] + !(seg.flags & NJ_TCP_SYN);
    seg.ack = t ? t->snd_nxt : b ? b->snd_nxt : w->last_iss + 1;
    if (shape & 0x80) {
        seg.seq += near(w);
        seg.ack -= near(w);
        if (t && t->sack_on)
            sack(w, &seg, byte(w));
    }
    if (n_bytes > 1460)
        n_bytes = 1460;
    seg.payload_bytes = n_bytes;
    seg.opts.has_ts = w->ts;
    seg.opts.ts_val = (uint32_t)(w->now / NJ_MS);
    seg.opts.ts_ecr =
        t ? nj__tcp_ts_now(t, w->now)
          : nj__tcp_ts_clock_ms(w->now) + nj__tcp_ts_offset_of_tuple(&w->tcp, &seg.tuple);
    if (seg.flags & NJ_TCP_SYN) {
        uint8_t o = byte(w);
        seg.opts.has_mss = o & 1;
        seg.opts.mss = (uint16_t)(o << 4);
        seg.opts.has_wscale = o & 2;
        seg.opts.sack_permitted = o & 4;
        seg.opts.wscale = o >> 4;
    }
    static const uint8_t payload[1460];
    struct rte_mbuf *m = nj_test_mbuf(w->rx_pool, payload, n_bytes);
    if (!m)
        return;
    w->n_fed++;
    nj_tcp_input(&w->tcp, f, m, &seg, w->now);
}

static void user_call(struct world *w, uint8_t what)
{
    static const uint8_t text[4096];
    struct nj_tcb *t = w->held[what >> 4 & 7];
    const uint8_t *bytes;
    uint32_t n;

    if ((what & 7) == 7) {
        struct nj_tuple tuple = tuple_of(what >> 4);
        if ((t = nj_tcp_connect(&w->tcp, &tuple, w->now)))
            hold(w, t);
        return;
    }
    if (!t)
        return;
    switch (what & 7) {
    case 0:
    case 1:
        n = byte(w) * 16u;
        if (n && n <= nj_tcp_send_room(t))
            nj_tcp_send_copy(&w->tcp, t, text, n);
        break;
    case 2:
        n = byte(w) * 16u;
        if (n && n <= nj_tcp_send_room(t))
            nj_tcp_send_refer(&w->tcp, t, &(struct nj_slice){text, n, NULL});
        break;
    case 3:
        if ((n = nj_tcp_recv_peek(t, &bytes)) > 0)
            nj_tcp_recv_take(&w->tcp, t, 1 + byte(w) % n);
        break;
    case 4:
        nj_tcp_close(&w->tcp, t, w->now);
        break;
    case 5:
        release(w, t);
        break;
    default:
        nj_tcp_abort(&w->tcp, t, w->now);
        break;
    }
}

static void turn(struct world *w, nj_ns step)
{
    w->now += step;
    nj_tcp_tick(&w->tcp, w->now);
    user_turn(w);
    nj_tcp_output_pending(&w->tcp, w->now);
}

/* A router reports that segments in flight exceed the MTU of its next link. */
static void too_big(struct world *w, uint8_t which)
{
    struct nj_icmp_error e = {.error_kind = NJ_ICMP_TOO_BIG, .tuple = tuple_of(which)};
    uint32_t hash = nj_flow_hash(&w->tcp.flows, &e.tuple);
    struct nj_tcb *t = nj_flow_tcb(nj_flow_find(&w->tcp.flows, hash, &e.tuple));

    e.mtu = 1280 + byte(w);
    if (!t)
        return;
    e.seq = t->snd_una;
    nj_tcp_icmp(&w->tcp, t, &e);
}

static void starve(struct world *w, uint8_t b)
{
    uint32_t n = b & 0x40 ? 64 : b & 0x3f;
    while (w->n_hog > 0)
        rte_pktmbuf_free(w->hog[--w->n_hog]);
    while (w->n_hog < n && (w->hog[w->n_hog] = nj__mbuf_get(&w->tcp)))
        w->n_hog++;
}

static void one_step(struct world *w)
{
    static const nj_ns pause[8] = {0,          NJ_MS,       41 * NJ_MS,  210 * NJ_MS,
                                   1 * NJ_SEC, 10 * NJ_SEC, 61 * NJ_SEC, 200 * NJ_SEC};
    uint8_t what = byte(w);

    switch (what >> 5) {
    case 0:
    case 1:
    case 2:
    case 3:
        segment(w, what);
        if (what & 2)
            turn(w, 0);
        break;
    case 4:
        turn(w, pause[what & 7]);
        break;
    case 5:
    case 6:
        user_call(w, byte(w));
        if (what & 2)
            turn(w, 0);
        break;
    default:
        if (what & 1)
            starve(w, byte(w));
        else if (what & 2)
            w->room = byte(w) & 1 ? 1000 : byte(w) & 3;
        else if (what & 4)
            too_big(w, what >> 3);
        else
            w->reads = !w->reads;
        break;
    }
}

static void end(struct world *w)
{
    starve(w, 0);
    w->room = 1000;
    for (unsigned i = 0; i < NJ_ARRAY_LEN(w->held); i++)
        if (w->held[i])
            nj_tcp_abort(&w->tcp, w->held[i], w->now);
    turn(w, 0);
    nj_tcp_abort_all(&w->tcp, w->now); /* half-open ones and orphans */
    turn(w, 0);
    turn(w, 120 * NJ_SEC); /* TIME_WAIT */
    turn(w, 120 * NJ_SEC);
    NJ_CHECK(w->tcp.tcbs.n_used == 0);
    NJ_CHECK(w->tcp.syns.n_used == 0 && w->tcp.time_waits.n_used == 0);
    NJ_CHECK(w->tcp.n_half_open == 0 && w->tcp.n_time_wait == 0);
    NJ_CHECK(w->tcp.wheel.n_timers == 0);
    nj__mbuf_cache_drain(&w->tcp);
    NJ_CHECK(nj_test_pool_full(w->pool) && nj_test_pool_full(w->rx_pool));
    NJ_CHECK(nj_counter_read(&w->counters, NJ_C_rx_tcp) +
                 nj_counters_sum_of_kind(&w->counters, NJ_KIND_RX_DROP) ==
             w->n_fed);
    nj_tcp_fini(&w->tcp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rte_mempool *pool, *rx_pool; /* creating them takes longer than a run */
    struct world *w = calloc(1, sizeof *w);

    NJ_CHECK(w);
    if (!pool) {
        pool = nj_test_pool(64);
        rx_pool = nj_test_pool(600);
    }
    w->pool = pool;
    w->rx_pool = rx_pool;
    w->in = data;
    w->left = size;
    w->room = 1000;
    w->now = 1000 * NJ_SEC;
    w->ts = byte(w) & 1;
    w->reads = true;
    w->irs[0] = UINT32_MAX - 100;
    w->irs[1] = 77;
    struct nj_tcp_config c = {
        .mp = w->pool,
        .counters = &w->counters,
        .seed = 1,
        .conns_max = 8,
        .half_open_max = 1, /* the second one gets a cookie */
        .time_wait_max = 1,
        .mtu = 1500,
        .time_wait = 60 * NJ_SEC,
        .emit = emit,
        .room = room,
        .ctx = w,
    };
    NJ_CHECK(nj_tcp_init(&w->tcp, &c, w->now));
    NJ_CHECK(nj_tcp_listen(&w->tcp, &(struct nj_listener){.port = 80}));
    for (unsigned i = 0; i < STEPS_MAX && w->left > 0; i++)
        one_step(w);
    end(w);
    free(w);
    return 0;
}
