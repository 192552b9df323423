/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: the connection preface and frames (RFC 9113 3.4, 4.1, 6). What is required of a frame is
 * in frame_types.def.
 *
 * A frame contained in one input is processed in place. A frame split across inputs is collected in
 * a buffer that is freed when the frame is complete. DATA is processed as it arrives, and payload
 * of ignored frames is skipped.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/assert.h"
#include "telem/counters_conn.h"

#define PRIORITY_BYTES     5u
/* A PRIORITY_UPDATE with a longer priority field value is ignored. */
#define PRIORITY_VALUE_MAX 64u

/* DATA or HEADERS arrived on a stream: the peer must not have ended it, since only PRIORITY,
 * WINDOW_UPDATE and RST_STREAM may follow END_STREAM (RFC 9113 5.1). False: it has, and a
 * connection error is recorded. */
static bool check_not_ended(struct nj_h2 *h, uint32_t id)
{
    const struct nj_h2_stream *st = nj__h2_find_stream(h, id);

    if (st ? !st->end_received : !nj__h2_id_bit(h, h->id_ended, id))
        return true;
    nj__h2_conn_error(h, NJ_H2_STREAM_CLOSED);
    return false;
}

/* ---- an allowed frame begins: the rest of RFC 9113 6.1 to 6.10 ----
 *
 * These return false if the payload is to be skipped: it has no effect, or the connection ends.
 */

static bool begin_data(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (f->flags & NJ__H2_FLAG_PADDED && f->n_bytes == 0) {
        nj__h2_conn_error(h, NJ_H2_FRAME_SIZE_ERROR);
        return false;
    }
    if (!check_not_ended(h, f->id))
        return false;
    if (nj__h2_id_bit(h, h->id_reset, f->id) && !nj__h2_find_stream(h, f->id))
        nj__h2_stream_error(h, f->id, NJ_H2_STREAM_CLOSED);
    nj__h2_data_begin(h);
    return !h->end;
}

/* HEADERS adds a glitch that a valid request head removes, so ignored and rejected blocks count. */
static bool begin_headers(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    bool is_new = f->id > h->id_high;

    if (f->id % 2 == 0 || !nj__h2_enter_id(h, f->id)) {
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
        return false;
    }
    if (!nj__h2_glitch_headers(h) || (!is_new && !check_not_ended(h, f->id)))
        return false;
    h->block_open = !(f->flags & NJ__H2_FLAG_END_HEADERS);
    h->block_id = f->id;
    h->block_flags =
        (uint8_t)((f->flags & NJ__H2_FLAG_END_STREAM) | (is_new ? NJ__H2_FLAG_NEW_STREAM : 0));
    h->block_frames = 0;
    h->block_bytes = f->n_bytes;
    return true;
}

/* A wrong length is a stream error (RFC 9113 6.3). A stream that is not open can't be reset. */
static bool begin_priority(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;

    if (!nj_h2_add_glitches(h, NJ__H2_GLITCH))
        return false;
    if (f->n_bytes == PRIORITY_BYTES)
        return true;
    if (nj__h2_find_stream(h, f->id))
        nj__h2_stream_error(h, f->id, NJ_H2_FRAME_SIZE_ERROR);
    else
        nj__h2_conn_error(h, NJ_H2_FRAME_SIZE_ERROR);
    return false;
}

static bool begin_settings(struct nj_h2 *h)
{
    const struct nj__h2_frame *f = &h->frame;
    bool ack = f->flags & NJ__H2_FLAG_ACK;

    if (ack && !h->settings_seen) /* RFC 9113 3.4 */
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
    else if (ack ? f->n_bytes > 0 : f->n_bytes % NJ__H2_SETTING_BYTES != 0)
        nj__h2_conn_error(h, NJ_H2_FRAME_SIZE_ERROR);
    return !h->end;
}

static bool begin_ping(struct nj_h2 *h)
{
    return nj__h2_glitch_ping(h, h->frame.flags & NJ__H2_FLAG_ACK);
}

/* Its last stream id concerns streams of the server, of which there are none. */
static bool begin_goaway(struct nj_h2 *h)
{
    if (!nj_h2_add_glitches(h, NJ__H2_GLITCH))
        return false;
    h->peer_goaway = true;
    return true;
}

static bool begin_window_update(struct nj_h2 *h)
{
    nj__h2_glitch_window_update(h);
    return !h->end;
}

static bool begin_continuation(struct nj_h2 *h)
{
    if (h->frame.id != h->block_id) {
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
        return false;
    }
    h->block_bytes += h->frame.n_bytes;
    h->block_frames++;
    nj__h2_check_continuation_flood(h);
    h->block_open = !(h->frame.flags & NJ__H2_FLAG_END_HEADERS);
    return !h->end;
}

