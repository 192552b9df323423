/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-downloads: very many downloads over HTTP/2 on the kernel's TCP, by one thread, and what came
 * when.
 *
 * A slot is one client of the article's load test: it asks for its file, reads it to the end, and
 * asks again. Slots share connections as they are told to. One thread, one epoll; nothing here
 * waits but for the kernel.
 */
#ifndef NJ_PERF_LOAD_H
#define NJ_PERF_LOAD_H

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

/* How they read. The others are of bots: they ask and do not take what they asked for. */
enum load_manner {
    LOAD_READS,
    LOAD_STOPS,     /* sends its request and never reads: TCP's window fills */
    LOAD_NO_STREAM, /* reads, but streams have no window */
    LOAD_NO_CONN,   /* reads, but the connection's window is never opened again */
    LOAD_DRIBBLES,  /* streams have no window, and get one byte now and then */
    LOAD_SIPS,      /* takes a few bytes from the socket now and then */
};

union load_addr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct load_file { /* what a path should hold; NULL: not compared */
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
    char *fields[LOAD_FIELDS_MAX]; /* "name: value", cut in two at the colon */
    uint32_t n_fields;
    uint32_t n_slots, n_conns;
    nj_ns ramp;         /* between the beginnings of two slots */
    nj_ns settle, hold; /* the steady window: so long after the last beginning, and so long */
    nj_ns pause;        /* of a slot between two requests */
    uint32_t repeat;    /* requests of a slot; 0: until the end */
    uint32_t window;    /* of a stream */
    uint32_t rcvbuf;    /* 0: the kernel's */
    uint64_t range;     /* slot i asks for the i-th part of so many bytes; 0: for all */
    uint32_t leave;     /* the client resets a stream after up to so many bytes; 0: it never does */
    uint64_t seed;      /* of how many */
    enum load_manner manner;
    uint32_t sip_bytes;
    nj_ns every; /* of LOAD_DRIBBLES and LOAD_SIPS */
    nj_ns bin;
};

enum load_state { LOAD_NEW, LOAD_DUE, LOAD_ASKED, LOAD_PAUSES, LOAD_ENDED };

struct load_slot {
    struct load_conn *conn;
    uint32_t index, group, n_done, active; /* active: slots that had begun when it asked */
    int32_t stream;
    enum load_state state;
    uint16_t status;
    nj_ns asked_at, first_at, due;
    struct load_slot *after; /* of those that pause: the next that is due */
    uint64_t n_bytes, window_bytes, range_from, leave_at;
    bool leaves; /* the stream was reset */
};

enum load_conn_state { LOAD_CONN_NEW, LOAD_CONN_CONNECTING, LOAD_CONN_OPEN, LOAD_CONN_GONE };

struct load_conn {
    struct load *load;
    nghttp2_session *session;
    uint8_t *out; /* what the kernel did not take yet */
    size_t out_bytes;
    uint32_t index, events;
    int fd;
    enum load_conn_state state;
    bool dirty; /* has something to send once all that came is eaten */
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
    struct nj_prng prng; /* seed */
    nj_ns now, began, last_began_at, next_tick, end_at;
    nj_ns stall_max, stall_window_max; /* longest turn of the loop, and within the window */
    uint32_t n_begun, n_ended;
    int epoll;
    struct load_slot *pausing, **pausing_end; /* all pause for as long, so this is their order */
    uint64_t chunk_bytes[LOAD_PATHS_MAX];     /* of the read that is being eaten */
};

nj_ns load_clock(void);

/* Makes slots and connections of the options, which are complete. False when memory is refused. */
bool load_init(struct load *l);
/* Until the window is over, or every slot has ended. `steady` is called when the window begins. */
void load_run(struct load *l, void (*steady)(struct load *l));

/* h2.c: HTTP/2 of one connection. */
bool load_h2_open(struct load_conn *c);
void load_h2_ask(struct load_slot *s);
/* Takes what came. False: it is no HTTP/2, or the end of it. */
bool load_h2_input(struct load_conn *c, const uint8_t *data, size_t n_bytes);
void load_h2_dribble(struct load_conn *c);
/* Its request is over: it asks again, now or after its pause. */
void load_slot_again(struct load_slot *s);
void load_slot_over(struct load_slot *s, const char *how);

/* Slots of a connection: for (s = first; s; s = load_slot_next(l, s)). */
static inline struct load_slot *load_slot_next(struct load *l, struct load_slot *s)
{
    uint32_t next = s->index + l->o.n_conns;

    return next < l->o.n_slots ? &l->slots[next] : NULL;
}

#endif
