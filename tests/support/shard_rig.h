/* SPDX-License-Identifier: BSD-3-Clause */
/* * A whole shard on arrays: frames in, frames out, generated files, and peers with a minimal TCP.
 * For unit tests and fuzzers; failed checks abort.
 *
 * We are 198.18.0.2/24; peers live on the link with 198.18.0.1 and above, all at one MAC address.
 * The rig answers ARP requests for it, unless a test disables that. */
#pragma once

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "shard/shard.h"
#include "shard/shard_internal.h"
#include "support/mbuf_env.h"
#include "support/rss_key.h"
#include "tcp/seq.h"
#include "telem/counters.h"
#include "wire/icmp6.h"
#include "wire/ip6.h"

#define RIG_IP      0xc6120002u /* 198.18.0.2 */
#define RIG_PEER_IP 0xc6120001u
#define RIG_PORT    80
#ifndef RIG_PEERS
#define RIG_PEERS 128
#endif
#define RIG_FRAME   2048u
#define RIG_IN_MAX  8192u
#define RIG_OUT_MAX 64u
#ifndef RIG_GOT_MAX
#define RIG_GOT_MAX (256u * 1024u)
#endif
#define RIG_BIG      (1u << 30) /* size of /big: read in chunks */
#define RIG_WHOLE    200000u    /* size of /whole: in memory */
#define RIG_JOBS_MAX 4096u
#define RIG_CHECKED  1024u /* places of the flow table checked after each step */

static const struct rte_ether_addr rig_mac = {{2, 0, 0, 0, 0, 1}};
static const struct rte_ether_addr rig_peer_mac = {{2, 0, 0, 0, 0, 9}};

struct rig_frame {
    uint32_t n_bytes;
    uint8_t bytes[RIG_FRAME];
};

/* One end of a connection, as simple as possible: bytes in order are kept and acknowledged before
 * the next step. */
struct rig_peer {
    bool used, manual;                  /* manual: without automatic acknowledgments */
    struct nj_tuple tuple;              /* local = the peer */
    uint32_t snd_nxt, snd_una, rcv_nxt; /* of the peer */
    uint32_t rcv_wnd;                   /* the window that it offers, unscaled: at most 65535 */
    uint32_t srv_wnd;                   /* the last window of the shard, unscaled */
    bool got_synack, got_fin, got_rst, ack_due;
    uint64_t n_got; /* bytes in order, of which the first RIG_GOT_MAX are kept */
    uint8_t *got;
    uint32_t n_acks_seen;
};

struct rig {
    struct nj_shard *s;
    struct nj_http_options http; /* the shard's */
    struct rte_mempool *rx_pool, *tx_pool;
    nj_ns now;
    uint32_t n_in, n_steered;
    struct rte_mbuf *in[RIG_IN_MAX], *steered[RIG_IN_MAX];
    uint32_t tx_room; /* frames that the device still accepts */
    uint64_t n_out;   /* frames that it accepted; the last RIG_OUT_MAX are kept */
    struct rig_frame out[RIG_OUT_MAX];
    bool no_arp, forward_full;
    uint16_t peer_mss; /* that new peers offer; 0: 1460 */
    uint32_t n_forwarded, n_shared;
    bool files_slow; /* jobs stay with the worker */
    uint32_t n_jobs, n_objects;
    uint32_t sndq_max;     /* longest send queue seen */
    uint32_t checked_next; /* place of the flow table: rig_check_bounds() goes on there */
    struct nj_file_job *job[RIG_JOBS_MAX];
    struct rig_peer peer[RIG_PEERS];
};

struct rig_object {
    struct nj_file_object object;
    struct rig *rig;
};

struct rig_chunk {
    struct nj_file_chunk chunk;
    struct rig *rig;
    uint8_t bytes[NJ_CHUNK_BYTES];
};

static inline uint64_t rig_count(const struct rig *r, nj_counter c)
{
    return nj_counter_read(&r->s->counters, c);
}

