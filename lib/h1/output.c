/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output: the outbox, and bodies of responses (RFC 9112 6, 7).
 *
 * Heads and chunk syntax are appended to the outbox. Small pieces of a body are copied behind them,
 * so many responses need one call of the sink. Before a large piece the outbox is written, and the
 * sink takes a reference.
 */
#include "h1/h1_internal.h"

#include <stdio.h>

#include "base/assert.h"
#include "telem/counters_http.h"

/* Write up to `n_max` bytes of the outbox to the sink. */
static bool flush(struct nj_h1 *h, uint32_t n_max)
{
    uint32_t n = nj_min_u32(nj__h1_n_unsent(h), n_max), from = h->out_at;

    if (n == 0)
        return true;
    h->out_at += n;
    return nj__h1_check_memory(h, h->sink->copy(h->sink_ctx, h->out.p + from, n));
}

/* ---- bodies ---- */

static bool can_send(const struct nj_h1 *h)
{
    return h->has_response && !h->is_sent && !h->deferred && !h->reset && !h->write_closed;
}

/* The body is sent. One that is shorter than its Content-Length ends the connection, and so does
 * one that has more (RFC 9110 8.6, RFC 9112 8). */
static void end_body(struct nj_h1 *h, bool has_more)
{
    h->last |= has_more;
    nj__h1_body_close(h);
    if (h->framing == NJ__H1_BY_LENGTH && h->out_left > 0)
        h->reset = true;
    else
        h->is_sent =
            h->framing != NJ__H1_CHUNKED ||
            (nj__h1_out_append(h, "0\r\n", 3) &&
             nj__h1_out_append(h, h->trailers.p, h->trailers.n) && nj__h1_out_append(h, "\r\n", 2));
}

/* Write a piece of a body: small ones to the outbox, large ones to the sink. A chunk is not empty
 * (RFC 9112 7.1). */
static bool put_piece(struct nj_h1 *h, const struct nj_slice *slice)
{
    bool is_chunk = h->framing == NJ__H1_CHUNKED,
         is_small = slice->n_bytes < NJ__H1_COPY_BELOW_BYTES;
    char size[NJ__H1_CHUNK_BYTES];
    int n_size = is_chunk ? snprintf(size, sizeof size, "%x\r\n", slice->n_bytes) : 0;

    if (is_chunk && !nj__h1_out_append(h, size, (uint32_t)n_size))
        return false;
    bool ok = is_small ? nj__h1_out_append(h, slice->data, slice->n_bytes)
                       : flush(h, UINT32_MAX) &&
                             nj__h1_check_memory(h, h->sink->refer(h->sink_ctx, slice));
    return ok && (!is_chunk || nj__h1_out_append(h, "\r\n", 2));
}

/* Send the next piece of the body, of at most `n_max` bytes. */
static void send_piece(struct nj_h1 *h, uint32_t n_max)
{
    struct nj_body *body = h->body;
    struct nj_slice slice;

    if (!body || body->ops->remaining(body) == 0) {
        end_body(h, false);
        return;
    }
    bool is_over = h->out_left == 0; /* does it have more bytes? */
    n_max = is_over ? 1 : (uint32_t)nj_min_u64(n_max, h->out_left);
    h->deferred = true; /* before peek: the body may call nj_h1_resume() in it */
    int got = body->ops->peek(body, n_max, &slice);
    if (got == 0 && body->ops->remaining(body) > 0)
        return;
    NJ_ASSERT(got <= (int)n_max);
    h->deferred = false;
    slice.n_bytes = (uint32_t)got;
    if (got < 0) {
        h->reset = true;
    } else if (got == 0 || is_over) {
        end_body(h, got > 0);
    } else if (put_piece(h, &slice)) {
        body->ops->advance(body, slice.n_bytes);
        nj_count_n(h->ctx->counters, NJ_C_body_bytes, slice.n_bytes);
        h->out_left -= slice.n_bytes;
        if (body->ops->remaining(body) == 0)
            end_body(h, false);
    }
}

void nj__h1_send_small_body(struct nj_h1 *h)
{
    uint64_t n;

    while (can_send(h) && h->body && nj__h1_n_unsent(h) < NJ__H1_BATCH_BYTES &&
           (n = h->body->ops->remaining(h->body)) < NJ__H1_COPY_BELOW_BYTES)
        send_piece(h, (uint32_t)n);
}

bool nj_h1_is_reset(const struct nj_h1 *h)
{
    return h->reset;
}

bool nj_h1_is_blocked_by_body(const struct nj_h1 *h)
{
    return h->deferred && !h->reset && !h->write_closed;
}

/* ---- the connection ---- */

/* Write until nothing is left, the body has no bytes, or the sink has too little room. */
static void write_out(struct nj_h1 *h)
{
    uint32_t room;

    while ((nj__h1_n_unsent(h) > 0 || can_send(h)) && !h->write_closed &&
           (room = h->sink->room(h->sink_ctx)) >= NJ__H1_SINK_ROOM_MIN) {
        uint32_t n = nj__h1_n_unsent(h);
        if (can_send(h) && n < NJ__H1_BATCH_BYTES)
            send_piece(h, nj_min_u32(room - n - NJ__H1_CHUNK_BYTES, NJ_SINK_SLICE_MAX));
        else
            flush(h, room);
    }
}

int nj_h1_output(struct nj_h1 *h, const struct nj_byte_sink *sink, void *sink_ctx)
{
    NJ_ASSERT(!h->busy);
    h->busy = true;
    h->sink = sink;
    h->sink_ctx = sink_ctx;
    h->n_batch = 0;
    write_out(h);
    if (h->reset && !h->write_closed) {
        h->must_reset |= nj__h1_n_unsent(h) > 0; /* the sink does not take it, and never may */
        h->out_at = h->out.n;
        nj__h1_request_close(h, false);
    } else if (h->is_sent && nj__h1_n_unsent(h) == 0) {
        nj__h1_request_close(h, true);
    }
    h->busy = false;
    h->sink = NULL;
    if (nj__h1_n_unsent(h) == 0 || h->write_closed) {
        h->out_at = 0;
        nj_buf_free(h->ctx->alloc, &h->out);
    }
    return h->write_closed ? -1 : 0;
}
