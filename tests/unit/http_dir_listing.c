/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "http/files/dir_listing.h"

static char page[65536];

static const char *render(struct nj_listing *l, bool json)
{
    nj_listing_sort(l);
    size_t n = nj_listing_render(l, json, page, sizeof page - 1);
    cr_assert_lt(n, sizeof page);
    cr_assert_eq(nj_listing_render(l, json, NULL, 0), n, "entries that do not fit are counted");
    page[n] = '\0';
    return page;
}

static void expect_has(const char *text, const char *want)
{
    cr_expect_not_null(strstr(text, want), "%s lacks %s", text, want);
}

Test(http_dir_listing, json)
{
    struct nj_listing_entry e[] = {
        {"b.iso", false, 3, 784111777},
        {"a \"b\"\\\x01?", false, UINT64_MAX, 0},
        {"zoo", true, 4096, 784111777},
    };
    struct nj_listing l = {"iso/x", e, 3};
    cr_expect_str_eq(
        render(&l, true),
        "{\"path\":\"/iso/x/\",\"entries\":[\n"
        "{\"name\":\"zoo\",\"type\":\"folder\",\"size\":null,\"mtime\":\"1994-11-06T08:49:37Z\","
        "\"href\":\"zoo/\"},\n"
        "{\"name\":\"a \\\"b\\\"\\\\\\u0001?\",\"type\":\"file\",\"size\":18446744073709551615,"
        "\"mtime\":\"1970-01-01T00:00:00Z\",\"href\":\"a%20%22b%22%5C%01%3F\"},\n"
        "{\"name\":\"b.iso\",\"type\":\"file\",\"size\":3,\"mtime\":\"1994-11-06T08:49:37Z\","
        "\"href\":\"b.iso\"}\n]}\n");
}

Test(http_dir_listing, empty)
{
    struct nj_listing l = {.path = ""};
    cr_expect_str_eq(render(&l, true), "{\"path\":\"/\",\"entries\":[\n]}\n");
    const char *html = render(&l, false);
    expect_has(html, "<title>Index of /</title>");
    expect_has(html, "This folder is empty.");
    cr_expect_null(strstr(html, "Parent folder"), "the root has no parent");
}

Test(http_dir_listing, html)
{
    struct nj_listing_entry e[] = {
        {"<script>alert('x')&\"", false, 1536, 784111777},
        {"javascript:alert(1)", false, 0, 784111777},
        {"sub", true, 0, 784111777},
    };
    struct nj_listing l = {"a&b", e, 3};
    const char *html = render(&l, false);
    expect_has(html, "<title>Index of /a&amp;b/</title>");
    expect_has(html, "<a href=\"../\">Parent folder</a>");
    expect_has(html, "<a href=\"%3Cscript%3Ealert%28%27x%27%29%26%22\"><bdi>"
                     "&lt;script&gt;alert(&#39;x&#39;)&amp;&#34;</bdi></a></td><td>1.5 KiB</td>");
    expect_has(html, "href=\"javascript%3Aalert%281%29\"");
    expect_has(html, "<a href=\"sub/\"><bdi>sub/</bdi></a></td><td></td>");
    expect_has(html, "<time datetime=\"1994-11-06T08:49:37Z\">1994-11-06 08:49</time>");
    cr_expect_lt(strstr(html, "sub/"), strstr(html, "javascript"), "folders first");
}

/* Well-formed UTF-8 passes, other bytes become U+FFFD, and href keeps all bytes. */
Test(http_dir_listing, utf8)
{
    static const struct {
        const char *name, *shown;
    } names[] = {
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"x\xff", "x\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe0\x9f\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf0\x9f\x98", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++) {
        struct nj_listing_entry e = {names[i].name, false, 0, 0};
        struct nj_listing l = {"", &e, 1};
        char want[64];
        snprintf(want, sizeof want, "{\"name\":\"%s\",", names[i].shown);
        expect_has(render(&l, true), want);
        snprintf(want, sizeof want, "<bdi>%s</bdi></a>", names[i].shown);
        expect_has(render(&l, false), want);
    }
    struct nj_listing_entry e = {"x\xff", false, 0, 0};
    struct nj_listing l = {"", &e, 1};
    expect_has(render(&l, true), "\"href\":\"x%FF\"");
}

Test(http_dir_listing, sizes)
{
    static const struct {
        uint64_t n_bytes;
        const char *shown;
    } sizes[] = {
        {0, "<td>0 B<"},
        {1023, "<td>1023 B<"},
        {1024, "<td>1.0 KiB<"},
        {1024 * 1024 - 1, "<td>1024.0 KiB<"},
        {1024 * 1024, "<td>1.0 MiB<"},
        {UINT64_C(4700372992), "<td>4.4 GiB<"},
        {UINT64_MAX, "<td>16.0 EiB<"},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        struct nj_listing_entry e = {"f", false, sizes[i].n_bytes, 0};
        struct nj_listing l = {"", &e, 1};
        expect_has(render(&l, false), sizes[i].shown);
    }
}

Test(http_dir_listing, a_short_buffer_gets_the_beginning)
{
    struct nj_listing l = {.path = "x"};
    char some[11] = "..........";
    size_t n = nj_listing_render(&l, true, some, 9);
    cr_expect_eq(n, strlen(render(&l, true)));
    cr_expect_eq(memcmp(some, "{\"path\":\".", 10), 0);
}

Test(http_dir_listing, what_is_hidden)
{
    cr_expect(nj_listing_may_show("a"));
    cr_expect(nj_listing_may_show("a.b"));
    cr_expect(nj_listing_may_show("\xff"));
    cr_expect_not(nj_listing_may_show(""));
    cr_expect_not(nj_listing_may_show(".git"));
    cr_expect_not(nj_listing_may_show("a\nb"));
    cr_expect_not(nj_listing_may_show("a\\b"), "no request can name it");
    cr_expect_not(nj_listing_may_show("\x7f"));
}