static bool begin_priority_update(struct nj_h2 *h)
{
    return nj_h2_add_glitches(h, NJ__H2_GLITCH) && h->frame.n_bytes <= 4 + PRIORITY_VALUE_MAX;
}

/* RFC 9113 5.5: frames of unknown types are ignored. */
static bool begin_unknown(struct nj_h2 *h)
{
    if (h->frame.n_bytes < NJ__H2_TINY_BYTES)
        nj_h2_add_glitches(h, NJ__H2_GLITCH);
    return false;
}

/* ---- payload ---- */

/* Priorities of RFC 7540 are ignored (RFC 9113 5.3.2), except that a stream which depends on itself
 * is an error (RFC 7540 5.3.1), as some peers expect. The check is off for a peer that sent
 * SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218 2.1). */
static bool check_priority(struct nj_h2 *h, const uint8_t *p)
{
    bool ok = h->rfc7540 == NJ__H2_RFC7540_OFF || (nj_get_be32(p) & NJ__H2_ID_MAX) != h->frame.id;
    if (!ok)
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
    return ok;
}

/* RFC 9113 6.2: the field block fragment within the payload. */
static const uint8_t *fragment_of(struct nj_h2 *h, const uint8_t *p, uint32_t *n)
{
    uint8_t flags = h->frame.flags;
    uint32_t pad = 0, front = (flags & NJ__H2_FLAG_PADDED ? 1u : 0u) +
                              (flags & NJ__H2_FLAG_PRIORITY ? PRIORITY_BYTES : 0u);
    if (*n < front) {
        nj__h2_conn_error(h, NJ_H2_FRAME_SIZE_ERROR);
        return NULL;
    }
    if (flags & NJ__H2_FLAG_PADDED)
        pad = p[0];
    if (pad > *n - front) {
        nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
        return NULL;
    }
    if (flags & NJ__H2_FLAG_PRIORITY && !check_priority(h, p + front - PRIORITY_BYTES))
        return NULL;
    *n -= front + pad;
    return p + front;
}

static void handle_headers(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    p = fragment_of(h, p, &n);
    if (!p)
        return;
    if (nj_likely(!h->block_open)) {
        nj__h2_handle_block(h, h->block_id, h->block_flags, p, n);
        return;
    }
    if (h->partial.n == 0 && !nj__h2_buf_reserve(h, &h->partial, n))
        return;
    if (n > 0)
        memmove(h->partial.p, p, n); /* `p` may point into the buffer */
    h->partial.n = n;
}

static void handle_continuation(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    if (!h->block_open)
        nj__h2_handle_block(h, h->block_id, h->block_flags, p, n);
}

static void handle_priority(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    (void)n;
    (void)check_priority(h, p);
}

static void handle_rst_stream(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    struct nj_h2_stream *st = nj__h2_find_stream(h, h->frame.id);

    (void)p, (void)n;
    nj_count(h->core->counters, NJ_C_h2_reset_in);
    if (!st)
        return;
    st->reset_received = true;
    nj__h2_cap_unsent_reset_responses(h, st->n_head_out);
    nj__h2_stream_destroy(st);
}

static void handle_settings(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    if (h->frame.flags & NJ__H2_FLAG_ACK)
        nj__h2_settings_acked(h);
    else
        nj__h2_apply_settings(h, p, n);
}

static void handle_ping(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    if (h->frame.flags & NJ__H2_FLAG_ACK) {
        nj__h2_half_closed_on_ping_ack(h, p);
        return;
    }
    uint8_t *to = nj__h2_out_extend_for_ack(h, NJ__H2_FRAME_HEAD + n);
    if (to)
        memcpy(nj__h2_put_frame_head(to, n, NJ__H2_PING, NJ__H2_FLAG_ACK, 0), p, n);
}

static void handle_window_update(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    (void)n;
    nj__h2_window_update(h, h->frame.id, nj_get_be32(p) & NJ__H2_ID_MAX);
}

/* ---- the table of frames ---- */

enum frame_state {
    STATE_NEVER = 0, /* RFC 9113 8.4: not from a client */
    STATE_START = 1, /* as the first frame (RFC 9113 3.4) */
    STATE_OPEN = 2,  /* later, between header blocks */
    STATE_BLOCK = 4, /* within a header block (RFC 9113 6.10) */
};

enum frame_stream {
    STREAM_ZERO = 1, /* 0: the connection */
    STREAM_USED = 2, /* a stream that is not idle (RFC 9113 5.1) */
    STREAM_ANY = 6,  /* a stream */
};

