/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control (RFC 9113 5.2, 6.9).
 *
 * Each receive window has two counters: bytes received and not yet returned, and the consumed part
 * of these. When half of a window is consumed, a WINDOW_UPDATE returns the consumed bytes.
 */
#include "h2/h2_internal.h"

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
 * (reset_after_response.c). */
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

static void conn_window_update(struct nj_h2 *h, uint32_t more)
{
    if (more == 0)
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
    else if ((int64_t)h->send_window + more > NJ__H2_WINDOW_MAX)
        nj__h2_conn_error(h, NJ_H2_FLOW_CONTROL_ERROR);
    else
        h->send_window += (int32_t)more;
}

void nj__h2_window_update(struct nj_h2 *h, uint32_t id, uint32_t more)
{
    if (id == 0) {
        conn_window_update(h, more);
        return;
    }
    struct nj_h2_stream *st = nj__h2_find_stream(h, id);
    if (!st || st->reset)
        return;
    if (more == 0) {
        nj__h2_stream_error(h, id, NJ_H2_PROTOCOL_ERROR);
    } else if ((int64_t)st->window + more > NJ__H2_WINDOW_MAX) {
        nj__h2_stream_error(h, id, NJ_H2_FLOW_CONTROL_ERROR);
    } else {
        st->window += (int32_t)more;
        nj__h2_schedule(st);
    }
}

static bool add_to_windows(const struct nj_list *streams, int64_t more)
{
    for (struct nj_list *n = streams->next; n != streams; n = n->next) {
        struct nj_h2_stream *st = nj_container_of(n, struct nj_h2_stream, link);
        if (st->window + more > NJ__H2_WINDOW_MAX)
            return false;
        st->window = (int32_t)(st->window + more);
        nj__h2_schedule(st);
    }
    return true;
}

/* RFC 9113 6.9.2: the change applies to all streams and may make their windows negative. */
void nj__h2_set_initial_window(struct nj_h2 *h, uint32_t n_bytes)
{
    if (n_bytes > NJ__H2_WINDOW_MAX) {
        nj__h2_conn_error(h, NJ_H2_FLOW_CONTROL_ERROR);
        return;
    }
    int64_t more = (int64_t)n_bytes - h->initial_window;
    h->initial_window = (int32_t)n_bytes;
    if (!add_to_windows(&h->streams, more) || !add_to_windows(&h->half_closed, more))
        nj__h2_conn_error(h, NJ_H2_FLOW_CONTROL_ERROR);
}
