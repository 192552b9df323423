/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/held_shares.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"

bool nj_held_shares_init(struct nj_held_shares *a)
{
    *a = (struct nj_held_shares){.of_client = calloc(NJ_HELD_CLIENTS, sizeof *a->of_client)};
    nj_list_init(&a->holders);
    return a->of_client != NULL;
}

void nj_held_shares_fini(struct nj_held_shares *a)
{
    free(a->of_client);
    a->of_client = NULL;
}

static void remove_units(struct nj_held_shares *a, const struct nj_holder *h)
{
    uint32_t *n = &a->of_client[h->entry];

    NJ_ASSERT(*n >= h->n && a->n_held >= h->n);
    *n -= h->n;
    a->n_clients -= *n == 0;
    a->n_held -= h->n;
}

static void add_units(struct nj_held_shares *a, const struct nj_holder *h)
{
    uint32_t *n = &a->of_client[h->entry];

    a->n_clients += *n == 0;
    *n += h->n;
    a->n_held += h->n;
}

void nj_held_set(struct nj_held_shares *a, struct nj_holder *h, uint64_t key, uint32_t n)
{
    uint32_t had = h->n;

    if (had > 0)
        remove_units(a, h);
    n = n < UINT16_MAX ? n : UINT16_MAX;
    h->entry = (uint16_t)(key % NJ_HELD_CLIENTS);
    h->n = (uint16_t)n;
    if (n > 0)
        add_units(a, h);
    if (had > 0 && n == 0)
        nj_list_del(&h->node);
    else if (had == 0 && n > 0)
        nj_list_push_back(&a->holders, &h->node);
}

uint32_t nj_held_of(const struct nj_held_shares *a, uint64_t key)
{
    return a->of_client[key % NJ_HELD_CLIENTS];
}

struct nj_holder *nj_held_worst(struct nj_held_shares *a, uint32_t n_shared, uint32_t n_scan,
                                uint32_t until_ms)
{
    const struct nj_holder *first = NULL;
    struct nj_holder *worst = NULL;
    uint32_t most = a->n_clients > 0 ? n_shared / a->n_clients : 0;

    for (uint32_t i = 0; i < n_scan && !nj_list_empty(&a->holders); i++) {
        struct nj_holder *h = nj_container_of(a->holders.next, struct nj_holder, node);
        if (h == first) /* all were looked at */
            break;
        first = first ? first : h;
        nj_list_del(&h->node);
        nj_list_push_back(&a->holders, &h->node);
        uint32_t n = a->of_client[h->entry];
        if ((int32_t)(until_ms - h->since_ms) < 0)
            continue;
        if (n > most || (worst && n == most && h->n > worst->n)) {
            worst = h;
            most = n;
        }
    }
    return worst;
}
