/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of a peer into an HTTP/2 connection. The first four bytes of the input steer the test (size
 * of the reads, room in the sink, which allocation fails, flags), the rest comes from the peer. The
 * end of a run checks that everything was given back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "h2/h2.h"
#include "h2/h2_internal.h"
#include "telem/counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { PREFACE = 1, GOAWAYS = 2, NEVER_DRAIN = 4, FAIL = 8 };

#define LATE_MAX 8

struct peer_body {
    struct nj_body body;
    struct fuzz *f;
    uint32_t left, calls;
};

struct fuzz {
    struct nj_counters counters;
    uint32_t room, room_max;
    int n_streams, n_bodies;
    struct nj_h2_stream *late[LATE_MAX]; /* not yet answered, or waiting for their body */
};

static const uint8_t bytes[20000];

static int body_peek(struct nj_body *b, uint32_t n_max, struct nj_slice *out)
{
    struct peer_body *p = (struct peer_body *)b;
    NJ_CHECK(p->left > 0 && n_max > 0);
    p->calls++;
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
    return ((const struct peer_body *)b)->left;
}

static void body_close(struct nj_body *b)
{
    struct peer_body *p = (struct peer_body *)b;
    p->f->n_bodies--;
    free(p);
}

static const struct nj_body_ops body_ops = {body_peek, body_advance, body_remaining, body_close};

static void answer(struct fuzz *f, struct nj_h2_stream *st, uint32_t n_bytes)
{
    const struct nj_field field = {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")};
    struct peer_body *p = calloc(1, sizeof *p);
    p->body.ops = &body_ops;
    p->f = f;
    p->left = n_bytes;
    f->n_bodies++;
    (void)nj_h2_respond(st, 200, &field, 1, &p->body);
}

static void on_request(void *user, struct nj_h2_stream *st, const struct nj_h2_request *req)
{
    struct fuzz *f = user;
    uint32_t sum = 0;
    f->n_streams++;
    for (uint32_t i = 0; i < req->path.n_bytes; i++)
        sum = sum * 31 + (uint8_t)req->path.p[i];
    nj_h2_stream_set_user(st, NULL);
    for (int i = 0; i < LATE_MAX; i++) {
        if (!f->late[i]) {
            f->late[i] = st;
            if (sum % 5 == 0) /* later */
                return;
            break;
        }
    }
    nj_h2_stream_set_user(st, f);
    answer(f, st, sum % 50000);
}

static void on_close(void *user, struct nj_h2_stream *st, bool complete)
{
    struct fuzz *f = user;
    f->n_streams--;
    for (int i = 0; i < LATE_MAX; i++) {
        if (f->late[i] == st)
            f->late[i] = NULL;
    }
}

static const struct nj_h2_events events = {.on_request = on_request, .on_stream_close = on_close};

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

static const struct nj_h2_sink sink = {sink_room, sink_copy, sink_refer};

static void wake(struct fuzz *f, struct nj_h2_stream *st)
{
    if (!st)
        return;
    if (nj_h2_stream_user(st)) {
        nj_h2_resume(st);
    } else {
        nj_h2_stream_set_user(st, f);
        answer(f, st, 7000);
    }
}

static int step(struct fuzz *f, struct nj_h2 *h, const uint8_t *data, size_t n, uint32_t flags)
{
    if (nj_h2_input(h, data, n) != 0)
        return -1;
    for (int i = 0; i < LATE_MAX; i++)
        wake(f, f->late[i]);
    if (!(flags & NEVER_DRAIN))
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
    struct nj_h2_core *core = nj_h2_core_new(&events, NULL, &f.counters);
    struct nj_h2 *h = nj_h2_open(core, &f);
    if (flags & FAIL)
        nj__h2_core_fail_after(core, 1u + data[2]);
    int rv = 0;
    if (flags & PREFACE)
        rv = nj_h2_input(h, (const uint8_t *)NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    for (size_t at = 4; at < n_bytes && rv == 0; at += chunk) {
        size_t n = n_bytes - at < chunk ? n_bytes - at : chunk;
        rv = step(&f, h, data + at, n, flags);
        NJ_CHECK(nj_h2_core_bytes_used(core) < 1024 * 1024);
        if (flags & GOAWAYS && rv == 0)
            nj_h2_goaway(h);
    }
    (void)nj_h2_output(h, &sink, &f);
    nj_h2_close(h);
    NJ_CHECK(f.n_streams == 0 && f.n_bodies == 0);
    NJ_CHECK(nj_h2_core_bytes_used(core) == 0);
    nj_h2_core_free(core);
    return 0;
}
