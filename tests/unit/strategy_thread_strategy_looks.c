/* SPDX-License-Identifier: BSD-3-Clause */
/* A recruit that finds another producer: how long it polls for the state IDLE. The test replaces
 * the pause between two polls by a change of the state, as by another thread. */
#include <criterion/criterion.h>

#include "base/compiler.h"

static void relax(void);

#define nj_cpu_relax relax
#include "reference/strategies.h"
#include "strategy/thread_strategy.c"
#undef nj_cpu_relax

static struct {
    struct nj_strategy s;
    struct nj_producer producer;
    uint32_t n_relaxed, idle_after;
    unsigned n_produce;
} w;

static void relax(void)
{
    if (++w.n_relaxed == w.idle_after)
        atomic_store(&w.s.word, nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_SURE));
}

static struct nj_task *produce(struct nj_producer *p)
{
    static const struct nj_task_ops ops;
    static struct nj_task task = {.ops = &ops};

    (void)p;
    return w.n_produce++ == 0 ? &task : NULL;
}

static bool execute(struct nj_executor *e, struct nj_task *task)
{
    (void)e, (void)task;
    return true;
}

/* A recruit arrives while another thread produces. */
static struct nj_strategy_counters arrive_at_producer(uint32_t idle_after)
{
    static const struct nj_executor_ops ops = {.execute = execute};
    static struct nj_executor executor = {&ops};
    struct nj_strategy_config config = {
        .consume = nj_consume_pec, .producer = &w.producer, .executor = &executor};

    w.producer.produce = produce;
    w.idle_after = idle_after;
    nj_reference_init(&w.s, &config);
    atomic_store(&w.s.word, nj__state_pack(NJ__STATE_PRODUCING, NJ__RECRUIT_SURE));
    atomic_fetch_add(&w.s.n_refs, 1); /* the recruit's */
    w.s.sure_recruit.ops->run(&w.s.sure_recruit);
    return nj_strategy_counters(&w.s);
}

Test(strategy_thread_strategy_looks, it_takes_over)
{
    struct nj_strategy_counters c = arrive_at_producer(3);

    cr_assert(c.recruits_useful == 1 && c.recruits_wasted == 0);
    cr_assert_eq(w.n_relaxed, 3, "and polls no longer");
    cr_assert_eq(atomic_load(&w.s.word), nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_NONE));
}

Test(strategy_thread_strategy_looks, it_leaves)
{
    struct nj_strategy_counters c = arrive_at_producer(1000);

    cr_assert(c.recruits_useful == 0 && c.recruits_wasted == 1);
    cr_assert_eq(w.n_relaxed, LOOKS);
    cr_assert_eq(atomic_load(&w.s.word), nj__state_pack(NJ__STATE_REPRODUCING, NJ__RECRUIT_NONE));
}
