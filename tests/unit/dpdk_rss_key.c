/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of RSS: in the operator's notation, and random. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "dpdk/rss_key.h"

#define TEN "00112233445566778899"

Test(dpdk_rss_key, read)
{
    struct nj_rss_key key;

    cr_assert(nj_rss_key_parse(TEN "aAbBcCdDeEfF01020304" TEN TEN, &key));
    cr_expect_eq(key.b[1], 0x11);
    cr_expect_eq(key.b[10], 0xaa);
    cr_expect_eq(key.b[15], 0xff);
    cr_expect_eq(key.b[39], 0x99);
    cr_assert(nj_rss_key_parse("6d:5a" TEN TEN TEN "0011223344556677", &key));
    cr_expect(key.b[0] == 0x6d && key.b[1] == 0x5a && key.b[39] == 0x77);
    static const char *const bad[] = {
        "",
        "00",
        TEN TEN TEN "0011223344556677889",
        TEN TEN TEN TEN "0",
        TEN TEN TEN "0011223344556677889g",
        TEN TEN TEN "001122334455667788 9",
        TEN TEN TEN TEN " ",
        ":" TEN TEN TEN TEN,
        TEN "::" TEN TEN TEN,
        "0000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000",
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect(!nj_rss_key_parse(bad[i], &key), "%s", bad[i]);
}

/* Each start has its own key. Connections that the server opens find ports whose replies reach
 * their shard. */
Test(dpdk_rss_key, drawn)
{
    struct nj_rss_key key[20];

    for (size_t i = 0; i < NJ_ARRAY_LEN(key); i++) {
        cr_assert(nj_rss_key_generate(&key[i]));
        cr_expect(nj_rss_key_spreads(&key[i]));
        for (size_t k = 0; k < i; k++)
            cr_expect_neq(memcmp(&key[i], &key[k], sizeof key[0]), 0);
    }
}
