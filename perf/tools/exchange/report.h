/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of nj-exchange. */
#pragma once

#include "pair.h"

#define REPORT_ROUNDS_MAX  101u
#define REPORT_THREADS_MAX 2u
#define REPORT_SHAPES_MAX  16u

/* Costs of each thread's server in each round. `together` has a value after each of the round's
 * measurements of one thread alone. */
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

/* Adds a shape. NULL: the report has REPORT_SHAPES_MAX shapes. */
struct report_shape *report_add(struct report *r);
/* Prints the tables. */
void report_table(const struct report *r);
/* Writes all values as JSON. "-" is standard output. False: the file cannot be written; stderr has
 * the reason. */
bool report_json(const struct report *r, const char *path);

/* Prints a run with --count as a line of JSON. */
void report_count(const struct shape *shape, const struct cost *c);
