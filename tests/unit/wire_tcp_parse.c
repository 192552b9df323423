/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP header and options from raw bytes. Inputs are copied to allocations of their exact size, so
 * that AddressSanitizer sees a read past the end. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "wire/tcp_parse.h"

static bool header(const uint8_t *bytes, uint32_t n, struct nj_seg *seg)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (n > 0)
        memcpy(exact, bytes, n);
    memset(seg, 0xaa, sizeof *seg);
    bool ok = nj__tcp_parse_header(exact, n, seg);
    free(exact);
    return ok;
}

static bool options(const uint8_t *bytes, uint32_t n, bool syn, struct nj_tcp_opts *o)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (n > 0)
        memcpy(exact, bytes, n);
    memset(o, 0xaa, sizeof *o);
    bool ok = nj__tcp_parse_options(exact, n, syn, o);
    free(exact);
    return ok;
}

#define OPTIONS(o, syn, ...)                                                                       \
    options((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), syn, o)

/* Port 0x1234 to 443, data offset 6, ACK and PSH and both ECN flags, four bytes of payload. */
static const uint8_t sample[] = {
    0x12, 0x34, 0x01, 0xbb, 0xde, 0xad, 0xbe, 0xef, 0x01, 0x02, 0x03, 0x04, 0x60, 0xd8,
    0xff, 0xfe, 0,    0,    0,    9,    1,    1,    1,    0,    'd',  'a',  't',  'a',
};

Test(tcp_parse, header_fields)
{
    struct nj_seg s;
    cr_assert(header(sample, sizeof sample, &s));
    cr_expect_eq(s.tuple.rport, 0x1234);
    cr_expect_eq(s.tuple.lport, 443);
    cr_expect_eq(s.seq, 0xdeadbeef);
    cr_expect_eq(s.ack, 0x01020304);
    cr_expect_eq(s.wnd, 0xfffe);
    cr_expect_eq(s.flags, 0xd8);
    cr_expect_eq(s.payload_off, 24);
    cr_expect_eq(s.payload_bytes, 4);
}

/* Sentence 35: data offset < 5 or beyond the segment. */
Test(tcp_parse, header_refused)
{
    struct nj_seg s;
    uint8_t b[sizeof sample];

    for (uint32_t n = 0; n < 24; n++)
        cr_expect_not(header(sample, n, &s), "cut to %u", n);
    cr_expect(header(sample, 24, &s));
    cr_expect_eq(s.payload_bytes, 0);
    for (unsigned off = 0; off < 16; off++) {
        memcpy(b, sample, sizeof b);
        b[12] = (uint8_t)(off << 4 | 0xf);
        cr_expect_eq(header(b, sizeof b, &s), off >= 5 && off <= 7, "data offset %u", off);
    }
    for (int port = 0; port < 2; port++) {
        memcpy(b, sample, sizeof b);
        memset(b + 2 * port, 0, 2);
        cr_expect_not(header(b, sizeof b, &s), "port %d is 0", port);
    }
}

Test(tcp_parse, options_of_a_syn)
{
    struct nj_tcp_opts o;
    /* The options of Linux. */
    cr_assert(OPTIONS(&o, true, 2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 9, 1, 3, 3, 7));
    cr_expect(o.has_mss && o.has_wscale && o.has_ts && o.sack_permitted);
    cr_expect_eq(o.mss, 1460);
    cr_expect_eq(o.wscale, 7);
    cr_expect_eq(o.ts_val, 0x01020304);
    cr_expect_eq(o.ts_ecr, 9);

    cr_assert(options(NULL, 0, true, &o));
    cr_expect_not(o.has_mss || o.has_wscale || o.has_ts || o.sack_permitted);

    /* MSS 0 and a shift of 255 are the caller's to clamp (sentences 25 and 27). */
    cr_assert(OPTIONS(&o, true, 2, 4, 0, 0, 3, 3, 255, 0));
    cr_expect(o.has_mss && o.has_wscale);
    cr_expect_eq(o.mss, 0);
    cr_expect_eq(o.wscale, 255);
}

/* Sentences 28 and 38. */
Test(tcp_parse, syn_options_elsewhere_are_not_reported)
{
    struct nj_tcp_opts o;
    cr_assert(
        OPTIONS(&o, false, 2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 9, 1, 3, 3, 7));
    cr_expect_not(o.has_mss || o.has_wscale || o.sack_permitted);
    cr_expect_eq(o.mss, 0);
    cr_expect_eq(o.wscale, 0);
    cr_expect(o.has_ts);
    cr_expect_eq(o.ts_val, 0x01020304);
}

