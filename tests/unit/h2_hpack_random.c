/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Differential test with nghttp2's HPACK in both directions: long-lived connections that share one
 * context, from a seed (NJ_SEED replays one).
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/hpack_both.h"

enum { CONNS = 4, BLOCKS = 8000, FIELDS = 24, TEXT = 64 * 1024, BLOCK = 256 * 1024 };

struct conn {
    struct both in;                 /* nightjar's and nghttp2's decoder of requests */
    nghttp2_hd_deflater *deflater;  /* nghttp2's encoder of requests */
    struct nj__hpack_encoder *out;  /* nightjar's encoder of responses */
    struct nj__hpack_decoder *back; /* both decoders of responses */
    nghttp2_hd_inflater *peer;
};

struct life {
    struct nj_prng r;
    struct nj_alloc alloc;
    struct nj__hpack_shared *shared;
    struct conn conns[CONNS];
    struct nj_field fields[FIELDS];
    nghttp2_nv nv[FIELDS];
    uint32_t n_fields;
    char text[TEXT];
    uint32_t n_text;
    uint8_t block[BLOCK];
    uint64_t seed;
    unsigned step;
    uint64_t n_octets, n_strings; /* of the encoded side */
    uint64_t n_stamped, n_again;
};

static uint32_t below(struct life *l, uint32_t n)
{
    return nj_prng_below(&l->r, n);
}

/* Few lengths are large. */
static uint32_t any_length(struct life *l)
{
    static const uint32_t most[] = {1, 4, 12, 40, 40, 150, 400, 5000};
    return below(l, 1 + most[below(l, NJ_ARRAY_LEN(most))]);
}

static struct nj_str any_text(struct life *l, uint32_t n)
{
    static const char usual[] = "abcdefghijklmnopqrstuvwxyz0123456789-/.:;=, ABCDEGT";
    if (n > TEXT - l->n_text)
        n = TEXT - l->n_text;
    struct nj_str s = {l->text + l->n_text, n};
    bool odd = below(l, 12) == 0;
    for (uint32_t i = 0; i < n; i++)
        l->text[l->n_text++] = odd ? (char)nj_prng_next(&l->r) : usual[below(l, sizeof usual - 1)];
    return s;
}

static struct nj_str print(struct life *l, const char *format, uint32_t v)
{
    char t[64];
    int n = snprintf(t, sizeof t, format, v);
    struct nj_str s = {l->text + l->n_text, (uint32_t)n};
    if ((uint32_t)n > TEXT - l->n_text)
        return NJ_STR("full");
    memcpy(l->text + l->n_text, t, (size_t)n);
    l->n_text += (uint32_t)n;
    return s;
}

