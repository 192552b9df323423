/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP (RFC 9293) as a machine: segments and time in, segments out, events for the user.
 *
 * One struct nj_tcp per shard. It reads no clock, draws no randomness of its own and knows no
 * device: `now` is an argument, secrets and seeds come with the configuration, and finished
 * segments go to config.emit. All calls belong to the shard's lcore.
 *
 * A step of the shard is: nj_tcp_input() for each segment of the burst, nj_tcp_tick(), the user's
 * turn (nj_tcp_take_ready(), and for each connection reads, sends, closes), nj_tcp_output().
 */
#ifndef NJ_TCP_TCP_H
#define NJ_TCP_TCP_H

#include <rte_mempool.h>

#include "base/field.h"
#include "base/limits.h"
#include "base/pool.h"
#include "base/prng.h"
#include "tcp/flow_table.h"
#include "tcp/minisock.h"
#include "tcp/tcb.h"
#include "wire/emit.h"
#include "wire/packet.h"

#define NJ_TCP_LISTEN_MAX 8

struct nj_cc_ops;

/* May a peer open a connection? */
enum nj_tcp_door {
    NJ_TCP_DOOR_OPEN,
    NJ_TCP_DOOR_RESET,  /* it is answered with RST */
    NJ_TCP_DOOR_SILENT, /* nobody is here */
};

/* Connections in TIME-WAIT at a time: 64 bytes each and 16 of the flow table, 20 MiB when all are
 * in use. With 2 MSL of 60 s that is 4,369 connections per second that we close first; with more,
 * the oldest end early. */
#define NJ_TCP_TIME_WAITS (256u * 1024u)

struct nj_tcp_config {
    /* Segments and queued bytes are built from here. Its private area holds at least a
     * struct nj_tcp_mbuf_priv per mbuf. */
    struct rte_mempool *mp;
    struct nj_counters *counters;
    struct nj_hash_key flow_key, isn_key; /* secret bytes */
    uint64_t seed;                        /* for what needs to vary but not be secret */
    uint32_t conns_max;
    uint32_t half_open_max; /* beyond it SYNs are answered with cookies (RFC 4987 3.6) */
    uint32_t time_wait_max; /* 0: twice conns_max, up to NJ_TCP_TIME_WAITS */
    uint32_t held_max; /* received mbufs that all connections together hold; 0: no such bound */
    uint16_t mtu;      /* of the IP packet */
    struct nj_tx_offload tx;    /* what the device does */
    nj_ns time_wait;            /* 2 MSL */
    const struct nj_cc_ops *cc; /* NULL: &nj_cc_cubic */
    bool ecn;                   /* offer and accept ECN (RFC 3168) */
    nj_ns keepalive;            /* idle time after which the peer is probed; 0: never */
    nj_ns user_timeout;         /* unacknowledged for longer ends a connection; 0: NJ_TCP_R2 */

    /* Asked for each segment that would open a connection, or finds none, before anything else is
     * done for it. NULL: all may come in. */
    enum nj_tcp_door (*door)(void *ctx, const struct nj_addr *remote);
    /* The blocks are nearly all in use: may this peer have one of those that are left, since
     * somebody yields who has more than it? `proven`: it completes a handshake, so the address is
     * its own, and from now on somebody does yield. NULL: nobody may. */
    bool (*yields)(void *ctx, const struct nj_addr *remote, bool proven);
    /* Take a segment without an IP header; the mbuf is the callee's from here on. */
    void (*emit)(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now);
    /* Segments that emit() will take now without dropping. */
    uint32_t (*room)(void *ctx);
    void *ctx;
};

/* Mbufs that are taken from the pool at once, ahead of their use. */
#define NJ_TCP_FRESH_MAX 32u

