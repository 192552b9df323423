/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the open request, and of the requests of a connection (RFC 9112 9.3, 9.6). */
#include "h1/h1_internal.h"

#include "telem/counters_http.h"

void nj__h1_body_close(struct nj_h1 *h)
{
    struct nj_body *body = h->body;

    h->body = NULL;
    h->deferred = false;
    if (body)
        body->ops->close(body);
}

void nj__h1_drop_input(struct nj_h1 *h)
{
    h->in_at = h->n_seen = 0;
    nj_buf_free(h->ctx->alloc, &h->in);
}

void nj__h1_end(struct nj_h1 *h)
{
    h->ended = true;
    nj__h1_drop_input(h);
}

void nj__h1_request_close(struct nj_h1 *h, bool complete)
{
    bool was_open = h->open;

    nj__h1_body_close(h);
    nj_buf_free(h->ctx->alloc, &h->trailers);
    if (complete)
        nj_count(h->ctx->counters, NJ_C_responses);
    else
        h->must_reset |= h->has_response && h->framing == NJ__H1_BY_CLOSE;
    h->rest_may_come &= complete;
    if (!complete || h->last)
        nj__h1_end(h);
    else if (h->read == NJ__H1_READ_DONE)
        h->read = NJ__H1_READ_HEAD;
    h->open = h->has_response = h->is_sent = h->reset = h->awaits_continue = false;
    h->n_held = 0;
    if (was_open)
        h->ctx->events->on_close(h->user, h, complete);
    h->request_user = NULL;
}

void nj_h1_drain(struct nj_h1 *h, bool has_unread)
{
    h->last = true;
    if (!h->open && h->n_seen == 0 && !has_unread) /* and no head has begun */
        nj__h1_end(h);
}

void nj_h1_reset(struct nj_h1 *h)
{
    h->last |= h->open;
    h->reset |= h->open && !h->is_sent; /* else it is too late for the response */
}
