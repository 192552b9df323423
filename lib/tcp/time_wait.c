/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TIME-WAIT (RFC 9293 3.6.1, RFC 1337, RFC 6191) in one cache line per connection.
 *
 * All entries wait 2 MSL, so a FIFO is nearly sorted by deadline. It is singly linked: an entry
 * whose 2 MSL restarted is moved to the end when it reaches the front, and an entry that was
 * replaced by a new connection is freed there. An entry may therefore stay up to 2 MSL too long,
 * which is harmless.
 */
#include "base/assert.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

#define TICK_MAX 256u /* entries freed per tick; the rest follows in the next */

static struct nj_time_wait *entry_at(const struct nj_tcp *tcp, uint32_t place_plus_1)
{
    return nj_pool_at(&tcp->time_waits, place_plus_1 - 1);
}

static bool is_replaced(const struct nj_time_wait *w)
{
    return w->bare.flow.kind != NJ_FLOW_TIME_WAIT;
}

/* Ticks until the end; negative when it has passed. */
static int32_t ticks_left(const struct nj_tcp *tcp, const struct nj_time_wait *w)
{
    return (int32_t)(w->ends - (uint32_t)tcp->wheel.tick);
}

static uint32_t tick_after(nj_ns t)
{
    return (uint32_t)((t >> NJ_WHEEL_TICK_BITS) + 1);
}

static void append_entry(struct nj_tcp *tcp, struct nj_time_wait *w)
{
    uint32_t place = nj_pool_index(&tcp->time_waits, w) + 1;

    w->bare.flow.flags &= (uint8_t)~NJ_MINISOCK_RESTARTED;
    w->next = 0;
    if (tcp->tw_queue.last)
        entry_at(tcp, tcp->tw_queue.last)->next = place;
    else
        tcp->tw_queue.first = place;
    tcp->tw_queue.last = place;
}

static struct nj_time_wait *pop_first(struct nj_tcp *tcp)
{
    struct nj_time_wait *w = entry_at(tcp, tcp->tw_queue.first);

    tcp->tw_queue.first = w->next;
    if (!w->next)
        tcp->tw_queue.last = 0;
    return w;
}

/* Remove the connection from the flow table. Its object is freed when it reaches the front. */
static void leave_flow_table(struct nj_tcp *tcp, struct nj_time_wait *w)
{
    nj_flow_remove(&tcp->flows, &w->bare.flow);
    w->bare.flow.kind = NJ_FLOW_TCB; /* marks it as replaced: see is_replaced() */
    tcp->tw_queue.n_live--;
    tcp->n_time_wait--;
}

static void drop_first(struct nj_tcp *tcp)
{
    struct nj_time_wait *w = pop_first(tcp);
    if (!is_replaced(w))
        leave_flow_table(tcp, w);
    nj_pool_put(&tcp->time_waits, w);
}

/* Take an object from the pool. If it is empty, the oldest entry ends early, since closed
 * connections must not block new ones. Its tuple is then protected only by the sequence numbers of
 * RFC 6528. */
static struct nj_time_wait *take_entry(struct nj_tcp *tcp)
{
    struct nj_time_wait *w = nj_pool_take(&tcp->time_waits);
    if (w)
        return w;
    if (!is_replaced(entry_at(tcp, tcp->tw_queue.first)))
        nj_count(tcp->cfg.counters, NJ_C_tcp_time_wait_cut);
    drop_first(tcp);
    return nj_pool_take(&tcp->time_waits);
}

void nj__time_wait_from_tcb(struct nj_tcp *tcp, const struct nj_tcb *t, nj_ns now)
{
    struct nj_time_wait *w = take_entry(tcp);

    NJ_ASSERT(w != NULL); /* the pool has one at least */
    nj__flow_init_kind(&w->bare.flow, NJ_FLOW_TIME_WAIT, now);
    w->bare.flow.flags =
        (uint8_t)((t->ts_on ? NJ_MINISOCK_TS : 0) | (t->rcv_wscale ? NJ_MINISOCK_WSCALE : 0));
    w->bare.snd_nxt = t->snd_nxt;
    w->bare.rcv_nxt = t->rcv_nxt;
    w->bare.ts_recent = t->ts_recent;
    w->ends = tick_after(t->x->close_at);
    nj_flow_replace(&tcp->flows, &t->flow, &w->bare.flow);
    append_entry(tcp, w);
    tcp->tw_queue.n_live++;
    tcp->n_time_wait++;
}