struct frame_rule {
    uint8_t state, stream, payload, glitches;
    uint16_t least, most;
    bool (*begin)(struct nj_h2 *h);
    void (*handle)(struct nj_h2 *h, const uint8_t *p, uint32_t n);
};

static const struct frame_rule unknown_rule = {
    .state = STATE_OPEN,
    .stream = STREAM_ZERO | STREAM_ANY,
    .payload = NJ__H2_PAYLOAD_SKIP,
    .most = NJ__H2_PAYLOAD_MAX,
    .begin = begin_unknown,
};

static const struct frame_rule rules[] = {
#define NJ_H2_FRAME(NAME, TYPE, STATE, STREAM, LEAST, MOST, PAYLOAD, GLITCHES, ABUSE, BEGIN,       \
                    HANDLE)                                                                        \
    [TYPE] = {                                                                                     \
        .state = STATE,                                                                            \
        .stream = STREAM,                                                                          \
        .payload = NJ__H2_PAYLOAD_##PAYLOAD,                                                       \
        .glitches = GLITCHES,                                                                      \
        .least = LEAST,                                                                            \
        .most = MOST,                                                                              \
        .begin = BEGIN,                                                                            \
        .handle = HANDLE,                                                                          \
    },
#include "h2/frame_types.def"
#undef NJ_H2_FRAME
};

static const struct frame_rule *rule_of(uint8_t type)
{
    return type < NJ_ARRAY_LEN(rules) && rules[type].stream ? &rules[type] : &unknown_rule;
}

static enum nj_h2_error_code error_by_rule(const struct nj_h2 *h, const struct frame_rule *r)
{
    const struct nj__h2_frame *f = &h->frame;
    uint8_t state = !h->settings_seen ? STATE_START : h->block_open ? STATE_BLOCK : STATE_OPEN;

    if (f->n_bytes > NJ__H2_PAYLOAD_MAX) /* RFC 9113 4.2 */
        return NJ_H2_FRAME_SIZE_ERROR;
    if (!(r->state & state) || !(r->stream & (f->id == 0 ? STREAM_ZERO : STREAM_ANY)))
        return NJ_H2_PROTOCOL_ERROR;
    if (f->n_bytes < r->least || f->n_bytes > r->most)
        return NJ_H2_FRAME_SIZE_ERROR;
    if ((r->stream & STREAM_ANY) == STREAM_USED && f->id != 0 && nj__h2_is_id_idle(h, f->id))
        return NJ_H2_PROTOCOL_ERROR;
    return NJ_H2_NO_ERROR;
}

/* Glitches are added after all checks, and an error adds none. */
static inline void begin_by_rule(struct nj_h2 *h, const struct frame_rule *r)
{
    enum nj_h2_error_code error = error_by_rule(h, r);

    if (nj_unlikely(error != NJ_H2_NO_ERROR)) {
        nj__h2_conn_error(h, error);
        return;
    }
    if (r->begin && !r->begin(h))
        return;
    if (r->glitches == 0 || nj_h2_add_glitches(h, r->glitches))
        h->payload_mode = r->payload;
}

/* For HEADERS and DATA the compiler reads the table, so they cost no call by pointer. */
static void begin_frame(struct nj_h2 *h)
{
    if (nj_likely(h->frame.type == NJ__H2_HEADERS))
        begin_by_rule(h, &rules[NJ__H2_HEADERS]);
    else if (h->frame.type == NJ__H2_DATA)
        begin_by_rule(h, &rules[NJ__H2_DATA]);
    else
        begin_by_rule(h, rule_of(h->frame.type));
}

/* A payload is complete, or (DATA) a part of it was received. */
static void handle_payload(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    if (nj_likely(h->frame.type == NJ__H2_HEADERS))
        rules[NJ__H2_HEADERS].handle(h, p, n);
    else if (h->frame.type == NJ__H2_DATA)
        rules[NJ__H2_DATA].handle(h, p, n);
    else
        rules[h->frame.type].handle(h, p, n);
}

/* ---- bytes ---- */

/* Free the buffer, unless more of the header block is to come. */
static void free_partial(struct nj_h2 *h)
{
    if (!h->block_open)
        nj__h2_buf_free(h, &h->partial);
}

/* Collect a part of a payload that is processed when complete. */
static void collect_payload(struct nj_h2 *h, const uint8_t *p, uint32_t n)
{
    if (!nj__h2_buf_reserve(h, &h->partial, n))
        return;
    memcpy(h->partial.p + h->partial.n, p, n);
    h->partial.n += n;
    h->payload_left -= n;
    if (h->payload_left > 0)
        return;
    handle_payload(h, h->partial.p, h->partial.n);
    free_partial(h);
}