static inline uint8_t rig_byte(uint64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

/* ---- files ---- */

static inline void rig_object_last(struct nj_ref *ref)
{
    struct rig_object *o = nj_container_of(ref, struct rig_object, object.ref);
    union {
        const uint8_t *in;
        uint8_t *out;
    } bytes = {.in = o->object.bytes};
    o->rig->n_objects--;
    free(bytes.out);
    free(o);
}

static inline void rig_chunk_last(struct nj_ref *ref)
{
    struct rig_chunk *c = nj_container_of(ref, struct rig_chunk, chunk.ref);
    c->rig->n_objects--;
    free(c);
}

static inline struct nj_file_object *rig_object_new(struct rig *r, uint64_t size, bool whole)
{
    struct rig_object *o = calloc(1, sizeof *o);
    uint8_t *bytes = whole ? malloc(size) : NULL;

    for (uint64_t i = 0; whole && i < size; i++)
        bytes[i] = rig_byte(i);
    o->rig = r;
    o->object.size_bytes = size;
    o->object.bytes = bytes;
    nj_ref_init(&o->object.ref, rig_object_last);
    r->n_objects++;
    return &o->object;
}

static inline void rig_file_run(struct rig *r, struct nj_file_job *job)
{
    job->result = NJ_FILE_OK;
    if (job->op == NJ_FILE_READ) {
        struct rig_chunk *c = malloc(sizeof *c);
        for (uint32_t i = 0; i < job->n_bytes; i++)
            c->bytes[i] = rig_byte(job->offset + i);
        c->rig = r;
        c->chunk.n_bytes = job->n_bytes;
        c->chunk.offset = job->offset;
        c->chunk.bytes = c->bytes;
        nj_ref_init(&c->chunk.ref, rig_chunk_last);
        job->chunk = &c->chunk;
        r->n_objects++;
    } else if (strcmp(job->path, "big") == 0) {
        job->object = rig_object_new(r, RIG_BIG, false);
    } else if (strcmp(job->path, "whole") == 0) {
        job->object = rig_object_new(r, RIG_WHOLE, true);
    } else if (strcmp(job->path, "index.html") == 0) {
        job->object = rig_object_new(r, 100, true);
    } else {
        job->result = strncmp(job->path, "dir", 3) == 0 ? NJ_FILE_IS_DIR : NJ_FILE_ABSENT;
    }
}

static inline bool rig_submit(void *ctx, struct nj_file_job *job)
{
    struct rig *r = ctx;
    if (r->n_jobs == RIG_JOBS_MAX)
        return false;
    r->job[r->n_jobs++] = job;
    return true;
}

static inline uint32_t rig_poll(void *ctx, struct nj_file_job **jobs, uint32_t n)
{
    struct rig *r = ctx;
    uint32_t got = 0;

    while (!r->files_slow && got < n && got < r->n_jobs) {
        rig_file_run(r, r->job[got]);
        jobs[got] = r->job[got];
        got++;
    }
    r->n_jobs -= got;
    memmove(r->job, r->job + got, r->n_jobs * sizeof r->job[0]);
    return got;
}

/* ---- frames in ---- */

static inline void rig_queue(struct rig *r, struct rte_mbuf *m)
{
    NJ_CHECK(m && r->n_in < RIG_IN_MAX);
    r->in[r->n_in++] = m;
}

static inline uint32_t rig_take(struct rte_mbuf **q, uint32_t *n_q, struct rte_mbuf **m, uint32_t n)
{
    uint32_t got = n < *n_q ? n : *n_q;
    memcpy(m, q, got * sizeof *m);
    *n_q -= got;
    memmove(q, q + got, *n_q * sizeof *q);
    return got;
}

static inline uint32_t rig_rx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct rig *r = ctx;
    return rig_take(r->in, &r->n_in, m, n);
}

static inline uint32_t rig_rx_steered(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct rig *r = ctx;
    return rig_take(r->steered, &r->n_steered, m, n);
}

/* A raw frame from the link. False when the receive pool is empty. */
static inline bool rig_frame(struct rig *r, const void *bytes, size_t n)
{
    struct rte_mbuf *m = r->n_in < RIG_IN_MAX ? nj_test_mbuf(r->rx_pool, bytes, n) : NULL;
    if (m)
        rig_queue(r, m);
    return m != NULL;
}

