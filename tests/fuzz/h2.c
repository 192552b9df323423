/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: bytes of a peer for an HTTP/2 connection. The first four bytes of the input are
 * parameters (size of the reads, room in the sink, failing allocation, flags); the rest comes from
 * the peer. With READ, request bodies are read and fields are printed. The end of a run checks that
 * everything was released.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "h2/h2.h"
#include <nghttp2/nghttp2.h>

#include "h2/h2_internal.h"
#include "telem/counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { PREFACE = 1, GOAWAYS = 2, NEVER_DRAIN = 4, FAIL = 8, UNKNOWN = 16, READ = 32, RESETS = 64 };

#define LATE_MAX 8

struct peer_body {
    struct nj_body body;
    struct fuzz *f;
    uint32_t left, calls;
    bool unknown; /* length unknown until a peek reaches the end */
};

struct peer_stream {
    struct fuzz *f;
    struct nj_h2_stream *st;
    uint32_t n_held;
    bool answered, ended;
};

struct fuzz {
    struct nj_counters counters;
    uint32_t room, room_max, flags;
    uint64_t n_held;
    int n_streams, n_bodies;
    struct peer_stream *late[LATE_MAX]; /* no response yet, or waiting for their body */
};

static const uint8_t bytes[20000];

static int body_peek(struct nj_body *b, uint32_t n_max, struct nj_slice *out)
{
    struct peer_body *p = (struct peer_body *)b;
    NJ_CHECK((p->left > 0 || p->unknown) && n_max > 0);
    p->calls++;
    if (p->left == 0) {
        p->unknown = p->calls % 2;
        return 0;
    }
    if (p->left % 7 == 0 && p->calls % 2)
        return 0;
    if (p->left % 1001 == 13)
        return -1;
    uint32_t n = p->left < n_max ? p->left : n_max;
    if (n > sizeof bytes)
        n = sizeof bytes;
    *out = (struct nj_slice){bytes, n, NULL};
    return (int)n;
}

static void body_advance(struct nj_body *b, uint32_t n)
{
    struct peer_body *p = (struct peer_body *)b;
    NJ_CHECK(n <= p->left);
    p->left -= n;
}

static uint64_t body_remaining(const struct nj_body *b)
{
    const struct peer_body *p = (const struct peer_body *)b;
    return p->unknown ? NJ_BODY_LEN_UNKNOWN : p->left;
}

static void body_close(struct nj_body *b)
{
    struct peer_body *p = (struct peer_body *)b;
    p->f->n_bodies--;
    free(p);
}

static const struct nj_body_ops body_ops = {body_peek, body_advance, body_remaining, body_close,
                                            NULL};

static void answer(struct peer_stream *q, uint32_t n_bytes)
{
    const struct nj_field field = {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")};
    struct peer_body *p = calloc(1, sizeof *p);
    p->body.ops = &body_ops;
    p->f = q->f;
    p->left = n_bytes;
    bool unknown = p->unknown = q->f->flags & UNKNOWN;
    q->f->n_bodies++;
    q->answered = true;
    if (unknown && n_bytes % 4 == 1)
        (void)nj_h2_set_trailers(q->st, &field, 1);
    (void)nj_h2_respond(q->st, 200, &field, 1, n_bytes % 2, &p->body);
    if (unknown && n_bytes % 4 == 2)
        (void)nj_h2_set_trailers(q->st, &field, 1);
}

static uint32_t sum_up(uint32_t sum, const void *p, uint32_t n_bytes)
{
    for (uint32_t i = 0; i < n_bytes; i++)
        sum = sum * 31 + ((const uint8_t *)p)[i];
    return sum;
}

static void on_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *req)
{
    struct fuzz *f = user;
    struct peer_stream *q = calloc(1, sizeof *q);
    uint32_t sum = sum_up(0, req->path.p, req->path.n_bytes), look = 0;
    for (uint32_t i = 0; i < req->n_fields; i++) {
        look = sum_up(look, req->fields[i].name.p, req->fields[i].name.n_bytes);
        look = sum_up(look, req->fields[i].value.p, req->fields[i].value.n_bytes);
    }
    NJ_CHECK(req->n_fields <= 128);
    q->f = f;
    q->st = st;
    q->ended = req->ends;
    f->n_streams++;
    nj_h2_stream_set_user(st, q);
    if (f->flags & RESETS && (sum ^ look) % 7 == 0)
        nj_h2_reset_stream(st, NGHTTP2_CANCEL);
    for (int i = 0; i < LATE_MAX; i++) {
        if (!f->late[i]) {
            f->late[i] = q;
            if (sum % 5 == 0) /* later */
                return;
            break;
        }
    }
    answer(q, sum % 50000);
}

static void consume(struct peer_stream *q, uint32_t n_bytes)
{
    q->n_held -= n_bytes;
    q->f->n_held -= n_bytes;
    nj_h2_consume(q->st, n_bytes);
}

