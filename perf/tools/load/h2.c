/* SPDX-License-Identifier: BSD-3-Clause */
#include "h2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/big_endian.h"
#include "h2/h2.h"

#define HEAD_BYTES     9u
#define FRAME_BYTES    16384u /* of a payload: the default SETTINGS_MAX_FRAME_SIZE (RFC 9113 4.2) */
#define TABLE_BYTES    4096u  /* of a peer without the setting (RFC 9113 6.5.2) */
#define ENTRY_BYTES    32u    /* additional size of each entry (RFC 7541 4.1) */
#define STATIC_ENTRIES 61u
#define WINDOW_BYTES   65535u
#define WINDOW_MAX     0x7fffffffu
#define STREAM_ID_MAX  0x7ffff000u /* slots are looked for beyond */
#define UPLOAD_MIN     1024u       /* bytes of a DATA frame, except the last */
#define REQUEST_REST   64u         /* of a request, besides its path and the common fields */

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 0x20 };
enum { SET_TABLE_BYTES = 1, SET_ENABLE_PUSH = 2, SET_STREAMS = 3, SET_WINDOW = 4 };

/* ---- encoded requests (RFC 7541) ---- */

/* 5.1: an integer with a prefix of `bits` bits, behind `flags`. Returns its octets, at most 6. */
static uint32_t put_int(uint8_t *out, uint8_t flags, unsigned prefix, uint32_t value)
{
    uint32_t most = (1u << prefix) - 1, n = 0;

    if (value < most) {
        out[0] = (uint8_t)(flags | value);
        return 1;
    }
    out[n++] = (uint8_t)(flags | most);
    for (value -= most; value >= 128; value >>= 7)
        out[n++] = (uint8_t)(value | 128);
    out[n++] = (uint8_t)value;
    return n;
}

struct block {
    uint8_t *data;
    uint32_t n_bytes;
    bool full;
};

/* 5.2, without Huffman. */
static void put_text(struct block *b, const char *text, size_t n)
{
    if (n + 6 > LOAD_BLOCK_BYTES - b->n_bytes) {
        b->full = true;
        return;
    }
    b->n_bytes += put_int(b->data + b->n_bytes, 0, 7, (uint32_t)n);
    memcpy(b->data + b->n_bytes, text, n);
    b->n_bytes += (uint32_t)n;
}

/* 6.2.1 (it enters the table) or 6.2.2. `name_index` 0: the name is written out. */
static void put_field(struct block *b, bool enter, uint32_t name_index, const char *name,
                      size_t n_name, const char *value, size_t n_value)
{
    if (b->n_bytes + 6 > LOAD_BLOCK_BYTES) {
        b->full = true;
        return;
    }
    b->n_bytes += put_int(b->data + b->n_bytes, enter ? 0x40 : 0, enter ? 6 : 4, name_index);
    if (name_index == 0)
        put_text(b, name, n_name);
    put_text(b, value, n_value);
}

static void common_field(struct load_plan *p, struct block *first, struct block *plain,
                         uint32_t *table, uint32_t index, const char *name, size_t n_name,
                         const char *value, size_t n_value)
{
    put_field(first, true, index, name, n_name, value, n_value);
    put_field(plain, false, index, name, n_name, value, n_value);
    *table += (uint32_t)(n_name + n_value) + ENTRY_BYTES;
    p->h2.n_common++;
}

static bool make(struct load_plan *p, const char *authority, const char *const *fields,
                 uint32_t n_fields)
{
    struct block first = {.data = p->h2.first}, plain = {.data = p->h2.plain};
    uint32_t table = 0;
    char digits[24];

    p->h2.method = p->upload_bytes ? 3 : 2; /* :method POST, GET */
    p->h2.n_common = 0;
    common_field(p, &first, &plain, &table, 1, ":authority", 10, authority, strlen(authority));
    if (p->upload_bytes) {
        int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)p->upload_bytes);
        common_field(p, &first, &plain, &table, 28, "content-length", 14, digits, (size_t)n);
    }
    for (uint32_t i = 0; i < n_fields; i++) {
        const char *colon = strchr(fields[i], ':');
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        common_field(p, &first, &plain, &table, 0, fields[i], (size_t)(colon - fields[i]), value,
                     strlen(value));
    }
    p->h2.n_first = first.n_bytes;
    p->h2.n_plain = plain.n_bytes;
    p->request_max = 0;
    for (uint32_t i = 0; i < p->n_paths; i++) {
        uint32_t n = p->path[i].n_bytes + 5 + ENTRY_BYTES; /* ":path" */
        p->path[i].indexed = table + n <= TABLE_BYTES;
        table += p->path[i].indexed ? n : 0;
        if (p->request_max < p->path[i].n_bytes)
            p->request_max = p->path[i].n_bytes;
    }
    p->request_max +=
        HEAD_BYTES + REQUEST_REST + (first.n_bytes > plain.n_bytes ? first.n_bytes : plain.n_bytes);
    return !first.full && !plain.full && table <= TABLE_BYTES;
}

