/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and end of a connection, GOAWAY and PING (RFC 9113 3.4, 5.4.1, 6.7, 6.8).
 *
 * The function that detects a reason to end the connection records it in h->end. nj_h2_input() and
 * nj_h2_output() queue the GOAWAY before they return.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"

/* WINDOW_UPDATEs that a client may send before its first request. */
#define WINDOW_CREDIT_AT_OPEN 16u
#define GOAWAY_BYTES          8u
#define PING_BYTES            8u

static void conn_init(struct nj_h2 *h, struct nj_h2_context *core, void *user)
{
    uint32_t window = core->limits.window_bytes;

    h->core = core;
    h->user = user;
    h->window_credit = WINDOW_CREDIT_AT_OPEN;
    h->send_window = h->initial_window = NJ__H2_WINDOW_DEFAULT;
    h->data_max = NJ__H2_PAYLOAD_MAX;
    h->window = window ? window : NJ_H2_CONN_WINDOW_BYTES;
    if (h->window < NJ__H2_WINDOW_DEFAULT) /* the initial window can't be reduced */
        h->window = NJ__H2_WINDOW_DEFAULT;
    h->table = h->inline_table;
    h->table_mask = NJ_ARRAY_LEN(h->inline_table) - 1;
    nj_list_init(&h->streams);
    nj_list_init(&h->half_closed);
    nj_list_init(&h->ready);
    nj_list_init(&h->flushing);
}

static void h2_free(struct nj_h2 *h)
{
    struct nj__h2_alloc *a = &h->core->alloc;

    NJ_ASSERT(h->n_open == 0 && h->table == h->inline_table);
    nj__h2_last_block_forget(h);
    nj__h2_buf_free(h, &h->out);
    nj__h2_buf_free(h, &h->partial);
    nj__hpack_decoder_free(h->hpack_decoder);
    nj__hpack_encoder_free(h->hpack_encoder);
    nj__h2_alloc_free(a, h);
}

struct nj_h2 *nj_h2_open(struct nj_h2_context *core, void *user)
{
    if (core->alloc.bytes_used >= core->limits.bytes_max) {
        nj_count(core->counters, NJ_C_h2_full);
        return NULL;
    }
    struct nj_h2 *h = nj__h2_alloc_zero(&core->alloc, sizeof *h);
    if (!h)
        return NULL;
    conn_init(h, core, user);
    nj__h2_send_settings(h);
    if (h->write_closed) {
        h2_free(h);
        return NULL;
    }
    core->n_conns++;
    return h;
}

void nj_h2_close(struct nj_h2 *h)
{
    struct nj_h2_context *core = h->core;

    NJ_ASSERT(!h->busy);
    /* Calls made by the callbacks below have no effect. */
    nj__h2_record_end(h, NJ__H2_END_CLOSED, NJ_H2_NO_ERROR);
    h->write_closed = true;
    while (!nj_list_empty(&h->streams))
        nj__h2_stream_destroy(nj_container_of(h->streams.next, struct nj_h2_stream, link));
    while (!nj_list_empty(&h->half_closed))
        nj__h2_stream_destroy(nj_container_of(h->half_closed.next, struct nj_h2_stream, link));
    h2_free(h);
    core->n_conns--;
}

void nj__h2_record_end(struct nj_h2 *h, enum nj__h2_end why, enum nj_h2_error_code code)
{
    if (h->end)
        return;
    h->end = (uint8_t)why;
    h->end_code = code;
    if (why == NJ__H2_END_PROTOCOL)
        nj_count(h->core->counters, NJ_C_h2_error);
    else if (why == NJ__H2_END_ABUSE)
        nj_count(h->core->counters, NJ_C_h2_abuse);
}

void nj__h2_conn_error(struct nj_h2 *h, enum nj_h2_error_code code)
{
    nj__h2_record_end(h, NJ__H2_END_PROTOCOL, code);
}

void nj__h2_out_of_memory(struct nj_h2 *h)
{
    h->write_closed = true; /* the sink may hold part of a frame */
    nj__h2_record_end(h, NJ__H2_END_MEMORY, NJ_H2_INTERNAL_ERROR);
}

void nj_h2_end_for_abuse(struct nj_h2 *h, enum nj_h2_abuse why)
{
    if (!h->end)
        h->abuse = (uint8_t)why;
    nj__h2_record_end(h, NJ__H2_END_ABUSE, NJ_H2_ENHANCE_YOUR_CALM);
}

enum nj_h2_abuse nj_h2_abuse_reason(const struct nj_h2 *h)
{
    return (enum nj_h2_abuse)h->abuse;
}

bool nj_h2_has_protocol_error(const struct nj_h2 *h)
{
    return h->end == NJ__H2_END_PROTOCOL;
}

/* ---- GOAWAY (RFC 9113 6.8) ---- */

static const char *const abuse_text[NJ_H2_N_ABUSES] = {
    [NJ_H2_ABUSE_NONE] = "",
#define NJ_H2_ABUSE(NAME, name, text) [NJ_H2_ABUSE_##NAME] = text,
#include "h2/abuse_kinds.def"
#undef NJ_H2_ABUSE
};
#define NJ_H2_ABUSE(NAME, name, text)                                                              \
    _Static_assert(sizeof text - 1 <= NJ_H2_ABUSE_TEXT_MAX, "debug data is short");
