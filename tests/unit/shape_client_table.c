/* SPDX-License-Identifier: BSD-3-Clause */
/* The client table: lookup, counts, caps, recycling; also by concurrent threads. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>

#include "base/prng.h"
#include "shape/client_table.h"

static struct nj_addr addr_of(uint32_t n)
{
    return nj_addr_from_v4(n);
}

Test(shape_client_table, one_key_is_one_client)
{
    struct nj_clients *t = nj_clients_new(100);
    struct nj_addr addr = addr_of(7);
    struct nj_client *a = nj_client_take(t, 42, &addr, NJ_SEC);
    struct nj_client *b = nj_client_take(t, 42, &addr, NJ_SEC);
    struct nj_client *c = nj_client_take(t, 43, &addr, NJ_SEC);
    cr_assert_not_null(a);
    cr_expect_eq(a, b);
    cr_expect_neq(a, c);
    struct nj_addr back = nj_client_addr(a);
    cr_expect(nj_addr_eq(&back, &addr));
    nj_client_put(a, NJ_SEC);
    nj_client_put(b, NJ_SEC);
    cr_expect_eq(nj_client_take(t, 42, &addr, 2 * NJ_SEC), a, "it stays while there is room");
    nj_client_put(a, NJ_SEC);
    nj_client_put(c, NJ_SEC);
    nj_clients_free(t);
}

/* All slots of a key: referenced ones stay, and of the others the one unused for longest is
 * recycled. */
Test(shape_client_table, the_longest_unused_makes_room)
{
    enum { PLACES = 16 };
    struct nj_clients *t = nj_clients_new(PLACES);
    struct nj_client *c[PLACES];
    for (uint64_t i = 0; i < PLACES; i++) {
        c[i] = nj_client_take(t, 100 + i, NULL, 0);
        cr_assert_not_null(c[i]);
    }
    cr_expect_null(nj_client_take(t, 999, NULL, NJ_SEC), "all are held");
    cr_expect_not_null(nj_clients_overflow_client(t));
    nj_client_put(c[3], 30);
    nj_client_put(c[5], 10);
    nj_client_put(c[9], 20);
    struct nj_client *d = nj_client_take(t, 999, NULL, NJ_SEC);
    cr_expect_eq(d, c[5]);
    cr_expect_eq(nj_client_take(t, 103, NULL, NJ_SEC), c[3]);
    cr_expect_eq(nj_client_take(t, 1000, NULL, NJ_SEC), c[9]);
    cr_expect_null(nj_client_take(t, 1001, NULL, NJ_SEC));
    nj_clients_free(t);
}

Test(shape_client_table, who_comes_back_after_an_eviction_starts_anew)
{
    struct nj_clients *t = nj_clients_new(16);
    struct nj_client *c = nj_client_take(t, 1, NULL, 0);
    uint32_t after;
    struct nj_client_caps caps = {.requests_per_s = 1};
    cr_expect_eq(nj_client_request_begin(c, &caps, NJ_SEC, &after), NJ_ACTION_SERVE);
    nj_client_request_end(c);
    nj_client_put(c, 0);
    for (uint64_t i = 0; i < 16; i++)
        cr_assert_not_null(nj_client_take(t, 100 + i, NULL, NJ_SEC));
    nj_client_put(c, NJ_SEC); /* of any client that it holds now */
    c = nj_client_take(t, 1, NULL, NJ_SEC);
    cr_assert_not_null(c);
    cr_expect_eq(c->n_requests, 0);
    cr_expect_eq(c->requests_tat, 0);
    nj_clients_free(t);
}

Test(shape_client_table, caps_of_connections_and_requests)
{
    struct nj_clients *t = nj_clients_new(16);
    struct nj_client *c = nj_client_take(t, 1, NULL, 0);
    struct nj_client_caps caps = {.conns_max = 2, .streams_max = 3}, none = {0};
    uint32_t after;

    cr_expect(nj_client_conn_begin(c, &caps));
    cr_expect(nj_client_conn_begin(c, &caps));
    cr_expect_not(nj_client_conn_begin(c, &caps));
    cr_expect(nj_client_conn_begin(c, &none));
    nj_client_conn_end(c);
    nj_client_conn_end(c);
    cr_expect(nj_client_conn_begin(c, &caps));

    for (unsigned i = 0; i < 3; i++)
        cr_expect_eq(nj_client_request_begin(c, &caps, 0, &after), NJ_ACTION_SERVE);
    cr_expect_eq(nj_client_request_begin(c, &caps, 0, &after), NJ_ACTION_TOO_MANY);
    cr_expect_eq(after, 1);
    nj_client_request_end(c);
    cr_expect_eq(nj_client_request_begin(c, &caps, 0, &after), NJ_ACTION_SERVE);
    cr_expect_eq(c->n_refused, 2);
    cr_expect_eq(c->n_requests, 4);
    nj_clients_free(t);
}

