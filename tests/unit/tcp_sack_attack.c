/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * * Attacks by SACK blocks. On a shard with many connections all but one exhaust the scoreboard's *
 * runs. The recovery of the remaining one must be the same, packet by packet and in time, as if it
 * * were alone. SACKs must not split retransmissions into small segments (CVE-2019-11479).
 */
#include "support/tcp_flight.h"
#include "telem/counters.h"

#include <stdlib.h>

#include <rte_tcp.h>

#define ATTACKERS   64u
#define TRACE_MAX   512u
#define SEGS_MAX    64u
#define ATTACK_RUNS 1100u /* of one attacker: 70,400 of all, where the shard shares 65,536 */

struct flow {
    struct nj_tuple tuple;
    struct nj_tcb *tcb;
    uint32_t iss, irs;
    uint32_t n_out; /* segments with text */
};

struct shot {
    nj_ns at;
    uint32_t seq, len; /* relative */
    uint8_t flags;
};

/* A segment of the victim's on its way to its peer, or the peer's answer. */
struct hop {
    nj_ns at;
    bool back;
    uint32_t seq, end;
    uint32_t ack;
    struct nj_sack_block sack[3];
};

struct rig {
    struct nj_tcp tcp;
    struct nj_counters counters;
    struct rte_mempool *pool, *rx_pool;
    nj_ns now;
    struct flow flow[1 + ATTACKERS]; /* the first is the victim */
    uint32_t n_attackers;

    struct shot trace[TRACE_MAX]; /* of the victim, from when its transfer begins */
    uint32_t n_trace;
    bool tracing;
    struct hop hop[256];
    uint32_t n_hops;
    uint64_t lost; /* bit n: the first copy of segment n is lost */
    uint8_t seen[SEGS_MAX], got[SEGS_MAX];
};

static struct nj_addr address(uint8_t last)
{
    return (struct nj_addr){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 0, last}};
}

static void victim_sent(struct rig *g, uint32_t seq, uint32_t len, uint8_t flags, nj_ns now)
{
    if (!g->tracing)
        return;
    cr_assert_lt(g->n_trace, TRACE_MAX);
    g->trace[g->n_trace++] = (struct shot){now, seq, len, flags};
    for (uint32_t at = seq; at < seq + len;) {
        uint32_t n = (at - 1) / MSS, end = 1 + (n + 1) * MSS;
        end = end < seq + len ? end : seq + len;
        cr_assert_lt(n, SEGS_MAX);
        bool drop = !g->seen[n]++ && (g->lost >> n & 1);
        cr_assert_lt(g->n_hops, NJ_ARRAY_LEN(g->hop));
        if (!drop)
            g->hop[g->n_hops++] = (struct hop){.at = now + 50 * MS, .seq = at, .end = end};
        at = end;
    }
}

static void emit(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct rig *g = ctx;
    const struct rte_tcp_hdr *h = rte_pktmbuf_mtod(m, const struct rte_tcp_hdr *);
    uint32_t len = m->pkt_len - (h->data_off >> 4) * 4u, seq = rte_be_to_cpu_32(h->sent_seq);

    for (uint32_t i = 0; i <= g->n_attackers; i++) {
        struct flow *f = &g->flow[i];
        if (f->tuple.rport != rte_be_to_cpu_16(h->dst_port) ||
            !nj_addr_eq(&f->tuple.remote, &ip->dst))
            continue;
        if (h->tcp_flags & S)
            f->iss = seq;
        f->n_out += len > 0;
        if (i == 0)
            victim_sent(g, seq - f->iss, len, h->tcp_flags, now);
    }
    rte_pktmbuf_free(m);
}

static uint32_t room(void *ctx)
{
    (void)ctx;
    return 1000;
}

static void feed(struct rig *g, struct flow *f, uint8_t flags, uint32_t ack,
                 const struct nj_sack_block *sack, uint8_t n_sack)
{
    struct nj_seg seg = {.tuple = f->tuple,
                         .seq = f->irs + !(flags & S),
                         .ack = flags & A ? f->iss + ack : 0,
                         .wnd = 65000,
                         .flags = flags,
                         .opts = {.has_mss = flags & S,
                                  .mss = MSS,
                                  .sack_permitted = flags & S,
                                  .has_wscale = flags & S,
                                  .wscale = 8,
                                  .n_sack = n_sack}};

    for (uint8_t i = 0; i < n_sack; i++)
        seg.opts.sack[i] = (struct nj_sack_block){f->iss + sack[i].first, f->iss + sack[i].end};
    struct nj_flow *flow =
        nj_flow_find(&g->tcp.flows, nj_flow_hash(&g->tcp.flows, &f->tuple), &f->tuple);
    nj_tcp_input(&g->tcp, flow, nj_test_mbuf(g->rx_pool, "", 0), &seg, g->now);
}

