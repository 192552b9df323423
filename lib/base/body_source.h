/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between the source of a response body and its consumer, and the slices of bytes
 * that they exchange. */
#pragma once

#include <stdint.h>

#include "base/ref.h"

/* Bytes that `ref` keeps alive. To keep a slice after the call that returned it, take a reference.
 * `ref` is NULL for bytes with static lifetime. */
struct nj_slice {
    const uint8_t *data;
    uint32_t n_bytes;
    struct nj_ref *ref;
};

/*
 * The source of a response body. The consumer pulls: it asks for a byte only when the stream's
 * window, the connection's window and the send queue have room for it.
 * The owner embeds it as first member. Used only on the shard that created it.
 */
struct nj_body {
    const struct nj_body_ops *ops;
    void *waiter; /* set by whoever passes it to a consumer; the owner wakes it for new bytes */
};

#define NJ_BODY_LEN_UNKNOWN UINT64_MAX

/* Why a consumer makes no progress with a body. */
enum nj_blocked_by {
    NJ_BLOCKED_BY_NOTHING,       /* only its output limits it, or there is no body */
    NJ_BLOCKED_BY_BODY,          /* the body had no bytes, and was not resumed since */
    NJ_BLOCKED_BY_STREAM_WINDOW, /* the peer's flow-control window of the stream is exhausted */
    NJ_BLOCKED_BY_CONN_WINDOW,   /* the same of the connection */
};

struct nj_body_ops {
    /* Return the next bytes without consuming them.
     *   > 0  the number of bytes in *out, at most `n_max` (n_max > 0)
     *     0  none yet: body->waiter is woken when there are some, or on an error; perhaps before
     *        this returns
     *   < 0  error: the stream must be reset.
     * Not called after the last byte was consumed. */
    int (*peek)(struct nj_body *, uint32_t n_max, struct nj_slice *out);
    /* Consume `n_bytes`, at most the result of the last peek. */
    void (*advance)(struct nj_body *, uint32_t n_bytes);
    /* Bytes not yet consumed: exact, or NJ_BODY_LEN_UNKNOWN until the end is known. 0 after a peek
     * that returned 0 means the end of the body. */
    uint64_t (*remaining)(const struct nj_body *);
    /* The stream no longer needs the body, complete or not. Called exactly once. */
    void (*close)(struct nj_body *);
    /* The consumer will not peek for a while: release buffers that are cheap to get again. Called
     * at any time before close. Afterwards the consumer uses only slices that it holds a reference
     * to. May be NULL. */
    void (*rest)(struct nj_body *);
};
