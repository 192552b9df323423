/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of the counters of counters_packet.def. */
#pragma once

#include "telem/count.h"

enum {
    NJ_C_BEFORE_PACKET = (int)NJ_COUNTERS_PACKET - 1,
#define NJ_COUNTER(kind, name, what) NJ_C_##name,
#include "telem/counters_packet.def"
#undef NJ_COUNTER
    NJ_C_AFTER_PACKET
};
_Static_assert(NJ_C_AFTER_PACKET <= (int)(NJ_COUNTERS_PACKET + NJ_COUNTERS_LIST),
               "double NJ_COUNTERS_LIST");
