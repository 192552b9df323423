/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of the server: every frame is parsed and checked against the rules of RFC 9113 for
 * senders. Part of h2_rfc9113_rig.h. */
#pragma once

static inline void rfc_note(struct rfc *c, const char *format, ...)
{
    char line[400];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    uint8_t *log = (uint8_t *)c->log;
    rfc_append(&log, &c->n_log, &c->room_log, line, (size_t)n + 1);
    c->n_log--; /* the next line overwrites this one's terminator */
    c->log = (char *)log;
}

struct rfc_frame {
    uint32_t n;
    uint8_t type, flags;
    uint32_t id;
    const uint8_t *p;
};

/* A stream on which the server may send (RFC 9113 5.1, 5.1.1). */
static inline struct rfc_stream *rfc_seen_stream(struct rfc *c, const struct rfc_frame *f)
{
    struct rfc_stream *s = rfc_stream(c, f->id);
    RFC_CHECK(c, f->id % 2 == 1 && s->asked, "frame %u on %u, which the client did not open",
              f->type, f->id);
    RFC_CHECK(c, !s->reset || f->type == RFC_PRIORITY, "frame %u on %u, which was reset", f->type,
              f->id);
    return s;
}

/* RFC 9113 6.1, 6.9.1: within both windows. */
static inline void rfc_seen_data(struct rfc *c, const struct rfc_frame *f)
{
    struct rfc_stream *s = rfc_seen_stream(c, f);
    RFC_CHECK(c, s->status && !s->ended && !s->gone, "DATA on %u: status %d, ended %d, gone %d",
              f->id, s->status, s->ended, s->gone);
    RFC_CHECK(c, !(f->flags & RFC_PADDED), "padding");
    RFC_CHECK(c, f->n == 0 || (f->n <= s->window && f->n <= c->window),
              "%u bytes on %u, where the windows are %d and %d", f->n, f->id, (int)s->window,
              (int)c->window);
    RFC_CHECK(c, f->n > 0 || f->flags & RFC_END_STREAM, "empty DATA");
    s->window -= f->n;
    c->window -= f->n;
    s->n_data += f->n;
    s->n_frames++;
    s->ended = f->flags & RFC_END_STREAM;
    rfc_note(c, "DATA %u: %u%s\n", f->id, f->n, s->ended ? " end" : "");
}

/* RFC 9113 8.2.1, 8.3.2: names in lower case, :status alone and first; none in trailers. */
static inline void rfc_seen_field(struct rfc *c, struct rfc_stream *s, const nghttp2_nv *nv,
                                  bool head, unsigned nth)
{
    bool status = nv->namelen == 7 && memcmp(nv->name, ":status", 7) == 0;
    for (size_t i = 0; i < nv->namelen; i++)
        RFC_CHECK(
            c, nv->name[i] > ' ' && nv->name[i] < 127 && (nv->name[i] < 'A' || nv->name[i] > 'Z'),
            "byte %u in a name", nv->name[i]);
    RFC_CHECK(c, nv->namelen > 0 && (nv->name[0] == ':') == (head && nth == 0), "field '%.*s'",
              (int)nv->namelen, nv->name);
    if (!status)
        return;
    RFC_CHECK(c, nv->valuelen == 3, "a status of %zu digits", nv->valuelen);
    s->status = atoi((const char *)nv->value);
    RFC_CHECK(c, s->status >= 200 && s->status <= 599, "status %d", s->status);
}

/* A whole header block (RFC 9113 4.3). */
static inline void rfc_seen_block(struct rfc *c)
{
    struct rfc_stream *s = rfc_stream(c, c->block_id);
    const uint8_t *p = c->block;
    size_t n = c->n_block;
    bool head = s->status == 0;
    unsigned nth = 0;
    RFC_CHECK(c, !s->ended && !s->gone, "HEADERS on %u: ended %d, gone %d", s->id, s->ended,
              s->gone);
    RFC_CHECK(c, head || c->block_ends, "trailers without END_STREAM");
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(c->inflater, &nv, &flags, p, n, 1);
        cr_assert_geq(used, 0, "%s: a header block that can't be decoded", c->way);
        p += used;
        n -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            rfc_seen_field(c, s, &nv, head, nth++);
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && n == 0)
            break;
    }
    nghttp2_hd_inflate_end_headers(c->inflater);
    RFC_CHECK(c, s->status, "a response without status");
    s->trailers |= !head;
    s->ended = c->block_ends;
    c->block_id = 0;
    rfc_note(c, "HEADERS %u: %d, %u fields%s\n", s->id, s->status, nth, s->ended ? " end" : "");
}