static void step(struct rig *g)
{
    struct nj_tcb *t;
    uint8_t events;

    nj_tcp_tick(&g->tcp, g->now);
    while ((t = nj_tcp_next_ready(&g->tcp.ready, &events)))
        for (uint32_t i = 0; i <= g->n_attackers; i++)
            if (t->flow.tuple.rport == g->flow[i].tuple.rport) {
                t->user = g;
                g->flow[i].tcb = t;
                cr_assert_not(events & NJ_TCP_EV_DEAD);
            }
    while (!nj_list_empty(&g->tcp.pending) && nj_tcp_output_pending(&g->tcp, g->now) == 0) {
    }
}

static void open_flow(struct rig *g, uint32_t i)
{
    struct flow *f = &g->flow[i];

    *f = (struct flow){.tuple = {.remote = address((uint8_t)(10 + i)),
                                 .local = address(1),
                                 .rport = (uint16_t)(40000 + i),
                                 .lport = DSL_PORT},
                       .irs = 7000 * i};
    feed(g, f, S, 0, NULL, 0);
    step(g);
    feed(g, f, A, 1, NULL, 0);
    step(g);
    cr_assert_not_null(f->tcb);
}

/* `n` bytes for the peer, which go with the next step. */
static void write_bytes(struct rig *g, struct flow *f, uint32_t n)
{
    uint8_t *data = calloc(1, n);
    cr_assert(nj_tcp_send_copy(&g->tcp, f->tcb, data, n));
    free(data);
}

static struct rig *rig_new(uint32_t n_attackers)
{
    struct rig *g = calloc(1, sizeof *g);

    g->now = 1000 * SEC;
    g->n_attackers = n_attackers;
    g->pool = nj_test_pool(8192);
    g->rx_pool = nj_test_pool(64);
    struct nj_tcp_config c = {.mp = g->pool,
                              .counters = &g->counters,
                              .flow_key = {{1}},
                              .isn_key = {{2}},
                              .seed = 3,
                              .conns_max = 128,
                              .half_open_max = 8,
                              .mtu = 1500,
                              .time_wait = 60 * SEC,
                              .emit = emit,
                              .room = room,
                              .ctx = g};
    cr_assert(nj_tcp_init(&g->tcp, &c, g->now));
    cr_assert(nj_tcp_listen(&g->tcp, &(struct nj_listener){.port = DSL_PORT}));
    return g;
}

static void rig_free(struct rig *g)
{
    nj_tcp_fini(&g->tcp);
    nj_test_pool_free(g->pool);
    nj_test_pool_free(g->rx_pool);
    free(g);
}

/* --- the victim's peer: a round trip of 100 ms, an ACK for each segment ----------------------- */

static void peer_receives(struct rig *g, const struct hop *h)
{
    struct hop a = {.at = g->now + 50 * MS, .back = true};
    uint32_t n = (h->seq - 1) / MSS, k = 0;

    g->got[n] = 1;
    while (k < SEGS_MAX && g->got[k])
        k++;
    a.ack = AT(k);
    uint32_t n_blocks = 0;
    for (uint32_t pass = 0; pass < 2; pass++) /* the one that changed first */
        for (uint32_t i = k, end; i < SEGS_MAX && n_blocks < 3; i = end + 1) {
            for (end = i; end < SEGS_MAX && g->got[end]; end++) {
            }
            bool changed = i <= n && n < end;
            if (end > i && changed == (pass == 0))
                a.sack[n_blocks++] = (struct nj_sack_block){AT(i), AT(end)};
        }
    g->hop[g->n_hops++] = a;
}

static void deliver(struct rig *g)
{
    for (uint32_t i = 0; i < g->n_hops;) {
        struct hop h = g->hop[i];
        if (h.at > g->now) {
            i++;
            continue;
        }
        memmove(&g->hop[i], &g->hop[i + 1], (g->n_hops - i - 1) * sizeof g->hop[0]);
        g->n_hops--;
        if (h.back) {
            uint8_t n = 0;
            while (n < 3 && h.sack[n].end != 0)
                n++;
            feed(g, &g->flow[0], A, h.ack, h.sack, n);
        } else {
            peer_receives(g, &h);
        }
    }
}

