/* SPDX-License-Identifier: BSD-3-Clause */
/* Input of a client: frames, valid or not, and header blocks of literals without indexing. Part of
 * h2_rfc9113_rig.h. */
#pragma once

#define RFC_MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static inline void rfc_bytes(struct rfc *c, const void *p, size_t n)
{
    rfc_append(&c->in, &c->n_in, &c->room_in, p, n);
}

/* A frame header, for any payload. */
static inline void rfc_frame_head(struct rfc *c, uint32_t n, uint8_t type, uint8_t flags,
                                  uint32_t id)
{
    uint8_t head[9] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags};
    rfc_put32(head + 5, id);
    rfc_bytes(c, head, sizeof head);
}

/* Record our own frames, to check those of the server. */
static inline void rfc_remember(struct rfc *c, uint8_t type, uint8_t flags, uint32_t id,
                                const uint8_t *p, size_t n)
{
    struct rfc_stream *s = id ? rfc_stream(c, id) : NULL;
    if (type == RFC_HEADERS && s) {
        s->asked = true;
        if (id >= c->id_next && id % 2)
            c->id_next = id + 2;
    } else if (type == RFC_RST_STREAM && s && n == 4) {
        s->gone = true;
    } else if (type == RFC_WINDOW_UPDATE && n == 4) {
        *(s ? &s->window : &c->window) += rfc_u32(p) & RFC_ID_MAX;
    } else if (type == RFC_PING && n == 8 && !(flags & RFC_ACK)) {
        memcpy(&c->ping_sent[c->n_ping_sent++ % 64], p, 8);
    } else if (type == RFC_SETTINGS && n % 6 == 0 && n <= 16384 && !id && !(flags & RFC_ACK)) {
        cr_assert(c->n_pending < 32 && c->n_pending_entries + n / 6 <= 64);
        c->pending_n[c->n_pending++] = (uint8_t)(n / 6);
        for (size_t i = 0; i < n / 6; i++)
            memcpy(c->pending[c->n_pending_entries++], p + 6 * i, 6);
    }
}

static inline void rfc_say(struct rfc *c, uint8_t type, uint8_t flags, uint32_t id,
                           const void *payload, size_t n)
{
    rfc_frame_head(c, (uint32_t)n, type, flags, id);
    rfc_bytes(c, payload, n);
    rfc_remember(c, type, flags, id & RFC_ID_MAX, payload, n);
}

/* A frame of `n` zeros. */
static inline void rfc_say_zeros(struct rfc *c, uint8_t type, uint8_t flags, uint32_t id, size_t n)
{
    uint8_t *p = calloc(1, n + 1);
    rfc_say(c, type, flags, id, p, n);
    free(p);
}

/* A frame whose payload is one 32-bit number. */
static inline void rfc_say32(struct rfc *c, uint8_t type, uint32_t id, uint32_t v)
{
    uint8_t p[4];
    rfc_put32(p, v);
    rfc_say(c, type, 0, id, p, sizeof p);
}

static inline void rfc_setting(struct rfc *c, uint16_t id, uint32_t v)
{
    uint8_t p[6] = {(uint8_t)(id >> 8), (uint8_t)id};
    rfc_put32(p + 2, v);
    rfc_say(c, RFC_SETTINGS, 0, 0, p, sizeof p);
}

static inline void rfc_magic(struct rfc *c)
{
    rfc_bytes(c, RFC_MAGIC, sizeof RFC_MAGIC - 1);
}

/* ---- header blocks (RFC 7541 6.2.2: literals without indexing, no Huffman code) ---- */

struct rfc_block {
    uint8_t p[160 * 1024];
    size_t n;
};

static inline void rfc_put_bytes(struct rfc_block *b, const void *p, size_t n)
{
    cr_assert_leq(b->n + n, sizeof b->p);
    if (n > 0)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}

/* RFC 7541 5.1, with `first` in the bits above the prefix. */
static inline void rfc_put_int(struct rfc_block *b, uint8_t first, unsigned prefix, uint64_t v)
{
    uint8_t max = (uint8_t)((1u << prefix) - 1), byte = (uint8_t)(first | max);
    if (v < max) {
        byte = (uint8_t)(first | v);
        rfc_put_bytes(b, &byte, 1);
        return;
    }
    rfc_put_bytes(b, &byte, 1);
    for (v -= max; v >= 128; v >>= 7) {
        byte = (uint8_t)(v | 128);
        rfc_put_bytes(b, &byte, 1);
    }
    byte = (uint8_t)v;
    rfc_put_bytes(b, &byte, 1);
}