/* RFC 6191 2, RFC 9293 3.6.1: a SYN that can't be an old duplicate may begin a new connection. */
bool nj__time_wait_may_reuse(const struct nj_seg *seg, uint32_t rcv_nxt, bool ts_on,
                             uint32_t ts_recent)
{
    if ((seg->flags & (NJ_TCP_SYN | NJ_TCP_ACK | NJ_TCP_RST | NJ_TCP_FIN)) != NJ_TCP_SYN)
        return false;
    if (ts_on && seg->opts.has_ts && seg->opts.ts_val != ts_recent)
        return nj_seq_lt(ts_recent, seg->opts.ts_val);
    return nj_seq_lt(rcv_nxt, seg->seq);
}

/* RFC 9293 3.6.1 MAY-2: our initial number must be beyond the old connection's. A cookie's number
 * cannot be chosen, so cookies require timestamps on both connections: old segments then fail the
 * peer's PAWS test. */
enum nj_tcp_verdict nj__time_wait_check_reopen_room(const struct nj_tcp *tcp,
                                                    struct nj_tcp_arrival *a, bool ts_on)
{
    enum nj_tcp_verdict v = nj__tcp_check_syn_room(tcp, a);

    if (v == NJ_VERDICT_PASS && nj__syn_backlog_full(tcp) && !(ts_on && a->seg.opts.has_ts))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_backlog);
    return v;
}

/* Is it a retransmission of the peer's FIN, because our ACK was lost? */
static bool repeats_fin(const struct nj_time_wait *w, const struct nj_seg *seg)
{
    return (seg->flags & (NJ_TCP_FIN | NJ_TCP_SYN | NJ_TCP_RST)) == NJ_TCP_FIN &&
           seg->seq + nj_seg_len(seg) == w->bare.rcv_nxt;
}

enum nj_tcp_verdict nj__time_wait_input(struct nj_tcp *tcp, struct nj_time_wait *w,
                                        struct nj_tcp_arrival *a, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    struct nj_minisock *b = &w->bare;
    bool ts_on = b->flow.flags & NJ_MINISOCK_TS;
    enum nj_tcp_verdict v;

    if (seg->flags & NJ_TCP_RST) /* RFC 1337: no assassination */
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_reset);
    if (nj__tcp_is_listening(tcp, &seg->tuple) &&
        nj__time_wait_may_reuse(seg, b->rcv_nxt, ts_on, b->ts_recent)) {
        if ((v = nj__time_wait_check_reopen_room(tcp, a, ts_on)) != NJ_VERDICT_PASS)
            return v;
        a->follows = true;
        a->iss_min = b->snd_nxt + 1;
        leave_flow_table(tcp, w);
        return NJ_VERDICT_ANEW;
    }
    if ((v = nj__minisock_check_paws(b, a, now)) != NJ_VERDICT_PASS)
        return v;
    if (repeats_fin(w, seg)) {
        w->ends = tick_after(now + tcp->cfg.time_wait);
        b->flow.flags |= NJ_MINISOCK_RESTARTED;
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_ACK, NJ_C_drop_tcp_window);
    }
    if (!nj_seq_acceptable(seg->seq, nj_seg_len(seg), b->rcv_nxt, NJ_TCP_SYN_WINDOW))
        return nj__minisock_reject_stray(b, a, NJ_C_drop_tcp_window, now);
    if (seg->flags & NJ_TCP_SYN)
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_CHALLENGE, NJ_C_drop_tcp_reset);
    if (!(seg->flags & NJ_TCP_ACK))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_flags);
    if (nj_seq_lt(b->snd_nxt, seg->ack))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_CHALLENGE, NJ_C_drop_tcp_ack);
    if (seg->flags & NJ_TCP_FIN) /* not the one that the peer sent */
        return nj__minisock_reject_stray(b, a, NJ_C_drop_tcp_window, now);
    return NJ_VERDICT_DONE; /* an old ACK, or text after a FIN: ignore */
}

void nj__time_wait_tick(struct nj_tcp *tcp)
{
    for (uint32_t n = 0; n < TICK_MAX && tcp->tw_queue.first; n++) {
        struct nj_time_wait *w = entry_at(tcp, tcp->tw_queue.first);
        if (is_replaced(w) || ticks_left(tcp, w) <= 0)
            drop_first(tcp);
        else if (w->bare.flow.flags & NJ_MINISOCK_RESTARTED)
            append_entry(tcp, pop_first(tcp));
        else
            return;
    }
}

nj_ns nj__time_wait_next_deadline(const struct nj_tcp *tcp)
{
    if (!tcp->tw_queue.first)
        return NJ_NEVER;
    const struct nj_time_wait *w = entry_at(tcp, tcp->tw_queue.first);
    bool moves = is_replaced(w) || (w->bare.flow.flags & NJ_MINISOCK_RESTARTED);
    int32_t left = moves ? 0 : ticks_left(tcp, w);
    return (tcp->wheel.tick + (uint64_t)(left > 0 ? left : 0)) << NJ_WHEEL_TICK_BITS;
}
