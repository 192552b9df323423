/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files stay in the cache by name, and which are evicted for which. */
#include "store_rig.h"

#include "base/compiler.h"
#include "store/file_cache.h"

TestSuite(store_file_cache, .fini = scratch_remove);

#define HOT  20u
#define COLD 10000u

static struct nj__file_cache cache;
static struct nj__store shared;
#define counts shared.stats
static uint32_t n_dead;

static void free_it(struct nj__deferred *g)
{
    free(nj_container_of(g, struct nj__file, deferred));
    n_dead++;
}

static void detach(struct nj__deferred *g)
{
    nj__store_queue_free_at_unlock(&shared, g);
}

static void tidy(void)
{
    nj__store_lock(&shared);
    nj__store_unlink_unreferenced(&shared);
    nj__store_unlock_and_free(&shared);
}

static void last(struct nj_ref *ref)
{
    struct nj_file_object *o = nj_container_of(ref, struct nj_file_object, ref);
    nj__store_defer_free(&shared, &nj_container_of(o, struct nj__file, object)->deferred);
}

static void add(const char *name, uint32_t n_bytes, int fd)
{
    struct nj__file *f = calloc(1, sizeof *f);
    nj_ref_init(&f->object.ref, last);
    f->object.size_bytes = n_bytes;
    f->fd = fd;
    f->deferred.detach = detach;
    f->deferred.free = free_it;
    nj_list_init(&f->hash_node);
    nj_list_init(&f->lru_node);
    nj_list_init(&f->open);
    nj_list_init(&f->chunk_list);
    nj__file_cache_add(&cache, name, f);
    nj_ref_put(&f->object.ref);
    tidy();
}

/* A request for a file of `n_bytes`. Returns whether it was there. */
static bool ask(const char *name, uint32_t n_bytes)
{
    struct nj__file *f = nj__file_cache_find(&cache, name);

    if (f)
        nj__file_cache_touch(&cache, f);
    else
        add(name, n_bytes, -1);
    return f != NULL;
}

/* Add a large file to the cache. Its descriptor is not used. */
static void ask_open(const char *name, int fd)
{
    cr_assert_null(nj__file_cache_find(&cache, name));
    add(name, 100 * MIB, fd);
}

static bool ask_numbered(char kind, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "%c%u", kind, i);
    return ask(name, 3000);
}

static void start(uint64_t n_bytes)
{
    static const struct nj_hash_key key = {{1, 2, 3}};
    cr_assert(nj__store_init(&shared, n_bytes));
    nj__file_cache_init(&cache, &key, &shared, UINT32_MAX);
}

static void stop(void)
{
    nj__file_cache_clear(&cache);
    tidy();
    cr_expect_eq(counts.cached_files, 0);
    cr_expect_eq(counts.cached_bytes, 0);
    cr_expect_eq(nj__cache_policy_used_bytes(&shared.policy), 0);
    cr_expect_eq(cache.n_chunkless, 0);
    cr_expect_eq(cache.n_open, 0);
    nj__store_fini(&shared);
}

/* The name of the open file that is due, or NULL; it is looked at now. */
static const char *due(int64_t now_s)
{
    struct nj__file *f = nj__file_cache_next_delete_check(&cache, now_s);

    if (!f)
        return NULL;
    nj_ref_put(&f->object.ref);
    return f->path;
}

/* Each file with a descriptor is checked once in 16 s, a new one at once. Files without a
 * descriptor are not checked. */
Test(store_file_cache, open_files_are_looked_at_in_turn)
{
    start(64 * MIB);
    ask_open("a", 10);
    ask("whole", 10);
    cr_expect_str_eq(due(1000), "a");
    cr_expect_null(due(1000));
    cr_expect_null(due(1015));
    ask_open("b", 11);
    ask_open("c", 12);
    cr_expect_str_eq(due(1016), "a");
    cr_expect_str_eq(due(1016), "b");
    cr_expect_str_eq(due(1017), "c");
    nj__file_cache_remove(&cache, nj__file_cache_find(&cache, "b"));
    cr_expect_null(due(1031));
    cr_expect_str_eq(due(1033), "a");
    cr_expect_str_eq(due(1033), "c");
    cr_expect_null(due(1033));
    tidy();
    cr_expect_eq(n_dead, 1);
    cr_expect(nj__file_cache_evict_large(&cache, 3));
    cr_expect_not(nj__file_cache_evict_large(&cache, 3));
    tidy();
    cr_expect_eq(n_dead, 3);
    cr_expect_null(due(2000));
    cr_expect(ask("whole", 10), "it stays");
    stop();
}

