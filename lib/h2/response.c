/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses: heads and trailers (RFC 9113 8.1, 8.3.2). A head is encoded into the outbox at once,
 * so header blocks leave in the order of their encoding and no field is copied for later.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/assert.h"
#include "telem/counters_http.h"

/* Trailers, stored until the end of the body. */
struct nj__h2_trailers {
    size_t n_fields;
    struct nj_field fields[]; /* followed by their strings */
};

/* Divide a block into HEADERS and CONTINUATION (RFC 9113 6.10) by inserting frame headers. `p`
 * begins with room for the first; the outbox has room for all. Returns the bytes of all frames. */
static uint32_t split_block(uint8_t *p, uint32_t n_block, uint32_t id, uint8_t flags)
{
    uint32_t n_more = (n_block - 1) / NJ__H2_PAYLOAD_MAX, rest = n_block;

    for (uint32_t i = n_more; i > 0; i--) { /* from behind, so that nothing is moved twice */
        uint32_t from = i * NJ__H2_PAYLOAD_MAX, n = rest - from;
        uint8_t *to = p + NJ__H2_FRAME_HEAD + from + i * NJ__H2_FRAME_HEAD;
        memmove(to, p + NJ__H2_FRAME_HEAD + from, n);
        nj__h2_put_frame_head(to - NJ__H2_FRAME_HEAD, n, NJ__H2_CONTINUATION,
                              i == n_more ? NJ__H2_FLAG_END_HEADERS : 0, id);
        rest = from;
    }
    nj__h2_put_frame_head(p, rest, NJ__H2_HEADERS, flags & (uint8_t)~NJ__H2_FLAG_END_HEADERS, id);
    return n_block + (n_more + 1) * NJ__H2_FRAME_HEAD;
}

bool nj__h2_ensure_encoder(struct nj_h2 *h)
{
    if (nj_unlikely(!h->hpack_encoder))
        h->hpack_encoder = nj__hpack_encoder_new(h->core->hpack);
    if (!h->hpack_encoder)
        nj__h2_out_of_memory(h);
    return h->hpack_encoder != NULL;
}

/* Ensure room in the outbox for a block of `n_max` bytes and its frame headers. NULL: none. */
static uint8_t *room_for_block(struct nj_h2 *h, size_t n_max)
{
    size_t n_heads = NJ__H2_FRAME_HEAD * (1 + n_max / NJ__H2_PAYLOAD_MAX);
    uint8_t *p = nj__h2_out_extend(h, (uint32_t)(n_max + n_heads));
    if (p)
        h->out.n -= (uint32_t)(n_max + n_heads);
    return p;
}

/* Add frame headers to a block of `n` bytes that follows room for one frame header. */
static void frame_block(struct nj_h2_stream *st, uint8_t *p, uint32_t n, bool ends)
{
    uint8_t flags = (uint8_t)(NJ__H2_FLAG_END_HEADERS | (ends ? NJ__H2_FLAG_END_STREAM : 0));
    uint32_t id = (uint32_t)st->id;

    if (nj_likely(n <= NJ__H2_PAYLOAD_MAX)) {
        nj__h2_put_frame_head(p, n, NJ__H2_HEADERS, flags, id);
        n += NJ__H2_FRAME_HEAD;
    } else {
        n = split_block(p, n, id, flags);
    }
    st->h->out.n += n;
    st->n_head_out += n;
}

/* Queue a cached head. False: the caller must encode it. */
static bool put_cached(struct nj_h2_stream *st, uint64_t stamp, bool ends)
{
    struct nj_h2 *h = st->h;
    uint8_t *p = room_for_block(h, NJ__HPACK_CACHED_BLOCK_MAX);
    size_t n = p ? nj__hpack_put_cached_block(h->hpack_encoder, p + NJ__H2_FRAME_HEAD, stamp) : 0;

    if (n > 0)
        frame_block(st, p, (uint32_t)n, ends);
    return n > 0;
}

bool nj__h2_put_fields(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                       size_t n_fields, uint64_t stamp, bool ends)
{
    struct nj_h2 *h = st->h;

    if (!nj__h2_ensure_encoder(h))
        return false;
    if (stamp > 0 && put_cached(st, stamp, ends))
        return true;
    size_t n_max = nj__hpack_bound(fields, n_fields);
    uint8_t *p = room_for_block(h, n_max);
    if (!p)
        return false;
    size_t n =
        nj__hpack_encode(h->hpack_encoder, p + NJ__H2_FRAME_HEAD, status, fields, n_fields, stamp);
    NJ_ASSERT(n <= n_max);
    frame_block(st, p, (uint32_t)n, ends);
    return true;
}

/* ---- trailers ---- */

static char *copy_str(char *at, struct nj_str *to, struct nj_str from)
{
    if (from.n_bytes > 0)
        memcpy(at, from.p, from.n_bytes);
    *to = (struct nj_str){at, from.n_bytes};
    return at + from.n_bytes;
}

