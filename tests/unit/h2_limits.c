/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/h2 with malicious peers: floods end the connection within the glitch budget and in bounded
 * memory, limits give the defined response, and honest clients that resemble a flood are accepted.
 */
#include "h2_rig.h"

#include "telem/counters.h"

#define MEMORY_MAX (400u * 1024u)

/* Frames made by hand. */
struct wire {
    uint8_t b[200 * 1024];
    size_t n;
};

static struct wire w; /* tests run in processes of their own */

static void put(const void *data, size_t n)
{
    cr_assert_leq(w.n + n, sizeof w.b);
    if (n > 0)
        memcpy(w.b + w.n, data, n);
    w.n += n;
}

static void frame(uint8_t type, uint8_t flags, uint32_t id, const void *payload, size_t n)
{
    uint8_t head[9] = {
        (uint8_t)(n >> 16),  (uint8_t)(n >> 8),   (uint8_t)n,         type,       flags,
        (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
    put(head, sizeof head);
    put(payload, n);
}

static void frame32(uint8_t type, uint32_t id, uint32_t value)
{
    uint8_t p[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                    (uint8_t)value};
    frame(type, 0, id, p, 4);
}

/* GET http://a/l (never answered by the rig) */
static const uint8_t head_l[] = {0x82, 0x86, 0x04, 2, '/', 'l', 0x41, 1, 'a'};
/* GET http://a/, answered at once with no body */
static const uint8_t head_0[] = {0x82, 0x86, 0x84, 0x41, 1, 'a'};

static void request_l(uint32_t id, uint8_t flags)
{
    frame(NGHTTP2_HEADERS, flags, id, head_l, sizeof head_l);
}

#define ENDS  (NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM)
#define STAYS NGHTTP2_FLAG_END_HEADERS

static void hello(void)
{
    w.n = 0;
    put(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
}

/* The server's output: counts by type, and the code of the last GOAWAY. */
struct seen {
    uint8_t buf[1 << 16];
    size_t n;
    unsigned by_type[16];
    uint32_t goaway, rst;
    char why[64]; /* debug data of that GOAWAY */
};

static struct seen seen;

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void look(struct rig *r)
{
    for (uint32_t i = 0; i < r->n_pieces; i++) {
        cr_assert_leq(seen.n + r->piece[i].n_bytes, sizeof seen.buf);
        memcpy(seen.buf + seen.n, r->piece[i].data, r->piece[i].n_bytes);
        seen.n += r->piece[i].n_bytes;
        size_t at = 0, len;
        while (seen.n - at >= 9 && seen.n - at >= 9 + (len = be32(seen.buf + at) >> 8)) {
            uint8_t type = seen.buf[at + 3];
            seen.by_type[type % 16]++;
            if (type == NGHTTP2_GOAWAY) {
                seen.goaway = be32(seen.buf + at + 13);
                snprintf(seen.why, sizeof seen.why, "%.*s", (int)len - 8, seen.buf + at + 17);
            }
            if (type == NGHTTP2_RST_STREAM)
                seen.rst = be32(seen.buf + at + 9);
            at += 9 + len;
        }
        memmove(seen.buf, seen.buf + at, seen.n - at);
        seen.n -= at;
    }
    rig_drain(r, false);
}

static int output(struct rig *r)
{
    int rv = nj_h2_output(r->h, &rig_sink, r);
    look(r);
    return rv;
}

static int input(struct rig *r)
{
    int rv = nj_h2_input(r->h, w.b, w.n);
    w.n = 0;
    cr_assert_lt(nj_h2_context_bytes_used(r->core), MEMORY_MAX);
    return rv;
}

static struct rig *open_raw(const struct nj_h2_limits *limits)
{
    struct rig *r = rig_new(limits);
    seen = (struct seen){.goaway = UINT32_MAX};
    cr_assert_eq(output(r), 0);
    hello();
    cr_assert_eq(input(r), 0);
    cr_assert_eq(output(r), 0);
    return r;
}

/* Call `make` until the connection ends. Returns the number of calls, at most `n_max`. The server's
 * output is read after each `every` calls; 0: never. */
static unsigned flood(struct rig *r, void (*make)(unsigned i), unsigned n_max, unsigned every)
{
    for (unsigned i = 0; i < n_max; i++) {
        w.n = 0;
        make(i);
        int rv = input(r);
        if (rv == 0 && every && i % every == every - 1)
            rv = output(r);
        if (rv != 0) {
            cr_expect_eq(output(r), -1);
            return i + 1;
        }
    }
    return n_max;
}

static void expect_end(struct rig *r, uint32_t code)
{
    cr_expect_eq(seen.goaway, code, "GOAWAY %d", (int)seen.goaway);
    cr_expect_eq(nj_h2_input(r->h, head_0, 1), -1);
    cr_expect(nj_h2_is_finished(r->h));
    bool abuse = code == NGHTTP2_ENHANCE_YOUR_CALM;
    cr_expect_eq(rig_count(r, NJ_C_h2_abuse), abuse);
    cr_expect_eq(rig_count(r, NJ_C_h2_error), !abuse);
    rig_free(r);
}

static void make_reset(unsigned i)
{
    request_l(1 + 2 * i, ENDS);
    frame32(NGHTTP2_RST_STREAM, 1 + 2 * i, NGHTTP2_CANCEL);
}

static void make_ping(unsigned i)
{
    frame(NGHTTP2_PING, 0, 0, "01234567", 8);
}

static void make_settings(unsigned i)
{
    frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

static void make_priority(unsigned i)
{
    frame(NGHTTP2_PRIORITY, 0, 1 + 2 * (i % 1000), "\0\0\0\0\1", 5);
}

static void make_unknown(unsigned i)
{
    frame(0x42, 0, 0, "x", 1);
}

static void make_window(unsigned i)
{
    frame32(NGHTTP2_WINDOW_UPDATE, 0, 1);
}

static void make_empty_data(unsigned i)
{
    if (i == 0)
        request_l(1, STAYS);
    frame(NGHTTP2_DATA, 0, 1, NULL, 0);
}

static void make_padding(unsigned i)
{
    static const uint8_t pad[200] = {199};
    if (i == 0)
        request_l(1, STAYS);
    frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, pad, sizeof pad);
}

/* "MadeYouReset" (CVE-2025-8671): the client makes the server reset. */
static void make_overflow(unsigned i)
{
    request_l(1 + 2 * i, ENDS);
    frame32(NGHTTP2_WINDOW_UPDATE, 1 + 2 * i, 0x7fffffff);
}

static void make_malformed(unsigned i)
{
    frame(NGHTTP2_HEADERS, ENDS, 1 + 2 * i, head_l, 2); /* no :path */
}

/* content-length: 5, and an empty body. */
static void make_length_lie(unsigned i)
{
    static const uint8_t head[] = {0x83, 0x86, 0x84, 0x41, 1, 'a', 0x0f, 0x0d, 1, '5'};
    frame(NGHTTP2_HEADERS, STAYS, 1 + 2 * i, head, sizeof head);
    frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1 + 2 * i, NULL, 0);
}

static void make_open(unsigned i)
{
    request_l(1 + 2 * i, ENDS);
}

/* Empty DATA for a stream that is gone. */
static void make_late_data(unsigned i)
{
    if (i == 0) {
        request_l(1, STAYS);
        frame32(NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL);
    }
    frame(NGHTTP2_DATA, 0, 1, NULL, 0);
}

/* HEADERS on a closed stream: unexpected trailers. */
static void make_late_headers(unsigned i)
{
    if (i == 0) {
        request_l(1, ENDS);
        frame32(NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL);
    }
    frame(NGHTTP2_HEADERS, ENDS, 1, head_l, sizeof head_l);
}

Test(h2_limits, floods)
{
    static const struct {
        const char *name;
        void (*make)(unsigned i);
        unsigned n_max; /* of calls, the budget being 1000 */
        enum nj_h2_abuse abuse;
        const char *why; /* the text of the GOAWAY; NULL: any text */
    } floods[] = {
        {"rapid reset", make_reset, 1002, NJ_H2_ABUSE_RESETS, "too many streams reset"},
        {"ping", make_ping, 1002, NJ_H2_ABUSE_PINGS, "too many PING frames"},
        {"settings", make_settings, 1002, NJ_H2_ABUSE_SETTINGS, NULL},
        {"priority", make_priority, 1002, NJ_H2_ABUSE_PRIORITIES, NULL},
        {"unknown", make_unknown, 1002, NJ_H2_ABUSE_FRAMES, NULL},
        {"window update", make_window, 1020, NJ_H2_ABUSE_WINDOWS, NULL},
        {"empty data", make_empty_data, 1002, NJ_H2_ABUSE_EMPTY_DATA, NULL},
        {"padding", make_padding, 1002, NJ_H2_ABUSE_EMPTY_DATA, NULL},
        {"made you reset", make_overflow, 110, NJ_H2_ABUSE_WINDOWS, NULL},
        {"malformed", make_malformed, 110, NJ_H2_ABUSE_REQUESTS, NULL},
        {"length lie", make_length_lie, 1002, 0, NULL},
        {"late headers", make_late_headers, 1002, NJ_H2_ABUSE_REQUESTS, NULL},
        {"late data", make_late_data, 1002, NJ_H2_ABUSE_EMPTY_DATA, NULL},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(floods); i++) {
        struct rig *r = open_raw(NULL);
        unsigned n = flood(r, floods[i].make, 5000, 1);
        cr_expect_leq(n, floods[i].n_max, "%s: %u", floods[i].name, n);
        cr_expect_gt(n, 50, "%s: %u", floods[i].name, n);
        cr_expect(!floods[i].abuse || nj_h2_abuse_reason(r->h) == floods[i].abuse, "%s: %d",
                  floods[i].name, (int)nj_h2_abuse_reason(r->h));
        cr_expect_gt(strlen(seen.why), 0, "%s", floods[i].name);
        cr_expect(!floods[i].why || strcmp(seen.why, floods[i].why) == 0, "%s: %s", floods[i].name,
                  seen.why);
        expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
    }
}

/* The same, and the peer reads nothing: the queued output must not grow. */
Test(h2_limits, floods_unread)
{
    void (*const makes[])(unsigned) = {
        make_reset,  make_ping,       make_settings, make_priority,  make_unknown,
        make_window, make_empty_data, make_overflow, make_malformed, make_length_lie};
    for (size_t i = 0; i < NJ_ARRAY_LEN(makes); i++) {
        struct rig *r = open_raw(NULL);
        flood(r, makes[i], 5000, 0);
        (void)output(r); /* an error that nghttp2 found alone shows here */
        cr_expect_neq(seen.goaway, UINT32_MAX, "%zu", i);
        cr_expect_neq(seen.goaway, NGHTTP2_NO_ERROR, "%zu", i);
        rig_free(r);
    }
}

/* More streams than allowed before the client could know SETTINGS: refused, for a limited number of
 * streams. */
Test(h2_limits, refused_streams)
{
    struct rig *r = rig_new(NULL);
    seen = (struct seen){.goaway = UINT32_MAX};
    w.n = 0;
    put(NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    cr_assert_eq(input(r), 0);
    unsigned n = flood(r, make_open, 5000, 0);
    cr_expect_eq(r->n_req, 128);
    cr_expect_eq(rig_count(r, NJ_C_h2_streams_full), rig_count(r, NJ_C_h2_reset_out));
    cr_expect_gt(rig_count(r, NJ_C_h2_streams_full), 0);
    cr_expect_leq(n, 1200);
    cr_expect_gt(n, 500, "an eager client is not an attacker");
    expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void make_continuation(unsigned i)
{
    if (i == 0)
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, head_l, sizeof head_l);
    frame(NGHTTP2_CONTINUATION, 0, 1, "\x82", i % 2);
}

static void make_continuation_full(unsigned i)
{
    static uint8_t literal[16000] = {0x00, 0x01, 'x', 0x7f, 0xfb, 0x7b}; /* 15,994 bytes of value */
    if (i == 0)
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, head_l, sizeof head_l);
    memset(literal + 6, 'v', sizeof literal - 6);
    frame(NGHTTP2_CONTINUATION, 0, 1, literal, sizeof literal);
}

Test(h2_limits, continuation_floods)
{
    struct rig *r = open_raw(NULL);
    cr_expect_leq(flood(r, make_continuation, 10000, 1), 66);
    expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
    r = open_raw(NULL);
    cr_expect_leq(flood(r, make_continuation_full, 10000, 1), 10);
    expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* One legal header block, in many CONTINUATION frames, fed byte by byte. */
Test(h2_limits, continuation_bytewise)
{
    struct rig *r = open_raw(NULL);
    uint32_t before = r->h->glitches;
    frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, head_0, 1);
    for (size_t i = 1; i < sizeof head_0; i++)
        frame(NGHTTP2_CONTINUATION, i + 1 == sizeof head_0 ? NGHTTP2_FLAG_END_HEADERS : 0, 1,
              head_0 + i, 1);
    for (size_t i = 0; i < w.n; i++)
        cr_assert_eq(nj_h2_input(r->h, w.b + i, 1), 0);
    cr_expect_eq(r->n_req, 1);
    cr_expect_eq(r->h->glitches, before);
    rig_free(r);
}

/* A request with `n` fields of 32 + `n_value` + 1 bytes in one header block. */
static void request_with(uint32_t id, unsigned n, unsigned n_value)
{
    static uint8_t block[150 * 1024];
    size_t at = sizeof head_0;
    memcpy(block, head_0, at);
    for (unsigned i = 0; i < n; i++) {
        memcpy(block + at, "\x00\x01x", 3);
        at += 3;
        if (n_value < 127) {
            block[at++] = (uint8_t)n_value;
        } else {
            block[at++] = 127;
            block[at++] = (uint8_t)((n_value - 127) % 128 + 128);
            block[at++] = (uint8_t)((n_value - 127) / 128);
        }
        memset(block + at, 'v', n_value);
        at += n_value;
    }
    for (size_t from = 0; from < at; from += 16384) {
        size_t len = at - from < 16384 ? at - from : 16384;
        frame(from ? NGHTTP2_CONTINUATION : NGHTTP2_HEADERS,
              (from ? 0 : NGHTTP2_FLAG_END_STREAM) |
                  (from + len == at ? NGHTTP2_FLAG_END_HEADERS : 0),
              id, block + from, len);
    }
}

Test(h2_limits, too_large_head_gets_431)
{
    struct rig *r = open_raw(NULL);
    w.n = 0;
    request_with(1, 120, 10);  /* 124 fields: fits */
    request_with(3, 130, 10);  /* 134 fields */
    request_with(5, 3, 12000); /* 36 kB */
    request_with(7, 0, 0);
    cr_assert_eq(input(r), 0);
    cr_assert_eq(output(r), 0);
    cr_expect_eq(r->n_req, 2);
    cr_expect_eq(rig_count(r, NJ_C_requests), 4);
    cr_expect_eq(rig_count(r, NJ_C_status_4xx), 2);
    cr_expect_eq(rig_count(r, NJ_C_h2_header_full), 2);
    cr_expect_eq(rig_count(r, NJ_C_responses), 4);
    cr_expect_eq(nj_h2_n_streams(r->h), 0);
    rig_free(r);
}

Test(h2_limits, far_too_large_head_ends)
{
    struct rig *r = open_raw(NULL);
    request_with(1, 600, 1);
    cr_assert_eq(input(r), -1);
    cr_expect_eq(output(r), -1);
    expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* One entry of 4 kB in the dynamic table, named again and again in one byte each. */
Test(h2_limits, header_bomb)
{
    struct rig *r = open_raw(NULL);
    static uint8_t block[16384];
    size_t at = sizeof head_0;
    memcpy(block, head_0, at);
    memcpy(block + at, "\x40\x01x\x7f\x81\x1e", 6); /* indexed literal, 127 + 1 + 30 * 128 */
    at += 6;
    memset(block + at, 'v', 3968);
    at += 3968;
    memset(block + at, 0xbe, sizeof block - at); /* index 62 */
    frame(NGHTTP2_HEADERS, ENDS, 1, block, sizeof block);
    cr_assert_eq(input(r), -1);
    cr_expect_eq(output(r), -1);
    expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Trailers count with the head. */
Test(h2_limits, trailers_are_counted)
{
    struct rig *r = open_raw(NULL);
    request_l(1, STAYS);
    uint8_t trailer[130 * 4];
    for (int i = 0; i < 130; i++)
        memcpy(trailer + 4 * i, "\x00\x01x\x00", 4);
    frame(NGHTTP2_HEADERS, ENDS, 1, trailer, sizeof trailer);
    cr_assert_eq(input(r), 0);
    cr_assert_eq(output(r), 0);
    cr_expect_eq(r->n_req, 1, "trailers are no request");
    cr_expect(r->req[0].closed);
    cr_expect_eq(seen.rst, NGHTTP2_ENHANCE_YOUR_CALM);
    rig_free(r);
}

/* RFC 9113 5.1.1: an id that was jumped over can't be used later; late trailers are forgiven. */
Test(h2_limits, stream_ids)
{
    struct rig *r = open_raw(NULL);
    request_l(1, STAYS);
    frame32(NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL);
    request_l(5, ENDS);
    request_l(1, ENDS);
    cr_assert_eq(input(r), 0);
    request_l(3, ENDS);
    cr_assert_eq(input(r), -1);
    output(r);
    expect_end(r, NGHTTP2_PROTOCOL_ERROR);
    r = open_raw(NULL);
    request_l(0x7fffffff, ENDS);
    cr_assert_eq(input(r), 0);
    request_l(0x7ffffffd, ENDS);
    cr_assert_eq(input(r), -1);
    output(r);
    expect_end(r, NGHTTP2_PROTOCOL_ERROR);
}

/* RFC 9113 8.2.1: a field with forbidden bytes makes the request malformed. */
Test(h2_limits, bad_field)
{
    struct rig *r = open_raw(NULL);
    static const uint8_t head[] = {0x82, 0x86, 0x84, 0x41, 1, 'a', 0, 1, 'x', 3, 'a', '\n', 'b'};
    frame(NGHTTP2_HEADERS, ENDS, 1, head, sizeof head);
    cr_assert_eq(input(r), 0);
    cr_assert_eq(output(r), 0);
    cr_expect_eq(r->n_req, 0);
    cr_expect_eq(seen.rst, NGHTTP2_PROTOCOL_ERROR);
    cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 1);
    rig_free(r);
}

/* A connection error that nghttp2 finds shows at input or at the output that follows. */
Test(h2_limits, protocol_errors)
{
    struct rig *r = open_raw(NULL);
    frame(NGHTTP2_DATA, 0, 0, "x", 1);
    int rv = input(r);
    rv |= output(r);
    cr_expect_eq(rv, -1);
    output(r);
    expect_end(r, NGHTTP2_PROTOCOL_ERROR);
    r = open_raw(NULL);
    frame(NGHTTP2_PING, 0, 0, "x", 1);
    rv = input(r);
    rv |= output(r);
    cr_expect_eq(rv, -1);
    expect_end(r, NGHTTP2_FRAME_SIZE_ERROR);
}

Test(h2_limits, preface_goes_wrong)
{
    struct rig *r = rig_new(NULL);
    seen = (struct seen){.goaway = UINT32_MAX};
    cr_assert_eq(nj_h2_input(r->h, (const uint8_t *)"PRI * HTTP/2.0\r\n\r\nXX", 20), -1);
    cr_expect_eq(output(r), -1);
    expect_end(r, NGHTTP2_PROTOCOL_ERROR);
}

/* Noise after the preface, and noise laid over good frames. */
Test(h2_limits, garbage)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rig *r = open_raw(NULL);
        nj_prng_init(&r->prng, seed);
        int rv = 0;
        for (int i = 0; i < 40 && rv == 0; i++) {
            make_length_lie(3u * (unsigned)i);
            request_l(1 + 2 * (3u * (unsigned)i + 1), STAYS);
            frame(NGHTTP2_HEADERS, ENDS, 1 + 2 * (3u * (unsigned)i + 2), head_0, sizeof head_0);
            uint32_t hits = nj_prng_below(&r->prng, 4);
            for (uint32_t k = 0; k < hits; k++)
                w.b[nj_prng_below(&r->prng, (uint32_t)w.n)] = (uint8_t)nj_prng_next(&r->prng);
            if (seed % 10 == 0) {
                for (size_t k = 0; k < w.n; k++)
                    w.b[k] = (uint8_t)nj_prng_next(&r->prng);
            }
            rv = input(r);
            rv |= output(r);
        }
        rig_free(r);
    }
}

/* "Data dribble" (CVE-2019-9511): a body doled out byte by byte. */
Test(h2_limits, dribble)
{
    struct rig *r = open_raw(NULL);
    frame(NGHTTP2_SETTINGS, 0, 0, "\0\4\0\0\0\0", 6); /* INITIAL_WINDOW_SIZE 0 */
    uint8_t head[] = {0x82, 0x86, 0x04, 6, '/', '9', '9', '9', '9', '9', 0x41, 1, 'a'};
    frame(NGHTTP2_HEADERS, ENDS, 1, head, sizeof head);
    cr_assert_eq(input(r), 0);
    unsigned n = 0;
    int rv = 0;
    while (rv == 0 && n++ < 5000) {
        frame32(NGHTTP2_WINDOW_UPDATE, 1, 1);
        rv = input(r);
        rv |= output(r);
    }
    cr_expect_leq(n, 1010);
    output(r);
    cr_expect_eq(nj_h2_abuse_reason(r->h), NJ_H2_ABUSE_SMALL_WINDOWS, "%d",
                 (int)nj_h2_abuse_reason(r->h));
    expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* The memory of incomplete header blocks counts for the memory limit, like that of open streams. */
Test(h2_limits, blocks_under_way_have_the_limit_of_memory)
{
    static const uint8_t part[16384];
    struct rig *r = open_raw(NULL);
    r->alloc.bytes_max = r->core->alloc->bytes_used + 40000;
    frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, part, sizeof part);
    cr_expect_eq(input(r), 0);
    frame(NGHTTP2_CONTINUATION, 0, 1, part, sizeof part);
    frame(NGHTTP2_CONTINUATION, 0, 1, part, sizeof part);
    cr_expect_eq(input(r), -1);
    cr_expect_lt(r->alloc.bytes_used, r->core->alloc->bytes_max);
    rig_free(r);
}

/* A long download with as many WINDOW_UPDATEs as a client sends, and a PING now and then. */
Test(h2_limits, long_download_is_no_abuse)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    for (int i = 0; i < 10; i++) {
        rig_ask(r, "/8000000");
        cr_assert_eq(rig_run(r, 0), 0);
        nghttp2_submit_ping(r->client, 0, NULL);
    }
    cr_expect_leq(r->h->glitches, 3);
    rig_free(r);
}

