/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer may waste of our time.
 *
 * Floods of HTTP/2 are made of frames that are legal one by one: resets, PINGs, SETTINGS, empty
 * DATA. Each costs the peer a point of the connection's budget or more, each useful thing gives one
 * back, and the connection ends when the budget is used up. Honest clients cancel requests, too,
 * some for as long as a connection lasts: what they do beside refills the budget, and so does time.
 */
#include "h2/h2_internal.h"

#include "base/attr.h"

/* CONTINUATION frames of one header block. The hard limit of a 32 KiB head is 128 KiB of header
 * block, which is 8 full frames. */
#define CONTINUATIONS_MAX   64u
/* Outgoing DATA that a window cut below this is a peer that doles out its window ("data dribble").
 */
#define WINDOW_CUT_BYTES    256u
/* DATA frames at least this big are progress and refund a point. */
#define DATA_BIG_BYTES      4096u
/* WINDOW_UPDATEs are needed: one for the stream and one for the connection per DATA frame that went
 * out, or per 4 KiB of it (Go's client, whatever its reader takes), and a few at the begin of a
 * connection or a request. */
#define WINDOW_CREDIT_STEP  2u
#define WINDOW_CREDIT_BYTES 2048u
#define WINDOW_CREDIT_MAX   65536u
/* PINGs, too: clients measure the path with them while DATA comes (gRPC's, one per round trip). */
#define PING_CREDIT_MAX     64u

/* What wasted our time at last is what is told of. */
static enum nj_h2_waste waste_of(const struct nj_h2 *h)
{
    switch (h->charged) {
    case NJ__H2_RST_STREAM:
        return NJ_H2_WASTE_RESETS;
    case NJ__H2_PING:
        return NJ_H2_WASTE_PINGS;
    case NJ__H2_SETTINGS:
        return NJ_H2_WASTE_SETTINGS;
    case NJ__H2_WINDOW_UPDATE:
        return NJ_H2_WASTE_WINDOWS;
    case NJ__H2_PRIORITY:
    case NJ__H2_PRIORITY_UPDATE:
        return NJ_H2_WASTE_PRIORITIES;
    case NJ__H2_DATA:
        return NJ_H2_WASTE_EMPTY_DATA;
    case NJ__H2_HEADERS:
        return NJ_H2_WASTE_REQUESTS;
    case NJ__H2_CONTINUATION:
        return NJ_H2_WASTE_BLOCKS;
    default:
        return NJ_H2_WASTE_FRAMES;
    }
}

bool nj__h2_glitch(struct nj_h2 *h, uint32_t cost)
{
    h->glitches += cost;
    h->charged = h->frame.type;
    h->head_owed = false;
    if (nj_unlikely(h->glitches > h->core->limits.glitches_max))
        nj_h2_calm(h, waste_of(h));
    return !h->end;
}

/* A good head gives its point back: where one is the point too many, it is what came before that
 * used up the budget. */
bool nj__h2_glitch_head(struct nj_h2 *h)
{
    if (h->head_owed)
        h->charged = NJ__H2_HEADERS;
    h->head_owed = true;
    if (nj_unlikely(++h->glitches > h->core->limits.glitches_max))
        nj_h2_calm(h, waste_of(h));
    return !h->end;
}

void nj_h2_recover(struct nj_h2 *h, nj_ns now)
{
    uint32_t at = (uint32_t)(now / (NJ_SEC / NJ_H2_GLITCHES_PER_S)), n = at - h->recovered_at;

    h->recovered_at = at;
    h->glitches -= n < h->glitches ? n : h->glitches;
}

void nj_h2_charge(struct nj_h2 *h, uint32_t n_glitches)
{
    (void)nj__h2_glitch(h, n_glitches);
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

void nj__h2_glitch_request(struct nj_h2 *h)
{
    h->head_owed = false;
    nj__h2_glitch_refund(h);
    window_credit(h, 0);
}

bool nj__h2_glitch_ping(struct nj_h2 *h, bool ack)
{
    uint8_t *credit = ack ? &h->n_pings : &h->ping_credit;

    if (*credit == 0)
        return nj__h2_glitch(h, NJ__H2_GLITCH);
    --*credit;
    return true;
}

void nj__h2_glitch_window_update(struct nj_h2 *h)
{
    if (h->window_credit > 0)
        h->window_credit--;
    else
        (void)nj__h2_glitch(h, NJ__H2_GLITCH);
}

void nj__h2_glitch_data_sent(struct nj_h2 *h, uint32_t n_bytes, bool cut)
{
    if (cut && n_bytes < WINDOW_CUT_BYTES) {
        h->glitches += NJ__H2_GLITCH;
        if (h->glitches > h->core->limits.glitches_max)
            nj_h2_calm(h, NJ_H2_WASTE_CRUMBS);
        return;
    }
    window_credit(h, n_bytes);
    if (h->ping_credit < PING_CREDIT_MAX)
        h->ping_credit++;
    if (n_bytes >= DATA_BIG_BYTES)
        nj__h2_glitch_refund(h);
}

/* CONTINUATION frames of an endless header block (CVE-2024-28182 and its kin). */
void nj__h2_glitch_continuation(struct nj_h2 *h)
{
    uint64_t max = (uint64_t)h->core->limits.header_bytes_max * NJ__H2_HEADER_HARD;

    if (h->block_n > CONTINUATIONS_MAX || h->block_bytes > max)
        nj_h2_calm(h, NJ_H2_WASTE_BLOCKS);
    else if (h->frame.n_bytes == 0 && !(h->frame.flags & NJ__H2_END_HEADERS))
        (void)nj__h2_glitch(h, NJ__H2_GLITCH_BAD);
}

/* Bytes that somebody reads: one of a chat is as good as any other. */
static bool is_read(const struct nj_h2 *h, const struct nj_h2_stream *st)
{
    return h->frame.n_bytes > 0 && nj__h2_body_wanted(st);
}

void nj__h2_glitch_data_begins(struct nj_h2 *h, const struct nj_h2_stream *st)
{
    bool ends = st && h->frame.flags & NJ__H2_END_STREAM;

    if (h->frame.n_bytes < NJ__H2_TINY_BYTES && !ends && !is_read(h, st))
        (void)nj__h2_glitch(h, NJ__H2_GLITCH);
}

/* It may have been nothing but padding. */
void nj__h2_glitch_data_came(struct nj_h2 *h, const struct nj_h2_stream *st, uint32_t n_bytes)
{
    bool read = is_read(h, st);

    if (read && n_bytes >= DATA_BIG_BYTES)
        nj__h2_glitch_refund(h);
    if (h->frame.flags & NJ__H2_END_STREAM)
        return;
    if (read ? n_bytes > 0 : h->frame.n_bytes < NJ__H2_TINY_BYTES || n_bytes >= NJ__H2_TINY_BYTES)
        return; /* useful, or charged at its begin */
    (void)nj__h2_glitch(h, NJ__H2_GLITCH);
}
