/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that go on although their response is complete.
 *
 * RFC 9113 8.1 lets a server tell its client by RST_STREAM(NO_ERROR) to stop sending. A client that
 * finds this next to the response it belongs to may take it for an error and drop the response
 * (curl 7.88 does). So a PING follows the response, and the reset the answer to it: then the client
 * has read the response before. Who ends the request by then, or resets it by itself, never meets a
 * reset. What comes of the request is thrown away, and its window is not opened again, so a client
 * can send no more than it was allowed to already. The owner has seen the stream's end, and only
 * its number is kept here.
 */
#include "h2/h2_internal.h"

#include <string.h>

/* Of one connection; for more of them, whose clients leave PINGs unanswered, the reset goes at
 * once.
 */
#define LATE_STREAMS_MAX 16u
#define PING_BYTES       8u

static const uint8_t late_ping[PING_BYTES] = "response";

static void stop(struct nj_h2_stream *st)
{
    nj__h2_stream_reset(st, NJ__H2_NO_ERROR);
}

static struct nj_h2_stream *late_of(struct nj_list *n)
{
    return nj_container_of(n, struct nj_h2_stream, link);
}

/* Has the client read the responses of all that are late now? */
static void ask(struct nj_h2 *h)
{
    uint8_t *p = nj__h2_put(h, NJ__H2_FRAME_HEAD + PING_BYTES);
    if (!p)
        return;
    memcpy(nj__h2_put_head(p, PING_BYTES, NJ__H2_PING, 0, 0), late_ping, PING_BYTES);
    h->late_asked = true;
    h->n_pings += h->n_pings < UINT8_MAX;
    for (struct nj_list *n = h->late.next; n != &h->late; n = n->next)
        late_of(n)->late_asked = true;
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
    if (!h->late_asked)
        ask(h);
}

void nj__h2_late_answered(struct nj_h2 *h, const uint8_t *p)
{
    bool more = false;

    if (!h->late_asked || memcmp(p, late_ping, PING_BYTES) != 0)
        return;
    h->late_asked = false;
    for (struct nj_list *n = h->late.next; n != &h->late && !h->end; n = n->next) {
        struct nj_h2_stream *st = late_of(n);
        if (st->late_asked)
            stop(st);
        else
            more = true;
    }
    if (more && !h->end)
        ask(h);
}

void nj__h2_late_stop(struct nj_h2 *h)
{
    for (struct nj_list *n = h->late.next; n != &h->late && !h->end; n = n->next)
        stop(late_of(n));
}