static inline struct nj_addr rig_addr(uint32_t ip)
{
    return nj_addr_from_v4(htonl(ip));
}

static inline struct rte_mbuf *rig_arp_frame(struct rig *r, bool request, uint32_t from,
                                             const struct rte_ether_addr *mac, uint32_t target)
{
    struct nj_addr who = rig_addr(from), to = rig_addr(target);
    struct rte_mbuf *m = rte_pktmbuf_alloc(r->rx_pool);
    NJ_CHECK(m);
    nj_arp_build(m, request, mac, &who, &rig_mac, &to);
    nj_eth_prepend(m, &rig_mac, mac, RTE_ETHER_TYPE_ARP);
    return m;
}

static inline void rig_arp(struct rig *r, bool request, uint32_t from,
                           const struct rte_ether_addr *mac, uint32_t target)
{
    rig_queue(r, rig_arp_frame(r, request, from, mac, target));
}

/* ---- peers ---- */

static inline bool rig_seg_mss(struct rig *r, const struct rig_peer *p, uint32_t seq, uint8_t flags,
                               const void *data, uint32_t n, uint16_t mss)
{
    struct rte_mbuf *m = r->n_in < RIG_IN_MAX ? nj_test_mbuf(r->rx_pool, data, n) : NULL;
    if (!m)
        return false;
    struct nj_tcp_emit e = {.tuple = p->tuple,
                            .seq = seq,
                            .ack = flags & NJ_TCP_ACK ? p->rcv_nxt : 0,
                            .wnd = (uint16_t)p->rcv_wnd,
                            .flags = flags,
                            .opts = {.has_mss = mss != 0, .mss = mss}};
    nj_tcp_prepend(m, &e, &(struct nj_tx_offload){.tcp_csum = false});
    bool v4 = nj_addr_is_v4(&p->tuple.remote);
    nj_ip_prepend(m, &(struct nj_ip_meta){.src = p->tuple.local, .dst = p->tuple.remote},
                  IPPROTO_TCP, 1);
    nj_eth_prepend(m, &rig_mac, &rig_peer_mac, v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
    rig_queue(r, m);
    return true;
}

static inline bool rig_seg(struct rig *r, const struct rig_peer *p, uint32_t seq, uint8_t flags,
                           const void *data, uint32_t n)
{
    return rig_seg_mss(r, p, seq, flags, data, n, 0);
}

/* The next bytes of the peer's stream, as one segment. */
static inline bool rig_send(struct rig *r, struct rig_peer *p, const void *data, uint32_t n)
{
    if (!rig_seg(r, p, p->snd_nxt, NJ_TCP_ACK | NJ_TCP_PSH, data, n))
        return false;
    p->snd_nxt += n;
    return true;
}

static inline void rig_ack(struct rig *r, struct rig_peer *p)
{
    p->ack_due = false;
    rig_seg(r, p, p->snd_nxt, NJ_TCP_ACK, NULL, 0);
}

static inline void rig_fin(struct rig *r, struct rig_peer *p)
{
    if (rig_seg(r, p, p->snd_nxt, NJ_TCP_ACK | NJ_TCP_FIN, NULL, 0))
        p->snd_nxt++;
}

static inline void rig_peer_data(struct rig_peer *p, const struct nj_seg *seg, const uint8_t *frame)
{
    uint32_t old = p->rcv_nxt - seg->seq, n = seg->payload_bytes;

    if ((int32_t)old < 0 || old > n)
        return; /* a hole, or old */
    n -= old;
    bool all = n <= p->rcv_wnd;
    n = all ? n : p->rcv_wnd;
    uint64_t keep = p->n_got < RIG_GOT_MAX ? RIG_GOT_MAX - p->n_got : 0;
    memcpy(p->got + (keep ? p->n_got : 0), frame + seg->payload_off + old, n < keep ? n : keep);
    p->n_got += n;
    p->rcv_nxt += n;
    if (all && (seg->flags & NJ_TCP_FIN) && !p->got_fin) {
        p->got_fin = true;
        p->rcv_nxt++;
    }
}

static inline void rig_peer_rx(struct rig *r, const struct nj_seg *seg, const uint8_t *frame)
{
    for (uint32_t i = 0; i < RIG_PEERS; i++) {
        struct rig_peer *p = &r->peer[i];
        if (!p->used || p->tuple.lport != seg->tuple.lport ||
            !nj_addr_eq(&p->tuple.local, &seg->tuple.local))
            continue;
        if (seg->flags & NJ_TCP_RST) {
            p->got_rst = true;
            return;
        }
        p->srv_wnd = seg->wnd;
        p->snd_una = seg->ack;
        if (seg->flags & NJ_TCP_SYN) {
            p->got_synack = true;
            p->rcv_nxt = seg->seq + 1;
            p->ack_due = true;
            return;
        }
        p->n_acks_seen++;
        uint32_t old_una = p->rcv_nxt;
        rig_peer_data(p, seg, frame);
        bool probe = nj_seg_len(seg) > 0;
        p->ack_due |= probe || p->rcv_nxt != old_una;
        return;
    }
}

/* A peer advertises its MAC address. A neighbour solicitation for duplicate address detection gets
 * no answer. */
static inline void rig_advert(struct rig *r, const struct nj_packet *asked)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(r->rx_pool);
    NJ_CHECK(m);
    if (nj_ip6_is_unspecified(&asked->ip_src)) {
        rte_pktmbuf_free(m);
        return;
    }
    nj_nd_advertise_build(m, &asked->nd.target, &asked->ip_src, &asked->nd.target, &rig_peer_mac,
                          true);
    nj_eth_prepend(m, &rig_mac, &rig_peer_mac, RTE_ETHER_TYPE_IPV6);
    rig_queue(r, m);
}

