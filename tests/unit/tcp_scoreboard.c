/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * * The scoreboard (RFC 6675 3): transfers through a network that loses, delays and reorders, to a
 * * peer with SACK and D-SACK, or without. The runs must cover the data in flight without a gap, *
 * SACKed data must not be retransmitted, and all must arrive, however few runs there are.
 */
#include "base/prng.h"
#include "tcp/seq.h"

#include "support/tcp_flight.h"

#define STREAM_MAX  (160u * 1024u)
#define PACKETS_MAX 2048u
#define RUNS_MAX    64u

/* A segment that we sent or an ACK of the peer, in flight. Numbers are relative. */
struct packet {
    nj_ns at;
    bool ours, fin;
    uint32_t seq, end; /* ours: without the FIN */
    uint32_t ack;
    struct nj_sack_block sack[NJ_SACK_BLOCKS_MAX];
};

struct net {
    struct world w;
    struct nj_prng r;
    struct packet packet[PACKETS_MAX];
    uint32_t n_packets;
    uint32_t loss_pm; /* per mille, either way */
    nj_ns delay, jitter;

    /* The peer: which numbers it has, the FIN's too. */
    uint8_t got[STREAM_MAX + 2];
    uint32_t rcv_nxt;

    uint8_t known[STREAM_MAX + 2]; /* the sender got an ACK or SACK of it */
    bool sack;
    bool strict; /* bytes in `known` must not be sent again */
    uint32_t n_bytes, n_again;
};

static void throw(struct net * n, struct packet *p)
{
    if (nj_prng_below(&n->r, 1000) < n->loss_pm)
        return;
    p->at = n->w.now + n->delay + (n->jitter ? nj_prng_below(&n->r, (uint32_t)n->jitter) : 0);
    cr_assert_lt(n->n_packets, PACKETS_MAX);
    n->packet[n->n_packets++] = *p;
}

/* --- the peer -------------------------------------------------------------------------------- */

static struct nj_sack_block block_at(const struct net *n, uint32_t seq)
{
    struct nj_sack_block b = {seq, seq};
    while (b.first > n->rcv_nxt && n->got[b.first - 1])
        b.first--;
    while (n->got[b.end])
        b.end++;
    return b;
}

/* D-SACK if all of it had arrived before; then the block to which it belongs; then random others.
 */
static void answer(struct net *n, uint32_t seq, bool dup, uint32_t dup_end)
{
    struct packet a = {.ack = n->rcv_nxt};
    uint32_t n_blocks = 0, at, last = n->n_bytes + 1;

    if (dup)
        a.sack[n_blocks++] = (struct nj_sack_block){seq, dup_end};
    if (seq > n->rcv_nxt && n->got[seq])
        a.sack[n_blocks++] = block_at(n, seq);
    at = n->rcv_nxt + nj_prng_below(&n->r, 20000);
    for (bool wrapped = false; n_blocks < 3;) {
        const uint8_t *next = at <= last ? memchr(n->got + at, 1, last + 1 - at) : NULL;
        if (!next && wrapped)
            break;
        if (!next) {
            wrapped = true;
            at = n->rcv_nxt;
            continue;
        }
        at = (uint32_t)(next - n->got);
        struct nj_sack_block b = block_at(n, at);
        bool there = false;
        for (uint32_t k = dup; k < n_blocks; k++)
            there |= a.sack[k].first == b.first;
        if (!there)
            a.sack[n_blocks++] = b;
        at = b.end;
    }
    throw(n, &a);
}

static void peer_takes(struct net *n, const struct packet *p)
{
    uint32_t end = p->end + p->fin;
    bool dup = end > p->seq;

    for (uint32_t s = p->seq; s < end; s++) {
        dup &= n->got[s];
        n->got[s] = 1;
    }
    while (n->got[n->rcv_nxt])
        n->rcv_nxt++;
    answer(n, p->seq, dup, end);
}

/* --- the machine ----------------------------------------------------------------------------- */

