/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP (RFC 9293) as a state machine: segments and time in; segments and events for the user out.
 *
 * Each shard has one struct nj_tcp, and only the shard's lcore may call it. It reads no clock and
 * knows no device: `now` is an argument, secrets and seeds come with the configuration, and
 * finished segments go to config.emit.
 *
 * A step of the shard calls nj_tcp_input() for each segment of the burst, then nj_tcp_tick(). It
 * then takes events with nj_tcp_take_ready_batch() and reads, sends and closes.
 * nj_tcp_output_pending() comes last.
 */
#pragma once

#include <rte_mempool.h>

#include "base/body_source.h"
#include "base/listener.h"
#include "base/pool.h"
#include "base/prng.h"
#include "tcp/flow_table.h"
#include "tcp/minisock.h"
#include "tcp/tcb.h"
#include "telem/count.h"
#include "wire/emit.h"
#include "wire/packet.h"

#define NJ_TCP_UNFINISHED_MAX 4u /* of a batch */

struct nj_cc_ops;

/* Result of the accept filter: may this peer open a connection? */
enum nj_tcp_accept {
    NJ_TCP_ACCEPT_ALLOW,
    NJ_TCP_ACCEPT_RESET, /* refuse with RST */
    NJ_TCP_ACCEPT_DROP,  /* drop without an answer */
};

/* Maximum number of connections in TIME-WAIT. Each takes 64 bytes, 16 MiB in all, beside
 * its slots of the flow table. With 2 MSL of 60 s this allows 4,369 active closes per second;
 * beyond that the oldest entries end early. */
#define NJ_TCP_TIME_WAITS (256u * 1024u)

struct nj_tcp_config {
    /* Segments and queued bytes are built from here. Its private area holds at least a
     * struct nj_tcp_mbuf_priv per mbuf. */
    struct rte_mempool *mp;
    struct nj_counters *counters;
    struct nj_hash_key flow_key, isn_key; /* secret bytes */
    uint64_t seed;                        /* of the PRNG; not secret */
    uint32_t conns_max;
    uint32_t half_open_max;     /* beyond it SYNs are answered with cookies (RFC 4987 3.6) */
    uint32_t time_wait_max;     /* 0: twice conns_max, up to NJ_TCP_TIME_WAITS */
    uint32_t held_max;          /* received mbufs held by all connections together; 0: unlimited */
    uint16_t mtu;               /* of the IP packet */
    struct nj_tx_offload tx;    /* offloads of the device */
    nj_ns time_wait;            /* 2 MSL */
    const struct nj_cc_ops *cc; /* NULL: &nj_cc_cubic */
    bool ecn;                   /* offer and accept ECN (RFC 3168) */
    nj_ns keepalive;            /* idle time after which the peer is probed; 0: never */
    nj_ns user_timeout;         /* data unacknowledged for longer ends a connection; 0: NJ_TCP_R2 */

    /* The accept filter. It is called first for each segment that matches no connection. NULL: all
     * peers are allowed. */
    enum nj_tcp_accept (*accept_filter)(void *ctx, const struct nj_addr *remote);
    /* Tells whether the other process of an upgrade handles a segment. TCP calls it while `shared`
     * of struct nj_tcp is set, for segments that belong to no connection and carry no SYN cookie
     * that this process sent. If it returns true, TCP counts the segment as *counted. The function
     * may copy the frame; TCP frees it. */
    bool (*is_for_peer_process)(void *ctx, const struct rte_mbuf *m, nj_counter *counted);
    /* Called when nearly all control blocks are in use: can a connection be evicted in favour of
     * this peer? `proven`: the peer completes a handshake, so its address is genuine and the
     * eviction is to be carried out. NULL: no. */
    bool (*can_evict_for)(void *ctx, const struct nj_addr *remote, bool proven);
    /* Send a segment that has no IP header yet. The callee owns the mbuf. */
    void (*emit)(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now);
    /* Number of segments that emit() accepts now without dropping. */
    uint32_t (*room)(void *ctx);
    void *ctx;
};

/* Capacity of the mbuf cache, which is refilled in bulk ahead of use. */
#define NJ_TCP_MBUF_CACHE_MAX 32u

struct nj_tcp {
    struct nj_tcp_config cfg;
    struct rte_mbuf *fresh[NJ_TCP_MBUF_CACHE_MAX]; /* the mbuf cache: empty, owned by us */
    uint32_t n_mbuf_cache;
    struct nj_pool tcbs, xfers, syns, time_waits, runs;
    struct nj_flow_table flows;
    struct nj_wheel wheel;
    struct nj_list ready, unfinished, pending;
    struct nj_list syn_due[NJ_TCP_SYNACK_RETRIES + 1]; /* by the number of time-outs */
    struct nj_time_wait_queue tw_queue;
    uint32_t n_held;        /* received mbufs held by all connections, in order or not */
    uint32_t n_runs_shared; /* runs in use beyond each connection's NJ_SENT_RUNS_RESERVED */
    struct nj_prng prng;
    struct nj_listeners listeners;
    uint32_t n_orphans;
    uint32_t n_fin_acked_orphans; /* orphans in FIN-WAIT-2: all is acknowledged, the peer's FIN is
                                     missing */
    uint32_t n_half_open, n_time_wait; /* with a control block or without */
    bool draining;                     /* refuse new connections */
    bool shared;                       /* another process uses the same port and addresses */
    nj_ns cookie_at;                   /* last SYN cookie sent; 0: never */
    nj_ns challenge_window_at;         /* RFC 5961 7: challenge ACKs are limited per second */
    uint32_t n_challenges_left,
        n_challenges_reserved; /* kept: reserved for flows with a control block */
};

