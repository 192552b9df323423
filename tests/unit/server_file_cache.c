/* SPDX-License-Identifier: BSD-3-Clause */
/* What stays in the cache by name, and what pushes out what. */
#include "store_rig.h"

#include "base/attr.h"
#include "server/file_cache.h"

TestSuite(server_file_cache, .fini = scratch_remove);

#define HOT  20u
#define COLD 10000u

static struct nj_file_store_stats counts;
static struct nj__file_cache cache;
static struct nj__graveyard dead;
static uint32_t n_dead;

static void bury(struct nj__grave *g)
{
    free(nj_container_of(g, struct nj__file, grave));
    n_dead++;
}

static void last(struct nj_ref *ref)
{
    struct nj_object *o = nj_container_of(ref, struct nj_object, ref);
    nj__graveyard_push(&dead, &nj_container_of(o, struct nj__file, object)->grave);
}

/* A request for a file of `n_bytes`. Returns whether it was there. */
static bool ask(const char *name, uint32_t n_bytes)
{
    struct nj__file *f = nj__file_cache_find(&cache, name);

    if (f) {
        nj__file_cache_used(&cache, f);
        return true;
    }
    f = calloc(1, sizeof *f);
    nj_ref_init(&f->object.ref, last);
    f->object.size_bytes = n_bytes;
    f->fd = -1;
    f->grave.bury = bury;
    nj_list_init(&f->chain);
    nj_list_init(&f->used);
    nj_list_init(&f->pieces);
    nj__file_cache_add(&cache, name, f);
    nj_ref_put(&f->object.ref);
    nj__graveyard_clear(&dead);
    return false;
}

static bool ask_numbered(char kind, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "%c%u", kind, i);
    return ask(name, 3000);
}

static void start(uint64_t n_bytes)
{
    struct nj_hash_key key = {{1, 2, 3}};
    memset(&counts, 0, sizeof counts);
    nj__file_cache_init(&cache, &key, n_bytes, &counts);
}

static void stop(void)
{
    nj__file_cache_clear(&cache);
    nj__graveyard_clear(&dead);
    cr_expect_eq(counts.cached_files, 0);
    cr_expect_eq(counts.cached_bytes, 0);
    cr_expect_eq(cache.cost + cache.cost_hot, 0);
}

/* What has no name any more is let go of, whatever it was, in as many looks as there are buckets.
 */
Test(server_file_cache, deleted_files_go)
{
    enum { N = 6 };
    int fds[N];

    start(64 * MIB);
    scratch_make();
    for (uint32_t i = 0; i < N; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%u", scratch, i);
        fds[i] = open(path, O_RDWR | O_CREAT, 0600);
        ask_numbered('f', i);
        nj__file_cache_find(&cache, (char[]){'f', (char)('0' + i), '\0'})->fd = fds[i];
        if (i % 2)
            unlink(path);
    }
    ask_numbered('m', 0);
    for (uint32_t i = 0; i < 16; i++)
        nj__file_cache_drop_deleted(&cache, NJ__FILE_BUCKETS / 16);
    nj__graveyard_clear(&dead);
    cr_expect_eq(n_dead, N / 2);
    for (uint32_t i = 0; i < N; i += 2)
        cr_expect(ask_numbered('f', i), "%u is still there", i);
    cr_expect(ask_numbered('m', 0));
    for (uint32_t i = 0; i < N; i++)
        close(fds[i]);
    stop();
}

/* A page each: 100 of them fit. */
Test(server_file_cache, a_scan_leaves_the_hot_ones)
{
    start(100 * 4096);
    for (uint32_t i = 0; i < 2 * HOT; i++)
        ask_numbered('h', i % HOT);
    for (uint32_t i = 0; i < COLD; i++)
        cr_assert_not(ask_numbered('c', i));
    for (uint32_t i = 0; i < HOT; i++)
        cr_expect(ask_numbered('h', i), "hot file %u is gone", i);
    cr_expect_eq(counts.evictions, COLD + HOT - 100);
    cr_expect_eq(counts.cached_files, 100);
    cr_expect_leq(counts.cached_bytes, 100 * 4096);
    stop();
}

/* Also when it comes again and again, and is larger than what it may use: no cold file is there
 * when it is asked for the next time, so none becomes hot. */
Test(server_file_cache, repeated_scans_leave_the_hot_ones)
{
    start(100 * 4096);
    for (uint32_t i = 0; i < 2 * HOT; i++)
        ask_numbered('h', i % HOT);
    for (uint32_t i = 0; i < 20 * 200; i++)
        cr_assert_not(ask_numbered('c', i % 200));
    for (uint32_t i = 0; i < HOT; i++)
        cr_expect(ask_numbered('h', i));
    stop();
}

/* What was hot makes room for what is. */
Test(server_file_cache, fashions_change)
{
    start(100 * 4096);
    for (uint32_t i = 0; i < 300; i++)
        ask_numbered('a', i % 80);
    cr_expect_eq(cache.cost_hot, 80 * 4096);
    uint32_t n_hits = 0;
    for (uint32_t round = 0; round < 100; round++)
        for (uint32_t i = 0; i < 20; i++)
            n_hits += ask_numbered('b', i);
    cr_expect_eq(n_hits, 99 * 20, "the new ones are kept from the first time on");
    cr_expect_leq(cache.cost_hot, 80 * 4096);
    stop();
}

Test(server_file_cache, too_large_for_it)
{
    start(100 * 4096);
    ask_numbered('a', 1);
    cr_expect_not(ask("big", 101 * 4096));
    cr_expect_not(ask("big", 101 * 4096), "never kept");
    cr_expect(ask_numbered('a', 1), "and nothing had to go for it");
    cr_expect_eq(counts.evictions, 0);
    stop();
}
