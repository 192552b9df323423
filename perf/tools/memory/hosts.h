/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many hosts behind one Ethernet port: TCP from any number of source addresses. To the server, the
 * port is a gateway, and the hosts are behind it. Addresses are IPv4 in host byte order.
 */
#pragma once

#include "dpdk/port.h"
#include "tcp/tcp.h"
#include "telem/counters.h"
#include "wire/iface.h"

/* Maximum of frames that the device has not accepted yet, and the share of it for ACKs and ARP. */
#define HOSTS_TXQ_MAX     512u
#define HOSTS_TXQ_RESERVE 64u

struct hosts {
    struct nj_counters counters; /* first: aligned */
    struct nj_dpdk_port port;
    struct nj_iface iface; /* of the host to which the current frame is addressed */
    uint32_t gateway, server;
    struct rte_ether_addr server_mac;
    bool server_known;
    nj_ns arp_sent_at; /* last ARP request */
    uint16_t ip_ident;
    struct nj_tcp tcp;
    uint32_t n_txq;
    struct rte_mbuf *txq[HOSTS_TXQ_MAX];
};

/* Opens the port and initialises TCP, after nj_eal_init(). False: failed; `why` has the reason. */
bool hosts_open(struct hosts *h, uint32_t gateway, uint32_t server, uint32_t conns_max, nj_ns now,
                char *why, size_t why_bytes);
void hosts_close(struct hosts *h);

/* Receives at most `n_frames` frames, which is not 0, resolves the server's MAC address and runs
 * timers. Returns the number of frames. */
uint32_t hosts_in(struct hosts *h, uint32_t n_frames, nj_ns now);
/* Sends due segments. Returns the number of frames. */
uint32_t hosts_out(struct hosts *h, nj_ns now);

/* Number of segments for which the queue has room. */
uint32_t hosts_room(void *hosts);

/* Opens a connection. NULL: no block is free, or the ports are in use. */
struct nj_tcb *hosts_connect(struct hosts *h, uint32_t from, uint16_t from_port, uint16_t port,
                             nj_ns now);
