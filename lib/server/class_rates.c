/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/class_rates.h"

#include "base/relaxed_atomics.h"

/* The counters of a slot restart from zero when another class gets it. */
static void set_rate(_Atomic uint64_t *rate, uint64_t was, uint64_t is, nj_ns passed)
{
    uint64_t more = is > was ? is - was : 0;

    nj_store_relaxed(rate, (uint64_t)((double)more * ((double)NJ_SEC / (double)passed)));
}

void nj__class_rates_update(struct nj_class_rates *r, const struct nj_mgmt_view *view, nj_ns now)
{
    nj_ns passed = now - r->updated_at;

    if (passed < NJ_SEC)
        return;
    for (uint32_t slot = 0; slot < NJ_CLASSES_MAX; slot++) {
        struct nj_mgmt_class_sum sum = nj_mgmt_sum_class(view, slot);
        struct nj_mgmt_class_sum *was = &r->counted[slot];
        set_rate(&r->rate[slot].requests_per_s, was->requests, sum.requests, passed);
        set_rate(&r->rate[slot].bytes_per_s, was->bytes, sum.bytes, passed);
        *was = sum;
    }
    r->updated_at = now;
}
