/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeated targets get the same result, after any other targets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "http/proto/path_cache.h"

static const struct nj_hash_key key = {{1, 2, 3}};
static struct nj_path_cache *targets;

static void begin(void)
{
    targets = calloc(1, sizeof *targets);
    nj_path_cache_init(targets, NJ_STR("index.html"), NULL, &key);
}

static void end(void)
{
    free(targets);
}

TestSuite(http_path_cache, .init = begin, .fini = end);

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, (uint32_t)strlen(s)};
}

/* Compares with nj_path_parse(). Returns whether the target was cached. */
static bool parse(struct nj_str s)
{
    struct nj_path path;
    struct nj_target t;
    memset(&targets->path, 'x', sizeof targets->path);
    enum nj_path_result r = nj_path_parse(s, NJ_STR("index.html"), NULL, &path);
    cr_assert_eq(nj_path_cache_parse(targets, s, &t), r, "%.*s", (int)s.n_bytes, s.p);
    if (r != NJ_PATH_OK)
        return false;
    cr_expect_eq(t.name.n_bytes, path.n_bytes);
    cr_expect_str_eq(t.name.p, path.name);
    cr_expect_eq(t.name.hash, nj_hash(&key, path.name, path.n_bytes));
    cr_expect_eq(t.had_slash, path.had_slash);
    cr_expect(nj_str_eq(t.query, path.query));
    return t.name.p != targets->path.name;
}

Test(http_path_cache, again)
{
    static const char *const all[] = {"/",   "/a/",   "/a",   "/%61",        "/b?x=/y",
                                      "/b?", "/a//b", "/a?b", "/index.html", "/well-known"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(all); i++) {
        cr_expect(!parse(str(all[i])), "%s", all[i]);
        cr_expect(parse(str(all[i])), "%s", all[i]);
    }
}

/* Refused targets are not cached. */
Test(http_path_cache, refused)
{
    static const char *const all[] = {"", "a", "*", "/..", "/.x", "/%2f", "/a#", "/\1"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(all); i++)
        for (int k = 0; k < 2; k++)
            cr_expect(!parse(str(all[i])), "%s", all[i]);
}

/* Long targets, and short targets with a long name, are not cached either. */
Test(http_path_cache, long_ones)
{
    char s[NJ_PATH_MAX + 2];
    for (uint32_t n = 1; n < sizeof s; n++) {
        memset(s, 'a', n);
        s[0] = '/';
        parse((struct nj_str){s, n});
        cr_expect_eq(parse((struct nj_str){s, n}), n <= NJ_PATH_CACHE_KEY_MAX, "%u", n);
        s[n - 1] = '/';
        parse((struct nj_str){s, n});
        bool fits = n == 1 || n + 9 < NJ_PATH_CACHE_KEY_MAX;
        cr_expect_eq(parse((struct nj_str){s, n}), fits, "%u", n);
    }
}

/* Many targets that differ in any byte or only in length, and evict each other. */
Test(http_path_cache, many)
{
    static const char some[] = "/a.%2?";
    struct nj_prng r;
    uint32_t n_known = 0;
    char s[24];
    nj_prng_init(&r, 1);
    for (int i = 0; i < 200000; i++) {
        uint32_t n = 1 + nj_prng_below(&r, i % 2 ? 4 : sizeof s);
        for (uint32_t k = 0; k < n; k++)
            s[k] = nj_prng_below(&r, 3) ? 'a' : some[nj_prng_below(&r, sizeof some - 1)];
        s[0] = '/';
        n_known += parse((struct nj_str){s, n});
    }
    cr_expect_gt(n_known, 20000u);
}

/* Targets that differ in one octet usually have different slots. */
Test(http_path_cache, alike)
{
    char s[40];
    uint32_t n_known = 0, n_all = 0;
    for (size_t at = 1; at < sizeof s; at++) {
        for (int round = 0; round < 2; round++) {
            for (char c = 'a'; c <= 'z'; c++, n_all += round) {
                memset(s, '-', sizeof s);
                s[0] = '/';
                s[at] = c;
                bool known = parse((struct nj_str){s, sizeof s});
                n_known += round && known;
            }
        }
    }
    cr_expect_gt(n_known, n_all * 8 / 10, "%u of %u", n_known, n_all);
}

static void look(struct nj_path_cache *t, uint32_t i, bool *known)
{
    char text[32];
    int n = snprintf(text, sizeof text, "/target/%u", i);
    struct nj_target out;

    cr_assert_eq(nj_path_cache_parse(t, (struct nj_str){text, (uint32_t)n}, &out), NJ_PATH_OK);
    *known = out.name.p != t->path.name;
}

/* True if `b` evicts `a`. */
static bool share_a_place(struct nj_path_cache *t, uint32_t a, uint32_t b)
{
    bool known;

    look(t, a, &known);
    look(t, b, &known);
    look(t, a, &known);
    return !known;
}

/* Targets that share a slot with one key are spread with another: without the key a client cannot
 * choose what is evicted. */
Test(http_path_cache, the_key_decides_the_place)
{
    static const struct nj_hash_key other_key = {{9, 2, 3}};
    struct nj_path_cache *other = calloc(1, sizeof *other);
    uint32_t n_here = 0, n_there = 0;

    nj_path_cache_init(other, NJ_STR("index.html"), NULL, &other_key);
    for (uint32_t i = 1; i < 20000; i++) {
        if (!share_a_place(targets, 0, i))
            continue;
        n_here++;
        n_there += share_a_place(other, 0, i);
    }
    cr_expect(n_here > 15 && n_here < 80, "%u of 20000 in one of 512 places", n_here);
    cr_expect_lt(n_there, 4, "%u of these %u with another key", n_there, n_here);
    free(other);
}