static void check_runs(struct net *n)
{
    const struct nj_tcb *t = n->w.tcb;
    if (!t || !t->x || t->state < NJ_TCP_ESTABLISHED)
        return;
    const struct nj_xfer *x = t->x;
    uint32_t at = t->snd_una, bytes[3] = {0}, n_runs = 0;

    for (const struct nj_sent_run *r = nj_sent_run_first(x); r; r = nj_sent_run_next(x, r)) {
        cr_assert_eq(r->seq, at, "a gap between runs");
        cr_assert(nj_seq_lt(r->seq, r->end), "an empty run");
        bytes[r->fate] += r->end - r->seq;
        at = r->end;
        n_runs++;
    }
    cr_assert_eq(at, t->snd_nxt);
    cr_assert_eq(n_runs, x->n_runs);
    expect_order(x);
    cr_assert_eq(bytes[NJ_RUN_IN_FLIGHT], x->n_flight);
    cr_assert_eq(bytes[NJ_RUN_SACKED], x->n_sacked);
    cr_assert_eq(bytes[NJ_RUN_LOST], x->n_lost);
    if (t->snd_una != t->snd_nxt)
        cr_assert_neq(x->rexmit_at, NJ_NEVER, "the retransmission timer is not armed");
}

static void machine_sends(struct net *n)
{
    struct world *w = &n->w;

    for (struct dsl_out *o; (o = nj_dsl_take(w));) {
        uint32_t len = o->seg.payload_bytes;
        bool fin = o->seg.flags & NJ_TCP_FIN;
        if (len == 0 && !fin)
            continue;
        struct packet p = {.ours = true, .seq = o->rel_seq, .end = o->rel_seq + len, .fin = fin};
        cr_assert_leq(p.end + fin, n->n_bytes + 2);
        for (uint32_t s = p.seq; s < p.end + fin; s++)
            if (n->strict)
                cr_assert_not(n->known[s], "%u was SACKed, and sent again", s);
        throw(n, &p);
    }
    w->n_out = w->next_out = 0;
}

static void machine_receives(struct net *n, const struct packet *p)
{
    struct world *w = &n->w;
    uint32_t una = w->tcb ? w->tcb->snd_una - w->iss : 0;
    struct dsl_seg s = {.flags = A, .seq = 1, .ack = p->ack};

    if (n->sack)
        memcpy(s.sack, p->sack, sizeof s.sack);
    nj_dsl_feed(w, &s);
    if (p->ack < una)
        return; /* out of date: not looked at */
    for (uint32_t i = 0; n->sack && i < NJ_SACK_BLOCKS_MAX; i++)
        for (uint32_t k = p->sack[i].first; p->ack < k && k < p->sack[i].end; k++)
            n->known[k] = 1;
    memset(n->known, 1, p->ack);
}

static void write_some(struct net *n)
{
    struct world *w = &n->w;
    uint32_t left = n->n_bytes - w->n_written;

    if (!w->tcb || w->tcb->state != NJ_TCP_ESTABLISHED)
        return;
    uint32_t want = 1 + nj_prng_below(&n->r, 20000), room = nj_tcp_send_room(w->tcb);
    want = want < left ? want : left;
    if (want > 0 && want <= room)
        nj_dsl_write(w, want);
    if (w->n_written == n->n_bytes)
        nj_dsl_close(w);
}

static void turn(struct net *n)
{
    struct world *w = &n->w;
    nj_ns next = nj_tcp_next_deadline(&w->tcp);

    if (next <= w->now)
        next = w->now + NJ_MS;
    for (uint32_t i = 0; i < n->n_packets; i++)
        if (n->packet[i].at < next)
            next = n->packet[i].at;
    w->now = next > w->now ? next : w->now;
    for (uint32_t i = 0; i < n->n_packets;) {
        struct packet p = n->packet[i];
        if (p.at > w->now) {
            i++;
            continue;
        }
        n->packet[i] = n->packet[--n->n_packets];
        if (p.ours)
            peer_takes(n, &p);
        else
            machine_receives(n, &p);
        check_runs(n);
    }
    write_some(n);
    nj_dsl_step(w);
    check_runs(n);
    machine_sends(n);
}

