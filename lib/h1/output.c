/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output: the outbox, and bodies of responses (RFC 9112 6, 7).
 *
 * Heads and chunk syntax are appended to the outbox. Small pieces of a body are copied behind them,
 * so many responses need one call of the sink. Before a large piece the outbox is written, and the
 * sink takes a reference.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "telem/counters_http.h"

/* The destination of output. `sink` is NULL while input is processed: then all goes to the outbox.
 */
struct out {
    const struct nj_byte_sink *sink;
    void *ctx;
};

/* Write up to `n_max` bytes of the outbox to the sink. */
static void flush(struct nj_h1 *h, const struct out *to, uint32_t n_max)
{
    uint32_t n = nj_min_u32(nj__h1_n_unsent(h), n_max);

    if (n == 0)
        return;
    if (!to->sink->copy(to->ctx, h->out.p + h->out_at, n)) {
        nj__h1_out_of_memory(h);
        return;
    }
    h->out_at += n;
    if (h->out_at == h->out.n)
        h->out_at = h->out.n = 0;
}

/* ---- bodies ---- */

static bool can_send(const struct nj_h1 *h)
{
    return h->has_response && !h->is_sent && !h->deferred && !h->reset && !h->write_closed;
}

/* The body is sent. One that is shorter than its Content-Length ends the connection, and so does
 * what is missing of a longer one. */
static void end_body(struct nj_h1 *h, bool has_more)
{
    h->last |= has_more;
    nj__h1_body_close(h);
    if (h->framing == NJ__H1_BY_LENGTH && h->out_left > 0)
        h->reset = true;
    else
        h->is_sent = h->framing != NJ__H1_CHUNKED || nj__h1_put_last_chunk(h);
}

static bool put_bytes(struct nj_h1 *h, const char *from, uint32_t n)
{
    uint8_t *p = nj__h1_out_room(h, n);

    if (!p)
        return false;
    memcpy(p, from, n);
    h->out.n += n;
    return true;
}

/* The line before the data of a chunk. Returns its bytes. */
static uint32_t put_chunk_size(char to[NJ__H1_CHUNK_BYTES], uint32_t n_bytes)
{
    uint32_t n = 0;
    int shift = 28;

    while (n_bytes >> shift == 0)
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        to[n++] = "0123456789abcdef"[n_bytes >> shift & 15];
    to[n++] = '\r';
    to[n++] = '\n';
    return n;
}

/* Write a piece of a body: small ones to the outbox, large ones to the sink. */
static bool put_piece(struct nj_h1 *h, const struct out *to, const struct nj_slice *slice)
{
    if (slice->n_bytes < NJ__H1_COPY_BELOW_BYTES)
        return put_bytes(h, (const char *)slice->data, slice->n_bytes);
    flush(h, to, UINT32_MAX); /* the sink has room for it and for the piece */
    if (h->write_closed)
        return false;
    if (to->sink->refer(to->ctx, slice))
        return true;
    nj__h1_out_of_memory(h);
    return false;
}

static bool put_chunk(struct nj_h1 *h, const struct out *to, const struct nj_slice *slice)
{
    char size[NJ__H1_CHUNK_BYTES];
    uint32_t n = put_chunk_size(size, slice->n_bytes);

    return put_bytes(h, size, n) && put_piece(h, to, slice) && put_bytes(h, "\r\n", 2);
}

/* The body has returned the next piece. */
static void take_piece(struct nj_h1 *h, const struct out *to, const struct nj_slice *slice)
{
    struct nj_body *body = h->body;

    if (!(h->framing == NJ__H1_CHUNKED ? put_chunk(h, to, slice) : put_piece(h, to, slice)))
        return;
    body->ops->advance(body, slice->n_bytes);
    nj_count_n(h->ctx->counters, NJ_C_body_bytes, slice->n_bytes);
    h->out_left -= slice->n_bytes;
    if (h->body && body->ops->remaining(body) == 0)
        end_body(h, false);
}

/* Send the next piece of the body, of at most `n_max` bytes. */
static void send_piece(struct nj_h1 *h, const struct out *to, uint32_t n_max)
{
    struct nj_body *body = h->body;
    struct nj_slice slice;

    if (!body || body->ops->remaining(body) == 0) {
        end_body(h, false);
        return;
    }
    bool is_over = h->out_left == 0; /* has it more bytes? */
    n_max = is_over ? 1 : (uint32_t)nj_min_u64(n_max, h->out_left);
    h->deferred = true; /* before peek: the body may call nj_h1_resume() in it */
    int got = body->ops->peek(body, n_max, &slice);
    if (got == 0 && body->ops->remaining(body) > 0)
        return;
    h->deferred = false;
    NJ_ASSERT(got <= (int)n_max);
    slice.n_bytes = (uint32_t)got;
    if (got < 0)
        h->reset = true;
    else if (got == 0 || is_over)
        end_body(h, got > 0);
    else
        take_piece(h, to, &slice);
}

void nj__h1_send_small_body(struct nj_h1 *h)
{
    const struct out to = {NULL, NULL};
    uint64_t n;

    while (can_send(h) && h->body && nj__h1_n_unsent(h) < NJ__H1_BATCH_BYTES &&
           (n = h->body->ops->remaining(h->body)) < NJ__H1_COPY_BELOW_BYTES)
        send_piece(h, &to, (uint32_t)n);
}

/* ---- the connection ---- */

/* Write until nothing is left, the body has no bytes, or the sink has too little room. */
static void write_out(struct nj_h1 *h, const struct out *to)
{
    uint32_t room;

    while ((nj__h1_n_unsent(h) > 0 || can_send(h)) && !h->write_closed &&
           (room = to->sink->room(to->ctx)) >= NJ__H1_SINK_ROOM_MIN) {
        uint32_t n = nj__h1_n_unsent(h);
        if (can_send(h) && n < NJ__H1_BATCH_BYTES)
            send_piece(h, to, room - n - NJ__H1_CHUNK_BYTES);
        else
            flush(h, to, room);
    }
}

/* End the request if its response is sent, or was given up. */
static void end_request(struct nj_h1 *h)
{
    if (h->reset) {
        h->must_reset |= nj__h1_n_unsent(h) > 0; /* the sink does not take it, and never may */
        h->out_at = h->out.n = 0;
        nj__h1_request_close(h, false);
    } else if (h->is_sent && h->out.n == 0) {
        nj__h1_response_sent(h);
    }
}

int nj_h1_output(struct nj_h1 *h, const struct nj_byte_sink *sink, void *sink_ctx)
{
    const struct out to = {sink, sink_ctx};

    NJ_ASSERT(!h->busy);
    h->busy = true;
    write_out(h, &to);
    if (h->open && !h->write_closed)
        end_request(h);
    h->busy = false;
    if (h->out.n == 0 || h->write_closed) {
        h->out_at = 0;
        nj__h1_buf_free(h, &h->out);
    }
    return h->write_closed ? -1 : 0;
}