Test(shape_client_table, requests_per_second_and_when_to_come_again)
{
    struct nj_clients *t = nj_clients_new(16);
    struct nj_client *c = nj_client_take(t, 1, NULL, 0);
    struct nj_client_caps caps = {.requests_per_s = 2, .requests_burst = 5};
    nj_ns now = 100 * NJ_SEC;
    uint32_t after;

    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(nj_client_request_begin(c, &caps, now, &after), NJ_ACTION_SERVE);
    cr_expect_eq(nj_client_request_begin(c, &caps, now, &after), NJ_ACTION_TOO_MANY);
    cr_expect_eq(after, 1);
    cr_expect_eq(c->n_streams, 5, "a refused stream is not open");
    cr_expect_eq(nj_client_request_begin(c, &caps, now + NJ_SEC / 2 - 1, &after),
                 NJ_ACTION_TOO_MANY);
    cr_expect_eq(nj_client_request_begin(c, &caps, now + NJ_SEC / 2, &after), NJ_ACTION_SERVE);
    uint32_t n = 0;
    for (unsigned i = 0; i < 1000; i++) {
        now += 10 * NJ_MS;
        n += nj_client_request_begin(c, &caps, now, &after) == NJ_ACTION_SERVE;
    }
    cr_expect(n >= 19 && n <= 20, "%u in 10 s", n);

    caps = (struct nj_client_caps){.requests_per_s = 1, .requests_burst = 1};
    now += 3600 * NJ_SEC;
    cr_expect_eq(nj_client_request_begin(c, &caps, now, &after), NJ_ACTION_SERVE);
    cr_expect_eq(nj_client_request_begin(c, &caps, now + NJ_SEC / 2, &after), NJ_ACTION_TOO_MANY);
    cr_expect_eq(after, 1);
    nj_clients_free(t);
}

/* Requests admitted under wider caps cause no longer debt than the new caps allow. */
Test(shape_client_table, other_caps_are_in_force_at_once)
{
    struct nj_clients *t = nj_clients_new(16);
    struct nj_client *c = nj_client_take(t, 1, NULL, 0);
    struct nj_client_caps slow = {.requests_per_s = 1, .requests_burst = 1000};
    struct nj_client_caps fast = {.requests_per_s = 100, .requests_burst = 100};
    uint32_t after;

    for (unsigned i = 0; i < 1000; i++)
        cr_assert_eq(nj_client_request_begin(c, &slow, NJ_SEC, &after), NJ_ACTION_SERVE);
    cr_expect_eq(nj_client_request_begin(c, &fast, NJ_SEC, &after), NJ_ACTION_TOO_MANY);
    cr_expect_eq(after, 1);
    cr_expect_eq(nj_client_request_begin(c, &fast, NJ_SEC + 10 * NJ_MS, &after), NJ_ACTION_SERVE);
    cr_expect_eq(nj_client_request_begin(c, &fast, NJ_SEC + 10 * NJ_MS, &after),
                 NJ_ACTION_TOO_MANY);
    nj_clients_free(t);
}

/* Clients without a slot do not lock each other out. */
Test(shape_client_table, the_rest_has_no_caps)
{
    struct nj_clients *t = nj_clients_new(16);
    struct nj_client *c = nj_clients_overflow_client(t);
    struct nj_client_caps caps = {.conns_max = 1, .streams_max = 1, .requests_per_s = 1};
    uint32_t after;

    for (unsigned i = 0; i < 10; i++) {
        cr_expect(nj_client_conn_begin(c, &caps));
        cr_expect_eq(nj_client_request_begin(c, &caps, NJ_SEC, &after), NJ_ACTION_SERVE);
    }
    nj_clients_free(t);
}

/* A client with many open streams that reads nothing is not first by bytes. */
Test(shape_client_table, top_by_what_is_open)
{
    struct nj_clients *t = nj_clients_new(64);
    struct nj_client_caps none = {0};
    uint32_t after;
    const struct nj_client *top[2];
    struct nj_client *c[3];

    for (uint64_t i = 0; i < 3; i++)
        c[i] = nj_client_take(t, (i + 1) * 7919, NULL, 0);
    c[0]->n_bytes = 1000000;
    for (unsigned i = 0; i < 5; i++)
        nj_client_request_begin(c[i % 3], &none, 1, &after);
    nj_client_request_begin(c[1], &none, 1, &after);
    nj_client_conn_begin(c[2], &none);
    cr_assert_eq(nj_clients_top(t, NJ_CLIENTS_BY_BYTES, top, 2), 2);
    cr_expect_eq(top[0], c[0]);
    cr_assert_eq(nj_clients_top(t, NJ_CLIENTS_BY_STREAMS, top, 2), 2);
    cr_expect(top[0] == c[1] && top[1] == c[0]);
    cr_assert_eq(nj_clients_top(t, NJ_CLIENTS_BY_CONNECTIONS, top, 2), 2);
    cr_expect_eq(top[0], c[2]);
    nj_clients_free(t);
}

