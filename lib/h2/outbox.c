/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outbox of a connection: frames that wait for room in the sink (output.c), in the order in
 * which they arose.
 *
 * The outbox is freed when empty. Its size is bounded: it holds heads of open streams,
 * acknowledgments are limited in number, resets add glitches, and heads of streams that the peer
 * has reset are limited in bytes.
 */
#include "h2/h2_internal.h"

#include <string.h>

/* Unsent acknowledgments of PING and SETTINGS. */
#define ACKS_PENDING_MAX 100u
/* Size of the outbox: 128 streams may have heads of 8 KiB each and more. A single head may exceed
 * it. */
#define OUT_BYTES_MAX    (1280u * 1024u)
/* Bytes in the outbox of heads whose streams the peer has reset. */
#define RESET_BYTES_MAX  (128u * 1024u)

bool nj__h2_buf_reserve(struct nj_h2 *h, struct nj_buf *b, uint32_t n_bytes)
{
    bool is_out = b == &h->out; /* incomplete frames count against the memory limit, too */
    uint32_t least = is_out ? NJ__H2_OUTBOX_BYTES_FIRST : 0;

    if (nj_likely(nj_buf_reserve(h->core->alloc, b, n_bytes, least, !is_out)))
        return true;
    nj__h2_out_of_memory(h);
    return false;
}

void nj__h2_buf_free(struct nj_h2 *h, struct nj_buf *b)
{
    nj_buf_free(h->core->alloc, b);
}

/* Move the unsent bytes to the front of the buffer. */
static void compact(struct nj_h2 *h)
{
    if (h->out_at == 0)
        return;
    memmove(h->out.p, h->out.p + h->out_at, nj__h2_n_unflushed(h));
    h->out.n -= h->out_at;
    h->out_at = 0;
}

uint8_t *nj__h2_out_extend(struct nj_h2 *h, uint32_t n_bytes)
{
    if (nj_unlikely(h->write_closed))
        return NULL;
    if (nj_unlikely(h->out.room - h->out.n < n_bytes))
        compact(h);
    if (nj_unlikely(nj__h2_n_unflushed(h) > OUT_BYTES_MAX) && !h->goaway_queued)
        nj_h2_end_for_abuse(h, NJ_H2_ABUSE_UNREAD); /* the GOAWAY itself may exceed the limit */
    if (!nj__h2_buf_reserve(h, &h->out, n_bytes))
        return NULL;
    uint8_t *p = h->out.p + h->out.n;
    h->out.n += n_bytes;
    return p;
}

void nj__h2_put_u32_frame(struct nj_h2 *h, enum nj__h2_frame_type type, uint32_t id, uint32_t value)
{
    uint8_t *p = nj__h2_out_extend(h, NJ__H2_FRAME_HEAD + 4);
    if (p)
        nj_put_be32(nj__h2_put_frame_head(p, 4, type, 0, id), value);
}

void nj__h2_put_ping(struct nj_h2 *h, const uint8_t data[static NJ__H2_PING_BYTES])
{
    uint8_t *p = nj__h2_out_extend(h, NJ__H2_FRAME_HEAD + NJ__H2_PING_BYTES);
    if (!p)
        return;
    p = nj__h2_put_frame_head(p, NJ__H2_PING_BYTES, NJ__H2_PING, 0, 0);
    memcpy(p, data, NJ__H2_PING_BYTES);
    h->n_pings += h->n_pings < UINT8_MAX;
}

uint8_t *nj__h2_out_extend_for_ack(struct nj_h2 *h, uint32_t n_bytes)
{
    if (h->n_acks++ < ACKS_PENDING_MAX)
        return nj__h2_out_extend(h, n_bytes);
    nj_h2_end_for_abuse(h, NJ_H2_ABUSE_UNREAD); /* the peer does not read them */
    return NULL;
}

void nj__h2_cap_unsent_reset_responses(struct nj_h2 *h, uint32_t n_bytes)
{
    if (nj__h2_n_unflushed(h) == 0)
        return;
    h->n_reset_bytes += n_bytes;
    if (h->n_reset_bytes > RESET_BYTES_MAX)
        nj_h2_end_for_abuse(h, NJ_H2_ABUSE_UNREAD);
}

void nj__h2_stream_end_when_flushed(struct nj_h2_stream *st)
{
    struct nj_h2 *h = st->h;

    st->flush_mark = h->out_passed + nj__h2_n_unflushed(h);
    nj_list_del(&st->queue);
    nj_list_push_back(&h->flushing, &st->queue);
}
