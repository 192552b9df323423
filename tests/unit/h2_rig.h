/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server connection of lib/h2, response bodies that check every call, and an nghttp2 client that
 * checks every byte received. The path selects the response: "/<bytes>", followed by
 *   d  the body has bytes only when rig_release() allows it
 *   f  the body fails half way
 *   l  no response by the rig; the test responds later
 *   u  the length of the body is unknown, and its end is known after the last byte
 *   e  with u: the end is known with the last bytes
 *   h  with u: the end is known after rig_finish()
 *   t  trailers follow
 * With rig_reader_events, requests may have bodies, of bytes that rig_upload() makes:
 *   c  bytes are consumed on arrival (otherwise by the test)
 *   a  with l: the response comes at the end of the request
 */
#pragma once

#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "h2/h2.h"
#include "h2/h2_internal.h"
#include "telem/counters.h"

#define RIG_STREAMS 256
#define RIG_BODIES  32768

struct rig_data { /* the data that slices refer to */
    struct nj_ref ref;
    struct rig *rig;
    uint8_t *p;
};

struct rig_body {
    struct nj_body body;
    struct rig *rig;
    struct rig_data *data;
    uint64_t size, pos, avail, fail_at;
    bool unknown, early_end, late_end, end_known; /* u, e, h */
    uint32_t peek_max, shown;
    unsigned closes;
};

struct rig_stream { /* server side */
    struct nj_h2_stream *st;
    struct rig_body *body;
    char method[16], path[64], authority[32];
    bool ends, closed, complete;
    uint64_t n_got, n_held; /* of the request's body */
    unsigned n_ends;
};

struct rig_reply { /* client side */
    int status;
    uint64_t n_bytes, want;
    bool closed, ended;
    uint32_t error;
    unsigned n_trailers, n_empty; /* empty: DATA frames without data */
    char trailer[32];             /* the value of x-sum */
    /* The request's body: its size, the sent bytes, and the window for it, as on the wire. */
    uint64_t up_size, up_at;
    bool up_trailers;
    uint64_t n_sent, n_given;
};

struct rig {
    struct nj_counters counters;
    struct nj_alloc alloc;
    struct nj_h2_context *core;
    struct nj_h2 *h;
    struct nj_prng prng;
    struct rig_stream req[RIG_STREAMS]; /* in order of arrival */
    unsigned n_req, n_closed, n_bodies, n_body_closes, n_datas;
    struct rig_body *bodies[RIG_BODIES];
    uint32_t peek_max;

    uint32_t room;               /* bytes until the sink must be drained; 0: no limit */
    uint32_t out_fail;           /* the sink fails at this call; 0: never */
    struct nj_slice piece[8192]; /* ref NULL: data is malloc'ed */
    uint32_t n_pieces, n_queued, n_over;

    nghttp2_session *client;
    uint32_t pad_max;         /* of DATA that the client sends */
    uint64_t n_sent, n_given; /* by the client and by the server, of the connection's window */
    struct rig_reply reply[RIG_STREAMS]; /* by stream id / 2 */
    bool client_goaway;
    uint32_t client_goaway_code;
    char client_goaway_text[128]; /* its debug data */
    int client_error;
};

static inline uint8_t rig_byte(uint64_t size, uint64_t at)
{
    return (uint8_t)(at * 131 + (at >> 8) * 17 + size);
}

static inline uint64_t rig_count(struct rig *r, nj_counter c)
{
    return nj_counter_read(&r->counters, c);
}

/* ---- bodies ---- */

static inline void rig_data_last(struct nj_ref *r)
{
    struct rig_data *d = nj_container_of(r, struct rig_data, ref);
    d->rig->n_datas--;
    free(d->p);
    free(d);
}

static inline int rig_peek(struct nj_body *b, uint32_t n_max, struct nj_slice *out)
{
    struct rig_body *t = (struct rig_body *)b;
    cr_assert(t->closes == 0 && n_max > 0);
    cr_assert((t->unknown && !t->end_known) || t->pos < t->size, "peek after the last byte");
    if (t->pos >= t->fail_at)
        return -1;
    if (t->pos == t->size) {
        t->end_known = !t->late_end;
        return 0;
    }
    uint64_t n = t->avail - t->pos;
    if (n == 0)
        return 0;
    if (n > n_max)
        n = n_max;
    if (t->peek_max && n > t->peek_max)
        n = 1 + nj_prng_below(&t->rig->prng, t->peek_max);
    *out = (struct nj_slice){t->data->p + t->pos, (uint32_t)n, &t->data->ref};
    t->shown = (uint32_t)n;
    t->end_known |= t->early_end && t->pos + n == t->size;
    return (int)n;
}

