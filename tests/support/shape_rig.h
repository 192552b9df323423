/* SPDX-License-Identifier: BSD-3-Clause */
/* Shards with responses, in virtual time. A woken response sends the bytes that its body shows, as
 * HTTP/2 does, in frames of 16 KiB, until it is refused. Time advances from one due event to the
 * next. */
#pragma once

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "shape/shaper.h"
#include "telem/counters.h"

#define RIG_SHARDS  2u
#define RIG_START   (3 * NJ_SEC)
#define RIG_STEP_NS (50 * NJ_US)
#define RIG_FOREVER ((uint64_t)1 << 50)
#define RIG_EACH    RIG_SHARDS /* in place of a shard: all of them in turn */
#define KIB         1024ull
#define MIB         (1024ull * 1024)

struct rig;

struct rig_res {
    struct nj_paced f;
    struct nj_body inner;
    struct rig *rig;
    struct nj_list ready;
    struct nj_client *client;
    uint64_t left, sent;
    uint64_t shows_max; /* bytes its source has at a time; 0: any */
    uint32_t sends_max; /* bytes in one step, as windows of TCP allow; 0: any number */
    uint64_t wake_sent; /* since it was woken */
    uint32_t shard, n_short_wakes, n_rests;
    bool open, stuck, unknown, dry;
    uint64_t mark; /* `sent` at some time */
};

struct rig {
    struct nj_shape_shared *shared;
    struct nj_policy policy;
    struct nj_shape *shape[RIG_SHARDS];
    struct nj_counters counters[RIG_SHARDS];
    struct nj_list ready[RIG_SHARDS];
    uint32_t n_shards;
    nj_ns now;
    struct rig_res *res;
    uint32_t n_res;
    uint64_t sent[RIG_SHARDS];
    /* Bytes per millisecond, for windows: of each shard, since each may have its thread. */
    uint64_t *per_ms[RIG_SHARDS];
    uint32_t n_ms;
    void (*ended)(struct rig_res *r); /* may open it again */
};

/* ---- the source ---- */

static struct rig_res *rig_of_inner(struct nj_body *b)
{
    return nj_container_of(b, struct rig_res, inner);
}

static int rig_peek(struct nj_body *b, uint32_t n_max, struct nj_slice *out)
{
    static const uint8_t bytes[65536];
    struct rig_res *r = rig_of_inner(b);
    uint64_t n = r->left < n_max ? r->left : n_max;
    if (r->shows_max && n > r->shows_max)
        n = r->shows_max;
    if (r->dry)
        n = 0;
    *out = (struct nj_slice){bytes, (uint32_t)n, NULL};
    return (int)n;
}

static void rig_advance(struct nj_body *b, uint32_t n)
{
    struct rig_res *r = rig_of_inner(b);
    cr_assert_leq(n, r->left);
    r->left -= n;
}

static uint64_t rig_remaining(const struct nj_body *b)
{
    const struct rig_res *r = nj_container_of(b, const struct rig_res, inner);
    return r->unknown && r->left > 0 ? NJ_BODY_LEN_UNKNOWN : r->left;
}

static void rig_close(struct nj_body *b)
{
    rig_of_inner(b)->open = false;
}

static void rig_rest(struct nj_body *b)
{
    rig_of_inner(b)->n_rests++;
}

static const struct nj_body_ops rig_ops = {rig_peek, rig_advance, rig_remaining, rig_close,
                                           rig_rest};

/* ---- responses ---- */

static inline void rig_ready(struct rig_res *r)
{
    if (!nj_list_linked(&r->ready))
        nj_list_push_back(&r->rig->ready[r->shard], &r->ready);
}

static inline void rig_open_at(struct rig *w, struct rig_res *r, uint32_t shard,
                               uint32_t class_index, uint64_t client, uint64_t n_bytes)
{
    const struct nj_policy *p = nj_shape_policy(w->shape[shard]);
    memset(r, 0, sizeof *r);
    nj_list_init(&r->ready);
    r->rig = w;
    r->shard = shard;
    r->left = n_bytes;
    r->open = true;
    r->inner.ops = &rig_ops;
    r->client =
        nj_client_take(nj_shape_clients(w->shared), client * 0x9e3779b97f4a7c15u, NULL, w->now);
    cr_assert_not_null(r->client);
    cr_assert(nj_paced_begin(w->shape[shard], &r->f, &p->classes[class_index], r->client, w->now));
    nj_paced_wrap(&r->f, &r->inner)->waiter = r;
    rig_ready(r);
}

