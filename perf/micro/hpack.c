/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ./dev bench hpack: nanoseconds per field block, in a connection whose dynamic table is filled.
 * nightjar's codec and nghttp2's alternate in each round. Prints the medians and the quartiles of
 * the rounds. The field blocks are h2load's requests, a browser's requests with a different path
 * each, and nightjar's responses, whose date changes after 100 responses. nightjar's decoder also
 * checks whether fields are malformed (RFC 9113 8.2.1). nghttp2 does that later, in its session,
 * which is not measured.
 *
 * bench_hpack WAY TIMES runs one of the six functions TIMES times, for callgrind. The difference of
 * two runs with different TIMES excludes the setup.
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "h2/h2_internal.h"
#include "h2/hpack/hpack.h"

enum { ROUNDS = 201, TIMES = 1000, BLOCKS = 64, BLOCK_MAX = 1024, FIELDS = 10, DATES = 100 };

struct block {
    uint8_t p[BLOCK_MAX];
    size_t n;
};

struct request {
    struct block first, blocks[BLOCKS]; /* `first` fills the dynamic tables */
    struct nj__hpack_decoder *decoder;
    nghttp2_hd_inflater *inflater;
    uint32_t next_nightjar, next_nghttp2;
};

static struct nj_alloc alloc;
static struct nj__hpack_shared *shared;
static struct request h2load, browser;
static struct nj__hpack_encoder *encoder;
static nghttp2_hd_deflater *deflater;
static uint64_t sum; /* of all results, so that the compiler keeps the calls */
static uint32_t n_answers;

#define NV(n, v)                                                                                   \
    {                                                                                              \
        (uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE         \
    }

static char path[] = "/static/page-00.html?from=here";

static nghttp2_nv h2load_fields[] = {
    NV(":method", "GET"),
    NV(":scheme", "http"),
    NV(":authority", "198.18.0.1:8080"),
    NV(":path", "/128"),
    NV("user-agent", "h2load nghttp2/1.52.0"),
};

static nghttp2_nv browser_fields[] = {
    NV(":method", "GET"),
    NV(":path", path),
    NV(":authority", "www.example.org"),
    NV(":scheme", "https"),
    NV("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"),
    NV("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"),
    NV("accept-language", "en-US,en;q=0.5"),
    NV("accept-encoding", "gzip, deflate, br"),
    NV("referer", "https://www.example.org/index.html"),
    NV("te", "trailers"),
};

static char date[] = "Sun, 22 Nov 2026 03:48:00 GMT";

static const struct nj_field answer[] = {
    {NJ_STR_INIT("server"), NJ_STR_INIT("nightjar")},
    {NJ_STR_INIT("date"), {date, sizeof date - 1}},
    {NJ_STR_INIT("content-type"), NJ_STR_INIT("text/html; charset=utf-8")},
    {NJ_STR_INIT("content-length"), NJ_STR_INIT("128")},
    {NJ_STR_INIT("last-modified"), NJ_STR_INIT("Sat, 21 Nov 2026 00:00:00 GMT")},
    {NJ_STR_INIT("etag"), NJ_STR_INIT("\"65f2a1b3-80\"")},
    {NJ_STR_INIT("accept-ranges"), NJ_STR_INIT("bytes")},
};

static nghttp2_nv answer_fields[1 + NJ_ARRAY_LEN(answer)] = {NV(":status", "200")};

static int decode_nightjar(struct request *q, const struct block *b)
{
    struct nj__hpack_field f;
    int rv;
    nj__hpack_decode_begin(q->decoder, b->p, b->n);
    while ((rv = nj__hpack_decode_next(q->decoder, &f)) == 1)
        sum += f.value.n_bytes + f.token;
    return rv;
}

static int decode_nghttp2(struct request *q, const struct block *b)
{
    const uint8_t *at = b->p, *end = at + b->n;
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(q->inflater, &nv, &flags, at, (size_t)(end - at), 1);
        if (n < 0)
            return -1;
        at += n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            sum += nv.valuelen;
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            return nghttp2_hd_inflate_end_headers(q->inflater);
    }
}

static int h2load_nightjar(void)
{
    return decode_nightjar(&h2load, &h2load.blocks[h2load.next_nightjar++ % BLOCKS]);
}

static int h2load_nghttp2(void)
{
    return decode_nghttp2(&h2load, &h2load.blocks[h2load.next_nghttp2++ % BLOCKS]);
}

static int browser_nightjar(void)
{
    return decode_nightjar(&browser, &browser.blocks[browser.next_nightjar++ % BLOCKS]);
}

static int browser_nghttp2(void)
{
    return decode_nghttp2(&browser, &browser.blocks[browser.next_nghttp2++ % BLOCKS]);
}

static void next_second(void)
{
    if (n_answers++ % DATES == 0) {
        date[23] = (char)('0' + n_answers / DATES % 60 / 10);
        date[24] = (char)('0' + n_answers / DATES % 10);
    }
}

static int answer_nightjar(void)
{
    static uint8_t block[BLOCK_MAX];
    next_second();
    sum += nj__hpack_encode(encoder, block, 200, answer, NJ_ARRAY_LEN(answer), 0);
    return 0;
}

