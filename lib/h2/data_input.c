/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received DATA: request bodies (RFC 9113 6.1, 6.9).
 *
 * Every byte of DATA counts against the windows of stream and connection until it is returned.
 * Pad bytes, and DATA of closed or unread streams, are returned at once. Bytes passed to on_data
 * are returned by nj_h2_consume(), or when the stream ends: an abandoned stream does not reduce the
 * window of others.
 */
#include "h2/h2_internal.h"

#include "base/limits.h"

static struct nj_h2_stream *current_stream(const struct nj_h2 *h)
{
    struct nj_h2_stream *st = nj__h2_find_stream(h, h->frame.id);
    return st && !st->reset ? st : NULL;
}

/* RFC 9113 8.1.1: the body must match content-length. Called once per frame, when its number of
 * body bytes is known. */
static void check_content_length(struct nj_h2 *h, struct nj_h2_stream *st, uint32_t n_bytes)
{
    if (!st || st->length_left == NJ__H2_NO_LENGTH)
        return;
    if (n_bytes > st->length_left)
        nj__h2_stream_error(h, h->frame.id, NJ_H2_PROTOCOL_ERROR);
    else
        st->length_left -= n_bytes;
}

void nj__h2_data_begin(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    struct nj_h2_stream *st = current_stream(h);

    nj__h2_glitch_data_begins(h, st);
    h->pad = 0;
    h->pad_length_due = f->flags & NJ__H2_FLAG_PADDED;
    if (!nj__h2_conn_window_charge_data(h, f->n_bytes)) {
        nj__h2_conn_error(h, NJ_H2_FLOW_CONTROL_ERROR);
        return;
    }
    if (st && f->n_bytes > NJ_H2_STREAM_WINDOW_BYTES - st->n_received) {
        nj__h2_stream_error(h, f->id, NJ_H2_FLOW_CONTROL_ERROR);
        return;
    }
    if (st)
        st->n_received += f->n_bytes;
    if (!h->pad_length_due)
        check_content_length(h, st, f->n_bytes);
}

/* Return bytes that are not passed to the owner. */
static void return_unread(struct nj_h2 *h, struct nj_h2_stream *st, uint32_t n_bytes)
{
    nj__h2_conn_window_return(h, n_bytes);
    if (st)
        nj__h2_stream_window_return(st, n_bytes);
}

/* Process the Pad Length field. False: it exceeds the payload. */
static bool read_pad_length(struct nj_h2 *h, uint8_t pad)
{
    struct nj_h2_stream *st = current_stream(h);

    h->pad_length_due = false;
    h->payload_left--;
    if (pad > h->payload_left) {
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
        return false;
    }
    h->pad = pad;
    return_unread(h, st, 1u + pad);
    check_content_length(h, st, h->payload_left - pad);
    return true;
}

static void take_content(struct nj_h2 *h, const uint8_t *data, uint32_t n_bytes)
{
    struct nj_h2_stream *st = current_stream(h);

    if (!nj__h2_has_body_reader(st)) {
        return_unread(h, st, n_bytes);
        return;
    }
    st->n_held += n_bytes; /* at most the stream's window */
    h->core->events->on_data(h->user, st, data, n_bytes);
}

static void data_frame_ends(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    struct nj_h2_stream *st = nj__h2_find_stream(h, f->id);

    if (!st)
        return;
    if (st->reset) {
        st->end_received |= (f->flags & NJ__H2_FLAG_END_STREAM) != 0;
        return;
    }
    nj__h2_glitch_data_frame_ends(h, st,
                                  f->n_bytes - (f->flags & NJ__H2_FLAG_PADDED ? 1u + h->pad : 0));
    if (h->end)
        return;
    if (f->flags & NJ__H2_FLAG_END_STREAM)
        nj__h2_request_ended(st);
}

void nj__h2_data_input(struct nj_h2 *h, const uint8_t *data, uint32_t n_bytes)
{
    if (n_bytes > 0 && h->pad_length_due) {
        if (!read_pad_length(h, *data))
            return;
        data++;
        n_bytes--;
    }
    uint32_t n_content = h->payload_left > h->pad ? h->payload_left - h->pad : 0;
    h->payload_left -= n_bytes;
    if (n_bytes > n_content) /* the rest is pad bytes */
        n_bytes = n_content;
    if (n_bytes > 0)
        take_content(h, data, n_bytes);
    if (h->payload_left == 0 && !h->end)
        data_frame_ends(h);
}