/* Returns false when memory cannot be allocated. */
bool nj_tcp_init(struct nj_tcp *tcp, const struct nj_tcp_config *config, nj_ns now);
/* Frees all connections and pools. Sends nothing to the peers. */
void nj_tcp_fini(struct nj_tcp *tcp);

/* Accept connections to this address and port. Copies the listener. False when there are
 * NJ_LISTENERS_MAX of them already. */
bool nj_tcp_listen(struct nj_tcp *tcp, const struct nj_listener *listener);

/* Number of connections with a user or with unfinished sending: all but TIME-WAIT. */
uint32_t nj_tcp_conns(const struct nj_tcp *tcp);
/* The same without orphans in FIN-WAIT-2, which only wait for the peer's FIN. */
uint32_t nj_tcp_conns_less_fin2_orphans(const struct nj_tcp *tcp);

/* May the last segment of a handshake still arrive, for a half-open connection or a SYN cookie? */
bool nj_tcp_expects_handshakes(const struct nj_tcp *tcp, nj_ns now);

/* Are the control blocks that are left reserved for handshakes already under way? */
bool nj_tcp_is_nearly_full(const struct nj_tcp *tcp);

/* --- packets and time ------------------------------------------------------------------------ */

/* Process an arriving segment (RFC 9293 3.10.7). `flow`: the result of nj_flow_find(). Takes
 * ownership of `m`. Counts the segment as rx_tcp or under the reason for its drop. */
void nj_tcp_input(struct nj_tcp *tcp, struct nj_flow *flow, struct rte_mbuf *m,
                  const struct nj_seg *seg, nj_ns now);

/* Process an ICMP error that quotes a segment of this connection. Returns false, and ignores the
 * error, when the quoted segment is not in flight (RFC 5927 4.1). */
bool nj_tcp_icmp(struct nj_tcp *tcp, struct nj_tcb *tcb, const struct nj_icmp_error *error);

/* Run the time-outs that are due (RFC 9293 3.10.8). */
void nj_tcp_tick(struct nj_tcp *tcp, nj_ns now);

/* Send all that is due: data, window updates, at most one ACK per connection. Returns the number of
 * connections served. */
uint32_t nj_tcp_output_pending(struct nj_tcp *tcp, nj_ns now);
/* Time of the next due work: 0 when output or events are pending, NJ_NEVER when there is none. */
nj_ns nj_tcp_next_deadline(const struct nj_tcp *tcp);

/* --- user calls (RFC 9293 3.10.1 - 3.10.6) --------------------------------------------------- */

/* Active open. Returns NULL when no block is free or the tuple is in use. EV_OPENED or EV_DEAD
 * follows. */
struct nj_tcb *nj_tcp_connect(struct nj_tcp *tcp, const struct nj_tuple *tuple, nj_ns now);

/* Append all connections that have events to `batch`, an initialised list, and behind them up to
 * NJ_TCP_UNFINISHED_MAX of nj_tcp_note_unfinished(). Later events wait for the next call. */
void nj_tcp_take_ready_batch(struct nj_tcp *tcp, struct nj_list *batch);
/* Remove the next connection from the batch; NULL when it is empty. *events: its events
 * (NJ_TCP_EV_*). A connection opened by a peer appears here first, with EV_OPENED: set tcb->user or
 * release it. After EV_DEAD only nj_tcp_release() is legal. */
struct nj_tcb *nj_tcp_next_ready(struct nj_list *batch, uint8_t *events);
/* The connection of a node of a batch, for prefetching. The node stays in the batch. */
const struct nj_tcb *nj_tcp_ready_node_tcb(const struct nj_list *node);
/* Add events and put the connection on the ready list, unless it is unfinished. */
void nj_tcp_note_ready(struct nj_tcp *tcp, struct nj_tcb *tcb, uint8_t events);
/* The user interrupts its work on the connection: put it behind all that are unfinished. Its events
 * wait there, so a peer with much work for the user does not delay the others. */
void nj_tcp_note_unfinished(struct nj_tcp *tcp, struct nj_tcb *tcb);

/* Number of contiguous bytes that can be read now. *data is valid until the next call on this
 * connection. */
