/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/h2: a header block equal to the previous one is not decoded twice (RFC 7541 6.1). */
#include <criterion/criterion.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "h2/h2_internal.h"
#include "telem/counters.h"

static struct nj_counters counters;
static struct nj_alloc alloc;
static struct nj_h2_context *core;
static struct nj_h2 *one, *other;
static char shown[1024]; /* the last request; empty: none since */
static unsigned n_refused;

static void on_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *req)
{
    int n = snprintf(shown, sizeof shown, "%.*s %.*s %.*s%s", (int)req->method.n_bytes,
                     req->method.p, (int)req->path.n_bytes, req->path.p,
                     (int)req->authority.n_bytes, req->authority.p, req->ends ? "" : " ...");
    for (uint32_t i = 0; i < req->n_fields; i++) {
        const struct nj_field *f = &req->fields[i];
        n += snprintf(shown + n, sizeof shown - (size_t)n, " %.*s=%.*s", (int)f->name.n_bytes,
                      f->name.p, (int)f->value.n_bytes, f->value.p);
    }
    if (req->ends)
        cr_expect_eq(nj_h2_respond(st, 200, NULL, 0, 0, NULL), 0);
}

static void on_stream_close(void *user, struct nj_h2_stream *st, bool complete)
{
}

static void on_refused(void *user, struct nj_h2_stream *st, const struct nj_request_head *req,
                       uint16_t status)
{
    cr_expect(status == 431 || (status == 400 && !req->authority.p));
    cr_expect_eq(nj_h2_respond(st, status, NULL, 0, 0, NULL), 0);
    n_refused++;
}

static const struct nj_h2_events events = {
    .on_request = on_request, .on_stream_close = on_stream_close, .on_refused = on_refused};

static uint32_t sink_room(void *ctx)
{
    return 1u << 20;
}

static bool sink_copy(void *ctx, const uint8_t *data, uint32_t n_bytes)
{
    return true;
}

static bool sink_refer(void *ctx, const struct nj_slice *slice)
{
    return true;
}

static int input(struct nj_h2 *h, const uint8_t *data, size_t n)
{
    static const struct nj_byte_sink sink = {sink_room, sink_copy, sink_refer};
    uint8_t *copy = malloc(n); /* a sanitizer reports accesses after the free */
    memcpy(copy, data, n);
    int rv = nj_h2_input(h, copy, n);
    free(copy);
    return rv == 0 ? nj_h2_output(h, &sink, NULL) : rv;
}

static struct nj_h2 *open_one(void)
{
    static const uint8_t settings[9] = {0, 0, 0, NJ__H2_SETTINGS};
    struct nj_h2 *h = nj_h2_open(core, NULL);
    cr_assert(h);
    cr_assert_eq(input(h, (const uint8_t *)NJ__H2_PREFACE, NJ__H2_PREFACE_BYTES), 0);
    cr_assert_eq(input(h, settings, sizeof settings), 0);
    return h;
}

static void begin(void)
{
    nj_alloc_init(&alloc, SIZE_MAX);
    core = nj_h2_context_new(&events, &nj_h2_limits_default, &alloc, &counters);
    cr_assert(core);
    one = open_one();
    other = open_one();
}

static void end(void)
{
    nj_h2_close(one);
    nj_h2_close(other);
    cr_expect_null(core->last_block.h);
    nj_h2_context_free(core);
    nj_alloc_fini(&alloc);
}

TestSuite(h2_last_block, .init = begin, .fini = end);

/* A block with the next id. Returns the fields that were shown. */
static const char *say(struct nj_h2 *h, const char *block, size_t n, uint8_t flags)
{
    uint8_t frame[256];
    uint32_t id = h->id_high == 0 ? 1 : h->id_high + 2;
    nj__h2_put_frame_head(frame, (uint32_t)n, NJ__H2_HEADERS, flags | NJ__H2_FLAG_END_HEADERS, id);
    memcpy(frame + NJ__H2_FRAME_HEAD, block, n);
    shown[0] = '\0';
    cr_expect_eq(input(h, frame, NJ__H2_FRAME_HEAD + n), 0);
    return shown;
}

