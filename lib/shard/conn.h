/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of the server, for the two files that are about it: conn.c has its life and its
 * bytes, conn_asked.c what is asked on it. */
#ifndef NJ_SHARD_CONN_H
#define NJ_SHARD_CONN_H

#include "shard/shard.h"
#include "shard/sniff.h"

enum conn_state { SNIFF, H2, LINGER };

/* What a connection has from its first byte on. */
struct nj_talk {
    struct nj_conn *conn;
    struct nj_h2 *h2;
    struct nj_list owing; /* member of shard->owing while the send queue holds bytes */
    nj_ns owing_at;       /* the peer acknowledged some, or began to owe us ACKs */
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
    int64_t credit_ns; /* of the round over connections; negative when it took too long */
};
_Static_assert(sizeof(struct nj_talk) <= 2 * NJ_CACHE_LINE, "two lines more when it speaks");

struct nj_conn {
    struct nj_conn_user user; /* first: tcb->user points here */
    struct nj_shard *shard;
    struct nj_tcb *tcb;
    struct nj_talk *talk;
    struct nj_list node; /* member of shard->silent[silent]; of none once its time is up */
    nj_ns since;         /* it is there, in whole GRAINs, rounded up */
    uint8_t state;       /* enum conn_state */
    uint8_t silent;      /* enum nj_silent */
    bool moved;          /* since it was filed it got on; with streams, one of them did */
    bool owes_body;      /* bytes of bodies are in the send queue */
    bool peer_fin, failed;
};
_Static_assert(sizeof(struct nj_conn) <= NJ_CACHE_LINE, "a million of them say nothing");

/* Its turn: begin what it asked for, and tell streams what handlers said. */
void nj__conn_serve(struct nj_conn *c, nj_ns now);
/* The peer's FIN came: bodies of requests that are not whole will never be. */
void nj__conn_cut_bodies(struct nj_conn *c);
/* Is it we who let its streams wait? */
bool nj__conn_we_stall(const struct nj_conn *c);

#endif
