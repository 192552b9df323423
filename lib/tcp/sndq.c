/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue: bytes from snd_una on, in mbufs that are never given to a device. A segment is
 * filled from here each time it is sent, so a retransmission finds its bytes untouched and no mbuf
 * that a device still holds is written to.
 */
#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include "base/assert.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

void nj__mbuf_queue_free(struct nj_mbuf_queue *q)
{
    while (q->head) {
        struct rte_mbuf *m = q->head;
        q->head = m->next;
        m->next = NULL;
        rte_pktmbuf_free(m);
    }
    memset(q, 0, sizeof *q);
}

static void append(struct nj_mbuf_queue *q, struct rte_mbuf *m)
{
    if (q->tail)
        q->tail->next = m;
    else
        q->head = m;
    q->tail = m;
    q->n_bytes += m->data_len;
    q->n_mbufs++;
}

static void copy_into(struct nj_mbuf_queue *q, struct rte_mbuf *m, const uint8_t *data, uint32_t n)
{
    rte_memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len), data, n);
    m->data_len = (uint16_t)(m->data_len + n);
    m->pkt_len = m->data_len;
    q->n_bytes += n;
}

/* Two windows: one on its way, one to follow at once. A window that grew is one that was filled, so
 * a peer that takes little is given little. */
static uint32_t queue_max(const struct nj_tcb *t)
{
    uint32_t two = t->cwnd < NJ_SENDQ_BYTES_MAX / 2 ? 2 * t->cwnd : NJ_SENDQ_BYTES_MAX;
    return two > NJ_SENDQ_BYTES_MIN ? two : NJ_SENDQ_BYTES_MIN;
}

uint32_t nj_tcp_send_room(const struct nj_tcb *t)
{
    if (t->fin_queued || (t->state != NJ_TCP_ESTABLISHED && t->state != NJ_TCP_CLOSE_WAIT))
        return 0;
    uint32_t max = queue_max(t), n = t->x ? t->x->sndq.n_bytes : 0;
    return n < max ? max - n : 0;
}

bool nj_tcp_send_copy(struct nj_tcp *tcp, struct nj_tcb *t, const uint8_t *data, uint32_t n_bytes)
{
    nj__tcb_wake(tcp, t);
    struct nj_mbuf_queue *q = &t->x->sndq;
    /* Small pieces share an mbuf: a tail that is ours and has room takes the beginning. */
    uint32_t room = q->tail && RTE_MBUF_DIRECT(q->tail) ? rte_pktmbuf_tailroom(q->tail) : 0;
    uint32_t first = n_bytes < room ? n_bytes : room;
    struct rte_mbuf *fresh = NULL, **link = &fresh;

    NJ_ASSERT(!t->fin_queued);
    for (uint32_t left = n_bytes - first; left > 0;) {
        struct rte_mbuf *m = rte_pktmbuf_alloc(tcp->cfg.mp);
        if (!m) {
            nj_count(tcp->cfg.counters, NJ_C_mbuf_none);
            rte_pktmbuf_free(fresh);
            return false;
        }
        m->data_off = 0; /* these mbufs carry bytes, not headers */
        *link = m;
        link = &m->next;
        uint32_t cap = rte_pktmbuf_tailroom(m);
        left -= left < cap ? left : cap;
    }
    if (first)
        copy_into(q, q->tail, data, first);
    for (uint32_t off = first; off < n_bytes;) {
        struct rte_mbuf *m = fresh;
        fresh = m->next;
        m->next = NULL;
        uint32_t left = n_bytes - off, cap = rte_pktmbuf_tailroom(m);
        uint32_t n = left < cap ? left : cap;
        append(q, m);
        copy_into(q, m, data + off, n);
        off += n;
    }
    nj__tcb_note_output(tcp, t);
    return true;
}

static void put_ref(void *addr, void *opaque)
{
    (void)addr;
    if (opaque)
        nj_ref_put(opaque);
}

