/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams begin, end and are reset here (RFC 9113 5.1). The states between begin and end are in
 * half_closed.c.
 */
#include "h2/h2_internal.h"

#include "telem/counters_conn.h"

struct nj_h2_stream *nj__h2_stream_new(struct nj_h2 *h, uint32_t id)
{
    struct nj_h2_stream *st = nj_alloc_zero(h->core->alloc, sizeof *st);

    if (!st) {
        nj__h2_out_of_memory(h);
        return NULL;
    }
    st->h = h;
    st->id = (int32_t)id;
    st->window = h->initial_window;
    if (!nj__h2_table_put(h, st)) {
        nj_alloc_free(h->core->alloc, st);
        nj__h2_out_of_memory(h);
        return NULL;
    }
    nj_list_init(&st->queue);
    nj_list_push_back(&h->streams, &st->link);
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

void nj__h2_stream_detach_user(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;
    bool shown_to_user = st->shown_to_user;

    nj_list_del(&st->link);
    h->n_streams--;
    nj__h2_body_close(st);
    st->shown_to_user = false;
    if (shown_to_user)
        h->core->events->on_stream_close(h->user, st, st->complete);
    if (st->n_held > 0)
        nj__h2_conn_window_return(h, st->n_held);
    st->n_held = 0;
}

void nj__h2_stream_destroy(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->reset = true; /* the callbacks below can't send on it any more */
    nj_list_del(&st->queue);
    if (st->half_closed) {
        nj_list_del(&st->link);
        h->n_half_closed--;
    } else {
        nj__h2_stream_detach_user(st);
    }
    nj__h2_table_remove(h, st);
    if (nj_unlikely(st->trailers != NULL))
        nj_alloc_free(h->core->alloc, st->trailers);
    nj_alloc_free(h->core->alloc, st);
}

/* ---- resets ---- */

static void put_reset(struct nj_h2 *h, uint32_t id, uint32_t code)
{
    nj_count(h->core->counters, NJ_C_h2_reset_out);
    nj__h2_put_u32_frame(h, NJ__H2_RST_STREAM, id, code);
}

void nj_h2_reset_stream(struct nj_h2_stream *st, uint32_t code)
{
    if (st->reset || st->h->end)
        return;
    st->reset = true;
    put_reset(st->h, (uint32_t)st->id, code);
    nj__h2_stream_end_when_flushed(st);
}

/* The peer provokes a reset (CVE-2025-8671): count the error and the reset. */
void nj__h2_stream_error(struct nj_h2 *h, uint32_t id, enum nj_h2_error_code code)
{
    struct nj_h2_stream *st = nj__h2_find_stream(h, id);

    if (!nj_h2_add_glitches(h, NJ__H2_GLITCH_ERROR + NJ__H2_GLITCH))
        return;
    if (st)
        nj_h2_reset_stream(st, code);
    else
        put_reset(h, id, code);
}

/* ---- queries of the owner ---- */

enum nj_blocked_by nj_h2_stream_blocked_by(const struct nj_h2_stream *st)
{
    if (!st->body || st->end_queued || st->reset || st->h->end)
        return NJ_BLOCKED_BY_NOTHING;
    if (st->deferred)
        return NJ_BLOCKED_BY_BODY;
    if (st->window <= 0)
        return NJ_BLOCKED_BY_STREAM_WINDOW;
    return st->h->send_window <= 0 ? NJ_BLOCKED_BY_CONN_WINDOW : NJ_BLOCKED_BY_NOTHING;
}

bool nj_h2_stream_is_reset(const struct nj_h2_stream *st)
{
    return st->reset || st->h->end;
}

static struct nj_h2_stream *next_shown(const struct nj_h2 *h, const struct nj_list *n)
{
    for (; n != &h->streams; n = n->next) {
        struct nj_h2_stream *st =
            nj_container_of((struct nj_list *)(uintptr_t)n, struct nj_h2_stream, link);
        if (st->shown_to_user && !st->reset)
            return st;
    }
    return NULL;
}

struct nj_h2_stream *nj_h2_first_stream(const struct nj_h2 *h)
{
    return next_shown(h, h->streams.next);
}

struct nj_h2_stream *nj_h2_next_stream(const struct nj_h2_stream *st)
{
    return next_shown(st->h, st->link.next);
}

bool nj_h2_was_reset_by_peer(const struct nj_h2_stream *st)
{
    return st->reset_received;
}

uint32_t nj_h2_stream_id(const struct nj_h2_stream *st)
{
    return (uint32_t)st->id;
}

struct nj_h2 *nj_h2_stream_conn(const struct nj_h2_stream *st)
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
