/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Black-box rig for a server connection of lib/h2: input is raw bytes, and every byte of output is
 * checked against RFC 9113. The rig uses only h2.h.
 *
 * A case is a function that queues input (rfc_say, rfc_head, ...), delivers it (rfc_go) and checks
 * the reaction (rfc_expect, ...). It runs several times: with input at once, byte by byte, and cut
 * at random places. The output must have the same frames each time; only WINDOW_UPDATEs may be
 * divided differently. Another run takes the output after each byte of input: there frames may
 * come in another order, but the case must still hold.
 *
 * Where the RFC leaves a choice, a case lists all reactions that are allowed.
 */
#pragma once

#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "h2/h2.h"
#include "telem/counters.h"

/* RFC 9113 6, RFC 9218 7.1. */
enum rfc_type {
    RFC_DATA,
    RFC_HEADERS,
    RFC_PRIORITY,
    RFC_RST_STREAM,
    RFC_SETTINGS,
    RFC_PUSH_PROMISE,
    RFC_PING,
    RFC_GOAWAY,
    RFC_WINDOW_UPDATE,
    RFC_CONTINUATION,
    RFC_PRIORITY_UPDATE = 0x10,
    RFC_UNKNOWN = 0xbb,
};

enum {
    RFC_END_STREAM = 0x1,
    RFC_ACK = 0x1,
    RFC_END_HEADERS = 0x4,
    RFC_PADDED = 0x8,
    RFC_PRI = 0x20
};
#define RFC_ENDS (RFC_END_STREAM | RFC_END_HEADERS)

/* RFC 9113 6.5.2, RFC 9218 2.1, RFC 8441 3. */
enum rfc_setting {
    RFC_HEADER_TABLE_SIZE = 1,
    RFC_ENABLE_PUSH,
    RFC_MAX_CONCURRENT_STREAMS,
    RFC_INITIAL_WINDOW_SIZE,
    RFC_MAX_FRAME_SIZE,
    RFC_MAX_HEADER_LIST_SIZE,
    RFC_ENABLE_CONNECT_PROTOCOL = 8,
    RFC_NO_PRIORITIES,
};

/* Sets of error codes (RFC 9113 7), as bits. */
enum {
    RFC_E_NONE = 1 << 0,
    RFC_E_PROTOCOL = 1 << 1,
    RFC_E_INTERNAL = 1 << 2,
    RFC_E_FLOW = 1 << 3,
    RFC_E_CLOSED = 1 << 5,
    RFC_E_SIZE = 1 << 6,
    RFC_E_REFUSED = 1 << 7,
    RFC_E_CANCEL = 1 << 8,
    RFC_E_COMPRESSION = 1 << 9,
    RFC_E_CALM = 1 << 11,
};

/* An allowed reaction: the connection or the stream ends with one of these codes, or there is no
 * error. */
struct rfc_may {
    uint32_t conn, reset;
    bool ignored;
};
#define RFC_CONN(codes)   ((struct rfc_may){.conn = (codes)})
/* RFC 9113 5.4.1: an error of a stream may be treated as one of the connection. */
#define RFC_STREAM(codes) ((struct rfc_may){.conn = (codes), .reset = (codes)})
#define RFC_IGNORED       ((struct rfc_may){.ignored = true})
/* RFC 9113 5.1: a frame for a closed stream may be an error, or be discarded. */
#define RFC_GONE          ((struct rfc_may){RFC_E_CLOSED, RFC_E_CLOSED, true})

#define RFC_STREAMS      512
#define RFC_FIRST_WINDOW 65535
#define RFC_ID_MAX       0x7fffffffu

struct rfc_stream { /* as the client sees it, and the events of the server's owner */
    uint32_t id;
    bool asked, gone; /* HEADERS went out; we reset it */
    int status;       /* of the response; 0: none yet */
    uint64_t n_data;
    uint32_t n_frames; /* DATA */
    int64_t window;    /* the window that we gave to the server */
    uint64_t given;    /* WINDOW_UPDATE from the server */
    bool ended, reset;
    uint32_t code; /* of its RST_STREAM */
    bool trailers;

    struct nj_h2_stream *st; /* NULL: not shown, or over */
    bool shown, ends, body_ended, closed, complete;
    char method[24], path[256], authority[64], scheme[16];
    uint64_t n_body;
};

struct rfc_body {
    struct nj_body body;
    struct rfc *c;
    uint64_t left;
};

/* The expected newest entry of the HPACK table. */
enum rfc_sync { RFC_SYNC_NONE, RFC_SYNC_PATH, RFC_SYNC_FIELD };