static void on_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n_bytes)
{
    struct fuzz *f = user;
    struct peer_stream *q = nj_h2_stream_user(st);
    NJ_CHECK(n_bytes > 0 && !q->ended);
    uint32_t sum = sum_up(0, data, (uint32_t)n_bytes);
    q->n_held += (uint32_t)n_bytes;
    f->n_held += n_bytes;
    /* One frame may exceed a window before nghttp2 detects the error. */
    NJ_CHECK(q->n_held <= NJ_H2_STREAM_WINDOW_BYTES + 16384);
    NJ_CHECK(f->n_held <= NJ_H2_CONN_WINDOW_BYTES + 16384);
    if (sum % 3 == 0)
        consume(q, q->n_held);
    else if (sum % 3 == 1)
        consume(q, q->n_held / 2);
    if (f->flags & RESETS && sum % 13 == 0)
        nj_h2_reset_stream(st, NGHTTP2_CANCEL);
    if (sum % 17 == 0 && !q->answered)
        answer(q, sum % 1000);
}

static void on_end(void *user, struct nj_h2_stream *st)
{
    struct peer_stream *q = nj_h2_stream_user(st);
    NJ_CHECK(!q->ended);
    q->ended = true;
    if (!q->answered)
        answer(q, q->n_held % 1000);
}

static void on_close(void *user, struct nj_h2_stream *st, bool complete)
{
    struct fuzz *f = user;
    struct peer_stream *q = nj_h2_stream_user(st);
    f->n_streams--;
    for (int i = 0; i < LATE_MAX; i++) {
        if (f->late[i] == q)
            f->late[i] = NULL;
    }
    if (q->n_held % 2)
        consume(q, q->n_held / 2);
    f->n_held -= q->n_held;
    free(q);
}

static const struct nj_h2_events events = {.on_request = on_request, .on_stream_close = on_close};
static const struct nj_h2_events reader_events = {
    .on_request = on_request, .on_stream_close = on_close, .on_data = on_data, .on_end = on_end};

static uint32_t sink_room(void *ctx)
{
    return ((struct fuzz *)ctx)->room;
}

static bool sink_take(struct fuzz *f, const uint8_t *p, uint32_t n)
{
    NJ_CHECK(n > 0);
    (void)(*(const volatile uint8_t *)p ^ *(const volatile uint8_t *)(p + n - 1));
    f->room -= n < f->room ? n : f->room;
    return true;
}

static bool sink_copy(void *ctx, const uint8_t *p, uint32_t n)
{
    return sink_take(ctx, p, n);
}

static bool sink_refer(void *ctx, const struct nj_slice *s)
{
    return sink_take(ctx, s->data, s->n_bytes);
}

static const struct nj_byte_sink sink = {sink_room, sink_copy, sink_refer};

static void wake(struct peer_stream *q)
{
    if (!q)
        return;
    consume(q, (q->n_held + 1) / 2);
    if (q->answered)
        nj_h2_resume(q->st);
    else
        answer(q, 7000);
}

static int step(struct fuzz *f, struct nj_h2 *h, const uint8_t *data, size_t n)
{
    if (nj_h2_input(h, data, n) != 0)
        return -1;
    for (int i = 0; i < LATE_MAX; i++)
        wake(f->late[i]);
    if (!(f->flags & NEVER_DRAIN))
        f->room = f->room_max;
    return nj_h2_output(h, &sink, f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes < 4)
        return 0;
    struct fuzz f = {.room_max = 4096 + data[1] * 100u};
    uint32_t chunk = data[0] ? data[0] : 4096, flags = data[3];
    f.room = f.room_max;
    f.flags = flags;
    struct nj_alloc alloc;
    nj_alloc_init(&alloc, SIZE_MAX);
    struct nj_h2_context *core = nj_h2_context_new(flags & READ ? &reader_events : &events,
                                                   &nj_h2_limits_default, &alloc, &f.counters);
    struct nj_h2 *h = nj_h2_open(core, &f);
    if (flags & FAIL)
        alloc.fail_countdown = 1u + data[2];
    int rv = 0;
    if (flags & PREFACE)
        rv = nj_h2_input(h, (const uint8_t *)NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    for (size_t at = 4; at < n_bytes && rv == 0; at += chunk) {
        size_t n = n_bytes - at < chunk ? n_bytes - at : chunk;
        rv = step(&f, h, data + at, n);
        NJ_CHECK(nj_h2_context_bytes_used(core) < 1024 * 1024);
        if (flags & GOAWAYS && rv == 0)
            nj_h2_goaway(h);
    }
    (void)nj_h2_output(h, &sink, &f);
    nj_h2_close(h);
    NJ_CHECK(f.n_streams == 0 && f.n_bodies == 0 && f.n_held == 0);
    NJ_CHECK(nj_h2_context_bytes_used(core) == 0);
    nj_h2_context_free(core);
    nj_alloc_fini(&alloc);
    return 0;
}