/* ---- frames out ---- */

static uint8_t *room(struct load_out *out, uint32_t n)
{
    if (out->n_max - out->n_bytes < n) {
        out->full = true;
        return NULL;
    }
    uint8_t *at = out->data + out->n_bytes;
    out->n_bytes += n;
    return at;
}

static void put_head(uint8_t *f, uint32_t n, uint8_t type, uint8_t flags, uint32_t stream)
{
    f[0] = (uint8_t)(n >> 16);
    f[1] = (uint8_t)(n >> 8);
    f[2] = (uint8_t)n;
    f[3] = type;
    f[4] = flags;
    nj_put_be32(f + 5, stream);
}

static void put_frame(struct load_out *out, uint8_t type, uint8_t flags, uint32_t stream,
                      const uint8_t *payload, uint32_t n)
{
    uint8_t *f = room(out, HEAD_BYTES + n);

    if (!f)
        return;
    put_head(f, n, type, flags, stream);
    if (n > 0)
        memcpy(f + HEAD_BYTES, payload, n);
}

static void put_frame32(struct load_out *out, uint8_t type, uint32_t stream, uint32_t value)
{
    uint8_t payload[4];

    nj_put_be32(payload, value);
    put_frame(out, type, 0, stream, payload, sizeof payload);
}

/* ---- a connection ---- */

static struct h2_conn *of(struct load_conn *conn)
{
    return nj_container_of(conn, struct h2_conn, conn);
}

static bool open_conn(struct load_conn *conn, const struct load_plan *plan, void *user,
                      struct load_out *out)
{
    struct h2_conn *c = of(conn);
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    uint8_t settings[12] = {0, SET_ENABLE_PUSH, 0, 0, 0, 0, 0, SET_WINDOW};
    uint32_t n_slots = 1;

    while (n_slots < plan->streams)
        n_slots *= 2;
    *c = (struct h2_conn){.conn = {.plan = plan, .user = user},
                          .next_id = 1,
                          .mask = n_slots - 1,
                          .streams_max = 100, /* until its SETTINGS arrive, as nghttp2 assumes */
                          .window = WINDOW_BYTES,
                          .initial_window = WINDOW_BYTES};
    c->stream = calloc(n_slots, sizeof *c->stream);
    c->known = calloc(plan->n_paths, sizeof *c->known);
    if (!c->stream || !c->known || nghttp2_hd_inflate_new(&c->inflater) != 0)
        return false;
    uint8_t *f = room(out, sizeof preface - 1);
    if (!f)
        return false;
    memcpy(f, preface, sizeof preface - 1);
    nj_put_be32(settings + 8, plan->window);
    put_frame(out, SETTINGS, 0, 0, settings, sizeof settings);
    put_frame32(out, WINDOW_UPDATE, 0, WINDOW_MAX - WINDOW_BYTES);
    return true;
}

static void stream_over(struct h2_conn *c, struct h2_stream *s, enum load_end end, nj_ns now)
{
    struct load_request r = s->r;

    s->id = 0;
    c->conn.n_open--;
    c->conn.plan->ended(c->conn.user, &r, end, now);
}

static void close_conn(struct load_conn *conn, nj_ns now)
{
    struct h2_conn *c = of(conn);

    for (uint32_t i = 0; c->stream && i <= c->mask; i++)
        if (c->stream[i].id)
            stream_over(c, &c->stream[i], LOAD_LOST, now);
    if (c->inflater)
        nghttp2_hd_inflate_del(c->inflater);
    free(c->part);
    free(c->stream);
    free(c->known);
    *c = (struct h2_conn){0};
}

static struct h2_stream *slot_of(const struct h2_conn *c, uint32_t id)
{
    return &c->stream[(id >> 1) & c->mask];
}

