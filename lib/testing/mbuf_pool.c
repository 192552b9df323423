/* SPDX-License-Identifier: BSD-3-Clause */
/* The mempool is filled in field by field, and its free objects are on a stack, by mempool
 * operations of our own. */
#include "testing/mbuf_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/assert.h"
#include "tcp/mbuf_priv.h"

/* Room before an mbuf for its header of the mempool: the mbuf begins on a cache line. */
#define HDR_BYTES RTE_CACHE_LINE_ROUNDUP(sizeof(struct rte_mempool_objhdr))
#define OBJ_BYTES (sizeof(struct rte_mbuf) + NJ_MBUF_PRIV_BYTES + RTE_MBUF_DEFAULT_BUF_SIZE)

struct stack {
    pthread_mutex_t lock;
    unsigned n, n_max;
    void *obj[];
};

static int stack_alloc(struct rte_mempool *mp)
{
    (void)mp;
    return 0;
}

static void *new_object(struct rte_mempool *mp)
{
    uint8_t *mem =
        aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_CACHE_LINE_ROUNDUP(HDR_BYTES + OBJ_BYTES));

    if (!mem)
        return NULL;
    memset(mem, 0, HDR_BYTES + sizeof(struct rte_mbuf) + NJ_MBUF_PRIV_BYTES);
    struct rte_mempool_objhdr *hdr = (struct rte_mempool_objhdr *)(mem + HDR_BYTES) - 1;
    hdr->mp = mp;
    hdr->iova = (rte_iova_t)(uintptr_t)(mem + HDR_BYTES);
    rte_pktmbuf_init(mp, NULL, mem + HDR_BYTES, mp->populated_size++);
    return mem + HDR_BYTES;
}

static int stack_enqueue(struct rte_mempool *mp, void *const *obj, unsigned n)
{
    struct stack *s = mp->pool_data;

    pthread_mutex_lock(&s->lock);
    NJ_ASSERT(n <= s->n_max - s->n);
    for (unsigned i = 0; i < n; i++)
        s->obj[s->n++] = obj[i];
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int stack_dequeue(struct rte_mempool *mp, void **obj, unsigned n)
{
    struct stack *s = mp->pool_data;

    pthread_mutex_lock(&s->lock);
    while (s->n < n && mp->populated_size < s->n_max) {
        void *new = new_object(mp);
        if (!new)
            break;
        s->obj[s->n++] = new;
    }
    bool enough = n <= s->n;
    for (unsigned i = 0; enough && i < n; i++)
        obj[i] = s->obj[--s->n];
    pthread_mutex_unlock(&s->lock);
    return enough ? 0 : -ENOBUFS;
}

/* Those that were never taken count as free. */
static unsigned stack_count(const struct rte_mempool *mp)
{
    const struct stack *s = mp->pool_data;

    return s->n + (s->n_max - mp->populated_size);
}

static int ops_index;

static void register_ops(void)
{
    static const struct rte_mempool_ops ops = {
        .name = "nj_malloc",
        .alloc = stack_alloc,
        .enqueue = stack_enqueue,
        .dequeue = stack_dequeue,
        .get_count = stack_count,
    };

    ops_index = rte_mempool_register_ops(&ops);
}

struct rte_mempool *nj__mbuf_pool_new(unsigned n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct rte_pktmbuf_pool_private priv = {.mbuf_data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
                                            .mbuf_priv_size = NJ_MBUF_PRIV_BYTES};
    size_t n_bytes = RTE_CACHE_LINE_ROUNDUP(sizeof(struct rte_mempool) + sizeof priv);

    pthread_once(&once, register_ops);
    struct rte_mempool *mp = ops_index < 0 ? NULL : aligned_alloc(RTE_CACHE_LINE_SIZE, n_bytes);
    struct stack *s = calloc(1, sizeof *s + n * sizeof s->obj[0]);
    if (!mp || !s) {
        free(mp);
        free(s);
        return NULL;
    }
    memset(mp, 0, n_bytes);
    pthread_mutex_init(&s->lock, NULL);
    s->n_max = n;
    snprintf(mp->name, sizeof mp->name, "nj_malloc");
    mp->pool_data = s;
    mp->size = n;
    mp->socket_id = SOCKET_ID_ANY;
    mp->elt_size = OBJ_BYTES;
    mp->header_size = HDR_BYTES;
    mp->private_data_size = sizeof priv;
    mp->ops_index = ops_index;
    STAILQ_INIT(&mp->elt_list);
    STAILQ_INIT(&mp->mem_list);
    rte_pktmbuf_pool_init(mp, (void *)&priv);
    return mp;
}

void nj__mbuf_pool_free(struct rte_mempool *pool)
{
    if (!pool)
        return;
    struct stack *s = pool->pool_data;
    NJ_ASSERT(s->n == pool->populated_size);
    for (unsigned i = 0; i < s->n; i++)
        free((uint8_t *)s->obj[i] - HDR_BYTES);
    pthread_mutex_destroy(&s->lock);
    free(s);
    free(pool);
}