Test(shape_client_table, top_by_bytes)
{
    struct nj_clients *t = nj_clients_new(64);
    for (uint64_t i = 1; i <= 40; i++)
        nj_client_take(t, i * 7919, NULL, 0)->n_bytes = (i * 17) % 41;
    const struct nj_client *top[5];
    cr_assert_eq(nj_clients_top(t, NJ_CLIENTS_BY_BYTES, top, 5), 5);
    for (unsigned i = 0; i < 5; i++)
        cr_expect_eq(top[i]->n_bytes, 40 - i);
    nj_clients_overflow_client(t)->n_bytes = 1000;
    cr_assert_eq(nj_clients_top(t, NJ_CLIENTS_BY_BYTES, top, 1), 1);
    cr_expect_eq(top[0], nj_clients_overflow_client(t));
    const struct nj_client *all[64];
    cr_expect_eq(nj_clients_top(t, NJ_CLIENTS_BY_BYTES, all, 64), 41);
    nj_clients_free(t);
}

/* ---- threads ---- */

enum { N_THREADS = 4, N_KEYS = 24, N_TURNS = 30000 };

static struct crowd {
    struct nj_clients *t;
    _Atomic uint32_t n_open[N_KEYS]; /* admitted requests */
    _Atomic uint32_t n_wrong, n_over;
} crowd;

/* Two entries for one key would admit twice the cap. */
static void *take_and_put(void *arg)
{
    struct nj_prng r;
    nj_prng_init(&r, (uint64_t)(uintptr_t)arg);
    struct nj_client_caps caps = {.streams_max = 2};
    for (nj_ns now = 1; now < N_TURNS; now++) {
        uint32_t k = nj_prng_below(&r, N_KEYS), after;
        struct nj_addr addr = addr_of(k);
        struct nj_client *c = nj_client_take(crowd.t, 1000 + k, &addr, now);
        if (!c)
            continue;
        struct nj_addr seen = nj_client_addr(c);
        crowd.n_wrong += !nj_addr_eq(&seen, &addr) || c->key != 1000 + k;
        if (nj_client_request_begin(c, &caps, now, &after) == NJ_ACTION_SERVE) {
            crowd.n_over += atomic_fetch_add(&crowd.n_open[k], 1) >= 2;
            (void)nj_gcra_reserve_bytes(&c->rate_gcra, 1000, 1000, 10, now);
            atomic_fetch_sub(&crowd.n_open[k], 1);
            nj_client_request_end(c);
        }
        nj_client_put(c, now);
    }
    return NULL;
}

static void run_threads(void *(*what)(void *), uint32_t n)
{
    pthread_t thread[N_THREADS];
    for (uintptr_t i = 0; i < n; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, what, (void *)(i + 1)), 0);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

Test(shape_client_table, threads_take_put_and_evict)
{
    crowd = (struct crowd){.t = nj_clients_new(16)};
    run_threads(take_and_put, N_THREADS);
    cr_expect_eq(crowd.n_wrong, 0);
    cr_expect_eq(crowd.n_over, 0);
    for (uint64_t k = 0; k < N_KEYS; k++) { /* no reference is left: all 16 slots can be taken */
        struct nj_client *c = nj_client_take(crowd.t, 5000 + k, NULL, 2 * N_TURNS);
        cr_assert_eq(c != NULL, k < 16, "key %lu", (unsigned long)k);
    }
    nj_clients_free(crowd.t);
}

enum { N_ROUNDS = 3000 };
static struct race {
    struct nj_clients *t;
    struct nj_client *got[N_THREADS][N_ROUNDS];
    _Atomic uint32_t arrived[N_ROUNDS];
} race;

/* All threads insert the same new client at once, round after round. */
static void *bring_at_once(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg - 1;
    for (uint32_t i = 0; i < N_ROUNDS; i++) {
        atomic_fetch_add(&race.arrived[i], 1);
        while (atomic_load(&race.arrived[i]) < 2)
            ;
        do /* the other thread may have been preempted for longer than the spin limit */
            race.got[me][i] = nj_client_take(race.t, 1 + i, NULL, i);
        while (!race.got[me][i]);
    }
    return NULL;
}

Test(shape_client_table, who_is_brought_in_twice_at_once_is_one)
{
    race.t = nj_clients_new(4 * N_ROUNDS);
    run_threads(bring_at_once, 2);
    for (uint32_t i = 0; i < N_ROUNDS; i++) {
        cr_assert_not_null(race.got[0][i]);
        cr_assert_eq(race.got[0][i], race.got[1][i], "round %u", i);
        cr_assert_eq(race.got[0][i]->n_refs, 2);
    }
    nj_clients_free(race.t);
}
