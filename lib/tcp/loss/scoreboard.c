/* SPDX-License-Identifier: BSD-3-Clause */
/* The scoreboard of unacknowledged data (RFC 6675 3, RFC 8985 5.1): a list of runs by sequence
 * number, and one of the runs in flight by send time. */
#include "tcp/loss/scoreboard.h"

#include "base/assert.h"
#include "tcp/loss/rack_delivery.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

#define UNLOSE_BINS 12u
static_assert(NJ_SENT_RUNS_MAX < 1u << UNLOSE_BINS, "a bin for each bit of the number of runs");

static uint32_t *bytes_of(struct nj_xfer *x, enum nj_run_state fate)
{
    return fate == NJ_RUN_IN_FLIGHT ? &x->n_flight
           : fate == NJ_RUN_SACKED  ? &x->n_sacked
                                    : &x->n_lost;
}

static void leave_time_order(struct nj_xfer *x, struct nj_sent_run *r)
{
    if (x->overtaken == &r->by_send_time)
        x->overtaken = r->by_send_time.prev;
    nj_list_del(&r->by_send_time);
}

static bool is_later(const struct nj_sent_run *a, const struct nj_sent_run *b)
{
    return nj_rack_sent_after(a->at, a->end, b->at, b->end);
}

/* `r`, in flight, was sent now. It moves to the end of the list, before runs of the same time with
 * higher numbers. */
static void sent_at(struct nj_xfer *x, struct nj_sent_run *r, nj_ns now)
{
    leave_time_order(x, r);
    r->at = now;
    struct nj_list *prev = x->by_send_time.prev;
    while (prev != &x->by_send_time && is_later(nj_sent_run_of_node(prev), r))
        prev = prev->prev;
    nj_list_push_back(prev->next, &r->by_send_time);
}

/* A run that becomes in flight is not in the time order yet; the caller inserts it. */
static void set_run_state(struct nj_xfer *x, struct nj_sent_run *r, enum nj_run_state fate)
{
    leave_time_order(x, r);
    *bytes_of(x, r->fate) -= r->end - r->seq;
    *bytes_of(x, fate) += r->end - r->seq;
    r->fate = (uint8_t)fate;
}

/* May this connection take one run, with `spare` more available after that? */
static bool may_have_run(const struct nj_tcp *tcp, const struct nj_xfer *x, uint32_t spare)
{
    uint32_t n = x->n_runs + spare, sure = NJ_SENT_RUNS_RESERVED * tcp->cfg.conns_max;

    if (n < NJ_SENT_RUNS_RESERVED)
        return true;
    return n < NJ_SENT_RUNS_MAX &&
           n - NJ_SENT_RUNS_RESERVED <
               (tcp->runs.n_max - sure - tcp->n_runs_shared) / NJ_SENT_RUNS_DIVISOR;
}

static struct nj_sent_run *run_new(struct nj_tcp *tcp, struct nj_xfer *x)
{
    struct nj_sent_run *r = nj_pool_take(&tcp->runs);

    NJ_ASSERT(r != NULL); /* may_have_run() was asked */
    x->n_runs++;
    tcp->n_runs_shared += x->n_runs > NJ_SENT_RUNS_RESERVED;
    return r;
}

static void run_free(struct nj_tcp *tcp, struct nj_xfer *x, struct nj_sent_run *r)
{
    if (x->lost_hint == r)
        x->lost_hint = NULL;
    leave_time_order(x, r);
    nj_list_del(&r->node);
    tcp->n_runs_shared -= x->n_runs > NJ_SENT_RUNS_RESERVED;
    x->n_runs--;
    nj_pool_put(&tcp->runs, r);
}

bool nj__scoreboard_can_append(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    const struct nj_sent_run *last = nj_sent_run_last(t->x);
    if (last && last->fate == NJ_RUN_IN_FLIGHT)
        return true; /* it can be extended */
    return may_have_run(tcp, t->x, 0);
}

bool nj__scoreboard_has_free_runs(const struct nj_tcp *tcp, const struct nj_tcb *t, uint32_t n)
{
    return may_have_run(tcp, t->x, NJ_SENT_RUNS_SPARE + n - 1);
}

