/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all counters, generated from counters.def. Contract: counters.h. */
#include "telem/counters.h"

const struct nj_counter_info nj_counter_info[NJ_COUNTERS_MAX] = {
#define NJ_COUNTER(kind, name, what) [NJ_C_##name] = {#name, what, NJ_KIND_##kind},
#include "telem/counters.def"
#undef NJ_COUNTER
};

uint64_t nj_counters_sum_of_kind(const struct nj_counters *c, enum nj_counter_kind kind)
{
    uint64_t sum = 0;
    for (nj_counter i = 0; i < NJ_COUNTERS_MAX; i++)
        if (nj_counter_info[i].name && nj_counter_info[i].kind == kind)
            sum += nj_counter_read(c, i);
    return sum;
}
