/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer's windows of connection and streams: WINDOW_UPDATE and SETTINGS_INITIAL_WINDOW_SIZE
 * (RFC 9113 5.2, 6.9). */
#include "h2/h2_internal.h"

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