/* Can new data sent now extend `last`? Only with equal segment lengths, since `edge` and
 * `seg_bytes` must describe all boundaries. */
static bool can_join(const struct nj_tcb *t, const struct nj_sent_run *last, nj_ns now)
{
    return last && last->fate == NJ_RUN_IN_FLIGHT && !last->again && last->at == now &&
           last->seg_bytes == t->snd_mss && (last->end - last->edge) % last->seg_bytes == 0;
}

void nj__scoreboard_append(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_seq, nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sent_run *last = nj_sent_run_last(x);
    uint32_t spare = last && last->fate == NJ_RUN_IN_FLIGHT ? NJ_SENT_RUNS_SPARE : 0;

    if (!can_join(t, last, now) && may_have_run(tcp, x, spare)) {
        struct nj_sent_run *r = run_new(tcp, x);
        *r = (struct nj_sent_run){
            .seq = t->snd_nxt, .end = t->snd_nxt, .edge = t->snd_nxt, .seg_bytes = t->snd_mss};
        nj_list_init(&r->by_send_time);
        nj_list_init(&r->node);
        nj_list_push_back(&x->sent, &r->node);
        last = r;
    }
    NJ_ASSERT(last && last->fate == NJ_RUN_IN_FLIGHT); /* nj__scoreboard_can_append() was asked */
    last->end += n_seq;
    sent_at(x, last, now); /* a forced join takes the latest time: no early loss */
    t->snd_nxt += n_seq;
    x->n_flight += n_seq;
}

/* Split `r` at `seq`. False when no run is available for the second half. */
static bool split(struct nj_tcp *tcp, struct nj_xfer *x, struct nj_sent_run *r, uint32_t seq)
{
    NJ_ASSERT(nj_seq_lt(r->seq, seq) && nj_seq_lt(seq, r->end));
    if (!may_have_run(tcp, x, 0))
        return false;
    struct nj_sent_run *right = run_new(tcp, x);
    *right = *r;
    right->seq = r->end = seq;
    nj_list_init(&right->node);
    nj_list_push_back(r->node.next, &right->node); /* after r */
    nj_list_init(&right->by_send_time);
    if (r->fate == NJ_RUN_IN_FLIGHT) /* keeps the order: no run ends between the two */
        nj_list_push_back(r->by_send_time.next, &right->by_send_time);
    return true;
}

/* Is `seq` our FIN? Peers may acknowledge the text of its segment without the FIN. */
static bool is_fin(const struct nj_tcb *t, uint32_t seq)
{
    return t->fin_queued && seq == t->snd_una + t->x->sndq.n_bytes;
}

/* Start of the segment of `r` that contains `seq`. */
static uint32_t segment_begin(const struct nj_sent_run *r, uint32_t seq)
{
    uint32_t off = (seq - r->edge) % r->seg_bytes;
    return off < seq - r->seq ? seq - off : r->seq;
}

/* End of that segment. */
static uint32_t segment_end(const struct nj_sent_run *r, uint32_t seq)
{
    uint32_t left = r->seg_bytes - (seq - r->edge) % r->seg_bytes;
    return left < r->end - seq ? seq + left : r->end;
}

uint32_t nj__scoreboard_rexmit_max(const struct nj_tcb *t, const struct nj_sent_run *r)
{
    uint32_t mss = t->snd_mss, end = r->seq, begin = r->seq;

    if (r->seg_bytes == mss && r->end - begin > mss && segment_begin(r, begin + mss) == begin + mss)
        return r->end - begin;
    while (segment_end(r, end) - begin <= mss) {
        end = segment_end(r, end);
        if (end == r->end && (!(r = nj_sent_run_next(t->x, r)) || r->fate != NJ_RUN_LOST))
            break;
    }
    return end != begin ? end - begin : mss; /* a part of a segment longer than snd_mss */
}

void nj__scoreboard_rexmitted(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent_run *r,
                              uint32_t end, nj_ns now)
{
    struct nj_xfer *x = t->x;

    for (; r && nj_seq_lt(r->seq, end); r = nj_sent_run_next(x, r)) {
        if (nj_seq_lt(end, r->end))
            split(tcp, x, r,
                  end); /* on failure the rest counts as sent, and RACK will detect its loss */
        set_run_state(x, r, NJ_RUN_IN_FLIGHT);
        sent_at(x, r, now);
        r->again = true;
    }
    x->lost_hint = r;
}

