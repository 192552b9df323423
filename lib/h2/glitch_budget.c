/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The glitch budget of a connection: protection against floods (RFC 9113 10.5).
 *
 * Floods consist of frames that are each legal: resets, PINGs, SETTINGS, empty DATA. Each adds one
 * glitch or more, useful work removes one, and beyond the limit the connection ends. Honest clients
 * also cancel requests, for as long as a connection lasts; their useful work and the decay with
 * time keep them below the limit.
 */
#include "h2/h2_internal.h"

#include "base/compiler.h"

/* CONTINUATION frames per header block. With a soft limit of 32 KiB, the hard limit of a block is
 * 128 KiB, which is 8 full frames. */
#define CONTINUATIONS_MAX   64u
/* A DATA frame that the peer's window limits to less than this is a glitch ("data dribble"). */
#define DRIBBLE_BYTES       256u
/* A DATA frame of at least this size removes a glitch. */
#define DATA_BIG_BYTES      4096u
/* WINDOW_UPDATEs accepted without a glitch: one for the stream and one for the connection per DATA
 * frame sent, or per 4 KiB of it (Go's client), and a few at the start of a connection or request.
 */
#define WINDOW_CREDIT_STEP  2u
#define WINDOW_CREDIT_BYTES 2048u
#define WINDOW_CREDIT_MAX   65536u
/* PINGs accepted without a glitch: clients measure the path during DATA (gRPC: one per RTT). */
#define PING_CREDIT_MAX     64u

/* The kind of abuse to report: that of the last glitch. */
static enum nj_h2_abuse abuse_of(const struct nj_h2 *h)
{
    static const uint8_t by_type[] = {
#define NJ_H2_FRAME(NAME, type, state, stream, least, most, payload, glitches, ABUSE, ...)         \
    [type] = NJ_H2_ABUSE_##ABUSE,
#include "h2/frame_types.def"
#undef NJ_H2_FRAME
    };
    uint8_t type = h->last_charged;
    uint8_t abuse = type < NJ_ARRAY_LEN(by_type) ? by_type[type] : 0;

    return abuse ? (enum nj_h2_abuse)abuse : NJ_H2_ABUSE_FRAMES;
}

bool nj_h2_add_glitches(struct nj_h2 *h, uint32_t n_glitches)
{
    h->glitches += n_glitches;
    h->last_charged = h->frame.type;
    h->headers_refundable = false;
    if (nj_unlikely(h->glitches > h->core->limits.glitches_max))
        nj_h2_end_for_abuse(h, abuse_of(h));
    return !h->end;
}

/* A valid request removes this glitch. If it exceeds the limit, the frames before it are to blame,
 * so `last_charged` is kept unless the previous HEADERS was not valid. */
bool nj__h2_glitch_headers(struct nj_h2 *h)
{
    if (h->headers_refundable)
        h->last_charged = NJ__H2_HEADERS;
    h->headers_refundable = true;
    if (nj_unlikely(++h->glitches > h->core->limits.glitches_max))
        nj_h2_end_for_abuse(h, abuse_of(h));
    return !h->end;
}

void nj_h2_decay_glitches(struct nj_h2 *h, nj_ns now)
{
    uint32_t at = (uint32_t)(now / (NJ_SEC / NJ_H2_GLITCH_DECAY_PER_S)), n = at - h->decayed_at;

    h->decayed_at = at;
    h->glitches -= n < h->glitches ? n : h->glitches;
}

static void window_credit(struct nj_h2 *h, uint32_t n_bytes)
{
    if (h->window_credit < WINDOW_CREDIT_MAX)
        h->window_credit += WINDOW_CREDIT_STEP + n_bytes / WINDOW_CREDIT_BYTES;
}

void nj__h2_glitch_refund(struct nj_h2 *h)
{
    if (h->glitches > 0)
        h->glitches--;
}

void nj__h2_glitch_headers_ok(struct nj_h2 *h)
{
    h->headers_refundable = false;
    nj__h2_glitch_refund(h);
    window_credit(h, 0);
}

bool nj__h2_glitch_ping(struct nj_h2 *h, bool ack)
{
    uint8_t *credit = ack ? &h->n_pings : &h->ping_credit;

    if (*credit == 0)
        return nj_h2_add_glitches(h, NJ__H2_GLITCH);
    --*credit;
    return true;
}

void nj__h2_glitch_window_update(struct nj_h2 *h)
{
    if (h->window_credit > 0)
        h->window_credit--;
    else
        nj_h2_add_glitches(h, NJ__H2_GLITCH);
}

void nj__h2_glitch_data_sent(struct nj_h2 *h, uint32_t n_bytes, bool cut)
{
    if (cut && n_bytes < DRIBBLE_BYTES) {
        h->glitches += NJ__H2_GLITCH;
        if (h->glitches > h->core->limits.glitches_max)
            nj_h2_end_for_abuse(h, NJ_H2_ABUSE_SMALL_WINDOWS);
        return;
    }
    window_credit(h, n_bytes);
    if (h->ping_credit < PING_CREDIT_MAX)
        h->ping_credit++;
    if (n_bytes >= DATA_BIG_BYTES)
        nj__h2_glitch_refund(h);
}

/* Endless header blocks by CONTINUATION frames (CVE-2024-28182 and similar). */
void nj__h2_check_continuation_flood(struct nj_h2 *h)
{
    uint64_t max = (uint64_t)h->core->limits.header_bytes_max * NJ__H2_HARD_LIMIT_FACTOR;

    if (h->block_frames > CONTINUATIONS_MAX || h->block_bytes > max)
        nj_h2_end_for_abuse(h, NJ_H2_ABUSE_CONTINUATIONS);
    else if (h->frame.n_bytes == 0 && !(h->frame.flags & NJ__H2_FLAG_END_HEADERS))
        nj_h2_add_glitches(h, NJ__H2_GLITCH_ERROR);
}

/* The owner reads these bytes: then a small frame is no glitch (interactive streams). */
static bool is_read(const struct nj_h2 *h, const struct nj_h2_stream *st)
{
    return h->frame.n_bytes > 0 && nj__h2_has_body_reader(st);
}

void nj__h2_glitch_data_begins(struct nj_h2 *h, const struct nj_h2_stream *st)
{
    bool ends = st && h->frame.flags & NJ__H2_FLAG_END_STREAM;

    if (h->frame.n_bytes < NJ__H2_TINY_BYTES && !ends && !is_read(h, st))
        nj_h2_add_glitches(h, NJ__H2_GLITCH);
}

/* A frame may consist of pad bytes only. */
void nj__h2_glitch_data_frame_ends(struct nj_h2 *h, const struct nj_h2_stream *st, uint32_t n_bytes)
{
    bool read = is_read(h, st);

    if (read && n_bytes >= DATA_BIG_BYTES)
        nj__h2_glitch_refund(h);
    if (h->frame.flags & NJ__H2_FLAG_END_STREAM)
        return;
    if (read ? n_bytes > 0 : h->frame.n_bytes < NJ__H2_TINY_BYTES || n_bytes >= NJ__H2_TINY_BYTES)
        return; /* useful, or counted when it began */
    nj_h2_add_glitches(h, NJ__H2_GLITCH);
}