static struct h2_stream *find(const struct h2_conn *c, uint32_t id)
{
    struct h2_stream *s = slot_of(c, id);
    return id && s->id == id ? s : NULL;
}

static uint32_t requests_room(const struct load_conn *conn)
{
    const struct h2_conn *c = nj_container_of(conn, const struct h2_conn, conn);
    uint32_t most = conn->plan->streams < c->streams_max ? conn->plan->streams : c->streams_max;

    return conn->leaving || conn->n_open >= most ? 0 : most - conn->n_open;
}

/* The path and the other fields of requests, behind :method and :scheme. */
static uint32_t encode(struct h2_conn *c, uint32_t path, uint8_t *out)
{
    const struct load_plan *p = c->conn.plan;
    struct block b = {.data = out};

    if (c->plain && !c->plain_told)
        out[b.n_bytes++] = 0x20; /* 6.3: the table is empty from now on */
    c->plain_told |= c->plain;
    out[b.n_bytes++] = 0x80 | p->h2.method;
    out[b.n_bytes++] = 0x80 | (p->is_https ? 7 : 6); /* :scheme */
    if (c->known[path] && !c->plain) {
        uint32_t number = c->known[path] - 1u;
        b.n_bytes += put_int(out + b.n_bytes, 0x80, 7, STATIC_ENTRIES + c->n_inserted - number);
    } else {
        bool enter = p->path[path].indexed && !c->plain && c->n_seen;
        put_field(&b, enter, 4, NULL, 0, p->path[path].text, p->path[path].n_bytes);
        if (enter)
            c->known[path] = (uint16_t)++c->n_inserted;
    }
    if (c->plain || !c->n_seen) {
        uint32_t n = c->plain ? p->h2.n_plain : p->h2.n_first;
        memcpy(out + b.n_bytes, c->plain ? p->h2.plain : p->h2.first, n);
        c->n_inserted += c->plain ? 0 : p->h2.n_common;
        b.n_bytes += n;
    } else {
        for (uint32_t i = 0; i < p->h2.n_common; i++)
            b.n_bytes += put_int(out + b.n_bytes, 0x80, 7, STATIC_ENTRIES + c->n_inserted - i);
    }
    c->n_seen = 1;
    return b.n_bytes;
}

static void ask(struct load_conn *conn, uint32_t path, nj_ns due, struct load_out *out)
{
    struct h2_conn *c = of(conn);
    uint8_t block[LOAD_BLOCK_BYTES * 2 + 64];
    struct h2_stream *s;

    while (
        (s = slot_of(c, c->next_id))->id) /* this stream is not finished: its slot stays occupied */
        c->next_id += 2;
    *s = (struct h2_stream){.id = c->next_id,
                            .r.due = due,
                            .upload_left = c->conn.plan->upload_bytes,
                            .asked_all = c->conn.plan->upload_bytes == 0,
                            .window = c->initial_window,
                            .length = UINT64_MAX};
    c->next_id += 2;
    c->conn.leaving |= c->next_id > STREAM_ID_MAX;
    c->conn.n_open++;
    put_frame(out, HEADERS, END_HEADERS | (s->asked_all ? END_STREAM : 0), s->id, block,
              encode(c, path, block));
}

/* One frame of one body; 0: the windows permit none. */
static uint32_t upload_one(struct h2_conn *c, struct h2_stream *s, struct load_out *out)
{
    int64_t n = (int64_t)s->upload_left, space = (int64_t)(out->n_max - out->n_bytes) - HEAD_BYTES;

    n = n < s->window ? n : s->window;
    n = n < c->window ? n : c->window;
    n = n < space ? n : space;
    n = n < FRAME_BYTES ? n : FRAME_BYTES;
    if (n <= 0 || (space < UPLOAD_MIN && (uint64_t)n < s->upload_left))
        return 0;
    s->upload_left -= (uint64_t)n;
    s->window -= n;
    c->window -= n;
    s->asked_all = s->upload_left == 0;
    uint8_t *f = room(out, HEAD_BYTES + (uint32_t)n);
    put_head(f, (uint32_t)n, DATA, s->asked_all ? END_STREAM : 0, s->id);
    memset(f + HEAD_BYTES, 'n', (size_t)n);
    return (uint32_t)n;
}

