/* SPDX-License-Identifier: BSD-3-Clause */
/* The places of sites in their counts (site/site_counts.h). A site keeps its place by its first
 * name when the configuration is read again. One thread at a time. */
#pragma once

#include <stdbool.h>

#include "config/site_sections.h"
#include "site/site_counts.h"

/* Zero-initialized. A place is never given to another site, since counts begin at the start of the
 * process. */
struct nj__site_places {
    uint32_t n;
    struct nj_str name[NJ_SITE_COUNTS_OWN]; /* of place 1 and so on; a copy */
};

/* Gives the rules of each site its place. False: no memory. */
bool nj__site_places_assign(struct nj__site_places *p, struct nj_site_sections *sections);
void nj__site_places_free(struct nj__site_places *p);

/* The name of a site for people: its first one, or "default". */
struct nj_str nj_site_label(const struct nj_site_def *site);
