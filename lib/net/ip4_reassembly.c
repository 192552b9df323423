/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 reassembly (RFC 791 3.2, RFC 1122 3.3.2) on rte_ip_frag, with checks of RFC 5722 4. */
#define ALLOW_EXPERIMENTAL_API  /* rte_ip_frag_table_del_expired_entries(), unchanged since 18.08  \
                                 */
#include "net/ip4_reassembly.h"

#include <string.h>

#include <rte_ip.h>
#include <rte_ip_frag.h>
#include <rte_mbuf.h>

#include "base/assert.h"
#include "telem/counters_packet.h"

_Static_assert(NJ_FRAG_PARTS_MAX <= RTE_LIBRTE_IP_FRAG_MAX_FRAG, "capacity of rte_ip_frag");
_Static_assert(NJ_FRAG_PACKETS_MAX *NJ_FRAG_PARTS_MAX <= RTE_IP_FRAG_DEATH_ROW_MBUF_LEN,
               "one death row holds all fragments");

void nj_ip4_reasm_init(struct nj_ip4_reasm *f, struct rte_ip_frag_tbl *table,
                       struct nj_counters *counters)
{
    memset(f, 0, sizeof *f);
    f->table = table;
    f->counters = counters;
    f->due_at = NJ_NEVER;
}

/* As in the table: a packet of exactly NJ_FRAG_TIMEOUT may still be completed. */
static bool is_expired(const struct nj_frag_queue *n, nj_ns now)
{
    return now > n->first_frag_at + NJ_FRAG_TIMEOUT;
}

/* Held: IPv4 fragments | source address, in packets | 4 of 32 | 0.5 s | drop_frag_share,
 * drop_frag_full, frag_timeout */

/* The entry of this packet, or a free one, or NULL with the reason. An expired entry and its
 * fragments in the table are free. */
static struct nj_frag_queue *find_or_reserve(struct nj_ip4_reasm *f, const struct nj_packet *p,
                                             nj_ns now, nj_counter *why)
{
    struct nj_frag_queue *unused = NULL;
    uint32_t n_of_source = 0;

    for (uint32_t i = 0; i < NJ_FRAG_PACKETS_MAX; i++) {
        struct nj_frag_queue *n = &f->frag_queue[i];
        if (n->n_parts == 0 || is_expired(n, now)) {
            unused = n;
            continue;
        }
        if (!nj_addr_eq(&n->src, &p->ip_src))
            continue;
        n_of_source++;
        if (n->id == p->fragment.id && nj_addr_eq(&n->dst, &p->ip_dst))
            return n; /* also with another protocol: the table would join the two */
    }
    *why = n_of_source >= NJ_FRAG_SOURCE_MAX ? NJ_C_drop_frag_share : NJ_C_drop_frag_full;
    if (n_of_source >= NJ_FRAG_SOURCE_MAX)
        return NULL;
    if (unused)
        *unused = (struct nj_frag_queue){.src = p->ip_src,
                                         .dst = p->ip_dst,
                                         .id = p->fragment.id,
                                         .protocol = p->fragment.protocol,
                                         .n_bytes = UINT32_MAX,
                                         .first_frag_at = now};
    return unused;
}

/* RFC 1122 3.3.2, RFC 5722 4: record the fragment, or return why it is dropped. Two packets of
 * one identification and different protocols are both rejected, because the table does not
 * distinguish them (RFC 791 3.2). */
static nj_counter accept_fragment(struct nj_frag_queue *n, const struct nj_fragment *f)
{
    n->rejects_rest |= f->protocol != n->protocol;
    if (n->rejects_rest)
        return NJ_C_drop_frag_overlap;
    bool past_end = f->end > n->n_bytes || (!f->more && n->n_bytes != UINT32_MAX);
    for (uint32_t i = 0; i < n->n_parts; i++) {
        bool is_last = n->part[i].end == n->n_bytes;
        if (n->part[i].first == f->first && n->part[i].end == f->end && is_last == !f->more)
            return NJ_C_drop_frag_duplicate;
        bool apart = f->end <= n->part[i].first || n->part[i].end <= f->first;
        past_end |= !f->more && n->part[i].end > f->end;
        n->rejects_rest |= !apart;
    }
    n->rejects_rest |= past_end;
    if (n->rejects_rest)
        return NJ_C_drop_frag_overlap;
    if (n->n_parts == NJ_FRAG_PARTS_MAX) {
        n->rejects_rest = true;
        return NJ_C_drop_frag_full;
    }
    n->part[n->n_parts].first = f->first;
    n->part[n->n_parts++].end = f->end;
    if (!f->more)
        n->n_bytes = f->end;
    n->ce |= f->ecn == NJ_ECN_CE;
    return NJ_C_rx_fragments;
}

