/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/cutter.h"

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_tcp.h>

#include "base/assert.h"

void nj_cutter_init(struct nj_cutter *c, const struct rte_mbuf *m)
{
    *c = (struct nj_cutter){.m = m, .hdr_bytes = (uint32_t)(m->l3_len + m->l4_len)};
    uint32_t n_bytes = 0, n_segs = 0;
    for (const struct rte_mbuf *s = m; s; s = s->next) {
        n_bytes += s->data_len;
        n_segs++;
    }
    NJ_CHECK(n_bytes == m->pkt_len && n_segs == m->nb_segs);
    NJ_CHECK(m->ol_flags & RTE_MBUF_F_TX_TCP_CKSUM);
    NJ_CHECK(m->data_len >= c->hdr_bytes); /* drivers want the headers in the first mbuf */
}

/* Lengths, numbers, flags and checksums of the piece at `at`. */
static void finish(const struct nj_cutter *c, struct rte_mbuf *p, uint32_t at, bool last)
{
    struct rte_tcp_hdr *tcp = rte_pktmbuf_mtod_offset(p, struct rte_tcp_hdr *, c->m->l3_len);

    tcp->sent_seq = rte_cpu_to_be_32(rte_be_to_cpu_32(tcp->sent_seq) + at);
    if (!last)
        tcp->tcp_flags &= (uint8_t) ~(RTE_TCP_FIN_FLAG | RTE_TCP_PSH_FLAG);
    tcp->cksum = 0;
    if (c->m->ol_flags & RTE_MBUF_F_TX_IPV4) {
        struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod(p, struct rte_ipv4_hdr *);
        ip->total_length = rte_cpu_to_be_16(p->data_len);
        ip->packet_id = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(ip->packet_id) + c->n));
        ip->hdr_checksum = 0;
        ip->hdr_checksum = rte_ipv4_cksum(ip);
        tcp->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
    } else {
        struct rte_ipv6_hdr *ip = rte_pktmbuf_mtod(p, struct rte_ipv6_hdr *);
        ip->payload_len = rte_cpu_to_be_16((uint16_t)(p->data_len - sizeof *ip));
        tcp->cksum = rte_ipv6_udptcp_cksum(ip, tcp);
    }
}

static void copy(const struct rte_mbuf *m, uint32_t off, uint32_t n, struct rte_mbuf *to)
{
    char *out = rte_pktmbuf_append(to, (uint16_t)n);
    NJ_CHECK(out);
    const void *in = rte_pktmbuf_read(m, off, n, out);
    NJ_CHECK(in);
    if (in != out)
        memcpy(out, in, n);
}

struct rte_mbuf *nj_cutter_next(struct nj_cutter *c, struct rte_mempool *pool)
{
    uint32_t all = c->m->pkt_len - c->hdr_bytes, n = all - c->at;

    if (c->n > 0 && n == 0)
        return NULL;
    if ((c->m->ol_flags & RTE_MBUF_F_TX_TCP_SEG) && n > c->m->tso_segsz)
        n = c->m->tso_segsz;
    struct rte_mbuf *p = rte_pktmbuf_alloc(pool);
    NJ_CHECK(p);
    copy(c->m, 0, c->hdr_bytes, p);
    copy(c->m, c->hdr_bytes + c->at, n, p);
    finish(c, p, c->at, c->at + n == all);
    c->at += n;
    c->n++;
    return p;
}
