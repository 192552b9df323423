/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the sections of sites and paths: arrays that grow, and strings that they own. */
#include <stdlib.h>

#include "base/grow.h"
#include "config/site_sections.h"

bool nj__site_grow(struct nj__policy_reader *r, void **array, uint32_t n, size_t n_each)
{
    bool ok = nj_grow(array, n, n_each);

    if (!ok)
        nj_diag_add(r->faults, r->path, 0, "out of memory");
    return ok;
}

const char *nj__site_own(struct nj__policy_reader *r, char *text)
{
    struct nj_site_sections *s = r->f->sites;

    if (!text) {
        nj_diag_add(r->faults, r->path, 0, "out of memory");
    } else if (!nj__site_grow(r, (void **)&s->owned, s->n_owned, sizeof *s->owned)) {
        free(text);
        text = NULL;
    } else {
        s->owned[s->n_owned++] = text;
    }
    return text;
}

static void free_rules(const struct nj_site_rules *rules)
{
    free((void *)(uintptr_t)rules->fields);
    free((void *)(uintptr_t)rules->named);
}

void nj__site_sections_free(struct nj_site_sections *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_sites; i++) {
        free(s->sites[i].names);
        free_rules(&s->sites[i].rules);
    }
    for (uint32_t i = 0; i < s->n_paths; i++)
        free_rules(&s->paths[i].rules);
    for (uint32_t i = 0; i < s->n_owned; i++)
        free(s->owned[i]);
    free(s->sites);
    free(s->paths);
    free(s->site_at);
    free(s->path_at);
    free(s->folders);
    free(s->files);
    free(s->tls);
    free(s->pairs);
    free(s->owned);
    free(s);
}
