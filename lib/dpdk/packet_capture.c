/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/packet_capture.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/limits.h"
#include "dpdk/shard_rings.h"
#include "wire/header_span.h"

#define TAG_AT    12u /* of an 802.1Q tag in its frame */
#define TAG_BYTES 4u

/* --- bytes ------------------------------------------------------------------------------------ */

/* A tag that the device has taken from the frame, or that it will put there. */
static uint32_t tag_bytes(const struct rte_mbuf *m, bool is_sent)
{
    uint64_t flag = is_sent ? RTE_MBUF_F_TX_VLAN : RTE_MBUF_F_RX_VLAN_STRIPPED;

    return m->ol_flags & flag && m->pkt_len >= TAG_AT ? TAG_BYTES : 0;
}

/* Bytes from `from` on, of all segments. */
static void copy_segments(const struct rte_mbuf *m, uint32_t from, uint32_t n, uint8_t *to)
{
    for (; m && n > 0; m = m->next) {
        uint32_t in_segment = m->data_len > from ? m->data_len - from : 0;
        uint32_t n_here = nj_min_u32(in_segment, n);
        if (n_here > 0)
            memcpy(to, rte_pktmbuf_mtod_offset(m, const uint8_t *, from), n_here);
        from -= nj_min_u32(from, m->data_len);
        to += n_here;
        n -= n_here;
    }
}

/* The first `n` bytes of the frame on the wire, `n_tag` of which are not in the mbuf. */
static void copy_frame(const struct rte_mbuf *m, uint32_t n_tag, uint32_t n, uint8_t *to)
{
    if (n_tag == 0) {
        copy_segments(m, 0, n, to);
        return;
    }
    const uint8_t tag[TAG_BYTES] = {0x81, 0x00, (uint8_t)(m->vlan_tci >> 8), (uint8_t)m->vlan_tci};
    copy_segments(m, 0, nj_min_u32(n, TAG_AT), to);
    if (n <= TAG_AT)
        return;
    memcpy(to + TAG_AT, tag, nj_min_u32(n - TAG_AT, TAG_BYTES));
    if (n > TAG_AT + TAG_BYTES)
        copy_segments(m, TAG_AT, n - TAG_AT - TAG_BYTES, to + TAG_AT + TAG_BYTES);
}

/* --- packets ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct nj_capture *c, const struct nj_header_span *span)
{
    return c->of.bits == 0 ||
           (span->has_addrs && (nj_net_has(&c->of, &span->src) || nj_net_has(&c->of, &span->dst)));
}

/* Adds a copy to the ring, unpublished. False: it is full. */
static bool keep(struct nj_capture *c, const struct rte_mbuf *m, bool is_sent, uint64_t tsc)
{
    uint8_t head[NJ_HEADER_SPAN_MAX];
    uint32_t n_tag = tag_bytes(m, is_sent), n_bytes = m->pkt_len + n_tag;
    uint32_t n_head = nj_min_u32(n_bytes, sizeof head);

    copy_frame(m, n_tag, n_head, head);
    const struct nj_header_span span = nj_header_span(head, n_head);
    if (!is_wanted(c, &span))
        return true;
    uint32_t n_kept =
        c->snaplen == NJ_CAPTURE_HEADERS ? span.n_bytes : nj_min_u32(n_bytes, c->snaplen);
    struct nj_captured *to =
        nj_record_ring_add(c->ring, (uint32_t)offsetof(struct nj_captured, data) + n_kept);
    if (!to)
        return false;
    to->tsc = tsc;
    to->n_bytes = n_bytes;
    to->n_kept = n_kept;
    to->is_sent = is_sent;
    if (n_kept <= n_head)
        memcpy(to->data, head, n_kept);
    else
        copy_frame(m, n_tag, n_kept, to->data);
    return true;
}

void nj__capture_received(struct nj_capture *c, struct rte_mbuf *const *m, uint32_t n)
{
    uint64_t tsc = rte_rdtsc();

    for (uint32_t i = 0; i < n; i++)
        if (!keep(c, m[i], false, tsc))
            nj_record_ring_count_lost(c->ring);
    nj_record_ring_publish(c->ring, nj_record_ring_at(c->ring));
}

/* The device owns the mbufs afterwards, so all are copied before. */
uint32_t nj__capture_send(struct nj_capture *c, uint16_t port, uint16_t queue, struct rte_mbuf **m,
                          uint32_t n)
{
    uint64_t tsc = rte_rdtsc(), from[NJ_BURST_MAX + 1];
    bool is_lost[NJ_BURST_MAX];

    for (uint32_t i = 0; i < n; i++) {
        from[i] = nj_record_ring_at(c->ring);
        is_lost[i] = !keep(c, m[i], true, tsc);
    }
    from[n] = nj_record_ring_at(c->ring);
    uint32_t n_taken = rte_eth_tx_burst(port, queue, m, (uint16_t)n);
    for (uint32_t i = 0; i < n_taken; i++)
        if (is_lost[i])
            nj_record_ring_count_lost(c->ring);
    nj_record_ring_publish(c->ring, from[n_taken]);
    return n_taken;
}

/* --- the command ------------------------------------------------------------------------------ */

static bool run(struct nj_command *command, void *conns, nj_ns now)
{
    struct nj_capture_command *c = nj_container_of(command, struct nj_capture_command, command);

    c->end->capture = c->capture;
    return true;
}

void nj_capture_begin(struct nj_capture_command *c)
{
    c->command.run = run;
}
