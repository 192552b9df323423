/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive queue for the user, and the reassembly list of out-of-order segments (RFC 9293
 * 3.10.7.4).
 *
 * The list is sorted and free of overlaps; of duplicate bytes the first copy is kept. Its mbufs are
 * linked by next and store their sequence number in hash.usr, which is unused after parsing.
 */
#include <rte_mbuf.h>

#include "base/assert.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

/* Restrict the mbuf's data to `n_bytes` from offset `off` on. */
static void set_payload(struct rte_mbuf *m, uint32_t off, uint32_t n_bytes)
{
    m->data_off = (uint16_t)(m->data_off + off);
    m->data_len = (uint16_t)n_bytes;
    m->pkt_len = n_bytes;
}

static void count_held(struct nj_tcp *tcp, struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;

    x->rcvq.n_mbufs++;
    x->n_held_since_merge += x->n_held_since_merge < UINT16_MAX;
    tcp->n_held++;
}

static void uncount_held(struct nj_tcp *tcp, struct nj_tcb *t)
{
    t->x->rcvq.n_mbufs--;
    tcp->n_held--;
}

bool nj__rcv_may_hold(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    uint32_t max = tcp->cfg.held_max, n = t->x->rcvq.n_mbufs;

    if (n >= NJ_RECV_MBUFS_MAX)
        return false;
    return max == 0 || (tcp->n_held < max && n < (max - tcp->n_held) / 4);
}

/* Shared mbufs and external buffers are never written to. */
static bool is_writable(const struct rte_mbuf *m)
{
    return RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;
}

/* Can `n_bytes` be appended to the buffer of `to`? The space of its headers counts as free. */
static bool fits(const struct rte_mbuf *to, uint32_t n_bytes)
{
    return is_writable(to) && n_bytes <= (uint32_t)to->buf_len - to->data_len;
}

static void append_bytes(struct rte_mbuf *to, const uint8_t *from, uint32_t n_bytes)
{
    if (n_bytes > rte_pktmbuf_tailroom(to)) {
        memmove(to->buf_addr, rte_pktmbuf_mtod(to, uint8_t *), to->data_len);
        to->data_off = 0;
    }
    memcpy(rte_pktmbuf_mtod_offset(to, uint8_t *, to->data_len), from, n_bytes);
    to->data_len = (uint16_t)(to->data_len + n_bytes);
    to->pkt_len = to->data_len;
}

/* Append a payload to the mbuf `to` instead of keeping its own mbuf. A small payload is copied if
 * it fits without moving data; any other only if this connection is short of mbufs. */
static bool coalesce(const struct nj_tcp *tcp, const struct nj_tcb *t, struct rte_mbuf *to,
                     const struct rte_mbuf *m, uint32_t off, uint32_t n_bytes)
{
    bool small = n_bytes <= NJ_RECV_COALESCE_BYTES && n_bytes <= rte_pktmbuf_tailroom(to);

    if (!small && t->x->rcvq.n_mbufs < NJ_TCP_COALESCE_ALL_MBUFS && nj__rcv_may_hold(tcp, t))
        return false;
    if (!fits(to, n_bytes))
        return false;
    append_bytes(to, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), n_bytes);
    return true;
}

/* Merge neighbours whose bytes fit in one buffer. `gaps`: the list may have holes, so check that
 * they are contiguous. Returns the last remaining mbuf. */
static struct rte_mbuf *merge_adjacent(struct nj_tcp *tcp, struct nj_tcb *t, struct rte_mbuf *m,
                                       bool gaps)
{
    while (m && m->next) {
        struct rte_mbuf *next = m->next;
        bool follows = !gaps || m->hash.usr + m->data_len == next->hash.usr;

        if (!follows || !fits(m, next->data_len)) {
            m = next;
            continue;
        }
        append_bytes(m, rte_pktmbuf_mtod(next, const uint8_t *), next->data_len);
        m->next = next->next;
        next->next = NULL;
        uncount_held(tcp, t);
        rte_pktmbuf_free(next);
    }
    return m;
}

/* Free mbufs by merging those held. The walk is amortised: it needs one new mbuf per
 * NJ_TCP_MERGE_PART held since the last one. */
static void merge_all_adjacent(struct nj_tcp *tcp, struct nj_tcb *t)
{
    struct nj_xfer *x = t->x;
    uint32_t n = x->rcvq.n_mbufs;

    if ((uint32_t)x->n_held_since_merge * NJ_TCP_MERGE_PART < n)
        return;
    x->n_held_since_merge = 0;
    x->rcvq.tail = merge_adjacent(tcp, t, x->rcvq.head, false);
    merge_adjacent(tcp, t, x->reasm, true);
    if (x->rcvq.n_mbufs < n)
        nj_count(tcp->cfg.counters, NJ_C_tcp_rx_compacted);
}