/* Sentences 32 to 34. */
Test(tcp_parse, padding_and_unknown)
{
    struct nj_tcp_opts o;
    uint8_t full[40];

    cr_expect(OPTIONS(&o, true, 1, 1, 1, 1));
    cr_expect(OPTIONS(&o, true, 0, 0, 0, 0));
    cr_expect(OPTIONS(&o, true, 0, 2, 0, 99)); /* octets after EOL are ignored */
    cr_expect_not(o.has_mss);
    cr_expect(OPTIONS(&o, true, 1, 2, 4, 1, 2, 1, 1, 0));
    cr_expect(o.has_mss && o.mss == 0x0102);
    cr_expect(OPTIONS(&o, true, 254, 4, 2, 4, 30, 2, 2, 4, 7, 8));
    cr_expect(o.has_mss && o.mss == 0x0708);
    cr_expect(OPTIONS(&o, false, 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2));
    cr_expect(o.n_sack == 1 && o.sack[0].first == 1 && o.sack[0].end == 2);
    cr_expect(OPTIONS(&o, true, 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2));
    cr_expect_eq(o.n_sack, 0, "SACK blocks in a SYN are ignored");
    cr_expect_not(OPTIONS(&o, false, 1, 1, 5, 9, 0, 0, 0, 1, 0, 0, 0));
    cr_expect_not(OPTIONS(&o, false, 1, 1, 5, 2));

    memset(full, 1, sizeof full);
    memcpy(full + 36, (const uint8_t[]){2, 4, 9, 9}, 4);
    cr_expect(options(full, sizeof full, true, &o));
    cr_expect(o.has_mss && o.mss == 0x0909);
    memset(full, 0x42, sizeof full);
    full[1] = 40;
    cr_expect(options(full, sizeof full, true, &o));
}

/* Sentence 31. */
Test(tcp_parse, lengths_that_cannot_be)
{
    struct nj_tcp_opts o;
    static const struct {
        uint8_t kind, n_bytes;
    } known[] = {{2, 4}, {3, 3}, {4, 2}, {8, 10}};

    cr_expect_not(OPTIONS(&o, true, 1, 1, 1, 2)); /* kind without length */
    cr_expect_not(OPTIONS(&o, true, 1, 1, 1, 200));
    for (unsigned kind = 2; kind < 256; kind++) {
        cr_expect_not(OPTIONS(&o, true, (uint8_t)kind, 0, 1, 1), "kind %u", kind);
        cr_expect_not(OPTIONS(&o, true, (uint8_t)kind, 1, 1, 1), "kind %u", kind);
        cr_expect_not(OPTIONS(&o, true, (uint8_t)kind, 5, 1, 1), "kind %u", kind);
        cr_expect_not(OPTIONS(&o, true, (uint8_t)kind, 255, 1, 1), "kind %u", kind);
    }
    for (unsigned i = 0; i < NJ_ARRAY_LEN(known); i++)
        for (unsigned n = 2; n <= 40; n++) {
            uint8_t b[40] = {known[i].kind, (uint8_t)n};
            bool right = n == known[i].n_bytes;
            cr_expect_eq(options(b, sizeof b, true, &o), right, "kind %u of %u", b[0], n);
            cr_expect_eq(options(b, sizeof b, false, &o), right, "kind %u of %u", b[0], n);
        }
}

Test(tcp_parse, random_options_end)
{
    const uint64_t seed = 0x7e57;
    struct nj_prng r;
    unsigned n_ok = 0, n_runs = 50000;

    nj_prng_init(&r, seed);
    for (unsigned i = 0; i < n_runs; i++) {
        uint8_t b[40];
        struct nj_tcp_opts o;
        uint32_t n = nj_prng_below(&r, sizeof b + 1);
        for (uint32_t j = 0; j < n; j++) /* small values, or hardly any would parse */
            b[j] = (uint8_t)nj_prng_below(&r, 12);
        n_ok += options(b, n, nj_prng_below(&r, 2), &o);
    }
    fprintf(stderr, "seed %#lx: %u of %u well formed\n", (unsigned long)seed, n_ok, n_runs);
    cr_expect(n_ok > 0 && n_ok < n_runs);
}
