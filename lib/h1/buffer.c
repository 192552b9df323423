/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a connection. All count against the memory limit, and are freed when empty. */
#include "h1/h1_internal.h"

#include "base/compiler.h"

void nj__h1_out_of_memory(struct nj_h1 *h)
{
    h->write_closed = true; /* the sink may hold part of a response */
    h->ended = true;
}

static bool grow(struct nj_h1 *h, struct nj__h1_buf *b, uint32_t n_bytes)
{
    uint32_t need = b->n + n_bytes, room = need > 2 * b->room ? need : 2 * b->room;

    if (b == &h->out && room < NJ__H1_OUTBOX_BYTES_FIRST)
        room = NJ__H1_OUTBOX_BYTES_FIRST;
    uint8_t *p = b != &h->out && nj_alloc_would_exceed(h->ctx->alloc, room)
                     ? NULL
                     : nj_alloc_resize(h->ctx->alloc, b->p, room);
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
    if (b->room - b->n < n && !grow(h, b, n))
        return false;
    memcpy(b->p + b->n, data, n);
    b->n += n;
    return true;
}

void nj__h1_buf_free(struct nj_h1 *h, struct nj__h1_buf *b)
{
    if (b->p)
        nj_alloc_free(h->ctx->alloc, b->p);
    *b = (struct nj__h1_buf){0};
}

uint8_t *nj__h1_out_room(struct nj_h1 *h, uint32_t n_bytes)
{
    struct nj__h1_buf *out = &h->out;

    if (nj_unlikely(h->write_closed))
        return NULL;
    if (nj_unlikely(out->room - out->n < n_bytes && h->out_at > 0)) {
        memmove(out->p, out->p + h->out_at, nj__h1_n_unsent(h));
        out->n -= h->out_at;
        h->out_at = 0;
    }
    if (nj_unlikely(out->room - out->n < n_bytes) && !grow(h, out, n_bytes))
        return NULL;
    return out->p + out->n;
}
