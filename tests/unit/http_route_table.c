/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the route of a request, and tables that are refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "http/handlers/route_table.h"

static void handle(struct nj_request *req, struct nj_response *resp, void *arg)
{
}

static struct nj_str str(const char *s)
{
    return (struct nj_str){s, (uint32_t)strlen(s)};
}

#define ROUTE(m, p)                                                                                \
    {                                                                                              \
        .method = (m), .path = (p), .handle = handle                                               \
    }

static const struct nj_route some[] = {
    ROUTE("GET", "/a"),      ROUTE("POST", "/a"), ROUTE("GET", "/a/*"), ROUTE("PUT", "/a/b/*"),
    ROUTE(NULL, "/a/b/c"),   ROUTE("HEAD", "/h"), ROUTE("GET", "/h"),   ROUTE("DELETE", "/a/b/c"),
    ROUTE("GET", "/ab%20c"), ROUTE("GET", "/"),   ROUTE("POST", "/p"),
};

/* Sentences 223, 225. */
Test(http_route_table, who_answers)
{
    static const struct {
        const char *method, *path;
        int index; /* -1: no route; -2: not with this method */
        const char *allow;
    } rows[] = {
        {"GET", "/a", 0, NULL},
        {"HEAD", "/a", 0, NULL},
        {"POST", "/a", 1, NULL},
        {"PUT", "/a", -2, "GET, POST, HEAD"},
        {"get", "/a", -2, "GET, POST, HEAD"},
        {"GET", "/a?", -1, NULL},
        {"GET", "/a/", 2, NULL},
        {"GET", "/a/x", 2, NULL},
        {"GET", "/a/b", 2, NULL},
        {"POST", "/a/x/y/z", -2, "GET, HEAD"},
        {"PUT", "/a/b/x", 3, NULL},
        {"GET", "/a/b/x", -2, "PUT"},
        {"PUT", "/a/b/", 3, NULL},
        {"PUT", "/a/b/c", 4, NULL},
        {"DELETE", "/a/b/c", 7, NULL},
        {"HEAD", "/h", 5, NULL},
        {"GET", "/h", 6, NULL},
        {"OPTIONS", "/h", -2, "HEAD, GET"},
        {"GET", "/ab c", 8, NULL},
        {"GET", "/ab%20c", -1, NULL},
        {"GET", "/", 9, NULL},
        {"GET", "", -1, NULL},
        {"GET", "/aa", -1, NULL},
        {"GET", "/A", -1, NULL},
        {"HEAD", "/p", -2, "POST"},
    };
    char why[128];
    struct nj_routes *r = nj_routes_new(some, NJ_ARRAY_LEN(some), why, sizeof why);

    cr_assert(r, "%s", why);
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_route_match m = {.index = 99};
        enum nj_route_result got = nj_routes_find(r, str(rows[i].method), str(rows[i].path), &m);
        enum nj_route_result want = rows[i].index >= 0    ? NJ_ROUTE_FOUND
                                    : rows[i].index == -1 ? NJ_ROUTE_NONE
                                                          : NJ_ROUTE_BAD_METHOD;
        cr_expect_eq(got, want, "%s %s", rows[i].method, rows[i].path);
        if (want == NJ_ROUTE_FOUND)
            cr_expect_eq(m.index, (uint32_t)rows[i].index, "%s %s: %u", rows[i].method,
                         rows[i].path, m.index);
        if (want == NJ_ROUTE_BAD_METHOD)
            cr_expect(m.allow.n_bytes == strlen(rows[i].allow) &&
                          memcmp(m.allow.p, rows[i].allow, m.allow.n_bytes) == 0,
                      "%s %s: %.*s", rows[i].method, rows[i].path, (int)m.allow.n_bytes, m.allow.p);
    }
    cr_expect_str_eq(nj_routes_name(r, 2), "GET /a/*");
    cr_expect_str_eq(nj_routes_name(r, 4), "* /a/b/c");
    cr_expect_eq(nj_routes_count(r), NJ_ARRAY_LEN(some));
    nj_routes_free(r);
}

