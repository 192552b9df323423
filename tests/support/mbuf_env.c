/* SPDX-License-Identifier: BSD-3-Clause */
/* * The mempool is filled in field by field and its objects are kept on a stack by mempool ops of
 * our own: rte_mempool_create() needs memzones, which need the EAL. */
#include "support/mbuf_env.h"

#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_spinlock.h>

#include "base/assert.h"
#include "base/compiler.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON 1
#endif
#endif
#ifdef POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define OPS_NAME "nj_test_stack"

/* Room before an mbuf for its mempool header, such that the mbuf starts on a cache line. */
#define OBJ_HDR_BYTES RTE_CACHE_LINE_ROUNDUP(sizeof(struct rte_mempool_objhdr))
#define OBJ_BYTES     (sizeof(struct rte_mbuf) + NJ_TEST_PRIV_BYTES + RTE_MBUF_DEFAULT_BUF_SIZE)

/* The free objects of one pool. */
struct stack {
    rte_spinlock_t lock;
    struct rte_mempool *next_pool; /* keeps pools reachable, or LeakSanitizer reports them */
    unsigned n, n_max;
    void *obj[];
};

static struct rte_mempool **pools(void)
{
    static struct rte_mempool *first;
    return &first;
}

static int stack_alloc(struct rte_mempool *mp)
{
    return 0;
}

static void stack_free(struct rte_mempool *mp)
{
}

static int stack_enqueue(struct rte_mempool *mp, void *const *obj, unsigned n)
{
    struct stack *s = mp->pool_data;
    rte_spinlock_lock(&s->lock);
    NJ_CHECK(n <= s->n_max - s->n); /* else something was freed twice */
    for (unsigned i = 0; i < n; i++) {
        ASAN_POISON_MEMORY_REGION(obj[i], OBJ_BYTES);
        s->obj[s->n++] = obj[i];
    }
    rte_spinlock_unlock(&s->lock);
    return 0;
}

static int stack_dequeue(struct rte_mempool *mp, void **obj, unsigned n)
{
    struct stack *s = mp->pool_data;
    rte_spinlock_lock(&s->lock);
    bool enough = n <= s->n;
    for (unsigned i = 0; enough && i < n; i++) {
        obj[i] = s->obj[--s->n];
        ASAN_UNPOISON_MEMORY_REGION(obj[i], OBJ_BYTES);
    }
    rte_spinlock_unlock(&s->lock);
    return enough ? 0 : -ENOBUFS;
}

static unsigned stack_count(const struct rte_mempool *mp)
{
    const struct stack *s = mp->pool_data;
    return s->n;
}

/* Index of our ops in DPDK's table, registered at the first call. */
static int ops_index(void)
{
    static const struct rte_mempool_ops ops = {
        .name = OPS_NAME,
        .alloc = stack_alloc,
        .free = stack_free,
        .enqueue = stack_enqueue,
        .dequeue = stack_dequeue,
        .get_count = stack_count,
    };
    static int index = -1;
    if (index < 0)
        index = rte_mempool_register_ops(&ops);
    NJ_CHECK(index >= 0);
    return index;
}

static void *zeroed(size_t n_bytes)
{
    n_bytes = RTE_CACHE_LINE_ROUNDUP(n_bytes);
    void *p = aligned_alloc(RTE_CACHE_LINE_SIZE, n_bytes);
    NJ_CHECK(p);
    return memset(p, 0, n_bytes);
}

static void add_object(struct rte_mempool *mp, unsigned i)
{
    struct rte_mempool_objhdr *hdr;
    uint8_t *obj = (uint8_t *)zeroed(OBJ_HDR_BYTES + OBJ_BYTES) + OBJ_HDR_BYTES;
    hdr = (struct rte_mempool_objhdr *)(obj - sizeof *hdr);
    hdr->mp = mp;
    hdr->iova = (rte_iova_t)(uintptr_t)obj;
    STAILQ_INSERT_TAIL(&mp->elt_list, hdr, next);
    mp->populated_size++;
    rte_pktmbuf_init(mp, NULL, obj, i);
    void *one = obj;
    stack_enqueue(mp, &one, 1);
}

struct rte_mempool *nj_test_pool(unsigned n)
{
    struct rte_mempool *mp = zeroed(sizeof *mp + sizeof(struct rte_pktmbuf_pool_private));
    struct stack *s = zeroed(sizeof *s + n * sizeof s->obj[0]);

    rte_spinlock_init(&s->lock);
    s->n_max = n;
    s->next_pool = *pools();
    *pools() = mp;

    snprintf(mp->name, sizeof mp->name, "test");
    mp->pool_data = s;
    mp->size = n;
    mp->socket_id = SOCKET_ID_ANY;
    mp->elt_size = OBJ_BYTES;
    mp->header_size = OBJ_HDR_BYTES;
    mp->private_data_size = sizeof(struct rte_pktmbuf_pool_private);
    mp->ops_index = ops_index();
    STAILQ_INIT(&mp->elt_list);
    STAILQ_INIT(&mp->mem_list);

    struct rte_pktmbuf_pool_private priv = {
        .mbuf_data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
        .mbuf_priv_size = NJ_TEST_PRIV_BYTES,
    };
    rte_pktmbuf_pool_init(mp, &priv);
    for (unsigned i = 0; i < n; i++)
        add_object(mp, i);
    return mp;
}

void nj_test_pool_free(struct rte_mempool *pool)
{
    struct stack *s = pool->pool_data;
    NJ_CHECK(s->n == s->n_max);

    struct rte_mempool **at = pools();
    while (*at != pool)
        at = &((struct stack *)(*at)->pool_data)->next_pool;
    *at = s->next_pool;

    for (unsigned i = 0; i < s->n; i++) {
        ASAN_UNPOISON_MEMORY_REGION(s->obj[i], OBJ_BYTES);
        free((uint8_t *)s->obj[i] - OBJ_HDR_BYTES);
    }
    free(s);
    free(pool);
}

bool nj_test_pool_full(const struct rte_mempool *pool)
{
    return rte_mempool_avail_count(pool) == pool->size;
}

struct rte_mbuf *nj_test_mbuf(struct rte_mempool *pool, const void *bytes, size_t n)
{
    struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
    if (!m)
        return NULL;
    NJ_CHECK(n <= rte_pktmbuf_tailroom(m));
    char *to = rte_pktmbuf_append(m, (uint16_t)n);
    if (n > 0)
        memcpy(to, bytes, n);
    return m;
}

void nj_test_eal(void)
{
    static bool started;
    char *args[] = {"test", "-l",       "0",           "--no-huge",      "-m",
                    "64",   "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=*:error",
                    NULL};
    if (started)
        return;
    NJ_CHECK(rte_eal_init(NJ_ARRAY_LEN(args) - 1, args) >= 0);
    started = true;
}
