/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: the connection preface and frames (RFC 9113 3.4, 4.1, 6).
 *
 * A frame contained in one input is processed in place. A frame split across inputs is collected in
 * a buffer that is freed when the frame is complete. DATA is processed as it arrives, and payload
 * of ignored frames is skipped.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/assert.h"

#define PING_BYTES         8u
#define PRIORITY_BYTES     5u
/* A PRIORITY_UPDATE with a longer priority field value is ignored. */
#define PRIORITY_VALUE_MAX 64u

/* ---- streams that are not open ---- */

/* The stream was neither opened, nor closed by the opening of a later one (RFC 9113 5.1.1). */
static bool is_idle(const struct nj_h2 *h, uint32_t id)
{
    return id > h->id_high || id % 2 == 0;
}

static bool bit_of(const struct nj_h2 *h, uint64_t bits, uint32_t id)
{
    uint32_t back = (h->id_high - id) / 2;
    return back < NJ__H2_IDS_KNOWN && (bits >> back & 1);
}

/* DATA or HEADERS may be received on the stream. False: a connection error, since only PRIORITY,
 * WINDOW_UPDATE and RST_STREAM may follow END_STREAM (RFC 9113 5.1). */
static bool may_come(struct nj_h2 *h, uint32_t id)
{
    const struct nj_h2_stream *st = nj__h2_find(h, id);

    if (st ? !st->got_end : !bit_of(h, h->id_ended, id))
        return true;
    nj__h2_broken(h, NJ__H2_STREAM_CLOSED);
    return false;
}

/* ---- RFC 9113 6.1 to 6.10: a frame header was received ---- */

static void data_begins(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->id == 0 || is_idle(h, f->id)) {
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    } else if (f->flags & NJ__H2_PADDED && f->n_bytes == 0) {
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    } else if (may_come(h, f->id)) {
        h->how = NJ__H2_BODY;
        if (bit_of(h, h->id_reset, f->id) && !nj__h2_find(h, f->id))
            nj__h2_stream_error(h, f->id, NJ__H2_STREAM_CLOSED);
        nj__h2_data_begin(h);
    }
}

/* Stream ids increase, and a skipped id can't be used later (RFC 9113 5.1.1). Ids older than the
 * last NJ__H2_IDS_KNOWN are treated as closed streams. */
static bool id_in_order(struct nj_h2 *h, uint32_t id)
{
    if (id <= h->id_high)
        return (h->id_high - id) / 2 >= NJ__H2_IDS_KNOWN || bit_of(h, h->id_seen, id);
    uint32_t up = (id - h->id_high + 1) / 2; /* +1: before the first, id_high is 0 */
    bool near = up < NJ__H2_IDS_KNOWN;
    h->id_seen = (near ? h->id_seen << up : 0) | 1;
    h->id_ended = near ? h->id_ended << up : 0;
    h->id_reset = near ? h->id_reset << up : 0;
    h->id_high = id;
    return true;
}

/* HEADERS adds a glitch that a valid request head removes, so ignored and rejected blocks count. */
static void headers_begin(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    bool is_new = f->id > h->id_high;

    if (f->id % 2 == 0 || !id_in_order(h, f->id)) {
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
        return;
    }
    if (!nj__h2_glitch_head(h) || (!is_new && !may_come(h, f->id)))
        return;
    h->how = NJ__H2_WHOLE;
    h->block_open = !(f->flags & NJ__H2_END_HEADERS);
    h->block_id = f->id;
    h->block_flags = (uint8_t)((f->flags & NJ__H2_END_STREAM) | (is_new ? NJ__H2_NEW : 0));
    h->block_n = 0;
    h->block_bytes = f->n_bytes;
}

static void priority_begins(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->id == 0) {
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    } else if (!nj__h2_glitch(h, NJ__H2_GLITCH)) {
        return;
    } else if (f->n_bytes == PRIORITY_BYTES) {
        h->how = NJ__H2_WHOLE;
    } else if (nj__h2_find(h, f->id)) {
        nj__h2_stream_error(h, f->id, NJ__H2_FRAME_SIZE_ERROR);
    } else { /* a stream that is not open can't be reset */
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    }
}