Test(http_route_table, without_routes)
{
    struct nj_route_match m;
    char why[64];
    struct nj_routes *r = nj_routes_new(NULL, 0, why, sizeof why);

    cr_expect_eq(nj_routes_find(NULL, str("GET"), str("/"), &m), NJ_ROUTE_NONE);
    cr_expect_eq(nj_routes_find(r, str("GET"), str("/"), &m), NJ_ROUTE_NONE);
    nj_routes_free(r);
}

/* 256 routes, exact and prefixes, compared with a linear search. */
Test(http_route_table, many)
{
    static char path[NJ_ROUTES_MAX][32];
    static struct nj_route list[NJ_ROUTES_MAX + 1];
    char why[128];

    for (uint32_t i = 0; i < NJ_ROUTES_MAX; i++) {
        snprintf(path[i], sizeof path[i], i % 2 ? "/%x/%x/*" : "/%x/%x", i / 16, i % 16);
        list[i] = (struct nj_route)ROUTE("GET", path[i]);
    }
    list[NJ_ROUTES_MAX] = (struct nj_route)ROUTE("GET", "/one/too/many");
    cr_expect_null(nj_routes_new(list, NJ_ROUTES_MAX + 1, why, sizeof why));
    cr_expect_str_eq(why, "257 routes: at most 256 are allowed");
    struct nj_routes *r = nj_routes_new(list, NJ_ROUTES_MAX, why, sizeof why);
    cr_assert(r, "%s", why);
    for (uint32_t i = 0; i < NJ_ROUTES_MAX; i++) {
        struct nj_route_match m;
        char asked[40];
        snprintf(asked, sizeof asked, i % 2 ? "/%x/%x/below" : "/%x/%x", i / 16, i % 16);
        cr_expect_eq(nj_routes_find(r, str("GET"), str(asked), &m), NJ_ROUTE_FOUND);
        cr_expect_eq(m.index, i, "%s", asked);
    }
    nj_routes_free(r);
}

Test(http_route_table, refused)
{
    static const struct {
        struct nj_route route;
        const char *why;
    } rows[] = {
        {{.path = NULL, .handle = handle}, "path is missing"},
        {ROUTE("GET", ""), "expected a path"},
        {ROUTE("GET", "a-b"), "or a name of up to 31 letters"},
        {ROUTE("GET", "none"), "other than none"},
        {ROUTE("GET", "a23456789012345678901234567890ab"), "or a name"},
        {ROUTE("GET", "/a?b"), "expected a path"},
        {ROUTE("GET", "/a b"), "expected a path"},
        {ROUTE("GET", "/a*"), "expected a path"},
        {ROUTE("GET", "/*/a"), "expected a path"},
        {ROUTE("GET", "/a/**"), "expected a path"},
        {ROUTE("GET", "/a//b"), "expected a path"},
        {ROUTE("GET", "//*"), "expected a path"},
        {ROUTE("GET", "/a/./b"), "expected a path"},
        {ROUTE("GET", "/a/%2E./*"), "expected a path"},
        {ROUTE("GET", "/a%2fb"), "expected a path"},
        {ROUTE("GET", "/a%00"), "expected a path"},
        {ROUTE("GET", "/a%2"), "expected a path"},
        {ROUTE("", "/a"), "expected a method"},
        {ROUTE("get", "/a"), "expected a method"},
        {ROUTE("G T", "/a"), "expected a method"},
        {ROUTE("ABCDEFGHIJKLMNOPQ", "/a"), "expected a method"},
        {{.method = "GET", .path = "/a"}, "handler is missing"},
        {{.path = "/a", .handle = handle, .type = NJ_N_TASK_TYPES}, "unknown task type"},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        char why[200] = "";
        cr_expect_null(nj_routes_new(&rows[i].route, 1, why, sizeof why), "row %zu", i);
        cr_expect(strstr(why, rows[i].why), "row %zu: %s", i, why);
        cr_expect(strstr(why, "route 0"), "row %zu: %s", i, why);
    }
    const struct nj_route twice[] = {ROUTE("GET", "/a"), ROUTE("GET", "/b"), ROUTE("GET", "/a")};
    char why[200];
    cr_expect_null(nj_routes_new(twice, 3, why, sizeof why));
    cr_expect_str_eq(why, "routes 0 and 2 are both for GET /a");
    const struct nj_route spelled[] = {ROUTE("GET", "/a/*"), ROUTE("GET", "/%61/*")};
    cr_expect_null(nj_routes_new(spelled, 2, why, sizeof why));
    cr_expect_str_eq(why, "routes 0 and 1 are both for GET /%61/*");
    const struct nj_route any[] = {ROUTE(NULL, "/a"), ROUTE(NULL, "/a")};
    cr_expect_null(nj_routes_new(any, 2, why, sizeof why));
}