struct rfc {
    const char *way; /* how the input is cut */
    char what[64];   /* the case, where a table makes many */
    uint32_t cut;    /* longest piece; 0: at once */
    bool eager;      /* output after every piece */
    bool failed;
    bool lenient;       /* the output is not checked */
    enum rfc_sync sync; /* of the last block */
    struct nj_prng prng;

    /* Parameters that a case may set before its first rfc_go(). */
    struct nj_h2_limits limits;
    bool no_reader; /* bodies of requests are thrown away */
    /* ... and at any time. */
    bool hold;             /* requests are not answered */
    bool keep;             /* bodies of requests are not consumed */
    bool no_body;          /* END_STREAM is on the HEADERS */
    uint64_t answer_bytes; /* of a response */

    struct nj_counters counters;
    struct nj_alloc alloc;
    struct nj_h2_context *core;
    struct nj_h2 *h;
    uint8_t *in, *out;
    size_t n_in, room_in, n_out, room_out;
    struct rfc_stream stream[RFC_STREAMS];
    uint32_t n_streams, n_shown, n_closed, n_bodies;
    uint32_t id_next;

    bool over;    /* the return value of input or output was the end */
    bool settled; /* the server's SETTINGS came */
    uint32_t setting[16];
    bool setting_came[16];
    uint32_t n_acks, n_pings; /* SETTINGS ACK and PING ACK that came */
    uint32_t n_own_pings;     /* PINGs that the server sent */
    uint64_t ping_sent[64];
    uint32_t n_ping_sent;
    uint32_t n_goaways, goaway_code, goaway_last;
    int64_t window; /* of the connection, the window that we gave to the server */
    uint64_t given;
    int64_t window_first;
    uint32_t frame_max;
    uint8_t pending[64][6]; /* of our SETTINGS, until they are acknowledged */
    uint8_t pending_n[32];  /* entries of each */
    uint32_t n_pending, n_pending_entries;
    nghttp2_hd_inflater *inflater;
    uint8_t block[256 * 1024];
    size_t n_block;
    uint32_t block_id; /* CONTINUATION is to come for it */
    bool block_ends;

    char *log; /* the output, one line per frame */
    size_t n_log, room_log;
};

#define RFC_CHECK(c, condition, ...)                                                               \
    do {                                                                                           \
        if (!(condition) && !(c)->lenient) {                                                       \
            char why_[400];                                                                        \
            snprintf(why_, sizeof why_, __VA_ARGS__);                                              \
            (c)->failed = true;                                                                    \
            cr_expect(false, "%s%s: %s", (c)->what, (c)->way, why_);                               \
        }                                                                                          \
    } while (0)