static void rst_stream_begins(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->id == 0 || (f->n_bytes == 4 && is_idle(h, f->id)))
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    else if (f->n_bytes != 4)
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    else if (nj__h2_glitch(h, NJ__H2_GLITCH_RESET))
        h->how = NJ__H2_WHOLE;
}

static void settings_begin(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    bool ack = f->flags & NJ__H2_ACK;

    if (f->id != 0)
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    else if (ack ? f->n_bytes > 0 : f->n_bytes % 6 != 0)
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    else if (nj__h2_glitch(h, NJ__H2_GLITCH))
        h->how = NJ__H2_WHOLE;
}

static void ping_begins(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->id != 0)
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    else if (f->n_bytes != PING_BYTES)
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    else if (nj__h2_glitch_ping(h, f->flags & NJ__H2_ACK))
        h->how = NJ__H2_WHOLE;
}

/* Its last stream id concerns streams of the server, of which there are none. */
static void goaway_begins(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->id != 0)
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    else if (f->n_bytes < 8)
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    else if (nj__h2_glitch(h, NJ__H2_GLITCH))
        h->peer_goaway = true;
}

static void window_update_begins(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->n_bytes != 4) {
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    } else if (f->id != 0 && is_idle(h, f->id)) {
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    } else {
        nj__h2_glitch_window_update(h);
        h->how = NJ__H2_WHOLE;
    }
}

/* is_in_place() has checked the stream and that a header block is open. */
static void continuation_begins(struct nj_h2 *h)
{
    h->block_bytes += h->frame.n_bytes;
    h->block_n++;
    nj__h2_glitch_continuation(h);
    h->block_open = !(h->frame.flags & NJ__H2_END_HEADERS);
    h->how = NJ__H2_BLOCK;
}

static void priority_update_begins(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->id != 0)
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    else if (f->n_bytes < 4)
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
    else if (nj__h2_glitch(h, NJ__H2_GLITCH) && f->n_bytes <= 4 + PRIORITY_VALUE_MAX)
        h->how = NJ__H2_WHOLE;
}

static void frame_begins(struct nj_h2 *h)
{
    switch (h->frame.type) {
    case NJ__H2_DATA:
        data_begins(h);
        break;
    case NJ__H2_HEADERS:
        headers_begin(h);
        break;
    case NJ__H2_PRIORITY:
        priority_begins(h);
        break;
    case NJ__H2_RST_STREAM:
        rst_stream_begins(h);
        break;
    case NJ__H2_SETTINGS:
        settings_begin(h);
        break;
    case NJ__H2_PUSH_PROMISE: /* RFC 9113 8.4: not from a client */
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
        break;
    case NJ__H2_PING:
        ping_begins(h);
        break;
    case NJ__H2_GOAWAY:
        goaway_begins(h);
        break;
    case NJ__H2_WINDOW_UPDATE:
        window_update_begins(h);
        break;
    case NJ__H2_CONTINUATION:
        continuation_begins(h);
        break;
    case NJ__H2_PRIORITY_UPDATE:
        priority_update_begins(h);
        break;
    default: /* RFC 9113 5.5: ignored */
        if (h->frame.n_bytes < NJ__H2_TINY_BYTES)
            (void)nj__h2_glitch(h, NJ__H2_GLITCH);
        break;
    }
}

/* Checks for frames of every type (RFC 9113 3.4, 4.2, 6.10). */
static bool is_in_place(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (nj_unlikely(f->n_bytes > NJ__H2_PAYLOAD_MAX)) {
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
        return false;
    }
    bool first = !h->settled && (f->type != NJ__H2_SETTINGS || f->flags & NJ__H2_ACK);
    bool more = f->type == NJ__H2_CONTINUATION;
    if (nj_likely(!first && more == h->block_open && (!more || f->id == h->block_id)))
        return true;
    nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    return false;
}

/* ---- a frame is complete ---- */

/* Priorities of RFC 7540 are ignored (RFC 9113 5.3.2), except that a stream which depends on itself
 * is an error (RFC 7540 5.3.1), as some peers expect. The check is off for a peer that sent
 * SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218 2.1). */