bool nj__rcv_merge_for_room(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_bytes)
{
    const struct nj_mbuf_queue *q = &t->x->rcvq;

    if (nj__rcv_may_hold(tcp, t) || (q->tail && fits(q->tail, n_bytes)))
        return true;
    merge_all_adjacent(tcp, t);
    return nj__rcv_may_hold(tcp, t) || (q->tail && fits(q->tail, n_bytes));
}

void nj__rcvq_append(struct nj_tcp *tcp, struct nj_tcb *t, struct rte_mbuf *m, uint32_t off,
                     uint32_t n_bytes)
{
    struct nj_mbuf_queue *q = &t->x->rcvq;

    if (q->tail && coalesce(tcp, t, q->tail, m, off, n_bytes)) {
        q->n_bytes += n_bytes;
        rte_pktmbuf_free(m);
        return;
    }
    set_payload(m, off, n_bytes);
    m->next = NULL;
    if (q->tail)
        q->tail->next = m;
    else
        q->head = m;
    q->tail = m;
    q->n_bytes += n_bytes;
    count_held(tcp, t);
}

/* Free the held mbufs from *link to `next`, which lie within the segment `seg` in `m`. Their bytes,
 * the first copies, are written over the segment's. Returns the number of these bytes. */
static uint32_t absorb_held(struct nj_tcp *tcp, struct nj_tcb *t, struct rte_mbuf **link,
                            const struct rte_mbuf *next, struct rte_mbuf *m,
                            const struct nj_seg *seg)
{
    uint32_t n_bytes = 0;

    while (*link != next) {
        struct rte_mbuf *old = *link;
        uint32_t off = seg->payload_off + (old->hash.usr - seg->seq);
        memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, off), rte_pktmbuf_mtod(old, uint8_t *),
               old->data_len);
        n_bytes += old->data_len;
        *link = old->next;
        old->next = NULL;
        uncount_held(tcp, t);
        rte_pktmbuf_free(old);
    }
    return n_bytes;
}

/* While mbufs are short, out-of-order segments beyond a few are refused; the peer retransmits them.
 * Otherwise peers that leave holes open could keep new connections out. */
static bool may_hold_out_of_order(const struct nj_tcp *tcp, const struct nj_tcb *t)
{
    enum nj_rcv_pressure pressure = nj__rcv_pressure(tcp);
    bool few = pressure == NJ_RCV_PRESSURE_SOME && t->x->rcvq.n_mbufs < NJ_TCP_REASM_MBUFS_MIN;

    return (pressure == NJ_RCV_PRESSURE_NONE || few) && nj__rcv_may_hold(tcp, t);
}

bool nj__reasm_insert(struct nj_tcp *tcp, struct nj_tcb *t, struct rte_mbuf *m,
                      const struct nj_seg *seg)
{
    uint32_t first = seg->seq, end = seg->seq + seg->payload_bytes;
    struct rte_mbuf **link = &t->x->reasm, *before = NULL;

    if (!nj__rcv_may_hold(tcp, t))
        merge_all_adjacent(tcp, t);
    while (*link && nj_seq_le((*link)->hash.usr, first)) {
        before = *link;
        first = nj_seq_max(first, before->hash.usr + before->data_len);
        link = &before->next;
    }
    struct rte_mbuf *next = *link; /* the first one behind the segment, or across its end */
    while (next && is_writable(m) && nj_seq_le(next->hash.usr + next->data_len, end))
        next = next->next;
    if (next && nj_seq_lt(next->hash.usr, end))
        end = next->hash.usr;
    if (!nj_seq_lt(first, end))
        return false; /* nothing new in it */

    uint32_t off = seg->payload_off + (first - seg->seq), n_bytes = end - first;
    uint32_t n_held = absorb_held(tcp, t, link, next, m, seg);
    if (before && before->hash.usr + before->data_len == first &&
        coalesce(tcp, t, before, m, off, n_bytes)) {
        t->x->reasm_bytes += n_bytes - n_held;
        rte_pktmbuf_free(m);
        return true;
    }
    /* A segment that has absorbed another needs no more mbufs. */
    if (n_held == 0 && !may_hold_out_of_order(tcp, t))
        return false;
    set_payload(m, off, n_bytes);
    m->hash.usr = first;
    m->next = *link;
    *link = m;
    count_held(tcp, t);
    t->x->reasm_bytes += n_bytes - n_held;
    return true;
}

