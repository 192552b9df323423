/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that come again are what they were, whatever came between. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/prng.h"
#include "http/target.h"

static const struct nj_hash_key key = {{1, 2, 3}};
static struct nj_targets *targets;

static void begin(void)
{
    targets = calloc(1, sizeof *targets);
    nj_targets_init(targets, NJ_STR("index.html"), &key);
}

static void end(void)
{
    free(targets);
}

TestSuite(http_target, .init = begin, .fini = end);

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, (uint32_t)strlen(s)};
}

/* As nj_path_parse() has it. Returns whether it was remembered. */
static bool parse(struct nj_str s)
{
    struct nj_path path;
    struct nj_target t;
    memset(&targets->path, 'x', sizeof targets->path);
    enum nj_path_result r = nj_path_parse(s, NJ_STR("index.html"), &path);
    cr_assert_eq(nj_target_parse(targets, s, &t), r, "%.*s", (int)s.n_bytes, s.p);
    if (r != NJ_PATH_OK)
        return false;
    cr_expect_eq(t.name.n_bytes, path.n_bytes);
    cr_expect_str_eq(t.name.p, path.name);
    cr_expect_eq(t.name.hash, nj_hash(&key, path.name, path.n_bytes));
    cr_expect_eq(t.had_slash, path.had_slash);
    cr_expect(nj_str_eq(t.query, path.query));
    return t.name.p != targets->path.name;
}

Test(http_target, again)
{
    static const char *const all[] = {"/",   "/a/",   "/a",   "/%61",        "/b?x=/y",
                                      "/b?", "/a//b", "/a?b", "/index.html", "/well-known"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(all); i++) {
        cr_expect(!parse(str(all[i])), "%s", all[i]);
        cr_expect(parse(str(all[i])), "%s", all[i]);
    }
}

/* What is refused is looked into each time. */
Test(http_target, refused)
{
    static const char *const all[] = {"", "a", "*", "/..", "/.x", "/%2f", "/a#", "/\1"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(all); i++)
        for (int k = 0; k < 2; k++)
            cr_expect(!parse(str(all[i])), "%s", all[i]);
}

/* So are long ones, and short ones with a long name. */
Test(http_target, long_ones)
{
    char s[NJ_PATH_MAX + 2];
    for (uint32_t n = 1; n < sizeof s; n++) {
        memset(s, 'a', n);
        s[0] = '/';
        parse((struct nj_str){s, n});
        cr_expect_eq(parse((struct nj_str){s, n}), n <= NJ_TARGET_BYTES_MAX, "%u", n);
        s[n - 1] = '/';
        parse((struct nj_str){s, n});
        bool fits = n == 1 || n + 9 < NJ_TARGET_BYTES_MAX;
        cr_expect_eq(parse((struct nj_str){s, n}), fits, "%u", n);
    }
}

/* Many that differ anywhere, or in nothing but their lengths, one in the place of another. */
Test(http_target, many)
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

/* Those that differ in one octet only, wherever it is, have different places, mostly. */
Test(http_target, alike)
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
