/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a protocol engine writes its output. */
#pragma once

#include "base/body_source.h"

/* Each call accepts all bytes offered or fails. `ctx` is the argument that came with the sink. */
struct nj_byte_sink {
    /* Bytes that the sink accepts now. Output is cut to fit. Only what an engine has queued when a
     * connection ends is written regardless of this limit. */
    uint32_t (*room)(void *ctx);
    /* Append a copy of `n_bytes`. False: out of memory; the engine then ends the connection. */
    bool (*copy)(void *ctx, const uint8_t *data, uint32_t n_bytes);
    /* Append a reference to body bytes; the sink takes its own reference on slice->ref. */
    bool (*refer)(void *ctx, const struct nj_slice *slice);
};