static bool has_all_bytes(const struct nj_frag_queue *n)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n->n_parts; i++)
        sum += n->part[i].end - n->part[i].first;
    return sum == n->n_bytes; /* since none of them overlap */
}

static void drop_fragment(struct nj_ip4_reasm *f, struct rte_mbuf *m, nj_counter why)
{
    nj_count(f->counters, why);
    rte_pktmbuf_free(m);
}

/* Free the fragments that the table released: expired ones, and `m` if the table was full. True if
 * `m` was among them. */
static bool free_death_row(struct nj_ip4_reasm *f, struct rte_ip_frag_death_row *dead,
                           const struct rte_mbuf *m)
{
    bool refused = false;
    for (uint32_t i = 0; i < dead->cnt; i++)
        refused |= dead->row[i] == m;
    nj_count_n(f->counters, NJ_C_frag_timeout, dead->cnt - refused);
    rte_ip_frag_free_death_row(dead, 0);
    return refused;
}

/* Sets the joined packet to the form that nj_packet_parse() expects. */
static struct rte_mbuf *finish_datagram(struct nj_ip4_reasm *f, struct rte_mbuf *m, uint32_t ip_off,
                                        bool ce)
{
    nj_count(f->counters, NJ_C_rx_reassembled);
    if (rte_pktmbuf_linearize(m) != 0) {
        drop_fragment(f, m, NJ_C_drop_ip_fragment);
        return NULL;
    }
    uint8_t *tos = rte_pktmbuf_mtod_offset(m, uint8_t *, ip_off + 1);
    if (ce)
        *tos |= NJ_ECN_CE;
    /* The header checksum was verified per fragment and is not updated. The device's checksum
     * flags refer to the first fragment. */
    m->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
    m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
    return m;
}

struct rte_mbuf *nj_ip4_reasm_input(struct nj_ip4_reasm *f, struct rte_mbuf *m,
                                    const struct nj_packet *p, nj_ns now)
{
    const struct nj_fragment *frag = &p->fragment;
    struct rte_ip_frag_death_row dead;

    if (!f->table || m->nb_segs != 1) {
        drop_fragment(f, m, NJ_C_drop_ip_fragment);
        return NULL;
    }
    nj_counter why = NJ_C_drop_frag_full;
    struct nj_frag_queue *n = find_or_reserve(f, p, now, &why);
    if (!n) {
        drop_fragment(f, m, why);
        return NULL;
    }
    nj_counter verdict = accept_fragment(n, frag);
    if (verdict != NJ_C_rx_fragments) {
        drop_fragment(f, m, verdict);
        return NULL;
    }
    if (f->due_at > n->first_frag_at + NJ_FRAG_TIMEOUT + 1)
        f->due_at = n->first_frag_at + NJ_FRAG_TIMEOUT + 1;

    m->l2_len = frag->ip_off;
    m->l3_len = frag->hdr_bytes;
    dead.cnt = 0;
    struct rte_mbuf *whole = rte_ipv4_frag_reassemble_packet(
        f->table, &dead, m, now, rte_pktmbuf_mtod_offset(m, void *, frag->ip_off));
    bool refused = free_death_row(f, &dead, m);
    nj_count(f->counters, refused ? NJ_C_drop_frag_full : NJ_C_rx_fragments);
    n->rejects_rest = refused;
    bool ce = n->ce;
    NJ_ASSERT(refused || has_all_bytes(n) == (whole != NULL));
    if (!whole)
        return NULL;
    n->n_parts = 0;
    return finish_datagram(f, whole, whole->l2_len, ce);
}

void nj_ip4_reasm_tick(struct nj_ip4_reasm *f, nj_ns now)
{
    struct rte_ip_frag_death_row dead;

    if (now < f->due_at)
        return;
    dead.cnt = 0;
    rte_ip_frag_table_del_expired_entries(f->table, &dead, now);
    free_death_row(f, &dead, NULL);
    f->due_at = NJ_NEVER;
    for (uint32_t i = 0; i < NJ_FRAG_PACKETS_MAX; i++) {
        struct nj_frag_queue *n = &f->frag_queue[i];
        if (n->n_parts > 0 && is_expired(n, now))
            n->n_parts = 0;
        else if (n->n_parts > 0 && n->first_frag_at + NJ_FRAG_TIMEOUT + 1 < f->due_at)
            f->due_at = n->first_frag_at + NJ_FRAG_TIMEOUT + 1;
    }
}
