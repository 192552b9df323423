/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GOAWAY (RFC 9113 6.8): two for a graceful shutdown, and one after an error of the connection
 * (conn_error.c), whose debug data says for the operator of the peer what was wrong.
 */
#include "h2/h2_internal.h"

#include <string.h>

#include "base/compiler.h"

#define GOAWAY_BYTES 8u

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
#define NJ_H2_FRAME(NAME, type, ...) [type] = #NAME,
#include "h2/frame_types.def"
#undef NJ_H2_FRAME
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

/* ---- graceful shutdown ---- */

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

bool nj_h2_has_sent_goaway(const struct nj_h2 *h)
{
    return h->goaways > 0;
}

/* After its GOAWAY a client opens no more streams. */
bool nj_h2_is_finished(const struct nj_h2 *h)
{
    bool nothing_comes =
        h->goaway_queued || (h->n_open == 0 && (h->goaways == 2 || h->peer_goaway));
    return h->write_closed || (nothing_comes && h->out.n == 0);
}
