/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/file_shared.h"

#include "base/assert.h"

void nj__shared_init(struct nj__shared *sh)
{
    NJ_CHECK(pthread_mutex_init(&sh->lock, NULL) == 0);
}

void nj__shared_lock(struct nj__shared *sh)
{
    pthread_mutex_lock(&sh->lock);
}

void nj__shared_unlock(struct nj__shared *sh)
{
    struct nj__grave *g = sh->to_free;

    sh->to_free = NULL;
    pthread_mutex_unlock(&sh->lock);
    while (g) {
        struct nj__grave *next = g->next;
        g->free(g);
        g = next;
    }
}

void nj__shared_push(struct nj__shared *sh, struct nj__grave *g)
{
    g->next = atomic_load_explicit(&sh->dead, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&sh->dead, &g->next, g, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

void nj__shared_bury(struct nj__shared *sh)
{
    if (!nj__shared_has_dead(sh))
        return;
    struct nj__grave *g = atomic_exchange_explicit(&sh->dead, NULL, memory_order_acquire);
    while (g) {
        struct nj__grave *next = g->next;
        g->bury(g);
        g = next;
    }
}

void nj__shared_free(struct nj__shared *sh, struct nj__grave *g)
{
    g->next = sh->to_free;
    sh->to_free = g;
}
