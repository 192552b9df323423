/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which handler answers which request.
 *
 * The longest pattern that fits the path decides, an exact one before a prefix; then the method.
 * Made once at start; read by all shards.
 */
#ifndef NJ_HTTP_HANDLERS_ROUTE_TABLE_H
#define NJ_HTTP_HANDLERS_ROUTE_TABLE_H

#include <nightjar/handler.h>

#include "base/field.h"

/* Longest pattern. */
#define NJ_ROUTE_PATH_MAX  1024u
/* "GET /path", terminated. */
#define NJ_ROUTE_NAME_MAX  (NJ_ROUTE_METHOD_MAX + 1 + NJ_ROUTE_PATH_MAX + 1)
/* For a 405: as many methods of one path as its allow field has room for. */
#define NJ_ROUTE_ALLOW_MAX 256u

struct nj_routes;

enum nj_route_result {
    NJ_ROUTE_FOUND,
    NJ_ROUTE_NONE,   /* no such path here */
    NJ_ROUTE_METHOD, /* the path, but not with this method: 405 */
};

struct nj_route_match {
    uint32_t index; /* FOUND: into the caller's array */
    /* METHOD: the methods there are, as the value of an allow field. Lives as long as the table. */
    struct nj_str allow;
};

/* `list` must live as long as the table. NULL with what is wrong in `why`. */
struct nj_routes *nj_routes_new(const struct nj_route *list, uint32_t n, char *why, size_t n_why);
void nj_routes_free(struct nj_routes *r);

uint32_t nj_routes_count(const struct nj_routes *r);
const struct nj_route *nj_routes_at(const struct nj_routes *r, uint32_t index);
/* Its method and path, for people. Lives as long as the table. */
const char *nj_routes_name(const struct nj_routes *r, uint32_t index);

/* `path` is plain (http/path.h), and so is what patterns stand for; they are compared byte by byte.
 * Empty: a request without a path (CONNECT, "*", or a bad one), which is no route's. */
enum nj_route_result nj_routes_find(const struct nj_routes *r, struct nj_str method,
                                    struct nj_str path, struct nj_route_match *out);

#endif
