/* SPDX-License-Identifier: BSD-3-Clause */
/* The context shared by all HTTP/1 connections of a shard: callbacks, limits, the head that is
 * parsed, and the encoded heads of responses. */
#include "h1/h1_internal.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/page_alloc.h"

struct nj_h1_context *nj_h1_context_new(const struct nj_h1_events *events,
                                        const struct nj_h1_limits *limits, struct nj_alloc *alloc,
                                        struct nj_counters *counters)
{
    struct nj_h1_context *ctx = nj_pages_map(sizeof *ctx, 0); /* has bytes of peers */
    if (!ctx)
        return NULL;
    ctx->events = events;
    ctx->limits = *limits;
    ctx->alloc = alloc;
    ctx->counters = counters;
    ctx->fields =
        malloc(limits->header_fields_max * sizeof *ctx->fields + limits->header_bytes_max + 1);
    ctx->scratch = (char *)(ctx->fields + limits->header_fields_max);
    if (ctx->fields)
        return ctx;
    nj_h1_context_free(ctx);
    return NULL;
}

void nj_h1_context_free(struct nj_h1_context *ctx)
{
    if (!ctx)
        return;
    NJ_ASSERT(ctx->n_conns == 0);
    free(ctx->fields);
    nj_pages_unmap(ctx, sizeof *ctx);
}

uint32_t nj_h1_context_n_conns(const struct nj_h1_context *ctx)
{
    return ctx->n_conns;
}
