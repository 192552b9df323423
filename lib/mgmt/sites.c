/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/sites.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/site_places.h"

struct list {
    const struct nj_mgmt_view *v;
    uint32_t n;
    struct nj__mgmt_site *at;
};

static void add(struct list *l, struct nj_str name, uint32_t at)
{
    struct nj__mgmt_site *to = &l->at[l->n++];
    uint64_t n_ended;

    snprintf(to->name, sizeof to->name, "%.*s", (int)name.n_bytes, name.p);
    to->sum = nj_mgmt_sum_site(l->v, at);
    n_ended = to->sum.n[NJ_SITE_N_UNANSWERED];
    for (unsigned k = NJ_SITE_N_2XX; k <= NJ_SITE_N_5XX; k++)
        n_ended += to->sum.n[k];
    /* Lcores go on between two reads. */
    to->n_open = to->sum.n[NJ_SITE_N_BEGUN] - nj_min_u64(n_ended, to->sum.n[NJ_SITE_N_BEGUN]);
}

static void add_all(void *ctx, const struct nj_site_def *sites, uint32_t n)
{
    const uint32_t rest = NJ_SITE_COUNTS_REST * (uint32_t)sizeof(struct nj_site_counts);
    struct list *l = ctx;
    bool has_rest = false;

    l->at = calloc(nj_min_u32(n, NJ_SITE_COUNTS_OWN) + 1, sizeof *l->at);
    for (uint32_t i = 0; l->at && i < n; i++) {
        if (sites[i].rules.counts_at == rest)
            has_rest = true;
        else
            add(l, nj_site_label(&sites[i]), sites[i].rules.counts_at);
    }
    if (l->at && has_rest)
        add(l, NJ_STR("(others)"), rest); /* no host has this name */
}

struct nj__mgmt_site *nj__mgmt_sites_read(const struct nj_mgmt_view *v, uint32_t *n)
{
    struct list l = {.v = v};

    nj_policies_call_with_sites(v->policies, add_all, &l);
    *n = l.n;
    return l.at;
}
