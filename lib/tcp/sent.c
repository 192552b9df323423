/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/sent.h"

#include "base/assert.h"
#include "tcp/recovery.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"

static uint32_t *bytes_of(struct nj_xfer *x, enum nj_fate fate)
{
    return fate == NJ_FLYING ? &x->n_flight : fate == NJ_SACKED ? &x->n_sacked : &x->n_lost;
}

static void set_fate(struct nj_xfer *x, struct nj_sent *r, enum nj_fate fate)
{
    *bytes_of(x, r->fate) -= r->end - r->seq;
    *bytes_of(x, fate) += r->end - r->seq;
    r->fate = (uint8_t)fate;
}

/* Each connection finds its first run, whatever the others need: as many are left for that. */
static bool may_have_run(const struct nj_tcp *tcp, const struct nj_xfer *x)
{
    return x->n_runs == 0 || (x->n_runs < NJ_SENT_RUNS_MAX &&
                              tcp->runs.n_used + tcp->cfg.conns_max < tcp->runs.n_max);
}

static struct nj_sent *run_new(struct nj_tcp *tcp, struct nj_xfer *x)
{
    struct nj_sent *r = may_have_run(tcp, x) ? nj_pool_take(&tcp->runs) : NULL;
    if (r)
        x->n_runs++;
    return r;
}

static void run_free(struct nj_tcp *tcp, struct nj_xfer *x, struct nj_sent *r)
{
    if (x->lost_hint == r)
        x->lost_hint = NULL;
    nj_list_del(&r->node);
    x->n_runs--;
    nj_pool_put(&tcp->runs, r);
}

bool nj__sent_has_room(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    const struct nj_sent *last = nj_sent_last(t->x);
    if (last && last->fate == NJ_FLYING)
        return true; /* it can take more */
    return may_have_run(tcp, t->x);
}

void nj__sent_push(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_seq, nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sent *last = nj_sent_last(x), *r = NULL;
    bool joins = last && last->fate == NJ_FLYING && !last->again && last->at == now;

    if (!joins && (r = run_new(tcp, x))) {
        *r = (struct nj_sent){.at = now, .seq = t->snd_nxt, .end = t->snd_nxt};
        nj_list_init(&r->node);
        nj_list_push_back(&x->sent, &r->node);
        last = r;
    }
    NJ_ASSERT(last && last->fate == NJ_FLYING); /* nj__sent_has_room() was asked */
    last->at = now; /* a forced union counts from its youngest part: no loss is seen too early */
    last->end += n_seq;
    t->snd_nxt += n_seq;
    x->n_flight += n_seq;
}

/* Cut `r` in two at `seq`. False when there is no run to be had for the second half. */
static bool split(struct nj_tcp *tcp, struct nj_xfer *x, struct nj_sent *r, uint32_t seq)
{
    NJ_ASSERT(nj_seq_lt(r->seq, seq) && nj_seq_lt(seq, r->end));
    struct nj_sent *right = run_new(tcp, x);
    if (!right)
        return false;
    *right = *r;
    right->seq = r->end = seq;
    nj_list_init(&right->node);
    nj_list_push_back((struct nj_list *)r->node.next, &right->node); /* after r */
    return true;
}

void nj__sent_again(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent *r, uint32_t end,
                    nj_ns now)
{
    if (nj_seq_lt(end, r->end))
        split(tcp, t->x, r, end); /* if not, the rest counts as sent, and RACK finds it missing */
    set_fate(t->x, r, NJ_FLYING);
    r->at = now;
    r->again = true;
    t->x->lost_hint = nj_sent_next(t->x, r);
}

struct nj_sent *nj__sent_tail(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_seq)
{
    struct nj_sent *last = nj_sent_last(t->x);

    if (last->end - last->seq > n_seq)
        split(tcp, t->x, last, last->end - n_seq);
    return nj_sent_last(t->x);
}

