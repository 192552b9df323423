/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many hosts behind one Ethernet port: TCP from any number of source addresses, as a server sees it
 * behind its gateway, which is us. Addresses are IPv4 in host byte order.
 */
#ifndef NJ_PERF_MEMORY_HOSTS_H
#define NJ_PERF_MEMORY_HOSTS_H

#include "dpdk/port.h"
#include "tcp/tcp.h"
#include "telem/counters.h"
#include "wire/iface.h"

/* Frames made and not yet taken by the device; a few places stay free for ACKs and ARP. */
#define HOSTS_TXQ_MAX     512u
#define HOSTS_TXQ_RESERVE 64u

struct hosts {
    struct nj_counters counters; /* first: aligned */
    struct nj_dpdk_port port;
    struct nj_iface who; /* the host that the frame at hand is for */
    uint32_t gateway, server;
    struct rte_ether_addr server_mac;
    bool server_known;
    nj_ns asked_at; /* last ARP request */
    uint16_t ip_ident;
    struct nj_tcp tcp;
    uint32_t n_txq;
    struct rte_mbuf *txq[HOSTS_TXQ_MAX];
};

/* After the EAL. False with the reason in `why`. */
bool hosts_open(struct hosts *h, uint32_t gateway, uint32_t server, uint32_t conns_max, nj_ns now,
                char *why, size_t why_bytes);
void hosts_close(struct hosts *h);

/* Take in what came. Returns the number of frames. */
uint32_t hosts_in(struct hosts *h, nj_ns now);
/* Send what is due. Returns the number of frames. */
uint32_t hosts_out(struct hosts *h, nj_ns now);

/* Segments that may be sent now without losing one. */
uint32_t hosts_room(void *hosts);

/* A SYN on its way. NULL when the ports of `from` or the blocks are used up. */
struct nj_tcb *hosts_connect(struct hosts *h, uint32_t from, uint16_t from_port, uint16_t port,
                             nj_ns now);

#endif
