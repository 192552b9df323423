/* SPDX-License-Identifier: BSD-3-Clause */
/* Request targets and the file names they denote; refused targets. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "http/proto/path.h"

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, (uint32_t)strlen(s)};
}

Test(http_path, names)
{
    static const struct {
        const char *target, *name, *query;
        bool had_slash;
    } rows[] = {
        {"/", "index.html", "", true},
        {"//", "index.html", "", true},
        {"/?", "index.html", "?", true},
        {"/a", "a", "", false},
        {"/a/", "a/index.html", "", true},
        {"/a/b.txt", "a/b.txt", "", false},
        {"//a///b//", "a/b/index.html", "", true},
        {"/a?b=/../c", "a", "?b=/../c", false},
        {"/a%20b", "a b", "", false},
        {"/%e4%BD%a0", "\xe4\xbd\xa0", "", false},
        {"/a%3fb", "a?b", "", false},
        {"/a%23b", "a#b", "", false},
        {"/a%25b", "a%b", "", false},
        {"/%252e%252e/x", "%2e%2e/x", "", false},
        {"/a..b/c..", "a..b/c..", "", false},
        {"/.well-known/x", ".well-known/x", "", false},
        {"/%2ewell-known/x", ".well-known/x", "", false},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_path p;
        cr_expect_eq(nj_path_parse(str(rows[i].target), NJ_STR("index.html"), NULL, &p), NJ_PATH_OK,
                     "%s", rows[i].target);
        cr_expect_str_eq(p.name, rows[i].name, "%s", rows[i].target);
        cr_expect_eq(p.n_bytes, strlen(rows[i].name));
        cr_expect_eq(p.had_slash, rows[i].had_slash, "%s", rows[i].target);
        cr_expect_eq(p.query.n_bytes, strlen(rows[i].query), "%s", rows[i].target);
        cr_expect_eq(memcmp(p.query.p, rows[i].query, p.query.n_bytes), 0);
    }
}

Test(http_path, refused)
{
    static const struct {
        const char *target;
        enum nj_path_result want;
    } rows[] = {
        {"", NJ_PATH_BAD},
        {"*", NJ_PATH_ASTERISK},
        {"a", NJ_PATH_BAD},
        {"?a", NJ_PATH_BAD},
        {"http://host/", NJ_PATH_BAD},
        {"/..", NJ_PATH_BAD},
        {"/../etc/passwd", NJ_PATH_BAD},
        {"/a/../b", NJ_PATH_BAD},
        {"/a/..", NJ_PATH_BAD},
        {"/a/.", NJ_PATH_BAD},
        {"/./a", NJ_PATH_BAD},
        {"/%2e%2e/a", NJ_PATH_BAD},
        {"/.%2E/a", NJ_PATH_BAD},
        {"/%2e", NJ_PATH_BAD},
        {"/..%2fa", NJ_PATH_BAD},
        {"/a%2fb", NJ_PATH_BAD},
        {"/a%2Fb", NJ_PATH_BAD},
        {"/a%5cb", NJ_PATH_BAD},
        {"/a\\b", NJ_PATH_BAD},
        {"/..\\a", NJ_PATH_BAD},
        {"/%00", NJ_PATH_BAD},
        {"/a%00.html", NJ_PATH_BAD},
        {"/a%0d%0ab", NJ_PATH_BAD},
        {"/a\nb", NJ_PATH_BAD},
        {"/a%7f", NJ_PATH_BAD},
        {"/a?b\rc", NJ_PATH_BAD},
        {"/a#b", NJ_PATH_BAD},
        {"/%", NJ_PATH_BAD},
        {"/%2", NJ_PATH_BAD},
        {"/%2?a", NJ_PATH_BAD},
        {"/%zz", NJ_PATH_BAD},
        {"/%+1", NJ_PATH_BAD},
        {"/.git/config", NJ_PATH_HIDDEN},
        {"/a/.htpasswd", NJ_PATH_HIDDEN},
        {"/...", NJ_PATH_HIDDEN},
        {"/%2egit/", NJ_PATH_HIDDEN},
        {"/.well-known2/x", NJ_PATH_HIDDEN},
        {"/.git/../a", NJ_PATH_BAD},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_path p;
        cr_expect_eq(nj_path_parse(str(rows[i].target), NJ_STR("index.html"), NULL, &p),
                     rows[i].want, "%s", rows[i].target);
    }
    struct nj_path p;
    cr_expect_eq(nj_path_parse((struct nj_str){"/a\0b", 4}, NJ_STR("index.html"), NULL, &p),
                 NJ_PATH_BAD);
}

Test(http_path, length)
{
    static char target[NJ_PATH_MAX + 1];
    struct nj_path p;

    memset(target, 'a', sizeof target);
    target[0] = '/';
    cr_expect_eq(
        nj_path_parse((struct nj_str){target, NJ_PATH_MAX - 1}, NJ_STR("index.html"), NULL, &p),
        NJ_PATH_OK);
    cr_expect_eq(p.n_bytes, NJ_PATH_MAX - 2);
    cr_expect_eq(
        nj_path_parse((struct nj_str){target, NJ_PATH_MAX}, NJ_STR("index.html"), NULL, &p),
        NJ_PATH_TOO_LONG);

    /* "index.html" and its terminator must fit after a folder: name, slash, 10 bytes, NUL. */
    uint32_t n = NJ_PATH_MAX - 11 + 1; /* the leading slash is not part of the name */
    target[n - 1] = '/';
    cr_expect_eq(nj_path_parse((struct nj_str){target, n}, NJ_STR("index.html"), NULL, &p),
                 NJ_PATH_OK);
    cr_expect_eq(p.n_bytes, NJ_PATH_MAX - 1);
    target[n - 1] = 'a';
    target[n] = '/';
    cr_expect_eq(nj_path_parse((struct nj_str){target, n + 1}, NJ_STR("index.html"), NULL, &p),
                 NJ_PATH_TOO_LONG);
}

