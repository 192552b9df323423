/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that speak HTTP/1 by hand to a shard of shard_rig.h, and a reader of responses. */
#pragma once

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>

#include "support/shard_rig.h"

#define HTTP1_BODY_KEEP 256u
#define HTTP1_HEAD_MAX  4096u

/* One response. */
struct http1_reply {
    int status;
    bool says_close, says_keep_alive, is_chunked, has_length;
    bool is_whole;     /* its end has come, as its framing says */
    bool ends_by_fin;  /* neither a length nor chunks */
    bool wrong;        /* a byte was not rig_byte() of its place */
    uint64_t length;   /* the value of Content-Length */
    uint64_t n_body;   /* bytes of the body that came, without chunk syntax */
    uint32_t n_chunks; /* the last one included */
    char head[HTTP1_HEAD_MAX];
    char body[HTTP1_BODY_KEEP]; /* the first of it, terminated */
};

/* Bytes of the server, which are read one response after the other. */
struct http1_reader {
    const uint8_t *bytes;
    uint64_t n, at;
    bool has_fin;
};

static inline struct http1_reader http1_reader_of(const struct rig_peer *p)
{
    NJ_CHECK(p->n_got <= RIG_GOT_MAX);
    return (struct http1_reader){p->got, p->n_got, 0, p->got_fin};
}

/* The value of a field of the head, or NULL. `name` has the case that the server writes. */
static inline const char *http1_field(const struct http1_reply *a, const char *name)
{
    char line[64];

    snprintf(line, sizeof line, "\r\n%s: ", name);
    const char *at = strstr(a->head, line);
    return at ? at + strlen(line) : NULL;
}

static inline bool http1_field_is(const struct http1_reply *a, const char *name, const char *value)
{
    const char *is = http1_field(a, name);
    return is && strncmp(is, value, strlen(value)) == 0 && is[strlen(value)] == '\r';
}

static inline void http1_take_body(struct http1_reader *r, struct http1_reply *a, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++, a->n_body++) {
        uint8_t b = r->bytes[r->at++];
        if (a->n_body < HTTP1_BODY_KEEP - 1)
            a->body[a->n_body] = (char)b;
        a->wrong |= b != rig_byte(a->n_body);
    }
}

static inline void http1_take_chunks(struct http1_reader *r, struct http1_reply *a)
{
    for (;;) {
        const uint8_t *line = r->bytes + r->at, *end = memmem(line, r->n - r->at, "\r\n", 2);
        if (!end)
            return;
        uint64_t n = strtoull((const char *)line, NULL, 16), head = (uint64_t)(end - line) + 2;
        cr_assert(end > line, "chunk without a size");
        if (n == 0) { /* the trailer section ends with an empty line */
            const uint8_t *last = memmem(end, r->n - r->at - head + 2, "\r\n\r\n", 4);
            if (!last)
                return;
            r->at = (uint64_t)(last - r->bytes) + 4;
            a->n_chunks++;
            a->is_whole = true;
            return;
        }
        uint64_t left = r->n - r->at - head;
        r->at += head;
        http1_take_body(r, a, n < left ? n : left);
        if (left < n + 2)
            return;
        cr_assert(memcmp(r->bytes + r->at, "\r\n", 2) == 0, "no CRLF behind a chunk");
        r->at += 2;
        a->n_chunks++;
    }
}

/* Reads the next response. `is_head`: of a HEAD request. Returns false if there is none, or its
 * head is not complete. */
static inline bool http1_next(struct http1_reader *r, bool is_head, struct http1_reply *a)
{
    const uint8_t *begin = r->bytes + r->at;
    const uint8_t *end = r->at < r->n ? memmem(begin, r->n - r->at, "\r\n\r\n", 4) : NULL;

    memset(a, 0, sizeof *a);
    if (!end)
        return false;
    uint32_t n = (uint32_t)(end - begin) + 4;
    cr_assert(n < HTTP1_HEAD_MAX && memcmp(begin, "HTTP/1.1 ", 9) == 0, "%.*s", 40,
              (const char *)begin);
    memcpy(a->head, begin, n);
    r->at += n;
    a->status = atoi(a->head + 9);
    a->says_close = http1_field_is(a, "Connection", "close");
    a->says_keep_alive = http1_field_is(a, "Connection", "keep-alive");
    a->is_chunked = http1_field_is(a, "Transfer-Encoding", "chunked");
    a->has_length = http1_field(a, "Content-Length") != NULL;
    a->length = a->has_length ? strtoull(http1_field(a, "Content-Length"), NULL, 10) : 0;
    cr_assert(!a->is_chunked || !a->has_length);
    uint64_t left = r->n - r->at;
    if (is_head || a->status < 200 || a->status == 204 || a->status == 304) {
        a->is_whole = true;
    } else if (a->is_chunked) {
        http1_take_chunks(r, a);
    } else if (a->has_length) {
        http1_take_body(r, a, a->length < left ? a->length : left);
        a->is_whole = a->n_body == a->length;
    } else {
        http1_take_body(r, a, left);
        a->ends_by_fin = true;
        a->is_whole = r->has_fin;
    }
    return true;
}

/* The first response of a peer; status 0: none. */
static inline struct http1_reply http1_first(const struct rig_peer *p)
{
    struct http1_reader r = http1_reader_of(p);
    struct http1_reply a;

    http1_next(&r, false, &a);
    return a;
}

/* The number of whole responses, none of which may be to HEAD; the last one. */
static inline uint32_t http1_count(const struct rig_peer *p, struct http1_reply *last)
{
    struct http1_reader r = http1_reader_of(p);
    struct http1_reply a;
    uint32_t n = 0;

    while (http1_next(&r, false, &a) && a.is_whole) {
        n++;
        if (last)
            *last = a;
    }
    return n;
}

static inline void http1_send(struct rig *r, struct rig_peer *p, const char *text)
{
    uint32_t n = (uint32_t)strlen(text);

    for (uint32_t at = 0; at < n; at += 1400)
        NJ_CHECK(rig_send(r, p, text + at, n - at < 1400 ? n - at : 1400));
}

/* A request without a body, and further fields, each with its line end. */
static inline void http1_ask(struct rig *r, struct rig_peer *p, const char *method,
                             const char *path, const char *fields)
{
    char text[4096];
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a.test\r\n%s\r\n", method, path,
                     fields);

    NJ_CHECK(n < (int)sizeof text);
    http1_send(r, p, text);
}

static inline void http1_get(struct rig *r, struct rig_peer *p, const char *path)
{
    http1_ask(r, p, "GET", path, "");
}

/* The shard's only connection is of no use any more: everything was freed but the TCB. */
static inline void http1_expect_closed(const struct rig *r, const struct rig_peer *p)
{
    cr_expect(p->got_fin && !p->got_rst);
    cr_expect_eq(nj_h1_context_n_conns(r->s->conns.h1), 0);
    cr_expect_eq(r->s->conns.txns.pool.n_used, 0);
}
