/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/lcore_taps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/relaxed_atomics.h"
#include "log/log.h"
#include "mgmt/transfers.h"
#include "threads/os_clock.h"

#define FILL       (64u << 10)  /* bytes that are made at a time */
#define LCORE_WAIT (2 * NJ_SEC) /* for lcores to begin and to end; then without them */

/* Of one lcore. */
struct tap {
    bool is_in, is_begun, is_ended; /* the command to begin was put, the one to end */
    struct nj_command *begin, *end;
    struct nj_record_ring ring;
    uint64_t n_records;
};

struct nj__taps {
    const struct nj_mgmt_view *view;
    const struct nj__tap_kind *kind;
    void *of;
    enum { IDLE, RUNS, ENDS } state;
    bool has_client, has_head, has_tail;
    nj_ns begun_at;
    nj_ns ends_at; /* of CLOCK_MONOTONIC; once it ends: the body ends then in any case */
    uint64_t n_max, n_records;
    struct nj__tap_out out;
    size_t n_sent; /* of `out` */
    struct tap tap[NJ_SHARDS_MAX];
};

void nj__tap_write(struct nj__tap_out *out, const void *bytes, size_t n)
{
    if (n > out->n_room - out->n) /* a mistake of the kind: the record is cut */
        n = out->n_room - out->n;
    memcpy(out->text + out->n, bytes, n);
    out->n += n;
}

uint64_t nj__taps_n_records(const struct nj__taps *t, uint32_t lcore)
{
    return t->tap[lcore].n_records;
}

uint64_t nj__taps_n_lost(const struct nj__taps *t, uint32_t lcore)
{
    return nj_load_relaxed(&t->tap[lcore].ring.n_lost);
}

static nj_ns now(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

/* --- commands --------------------------------------------------------------------------------- */

static bool has_left(const struct nj__taps *t, uint32_t lcore)
{
    return atomic_load_explicit(&t->view->lcore[lcore].state, memory_order_acquire) <=
           NJ_LCORE_LEFT;
}

/* A ring of commands may be full: then in a later call. */
static void put_begins(struct nj__taps *t)
{
    for (uint32_t i = 0; i < t->view->n_shards; i++) {
        struct tap *p = &t->tap[i];
        if (!p->is_in || p->is_begun)
            continue;
        p->begin = t->kind->begin(t->of, i, &p->ring);
        p->is_begun = p->begin && nj_mgmt_lcore_command(t->view->transfers, i, p->begin);
    }
}

static bool all_begun(const struct nj__taps *t)
{
    for (uint32_t i = 0; i < t->view->n_shards; i++) {
        const struct tap *p = &t->tap[i];
        bool is_done = p->is_begun && nj_command_is_done(p->begin);
        if (p->is_in && !is_done && !has_left(t, i))
            return false;
    }
    return true;
}

static void put_ends(struct nj__taps *t)
{
    for (uint32_t i = 0; i < t->view->n_shards; i++) {
        struct tap *p = &t->tap[i];
        if (!p->is_begun || p->is_ended)
            continue;
        p->end = t->kind->end(t->of, i);
        p->is_ended = nj_mgmt_lcore_command(t->view->transfers, i, p->end);
    }
}

static bool is_given_back(const struct nj__taps *t, uint32_t lcore)
{
    const struct tap *p = &t->tap[lcore];

    return !p->is_begun || has_left(t, lcore) || (p->is_ended && nj_command_is_done(p->end));
}

static bool all_given_back(const struct nj__taps *t)
{
    for (uint32_t i = 0; i < t->view->n_shards; i++)
        if (!is_given_back(t, i))
            return false;
    return true;
}

/* --- begin and end ---------------------------------------------------------------------------- */

struct nj__taps *nj__taps_new(const struct nj_mgmt_view *view, const struct nj__tap_kind *kind,
                              void *of)
{
    struct nj__taps *t = aligned_alloc(NJ_CACHE_LINE, sizeof *t);

    if (!t)
        return NULL;
    memset(t, 0, sizeof *t);
    t->view = view;
    t->kind = kind;
    t->of = of;
    return t;
}

static void release(struct nj__taps *t)
{
    t->kind->release(t->of);
    for (uint32_t i = 0; i < NJ_SHARDS_MAX; i++) {
        nj_record_ring_close(&t->tap[i].ring);
        t->tap[i] = (struct tap){.is_in = false};
    }
    free(t->out.text);
    t->out = (struct nj__tap_out){0};
    t->state = IDLE;
}

void nj__taps_free(struct nj__taps *t)
{
    if (t && t->state != IDLE)
        release(t);
    free(t);
}

static void begin_end(struct nj__taps *t)
{
    if (t->state != RUNS)
        return;
    t->state = ENDS;
    t->ends_at = now() + LCORE_WAIT;
    put_ends(t);
}

/* Without a client the memory is released as soon as no lcore uses it. */
static void settle(struct nj__taps *t)
{
    if (t->state != ENDS || t->has_client)
        return;
    put_ends(t);
    if (all_given_back(t))
        release(t);
}

bool nj__taps_tick(struct nj__taps *t)
{
    settle(t);
    return t->state == ENDS && !t->has_client;
}

const char *nj__taps_why_busy(struct nj__taps *t)
{
    settle(t);
    if (t->state == IDLE)
        return NULL;
    return t->has_client ? "another one runs, of which there is one at a time"
                         : "an lcore has not yet ended the one before";
}

bool nj__taps_end(struct nj__taps *t)
{
    if (t->state == IDLE || !t->has_client)
        return false;
    begin_end(t);
    return true;
}

static void log_end(const struct nj__taps *t)
{
    uint64_t n_lost = 0;

    for (uint32_t i = 0; i < t->view->n_shards; i++)
        n_lost += nj__taps_n_lost(t, i);
    nj_log(NJ_LEVEL_INFO, "management: the %s has ended: %" PRIu64 " %ss, %" PRIu64 " dropped",
           t->kind->name, t->n_records, t->kind->record, n_lost);
}

static void end_stream(void *of)
{
    struct nj__taps *t = of;

    log_end(t);
    t->has_client = false;
    begin_end(t);
    settle(t);
}

/* --- the body --------------------------------------------------------------------------------- */

static bool is_over(const struct nj__taps *t)
{
    const struct nj_mgmt_view *v = t->view;

    return now() >= t->ends_at || t->n_records >= t->n_max ||
           (v->is_stopping && atomic_load_explicit(v->is_stopping, memory_order_relaxed)) ||
           (v->is_yielding && atomic_load_explicit(v->is_yielding, memory_order_relaxed));
}

/* The lcore with the oldest record; n_shards: there is none. */
static uint32_t oldest(struct nj__taps *t, const void **record)
{
    uint32_t found = t->view->n_shards, n_bytes;
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < t->view->n_shards; i++) {
        const uint64_t *at =
            t->tap[i].is_begun ? nj_record_ring_peek(&t->tap[i].ring, &n_bytes) : NULL;
        if (at && *at < first) {
            first = *at;
            found = i;
            *record = at;
        }
    }
    return found;
}