static void open_net(struct net *n, uint64_t seed, uint32_t runs_max, bool ts)
{
    struct world *w = &n->w;
    uint16_t mss = 400;

    memset(n, 0, sizeof *n);
    nj_prng_init(&n->r, seed);
    nj_dsl_init(w, &(struct dsl_options){
                       .pool_mbufs = 1024, .has_iss = true, .iss = 0u - 30000u}); /* wraps */
    mss = (uint16_t)(mss + nj_prng_below(&n->r, 1061));
    n->sack = nj_prng_below(&n->r, 4) != 0;
    SEND(w, .flags = S, .mss = mss, .sack_ok = n->sack, .ts = ts, .wscale_p1 = 8);
    EXPECT(w, .flags = SA, .ack = 1);
    w->ts = ts;
    SEND(w, .flags = A, .seq = 1, .ack = 1);
    if (runs_max)
        w->tcp.runs.n_max = runs_max + NJ_SENT_RUNS_RESERVED * w->tcp.cfg.conns_max;
    n->rcv_nxt = 1;
    n->got[0] = 1;
    n->strict = n->sack && runs_max == 0;
    n->n_bytes = 20000 + nj_prng_below(&n->r, STREAM_MAX - 20000);
    n->loss_pm = nj_prng_below(&n->r, 4) * 40;
    n->delay = (1 + nj_prng_below(&n->r, 50)) * MS;
    n->jitter = nj_prng_below(&n->r, 3) * n->delay / 4;
}

static void transfer(struct net *n, uint64_t seed, uint32_t runs_max)
{
    struct world *w = &n->w;

    open_net(n, seed, runs_max, seed % 2);
    nj_ns began = w->now;
    while (n->rcv_nxt < n->n_bytes + 2 || nj_dsl_state(w) != NJ_TCP_FIN_WAIT_2) {
        turn(n);
        cr_assert_not(w->dead, "seed %lu: gave up", (unsigned long)seed);
        cr_assert_lt(w->now - began, 600 * SEC, "seed %lu: hangs", (unsigned long)seed);
    }
    cr_assert_eq(w->tcp.runs.n_used, 0);
    nj_dsl_fini(w);
}

/* Sentences 54, 74, 75; RFC 6675 3. */
Test(tcp_scoreboard, nothing_that_arrived_goes_again, .timeout = 100)
{
    struct net *n = malloc(sizeof *n);
    for (uint64_t seed = 1; seed <= 300; seed++)
        transfer(n, seed, 0);
    free(n);
}

/* With few runs it is coarser, but the transfer completes. */
Test(tcp_scoreboard, few_runs, .timeout = 100)
{
    struct net *n = malloc(sizeof *n);
    for (uint64_t seed = 1; seed <= 100; seed++)
        transfer(n, seed, 1 + (uint32_t)seed % 7);
    free(n);
}

/* Other connections use all shared runs: each connection keeps its reserved runs. */
Test(tcp_scoreboard, first_run_is_always_there)
{
    for (unsigned closed = 0; closed < 2; closed++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1000, .sack_ok = true});
        w.tcp.runs.n_max = RUNS_MAX + NJ_SENT_RUNS_RESERVED * w.tcp.cfg.conns_max;
        w.tcp.n_runs_shared = RUNS_MAX;
        if (closed)
            SEND(&w, .flags = A, .seq = 1, .ack = 1, .no_wnd = true);
        WRITE(&w, 3000);
        nj_dsl_run(&w, 1 * SEC);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .len = closed ? 1 : 1000);
        w.next_out = w.n_out;
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{1001, 2001}});
        SEND(&w, .flags = A, .seq = 1, .ack = w.tcb->snd_nxt - w.iss);
        SEND(&w, .flags = A, .seq = 1, .ack = 3001);
        cr_expect_eq(w.tcb->x->sndq.n_bytes, 0);
        cr_expect_eq(w.tcp.n_runs_shared, RUNS_MAX);
        nj_dsl_fini(&w);
    }
}

