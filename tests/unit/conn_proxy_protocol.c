/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of the PROXY protocol, byte by byte. */
#include "conn/proxy_protocol.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/addr.h"

#define V2 "\r\n\r\n\0\r\nQUIT\n"

struct bytes {
    size_t n;
    uint8_t b[2 * NJ_PROXY_HEADER_BYTES_MAX];
};

static struct bytes of(const void *p, size_t n)
{
    struct bytes all = {.n = n};

    cr_assert(n <= sizeof all.b);
    memcpy(all.b, p, n);
    return all;
}
#define BYTES(literal) of(literal, sizeof(literal) - 1)

static struct bytes line(const char *text)
{
    return of(text, strlen(text));
}

/* Version 2: the fixed part, and `n` bytes. */
static struct bytes binary(uint8_t command, uint8_t family, const void *rest, size_t n)
{
    struct bytes all = BYTES(V2);

    cr_assert(all.n == 12);
    all.b[all.n++] = command;
    all.b[all.n++] = family;
    all.b[all.n++] = (uint8_t)(n >> 8);
    all.b[all.n++] = (uint8_t)n;
    memcpy(all.b + all.n, rest, n);
    all.n += n;
    return all;
}

/* Parses the first `n` bytes, in memory of that size. */
static enum nj_proxy_result parse(const struct bytes *all, size_t n, struct nj_proxy_header *h)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    memcpy(copy, all->b, n);
    enum nj_proxy_result result = nj_proxy_parse(copy, n, h);
    free(copy);
    return result;
}

/* MORE for each part of the header, and DONE for all of it, whatever follows. */
static struct nj_proxy_header accepts(struct bytes all, const char *name)
{
    struct nj_proxy_header h;
    size_t n = all.n;

    for (size_t i = 0; i < n; i++)
        cr_expect_eq(parse(&all, i, &h), NJ_PROXY_MORE, "%s, %zu of %zu bytes", name, i, n);
    for (size_t more = 0; more < 3; more++) {
        memcpy(all.b + n, "\r\nP", more);
        cr_expect_eq(parse(&all, n + more, &h), NJ_PROXY_DONE, "%s", name);
        cr_expect_eq(h.n_bytes, n, "%s: %u of %zu", name, h.n_bytes, n);
    }
    return h;
}

/* `why` for all of it and whatever follows; MORE, or the same, for each part. */
static void refuses(struct bytes all, enum nj_proxy_result why, const char *name)
{
    struct nj_proxy_header h;
    bool refused = false;

    for (size_t i = 0; i <= all.n; i++) {
        enum nj_proxy_result result = parse(&all, i, &h);
        cr_expect(result == why || (!refused && result == NJ_PROXY_MORE), "%s, %zu: %d", name, i,
                  result);
        refused |= result == why;
    }
    cr_expect(refused, "%s", name);
}

static void names(const struct nj_proxy_header *h, const char *address, uint16_t port)
{
    struct nj_addr want = addr(address);

    cr_expect(h->has_source && nj_addr_eq(&h->source, &want), "not %s", address);
    cr_expect_eq(h->port, port, "%u", h->port);
}

