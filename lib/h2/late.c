/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that go on although their response is complete.
 *
 * RFC 9113 8.1 lets a server tell its client by RST_STREAM(NO_ERROR) to stop sending. A client that
 * finds this next to the response it belongs to may take it for an error and drop the response
 * (curl 7.88 does). So the rest of the request is thrown away for a while: who ends it in that
 * time, or resets it by itself as it has got its answer, never meets a reset. The owner has seen
 * the stream's end, and only its number is kept here.
 */
#include "base/limits.h"
#include "h2/h2_internal.h"

/* What a client may have sent before it could read the response: a stream's window, and what lies
 * in its own buffers. */
#define LATE_BYTES_MAX   (2u * NJ_H2_STREAM_WINDOW_BYTES)
/* Of one connection; for more of them the reset goes at once. */
#define LATE_STREAMS_MAX 16u

static void stop(struct nj_h2_stream *st)
{
    nj__h2_stream_reset(st, NJ__H2_NO_ERROR);
}

void nj__h2_late_begin(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    if (h->n_late == LATE_STREAMS_MAX || h->goaways == 2 || h->end) {
        stop(st);
        return;
    }
    nj__h2_stream_leave(st);
    st->late = true;
    h->n_late++;
    nj_list_push_back(&h->late, &st->link);
}

void nj__h2_late_came(struct nj_h2_stream *st, uint32_t n_bytes)
{
    st->n_late_bytes += n_bytes;
    if (st->n_late_bytes > LATE_BYTES_MAX)
        stop(st);
}

void nj__h2_late_stop(struct nj_h2 *h)
{
    for (struct nj_list *n = h->late.next; n != &h->late && !h->end; n = n->next)
        stop(nj_container_of(n, struct nj_h2_stream, link));
}
