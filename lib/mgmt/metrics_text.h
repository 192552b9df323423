/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes families of metrics: the text format 0.0.4 of Prometheus, or OpenMetrics 1.0. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "telem/histogram.h"

/* A value that is not known: no sample is written. */
#define NJ__METRIC_NONE UINT64_MAX

enum nj__metric_type {
    NJ__METRIC_COUNTER,
    NJ__METRIC_GAUGE,
    NJ__METRIC_INFO,
    NJ__METRIC_HISTOGRAM
};

/*
 * A family. Its name stands here without `nightjar_` at the front, and without `_total` (counters)
 * or `_info` at the end. The end of the name is the unit: values of `_seconds` are given in
 * nanoseconds and those of `_ratio` in billionths; all others, and `_time_seconds`, are whole
 * numbers.
 */
struct nj__metric {
    const char *name;
    enum nj__metric_type type;
    const char *help; /* one sentence, without a full stop */
};

/* `value` is any text. A label whose name is NULL ends an array of them. */
struct nj__metric_label {
    const char *name, *value;
};

struct nj__metrics {
    FILE *out;
    bool is_openmetrics;
    const struct nj__metric *family; /* the current one */
};

/* Begin a family, and add samples to it. `labels`: NULL for none. */
void nj__metrics_begin(struct nj__metrics *m, const struct nj__metric *family);
void nj__metrics_add(struct nj__metrics *m, uint64_t value, const struct nj__metric_label *labels);
/* A whole family: durations in ns, with buckets at powers of two. `h` has no other writer. NULL: it
 * has no sample. */
void nj__metrics_add_histogram(struct nj__metrics *m, const struct nj__metric *family,
                               const struct nj_histogram *h);

/* One of several things that have the same families, and its values in the order of these. */
#define NJ__METRICS_COLUMNS 16u
struct nj__metric_row {
    struct nj__metric_label label[3];
    uint64_t value[NJ__METRICS_COLUMNS];
};
/* Whole families, at most NJ__METRICS_COLUMNS of them. */
void nj__metrics_add_table(struct nj__metrics *m, const struct nj__metric *families,
                           size_t n_families, const struct nj__metric_row *rows, size_t n_rows);

/* The end of the output. */
void nj__metrics_end(struct nj__metrics *m);
