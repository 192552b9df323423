/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands between two threads: their order, their parts, and whose memory they are. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/command_ring.h"
#include "base/compiler.h"

#define N_MANY 20000u

struct order {
    struct nj_command command;
    uint32_t n_parts, number;
};

/* What the consumer has run: the target. */
struct ran {
    uint32_t n;
    uint64_t sum;  /* of their numbers */
    bool in_order; /* complete in that order */
};

static bool run(struct nj_command *command, void *target, nj_ns now)
{
    struct order *o = nj_container_of(command, struct order, command);
    struct ran *r = target;

    (void)now;
    if (--o->n_parts > 0)
        return false;
    r->in_order &= o->number == r->n;
    r->sum += o->number;
    r->n++;
    return true;
}

static struct order order(uint32_t number, uint32_t n_parts)
{
    return (struct order){{.run = run}, n_parts, number};
}

Test(base_command_ring, runs_in_order)
{
    struct nj_command_ring ring = {0};
    struct ran ran = {.in_order = true};
    struct order o[NJ_COMMANDS_MAX + 1];

    cr_expect_not(nj_command_ring_has_any(&ring));
    cr_expect_eq(nj_command_ring_run(&ring, &ran, 0), 0);
    for (uint32_t i = 0; i < NJ_COMMANDS_MAX; i++) {
        o[i] = order(i, 1);
        cr_assert(nj_command_ring_put(&ring, &o[i].command));
    }
    o[NJ_COMMANDS_MAX] = order(NJ_COMMANDS_MAX, 1);
    cr_expect_not(nj_command_ring_put(&ring, &o[NJ_COMMANDS_MAX].command), "it is full");
    cr_expect_eq(nj_command_ring_run(&ring, &ran, 0), NJ_COMMANDS_MAX);
    cr_expect(ran.n == NJ_COMMANDS_MAX && ran.in_order);
    cr_expect_not(nj_command_ring_has_any(&ring));
    cr_expect(nj_command_ring_put(&ring, &o[NJ_COMMANDS_MAX].command));
    cr_expect_eq(nj_command_ring_run(&ring, &ran, 0), 1);
    cr_expect(ran.in_order);
}

Test(base_command_ring, a_command_in_parts_does_not_hold_those_behind_it)
{
    struct nj_command_ring ring = {0};
    struct ran ran = {.in_order = true};
    struct order a = order(3, 3), b = order(0, 1), c = order(1, 2), d = order(2, 1);

    nj_command_ring_put(&ring, &a.command);
    nj_command_ring_put(&ring, &b.command);
    nj_command_ring_put(&ring, &c.command);
    cr_expect_eq(nj_command_ring_run(&ring, &ran, 0), 3);
    cr_expect(nj_command_is_done(&b.command) && !nj_command_is_done(&a.command));
    nj_command_ring_put(&ring, &d.command);
    b = order(0, 1); /* it is the test's again, and the ring has no pointer to it */
    cr_expect_eq(nj_command_ring_run(&ring, &ran, 0), 3);
    cr_expect(nj_command_is_done(&c.command) && nj_command_is_done(&d.command));
    cr_expect(nj_command_ring_has_any(&ring) && !nj_command_is_done(&a.command));
    cr_expect_eq(nj_command_ring_run(&ring, &ran, 0), 1);
    cr_expect(nj_command_is_done(&a.command) && !nj_command_ring_has_any(&ring));
    cr_expect(ran.n == 4 && ran.in_order);
}

static struct nj_command_ring shared;

static void *consume(void *target)
{
    struct ran *r = target;

    while (r->n < N_MANY)
        if (!nj_command_ring_has_any(&shared) || nj_command_ring_run(&shared, r, 0) == 0)
            sched_yield();
    return NULL;
}

/* Each command has memory of its own, which is freed as soon as it is done. */
Test(base_command_ring, between_threads)
{
    struct order *out[NJ_COMMANDS_MAX] = {NULL};
    struct ran ran = {0};
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, consume, &ran), 0);
    for (uint32_t i = 0; i < N_MANY; i++) {
        struct order **at = &out[i % NJ_COMMANDS_MAX];
        while (*at && !nj_command_is_done(&(*at)->command))
            sched_yield();
        free(*at);
        *at = malloc(sizeof **at);
        **at = order(i, 1 + i % 3);
        while (!nj_command_ring_put(&shared, &(*at)->command))
            sched_yield();
    }
    pthread_join(thread, NULL);
    cr_expect(ran.n == N_MANY && ran.sum == (uint64_t)N_MANY * (N_MANY - 1) / 2);
    for (uint32_t i = 0; i < NJ_COMMANDS_MAX; i++)
        free(out[i]);
}