static void expect_location(const char *name, const char *query, const char *want)
{
    char out[NJ_PATH_LOCATION_MAX];
    size_t n = nj_path_dir_location(str(name), str(query), out);

    cr_expect_eq(n, strlen(want), "%s%s: %zu", name, query, n);
    cr_expect_eq(memcmp(out, want, n), 0, "%s%s: %.*s", name, query, (int)n, out);
}

Test(http_path, location)
{
    expect_location("a", "", "/a/");
    expect_location("a/b", "?x=1&y=%20", "/a/b/?x=1&y=%20");
    expect_location("a b?c#d%e", "", "/a%20b%3Fc%23d%25e/");
    expect_location("\xc3\xa4", "", "/%C3%A4/");
    expect_location("a\r\nb", "?\r\nc \"<>\x80", "/a%0D%0Ab/?%0D%0Ac%20%22%3C%3E%80");
    expect_location("evil.example:80@x", "", "/evil.example:80@x/");
}

Test(http_path, dotfiles_of_an_operator)
{
    static const char *const wrong[] = {"",      ",",   "a",    ".",    "..",    ".a,b",   "./a",
                                        ".a/.b", "/.a", ".a\n", ".a\\", ".\x7f", "none,.a"};
    struct nj_dotfiles names;
    char text[256] = "";

    for (size_t i = 0; i < NJ_ARRAY_LEN(wrong); i++)
        cr_expect_not(nj_dotfiles_parse(wrong[i], &names), "%s", wrong[i]);
    cr_expect(nj_dotfiles_parse("none", &names) && names.n == 0);
    cr_expect(nj_dotfiles_parse(".a, ...,.b c", &names) && names.n == 3);
    cr_expect(nj_str_eq(names.name[1], NJ_STR("...")) && nj_str_eq(names.name[2], NJ_STR(".b c")));
    for (uint32_t i = 0; i < NJ_DOTFILES_MAX; i++)
        strcat(text, ".a,");
    cr_expect(nj_dotfiles_parse(text, &names));
    cr_expect_not(nj_dotfiles_parse(strcat(text, ".a"), &names));
}