static struct nj__h2_trailers *trailers_new(struct nj_alloc *a, const struct nj_field *fields,
                                            size_t n_fields)
{
    size_t n_bytes = sizeof(struct nj__h2_trailers) + n_fields * sizeof *fields;
    for (size_t i = 0; i < n_fields; i++)
        n_bytes += (size_t)fields[i].name.n_bytes + fields[i].value.n_bytes;
    struct nj__h2_trailers *t = nj_alloc_take(a, n_bytes);
    if (!t)
        return NULL;
    t->n_fields = n_fields;
    char *at = (char *)&t->fields[n_fields];
    for (size_t i = 0; i < n_fields; i++) {
        at = copy_str(at, &t->fields[i].name, fields[i].name);
        at = copy_str(at, &t->fields[i].value, fields[i].value);
    }
    return t;
}

int nj_h2_set_trailers(struct nj_h2_stream *st, const struct nj_field *fields, size_t n_fields)
{
    struct nj_h2 *h = st->h;

    NJ_ASSERT(!st->trailers && n_fields <= NJ_RESP_HEAD_SENT_MAX);
    if (h->end || st->end_queued)
        return -1;
    st->trailers = trailers_new(h->core->alloc, fields, n_fields);
    if (!st->trailers)
        nj__h2_out_of_memory(h);
    return st->trailers ? 0 : -1;
}

bool nj__h2_put_body_end(struct nj_h2_stream *st)
{
    const struct nj__h2_trailers *t = st->trailers;

    st->end_queued = true;
    if (t)
        return nj__h2_put_fields(st, 0, t->fields, t->n_fields, 0, true);
    uint8_t *p = nj__h2_out_extend(st->h, NJ__H2_FRAME_HEAD);
    if (p)
        nj__h2_put_frame_head(p, 0, NJ__H2_DATA, NJ__H2_FLAG_END_STREAM, (uint32_t)st->id);
    return p != NULL;
}

/* ---- responses ---- */

/* The head is queued: schedule the body, or finish the stream. */
static void start_body(struct nj_h2_stream *st, uint16_t status)
{
    nj_count_status(st->h->core->counters, status);
    if (st->body) {
        nj__h2_schedule(st);
    } else {
        st->end_queued = true;
        nj__h2_stream_end_when_flushed(st);
    }
}

int nj_h2_respond(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                  size_t n_fields, uint64_t stamp, struct nj_body *body)
{
    struct nj_h2 *h = st->h;

    NJ_ASSERT(!st->responded && status >= 200 && status <= 599);
    NJ_ASSERT(n_fields <= NJ_RESP_HEAD_SENT_MAX);
    st->responded = true;
    st->body = body;
    if (body) {
        uint64_t n_bytes = body->ops->remaining(body);
        if (n_bytes == 0)
            nj__h2_body_close(st);
        else
            nj__h2_priority_by_size(st, n_bytes);
    }
    if (nj_unlikely(h->end || st->reset)) { /* nothing more may be sent */
        nj__h2_body_close(st);
        return h->end ? -1 : 0;
    }
    bool ends = !st->body && !st->trailers;
    if (!nj__h2_put_fields(st, status, fields, n_fields, stamp, ends) ||
        (!st->body && !ends && !nj__h2_put_body_end(st))) {
        nj__h2_body_close(st);
        return -1;
    }
    start_body(st, status);
    return 0;
}

bool nj_h2_respond_cached(struct nj_h2_stream *st, uint16_t status, uint64_t stamp,
                          struct nj_body *body)
{
    struct nj_h2 *h = st->h;
    uint64_t n_bytes = body ? body->ops->remaining(body) : 0;

    NJ_ASSERT(!st->responded && stamp > 0);
    if (nj_unlikely(!h->hpack_encoder || h->end || st->reset || st->trailers ||
                    (body && n_bytes == 0)) ||
        !put_cached(st, stamp, !body))
        return false;
    st->responded = true;
    st->body = body;
    if (body)
        nj__h2_priority_by_size(st, n_bytes);
    start_body(st, status);
    return true;
}

void nj_h2_send_continue(struct nj_h2_stream *st)
{
    if (!st->responded && !st->end_received && !st->reset && !st->h->end)
        (void)nj__h2_put_fields(st, 100, NULL, 0, 0, false);
}

/* All bytes of the body are sent and its end has just become known. An empty DATA frame needs no
 * window (RFC 9113 6.9), so the end is sent although the window is closed. */
static bool ends_without_window(const struct nj_h2_stream *st)
{
    bool shut = st->window <= 0 || st->h->send_window <= 0;
    return shut && st->body && st->responded && !st->end_queued && !st->reset &&
           st->body->ops->remaining(st->body) == 0;
}

void nj_h2_resume(struct nj_h2_stream *st)
{
    if (st->h->end)
        return;
    if (nj_unlikely(ends_without_window(st))) {
        st->deferred = false;
        if (nj__h2_put_body_end(st))
            nj__h2_stream_end_when_flushed(st);
    } else if (st->deferred) {
        st->deferred = false;
        nj__h2_schedule(st);
    }
}
