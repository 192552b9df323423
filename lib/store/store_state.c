/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock, the budget and deferred freeing of a file store. Threads that drop a last reference
 * push the object on a lock-free stack; later steps unlink it under the lock and free it outside.
 */
#include "store/store_state.h"

#include "base/assert.h"
#include "base/relaxed_atomics.h"

bool nj__store_init(struct nj__store *sh, uint64_t n_bytes)
{
    NJ_CHECK(pthread_mutex_init(&sh->lock, NULL) == 0);
    return nj__cache_policy_init(&sh->policy, n_bytes);
}

void nj__store_fini(struct nj__store *sh)
{
    nj__cache_policy_fini(&sh->policy);
    pthread_mutex_destroy(&sh->lock);
}

static bool evict(struct nj__store *sh, struct nj__cache_entry *e)
{
    if (!e)
        return false;
    struct nj__cache_item *c = nj_container_of(e, struct nj__cache_item, entry);
    c->evict(c);
    nj__file_stat_add(&sh->stats.evictions, 1);
    return true;
}

bool nj__store_make_room(struct nj__store *sh, uint64_t n_bytes)
{
    while (evict(sh, nj__cache_policy_pop_victim(&sh->policy, n_bytes)))
        ;
    return nj__cache_policy_fits(&sh->policy, n_bytes);
}

bool nj__store_evict_one(struct nj__store *sh)
{
    uint64_t n = nj__cache_policy_used_bytes(&sh->policy), most = sh->policy.n_bytes_max;
    return evict(sh, nj__cache_policy_pop_victim(&sh->policy, n < most ? most - n + 1 : 1));
}

void nj__store_lock(struct nj__store *sh)
{
    pthread_mutex_lock(&sh->lock);
}

void nj__store_unlock_and_free(struct nj__store *sh)
{
    struct nj__deferred *g = sh->to_free;

    sh->to_free = NULL;
    pthread_mutex_unlock(&sh->lock);
    while (g) {
        struct nj__deferred *next = g->next;
        g->free(g);
        g = next;
    }
}

void nj__store_defer_free(struct nj__store *sh, struct nj__deferred *g)
{
    g->next = nj_load_relaxed(&sh->dead);
    while (!atomic_compare_exchange_weak_explicit(&sh->dead, &g->next, g, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

void nj__store_unlink_unreferenced(struct nj__store *sh)
{
    if (!nj__store_has_deferred(sh))
        return;
    struct nj__deferred *g = atomic_exchange_explicit(&sh->dead, NULL, memory_order_acquire);
    while (g) {
        struct nj__deferred *next = g->next;
        g->detach(g);
        g = next;
    }
}

void nj__store_queue_free_at_unlock(struct nj__store *sh, struct nj__deferred *g)
{
    if (g->may_block) {
        g->next = nj_load_relaxed(&sh->to_close);
        nj_store_relaxed(&sh->to_close, g);
    } else {
        g->next = sh->to_free;
        sh->to_free = g;
    }
}

static bool has_blocking_frees(const struct nj__store *sh)
{
    return nj_load_relaxed(&sh->to_close) != NULL;
}

void nj__store_run_blocking_frees(struct nj__store *sh)
{
    while (has_blocking_frees(sh)) {
        nj__store_lock(sh);
        struct nj__deferred *g = nj_load_relaxed(&sh->to_close);
        if (g)
            nj_store_relaxed(&sh->to_close, g->next);
        nj__store_unlock_and_free(sh);
        if (g)
            g->free(g);
    }
}
