/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces between the files of lib/shard. All calls belong to the shard's lcore. */
#pragma once

#include "shard/shard.h"
#include "telem/count.h"

/* Packets of one receive batch: a burst of the device and one of the ring of forwarded packets. */
#define NJ_RX_BATCH_MAX (2 * NJ_BURST_MAX)

/* packet_tx.c */
void nj__net_enqueue(void *shard, struct rte_mbuf *m);
void nj__net_enqueue_tcp_segment(void *shard, struct rte_mbuf *m, const struct nj_ip_meta *ip,
                                 nj_ns now);
uint32_t nj__net_tx_room(void *shard);
void nj__net_icmp_echo(struct nj_shard *, const struct rte_mbuf *, const struct nj_packet *,
                       nj_ns now);
void nj__net_icmp6_problem(struct nj_shard *, const struct rte_mbuf *, const struct nj_packet *,
                           nj_ns now);
/* Sends the queued output of connections. Returns the number of connections that sent something. */
uint32_t nj__net_tcp_output_all(struct nj_shard *, nj_ns now);
/* Offers the transmit queue to the device. Returns the number of packets taken. */
uint32_t nj__net_tx_burst(struct nj_shard *);

/* packet_rx.c: polls, parses and delivers packets. Returns the number of packets. */
uint32_t nj__net_rx_burst(struct nj_shard *, nj_ns now);

/* port_role.c */
/* For nj_tcp_config: does the other process that shares the port handle this packet of no
 * connection? */
bool nj__port_is_for_peer(void *shard, const struct rte_mbuf *, nj_counter *counted);
/* Does the other process answer this request of ARP, neighbour discovery or echo? */
bool nj__port_peer_answers(const struct nj_shard *, const struct rte_mbuf *);

/* pool_gauges.c */
void nj__pools_publish(struct nj_shard *);
