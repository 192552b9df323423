/* SPDX-License-Identifier: BSD-3-Clause */
/* A fixed-window rate limiter: at most N events per second. One thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

/* The window of one second that began at `since`, and the events left in it. Initial state: zero.
 */
struct nj_ratelimit {
    nj_ns since;
    uint32_t n_left;
};

/* Count an event if `per_s` allows it. One second that spans two windows may see 2 * `per_s`. */
static inline bool nj_ratelimit_ok(struct nj_ratelimit *r, uint32_t per_s, nj_ns now)
{
    if (r->since == 0 || now - r->since >= NJ_SEC)
        *r = (struct nj_ratelimit){now, per_s};
    if (r->n_left == 0)
        return false;
    r->n_left--;
    return true;
}
