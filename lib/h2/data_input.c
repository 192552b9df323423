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

#include "base/assert.h"
#include "base/limits.h"

bool nj__h2_body_wanted(const struct nj_h2_stream *st)
{
    return st && st->announced && !st->reset && st->h->core->events->on_data;
}

static struct nj_h2_stream *stream_at_hand(const struct nj_h2 *h)
{
    struct nj_h2_stream *st = nj__h2_find(h, h->frame.id);
    return st && !st->reset ? st : NULL;
}

/* RFC 9113 8.1.1: the body must match content-length. Called once per frame, when its number of
 * body bytes is known. */
static void promised(struct nj_h2 *h, struct nj_h2_stream *st, uint32_t n_bytes)
{
    if (!st || st->length_left == NJ__H2_NO_LENGTH)
        return;
    if (n_bytes > st->length_left)
        nj__h2_stream_error(h, h->frame.id, NJ__H2_PROTOCOL_ERROR);
    else
        st->length_left -= n_bytes;
}

void nj__h2_data_begin(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    struct nj_h2_stream *st = stream_at_hand(h);

    nj__h2_glitch_data_begins(h, st);
    h->pad = 0;
    h->pad_wanted = f->flags & NJ__H2_PADDED;
    if (!nj__h2_window_came(h, f->n_bytes)) {
        nj__h2_broken(h, NJ__H2_FLOW_CONTROL_ERROR);
        return;
    }
    if (st && f->n_bytes > NJ_H2_STREAM_WINDOW_BYTES - st->n_came) {
        nj__h2_stream_error(h, f->id, NJ__H2_FLOW_CONTROL_ERROR);
        return;
    }
    if (st)
        st->n_came += f->n_bytes;
    if (!h->pad_wanted)
        promised(h, st, f->n_bytes);
}

/* Return bytes that are not passed to the owner. */
static void done(struct nj_h2 *h, struct nj_h2_stream *st, uint32_t n_bytes)
{
    nj__h2_window_done(h, n_bytes);
    if (st)
        nj__h2_stream_window_done(st, n_bytes);
}

/* Process the Pad Length field. False: it exceeds the payload. */
static bool padding(struct nj_h2 *h, uint8_t pad)
{
    struct nj_h2_stream *st = stream_at_hand(h);

    h->pad_wanted = false;
    h->left--;
    if (pad > h->left) {
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
        return false;
    }
    h->pad = pad;
    done(h, st, 1u + pad);
    promised(h, st, h->left - pad);
    return true;
}

static void content(struct nj_h2 *h, const uint8_t *data, uint32_t n_bytes)
{
    struct nj_h2_stream *st = stream_at_hand(h);

    if (!nj__h2_body_wanted(st)) {
        done(h, st, n_bytes);
        return;
    }
    st->n_held += n_bytes; /* at most the stream's window */
    h->core->events->on_data(h->user, st, data, n_bytes);
}

static void frame_ends(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    struct nj_h2_stream *st = nj__h2_find(h, f->id);

    if (!st)
        return;
    if (st->reset) {
        st->got_end |= (f->flags & NJ__H2_END_STREAM) != 0;
        return;
    }
    nj__h2_glitch_data_came(h, st, f->n_bytes - (f->flags & NJ__H2_PADDED ? 1u + h->pad : 0));
    if (h->end)
        return;
    if (f->flags & NJ__H2_END_STREAM)
        nj__h2_stream_ended(st);
}

void nj__h2_data(struct nj_h2 *h, const uint8_t *data, uint32_t n_bytes)
{
    if (n_bytes > 0 && h->pad_wanted) {
        if (!padding(h, *data))
            return;
        data++;
        n_bytes--;
    }
    uint32_t n_content = h->left > h->pad ? h->left - h->pad : 0;
    h->left -= n_bytes;
    if (n_bytes > n_content) /* the rest is pad bytes */
        n_bytes = n_content;
    if (n_bytes > 0)
        content(h, data, n_bytes);
    if (h->left == 0 && !h->end)
        frame_ends(h);
}

void nj_h2_consume(struct nj_h2_stream *st, size_t n_bytes)
{
    NJ_ASSERT(n_bytes <= st->n_held);
    st->n_held -= (uint32_t)n_bytes;
    if (n_bytes == 0)
        return;
    nj__h2_window_done(st->h, (uint32_t)n_bytes);
    nj__h2_stream_window_done(st, (uint32_t)n_bytes);
}
