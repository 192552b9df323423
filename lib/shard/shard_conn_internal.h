/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces between the files of lib/shard and lib/conn. All calls belong to the shard's lcore. */
#ifndef NJ_SHARD_SHARD_CONN_INTERNAL_H
#define NJ_SHARD_SHARD_CONN_INTERNAL_H

#include "shard/shard.h"

/* Packets of one receive batch: a burst of the device and one of the ring of forwarded packets. */
#define NJ_RX_BATCH_MAX (2 * NJ_BURST_MAX)

/* Mbufs of input that a connection may process in one step, for fairness. */
#define NJ_READ_MBUFS_MAX 64u

/* With fewer mbufs left than this, HTTP/2 is not asked for output, so that segments queued by TCP
 * can still be sent. */
#define NJ_TX_POOL_LOW     256u
/* A connection with queued output leaves this part of the pool to connections without, and to
 * segments. So peers that do not read are stopped before the pool is empty for all. Of this part a
 * client gets a share: see nj__pressure_may_send(). */
#define NJ_TX_POOL_RESERVE 8u

/* HTTP/2 is asked for output while the connection's send queue is below 1/NJ_TX_SHARES of the mbufs
 * left and below NJ_TX_SHARE_MAX. 64 KiB take 10 mbufs in frames of 16 KiB, up to 250 in small
 * frames. Each NJ_TX_SHARE_BYTES of the congestion window add one: a frame of 16 KiB takes two
 * mbufs, and two windows' worth may be queued. */
#define NJ_TX_SHARES      32u
#define NJ_TX_SHARE_MAX   64u
#define NJ_TX_SHARE_BYTES 4096u

/*
 * Requests of one connection that begin in a step; none begins after NJ_ROUND_NS. Excess time is
 * paid back in later steps.
 *
 * Requests left for a later step are cold in the cache. By this number, with 16 connections of 128
 * streams, a request took ns and missed lines in 1 MiB (./dev bench ahead; docs/ewyk.md, "Cache
 * locality"):
 *
 *            8    16    32    64   128
 *     ns   599   534   454   446   455
 *     LL    22    25   4.6   5.9   8.6
 */
#define NJ_ROUND_TASKS 32u
#define NJ_ROUND_NS    ((int32_t)(100 * NJ_US))

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
bool nj__port_is_for_peer(void *shard, const struct rte_mbuf *, enum nj_counter *counted);
/* Does the other process answer this request of ARP, neighbour discovery or echo? */
bool nj__port_peer_answers(const struct nj_shard *, const struct rte_mbuf *);

/* shard_step.c */
uint32_t nj__files_complete_jobs(struct nj_shard *, nj_ns now);

/* handler_tasks.c */
bool nj__handlers_init(struct nj_shard *, nj_ns now);
/* Cancels handlers that wait. By the thread they wait on. */
void nj__handlers_cancel_waiting(struct nj_shard *);
/* Waits for handlers that run on workers. */
void nj__handlers_fini(struct nj_shard *);
/* May the handler begin? LATER: the request is queued for a fiber, and offered later. NEVER: the
 * queue is full, and the request was answered with 503. */
enum nj_admit { NJ_ADMIT_NOW, NJ_ADMIT_QUEUED, NJ_ADMIT_REJECTED };
enum nj_admit nj__handlers_admit_request(struct nj_shard *, struct nj_exchange *x);
/* Answers a request that was not offered with 503. */
void nj__handlers_reject(struct nj_shard *, struct nj_exchange *x);
/* Gives the request to the strategy. Returns the time it took, for the round over connections. */
nj_ns nj__handlers_schedule_request(struct nj_shard *, struct nj_exchange *x);
/* Continues fibers, the queue, and tasks that workers finished. */
uint32_t nj__handlers_run_due(struct nj_shard *, nj_ns now);
/* Passes responses of handlers to their streams. */
void nj__handlers_deliver_responses(struct nj_shard *, nj_ns now);
/* Called after the last submit of a step. */
void nj__handlers_wake_workers(struct nj_shard *);
nj_ns nj__handlers_next_at(const struct nj_shard *);
bool nj__handlers_busy(const struct nj_shard *);
void nj__handlers_publish(struct nj_shard *);

/* conn_requests.c: operations that transactions need from the shard. */
extern const struct nj_txn_events nj__txn_events;

/* conn_request_timeouts.c */
/* Schedules the next check of the transaction's progress. */
void nj__txn_schedule_progress_check(struct nj_txn *t, nj_ns now);
/* Does the transaction wait for its peer? */
bool nj__txn_waits_for_peer(const struct nj_txn *t);
uint32_t nj__timeouts_tick(struct nj_shard *, nj_ns now);
nj_ns nj__timeouts_next_at(const struct nj_shard *);

/* policy_adoption.c */
bool nj__policy_init(struct nj_shard *, nj_ns now);
/* Every transaction has ended. */
void nj__policy_fini(struct nj_shard *);
/* Adopts a new policy, and wakes responses that have credit. Returns how many. */
uint32_t nj__policy_adopt_and_run_shaper(struct nj_shard *, nj_ns now);
nj_ns nj__policy_next_at(const struct nj_shard *);
/* For nj_tcp_config: may this peer connect? */
enum nj_tcp_accept nj__policy_accept_filter(void *shard, const struct nj_addr *remote);
/* May the newly opened connection stay? It counts for its client from here on. */
struct nj_conn;
bool nj__policy_admit_conn(struct nj_conn *);
void nj__policy_release_conn(struct nj_conn *);

/* pool_gauges.c */
void nj__pools_publish(struct nj_shard *);

/* mbuf_pressure.c: as many mbufs of the pool are the reserve (NJ_TX_POOL_RESERVE). */
uint32_t nj__pressure_tx_reserve(const struct rte_mempool *tx_pool);

/* conn.c */
extern const struct nj_h2_events nj__conn_h2_events;
extern const struct nj_h2_events nj__conn_h2_route_events; /* with request bodies */
size_t nj__conn_bytes(void);
size_t nj__conn_active_bytes(void);
/* Marks the connection as ready to send. `conn` is the user pointer of its HTTP/2 session. */
void nj__conn_mark_ready(void *conn);
/* A body without bytes has bytes again. `stream` is body->waiter. */
void nj__conn_wake_stream(void *stream);
/* Processes connections with events. Returns how many. */
uint32_t nj__conns_process(struct nj_shard *, nj_ns now);
uint32_t nj__conns_tick(struct nj_shard *, nj_ns now);
/* Another process accepts connections in our place: send GOAWAY on all; or no longer. */
void nj__conns_yield(struct nj_shard *, bool yields, nj_ns now);
/* No timer of a connection is due before this time. */
nj_ns nj__conns_next_at(const struct nj_shard *);

#endif