/* A frame that the shard sent: store it, answer ARP, and deliver it to its peer. */
static inline void rig_frame_out(struct rig *r, struct rte_mbuf *m)
{
    struct rig_frame *f = &r->out[r->n_out++ % RIG_OUT_MAX];
    struct nj_packet p;

    NJ_CHECK(m->pkt_len <= RIG_FRAME && m->nb_segs == 1);
    f->n_bytes = m->pkt_len;
    memcpy(f->bytes, rte_pktmbuf_mtod(m, void *), f->n_bytes);
    const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
    NJ_CHECK(rte_is_same_ether_addr(&eth->src_addr, &rig_mac));
    struct nj_iface who = {
        .mac = eth->dst_addr, .mtu = 1500, .n_addrs = 1, .addr = {{rig_addr(RIG_PEER_IP), 0, 0}}};
    if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
        memcpy(&who.addr[0].ip.b[12], f->bytes + 30, 4); /* for any destination */
    bool v6 = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6);
    if (v6) {
        who.ip6 = true;
        memcpy(who.addr[0].ip.b, f->bytes + 38, 16);
    }
    nj_packet_parse(&who, m, &p);
    if (p.kind == NJ_PACKET_ND && p.nd.kind == NJ_ND_SOLICIT && !r->no_arp)
        rig_advert(r, &p);
    if (p.kind == NJ_PACKET_ARP && p.arp.request && !r->no_arp &&
        nj_addr_to_v4(&p.arp.target) != htonl(RIG_IP))
        rig_arp(r, false, ntohl(nj_addr_to_v4(&p.arp.target)), &rig_peer_mac, RIG_IP);
    if (p.kind == NJ_PACKET_TCP)
        rig_peer_rx(r, &p.tcp, f->bytes);
    else /* our frames are well-formed */
        NJ_CHECK(p.kind == NJ_PACKET_ARP || p.kind == NJ_PACKET_ND ||
                 p.drop == NJ_C_drop_icmp_type || (v6 && p.drop == NJ_C_drop_ip_dst));
}