static uint64_t upload(struct load_conn *conn, struct load_out *out)
{
    struct h2_conn *c = of(conn);
    uint64_t sum = 0;

    if (c->conn.plan->upload_bytes == 0)
        return 0;
    for (uint32_t n_idle = 0; n_idle <= c->mask;) {
        struct h2_stream *s = &c->stream[c->upload_next++ & c->mask];
        uint32_t n = s->id && !s->asked_all ? upload_one(c, s, out) : 0;
        n_idle = n ? 0 : n_idle + 1;
        sum += n;
    }
    return sum;
}

static bool give_up(struct load_conn *conn, nj_ns due, nj_ns now, struct load_out *out)
{
    struct h2_conn *c = of(conn);

    for (uint32_t i = 0; i <= c->mask; i++) {
        struct h2_stream *s = &c->stream[i];
        if (!s->id || s->r.due >= due)
            continue;
        put_frame32(out, RST_STREAM, s->id, NJ_H2_CANCEL);
        stream_over(c, s, LOAD_TIMEOUT, now);
    }
    return true;
}

/* ---- frames in ---- */

static bool wrong(struct h2_conn *c, const char *what)
{
    c->conn.fault = what;
    return false;
}

static bool response_over(struct h2_conn *c, struct h2_stream *s, nj_ns now, struct load_out *out)
{
    /* In a 304, content-length is the length of the corresponding 200 (RFC 9110 8.6). */
    if (s->length != UINT64_MAX && s->r.status != 304 && s->length != s->r.n_body)
        return wrong(c, "a body of another length than content-length says");
    if (!s->asked_all) /* the response ended before the request; RFC 9113 8.1 */
        put_frame32(out, RST_STREAM, s->id, NJ_H2_CANCEL);
    stream_over(c, s, LOAD_DONE, now);
    return true;
}

/* Received bytes are returned when they reach half of the window, so that the peer never waits. */
static void window_back(struct h2_conn *c, struct h2_stream *s, uint32_t n, struct load_out *out)
{
    c->n_unreported += n;
    if (c->n_unreported >= WINDOW_MAX / 2) {
        put_frame32(out, WINDOW_UPDATE, 0, c->n_unreported);
        c->n_unreported = 0;
    }
    if (!s)
        return;
    s->n_unreported += n;
    if (s->n_unreported > c->conn.plan->window / 2) {
        put_frame32(out, WINDOW_UPDATE, s->id, s->n_unreported);
        s->n_unreported = 0;
    }
}

static bool take_data(struct h2_conn *c, uint32_t id, uint32_t n, uint32_t n_pad, bool end,
                      nj_ns now, struct load_out *out)
{
    struct h2_stream *s = find(c, id);

    if (!(id & 1) || id >= c->next_id)
        return wrong(c, "DATA of a stream that nobody opened");
    window_back(c, end ? NULL : s, n, out);
    if (!s)
        return true; /* this client cancelled it */
    if (s->r.status == 0)
        return wrong(c, "DATA before HEADERS");
    s->r.n_body += n - n_pad;
    c->conn.plan->came(c->conn.user, n - n_pad);
    return !end || response_over(c, s, now, out);
}

static bool is_field(const nghttp2_nv *nv, const char *name, size_t n)
{
    return nv->namelen == n && memcmp(nv->name, name, n) == 0;
}

static void take_field(const nghttp2_nv *nv, uint16_t *status, uint64_t *length)
{
    bool is_status = nv->valuelen == 3 && is_field(nv, ":status", 7);
    uint64_t value = 0;

    if (!is_status && !is_field(nv, "content-length", 14))
        return;
    for (size_t i = 0; i < nv->valuelen; i++)
        value = value * 10 + (uint64_t)(nv->value[i] - '0');
    if (is_status)
        *status = value < 1000 ? (uint16_t)value : 0;
    else
        *length = value;
}

/* A whole field section: the head of a response, or its trailers. */
static bool take_fields(struct h2_conn *c, const uint8_t *data, size_t n, uint16_t *status,
                        uint64_t *length)
{
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t took = nghttp2_hd_inflate_hd2(c->inflater, &nv, &flags, data, n, 1);
        if (took < 0)
            return wrong(c, "a field section that can't be decoded");
        data += took;
        n -= (size_t)took;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            take_field(&nv, status, length);
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && n == 0)
            break;
    }
    nghttp2_hd_inflate_end_headers(c->inflater);
    return true;
}

