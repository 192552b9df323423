/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the management listener answers: a table of routes. A route writes the body of its response
 * to a FILE in memory, so that it knows nothing of HTTP. All run on the management thread, except
 * slow ones, which run on a thread of their own (slow_route.h): one at a time on each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "mgmt/events.h"
#include "mgmt/stream.h"
#include "mgmt/view.h"

/* Who may use a route, beside those who may write to the file of the Unix socket. */
enum nj__mgmt_access {
    NJ__MGMT_OPEN,  /* everybody, at each address */
    NJ__MGMT_LOCAL, /* everybody, at loopback addresses */
    NJ__MGMT_READ,  /* at loopback addresses, with a token */
    NJ__MGMT_WRITE, /* ... that permits changes */
};

struct nj__mgmt_request {
    const struct nj_mgmt_view *view;
    struct nj__mgmt_events *events;
    const char *rest;   /* of the path, behind that of a route that ends with '*' */
    const char *query;  /* behind the '?', as sent; "" if there is none */
    const char *accept; /* the field Accept; "" if there is none */
    const char *body;   /* with a zero behind it */
    size_t n_body;
    const char *type;              /* the route may set it: a constant; text/plain by default */
    const char *policy;            /* the same: the field Content-Security-Policy; NULL: none */
    struct nj__mgmt_stream stream; /* the route may set it: the body, instead of what it writes */
};

/* Writes the body to `out`. Returns the status. */
typedef unsigned nj__mgmt_route_fn(struct nj__mgmt_request *r, FILE *out);

struct nj__mgmt_route {
    const char *path;   /* '*' at its end: all that begin so and have no further '/', unless another
                           one has the path */
    const char *method; /* "GET" also answers HEAD */
    enum nj__mgmt_access access;
    nj__mgmt_route_fn *answer;
};

/* The route of path and method. NULL: there is none, and `allowed` gets the value of the field
 * Allow for the methods that the path has, "" if there is no such path. */
#define NJ__MGMT_ALLOWED_BYTES 64u
const struct nj__mgmt_route *nj__mgmt_route_find(const char *path, const char *method,
                                                 char allowed[NJ__MGMT_ALLOWED_BYTES]);
/* What is behind the path of the route in `path`, "" for a route without '*'. */
const char *nj__mgmt_route_rest(const struct nj__mgmt_route *route, const char *path);

/* May it take long? Others are answered meanwhile. It gives no stream. */
bool nj__mgmt_route_is_slow(const struct nj__mgmt_route *route);

#define NJ__MGMT_TEXT "text/plain; charset=utf-8"
#define NJ__MGMT_JSON "application/json"