static inline uint32_t rig_tx(void *ctx, struct rte_mbuf **m, uint32_t n)
{
    struct rig *r = ctx;
    n = n < r->tx_room ? n : r->tx_room;
    r->tx_room -= r->tx_room == UINT32_MAX ? 0 : n;
    for (uint32_t i = 0; i < n; i++) {
        rig_frame_out(r, m[i]);
        rte_pktmbuf_free(m[i]);
    }
    return n;
}

static inline bool rig_forward(void *ctx, uint32_t shard, struct rte_mbuf *m)
{
    struct rig *r = ctx;
    NJ_CHECK(shard < r->s->cfg.n_shards && shard != r->s->cfg.index);
    if (r->forward_full)
        return false;
    r->n_forwarded++;
    rte_pktmbuf_free(m);
    return true;
}

static inline void rig_share(void *ctx, const struct rte_mbuf *m)
{
    ((struct rig *)ctx)->n_shared++;
}

/* ---- life ---- */

static inline struct nj_shard_config rig_config(struct rig *r)
{
    return (struct nj_shard_config){
        .n_shards = 1,
        .reta_size = 128,
        .rss_key = test_rss_key,
        .iface = {.mac = rig_mac, .mtu = 1500, .n_addrs = 1, .addr = {{rig_addr(RIG_IP), 24, 0}}},
        .ops = {.ctx = r,
                .rx = rig_rx,
                .rx_steered = rig_rx_steered,
                .tx = rig_tx,
                .forward = rig_forward,
                .replicate = rig_share},
        .conns.ops.files = {.ctx = r, .submit = rig_submit, .poll = rig_poll},
        .tx_pool = r->tx_pool,
        .listeners = {1, {{.port = RIG_PORT}}},
        .conns_max = RIG_PEERS,
        .half_open_max = RIG_PEERS,
        .time_wait = 2 * NJ_SEC,
        .flow_key = {{1, 2, 3}},
        .isn_key = {{4, 5, 6}},
        .seed = 7,
        .conns.wall_s_at_zero = 1700000000,
        .conns.http = &r->http,
    };
}

static inline struct rig *rig_alloc(uint32_t n_rx_mbufs, uint32_t n_tx_mbufs)
{
    struct rig *r = calloc(1, sizeof *r);
    r->rx_pool = nj_test_pool(n_rx_mbufs);
    r->tx_pool = nj_test_pool(n_tx_mbufs);
    r->tx_room = UINT32_MAX;
    r->http = nj_http_options_default;
    r->http.min_upload_rate = r->http.body_deadline = 0;
    r->now = 1000 * NJ_SEC;
    r->s = aligned_alloc(NJ_CACHE_LINE, RTE_CACHE_LINE_ROUNDUP(sizeof *r->s));
    return r;
}

static inline struct rig *rig_new_with(struct rig *r, const struct nj_shard_config *c)
{
    NJ_CHECK(nj_shard_init(r->s, c, r->now));
    return r;
}

static inline struct rig *rig_new(void)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(r);
    return rig_new_with(r, &c);
}

static inline uint32_t rig_arp_waiting(const struct rig *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < NJ_NEIGH_MAX; i++)
        n += r->s->neigh.entry[i].n_pending;
    return n;
}

/* The identities of counters.def. */
static inline void rig_check_sums(const struct rig *r)
{
    const struct nj_counters *c = &r->s->counters;
    NJ_CHECK(nj_counters_sum_of_kind(c, NJ_KIND_RX_IN) ==
             nj_counters_sum_of_kind(c, NJ_KIND_RX_OUT) +
                 nj_counters_sum_of_kind(c, NJ_KIND_RX_DROP));
    NJ_CHECK(nj_counters_sum_of_kind(c, NJ_KIND_TX_IN) ==
             nj_counters_sum_of_kind(c, NJ_KIND_TX_OUT) +
                 nj_counters_sum_of_kind(c, NJ_KIND_TX_DROP) + r->s->n_txq + rig_arp_waiting(r));
    NJ_CHECK(rig_count(r, NJ_C_tx_packets) == r->n_out);
}