static bool priority_ok(struct nj_h2 *h, const uint8_t *p)
{
    bool ok = h->plain == 1 + 1 || (nj__h2_get32(p) & NJ__H2_ID_MAX) != h->frame.id;
    if (!ok)
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
    return ok;
}

/* RFC 9113 6.2: the field block fragment within the payload. */
static const uint8_t *fragment_of(struct nj_h2 *h, const uint8_t *p, uint32_t *n)
{
    uint8_t flags = h->frame.flags;
    uint32_t pad = 0, front = (flags & NJ__H2_PADDED ? 1u : 0u) +
                              (flags & NJ__H2_PRIORITIZED ? PRIORITY_BYTES : 0u);
    if (*n < front) {
        nj__h2_broken(h, NJ__H2_FRAME_SIZE_ERROR);
        return NULL;
    }
    if (flags & NJ__H2_PADDED)
        pad = p[0];
    if (pad > *n - front) {
        nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
        return NULL;
    }
    if (flags & NJ__H2_PRIORITIZED && !priority_ok(h, p + front - PRIORITY_BYTES))
        return NULL;
    *n -= front + pad;
    return p + front;
}

static void block_done(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    nj__h2_block(h, h->block_id, h->block_flags, p, n);
}

static void headers(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    p = fragment_of(h, p, &n);
    if (!p)
        return;
    if (nj_likely(!h->block_open)) {
        block_done(h, p, n);
        return;
    }
    if (h->got.n == 0 && !nj__h2_buf_reserve(h, &h->got, n))
        return;
    if (n > 0)
        memmove(h->got.p, p, n); /* `p` may point into the buffer */
    h->got.n = n;
}

static void rst_stream(struct nj_h2 *h)
{
    struct nj_h2_stream *st = nj__h2_find(h, h->frame.id);

    nj_count(h->core->counters, NJ_C_h2_reset_in);
    if (!st)
        return;
    st->got_reset = true;
    nj__h2_dead(h, st->n_out);
    nj__h2_stream_drop(st);
}

static void ping(struct nj_h2 *h, const uint8_t *p)
{
    if (h->frame.flags & NJ__H2_ACK) {
        nj__h2_late_answered(h, p);
        return;
    }
    uint8_t *to = nj__h2_put_ack(h, NJ__H2_FRAME_HEAD + PING_BYTES);
    if (to)
        memcpy(nj__h2_put_head(to, PING_BYTES, NJ__H2_PING, NJ__H2_ACK, 0), p, PING_BYTES);
}

static void frame_came(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    switch (h->frame.type) {
    case NJ__H2_HEADERS:
        headers(h, p, n);
        break;
    case NJ__H2_RST_STREAM:
        rst_stream(h);
        break;
    case NJ__H2_SETTINGS:
        if (h->frame.flags & NJ__H2_ACK)
            nj__h2_settings_acked(h);
        else
            nj__h2_settings(h, p, n);
        break;
    case NJ__H2_PING:
        ping(h, p);
        break;
    case NJ__H2_WINDOW_UPDATE:
        nj__h2_window_update(h, h->frame.id, nj__h2_get32(p) & NJ__H2_ID_MAX);
        break;
    case NJ__H2_PRIORITY:
        (void)priority_ok(h, p);
        break;
    case NJ__H2_PRIORITY_UPDATE:
        nj__h2_priority_update(h, p, n);
        break;
    default:
        break;
    }
}

/* ---- bytes ---- */

/* Free the buffer, unless more of the header block is to come. */
static void got_done(struct nj_h2 *h)
{
    if (!h->block_open)
        nj__h2_buf_free(h, &h->got);
}

/* Collect a part of a payload that is processed when complete. */
static void gather(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    if (!nj__h2_buf_reserve(h, &h->got, n))
        return;
    memcpy(h->got.p + h->got.n, p, n);
    h->got.n += n;
    h->left -= n;
    if (h->left > 0)
        return;
    if (h->how == NJ__H2_WHOLE)
        frame_came(h, h->got.p, h->got.n);
    else if (!h->block_open)
        block_done(h, h->got.p, h->got.n);
    got_done(h);
}