/* The victim's transfer of 60 segments, while `attack` runs. */
static void transfer(struct rig *g, uint64_t lost, void (*attack)(struct rig *, uint32_t round))
{
    struct flow *f = &g->flow[0];

    g->lost = lost;
    f->tcb->cwnd = 40 * MSS;
    f->tcb->srtt_us = 100000; /* as the handshake would have shown it over this path */
    f->tcb->rttvar_us = 10000;
    g->tracing = true;
    write_bytes(g, f, 60 * MSS);
    for (uint32_t ms = 0; ms < 1500; ms++) {
        deliver(g);
        if (attack && g->n_attackers)
            attack(g, ms);
        step(g);
        g->now += 1 * MS;
    }
    cr_assert_eq(f->tcb->snd_una - f->iss, AT(60), "the transfer is not complete");
    g->tracing = false;
}

static void expect_same_trace(const struct rig *alone, const struct rig *among)
{
    for (uint32_t i = 0; i < alone->n_trace && i < among->n_trace; i++) {
        const struct shot *a = &alone->trace[i], *b = &among->trace[i];
        cr_assert(a->at == b->at && a->seq == b->seq && a->len == b->len && a->flags == b->flags,
                  "packet %u: alone %u+%u at %lu us, among attackers %u+%u at %lu us", i, a->seq,
                  a->len, (unsigned long)(a->at / NJ_US), b->seq, b->len,
                  (unsigned long)(b->at / NJ_US));
    }
    cr_assert_eq(alone->n_trace, among->n_trace, "%u packets alone, %u among attackers",
                 alone->n_trace, among->n_trace);
    cr_assert_gt(alone->n_trace, 60, "nothing was retransmitted");
}

/* --- attacks ---------------------------------------------------------------------------------- */

/* Blocks of one byte: every other byte in flight. */
static void sack_bytes(struct rig *g, uint32_t round)
{
    for (uint32_t i = 1; i <= g->n_attackers; i++) {
        struct nj_sack_block b[3];
        for (uint32_t k = 0; k < 3; k++) {
            b[k].first = 3 + (round % 1500 * 3 + k) * 2;
            b[k].end = b[k].first + 1;
        }
        feed(g, &g->flow[i], A, 1, b, 3);
    }
}

static void byte_attack_setup(struct rig *g)
{
    for (uint32_t i = 1; i <= g->n_attackers; i++) {
        open_flow(g, i);
        write_bytes(g, &g->flow[i], 10 * MSS);
    }
    step(g);
    for (uint32_t round = 0; round < 600; round++)
        if (g->n_attackers)
            sack_bytes(g, round);
}

/* Many segments of 20 bytes, like answers to PING frames, each in a run of its own. Every other one
 * is SACKed, so that the runs are not merged. */
static void short_segments_setup(struct rig *g)
{
    for (uint32_t i = 1; i <= g->n_attackers; i++) {
        open_flow(g, i);
        g->flow[i].tcb->cwnd = 1u << 20;
    }
    for (uint32_t n = 0; n < ATTACK_RUNS; n++) {
        for (uint32_t i = 1; i <= g->n_attackers; i++)
            write_bytes(g, &g->flow[i], 20);
        g->now += 1 * NJ_US;
        step(g);
    }
    for (uint32_t n = 1; n + 6 < ATTACK_RUNS; n += 6)
        for (uint32_t i = 1; i <= g->n_attackers; i++) {
            const struct nj_sack_block b[3] = {{1 + n * 20, 21 + n * 20},
                                               {1 + (n + 2) * 20, 21 + (n + 2) * 20},
                                               {1 + (n + 4) * 20, 21 + (n + 4) * 20}};
            feed(g, &g->flow[i], A, 1, b, 3);
        }
}

#define LOST (1ull << 3 | 1ull << 7 | 1ull << 8 | 1ull << 21 | 1ull << 45)

static void compare(void (*setup)(struct rig *), void (*attack)(struct rig *, uint32_t))
{
    struct rig *g[2];

    for (unsigned i = 0; i < 2; i++) {
        g[i] = rig_new(i ? ATTACKERS : 0);
        setup(g[i]);
        open_flow(g[i], 0);
        transfer(g[i], LOST, attack);
    }
    expect_same_trace(g[0], g[1]);
    for (unsigned i = 0; i < 2; i++)
        rig_free(g[i]);
}

/* RFC 2018 5. */
Test(tcp_sack_attack, victim_of_one_byte_blocks)
{
    compare(byte_attack_setup, sack_bytes);
}

