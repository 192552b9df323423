/* SPDX-License-Identifier: BSD-3-Clause */
/* Which entries stay in a cache and which are evicted; and random operations against a model made
 * of arrays, from a seed (NJ_SEED replays one). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "store/cache_policy.h"

/* The default size of an entry: large enough that no bucket of ghosts is full. */
#define UNIT    32768u
#define PAGE    4096u
#define ENTRIES 400u

static struct nj__cache_entry entries[ENTRIES];
static struct nj__cache_policy policy;

/* Neighbours share a bucket, and all buckets have the same number of entries. */
static uint64_t fingerprint_of(uint32_t i)
{
    return (uint64_t)i * (UINT64_MAX / ENTRIES) + 2 * i;
}

static uint32_t number_of(const struct nj__cache_entry *e)
{
    return (uint32_t)(e - entries);
}

static void start(uint64_t n_bytes_max)
{
    memset(entries, 0, sizeof entries);
    cr_assert(nj__cache_policy_init(&policy, n_bytes_max));
}

static void stop(void)
{
    for (uint32_t i = 0; i < ENTRIES; i++)
        nj__cache_policy_remove(&policy, &entries[i]);
    cr_expect_eq(policy.n_entries, 0);
    cr_expect_eq(nj__cache_policy_used_bytes(&policy), 0);
    nj__cache_policy_fini(&policy);
}

/* A request for entry i of `n_bytes`. Returns whether it was there. */
static bool ask_sized(uint32_t i, uint32_t n_bytes)
{
    if (entries[i].queue != NJ__CACHE_NO_QUEUE) {
        nj__cache_policy_touch(&entries[i]);
        return true;
    }
    while (nj__cache_policy_pop_victim(&policy, n_bytes))
        continue;
    cr_assert(nj__cache_policy_fits(&policy, n_bytes));
    nj__cache_policy_add(&policy, &entries[i], fingerprint_of(i), n_bytes);
    return false;
}

static bool ask(uint32_t i)
{
    return ask_sized(i, UNIT);
}

/* Of 100 entries, those that were requested twice stay, during a scan of any length over the
 * others. */
Test(store_cache_policy, a_scan_leaves_what_is_used)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 2 * 80; i++)
        ask(i % 80);
    for (uint32_t i = 80; i < ENTRIES; i++)
        cr_assert_not(ask(i));
    for (uint32_t i = 0; i < 80; i++)
        cr_expect(ask(i), "%u is gone", i);
    cr_expect_eq(policy.n_entries, 100);
    stop();
}

/* The same with repeated scans: the entries that a scan evicted are older than any ghost. */
Test(store_cache_policy, repeated_scans_leave_what_is_used)
{
    start(100 * UNIT);
    uint32_t n_hits = 0;
    for (uint32_t i = 0; i < 2 * 60; i++)
        ask(i % 60);
    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 60; i < ENTRIES; i++) {
            ask(i);
            n_hits += ask(i % 60);
        }
    }
    cr_expect_eq(n_hits, 10 * (ENTRIES - 60));
    stop();
}

/* New entries replace the formerly requested ones: 20 of 100 fit among the ghosts. */
Test(store_cache_policy, demand_changes)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 10 * 100; i++)
        ask(i % 100);
    uint32_t n_hits = 0;
    for (uint32_t round = 0; round < 10; round++)
        for (uint32_t i = 100; i < 120; i++)
            n_hits += ask(i);
    cr_expect_geq(n_hits, 8 * 20, "all are there from the third time on");
    stop();
}

/* An entry that was evicted from the queue `small` without another use begins in `main` when it is
 * requested again. */
Test(store_cache_policy, a_ghost_begins_in_main)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 101; i++)
        ask(i);
    cr_expect_eq(entries[0].queue, NJ__CACHE_NO_QUEUE);
    cr_expect_not(ask(0));
    cr_expect_eq(entries[0].queue, NJ__CACHE_MAIN_QUEUE);
    cr_expect_eq(entries[1].queue, NJ__CACHE_NO_QUEUE, "it was evicted for entry 0");
    stop();
}

/* A ghost is forgotten after the evicted bytes of the policy's limit: 38 of 160. */
Test(store_cache_policy, a_ghost_gets_no_older)
{
    start(160 * UNIT);
    cr_assert_eq(policy.ghost_window, 38 * UNIT / PAGE);
    for (uint32_t i = 0; i < 160 + 37; i++)
        ask(i);
    ask(0); /* another entry is evicted for it */
    cr_expect_eq(entries[0].queue, NJ__CACHE_MAIN_QUEUE, "the last moment");
    ask(300);
    ask(1);
    cr_expect_eq(entries[1].queue, NJ__CACHE_SMALL_QUEUE, "too late");
    stop();
}

