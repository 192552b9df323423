/* SPDX-License-Identifier: BSD-3-Clause */
/* HPACK: the cache of response fields shared by connections. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "h2/hpack/hpack_internal.h"

static uint32_t set_of(const struct nj__hpack_shared *of, const char *value)
{
    const struct nj_field f = {NJ_STR("location"), {value, (uint32_t)strlen(value)}};
    return nj__hpack_hash_to_cache_set(
        nj__hpack_field_cache_hash(of, nj__hpack_response_name_row(of, f.name), &f));
}

/* Values that share a set under one key are in different sets under another, for each difference
 * between the values. A client that does not know the key cannot choose which fields are evicted.
 */
Test(h2_field_cache, the_key_decides_the_set)
{
    static const struct nj_hash_key key = {{3, 1, 4}}, other_key = {{2, 7, 1}};
    struct nj_alloc alloc;
    nj_alloc_init(&alloc, SIZE_MAX);
    struct nj__hpack_shared *shared = nj__hpack_shared_new(&alloc, &key);
    struct nj__hpack_shared *other = nj__hpack_shared_new(&alloc, &other_key);
    char value[128] = "";

    for (unsigned at = 0; at < 52; at += 4) {
        bool used[NJ__HPACK_CACHE_SETS] = {false};
        uint32_t n_here = 0, n_sets = 0;
        for (uint32_t i = 0; i < 4096; i++) {
            snprintf(value, sizeof value, "%.*s%04x%.*s", (int)at,
                     "/a/folder/of/files/with/a/name/that/is/quite/long/00", i, (int)(52 - at),
                     "/a/folder/of/files/with/a/name/that/is/quite/long/00");
            if (set_of(shared, value) != 0)
                continue;
            uint32_t set = set_of(other, value) / NJ__HPACK_CACHE_WAYS;
            n_here++;
            n_sets += !used[set];
            used[set] = true;
        }
        cr_expect(n_here > 4096 / NJ__HPACK_CACHE_SETS / 3 &&
                      n_here < 4096 / NJ__HPACK_CACHE_SETS * 3,
                  "at %u: %u", at, n_here);
        cr_expect_gt(n_sets, n_here / 2, "at %u: %u in %u sets", at, n_here, n_sets);
    }
    nj__hpack_shared_free(shared);
    nj__hpack_shared_free(other);
    nj_alloc_fini(&alloc);
}
