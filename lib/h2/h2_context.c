/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The context shared by all HTTP/2 connections of a shard: callbacks, limits and HPACK state. It
 * also holds the fields and the head of the request being decoded (RFC 9113 8.3).
 */
#include "h2/h2_internal.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/limits.h"
#include "base/page_alloc.h"

const struct nj_h2_limits nj_h2_limits_default = {
    .concurrent_streams_max = 128,
    .header_bytes_max = NJ_REQUEST_HEAD_BYTES,
    .header_fields_max = NJ_REQUEST_FIELDS_MAX,
    .glitches_max = 1000,
};

struct nj_h2_context *nj_h2_context_new(const struct nj_h2_events *events,
                                        const struct nj_h2_limits *limits, struct nj_alloc *alloc,
                                        struct nj_counters *counters)
{
    struct nj_h2_context *core = nj_pages_map(sizeof *core, 0); /* has a key */
    if (!core)
        return NULL;
    core->events = events;
    core->limits = limits ? *limits : nj_h2_limits_default;
    core->counters = counters;
    core->alloc = alloc;
    core->hpack = nj__hpack_shared_new(core->alloc, &core->limits.hash_key);
    core->fields = calloc(core->limits.header_fields_max + 1, sizeof *core->fields);
    if (!core->hpack || !core->fields) {
        nj_h2_context_free(core);
        return NULL;
    }
    return core;
}

void nj_h2_context_free(struct nj_h2_context *core)
{
    if (!core)
        return;
    NJ_ASSERT(core->n_conns == 0);
    nj__hpack_shared_free(core->hpack);
    free(core->fields);
    nj_pages_unmap(core, sizeof *core);
}

uint32_t nj_h2_context_n_conns(const struct nj_h2_context *core)
{
    return core->n_conns;
}

size_t nj_h2_context_bytes_used(const struct nj_h2_context *core)
{
    size_t n_own = nj__hpack_shared_free_scratch(core->hpack);
    return core->alloc->bytes_used - n_own;
}

uint32_t nj_h2_buffered_bytes(const struct nj_h2 *h)
{
    return h->partial.room + h->out.room;
}
