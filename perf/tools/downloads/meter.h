/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A record of arrivals: the exact maximum of the bytes of any 100 ms, and a series of sums.
 *
 * The time is an argument. All bytes of an arrival count at its time. A window of 100 ms is half
 * open, (t - 100 ms, t], so that it has one arrival at a steady rate of one arrival per 100 ms.
 */
#pragma once

#include "base/types.h"

#define NJ_METER_GROUPS_MAX 128u
#define NJ_METER_SPAN       (100 * NJ_MS)
/* Maximum of separate arrivals within 100 ms. Above it the two oldest are merged at the later time,
 * which can only make a sum too large. 1 Mi are ten per microsecond. */
#define NJ_METER_EVENTS     (1u << 20)
#define NJ_METER_BINS_MAX   (1u << 16)

struct nj_meter_event {
    nj_ns at;
    uint64_t n_bytes;
};

struct nj_meter {
    nj_ns began, bin;
    nj_ns from, to;                /* the steady window; NJ_NEVER before nj_meter_window() */
    struct nj_meter_event *events; /* a ring of the arrivals of the last 100 ms */
    uint64_t head, tail;
    uint64_t in_span, in_span_max; /* bytes of the last 100 ms; their maximum */
    nj_ns in_span_max_at;
    uint64_t window_bytes; /* of the steady window */
    uint64_t (*bins)[NJ_METER_GROUPS_MAX];
    uint32_t n_bins; /* up to the last one that was used */
};

/* `bin`: the interval of the series. False: out of memory. */
bool nj_meter_init(struct nj_meter *m, nj_ns now, nj_ns bin);
void nj_meter_free(struct nj_meter *m);
static inline bool nj_meter_steady(const struct nj_meter *m, nj_ns now)
{
    return now >= m->from && now < m->to;
}
/* Sets the steady window: from `from` on, for `hold`. Only arrivals in it count in the maximum. */
void nj_meter_window(struct nj_meter *m, nj_ns from, nj_ns hold);
/* Adds an arrival at `now`: n_bytes[i] of each group i below `n_groups`. Calls come in order of
 * `now`. */
void nj_meter_add(struct nj_meter *m, const uint64_t *n_bytes, uint32_t n_groups, nj_ns now);