static inline void rfc_seen_headers(struct rfc *c, const struct rfc_frame *f)
{
    if (f->type == RFC_HEADERS) {
        rfc_seen_stream(c, f);
        RFC_CHECK(c, !(f->flags & (RFC_PADDED | RFC_PRI)), "HEADERS with flags 0x%x", f->flags);
        c->block_id = f->id;
        c->block_ends = f->flags & RFC_END_STREAM;
        c->n_block = 0;
    }
    cr_assert_leq(c->n_block + f->n, sizeof c->block);
    memcpy(c->block + c->n_block, f->p, f->n);
    c->n_block += f->n;
    if (f->flags & RFC_END_HEADERS)
        rfc_seen_block(c);
}

/* RFC 9113 5.4.2, 6.4: once, with four bytes. */
static inline void rfc_seen_reset(struct rfc *c, const struct rfc_frame *f)
{
    struct rfc_stream *s = rfc_seen_stream(c, f);
    RFC_CHECK(c, f->n == 4, "RST_STREAM of %u bytes", f->n);
    s->reset = true;
    s->code = rfc_u32(f->p);
    rfc_note(c, "RST_STREAM %u: %u\n", s->id, s->code);
}

/* Ours is in force from here on (RFC 9113 6.5.3). */
static inline void rfc_setting_acked(struct rfc *c, const uint8_t *p)
{
    uint32_t v = rfc_u32(p + 2);
    switch (p[0] << 8 | p[1]) {
    case RFC_INITIAL_WINDOW_SIZE:
        for (uint32_t i = 0; i < c->n_streams; i++)
            c->stream[i].window += (int64_t)v - c->window_first;
        c->window_first = v;
        break;
    case RFC_HEADER_TABLE_SIZE:
        cr_assert_eq(nghttp2_hd_inflate_change_table_size(c->inflater, v), 0);
        break;
    case RFC_MAX_FRAME_SIZE:
        c->frame_max = v;
        break;
    default:
        break;
    }
}

static inline void rfc_seen_settings_ack(struct rfc *c, const struct rfc_frame *f)
{
    c->n_acks++;
    RFC_CHECK(c, f->n == 0, "SETTINGS ACK of %u bytes", f->n);
    RFC_CHECK(c, c->n_pending > 0, "SETTINGS ACK for nothing");
    rfc_note(c, "SETTINGS ACK\n");
    if (c->n_pending == 0)
        return;
    uint32_t n = c->pending_n[0];
    for (uint32_t i = 0; i < n; i++)
        rfc_setting_acked(c, c->pending[i]);
    c->n_pending--;
    c->n_pending_entries -= n;
    memmove(c->pending_n, c->pending_n + 1, c->n_pending);
    memmove(c->pending, c->pending + n, 6ul * c->n_pending_entries);
}

/* RFC 9113 6.5.2: known ones, with values in range; ENABLE_PUSH of a server is 0. */
static inline void rfc_seen_settings(struct rfc *c, const struct rfc_frame *f)
{
    if (f->flags & RFC_ACK) {
        rfc_seen_settings_ack(c, f);
        return;
    }
    RFC_CHECK(c, f->n % 6 == 0, "SETTINGS of %u bytes", f->n);
    for (uint32_t i = 0; i + 6 <= f->n; i += 6) {
        uint32_t id = (uint32_t)(f->p[i] << 8 | f->p[i + 1]), v = rfc_u32(f->p + i + 2);
        RFC_CHECK(c, id > 0 && id < NJ_ARRAY_LEN(c->setting), "setting %u", id);
        RFC_CHECK(c, id != RFC_ENABLE_PUSH || v == 0, "ENABLE_PUSH %u", v);
        RFC_CHECK(c, id != RFC_INITIAL_WINDOW_SIZE || v <= RFC_ID_MAX, "window %u", v);
        RFC_CHECK(c, id != RFC_MAX_FRAME_SIZE || (v >= 16384 && v < 1u << 24), "frame size %u", v);
        RFC_CHECK(c, id != RFC_NO_PRIORITIES || v <= 1, "priorities %u", v);
        if (id < NJ_ARRAY_LEN(c->setting)) {
            c->setting[id] = v;
            c->setting_came[id] = true;
        }
    }
    c->settled = true;
    rfc_note(c, "SETTINGS\n");
}

/* RFC 9113 6.7: an answer has the payload of the PING, in order. */
static inline void rfc_seen_ping(struct rfc *c, const struct rfc_frame *f)
{
    RFC_CHECK(c, f->n == 8, "PING of %u bytes", f->n);
    if (!(f->flags & RFC_ACK)) {
        c->n_own_pings++;
        rfc_note(c, "PING\n");
        return;
    }
    RFC_CHECK(c,
              c->n_pings < c->n_ping_sent && memcmp(&c->ping_sent[c->n_pings % 64], f->p, 8) == 0,
              "the answer to PING %u", c->n_pings);
    c->n_pings++;
    rfc_note(c, "PING ACK\n");
}