static inline void rig_advance(struct nj_body *b, uint32_t n)
{
    struct rig_body *t = (struct rig_body *)b;
    cr_assert_eq(t->closes, 0);
    cr_assert_leq(n, t->shown);
    t->shown = 0;
    t->pos += n;
}

static inline uint64_t rig_remaining(const struct nj_body *b)
{
    const struct rig_body *t = (const struct rig_body *)b;
    cr_assert_eq(t->closes, 0);
    return t->unknown && !t->end_known ? NJ_BODY_LEN_UNKNOWN : t->size - t->pos;
}

static inline void rig_close_body(struct nj_body *b)
{
    struct rig_body *t = (struct rig_body *)b;
    cr_assert_eq(t->closes, 0, "body closed twice");
    t->closes++;
    t->rig->n_body_closes++;
    nj_ref_put(&t->data->ref);
}

static const struct nj_body_ops rig_body_ops = {rig_peek, rig_advance, rig_remaining,
                                                rig_close_body, NULL};

static inline struct rig_body *rig_body_new(struct rig *r, uint64_t size)
{
    struct rig_body *t = calloc(1, sizeof *t);
    struct rig_data *d = calloc(1, sizeof *d);
    nj_ref_init(&d->ref, rig_data_last);
    d->rig = r;
    d->p = malloc(size + 1);
    for (uint64_t i = 0; i < size; i++)
        d->p[i] = rig_byte(size, i);
    r->n_datas++;
    t->body.ops = &rig_body_ops;
    t->rig = r;
    t->data = d;
    t->size = t->avail = size;
    t->fail_at = UINT64_MAX;
    t->peek_max = r->peek_max;
    cr_assert_lt(r->n_bodies, RIG_BODIES);
    r->bodies[r->n_bodies++] = t;
    return t;
}

static inline void rig_wake(struct rig_body *t)
{
    if (t->body.waiter && !t->closes)
        nj_h2_resume(t->body.waiter);
}

/* `n` more bytes of a body marked d. */
static inline void rig_release(struct rig_body *t, uint64_t n)
{
    t->avail = n > t->size - t->avail ? t->size : t->avail + n;
    rig_wake(t);
}

/* The end of a body marked h. */
static inline void rig_finish(struct rig_body *t)
{
    t->end_known = true;
    rig_wake(t);
}

/* ---- server events ---- */

static inline void rig_text(char *to, size_t room, struct nj_str s)
{
    snprintf(to, room, "%.*s", (int)s.n_bytes, s.p);
}

static inline int rig_answer(struct rig *r, struct rig_stream *q)
{
    uint64_t size = q->path[0] ? strtoull(q->path + 1, NULL, 10) : 0;
    char length[24];
    snprintf(length, sizeof length, "%llu", (unsigned long long)size);
    struct nj_field fields[] = {
        {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")},
        {NJ_STR_INIT("content-length"), {length, (uint32_t)strlen(length)}},
    };
    const struct nj_field trailer = {NJ_STR_INIT("x-sum"), fields[1].value};
    uint64_t stamp = 2 * (size + 1);
    if (strcmp(q->method, "HEAD") == 0)
        return nj_h2_respond(q->st, 200, fields, 2, stamp, NULL);
    struct rig_body *b = q->body = rig_body_new(r, size);
    if (strchr(q->path, 'd'))
        b->avail = 0;
    if (strchr(q->path, 'f'))
        b->fail_at = size / 2;
    b->unknown = strchr(q->path, 'u');
    b->early_end = strchr(q->path, 'e');
    b->late_end = strchr(q->path, 'h');
    bool before = nj_prng_below(&r->prng, 2);
    if (strchr(q->path, 't') && before)
        (void)nj_h2_set_trailers(q->st, &trailer, 1);
    stamp += b->unknown;
    b->body.waiter = q->st;
    int rv = nj_h2_respond(q->st, 200, fields, b->unknown ? 1 : 2, stamp, &b->body);
    if (strchr(q->path, 't') && !before && rv == 0)
        rv = nj_h2_set_trailers(q->st, &trailer, 1);
    return rv;
}

static inline void rig_on_request(void *user, struct nj_h2_stream *st,
                                  const struct nj_request_head *req)
{
    struct rig *r = user;
    struct rig_stream *q = &r->req[r->n_req++ % RIG_STREAMS];
    memset(q, 0, sizeof *q);
    q->st = st;
    q->ends = req->ends;
    rig_text(q->method, sizeof q->method, req->method);
    rig_text(q->path, sizeof q->path, req->path);
    rig_text(q->authority, sizeof q->authority, req->authority);
    nj_h2_stream_set_user(st, q);
    cr_assert_eq(nj_h2_user(nj_h2_stream_conn(st)), r);
    if (!strchr(q->path, 'l'))
        rig_answer(r, q);
}

static inline void rig_on_close(void *user, struct nj_h2_stream *st, bool complete)
{
    struct rig *r = user;
    struct rig_stream *q = nj_h2_stream_user(st);
    r->n_closed++;
    if (q->st != st)
        return; /* its slot was taken by a later one */
    cr_assert(!q->closed);
    cr_assert(!q->body || q->body->closes == 1, "the body must be closed before");
    q->closed = true;
    q->complete = complete;
}

static const struct nj_h2_events rig_events = {.on_request = rig_on_request,
                                               .on_stream_close = rig_on_close};

#define RIG_UP 77 /* seed of request bodies */

static inline void rig_consume(struct rig_stream *q, uint64_t n)
{
    q->n_held -= n;
    nj_h2_consume(q->st, n);
}

static inline void rig_on_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n)
{
    struct rig_stream *q = nj_h2_stream_user(st);
    cr_assert(q->st == st && !q->closed && !q->ends && q->n_ends == 0 && n > 0);
    cr_assert(!st->reset);
    for (size_t i = 0; i < n; i++, q->n_got++) {
        if (data[i] != rig_byte(RIG_UP, q->n_got))
            cr_assert_fail("%s: byte %zu", q->path, (size_t)q->n_got);
    }
    q->n_held += n;
    if (strchr(q->path, 'c'))
        rig_consume(q, n);
}

