/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock, the budget and deferred freeing of a file store. Threads that drop a last reference
 * push the object on a lock-free stack; later steps unlink it under the lock and free it outside.
 */
#include "store/store_shared.h"

#include "base/assert.h"
#include "base/atomics.h"

bool nj__shared_init(struct nj__shared *sh, uint64_t n_bytes)
{
    NJ_CHECK(pthread_mutex_init(&sh->lock, NULL) == 0);
    return nj__cache_policy_init(&sh->policy, n_bytes);
}

void nj__shared_fini(struct nj__shared *sh)
{
    nj__cache_policy_fini(&sh->policy);
    pthread_mutex_destroy(&sh->lock);
}

static bool evict(struct nj__shared *sh, struct nj__cache_entry *e)
{
    if (!e)
        return false;
    struct nj__cached *c = nj_container_of(e, struct nj__cached, entry);
    c->evict(c);
    nj__file_stat_add(&sh->stats.evictions, 1);
    return true;
}

bool nj__shared_make_room(struct nj__shared *sh, uint64_t n_bytes)
{
    while (evict(sh, nj__cache_policy_victim(&sh->policy, n_bytes)))
        ;
    return nj__cache_policy_fits(&sh->policy, n_bytes);
}

bool nj__shared_evict_one(struct nj__shared *sh)
{
    uint64_t n = nj__cache_policy_bytes(&sh->policy), most = sh->policy.n_bytes_max;
    return evict(sh, nj__cache_policy_victim(&sh->policy, n < most ? most - n + 1 : 1));
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
    g->next = nj_load_relaxed(&sh->dead);
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
    if (g->may_block) {
        g->next = nj_load_relaxed(&sh->to_close);
        nj_store_relaxed(&sh->to_close, g);
    } else {
        g->next = sh->to_free;
        sh->to_free = g;
    }
}

static bool has_to_close(const struct nj__shared *sh)
{
    return nj_load_relaxed(&sh->to_close) != NULL;
}

void nj__shared_close(struct nj__shared *sh)
{
    while (has_to_close(sh)) {
        nj__shared_lock(sh);
        struct nj__grave *g = nj_load_relaxed(&sh->to_close);
        if (g)
            nj_store_relaxed(&sh->to_close, g->next);
        nj__shared_unlock(sh);
        if (g)
            g->free(g);
    }
}
