/* SPDX-License-Identifier: BSD-3-Clause */
/* What all HTTP/2 connections of a shard share: callbacks, options and the allocator. */
#include "h2/h2_internal.h"

#include <stdlib.h>

#include "base/assert.h"

const struct nj_h2_limits nj_h2_limits_default = {
    .concurrent_streams_max = 128,
    .header_bytes_max = 32 * 1024,
    .header_fields_max = 128,
    .glitches_max = 1000,
    .bytes_max = (size_t)2 << 30, /* 65,536 connections with 15 streams each */
};

/* Acknowledgments of PING and SETTINGS that may wait for the peer to read. */
#define ACKS_PENDING_MAX       100
/* nghttp2 1.52 counts reads, not CONTINUATION frames, so a slow sender would trip over its limit.
 * We count frames ourselves (glitch.c). */
#define CONTINUATIONS_NO_LIMIT (1u << 30)
/* nghttp2's limit of resets reads a clock. Ours (glitch.c) needs none. */
#define RESETS_NO_LIMIT        (UINT64_C(1) << 60)

static void *mem_malloc(size_t n_bytes, void *core)
{
    return nj__h2_alloc(&((struct nj_h2_core *)core)->alloc, n_bytes);
}

static void mem_free(void *p, void *core)
{
    nj__h2_alloc_free(&((struct nj_h2_core *)core)->alloc, p);
}

static void *mem_calloc(size_t n, size_t each, void *core)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, each, &n_bytes))
        return NULL;
    return nj__h2_alloc_zero(&((struct nj_h2_core *)core)->alloc, n_bytes);
}

static void *mem_realloc(void *p, size_t n_bytes, void *core)
{
    return nj__h2_alloc_resize(&((struct nj_h2_core *)core)->alloc, p, n_bytes);
}

static bool set_callbacks(struct nj_h2_core *core)
{
    if (nghttp2_session_callbacks_new(&core->callbacks) != 0)
        return false;
    nghttp2_session_callbacks *c = core->callbacks;
    nghttp2_session_callbacks_set_on_begin_frame_callback(c, nj__h2_on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, nj__h2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback2(c, nj__h2_on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback2(c, nj__h2_on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, nj__h2_on_frame_recv);
    if (core->events->on_data)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, nj__h2_on_data_chunk);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, nj__h2_on_invalid_frame);
    nghttp2_session_callbacks_set_send_data_callback(c, nj__h2_on_send_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, nj__h2_on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(c, nj__h2_on_frame_not_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, nj__h2_on_stream_close);
    return true;
}

static bool set_options(struct nj_h2_core *core)
{
    if (nghttp2_option_new(&core->option) != 0)
        return false;
    nghttp2_option *o = core->option;
    nghttp2_option_set_max_outbound_ack(o, ACKS_PENDING_MAX);
    nghttp2_option_set_max_continuations(o, CONTINUATIONS_NO_LIMIT);
    nghttp2_option_set_stream_reset_rate_limit(o, RESETS_NO_LIMIT, RESETS_NO_LIMIT);
    nghttp2_option_set_no_auto_window_update(o, core->events->on_data != NULL);
    nghttp2_option_set_builtin_recv_extension_type(o, NGHTTP2_PRIORITY_UPDATE);
    return true;
}

struct nj_h2_core *nj_h2_core_new(const struct nj_h2_events *events,
                                  const struct nj_h2_limits *limits, struct nj_counters *counters)
{
    struct nj_h2_core *core = calloc(1, sizeof *core);
    if (!core)
        return NULL;
    core->events = events;
    core->limits = limits ? *limits : nj_h2_limits_default;
    core->counters = counters;
    core->mem = (nghttp2_mem){.mem_user_data = core,
                              .malloc = mem_malloc,
                              .free = mem_free,
                              .calloc = mem_calloc,
                              .realloc = mem_realloc};
    nj__h2_alloc_init(&core->alloc);
    if (!set_callbacks(core) || !set_options(core)) {
        nj_h2_core_free(core);
        return NULL;
    }
    return core;
}

void nj_h2_core_free(struct nj_h2_core *core)
{
    if (!core)
        return;
    NJ_ASSERT(core->n_conns == 0);
    nghttp2_session_callbacks_del(core->callbacks);
    nghttp2_option_del(core->option);
    nj__h2_alloc_fini(&core->alloc);
    free(core);
}

uint32_t nj_h2_core_conns(const struct nj_h2_core *core)
{
    return core->n_conns;
}

size_t nj_h2_core_bytes_used(const struct nj_h2_core *core)
{
    return core->alloc.bytes_used;
}

void nj__h2_core_fail_after(struct nj_h2_core *core, uint64_t n)
{
    core->alloc.fail_in = n;
}
