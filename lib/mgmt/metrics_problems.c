/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong now, by kind. */
#include "mgmt/metrics_parts.h"
#include "mgmt/problems.h"

static void count(void *ctx, enum nj__problem_kind kind, const char *text)
{
    uint32_t *n = ctx;

    n[kind]++;
}

void nj__metrics_problems(const struct nj_mgmt_view *v, struct nj__metrics *m)
{
    static const struct nj__metric family = {"problem", NJ__METRIC_GAUGE,
                                             "1 if there is a problem of the kind now"};
    uint32_t n[NJ__PROBLEM_N_KINDS] = {0};

    nj__problems_find(v, count, n);
    nj__metrics_begin(m, &family);
    for (uint32_t k = 0; k < NJ__PROBLEM_N_KINDS; k++)
        nj__metrics_add(
            m, n[k] > 0,
            (struct nj__metric_label[]){{"kind", nj__problem_name((enum nj__problem_kind)k)}, {0}});
}
