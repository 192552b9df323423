/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of file lookups: how long entries and their objects are kept. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/compiler.h"
#include "http/files/file_lookup_cache.h"

#define N 100

static struct nj_file_object objects[2 * N];
static uint32_t n_kept; /* objects to which the cache refers */

static void forget(struct nj_ref *ref)
{
    n_kept--;
}

/* Adds a name with an object and a name without one. */
static void add(struct nj_lookup_cache *t, uint32_t i, nj_ns now)
{
    struct nj_file_meta file = {.result = NJ_FILE_OK, .object = &objects[i]};
    const struct nj_file_meta absent = {.result = NJ_FILE_ABSENT};
    char text[8];
    struct nj_file_name name = {text, (uint32_t)snprintf(text, sizeof text, "%u", i), i};

    objects[i].bytes = (const uint8_t *)""; /* in memory: costs nothing */
    nj_ref_init(&objects[i].ref, forget);
    n_kept++;
    nj_lookup_cache_put(t, &name, &file, now);
    nj_ref_put(&objects[i].ref);
    text[name.n_bytes++] = '/';
    nj_lookup_cache_put(t, &name, &absent, now);
}

static struct nj_lookup_cache *with_expired_entries(void)
{
    struct nj_lookup_cache *t = nj_lookup_cache_new();

    cr_assert(t);
    n_kept = 0;
    for (uint32_t i = 0; i < N; i++)
        add(t, i, NJ_SEC);
    cr_assert_eq(n_kept, N);
    return t;
}

/* A request may add several entries and sweep once, or not at all. */
Test(http_file_lookup_cache, expired_entries_go_as_others_come)
{
    struct nj_lookup_cache *t = with_expired_entries();

    for (uint32_t i = 0; i < N; i++) {
        add(t, N + i, NJ_SEC + NJ_META_CACHE_TTL);
        cr_assert_leq(n_kept, N, "%u after %u", n_kept, i);
    }
    cr_expect_eq(n_kept, N);
    nj_lookup_cache_free(t);
    cr_expect_eq(n_kept, 0);
}

/* Requests that add nothing. */
Test(http_file_lookup_cache, expired_entries_go_as_requests_come)
{
    struct nj_lookup_cache *t = with_expired_entries();

    nj_lookup_cache_sweep(t, NJ_SEC + NJ_META_CACHE_TTL - 1);
    cr_expect_eq(n_kept, N);
    for (uint32_t i = 0; i < N / 2; i++)
        nj_lookup_cache_sweep(t, NJ_SEC + NJ_META_CACHE_TTL);
    cr_expect_eq(n_kept, 0);
    nj_lookup_cache_free(t);
}
