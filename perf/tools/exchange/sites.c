/* SPDX-License-Identifier: BSD-3-Clause */
#include "sites.h"

#include <stdio.h>
#include <stdlib.h>

#define PATHS 20u

static const struct nj_site_field of_site = {NJ_FIELD_SET, NJ_STR_INIT("x-frame-options"),
                                             NJ_STR_INIT("DENY")};
static const struct nj_site_field of_path = {NJ_FIELD_SET, NJ_STR_INIT("x-path"),
                                             NJ_STR_INIT("yes")};

static struct nj_str str_of(const char *text)
{
    return (struct nj_str){text, (uint32_t)strlen(text)};
}

bool sites_init(struct sites *s, uint32_t n, const char *host, const char *path)
{
    const char *why;

    s->policy = nj_policy_none;
    if (n == 0)
        return true;
    s->sites = calloc(n, sizeof *s->sites);
    s->paths = calloc(n * PATHS, sizeof *s->paths);
    s->text = calloc(2 * n * PATHS, sizeof *s->text);
    if (!s->sites || !s->paths || !s->text)
        return false;
    struct nj_str *names = (struct nj_str *)&s->text[n * PATHS]; /* smaller than a text */
    for (uint32_t i = 0; i < n; i++) {
        char *name = s->text[i * PATHS]; /* that of the first path, which is the requested one */
        snprintf(name, sizeof *s->text, "site%u.example.org", i);
        names[i] = i == n / 2 ? str_of(host) : str_of(name);
        s->sites[i] = (struct nj_site_def){
            .names = &names[i], .n_names = 1, .rules = {.n_fields = 1, .fields = &of_site}};
        for (uint32_t k = 0; k < PATHS; k++) {
            struct nj_path_def *d = &s->paths[i * PATHS + k];
            *d = (struct nj_path_def){i, str_of(path), {.n_fields = 1, .fields = &of_path}};
            if (k == 0)
                continue;
            snprintf(s->text[i * PATHS + k], sizeof *s->text, "/%c%u/", 'a' + k, k);
            d->path = str_of(s->text[i * PATHS + k]);
        }
    }
    if (n == 1)
        s->sites[0].rules.n_fields = 0;
    s->table = nj_sites_new(s->sites, n, s->paths, n > 1 ? n * PATHS : 0, 1, &why);
    s->policy.sites = s->table;
    return s->table != NULL;
}

void sites_fini(struct sites *s)
{
    nj_sites_free(s->table);
    free(s->sites);
    free(s->paths);
    free(s->text);
}
