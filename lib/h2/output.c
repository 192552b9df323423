/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output: queued frames and DATA (RFC 9113 4.1, 6.1).
 *
 * All frames but DATA are appended to the outbox when they arise (outbox.c). DATA frames are made
 * only when the sink has room, after the content of the outbox. Small pieces of a body are copied
 * into the outbox, so many responses need one call of the sink. Before a large piece the outbox is
 * flushed, and the sink takes a reference.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/assert.h"
#include "telem/counters_http.h"

/* Body pieces below this are copied next to their frame header: cheaper than a reference. */
#define COPY_BELOW_BYTES 512u
/* Bytes collected before the sink is called. The outbox's first buffer holds these and one more
 * copied frame. */
#define BATCH_BYTES      (NJ__H2_OUTBOX_BYTES_FIRST - NJ__H2_FRAME_HEAD - COPY_BELOW_BYTES)

/* Finish the streams whose last byte was written to the sink. */
static void finish_flushed(struct nj_h2 *h)
{
    while (!nj_list_empty(&h->flushing)) {
        struct nj_h2_stream *st = nj_container_of(h->flushing.next, struct nj_h2_stream, queue);
        if ((int32_t)(h->out_passed - st->flush_mark) < 0)
            return;
        nj_list_del(&st->queue);
        if (st->reset)
            nj__h2_stream_destroy(st);
        else
            nj__h2_response_sent(st);
    }
}

/* Write up to `n_max` bytes of the outbox to the sink. */
static void flush(struct nj_h2 *h, uint32_t n_max)
{
    uint32_t n = nj__h2_n_unflushed(h) < n_max ? nj__h2_n_unflushed(h) : n_max;

    if (n == 0)
        return;
    if (!h->sink->copy(h->sink_ctx, h->out.p + h->out_at, n)) {
        nj__h2_out_of_memory(h);
        return;
    }
    h->out_at += n;
    h->out_passed += n;
    if (nj__h2_n_unflushed(h) == 0)
        h->out_at = h->out.n = h->n_acks = h->n_reset_bytes = 0;
    finish_flushed(h);
}

/* ---- DATA ---- */

/* The body ended with an earlier frame. */
static void end_after_body(struct nj_h2_stream *st)
{
    if (nj__h2_put_body_end(st))
        nj__h2_response_sent(st);
}

/* The body ended with the current frame, which has END_STREAM unless trailers follow. */
static void end_with_frame(struct nj_h2_stream *st)
{
    st->end_queued = true;
    if (!st->trailers || nj__h2_put_body_end(st))
        nj__h2_response_sent(st);
}

/* The body returned no bytes: it has ended, or has none yet. */
static void peek_empty(struct nj_h2_stream *st)
{
    if (st->body->ops->remaining(st->body) == 0) {
        st->deferred = false;
        end_after_body(st);
    } else if (st->deferred) { /* nj_h2_resume() was not called during peek */
        nj_list_del(&st->queue);
    }
}

/* Write one DATA frame: small ones to the outbox, large ones to the sink. */
static bool emit_data(struct nj_h2_stream *st, const struct nj_slice *slice, uint8_t flags)
{
    struct nj_h2 *h = st->h;
    uint32_t n = slice->n_bytes;
    bool copied = n < COPY_BELOW_BYTES;
    uint8_t *p = nj__h2_out_extend(h, NJ__H2_FRAME_HEAD + (copied ? n : 0));

    if (!p)
        return false;
    p = nj__h2_put_frame_head(p, n, NJ__H2_DATA, flags, (uint32_t)st->id);
    if (copied) {
        memcpy(p, slice->data, n);
        return true;
    }
    flush(h, UINT32_MAX); /* the sink has room, since the frame was sized to fit */
    if (!h->write_closed && h->sink->refer(h->sink_ctx, slice))
        return true;
    nj__h2_out_of_memory(h);
    return false;
}

/* Payload bytes permitted by the peer's windows and frame size. */
static uint32_t data_allowed(const struct nj_h2_stream *st)
{
    int32_t n = st->window < st->h->send_window ? st->window : st->h->send_window;
    return n < (int32_t)st->h->data_max ? (uint32_t)n : st->h->data_max;
}