/* Parts of pages count in that, too: 39 entries of 8.5 pages are more than 323 pages. */
Test(store_cache_policy, parts_of_pages_count)
{
    const uint32_t n_bytes = UNIT + PAGE / 2;

    start(160 * n_bytes);
    cr_assert_eq(policy.ghost_window, 323);
    for (uint32_t i = 0; i < 160 + 38; i++)
        ask_sized(i, n_bytes);
    ask_sized(0, n_bytes);
    cr_expect_eq(entries[0].queue, NJ__CACHE_SMALL_QUEUE);
    stop();
}

/* There are no more ghosts than fit into a bucket: the oldest is removed. */
Test(store_cache_policy, ghosts_are_bounded)
{
    start(100 * PAGE);
    for (uint32_t i = 0; i < 100 + 9; i++)
        ask_sized(i, PAGE);
    ask_sized(0, PAGE);
    cr_expect_eq(entries[0].queue, NJ__CACHE_SMALL_QUEUE, "9 ghosts are newer");
    ask_sized(3, PAGE);
    cr_expect_eq(entries[3].queue, NJ__CACHE_MAIN_QUEUE);
    stop();
}

/* The removal of an invalid entry is no eviction. */
Test(store_cache_policy, a_removed_one_is_no_ghost)
{
    start(100 * UNIT);
    ask(0);
    nj__cache_policy_remove(&policy, &entries[0]);
    nj__cache_policy_remove(&policy, &entries[0]);
    cr_expect_eq(policy.n_entries, 0);
    ask(0);
    cr_expect_eq(entries[0].queue, NJ__CACHE_SMALL_QUEUE);
    stop();
}

/* No entry is evicted for one that is too large to be kept. */
Test(store_cache_policy, larger_than_the_budget)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 100; i++)
        ask(i);
    cr_expect_null(nj__cache_policy_pop_victim(&policy, 100 * UNIT + 1));
    cr_expect_null(nj__cache_policy_pop_victim(&policy, UINT64_MAX));
    cr_expect_not(nj__cache_policy_fits(&policy, UINT64_MAX));
    cr_expect_eq(policy.n_entries, 100);
    cr_expect_not(ask_sized(200, 100 * UNIT), "as large as the budget");
    cr_expect_eq(policy.n_entries, 1);
    cr_expect(ask(200));
    stop();
}

/* The search for a victim skips a pinned entry, which is the next victim after its unpin. */
Test(store_cache_policy, a_pinned_one_is_no_victim)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 100; i++)
        ask(i);
    nj__cache_policy_pin(&entries[0]);
    nj__cache_policy_pin(&entries[2]);
    cr_expect_eq(number_of(nj__cache_policy_pop_victim(&policy, UNIT)), 1);
    cr_expect_eq(number_of(nj__cache_policy_pop_victim(&policy, 2 * UNIT)), 3);
    cr_expect_null(nj__cache_policy_pop_victim(&policy, 2 * UNIT));
    nj__cache_policy_unpin(&policy, &entries[2]);
    cr_expect_eq(number_of(nj__cache_policy_pop_victim(&policy, 3 * UNIT)), 2);
    nj__cache_policy_remove(&policy, &entries[0]);
    nj__cache_policy_unpin(&policy, &entries[0]);
    stop();
}

/* A pin of an entry in a queue does not change its place. */
Test(store_cache_policy, pinned_again)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 100; i++)
        ask(i);
    nj__cache_policy_pin(&entries[0]);
    nj__cache_policy_pin(&entries[1]);
    ask(100);
    nj__cache_policy_unpin(&policy, &entries[0]);
    nj__cache_policy_unpin(&policy, &entries[1]);
    nj__cache_policy_pin(&entries[0]);
    nj__cache_policy_unpin(&policy, &entries[0]);
    cr_expect_eq(number_of(nj__cache_policy_pop_victim(&policy, UNIT)), 1);
    stop();
}

/* An entry that was removed while it was aside is added like any other afterwards. */
Test(store_cache_policy, removed_while_aside)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 100; i++)
        ask(i);
    nj__cache_policy_pin(&entries[0]);
    ask(100);
    cr_assert(entries[0].is_aside);
    nj__cache_policy_remove(&policy, &entries[0]);
    ask(0);
    nj__cache_policy_unpin(&policy, &entries[0]);
    cr_expect_eq(number_of(nj__cache_policy_pop_victim(&policy, UNIT)), 2, "not 0, which is new");
    stop();
}

