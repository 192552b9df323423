/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/site_places.h"

#include <stdlib.h>
#include <string.h>

struct nj_str nj_site_label(const struct nj_site_def *site)
{
    return site->n_names > 0 ? site->names[0] : NJ_STR("default");
}

/* `likely`: where the name is if the sites are those of before. Returns 0 without memory. */
static uint32_t place_of(struct nj__site_places *p, struct nj_str name, uint32_t likely)
{
    if (likely < p->n && nj_str_eq(p->name[likely], name))
        return likely + 1;
    for (uint32_t i = 0; i < p->n; i++)
        if (nj_str_eq(p->name[i], name))
            return i + 1;
    if (p->n == NJ_SITE_COUNTS_OWN)
        return NJ_SITE_COUNTS_REST;
    char *copy = malloc(name.n_bytes);
    if (!copy)
        return 0;
    memcpy(copy, name.p, name.n_bytes);
    p->name[p->n++] = (struct nj_str){copy, name.n_bytes};
    return p->n;
}

bool nj__site_places_assign(struct nj__site_places *p, struct nj_site_sections *sections)
{
    for (uint32_t i = 0; i < sections->n_sites; i++) {
        struct nj_site_def *site = &sections->sites[i];
        uint32_t place = place_of(p, nj_site_label(site), i);
        if (place == 0)
            return false;
        site->rules.counts_at = place * (uint32_t)sizeof(struct nj_site_counts);
    }
    return true;
}

void nj__site_places_free(struct nj__site_places *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        free((char *)(uintptr_t)p->name[i].p);
    p->n = 0;
}
