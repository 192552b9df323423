/* SPDX-License-Identifier: BSD-3-Clause */
/* Strategies of threads whose tasks produce for another strategy, or for their own. */
#include "strategy_rig.h"

/* --- chains ------------------------------------------------------------------------------------
 */

static struct world inner_world;

/* A second world: world() has one of its own. */
static struct world *inner(void)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);
    struct nj_strategy_config config = w->s.config;

    inner_world = *w;
    config.producer = &inner_world.producer;
    config.executor = &inner_world.executor;
    config.ctx = &inner_world;
    nj_reference_init(&inner_world.s, &config);
    return &inner_world;
}

static void produce_inner(struct world *w, struct task *t)
{
    (void)w, (void)t;
    nj_reference_produce(&inner_world.s);
}

/* Outer: connections, EITHER. Inner: requests. Without a recruit requests are queued, control
 * frames (handled in the producer) are not; with one they run on the same stack. EWYK 5.35 */
Test(strategy_thread_strategy_chains, two_levels)
{
    for (unsigned waiting = 0; waiting < 2; waiting++) {
        struct world *in = inner();
        struct world *out = world(NJ_STRATEGY_ADAPTIVE);

        add(out, NJ_EITHER)->body = produce_inner;
        struct task *request = add(in, NJ_BLOCKING), *control = add(in, NJ_NON_BLOCKING);
        out->n_waiting = in->n_waiting = waiting;
        nj_reference_produce(&out->s);
        cr_assert_eq(control->n_run, 1);
        cr_assert_eq(request->n_run, waiting);
        cr_assert_eq(in->n_queued, !waiting);
        cr_assert_eq(in->n_execute + out->n_execute, !waiting, "no hand-over with a recruit");
        if (waiting)
            cr_assert_eq(request->depth, 2, "on the stack of the outer strategy's task");
        run_queue(in);
        run_handed(out);
        run_handed(in);
        cr_assert_eq(request->n_run, 1);
    }
}

/* An upgrade: a NON_BLOCKING task creates a strategy and starts it. The tasks that it produces do
 * not block the producer, although a thread waits. EWYK 5.34, EWYK 5.31 */
Test(strategy_thread_strategy_chains, nested_in_non_blocking)
{
    for (int kind = NJ_STRATEGY_PC; kind < NJ_N_STRATEGIES; kind++) {
        struct world *in = inner();
        struct world *out = world((enum nj_strategy_kind)kind);

        add(out, NJ_NON_BLOCKING)->body = produce_inner;
        struct task *request = add(in, NJ_BLOCKING);
        in->n_waiting = out->n_waiting = 1;
        nj_reference_produce(&out->s);
        cr_assert_eq(request->n_run, 0, "it does not run inline");
        cr_assert_eq(in->n_queued, 1);
        cr_assert_not(nj_noblock_is_set());
        run_queue(in);
        cr_assert_eq(request->n_run, 1);
        cr_assert_not(request->tag);
    }
}

static unsigned n_demands;

static void demand_one_more(struct world *w, struct task *t)
{
    unsigned depth = 0;

    for (const struct nj__frame *f = nj__strategy_frame_top(); f; f = f->below)
        depth++;
    cr_assert_eq(depth, 1, "a task runs inside of another");
    if (--n_demands) {
        w->n_tasks = w->n_produced = 0; /* the same one again */
        add(w, t->type)->body = demand_one_more;
        cr_assert(nj_reference_produce(&w->s));
    }
}

/* EWYK 5.36, EWYK 5.37 */
Test(strategy_thread_strategy_chains, tasks_that_demand_do_not_recurse)
{
    for (int type = NJ_NON_BLOCKING; type <= NJ_BLOCKING; type++)
        for (unsigned waiting = 0; waiting < 2; waiting++) {
            struct world *w = world(NJ_STRATEGY_ADAPTIVE);

            n_demands = 200000; /* at 48 bytes each they would overflow a stack of 8 MiB */
            w->n_waiting = waiting;
            add(w, (enum nj_task_type)type)->body = demand_one_more;
            nj_reference_produce(&w->s);
            while (n_demands) {
                run_queue(w);
                run_handed(w);
            }
        }
}

static struct world *outermost;

static void produce_outermost(struct world *w, struct task *t)
{
    (void)w, (void)t;
    nj_reference_produce(&outermost->s);
    cr_assert_eq(outermost->n_produced, 1, "it became the producer");
}

/* A task of another strategy, in the middle of a task of this one. EWYK 5.36, EWYK 5.37 */
Test(strategy_thread_strategy_chains, the_task_below_counts)
{
    struct world *in = inner();
    struct world *out = outermost = world(NJ_STRATEGY_ADAPTIVE);

    add(out, NJ_BLOCKING)->body = produce_inner; /* production is IDLE while it runs */
    add(out, NJ_NON_BLOCKING);
    add(in, NJ_NON_BLOCKING)->body = produce_outermost;
    out->n_waiting = 1;
    nj_reference_produce(&out->s);
    cr_assert_eq(in->tasks[0].n_run, 1);
    cr_assert_eq(out->tasks[1].n_run, 1, "by the first consumer");
}

static void nest(struct world *w, struct task *t)
{
    struct nj_strategy *next = (struct nj_strategy *)(uintptr_t)w->queue[TASKS_MAX - 1];

    (void)t;
    cr_assert(nj__strategy_frame_top()->depth <= NJ_STRATEGY_DEPTH_MAX);
    if (next)
        nj_reference_produce(next);
}

/* A chain of different strategies ends, too: the last one is dispatched. EWYK 5.36 */
Test(strategy_thread_strategy_chains, chain_is_bounded)
{
    enum { N = NJ_STRATEGY_DEPTH_MAX + 1 };
    static struct world chain[N];

    for (unsigned i = 0; i < N; i++) {
        chain[i] = *inner();
        struct nj_strategy_config config = inner_world.s.config;
        config.producer = &chain[i].producer;
        config.executor = &chain[i].executor;
        nj_reference_init(&chain[i].s, &config);
        add(&chain[i], NJ_NON_BLOCKING)->body = nest;
    }
    for (unsigned i = 0; i + 1 < N; i++)
        chain[i].queue[TASKS_MAX - 1] = (struct nj_task *)&chain[i + 1].s;
    nj_reference_produce(&chain[0].s);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(chain[i].tasks[0].n_run, i < NJ_STRATEGY_DEPTH_MAX, "%u", i);
    cr_assert_eq(chain[N - 1].n_queued, 1, "it was dispatched");
    run_queue(&chain[N - 1]);
    cr_assert_eq(chain[N - 1].tasks[0].n_run, 1);
}