static int answer_nghttp2(void)
{
    static uint8_t block[BLOCK_MAX];
    next_second();
    ssize_t n = nghttp2_hd_deflate_hd(deflater, block, sizeof block, answer_fields,
                                      NJ_ARRAY_LEN(answer_fields));
    sum += (uint64_t)n;
    return n < 0 ? -1 : 0;
}

static const struct {
    const char *name;
    int (*run[2])(void); /* nightjar, nghttp2 */
} ways[] = {
    {"h2load, decode 5 fields", {h2load_nightjar, h2load_nghttp2}},
    {"browser, decode 10 fields", {browser_nightjar, browser_nghttp2}},
    {"response, encode 8 fields", {answer_nightjar, answer_nghttp2}},
};

/* Encodes a field block with nghttp2. False: it failed. */
static bool make_block(nghttp2_hd_deflater *d, struct block *b, nghttp2_nv *fields, size_t n)
{
    ssize_t len = nghttp2_hd_deflate_hd(d, b->p, BLOCK_MAX, fields, n);
    b->n = (size_t)len;
    return len > 0;
}

static bool make_request(struct request *q, nghttp2_nv *fields, size_t n_fields)
{
    nghttp2_hd_deflater *d;
    if (nghttp2_hd_deflate_new(&d, 4096) != 0 || nghttp2_hd_inflate_new(&q->inflater) != 0)
        return false;
    q->decoder = nj__hpack_decoder_new(shared);
    bool made = q->decoder && make_block(d, &q->first, fields, n_fields);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        path[13] = (char)('0' + i / 10);
        path[14] = (char)('0' + i % 10);
        made = made && make_block(d, &q->blocks[i], fields, n_fields);
    }
    nghttp2_hd_deflate_del(d);
    return made && decode_nightjar(q, &q->first) == 0 && decode_nghttp2(q, &q->first) == 0;
}

static bool prepare(void)
{
    static const struct nj_hash_key hpack_key = {{3, 1, 4}};

    nj_alloc_init(&alloc, SIZE_MAX);
    shared = nj__hpack_shared_new(&alloc, &hpack_key);
    if (!shared || !make_request(&h2load, h2load_fields, NJ_ARRAY_LEN(h2load_fields)) ||
        !make_request(&browser, browser_fields, NJ_ARRAY_LEN(browser_fields)))
        return false;
    for (size_t i = 0; i < NJ_ARRAY_LEN(answer); i++)
        answer_fields[1 + i] =
            (nghttp2_nv){(uint8_t *)answer[i].name.p, (uint8_t *)answer[i].value.p,
                         answer[i].name.n_bytes, answer[i].value.n_bytes, NGHTTP2_NV_FLAG_NONE};
    encoder = nj__hpack_encoder_new(shared);
    return encoder && nghttp2_hd_deflate_new(&deflater, 4096) == 0;
}

static void finish(void)
{
    nj__hpack_decoder_free(h2load.decoder);
    nj__hpack_decoder_free(browser.decoder);
    nj__hpack_encoder_free(encoder);
    nj__hpack_shared_free(shared);
    nj_alloc_fini(&alloc);
    nghttp2_hd_inflate_del(h2load.inflater);
    nghttp2_hd_inflate_del(browser.inflater);
    nghttp2_hd_deflate_del(deflater);
}

static double once(int (*run)(void), uint32_t times)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (uint32_t i = 0; i < times; i++)
        if (run() != 0)
            abort();
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / times;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
    static double ns[NJ_ARRAY_LEN(ways)][2][ROUNDS];
    if (!prepare())
        return 1;
    if (argc == 3) { /* WAY: 0 to 5; even numbers are nightjar, odd ones nghttp2 */
        size_t w = strtoul(argv[1], NULL, 10) % (2 * NJ_ARRAY_LEN(ways));
        once(ways[w / 2].run[w % 2], (uint32_t)strtoul(argv[2], NULL, 10));
        finish();
        return 0;
    }
    for (int r = 0; r < ROUNDS; r++)
        for (size_t w = 0; w < NJ_ARRAY_LEN(ways); w++)
            for (int codec = 0; codec < 2; codec++)
                ns[w][codec][r] = once(ways[w].run[codec], TIMES);
    printf("%-26s%30s%30s%8s\n", "ns per block", "nightjar", "nghttp2", "ratio");
    for (size_t w = 0; w < NJ_ARRAY_LEN(ways); w++) {
        printf("%-26s", ways[w].name);
        for (int codec = 0; codec < 2; codec++) {
            double *v = ns[w][codec];
            qsort(v, ROUNDS, sizeof *v, by_value);
            printf("%12.1f (%.1f .. %.1f)", v[ROUNDS / 2], v[ROUNDS / 4], v[ROUNDS * 3 / 4]);
        }
        printf("%8.2f\n", ns[w][1][ROUNDS / 2] / ns[w][0][ROUNDS / 2]);
    }
    finish();
    return sum == 0;
}
