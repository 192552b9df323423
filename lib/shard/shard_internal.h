/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/shard say to each other. */
#ifndef NJ_SHARD_SHARD_INTERNAL_H
#define NJ_SHARD_SHARD_INTERNAL_H

#include "shard/shard.h"

/* Packets of one inhale: the device's burst and the steered one. */
#define NJ_INHALE_MAX (2 * NJ_BURST_MAX)

/* A connection goes on after this many mbufs of input only in the next step: fairness. */
#define NJ_EAT_MBUFS_MAX 64u

/* With fewer mbufs than this left, HTTP/2 is not asked for output: what TCP has queued already
 * must be able to leave. */
#define NJ_TX_POOL_LOW  256u
/* Who has something in its queue leaves this part of the pool to those who have nothing there, and
 * to segments: peers that do not read come to a stop above the line where nobody is served. */
#define NJ_TX_POOL_KEPT 8u

/* HTTP/2 is asked for output while the connection's send queue is below this part of the mbufs that
 * are left, and below this number: 64 KiB in frames of 16 KiB are 10, in crumbs up to 250. A window
 * that was earned by acknowledging adds one for so many of its bytes: a frame of 16 KiB, of which
 * there are two windows' worth, takes two mbufs. */
#define NJ_TX_SHARES      32u
#define NJ_TX_SHARE_MAX   64u
#define NJ_TX_SHARE_BYTES 4096u

/* Of one connection's requests so many begin in a step, and no more once they took so long: the
 * next connection's turn. Who took longer pays it back in the steps that follow.
 *
 * What a turn leaves over is cold in the next step. By this number, with 16 connections of 128
 * streams, a request took ns and missed lines in 1 MiB (./dev bench ahead; docs/ewyk.md, "How hot
 * the cache is"):
 *
 *            8    16    32    64   128
 *     ns   599   534   454   446   455
 *     LL    22    25   4.6   5.9   8.6 */
#define NJ_ROUND_TASKS 32u
#define NJ_ROUND_NS    ((int32_t)(100 * NJ_US))

/* packet_tx.c */
void nj__net_push(void *shard, struct rte_mbuf *m);
void nj__net_emit_tcp(void *shard, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now);
uint32_t nj__net_room(void *shard);
void nj__net_icmp_echo(struct nj_shard *, const struct rte_mbuf *, const struct nj_packet *,
                       nj_ns now);
void nj__net_icmp6_problem(struct nj_shard *, const struct rte_mbuf *, const struct nj_packet *,
                           nj_ns now);
/* What connections have to send, into the queue. Returns how many had something. */
uint32_t nj__net_serve(struct nj_shard *, nj_ns now);
/* Offer what is queued to the device. Returns packets taken. */
uint32_t nj__net_flush(struct nj_shard *);

/* packet_rx.c: parse, hand away what is not ours, take in the rest. */
uint32_t nj__net_inhale(struct nj_shard *, nj_ns now);

/* shard_step.c */
uint32_t nj__files_take_done(struct nj_shard *, nj_ns now);

/* handler_tasks.c */
bool nj__handlers_init(struct nj_shard *, nj_ns now);
/* Those that wait are told that it is over, and come to their end. By the thread they wait on. */
void nj__handlers_leave(struct nj_shard *);
/* Waits for those that are with workers. */
void nj__handlers_fini(struct nj_shard *);
/* May it begin? LATER: it waits for a stack, and is offered when it has one. NEVER: too many wait
 * already, and it was answered. */
enum nj_begin { NJ_BEGIN_NOW, NJ_BEGIN_LATER, NJ_BEGIN_NEVER };
enum nj_begin nj__handlers_may_begin(struct nj_shard *, struct nj_exchange *x);
/* 503; it was not offered. */
void nj__handlers_reject(struct nj_shard *, struct nj_exchange *x);
/* Let the strategy have it. Returns how long that took, for the round over connections. */
nj_ns nj__handlers_offer(struct nj_shard *, struct nj_exchange *x);
/* Go on with what waited: fibers, the queue, what workers are done with. */
uint32_t nj__handlers_run(struct nj_shard *, nj_ns now);
/* Tell streams what their handlers said. */
void nj__handlers_settle(struct nj_shard *, nj_ns now);
/* After the last submit of a step. */
void nj__handlers_flush(struct nj_shard *);
nj_ns nj__handlers_next(const struct nj_shard *);
bool nj__handlers_busy(const struct nj_shard *);
void nj__handlers_publish(struct nj_shard *);

/* conn_requests.c: what the shard does for transactions. */
extern const struct nj_txn_events nj__txn_events;

/* timeouts.c */
/* How it gets on is to be looked at, the next time after a while. */
void nj__txn_watch(struct nj_txn *t, nj_ns now);
/* Is it the peer for whom it waits now? */
bool nj__txn_is_peers(const struct nj_txn *t);
uint32_t nj__patience_tick(struct nj_shard *, nj_ns now);
nj_ns nj__patience_next(const struct nj_shard *);

/* policy.c */
bool nj__policy_init(struct nj_shard *, nj_ns now);
/* Every request is over. */
void nj__policy_fini(struct nj_shard *);
/* Adopt a new policy, and wake what has credit. Returns how many. */
uint32_t nj__policy_run(struct nj_shard *, nj_ns now);
nj_ns nj__policy_next(const struct nj_shard *);
/* For TCP: may somebody come in? */
enum nj_tcp_door nj__policy_door(void *shard, const struct nj_addr *remote);
/* May this connection stay that has just been opened? It counts for its client from here on. */
struct nj_conn;
bool nj__policy_welcomes(struct nj_conn *);
void nj__policy_forgets(struct nj_conn *);

/* memory.c */
void nj__memory_publish(struct nj_shard *);

/* conn.c */
extern const struct nj_h2_events nj__conn_h2_events;
extern const struct nj_h2_events nj__conn_h2_route_events; /* with request bodies */
size_t nj__conn_bytes(void);
size_t nj__talk_bytes(void);
/* HTTP/2's user pointer of a connection: it has something to send. */
void nj__conn_note_work(void *conn);
/* A body that had shown nothing has bytes again; for whoever keeps body->waiter. */
void nj__conn_wake(void *stream);
/* Serve connections with news. Returns how many. */
uint32_t nj__conns_eat(struct nj_shard *, nj_ns now);
uint32_t nj__conns_tick(struct nj_shard *, nj_ns now);
/* Nothing of theirs happens by itself before this time. */
nj_ns nj__conns_next(const struct nj_shard *);

#endif
