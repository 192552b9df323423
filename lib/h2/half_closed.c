/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of request and response, and streams in state half-closed (local) (RFC 9113 5.1): the
 * response is complete, the request not.
 *
 * RFC 9113 8.1 lets a server send RST_STREAM(NO_ERROR) to end the sending of the client. A client
 * that reads the reset together with the response may treat it as an error and drop the response
 * (curl 7.88 does). Therefore a PING follows the response, and the reset follows the
 * acknowledgment, when the client has read the response. A client that completes or resets the
 * request before gets no reset. Further DATA of the request is discarded and its window is not
 * reopened, so the client can send only what was permitted before. on_stream_close was already
 * called for such a stream.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "telem/counters_http.h"

/* Limit per connection, for clients that do not acknowledge PINGs. Beyond it, streams are reset at
 * once. */
#define HALF_CLOSED_MAX 16u

static const uint8_t response_ping[NJ__H2_PING_BYTES] = "response";

static void reset_no_error(struct nj_h2_stream *st)
{
    nj_h2_reset_stream(st, NJ_H2_NO_ERROR);
}

static struct nj_h2_stream *stream_of(struct nj_list *n)
{
    return nj_container_of(n, struct nj_h2_stream, link);
}

/* Send a PING; its acknowledgment covers the responses of all streams now in the list. */
static void send_ping(struct nj_h2 *h)
{
    nj__h2_put_ping(h, response_ping);
    h->ping_open = true;
    for (struct nj_list *n = h->half_closed.next; n != &h->half_closed; n = n->next)
        stream_of(n)->pinged = true;
}

static void half_close(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    if (h->n_half_closed == HALF_CLOSED_MAX || h->goaways == 2 || h->end) {
        reset_no_error(st);
        return;
    }
    nj__h2_stream_detach_user(st);
    st->half_closed = true;
    h->n_half_closed++;
    nj_list_push_back(&h->half_closed, &st->link);
    if (!h->ping_open)
        send_ping(h);
}

void nj__h2_response_sent(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->complete = true;
    nj_list_del(&st->queue);
    nj__h2_body_close(st);
    nj_count(h->core->counters, NJ_C_responses);
    nj__h2_glitch_refund(h);
    if (nj_likely(st->end_received))
        nj__h2_stream_destroy(st);
    else
        half_close(st);
}

void nj__h2_request_ended(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->end_received = true;
    if (st->length_left > 0) {
        nj__h2_stream_error(h, (uint32_t)st->id, NJ_H2_PROTOCOL_ERROR);
        return;
    }
    if (st->shown_to_user && h->core->events->on_end)
        h->core->events->on_end(h->user, st);
    if (st->half_closed && !st->reset)
        nj__h2_stream_destroy(st);
}

void nj__h2_half_closed_on_ping_ack(struct nj_h2 *h, const uint8_t *p)
{
    bool more = false;

    if (!h->ping_open || memcmp(p, response_ping, NJ__H2_PING_BYTES) != 0)
        return;
    h->ping_open = false;
    for (struct nj_list *n = h->half_closed.next; n != &h->half_closed && !h->end; n = n->next) {
        struct nj_h2_stream *st = stream_of(n);
        if (st->pinged)
            reset_no_error(st);
        else
            more = true;
    }
    if (more && !h->end)
        send_ping(h);
}

void nj__h2_half_closed_reset_all(struct nj_h2 *h)
{
    for (struct nj_list *n = h->half_closed.next; n != &h->half_closed && !h->end; n = n->next)
        reset_no_error(stream_of(n));
}