/* A FIN is a number like another: it can be SACKed, or be all that is missing. Sentence 107. */
Test(tcp_scoreboard, fin_in_runs)
{
    struct world w;
    open_flight(&w, NULL);
    nj_dsl_write(&w, 3 * MSS);
    CLOSE(&w);
    expect_full(&w, 0, 2);
    EXPECT(&w, .flags = FA, .seq = 1 + 2 * MSS, .ack = 1, .len = MSS);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{1 + MSS, 2 + 3 * MSS}}); /* with the FIN */
    nj_dsl_run(&w, 30 * MS);
    expect_full(&w, 0, 1);
    NOTHING(&w);
    SEND(&w, .flags = A, .seq = 1, .ack = 2 + 3 * MSS);
    STATE(&w, FIN_WAIT_2);
    nj_dsl_fini(&w);

    open_flight(&w, NULL);
    nj_dsl_write(&w, 3 * MSS);
    CLOSE(&w);
    w.next_out = w.n_out;
    nj_dsl_run(&w, 100 * MS); /* the peer accepted the text and not the FIN */
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {SEGS(1, 3)});
    nj_dsl_run(&w, 30 * MS);
    expect_full(&w, 0, 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 3 * MSS);
    nj_dsl_run(&w, 500 * MS);
    EXPECT(&w, .flags = FA, .seq = 1 + 3 * MSS, .ack = 1);
    SEND(&w, .flags = A, .seq = 1, .ack = 2 + 3 * MSS);
    STATE(&w, FIN_WAIT_2);
    nj_dsl_fini(&w);
}

/* RFC 2018 8: the peer SACKed them and then threw them away. After a time-out they go again. */
Test(tcp_scoreboard, reneging)
{
    struct world w;
    open_flight(&w, NULL);
    WRITE(&w, 5 * MSS);
    expect_full(&w, 0, 5);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {SEGS(1, 3)});
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS); /* and not 3 MSS: they are gone */
    nj_dsl_run(&w, 900 * MS);
    struct dsl_out *o = NULL, *last;
    while ((last = nj_dsl_take(&w)))
        o = last;
    cr_assert_not_null(o);
    cr_expect_eq(o->rel_seq, 1 + MSS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 2 * MSS);
    w.next_out = w.n_out - 2;
    expect_full(&w, 2, 2);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + 5 * MSS);
    cr_expect_eq(w.tcb->x->sndq.n_bytes, 0);
    nj_dsl_fini(&w);
}

/* RFC 2018 3, RFC 5961 5: invalid blocks are ignored, each on its own. */
Test(tcp_scoreboard, blocks_that_make_no_sense)
{
    struct world w;
    open_flight(&w, NULL);
    WRITE(&w, 5 * MSS);
    expect_full(&w, 0, 5);
    static const struct nj_sack_block bad[] = {
        {1 + 3 * MSS, 1 + 2 * MSS},   /* backwards */
        {1 + 4 * MSS, 2 + 5 * MSS},   /* beyond the sent data */
        {1 + 90 * MSS, 1 + 91 * MSS}, /* ... all of it */
        {1, 1 + MSS},                 /* within the data that the ACK reports as missing */
    };
    for (unsigned i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {bad[i]});
        cr_expect_eq(w.tcb->x->n_sacked, 0, "block %u", i);
    }
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack = {bad[1], SEGS(2, 3), bad[0], SEGS(3, 4)});
    cr_expect_eq(w.tcb->x->n_sacked, 2 * MSS);
    nj_dsl_fini(&w);
}

/* `n` segments, each a run of its own. */
static void fly_apart(struct world *w, uint32_t n)
{
    open_flight(w, NULL);
    w->tcb->cwnd = n * MSS;
    for (uint32_t i = 0; i < n; i++) {
        WRITE(w, MSS);
        w->now += 1 * MS;
    }
    expect_full(w, 0, n);
    cr_assert_eq(w->tcb->x->n_runs, n);
}

