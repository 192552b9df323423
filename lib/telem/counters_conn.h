/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of the counters of counters_conn.def. */
#pragma once

#include "telem/count.h"

enum {
    NJ_C_BEFORE_CONN = (int)NJ_COUNTERS_CONN - 1,
#define NJ_COUNTER(kind, name, what) NJ_C_##name,
#include "telem/counters_conn.def"
#undef NJ_COUNTER
    NJ_C_AFTER_CONN
};
_Static_assert(NJ_C_AFTER_CONN <= (int)(NJ_COUNTERS_CONN + NJ_COUNTERS_LIST),
               "double NJ_COUNTERS_LIST");