static inline struct rig_res *rig_add(struct rig *w, uint32_t shard, uint32_t class_index,
                                      uint64_t client, uint64_t n_bytes)
{
    struct rig_res *r = &w->res[w->n_res++];
    rig_open_at(w, r, shard, class_index, client, n_bytes);
    return r;
}

/* Add endless responses, for the clients in turn from `client` on. */
static inline void rig_crowd(struct rig *w, uint32_t shard, uint32_t class_index, uint32_t n,
                             uint64_t client, uint32_t n_clients)
{
    for (uint32_t i = 0; i < n; i++)
        rig_add(w, shard == RIG_EACH ? i % w->n_shards : shard, class_index, client + i % n_clients,
                RIG_FOREVER);
}

static inline void rig_mark(struct rig *w)
{
    for (uint32_t i = 0; i < w->n_res; i++)
        w->res[i].mark = w->res[i].sent;
}

/* Bytes that these responses sent since rig_mark(). */
static inline uint64_t rig_sum(const struct rig *w, uint32_t from, uint32_t to)
{
    uint64_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += w->res[i].sent - w->res[i].mark;
    return n;
}

static inline void rig_end(struct rig_res *r)
{
    nj_list_del(&r->ready);
    r->f.body.ops->close(&r->f.body);
    cr_assert_not(r->open);
    nj_paced_end(&r->f);
    nj_client_put(r->client, r->rig->now);
}

static inline void rig_note(struct rig *w, uint32_t shard, uint64_t n)
{
    w->sent[shard] += n;
    uint32_t ms = (uint32_t)((w->now - RIG_START) / NJ_MS);
    if (ms < w->n_ms)
        w->per_ms[shard][ms] += n;
}

static inline uint64_t rig_sent(const struct rig *w)
{
    return w->sent[0] + w->sent[1];
}

static inline uint64_t rig_in_ms(const struct rig *w, uint32_t ms)
{
    return ms < w->n_ms ? w->per_ms[0][ms] + w->per_ms[1][ms] : 0;
}

/* As lib/h2/output.c: one frame after the other, until the body shows no bytes. */
static inline void rig_send(struct rig_res *r)
{
    struct nj_body *b = &r->f.body;
    struct nj_slice slice;
    uint64_t before = r->sent;
    while (r->open && !r->stuck) {
        uint64_t rest = b->ops->remaining(b);
        if (rest == 0)
            break;
        if (r->sends_max && r->sent - before >= r->sends_max) {
            rig_ready(r);
            return;
        }
        b->waiter = r;
        int n = b->ops->peek(b, r->sends_max ? r->sends_max : 16384, &slice);
        cr_assert_geq(n, 0);
        if (n == 0) {
            if (r->wake_sent && r->wake_sent < NJ_QUANTUM_MIN_BYTES)
                r->n_short_wakes++;
            r->wake_sent = 0;
            return;
        }
        b->ops->advance(b, (uint32_t)n);
        r->sent += (uint64_t)n;
        r->wake_sent += (uint64_t)n;
        rig_note(r->rig, r->shard, (uint64_t)n);
    }
    if (r->open && r->left == 0) {
        struct rig *w = r->rig;
        rig_end(r);
        if (w->ended)
            w->ended(r);
    }
}

static inline void rig_wake(void *ctx, void *waiter)
{
    rig_ready(waiter);
}

/* ---- the world ---- */

static inline void rig_init(struct rig *w, uint32_t n_shards, uint32_t res_max)
{
    memset(w, 0, sizeof *w);
    w->policy = nj_policy_none;
    w->n_shards = n_shards;
    w->now = RIG_START;
    w->res = calloc(res_max, sizeof *w->res);
    w->shared = nj_shape_shared_new(2 * res_max + 64);
    w->n_ms = 60000;
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        w->per_ms[i] = calloc(w->n_ms, sizeof **w->per_ms);
    cr_assert(w->res && w->shared && w->per_ms[0] && w->per_ms[1]);
}

/* After the policy has been written. */
static inline void rig_start(struct rig *w, uint32_t paced_max)
{
    for (uint32_t i = 0; i < w->n_shards; i++) {
        nj_list_init(&w->ready[i]);
        w->shape[i] = nj_shape_new(
            &(struct nj_shape_config){w->shared, &w->policy, &w->counters[i], paced_max}, w->now);
        cr_assert_not_null(w->shape[i]);
    }
}

