/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * * RACK walks the runs in the order of their last send time, no farther than necessary (RFC 8985
 * 6.2 * step 5). On random scoreboards it must find the same losses as a walk over all runs.
 * NJ_SEED * replays a seed.
 */
#include "base/prng.h"
#include "support/tcp_flight.h"
#include "tcp/seq.h"

#define SEEDS    60u
#define STEPS    1500u
#define RUNS_FEW 12u /* shared ones, in every third seed: some splits and pushes find none */

struct board {
    struct world w;
    struct nj_prng r;
    uint32_t n_lost, n_waits, n_unlost; /* how often it came to that */
};

static uint32_t below(struct board *b, uint32_t n)
{
    return nj_prng_below(&b->r, n);
}

static void open_board(struct board *b, uint64_t seed)
{
    struct world *w = &b->w;

    memset(b, 0, sizeof *b);
    nj_prng_init(&b->r, seed);
    nj_dsl_init(w, &(struct dsl_options){.has_iss = true, .iss = 0u - 100000u}); /* wraps */
    nj_dsl_open_with(w, &(struct dsl_seg){.mss = MSS, .sack_ok = true});
    if (seed % 3 == 0)
        w->tcp.runs.n_max = RUNS_FEW + NJ_SENT_RUNS_RESERVED * w->tcp.cfg.conns_max;
    w->tcb->srtt_us = w->tcb->min_rtt_us = 1000;
}

/* --- random changes of the scoreboard by ACKs and by sending ---------------------------------- */

static void push(struct board *b)
{
    struct world *w = &b->w;
    uint32_t n = below(b, 2) ? MSS * (1 + below(b, 5)) : 1 + below(b, MSS);

    if (w->tcb->snd_nxt - w->tcb->snd_una < 1000 * MSS &&
        nj__scoreboard_can_append(&w->tcp, w->tcb))
        nj__scoreboard_append(&w->tcp, w->tcb, n, w->now);
}

static void again(struct board *b)
{
    struct world *w = &b->w;
    struct nj_sent_run *r = nj__scoreboard_first_lost(w->tcb->x);
    uint32_t max;

    if (!r)
        return;
    max = nj__scoreboard_rexmit_max(w->tcb, r);
    if (nj_seq_lt(w->tcb->snd_nxt, r->seq + max))
        max = w->tcb->snd_nxt - r->seq;
    nj__scoreboard_rexmitted(&w->tcp, w->tcb, r, r->seq + (below(b, 3) ? max : 1 + below(b, max)),
                             w->now);
}

static void tail_again(struct board *b)
{
    struct world *w = &b->w;
    struct nj_sent_run *last = nj_sent_run_last(w->tcb->x);

    if (!last || last->fate != NJ_RUN_IN_FLIGHT)
        return;
    last = nj__scoreboard_split_tail(&w->tcp, w->tcb, MSS);
    nj__scoreboard_rexmitted(&w->tcp, w->tcb, last, last->end, w->now);
}

/* A number in flight; often one where a run begins or ends. */
static uint32_t some_seq(struct board *b)
{
    const struct nj_tcb *t = b->w.tcb;
    uint32_t seq = t->snd_una + below(b, t->snd_nxt - t->snd_una + 1);

    for (const struct nj_sent_run *r = nj_sent_run_first(t->x); r && below(b, 4);
         r = nj_sent_run_next(t->x, r))
        if (nj_seq_le(r->seq, seq) && nj_seq_lt(seq, r->end))
            return below(b, 2) ? r->seq : r->end;
    return seq;
}

static void sack(struct board *b)
{
    struct world *w = &b->w;
    struct nj_ack_result news = {0};
    struct nj_seg seg = {.ack = w->tcb->snd_una, .opts.n_sack = (uint8_t)(1 + below(b, 3))};

    for (uint8_t i = 0; i < seg.opts.n_sack; i++) {
        uint32_t one = some_seq(b), other = below(b, 2) ? one + MSS : some_seq(b);
        seg.opts.sack[i] = nj_seq_lt(one, other) ? (struct nj_sack_block){one, other}
                                                 : (struct nj_sack_block){other, one};
    }
    nj__scoreboard_process_sack_opt(&w->tcp, w->tcb, &seg, &news, w->now);
}

static void ack(struct board *b)
{
    struct world *w = &b->w;
    struct nj_tcb *t = w->tcb;
    struct nj_ack_result news = {0};
    uint32_t seq = some_seq(b);

    if (below(b, 3))
        seq = t->snd_una + (seq - t->snd_una) / 8;
    nj__scoreboard_ack(&w->tcp, t, seq, &news, w->now);
    t->snd_una = seq;
}

static void unlose(struct board *b)
{
    b->n_unlost += b->w.tcb->x->n_lost > 0;
    nj__scoreboard_unmark_all_lost(b->w.tcb->x);
}