/* Check the bounds of each connection; in a larger table than usual, of some after each step. */
static inline void rig_check_bounds(struct rig *r)
{
    const struct nj_flow_table *f = &r->s->tcp.flows;
    for (uint32_t n = f->mask < RIG_CHECKED ? f->mask + 1 : RIG_CHECKED; n > 0; n--) {
        const struct nj_tcb *t = nj_flow_tcb(nj_flow_at(f, r->checked_next++ & f->mask));
        if (!t || !t->x)
            continue;
        r->sndq_max = t->x->sndq.n_bytes > r->sndq_max ? t->x->sndq.n_bytes : r->sndq_max;
        NJ_CHECK(t->x->sndq.n_bytes <= NJ_SENDQ_BYTES_MAX);
        NJ_CHECK(t->x->rcvq.n_bytes + t->x->reasm_bytes <= NJ_RECV_WINDOW_BYTES);
        NJ_CHECK(t->x->rcvq.n_mbufs <= NJ_RECV_MBUFS_MAX);
    }
}

/* One step of the shard. Before it the peers acknowledge the data of the step before. */
static inline uint32_t rig_step(struct rig *r)
{
    for (uint32_t i = 0; i < RIG_PEERS; i++)
        if (r->peer[i].used && r->peer[i].ack_due && !r->peer[i].manual)
            rig_ack(r, &r->peer[i]);
    uint32_t work = nj_shard_step(r->s, r->now);
    rig_check_sums(r);
    rig_check_bounds(r);
    return work;
}

/* Steps without time until nothing happens. */
static inline void rig_settle(struct rig *r)
{
    for (uint32_t i = 0; i < 10000; i++)
        if (rig_step(r) == 0 && r->n_in == 0) {
            bool due = false;
            for (uint32_t k = 0; k < RIG_PEERS; k++)
                due |= r->peer[k].used && r->peer[k].ack_due && !r->peer[k].manual;
            if (!due)
                return;
        }
    NJ_UNREACHABLE("the shard does not come to rest");
}

/* Let time pass, in steps of 50 ms at most. */
static inline void rig_run(struct rig *r, nj_ns dt)
{
    nj_ns end = r->now + dt;
    rig_settle(r);
    while (r->now < end) {
        nj_ns left = end - r->now;
        r->now += left < 50 * NJ_MS ? left : 50 * NJ_MS;
        rig_settle(r);
    }
}

/* End the shard. Everything given back? */
static inline void rig_end(struct rig *r)
{
    r->files_slow = false;
    nj_shard_fini(r->s);
    rig_check_sums(r);
    NJ_CHECK(r->n_jobs == 0 && r->n_objects == 0);
    for (uint32_t i = 0; i < r->n_in; i++)
        rte_pktmbuf_free(r->in[i]);
    for (uint32_t i = 0; i < r->n_steered; i++)
        rte_pktmbuf_free(r->steered[i]);
    r->n_in = r->n_steered = 0;
    NJ_CHECK(nj_test_pool_full(r->rx_pool));
    NJ_CHECK(nj_test_pool_full(r->tx_pool));
}

static inline void rig_free(struct rig *r)
{
    rig_end(r);
    nj_test_pool_free(r->rx_pool);
    nj_test_pool_free(r->tx_pool);
    for (uint32_t i = 0; i < RIG_PEERS; i++)
        free(r->peer[i].got);
    free(r->s);
    free(r);
}

/* A peer that has sent its SYN. */
static inline struct rig_peer *rig_syn_between(struct rig *r, const struct nj_addr *from,
                                               const struct nj_addr *to, uint16_t port)
{
    for (uint32_t i = 0; i < RIG_PEERS; i++) {
        struct rig_peer *p = &r->peer[i];
        if (p->used)
            continue;
        uint8_t *got = p->got ? p->got : malloc(RIG_GOT_MAX);
        *p = (struct rig_peer){.used = true, .got = got, .rcv_wnd = 65535};
        p->tuple.local = *from;
        p->tuple.remote = *to;
        p->tuple.lport = port;
        p->tuple.rport = RIG_PORT;
        p->snd_nxt = 77777u * port;
        rig_seg_mss(r, p, p->snd_nxt, NJ_TCP_SYN, NULL, 0, r->peer_mss ? r->peer_mss : 1460);
        p->snd_nxt++;
        return p;
    }
    return NULL;
}

