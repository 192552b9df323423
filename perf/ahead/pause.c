/* SPDX-License-Identifier: BSD-3-Clause */
#include "pause.h"

#include "conn/conn.h"
#include "h2/h2_internal.h"

static uint32_t ahead;

/* Number of complete requests of the connection `h2` since its last pause. */
static struct {
    const struct nj_h2 *h2;
    uint32_t n;
} complete;

void pause_after(uint32_t n_requests)
{
    ahead = n_requests;
    complete.n = 0;
}

/* Whether a request is complete with this frame. The clients of this benchmark send each field
 * section in one frame. */
static bool ends_request(uint8_t type, uint8_t flags)
{
    return (type == NJ__H2_HEADERS || type == NJ__H2_DATA) && flags & NJ__H2_FLAG_END_STREAM;
}

/* Number of bytes of the next piece, which ends at the latest with the last request before a pause.
 * Counts the requests that are complete with this piece. */
static size_t piece_of(const struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    size_t at = h->payload_left; /* of the current frame */

    if (!h->preface_seen)
        return n_bytes;
    if (h->n_hdr_buf > 0) { /* only a part of a frame header has arrived */
        at = NJ__H2_FRAME_HEAD - h->n_hdr_buf;
        return at < n_bytes ? at : n_bytes;
    }
    if (at > 0 && at <= n_bytes && ends_request(h->frame.type, h->frame.flags))
        complete.n++;
    while (complete.n < ahead && at + NJ__H2_FRAME_HEAD <= n_bytes) {
        const uint8_t *head = data + at;
        at += NJ__H2_FRAME_HEAD + (nj_get_be32(head) >> 8);
        complete.n += at <= n_bytes && ends_request(head[3], head[4]);
    }
    return complete.n >= ahead ? at : n_bytes;
}

int __real_nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes);
int __wrap_nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes);

/* If the input ends with the last request before a pause, the shard consumes the requests in its
 * step. If more input arrives before that, this function consumes them first. */
int __wrap_nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    struct nj_conn *c = nj_h2_user(h);

    if (complete.h2 != h)
        complete.n = 0;
    complete.h2 = h;
    while (ahead > 0 && n_bytes > 0) {
        if (complete.n >= ahead) {
            complete.n = 0;
            nj__conn_serve_requests(c, c->conns->now);
        }
        size_t n = piece_of(h, data, n_bytes);
        if (__real_nj_h2_input(h, data, n) != 0)
            return -1;
        data += n;
        n_bytes -= n;
    }
    return n_bytes > 0 ? __real_nj_h2_input(h, data, n_bytes) : 0;
}
