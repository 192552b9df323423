/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a server for Prometheus. docs/observe.md has the rule of their names, and a table
 * of them. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "mgmt/view.h"

/*
 * Writes all metrics to `out`: in OpenMetrics 1.0, else in the text format 0.0.4 of Prometheus.
 * Each family is written, also one that has no samples now. Locks of the policy, of the current
 * certificates and of the ports' statistics are held while `out` is written to, so `out` is memory
 * (open_memstream()); errors are those of `out`. Any thread but an lcore; it waits for no lcore.
 */
void nj__metrics_write(const struct nj_mgmt_view *v, bool is_openmetrics, FILE *out);