void nj__sent_lose(struct nj_xfer *x, struct nj_sent *r)
{
    set_fate(x, r, NJ_LOST);
    x->lost_hint = NULL;
}

void nj__sent_lose_until(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t end)
{
    struct nj_xfer *x = t->x;

    for (struct nj_sent *r = nj_sent_first(x); r && nj_seq_lt(r->seq, end);
         r = nj_sent_next(x, r)) {
        if (r->fate != NJ_FLYING)
            continue;
        if (nj_seq_lt(end, r->end))
            split(tcp, x, r, end); /* if not, more is sent again than had to be */
        nj__sent_lose(x, r);
    }
}

void nj__sent_forget_sacks(struct nj_xfer *x)
{
    for (struct nj_sent *r = nj_sent_first(x); r; r = nj_sent_next(x, r))
        if (r->fate == NJ_SACKED)
            nj__sent_lose(x, r);
    memset(x->sack_seen, 0, sizeof x->sack_seen);
}

void nj__sent_unlose(struct nj_xfer *x)
{
    for (struct nj_sent *r = nj_sent_first(x); r; r = nj_sent_next(x, r))
        if (r->fate == NJ_LOST)
            set_fate(x, r, NJ_FLYING);
}

struct nj_sent *nj__sent_first_lost(struct nj_xfer *x)
{
    if (x->n_lost == 0)
        return NULL;
    struct nj_sent *r = x->lost_hint ? x->lost_hint : nj_sent_first(x);
    while (r->fate != NJ_LOST)
        r = nj_sent_next(x, r);
    return x->lost_hint = r;
}

void nj__sent_join_lost(struct nj_tcp *tcp, struct nj_tcb *t, struct nj_sent *r, uint32_t n_seq)
{
    struct nj_sent *next;

    while (r->end - r->seq < n_seq && (next = nj_sent_next(t->x, r)) && next->fate == NJ_LOST) {
        r->end = next->end;
        r->again |= next->again;
        run_free(tcp, t->x, next);
    }
}

/* Bytes of `r` have arrived that had not before. */
static void delivered(struct nj_tcb *t, const struct nj_sent *r, uint32_t n,
                      struct nj_ack_news *news, nj_ns now)
{
    news->n_delivered += n;
    if (!r->again) {
        news->once_delivered |= r->fate == NJ_FLYING;
        news->lost_once |= r->fate == NJ_LOST;
        if (news->once_first_at == 0 || r->at < news->once_first_at)
            news->once_first_at = r->at;
        if (r->at > news->once_last_at)
            news->once_last_at = r->at;
    } else if (r->at > news->again_last_at) {
        news->again_last_at = r->at;
    }
    nj__rack_update(t, r, now);
}

void nj__sent_acked(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t ack, struct nj_ack_news *news,
                    nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sent *r;

    while ((r = nj_sent_first(x)) && nj_seq_lt(r->seq, ack)) {
        uint32_t end = nj_seq_lt(ack, r->end) ? ack : r->end, n = end - r->seq;
        struct nj_sent part = *r;
        part.end = end; /* of what comes behind it nothing is told */
        if (r->fate != NJ_SACKED)
            delivered(t, &part, n, news, now);
        news->again_acked |= r->again;
        *bytes_of(x, r->fate) -= n;
        r->seq = end;
        if (r->seq == r->end)
            run_free(tcp, x, r);
    }
}

/* What has arrived is told apart by `again` alone: neighbours that agree in it become one run, the
 * first, which is returned. */
static struct nj_sent *join_sacked(struct nj_tcp *tcp, struct nj_xfer *x, struct nj_sent *left,
                                   struct nj_sent *right)
{
    if (left->fate != NJ_SACKED || right->fate != NJ_SACKED || left->again != right->again)
        return right;
    left->end = right->end;
    if (left->at < right->at)
        left->at = right->at;
    run_free(tcp, x, right);
    return left;
}

/* Mark the block as arrived. `r` is the run to begin with, not behind the block; the one to go on
 * with for a block that begins later is returned. */
