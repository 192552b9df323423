/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server connection of lib/h1, response bodies that check every call, and a sink that stores what
 * is sent. The path selects the response: "/<bytes>?", followed by
 *   c  body bytes are consumed on arrival (otherwise by the test)
 *   a  the response comes at the end of the request
 *   l  no response by the rig; the test responds later
 *   n  no Content-Length among the fields
 *   u  the length of the body is unknown, and its end is known after the last byte
 *   e  with u: the end is known with the last bytes
 *   h  with u: the end is known after rig_finish()
 *   d  the body has bytes only when rig_release() allows it
 *   w  as d, but peek itself wakes the body, with one byte more
 *   f  the body fails half way
 *   s  the body is five bytes shorter than its Content-Length
 *   o  the body is five bytes longer than its Content-Length
 *   t  trailers follow
 *   p  a stamp
 *   r  the request is reset instead
 *   R  the request is reset after the response was given
 *   x  100 (Continue) is sent
 *   4  the status is 304, without body
 *   2  the status is 204, without body
 */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "h1/h1.h"
#include "h1/h1_internal.h"
#include "telem/counters.h"

#define RIG_REQUESTS 256
#define RIG_BODIES   4096

struct rig_data { /* what slices refer to */
    struct nj_ref ref;
    struct rig *rig;
    uint8_t *p;
};

struct rig_body {
    struct nj_body body;
    struct rig *rig;
    struct rig_data *data;
    uint64_t size, pos, avail, fail_at;
    bool unknown, early_end, late_end, end_known, wakes;
    uint32_t shown;
    unsigned closes;
};

struct rig_request {
    char text[512]; /* method, scheme, authority, path, what is known of the body, fields */
    char path[128];
    char *content;
    size_t n_content;
    uint64_t n_held;
    struct rig_body *body;
    bool is_head, ends, ended, closed, complete;
};

struct rig {
    struct nj_counters counters;
    struct nj_alloc alloc;
    struct nj_h1_context *ctx;
    struct nj_h1 *h;
    struct nj_prng prng;
    struct rig_request *req[RIG_REQUESTS];
    unsigned n_req, n_former; /* n_former: of connections before this one */
    unsigned n_closed, n_bodies, n_body_closes, n_datas, n_refused;
    struct rig_body *bodies[RIG_BODIES];
    uint16_t refused_status;
    nj_counter refused_why;
    char refused_method[16];
    char *out; /* what the sink has got, ended by a zero */
    size_t n_out;
    uint32_t n_copies, n_refers; /* calls of the sink */
    uint32_t room;               /* of the sink until rig_drain(); 0: no limit */
    uint32_t taken;              /* since then */
    uint32_t sink_fail;          /* the sink fails at this call; 0: never */
    int rv;                      /* of the last nj_h1_output() */
};

static inline uint8_t rig_byte(uint64_t size, uint64_t at)
{
    return (uint8_t)('a' + (at + size) % 26);
}

static inline uint64_t rig_count(const struct rig *r, nj_counter c)
{
    return nj_counter_read(&r->counters, c);
}

/* ---- bodies ---- */

static inline void rig_data_last(struct nj_ref *ref)
{
    struct rig_data *d = nj_container_of(ref, struct rig_data, ref);
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
    if (t->wakes && t->avail == t->pos) {
        t->avail++;
        nj_h1_resume(t->rig->h);
        return 0;
    }
    uint64_t n = nj_min_u64(nj_min_u64(t->avail, t->fail_at) - t->pos, n_max);
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
    cr_assert_lt(r->n_bodies, RIG_BODIES);
    r->bodies[r->n_bodies++] = t;
    return t;
}

/* `n` more bytes of a body marked d. */
static inline void rig_release(struct rig_body *t, uint64_t n)
{
    t->avail = nj_min_u64(t->avail + n, t->size);
    if (t->closes == 0)
        nj_h1_resume(t->rig->h);
}

/* The end of a body marked h. */
static inline void rig_finish(struct rig_body *t)
{
    t->end_known = true;
    if (t->closes == 0)
        nj_h1_resume(t->rig->h);
}