/* The caller waits, or does without. */
Test(store_cache_policy, all_are_pinned)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 100; i++) {
        nj__cache_policy_pin(&entries[i]);
        ask(i);
    }
    cr_expect_null(nj__cache_policy_pop_victim(&policy, UNIT));
    cr_expect_not(nj__cache_policy_fits(&policy, UNIT));
    nj__cache_policy_unpin(&policy, &entries[70]);
    cr_expect_eq(number_of(nj__cache_policy_pop_victim(&policy, UNIT)), 70);
    stop();
}

/* An entry that was used while it was aside stays. */
Test(store_cache_policy, used_while_pinned)
{
    start(100 * UNIT);
    for (uint32_t i = 0; i < 100; i++)
        ask(i);
    nj__cache_policy_pin(&entries[0]);
    ask(100);
    cr_expect(entries[0].is_aside);
    ask(0);
    nj__cache_policy_unpin(&policy, &entries[0]);
    ask(101);
    cr_expect_eq(entries[0].queue, NJ__CACHE_MAIN_QUEUE);
    stop();
}

/* One call examines no more entries than the limit, even if all are in use. */
Test(store_cache_policy, a_victim_is_found_soon)
{
    start(ENTRIES * UNIT);
    for (uint32_t i = 0; i < 20 * ENTRIES; i++)
        ask(i % ENTRIES);
    cr_expect_not_null(nj__cache_policy_pop_victim(&policy, UNIT));
    uint32_t n_looked_at = 0;
    for (uint32_t i = 0; i < ENTRIES; i++)
        n_looked_at += entries[i].n_uses < NJ__CACHE_USES_MAX;
    cr_expect_eq(n_looked_at, NJ__CACHE_SCAN_MAX);
    stop();
}

/* --- a random walk ---------------------------------------------------------------------------- */

struct order {
    uint32_t n, of[ENTRIES]; /* the oldest first */
};

static struct model {
    struct order small, main, aside;
    struct order *home[ENTRIES]; /* NULL: it is not in */
    uint32_t n_bytes[ENTRIES], n_uses[ENTRIES];
    bool is_pinned[ENTRIES];
    uint64_t evicted; /* bytes, from `small` */
    bool is_ghost[ENTRIES];
    uint64_t ghost_since[ENTRIES];
} m;

static void insert(struct order *o, uint32_t at, uint32_t i)
{
    memmove(&o->of[at + 1], &o->of[at], (o->n - at) * sizeof o->of[0]);
    o->of[at] = i;
    o->n++;
}

static bool take(struct order *o, uint32_t i)
{
    for (uint32_t at = 0; at < o->n; at++) {
        if (o->of[at] != i)
            continue;
        o->n--;
        memmove(&o->of[at], &o->of[at + 1], (o->n - at) * sizeof o->of[0]);
        return true;
    }
    return false;
}

static uint64_t model_bytes(const struct order *of, bool pinned_only)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < ENTRIES; i++)
        if (m.home[i] && (!of || m.home[i] == of) && (!pinned_only || m.is_pinned[i]))
            n += m.n_bytes[i];
    return n;
}

static void model_remove(uint32_t i)
{
    cr_assert(take(m.home[i], i) != take(&m.aside, i));
    m.home[i] = NULL;
}

static void model_add(uint32_t i, uint32_t n_bytes)
{
    uint64_t since = m.evicted / PAGE - m.ghost_since[i] / PAGE;

    m.home[i] = m.is_ghost[i] && since <= policy.ghost_window ? &m.main : &m.small;
    m.is_ghost[i] = false;
    m.n_bytes[i] = n_bytes;
    m.n_uses[i] = 0;
    insert(m.home[i], m.home[i]->n, i);
}

/* ENTRIES: there is none. */
static uint32_t model_next(void)
{
    for (;;) {
        struct order *o = model_bytes(&m.small, false) > policy.small_max ? &m.small : &m.main;
        if (o->n == 0)
            o = o == &m.small ? &m.main : &m.small;
        if (o->n == 0)
            return ENTRIES;
        uint32_t i = o->of[0];
        if (!m.is_pinned[i])
            return i;
        take(o, i);
        insert(&m.aside, m.aside.n, i);
    }
}