/* Go's client opens both windows after each 4 KiB that its reader consumes. */
Test(h2_limits, small_window_updates_are_no_abuse)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, true);
    int32_t id = rig_ask(r, "/8000000");
    struct rig_reply *a = rig_reply(r, id);
    for (uint64_t taken = 0; !a->ended;) {
        cr_assert_eq(rig_run(r, 0), 0, "after %u bytes", (unsigned)taken);
        for (; taken + 4096 <= a->n_bytes; taken += 4096) {
            nghttp2_submit_window_update(r->client, 0, 0, 4096);
            nghttp2_submit_window_update(r->client, 0, id, 4096);
        }
    }
    cr_expect_leq(r->h->glitches, 3);
    rig_free(r);
}

/* gRPC's clients send about one PING per round trip while messages of any size arrive. */
Test(h2_limits, pings_beside_data_are_no_abuse)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    rig_ask(r, "/300000duh");
    cr_assert_eq(rig_run(r, 0), 0);
    for (int i = 0; i < 2500; i++) {
        rig_release(r->req[0].body, 100);
        nghttp2_submit_ping(r->client, 0, NULL);
        cr_assert_eq(rig_run(r, 0), 0, "message %d", i);
    }
    cr_expect_leq(r->h->glitches, 3);
    rig_free(r);
}

