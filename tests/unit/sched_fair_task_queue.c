/* SPDX-License-Identifier: BSD-3-Clause */
/* Which client's task the next free worker gets. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "sched/fair_task_queue.h"

static struct nj_task_queue q;
static char keys[8][NJ_CACHE_LINE];

static struct nj_task *new_tasks(uint32_t n, const char *key)
{
    struct nj_task *t = calloc(n, sizeof *t);

    for (uint32_t i = 0; i < n; i++) {
        nj_list_init(&t[i].node);
        t[i].client = key;
    }
    return t;
}

Test(sched_fair_task_queue, one_client_in_order)
{
    struct nj_task *t = new_tasks(5, NULL);

    nj_task_queue_init(&q);
    cr_expect_null(nj_task_queue_first(&q));
    for (int i = 0; i < 5; i++)
        nj_task_queue_push(&q, &t[i]);
    nj_task_queue_remove(&q, &t[2]);
    cr_expect_eq(q.n, 4);
    for (int i = 0; i < 5; i++)
        if (i != 2)
            cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &t[i]);
    cr_expect(!nj_task_queue_pop_client_capped(&q, UINT32_MAX) && q.n == 0);
    free(t);
}

/* A client without a running task is served before clients with one, and behind clients that have
 * waited longer without one. */
Test(sched_fair_task_queue, the_first_task_of_a_client)
{
    struct nj_task *a = new_tasks(10, keys[0]), *b = new_tasks(3, keys[1]),
                   *c = new_tasks(1, keys[2]);

    nj_task_queue_init(&q);
    for (int i = 0; i < 10; i++)
        nj_task_queue_push(&q, &a[i]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &a[0]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &a[1]);
    for (int i = 0; i < 3; i++)
        nj_task_queue_push(&q, &b[i]);
    nj_task_queue_push(&q, c);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &b[0]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), c);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &a[2]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &b[1]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &a[3]);
    nj_task_queue_done(&q, &b[0]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &b[2], "its turn");
    free(a);
    free(b);
    free(c);
}

/* A task that a second client joins waits in the queue of the client whose turn is earlier. */
Test(sched_fair_task_queue, joined)
{
    struct nj_task *a = new_tasks(10, keys[0]), *b = new_tasks(4, keys[1]),
                   *c = new_tasks(1, keys[2]);

    nj_task_queue_init(&q);
    for (int i = 0; i < 10; i++)
        nj_task_queue_push(&q, &a[i]);
    for (int i = 0; i < 4; i++)
        nj_task_queue_push(&q, &b[i]);
    cr_expect_not(nj_task_queue_move_to_client(&q, &a[4], keys[1]),
                  "it would be the fifth there, too");
    cr_expect_not(nj_task_queue_move_to_client(&q, &a[9], keys[0]));
    cr_expect_eq(a[4].client, keys[0]);
    cr_expect(nj_task_queue_move_to_client(&q, &a[5], keys[1]));
    cr_expect_eq(a[5].client, keys[1]);
    cr_expect_eq(q.n, 14);
    cr_expect(nj_task_queue_move_to_client(&q, &a[9], keys[2]));
    cr_expect_eq(q.n_clients, 3);
    cr_expect_not(nj_task_queue_move_to_client(&q, &a[9], keys[1]), "it would be later there");
    cr_expect_not(nj_task_queue_move_to_client(&q, c, keys[3]), "it does not wait");

    struct nj_task *const order[] = {&a[0], &b[0], &a[9], &a[1], &b[1], &a[2], &b[2],
                                     &a[3], &b[3], &a[4], &a[5], &a[6], &a[7], &a[8]};
    for (size_t i = 0; i < NJ_ARRAY_LEN(order); i++)
        cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), order[i], "%zu", i);
    for (size_t i = 0; i < NJ_ARRAY_LEN(order); i++)
        nj_task_queue_done(&q, order[i]);
    cr_expect(q.n == 0 && q.n_clients == 0);
    free(a);
    free(b);
    free(c);
}

Test(sched_fair_task_queue, joined_by_who_has_nothing_with_a_worker)
{
    struct nj_task *a = new_tasks(2, keys[0]);

    nj_task_queue_init(&q);
    for (int i = 0; i < 2; i++)
        nj_task_queue_push(&q, &a[i]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &a[0]);
    cr_expect(nj_task_queue_move_to_client(&q, &a[1], keys[1]), "the first there as here");
    cr_expect_not(nj_task_queue_move_to_client(&q, &a[1], keys[0]));
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &a[1]);
    free(a);
}

/* A task is not moved to the queue of a client with very many tasks, at any position: the move
 * would count them. */
