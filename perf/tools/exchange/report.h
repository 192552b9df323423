/* SPDX-License-Identifier: BSD-3-Clause */
/* What nj-exchange has to say. */
#ifndef NJ_PERF_EXCHANGE_REPORT_H
#define NJ_PERF_EXCHANGE_REPORT_H

#include "pair.h"

#define REPORT_ROUNDS_MAX  101u
#define REPORT_THREADS_MAX 2u
#define REPORT_SHAPES_MAX  16u

/* What each thread's server spent, in each round; together as often for each that was alone. */
struct report_shape {
    const struct shape *shape;
    struct cost alone[REPORT_THREADS_MAX][REPORT_ROUNDS_MAX];
    struct cost together[REPORT_THREADS_MAX][REPORT_ROUNDS_MAX * REPORT_THREADS_MAX];
};

struct report {
    uint64_t hz; /* of cycles */
    uint32_t n_rounds, n_threads, n_shapes;
    struct report_shape of[REPORT_SHAPES_MAX];
};

/* NULL: there are enough. */
struct report_shape *report_add(struct report *r);
void report_table(const struct report *r);
/* False when the file can't be written; stderr has why. */
bool report_json(const struct report *r, const char *path);

/* One run that was counted, not timed, as a line of JSON. */
void report_count(const struct shape *shape, const struct cost *c);

#endif
