/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life cycle of a stream (RFC 9113 5.1), and the hash table of open streams. A stream that is not
 * in the table and whose id is not above the highest is closed; it uses no memory.
 */
#include "h2/h2_internal.h"

#include "base/assert.h"

/* The table has at least as many buckets as streams, and ids are consecutive: chains are short. */
#define TABLE_GROWS_BY 4u

static struct nj_h2_stream **place_of(const struct nj_h2 *h, uint32_t id)
{
    return &h->table[(id >> 1) & h->table_mask];
}

struct nj_h2_stream *nj__h2_find(const struct nj_h2 *h, uint32_t id)
{
    struct nj_h2_stream *st = *place_of(h, id);

    while (st && (uint32_t)st->id != id)
        st = st->chain;
    return st;
}

static void table_put(struct nj_h2 *h, struct nj_h2_stream *st)
{
    struct nj_h2_stream **at = place_of(h, (uint32_t)st->id);
    st->chain = *at;
    *at = st;
}

static void table_take(struct nj_h2 *h, struct nj_h2_stream *st)
{
    struct nj_h2_stream **at = place_of(h, (uint32_t)st->id);

    while (*at != st)
        at = &(*at)->chain;
    *at = st->chain;
    if (--h->n_open > 0 || h->table == h->few)
        return;
    nj__h2_alloc_free(&h->core->alloc, h->table);
    h->table = h->few;
    h->table_mask = NJ_ARRAY_LEN(h->few) - 1;
    for (size_t i = 0; i < NJ_ARRAY_LEN(h->few); i++)
        h->few[i] = NULL;
}

static bool table_grow(struct nj_h2 *h)
{
    uint32_t n_had = h->table_mask + 1, n = n_had * TABLE_GROWS_BY;
    struct nj_h2_stream **had = h->table;
    struct nj_h2_stream **table = nj__h2_alloc_zero(&h->core->alloc, n * sizeof *table);

    if (!table)
        return false;
    h->table = table;
    h->table_mask = n - 1;
    for (uint32_t i = 0; i < n_had; i++) {
        for (struct nj_h2_stream *st = had[i], *next; st; st = next) {
            next = st->chain;
            table_put(h, st);
        }
    }
    if (had != h->few)
        nj__h2_alloc_free(&h->core->alloc, had);
    return true;
}

struct nj_h2_stream *nj__h2_stream_new(struct nj_h2 *h, uint32_t id)
{
    bool fits = h->n_open <= h->table_mask || table_grow(h);
    struct nj_h2_stream *st = fits ? nj__h2_alloc_zero(&h->core->alloc, sizeof *st) : NULL;

    if (!st) {
        nj__h2_no_memory(h);
        return NULL;
    }
    st->h = h;
    st->id = (int32_t)id;
    st->window = h->initial_window;
    nj_list_init(&st->queue);
    nj_list_push_back(&h->streams, &st->link);
    table_put(h, st);
    h->n_open++;
    h->n_streams++;
    h->id_last = id;
    return st;
}

/* ---- its end ---- */

void nj__h2_body_close(struct nj_h2_stream *st)
{
    struct nj_body *body = st->body;
    st->body = NULL;
    if (body)
        body->ops->close(body);
}

void nj__h2_stream_leave(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;
    bool announced = st->announced;

    nj_list_del(&st->link);
    h->n_streams--;
    nj__h2_body_close(st);
    st->announced = false;
    if (announced)
        h->core->events->on_stream_close(h->user, st, st->complete);
    if (st->n_held > 0)
        nj__h2_window_done(h, st->n_held);
    st->n_held = 0;
}

/* Remember the final state of a stream for frames that arrive later. */
static void note_end(struct nj_h2 *h, const struct nj_h2_stream *st)
{
    uint32_t back = (h->id_high - (uint32_t)st->id) / 2;

    if (back >= NJ__H2_IDS_KNOWN)
        return;
    if (st->got_reset)
        h->id_reset |= UINT64_C(1) << back;
    else if (st->got_end)
        h->id_ended |= UINT64_C(1) << back;
}

