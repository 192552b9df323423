/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of a connection (RFC 9112 9), and queries of its owner. */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "telem/counters_conn.h"

struct nj_h1 *nj_h1_open(struct nj_h1_context *ctx, void *user, bool is_tls, bool is_trusted)
{
    bool is_full = nj_alloc_would_exceed(ctx->alloc, sizeof(struct nj_h1));
    struct nj_h1 *h = is_full ? NULL : nj_alloc_zero(ctx->alloc, sizeof *h);

    if (is_full)
        nj_count(ctx->counters, NJ_C_h2_full);
    if (!h)
        return NULL;
    h->ctx = ctx;
    h->user = user;
    h->is_tls = is_tls;
    h->is_secured = is_tls || is_trusted;
    h->unfinished_since = NJ_NEVER;
    ctx->n_conns++;
    return h;
}

void nj_h1_prefetch(const struct nj_h1 *h)
{
    for (size_t at = 0; at < sizeof *h; at += NJ_CACHE_LINE)
        __builtin_prefetch((const uint8_t *)h + at);
}

void nj_h1_close(struct nj_h1 *h)
{
    struct nj_h1_context *ctx = h->ctx;

    NJ_ASSERT(!h->busy);
    h->write_closed = true; /* calls made by the callback below have no effect */
    nj__h1_request_close(h, false);
    nj_buf_free(ctx->alloc, &h->out);
    nj_alloc_free(ctx->alloc, h);
    ctx->n_conns--;
}

bool nj_h1_is_finished(const struct nj_h1 *h)
{
    return h->ended && !h->open && (nj__h1_n_unsent(h) == 0 || h->write_closed);
}

bool nj_h1_must_reset(const struct nj_h1 *h)
{
    return h->must_reset || h->write_closed ||
           (h->open && h->has_response && h->framing == NJ__H1_BY_CLOSE);
}

bool nj_h1_rest_may_come(const struct nj_h1 *h)
{
    return h->ended && !h->open && h->rest_may_come && h->read != NJ__H1_READ_HEAD &&
           h->read != NJ__H1_READ_DONE;
}

uint32_t nj_h1_n_requests(const struct nj_h1 *h)
{
    return h->open;
}

bool nj_h1_is_idle(const struct nj_h1 *h)
{
    return !h->open && nj__h1_n_unsent(h) == 0;
}

uint32_t nj_h1_buffered_bytes(const struct nj_h1 *h)
{
    return h->in.room + h->out.room;
}

uint32_t nj_h1_request_number(const struct nj_h1 *h)
{
    return h->number;
}

void *nj_h1_user(const struct nj_h1 *h)
{
    return h->user;
}

void nj_h1_set_request_user(struct nj_h1 *h, void *user)
{
    h->request_user = user;
}

void *nj_h1_request_user(const struct nj_h1 *h)
{
    return h->request_user;
}