static struct nj_sent *mark(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_sack_block *b,
                            struct nj_sent *r, struct nj_ack_news *news, nj_ns now)
{
    struct nj_xfer *x = t->x;

    for (; r && nj_seq_lt(r->seq, b->end); r = nj_sent_next(x, r)) {
        if (nj_seq_le(r->end, b->first) || r->fate == NJ_SACKED)
            continue;
        if (nj_seq_lt(r->seq, b->first)) {
            if (!split(tcp, x, r, b->first))
                continue;
            r = nj_sent_next(x, r);
        }
        if (nj_seq_lt(b->end, r->end) && !split(tcp, x, r, b->end))
            return r;
        delivered(t, r, r->end - r->seq, news, now);
        news->n_sacked += r->end - r->seq;
        set_fate(x, r, NJ_SACKED);
        struct nj_sent *prev = nj_sent_prev(x, r), *next = nj_sent_next(x, r);
        if (next)
            join_sacked(tcp, x, r, next);
        if (prev)
            r = join_sacked(tcp, x, prev, r);
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

static bool seen(const struct nj_xfer *x, const struct nj_sack_block *b)
{
    for (uint32_t i = 0; i < NJ_SACK_BLOCKS_MAX; i++)
        if (x->sack_seen[i].first == b->first && x->sack_seen[i].end == b->end)
            return b->first != b->end;
    return false;
}

/* The blocks from number `i` on that make sense and are news, in the order of the stream; where
 * they overlap, the later one loses nothing. Returns their number. */
static uint32_t sort_blocks(const struct nj_tcb *t, const struct nj_seg *seg, uint32_t i,
                            struct nj_sack_block *out)
{
    uint32_t n = 0;

    for (; i < seg->opts.n_sack; i++) {
        struct nj_sack_block b = seg->opts.sack[i];
        bool sane = nj_seq_lt(b.first, b.end) && nj_seq_lt(seg->ack, b.first) &&
                    nj_seq_lt(t->snd_una, b.end) && nj_seq_le(b.end, t->snd_nxt);
        if (!sane || seen(t->x, &b))
            continue;
        b.first = nj_seq_max(b.first, t->snd_una); /* of an overtaken ACK: it may begin before */
        uint32_t at = n++;
        for (; at > 0 && nj_seq_lt(b.first, out[at - 1].first); at--)
            out[at] = out[at - 1];
        out[at] = b;
    }
    return n;
}

/* All blocks in one walk. Whatever a peer says, an ACK costs this one, that of nj__rack_detect(),
 * and where that finds something lost a third one for nj__sent_first_lost(); see NJ_SENT_RUNS_MAX.
 * And in the order of the stream: of two blocks that an ACK tells of for the first time, because
 * the ACK before it was lost, none has overtaken the other (RFC 8985 6.2 step 3). */
void nj__sent_sacked(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_seg *seg,
                     struct nj_ack_news *news, nj_ns now)
{
    struct nj_xfer *x = t->x;
    struct nj_sack_block block[NJ_SACK_BLOCKS_MAX];
    uint32_t i = 0;

    if (seg->opts.n_sack > 0 && is_dsack(seg)) {
        nj__recovery_dsack(t, &seg->opts.sack[0], news);
        i = 1;
    }
    uint32_t n = sort_blocks(t, seg, i, block);
    struct nj_sent *r = nj_sent_first(x);
    for (i = 0; i < n; i++)
        r = mark(tcp, t, &block[i], r, news, now);
    for (i = 0; i < NJ_SACK_BLOCKS_MAX; i++)
        x->sack_seen[i] = i < seg->opts.n_sack ? seg->opts.sack[i] : (struct nj_sack_block){0, 0};
}

void nj__sent_free(struct nj_tcp *tcp, struct nj_xfer *x)
{
    struct nj_sent *r;

    while ((r = nj_sent_first(x)))
        run_free(tcp, x, r);
    x->n_flight = x->n_sacked = x->n_lost = 0;
}
