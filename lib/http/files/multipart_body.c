/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements multipart/byteranges bodies (RFC 9110 14.6, RFC 2046 5.1.1). The header of a part is
 * written when the part begins, so that many ranges do not take memory for all headers. One inner
 * body sends the ranges, one after the other, so no other part of the file is held.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "http/files/file_body.h"
#include "http/handlers/body_blocks.h"

/* The ranges, and what their headers have in common. */
struct parts {
    uint64_t size_bytes; /* of the file */
    struct nj_str type, boundary;
    uint32_t n;
    struct nj_range range[]; /* the bytes of the strings follow */
};

struct parts_body {
    struct nj_body body;
    struct nj__file_bodies *files;
    struct nj_file_object *object;
    struct nj_body *inner; /* sends range `part` */
    struct parts *parts;
    bool sends_range;      /* else the header of `part`, or behind the last part its end */
    struct nj_block *text; /* that header; NULL: not yet written */
    uint32_t part;
    uint64_t n_left;
};

bool nj__multipart_init(struct nj__file_bodies *f, uint32_t n_max)
{
    return nj_pool_init(&f->parts_bodies, sizeof(struct parts_body), n_max);
}

static struct parts *new_parts(const struct nj_ranges *ranges, struct nj_str type,
                               struct nj_str boundary, uint64_t size_bytes)
{
    size_t n_ranges = ranges->n * sizeof ranges->range[0];
    struct parts *p = malloc(sizeof *p + n_ranges + type.n_bytes + boundary.n_bytes);

    if (!p)
        return NULL;
    p->size_bytes = size_bytes;
    p->n = ranges->n;
    memcpy(p->range, ranges->range, n_ranges);
    char *at = (char *)p->range + n_ranges;
    p->type = (struct nj_str){at, type.n_bytes};
    at = mempcpy(at, type.p, type.n_bytes);
    p->boundary = (struct nj_str){at, boundary.n_bytes};
    memcpy(at, boundary.p, boundary.n_bytes);
    return p;
}

/* --- part headers --- */

/* Part headers are written twice: with `out` NULL only counted */

struct writer {
    char *out;
    uint32_t n;
};

static void put(struct writer *w, struct nj_str s)
{
    if (w->out)
        memcpy(w->out + w->n, s.p, s.n_bytes);
    w->n += s.n_bytes;
}

static void put_number(struct writer *w, uint64_t v)
{
    char digits[NJ_U64_DIGITS_MAX];

    put(w, nj_str_of_u64(digits, v));
}

/* The header of part `i`, or the final delimiter. RFC 2046 5.1.1: the line break before a boundary
 * belongs to the delimiter; the first needs none. */
static void put_header(const struct parts *p, uint32_t i, struct writer *w)
{
    put(w, i == 0 ? NJ_STR("--") : NJ_STR("\r\n--"));
    put(w, p->boundary);
    if (i == p->n) {
        put(w, NJ_STR("--\r\n"));
        return;
    }
    put(w, NJ_STR("\r\ncontent-type: "));
    put(w, p->type);
    put(w, NJ_STR("\r\ncontent-range: bytes "));
    put_number(w, p->range[i].first);
    put(w, NJ_STR("-"));
    put_number(w, p->range[i].first + p->range[i].n_bytes - 1);
    put(w, NJ_STR("/"));
    put_number(w, p->size_bytes);
    put(w, NJ_STR("\r\n\r\n"));
}

/* NULL: no memory. */
static struct nj_block *new_header(const struct parts *p, uint32_t i)
{
    struct writer w = {0};

    put_header(p, i, &w);
    struct nj_block *text = nj_block_malloc(w.n);
    if (!text)
        return NULL;
    w = (struct writer){(char *)text->bytes, 0};
    put_header(p, i, &w);
    text->n_bytes = w.n;
    return text;
}

/* Of the whole body. */
static uint64_t count_bytes(const struct parts *p)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i <= p->n; i++) {
        struct writer w = {0};
        put_header(p, i, &w);
        n += w.n + (i < p->n ? p->range[i].n_bytes : 0);
    }
    return n;
}

/* --- the body --- */

static int parts_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct parts_body *b = nj_container_of(body, struct parts_body, body);

    if (b->sends_range) {
        b->inner->waiter = body->waiter;
        return b->inner->ops->peek(b->inner, n_max, out);
    }
    if (!b->text && !(b->text = new_header(b->parts, b->part)))
        return -1;
    uint32_t n = b->text->n_bytes - b->text->n_taken;
    n = n < n_max ? n : n_max;
    *out = (struct nj_slice){b->text->bytes + b->text->n_taken, n, &b->text->ref};
    return (int)n;
}

/* The header of the part was sent: its range follows. */
static void begin_part(struct parts_body *b)
{
    nj_ref_put(&b->text->ref);
    b->text = NULL;
    b->sends_range = b->part < b->parts->n;
    if (b->sends_range && b->part > 0)
        nj__body_set_range(b->inner, b->object, b->parts->range[b->part]);
}

static void parts_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct parts_body *b = nj_container_of(body, struct parts_body, body);

    b->n_left -= n_bytes;
    if (b->sends_range) {
        b->inner->ops->advance(b->inner, n_bytes);
        if (b->inner->ops->remaining(b->inner) > 0)
            return;
        b->sends_range = false;
        b->part++;
        return;
    }
    NJ_ASSERT(n_bytes <= b->text->n_bytes - b->text->n_taken);
    b->text->n_taken += n_bytes;
    if (b->text->n_taken == b->text->n_bytes)
        begin_part(b);
}

static void parts_rest(struct nj_body *body)
{
    struct parts_body *b = nj_container_of(body, struct parts_body, body);

    if (b->inner->ops->rest)
        b->inner->ops->rest(b->inner);
}

static uint64_t parts_remaining(const struct nj_body *body)
{
    return nj_container_of(body, struct parts_body, body)->n_left;
}

static void parts_close(struct nj_body *body)
{
    struct parts_body *b = nj_container_of(body, struct parts_body, body);

    if (b->inner)
        b->inner->ops->close(b->inner);
    if (b->text)
        nj_ref_put(&b->text->ref);
    free(b->parts);
    nj_ref_put(&b->object->ref);
    nj_pool_put(&b->files->parts_bodies, b);
}

static const struct nj_body_ops parts_ops = {
    .peek = parts_peek,
    .advance = parts_advance,
    .remaining = parts_remaining,
    .close = parts_close,
    .rest = parts_rest,
};

struct nj_body *nj__multipart_body_new(struct nj__file_bodies *f, struct nj_file_object *object,
                                       const struct nj_ranges *ranges, struct nj_str type,
                                       struct nj_str boundary, const void *client,
                                       uint64_t *n_bytes)
{
    struct parts_body *b = nj_pool_take(&f->parts_bodies);

    NJ_ASSERT(boundary.n_bytes <= NJ_BOUNDARY_MAX && ranges->n > 1);
    if (!b)
        return NULL;
    *b = (struct parts_body){.body.ops = &parts_ops, .files = f, .object = object};
    nj_ref_take(&object->ref);
    b->parts = new_parts(ranges, type, boundary, object->size_bytes);
    b->inner = nj__range_body_new(f, object, ranges->range[0], client);
    if (!b->parts || !b->inner) {
        parts_close(&b->body);
        return NULL;
    }
    nj__body_set_outer(b->inner, &b->body);
    *n_bytes = b->n_left = count_bytes(b->parts);
    return &b->body;
}