void nj__scoreboard_resegment(struct nj_tcp *tcp, struct nj_tcb *t)
{
    struct nj_sent_run *next;

    for (struct nj_sent_run *r = nj_sent_run_first(t->x); r; r = nj_sent_run_next(t->x, r)) {
        while (r->fate == NJ_RUN_LOST && (next = nj_sent_run_next(t->x, r)) &&
               next->fate == NJ_RUN_LOST) {
            r->end = next->end;
            r->again |= next->again;
            run_free(tcp, t->x, next);
        }
        r->edge = r->seq;
        r->seg_bytes = t->snd_mss;
    }
}

struct nj_sent_run *nj__scoreboard_split_tail(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_seq)
{
    struct nj_sent_run *last = nj_sent_run_last(t->x);

    if (last->end - last->seq > n_seq)
        split(tcp, t->x, last, last->end - n_seq);
    return nj_sent_run_last(t->x);
}

bool nj__scoreboard_mark_lost(struct nj_tcb *t, struct nj_sent_run *r)
{
    struct nj_xfer *x = t->x;
    bool probe = nj__mtu_is_probe(x, r->end, r->again);

    set_run_state(x, r, NJ_RUN_LOST);
    x->lost_hint = NULL;
    if (probe) { /* retransmit it in segments of snd_mss */
        nj__mtu_probe_lost(t);
        r->edge = r->seq;
        r->seg_bytes = t->snd_mss;
    }
    return !probe;
}

void nj__scoreboard_lose_until(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t end)
{
    struct nj_xfer *x = t->x;

    for (struct nj_sent_run *r = nj_sent_run_first(x); r && nj_seq_lt(r->seq, end);
         r = nj_sent_run_next(x, r)) {
        if (r->fate != NJ_RUN_IN_FLIGHT)
            continue;
        if (nj_seq_lt(end, r->end))
            split(tcp, x, r, end); /* on failure more is retransmitted than necessary */
        nj__scoreboard_mark_lost(t, r);
    }
}

void nj__scoreboard_lose_sacked(struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;

    for (struct nj_sent_run *r = nj_sent_run_first(x); r; r = nj_sent_run_next(x, r))
        if (r->fate == NJ_RUN_SACKED)
            nj__scoreboard_mark_lost(t, r);
    memset(x->last_sack, 0, sizeof x->last_sack);
}

/* Merge two lists in time order into `to`; `from` is empty afterwards. */
static void merge_by_send_time(struct nj_list *to, struct nj_list *from)
{
    struct nj_list *at = to->next, *n;

    while ((n = nj_list_pop(from))) {
        while (at != to && !is_later(nj_sent_run_of_node(at), nj_sent_run_of_node(n)))
            at = at->next;
        nj_list_push_back(at, n);
    }
}

/* The send times of lost runs are in any order, which a peer can influence. So this is a merge
 * sort; bin[i] is empty or a list of 2^i runs. */
void nj__scoreboard_unmark_all_lost(struct nj_xfer *x)
{
    struct nj_list bin[UNLOSE_BINS];

    for (uint32_t i = 0; i < UNLOSE_BINS; i++)
        nj_list_init(&bin[i]);
    for (struct nj_sent_run *r = nj_sent_run_first(x); r; r = nj_sent_run_next(x, r)) {
        struct nj_list some;
        uint32_t i = 0;
        if (r->fate != NJ_RUN_LOST)
            continue;
        set_run_state(x, r, NJ_RUN_IN_FLIGHT);
        nj_list_init(&some);
        nj_list_push_back(&some, &r->by_send_time);
        while (!nj_list_empty(&bin[i]))
            merge_by_send_time(&some, &bin[i++]);
        nj_list_splice(&bin[i], &some);
    }
    for (uint32_t i = 1; i < UNLOSE_BINS; i++)
        merge_by_send_time(&bin[i], &bin[i - 1]);
    merge_by_send_time(&x->by_send_time, &bin[UNLOSE_BINS - 1]);
}