/* A frame without payload. */
static void empty(struct nj_h2 *h)
{
    if (h->how == NJ__H2_BODY) {
        nj__h2_data(h, NULL, 0);
    } else if (h->how == NJ__H2_WHOLE) {
        frame_came(h, h->walk, 0);
    } else if (h->how == NJ__H2_BLOCK && !h->block_open) {
        block_done(h, h->got.p ? h->got.p : h->walk, h->got.n);
        got_done(h);
    }
}

/* Process input that belongs to the current payload. Returns the address after it. */
static const uint8_t *payload(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    uint32_t n = (size_t)(end - at) < h->left ? (uint32_t)(end - at) : h->left;

    if (h->how == NJ__H2_BODY) {
        nj__h2_data(h, at, n);
    } else if (h->how == NJ__H2_SKIP) {
        h->left -= n;
    } else if (nj_likely(h->how == NJ__H2_WHOLE && n == h->frame.n_bytes)) {
        h->left = 0;
        frame_came(h, at, n);
    } else {
        gather(h, at, n);
    }
    return at + n;
}

static void frame_head(struct nj_h2 *h, const uint8_t *p)
{
    h->frame.n_bytes = nj__h2_get32(p) >> 8;
    h->frame.type = p[3];
    h->frame.flags = p[4];
    h->frame.id = nj__h2_get32(p + 5) & NJ__H2_ID_MAX;
    h->left = h->frame.n_bytes;
    h->how = NJ__H2_SKIP;
    h->n_begun += h->frame.type != NJ__H2_CONTINUATION;
    if (!is_in_place(h))
        return;
    frame_begins(h);
    if (h->left == 0 && !h->end)
        empty(h);
}

/* Collect bytes of a split frame header. Returns their number. */
static uint32_t walk(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    uint32_t n = NJ__H2_FRAME_HEAD - h->n_walk;

    if ((size_t)(end - at) < n)
        n = (uint32_t)(end - at);
    memcpy(h->walk + h->n_walk, at, n);
    h->n_walk = (uint8_t)(h->n_walk + n);
    return n;
}

static const uint8_t *next_frame(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    if (nj_likely(h->n_walk == 0 && end - at >= (ptrdiff_t)NJ__H2_FRAME_HEAD)) {
        frame_head(h, at);
        return at + NJ__H2_FRAME_HEAD;
    }
    at += walk(h, at, end);
    if (h->n_walk == NJ__H2_FRAME_HEAD) {
        h->n_walk = 0;
        frame_head(h, h->walk);
    }
    return at;
}

/* RFC 9113 3.4 */
static const uint8_t *preface(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    static const char expected[] = NJ__H2_PREFACE;

    while (at < end && h->n_walk < NJ__H2_PREFACE_BYTES) {
        if (*at++ != (uint8_t)expected[h->n_walk++]) {
            nj__h2_broken(h, NJ__H2_PROTOCOL_ERROR);
            return end;
        }
    }
    if (h->n_walk == NJ__H2_PREFACE_BYTES) {
        h->greeted = true;
        h->n_walk = 0;
    }
    return at;
}

int nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    const uint8_t *at = data, *end = data + n_bytes;

    NJ_ASSERT(!h->busy);
    h->busy = true;
    if (nj_unlikely(!h->greeted) && !h->end)
        at = preface(h, at, end);
    while (at < end && !h->end)
        at = h->left > 0 ? payload(h, at, end) : next_frame(h, at, end);
    h->busy = false;
    return nj__h2_settle(h);
}

/* A partial frame header counts as the frame after those counted in n_begun. */
nj_ns nj_h2_unfinished_since(struct nj_h2 *h, nj_ns now)
{
    bool of_body = h->frame.type == NJ__H2_DATA && h->n_streams + h->n_late > 0;
    bool within = !h->greeted || h->block_open || (h->left > 0 && !of_body);
    uint32_t at = within ? h->n_begun + 1 : h->n_walk > 0 ? h->n_begun + 2 : 0;

    if (h->end || at == 0) {
        h->unfinished = 0;
        return NJ_NEVER;
    }
    if (at != h->unfinished)
        h->unfinished_at = now;
    h->unfinished = at;
    return h->unfinished_at;
}
