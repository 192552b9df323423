/* SPDX-License-Identifier: BSD-3-Clause */
/* All counters of a shard, and their names, for telemetry and tests. A file that counts includes
 * the list of its counters, see count.h. */
#pragma once

#include "telem/counters_conn.h"
#include "telem/counters_http.h"
#include "telem/counters_packet.h"
#include "telem/counters_tcp.h"

struct nj_counter_info {
    const char *name, *what; /* NULL: no counter has this number */
    enum nj_counter_kind kind;
};

extern const struct nj_counter_info nj_counter_info[NJ_COUNTERS_MAX];
/* The counters that have a name. */
#define NJ_COUNTER(kind, name, what) +1
enum {
    NJ_N_COUNTERS = 0
#include "telem/counters.def"
};
#undef NJ_COUNTER
