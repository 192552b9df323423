/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The route table: maps a plain path and a method to a handler. An exact pattern wins over a
 * prefix, a longer prefix over a shorter one; then the method is matched. Built once at start, then
 * read-only: any thread may search it.
 */
#pragma once

#include <nightjar/handler.h>

#include "base/str.h"

/* Longest pattern, in bytes. */
#define NJ_ROUTE_PATH_MAX  1024u
/* Longest value of a 405's allow field; further methods are left out. */
#define NJ_ROUTE_ALLOW_MAX 256u

struct nj_routes;

enum nj_route_result {
    NJ_ROUTE_FOUND,
    NJ_ROUTE_NONE,       /* no pattern matches the path */
    NJ_ROUTE_BAD_METHOD, /* the path matches, the method does not: 405 */
};

struct nj_route_match {
    uint32_t index; /* FOUND: index into the caller's array */
    /* FOUND: bytes at the front of the path that the pattern has; more than the path has: all. */
    uint32_t n_mount;
    /* METHOD: value of the allow field (RFC 9110 10.2.1). Lives as long as the table. */
    struct nj_str allow;
};

/* `list` must live as long as the table. NULL: invalid, and `why` has the reason. */
struct nj_routes *nj_routes_new(const struct nj_route *list, uint32_t n, char *why, size_t n_why);
void nj_routes_free(struct nj_routes *r);

uint32_t nj_routes_count(const struct nj_routes *r);
const struct nj_route *nj_routes_at(const struct nj_routes *r, uint32_t index);
/* The route's method and path as text. Lives as long as the table. */
const char *nj_routes_name(const struct nj_routes *r, uint32_t index);

/* Does any route name this method? `r` may be NULL. */
bool nj_routes_have_method(const struct nj_routes *r, struct nj_str method);

/* Finds the route of a request. `path` is plain (http/proto/path.h), as are the patterns; they are
 * compared byte by byte. Empty: a request without a plain path (CONNECT, "*", or a malformed
 * target), which matches no route. */
enum nj_route_result nj_routes_find(const struct nj_routes *r, struct nj_str method,
                                    struct nj_str path, struct nj_route_match *out);
/* The same among the routes that have the name of route `index`, which are mounted by the file of
 * the configuration: no path finds them. Does not set out->n_mount. */
enum nj_route_result nj_routes_find_named(const struct nj_routes *r, uint32_t index,
                                          struct nj_str method, struct nj_route_match *out);
