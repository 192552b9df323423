/* SPDX-License-Identifier: BSD-3-Clause */
/* The report: a line each second, a table at the end, and files for programs. */
#pragma once

#include "crowd.h"

/* The sum over all lcores, at one time. */
struct load_sum {
    nj_ns at;
#define LOAD_FIELD(name) uint64_t name;
    LOAD_COUNTS(LOAD_FIELD)
#undef LOAD_FIELD
    uint64_t n_open, n_under_way, n_unsent, busy, idle, retransmits;
    const char *fault;
};

#define LOAD_SERIES_MAX 86400u

struct load_report {
    const struct load_options *o;
    const char *driver;
    uint32_t n_lcores;
    struct load_sum from, to, end; /* of the measured requests; of all requests */
    struct fine_histogram total, first;
    struct load_sum last;
    uint32_t n_series;
    uint32_t *series; /* responses in each measured second */
};

void load_sum_take(struct load_sum *s, struct crowd *const *crowds, uint32_t n, nj_ns now);

/* Once a second. */
void load_report_progress(struct load_report *r, struct crowd *const *crowds, enum load_phase phase,
                          nj_ns now);
/* The table, and the requested files. False: a file could not be written; stderr has the reason. */
bool load_report_end(const struct load_report *r);
