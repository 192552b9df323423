/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lock-free hash table of clients with linear probing over PROBES slots; slots with the oldest use
 * are recycled.
 *
 * To fill a slot, an lcore first sets CLAIMED in n_refs, which succeeds only if n_refs is 0. While
 * CLAIMED is set no other lcore takes a reference. When two lcores insert the same client at once,
 * each stores the key in a slot that is still CLAIMED and then scans all slots, so at least one
 * sees the other. The later slot gives up; the earlier one waits until the other one gives up, a
 * few dozen instructions.
 */
#include "shape/client_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"

/* With half of the table in use, all 16 slots of a key are used with a probability of 1/65,536. */
#define PROBES       16u
#define CLAIMED      0x80000000u
#define OVERFLOW_KEY UINT64_MAX
/* Spins on a slot that another lcore fills before the overflow client is used: a preempted lcore
 * must not block others. */
#define SPINS_MAX    10000u

struct nj_clients {
    uint32_t mask;
    struct nj_client overflow_client NJ_CACHE_ALIGNED;
    struct nj_client client_slots[];
};

struct nj_clients *nj_clients_new(uint32_t n_max)
{
    uint32_t n = PROBES;
    while (n < n_max && n < 1u << 30)
        n *= 2;
    size_t n_bytes = sizeof(struct nj_clients) + (size_t)n * sizeof(struct nj_client);
    n_bytes = (n_bytes + NJ_CACHE_LINE - 1) / NJ_CACHE_LINE * NJ_CACHE_LINE;
    struct nj_clients *t = aligned_alloc(NJ_CACHE_LINE, n_bytes);
    if (!t)
        return NULL;
    memset(t, 0, n_bytes);
    t->mask = n - 1;
    atomic_init(&t->overflow_client.key, OVERFLOW_KEY);
    atomic_init(&t->overflow_client.n_refs, 1);
    return t;
}

void nj_clients_free(struct nj_clients *t)
{
    free(t);
}

struct nj_client *nj_clients_overflow_client(struct nj_clients *t)
{
    return &t->overflow_client;
}

static struct nj_client *slot_of(struct nj_clients *t, uint64_t key, uint32_t i)
{
    return &t->client_slots[((uint32_t)key + i) & t->mask];
}

static uint64_t key_of(const struct nj_client *c)
{
    return atomic_load_explicit(&c->key, memory_order_seq_cst);
}

/* ---- lookup ---- */

enum try_ref { REF_OK, REF_GONE, REF_BUSY };

/* Takes a reference to the slot if it holds `key`. BUSY: it is being filled or emptied. */
static enum try_ref try_ref(struct nj_client *c, uint64_t key)
{
    uint32_t n = atomic_load_explicit(&c->n_refs, memory_order_seq_cst);
    do {
        if (n & CLAIMED)
            return key_of(c) == key ? REF_BUSY : REF_GONE;
    } while (!atomic_compare_exchange_weak_explicit(&c->n_refs, &n, n + 1, memory_order_seq_cst,
                                                    memory_order_relaxed));
    if (key_of(c) == key)
        return REF_OK;
    atomic_fetch_sub_explicit(&c->n_refs, 1, memory_order_release);
    return REF_GONE;
}

/* Returns NULL with *busy when the key is there and not settled. */
static struct nj_client *find_client(struct nj_clients *t, uint64_t key, bool *busy)
{
    *busy = false;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct nj_client *c = slot_of(t, key, i);
        if (key_of(c) != key)
            continue;
        enum try_ref g = try_ref(c, key);
        if (g == REF_OK)
            return c;
        *busy |= g == REF_BUSY;
    }
    return NULL;
}

/* ---- insertion ---- */

/* Reserves a slot without references: a free one, else the one unused for longest. */
static struct nj_client *claim_slot(struct nj_clients *t, uint64_t key, uint32_t *at)
{
    for (uint32_t tries = 0; tries < PROBES; tries++) {
        struct nj_client *best = NULL;
        uint64_t oldest = UINT64_MAX;
        for (uint32_t i = 0; i < PROBES; i++) {
            struct nj_client *c = slot_of(t, key, i);
            if (nj_load_relaxed(&c->n_refs) != 0)
                continue;
            bool is_free = nj_load_relaxed(&c->key) == 0;
            uint64_t used = is_free ? 0 : nj_load_relaxed(&c->used_at);
            if (!best || used < oldest) {
                best = c;
                oldest = used;
                *at = i;
            }
            if (is_free)
                break;
        }
        uint32_t none = 0;
        if (!best)
            return NULL;
        if (atomic_compare_exchange_strong_explicit(&best->n_refs, &none, CLAIMED,
                                                    memory_order_seq_cst, memory_order_relaxed))
            return best;
    }
    return NULL;
}