struct nj_tcp {
    struct nj_tcp_config cfg;
    struct rte_mbuf *fresh[NJ_TCP_FRESH_MAX]; /* empty ones, which nobody else has */
    uint32_t n_fresh;
    struct nj_pool tcbs, xfers, syns, time_waits, runs;
    struct nj_flow_table flows;
    struct nj_wheel wheel;
    struct nj_list ready, pending;
    struct nj_list syn_due[NJ_TCP_SYNACK_TRIES + 1]; /* by the number of time-outs */
    struct nj_time_wait_queue tw_queue;
    uint32_t n_held;        /* received mbufs that connections hold, in order or not */
    uint32_t n_runs_shared; /* runs that connections hold beyond their NJ_SENT_RUNS_SURE */
    struct nj_prng prng;
    uint16_t listen[NJ_TCP_LISTEN_MAX];
    uint32_t n_listen, n_orphans;
    uint32_t n_told; /* orphans whose peer has acknowledged all, and does not close */
    uint32_t n_half_open, n_time_wait; /* with a control block or without */
    bool draining;                     /* refuse new connections */
    nj_ns cookie_at;                   /* last SYN cookie sent; 0: never */
    nj_ns challenge_window_at;         /* RFC 5961 7: challenge ACKs are limited per second */
    uint32_t n_challenges_left, n_challenges_kept; /* kept: for those with a control block */
};

/* False when memory is refused. */
bool nj_tcp_init(struct nj_tcp *tcp, const struct nj_tcp_config *config, nj_ns now);
/* Frees every connection without a word to its peer. */
void nj_tcp_fini(struct nj_tcp *tcp);

/* Accept connections to this port. False when NJ_TCP_LISTEN_MAX ports are open already. */
bool nj_tcp_listen(struct nj_tcp *tcp, uint16_t port);

/* Connections that a user still holds or that have bytes in flight: all but TIME_WAIT. */
uint32_t nj_tcp_conns(const struct nj_tcp *tcp);
/* Those of them that somebody would miss: not where our FIN is acknowledged, no user is left, and
 * the peer keeps its side open. */
uint32_t nj_tcp_unfinished(const struct nj_tcp *tcp);

/* Control blocks are left for the handshakes under way and no other. */
bool nj_tcp_few_left(const struct nj_tcp *tcp);

/* --- the wire's side ------------------------------------------------------------------------- */

/* A segment arrives (RFC 9293 3.10.7). `flow` is what nj_flow_find() said, or NULL. Takes `m`.
 * Counts it as rx_tcp or under the reason why it was dropped. */
void nj_tcp_input(struct nj_tcp *tcp, struct nj_flow *flow, struct rte_mbuf *m,
                  const struct nj_seg *seg, nj_ns now);

/* An ICMP error quotes a segment of this connection. False when it can't be one of ours that is
 * under way (RFC 5927 4.1): then nothing was believed. */
bool nj_tcp_icmp(struct nj_tcp *tcp, struct nj_tcb *tcb, const struct nj_icmp_error *error);

/* Time-outs due by now (RFC 9293 3.10.8). */
void nj_tcp_tick(struct nj_tcp *tcp, nj_ns now);

/* Send what is due: data, window updates, one ACK per connection for the whole burst.
 * Returns the number of connections served. */
uint32_t nj_tcp_output(struct nj_tcp *tcp, nj_ns now);

/* Nothing happens by itself before this time. */
nj_ns nj_tcp_next(const struct nj_tcp *tcp);

/* --- the user's side (RFC 9293 3.10.1 - 3.10.6) ---------------------------------------------- */

/* Active open. NULL when out of blocks or the tuple is in use. EV_OPENED or EV_DEAD follows. */
struct nj_tcb *nj_tcp_connect(struct nj_tcp *tcp, const struct nj_tuple *tuple, nj_ns now);

/* Move the connections with news to the end of `batch`, an initialised list. What has news after
 * this waits for the next time. */
