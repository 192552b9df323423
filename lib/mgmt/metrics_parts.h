/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the output of metrics.h, each with the families of one subject. */
#pragma once

#include "mgmt/metrics_text.h"
#include "mgmt/view.h"

/* Any thread but an lcore. */
typedef void nj__metrics_part_fn(const struct nj_mgmt_view *v, struct nj__metrics *m);

nj__metrics_part_fn nj__metrics_counters, nj__metrics_latency, nj__metrics_lcores,
    nj__metrics_memory, nj__metrics_ports, nj__metrics_classes, nj__metrics_files,
    nj__metrics_workers, nj__metrics_routes, nj__metrics_server, nj__metrics_certificates,
    nj__metrics_problems, nj__metrics_sites;