static inline void rig_on_end(void *user, struct nj_h2_stream *st)
{
    struct rig_stream *q = nj_h2_stream_user(st);
    cr_assert(q->st == st && !q->closed && !q->ends && !st->reset);
    cr_assert_eq(++q->n_ends, 1);
    if (strchr(q->path, 'a') && !st->responded)
        rig_answer(user, q);
}

static const struct nj_h2_events rig_reader_events = {.on_request = rig_on_request,
                                                      .on_stream_close = rig_on_close,
                                                      .on_data = rig_on_data,
                                                      .on_end = rig_on_end};

/* ---- the sink ---- */

static inline uint32_t rig_room(void *ctx)
{
    struct rig *r = ctx;
    if (r->n_pieces > NJ_ARRAY_LEN(r->piece) - 2048)
        return 0;
    if (!r->room)
        return UINT32_MAX;
    return r->n_queued < r->room ? r->room - r->n_queued : 0;
}

static inline void rig_piece_free(struct nj_slice s)
{
    if (s.ref)
        nj_ref_put(s.ref);
    else
        free((void *)s.data);
}

static inline bool rig_put(struct rig *r, struct nj_slice s)
{
    if (r->out_fail && --r->out_fail == 0) {
        rig_piece_free(s);
        return false;
    }
    cr_assert_lt(r->n_pieces, NJ_ARRAY_LEN(r->piece));
    uint32_t room = r->room ? rig_room(r) : UINT32_MAX;
    if (s.n_bytes > room && s.n_bytes - room > r->n_over)
        r->n_over = s.n_bytes - room;
    r->piece[r->n_pieces++] = s;
    r->n_queued += s.n_bytes;
    return true;
}

static inline bool rig_copy(void *ctx, const uint8_t *data, uint32_t n)
{
    cr_assert_gt(n, 0);
    uint8_t *p = malloc(n);
    memcpy(p, data, n);
    return rig_put(ctx, (struct nj_slice){p, n, NULL});
}

static inline bool rig_refer(void *ctx, const struct nj_slice *s)
{
    cr_assert_gt(s->n_bytes, 0);
    nj_ref_take(s->ref);
    return rig_put(ctx, *s);
}

static const struct nj_byte_sink rig_sink = {rig_room, rig_copy, rig_refer};

/* Hand everything queued to the client, or drop it. */
static inline void rig_drain(struct rig *r, bool deliver)
{
    for (uint32_t i = 0; i < r->n_pieces; i++) {
        struct nj_slice s = r->piece[i];
        if (deliver && r->client && !r->client_error) {
            ssize_t n = nghttp2_session_mem_recv(r->client, s.data, s.n_bytes);
            if (n != (ssize_t)s.n_bytes)
                r->client_error = n < 0 ? (int)n : -1;
        }
        rig_piece_free(s);
    }
    r->n_pieces = r->n_queued = 0;
}

/* ---- the client ---- */

