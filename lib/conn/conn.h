/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of the server. Shared by the files of lib/conn: conn_turn.c has its states and its
 * bytes, conn_life.c its begin and end, conn_requests.c its requests, conn_timeouts.c its timeouts.
 * All calls belong to the shard's lcore. */
#pragma once

#include "conn/conns.h"
#include "conn/preface_detect.h"

/* Mbufs of input that a connection may process in one step, for fairness. */
#define NJ_READ_MBUFS_MAX 64u

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

enum nj_conn_state { NJ_CONN_SNIFF, NJ_CONN_H2, NJ_CONN_H1, NJ_CONN_LINGER };

/* State that a connection needs from its first byte on. */
struct nj_conn_active {
    struct nj_conn *conn;
    union { /* the session, by the state of the connection: session.h */
        struct nj_h2 *h2;
        struct nj_h1 *h1;
    };
    /* Member of conns->unacked while the send queue holds bytes; removed lazily. */
    struct nj_list unacked;
    struct nj_list tx_wait; /* member of conns->tx_waiting while it waits for mbufs to send */
    uint32_t unacked_ms;    /* last acknowledgement seen, or when the queue became non-empty; ms
                             modulo 2^32 */
    uint32_t unacked_una;   /* snd_una when it was last checked */
    union {
        struct { /* SNIFF: first bytes, until the protocol is known */
            uint8_t n_head;
            uint8_t head[NJ_SNIFF_BYTES];
        };
        struct { /* LINGER */
            nj_ns progress_until;
            nj_ns late_since;   /* first input after our FIN was acknowledged; 0: none */
            uint32_t late_from; /* sequence number of the first byte to be discarded */
            bool may_be_late;   /* it may be the rest of an upload that was answered early */
        };
    };
    struct nj_conn_exchanges peer; /* requests of routes, in order of arrival */
    struct nj_list *next_request;  /* first request not yet offered to its handler, or NULL */
    uint32_t body_end;             /* body_unacked: sequence number after the last byte of a body */
    int32_t round_credit_ns;       /* time left in the round over connections; negative: a debt */
    uint32_t wait_una; /* snd_una when the wait began; NJ_CONN_WAIT_ACK: the value to be reached */
    uint32_t number;   /* serial number of the connection in this shard, modulo 2^32: for the log */
};
_Static_assert(sizeof(struct nj_conn_active) <= 2 * NJ_CACHE_LINE, "two lines more when it speaks");

struct nj_conn {
    struct nj_conn_user user; /* first: tcb->user points here */
    struct nj_conns *conns;
    struct nj_tcb *tcb;
    struct nj_conn_active *active;
    struct nj_list node; /* member of conns->waits_for[waits_for]; of no list once it has expired */
    struct nj_client *client; /* whose connection it counts as; NULL: not limited */
    uint32_t since;           /* start of the wait, in GRAINs, rounded up */
    uint8_t state;            /* enum nj_conn_state */
    uint8_t waits_for;        /* enum nj_conn_wait */
    bool is_tls;              /* to the port of TLS; not a bit, which takes longer to test */
    bool progressed : 1;      /* progress since the wait began; with streams open, progress of a
                            stream */
    bool body_unacked : 1;    /* bytes of bodies are in the send queue */
    bool peer_fin : 1, failed : 1;
    bool holds : 1;       /* perhaps mbufs or memory that count for its client: conn_held.c */
    bool input_waits : 1; /* for a worker, or for the rest of a record */
    bool mid_frame : 1;   /* the peer is within a frame, a header block, the preface or a record */
    bool is_proxied : 1;  /* its client is in conns->proxied */
};
_Static_assert(sizeof(struct nj_conn) <= NJ_CACHE_LINE, "a million of them say nothing");

/* Marks the connection as ready to send. `conn` is the user pointer of its session. */
static inline void nj__conn_mark_ready(void *conn)
{
    struct nj_conn *c = conn;
    if (c != c->conns->processing) /* else its output comes next */
        nj_tcp_note_ready(c->conns->tcp, c->tcb, 0);
}

/* Received bytes can be read. */
static inline bool nj__conn_has_input(const struct nj_conn *c)
{
    const uint8_t *data;
    return nj_tcp_recv_peek(c->tcb, &data) > 0 && !c->input_waits;
}

/* Bytes came since its last turn, or wait for its next one: perhaps a request. (Of bytes that came,
 * c->input_waits says nothing yet.) */
static inline bool nj__conn_has_news(const struct nj_conn *c)
{
    return (c->tcb->events & NJ_TCP_EV_READABLE) || nj__conn_has_input(c);
}

/* Has the peer acknowledged our FIN, and so everything before it? */
static inline bool nj__conn_is_fin_acked(const struct nj_conn *c)
{
    return c->tcb->state == NJ_TCP_FIN_WAIT_2 || c->tcb->state == NJ_TCP_TIME_WAIT;
}

/* Does it have more time to close, since the peer still sent something? Not while draining. */
static inline bool nj__conn_is_late(const struct nj_conn *c)
{
    return c->state == NJ_CONN_LINGER && c->active && c->active->late_since > 0 &&
           !c->conns->draining;
}