/* RFC_CASE(suite, name) { ... c ... } */
#define RFC_CASE(suite, name)                                                                      \
    static void suite##_##name##_run(struct rfc *c, const void *arg);                              \
    Test(suite, name)                                                                              \
    {                                                                                              \
        rfc_every_way(suite##_##name##_run, NULL);                                                 \
    }                                                                                              \
    static void suite##_##name##_run(struct rfc *c, const void *arg)

static inline uint32_t rfc_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void rfc_put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static inline void rfc_append(uint8_t **to, size_t *n, size_t *room, const void *p, size_t n_bytes)
{
    if (*n + n_bytes > *room) {
        *room = 2 * (*n + n_bytes) + 4096;
        *to = realloc(*to, *room);
    }
    if (n_bytes > 0)
        memcpy(*to + *n, p, n_bytes);
    *n += n_bytes;
}

static inline struct rfc_stream *rfc_stream(struct rfc *c, uint32_t id)
{
    for (uint32_t i = c->n_streams; i-- > 0;)
        if (c->stream[i].id == id)
            return &c->stream[i];
    cr_assert_lt(c->n_streams, RFC_STREAMS);
    struct rfc_stream *s = &c->stream[c->n_streams++];
    *s = (struct rfc_stream){.id = id, .window = c->window_first};
    return s;
}

#include "h2_rfc9113_say.h"
#include "h2_rfc9113_seen.h"

/* ---- the owner of the server's side ---- */

static const uint8_t rfc_zeros[65536];

static inline int rfc_peek(struct nj_body *b, uint32_t n_max, struct nj_slice *out)
{
    struct rfc_body *t = (struct rfc_body *)b;
    uint64_t n = t->left < n_max ? t->left : n_max;
    n = n < sizeof rfc_zeros ? n : sizeof rfc_zeros;
    *out = (struct nj_slice){rfc_zeros, (uint32_t)n, NULL};
    return (int)n;
}

static inline void rfc_advance(struct nj_body *b, uint32_t n)
{
    ((struct rfc_body *)b)->left -= n;
}

static inline uint64_t rfc_remaining(const struct nj_body *b)
{
    return ((const struct rfc_body *)b)->left;
}

static inline void rfc_close_body(struct nj_body *b)
{
    ((struct rfc_body *)b)->c->n_bodies--;
    free(b);
}

static const struct nj_body_ops rfc_body_ops = {rfc_peek, rfc_advance, rfc_remaining,
                                                rfc_close_body, NULL};

/* Answer with 200 and a body of that size; 0: without one. */
static inline void rfc_answer(struct rfc *c, uint32_t id, uint64_t n_bytes)
{
    struct rfc_stream *s = rfc_stream(c, id);
    const struct nj_field field = {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")};
    cr_assert(s->st, "%s: no request to respond to on %u", c->way, id);
    struct rfc_body *b = NULL;
    if (n_bytes > 0) {
        b = malloc(sizeof *b);
        *b = (struct rfc_body){{&rfc_body_ops, NULL}, c, n_bytes};
        c->n_bodies++;
    }
    cr_expect_eq(nj_h2_respond(s->st, 200, &field, 1, 0, b ? &b->body : NULL), 0);
}

static inline void rfc_text(char *to, size_t room, struct nj_str s)
{
    snprintf(to, room, "%.*s", (int)s.n_bytes, s.p);
}

static inline void rfc_on_request(void *user, struct nj_h2_stream *st,
                                  const struct nj_request_head *req)
{
    struct rfc *c = user;
    struct rfc_stream *s = rfc_stream(c, nj_h2_stream_id(st));
    RFC_CHECK(c, !s->shown, "stream %u is shown twice", s->id);
    s->st = st;
    s->shown = true;
    s->ends = req->ends;
    rfc_text(s->method, sizeof s->method, req->method);
    rfc_text(s->scheme, sizeof s->scheme, req->scheme);
    rfc_text(s->path, sizeof s->path, req->path);
    rfc_text(s->authority, sizeof s->authority, req->authority);
    c->n_shown++;
    if (!c->hold)
        rfc_answer(c, s->id, c->no_body || strcmp(s->method, "HEAD") == 0 ? 0 : c->answer_bytes);
}

static inline void rfc_on_close(void *user, struct nj_h2_stream *st, bool complete)
{
    struct rfc *c = user;
    struct rfc_stream *s = rfc_stream(c, nj_h2_stream_id(st));
    RFC_CHECK(c, s->shown && !s->closed, "stream %u is over twice", s->id);
    s->st = NULL;
    s->closed = true;
    s->complete = complete;
    c->n_closed++;
}

static inline void rfc_on_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n)
{
    struct rfc *c = user;
    struct rfc_stream *s = rfc_stream(c, nj_h2_stream_id(st));
    RFC_CHECK(c, !s->closed && !s->ends && !s->body_ended, "bytes behind the end of %u", s->id);
    s->n_body += n;
    if (!c->keep)
        nj_h2_consume(st, n);
}

static inline void rfc_on_end(void *user, struct nj_h2_stream *st)
{
    struct rfc *c = user;
    struct rfc_stream *s = rfc_stream(c, nj_h2_stream_id(st));
    RFC_CHECK(c, !s->closed && !s->ends && !s->body_ended, "two ends of %u", s->id);
    s->body_ended = true;
}

static const struct nj_h2_events rfc_reader = {.on_request = rfc_on_request,
                                               .on_stream_close = rfc_on_close,
                                               .on_data = rfc_on_data,
                                               .on_end = rfc_on_end};
static const struct nj_h2_events rfc_no_reader = {.on_request = rfc_on_request,
                                                  .on_stream_close = rfc_on_close};

/* ---- bytes in, frames out ---- */

static inline uint32_t rfc_room(void *ctx)
{
    return 1u << 30;
}

static inline bool rfc_copy(void *ctx, const uint8_t *data, uint32_t n_bytes)
{
    struct rfc *c = ctx;
    rfc_append(&c->out, &c->n_out, &c->room_out, data, n_bytes);
    return true;
}

static inline bool rfc_refer(void *ctx, const struct nj_slice *slice)
{
    return rfc_copy(ctx, slice->data, slice->n_bytes);
}

static const struct nj_byte_sink rfc_sink = {rfc_room, rfc_copy, rfc_refer};

static inline void rfc_take_output(struct rfc *c)
{
    c->over |= nj_h2_output(c->h, &rfc_sink, c) != 0;
    if (c->over)
        nj_h2_output(c->h, &rfc_sink, c);
    rfc_seen(c);
}

static inline void rfc_open(struct rfc *c)
{
    if (c->h)
        return;
    nj_alloc_init(&c->alloc, SIZE_MAX);
    c->core = nj_h2_context_new(c->no_reader ? &rfc_no_reader : &rfc_reader, &c->limits, &c->alloc,
                                &c->counters);
    cr_assert(c->core);
    c->h = nj_h2_open(c->core, c);
    cr_assert(c->h);
}

/* Deliver the queued input, and read the output. */
static inline void rfc_go(struct rfc *c)
{
    rfc_open(c);
    for (size_t at = 0; at < c->n_in && !c->over;) {
        size_t left = c->n_in - at;
        size_t n = c->cut == 0 ? left : c->cut == 1 ? 1 : 1 + nj_prng_below(&c->prng, c->cut);
        n = n < left ? n : left;
        /* A block of its own, so that a read beyond its end is found. */
        uint8_t *piece = malloc(n);
        memcpy(piece, c->in + at, n);
        c->over = nj_h2_input(c->h, piece, n) != 0;
        free(piece);
        at += n;
        if (c->eager)
            rfc_take_output(c);
    }
    c->n_in = 0;
    rfc_take_output(c);
    rfc_note(c, "-\n");
}

/* The preface of both sides (RFC 9113 3.4). */
static inline void rfc_hello(struct rfc *c)
{
    rfc_magic(c);
    rfc_say(c, RFC_SETTINGS, 0, 0, NULL, 0);
    rfc_go(c);
    rfc_say(c, RFC_SETTINGS, RFC_ACK, 0, NULL, 0);
    RFC_CHECK(c, c->settled && c->n_acks == 1 && !c->over, "the prefaces");
}

/* ---- reactions ---- */

/* Check that the connection ended, or did not, and that both signals agree. */
static inline void rfc_check_over(struct rfc *c)
{
    bool told = c->n_goaways > 0 && c->goaway_code != 0;
    RFC_CHECK(c, c->over == told, "over: %d, GOAWAY: %u with %u", c->over, c->n_goaways,
              c->goaway_code);
}

static inline void rfc_expect_over(struct rfc *c, uint32_t codes)
{
    rfc_check_over(c);
    RFC_CHECK(c, c->over, "the connection continues");
    RFC_CHECK(c, !c->over || (c->goaway_code < 32 && codes & 1u << c->goaway_code),
              "GOAWAY with %u, not of 0x%x", c->goaway_code, codes);
}

static inline void rfc_expect_shown(struct rfc *c, uint32_t id, const char *path)
{
    struct rfc_stream *s = rfc_stream(c, id);
    RFC_CHECK(c, s->shown && s->status == 200, "%u: shown %d, status %d, reset %d with %u", id,
              s->shown, s->status, s->reset, s->code);
    RFC_CHECK(c, !s->shown || strcmp(s->path, path) == 0, "%u has path '%s' and not '%s'", id,
              s->path, path);
}

/* Check that a PING is answered, and requests that take their fields from the HPACK table, also
 * from the entries of rfc_head_sync(). */
static inline void rfc_expect_alive(struct rfc *c)
{
    static const uint8_t payload[8] = "alive?!";
    uint32_t n_pings = c->n_pings, synced = c->id_next, id = synced + (c->sync ? 2 : 0);
    bool hold = c->hold, no_body = c->no_body;
    c->hold = false;
    c->no_body = true;
    rfc_say(c, RFC_PING, 0, 0, payload, sizeof payload);
    if (c->sync == RFC_SYNC_PATH)
        rfc_head_newest(c, synced);
    else if (c->sync)
        rfc_say(c, RFC_HEADERS, RFC_ENDS, synced, "\x82\x86\x84\x01\1h\xbe", 7);
    rfc_head_path(c, id, RFC_ENDS, "/indexed");
    rfc_head_newest(c, id + 2);
    rfc_go(c);
    rfc_check_over(c);
    RFC_CHECK(c, !c->over, "the connection ended with %u", c->goaway_code);
    RFC_CHECK(c, c->n_pings == n_pings + 1, "no answer to a PING");
    if (c->sync)
        rfc_expect_shown(c, synced, c->sync == RFC_SYNC_PATH ? "/sync" : "/");
    rfc_expect_shown(c, id, "/indexed");
    rfc_expect_shown(c, id + 2, "/indexed");
    c->sync = RFC_SYNC_NONE;
    c->hold = hold;
    c->no_body = no_body;
}

static inline void rfc_expect(struct rfc *c, uint32_t id, struct rfc_may may)
{
    struct rfc_stream *s = rfc_stream(c, id);
    if (c->over || c->n_goaways > 0) {
        RFC_CHECK(c, may.conn, "the connection ended with %u", c->goaway_code);
        if (may.conn)
            rfc_expect_over(c, may.conn);
        return;
    }
    if (s->reset)
        RFC_CHECK(c, s->code < 32 && may.reset & 1u << s->code, "%u was reset with %u, not 0x%x",
                  id, s->code, may.reset);
    else
        RFC_CHECK(c, may.ignored, "%u: no reaction", id);
    rfc_expect_alive(c);
}

/* A whole answer came. */
static inline void rfc_expect_answer(struct rfc *c, uint32_t id)
{
    struct rfc_stream *s = rfc_stream(c, id);
    RFC_CHECK(c, !c->over, "the connection ended with %u", c->goaway_code);
    RFC_CHECK(c, s->shown && s->status == 200 && s->ended && !s->reset,
              "%u: shown %d, status %d, ended %d, reset %d with %u", id, s->shown, s->status,
              s->ended, s->reset, s->code);
}

/* RFC 9113 8.1.1: a stream error of PROTOCOL_ERROR, maybe with a response of status 400 before it;
 * in no case the owner is shown the request. */
static inline void rfc_expect_malformed(struct rfc *c, uint32_t id)
{
    struct rfc_stream *s = rfc_stream(c, id);
    RFC_CHECK(c, !s->shown, "%u is shown: %s '%s'", id, s->method, s->path);
    if (!c->over && !s->reset && s->status == 400)
        rfc_expect_alive(c);
    else
        rfc_expect(c, id, RFC_STREAM(RFC_E_PROTOCOL));
}

/* ---- running a case ---- */

static inline struct rfc *rfc_new(const char *way, uint32_t cut, bool eager, uint64_t seed)
{
    struct rfc *c = calloc(1, sizeof *c);
    c->way = way;
    c->cut = cut;
    c->eager = eager;
    nj_prng_init(&c->prng, seed);
    c->limits = nj_h2_limits_default;
    c->answer_bytes = 128;
    c->id_next = 1;
    c->window = c->window_first = RFC_FIRST_WINDOW;
    c->frame_max = 16384;
    cr_assert_eq(nghttp2_hd_inflate_new(&c->inflater), 0);
    return c;
}

/* Free the connection; then all memory must have been freed. Returns the log. */
static inline char *rfc_free(struct rfc *c)
{
    rfc_open(c);
    nj_h2_close(c->h);
    RFC_CHECK(c, c->n_closed == c->n_shown, "%u shown, %u over", c->n_shown, c->n_closed);
    RFC_CHECK(c, c->n_bodies == 0, "%u bodies left", c->n_bodies);
    RFC_CHECK(c, nj_h2_context_n_conns(c->core) == 0 && nj_h2_context_bytes_used(c->core) == 0,
              "memory");
    nj_h2_context_free(c->core);
    nj_alloc_fini(&c->alloc);
    nghttp2_hd_inflate_del(c->inflater);
    rfc_note(c, "");
    char *log = c->log;
    free(c->in);
    free(c->out);
    free(c);
    return log;
}

static inline void rfc_every_way(void (*run)(struct rfc *, const void *), const void *arg)
{
    static const struct {
        const char *way;
        uint32_t cut;
        bool eager;
    } ways[] = {{"at once", 0, false},    {"bytes", 1, false},          {"cut by 12", 12, false},
                {"cut by 70", 70, false}, {"cut by 9000", 9000, false}, {"eager bytes", 1, true}};
    char *first = NULL;
    bool failed = false;
    for (size_t i = 0; i < NJ_ARRAY_LEN(ways) && !failed; i++) {
        struct rfc *c = rfc_new(ways[i].way, ways[i].cut, ways[i].eager, 9113 + i);
        run(c, arg);
        failed = c->failed;
        char *log = rfc_free(c);
        if (first && !ways[i].eager)
            cr_expect(strcmp(first, log) == 0, "%s:\n%s\n... at once:\n%s", ways[i].way, log,
                      first);
        if (first)
            free(log);
        else
            first = log;
    }
    free(first);
}