static bool take_headers(struct h2_conn *c, uint32_t id, bool end, const uint8_t *data, size_t n,
                         nj_ns now, struct load_out *out)
{
    struct h2_stream *s = find(c, id);
    uint64_t length = UINT64_MAX;
    uint16_t status = 0;

    if (!(id & 1) || id >= c->next_id)
        return wrong(c, "HEADERS of a stream that nobody opened");
    if (!take_fields(c, data, n, &status, &length))
        return false;
    if (!s)
        return true;
    if (s->r.status == 0 && (status < 100 || status > 999))
        return wrong(c, "a response without a status");
    if (s->r.status == 0 && status >= 200) {
        s->r.status = status;
        s->length = length;
        s->r.first_at = now;
    }
    if (end && s->r.status == 0)
        return wrong(c, "END_STREAM with an interim response");
    return !end || response_over(c, s, now, out);
}

static bool take_settings(struct h2_conn *c, const uint8_t *p, uint32_t n, struct load_out *out)
{
    if (n % 6)
        return wrong(c, "SETTINGS of an odd size");
    for (; n > 0; p += 6, n -= 6) {
        uint32_t id = (uint32_t)p[0] << 8 | p[1], value = nj_get_be32(p + 2);
        if (id == SET_TABLE_BYTES && value < TABLE_BYTES)
            c->plain = true;
        if (id == SET_STREAMS)
            c->streams_max = value;
        if (id != SET_WINDOW)
            continue;
        if (value > WINDOW_MAX)
            return wrong(c, "SETTINGS_INITIAL_WINDOW_SIZE beyond 2^31-1");
        for (uint32_t i = 0; i <= c->mask; i++)
            c->stream[i].window += (int64_t)value - c->initial_window;
        c->initial_window = value;
    }
    c->conn.settled = true;
    put_frame(out, SETTINGS, ACK, 0, NULL, 0);
    return true;
}

/* RFC 9113 6.8: the peer does not process streams with higher identifiers. */
static bool take_goaway(struct h2_conn *c, const uint8_t *p, uint32_t n, nj_ns now)
{
    if (n < 8)
        return wrong(c, "GOAWAY that is too short");
    uint32_t last = nj_get_be32(p) & WINDOW_MAX;
    c->conn.leaving = true;
    for (uint32_t i = 0; i <= c->mask; i++)
        if (c->stream[i].id > last)
            stream_over(c, &c->stream[i], LOAD_RESET, now);
    return true;
}

static bool take_window(struct h2_conn *c, uint32_t id, const uint8_t *p, uint32_t n)
{
    struct h2_stream *s = find(c, id);

    if (n != 4)
        return wrong(c, "WINDOW_UPDATE of another size");
    if (id == 0)
        c->window += nj_get_be32(p) & WINDOW_MAX;
    else if (s)
        s->window += nj_get_be32(p) & WINDOW_MAX;
    return true;
}

/* RFC 9113 6.2: without padding and priority. */
static bool strip(struct h2_conn *c, uint8_t flags, const uint8_t **p, uint32_t *n)
{
    uint32_t before = (flags & PADDED ? 1 : 0) + (flags & WITH_PRIORITY ? 5 : 0);
    uint32_t n_pad = flags & PADDED && *n > 0 ? (*p)[0] : 0;

    if (*n < before + n_pad)
        return wrong(c, "padding longer than its frame");
    *p += before;
    *n -= before + n_pad;
    return true;
}

static bool gather(struct h2_conn *c, const uint8_t *p, uint32_t n)
{
    if (!c->part)
        c->part = malloc(LOAD_HEAD_BYTES);
    if (!c->part || n > LOAD_HEAD_BYTES - c->n_part)
        return wrong(c, "a field section or frame beyond 64 KiB, or no memory");
    memcpy(c->part + c->n_part, p, n);
    c->n_part += n;
    return true;
}