/* RFC 9113 6.8: last_stream_id never grows, and no request that was shown is above it. */
static inline void rfc_seen_goaway(struct rfc *c, const struct rfc_frame *f)
{
    RFC_CHECK(c, f->n >= 8, "GOAWAY of %u bytes", f->n);
    uint32_t last = rfc_u32(f->p) & RFC_ID_MAX;
    RFC_CHECK(c, !(f->p[0] & 0x80), "GOAWAY: the reserved bit");
    RFC_CHECK(c, c->n_goaways == 0 || last <= c->goaway_last, "GOAWAY: %u after %u", last,
              c->goaway_last);
    uint32_t highest = last == RFC_ID_MAX ? last : 0;
    for (uint32_t i = 0; i < c->n_streams; i++) {
        const struct rfc_stream *s = &c->stream[i];
        RFC_CHECK(c, !s->shown || s->id <= last, "GOAWAY: %u, but %u was shown", last, s->id);
        if (s->asked && s->id > highest)
            highest = s->id;
    }
    RFC_CHECK(c, last <= highest, "GOAWAY: %u, but the client sent no request on it", last);
    c->goaway_last = last;
    c->goaway_code = rfc_u32(f->p + 4);
    c->n_goaways++;
    /* Whether a stream counts that had no effect may depend on how the input is cut. */
    rfc_note(c, "GOAWAY: %u\n", c->goaway_code);
}

/* RFC 9113 6.9: not zero, and no window beyond 2^31-1. */
static inline void rfc_seen_window(struct rfc *c, const struct rfc_frame *f)
{
    RFC_CHECK(c, f->n == 4, "WINDOW_UPDATE of %u bytes", f->n);
    uint32_t v = rfc_u32(f->p);
    RFC_CHECK(c, v > 0 && v <= RFC_ID_MAX, "WINDOW_UPDATE by %u", v);
    *(f->id ? &rfc_seen_stream(c, f)->given : &c->given) += v;
}

/* The allowed flags and streams of each type (RFC 9113 6). */
static inline void rfc_seen_frame(struct rfc *c, const struct rfc_frame *f)
{
    static const struct {
        uint8_t flags;
        bool on_conn, on_stream;
        void (*seen)(struct rfc *, const struct rfc_frame *);
    } kinds[] = {
        [RFC_DATA] = {RFC_END_STREAM | RFC_PADDED, false, true, rfc_seen_data},
        [RFC_HEADERS] = {RFC_ENDS | RFC_PADDED | RFC_PRI, false, true, rfc_seen_headers},
        [RFC_RST_STREAM] = {0, false, true, rfc_seen_reset},
        [RFC_SETTINGS] = {RFC_ACK, true, false, rfc_seen_settings},
        [RFC_PING] = {RFC_ACK, true, false, rfc_seen_ping},
        [RFC_GOAWAY] = {0, true, false, rfc_seen_goaway},
        [RFC_WINDOW_UPDATE] = {0, true, true, rfc_seen_window},
        [RFC_CONTINUATION] = {RFC_END_HEADERS, false, true, rfc_seen_headers},
    };
    bool known = f->type < NJ_ARRAY_LEN(kinds) && kinds[f->type].seen;
    RFC_CHECK(c, known, "a frame of type %u", f->type);
    RFC_CHECK(c, c->settled || (f->type == RFC_SETTINGS && !(f->flags & RFC_ACK)),
              "frame %u before SETTINGS", f->type);
    RFC_CHECK(c,
              (f->type == RFC_CONTINUATION) == (c->block_id != 0) &&
                  (!c->block_id || c->block_id == f->id),
              "frame %u in a header block", f->type);
    RFC_CHECK(c, f->n <= c->frame_max, "a frame of %u bytes", f->n);
    if (!known)
        return;
    RFC_CHECK(c, !(f->flags & ~kinds[f->type].flags), "frame %u has flags 0x%x", f->type, f->flags);
    RFC_CHECK(c, f->id ? kinds[f->type].on_stream : kinds[f->type].on_conn, "frame %u on %u",
              f->type, f->id);
    kinds[f->type].seen(c, f);
}

/* All whole frames; the output ends with a whole frame. */
static inline void rfc_seen(struct rfc *c)
{
    size_t at = 0;
    while (c->n_out - at >= 9) {
        const uint8_t *p = c->out + at;
        struct rfc_frame f = {(uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2], p[3], p[4],
                              rfc_u32(p + 5), p + 9};
        RFC_CHECK(c, !(f.id >> 31), "frame %u: the reserved bit", f.type);
        if (c->n_out - at - 9 < f.n)
            break;
        rfc_seen_frame(c, &f);
        at += 9 + f.n;
    }
    RFC_CHECK(c, at == c->n_out, "a frame that does not end");
    c->n_out = 0;
}