/* The budget refills over time, and never exceeds its maximum. */
Test(h2_limits, time_forgives)
{
    struct rig *r = rig_new(NULL);
    nj_ns now = 5 * NJ_SEC;

    hello();
    nj_h2_decay_glitches(r->h, now);
    cr_assert_eq(input(r), 0);
    for (int i = 0; i < 3; i++) {
        nj_h2_add_glitches(r->h, 900 - r->h->glitches);
        nj_h2_decay_glitches(r->h, now += 10 * NJ_MS);
        cr_expect_eq(r->h->glitches, 899);
        nj_h2_decay_glitches(r->h, now += NJ_SEC);
        cr_expect_eq(r->h->glitches, 899 - NJ_H2_GLITCH_DECAY_PER_S);
    }
    nj_h2_decay_glitches(r->h, now += 3600 * NJ_SEC);
    cr_expect_eq(r->h->glitches, 0);
    nj_h2_add_glitches(r->h, 1000);
    nj_h2_decay_glitches(r->h, now += NJ_MS);
    cr_expect_eq(nj_h2_abuse_reason(r->h), NJ_H2_ABUSE_NONE);
    nj_h2_add_glitches(r->h, 1);
    cr_expect_neq(nj_h2_abuse_reason(r->h), NJ_H2_ABUSE_NONE, "an hour of rest buys no more");
    rig_free(r);
}

/* A request that is answered beside each that is reset does not pay for it. */
Test(h2_limits, good_requests_do_not_pay_for_resets)
{
    struct rig *r = open_raw(NULL);
    unsigned n = 0;
    for (; n < 5000; n++) {
        w.n = 0;
        make_reset(2 * n);
        frame(NGHTTP2_HEADERS, ENDS, 3 + 4 * n, head_0, sizeof head_0);
        if (input(r) != 0 || output(r) != 0)
            break;
    }
    cr_expect_leq(n, 1001, "%u resets", n);
    cr_expect_eq(output(r), -1);
    expect_end(r, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Thousands of small requests, each tenth of them cancelled. */
Test(h2_limits, busy_client_is_no_abuse)
{
    struct rig *r = open_raw(NULL);
    for (unsigned i = 0; i < 20000; i++) {
        w.n = 0;
        if (i % 10 == 9)
            make_reset(i);
        else
            frame(NGHTTP2_HEADERS, ENDS, 1 + 2 * i, head_0, sizeof head_0);
        cr_assert_eq(input(r), 0, "request %u", i);
        cr_assert_eq(output(r), 0);
    }
    cr_expect_leq(r->h->glitches, 10);
    rig_free(r);
}