Test(proxy_protocol, lines)
{
    static const struct {
        const char *text, *address;
        uint16_t port;
    } good[] = {
        {"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n", "192.0.2.1", 56324},
        {"PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n", "0.0.0.0", 0},
        {"PROXY TCP6 2001:db8::1 2001:db8::2 65535 1\r\n", "2001:db8::1", 65535},
        {"PROXY TCP6 2001:DB8:0:0:0:0:0:1 :: 1 1\r\n", "2001:db8::1", 1},
        {"PROXY TCP6 ::ffff:192.0.2.1 ::1 7 8\r\n", "192.0.2.1", 7},
        {"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535},
        {"PROXY UNKNOWN\r\n", NULL, 0},
        {"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         NULL, 0},
        {"PROXY UNKNOWN  any thing\r\n", NULL, 0},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(good); i++) {
        struct nj_proxy_header h = accepts(line(good[i].text), good[i].text);
        if (good[i].address)
            names(&h, good[i].address, good[i].port);
        else
            cr_expect(!h.has_source);
    }
    cr_expect_eq(strlen(good[7].text), 107, "the longest line of the specification");
}

Test(proxy_protocol, malformed_lines)
{
    static const char *const bad[] = {
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2 \r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n",
        "PROXY TCP4  192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY  TCP4 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1\t198.51.100.2 1 2\r\n",
        "PROXY tcp4 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP5 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
        "PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.01 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.256 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.x 1 2\r\n",
        "PROXY TCP6 2001:db8::1::2 ::1 1 2\r\n",
        "PROXY TCP6 2001:db8::12345 ::1 1 2\r\n",
        "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 00 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 65536 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 65536\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 -1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 +1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 0x1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2\rx",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2\r\r\n",
        "PROXY UNKNOWNX\r\n",
        "PROXY UNKNOWN a\nb\r\n",
        "PROXY UNKNOWN a\rb\r\n",
        "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535 \r\n",
    };
    static const char zero[] = "PROXY TCP4 192.0.2.1\0 198.51.100.2 1 2\r\n";

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        refuses(line(bad[i]), NJ_PROXY_MALFORMED, bad[i]);
    refuses(BYTES(zero), NJ_PROXY_MALFORMED, "a zero byte");
}

/* What begins otherwise is no header at all, from the first wrong byte on. */
Test(proxy_protocol, missing)
{
    refuses(line("GET / HTTP/1.1\r\n\r\n"), NJ_PROXY_MISSING, "HTTP/1");
    refuses(line("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), NJ_PROXY_MISSING, "HTTP/2");
    refuses(BYTES("\x16\x03\x01\x02"), NJ_PROXY_MISSING, "TLS");
    refuses(line("PROXYTCP4"), NJ_PROXY_MISSING, "no space");
    refuses(line("proxy TCP4"), NJ_PROXY_MISSING, "lower case");
    for (size_t at = 0; at < 12; at++) {
        struct bytes all = binary(0x21, 0x11, "abcdefghijkl", 12);
        struct nj_proxy_header h;
        all.b[at] ^= 0x40;
        refuses(all, NJ_PROXY_MISSING, "a changed signature");
        cr_expect_eq(parse(&all, at + 1, &h), NJ_PROXY_MISSING, "as soon as it is there");
    }
}

static const uint8_t v4[12] = {192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 1, 187};
static const uint8_t v6[36] = {0x20, 1, 0xd, 0xb8, [15] = 1, [16] = 0x20, 1, [31] = 2, 0, 7, 0, 8};

Test(proxy_protocol, binary)
{
    static const uint8_t path[216] = "/run/a";
    struct nj_proxy_header h = accepts(binary(0x21, 0x11, v4, sizeof v4), "TCP over IPv4");

    names(&h, "192.0.2.1", 56324);
    h = accepts(binary(0x21, 0x21, v6, sizeof v6), "TCP over IPv6");
    names(&h, "2001:db8::1", 7);
    h = accepts(binary(0x21, 0x31, path, sizeof path), "UNIX");
    cr_expect(!h.has_source);
    h = accepts(binary(0x21, 0x00, "", 0), "UNSPEC");
    cr_expect(!h.has_source);
    h = accepts(binary(0x21, 0x00, "\1\2\3", 3), "UNSPEC with bytes");
    cr_expect(!h.has_source);
    h = accepts(binary(0x20, 0x00, "", 0), "LOCAL");
    cr_expect(!h.has_source);
    h = accepts(binary(0x20, 0x11, v4, sizeof v4), "LOCAL with addresses");
    cr_expect(!h.has_source);
    h = accepts(binary(0x20, 0xff, "\1\2\3", 3), "LOCAL with an unknown family");
    cr_expect(!h.has_source);
}

Test(proxy_protocol, malformed_binary)
{
    for (unsigned command = 0; command < 256; command++)
        if (command != 0x20 && command != 0x21)
            refuses(binary((uint8_t)command, 0x11, v4, sizeof v4), NJ_PROXY_MALFORMED, "command");
    for (unsigned family = 1; family < 256; family++) {
        static const uint8_t zeros[216];
        if (family != 0x11 && family != 0x21 && family != 0x31)
            refuses(binary(0x21, (uint8_t)family, zeros, sizeof zeros), NJ_PROXY_MALFORMED,
                    "family");
    }
    for (size_t n = 0; n < sizeof v4; n++)
        refuses(binary(0x21, 0x11, v4, n), NJ_PROXY_MALFORMED, "short addresses of IPv4");
    for (size_t n = 0; n < sizeof v6; n++)
        refuses(binary(0x21, 0x21, v6, n), NJ_PROXY_MALFORMED, "short addresses of IPv6");
    refuses(binary(0x21, 0x31, v6, sizeof v6), NJ_PROXY_MALFORMED, "a short path");
}

/* `n` bytes behind the addresses of IPv4. */
static struct bytes with_fields(const void *fields, size_t n)
{
    uint8_t all[NJ_PROXY_HEADER_BYTES_MAX];

    cr_assert(sizeof v4 + n <= sizeof all);
    memcpy(all, v4, sizeof v4);
    memcpy(all + sizeof v4, fields, n);
    return binary(0x21, 0x11, all, sizeof v4 + n);
}
#define FIELDS(literal) with_fields(literal, sizeof(literal) - 1)

Test(proxy_protocol, fields)
{
    struct nj_proxy_header h = accepts(FIELDS("\4\0\0"), "an empty one");

    names(&h, "192.0.2.1", 56324);
    accepts(FIELDS("\1\0\2h2\x02\0\6a.test\xea\0\1x"), "several");
    refuses(FIELDS("\4"), NJ_PROXY_MALFORMED, "a type alone");
    refuses(FIELDS("\4\0"), NJ_PROXY_MALFORMED, "half a length");
    refuses(FIELDS("\4\0\1"), NJ_PROXY_MALFORMED, "no value");
    refuses(FIELDS("\4\0\1x\4\0\2x"), NJ_PROXY_MALFORMED, "the second is too long");
    refuses(FIELDS("\4\xff\xffx"), NJ_PROXY_MALFORMED, "far too long");
}

/* The longest header, and one byte more. */
Test(proxy_protocol, length)
{
    static uint8_t field[NJ_PROXY_HEADER_BYTES_MAX];
    size_t n = NJ_PROXY_HEADER_BYTES_MAX - 16 - sizeof v4;
    struct nj_proxy_header h;

    field[0] = 4;
    field[1] = (uint8_t)((n - 3) >> 8);
    field[2] = (uint8_t)(n - 3);
    struct bytes all = with_fields(field, n);
    cr_assert_eq(all.n, NJ_PROXY_HEADER_BYTES_MAX);
    cr_expect_eq(parse(&all, all.n - 1, &h), NJ_PROXY_MORE);
    cr_expect_eq(parse(&all, all.n, &h), NJ_PROXY_DONE);
    cr_expect_eq(h.n_bytes, all.n);
    all.b[15]++;
    cr_expect_eq(parse(&all, 15, &h), NJ_PROXY_MORE);
    cr_expect_eq(parse(&all, 16, &h), NJ_PROXY_MALFORMED, "without waiting for the rest");
    all.b[14] = all.b[15] = 0xff;
    cr_expect_eq(parse(&all, all.n, &h), NJ_PROXY_MALFORMED);
}

/* As a bit at a time (RFC 9260 A), of the bytes with zeros in the checksum's place. */
static uint32_t slow_crc(const uint8_t *data, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

Test(proxy_protocol, checksum)
{
    struct nj_proxy_header h;

    cr_assert_eq(slow_crc((const uint8_t *)"123456789", 9), 0xe3069283u, "the check value");
    struct bytes all = FIELDS("\xea\0\1x\3\0\4\0\0\0\0\xeb\0\2yz");
    size_t at = all.n - 5 - 4;
    uint32_t crc = slow_crc(all.b, all.n);
    for (int i = 0; i < 4; i++)
        all.b[at + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    accepts(all, "a right checksum");
    for (size_t i = 16; i < all.n; i++) {
        bool is_value = i < 28 || i == 31 || (i >= at && i < at + 4) || i >= at + 7;
        struct bytes bad = all;
        if (!is_value) /* else the fields are other ones, and may have no checksum */
            continue;
        for (int bit = 0; bit < 8; bit++) {
            bad.b[i] = all.b[i] ^ (uint8_t)(1u << bit);
            cr_expect_eq(parse(&bad, bad.n, &h), NJ_PROXY_MALFORMED, "byte %zu, bit %d", i, bit);
        }
    }
    refuses(FIELDS("\3\0\3\0\0\0"), NJ_PROXY_MALFORMED, "a checksum of three bytes");
    refuses(FIELDS("\3\0\4\0\0\0\0"), NJ_PROXY_MALFORMED, "no checksum but zeros");
}

/* Any bytes behind a right beginning: the result for a part is MORE, or that for all of them. */
Test(proxy_protocol, any_bytes)
{
    static const char some[] = " 0123456789abcdef:.\r\nTCP46UNKNOWN";
    const uint64_t seed = 0x9407;
    struct nj_prng rng;
    struct nj_proxy_header whole, h;
    uint32_t n_done = 0;

    nj_prng_init(&rng, seed);
    for (unsigned round = 0; round < 20000; round++) {
        struct bytes all =
            round % 2 ? line("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n") : FIELDS("\1\0\2h2\4\0\0");
        uint32_t n_changes = nj_prng_below(&rng, 4);
        for (uint32_t i = 0; i < n_changes; i++)
            all.b[nj_prng_below(&rng, (uint32_t)all.n)] =
                round % 2 ? (uint8_t)some[nj_prng_below(&rng, sizeof some - 1)]
                          : (uint8_t)nj_prng_next(&rng);
        enum nj_proxy_result last = parse(&all, all.n, &whole);
        bool decided = false;
        for (size_t n = 0; n <= all.n; n++) {
            enum nj_proxy_result result = parse(&all, n, &h);
            decided |= result != NJ_PROXY_MORE;
            cr_assert(result == NJ_PROXY_MORE ? !decided : result == last,
                      "seed %" PRIx64 ", round %u, %zu of %zu bytes: %d, then %d", seed, round, n,
                      all.n, result, last);
            cr_assert(result != NJ_PROXY_DONE || (h.n_bytes == whole.n_bytes && h.n_bytes <= n));
        }
        n_done += last == NJ_PROXY_DONE;
    }
    cr_expect(n_done > 5000, "%u", n_done);
}