/* A complete frame, except DATA without padding. */
static bool take_frame(struct h2_conn *c, uint8_t type, uint8_t flags, uint32_t id,
                       const uint8_t *p, uint32_t n, nj_ns now, struct load_out *out)
{
    uint32_t whole = n;

    switch (type) {
    case DATA:
        return strip(c, flags & PADDED, &p, &n) &&
               take_data(c, id, whole, whole - n, flags & END_STREAM, now, out);
    case HEADERS:
        if (!strip(c, flags, &p, &n))
            return false;
        if (flags & END_HEADERS)
            return take_headers(c, id, flags & END_STREAM, p, n, now, out);
        c->block_stream = id;
        c->block_flags = flags;
        if (c->part && p >= c->part &&
            p <= c->part + c->n_part) { /* the payload itself is already in the buffer */
            memmove(c->part, p, n);
            c->n_part = n;
            return true;
        }
        return gather(c, p, n);
    case RST_STREAM:
        if (n != 4)
            return wrong(c, "RST_STREAM of another size");
        if (find(c, id))
            stream_over(c, find(c, id), LOAD_RESET, now);
        return true;
    case SETTINGS:
        return flags & ACK || take_settings(c, p, n, out);
    case PUSH_PROMISE:
        return wrong(c, "PUSH_PROMISE, though we said no");
    case PING:
        if (n != 8)
            return wrong(c, "PING of another size");
        if (!(flags & ACK))
            put_frame(out, PING, ACK, 0, p, n);
        return true;
    case GOAWAY:
        return take_goaway(c, p, n, now);
    case WINDOW_UPDATE:
        return take_window(c, id, p, n);
    default:
        return true;
    }
}

/* Part of the payload of the frame whose head is known; `whole`: the rest of it. */
static bool take_part(struct h2_conn *c, const uint8_t *data, uint32_t n, bool whole, nj_ns now,
                      struct load_out *out)
{
    uint8_t type = c->head[3], flags = c->head[4];
    uint32_t id = nj_get_be32(c->head + 5) & WINDOW_MAX;

    if (type == DATA && !(flags & PADDED))
        return take_data(c, id, n, 0, whole && (flags & END_STREAM), now, out);
    if (type != CONTINUATION && whole && c->n_part == 0)
        return take_frame(c, type, flags, id, data, n, now, out);
    if (!gather(c, data, n))
        return false;
    if (!whole || (type == CONTINUATION && !(flags & END_HEADERS)))
        return true;
    if (type != CONTINUATION)
        return take_frame(c, type, flags, id, c->part, c->n_part, now, out);
    c->block_stream = 0;
    return take_headers(c, id, c->block_flags & END_STREAM, c->part, c->n_part, now, out);
}

/* The head of a frame is complete. */
static bool begin_frame(struct h2_conn *c)
{
    uint8_t type = c->head[3];
    uint32_t id = nj_get_be32(c->head + 5) & WINDOW_MAX;

    c->left = (uint32_t)c->head[0] << 16 | (uint32_t)c->head[1] << 8 | c->head[2];
    if (!c->conn.settled && type != SETTINGS)
        return wrong(c, "the first frame is not SETTINGS: no HTTP/2 server? (--http1)");
    if (c->left > FRAME_BYTES)
        return wrong(c, "a frame beyond 16 KiB");
    if ((c->block_stream != 0) != (type == CONTINUATION) ||
        (type == CONTINUATION && id != c->block_stream))
        return wrong(c, "a field section that does not go on");
    return true;
}

static bool input(struct load_conn *conn, const uint8_t *data, uint32_t n_bytes, nj_ns now,
                  struct load_out *out)
{
    struct h2_conn *c = of(conn);

    while (n_bytes > 0) {
        if (c->n_head < HEAD_BYTES) {
            uint32_t n = HEAD_BYTES - c->n_head < n_bytes ? HEAD_BYTES - c->n_head : n_bytes;
            memcpy(c->head + c->n_head, data, n);
            c->n_head = (uint8_t)(c->n_head + n);
            data += n;
            n_bytes -= n;
            if (c->n_head == HEAD_BYTES && !begin_frame(c))
                return false;
            if (c->n_head < HEAD_BYTES || (n_bytes == 0 && c->left > 0))
                break;
        }
        uint32_t n = c->left < n_bytes ? c->left : n_bytes;
        if (!take_part(c, data, n, n == c->left, now, out))
            return false;
        data += n;
        n_bytes -= n;
        c->left -= n;
        if (c->left > 0)
            break;
        c->n_head = 0;
        if (c->block_stream == 0)
            c->n_part = 0;
    }
    return !out->full || wrong(c, "more questions than we can answer");
}

/* The end of the connection ends no response: END_STREAM does. */
static void finish(struct load_conn *conn, nj_ns now)
{
}

const struct load_framing h2_framing = {
    .alpn = "h2",
    .stream = "stream",
    .make = make,
    .open = open_conn,
    .close = close_conn,
    .input = input,
    .finish = finish,
    .room = requests_room,
    .ask = ask,
    .upload = upload,
    .give_up = give_up,
};