static inline int rig_c_chunk(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data,
                              size_t n, void *user)
{
    struct rig *r = user;
    struct rig_reply *a = &r->reply[id / 2 % RIG_STREAMS];
    for (size_t i = 0; i < n; i++, a->n_bytes++) {
        if (data[i] != rig_byte(a->want, a->n_bytes))
            cr_assert_fail("stream %d: byte %zu of %zu", id, (size_t)a->n_bytes, (size_t)a->want);
    }
    return 0;
}

static inline int rig_c_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
                               size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                               void *user)
{
    struct rig_reply *a = &((struct rig *)user)->reply[f->hd.stream_id / 2 % RIG_STREAMS];
    if (n_name == 7 && memcmp(name, ":status", 7) == 0)
        a->status = atoi((const char *)value);
    if (f->headers.cat == NGHTTP2_HCAT_HEADERS) {
        cr_assert_eq(a->n_bytes, a->want, "trailers before the end of the body");
        a->n_trailers++;
        snprintf(a->trailer, sizeof a->trailer, "%s", (const char *)value);
    }
    return 0;
}

static inline int rig_c_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct rig *r = user;
    if (f->hd.type == NGHTTP2_GOAWAY) {
        r->client_goaway = true;
        r->client_goaway_code = f->goaway.error_code;
        snprintf(r->client_goaway_text, sizeof r->client_goaway_text, "%.*s",
                 (int)f->goaway.opaque_data_len, (const char *)f->goaway.opaque_data);
    }
    if (f->hd.type == NGHTTP2_WINDOW_UPDATE) {
        uint64_t *given =
            f->hd.stream_id ? &r->reply[f->hd.stream_id / 2 % RIG_STREAMS].n_given : &r->n_given;
        *given += (uint32_t)f->window_update.window_size_increment;
    }
    r->reply[f->hd.stream_id / 2 % RIG_STREAMS].n_empty +=
        f->hd.type == NGHTTP2_DATA && f->hd.length == 0;
    if ((f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
        f->hd.flags & NGHTTP2_FLAG_END_STREAM)
        r->reply[f->hd.stream_id / 2 % RIG_STREAMS].ended = true;
    return 0;
}

static inline int rig_c_close(nghttp2_session *s, int32_t id, uint32_t error, void *user)
{
    struct rig_reply *a = &((struct rig *)user)->reply[id / 2 % RIG_STREAMS];
    a->closed = true;
    a->error = error;
    return 0;
}

static inline int rig_c_sent(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct rig *r = user;
    if (f->hd.type != NGHTTP2_DATA)
        return 0;
    r->n_sent += f->hd.length;
    r->reply[f->hd.stream_id / 2 % RIG_STREAMS].n_sent += f->hd.length;
    return 0;
}

static inline ssize_t rig_c_pad(nghttp2_session *s, const nghttp2_frame *f, size_t max, void *user)
{
    struct rig *r = user;
    if (f->hd.type != NGHTTP2_DATA || !r->pad_max || max <= f->hd.length)
        return (ssize_t)f->hd.length;
    size_t n = f->hd.length + nj_prng_below(&r->prng, r->pad_max);
    return (ssize_t)(n < max ? n : max);
}

/* `window`: for each stream, 0 for the default. `manual`: the test sends WINDOW_UPDATEs. */
static inline void rig_client_new(struct rig *r, uint32_t window, bool manual)
{
    nghttp2_session_callbacks *c;
    nghttp2_option *o;
    nghttp2_session_callbacks_new(&c);
    nghttp2_option_new(&o);
    nghttp2_option_set_no_auto_window_update(o, manual);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, rig_c_chunk);
    nghttp2_session_callbacks_set_on_header_callback(c, rig_c_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, rig_c_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, rig_c_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, rig_c_sent);
    nghttp2_session_callbacks_set_select_padding_callback(c, rig_c_pad);
    cr_assert_eq(nghttp2_session_client_new2(&r->client, c, r, o), 0);
    nghttp2_session_callbacks_del(c);
    nghttp2_option_del(o);
    nghttp2_settings_entry iv[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}};
    nghttp2_submit_settings(r->client, 0, iv, window ? 1 : 0);
}

#define RIG_NV(n, v)                                                                               \
    {                                                                                              \
        (uint8_t *)(n), (uint8_t *)(v), strlen(n), strlen(v), NGHTTP2_NV_FLAG_NONE                 \
    }

static inline int32_t rig_ask_body(struct rig *r, const char *method, const char *path,
                                   const nghttp2_data_provider *upload)
{
    nghttp2_nv nv[] = {RIG_NV(":method", method), RIG_NV(":scheme", "http"), RIG_NV(":path", path),
                       RIG_NV(":authority", "host.example")};
    int32_t id = nghttp2_submit_request(r->client, NULL, nv, 4, upload, NULL);
    cr_assert_gt(id, 0);
    r->reply[id / 2 % RIG_STREAMS] = (struct rig_reply){.want = strtoull(path + 1, NULL, 10)};
    return id;
}

