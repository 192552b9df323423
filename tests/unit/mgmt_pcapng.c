/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of pcapng: their framing, fields and options. */
#include <criterion/criterion.h>
#include <string.h>

#include "mgmt/pcapng.h"

static uint8_t out[NJ__PCAPNG_BLOCK_MAX + 200];

static uint32_t u32(size_t at)
{
    uint32_t v;

    memcpy(&v, out + at, sizeof v);
    return v;
}

static uint16_t u16(size_t at)
{
    uint16_t v;

    memcpy(&v, out + at, sizeof v);
    return v;
}

static void expect_block(size_t n, uint32_t type)
{
    cr_assert(n >= 12 && n % 4 == 0 && n <= sizeof out);
    cr_expect_eq(u32(0), type);
    cr_expect_eq(u32(4), n);
    cr_expect_eq(u32(n - 4), n);
}

/* The place of an option's value behind the fixed part; 0: there is none. */
static size_t find(size_t at, uint16_t code, uint16_t *n)
{
    for (;;) {
        uint16_t here = u16(at);
        *n = u16(at + 2);
        if (here == 0) {
            cr_expect_eq(*n, 0);
            return 0;
        }
        if (here == code)
            return at + 4;
        at += 4 + ((*n + 3u) & ~3u);
        cr_assert_lt(at, sizeof out);
    }
}

Test(mgmt_pcapng, section)
{
    uint16_t n;

    expect_block(nj__pcapng_section(out, "nightjar 1"), 0x0a0d0d0a);
    cr_expect_eq(u32(8), 0x1a2b3c4d);
    cr_expect(u16(12) == 1 && u16(14) == 0 && u32(16) == UINT32_MAX && u32(20) == UINT32_MAX);
    size_t at = find(24, 4, &n);
    cr_expect(at && n == 10 && memcmp(out + at, "nightjar 1", n) == 0);
}

Test(mgmt_pcapng, interface)
{
    char name[NJ__PCAPNG_NAME_MAX + 100];
    uint16_t n;

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    const struct nj__pcapng_interface interface = {
        .name = name, .description = "", .mac = {2, 0, 0, 0, 0, 9}, .snaplen = 96};
    expect_block(nj__pcapng_interface(out, &interface), 1);
    cr_expect(u16(8) == 1 && u32(12) == 96);
    cr_expect(find(16, 2, &n) && n == NJ__PCAPNG_NAME_MAX);
    cr_expect_not(find(16, 3, &n), "an empty text is left out");
    size_t at = find(16, 6, &n);
    cr_expect(at && n == 6 && out[at + 5] == 9);
    at = find(16, 9, &n);
    cr_expect(at && n == 1 && out[at] == 9, "nanoseconds");
}

Test(mgmt_pcapng, packet)
{
    uint8_t data[130];
    uint16_t n;

    memset(data, 7, sizeof data);
    for (uint32_t n_kept = 0; n_kept <= sizeof data; n_kept++) {
        const struct nj__pcapng_packet p = {.interface = 3,
                                            .utc_ns = 0x123456789abcdef0,
                                            .data = data,
                                            .n_kept = n_kept,
                                            .n_bytes = 1514,
                                            .is_sent = n_kept % 2};
        size_t padded = (n_kept + 3u) & ~3u;
        memset(out, 0xff, sizeof out);
        expect_block(nj__pcapng_packet(out, &p), 6);
        cr_expect(u32(8) == 3 && u32(12) == 0x12345678 && u32(16) == 0x9abcdef0);
        cr_expect(u32(20) == n_kept && u32(24) == 1514);
        cr_expect_eq(memcmp(out + 28, data, n_kept), 0);
        for (size_t i = n_kept; i < padded; i++)
            cr_expect_eq(out[28 + i], 0);
        size_t at = find(28 + padded, 2, &n);
        cr_expect(at && n == 4 && u32(at) == (n_kept % 2 ? 2 : 1));
    }
}

Test(mgmt_pcapng, statistics)
{
    const struct nj__pcapng_statistics s = {1, 5, 6, 1000, 7};
    uint16_t n;
    uint64_t v;

    expect_block(nj__pcapng_statistics(out, &s), 5);
    cr_expect(u32(8) == 1 && u32(12) == 0 && u32(16) == 6);
    for (uint16_t code = 4; code <= 8; code++) {
        size_t at = find(20, code, &n);
        if (at == 0)
            continue;
        memcpy(&v, out + at, sizeof v);
        cr_expect(n == 8 && v == (code == 4 ? 1007 : code == 5 ? 7 : 1000));
    }
    size_t at = find(20, 2, &n);
    cr_expect(at && u32(at) == 0 && u32(at + 4) == 5);
}