static inline struct rig_peer *rig_syn_from(struct rig *r, uint32_t ip, uint16_t port)
{
    struct nj_addr from = rig_addr(ip), to = rig_addr(RIG_IP);
    return rig_syn_between(r, &from, &to, port);
}

/* A peer that is connected. */
static inline struct rig_peer *rig_connect(struct rig *r, uint16_t port)
{
    struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP, port);
    rig_settle(r);
    return p;
}

/* ---- HTTP/2 by hand ---- */

#define RIG_PREFACE       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define RIG_PREFACE_BYTES 24u

/* A frame at `out`; returns its bytes. */
static inline uint32_t rig_h2(uint8_t *out, uint8_t type, uint8_t flags, uint32_t stream,
                              const void *payload, uint32_t n)
{
    const uint8_t head[9] = {(uint8_t)(n >> 16),
                             (uint8_t)(n >> 8),
                             (uint8_t)n,
                             type,
                             flags,
                             (uint8_t)(stream >> 24),
                             (uint8_t)(stream >> 16),
                             (uint8_t)(stream >> 8),
                             (uint8_t)stream};
    memcpy(out, head, sizeof head);
    if (n)
        memcpy(out + sizeof head, payload, n);
    return 9 + n;
}

/* GET of `path`, which is shorter than 127 bytes. */
static inline uint32_t rig_h2_get(uint8_t *out, uint32_t stream, const char *path)
{
    uint8_t block[160] = {0x82, 0x86, 0x01, 1, 'a', 0x04, (uint8_t)strlen(path)};
    memcpy(block + 7, path, strlen(path));
    return rig_h2(out, 1, 0x5, stream, block, 7 + (uint32_t)strlen(path));
}

/* Preface and SETTINGS, with windows as large as they can be. */
static inline uint32_t rig_h2_hello(uint8_t *out)
{
    static const uint8_t settings[] = {0, 4, 0x7f, 0xff, 0xff, 0xff};
    static const uint8_t window[] = {0x7f, 0xff, 0, 0};
    memcpy(out, RIG_PREFACE, RIG_PREFACE_BYTES);
    uint32_t n = RIG_PREFACE_BYTES;
    n += rig_h2(out + n, 4, 0, 0, settings, sizeof settings);
    return n + rig_h2(out + n, 8, 0, 0, window, sizeof window);
}

/* A peer that has sent its SYN is connected, and sends the preface of HTTP/2. */
static inline void rig_begin_h2(struct rig *r, struct rig_peer *p)
{
    uint8_t buf[128];
    rig_settle(r);
    rig_send(r, p, buf, rig_h2_hello(buf));
    rig_settle(r);
}

static inline struct rig_peer *rig_connect_h2(struct rig *r, uint16_t port)
{
    struct rig_peer *p = rig_connect(r, port);
    rig_begin_h2(r, p);
    return p;
}

static inline void rig_get(struct rig *r, struct rig_peer *p, uint32_t stream, const char *path)
{
    uint8_t buf[256];
    rig_send(r, p, buf, rig_h2_get(buf, stream, path));
}

/* The number of whole frames of `type` among the stored bytes; the payload of the last one. */
static inline uint32_t rig_h2_frames(const struct rig_peer *p, uint8_t type, const uint8_t **last)
{
    uint64_t n = p->n_got < RIG_GOT_MAX ? p->n_got : RIG_GOT_MAX;
    uint32_t found = 0;
    for (uint64_t at = 0; at + 9 <= n;) {
        const uint8_t *f = p->got + at;
        uint32_t len = (uint32_t)f[0] << 16 | (uint32_t)f[1] << 8 | f[2];
        if (at + 9 + len > n)
            break;
        if (f[3] == type) {
            found++;
            if (last)
                *last = f + 9;
        }
        at += 9 + len;
    }
    return found;
}
