/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One client connection: its plan (conn_plan.c), its life on TCP (conn.c) and its HTTP/2
 * (h2_client.c) or HTTP/1 (h1.h), with checks of everything that the server sends.
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "base/prng.h"
#include "base/types.h"
#include "store.h"
#include "tcp/tcp.h"

struct sim;
struct sim_conn;

#define SIM_REQUESTS_MAX 10u

enum sim_conn_kind { SIM_H2, SIM_HTTP1, SIM_GARBAGE, SIM_SILENT };

enum sim_conn_state {
    SIM_WAITING, /* for its start time */
    SIM_OPENING,
    SIM_OPEN,
    SIM_CLOSED, /* our FIN is queued */
    SIM_OVER,
};

/* A request and its results. */
struct sim_request {
    /* Plan. */
    const char *method;
    char path[64];
    struct sim_name file; /* the file of `path` */
    uint16_t status;      /* expected status */
    uint64_t length;      /* ... content-length */
    const char *text;     /* ... body; NULL: the bytes of the file */
    uint64_t body_bytes;  /* ... body length */
    bool may_be_busy;     /* 503 is valid as well */
    bool breaks;          /* the stream ends in an error in the middle */
    bool may_break;       /* ... if reads failed, or the file changed */
    uint64_t upload;      /* bytes of request body */
    uint64_t reset_after; /* resets after this much of the body; NJ_NEVER: does not */
    /* Plan of HTTP/1. */
    bool is_1_0, keeps, says_close; /* HTTP/1.0; if so, keep-alive; Connection: close */
    bool is_chunked, expects;       /* of the upload: its framing; Expect: 100-continue */
    bool echoes;                    /* the response is the upload */
    char field[96];                 /* a field line with its CRLF, or "" */
    char range[64];                 /* expected Content-Range */
    uint64_t first;                 /* offset of the body in the file */
    /* Results. */
    int32_t stream;
    nj_ns asked_at;
    uint32_t version; /* of the file */
    uint64_t uploaded, got, got_length;
    uint16_t got_status;
    uint32_t n_heads;
    bool sent, was_reset, closed;
};

/* Sums over some connections. */
struct sim_watch {
    uint64_t n_bytes, n_done; /* of bodies; completed requests */
    uint32_t n_first, n_room;
    nj_ns *first; /* time to the first byte of the body, per request */
};

/* TLS of a connection (tls.h). */
struct sim_tls_conn {
    /* Plan. */
    bool on;
    bool retries, resumes, says_end, pads;
    const char *suite; /* NULL: the client offers all */
    uint32_t record_max;
    uint32_t update_gap; /* bytes read between two KeyUpdates, at most; 0: there is none */
    /* State. */
    struct nj_prng prng;
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    nj_ns opened_at;
    uint64_t update_at; /* in bytes read */
    uint32_t n_updates;
    bool said_end, got_end; /* close_notify */
};

/* HTTP/1 of a connection (h1.h). */
struct sim_h1_conn {
    struct nj_prng prng;
    bool alpn;                  /* offers http/1.1; otherwise no protocol */
    struct sim_request *upload; /* whose body is being written, or NULL */
    bool awaits_continue;       /* 100, or the response, before the body is written */
    bool may_end;               /* a request was written whose response may be the last */
    bool in_body;               /* the head of a response was read, and not all of its body */
    bool ends, ended;           /* a response says that it is the last one; it is complete */
    enum { SIM_BY_LENGTH, SIM_CHUNKED, SIM_BY_CLOSE } framing; /* of its body */
    uint64_t chunk_left;          /* bytes of the chunk that are still to come */
    bool chunk_ends, in_trailers; /* the line behind a chunk, or a trailer, is next */
    uint32_t n_head, n_out, out_off;
    char head[2048]; /* of a response; or a line of chunked coding */
    uint8_t out[16384];
};

/* What a client speaks. */
struct sim_http {
    void (*open)(struct sim_conn *c);
    void (*input)(struct sim_conn *c, const uint8_t *data, size_t n_bytes);
    /* The next bytes to be sent, valid until the next call; 0: none. At most 32 KiB. */
    size_t (*output)(struct sim_conn *c, const uint8_t **data);
    /* Are all responses complete, as far as they are still to come? */
    bool (*is_done)(const struct sim_conn *c);
    /* The client ends the connection. */
    void (*bye)(struct sim_conn *c);
    /* The connection has ended with a FIN of each side. */
    void (*check)(struct sim_conn *c);
};

struct sim_conn {
    struct sim *sim;
    uint32_t index;
    /* Plan. */
    enum sim_conn_kind kind;
    nj_ns start_at;
    uint32_t addr;       /* index of the host's address */
    nj_ns rest;          /* from the end of connection port_of to the start of this one */
    uint32_t n_requests; /* after SIM_REQUESTS_MAX they repeat from the first */
    uint32_t parallel;
    uint32_t window;                   /* HTTP/2 window */
    uint64_t stall_after, abort_after; /* bytes read; NJ_NEVER: does not */
    nj_ns stall_for, close_at;
    uint32_t n_stalls;  /* number of pauses in reading */
    uint64_t stall_gap; /* bytes read between two pauses */
    bool half_close;    /* FIN directly after the last request */
    int32_t port_of;    /* reuse the local port of that connection after its end; -1: an own port */
    uint32_t cut_after; /* bytes sent before a pause */
    nj_ns cut_for;
    struct sim_watch *watch; /* or NULL */
    bool stay;               /* the server ends the connection */
    struct sim_request req[SIM_REQUESTS_MAX];
    struct sim_tls_conn tls;
    /* State. */
    enum sim_conn_state state;
    struct nj_tcb *tcb;
    nghttp2_session *h2;
    struct sim_h1_conn h1;
    bool speaks; /* HTTP has begun, over TLS after the handshake */
    bool peer_fin, aborted;
    bool heard;    /* frames of HTTP/2, or bytes of HTTP/1, have arrived */
    bool was_late; /* its SETTINGS acknowledgement, or a head, was delayed too long */
    bool said_bye;
    int32_t last_served; /* from GOAWAY: later streams were refused */
    uint32_t n_begun, n_done;
    uint64_t n_read, n_written;
    nj_ns paused_until, stalled_until; /* 0: not */
    nj_ns over_at;
    uint16_t port;
    uint8_t out[32768];
    uint32_t n_out, out_off;
};

void nj_sim_conn_plan(struct sim_conn *c, struct sim *sim, uint32_t index);
void nj_sim_conn_fini(struct sim_conn *c);
/* Time of its next action of its own. */
nj_ns nj_sim_conn_next(const struct sim_conn *c);
void nj_sim_conn_alarm(struct sim_conn *c);
/* Handle events of TCP. */
void nj_sim_conn_turn(struct sim_conn *c, uint8_t events);

extern const struct sim_http nj_sim_h2, nj_sim_h1;

/* NULL: it speaks no HTTP. */
static inline const struct sim_http *nj_sim_http(const struct sim_conn *c)
{
    return c->kind == SIM_H2 ? &nj_sim_h2 : c->kind == SIM_HTTP1 ? &nj_sim_h1 : NULL;
}