static inline int32_t rig_ask(struct rig *r, const char *path)
{
    return rig_ask_body(r, "GET", path, NULL);
}

static inline struct rig_reply *rig_reply(struct rig *r, int32_t id)
{
    return &r->reply[id / 2 % RIG_STREAMS];
}

static inline ssize_t rig_up_read(nghttp2_session *s, int32_t id, uint8_t *buf, size_t length,
                                  uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct rig_reply *a = rig_reply(user, id);
    size_t n = a->up_size - a->up_at < length ? (size_t)(a->up_size - a->up_at) : length;
    for (size_t i = 0; i < n; i++)
        buf[i] = rig_byte(RIG_UP, a->up_at++);
    if (a->up_at < a->up_size)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (a->up_trailers) {
        nghttp2_nv nv = RIG_NV("x-end", "yes");
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(s, id, &nv, 1);
    }
    return (ssize_t)n;
}

/* A request with a body of `size` bytes, for rig_reader_events. */
static inline int32_t rig_upload(struct rig *r, const char *path, uint64_t size, bool trailers)
{
    const nghttp2_data_provider up = {.read_callback = rig_up_read};
    int32_t id = rig_ask_body(r, "POST", path, &up);
    rig_reply(r, id)->up_size = size;
    rig_reply(r, id)->up_trailers = trailers;
    return id;
}

/* ---- the two together ---- */

static inline struct rig *rig_new_with(const struct nj_h2_limits *limits,
                                       const struct nj_h2_events *events)
{
    struct rig *r = calloc(1, sizeof *r);
    nj_prng_init(&r->prng, 42);
    nj_alloc_init(&r->alloc, SIZE_MAX);
    r->core = nj_h2_context_new(events, limits, &r->alloc, &r->counters);
    cr_assert(r->core);
    r->h = nj_h2_open(r->core, r);
    cr_assert(r->h);
    return r;
}

static inline struct rig *rig_new(const struct nj_h2_limits *limits)
{
    return rig_new_with(limits, &rig_events);
}

/* Hang up; then everything must have been given back. */
static inline void rig_free(struct rig *r)
{
    if (r->h)
        nj_h2_close(r->h);
    rig_drain(r, false);
    nghttp2_session_del(r->client);
    cr_expect_eq(r->n_closed, r->n_req);
    cr_expect_eq(r->n_body_closes, r->n_bodies);
    cr_expect_eq(r->n_datas, 0);
    for (unsigned i = 0; i < r->n_bodies; i++)
        free(r->bodies[i]);
    cr_expect_eq(nj_h2_context_n_conns(r->core), 0);
    cr_expect_eq(nj_h2_context_bytes_used(r->core), 0);
    nj_h2_context_free(r->core);
    nj_alloc_fini(&r->alloc);
    free(r);
}

/* Deliver the client's output, in pieces of up to `chunk_max` bytes (0: as the client makes them).
 */
static inline bool rig_upstream(struct rig *r, uint32_t chunk_max, int *rv)
{
    const uint8_t *p;
    ssize_t n;
    bool moved = false;
    while (*rv == 0 && r->client && (n = nghttp2_session_mem_send(r->client, &p)) > 0) {
        moved = true;
        while (n > 0 && *rv == 0) {
            size_t k = chunk_max ? 1 + nj_prng_below(&r->prng, chunk_max) : (size_t)n;
            if (k > (size_t)n)
                k = (size_t)n;
            *rv = nj_h2_input(r->h, p, k);
            p += k;
            n -= (ssize_t)k;
        }
    }
    return moved;
}

/* One turn of client to server to client. True when bytes moved. */
static inline bool rig_turn(struct rig *r, uint32_t chunk_max, int *rv)
{
    bool moved = rig_upstream(r, chunk_max, rv);
    if (nj_h2_output(r->h, &rig_sink, r) != 0)
        *rv = -1;
    if (*rv != 0)
        nj_h2_output(r->h, &rig_sink, r);
    moved |= r->n_pieces > 0;
    rig_drain(r, true);
    return moved;
}

/* Run until neither side has output. */
static inline int rig_run(struct rig *r, uint32_t chunk_max)
{
    int rv = 0;
    for (unsigned i = 0; i < 100000 && rig_turn(r, chunk_max, &rv) && rv == 0; i++)
        ;
    return rv;
}
