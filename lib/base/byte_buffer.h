/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes in memory of an nj_alloc, to which more are appended. */
#pragma once

#include <string.h>

#include "base/compiler.h"
#include "base/size_class_alloc.h"

/* The first `n` bytes at `p` are in use. Zeros: an empty one without memory. */
struct nj_buf {
    uint8_t *p;
    uint32_t n, room;
};

/* Give the buffer room for `n_bytes` more, and for `least` at all. `is_bounded`: not beyond the
 * bound of the allocator. False: out of memory, and nothing has changed. */
bool nj_buf_grow(struct nj_alloc *a, struct nj_buf *b, uint32_t n_bytes, uint32_t least,
                 bool is_bounded);
void nj_buf_free(struct nj_alloc *a, struct nj_buf *b);

/* The same as nj_buf_grow() if there is too little room. */
static inline bool nj_buf_reserve(struct nj_alloc *a, struct nj_buf *b, uint32_t n_bytes,
                                  uint32_t least, bool is_bounded)
{
    return nj_likely(b->room - b->n >= n_bytes) || nj_buf_grow(a, b, n_bytes, least, is_bounded);
}

/* Append a copy of `n_bytes`; as nj_buf_reserve(). */
static inline bool nj_buf_append(struct nj_alloc *a, struct nj_buf *b, const uint8_t *data,
                                 uint32_t n_bytes, uint32_t least, bool is_bounded)
{
    if (!nj_buf_reserve(a, b, n_bytes, least, is_bounded))
        return false;
    if (n_bytes > 0)
        memcpy(b->p + b->n, data, n_bytes);
    b->n += n_bytes;
    return true;
}