static void give_up(struct board *b)
{
    struct world *w = &b->w;

    switch (below(b, 4)) {
    case 0: /* a smaller path MTU */
        nj__scoreboard_lose_until(&w->tcp, w->tcb, w->tcb->snd_nxt);
        w->tcb->snd_mss = (uint16_t)(MSS / 2 + below(b, MSS / 2));
        nj__scoreboard_resegment(&w->tcp, w->tcb);
        w->tcb->snd_mss = MSS;
        break;
    case 1:
        nj__scoreboard_lose_sacked(w->tcb);
        break;
    default:
        nj__scoreboard_lose_until(&w->tcp, w->tcb, some_seq(b));
    }
}

static void change(struct board *b)
{
    uint32_t what = below(b, 100);

    if (below(b, 2))
        b->w.now += below(b, 300) * NJ_US;
    if (what < 45)
        push(b);
    else if (what < 65)
        sack(b);
    else if (what < 75)
        ack(b);
    else if (what < 92)
        again(b);
    else if (what < 95)
        tail_again(b);
    else if (what < 98)
        unlose(b);
    else
        give_up(b);
}

/* --- the walk over all runs ------------------------------------------------------------------- */

struct verdict {
    uint8_t fate[NJ_SENT_RUNS_MAX];
    bool lost;
    nj_ns reo_at;
};

/* RFC 8985 6.2 step 5. There is no reordering window: x->rack_rtt makes up for it. */
static void walk_all(const struct world *w, bool timed_out, struct verdict *v)
{
    const struct nj_xfer *x = w->tcb->x;
    uint32_t i = 0;
    nj_ns last = 0;

    v->lost = false;
    for (const struct nj_sent_run *r = nj_sent_run_first(x); r; r = nj_sent_run_next(x, r), i++) {
        nj_ns due = r->at + x->rack_rtt;
        bool counts = timed_out || (x->rack_at != 0 &&
                                    nj_rack_sent_after(x->rack_at, x->rack_end, r->at, r->end));
        v->fate[i] = r->fate;
        if (r->fate != NJ_RUN_IN_FLIGHT || !counts)
            continue;
        if (due <= w->now) {
            v->fate[i] = NJ_RUN_LOST;
            v->lost = true;
        } else if (due > last) {
            last = due;
        }
    }
    v->reo_at = last ? last : NJ_NEVER;
}

static void compare(struct board *b)
{
    struct world *w = &b->w;
    struct nj_xfer *x = w->tcb->x;
    bool timed_out = below(b, 20) == 0;
    struct verdict v;
    uint32_t i = 0;

    x->ca = NJ_CA_RECOVERY;
    x->reordering = false;
    x->rack_rtt = (1 + below(b, 3000)) * NJ_US;
    if (timed_out) /* the first segment is sent in any case, and may be cut off */
        nj__scoreboard_lose_until(&w->tcp, w->tcb, w->tcb->snd_una + w->tcb->snd_mss);
    walk_all(w, timed_out, &v);
    if (timed_out) {
        nj__rack_timed_out(&w->tcp, w->tcb, w->now);
    } else {
        cr_assert_eq(nj__rack_mark_lost(w->tcb, w->now), v.lost);
        cr_assert_eq(x->reo_at, v.reo_at, "%" PRIu64 ", not %" PRIu64, x->reo_at, v.reo_at);
        b->n_lost += v.lost;
        b->n_waits += v.reo_at != NJ_NEVER;
    }
    for (const struct nj_sent_run *r = nj_sent_run_first(x); r; r = nj_sent_run_next(x, r), i++)
        cr_assert_eq(r->fate, v.fate[i], "run %u: %u, not %u", i, r->fate, v.fate[i]);
}

static void random_board(uint64_t seed)
{
    struct board b;

    open_board(&b, seed);
    for (uint32_t i = 0; i < STEPS; i++) {
        change(&b);
        expect_order(b.w.tcb->x);
        if (below(&b, 3) == 0) {
            compare(&b);
            expect_order(b.w.tcb->x);
        }
    }
    cr_assert(b.n_lost > 20 && b.n_waits > 20 && b.n_unlost > 5, "%u lost, %u wait, %u unlost",
              b.n_lost, b.n_waits, b.n_unlost);
    b.w.n_out = b.w.next_out = 0;
    nj_dsl_fini(&b.w);
}

/* Sentences 72, 75; RFC 8985 6.2 step 5. */
Test(tcp_rack_order, finds_what_a_walk_over_all_finds, .timeout = 100)
{
    const char *given = getenv("NJ_SEED");
    uint64_t first = given ? strtoull(given, NULL, 0) : 1;

    for (uint64_t seed = first; seed < first + (given ? 1 : SEEDS); seed++) {
        printf("NJ_SEED=%lu\n", (unsigned long)seed);
        fflush(stdout);
        random_board(seed);
    }
}

/* --- length of the walk ------------------------------------------------------------------------
 */

#define RUNS 2000u

static struct nj_sent_run *run(const struct world *w, uint32_t n)
{
    struct nj_sent_run *r = nj_sent_run_first(w->tcb->x);

    while (n-- > 0)
        r = nj_sent_run_next(w->tcb->x, r);
    return r;
}