struct nj_sent_run *nj__scoreboard_first_lost(struct nj_xfer *x)
{
    if (x->n_lost == 0)
        return NULL;
    struct nj_sent_run *r = x->lost_hint ? x->lost_hint : nj_sent_run_first(x);
    while (r->fate != NJ_RUN_LOST)
        r = nj_sent_run_next(x, r);
    return x->lost_hint = r;
}

/* `n` bytes of `r` are newly delivered. */
static void note_delivered(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_sent_run *r,
                           uint32_t n, struct nj_ack_result *news, nj_ns now)
{
    if (nj__mtu_is_probe(t->x, r->end, r->again))
        nj__mtu_probe_acked(tcp, t);
    news->n_delivered += n;
    if (!r->again) {
        news->lost_first_copy |= r->fate == NJ_RUN_LOST;
        if (news->oldest_once_at == 0 || r->at < news->oldest_once_at)
            news->oldest_once_at = r->at;
        if (r->at > news->newest_once_at)
            news->newest_once_at = r->at;
    } else if (r->at > news->newest_rexmit_at) {
        news->newest_rexmit_at = r->at;
    }
    nj__rack_update(t, r, now);
}

void nj__scoreboard_ack(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t ack,
                        struct nj_ack_result *news, nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sent_run *r;

    while ((r = nj_sent_run_first(x)) && nj_seq_lt(r->seq, ack)) {
        uint32_t end = nj_seq_lt(ack, r->end) ? ack : r->end, n = end - r->seq;
        struct nj_sent_run part = *r;
        part.end = end; /* only this part is acknowledged */
        if (r->fate != NJ_RUN_SACKED)
            note_delivered(tcp, t, &part, n, news, now);
        news->rexmit_acked |= r->again;
        *bytes_of(x, r->fate) -= n;
        r->seq = end;
        if (r->seq == r->end)
            run_free(tcp, x, r);
    }
}

/* Join neighbouring SACKed runs if they agree in `again`. Returns the joined run, else `right`. */
static struct nj_sent_run *join_sacked(struct nj_tcp *tcp, struct nj_xfer *x,
                                       struct nj_sent_run *left, struct nj_sent_run *right)
{
    if (left->fate != NJ_RUN_SACKED || right->fate != NJ_RUN_SACKED || left->again != right->again)
        return right;
    left->end = right->end;
    if (left->at < right->at)
        left->at = right->at;
    run_free(tcp, x, right);
    return left;
}

/* Reduce `b` to the segments of `r` that it covers entirely. False: there is none. */
static bool whole_segments(struct nj_tcp *tcp, const struct nj_tcb *t, const struct nj_sent_run *r,
                           struct nj_sack_block *b)
{
    struct nj_sack_block asked = {r->seq, r->end};

    if (nj_seq_lt(r->seq, b->first))
        asked.first = b->first;
    if (nj_seq_lt(b->end, r->end))
        asked.end = b->end;
    *b = asked;
    if (b->first != r->seq && b->first != segment_begin(r, b->first) && !is_fin(t, b->first))
        b->first = segment_end(r, b->first);
    if (b->end != r->end && !is_fin(t, b->end))
        b->end = segment_begin(r, b->end);
    if (b->first != asked.first || b->end != asked.end)
        nj_count(tcp->cfg.counters, NJ_C_tcp_sack_partial);
    return nj_seq_lt(b->first, b->end);
}

/* Split [b->first, b->end) off `r` and return it. NULL without a free run. */
static struct nj_sent_run *cut_out(struct nj_tcp *tcp, struct nj_xfer *x, struct nj_sent_run *r,
                                   const struct nj_sack_block *b)
{
    if (b->first != r->seq) {
        if (!split(tcp, x, r, b->first))
            return NULL;
        r = nj_sent_run_next(x, r);
    }
    return b->end == r->end || split(tcp, x, r, b->end) ? r : NULL;
}

/* Mark the block as SACKed. `r`: the run to start at, not after the block. Returns the run to start
 * at for the next block. */
static struct nj_sent_run *mark_sacked(struct nj_tcp *tcp, struct nj_tcb *t,
                                       const struct nj_sack_block *b, struct nj_sent_run *r,
                                       struct nj_ack_result *news, nj_ns now)
{
    struct nj_xfer *x = t->x;

