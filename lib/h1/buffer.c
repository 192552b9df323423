/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a connection. They are freed when empty. */
#include "h1/h1_internal.h"

#include "base/compiler.h"

void nj__h1_out_of_memory(struct nj_h1 *h)
{
    h->write_closed = true; /* the sink may hold part of a response */
    h->ended = true;
}

/* Ensure room for `n` more bytes. Input is refused beyond the memory limit. */
static bool reserve(struct nj_h1 *h, struct nj__h1_buf *b, uint32_t n)
{
    if (nj_likely(b->room - b->n >= n))
        return true;
    uint32_t first = b == &h->out ? NJ__H1_OUTBOX_BYTES_FIRST : 0;
    uint32_t room = nj_max_u32(nj_max_u32(b->n + n, 2 * b->room), first);
    uint8_t *p = NULL;
    if (b == &h->out || !nj_alloc_would_exceed(h->ctx->alloc, room))
        p = nj_alloc_resize(h->ctx->alloc, b->p, room);
    if (!p) {
        nj__h1_out_of_memory(h);
        return false;
    }
    b->p = p;
    b->room = room;
    return true;
}

bool nj__h1_buf_append(struct nj_h1 *h, struct nj__h1_buf *b, const uint8_t *data, uint32_t n)
{
    if (!reserve(h, b, n))
        return false;
    if (n > 0)
        memcpy(b->p + b->n, data, n);
    b->n += n;
    return true;
}

void nj__h1_buf_free(struct nj_h1 *h, struct nj__h1_buf *b)
{
    nj_alloc_free(h->ctx->alloc, b->p);
    *b = (struct nj__h1_buf){0};
}

uint8_t *nj__h1_out_room(struct nj_h1 *h, uint32_t n_bytes)
{
    struct nj__h1_buf *out = &h->out;

    if (nj_unlikely(out->room - out->n < n_bytes && h->out_at > 0)) {
        out->n = nj__h1_n_unsent(h);
        memmove(out->p, out->p + h->out_at, out->n);
        h->out_at = 0;
    }
    return nj_likely(!h->write_closed && reserve(h, out, n_bytes)) ? out->p + out->n : NULL;
}

bool nj__h1_out_append(struct nj_h1 *h, const void *from, uint32_t n)
{
    uint8_t *p = nj__h1_out_room(h, n);

    if (!p)
        return false;
    memcpy(p, from, n);
    h->out.n += n;
    return true;
}