/* The address is stored as two words, since telemetry may read it at any time. */
typedef uint64_t __attribute__((may_alias)) word;
_Static_assert(offsetof(struct nj_client, addr) % sizeof(word) == 0, "the address is two words");

static void addr_set(struct nj_client *c, const struct nj_addr *addr)
{
    uint64_t w[2] = {0, 0};
    if (addr)
        memcpy(w, addr->b, sizeof w);
    for (unsigned i = 0; i < 2; i++)
        __atomic_store_n((word *)(void *)c->addr.b + i, w[i], __ATOMIC_RELAXED);
}

struct nj_addr nj_client_addr(const struct nj_client *c)
{
    struct nj_addr addr;
    uint64_t w[2];
    for (unsigned i = 0; i < 2; i++)
        w[i] = __atomic_load_n((const word *)(const void *)c->addr.b + i, __ATOMIC_RELAXED);
    memcpy(addr.b, w, sizeof w);
    return addr;
}

static void reset_counts(struct nj_client *c)
{
    nj_store_relaxed(&c->n_conns, 0);
    nj_store_relaxed(&c->n_streams, 0);
    nj_store_relaxed(&c->n_lcores, 0);
    nj_store_relaxed(&c->requests_tat, 0);
    nj_store_relaxed(&c->rate_gcra.tat, 0);
    nj_store_relaxed(&c->n_bytes, 0);
    nj_store_relaxed(&c->throttled_ns, 0);
    nj_store_relaxed(&c->n_requests, 0);
    nj_store_relaxed(&c->n_refused, 0);
}

/* Is the key in a slot before `at`? */
static bool is_duplicate_before(struct nj_clients *t, uint64_t key, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (key_of(slot_of(t, key, i)) == key)
            return true;
    return false;
}

/* Is the key settled in a slot after `at`? It wins, since it may not have seen us. */
static bool is_duplicate_after(struct nj_clients *t, uint64_t key, uint32_t at)
{
    for (uint32_t i = at + 1; i < PROBES; i++) {
        struct nj_client *c = slot_of(t, key, i);
        for (uint32_t n = 0; key_of(c) == key; n++) {
            uint32_t refs = atomic_load_explicit(&c->n_refs, memory_order_seq_cst);
            if (!(refs & CLAIMED) || n == SPINS_MAX)
                return true;
        }
    }
    return false;
}

static void release_slot(struct nj_client *c)
{
    atomic_store_explicit(&c->key, 0, memory_order_seq_cst);
    atomic_store_explicit(&c->n_refs, 0, memory_order_seq_cst);
}

/* NULL with *full: no free slot. NULL without: another lcore inserted the key, look it up again. */
static struct nj_client *insert_client(struct nj_clients *t, uint64_t key,
                                       const struct nj_addr *addr, bool *full)
{
    uint32_t at = 0;
    struct nj_client *c = claim_slot(t, key, &at);
    *full = !c;
    if (!c)
        return NULL;
    atomic_store_explicit(&c->key, 0, memory_order_seq_cst);
    reset_counts(c);
    addr_set(c, addr);
    atomic_store_explicit(&c->key, key, memory_order_seq_cst);
    if (is_duplicate_before(t, key, at) || is_duplicate_after(t, key, at)) {
        release_slot(c);
        return NULL;
    }
    atomic_store_explicit(&c->n_refs, 1, memory_order_seq_cst);
    return c;
}

struct nj_client *nj_client_take(struct nj_clients *t, uint64_t key, const struct nj_addr *addr,
                                 nj_ns now)
{
    NJ_ASSERT(key != 0);
    for (uint32_t n = 0; n < SPINS_MAX; n++) {
        bool busy, full;
        struct nj_client *c = find_client(t, key, &busy);
        if (!c && busy)
            continue;
        if (!c)
            c = insert_client(t, key, addr, &full);
        if (c) {
            nj_store_relaxed(&c->used_at, now);
            return c;
        }
        if (full)
            return NULL;
    }
    return NULL;
}

void nj_client_put(struct nj_client *c, nj_ns now)
{
    nj_store_relaxed(&c->used_at, now);
    uint32_t old = atomic_fetch_sub_explicit(&c->n_refs, 1, memory_order_release);
    NJ_ASSERT((old & ~CLAIMED) > 0);
    (void)old;
}

/* ---- caps ---- */