/* A second removal has no effect. */
Test(store_file_cache, dropped_twice)
{
    start(64 * MIB);
    ask_open("a", 10);
    struct nj__file *f = nj__file_cache_next_delete_check(&cache, 1000);
    nj__file_cache_remove(&cache, f);
    nj__file_cache_remove(&cache, f);
    cr_expect_eq(counts.cached_files, 0);
    cr_expect_eq(n_dead, 0, "the check holds a reference");
    nj_ref_put(&f->object.ref);
    stop();
    cr_expect_eq(n_dead, 1);
}

/* Two threads may have read it; the later one counts. */
Test(store_file_cache, another_file_of_the_same_name)
{
    start(64 * MIB);
    add("a", 3000, -1);
    ask("a", 3000);
    add("a", 5000, -1);
    cr_expect_eq(n_dead, 1);
    cr_expect_eq(counts.cached_files, 1);
    cr_expect_eq(counts.cached_bytes, 8192);
    cr_expect_eq(nj__file_cache_find(&cache, "a")->object.size_bytes, 5000);
    add("a", 65 * MIB, -1);
    cr_expect_eq(n_dead, 3, "too large for the cache, and it replaces the other file");
    cr_expect_null(nj__file_cache_find(&cache, "a"));
    stop();
}

/* A page each: 100 of them fit. */
Test(store_file_cache, a_scan_leaves_what_is_in_demand)
{
    start(100 * 4096);
    for (uint32_t i = 0; i < 2 * HOT; i++)
        ask_numbered('h', i % HOT);
    for (uint32_t i = 0; i < COLD; i++)
        cr_assert_not(ask_numbered('c', i));
    for (uint32_t i = 0; i < HOT; i++)
        cr_expect(ask_numbered('h', i), "file %u is gone", i);
    cr_expect_eq(counts.evictions, COLD + HOT - 100);
    cr_expect_eq(counts.cached_files, 100);
    cr_expect_leq(counts.cached_bytes, 100 * 4096);
    stop();
}

/* Large files without chunks are evicted in the order of their last use; those with chunks stay. */
Test(store_file_cache, large_files_without_pieces)
{
    enum { MORE = 10 };
    char name[16];
    struct nj__file *f;

    start(64 * MIB);
    for (int i = 0; i < (int)NJ__FILE_CHUNKLESS_MAX; i++) {
        snprintf(name, sizeof name, "f%d", i);
        ask_open(name, 10);
    }
    nj__file_cache_mark_chunked(&cache, nj__file_cache_find(&cache, "f0"));
    f = nj__file_cache_find(&cache, "f1");
    nj__file_cache_touch(&cache, f);
    for (int i = 0; i < MORE; i++) {
        snprintf(name, sizeof name, "g%d", i);
        ask_open(name, 10);
    }
    cr_expect_eq(cache.n_chunkless, NJ__FILE_CHUNKLESS_MAX);
    cr_expect_eq(counts.evictions, MORE - 1);
    cr_expect(nj__file_cache_find(&cache, "f0") && nj__file_cache_find(&cache, "f1"));
    cr_expect_null(nj__file_cache_find(&cache, "f2"));
    nj__file_cache_mark_chunkless(&cache, nj__file_cache_find(&cache, "f0"));
    cr_expect_eq(counts.evictions, MORE);
    stop();
}

/* Large files "0" to "n - 1", which have chunks. */
static void open_with_pieces(int n)
{
    char name[16];

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%d", i);
        ask_open(name, 10);
        nj__file_cache_mark_chunked(&cache, nj__file_cache_find(&cache, name));
    }
}