/* Send the next DATA frame of a response; frame and header fit into `room`. */
static void send_data(struct nj_h2_stream *st, uint32_t room)
{
    struct nj_h2 *h = st->h;
    struct nj_body *body = st->body;
    uint32_t most = data_allowed(st), n_max = most;
    struct nj_slice slice;

    if (n_max > room - NJ__H2_FRAME_HEAD)
        n_max = room - NJ__H2_FRAME_HEAD;
    uint64_t rest = body->ops->remaining(body);
    if (rest == 0) {
        end_after_body(st);
        return;
    }
    /* Set before peek: the body may call nj_h2_resume() as soon as peek returned 0. */
    st->deferred = true;
    int got = body->ops->peek(body, n_max, &slice);
    if (got == 0) {
        peek_empty(st);
        return;
    }
    st->deferred = false;
    if (got < 0) {
        nj__h2_body_close(st);
        nj_h2_reset_stream(st, NJ_H2_INTERNAL_ERROR);
        return;
    }
    uint32_t n = slice.n_bytes = (uint32_t)got;
    NJ_ASSERT(n <= n_max);
    if (rest == NJ_BODY_LEN_UNKNOWN)
        rest = body->ops->remaining(body); /* the peek may have found the end */
    NJ_ASSERT(rest >= n);
    bool last = rest == n;
    st->window -= got;
    h->send_window -= got;
    if (!emit_data(st, &slice, last && !st->trailers ? NJ__H2_FLAG_END_STREAM : 0))
        return;
    body->ops->advance(body, n);
    nj_count_n(h->core->counters, NJ_C_body_bytes, n);
    nj__h2_glitch_data_sent(h, n, n == most && !last);
    if (st->reset)
        return;
    if (last)
        end_with_frame(st);
    else if (st->window <= 0)
        nj_list_del(&st->queue);
    else
        nj__h2_reschedule(st);
}

/* Send DATA of ready streams until the sink must be called. */
static void send_ready(struct nj_h2 *h, uint32_t room)
{
    uint32_t passed = h->out_passed;

    while (!nj_list_empty(&h->ready) && h->send_window > 0 && !h->end) {
        struct nj_h2_stream *st = nj_container_of(h->ready.next, struct nj_h2_stream, queue);
        uint32_t n = nj__h2_n_unflushed(h);
        if (n >= BATCH_BYTES || room < n + NJ__H2_SINK_ROOM_MIN || h->out_passed != passed)
            return;
        if (st->window <= 0) /* reduced by SETTINGS */
            nj_list_del(&st->queue);
        else
            send_data(st, room - n);
    }
}

static bool can_send_data(const struct nj_h2 *h)
{
    return !nj_list_empty(&h->ready) && h->send_window > 0;
}

static void write_out(struct nj_h2 *h)
{
    uint32_t room;

    while ((nj__h2_n_unflushed(h) > 0 || can_send_data(h)) && !h->end &&
           (room = h->sink->room(h->sink_ctx)) >= NJ__H2_SINK_ROOM_MIN) {
        uint32_t passed = h->out_passed;
        if (nj__h2_n_unflushed(h) <= room)
            send_ready(h, room);
        if (h->out_passed == passed && nj__h2_n_unflushed(h) > 0 &&
            !h->write_closed) /* else there is less room */
            flush(h, room);
    }
    while (h->end && !h->write_closed && nj__h2_n_unflushed(h) > 0)
        flush(h, UINT32_MAX);
}

int nj_h2_output(struct nj_h2 *h, const struct nj_byte_sink *sink, void *sink_ctx)
{
    NJ_ASSERT(!h->busy);
    h->busy = true;
    h->sink = sink;
    h->sink_ctx = sink_ctx;
    if (!h->write_closed)
        write_out(h);
    h->sink = NULL;
    h->busy = false;
    if (h->out.n == 0 || h->write_closed) {
        h->out_at = 0;
        nj__h2_buf_free(h, &h->out);
    }
    return nj__h2_goaway_if_ended(h);
}