static uint32_t model_victim(uint64_t n_bytes)
{
    if (n_bytes > policy.n_bytes_max || model_bytes(NULL, false) + n_bytes <= policy.n_bytes_max)
        return ENTRIES;
    for (uint32_t n_looks = 0;; n_looks++) {
        uint32_t i = model_next();
        if (i == ENTRIES)
            return i;
        if (m.n_uses[i] == 0 || n_looks == NJ__CACHE_SCAN_MAX) {
            m.is_ghost[i] = m.home[i] == &m.small;
            m.ghost_since[i] = m.evicted;
            m.evicted += m.is_ghost[i] ? m.n_bytes[i] : 0;
            model_remove(i);
            return i;
        }
        m.n_uses[i] = m.home[i] == &m.main ? m.n_uses[i] - 1 : 0;
        take(m.home[i], i);
        m.home[i] = &m.main;
        insert(&m.main, m.main.n, i);
    }
}

static void walk_pin(uint32_t i, bool pin)
{
    if (entries[i].is_pinned == pin)
        return;
    m.is_pinned[i] = pin;
    if (pin) {
        nj__cache_policy_pin(&entries[i]);
        return;
    }
    nj__cache_policy_unpin(&policy, &entries[i]);
    if (m.home[i] && take(&m.aside, i))
        insert(m.home[i], 0, i);
}

static void walk_ask(uint32_t i, uint32_t n_bytes)
{
    if (m.home[i]) {
        nj__cache_policy_touch(&entries[i]);
        m.n_uses[i] += m.n_uses[i] < NJ__CACHE_USES_MAX;
        return;
    }
    struct nj__cache_entry *e;
    do {
        uint32_t expected = model_victim(n_bytes);
        e = nj__cache_policy_pop_victim(&policy, n_bytes);
        cr_assert_eq(e ? number_of(e) : ENTRIES, expected);
    } while (e);
    if (!nj__cache_policy_fits(&policy, n_bytes)) {
        cr_assert_eq(model_bytes(NULL, true), model_bytes(NULL, false), "all are pinned");
        return;
    }
    nj__cache_policy_add(&policy, &entries[i], fingerprint_of(i), n_bytes);
    model_add(i, n_bytes);
}

static void check_list(const struct nj_list *list, const struct order *o)
{
    const struct nj_list *l = list->next;

    for (uint32_t at = 0; at < o->n; at++, l = l->next)
        cr_assert_eq(number_of(nj_container_of(l, struct nj__cache_entry, node)), o->of[at]);
    cr_assert_eq(l, list);
}

static void check(void)
{
    uint32_t n_ghosts = 0, n_expected = 0;

    check_list(&policy.small.list, &m.small);
    check_list(&policy.main.list, &m.main);
    check_list(&policy.aside, &m.aside);
    cr_assert_eq(policy.n_entries, m.small.n + m.main.n + m.aside.n);
    cr_assert_eq(policy.small.n_bytes, model_bytes(&m.small, false));
    cr_assert_eq(policy.main.n_bytes, model_bytes(&m.main, false));
    cr_assert_leq(nj__cache_policy_used_bytes(&policy), policy.n_bytes_max);
    for (uint64_t i = 0; i < policy.n_buckets * NJ_CACHE_LINE / sizeof *policy.ghosts; i++)
        n_ghosts += policy.ghosts[i].fingerprint != 0;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        n_expected += m.is_ghost[i];
        cr_assert_not(m.home[i] && m.is_ghost[i]);
    }
    cr_assert_eq(n_ghosts, n_expected);
}

/* Some entries are requested much more often than others; some are pinned for long. */
static void walk(uint64_t seed)
{
    const uint32_t sizes[] = {4096, 5000, 20480, 32768, 262144, 262144, 1048576};
    struct nj_prng r;

    nj_prng_init(&r, seed);
    memset(&m, 0, sizeof m);
    start((200u + nj_prng_below(&r, 200)) * 20 * PAGE); /* so that parts are whole pages */
    uint32_t pins = nj_prng_below(&r, 4) * 10;          /* percent of the steps */
    for (uint32_t step = 0; step < 4000; step++) {
        uint32_t i = nj_prng_below(&r, nj_prng_below(&r, ENTRIES) + 1);
        uint32_t what = nj_prng_below(&r, 100);
        if (what < pins)
            walk_pin(i, nj_prng_below(&r, 4) == 0);
        else if (what < 98)
            walk_ask(i, sizes[i % NJ_ARRAY_LEN(sizes)]);
        else if (m.home[i]) {
            nj__cache_policy_remove(&policy, &entries[i]);
            model_remove(i);
        }
        check();
    }
    stop();
}

Test(store_cache_policy, random_walk)
{
    const char *said = getenv("NJ_SEED");
    uint64_t first = said ? strtoull(said, NULL, 0) : 1, n = said ? 1 : 12;

    fprintf(stderr, "seeds %lu to %lu\n", (unsigned long)first, (unsigned long)(first + n - 1));
    for (uint64_t seed = first; seed < first + n; seed++)
        walk(seed);
}
