/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send queue (SEND of RFC 9293 3.10.2): bytes from snd_una on, in mbufs that are never given to
 * a device. Each transmission copies its bytes, or refers to them if the device cuts the segment
 * (TSO). So a retransmission has its own headers, and no byte that a device may still read is
 * modified.
 */
#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "wire/csum.h"

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

static void append_mbuf(struct nj_mbuf_queue *q, struct rte_mbuf *m)
{
    if (q->tail)
        q->tail->next = m;
    else
        q->head = m;
    q->tail = m;
    q->n_bytes += m->data_len;
    q->n_mbufs++;
}

/* A device may still read `m` (attach() below), but only up to data_len at the time of the
 * reference. So appending is safe. */
static void copy_into(struct nj_mbuf_queue *q, struct rte_mbuf *m, const uint8_t *data, uint32_t n)
{
    rte_memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len), data, n);
    m->data_len = (uint16_t)(m->data_len + n);
    m->pkt_len = m->data_len;
    q->n_bytes += n;
}

/* Two congestion windows: one in flight, one to follow. cwnd grows only when it is used, so a slow
 * peer gets a small queue. */
static uint32_t queue_max(const struct nj_tcb *t)
{
    uint32_t two = t->cwnd < NJ_SENDQ_BYTES_MAX / 2 ? 2 * t->cwnd : NJ_SENDQ_BYTES_MAX;
    return two > NJ_SENDQ_BYTES_MIN ? two : NJ_SENDQ_BYTES_MIN;
}

bool nj_tcp_may_send(const struct nj_tcb *t)
{
    return !t->fin_queued && (t->state == NJ_TCP_ESTABLISHED || t->state == NJ_TCP_CLOSE_WAIT);
}

uint32_t nj_tcp_send_room(const struct nj_tcb *t)
{
    if (!nj_tcp_may_send(t))
        return 0;
    uint32_t max = queue_max(t), n = t->x ? t->x->sndq.n_bytes : 0;
    return n < max ? max - n : 0;
}

/* Bytes that fit into the last mbuf of the queue, if it is our own: small pieces share an mbuf. */
static uint32_t tail_room(const struct nj_mbuf_queue *q)
{
    return q->tail && RTE_MBUF_DIRECT(q->tail) ? rte_pktmbuf_tailroom(q->tail) : 0;
}

/* Takes empty mbufs with room for `n_bytes`. Returns false, and takes none, if the pool is empty.
 */
static bool take_mbufs(struct nj_tcp *tcp, uint32_t n_bytes, struct rte_mbuf **fresh)
{
    struct rte_mbuf **link = fresh;

    *fresh = NULL;
    while (n_bytes > 0) {
        struct rte_mbuf *m = nj__mbuf_get(tcp);
        if (!m) {
            rte_pktmbuf_free(*fresh);
            return false;
        }
        m->data_off = 0; /* these mbufs carry bytes, not headers */
        *link = m;
        link = &m->next;
        uint32_t cap = rte_pktmbuf_tailroom(m);
        n_bytes -= n_bytes < cap ? n_bytes : cap;
    }
    return true;
}

bool nj_tcp_send_copy(struct nj_tcp *tcp, struct nj_tcb *t, const uint8_t *data, uint32_t n_bytes)
{
    nj__tcb_attach_xfer(tcp, t);
    struct nj_mbuf_queue *q = &t->x->sndq;
    uint32_t first = nj_min_u32(n_bytes, tail_room(q));
    struct rte_mbuf *fresh;

    NJ_ASSERT(!t->fin_queued);
    if (!take_mbufs(tcp, n_bytes - first, &fresh))
        return false;
    if (first)
        copy_into(q, q->tail, data, first);
    for (uint32_t off = first; off < n_bytes;) {
        struct rte_mbuf *m = fresh;
        fresh = m->next;
        m->next = NULL;
        uint32_t left = n_bytes - off, cap = rte_pktmbuf_tailroom(m);
        uint32_t n = left < cap ? left : cap;
        append_mbuf(q, m);
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
    nj__tcb_attach_xfer(tcp, t);
    struct rte_mbuf *m = nj__mbuf_get(tcp);
    if (!m)
        return false;
    /* DPDK's reference count of an external buffer has 16 bits, and more connections may refer to
     * one file. So each mbuf has its own count, which holds one reference of slice->ref. */
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
    append_mbuf(&t->x->sndq, m);
    nj__tcb_note_output(tcp, t);
    return true;
}

bool nj_tcp_windows_allow_all(const struct nj_tcb *t)
{
    uint32_t n = t->x ? t->x->sndq.n_bytes : 0;
    return n <= t->snd_wnd && n <= t->cwnd;
}

void nj__sndq_drop_acked(struct nj_tcb *t, uint32_t n_bytes)
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
        for (unsigned i = 0; i < 2; i++)
            if (t->x->cursor[i].m == m)
                t->x->cursor[i].m = NULL;
        m->next = NULL;
        rte_pktmbuf_free(m);
    }
    if (!q->head)
        q->tail = NULL;
    t->x->sndq_head_off = n_bytes;
}

static struct nj_sndq_cursor *walk_to(struct nj_tcb *t, uint32_t seq)
{
    struct nj_sndq_cursor *c = &t->x->cursor[0];