Test(tcp_sack_attack, victim_of_short_segments)
{
    compare(short_segments_setup, NULL);
}

/* With no shared runs left, the reserved runs of a connection suffice for a flight with a hole. */
Test(tcp_sack_attack, nothing_left_to_share)
{
    struct rig *g[2];

    for (unsigned i = 0; i < 2; i++) {
        g[i] = rig_new(0);
        if (i)
            g[i]->tcp.n_runs_shared = NJ_SENT_RUNS_SHARD;
        open_flow(g[i], 0);
        transfer(g[i], 1ull << 3, NULL);
    }
    expect_same_trace(g[0], g[1]);
    cr_expect_eq(g[1]->tcp.n_runs_shared, NJ_SENT_RUNS_SHARD);
    for (unsigned i = 0; i < 2; i++)
        rig_free(g[i]);
}

/* --- retransmissions after a time-out ----------------------------------------------------------
 */

/* Segments of at least full length, but for the last one of the stream, and ten of them at once. */
Test(tcp_sack_attack, blocks_within_segments_cut_nothing)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 10, 0);
    nj_dsl_run(&w, 100 * MS);
    for (uint32_t at = 3; at < 5 * MSS; at += 2)
        FEED(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{at, at + 1}});
    cr_expect_eq(w.tcb->x->n_runs, 1);
    cr_expect_eq(w.tcb->x->n_sacked, 0);
    /* From within segment 1 to within segment 5: only the whole segments between count. */
    FEED(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{AT(1) + 1, AT(6) - 1}});
    cr_expect_eq(w.tcb->x->n_sacked, 3 * MSS);
    nj_dsl_step(&w);
    while (nj_dsl_count(&w, NJ_C_tcp_rto) < 2)
        nj_dsl_run(&w, 10 * MS);
    for (struct dsl_out *o; (o = nj_dsl_take(&w));)
        if (o->seg.payload_bytes)
            cr_expect_eq(o->seg.payload_bytes, MSS, "%u bytes at %u", o->seg.payload_bytes,
                         o->rel_seq);
    nj_dsl_fini(&w);
}

/* The largest number of segments that left at one time since the last call. */
static uint32_t largest_burst(struct world *w)
{
    uint32_t most = 0, n = 0;
    nj_ns at = 0;

    for (struct dsl_out *o; (o = nj_dsl_take(w));) {
        n = o->at == at ? n + 1 : 1;
        at = o->at;
        most = n > most ? n : most;
    }
    w->n_out = w->next_out = 0;
    return most;
}

/* The application wrote short segments, between full ones that have arrived. One MSS holds 100 of
 * the short ones. */
Test(tcp_sack_attack, short_segments_after_a_time_out)
{
    struct world w;
    open_flight(&w, NULL);
    w.tcb->cwnd = 20 * MSS;
    for (uint32_t n = 0; n < 400; n++) {
        WRITE(&w, 10);
        w.now += 1 * NJ_US;
    }
    w.n_out = w.next_out = 0;
    while (nj_dsl_count(&w, NJ_C_tcp_rto) == 0)
        nj_dsl_run(&w, 1 * MS);
    largest_burst(&w);
    for (uint32_t n = 1; n < 400; n += 2) {
        uint32_t at = 1 + 10 * n;
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{at, at + 10}});
        cr_expect_leq(largest_burst(&w), 10);
    }
    while (nj_dsl_count(&w, NJ_C_tcp_rto) < 4) {
        nj_dsl_run(&w, 10 * MS);
        cr_expect_leq(largest_burst(&w), 10);
    }
    nj_dsl_fini(&w);
}

/* One ACK of many full segments: the segments for which the window then has room are sent in bursts
 * of ten, and do not wait for another ACK. */
Test(tcp_sack_attack, full_segments_after_a_time_out)
{
    struct world w;
    open_flight(&w, NULL);
    fly(&w, 60, 0);
    while (nj_dsl_count(&w, NJ_C_tcp_rto) == 0)
        nj_dsl_run(&w, 1 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(1)); /* F-RTO has no new data to send */
    w.n_out = w.next_out = 0;
    w.tcb->cwnd = 35 * MSS;
    SEND(&w, .flags = A, .seq = 1, .ack = AT(2));
    uint32_t n = w.n_out;
    cr_expect_eq(n, 10);
    nj_dsl_run(&w, 20 * MS);
    cr_expect_geq(w.n_out, 34, "the rest waits for an ACK");
    cr_expect_leq(largest_burst(&w), 10);
    nj_dsl_fini(&w);
}
