/* SPDX-License-Identifier: BSD-3-Clause */
/* `sites`: requests and bytes of each site. */
#include <stdlib.h>

#include "mgmt/answer_parts.h"
#include "mgmt/answers.h"
#include "mgmt/sites.h"

/* An answer of telemetry holds 16 KiB, and a site takes about 200 bytes of it. */
#define SITES_SHOWN 64u

bool nj__answer_sites(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct nj__doc list = nj__doc_list(d, "sites", "site");
    uint32_t n;

    if (params)
        return false;
    struct nj__mgmt_site *sites = nj__mgmt_sites_read(v, &n);
    for (uint32_t i = 0; sites && i < n; i++) {
        const uint64_t *of = sites[i].sum.n;
        const struct nj__answer_row rows[] = {
            {"requests", of[NJ_SITE_N_BEGUN]},        {"open", sites[i].n_open},
            {"status_2xx", of[NJ_SITE_N_2XX]},        {"status_3xx", of[NJ_SITE_N_2XX + 1]},
            {"status_4xx", of[NJ_SITE_N_2XX + 2]},    {"status_5xx", of[NJ_SITE_N_5XX]},
            {"unanswered", of[NJ_SITE_N_UNANSWERED]}, {"bytes", of[NJ_SITE_N_BYTES]},
        };
        if (i == SITES_SHOWN && nj__doc_is_telemetry(d))
            break;
        struct nj__doc one = nj__doc_item(list, i);
        nj__doc_text(one, "name", sites[i].name);
        nj__answer_add_numbers(one, rows, NJ_ARRAY_LEN(rows));
    }
    free(sites);
    return sites != NULL;
}