uint32_t nj_tcp_recv_peek(const struct nj_tcb *tcb, const uint8_t **data);
/* Consume the first `n_bytes` of what nj_tcp_recv_peek() returned. This may open the window. */
void nj_tcp_recv_take(struct nj_tcp *tcp, struct nj_tcb *tcb, uint32_t n_bytes);

/* A part of a queue. */
struct nj_tcp_piece {
    uint8_t *p;
    uint32_t n_bytes;
};

/* Number of bytes that can be read now, in all pieces. */
uint32_t nj_tcp_recv_bytes(const struct nj_tcb *tcb);
/* The first `n_bytes` of what can be read, in at most `n_max` pieces. They stay in the queue, and
 * may be overwritten. Returns the number of pieces; 0 if there are fewer bytes or more pieces. */
uint32_t nj_tcp_recv_pieces(const struct nj_tcb *tcb, uint32_t n_bytes, struct nj_tcp_piece *pieces,
                            uint32_t n_max);

/* Copy `n_bytes` of what can be read, from `offset` on; they stay in the queue. Returns false if
 * there are fewer. */
bool nj_tcp_recv_copy(const struct nj_tcb *tcb, uint32_t offset, uint8_t *out, uint32_t n_bytes);
/* Consume `n_bytes` of what can be read, which may be several pieces. */
void nj_tcp_recv_discard(struct nj_tcp *tcp, struct nj_tcb *tcb, uint32_t n_bytes);

/* Free bytes of the send queue, which holds up to two congestion windows. 0 once closed. */
uint32_t nj_tcp_send_room(const struct nj_tcb *tcb);
/* Bytes to add to the send queue so that the windows, not the queue, end the next transmission:
 * what they allow and one segment, less the bytes of the queue that were not sent yet. */
uint32_t nj_tcp_send_wanted(const struct nj_tcb *tcb);
/* Why bytes of the send queue that were not sent yet stay there. */
enum nj_tcp_limit {
    NJ_TCP_LIMIT_NONE, /* there are none, or they leave with the next output */
    NJ_TCP_LIMIT_CWND, /* the congestion window, or the recovery from a loss */
    NJ_TCP_LIMIT_PEER, /* the window that the peer offers */
};
enum nj_tcp_limit nj_tcp_limited_by(const struct nj_tcb *tcb);
/* May bytes be queued in this state? A few bytes that end the connection need no room. */
bool nj_tcp_may_send(const struct nj_tcb *tcb);
/* The sequence number after the last byte of the send queue. Only from ESTABLISHED on. */
static inline uint32_t nj_tcp_queued_end(const struct nj_tcb *t)
{
    return t->snd_una + (t->x ? t->x->sndq.n_bytes : 0);
}

/* Number of mbufs in the send queue. */
static inline uint32_t nj_tcp_send_queue_mbufs(const struct nj_tcb *t)
{
    return t->x ? t->x->sndq.n_mbufs : 0;
}
/* Is the whole send queue within both the peer's window and the congestion window? */
bool nj_tcp_windows_allow_all(const struct nj_tcb *tcb);
/* Switch NJ_TCP_EV_WRITABLE on or off; it is on at first. A user with nothing to send switches it
 * off: otherwise an ACK alone would load the layers above TCP into the cache. */
static inline void nj_tcp_set_ack_events(struct nj_tcb *t, bool tell)
{
    t->ack_events_off = !tell;
}
/* The user reads whole records of TLS (RFC 8446 5.1): the receive buffer has room for one, however
 * short mbufs are. */
static inline void nj_tcp_expect_records(struct nj_tcb *t)
{
    t->expects_records = true;
}
/* Queue a copy of the data. Returns false, with nothing queued, when the pool is empty. */
bool nj_tcp_send_copy(struct nj_tcp *tcp, struct nj_tcb *tcb, const uint8_t *data,
                      uint32_t n_bytes);
/* Queue the slice without copying. The queue takes its own reference on slice->ref. Returns false
 * when the pool is empty. */
bool nj_tcp_send_refer(struct nj_tcp *tcp, struct nj_tcb *tcb, const struct nj_slice *slice);

/* Close our direction: FIN follows the send queue. Reading remains possible. */
void nj_tcp_close(struct nj_tcp *tcp, struct nj_tcb *tcb, nj_ns now);
/* Send RST and free both queues. EV_DEAD follows if a user is attached. */
void nj_tcp_abort(struct nj_tcp *tcp, struct nj_tcb *tcb, nj_ns now);
/* Abort all connections, also half-open ones and orphans, but not those in TIME-WAIT. */
void nj_tcp_abort_all(struct nj_tcp *tcp, nj_ns now);
/* Detach the user. The caller must not use `tcb` afterwards. A connection that was not closed, or
 * has unread bytes, is reset (RFC 9293 3.10.4, RFC 2525 2.17). Otherwise it becomes an orphan,
 * which is reset if it has not finished after NJ_TCP_ORPHAN_MAX. */
void nj_tcp_release(struct nj_tcp *tcp, struct nj_tcb *tcb, nj_ns now);
