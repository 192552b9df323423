/* SPDX-License-Identifier: BSD-3-Clause */
/* Output that waits for room in the sink. */
#include "h1/h1_internal.h"

bool nj__h1_check_memory(struct nj_h1 *h, bool ok)
{
    h->write_closed |= !ok; /* the sink may hold part of a response */
    h->ended |= !ok;
    return ok;
}

uint8_t *nj__h1_out_room(struct nj_h1 *h, uint32_t n_bytes)
{
    struct nj_buf *out = &h->out;

    if (nj_unlikely(out->room - out->n < n_bytes && h->out_at > 0)) {
        out->n = nj__h1_n_unsent(h);
        memmove(out->p, out->p + h->out_at, out->n);
        h->out_at = 0;
    }
    bool ok = !h->write_closed &&
              nj__h1_check_memory(
                  h, nj_buf_reserve(h->ctx->alloc, out, n_bytes, NJ__H1_OUTBOX_BYTES_FIRST, false));
    return nj_likely(ok) ? out->p + out->n : NULL;
}

bool nj__h1_out_append(struct nj_h1 *h, const void *from, uint32_t n)
{
    uint8_t *p = nj__h1_out_room(h, n);

    if (p)
        h->out.n = (uint32_t)(nj_str_put(p, (struct nj_str){from, n}) - h->out.p);
    return p != NULL;
}
