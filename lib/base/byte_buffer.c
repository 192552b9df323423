/* SPDX-License-Identifier: BSD-3-Clause */
/* Contract: byte_buffer.h. */
#include "base/byte_buffer.h"

#include "base/types.h"

bool nj_buf_grow(struct nj_alloc *a, struct nj_buf *b, uint32_t n_bytes, uint32_t least,
                 bool is_bounded)
{
    uint32_t room = nj_max_u32(nj_max_u32(b->n + n_bytes, 2 * b->room), least);
    uint8_t *p =
        is_bounded && nj_alloc_would_exceed(a, room) ? NULL : nj_alloc_resize(a, b->p, room);

    if (!p)
        return false;
    b->p = p;
    b->room = room;
    return true;
}

void nj_buf_free(struct nj_alloc *a, struct nj_buf *b)
{
    if (b->p)
        nj_alloc_free(a, b->p);
    *b = (struct nj_buf){0};
}