Test(sched_fair_task_queue, joined_by_who_has_many)
{
    enum { MOST = NJ_TASK_QUEUE_REASSIGN_MAX };
    struct nj_task *a = new_tasks(3 * MOST, keys[0]), *b = new_tasks(MOST + 1, keys[1]);

    nj_task_queue_init(&q);
    for (int i = 0; i < 3 * MOST; i++)
        nj_task_queue_push(&q, &a[i]);
    for (int i = 0; i <= MOST; i++)
        nj_task_queue_push(&q, &b[i]);
    cr_expect_not(nj_task_queue_move_to_client(&q, &a[3 * MOST - 1], keys[1]));
    nj_task_queue_remove(&q, &b[MOST]);
    cr_expect(nj_task_queue_move_to_client(&q, &a[3 * MOST - 1], keys[1]));
    free(a);
    free(b);
}

/* No client has more tasks with workers than the cap, also when its turn has come. */
Test(sched_fair_task_queue, no_more_than_so_many_of_a_client)
{
    struct nj_task *a = new_tasks(4, keys[0]), *b = new_tasks(3, keys[1]);

    nj_task_queue_init(&q);
    cr_expect_null(nj_task_queue_pop_client_capped(&q, 2));
    for (int i = 0; i < 4; i++)
        nj_task_queue_push(&q, &a[i]);
    cr_expect_null(nj_task_queue_pop_client_capped(&q, 0));
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, 2), &a[0]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, 2), &a[1]);
    cr_expect_null(nj_task_queue_pop_client_capped(&q, 2));
    for (int i = 0; i < 3; i++)
        nj_task_queue_push(&q, &b[i]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, 2), &b[0]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, 2), &b[1], "not a, though it is its turn");
    cr_expect_null(nj_task_queue_pop_client_capped(&q, 2));
    nj_task_queue_done(&q, &a[0]);
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, 2), &a[2]);
    cr_expect_eq(q.n, 2);
    free(a);
    free(b);
}

/* A full queue: a client with less than its share displaces tasks of the client with the most, the
 * last one first. */
Test(sched_fair_task_queue, displaced)
{
    struct nj_task *a = new_tasks(10, keys[0]), *b = new_tasks(6, keys[1]),
                   *c = new_tasks(4, keys[2]);

    nj_task_queue_init(&q);
    cr_expect_null(nj_task_queue_evict_from_longest(&q, &a[0]), "all are with workers");
    for (int i = 0; i < 10; i++)
        nj_task_queue_push(&q, &a[i]);
    cr_expect_null(nj_task_queue_evict_from_longest(&q, &a[9]), "its own");
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(nj_task_queue_evict_from_longest(&q, &b[i]), &a[9 - i]);
        cr_expect(a[9 - i].displaced && q.n == 9);
        nj_task_queue_push(&q, &b[i]);
    }
    cr_expect_null(nj_task_queue_evict_from_longest(&q, &b[5]), "half");
    cr_expect_eq(nj_task_queue_pop_client_capped(&q, UINT32_MAX), &a[0]);
    nj_task_queue_push(&q, &b[5]);
    for (int i = 0; i < 3; i++) {
        struct nj_task *out = nj_task_queue_evict_from_longest(&q, &c[i]);
        cr_expect(out && out != &c[i] && out->client != keys[2]);
        nj_task_queue_push(&q, &c[i]);
    }
    cr_expect_null(nj_task_queue_evict_from_longest(&q, &c[3]), "a third");
    cr_expect_eq(q.n_clients, 3);
    uint32_t n = 0;
    while (nj_task_queue_pop_client_capped(&q, UINT32_MAX))
        n++;
    cr_expect(n == 10 && q.n == 0 && q.n_clients == 0, "%u", n);
    free(a);
    free(b);
    free(c);
}

/* Clients that always have waiting tasks start the same number of tasks, within a tolerance. */
Test(sched_fair_task_queue, equal_shares_at_random)
{
    enum { CLIENTS = 5, TASKS = 2000, WORKERS = 4 };
    const char *given = getenv("NJ_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261123;
    struct nj_task *t[CLIENTS], *at[WORKERS] = {NULL};
    uint32_t n_began[CLIENTS] = {0};
    struct nj_prng prng;

    printf("NJ_SEED=%lu\n", (unsigned long)seed);
    nj_prng_init(&prng, seed);
    nj_task_queue_init(&q);
    for (int i = 0; i < CLIENTS; i++) {
        t[i] = new_tasks(TASKS, keys[i]);
        for (int k = 0; k < TASKS; k++)
            nj_task_queue_push(&q, &t[i][k]);
    }
    for (int n = 0; n < TASKS; n++) {
        uint32_t w = nj_prng_below(&prng, WORKERS);
        if (at[w])
            nj_task_queue_done(&q, at[w]);
        at[w] = nj_task_queue_pop_client_capped(&q, UINT32_MAX);
        uint32_t who = 0;
        while (at[w] < t[who] || at[w] >= t[who] + TASKS)
            who++;
        n_began[who]++;
    }
    for (int i = 0; i < CLIENTS; i++) {
        cr_expect(n_began[i] > TASKS / CLIENTS * 8 / 10 && n_began[i] < TASKS / CLIENTS * 12 / 10,
                  "%d: %u", i, n_began[i]);
        free(t[i]);
    }
}