/* False: no record is left. */
static bool write_records(struct nj__taps *t)
{
    const void *record = NULL;
    uint32_t i;

    while (t->out.n < FILL && t->n_records < t->n_max) {
        if ((i = oldest(t, &record)) == t->view->n_shards)
            return false;
        t->kind->format(t->of, i, record, &t->out);
        nj_record_ring_take(&t->tap[i].ring);
        t->tap[i].n_records++;
        t->n_records++;
    }
    return t->n_records < t->n_max;
}

/* The body begins when all lcores record, so that its client knows it. */
static void fill(struct nj__taps *t)
{
    t->out.n = t->n_sent = 0;
    if (t->state == RUNS && is_over(t))
        begin_end(t);
    if (t->state == RUNS)
        put_begins(t);
    else
        put_ends(t);
    if (!t->has_head && t->state == RUNS && !all_begun(t) && now() < t->begun_at + LCORE_WAIT)
        return;
    if (!t->has_head)
        t->kind->head(t->of, &t->out);
    t->has_head = true;
    /* Looked at before the records, so that none comes later. */
    bool is_last = t->state == ENDS && (all_given_back(t) || now() >= t->ends_at);
    if (write_records(t) || !is_last)
        return;
    t->kind->tail(t->of, t, &t->out);
    t->has_tail = true;
}

static ssize_t read_stream(void *of, char *to, size_t n)
{
    struct nj__taps *t = of;

    if (t->n_sent == t->out.n && t->has_tail)
        return -1;
    if (t->n_sent == t->out.n)
        fill(t);
    n = n < t->out.n - t->n_sent ? n : t->out.n - t->n_sent;
    memcpy(to, t->out.text + t->n_sent, n);
    t->n_sent += n;
    return (ssize_t)n;
}

static uint64_t ring_size(uint32_t n_lcores)
{
    uint64_t size = NJ__TAP_BYTES_MAX;

    while (size > NJ__TAP_BYTES_MIN && size * n_lcores > NJ__TAPS_BYTES_MAX)
        size /= 2;
    return size;
}

bool nj__taps_begin(struct nj__taps *t, const struct nj__taps_limits *limits,
                    struct nj__mgmt_stream *stream)
{
    uint32_t n_shards = t->view->n_shards;
    bool ok = true;

    t->out = (struct nj__tap_out){.n_room = FILL + NJ__TAP_OUT_BYTES_MAX};
    t->out.text = malloc(t->out.n_room);
    for (uint32_t i = 0; i < n_shards && ok; i++) {
        t->tap[i].is_in = limits->is_in[i];
        ok = !limits->is_in[i] || nj_record_ring_open(&t->tap[i].ring, ring_size(n_shards));
    }
    if (!t->out.text || !ok) {
        release(t);
        return false;
    }
    t->state = RUNS;
    t->has_client = true;
    t->has_head = t->has_tail = false;
    t->n_sent = 0;
    t->n_records = 0;
    t->n_max = limits->n_max;
    t->begun_at = now();
    t->ends_at = t->begun_at + limits->seconds * NJ_SEC;
    put_begins(t);
    *stream = (struct nj__mgmt_stream){.read = read_stream, .end = end_stream, .of = t};
    return true;
}