/* Which of the large files "0" to "n - 1" are in the cache, as digits. */
static const char *kept(int n)
{
    static char text[16];
    char name[16];
    size_t at = 0;

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%d", i);
        if (nj__file_cache_find(&cache, name))
            at += (size_t)snprintf(text + at, sizeof text - at, "%d", i);
    }
    return text;
}

/* Files without chunks are evicted first, then those that were not used again. A file with
 * references is not evicted, as that would close no descriptor. */
Test(store_file_cache, least_useful_large_files_go)
{
    start(64 * MIB);
    open_with_pieces(6);
    ask_open("6", 10);
    struct nj__file *held = nj__file_cache_find(&cache, "0");
    nj_ref_take(&held->object.ref);
    nj__file_cache_touch(&cache, nj__file_cache_find(&cache, "1"));
    nj__file_cache_touch(&cache, nj__file_cache_find(&cache, "3"));
    nj__file_cache_touch(&cache, nj__file_cache_find(&cache, "3"));
    static const char *const then[] = {"012345", "01345", "0135", "013", "03", "0"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(then); i++) {
        cr_expect(nj__file_cache_evict_large(&cache, 1));
        cr_expect_str_eq(kept(7), then[i]);
    }
    cr_expect_not(nj__file_cache_evict_large(&cache, 1));
    tidy();
    cr_expect_eq(n_dead, NJ_ARRAY_LEN(then));
    nj_ref_put(&held->object.ref);
    cr_expect(nj__file_cache_evict_large(&cache, 2), "one of two");
    cr_expect_eq(counts.evictions, NJ_ARRAY_LEN(then) + 1);
    stop();
}

/* With many files in use each call examines other files, so the one evictable file is found. */
Test(store_file_cache, looks_at_all_files_in_turn)
{
    enum { N = 3 * NJ__FILE_SCAN_MAX };
    static struct nj__file *held[N];
    uint32_t n_calls = 1;
    char name[16];

    start(64 * MIB);
    open_with_pieces(N);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "%d", i);
        held[i] = nj__file_cache_find(&cache, name);
        nj_ref_take(&held[i]->object.ref);
    }
    cr_expect_not(nj__file_cache_evict_large(&cache, 1));
    nj_ref_put(&held[0]->object.ref); /* it was looked at */
    while (!nj__file_cache_evict_large(&cache, 1))
        cr_assert_leq(n_calls++, N / NJ__FILE_SCAN_MAX);
    cr_expect_eq(cache.n_open, N - 1);
    for (int i = 1; i < N; i++)
        nj_ref_put(&held[i]->object.ref);
    stop();
}

/* Each new file evicts one. While all files are in use, the bound is exceeded. */
Test(store_file_cache, large_files_that_are_kept_are_bounded)
{
    start(64 * MIB);
    cache.open_max = 4;
    open_with_pieces(6);
    cr_expect_str_eq(kept(6), "2345");
    cr_expect_eq(cache.n_open, 4);
    for (int i = 2; i < 6; i++) {
        char name[2] = {(char)('0' + i)};
        nj_ref_take(&nj__file_cache_find(&cache, name)->object.ref);
    }
    ask_open("6", 10);
    cr_expect_str_eq(kept(7), "23456");
    ask_open("7", 10);
    cr_expect_str_eq(kept(8), "23457");
    for (int i = 2; i < 6; i++) {
        char name[2] = {(char)('0' + i)};
        nj_ref_put(&nj__file_cache_find(&cache, name)->object.ref);
    }
    stop();
}

Test(store_file_cache, too_large_for_it)
{
    start(100 * 4096);
    ask_numbered('a', 1);
    cr_expect_not(ask("big", 101 * 4096));
    cr_expect_not(ask("big", 101 * 4096), "never kept");
    cr_expect(ask_numbered('a', 1), "and no file was evicted for it");
    cr_expect_eq(counts.evictions, 0);
    stop();
}