/* Segment `n` arrives. */
static void receive(struct world *w, uint32_t n)
{
    struct nj_sack_block b = {w->iss + AT(n), w->iss + AT(n + 1)};
    struct nj_seg seg = {.ack = w->tcb->snd_una, .opts = {.n_sack = 1, .sack = {b}}};

    nj__scoreboard_process_sack_opt(&w->tcp, w->tcb, &seg, &(struct nj_ack_result){0}, w->now);
}

/* RUNS segments, one every microsecond, of which RACK has seen number `seen` arrive just now, a
 * millisecond after the last one left. */
static void open_runs(struct world *w, uint32_t seen)
{
    open_flight(w, NULL);
    for (uint32_t i = 0; i < RUNS; i++) {
        nj__scoreboard_append(&w->tcp, w->tcb, MSS, w->now);
        w->now += 1 * NJ_US;
    }
    cr_assert_eq(w->tcb->x->n_runs, RUNS);
    w->now += 1 * MS;
    receive(w, seen);
    w->tcb->x->ca = NJ_CA_RECOVERY;
}

/* Set the send times so that a wrong walk shows. Runs that were sent long ago would be found lost
 * if RACK looked at them. RACK has not overtaken runs that were sent later than all others. */
static void set_trap(struct world *w, uint32_t first, uint32_t end, nj_ns at)
{
    struct nj_sent_run *r = run(w, first);

    for (uint32_t i = first; i < end; i++, r = nj_sent_run_next(w->tcb->x, r))
        r->at = at;
}

static void close_runs(struct world *w)
{
    w->n_out = w->next_out = 0;
    nj_dsl_fini(w);
}

/* RFC 8985 6.2: "in the order of time sent". A round trip and a quarter has not passed for the
 * first run, so RACK looks at none of the runs behind it, except the one that becomes due last. */
Test(tcp_rack_order, stops_at_the_first_run_too_young)
{
    struct world w;

    open_runs(&w, RUNS - 1);
    w.tcb->x->reordering = true;
    w.tcb->srtt_us = w.tcb->min_rtt_us = 100000;
    cr_expect_not(nj__rack_mark_lost(w.tcb, w.now)); /* finds the run that was overtaken last */
    nj_ns last = run(&w, RUNS - 2)->at, due = last + w.tcb->x->rack_rtt + 25 * MS;
    cr_expect_eq(w.tcb->x->reo_at, due);
    set_trap(&w, 2, RUNS - 3, 1); /* the first two are looked at, if the first is lost */
    cr_expect_not(nj__rack_mark_lost(w.tcb, w.now));
    cr_expect_eq(w.tcb->x->n_lost, 0);
    cr_expect_eq(w.tcb->x->reo_at, due);
    set_trap(&w, 2, RUNS - 3, w.now);
    receive(&w, RUNS - 2); /* the run before it was overtaken last of those still in flight */
    w.tcb->min_rtt_us = 100000;
    cr_expect_not(nj__rack_mark_lost(w.tcb, w.now));
    cr_expect_eq(w.tcb->x->reo_at, due - 1 * NJ_US);
    set_trap(&w, 2, RUNS - 3, 1);
    w.tcb->x->ca = NJ_CA_OPEN;
    nj__rack_timed_out(&w.tcp, w.tcb, w.now);
    cr_expect_eq(w.tcb->x->n_lost, MSS, "the first one, at a time-out");
    close_runs(&w);
}

/* The runs before number 100 are lost. The runs behind it were sent later than number 100. */
Test(tcp_rack_order, stops_at_the_first_run_not_overtaken)
{
    struct world w;

    open_runs(&w, 100);
    set_trap(&w, 102, RUNS, 1);
    cr_expect(nj__rack_mark_lost(w.tcb, w.now));
    cr_expect_eq(w.tcb->x->n_lost, 100 * MSS);
    cr_expect_eq(w.tcb->x->reo_at, NJ_NEVER);
    cr_expect_not(nj__rack_mark_lost(w.tcb, w.now));
    cr_expect_eq(w.tcb->x->n_lost, 100 * MSS);
    close_runs(&w);
}

/* A segment that was wrongly marked lost is in the order again, by its send time: the second half
 * had been retransmitted before the first half was lost. */
Test(tcp_rack_order, a_mistake_restores_the_order)
{
    struct world w;

    open_runs(&w, RUNS - 1);
    nj__scoreboard_lose_until(&w.tcp, w.tcb, w.tcb->snd_nxt);
    struct nj_sent_run *half = run(&w, RUNS / 2);
    for (uint32_t i = 0; i < 2; i++) {
        nj__scoreboard_rexmitted(&w.tcp, w.tcb, i ? run(&w, 0) : half,
                                 w.iss + AT(i ? RUNS / 2 : RUNS - 1), w.now);
        w.now += 1 * MS;
    }
    nj__scoreboard_lose_until(&w.tcp, w.tcb, w.iss + AT(RUNS - 1));
    nj__scoreboard_unmark_all_lost(w.tcb->x);
    expect_order(w.tcb->x);
    cr_expect_eq(nj_sent_run_oldest(w.tcb->x), half);
    cr_expect_eq(w.tcb->x->n_flight, (RUNS - 1) * MSS);
    close_runs(&w);
}