static inline void rig_class(struct rig *w, uint32_t i, uint64_t rate, uint64_t ceiling)
{
    struct nj_class *c = &w->policy.classes[i];
    snprintf(c->name, sizeof c->name, "c%u", i);
    c->slot = (uint8_t)i;
    c->total = (struct nj_limit){rate, ceiling, 0};
    if (w->policy.n_classes <= i)
        w->policy.n_classes = i + 1;
}

/* A world that begins with two classes, and a rate of the whole server (0: unlimited). */
static inline void rig_two(struct rig *w, uint32_t n_shards, uint32_t res_max, uint64_t total,
                           struct nj_limit first, struct nj_limit second)
{
    rig_init(w, n_shards, res_max);
    w->policy.total = (struct nj_limit){total, total, 0};
    rig_class(w, 0, first.rate, first.ceiling);
    rig_class(w, 1, second.rate, second.ceiling);
    rig_start(w, res_max);
}

static inline void rig_step_of(struct rig *w, uint32_t shard)
{
    struct nj_list batch;
    struct nj_list *l;
    nj_shape_run(w->shape[shard], w->now, rig_wake, NULL);
    nj_list_init(&batch);
    nj_list_splice(&batch, &w->ready[shard]);
    while ((l = nj_list_pop(&batch)))
        rig_send(nj_container_of(l, struct rig_res, ready));
}

static inline void rig_step(struct rig *w)
{
    for (uint32_t i = 0; i < w->n_shards; i++)
        rig_step_of(w, i);
}

static inline void rig_adopt(struct rig *w, const struct nj_policy *p)
{
    for (uint32_t i = 0; i < w->n_shards; i++)
        nj_shape_set_policy(w->shape[i], p, w->now);
}

static inline nj_ns rig_next(const struct rig *w)
{
    nj_ns next = NJ_NEVER;
    for (uint32_t i = 0; i < w->n_shards; i++) {
        nj_ns at = nj_shape_next_at(w->shape[i]);
        if (!nj_list_empty(&w->ready[i]))
            at = w->now;
        if (at < next)
            next = at;
    }
    return next > w->now + RIG_STEP_NS ? next : w->now + RIG_STEP_NS;
}

static inline void rig_run(struct rig *w, nj_ns span)
{
    nj_ns end = w->now + span;
    for (;;) {
        rig_step(w);
        nj_ns next = rig_next(w);
        if (next > end)
            break;
        w->now = next;
    }
    w->now = end;
}

/* The most that went within any `ms` milliseconds between two times. */
static inline uint64_t rig_window(const struct rig *w, uint32_t from_ms, uint32_t to_ms,
                                  uint32_t ms)
{
    uint64_t sum = 0, most = 0;
    for (uint32_t i = from_ms; i < to_ms && i < w->n_ms; i++) {
        sum += rig_in_ms(w, i);
        if (i >= from_ms + ms)
            sum -= rig_in_ms(w, i - ms);
        most = sum > most ? sum : most;
    }
    return most;
}

static inline uint64_t rig_count(const struct rig *w, nj_counter c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->n_shards; i++)
        sum += nj_counter_read(&w->counters[i], c);
    return sum;
}

/* Check that the charged bytes are the sent ones, end all responses, and check that none is left.
 */
static inline void rig_fini(struct rig *w)
{
    cr_expect_eq(rig_count(w, NJ_C_shape_bytes), rig_sent(w));
    for (uint32_t i = 0; i < w->n_res; i++)
        if (w->res[i].open)
            rig_end(&w->res[i]);
    for (uint32_t i = 0; i < w->n_shards; i++) {
        nj_shape_run(w->shape[i], w->now + NJ_SEC, rig_wake, NULL);
        cr_expect_eq(nj_counter_read(&w->counters[i], NJ_C_shape_waiting), 0);
        cr_expect_eq(nj_counter_read(&w->counters[i], NJ_C_shape_responses), 0);
        cr_expect_eq(nj_counter_read(&w->counters[i], NJ_C_shape_clients), 0);
        nj_shape_free(w->shape[i]);
    }
    nj_shape_shared_free(w->shared);
    free(w->res);
    free(w->per_ms[0]);
    free(w->per_ms[1]);
}

#define rig_near(got, want, permille)                                                              \
    cr_expect((got) >= (want) - (want) / 1000.0 * (permille) &&                                    \
                  (got) <= (want) + (want) / 1000.0 * (permille),                                  \
              #got " is %.0f, not %.0f", (double)(got), (double)(want))
