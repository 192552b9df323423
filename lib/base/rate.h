/* SPDX-License-Identifier: BSD-3-Clause */
/* How often something may be done per second. */
#ifndef NJ_BASE_RATE_H
#define NJ_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"

/* How often it may still be done in the second that began at `since`. Zeroed: none has begun. */
struct nj_rate {
    nj_ns since;
    uint32_t n_left;
};

/* May it be done once more? Twice `per_s` may fall into one second, around the end of a count. */
static inline bool nj_rate_ok(struct nj_rate *r, uint32_t per_s, nj_ns now)
{
    if (r->since == 0 || now - r->since >= NJ_SEC)
        *r = (struct nj_rate){now, per_s};
    if (r->n_left == 0)
        return false;
    r->n_left--;
    return true;
}

#endif
