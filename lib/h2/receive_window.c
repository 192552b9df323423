/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our receive windows of connection and stream (RFC 9113 5.2, 6.9).
 *
 * Each has two counters: bytes received and not yet returned, and the consumed part of these. When
 * half of a window is consumed, a WINDOW_UPDATE returns the consumed bytes.
 */
#include "h2/h2_internal.h"

#include "base/assert.h"
#include "base/limits.h"

bool nj__h2_conn_window_charge_data(struct nj_h2 *h, uint32_t n_bytes)
{
    if (n_bytes > h->window - h->n_received)
        return false;
    h->n_received += n_bytes;
    return true;
}

void nj__h2_conn_window_return(struct nj_h2 *h, uint32_t n_bytes)
{
    if (h->end)
        return;
    h->n_consumed += n_bytes;
    if (h->n_consumed < h->window / 2)
        return;
    uint32_t more = h->n_consumed;
    h->n_received -= more;
    h->n_consumed = 0;
    nj__h2_put_u32_frame(h, NJ__H2_WINDOW_UPDATE, 0, more);
}

/* No WINDOW_UPDATE for a stream whose request is complete, reset, or to be discarded
 * (half_closed.c). */
void nj__h2_stream_window_return(struct nj_h2_stream *st, uint32_t n_bytes)
{
    if (st->end_received || st->reset || st->half_closed || st->h->end)
        return;
    st->n_consumed += n_bytes;
    if (st->n_consumed < NJ_H2_STREAM_WINDOW_BYTES / 2)
        return;
    uint32_t more = st->n_consumed;
    st->n_received -= more;
    st->n_consumed = 0;
    nj__h2_put_u32_frame(st->h, NJ__H2_WINDOW_UPDATE, (uint32_t)st->id, more);
}

void nj_h2_consume(struct nj_h2_stream *st, size_t n_bytes)
{
    NJ_ASSERT(n_bytes <= st->n_held);
    st->n_held -= (uint32_t)n_bytes;
    if (n_bytes == 0)
        return;
    nj__h2_conn_window_return(st->h, (uint32_t)n_bytes);
    nj__h2_stream_window_return(st, (uint32_t)n_bytes);
}
