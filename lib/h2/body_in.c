/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The body of a request on its way in.
 *
 * Every byte of DATA that came counts against two windows until it is given back. nghttp2 gives
 * back padding and what comes for streams that are gone; what was shown to the owner is given back
 * when the owner is done with it, and all that is left when the stream ends, so that a stream that
 * was abandoned takes nothing from those beside it.
 */
#include "h2/h2_internal.h"

#include "base/assert.h"

bool nj__h2_body_wanted(const struct nj_h2_stream *st)
{
    return st && st->announced && !st->reset && st->h->core->events->on_data;
}

static void check(struct nj_h2 *h, int rv)
{
    nj__h2_check_memory(h);
    if (rv != 0)
        nj__h2_end(h, NJ__H2_END_MEMORY);
}

void nj__h2_body_give_back(struct nj_h2 *h, uint32_t n_bytes)
{
    if (n_bytes > 0 && !h->end)
        check(h, nghttp2_session_consume_connection(h->session, n_bytes));
}

int nj__h2_on_data_chunk(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t n_bytes, void *user)
{
    struct nj_h2 *h = user;
    struct nj_h2_stream *st = nghttp2_session_get_stream_user_data(s, id);
    if (nj__h2_body_wanted(st)) {
        st->n_held += (uint32_t)n_bytes; /* at most the stream's window */
        h->core->events->on_data(h->user, st, data, n_bytes);
    } else if (st && st->late && !st->reset && !h->end) {
        check(h, nghttp2_session_consume(s, id, n_bytes)); /* it may come to its end */
    } else {
        nj__h2_body_give_back(h, (uint32_t)n_bytes);
    }
    return h->end ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

void nj__h2_body_end(struct nj_h2 *h, const nghttp2_frame *f)
{
    if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM) || h->end)
        return;
    struct nj_h2_stream *st = nghttp2_session_get_stream_user_data(h->session, f->hd.stream_id);
    if (!st)
        return;
    st->got_end = true;
    if (st->announced && !st->reset && h->core->events->on_end)
        h->core->events->on_end(h->user, st);
}

void nj_h2_consume(struct nj_h2_stream *st, size_t n_bytes)
{
    struct nj_h2 *h = st->h;
    NJ_ASSERT(n_bytes <= st->n_held);
    st->n_held -= (uint32_t)n_bytes;
    if (h->end || n_bytes == 0)
        return;
    /* Nobody needs a window of a stream on which nothing comes any more. */
    if (st->got_end || st->reset)
        nj__h2_body_give_back(h, (uint32_t)n_bytes);
    else
        check(h, nghttp2_session_consume(h->session, st->id, n_bytes));
}
