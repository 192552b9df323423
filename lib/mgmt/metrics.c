/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/metrics.h"

#include "base/compiler.h"
#include "mgmt/metrics_parts.h"

void nj__metrics_write(const struct nj_mgmt_view *v, bool is_openmetrics, FILE *out)
{
    static nj__metrics_part_fn *const parts[] = {
        nj__metrics_server,  nj__metrics_problems, nj__metrics_certificates, nj__metrics_lcores,
        nj__metrics_ports,   nj__metrics_memory,   nj__metrics_classes,      nj__metrics_sites,
        nj__metrics_latency, nj__metrics_files,    nj__metrics_workers,      nj__metrics_routes,
        nj__metrics_counters};
    struct nj__metrics m = {.out = out, .is_openmetrics = is_openmetrics};

    for (size_t i = 0; i < NJ_ARRAY_LEN(parts); i++)
        parts[i](v, &m);
    nj__metrics_end(&m);
}