#include "h2/abuse_kinds.def"
#undef NJ_H2_ABUSE

static const char *frame_text(const struct nj_h2 *h)
{
    static const char *const text[] = {
        [NJ__H2_DATA] = "DATA",
        [NJ__H2_HEADERS] = "HEADERS",
        [NJ__H2_PRIORITY] = "PRIORITY",
        [NJ__H2_RST_STREAM] = "RST_STREAM",
        [NJ__H2_SETTINGS] = "SETTINGS",
        [NJ__H2_PUSH_PROMISE] = "PUSH_PROMISE",
        [NJ__H2_PING] = "PING",
        [NJ__H2_GOAWAY] = "GOAWAY",
        [NJ__H2_WINDOW_UPDATE] = "WINDOW_UPDATE",
        [NJ__H2_CONTINUATION] = "CONTINUATION",
        [NJ__H2_PRIORITY_UPDATE] = "PRIORITY_UPDATE",
    };
    uint8_t type = h->frame.type;

    if (!h->preface_seen)
        return "preface";
    return type < NJ_ARRAY_LEN(text) && text[type] ? text[type] : "unknown frame";
}

static const char *code_text(uint32_t code)
{
    switch (code) {
    case NJ_H2_FLOW_CONTROL_ERROR:
        return ": beyond the window";
    case NJ_H2_FRAME_SIZE_ERROR:
        return ": wrong length";
    case NJ_H2_STREAM_CLOSED:
        return ": stream is closed";
    case NJ_H2_COMPRESSION_ERROR:
        return ": can't be decoded";
    default:
        return ": not allowed by RFC 9113";
    }
}

/* `what` and `why` are debug data for the operator of the peer. */
static void put_goaway(struct nj_h2 *h, uint32_t last, uint32_t code, const char *what,
                       const char *why)
{
    uint32_t n_what = (uint32_t)strlen(what), n_why = (uint32_t)strlen(why);
    uint32_t n = GOAWAY_BYTES + n_what + n_why;
    uint8_t *p = nj__h2_out_extend(h, NJ__H2_FRAME_HEAD + n);

    if (!p)
        return;
    p = nj__h2_put_frame_head(p, n, NJ__H2_GOAWAY, 0, 0);
    nj_put_be32(p, last);
    nj_put_be32(p + 4, code);
    memcpy(p + GOAWAY_BYTES, what, n_what);
    memcpy(p + GOAWAY_BYTES + n_what, why, n_why);
}

static void put_last_goaway(struct nj_h2 *h)
{
    bool broken = h->end == NJ__H2_END_PROTOCOL;

    put_goaway(h, h->id_last, h->end_code, broken ? frame_text(h) : abuse_text[h->abuse],
               broken ? code_text(h->end_code) : "");
}

int nj__h2_goaway_if_ended(struct nj_h2 *h)
{
    if (nj_likely(!h->end))
        return 0;
    if (!h->goaway_queued) {
        h->goaway_queued = true;
        put_last_goaway(h);
    }
    return -1;
}

/* After its GOAWAY a client opens no more streams. */
bool nj_h2_is_finished(const struct nj_h2 *h)
{
    bool nothing_comes =
        h->goaway_queued || (h->n_open == 0 && (h->goaways == 2 || h->peer_goaway));
    return h->write_closed || (nothing_comes && h->out.n == 0);
}

uint32_t nj_h2_n_streams(const struct nj_h2 *h)
{
    return h->n_streams;
}

bool nj_h2_is_idle(const struct nj_h2 *h)
{
    return h->n_streams == 0 && h->out.n == 0;
}

void nj_h2_goaway(struct nj_h2 *h)
{
    if (h->end || h->goaways == 2)
        return;
    if (h->goaways++ == 0) {
        put_goaway(h, NJ__H2_ID_MAX, NJ_H2_NO_ERROR, "", "");
        return;
    }
    nj__h2_half_closed_reset_all(h);
    put_goaway(h, h->id_last, NJ_H2_NO_ERROR, "", "");
}

void nj_h2_ping(struct nj_h2 *h)
{
    uint8_t *p = h->end ? NULL : nj__h2_out_extend(h, NJ__H2_FRAME_HEAD + PING_BYTES);
    if (!p)
        return;
    p = nj__h2_put_frame_head(p, PING_BYTES, NJ__H2_PING, 0, 0);
    nj_put_be32(p, 0);
    nj_put_be32(p + 4, 0);
    h->n_pings += h->n_pings < UINT8_MAX;
}

bool nj_h2_has_sent_goaway(const struct nj_h2 *h)
{
    return h->goaways > 0;
}

bool nj_h2_is_ping_unanswered(const struct nj_h2 *h)
{
    return h->n_pings > 0;
}

void nj_h2_prefetch(const struct nj_h2 *h)
{
    for (size_t at = 0; at < sizeof *h; at += NJ_CACHE_LINE)
        __builtin_prefetch((const uint8_t *)h + at);
}

void *nj_h2_user(const struct nj_h2 *h)
{
    return h->user;
}