/* ---- events ---- */

static inline bool rig_flag(const struct rig_request *q, char flag)
{
    const char *flags = strchr(q->path, '?');
    return flags && strchr(flags, flag);
}

/* Respond as the path says. */
static inline int rig_answer(struct rig *r, struct rig_request *q)
{
    uint64_t size = q->path[0] ? strtoull(q->path + 1, NULL, 10) : 0, says = size;
    uint16_t status = rig_flag(q, '4') ? 304 : rig_flag(q, '2') ? 204 : 200;
    char length[24];
    says += rig_flag(q, 's') ? 5 : 0;
    says -= rig_flag(q, 'o') ? 5 : 0;
    snprintf(length, sizeof length, "%llu", (unsigned long long)says);
    struct nj_field fields[] = {
        {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")},
        {NJ_STR_INIT("x-content-type-options"), NJ_STR_INIT("nosniff")},
        {NJ_STR_INIT("content-length"), {length, (uint32_t)strlen(length)}},
    };
    const struct nj_field trailer = {NJ_STR_INIT("x-sum"), {length, (uint32_t)strlen(length)}};
    uint32_t n_fields = rig_flag(q, 'n') || status == 204 ? 2 : 3;
    uint64_t stamp = rig_flag(q, 'p') ? 8 * (says + 1) + 2 * n_fields + (status == 200) : 0;
    if (rig_flag(q, 'r')) {
        nj_h1_reset(r->h);
        return 0;
    }
    struct rig_body *b = NULL;
    if (!q->is_head && status == 200) {
        b = q->body = rig_body_new(r, size);
        if (rig_flag(q, 'd') || rig_flag(q, 'w'))
            b->avail = 0;
        if (rig_flag(q, 'f'))
            b->fail_at = size / 2;
        b->wakes = rig_flag(q, 'w');
        b->unknown = rig_flag(q, 'u');
        b->early_end = rig_flag(q, 'e');
        b->late_end = rig_flag(q, 'h');
    }
    bool before = size % 2;
    if (rig_flag(q, 't') && before)
        (void)nj_h1_set_trailers(r->h, &trailer, 1);
    int rv = 0;
    if (!stamp || !nj_h1_respond_cached(r->h, status, stamp, b ? &b->body : NULL))
        rv = nj_h1_respond(r->h, status, fields, n_fields, stamp, b ? &b->body : NULL);
    if (rig_flag(q, 't') && !before && rv == 0)
        (void)nj_h1_set_trailers(r->h, &trailer, 1);
    if (rig_flag(q, 'R'))
        nj_h1_reset(r->h);
    return rv;
}

static inline struct rig_request *rig_last(const struct rig *r)
{
    cr_assert_gt(r->n_req, 0);
    return r->req[(r->n_req - 1) % RIG_REQUESTS];
}

static inline void rig_describe(char *to, size_t room, const struct nj_request_head *req)
{
    int n =
        snprintf(to, room, "%.*s %.*s://%.*s %.*s%s%s %llu", (int)req->method.n_bytes,
                 req->method.p, (int)req->scheme.n_bytes, req->scheme.p ? req->scheme.p : "",
                 (int)req->authority.n_bytes, req->authority.p ? req->authority.p : "",
                 (int)req->path.n_bytes, req->path.p, req->ends ? " ends" : "",
                 req->expects_continue ? " continue" : "", (unsigned long long)req->content_length);
    for (uint32_t i = 0; i < req->n_fields && (size_t)n < room; i++)
        n += snprintf(to + n, room - (size_t)n, "|%.*s=%.*s", (int)req->fields[i].name.n_bytes,
                      req->fields[i].name.p, (int)req->fields[i].value.n_bytes,
                      req->fields[i].value.p);
}

static inline void rig_on_request(void *user, struct nj_h1 *h, const struct nj_request_head *req)
{
    struct rig *r = user;
    struct rig_request *q = calloc(1, sizeof *q);
    cr_assert_lt(r->n_req, RIG_REQUESTS);
    r->req[r->n_req++] = q;
    rig_describe(q->text, sizeof q->text, req);
    snprintf(q->path, sizeof q->path, "%.*s", (int)req->path.n_bytes, req->path.p);
    q->is_head = nj_str_eq(req->method, NJ_STR("HEAD"));
    q->ends = req->ends;
    nj_h1_set_request_user(h, q);
    cr_assert_eq(nj_h1_user(h), r);
    cr_assert_eq(nj_h1_n_requests(h), 1);
    cr_assert_eq(nj_h1_request_number(h), r->n_req - r->n_former);
    if (rig_flag(q, 'x'))
        nj_h1_send_continue(h);
    if (!rig_flag(q, 'l') && !(rig_flag(q, 'a') && !req->ends))
        rig_answer(r, q);
}

static inline void rig_on_close(void *user, struct nj_h1 *h, bool complete)
{
    struct rig *r = user;
    struct rig_request *q = nj_h1_request_user(h);
    cr_assert_eq(q, rig_last(r));
    cr_assert(!q->closed);
    cr_assert(!q->body || q->body->closes == 1, "the body must be closed before");
    r->n_closed++;
    q->closed = true;
    q->complete = complete;
}

static inline void rig_consume(struct rig *r, uint64_t n)
{
    rig_last(r)->n_held -= n;
    nj_h1_consume(r->h, n);
}

static inline void rig_on_data(void *user, struct nj_h1 *h, const uint8_t *data, size_t n)
{
    struct rig *r = user;
    struct rig_request *q = nj_h1_request_user(h);
    cr_assert(n > 0 && !q->ended && !q->closed && !q->ends);
    q->content = realloc(q->content, q->n_content + n);
    memcpy(q->content + q->n_content, data, n);
    q->n_content += n;
    q->n_held += n;
    cr_assert_leq(q->n_held, NJ_H1_BODY_WINDOW_BYTES);
    if (rig_flag(q, 'c'))
        rig_consume(r, n);
}

static inline void rig_on_end(void *user, struct nj_h1 *h)
{
    struct rig *r = user;
    struct rig_request *q = nj_h1_request_user(h);
    cr_assert(!q->ended && !q->closed && !q->ends);
    q->ended = true;
    if (rig_flag(q, 'a'))
        rig_answer(r, q);
}

static inline void rig_on_counted(void *user, nj_counter why)
{
    struct rig *r = user;
    r->n_refused++;
    r->refused_why = why;
}

static inline void rig_on_refused(void *user, struct nj_h1 *h, const struct nj_request_head *req,
                                  uint16_t status)
{
    struct rig *r = user;
    const struct nj_field field = {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")};
    cr_assert_eq(r->n_closed + (nj_h1_request_user(h) != NULL), r->n_req, "on_close follows");
    snprintf(r->refused_method, sizeof r->refused_method, "%.*s", (int)req->method.n_bytes,
             req->method.p ? req->method.p : "");
    r->refused_status = status;
    (void)nj_h1_respond(h, status, &field, 1, 0, NULL);
}

static const struct nj_h1_events rig_events = {.on_request = rig_on_request,
                                               .on_close = rig_on_close,
                                               .on_data = rig_on_data,
                                               .on_end = rig_on_end,
                                               .on_refused = rig_on_refused,
                                               .on_refusal_counted = rig_on_counted};
/* Request bodies are discarded, and refused requests are answered by the engine. */
static const struct nj_h1_events rig_plain_events = {.on_request = rig_on_request,
                                                     .on_close = rig_on_close};

/* ---- the sink ---- */

static inline uint32_t rig_room(void *ctx)
{
    struct rig *r = ctx;
    return r->room == 0 ? 1u << 20 : r->room - r->taken;
}

static inline bool rig_take(struct rig *r, const uint8_t *p, uint32_t n)
{
    cr_assert_gt(n, 0);
    cr_assert_leq(n, rig_room(r), "more than the sink has room for");
    if (r->sink_fail > 0 && --r->sink_fail == 0)
        return false;
    r->taken += n;
    r->out = realloc(r->out, r->n_out + n + 1);
    memcpy(r->out + r->n_out, p, n);
    r->n_out += n;
    r->out[r->n_out] = '\0';
    return true;
}

static inline bool rig_copy(void *ctx, const uint8_t *p, uint32_t n)
{
    struct rig *r = ctx;
    r->n_copies++;
    return rig_take(r, p, n);
}

static inline bool rig_refer(void *ctx, const struct nj_slice *s)
{
    struct rig *r = ctx;
    r->n_refers++;
    cr_assert_geq(s->n_bytes, NJ__H1_COPY_BELOW_BYTES);
    return rig_take(r, s->data, s->n_bytes);
}

static const struct nj_byte_sink rig_sink = {rig_room, rig_copy, rig_refer};

static inline void rig_drain(struct rig *r)
{
    r->taken = 0;
}

static inline void rig_clear(struct rig *r)
{
    free(r->out);
    r->out = calloc(1, 1);
    r->n_out = 0;
    r->n_copies = r->n_refers = 0;
}

/* ---- the two together ---- */

static const struct nj_h1_limits rig_limits = {.header_bytes_max = 8192, .header_fields_max = 32};

static inline struct rig *rig_new_with(const struct nj_h1_events *events,
                                       const struct nj_h1_limits *limits)
{
    struct rig *r = calloc(1, sizeof *r);
    nj_prng_init(&r->prng, 42);
    nj_alloc_init(&r->alloc, 1u << 30);
    r->ctx = nj_h1_context_new(events, limits, &r->alloc, &r->counters);
    cr_assert(r->ctx);
    r->h = nj_h1_open(r->ctx, r, false, false);
    cr_assert(r->h);
    rig_clear(r);
    return r;
}

static inline struct rig *rig_new(void)
{
    return rig_new_with(&rig_events, &rig_limits);
}

/* Hang up; then everything must have been given back. */
static inline void rig_free(struct rig *r)
{
    if (r->h)
        nj_h1_close(r->h);
    cr_expect_eq(r->n_closed, r->n_req);
    cr_expect_eq(r->n_body_closes, r->n_bodies);
    cr_expect_eq(r->n_datas, 0);
    for (unsigned i = 0; i < r->n_bodies; i++)
        free(r->bodies[i]);
    for (unsigned i = 0; i < r->n_req; i++) {
        free(r->req[i]->content);
        free(r->req[i]);
    }
    cr_expect_eq(nj_h1_context_n_conns(r->ctx), 0);
    cr_expect_eq(r->alloc.bytes_used, 0);
    nj_h1_context_free(r->ctx);
    nj_alloc_fini(&r->alloc);
    free(r->out);
    free(r);
}

static inline void rig_output(struct rig *r)
{
    r->rv = nj_h1_output(r->h, &rig_sink, r);
}

/* Input as an owner gives it: what is not used is given again after output. Returns what is left
 * when that does not help. */
static inline size_t rig_input(struct rig *r, const char *data, size_t n)
{
    for (;;) {
        uint32_t used =
            nj_h1_may_read(r->h) ? nj_h1_input(r->h, (const uint8_t *)data, (uint32_t)n) : 0;
        cr_assert_leq(used, n);
        cr_assert(used == n || !nj_h1_may_read(r->h), "may_read is false if bytes are left");
        data += used;
        n -= used;
        rig_output(r);
        if (n == 0 || !nj_h1_may_read(r->h) || r->rv != 0)
            return n;
    }
}

static inline size_t rig_say(struct rig *r, const char *text)
{
    return rig_input(r, text, strlen(text));
}

/* The text that was sent since the last call equals `want`. */
static inline void rig_expect(struct rig *r, const char *want, int line)
{
    cr_expect_str_eq(r->out, want, "line %d: got\n%s\nwant\n%s", line, r->out, want);
    rig_clear(r);
}
#define RIG_EXPECT(r, want) rig_expect(r, want, __LINE__)
