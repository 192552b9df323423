/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of the counters of counters_http.def. */
#pragma once

#include "telem/count.h"

enum {
    NJ_C_BEFORE_HTTP = (int)NJ_COUNTERS_HTTP - 1,
#define NJ_COUNTER(kind, name, what) NJ_C_##name,
#include "telem/counters_http.def"
#undef NJ_COUNTER
    NJ_C_AFTER_HTTP
};
_Static_assert(NJ_C_AFTER_HTTP <= (int)(NJ_COUNTERS_HTTP + NJ_COUNTERS_LIST),
               "double NJ_COUNTERS_LIST");

/* Count a response with a final status, 200 to 599. */
static inline void nj_count_status(struct nj_counters *c, uint16_t status)
{
    _Static_assert(NJ_C_status_5xx == NJ_C_status_2xx + 3, "they stand in a row");
    nj_count(c, NJ_C_status_2xx + status / 100u - 2);
}