bool nj_tcp_send_refer(struct nj_tcp *tcp, struct nj_tcb *t, const struct nj_slice *slice)
{
    NJ_ASSERT(!t->fin_queued);
    NJ_ASSERT(slice->n_bytes > 0 && slice->n_bytes <= UINT16_MAX);
    nj__tcb_wake(tcp, t);
    struct rte_mbuf *m = rte_pktmbuf_alloc(tcp->cfg.mp);
    if (!m) {
        nj_count(tcp->cfg.counters, NJ_C_mbuf_none);
        return false;
    }
    /* The count an mbuf keeps of its external buffer has 16 bits, and thousands of connections may
     * refer to one file: so each mbuf has its own count, which stands for one of slice->ref's. */
    struct nj_tcp_mbuf_priv *priv = rte_mbuf_to_priv(m);
    priv->shinfo.free_cb = put_ref;
    priv->shinfo.fcb_opaque = slice->ref;
    rte_mbuf_ext_refcnt_set(&priv->shinfo, 1);
    if (slice->ref)
        nj_ref_take(slice->ref);
    union {
        const uint8_t *in;
        void *out;
    } bytes = {.in = slice->data}; /* only read, but the mbuf API has no const */
    rte_pktmbuf_attach_extbuf(m, bytes.out, RTE_BAD_IOVA, (uint16_t)slice->n_bytes, &priv->shinfo);
    m->data_off = 0;
    m->data_len = (uint16_t)slice->n_bytes;
    m->pkt_len = slice->n_bytes;
    append(&t->x->sndq, m);
    nj__tcb_note_output(tcp, t);
    return true;
}

void nj__sndq_acked(struct nj_tcb *t, uint32_t n_bytes)
{
    struct nj_mbuf_queue *q = &t->x->sndq;

    NJ_ASSERT(n_bytes <= q->n_bytes);
    q->n_bytes -= n_bytes;
    n_bytes += t->x->sndq_head_off;
    while (q->head && n_bytes >= q->head->data_len) {
        struct rte_mbuf *m = q->head;
        n_bytes -= m->data_len;
        q->head = m->next;
        q->n_mbufs--;
        if (t->x->cursor == m)
            t->x->cursor = NULL;
        m->next = NULL;
        rte_pktmbuf_free(m);
    }
    if (!q->head)
        q->tail = NULL;
    t->x->sndq_head_off = n_bytes;
}

/* Stand the cursor on the byte at `seq`. Sending goes forward, so it mostly stands there already.
 */
static void seek(struct nj_tcb *t, uint32_t seq)
{
    if (t->x->cursor && t->x->cursor_seq == seq)
        return;
    uint32_t off = seq - t->snd_una + t->x->sndq_head_off;
    struct rte_mbuf *m = t->x->sndq.head;
    while (off > m->data_len) {
        off -= m->data_len;
        m = m->next;
    }
    t->x->cursor = m;
    t->x->cursor_off = off;
    t->x->cursor_seq = seq;
}

void nj__sndq_fill(struct nj_tcb *t, uint32_t seq, uint32_t n_bytes, struct rte_mbuf *m)
{
    if (n_bytes == 0)
        return; /* a pure ACK, whose sequence number may stand beyond the FIN */
    NJ_ASSERT(seq - t->snd_una + n_bytes <= t->x->sndq.n_bytes);
    seek(t, seq);
    uint8_t *out = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)n_bytes);
    NJ_ASSERT(out != NULL); /* snd_mss is at most the tailroom of a fresh mbuf */
    t->x->cursor_seq += n_bytes;
    while (n_bytes > 0) {
        if (t->x->cursor_off == t->x->cursor->data_len) {
            t->x->cursor = t->x->cursor->next;
            t->x->cursor_off = 0;
        }
        uint32_t left = t->x->cursor->data_len - t->x->cursor_off;
        uint32_t n = n_bytes < left ? n_bytes : left;
        rte_memcpy(out, rte_pktmbuf_mtod_offset(t->x->cursor, uint8_t *, t->x->cursor_off), n);
        out += n;
        t->x->cursor_off += n;
        n_bytes -= n;
    }
}
