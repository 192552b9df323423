/* SPDX-License-Identifier: BSD-3-Clause */
#include "hosts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <rte_ethdev.h>

#include "telem/counters.h"
#include "wire/emit.h"

#define ARP_EVERY   (200 * NJ_MS) /* between two requests */
#define PREFIX_BITS 24

static struct nj_addr addr(uint32_t ip)
{
    return nj_addr_from_v4(htonl(ip));
}

static void flush(struct hosts *h)
{
    uint32_t sent = rte_eth_tx_burst(h->port.id, 0, h->txq, (uint16_t)h->n_txq);
    h->n_txq -= sent;
    memmove(h->txq, h->txq + sent, h->n_txq * sizeof *h->txq);
    nj_count_n(&h->counters, NJ_C_tx_packets, sent);
}

static void push(struct hosts *h, struct rte_mbuf *m, const struct rte_ether_addr *to,
                 uint16_t type)
{
    nj_eth_prepend(m, to, &h->port.mac, type);
    if (h->n_txq == HOSTS_TXQ_MAX)
        flush(h);
    if (h->n_txq == HOSTS_TXQ_MAX) {
        nj_count(&h->counters, NJ_C_drop_tx_full);
        rte_pktmbuf_free(m);
        return;
    }
    h->txq[h->n_txq++] = m;
}

static void emit(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct hosts *h = ctx;
    (void)now;
    nj_ipv4_prepend(m, ip, IPPROTO_TCP, h->ip_ident++);
    push(h, m, &h->server_mac, RTE_ETHER_TYPE_IPV4);
}

uint32_t hosts_room(void *hosts)
{
    struct hosts *h = hosts;
    if (h->n_txq >= NJ_BURST_MAX)
        flush(h);
    uint32_t usable = HOSTS_TXQ_MAX - HOSTS_TXQ_RESERVE;
    return h->n_txq < usable ? usable - h->n_txq : 0;
}

static void send_arp(struct hosts *h, bool request, const struct rte_ether_addr *to, uint32_t ip)
{
    struct nj_addr gateway = addr(h->gateway), target = addr(ip);
    struct rte_mbuf *m = rte_pktmbuf_alloc(h->port.tx_pool[0]);
    if (!m)
        return;
    nj_arp_build(m, request, &h->port.mac, &gateway, request ? NULL : to, &target);
    push(h, m, to, RTE_ETHER_TYPE_ARP);
}

static void process_arp(struct hosts *h, const struct nj_packet *p)
{
    uint32_t from = ntohl(nj_addr_to_v4(&p->arp.ip));

    if (from == h->server) {
        h->server_mac = p->arp.mac;
        h->server_known = true;
    }
    if (p->arp.request && ntohl(nj_addr_to_v4(&p->arp.target)) == h->gateway)
        send_arp(h, false, &p->arp.mac, from);
}

/* Processes a frame. A client host has each IPv4 address, so the interface gets the destination
 * address of the frame first. */
static void process_frame(struct hosts *h, struct rte_mbuf *m, nj_ns now)
{
    struct nj_packet p;
    const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

    if (m->data_len >= 34 && eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
        memcpy(&h->iface.addr[0].ip.b[12], (const uint8_t *)eth + 30, 4);
    nj_packet_parse(&h->iface, m, &p);
    if (p.kind == NJ_PACKET_TCP) {
        uint32_t hash = nj_flow_hash(&h->tcp.flows, &p.tcp.tuple);
        struct nj_flow *f = nj_flow_find(&h->tcp.flows, hash, &p.tcp.tuple);
        nj_tcp_input(&h->tcp, f, m, &p.tcp, now);
        return;
    }
    if (p.kind == NJ_PACKET_ARP)
        process_arp(h, &p);
    rte_pktmbuf_free(m);
}

uint32_t hosts_in(struct hosts *h, uint32_t n_frames, nj_ns now)
{
    static const struct rte_ether_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    struct rte_mbuf *m[NJ_BURST_MAX];
    uint32_t total = 0, n, n_wanted;

    do {
        n_wanted = nj_min_u32(NJ_BURST_MAX, n_frames - total);
        n = rte_eth_rx_burst(h->port.id, 0, m, (uint16_t)n_wanted);
        for (uint32_t k = 0; k < n; k++)
            process_frame(h, m[k], now);
        total += n;
    } while (n == n_wanted && total < n_frames);
    if (!h->server_known && now - h->arp_sent_at >= ARP_EVERY) {
        h->arp_sent_at = now;
        send_arp(h, true, &all, h->server);
    }
    nj_tcp_tick(&h->tcp, now);
    return total;
}

uint32_t hosts_out(struct hosts *h, nj_ns now)
{
    nj_tcp_output_pending(&h->tcp, now);
    uint32_t had = h->n_txq;
    flush(h);
    return had - h->n_txq;
}

struct nj_tcb *hosts_connect(struct hosts *h, uint32_t from, uint16_t from_port, uint16_t port,
                             nj_ns now)
{
    struct nj_tuple t = {
        .remote = addr(h->server), .local = addr(from), .rport = port, .lport = from_port};
    return nj_tcp_connect(&h->tcp, &t, now);
}

bool hosts_open(struct hosts *h, uint32_t gateway, uint32_t server, uint32_t conns_max, nj_ns now,
                char *why, size_t n)
{
    memset(h, 0, sizeof *h);
    h->gateway = gateway;
    h->server = server;
    static const struct nj_rss_key no_key; /* without effect: one shard receives all packets */
    static const struct nj_dpdk_port_config want = {.id = -1, .n_shards = 1};
    if (nj_dpdk_port_open(&h->port, &want, &no_key, why, n) != 0)
        return false;
    h->iface = (struct nj_iface){
        .mac = h->port.mac,
        .mtu = h->port.mtu,
        .n_addrs = 1,
        .addr = {{.ip = addr(gateway), .prefix_bits = PREFIX_BITS, .state = NJ_ADDR_READY}}};
    struct nj_tcp_config c = {
        .mp = h->port.tx_pool[0],
        .counters = &h->counters,
        .conns_max = conns_max,
        .mtu = h->port.mtu,
        .time_wait = NJ_SEC,
        .emit = emit,
        .room = hosts_room,
        .ctx = h,
    };
    if (getrandom(&c.flow_key, sizeof c.flow_key, 0) != sizeof c.flow_key ||
        getrandom(&c.isn_key, sizeof c.isn_key, 0) != sizeof c.isn_key ||
        !nj_tcp_init(&h->tcp, &c, now)) {
        snprintf(why, n, "no memory for %u connections", conns_max);
        return false;
    }
    return true;
}

void hosts_close(struct hosts *h)
{
    nj_tcp_fini(&h->tcp);
    rte_pktmbuf_free_bulk(h->txq, h->n_txq);
    nj_dpdk_port_close(&h->port);
}