uint32_t nj__reasm_move_ready(struct nj_tcp *tcp, struct nj_tcb *t)
{
    uint32_t pulled = 0;

    while (t->x->reasm && nj_seq_le(t->x->reasm->hash.usr, t->rcv_nxt)) {
        struct rte_mbuf *m = t->x->reasm;
        uint32_t n_bytes = m->data_len, stale = t->rcv_nxt - m->hash.usr;
        t->x->reasm = m->next;
        uncount_held(tcp, t);
        t->x->reasm_bytes -= n_bytes;
        m->next = NULL;
        if (stale >= n_bytes) {
            rte_pktmbuf_free(m);
            continue;
        }
        nj__rcvq_append(tcp, t, m, stale, n_bytes - stale);
        t->rcv_nxt += n_bytes - stale;
        pulled += n_bytes - stale;
    }
    NJ_ASSERT(t->x->reasm || t->x->reasm_bytes == 0);
    return pulled;
}

uint32_t nj__rcv_highest_end_seq(const struct nj_tcb *t)
{
    uint32_t end = t->rcv_nxt;
    for (const struct rte_mbuf *m = t->x->reasm; m; m = m->next)
        end = m->hash.usr + m->data_len;
    return end;
}

bool nj__reasm_drop_last(struct nj_tcp *tcp, struct nj_tcb *t)
{
    struct rte_mbuf **link = &t->x->reasm;

    if (!*link)
        return false;
    while ((*link)->next)
        link = &(*link)->next;
    uncount_held(tcp, t);
    t->x->reasm_bytes -= (*link)->data_len;
    rte_pktmbuf_free(*link);
    *link = NULL;
    return true;
}

void nj__reasm_free(struct nj_tcb *t)
{
    while (t->x->reasm) {
        struct rte_mbuf *m = t->x->reasm;
        t->x->reasm = m->next;
        m->next = NULL;
        rte_pktmbuf_free(m);
    }
    t->x->reasm_bytes = 0;
}

uint32_t nj_tcp_recv_peek(const struct nj_tcb *t, const uint8_t **data)
{
    const struct rte_mbuf *m = t->x ? t->x->rcvq.head : NULL;
    if (!m)
        return 0;
    *data = rte_pktmbuf_mtod(m, const uint8_t *);
    return m->data_len;
}

uint32_t nj_tcp_recv_bytes(const struct nj_tcb *t)
{
    return t->x ? t->x->rcvq.n_bytes : 0;
}

uint32_t nj_tcp_recv_pieces(const struct nj_tcb *t, uint32_t n_bytes, struct nj_tcp_piece *pieces,
                            uint32_t n_max)
{
    const struct rte_mbuf *m = t->x ? t->x->rcvq.head : NULL;
    uint32_t n_pieces = 0;

    for (; n_bytes > 0; m = m->next) {
        if (!m || n_pieces == n_max)
            return 0;
        uint32_t n = nj_min_u32(n_bytes, m->data_len);
        pieces[n_pieces++] = (struct nj_tcp_piece){rte_pktmbuf_mtod(m, uint8_t *), n};
        n_bytes -= n;
    }
    return n_pieces;
}

bool nj_tcp_recv_copy(const struct nj_tcb *t, uint32_t offset, uint8_t *out, uint32_t n_bytes)
{
    const struct rte_mbuf *m = t->x ? t->x->rcvq.head : NULL;

    if (nj_tcp_recv_bytes(t) < offset + n_bytes)
        return false;
    for (; n_bytes > 0; m = m->next) {
        if (offset >= m->data_len) {
            offset -= m->data_len;
            continue;
        }
        uint32_t n = nj_min_u32(n_bytes, m->data_len - offset);
        memcpy(out, rte_pktmbuf_mtod_offset(m, uint8_t *, offset), n);
        offset = 0;
        out += n;
        n_bytes -= n;
    }
    return true;
}

void nj_tcp_recv_discard(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_bytes)
{
    while (n_bytes > 0) {
        uint32_t n = nj_min_u32(n_bytes, t->x->rcvq.head->data_len);
        nj_tcp_recv_take(tcp, t, n);
        n_bytes -= n;
    }
}

void nj_tcp_recv_take(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t n_bytes)
{
    struct nj_mbuf_queue *q = &t->x->rcvq;
    struct rte_mbuf *m = q->head;

    NJ_ASSERT(m && n_bytes <= m->data_len);
    q->n_bytes -= n_bytes;
    if (n_bytes < m->data_len) {
        set_payload(m, n_bytes, m->data_len - n_bytes);
    } else {
        q->head = m->next;
        if (!q->head)
            q->tail = NULL;
        uncount_held(tcp, t);
        m->next = NULL;
        rte_pktmbuf_free(m);
    }
    if (!t->fin_received && nj__tcp_is_window_update_due(tcp, t)) {
        t->ack_now = true;
        nj__tcb_note_output(tcp, t);
    }
}