#define ASK(h, block) say((h), "" block, sizeof(block) - 1, NJ__H2_FLAG_END_STREAM)

#define GET    "\x82\x86\x84" /* http, "/" */
#define ENTERS "\x41\1"       /* :authority, of one octet, gets into the table */
#define LAST   "\xbe"         /* the entry that came last, and the one before it */
#define BEFORE "\xbf"

Test(h2_last_block, same)
{
    ASK(one, GET ENTERS "a");
    ASK(one, "\x82\x86\x84\xbe\x40\1x\1y");
    for (int i = 0; i < 3; i++) {
        cr_expect_str_eq(ASK(one, GET BEFORE LAST), "GET / a x=y");
        cr_expect_eq(core->last_block.h, one);
    }
    core->head.req.method = NJ_STR("SEEN");
    cr_expect_str_eq(ASK(one, GET BEFORE LAST), "SEEN / a x=y", "it is not decoded twice");
    cr_expect_str_eq(ASK(one, GET BEFORE), "GET / a");
    cr_expect_str_eq(ASK(one, "\x83\x86\x84" BEFORE), "POST / a");
    cr_expect_str_eq(ASK(one, GET BEFORE), "GET / a");
}

/* The same octets are something else for another peer. */
Test(h2_last_block, of_another_connection)
{
    ASK(one, GET ENTERS "a");
    ASK(other, GET ENTERS "b");
    for (int i = 0; i < 3; i++) {
        cr_expect_str_eq(ASK(one, GET LAST), "GET / a");
        cr_expect_str_eq(ASK(other, GET LAST), "GET / b");
    }
}

/* ... or for one that has the place of another. */
Test(h2_last_block, of_one_that_went)
{
    ASK(one, GET ENTERS "a");
    ASK(one, GET LAST);
    nj_h2_close(one);
    cr_expect_null(core->last_block.h);
    one = open_one(); /* where it was, but under a sanitizer */
    static const uint8_t ask[] = {0, 0, 4, NJ__H2_HEADERS, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0xbe};
    shown[0] = '\0';
    cr_expect_eq(input(one, ask, sizeof ask), -1, "it has no such entry");
    cr_expect_str_eq(shown, "");
}

/* ... or after the table has changed: by a request, */
Test(h2_last_block, after_another_entry)
{
    ASK(one, GET ENTERS "a");
    cr_expect_str_eq(ASK(one, GET LAST), "GET / a");
    ASK(one, GET ENTERS "b");
    cr_expect_str_eq(ASK(one, GET LAST), "GET / b");
    ASK(one, "\x3f\x0f" GET ENTERS "c"); /* with a table size update: no other entry is left */
    cr_expect_str_eq(ASK(one, GET LAST), "GET / c");
}

/* ... after trailers, or after a block that is not shown. */
Test(h2_last_block, after_trailers)
{
    ASK(one, GET ENTERS "a");
    cr_expect_str_eq(ASK(one, GET LAST), "GET / a");
    cr_expect_str_eq(say(one, GET LAST, 4, 0), "GET / a ...");
    cr_expect_eq(core->last_block.h, one);
    uint8_t frame[32];
    nj__h2_put_frame_head(frame, 5, NJ__H2_HEADERS,
                          NJ__H2_FLAG_END_STREAM | NJ__H2_FLAG_END_HEADERS, one->id_high);
    memcpy(frame + NJ__H2_FRAME_HEAD, "\x40\1x\1y", 5);
    cr_expect_eq(input(one, frame, NJ__H2_FRAME_HEAD + 5), 0);
    cr_expect_str_eq(ASK(one, GET LAST), "", "no :authority");
    cr_expect_str_eq(ASK(one, GET BEFORE), "GET / a");
}

/* A block with literals that enter the table is decoded each time. */
Test(h2_last_block, literals)
{
    for (int i = 0; i < 2; i++)
        cr_expect_str_eq(ASK(one, GET ENTERS "a"), "GET / a");
    cr_expect_str_eq(ASK(one, GET BEFORE), "GET / a");
    for (int i = 0; i < 2; i++) /* of fields shown in place, no copy is kept */
        cr_expect_str_eq(ASK(one, GET LAST "\0\1x\3\xff\xff\xff"), "GET / a x=\xff\xff\xff");
    for (int i = 0; i < 2; i++)
        cr_expect_str_eq(ASK(one, GET "\1\1\xff"), "", "an authority has none such");
}

