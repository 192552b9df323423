/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Implements multipart/byteranges bodies (RFC 9110 14.6, RFC 2046 5.1.1). All part headers and the
 * final delimiter are written once into one block. One inner body sends the ranges, one after the
 * other, so no other part of the file is held.
 */
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "http/files/file_body.h"
#include "http/handlers/body_blocks.h"

struct parts_body {
    struct nj_body body;
    struct nj__file_bodies *files;
    struct nj_file_object *object;
    struct nj_body *inner; /* sends range `part` */
    struct nj_block *text;
    struct nj_ranges ranges;
    uint32_t ends[NJ_RANGES_MAX + 1]; /* end offsets of the part headers within `text` */
    uint32_t part, taken_of_text;
    uint64_t n_left;
};

bool nj__multipart_init(struct nj__file_bodies *f, uint32_t n_max)
{
    return nj_pool_init(&f->parts_bodies, sizeof(struct parts_body), n_max);
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
    char digits[NJ_U64_DIGITS_MAX], *end = digits + sizeof digits;
    const char *p = nj_put_digits_backward(end, v);

    put(w, (struct nj_str){p, (uint32_t)(end - p)});
}

/* RFC 2046 5.1.1: the line break before a boundary belongs to the delimiter; the first needs
 * none. */
static void put_texts(struct parts_body *b, struct nj_str type, struct nj_str boundary,
                      struct writer *w)
{
    for (uint32_t i = 0; i < b->ranges.n; i++) {
        const struct nj_range *r = &b->ranges.range[i];
        put(w, i == 0 ? NJ_STR("--") : NJ_STR("\r\n--"));
        put(w, boundary);
        put(w, NJ_STR("\r\ncontent-type: "));
        put(w, type);
        put(w, NJ_STR("\r\ncontent-range: bytes "));
        put_number(w, r->first);
        put(w, NJ_STR("-"));
        put_number(w, r->first + r->n_bytes - 1);
        put(w, NJ_STR("/"));
        put_number(w, b->object->size_bytes);
        put(w, NJ_STR("\r\n\r\n"));
        b->ends[i] = w->n;
    }
    put(w, NJ_STR("\r\n--"));
    put(w, boundary);
    put(w, NJ_STR("--\r\n"));
    b->ends[b->ranges.n] = w->n;
}

static int parts_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    struct parts_body *b = nj_container_of(body, struct parts_body, body);
    uint32_t n = b->ends[b->part] - b->taken_of_text;

    if (n > 0) {
        n = n < n_max ? n : n_max;
        *out = (struct nj_slice){b->text->bytes + b->taken_of_text, n, &b->text->ref};
        return (int)n;
    }
    b->inner->waiter = body->waiter;
    return b->inner->ops->peek(b->inner, n_max, out);
}

static void parts_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct parts_body *b = nj_container_of(body, struct parts_body, body);
    uint32_t n = b->ends[b->part] - b->taken_of_text;

    b->n_left -= n_bytes;
    if (n > 0) {
        NJ_ASSERT(n_bytes <= n);
        b->taken_of_text += n_bytes;
        return;
    }
    b->inner->ops->advance(b->inner, n_bytes);
    if (b->inner->ops->remaining(b->inner) > 0)
        return;
    b->part++;
    if (b->part < b->ranges.n)
        nj__body_set_range(b->inner, b->object, b->ranges.range[b->part]);
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
    struct writer w = {0};

    NJ_ASSERT(boundary.n_bytes <= NJ_BOUNDARY_MAX && ranges->n > 1);
    if (!b)
        return NULL;
    *b = (struct parts_body){.body.ops = &parts_ops, .files = f, .object = object};
    b->ranges = *ranges;
    nj_ref_take(&object->ref);
    put_texts(b, type, boundary, &w);
    b->text = nj_block_malloc(w.n);
    b->inner = nj__range_body_new(f, object, ranges->range[0], client);
    if (!b->text || !b->inner) {
        parts_close(&b->body);
        return NULL;
    }
    w = (struct writer){(char *)b->text->bytes, 0};
    put_texts(b, type, boundary, &w);
    b->text->n_bytes = w.n;
    nj__body_set_outer(b->inner, &b->body);
    b->n_left = w.n;
    for (uint32_t i = 0; i < ranges->n; i++)
        b->n_left += ranges->range[i].n_bytes;
    *n_bytes = b->n_left;
    return &b->body;
}