void nj_tcp_take_ready(struct nj_tcp *tcp, struct nj_list *batch);
/* Take the next connection off the batch, or NULL; *events tells what happened (NJ_TCP_EV_*).
 * Connections that peers opened appear here first, with EV_OPENED; set tcb->user then, or release
 * them. After EV_DEAD only nj_tcp_release() is legal. */
struct nj_tcb *nj_tcp_next_ready(struct nj_list *batch, uint8_t *events);
/* The connection of a node of such a batch: to look ahead, without taking it. */
const struct nj_tcb *nj_tcp_of_ready(const struct nj_list *node);
/* Put the connection on the ready list again, to go on with it in a later step. */
void nj_tcp_note_ready(struct nj_tcp *tcp, struct nj_tcb *tcb, uint8_t events);

/* Bytes that may be read now; 0 = none. *data is valid until the next call on this connection. */
uint32_t nj_tcp_recv_peek(const struct nj_tcb *tcb, const uint8_t **data);
/* Done with the first `n_bytes` of what peek showed; opens the window again. */
void nj_tcp_recv_take(struct nj_tcp *tcp, struct nj_tcb *tcb, uint32_t n_bytes);

/* Bytes the send queue takes now: NJ_SENDQ_BYTES_MAX less what is queued. 0 once closed. */
uint32_t nj_tcp_send_room(const struct nj_tcb *tcb);
/* The sequence number behind the last byte in the send queue; of a connection that stands. */
static inline uint32_t nj_tcp_queued_end(const struct nj_tcb *t)
{
    return t->snd_una + (t->x ? t->x->sndq.n_bytes : 0);
}

/* Mbufs of the send queue: what this connection takes of the pool. */
static inline uint32_t nj_tcp_queued_mbufs(const struct nj_tcb *t)
{
    return t->x ? t->x->sndq.n_mbufs : 0;
}
/* May all that is queued go, as far as the windows of either side tell? */
bool nj_tcp_all_may_go(const struct nj_tcb *tcb);
/* Does the user want to hear of acknowledged bytes (NJ_TCP_EV_WRITABLE)? At first it does. Who has
 * nothing to say and waits for nothing is better left alone: the ACK of a response that comes on
 * its own would have all that stands above TCP in the cache, for nothing. */
static inline void nj_tcp_tell_acks(struct nj_tcb *t, bool tell)
{
    t->acks_untold = !tell;
}
/* Queue a copy. False when the pool is empty; then nothing was queued. */
bool nj_tcp_send_copy(struct nj_tcp *tcp, struct nj_tcb *tcb, const uint8_t *data,
                      uint32_t n_bytes);
/* Queue a reference to the slice; the queue takes its own reference on slice->ref. */
bool nj_tcp_send_refer(struct nj_tcp *tcp, struct nj_tcb *tcb, const struct nj_slice *slice);

/* Give up when data stays unacknowledged for so long (RFC 9293 3.9.1), rounded up to seconds;
 * 0: as the configuration has it. */
void nj_tcp_set_user_timeout(struct nj_tcb *tcb, nj_ns timeout);

/* No more to send: FIN follows what is queued. Reading goes on. */
void nj_tcp_close(struct nj_tcp *tcp, struct nj_tcb *tcb, nj_ns now);
/* RST to the peer, everything queued is gone. EV_DEAD follows if a user is attached. */
void nj_tcp_abort(struct nj_tcp *tcp, struct nj_tcb *tcb, nj_ns now);
/* Abort all there are, half-open ones and those without a user too; TIME_WAIT is left to its time.
 */
void nj_tcp_abort_all(struct nj_tcp *tcp, nj_ns now);
/* The user lets go. A connection that was not closed, or has unread bytes, is reset
 * (RFC 9293 3.10.4, RFC 2525 2.17); else it finishes by itself, and is reset when that takes longer
 * than NJ_TCP_ORPHAN_MAX. `tcb` is dead for the caller. */
void nj_tcp_release(struct nj_tcp *tcp, struct nj_tcb *tcb, nj_ns now);

#endif
