/* SPDX-License-Identifier: BSD-3-Clause */
#include "pause.h"

#include "conn/conn.h"
#include "h2/h2_internal.h"

static uint32_t ahead;

/* Requests that are complete and were not consumed in a pause. */
static struct {
    const struct nj_h2 *of;
    uint32_t n;
} whole;

void pause_after(uint32_t n_requests)
{
    ahead = n_requests;
    whole.n = 0;
}

/* Is a request complete with this frame? Its field section is never in several: clients are ours.
 */
static bool ends_request(uint8_t type, uint8_t flags)
{
    return (type == NJ__H2_HEADERS || type == NJ__H2_DATA) && flags & NJ__H2_END_STREAM;
}

/* Bytes up to the end of the request that is the last before a pause, or all. */
static size_t piece_of(const struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    size_t at = h->payload_left; /* of the frame at hand */

    if (!h->preface_seen)
        return n_bytes;
    if (h->n_hdr_buf > 0) { /* in the middle of a frame's head */
        at = NJ__H2_FRAME_HEAD - h->n_hdr_buf;
        return at < n_bytes ? at : n_bytes;
    }
    if (at > 0 && at <= n_bytes && ends_request(h->frame.type, h->frame.flags))
        whole.n++;
    while (whole.n < ahead && at + NJ__H2_FRAME_HEAD <= n_bytes) {
        const uint8_t *head = data + at;
        at += NJ__H2_FRAME_HEAD + (nj_get_be32(head) >> 8);
        whole.n += at <= n_bytes && ends_request(head[3], head[4]);
    }
    return whole.n >= ahead ? at : n_bytes;
}

int __real_nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes);
int __wrap_nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes);

/* Where the input ends with the last request before a pause, the shard consumes next, unless more
 * input comes first. */
int __wrap_nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    struct nj_conn *c = nj_h2_user(h);

    if (whole.of != h)
        whole.n = 0;
    whole.of = h;
    while (ahead > 0 && n_bytes > 0) {
        if (whole.n >= ahead) {
            whole.n = 0;
            nj__conn_serve_requests(c, c->shard->now);
        }
        size_t n = piece_of(h, data, n_bytes);
        if (__real_nj_h2_input(h, data, n) != 0)
            return -1;
        data += n;
        n_bytes -= n;
    }
    return n_bytes > 0 ? __real_nj_h2_input(h, data, n_bytes) : 0;
}
