/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "mgmt/http_exchange.h"
#include "mgmt/routes.h"

Test(mgmt_routes, paths_and_methods)
{
    static const struct {
        const char *path, *method, *allowed; /* NULL: found */
    } of[] = {
        {"/health", "GET", NULL},
        {"/health", "HEAD", NULL},
        {"/health", "POST", "GET, HEAD"},
        {"/health", "get", "GET, HEAD"},
        {"/api/v1/reload", "POST", NULL},
        {"/api/v1/reload", "GET", "POST"},
        {"/api/v1/reload", "OPTIONS", "POST"},
        {"/", "GET", NULL},
        {"", "GET", ""},
        {"/healt", "GET", ""},
        {"/health/", "GET", ""},
        {"//health", "GET", ""},
        {"/HEALTH", "GET", ""},
        {"/%68ealth", "GET", ""},
        {"/api/v1/../../health", "GET", ""},
        {"/api/v1/reload/x", "POST", ""},
    };

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char allowed[NJ__MGMT_ALLOWED_BYTES];
        const struct nj__mgmt_route *r = nj__mgmt_route_find(of[i].path, of[i].method, allowed);
        cr_expect_eq(r == NULL, of[i].allowed != NULL, "%s %s", of[i].method, of[i].path);
        if (of[i].allowed)
            cr_expect_str_eq(allowed, of[i].allowed, "%s %s", of[i].method, of[i].path);
        else
            cr_expect_str_eq(nj__mgmt_route_rest(r, of[i].path), "");
    }
}

/* Private data need the token for changes, also by GET. */
Test(mgmt_routes, captures_and_traces_need_the_right_to_change)
{
    static const char *const paths[] = {"/api/v1/capture", "/api/v1/trace"};
    char allowed[NJ__MGMT_ALLOWED_BYTES];

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        cr_expect_eq(nj__mgmt_route_find(paths[i], "GET", allowed)->access, NJ__MGMT_WRITE);
}

Test(mgmt_routes, hosts_of_this_machine)
{
    static const char *const good[] = {"localhost",      "LOCALHOST:9180", "127.0.0.1",
                                       "127.0.0.1:9180", "[::1]",          "[::1]:9180",
                                       "198.18.0.1:1"};
    static const char *const bad[] = {"evil.example",
                                      "evil.example:9180",
                                      "localhost.evil.example",
                                      "localhost:",
                                      "localhost:x",
                                      "localhost:70000",
                                      "[::1",
                                      "[::1]x",
                                      "[]",
                                      "127.0.0.1.evil",
                                      "127.0.0.1:9180:1",
                                      ":9180",
                                      "xn--localhost-1a",
                                      " localhost"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_expect(nj__mgmt_is_local_host(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not(nj__mgmt_is_local_host(bad[i]), "%s", bad[i]);
}

Test(mgmt_routes, origins)
{
    cr_expect(nj__mgmt_is_same_origin("http://localhost:9180", "localhost:9180"));
    cr_expect(nj__mgmt_is_same_origin("https://LOCALHOST", "localhost"));
    cr_expect_not(nj__mgmt_is_same_origin("http://localhost", "localhost:9180"));
    cr_expect_not(nj__mgmt_is_same_origin("http://localhost:9180", ""));
    cr_expect_not(nj__mgmt_is_same_origin("localhost", "localhost"));
    cr_expect_not(nj__mgmt_is_same_origin("http://localhost.evil.example", "localhost"));
    cr_expect_not(nj__mgmt_is_same_origin("null", "null"));
    cr_expect_not(nj__mgmt_is_same_origin("", ""));
}

Test(mgmt_routes, only_reload_is_slow)
{
    char allowed[NJ__MGMT_ALLOWED_BYTES];

    cr_expect(nj__mgmt_route_is_slow(nj__mgmt_route_find("/api/v1/reload", "POST", allowed)));
    cr_expect_not(nj__mgmt_route_is_slow(nj__mgmt_route_find("/health", "GET", allowed)));
    cr_expect_not(nj__mgmt_route_is_slow(nj__mgmt_route_find("/api/v1/events", "GET", allowed)));
}

Test(mgmt_routes, queries)
{
    char url[NJ__MGMT_QUERY_MAX + 4] = "/a?";
    struct nj__mgmt_exchange e = {0};

    nj__mgmt_exchange_begin(&e, "/clients?10,by=streams?");
    cr_expect_str_eq(e.query, "10,by=streams?");
    nj__mgmt_exchange_begin(&e, "/clients");
    cr_expect_str_eq(e.query, "");
    memset(url + 3, 'x', NJ__MGMT_QUERY_MAX);
    nj__mgmt_exchange_begin(&e, url);
    cr_expect_eq(strlen(e.query), NJ__MGMT_QUERY_MAX);
    cr_expect_not(e.is_too_long);
    char *longer = malloc(sizeof url + 1);
    cr_assert_not_null(longer);
    sprintf(longer, "%sx", url);
    nj__mgmt_exchange_begin(&e, longer);
    cr_expect(e.is_too_long);
    cr_expect_str_eq(e.query, "");
    free(longer);
}