void nj__h2_stream_drop(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->reset = true; /* the callbacks below can't send on it any more */
    nj_list_del(&st->queue);
    if (st->late) {
        nj_list_del(&st->link);
        h->n_late--;
    } else {
        nj__h2_stream_leave(st);
    }
    note_end(h, st);
    table_take(h, st);
    if (nj_unlikely(st->trailers != NULL))
        nj__h2_alloc_free(&h->core->alloc, st->trailers);
    nj__h2_alloc_free(&h->core->alloc, st);
}

void nj__h2_stream_sent(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->complete = true;
    nj_list_del(&st->queue);
    nj__h2_body_close(st);
    nj_count(h->core->counters, NJ_C_responses);
    nj__h2_glitch_refund(h);
    if (nj_likely(st->got_end))
        nj__h2_stream_drop(st);
    else
        nj__h2_late_begin(st);
}

void nj__h2_stream_ended(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->got_end = true;
    if (st->length_left > 0) {
        nj__h2_stream_error(h, (uint32_t)st->id, NJ__H2_PROTOCOL_ERROR);
        return;
    }
    if (st->announced && h->core->events->on_end)
        h->core->events->on_end(h->user, st);
    if (st->late && !st->reset)
        nj__h2_stream_drop(st);
}

/* ---- resets ---- */

static void put_reset(struct nj_h2 *h, uint32_t id, enum nj__h2_code code)
{
    nj_count(h->core->counters, NJ_C_h2_reset_out);
    nj__h2_put_small(h, NJ__H2_RST_STREAM, id, code);
}

void nj__h2_stream_reset(struct nj_h2_stream *st, enum nj__h2_code code)
{
    if (st->reset || st->h->end)
        return;
    st->reset = true;
    put_reset(st->h, (uint32_t)st->id, code);
    nj__h2_pass(st);
}

/* The peer provokes a reset (CVE-2025-8671): count the error and the reset. */
void nj__h2_stream_error(struct nj_h2 *h, uint32_t id, enum nj__h2_code code)
{
    struct nj_h2_stream *st = nj__h2_find(h, id);

    if (!nj__h2_glitch(h, NJ__H2_GLITCH_BAD + NJ__H2_GLITCH))
        return;
    if (st)
        nj__h2_stream_reset(st, code);
    else
        put_reset(h, id, code);
}

void nj_h2_reset(struct nj_h2_stream *st, uint32_t error)
{
    nj__h2_stream_reset(st, (enum nj__h2_code)error);
}

/* ---- queries of the owner ---- */

enum nj_h2_hold nj_h2_hold(const struct nj_h2_stream *st)
{
    if (!st->body || st->end_shown || st->reset || st->h->end)
        return NJ_H2_HOLD_NONE;
    if (st->deferred)
        return NJ_H2_HOLD_OURS;
    if (st->window <= 0)
        return NJ_H2_HOLD_STREAM;
    return st->h->send_window <= 0 ? NJ_H2_HOLD_CONN : NJ_H2_HOLD_NONE;
}

static struct nj_h2_stream *announced_from(const struct nj_h2 *h, const struct nj_list *n)
{
    for (; n != &h->streams; n = n->next) {
        struct nj_h2_stream *st =
            nj_container_of((struct nj_list *)(uintptr_t)n, struct nj_h2_stream, link);
        if (st->announced && !st->reset)
            return st;
    }
    return NULL;
}

struct nj_h2_stream *nj_h2_first(const struct nj_h2 *h)
{
    return announced_from(h, h->streams.next);
}

struct nj_h2_stream *nj_h2_next(const struct nj_h2_stream *st)
{
    return announced_from(st->h, st->link.next);
}

bool nj_h2_stream_was_reset(const struct nj_h2_stream *st)
{
    return st->got_reset;
}

uint32_t nj_h2_stream_id(const struct nj_h2_stream *st)
{
    return (uint32_t)st->id;
}

struct nj_h2 *nj_h2_of(const struct nj_h2_stream *st)
{
    return st->h;
}

void nj_h2_stream_set_user(struct nj_h2_stream *st, void *user)
{
    st->user = user;
}

void *nj_h2_stream_user(const struct nj_h2_stream *st)
{
    return st->user;
}