static inline void rfc_put_string(struct rfc_block *b, const void *p, size_t n)
{
    rfc_put_int(b, 0, 7, n);
    rfc_put_bytes(b, p, n);
}

/* `kind`: 0x00 without indexing, 0x10 never indexed, 0x40 with. */
static inline void rfc_put_field_n(struct rfc_block *b, uint8_t kind, const void *name,
                                   size_t n_name, const void *value, size_t n_value)
{
    rfc_put_bytes(b, &kind, 1);
    rfc_put_string(b, name, n_name);
    rfc_put_string(b, value, n_value);
}

static inline void rfc_put_field(struct rfc_block *b, const char *name, const char *value)
{
    rfc_put_field_n(b, 0, name, strlen(name), value, strlen(value));
}

/* Names and values by turns, and NULL. */
static inline void rfc_put_fields(struct rfc_block *b, va_list ap)
{
    const char *name;
    while ((name = va_arg(ap, const char *)))
        rfc_put_field(b, name, va_arg(ap, const char *));
}

#define RFC_FIELDS(method, path)                                                                   \
    ":method", method, ":scheme", "http", ":path", path, ":authority", "host.example"
#define RFC_GET  RFC_FIELDS("GET", "/")
#define RFC_POST RFC_FIELDS("POST", "/")

/* The block of a request, for cases that cut it into frames themselves. It is valid until the next
 * call. */
__attribute__((sentinel)) static inline struct rfc_block *rfc_block(const char *name, ...)
{
    static struct rfc_block b;
    b.n = 0;
    if (!name)
        return &b;
    va_list ap;
    va_start(ap, name);
    rfc_put_field(&b, name, va_arg(ap, const char *));
    rfc_put_fields(&b, ap);
    va_end(ap);
    return &b;
}

/* HEADERS: rfc_head(c, id, flags, RFC_GET, "name", "value"). */
#define rfc_head(c, id, flags, ...) rfc_head_block(c, id, flags, rfc_block(__VA_ARGS__, NULL))

static inline void rfc_head_block(struct rfc *c, uint32_t id, uint8_t flags,
                                  const struct rfc_block *b)
{
    rfc_say(c, RFC_HEADERS, flags, id, b->p, b->n);
}

static inline void rfc_get(struct rfc *c, uint32_t id)
{
    rfc_head(c, id, RFC_ENDS, RFC_GET);
}

/* A request without an end: its body or its trailers are to come. */
static inline void rfc_post(struct rfc *c, uint32_t id)
{
    rfc_head(c, id, RFC_END_HEADERS, RFC_POST);
}

/* A GET whose path enters the HPACK table (RFC 7541 6.2.1). The other fields are in the static
 * table (RFC 7541 A): 2 is GET, 6 is http, 4 is :path, 1 is :authority. */
static inline void rfc_head_path(struct rfc *c, uint32_t id, uint8_t flags, const char *path)
{
    struct rfc_block b = {.n = 0};
    rfc_put_bytes(&b, "\x82\x86\x41\x01h\x44", 6);
    rfc_put_string(&b, path, strlen(path));
    rfc_say(c, RFC_HEADERS, flags, id, b.p, b.n);
}

/* A GET that takes path and authority from the newest entries of the table: from the last
 * rfc_head_path(). */
static inline void rfc_head_newest(struct rfc *c, uint32_t id)
{
    rfc_say(c, RFC_HEADERS, RFC_ENDS, id, "\x82\x86\xbf\xbe", 4);
}

/* HEADERS that may be refused or ignored; their entries must be in the table nevertheless (RFC 9113
 * 4.3). rfc_expect_alive() checks that. */
static inline void rfc_head_sync(struct rfc *c, uint32_t id, uint8_t flags)
{
    rfc_head_path(c, id, flags, "/sync");
    c->sync = RFC_SYNC_PATH;
}

/* The same for a block without pseudo fields. */
static inline void rfc_trailers_sync(struct rfc *c, uint32_t id, uint8_t flags)
{
    rfc_say(c, RFC_HEADERS, flags, id, "\x40\5x-sum\0019", 9);
    c->sync = RFC_SYNC_FIELD;
}