    for (; r && nj_seq_lt(r->seq, b->end); r = nj_sent_run_next(x, r)) {
        struct nj_sack_block part = *b;
        bool more = nj_seq_lt(b->end, r->end); /* this run reaches beyond the block */
        struct nj_sent_run *own = NULL;

        if (nj_seq_le(r->end, b->first) || r->fate == NJ_RUN_SACKED)
            continue;
        if (whole_segments(tcp, t, r, &part)) {
            own = cut_out(tcp, x, r, &part);
            if (!own)
                nj_count(tcp->cfg.counters, NJ_C_tcp_sack_overflow);
        }
        if (!own && more)
            return r;
        if (!own)
            continue;
        r = own;
        note_delivered(tcp, t, r, r->end - r->seq, news, now);
        set_run_state(x, r, NJ_RUN_SACKED);
        struct nj_sent_run *prev = nj_sent_run_prev(x, r), *next = nj_sent_run_next(x, r);
        if (next)
            join_sacked(tcp, x, r, next);
        if (prev)
            r = join_sacked(tcp, x, prev, r);
        if (more)
            return r;
    }
    return r;
}

/* RFC 2883 4: the first block lies below the ACK, or within the second. */
static bool is_dsack(const struct nj_seg *seg)
{
    const struct nj_sack_block *b = seg->opts.sack;

    if (nj_seq_lt(b[0].first, seg->ack))
        return true;
    return seg->opts.n_sack > 1 && nj_seq_le(b[1].first, b[0].first) &&
           nj_seq_le(b[0].end, b[1].end);
}

static bool was_seen(const struct nj_xfer *x, const struct nj_sack_block *b)
{
    for (uint32_t i = 0; i < NJ_SACK_BLOCKS_MAX; i++)
        if (x->last_sack[i].first == b->first && x->last_sack[i].end == b->end)
            return b->first != b->end;
    return false;
}

/* Collect the valid and new blocks from index `i` on, sorted by sequence number. They may overlap.
 * Returns their number. */
static uint32_t sort_blocks(const struct nj_tcb *t, const struct nj_seg *seg, uint32_t i,
                            struct nj_sack_block *out)
{
    uint32_t n = 0;

    for (; i < seg->opts.n_sack; i++) {
        struct nj_sack_block b = seg->opts.sack[i];
        bool sane = nj_seq_lt(b.first, b.end) && nj_seq_lt(seg->ack, b.first) &&
                    nj_seq_lt(t->snd_una, b.end) && nj_seq_le(b.end, t->snd_nxt);
        if (!sane || was_seen(t->x, &b))
            continue;
        b.first = nj_seq_max(b.first, t->snd_una); /* a reordered ACK may have older blocks */
        uint32_t at = n++;
        for (; at > 0 && nj_seq_lt(b.first, out[at - 1].first); at--)
            out[at] = out[at - 1];
        out[at] = b;
    }
    return n;
}

/* All blocks are processed in one walk, which bounds the cost of an ACK; a loss found by
 * nj__rack_mark_lost() adds one for nj__scoreboard_first_lost() (see NJ_SENT_RUNS_MAX). The walk is
 * in sequence order: if an ACK was lost, the next one reports two new blocks, which is no
 * reordering (RFC 8985 6.2 step 3). */
bool nj__scoreboard_process_sack_opt(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg,
                                     struct nj_ack_result *news, nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sack_block block[NJ_SACK_BLOCKS_MAX];
    bool dsack = seg->opts.n_sack > 0 && is_dsack(seg);
    uint32_t i, n = sort_blocks(t, seg, dsack, block);
    struct nj_sent_run *r = nj_sent_run_first(x);

    for (i = 0; i < n; i++)
        r = mark_sacked(tcp, t, &block[i], r, news, now);
    for (i = 0; i < NJ_SACK_BLOCKS_MAX; i++)
        x->last_sack[i] = i < seg->opts.n_sack ? seg->opts.sack[i] : (struct nj_sack_block){0, 0};
    return dsack;
}

void nj__scoreboard_free(struct nj_tcp *tcp, struct nj_xfer *x)
{
    struct nj_sent_run *r;

    while ((r = nj_sent_run_first(x)))
        run_free(tcp, x, r);
    x->n_flight = x->n_sacked = x->n_lost = 0;
}
