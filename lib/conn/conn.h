/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of the server, for the two files that are about it: conn.c has its life and its
 * bytes, conn_requests.c what is asked on it. */
#ifndef NJ_CONN_CONN_H
#define NJ_CONN_CONN_H

#include "conn/preface_detect.h"
#include "shard/shard.h"

enum conn_state { SNIFF, H2, LINGER };

/* What a connection has from its first byte on. */
struct nj_talk {
    struct nj_conn *conn;
    struct nj_h2 *h2;
    struct nj_list owing; /* member of shard->owing while the send queue holds bytes, and then
                             until somebody looks */
    uint32_t owing_ms;    /* the peer had acknowledged some, or began to owe us ACKs; modulo 2^32 */
    uint32_t owing_una;   /* what it had acknowledged when we last looked */
    union {
        struct { /* SNIFF: first bytes, until they are known */
            uint8_t n_head;
            uint8_t head[NJ_SNIFF_BYTES];
        };
        struct {                   /* H2 */
            struct nj_list unread; /* member of shard->unread while input waits for output */
            nj_ns unread_at;       /* when it began to; only an empty queue ends it */
        };
        nj_ns moves_until; /* LINGER */
    };
    struct nj_exchange_peer peer; /* requests of routes, as they came */
    struct nj_list *asked;        /* the first of them that was not yet offered, or NULL */
    uint32_t body_end;            /* owes_body: where in sequence the last byte of a body ends */
    int32_t credit_ns; /* of the round over connections; negative when it took too long */
    uint32_t una_then; /* acknowledged by the peer when it was filed; QUIET: to be acknowledged */
    uint32_t number;   /* among those of this shard that have spoken, modulo 2^32: for the log */
};
_Static_assert(sizeof(struct nj_talk) <= 2 * NJ_CACHE_LINE, "two lines more when it speaks");

struct nj_conn {
    struct nj_conn_user user; /* first: tcb->user points here */
    struct nj_shard *shard;
    struct nj_tcb *tcb;
    struct nj_talk *talk;
    struct nj_list node;      /* member of shard->silent[silent]; of none once its time is up */
    struct nj_client *client; /* that it counts for; NULL: connections were not limited */
    uint32_t since;           /* it is there, in GRAINs of time, rounded up */
    uint8_t state;            /* enum conn_state */
    uint8_t silent;           /* enum nj_silent */
    bool moved : 1;           /* since it was filed it got on; with streams, one of them did */
    bool owes_body : 1;       /* bytes of bodies are in the send queue */
    bool peer_fin : 1, failed : 1;
    bool unfinished : 1; /* the peer is in the middle of a frame, a header block or the preface */
};
_Static_assert(sizeof(struct nj_conn) <= NJ_CACHE_LINE, "a million of them say nothing");

/* RST, and it is over: its end is heard of in a later step. */
void nj__conn_reset(struct nj_conn *c, nj_ns now);
/* GOAWAY if it speaks HTTP/2, and FIN; what is open on it is over. */
void nj__conn_leave(struct nj_conn *c, nj_ns now);
/* It takes no more output before the peer has acknowledged some. */
bool nj__conn_is_full(const struct nj_conn *c);
/* Its time is up. */
void nj__conn_end_silence(struct nj_conn *c, nj_ns now);
/* timeouts.c: put it on the list of what it waits for; to be called when it was served. */
void nj__conn_file(struct nj_conn *c, nj_ns now);
/* Its turn: begin what it asked for, and tell streams what handlers said. */
void nj__conn_serve(struct nj_conn *c, nj_ns now);
/* A route's request that was offered is to be offered once more: it is the next of its connection.
 */
void nj__conn_ask_again(struct nj_txn *t);
/* The peer's FIN came: bodies of requests that are not whole will never be. */
void nj__conn_cut_bodies(struct nj_conn *c);

/* Bytes that the peer sent and nobody has read. */
static inline bool nj__conn_has_input(const struct nj_conn *c)
{
    const uint8_t *data;
    return nj_tcp_recv_peek(c->tcb, &data) > 0;
}

/* False when they have to wait: the peer doesn't read what it asked for, so we stop asking it. */
bool nj__conn_may_read(const struct nj_conn *c);

/* While there are streams, it is they who have to get on: requests, their bodies, and taking what
 * was answered. A PING now and then is no reason to keep what they hold. */
static inline bool nj__conn_has_streams(const struct nj_conn *c)
{
    return c->state == H2 && c->talk->h2 && nj_h2_streams(c->talk->h2) > 0;
}

/* Has the peer acknowledged our FIN, and so everything before it? */
static inline bool nj__conn_all_acked(const struct nj_conn *c)
{
    return c->tcb->state == NJ_TCP_FIN_WAIT_2 || c->tcb->state == NJ_TCP_TIME_WAIT;
}

/* ---- mbuf_pressure.c ---- */

/* Mbufs for sending that are left. While there are plenty, those in lcores' caches are left out: to
 * ask 128 caches takes as many misses. */
uint32_t nj__pressure_tx_left(const struct nj_shard *s);
/* It was served: note whether it owes us ACKs, or lets input wait. */
void nj__pressure_note(struct nj_conn *c, nj_ns now);
/* The pool is all but empty: peers that take nothing of what waits for them go. */
void nj__pressure_shed(struct nj_shard *s, nj_ns now);
/* Received mbufs are short: one goes that sends, and takes nothing of its answers. To be called
 * again at once while there is need. Returns how many. */
uint32_t nj__pressure_tick(struct nj_shard *s, nj_ns now);
nj_ns nj__pressure_next(const struct nj_shard *s);

#endif