/* A frame without payload. */
static void handle_empty_payload(struct nj_h2 *h)
{
    if (h->payload_mode == NJ__H2_PAYLOAD_SKIP)
        return;
    if (h->payload_mode != NJ__H2_PAYLOAD_BLOCK) {
        handle_payload(h, h->hdr_buf, 0);
        return;
    }
    handle_payload(h, h->partial.p ? h->partial.p : h->hdr_buf, h->partial.n);
    free_partial(h);
}

/* Process input that belongs to the current payload. Returns the address after it. */
static const uint8_t *take_payload(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    uint32_t n = (size_t)(end - at) < h->payload_left ? (uint32_t)(end - at) : h->payload_left;

    if (h->payload_mode == NJ__H2_PAYLOAD_STREAMED) {
        handle_payload(h, at, n);
    } else if (h->payload_mode == NJ__H2_PAYLOAD_SKIP) {
        h->payload_left -= n;
    } else if (nj_likely(h->payload_mode == NJ__H2_PAYLOAD_WHOLE && n == h->frame.n_bytes)) {
        h->payload_left = 0;
        handle_payload(h, at, n);
    } else {
        collect_payload(h, at, n);
    }
    return at + n;
}

static void take_frame_head(struct nj_h2 *h, const uint8_t *p)
{
    h->frame.n_bytes = nj_get_be32(p) >> 8;
    h->frame.type = p[3];
    h->frame.flags = p[4];
    h->frame.id = nj_get_be32(p + 5) & NJ__H2_ID_MAX;
    h->payload_left = h->frame.n_bytes;
    h->payload_mode = NJ__H2_PAYLOAD_SKIP;
    h->n_frames += h->frame.type != NJ__H2_CONTINUATION;
    begin_frame(h);
    if (h->payload_left == 0 && !h->end)
        handle_empty_payload(h);
}

/* Collect bytes of a split frame header. Returns their number. */
static uint32_t hdr_buf_fill(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    uint32_t n = NJ__H2_FRAME_HEAD - h->n_hdr_buf;

    if ((size_t)(end - at) < n)
        n = (uint32_t)(end - at);
    memcpy(h->hdr_buf + h->n_hdr_buf, at, n);
    h->n_hdr_buf = (uint8_t)(h->n_hdr_buf + n);
    return n;
}

static const uint8_t *take_next_frame(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    if (nj_likely(h->n_hdr_buf == 0 && end - at >= (ptrdiff_t)NJ__H2_FRAME_HEAD)) {
        take_frame_head(h, at);
        return at + NJ__H2_FRAME_HEAD;
    }
    at += hdr_buf_fill(h, at, end);
    if (h->n_hdr_buf == NJ__H2_FRAME_HEAD) {
        h->n_hdr_buf = 0;
        take_frame_head(h, h->hdr_buf);
    }
    return at;
}

/* RFC 9113 3.4 */
static const uint8_t *take_preface(struct nj_h2 *h, const uint8_t *at, const uint8_t *end)
{
    static const char expected[] = NJ__H2_PREFACE;

    while (at < end && h->n_hdr_buf < NJ__H2_PREFACE_BYTES) {
        if (*at++ != (uint8_t)expected[h->n_hdr_buf++]) {
            nj__h2_conn_error(h, NJ_H2_PROTOCOL_ERROR);
            return end;
        }
    }
    if (h->n_hdr_buf == NJ__H2_PREFACE_BYTES) {
        h->preface_seen = true;
        h->n_hdr_buf = 0;
    }
    return at;
}

int nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes)
{
    const uint8_t *at = data, *end = data + n_bytes;

    NJ_ASSERT(!h->busy);
    h->busy = true;
    if (nj_unlikely(!h->preface_seen) && !h->end)
        at = take_preface(h, at, end);
    while (at < end && !h->end)
        at = h->payload_left > 0 ? take_payload(h, at, end) : take_next_frame(h, at, end);
    h->busy = false;
    return nj__h2_goaway_if_ended(h);
}

/* A partial frame header counts as the frame after those counted in n_frames. */
nj_ns nj_h2_unfinished_frame_since(struct nj_h2 *h, nj_ns now)
{
    bool of_body = h->frame.type == NJ__H2_DATA && h->n_streams + h->n_half_closed > 0;
    bool within = !h->preface_seen || h->block_open || (h->payload_left > 0 && !of_body);
    uint32_t at = within ? h->n_frames + 1 : h->n_hdr_buf > 0 ? h->n_frames + 2 : 0;

    if (h->end || at == 0) {
        h->unfinished_frame = 0;
        return NJ_NEVER;
    }
    if (at != h->unfinished_frame)
        h->unfinished_since = now;
    h->unfinished_frame = at;
    return h->unfinished_since;
}
