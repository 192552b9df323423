/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP/2 (RFC 9113) of a client that trusts its server. */
#include <string.h>

#include "base/assert.h"
#include "testing/testing_internal.h"

#define PREFACE        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define HEAD_BYTES     9u     /* RFC 9113 4.1 */
#define FRAME_MAX      16384u /* of every peer: RFC 9113 4.2 */
#define WINDOW         65535  /* RFC 9113 6.9.2 */
#define WINDOW_MAX     0x7fffffffu
#define CODE_CANCEL    8u /* RFC 9113 7 */
#define INITIAL_WINDOW 4u /* SETTINGS_INITIAL_WINDOW_SIZE */

enum frame_type {
    DATA = 0,
    HEADERS = 1,
    RST_STREAM = 3,
    SETTINGS = 4,
    PING = 6,
    GOAWAY = 7,
    WINDOW_UPDATE = 8,
    CONTINUATION = 9
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8 };

/* --- output ----------------------------------------------------------------------------------- */

static void put32(uint8_t *to, uint32_t v)
{
    to[0] = (uint8_t)(v >> 24);
    to[1] = (uint8_t)(v >> 16);
    to[2] = (uint8_t)(v >> 8);
    to[3] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_frame(struct nj_test_client *c, enum frame_type type, uint8_t flags, uint32_t id,
                      const void *payload, uint32_t n)
{
    uint8_t head[HEAD_BYTES];

    put32(head, n << 8 | type);
    head[4] = flags;
    put32(head + 5, id);
    nj__test_append(&c->out, head, sizeof head);
    nj__test_append(&c->out, payload, n);
}

static void put_window_update(struct nj_test_client *c, uint32_t id, uint32_t n)
{
    uint8_t payload[4];

    put32(payload, n);
    if (n > 0)
        put_frame(c, WINDOW_UPDATE, 0, id, payload, sizeof payload);
}

void nj__test_h2_open(struct nj_test_client *c)
{
    uint8_t settings[6] = {0, INITIAL_WINDOW}; /* 0: each request says what room it has */

    c->next_id = 1;
    c->window = c->initial_window = WINDOW;
    nj__test_append(&c->out, PREFACE, strlen(PREFACE));
    put_frame(c, SETTINGS, 0, 0, settings, sizeof settings);
    put_window_update(c, 0, WINDOW_MAX - WINDOW);
}

/* RFC 7541 5.1, with a prefix of 7 bits, and 5.2 without Huffman code. */
static void put_string(struct nj__test_bytes *to, const char *text)
{
    size_t n = strlen(text);
    uint8_t byte = n < 127 ? (uint8_t)n : 127;

    nj__test_append(to, &byte, 1);
    if (n >= 127) {
        size_t rest = n - 127;
        for (; rest >= 128; rest /= 128) {
            byte = (uint8_t)(rest % 128 + 128);
            nj__test_append(to, &byte, 1);
        }
        byte = (uint8_t)rest;
        nj__test_append(to, &byte, 1);
    }
    nj__test_append(to, text, n);
}

static void put_field(struct nj__test_bytes *to, const char *name, const char *value)
{
    nj__test_append(to, "\0", 1); /* a literal without indexing: RFC 7541 6.2.2 */
    put_string(to, name);
    put_string(to, value);
}

void nj__test_h2_send_head(struct nj_test_request *r, bool ends)
{
    struct nj_test_client *c = r->client;
    struct nj__test_bytes block = {0};

    r->id = c->next_id;
    c->next_id += 2;
    r->window = c->initial_window;
    put_field(&block, ":method", r->method);
    put_field(&block, ":scheme", r->scheme);
    put_field(&block, ":authority", r->authority);
    put_field(&block, ":path", r->path);
    for (uint32_t i = 0; i < r->n_fields; i++)
        put_field(&block, r->field[i].name, r->field[i].value);
    for (size_t at = 0; at < block.n; at += FRAME_MAX) {
        uint32_t n = block.n - at < FRAME_MAX ? (uint32_t)(block.n - at) : FRAME_MAX;
        uint8_t flags = at + n == block.n ? END_HEADERS : 0;
        put_frame(c, at == 0 ? HEADERS : CONTINUATION, flags | (at == 0 && ends ? END_STREAM : 0),
                  r->id, block.p + at, n);
    }
    free(block.p);
    r->end_sent = ends;
    put_window_update(c, r->id, r->is_slow ? r->room : NJ__TEST_CLIENT_ROOM);
}

static bool is_over(const struct nj_test_request *r)
{
    return r->resp.is_reset || r->client->is_dead;
}

static void send_body(struct nj_test_client *c, struct nj_test_request *r)
{
    while (r->pending.n > 0 && r->window > 0 && c->window > 0) {
        size_t n = r->pending.n < FRAME_MAX ? r->pending.n : FRAME_MAX;
        n = (int64_t)n < r->window ? n : (size_t)r->window;
        n = (int64_t)n < c->window ? n : (size_t)c->window;
        r->end_sent = r->is_ended && n == r->pending.n;
        put_frame(c, DATA, r->end_sent ? END_STREAM : 0, r->id, r->pending.p, (uint32_t)n);
        nj__test_consume(&r->pending, n);
        r->window -= (int64_t)n;
        c->window -= (int64_t)n;
    }
    if (r->is_ended && !r->end_sent && r->pending.n == 0) {
        put_frame(c, DATA, END_STREAM, r->id, NULL, 0);
        r->end_sent = true;
    }
}

void nj__test_h2_send_bodies(struct nj_test_client *c)
{
    for (struct nj_test_request *r = c->requests; r; r = r->next)
        if (r->id && !r->end_sent && !is_over(r))
            send_body(c, r);
}

void nj__test_h2_give_room(struct nj_test_request *r, uint32_t n_bytes)
{
    if (!is_over(r) && !r->resp.is_ended)
        put_window_update(r->client, r->id, n_bytes);
}

void nj__test_h2_reset(struct nj_test_request *r)
{
    uint8_t code[4] = {0, 0, 0, CODE_CANCEL};

    if (is_over(r) || (r->resp.is_ended && r->end_sent))
        return;
    put_frame(r->client, RST_STREAM, 0, r->id, code, sizeof code);
    r->resp.is_reset = true;
}

/* --- input ------------------------------------------------------------------------------------ */

static struct nj_test_request *find(const struct nj_test_client *c, uint32_t id)
{
    struct nj_test_request *r = c->requests;

    while (r && r->id != id)
        r = r->next;
    return r;
}

static void add_field(struct nj_test_field **list, uint32_t *n, const struct nj__hpack_field *f)
{
    *list = nj__test_resize(*list, (*n + 1) * sizeof **list);
    (*list)[*n].name = nj__test_text(f->name.p, f->name.n_bytes);
    (*list)[*n].value = nj__test_text(f->value.p, f->value.n_bytes);
    (*n)++;
}

static unsigned status_of(const struct nj__hpack_field *f)
{
    unsigned status = 0;

    for (uint32_t i = 0; i < f->value.n_bytes; i++)
        status = status * 10 + (unsigned)(f->value.p[i] - '0');
    return status;
}

static void handle_block(struct nj_test_client *c)
{
    struct nj_test_request *r = find(c, c->block_of);
    struct nj__hpack_field f;
    struct nj_test_response *resp = r ? &r->resp : NULL;
    bool is_trailer = resp && resp->status != 0, is_interim = false;

    nj__hpack_decode_begin(c->decoder, c->block.p, c->block.n);
    while (nj__hpack_decode_next(c->decoder, &f) == 1) {
        if (!resp)
            continue;
        if (f.name.n_bytes == 7 && memcmp(f.name.p, ":status", 7) == 0) {
            unsigned status = status_of(&f);
            is_interim = status < 200;
            resp->is_continued |= is_interim;
            resp->status = is_interim ? 0 : status;
        } else if (!is_interim) {
            add_field(is_trailer ? &resp->trailer : &resp->field,
                      is_trailer ? &resp->n_trailers : &resp->n_fields, &f);
        }
    }
    c->block.n = 0;
    if (resp && c->block_ends)
        resp->is_ended = true;
}

static void handle_headers(struct nj_test_client *c, enum frame_type type, uint8_t flags,
                           uint32_t id, const uint8_t *p, uint32_t n)
{
    if (type == HEADERS) {
        c->block_of = id;
        c->block_ends = flags & END_STREAM;
    }
    nj__test_append(&c->block, p, n);
    if (flags & END_HEADERS)
        handle_block(c);
}

static void handle_data(struct nj_test_client *c, uint8_t flags, uint32_t id, const uint8_t *p,
                        uint32_t n)
{
    struct nj_test_request *r = find(c, id);

    put_window_update(c, 0, n);
    if (!r)
        return;
    nj__test_append(&r->body, p, n);
    r->resp.body = (const char *)r->body.p;
    r->resp.n_bytes = r->body.n;
    if (flags & END_STREAM)
        r->resp.is_ended = true;
}

static void handle_settings(struct nj_test_client *c, uint8_t flags, const uint8_t *p, uint32_t n)
{
    if (flags & ACK)
        return;
    for (; n >= 6; p += 6, n -= 6)
        if (p[1] == INITIAL_WINDOW && p[0] == 0) {
            int64_t more = (int64_t)get32(p + 2) - c->initial_window;
            c->initial_window += more;
            for (struct nj_test_request *r = c->requests; r; r = r->next)
                r->window += more;
        }
    put_frame(c, SETTINGS, ACK, 0, NULL, 0);
}

static void handle_window_update(struct nj_test_client *c, uint32_t id, uint32_t n)
{
    struct nj_test_request *r = id ? find(c, id) : NULL;

    if (id == 0)
        c->window += n;
    else if (r)
        r->window += n;
}

static void handle_rst_stream(struct nj_test_client *c, uint32_t id, uint32_t code)
{
    struct nj_test_request *r = find(c, id);

    /* NO_ERROR after a whole response: the rest of the request is not wanted (RFC 9113 8.1). */
    if (r && !(r->resp.is_ended && code == 0)) {
        r->resp.is_reset = true;
        r->resp.reset_code = code;
    }
    if (r)
        r->end_sent = true;
}

static void handle_frame(struct nj_test_client *c, const uint8_t *p, uint32_t n)
{
    uint8_t flags = p[4];
    uint32_t id = get32(p + 5) & 0x7fffffff;

    switch ((enum frame_type)p[3]) {
    case DATA:
        handle_data(c, flags, id, p + HEAD_BYTES, n);
        break;
    case HEADERS:
    case CONTINUATION:
        handle_headers(c, (enum frame_type)p[3], flags, id, p + HEAD_BYTES, n);
        break;
    case RST_STREAM:
        handle_rst_stream(c, id, get32(p + HEAD_BYTES));
        break;
    case SETTINGS:
        handle_settings(c, flags, p + HEAD_BYTES, n);
        break;
    case PING:
        if (!(flags & ACK))
            put_frame(c, PING, ACK, 0, p + HEAD_BYTES, n);
        break;
    case GOAWAY:
        c->has_goaway = true;
        break;
    case WINDOW_UPDATE:
        handle_window_update(c, id, get32(p + HEAD_BYTES));
        break;
    }
}

void nj__test_h2_input(struct nj_test_client *c)
{
    size_t at = 0;

    while (c->in.n - at >= HEAD_BYTES) {
        uint32_t n = get32(c->in.p + at) >> 8;
        if (c->in.n - at < HEAD_BYTES + n)
            break;
        handle_frame(c, c->in.p + at, n);
        at += HEAD_BYTES + n;
    }
    nj__test_consume(&c->in, at);
}

void nj__test_h2_end(struct nj_test_client *c)
{
    for (struct nj_test_request *r = c->requests; r; r = r->next)
        if (r->id && !r->resp.is_ended)
            r->resp.is_reset = true;
}
