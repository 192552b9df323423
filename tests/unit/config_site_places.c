/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>

#include "config/site_places.h"

#define N (NJ_SITE_COUNTS_OWN + 2)

static struct nj__site_places places;
static struct nj_site_def site[N];
static struct nj_str name[N];
static char text[N][16];

static uint32_t place(uint32_t i)
{
    return site[i].rules.counts_at / (uint32_t)sizeof(struct nj_site_counts);
}

/* Sites with the names "s<first>" and so on. */
static struct nj_site_sections make(uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "s%u", first + i);
        name[i] = (struct nj_str){text[i], (uint32_t)strlen(text[i])};
        site[i] = (struct nj_site_def){.names = &name[i], .n_names = 1};
    }
    return (struct nj_site_sections){.n_sites = n, .sites = site};
}

static void finish(void)
{
    nj__site_places_free(&places);
}

TestSuite(config_site_places, .fini = finish);

Test(config_site_places, by_name)
{
    struct nj_site_sections s = make(1, 3);

    site[1].n_names = 0;
    cr_assert(nj__site_places_assign(&places, &s));
    cr_expect(place(0) == 1 && place(1) == 2 && place(2) == 3);
    cr_expect(nj_str_eq(nj_site_label(&site[1]), NJ_STR("default")));
    s = make(2, 2); /* s2 is new, and s3 was the third */
    cr_assert(nj__site_places_assign(&places, &s));
    cr_expect(place(0) == 4 && place(1) == 3);
}

Test(config_site_places, the_rest_has_one_place)
{
    struct nj_site_sections s = make(0, N);

    cr_assert(nj__site_places_assign(&places, &s));
    cr_expect_eq(place(0), 1);
    cr_expect_eq(place(NJ_SITE_COUNTS_OWN - 1), NJ_SITE_COUNTS_OWN);
    cr_expect_eq(place(NJ_SITE_COUNTS_OWN), NJ_SITE_COUNTS_REST);
    cr_expect_eq(place(N - 1), NJ_SITE_COUNTS_REST);
    s = make(N, 1);
    cr_assert(nj__site_places_assign(&places, &s));
    cr_expect_eq(place(0), NJ_SITE_COUNTS_REST);
}