#define SACK(w, ...) FEED(w, .flags = A, .seq = 1, .ack = 1, .sack = {__VA_ARGS__})

/* Received data takes one run between two holes, independent of how it was sent and SACKed. Runs
 * with retransmitted data are marked (Karn). */
Test(tcp_scoreboard, what_arrived_is_one_run)
{
    struct world w;
    fly_apart(&w, 10);
    SACK(&w, SEGS(3, 4));
    SACK(&w, SEGS(5, 6), SEGS(3, 4));
    cr_expect_eq(w.tcb->x->n_runs, 10);
    SACK(&w, SEGS(3, 6));
    cr_expect_eq(w.tcb->x->n_runs, 8);
    SACK(&w, SEGS(2, 6));
    SACK(&w, SEGS(2, 7));
    cr_expect_eq(w.tcb->x->n_runs, 6);
    nj_sent_run_next(w.tcb->x, nj_sent_run_first(w.tcb->x))->again = true; /* number 1 */
    SACK(&w, SEGS(1, 10));
    cr_expect_eq(w.tcb->x->n_runs, 3);
    cr_expect_eq(w.tcb->x->n_sacked, 9 * MSS);
    SEND(&w, .flags = A, .seq = 1, .ack = AT(10));
    cr_expect_eq(w.tcb->x->n_runs, 0);
    w.next_out = w.n_out;
    nj_dsl_fini(&w);
}

/* Blocks count as much in one order as in another, also where they overlap. */
Test(tcp_scoreboard, blocks_in_any_order)
{
    static const struct nj_sack_block b[] = {SEGS(1, 4), SEGS(3, 6), SEGS(2, 3), SEGS(8, 9)};
    for (unsigned i = 0; i < 4 * 4 * 4 * 4; i++) {
        unsigned o[] = {i % 4, i / 4 % 4, i / 16 % 4, i / 64}, n = 0;
        for (unsigned k = 0; k < 4; k++)
            n |= 1u << o[k];
        bool second = b[o[1]].first <= b[o[0]].first && b[o[0]].end <= b[o[1]].end;
        if (n != 15 || second) /* the first within the second is a D-SACK */
            continue;
        struct world w;
        fly_apart(&w, 10);
        SACK(&w, b[o[0]], b[o[1]], b[o[2]], b[o[3]]);
        cr_expect_eq(w.tcb->x->n_sacked, 6 * MSS, "order %u%u%u%u", o[0], o[1], o[2], o[3]);
        cr_expect_eq(w.tcb->x->n_runs, 6);
        nj_dsl_fini(&w);
    }
}

/* RFC 8985 6.2 step 3: the ACK of the lower block was lost, and the most recent block is first. */
Test(tcp_scoreboard, a_lost_ack_is_no_reordering)
{
    struct world w;
    fly_apart(&w, 10);
    SACK(&w, SEGS(5, 6), SEGS(2, 3));
    cr_expect_not(w.tcb->x->reordering);
    SACK(&w, SEGS(8, 9), SEGS(7, 8), SEGS(5, 6), SEGS(2, 3));
    cr_expect_not(w.tcb->x->reordering);
    SACK(&w, SEGS(4, 6), SEGS(7, 9), SEGS(2, 3)); /* but this is */
    cr_expect(w.tcb->x->reordering);
    nj_dsl_fini(&w);
}

/* RFC 8985 5.3, RACK.fack: an ACK of the first part of a burst updates RACK for that part only. */
Test(tcp_scoreboard, part_of_a_burst_is_no_reordering)
{
    struct world w;
    open_flight(&w, NULL);
    WRITE(&w, 10 * MSS);
    expect_full(&w, 0, 10);
    nj_dsl_run(&w, 100 * MS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS);
    cr_expect_eq(w.tcb->x->rack_fack - w.iss, 1 + MSS);
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS, .sack = {SEGS(2, 3)});
    SEND(&w, .flags = A, .seq = 1, .ack = 1 + MSS, .sack = {SEGS(2, 4)});
    cr_expect_not(w.tcb->x->reordering);
    nj_dsl_fini(&w);
}
