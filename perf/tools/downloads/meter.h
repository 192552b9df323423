/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What came when: the most that came in any 100 ms, exactly, and a series of sums.
 *
 * Pure: the time is an argument. An arrival counts whole at its time. A window is half open,
 * (t - 100 ms, t], so that a steady rate of one arrival per 100 ms shows as one.
 */
#ifndef NJ_PERF_METER_H
#define NJ_PERF_METER_H

#include "base/types.h"

#define NJ_METER_GROUPS_MAX 128u
#define NJ_METER_SPAN       (100 * NJ_MS)
/* Arrivals within 100 ms that are kept apart; beyond, the oldest two become one, at the later time,
 * which can only make a sum too large. 1 Mi: ten a microsecond. */
#define NJ_METER_EVENTS     (1u << 20)
#define NJ_METER_BINS_MAX   (1u << 16)

struct nj_meter_event {
    nj_ns at;
    uint64_t n_bytes;
};

struct nj_meter {
    nj_ns began, bin;
    nj_ns from, to;                /* the steady window; NJ_NEVER until it is known */
    struct nj_meter_event *events; /* a ring: those of the last 100 ms */
    uint64_t head, tail;
    uint64_t in_span, in_span_max; /* max: within the steady window */
    nj_ns in_span_max_at;
    uint64_t window_bytes;
    uint64_t (*bins)[NJ_METER_GROUPS_MAX];
    uint32_t n_bins; /* that hold something */
};

bool nj_meter_init(struct nj_meter *m, nj_ns now, nj_ns bin);
void nj_meter_free(struct nj_meter *m);
static inline bool nj_meter_steady(const struct nj_meter *m, nj_ns now)
{
    return now >= m->from && now < m->to;
}
/* From `from` on, for `hold`. What came before does not count in the largest sum, either. */
void nj_meter_window(struct nj_meter *m, nj_ns from, nj_ns hold);
/* So many bytes of each of `n_groups` came now. */
void nj_meter_add(struct nj_meter *m, const uint64_t *n_bytes, uint32_t n_groups, nj_ns now);

#endif