/* A request without a path matches no route, whatever its method. Sentence 251. */
Test(http_route_table, no_path)
{
    static const struct nj_route all[] = {ROUTE(NULL, "/*"), ROUTE("CONNECT", "/"),
                                          ROUTE(NULL, "/a")};
    char why[128];
    struct nj_routes *r = nj_routes_new(all, NJ_ARRAY_LEN(all), why, sizeof why);
    struct nj_route_match m;

    cr_assert(r, "%s", why);
    cr_expect_eq(nj_routes_find(r, str("CONNECT"), (struct nj_str){NULL, 0}, &m), NJ_ROUTE_NONE);
    cr_expect_eq(nj_routes_find(r, str("OPTIONS"), str(""), &m), NJ_ROUTE_NONE);
    nj_routes_free(r);
}

/* Routes with a name have no path; those with one name differ in their methods. */
Test(http_route_table, names)
{
    static const struct nj_route all[] = {ROUTE("GET", "look_up2"), ROUTE("GET", "/look_up2"),
                                          ROUTE("POST", "look_up2"), ROUTE(NULL, "a"),
                                          ROUTE("GET", "/p/*")};
    char why[128];
    struct nj_routes *r = nj_routes_new(all, NJ_ARRAY_LEN(all), why, sizeof why);
    struct nj_route_match m;

    cr_assert(r, "%s", why);
    cr_expect_eq(nj_routes_find(r, str("GET"), str("look_up2"), &m), NJ_ROUTE_FOUND,
                 "no request has such a path");
    cr_expect_eq(nj_routes_find(r, str("POST"), str("/look_up2"), &m), NJ_ROUTE_BAD_METHOD);
    cr_expect_eq(nj_routes_find(r, str("GET"), str("/a"), &m), NJ_ROUTE_NONE);
    cr_expect_eq(nj_routes_find(r, str("GET"), str("/p/x"), &m), NJ_ROUTE_FOUND);
    cr_expect_eq(m.n_mount, 3);
    for (uint32_t i = 0; i < 3; i += 2) {
        cr_expect_eq(nj_routes_find_named(r, i, str("HEAD"), &m), NJ_ROUTE_FOUND);
        cr_expect_eq(m.index, 0);
        cr_expect_eq(nj_routes_find_named(r, i, str("POST"), &m), NJ_ROUTE_FOUND);
        cr_expect_eq(m.index, 2);
        cr_expect_eq(nj_routes_find_named(r, i, str("PUT"), &m), NJ_ROUTE_BAD_METHOD);
        cr_expect(nj_str_eq(m.allow, str("GET, POST, HEAD")));
    }
    cr_expect_eq(nj_routes_find_named(r, 3, str("PUT"), &m), NJ_ROUTE_FOUND);
    cr_expect_eq(m.index, 3);
    cr_expect_str_eq(nj_routes_name(r, 2), "POST look_up2");
    nj_routes_free(r);
}

/* An encoded '*' is a literal, not a prefix. */
Test(http_route_table, an_escaped_star)
{
    static const struct nj_route all[] = {ROUTE("GET", "/a/%2a"), ROUTE("GET", "/a/*")};
    char why[128];
    struct nj_routes *r = nj_routes_new(all, NJ_ARRAY_LEN(all), why, sizeof why);
    struct nj_route_match m;

    cr_assert(r, "%s", why);
    cr_expect_eq(nj_routes_find(r, str("GET"), str("/a/*"), &m), NJ_ROUTE_FOUND);
    cr_expect_eq(m.index, 0);
    cr_expect_eq(nj_routes_find(r, str("GET"), str("/a/**"), &m), NJ_ROUTE_FOUND);
    cr_expect_eq(m.index, 1);
    nj_routes_free(r);
}
