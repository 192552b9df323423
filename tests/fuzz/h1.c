/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: bytes of a peer for an HTTP/1 connection. The first four bytes of the input are
 * parameters (size of the reads, room in the sink, failing allocation, flags); the rest comes from
 * the peer. With COMPARE, each request is answered at its end, and the result must be that of one
 * large read. The end of a run checks that everything was released.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "h1/h1.h"

#include "h1/h1_internal.h"
#include "telem/counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum {
    DRAIN = 1,
    KEEP = 2,
    NEVER_DRAIN = 4,
    FAIL = 8,
    UNKNOWN = 16,
    READ = 32,
    RESETS = 64,
    COMPARE = 128
};

struct peer_body {
    struct nj_body body;
    struct fuzz *f;
    uint32_t left, calls;
    bool unknown; /* length unknown until a peek reaches the end */
};

struct fuzz {
    struct nj_counters counters;
    struct nj_alloc alloc;
    struct nj_h1 *h;
    uint32_t room, room_max, flags;
    uint32_t sum;      /* of what the owner and the peer have seen */
    uint32_t sum_head; /* of the open request */
    uint32_t n_held;
    int n_requests, n_bodies;
    bool answered, ended;
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
    uint32_t n = nj_min_u32(nj_min_u32(p->left, n_max), sizeof bytes);
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

static void add(struct fuzz *f, const void *p, uint32_t n_bytes)
{
    for (uint32_t i = 0; i < n_bytes; i++)
        f->sum = f->sum * 31 + ((const uint8_t *)p)[i];
}

static void answer(struct fuzz *f, uint32_t n_bytes)
{
    const struct nj_field fields[] = {{NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")},
                                      {NJ_STR_INIT("content-length"), NJ_STR_INIT("100")}};
    uint16_t status = n_bytes % 11 == 1 ? 304 : n_bytes % 11 == 2 ? 204 : 200;
    struct peer_body *p = calloc(1, sizeof *p);
    p->body.ops = &body_ops;
    p->f = f;
    p->left = n_bytes;
    bool unknown = p->unknown = f->flags & UNKNOWN;
    uint32_t n_fields = n_bytes % 5 == 4 ? 2 : 1;
    uint64_t stamp = n_bytes % 3 ? 1000u * n_fields + status : 0;
    f->n_bodies++;
    f->answered = true;
    if (unknown && n_bytes % 4 == 1)
        (void)nj_h1_set_trailers(f->h, fields, 1);
    if (!stamp || !nj_h1_respond_cached(f->h, status, stamp, &p->body))
        (void)nj_h1_respond(f->h, status, fields, n_fields, stamp, &p->body);
    if (unknown && n_bytes % 4 == 2)
        (void)nj_h1_set_trailers(f->h, fields, 1);
}

static void on_request(void *user, struct nj_h1 *h, const struct nj_request_head *req)
{
    struct fuzz *f = user;
    uint32_t before = f->sum;
    add(f, req->method.p, req->method.n_bytes);
    add(f, req->path.p, req->path.n_bytes);
    add(f, req->authority.p, req->authority.n_bytes);
    for (uint32_t i = 0; i < req->n_fields; i++) {
        add(f, req->fields[i].name.p, req->fields[i].name.n_bytes);
        add(f, req->fields[i].value.p, req->fields[i].value.n_bytes);
    }
    NJ_CHECK(req->n_fields <= 20 && req->method.n_bytes > 0 && ++f->n_requests == 1);
    f->answered = false;
    f->ended = req->ends;
    f->sum_head = f->sum - before;
    nj_h1_set_request_user(h, f);
    if (f->flags & RESETS && f->sum_head % 7 == 0)
        nj_h1_reset(h);
    if (f->sum_head % 2)
        nj_h1_send_continue(h);
    if (f->flags & COMPARE ? req->ends : f->sum_head % 5 != 0)
        answer(f, f->flags & COMPARE ? f->sum_head % 400 : f->sum_head % 50000);
}

static void consume(struct fuzz *f, uint32_t n_bytes)
{
    f->n_held -= n_bytes;
    nj_h1_consume(f->h, n_bytes);
}

static void on_data(void *user, struct nj_h1 *h, const uint8_t *data, size_t n_bytes)
{
    struct fuzz *f = user;
    NJ_CHECK(n_bytes > 0 && !f->ended && nj_h1_request_user(h) == f);
    add(f, data, (uint32_t)n_bytes);
    f->n_held += (uint32_t)n_bytes;
    NJ_CHECK(f->n_held <= NJ_H1_BODY_WINDOW_BYTES);
    if (f->flags & COMPARE || n_bytes % 3 == 0)
        consume(f, f->n_held);
    else if (n_bytes % 3 == 1)
        consume(f, f->n_held / 2);
    if (f->flags & RESETS && n_bytes % 13 == 0)
        nj_h1_reset(h);
    if (n_bytes % 17 == 0 && !f->answered && !(f->flags & COMPARE))
        answer(f, n_bytes % 1000);
}

static void on_end(void *user, struct nj_h1 *h)
{
    struct fuzz *f = user;
    NJ_CHECK(!f->ended);
    f->ended = true;
    if (!f->answered)
        answer(f, f->sum_head % 1000);
}

static void on_close(void *user, struct nj_h1 *h, bool complete)
{
    struct fuzz *f = user;
    NJ_CHECK(--f->n_requests == 0);
    f->n_held = 0;
    add(f, &complete, 1);
}

static void on_counted(void *user, nj_counter why)
{
    add(user, &why, sizeof why);
}

static const struct nj_h1_events events = {
    .on_request = on_request, .on_close = on_close, .on_refusal_counted = on_counted};
static const struct nj_h1_events reader_events = {.on_request = on_request,
                                                  .on_close = on_close,
                                                  .on_data = on_data,
                                                  .on_end = on_end,
                                                  .on_refusal_counted = on_counted};

static uint32_t sink_room(void *ctx)
{
    return ((struct fuzz *)ctx)->room;
}

static bool sink_take(struct fuzz *f, const uint8_t *p, uint32_t n)
{
    NJ_CHECK(n > 0 && n <= f->room);
    (void)(*(const volatile uint8_t *)p ^ *(const volatile uint8_t *)(p + n - 1));
    f->room -= n;
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

/* Time passes: the open request goes on. */
static void wake(struct fuzz *f)
{
    if (nj_h1_n_requests(f->h) == 0 || f->flags & COMPARE)
        return;
    consume(f, (f->n_held + 1) / 2);
    if (f->answered)
        nj_h1_resume(f->h);
    else
        answer(f, 7000);
}

static int output(struct fuzz *f)
{
    if (!(f->flags & NEVER_DRAIN))
        f->room = f->room_max;
    return nj_h1_output(f->h, &sink, f);
}

/* Give bytes until all are used or kept. */
static int step(struct fuzz *f, const uint8_t *data, uint32_t n)
{
    for (unsigned i = 0; i < 50; i++) {
        uint32_t used = nj_h1_may_read(f->h) ? nj_h1_input(f->h, data, n) : 0;
        NJ_CHECK(used <= n && (used == n || !nj_h1_may_read(f->h)));
        data += used;
        n -= used;
        if (output(f) != 0)
            return -1;
        if (n == 0 && !(nj_h1_has_kept(f->h) && nj_h1_may_read(f->h)))
            return 0;
        if (f->flags & KEEP && n > 0 && !nj_h1_may_read(f->h)) {
            nj_h1_keep(f->h, data, n);
            n = 0;
        }
        wake(f);
        nj_h1_resume(f->h);
    }
    return -1; /* the owner gives up */
}

static uint32_t run(const uint8_t *data, size_t n_bytes, uint32_t chunk, uint32_t room,
                    uint32_t fail_at, uint32_t flags)
{
    const struct nj_h1_limits limits = {.header_bytes_max = 2000, .header_fields_max = 20};
    struct fuzz f = {.room_max = room, .room = room, .flags = flags};
    int rv = 0;
    nj_alloc_init(&f.alloc, 1u << 20);
    struct nj_h1_context *ctx =
        nj_h1_context_new(flags & READ ? &reader_events : &events, &limits, &f.alloc, &f.counters);
    f.h = nj_h1_open(ctx, &f, chunk % 2, chunk % 3 == 0);
    f.alloc.fail_countdown = fail_at;
    for (size_t at = 0; at < n_bytes && rv == 0; at += chunk) {
        rv = step(&f, data + at, (uint32_t)nj_min_u64(n_bytes - at, chunk));
        NJ_CHECK(nj_h1_buffered_bytes(f.h) <= 1u << 20);
        (void)nj_h1_unfinished_since(f.h, at);
        if (flags & DRAIN && at % 3 == 0)
            nj_h1_drain(f.h, false);
    }
    nj_h1_end_for_timeout(f.h);
    (void)output(&f);
    NJ_CHECK(!nj_h1_must_reset(f.h) || nj_h1_is_finished(f.h) || nj_h1_n_requests(f.h) > 0);
    nj_h1_close(f.h);
    NJ_CHECK(f.n_requests == 0 && f.n_bodies == 0 && f.alloc.bytes_used == 0);
    nj_h1_context_free(ctx);
    nj_alloc_fini(&f.alloc);
    return f.sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes < 4)
        return 0;
    uint32_t chunk = data[0] ? data[0] : 4096, flags = data[3], room = 4096 + data[1] * 100u;
    if (flags & COMPARE) {
        flags = (flags & UNKNOWN) | READ | COMPARE;
        NJ_CHECK(run(data + 4, n_bytes - 4, chunk, 1u << 20, 0, flags) ==
                 run(data + 4, n_bytes - 4, 1u << 20, 1u << 20, 0, flags));
    } else {
        (void)run(data + 4, n_bytes - 4, chunk, room, flags & FAIL ? 1u + data[2] : 0, flags);
    }
    return 0;
}
