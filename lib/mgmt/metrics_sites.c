/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and bytes of each site. */
#include <stdlib.h>

#include "mgmt/metrics_parts.h"
#include "mgmt/sites.h"

static void add(struct nj__metrics *m, const struct nj__mgmt_site *site, const char *code,
                uint64_t value)
{
    const struct nj__metric_label labels[] = {
        {"site", site->name}, {code ? "code" : NULL, code}, {0}};

    nj__metrics_add(m, value, labels);
}

void nj__metrics_sites(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric
        requests = {"site_requests", NJ__METRIC_COUNTER,
                    "requests of a site that ended, by the class of their status"},
        bytes = {"site_body_bytes", NJ__METRIC_COUNTER,
                 "bytes of response bodies of a site, of requests that "
                 "ended"},
        open = {"site_open", NJ__METRIC_GAUGE, "requests of a site that have not ended"};
    static const struct {
        const char *code;
        unsigned at;
    } codes[] = {{"2xx", NJ_SITE_N_2XX},
                 {"3xx", NJ_SITE_N_2XX + 1},
                 {"4xx", NJ_SITE_N_2XX + 2},
                 {"5xx", NJ_SITE_N_5XX},
                 {"none", NJ_SITE_N_UNANSWERED}};
    uint32_t n = 0;
    struct nj__mgmt_site *sites = nj__mgmt_sites_read(v, &n);

    nj__metrics_begin(m, &requests);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned k = 0; k < NJ_ARRAY_LEN(codes); k++)
            add(m, &sites[i], codes[k].code, sites[i].sum.n[codes[k].at]);
    nj__metrics_begin(m, &bytes);
    for (uint32_t i = 0; i < n; i++)
        add(m, &sites[i], NULL, sites[i].sum.n[NJ_SITE_N_BYTES]);
    nj__metrics_begin(m, &open);
    for (uint32_t i = 0; i < n; i++)
        add(m, &sites[i], NULL, sites[i].n_open);
    free(sites);
}
