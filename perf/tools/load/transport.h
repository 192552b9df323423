/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What carries the connections of a crowd: nightjar's own TCP on a shard (over_shard.c), or the
 * kernel's sockets (over_sockets.c). Only the thread of the crowd calls these functions.
 */
#pragma once

#include "crowd.h"
#include "h1.h"
#include "h2.h"

/* A connection over a socket of the kernel. */
struct load_socket {
    struct nj_list again; /* linked: it gets an event in the next step without one of the kernel */
    int fd;
    bool connected;
    bool full;     /* accepts no bytes until EPOLLOUT */
    bool fin;      /* the peer sends nothing more */
    bool over;     /* LOAD_EV_DEAD follows */
    uint8_t *rest; /* the beginning of a record of TLS; NULL: there is none */
    uint32_t n_rest;
    const uint8_t *in; /* received bytes, during an event */
    uint32_t n_in;
};

struct client {
    struct nj_conn_user user; /* first: see conns.h */
    struct crowd *crowd;
    union {
        struct nj_tcb *tcb;
        struct load_socket socket;
    };
    bool attached;       /* the transport has a connection, or begins it */
    int error;           /* what ended it, of errno; 0: unknown */
    struct nj_list link; /* of opening, of free */
    struct nj_list behind;
    uint8_t *kept; /* bytes that the transport did not accept */
    uint32_t n_kept;
    struct load_tls_conn *tls; /* NULL: cleartext, or not connected */
    bool open, closing;
    union {
        struct load_conn conn; /* of c->plan.framing */
        struct h2_conn h2;
        struct h1_conn h1;
    };
};

#define LOAD_EV_OPENED   NJ_TCP_EV_OPENED
#define LOAD_EV_PEER_FIN NJ_TCP_EV_PEER_FIN
#define LOAD_EV_DEAD     NJ_TCP_EV_DEAD

struct load_transport {
    /* Begins a connection to c->o->to[c->to_next]. False: later. */
    bool (*connect)(struct client *k, nj_ns now);
    /* Number of bytes that send() accepts now. */
    uint32_t (*room)(const struct client *k);
    /* Returns the number of accepted bytes. */
    uint32_t (*send)(struct client *k, const uint8_t *data, uint32_t n);
    /* Contiguous received bytes, valid until take(). */
    uint32_t (*next)(const struct client *k, const uint8_t **data);
    /* The first `n` received bytes, in pieces. Returns their number; 0: there are fewer bytes. */
    uint32_t (*peek)(const struct client *k, uint32_t n, struct nj_tls_src *out, uint32_t n_max);
    void (*take)(struct client *k, uint32_t n);
    /* Nothing more is sent. */
    void (*close)(struct client *k, nj_ns now);
    /* Resets the connection; LOAD_EV_DEAD follows. */
    void (*abort)(struct client *k, nj_ns now);
    /* After LOAD_EV_DEAD, or when both sides have closed. */
    void (*release)(struct client *k, nj_ns now);
    /* Handles what has arrived. Without work, and if the crowd had none (`idle`), it may wait for a
     * millisecond. Returns the amount of work. */
    uint32_t (*step)(struct crowd *c, nj_ns now, bool idle);
    /* Resets all connections, without events. */
    void (*end)(struct crowd *c, nj_ns now);
};

extern const struct load_transport load_over_shard, load_over_sockets;

/* What the sockets of a crowd share. NULL: there is no memory, or no file descriptor. */
struct load_sockets *load_sockets_new(void);
void load_sockets_free(struct load_sockets *s); /* NULL is permitted */

/* The transport reports events (LOAD_EV_*) of a client; 0: bytes arrived, or there is room for
 * more. It may release the client. */
void crowd_on_event(struct client *k, uint8_t events, nj_ns now);
