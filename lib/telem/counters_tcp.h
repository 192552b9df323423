/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of the counters of counters_tcp.def. */
#pragma once

#include "telem/count.h"

enum {
    NJ_C_BEFORE_TCP = (int)NJ_COUNTERS_TCP - 1,
#define NJ_COUNTER(kind, name, what) NJ_C_##name,
#include "telem/counters_tcp.def"
#undef NJ_COUNTER
    NJ_C_AFTER_TCP
};
_Static_assert(NJ_C_AFTER_TCP <= (int)(NJ_COUNTERS_TCP + NJ_COUNTERS_LIST),
               "double NJ_COUNTERS_LIST");