/* The client of a peer, as a keyed hash, for accounts. */
static inline uint64_t nj__client_key(const struct nj_conns *cs, const struct nj_addr *remote)
{
    return nj_policy_conn_key(nj_shape_policy(cs->txns.shape), &cs->cfg->client_key, remote);
}

/* A trusted proxy's connections belong to many clients: no client is charged for them. */
static inline bool nj__is_trusted_proxy(const struct nj_conns *cs, const struct nj_addr *remote)
{
    return nj_policy_trusts(nj_shape_policy(cs->txns.shape), remote);
}

/* Whose connection it is: the source of its PROXY header, or else the peer of TCP. */
static inline const struct nj_conn_source *nj__conn_proxied_source(const struct nj_conn *c)
{
    return &c->conns->proxied[nj_pool_index(&c->conns->pool, c)];
}

static inline const struct nj_addr *nj__conn_remote(const struct nj_conn *c)
{
    return nj_unlikely(c->is_proxied) ? &nj__conn_proxied_source(c)->addr
                                      : &c->tcb->flow.tuple.remote;
}

static inline uint16_t nj__conn_rport(const struct nj_conn *c)
{
    return nj_unlikely(c->is_proxied) ? nj__conn_proxied_source(c)->port : c->tcb->flow.tuple.rport;
}

/* The listener that accepted the connection. */
static inline const struct nj_listener *nj__conn_listener(const struct nj_conn *c)
{
    const struct nj_tuple *t = &c->tcb->flow.tuple;

    return nj_listener_find(&c->conns->tcp->listeners, &t->local, t->lport);
}

/* A connection to such a listener has is_tls from its first byte of TLS on. */
static inline bool nj__conn_is_to_tls(const struct nj_conn *c)
{
    return c->conns->tls && nj__conn_listener(c)->is_tls;
}

/* The connection of a transaction. */
static inline struct nj_conn *nj__conn_of(const struct nj_txn *t)
{
    return t->conn;
}

static inline uint32_t nj__ms_of(nj_ns now)
{
    return (uint32_t)(now / NJ_MS);
}

/* ---- conn_turn.c ---- */

/* Processes the events of a connection of the server: on_events of its struct nj_conn_user. */
void nj__conn_process(struct nj_conns *cs, struct nj_tcb *tcb, uint8_t events, nj_ns now);
/* Ends the connection: GOAWAY if it is HTTP/2, then FIN. Open requests end. */
void nj__conn_close(struct nj_conn *c, nj_ns now);
/* Ends a connection whose timeout expired. */
void nj__conn_expire(struct nj_conn *c, nj_ns now);

/* ---- conn_requests.c ---- */

/* The body of a response has bytes again. `txn` is body->waiter. */
void nj__conn_wake_response(void *txn);
/* Operations that transactions need from connections. */
extern const struct nj_txn_events nj__txn_events;
extern const struct nj_h2_events nj__conn_h2_events;
extern const struct nj_h2_events nj__conn_h2_route_events; /* with request bodies */
extern const struct nj_h1_events nj__conn_h1_events;
extern const struct nj_h1_events nj__conn_h1_route_events;
/* Begins requests of the connection within its share, and passes results of handlers to streams. */
void nj__conn_serve_requests(struct nj_conn *c, nj_ns now);
/* The peer sent FIN: incomplete request bodies end. */
void nj__conn_abort_request_bodies(struct nj_conn *c);

/* ---- policy_adoption.c ---- */

bool nj__policy_init(struct nj_conns *cs, nj_ns now);
/* Every transaction has ended. */
void nj__policy_fini(struct nj_conns *cs);
/* May the newly opened connection stay? It counts for its client from here on. */
bool nj__policy_admit_conn(struct nj_conn *c);

/* ---- drain.c ---- */

/* A connection that speaks HTTP/2 only after draining began. */
void nj__drain_new(struct nj_conns *cs, struct nj_h2 *h2);
/* Sends the final GOAWAYs that are due. Returns the amount of work: 0 or 1. */
uint32_t nj__drain_tick(struct nj_conns *cs, nj_ns now);

/* ---- mbuf_pressure.c ---- */

/* Called after the connection was served: records whether ACKs are outstanding, and what it
 * holds. */
void nj__pressure_track(struct nj_conn *c, nj_ns now);
/* Mbufs for sending are short: if the connection has something to do, and may not send, it waits.
 * nj__pressure_wake_waiting() makes a few of them ready, in turn, once per step. */
void nj__pressure_wait(struct nj_conn *c);
void nj__pressure_wake_waiting(struct nj_conns *cs);
/* Mbufs for sending are short: resets peers that acknowledge nothing. */
void nj__pressure_reset_unacking(struct nj_conns *cs, nj_ns now);
/* Received mbufs or memory of sessions are short: resets connections of the clients that hold most
 * of them. To be called again at once while the shortage lasts. Returns how many were reset. */
uint32_t nj__pressure_reset_holders(struct nj_conns *cs, nj_ns now);
nj_ns nj__pressure_next_at(const struct nj_conns *cs);
