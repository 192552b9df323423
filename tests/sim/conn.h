/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of a client: what it means to do (conn_plan.c), its life on TCP (conn.c) and its
 * HTTP/2 (h2_client.c), with checks of everything the server says.
 */
#ifndef NJ_TESTS_SIM_CONN_H
#define NJ_TESTS_SIM_CONN_H

#include <nghttp2/nghttp2.h>

#include "base/types.h"
#include "store.h"
#include "tcp/tcp.h"

struct sim;

#define SIM_REQUESTS_MAX 10u

enum sim_conn_kind { SIM_H2, SIM_HTTP1, SIM_GARBAGE, SIM_SILENT };

enum sim_conn_state {
    SIM_WAITING, /* for its time to come */
    SIM_OPENING,
    SIM_OPEN,
    SIM_CLOSED, /* our FIN is queued */
    SIM_OVER,
};

/* One request and what has come of it. */
struct sim_request {
    /* The plan. */
    const char *method;
    char path[64];
    struct sim_name file; /* that `path` names */
    uint16_t status;      /* what the answer must say */
    uint64_t length;      /* ... its content-length */
    const char *text;     /* ... the body; NULL: the file's bytes */
    uint64_t body_bytes;  /* ... length of the body */
    bool may_be_busy;     /* 503 is an answer, too */
    bool breaks;          /* the stream ends in an error half way */
    bool may_break;       /* ... if reads have failed, or the file has changed */
    uint64_t upload;      /* bytes of request body */
    uint64_t reset_after; /* bytes of the body; NJ_NEVER: not */
    /* What came. */
    int32_t stream;
    nj_ns asked_at;
    uint32_t version; /* of the file */
    uint64_t uploaded, got, got_length;
    uint16_t got_status;
    uint32_t n_heads;
    bool sent, was_reset, closed;
};

/* What some connections got, added up. */
struct sim_watch {
    uint64_t n_bytes, n_done; /* of bodies; requests */
    uint32_t n_first, n_room;
    nj_ns *first; /* from each request to the first byte of its body */
};

struct sim_conn {
    struct sim *sim;
    uint32_t index;
    /* The plan. */
    enum sim_conn_kind kind;
    nj_ns start_at;
    uint32_t addr;       /* which one of the host's */
    nj_ns rest;          /* from the end of port_of to our beginning */
    uint32_t n_requests; /* after SIM_REQUESTS_MAX the first one comes again */
    uint32_t parallel;
    uint32_t window;                   /* of HTTP/2 */
    uint64_t stall_after, abort_after; /* bytes read; NJ_NEVER: not */
    nj_ns stall_for, close_at;
    uint32_t n_stalls;  /* how often it stops reading */
    uint64_t stall_gap; /* bytes read between two stops */
    bool half_close;    /* FIN right behind the last request */
    int32_t port_of;    /* the local port of that connection once it is over; -1: its own */
    uint32_t cut_after; /* bytes sent, then a pause */
    nj_ns cut_for;
    struct sim_watch *watch; /* or NULL */
    bool stay;               /* leave it to the server to end the connection */
    struct sim_request req[SIM_REQUESTS_MAX];
    /* What happens. */
    enum sim_conn_state state;
    struct nj_tcb *tcb;
    nghttp2_session *h2;
    bool peer_fin, aborted;
    bool heard;    /* HTTP/2 frames came */
    bool was_late; /* its acknowledgement of SETTINGS was on its way for too long */
    bool said_bye;
    int32_t last_served; /* as GOAWAY said: later streams were refused */
    uint32_t n_begun, n_done;
    uint64_t n_read, n_written;
    nj_ns paused_until, stalled_until; /* 0: not */
    nj_ns over_at;
    uint16_t port;
    uint8_t out[32768];
    uint32_t n_out, out_off;
    char text[512]; /* what an HTTP/1 client read */
};

void nj_sim_conn_plan(struct sim_conn *c, struct sim *sim, uint32_t index);
void nj_sim_conn_fini(struct sim_conn *c);
/* When it has something to do by itself. */
nj_ns nj_sim_conn_next(const struct sim_conn *c);
void nj_sim_conn_alarm(struct sim_conn *c);
/* TCP has news. */
void nj_sim_conn_turn(struct sim_conn *c, uint8_t events);

/* --- h2_client.c --------------------------------------------------------------------------- */

void nj_sim_h2_open(struct sim_conn *c);
void nj_sim_h2_input(struct sim_conn *c, const uint8_t *data, size_t n_bytes);
/* The next bytes to send, or 0. */
size_t nj_sim_h2_output(struct sim_conn *c, const uint8_t **data);
/* All requests are answered, or never will be. */
bool nj_sim_h2_done(const struct sim_conn *c);
void nj_sim_h2_bye(struct sim_conn *c);
/* The connection ended: is each request where it should be? */
void nj_sim_h2_check(struct sim_conn *c);

#endif