/* One that peers and servers send, with values that come again, or nearly. */
static struct nj_field usual_field(struct life *l)
{
    static const struct nj_field fields[] = {
        {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")},
        {NJ_STR_INIT("content-type"), NJ_STR_INIT("text/html; charset=utf-8")},
        {NJ_STR_INIT("content-type"), NJ_STR_INIT("image/png")},
        {NJ_STR_INIT("content-type"), NJ_STR_INIT("multipart/byteranges; boundary=1234")},
        {NJ_STR_INIT("accept-ranges"), NJ_STR_INIT("bytes")},
        {NJ_STR_INIT("vary"), NJ_STR_INIT("accept-encoding")},
        {NJ_STR_INIT("set-cookie"), NJ_STR_INIT("a=b")},
        {NJ_STR_INIT("x-frame-options"), NJ_STR_INIT("DENY")},
        {NJ_STR_INIT("x-empty"), NJ_STR_INIT("")},
        {NJ_STR_INIT("location"), NJ_STR_INIT("/")},
        {NJ_STR_INIT("accept-encoding"), NJ_STR_INIT("gzip, deflate")},
        {NJ_STR_INIT("user-agent"), NJ_STR_INIT("Mozilla/5.0 (X11; Linux x86_64)")},
        {NJ_STR_INIT("te"), NJ_STR_INIT("trailers")},
    };
    switch (below(l, 8)) {
    case 0:
        return (struct nj_field){NJ_STR("date"),
                                 print(l, "Sun, 22 Nov 2026 03:48:%02u GMT", l->step / 16 % 60)};
    case 1:
        return (struct nj_field){NJ_STR("etag"), print(l, "\"%x\"", below(l, 500))};
    case 2:
        return (struct nj_field){NJ_STR("content-length"), print(l, "%u", below(l, 100000))};
    case 3:
        return (struct nj_field){print(l, "x-%u", below(l, 40)), print(l, "%u", below(l, 3))};
    default:
        return fields[below(l, NJ_ARRAY_LEN(fields))];
    }
}

static void any_fields(struct life *l)
{
    l->n_text = 0;
    l->n_fields = below(l, FIELDS + 1);
    for (uint32_t i = 0; i < l->n_fields; i++) {
        struct nj_field *f = &l->fields[i];
        *f = usual_field(l);
        if (below(l, 6) == 0)
            f->name = any_text(l, any_length(l));
        if (below(l, 6) == 0)
            f->value = any_text(l, any_length(l));
        l->nv[i] = (nghttp2_nv){(uint8_t *)f->name.p, (uint8_t *)f->value.p, f->name.n_bytes,
                                f->value.n_bytes, below(l, 8) == 0};
    }
}

/* One of some heads that are the same for a while; the date is of then. Returns its stamp. */
static uint64_t stamped_fields(struct life *l)
{
    struct nj_prng r = l->r;
    unsigned step = l->step;
    uint64_t stamp = 1 + step / 200 * 4 + below(l, 4);
    nj_prng_init(&l->r, l->seed << 32 | stamp);
    l->step = step / 200 * 16;
    l->n_text = 0;
    l->n_fields = below(l, 8);
    for (uint32_t i = 0; i < l->n_fields; i++)
        l->fields[i] = usual_field(l);
    l->step = step;
    l->r = r;
    (void)below(l, 4);
    return stamp;
}

/* ---- decoding ---- */

static void deflated(struct life *l, struct conn *c)
{
    if (below(l, 30) == 0)
        nghttp2_hd_deflate_change_table_size(c->deflater, below(l, 3) ? below(l, 4097) : 0);
    if (below(l, 60) == 0)
        nghttp2_hd_deflate_change_table_size(c->deflater, 4096);
    ssize_t n = nghttp2_hd_deflate_hd(c->deflater, l->block, sizeof l->block, l->nv, l->n_fields);
    cr_assert_geq(n, 0);
    int rv = both_block(&c->in, l->block, (size_t)n);
    cr_assert_eq(rv, 0, "seed %lu step %u", (unsigned long)l->seed, l->step);
    cr_assert_eq(c->in.n_fields, l->n_fields);
}

static uint8_t *put_string(struct life *l, uint8_t *to, struct nj_str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    if (below(l, 2)) {
        to = nj__hpack_put_number(to, 0x80, 7, (uint32_t)nj__huffman_length(p, s.n_bytes));
        return nj__huffman_encode(&l->shared->huffman, to, p, s.n_bytes);
    }
    to = nj__hpack_put_number(to, 0, 7, s.n_bytes);
    memcpy(to, p, s.n_bytes);
    return to + s.n_bytes;
}

/* Any representation of a field: some that no encoder uses, and sometimes an invalid one. */
static uint8_t *put_any(struct life *l, uint8_t *to, uint32_t n_entries, const struct nj_field *f)
{
    static const struct {
        uint8_t upper, prefix;
    } literals[] = {{0x40, 6}, {0x40, 6}, {0x00, 4}, {0x10, 4}};
    uint32_t index_max = 61 + n_entries + (below(l, 3000) == 0);
    if (below(l, 2))
        return nj__hpack_put_number(to, 0x80, 7, 1 + below(l, index_max));
    uint32_t k = below(l, NJ_ARRAY_LEN(literals));
    uint32_t index = below(l, 2) ? 1 + below(l, index_max) : 0;
    to = nj__hpack_put_number(to, literals[k].upper, literals[k].prefix, index);
    if (!index)
        to = put_string(l, to, f->name);
    return put_string(l, to, f->value);
}

/* As many as there are when the block begins, so entries that it evicts are named, too. */
static void made(struct life *l, struct conn *c)
{
    uint8_t *at = l->block;
    for (uint32_t n = below(l, 12) ? 0 : below(l, 3); n > 0; n--)
        at = nj__hpack_put_number(at, 0x20, 5, below(l, below(l, 9) ? 4097 : 4100));
    uint32_t n_entries = at == l->block ? nj__hpack_n_entries(c->in.in) : 0;
    for (uint32_t i = 0; i < l->n_fields && at < l->block + BLOCK / 2; i++)
        at = put_any(l, at, n_entries, &l->fields[i]);
    size_t n = (size_t)(at - l->block);
    if (n > 0 && below(l, 400) == 0)
        l->block[below(l, (uint32_t)n)] ^= (uint8_t)(1u << below(l, 8));
    if (n > 0 && below(l, 400) == 0)
        n -= 1;
    (void)both_block(&c->in, l->block, n);
}

static void conn_in_begin(struct conn *c, struct nj__hpack_shared *shared)
{
    cr_assert(both_init(&c->in, shared));
    cr_assert_eq(nghttp2_hd_deflate_new(&c->deflater, 4096), 0);
}

static void conn_in_end(struct conn *c)
{
    both_fini(&c->in);
    nghttp2_hd_deflate_del(c->deflater);
}

/* ---- encoding ---- */

static void conn_out_begin(struct conn *c, struct nj__hpack_shared *shared)
{
    c->out = nj__hpack_encoder_new(shared);
    c->back = nj__hpack_decoder_new(shared);
    cr_assert(c->out && c->back);
    cr_assert_eq(nghttp2_hd_inflate_new(&c->peer), 0);
}

static void conn_out_end(struct conn *c)
{
    nj__hpack_encoder_free(c->out);
    nj__hpack_decoder_free(c->back);
    nghttp2_hd_inflate_del(c->peer);
}

static void change_limit(struct life *l, struct conn *c)
{
    static const uint32_t limits[] = {0, 0, 60, 300, 1000, 4096, 4096, 4096, 65536};
    uint32_t limit = limits[below(l, NJ_ARRAY_LEN(limits))];
    nj__hpack_encoder_limit(c->out, limit);
    cr_assert_eq(nghttp2_hd_inflate_change_table_size(c->peer, limit), 0);
}

static void expect(struct life *l, struct conn *c, const uint8_t **at, const uint8_t *end,
                   struct nj_str name, struct nj_str value)
{
    struct both theirs = {.inflater = c->peer};
    struct nj__hpack_field f;
    nghttp2_nv nv;
    cr_assert_eq(nj__hpack_decode_next(c->back, &f), 1);
    cr_assert(nj_str_eq(f.name, name) && nj_str_eq(f.value, value), "seed %lu step %u: %.*s",
              (unsigned long)l->seed, l->step, (int)name.n_bytes, name.p);
    cr_assert_eq(both_theirs(&theirs, at, end, &nv), 1);
    cr_assert(both_same(name, nv.name, nv.namelen) && both_same(value, nv.value, nv.valuelen),
              "seed %lu step %u", (unsigned long)l->seed, l->step);
    /* A field that must not be compressed has the never-indexed flag. */
    cr_assert(!nj_str_eq(name, NJ_STR("set-cookie")) || nv.flags & NGHTTP2_NV_FLAG_NO_INDEX);
}

/* Encode a block and pass it to both decoders. */
static void expect_fields(struct life *l, struct conn *c, uint16_t status, size_t n)
{
    const uint8_t *at = l->block, *end = at + n;
    struct nj__hpack_field f;
    struct both theirs = {.inflater = c->peer};
    nghttp2_nv nv;
    char digits[8];
    nj__hpack_decode_begin(c->back, l->block, n);
    if (status) {
        snprintf(digits, sizeof digits, "%u", status);
        expect(l, c, &at, end, NJ_STR(":status"), (struct nj_str){digits, 3});
    }
    for (uint32_t i = 0; i < l->n_fields; i++) {
        expect(l, c, &at, end, l->fields[i].name, l->fields[i].value);
        l->n_strings += l->fields[i].name.n_bytes + l->fields[i].value.n_bytes;
    }
    cr_assert_eq(nj__hpack_decode_next(c->back, &f), 0);
    cr_assert_eq(both_theirs(&theirs, &at, end, &nv), 0);
    l->n_octets += n;
    cr_assert_leq(c->out->size, c->back->size,
                  "the encoder relies on entries that the peer does not have");
}

static void encoded(struct life *l, struct conn *c)
{
    static const uint16_t statuses[] = {200, 200, 200, 204, 206, 304, 404, 301, 503};
    uint64_t stamp = below(l, 2) ? stamped_fields(l) : 0;
    uint32_t any = stamp ? (uint32_t)stamp % 9 : below(l, NJ_ARRAY_LEN(statuses));
    uint16_t status = stamp || below(l, 8) ? statuses[any] : 0;
    for (uint32_t n = below(l, 40) ? 0 : below(l, 4); n > 0; n--)
        change_limit(l, c);
    size_t bound = nj__hpack_bound(l->fields, l->n_fields);
    cr_assert_leq(bound, BLOCK);
    size_t n = stamp ? nj__hpack_put_cached_block(c->out, l->block, stamp) : 0;
    l->n_stamped += stamp != 0;
    l->n_again += n > 0;
    if (n == 0)
        n = nj__hpack_encode(c->out, l->block, status, l->fields, l->n_fields, stamp);
    cr_assert_leq(n, bound);
    expect_fields(l, c, status, n);
}

/* ---- lives ---- */

static void step(struct life *l)
{
    struct conn *c = &l->conns[below(l, CONNS)];
    any_fields(l);
    if (below(l, 2))
        encoded(l, c);
    else if (below(l, 2) && l->step % 2)
        deflated(l, &l->conns[below(l, CONNS / 2)]);
    else
        made(l, &l->conns[CONNS / 2 + below(l, CONNS / 2)]);
    for (uint32_t i = 0; i < CONNS; i++) {
        c = &l->conns[i];
        if (c->in.broken || below(l, 2000) == 0) {
            conn_in_end(c);
            conn_in_begin(c, l->shared);
        }
        if (below(l, 2000) == 0) {
            conn_out_end(c);
            conn_out_begin(c, l->shared);
        }
    }
}

static void live(uint64_t seed)
{
    struct life *l = calloc(1, sizeof *l);
    nj_prng_init(&l->r, seed);
    l->seed = seed;
    nj_alloc_init(&l->alloc, SIZE_MAX);
    l->shared = nj__hpack_shared_new(&l->alloc, &hpack_key);
    for (uint32_t i = 0; i < CONNS; i++) {
        conn_in_begin(&l->conns[i], l->shared);
        conn_out_begin(&l->conns[i], l->shared);
    }
    for (l->step = 0; l->step < BLOCKS; l->step++)
        step(l);
    for (uint32_t i = 0; i < CONNS; i++) {
        conn_in_end(&l->conns[i]);
        conn_out_end(&l->conns[i]);
    }
    fprintf(stderr, "seed %lu: %lu octets for %lu, %lu of %lu heads again\n", (unsigned long)seed,
            (unsigned long)l->n_octets, (unsigned long)l->n_strings, (unsigned long)l->n_again,
            (unsigned long)l->n_stamped);
    cr_expect_gt(l->n_again, l->n_stamped / 10);
    cr_expect_eq(nj__hpack_shared_free_scratch(l->shared), l->alloc.bytes_used);
    nj__hpack_shared_free(l->shared);
    cr_expect_eq(l->alloc.bytes_used, 0);
    nj_alloc_fini(&l->alloc);
    free(l);
}

Test(h2_hpack_random, lives, .timeout = 110)
{
    const char *only = getenv("NJ_SEED");
    for (uint64_t seed = only ? strtoull(only, NULL, 10) : 1; seed <= 8; seed++) {
        live(seed);
        if (only)
            break;
    }
}