    if (c->m && nj_seq_lt(seq, c->seq))
        c = &t->x->cursor[1];
    if (c->m && c->seq == seq)
        return c;
    if (!c->m || nj_seq_lt(seq, c->seq))
        *c = (struct nj_sndq_cursor){t->x->sndq.head, t->x->sndq_head_off, t->snd_una};
    c->off += seq - c->seq;
    c->seq = seq;
    while (c->off > c->m->data_len) {
        c->off -= c->m->data_len;
        c->m = c->m->next;
    }
    return c;
}

/* A cursor at `seq`. New data and retransmissions both move forward, so each has its own cursor,
 * which is usually there already or shortly before. The first one is for new data. */
static inline struct nj_sndq_cursor *seek(struct nj_tcb *t, uint32_t seq)
{
    struct nj_sndq_cursor *c = &t->x->cursor[0];

    return nj_likely(c->m && c->seq == seq) ? c : walk_to(t, seq);
}

/* Bytes of the current mbuf from the cursor on. At its end the cursor moves to the next mbuf. */
static uint32_t at_cursor(struct nj_sndq_cursor *c)
{
    if (c->off == c->m->data_len) {
        c->m = c->m->next;
        c->off = 0;
    }
    return c->m->data_len - c->off;
}

static void advance(struct nj_sndq_cursor *c, uint32_t n)
{
    c->off += n;
    c->seq += n;
}

uint64_t nj__sndq_copy(struct nj_tcb *t, uint32_t seq, uint32_t n_bytes, struct rte_mbuf *m,
                       bool summed)
{
    uint64_t sum = 0;
    bool odd = false;

    if (n_bytes == 0)
        return 0; /* a pure ACK; its number may be beyond the FIN */
    NJ_ASSERT(seq - t->snd_una + n_bytes <= t->x->sndq.n_bytes);
    struct nj_sndq_cursor *c = seek(t, seq);
    NJ_ASSERT(n_bytes <= rte_pktmbuf_tailroom(m)); /* as snd_mss is */
    uint8_t *out = rte_pktmbuf_mtod(m, uint8_t *);
    m->data_len = (uint16_t)n_bytes;
    m->pkt_len = n_bytes;
    while (n_bytes > 0) {
        uint32_t n = nj_min_u32(n_bytes, at_cursor(c));
        const uint8_t *from = rte_pktmbuf_mtod_offset(c->m, uint8_t *, c->off);
        if (summed)
            sum = nj_csum_combine(sum, nj_csum_copy(out, from, n), odd);
        else
            memcpy(out, from, n);
        odd ^= n & 1;
        out += n;
        n_bytes -= n;
        advance(c, n);
    }
    return sum;
}

/* Shorter pieces are copied: an mbuf and two atomic operations cost more than copying 1 KiB. This
 * also bounds the mbufs per packet on the wire, which some devices limit: six for 1,460 bytes, when
 * references alternate with copies. */
#define REFER_MIN 1024u

/* May `n` of `left` bytes be sent by reference? Only from mbufs: devices cannot read the external
 * buffers (docs/adr/0007). The rest must fit even if all of it is copied. */
static bool may_refer(const struct nj_tcp *tcp, const struct rte_mbuf *from,
                      const struct rte_mbuf *head, uint32_t n, uint32_t left)
{
    uint32_t used = head->nb_segs + 1u, most = tcp->cfg.tx.tso_mbufs_max;

    return n >= REFER_MIN && RTE_MBUF_DIRECT(from) && used <= most &&
           left - n <= (most - used) * RTE_MBUF_DEFAULT_DATAROOM;
}

/* Make `m` a reference to the next `n` bytes. Their mbuf is freed when both the queue and the
 * device have released it. */
static void attach(const struct nj_sndq_cursor *c, struct rte_mbuf *m, uint32_t n)
{
    rte_pktmbuf_attach(m, c->m);
    m->data_off = (uint16_t)(c->m->data_off + c->off);
    m->data_len = (uint16_t)n;
}

static uint32_t copy_room(const struct rte_mbuf *m)
{
    return RTE_MBUF_DIRECT(m) ? rte_pktmbuf_tailroom(m) : 0;
}

bool nj__sndq_chain(struct nj_tcp *tcp, struct nj_tcb *t, uint32_t seq, uint32_t n_bytes,
                    struct rte_mbuf *head)
{
    struct rte_mbuf *last = head;
    uint32_t n;

    NJ_ASSERT(n_bytes > 0 && seq - t->snd_una + n_bytes <= t->x->sndq.n_bytes);
    struct nj_sndq_cursor *c = seek(t, seq);
    for (uint32_t left = n_bytes; left > 0; left -= n) {
        n = nj_min_u32(left, at_cursor(c));
        bool refer = may_refer(tcp, c->m, head, n, left);
        if (refer || copy_room(last) == 0) {
            struct rte_mbuf *m = nj__mbuf_get(tcp);
            if (!m)
                return false;
            m->data_off = 0;
            last = last->next = m;
            head->nb_segs++;
        }
        if (refer) {
            attach(c, last, n);
        } else {
            n = nj_min_u32(n, copy_room(last));
            rte_memcpy(rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len),
                       rte_pktmbuf_mtod_offset(c->m, uint8_t *, c->off), n);
            last->data_len = (uint16_t)(last->data_len + n);
        }
        head->pkt_len += n;
        advance(c, n);
    }
    NJ_ASSERT(head->nb_segs <= tcp->cfg.tx.tso_mbufs_max);
    return true;
}
