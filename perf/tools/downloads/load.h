/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-downloads: many downloads over HTTP/2 on the kernel's TCP, in one thread. Records when bytes
 * arrive.
 *
 * A slot is a closed-loop client: it requests its file, reads it to the end, and sends its next
 * request. Slots share the connections in turn. The thread waits only in epoll_pwait2().
 */
#pragma once

#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/prng.h"
#include "meter.h"

#define LOAD_SLOTS_MAX  (1u << 17)
#define LOAD_PATHS_MAX  NJ_METER_GROUPS_MAX
#define LOAD_FROM_MAX   64u
#define LOAD_FIELDS_MAX 8u
#define LOAD_READ_BYTES (256u * 1024u)

/* How clients read. All but LOAD_READS are slow-read attacks: the client sends requests and never
 * reads a whole response. */
enum load_manner {
    LOAD_READS,
    LOAD_STOPS,     /* never reads the socket: TCP's receive window closes */
    LOAD_NO_STREAM, /* reads; the windows of streams are 0 */
    LOAD_NO_CONN,   /* reads; the connection's window is never enlarged */
    LOAD_DRIBBLES,  /* reads; the windows of streams are 0 and get a byte every `every` */
    LOAD_SIPS,      /* reads sip_bytes from the socket every `every` */
};

union load_addr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct load_file { /* expected content of a path; NULL: not compared */
    const uint8_t *data;
    size_t n_bytes;
};

struct load_options {
    union load_addr to, from[LOAD_FROM_MAX];
    uint32_t n_from;
    char authority[64];
    const char *method;
    const char *paths[LOAD_PATHS_MAX];
    struct load_file files[LOAD_PATHS_MAX];
    uint32_t n_paths, n_files;
    char *fields[LOAD_FIELDS_MAX]; /* name, NUL, value, NUL */
    uint32_t n_fields;
    uint32_t n_slots, n_conns;
    nj_ns ramp;         /* between the starts of two slots */
    nj_ns settle, hold; /* the steady window begins `settle` after the last start; its length */
    nj_ns pause;        /* of a slot between two requests */
    uint32_t repeat;    /* requests of a slot; 0: until the end */
    uint32_t window;    /* initial window of a stream */
    uint32_t rcvbuf;    /* SO_RCVBUF; 0: the kernel's default */
    uint64_t range;     /* bytes; the i-th slot of a path requests the i-th range; 0: whole files */
    uint32_t leave;     /* the client resets a stream after 1 to `leave` bytes; 0: never */
    uint64_t seed;      /* of the numbers of bytes for `leave` */
    enum load_manner manner;
    uint32_t sip_bytes;
    nj_ns every; /* of LOAD_DRIBBLES and LOAD_SIPS */
    nj_ns bin;   /* of the series */
};

enum load_state { LOAD_NEW, LOAD_DUE, LOAD_REQUESTED, LOAD_PAUSES, LOAD_ENDED };

struct load_slot {
    struct load_conn *conn;
    uint32_t index, group, n_done, active; /* active: started slots at the request */
    int32_t stream;
    enum load_state state;
    uint16_t status;
    nj_ns requested_at, first_at, due;
    struct load_slot *after; /* the next slot in the list of pausing slots */
    uint64_t n_bytes, window_bytes, range_from, leave_at;
    bool leaves; /* the client has reset the stream */
};

enum load_conn_state { LOAD_CONN_NEW, LOAD_CONN_CONNECTING, LOAD_CONN_OPEN, LOAD_CONN_GONE };

struct load_conn {
    struct load *load;
    nghttp2_session *session;
    uint8_t *out; /* output that the socket has not accepted yet */
    size_t out_bytes;
    uint32_t index, events;
    int fd;
    enum load_conn_state state;
    bool dirty; /* may have output to send after the input was processed */
};

struct load_counts {
    uint64_t requests, done, left, other_status, reset, closed, mismatch, payload_bytes;
    uint32_t connected, refused, gone;
};

struct load {
    struct load_options o;
    struct load_slot *slots;
    struct load_conn *conns;
    struct nj_meter meter;
    struct load_counts counts;
    nghttp2_session_callbacks *callbacks;
    FILE *rows;
    struct nj_prng prng; /* for `leave` */
    nj_ns now, began, last_began_at, next_tick, end_at;
    nj_ns stall_max, stall_window_max; /* longest processing of events, in all and in the window */
    uint32_t n_begun, n_ended;
    int epoll;
    struct load_slot *pausing, **pausing_end; /* in the order of due times */
    uint64_t chunk_bytes[LOAD_PATHS_MAX];     /* of the current read */
};

nj_ns load_clock(void);

/* Makes the slots and the connections of the options l->o. False: out of memory or files. */
bool load_init(struct load *l);
/* Runs until the steady window is over or every slot has ended. Calls `steady` when the window
 * begins. */
void load_run(struct load *l, void (*steady)(struct load *l));

/* h2.c: HTTP/2 of a connection. */
/* Starts the session. False: nghttp2 failed. */
bool load_h2_open(struct load_conn *c);
/* Submits the next request of the slot. */
void load_h2_send_request(struct load_slot *s);
/* Processes input. False: the input is invalid, or the session has ended. */
bool load_h2_input(struct load_conn *c, const uint8_t *data, size_t n_bytes);
/* Enlarges the window of each active stream by one byte. */
void load_h2_dribble(struct load_conn *c);
/* Sends the next request of a slot whose request has ended, now or after its pause. */
void load_slot_repeat(struct load_slot *s);
/* Ends a slot. Writes a row for its request, if there is one; `outcome` is the last field. */
void load_slot_end(struct load_slot *s, const char *outcome);

/* Slots of a connection: for (s = first; s; s = load_slot_next(l, s)). */
static inline struct load_slot *load_slot_next(struct load *l, struct load_slot *s)
{
    uint32_t next = s->index + l->o.n_conns;

    return next < l->o.n_slots ? &l->slots[next] : NULL;
}