static bool increment_below(_Atomic uint32_t *n, uint32_t max)
{
    uint32_t old = nj_load_relaxed(n);
    do {
        if (max && old >= max)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(n, &old, old + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static void decrement(_Atomic uint32_t *n)
{
    uint32_t old = atomic_fetch_sub_explicit(n, 1, memory_order_relaxed);
    NJ_ASSERT(old > 0);
    (void)old;
}

/* Clients without a slot share limits of bytes but no caps: otherwise a few clients that fill the
 * table could lock out all others. */
static const struct nj_client_caps *caps_of(const struct nj_client *c,
                                            const struct nj_client_caps *caps)
{
    static const struct nj_client_caps none;
    return key_of(c) == OVERFLOW_KEY ? &none : caps;
}

bool nj_client_conn_begin(struct nj_client *c, const struct nj_client_caps *caps)
{
    if (increment_below(&c->n_conns, caps_of(c, caps)->conns_max))
        return true;
    nj_add_relaxed(&c->n_refused, 1);
    return false;
}

void nj_client_conn_end(struct nj_client *c)
{
    decrement(&c->n_conns);
}

/* GCRA of requests. Returns the time until one more is allowed; 0: allowed and charged. */
static nj_ns request_wait(struct nj_client *c, const struct nj_client_caps *caps, nj_ns now)
{
    if (caps->requests_per_s == 0)
        return 0;
    nj_ns each = (NJ_SEC + caps->requests_per_s - 1) / caps->requests_per_s;
    uint64_t n_burst = caps->requests_burst ? caps->requests_burst : caps->requests_per_s;
    uint64_t old = nj_load_relaxed(&c->requests_tat);
    uint64_t tat, most = now + each * n_burst;
    while (old > most && /* charged under former caps with a larger burst */
           !atomic_compare_exchange_weak_explicit(&c->requests_tat, &old, most,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    old = old > most ? most : old;
    do {
        tat = (old > now ? old : now) + each;
        if (tat - now > each * n_burst)
            return tat - now - each * n_burst;
    } while (!atomic_compare_exchange_weak_explicit(&c->requests_tat, &old, tat,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 0;
}

enum nj_action nj_client_request_begin(struct nj_client *c, const struct nj_client_caps *caps,
                                       nj_ns now, uint32_t *retry_after_s)
{
    nj_ns wait = NJ_SEC; /* until an open request ends: unknown */
    caps = caps_of(c, caps);
    *retry_after_s = 0;
    if (increment_below(&c->n_streams, caps->streams_max)) {
        wait = request_wait(c, caps, now);
        if (wait == 0) {
            nj_add_relaxed(&c->n_requests, 1);
            return NJ_ACTION_SERVE;
        }
        decrement(&c->n_streams);
    }
    nj_add_relaxed(&c->n_refused, 1);
    *retry_after_s = (uint32_t)((wait + NJ_SEC - 1) / NJ_SEC);
    return NJ_ACTION_TOO_MANY;
}

void nj_client_request_end(struct nj_client *c)
{
    decrement(&c->n_streams);
}

/* ---- telemetry ---- */

static uint64_t metric_of(const struct nj_client *c, enum nj_clients_by what)
{
    if (what == NJ_CLIENTS_BY_STREAMS)
        return nj_load_relaxed(&c->n_streams);
    if (what == NJ_CLIENTS_BY_CONNECTIONS)
        return nj_load_relaxed(&c->n_conns);
    return nj_load_relaxed(&c->n_bytes);
}

/* `out` is sorted, with space for one more; the last one is dropped when it is full. The order
 * may be slightly off, as lcores count meanwhile. */
static uint32_t insert_sorted(const struct nj_client **out, uint32_t n_out, uint32_t n,
                              const struct nj_client *c, enum nj_clients_by by)
{
    uint64_t n_has = metric_of(c, by);
    uint32_t i = n_out < n ? n_out : n - 1;
    if (n_out == n && metric_of(out[i], by) >= n_has)
        return n_out;
    for (; i > 0 && metric_of(out[i - 1], by) < n_has; i--)
        out[i] = out[i - 1];
    out[i] = c;
    return n_out < n ? n_out + 1 : n;
}

uint32_t nj_clients_top(const struct nj_clients *t, enum nj_clients_by by,
                        const struct nj_client **out, uint32_t n)
{
    uint32_t n_out = 0;
    if (n == 0)
        return 0;
    if (metric_of(&t->overflow_client, by) > 0)
        n_out = insert_sorted(out, n_out, n, &t->overflow_client, by);
    for (uint32_t i = 0; i <= t->mask; i++)
        if (key_of(&t->client_slots[i]) != 0)
            n_out = insert_sorted(out, n_out, n, &t->client_slots[i], by);
    return n_out;
}