/* A malformed block is found malformed each time. */
Test(h2_last_block, malformed)
{
    uint32_t was = 0;
    for (int i = 0; i < 3; i++) {
        cr_expect_str_eq(ASK(one, GET), "", "no :authority");
        cr_expect_gt(one->glitches, was);
        was = one->glitches;
    }
}

Test(h2_last_block, too_many)
{
    core->limits.header_fields_max = 3;
    ASK(one, GET ENTERS "a");
    for (unsigned i = 1; i < 4; i++) {
        cr_expect_str_eq(ASK(one, GET LAST), "");
        cr_expect_eq(n_refused, 1 + i);
    }
}

/* A block of more octets than the cache keeps. */
Test(h2_last_block, long_one)
{
    char block[NJ__H2_LAST_BLOCK_MAX + 8];
    memset(block, 0x80 | 19, sizeof block); /* accept */
    memcpy(block, GET LAST, 4);
    ASK(one, GET ENTERS "a");
    for (size_t n = 4; n <= sizeof block; n++) {
        for (int i = 0; i < 2; i++)
            say(one, block, n, NJ__H2_FLAG_END_STREAM);
        cr_expect_eq(core->last_block.h, n <= NJ__H2_LAST_BLOCK_MAX ? one : NULL, "%zu", n);
        cr_expect_neq(shown[0], '\0');
    }
}

/* Random requests, encoded by nghttp2, for both connections. */
static void ask_random(struct nj_prng *r, struct nj_h2 *h, nghttp2_hd_deflater *deflater)
{
    static const char *const paths[] = {"/", "/a", "/bb"}, *const values[] = {"", "x", "yy"};
    const char *path = paths[nj_prng_below(r, 3)], *value = values[nj_prng_below(r, 3)];
    const char *host = h == one ? "one" : "other";
    uint8_t block[256];
    char expected[64];
    nghttp2_nv nv[] = {
        {(uint8_t *)":method", (uint8_t *)"GET", 7, 3, 0},
        {(uint8_t *)":scheme", (uint8_t *)"http", 7, 4, 0},
        {(uint8_t *)":path", (uint8_t *)path, 5, strlen(path), 0},
        {(uint8_t *)":authority", (uint8_t *)host, 10, strlen(host), 0},
        {(uint8_t *)"n", (uint8_t *)value, 1, strlen(value), nj_prng_below(r, 20) == 0},
    };
    size_t n_fields = 4 + nj_prng_below(r, 2);
    if (nj_prng_below(r, 50) == 0)
        nghttp2_hd_deflate_change_table_size(deflater, nj_prng_below(r, 2) ? 4096 : 120);
    ssize_t n = nghttp2_hd_deflate_hd(deflater, block, sizeof block, nv, n_fields);
    cr_assert_gt(n, 0);
    snprintf(expected, sizeof expected, "GET %s %s%s%s", path, host, n_fields > 4 ? " n=" : "",
             n_fields > 4 ? value : "");
    for (uint32_t last_block = nj_prng_below(r, 3); last_block < 3; last_block++) {
        cr_assert_str_eq(say(h, (const char *)block, (size_t)n, NJ__H2_FLAG_END_STREAM), expected);
        for (ssize_t i = 0; i < n; i++) /* only such blocks are remembered */
            last_block |= block[i] & 0x80 ? 0 : 3;
    }
}

Test(h2_last_block, random)
{
    nghttp2_hd_deflater *deflater[2];
    struct nj_prng r;
    nj_prng_init(&r, 1);
    cr_assert_eq(nghttp2_hd_deflate_new(&deflater[0], 4096), 0);
    cr_assert_eq(nghttp2_hd_deflate_new(&deflater[1], 4096), 0);
    for (int i = 0; i < 20000; i++) {
        uint32_t k = nj_prng_below(&r, 2);
        ask_random(&r, k ? other : one, deflater[k]);
    }
    nghttp2_hd_deflate_del(deflater[0]);
    nghttp2_hd_deflate_del(deflater[1]);
}
