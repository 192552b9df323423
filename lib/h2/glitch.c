/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer may waste of our time.
 *
 * Floods of HTTP/2 are made of frames that are legal one by one: resets, PINGs, SETTINGS, empty
 * DATA. Each costs the peer a point of the connection's budget, each useful thing gives one back,
 * and the connection ends when the budget is used up. A count needs no clock; the rate at which an
 * honest client uses the connection is what refills it.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/attr.h"

/* CONTINUATION frames of one header block. The hard limit of a 32 KiB head is 128 KiB of header
 * block, which is 8 full frames. */
#define CONTINUATIONS_MAX  64u
/* A frame below this that is ignored, and DATA that carries less, is nothing but work. Outgoing
 * DATA that a window cut below WINDOW_CUT_BYTES is a peer that doles out its window ("data
 * dribble"). */
#define TINY_BYTES         16u
#define WINDOW_CUT_BYTES   256u
/* DATA frames at least this big are progress and refund a point. */
#define DATA_BIG_BYTES     4096u
/* WINDOW_UPDATEs are needed: about one for the stream and one for the connection per DATA frame
 * that went out, and a few at the begin of a connection or a request. */
#define WINDOW_CREDIT_STEP 2u
#define WINDOW_CREDIT_MAX  65536u

int nj__h2_glitch(struct nj_h2 *h, uint32_t cost)
{
    if (h->end)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    h->glitches += cost;
    if (nj_likely(h->glitches <= h->core->limits.glitches_max))
        return 0;
    nj__h2_end(h, NJ__H2_END_ABUSE);
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void window_credit(struct nj_h2 *h)
{
    if (h->window_credit < WINDOW_CREDIT_MAX)
        h->window_credit += WINDOW_CREDIT_STEP;
}

void nj__h2_glitch_refund(struct nj_h2 *h)
{
    if (h->glitches > 0)
        h->glitches--;
}

void nj__h2_glitch_request(struct nj_h2 *h)
{
    nj__h2_glitch_refund(h);
    window_credit(h);
}

void nj__h2_glitch_data_sent(struct nj_h2 *h, size_t n_bytes, bool cut)
{
    if (cut && n_bytes < WINDOW_CUT_BYTES) {
        (void)nj__h2_glitch(h, NJ__H2_GLITCH);
        return;
    }
    window_credit(h);
    if (n_bytes >= DATA_BIG_BYTES)
        nj__h2_glitch_refund(h);
}

/*
 * Opening a stream closes all idle streams with smaller ids, so HEADERS on an id that was jumped
 * over is a connection error (RFC 9113 5.1.1). nghttp2 can't tell such an id from a stream that
 * has closed, and ignores both. We remember the last 64 ids, and let older ones pass.
 */
static bool id_in_order(struct nj_h2 *h, int32_t id_)
{
    uint32_t id = (uint32_t)id_;
    if (id_ <= 0 || id % 2 == 0)
        return true; /* nghttp2 refuses it */
    if (id > h->id_high) {
        uint32_t up = (id - h->id_high + 1) / 2; /* +1: before the first, id_high is 0 */
        h->id_seen = up < 64 ? h->id_seen << up : 0;
        h->id_seen |= 1;
        h->id_high = id;
        return true;
    }
    uint32_t back = (h->id_high - id) / 2;
    return back >= 64 || (h->id_seen >> back & 1);
}

/* CONTINUATION frames of an endless header block (CVE-2024-28182 and its kin). */
static int continuation(struct nj_h2 *h, uint32_t n_bytes, uint8_t flags)
{
    uint64_t max = (uint64_t)h->core->limits.header_bytes_max * NJ__H2_HEADER_HARD;
    h->block_bytes += n_bytes;
    if (++h->block_n > CONTINUATIONS_MAX || h->block_bytes > max) {
        nj__h2_end(h, NJ__H2_END_ABUSE);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (n_bytes == 0 && !(flags & NGHTTP2_FLAG_END_HEADERS))
        return nj__h2_glitch(h, NJ__H2_GLITCH_BAD);
    return 0;
}

/* Whole frame head of the input in h->walk. */
static int walk_frame(struct nj_h2 *h)
{
    const uint8_t *head = h->walk;
    uint32_t n_bytes = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    h->walk_n = 0;
    h->walk_skip = n_bytes;
    h->walk_data = head[3] == NGHTTP2_DATA;
    if (head[3] == NGHTTP2_CONTINUATION || head[3] == NGHTTP2_HEADERS)
        h->block_open = !(head[4] & NGHTTP2_FLAG_END_HEADERS);
    if (head[3] == NGHTTP2_CONTINUATION)
        return continuation(h, n_bytes, head[4]);
    h->n_begun++;
    if (head[3] == NGHTTP2_HEADERS) {
        h->block_bytes = n_bytes;
        h->block_n = 0;
    }
    h->n_small_came += n_bytes < TINY_BYTES;
    return 0;
}

int nj__h2_glitch_walk(struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    while (n_bytes > 0) {
        size_t n = h->walk_skip < n_bytes ? h->walk_skip : n_bytes;
        data += n;
        n_bytes -= n;
        h->walk_skip -= (uint32_t)n;
        n = sizeof h->walk - h->walk_n < n_bytes ? sizeof h->walk - h->walk_n : n_bytes;
        memcpy(h->walk + h->walk_n, data, n);
        data += n;
        n_bytes -= n;
        h->walk_n += (uint32_t)n;
        if (h->walk_n == sizeof h->walk && walk_frame(h) != 0)
            return -1;
    }
    return 0;
}

/* The head of a frame counts as the frame that follows those begun so far. */
nj_ns nj_h2_unfinished_since(struct nj_h2 *h, nj_ns now)
{
    bool in_head = h->walk_n > 0;
    bool in_frame = h->walk_skip > 0 && !(h->walk_data && h->n_streams + h->n_late > 0);
    uint32_t at = h->block_open || in_frame ? h->n_begun + 1 : in_head ? h->n_begun + 2 : 0;

    if (h->end || at == 0) {
        h->unfinished = 0;
        return NJ_NEVER;
    }
    if (at != h->unfinished)
        h->unfinished_at = now;
    h->unfinished = at;
    return h->unfinished_at;
}

void nj_h2_calm(struct nj_h2 *h)
{
    nj__h2_end(h, NJ__H2_END_ABUSE);
}

void nj__h2_glitch_ignored(struct nj_h2 *h)
{
    uint32_t n = h->n_small_came - h->n_small_seen;
    h->n_small_seen = h->n_small_came;
    if (n > 0)
        (void)nj__h2_glitch(h, n);
}

/* A request costs a point until its head turns out good (stream.c gives it back), so header blocks
 * that are ignored, refused or reset are counted however nghttp2 gets rid of them. */
static int begin_headers(struct nj_h2 *h, const nghttp2_frame_hd *hd)
{
    if (!id_in_order(h, hd->stream_id)) {
        nj__h2_end(h, NJ__H2_END_PROTOCOL);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return nj__h2_glitch(h, NJ__H2_GLITCH);
}

/* A small DATA frame whose bytes somebody reads: a byte of a chat is as good as any other. */
static bool is_read(struct nj_h2 *h, const nghttp2_frame_hd *hd)
{
    return hd->length > 0 && h->core->events->on_data &&
           nj__h2_body_wanted(nghttp2_session_get_stream_user_data(h->session, hd->stream_id));
}

int nj__h2_on_begin_frame(nghttp2_session *s, const nghttp2_frame_hd *hd, void *user)
{
    struct nj_h2 *h = user;
    if (hd->type == NGHTTP2_CONTINUATION)
        return 0;                /* walk_frame() did it */
    nj__h2_head_clear(&h->head); /* of a block that came to nothing */
    h->n_small_seen += hd->length < TINY_BYTES;
    switch (hd->type) {
    case NGHTTP2_HEADERS:
        return begin_headers(h, hd);
    case NGHTTP2_DATA:
        if (hd->length >= TINY_BYTES || hd->flags & NGHTTP2_FLAG_END_STREAM || is_read(h, hd))
            return 0;
        break;
    case NGHTTP2_WINDOW_UPDATE:
        if (h->window_credit > 0) {
            h->window_credit--;
            return 0;
        }
        break;
    case NGHTTP2_RST_STREAM:
        nj_count(h->core->counters, NJ_C_h2_reset_in);
        break;
    default: /* PING, SETTINGS, PRIORITY, GOAWAY */
        break;
    }
    return nj__h2_glitch(h, NJ__H2_GLITCH);
}

int nj__h2_glitch_data_came(struct nj_h2 *h, const nghttp2_frame *f)
{
    size_t n_bytes = f->hd.length - f->data.padlen;
    bool read = is_read(h, &f->hd);
    if (read && n_bytes >= DATA_BIG_BYTES)
        nj__h2_glitch_refund(h);
    if (f->hd.flags & NGHTTP2_FLAG_END_STREAM)
        return 0;
    if (read ? n_bytes > 0 : f->hd.length < TINY_BYTES || n_bytes >= TINY_BYTES)
        return 0; /* useful, or charged at its begin */
    return nj__h2_glitch(h, NJ__H2_GLITCH);
}

/* Called for connection errors too; then the points do not matter any more. */
int nj__h2_on_invalid_frame(nghttp2_session *s, const nghttp2_frame *f, int error, void *user)
{
    /* A client may open more streams than we allow until it has seen our SETTINGS; its HEADERS
     * frame has been charged already. */
    if (error == NGHTTP2_ERR_REFUSED_STREAM)
        return 0;
    return nj__h2_glitch(user, NJ__H2_GLITCH_BAD);
}
