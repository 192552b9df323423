/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a protocol engine writes its output. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/body_source.h"

/* Bytes of one reference: an external buffer of an mbuf holds less than 64 KiB; whole pages. */
#define NJ_SINK_SLICE_MAX (60u * 1024u)

/* Each call accepts all bytes offered or fails. `ctx` is the argument that came with the sink. */
struct nj_byte_sink {
    /* Bytes that the sink accepts now. Output is cut to fit. Only what an engine has queued when a
     * connection ends is written regardless of this limit. */
    uint32_t (*room)(void *ctx);
    /* Append a copy of `n_bytes`. False: out of memory; the engine then ends the connection. */
    bool (*copy)(void *ctx, const uint8_t *data, uint32_t n_bytes);
    /* Append a reference to body bytes, at most NJ_SINK_SLICE_MAX of them; the sink takes its own
     * reference on slice->ref. */
    bool (*refer)(void *ctx, const struct nj_slice *slice);
};
