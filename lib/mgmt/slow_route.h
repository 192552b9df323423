/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for the routes that take long (nj__mgmt_route_is_slow()), so that the management
 * thread answers others meanwhile. It runs one at a time. Its CPUs and rights are those of the
 * management thread. That one calls these functions, unless one says something else.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>

#include "mgmt/routes.h"

/* What a route has written. */
struct nj__mgmt_answer {
    unsigned status;
    char *text; /* of malloc(3), the owner's; NULL: no memory */
    size_t n;
};

/* Run a route. It may also have set `type` and `stream` of the request. Any thread. */
struct nj__mgmt_answer nj__mgmt_route_run(const struct nj__mgmt_route *route,
                                          struct nj__mgmt_request *r);

struct nj__mgmt_slow;

/* Start the thread. `on_answer` is called there after each route. Returns NULL, with errno. Any
 * thread. */
struct nj__mgmt_slow *nj__mgmt_slow_start(const cpu_set_t *cpus, void (*on_answer)(void *ctx),
                                          void *ctx);
/* End the thread, after the route that it runs. Then there are no calls but forget() and free(). */
void nj__mgmt_slow_stop(struct nj__mgmt_slow *s);
void nj__mgmt_slow_free(struct nj__mgmt_slow *s);

/* Owners that wait, the one that is served among them; half of them for routes that read. */
#define NJ__MGMT_SLOW_MAX 8u

/* Have a request answered for `owner`, who repeats the call until it returns true: with the answer,
 * for which the request has the type. Owners are served in the order of their first calls; of too
 * many, the answer is 503 at once. While nj__mgmt_slow_has(), all that the request points to has
 * to stay. */
bool nj__mgmt_slow_ask(struct nj__mgmt_slow *s, const void *owner,
                       const struct nj__mgmt_route *route, struct nj__mgmt_request *r,
                       struct nj__mgmt_answer *answer);
/* Does the thread run a route for this owner? */
bool nj__mgmt_slow_has(const struct nj__mgmt_slow *s, const void *owner);
/* The owner takes no answer: its route has ended, or it has none. */
void nj__mgmt_slow_forget(struct nj__mgmt_slow *s, const void *owner);
