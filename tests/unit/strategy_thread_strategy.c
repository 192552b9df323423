/* SPDX-License-Identifier: BSD-3-Clause */
/* Strategies of threads: which mode, which thread produces, refusals and the end. */
#include "strategy_rig.h"

/* --- which mode ------------------------------------------------------------------------------- */

/* The twelve rows. EWYK 5.20, EWYK 5.21, EWYK 5.22, EWYK 5.23 */
Test(strategy_thread_strategy, mode_table)
{
    enum { PC = NJ_MODE_PC, PIC = NJ_MODE_PIC, EPC = NJ_MODE_EPC_INLINE, PEC = NJ_MODE_PEC_WORKER };
    static const struct {
        enum nj_task_type type;
        bool must_not_block, recruit;
        int mode;
    } rows[] = {
        {NJ_NON_BLOCKING, false, false, PC}, {NJ_NON_BLOCKING, false, true, PC},
        {NJ_NON_BLOCKING, true, false, PC},  {NJ_NON_BLOCKING, true, true, PC},
        {NJ_EITHER, false, false, PIC},      {NJ_EITHER, false, true, EPC},
        {NJ_EITHER, true, false, PC},        {NJ_EITHER, true, true, PC},
        {NJ_BLOCKING, false, false, PEC},    {NJ_BLOCKING, false, true, EPC},
        {NJ_BLOCKING, true, false, PEC},     {NJ_BLOCKING, true, true, PEC},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++)
        cr_expect_eq((int)nj_run_mode_choose(rows[i].type, rows[i].must_not_block, rows[i].recruit),
                     rows[i].mode, "row %zu", i);
}

/* All combinations of 3 types, tagged or not, a queued recruit (which does not count) or none, and
 * a waiting thread or none: which counter grows, how often a thread is requested, where the task
 * runs, with which tag. EWYK 5.20, EWYK 5.21, EWYK 5.22, EWYK 5.23, EWYK 5.25, EWYK 5.31 */
Test(strategy_thread_strategy, adaptive_by_all_that_matters)
{
    for (unsigned bits = 0; bits < 24; bits++) {
        enum nj_task_type type = (enum nj_task_type)(NJ_NON_BLOCKING + bits / 8);
        bool tagged = bits & 1, queued = bits & 2, waiting = bits & 4;
        struct world *w = world(NJ_STRATEGY_ADAPTIVE);

        if (queued)
            nj_reference_produce_elsewhere(&w->s);
        unsigned n_execute = w->n_execute;
        struct task *t = add(w, type);
        w->n_waiting = waiting;
        bool before = tagged && nj_noblock_enter();
        nj_reference_produce(&w->s);
        cr_assert_eq(nj_noblock_is_set(), tagged, "the tag is unchanged");
        nj_noblock_leave(before);

        enum nj_run_mode mode = nj_run_mode_choose(type, tagged, waiting);
        struct nj_strategy_counters c = nj_strategy_counters(&w->s);
        cr_assert_eq(c.pc, mode == NJ_MODE_PC, "%u", bits);
        cr_assert_eq(c.pic, mode == NJ_MODE_PIC, "%u", bits);
        cr_assert_eq(c.epc, mode == NJ_MODE_EPC_INLINE, "%u", bits);
        cr_assert_eq(c.pec, mode == NJ_MODE_PEC_WORKER, "%u", bits);
        bool may_try = type != NJ_NON_BLOCKING && !tagged;
        cr_assert_eq(w->n_try, may_try, "%u requests at %u", w->n_try, bits);
        cr_assert_eq(w->n_execute - n_execute, mode == NJ_MODE_PEC_WORKER, "%u", bits);
        cr_assert_eq(t->n_run, mode != NJ_MODE_PEC_WORKER, "%u", bits);
        cr_assert_eq(t->tag, mode == NJ_MODE_PC || mode == NJ_MODE_PIC, "%u", bits);
        run_queue(w);
        run_handed(w);
        cr_assert_eq(t->n_run, 1);
        cr_assert_eq(word(w), IDLE_0, "%u", bits);
    }
}

/* EWYK 5.24 */
Test(strategy_thread_strategy, untyped_is_blocking)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_UNTYPED);
    add(w, NJ_OS_BLOCKING); /* a thread may block: as BLOCKING */
    nj_reference_produce(&w->s);
    cr_assert_eq(nj_strategy_counters(&w->s).pec, 2);
}

/* The state is IDLE before a recruit is sent for, so a recruit that arrives at once produces.
 * EWYK 5.27 */
Test(strategy_thread_strategy, recruit_that_comes_at_once)
{
    for (int more = 0; more < 2; more++) {
        struct world *w = world(NJ_STRATEGY_ADAPTIVE);
        struct task *first = add(w, NJ_BLOCKING);

        if (more)
            add(w, NJ_NON_BLOCKING);
        w->n_waiting = 1;
        w->hasty = true;
        nj_reference_produce(&w->s);
        struct nj_strategy_counters c = nj_strategy_counters(&w->s);
        cr_assert(c.epc == 1 && c.pc == (uint64_t)more && c.pec == 0);
        cr_assert(c.recruits_sent == 1 && c.recruits_missed == 0);
        cr_assert_eq(c.recruits_useful, more, "the others find no task");
        cr_assert_eq(c.recruits_wasted, !more);
        cr_assert_eq(w->n_produce, 3 + more, "the consumer produces again after its task");
        cr_assert_eq(word(w), IDLE_0);
        cr_assert_eq(first->n_run, 1);
    }
}

/* No thread waits, and another caller became the producer meanwhile: it replaces a recruit. */
static void other_comes(struct world *w)
{
    cr_assert(nj__state_try_become_producer(&w->s.word, NJ__RECRUIT_NONE));
}

Test(strategy_thread_strategy, other_producer_in_place_of_a_recruit)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_BLOCKING);
    w->at_try = other_comes;
    nj_reference_produce(&w->s);
    struct nj_strategy_counters c = nj_strategy_counters(&w->s);
    cr_assert(c.epc == 1 && c.pec == 0 && c.recruits_missed == 1 && c.recruits_sent == 0);
    cr_assert_eq(word(w), nj__state_pack(NJ__STATE_PRODUCING, NJ__RECRUIT_NONE),
                 "the other caller is the producer");
}

/* All threads are busy, so a queued recruit may never run. A producer that relied on it, and
 * consumed a task that blocks, would leave the next tasks without a thread. EWYK 5.9, EWYK 5.12 */
Test(strategy_thread_strategy, recruit_in_the_queue_is_not_counted_on)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    cr_assert(nj_reference_produce_elsewhere(&w->s));
    cr_assert_eq(nj_strategy_counters(&w->s).recruits_sent, 1);
    for (unsigned i = 0; i < 4; i++)
        add(w, NJ_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_produced, 4);
    cr_assert_eq(nj_strategy_counters(&w->s).pec, 4);
    cr_assert_eq(word(w), nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_QUEUED));
    run_queue(w);
    cr_assert_eq(word(w), IDLE_0);
}

/* EWYK 5.28 */
Test(strategy_thread_strategy, counters_add_up)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    for (unsigned i = 0; i < 12; i++)
        add(w, (enum nj_task_type)(NJ_NON_BLOCKING + i % 3));
    nj_reference_produce(&w->s); /* no thread is reserved */
    struct nj_strategy_counters c = nj_strategy_counters(&w->s);
    cr_assert(c.epc == 0 && c.pc == 4 && c.pic == 4 && c.pec == 4);

    nj_reference_produce_elsewhere(&w->s);
    for (unsigned i = 0; i < 5; i++)
        add(w, NJ_NON_BLOCKING);
    run_queue(w);
    c = nj_strategy_counters(&w->s);
    cr_assert(c.epc == 0 && c.pc == 9 && c.pic == 4 && c.pec == 4);
}

/* --- which thread produces
 * ------------------------------------------------------------------------------ */

static void recruit_comes(struct world *w, struct task *t)
{
    (void)t;
    run_handed(w);
}

/* The consumer finds, after its task, that another thread produces, and leaves. The first task runs
 * the recruit, which produces in the middle of it. EWYK 5.30, EWYK 5.5 */
Test(strategy_thread_strategy, consumer_leaves_when_others_produce)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_BLOCKING)->body = recruit_comes; /* in its midst the recruit produces the next ... */
    struct task *second = add(w, NJ_NON_BLOCKING);
    w->n_waiting = 1;
    nj_reference_produce(&w->s);
    cr_assert_eq(second->n_run, 1); /* ... and leaves IDLE; so the consumer produces again */
    cr_assert_eq(w->n_produce, 4);
    cr_assert_eq(word(w), IDLE_0);

    /* The other thread stays the producer: the test sets that state directly. */
    w = world(NJ_STRATEGY_ADAPTIVE);
    nj__state_word *s = &w->s.word;
    cr_assert(nj__state_try_become_producer(s, NJ__RECRUIT_NONE));
    atomic_store(s, nj__state_pack(NJ__STATE_PRODUCING, 1));
    cr_assert_not(nj__state_try_resume(s, false));
    atomic_store(s, nj__state_pack(NJ__STATE_REPRODUCING, 0));
    cr_assert_not(nj__state_try_resume(s, false));
    atomic_store(s, nj__state_pack(NJ__STATE_IDLE, 1));
    cr_assert(nj__state_try_resume(s, false));
    cr_assert_eq(atomic_load(s), nj__state_pack(NJ__STATE_PRODUCING, 1));
}

static void others_come(struct world *w, struct task *t)
{
    (void)t;
    other_comes(w);
    run_handed(w);
}

Test(strategy_thread_strategy, recruit_that_finds_another_producer)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_BLOCKING)->body = others_come;
    w->n_waiting = 1;
    nj_reference_produce(&w->s);
    struct nj_strategy_counters c = nj_strategy_counters(&w->s);
    cr_assert(c.recruits_sent == 1 && c.recruits_useful == 0 && c.recruits_wasted == 1);
    cr_assert_eq(word(w), nj__state_pack(NJ__STATE_REPRODUCING, NJ__RECRUIT_NONE),
                 "the other producer produces once more");
}

/* A pending recruit is used for every task until it runs. EWYK 5.25 */
Test(strategy_thread_strategy, one_recruit_for_many_tasks)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    for (unsigned i = 0; i < 10; i++)
        add(w, NJ_BLOCKING);
    w->n_waiting = 10;
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_try, 1);
    cr_assert_eq(nj_strategy_counters(&w->s).epc, 10);
    cr_assert_eq(word(w), nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_SURE));
    run_handed(w); /* no task is left: the recruit runs, finds none and leaves. EWYK 5.17 */
    cr_assert_eq(word(w), IDLE_0);
    cr_assert_eq(nj_strategy_counters(&w->s).recruits_wasted, 1);
    add(w, NJ_NON_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->tasks[10].n_run, 1);
}

static void add_and_ask(struct world *w, struct task *found)
{
    if (!found && w->n_tasks < 3) { /* after the queue was found empty, before IDLE */
        add(w, NJ_NON_BLOCKING);
        cr_assert(nj_reference_produce_elsewhere(&w->s));
    }
}

/* EWYK 5.9, EWYK 5.10 */
Test(strategy_thread_strategy, asked_between_none_and_idle)
{
    for (int kind = 0; kind < NJ_N_STRATEGIES; kind++) {
        struct world *w = world((enum nj_strategy_kind)kind);

        w->at_produce = add_and_ask;
        nj_reference_produce(&w->s);
        cr_assert_eq(w->n_tasks, 3);
        cr_assert_eq(w->tasks[2].n_run, 1);
        cr_assert_eq(w->n_execute, 0, "the producer itself produces once more");
        cr_assert_eq(word(w), IDLE_0);
    }
}

static void ask_in_production(struct world *w, struct task *found)
{
    if (found == &w->tasks[0])
        nj_reference_produce_elsewhere(&w->s); /* REPRODUCING, which EPC sets back to IDLE */
}

/* A producer without more tasks requests no thread; its consumer calls it again afterwards. */
Test(strategy_thread_strategy, nothing_more_to_produce)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    w->producer.has_more = has_more;
    w->n_waiting = 1;
    struct task *t = add(w, NJ_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(t->n_run, 1);
    cr_assert_eq(w->n_try, 0);
    cr_assert_eq(w->n_produce, 2, "the consumer has come back");
    cr_assert_eq(nj_strategy_counters(&w->s).epc, 1);
    cr_assert_eq(nj_strategy_counters(&w->s).recruits_spared, 1);
    cr_assert_eq(word(w), IDLE_0);
    w->is_more = true;
    add(w, NJ_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_try, 1);
    run_handed(w);
}

static void dispatches(struct world *w, struct task *t)
{
    (void)t;
    cr_assert(nj_reference_produce_elsewhere(&w->s));
    cr_assert_eq(nj__state_recruit_mask(word(w)), NJ__RECRUIT_QUEUED,
                 "the caller that adds a task requests a thread");
}

static void dispatches_too_early(struct world *w)
{
    cr_assert(nj_reference_produce_elsewhere(&w->s));
}

/* A caller that adds a task while no recruit is under way finds production IDLE. A caller that adds
 * one just before makes the consumer request a thread. EWYK 5.9, EWYK 5.10 */
Test(strategy_thread_strategy, task_comes_after_nothing_more)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    w->producer.has_more = has_more;
    w->n_waiting = 1;
    add(w, NJ_BLOCKING)->body = dispatches;
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_queued, 1);
    run_queue(w);

    w->at_has_more = dispatches_too_early;
    add(w, NJ_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_try, 1, "production was requested, so a thread has to run it");
    run_handed(w);
    cr_assert_eq(word(w), IDLE_0);
}

/* A thread that must not wait sends its recruits by post(). */
Test(strategy_thread_strategy, recruits_are_posted)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);
    struct nj_strategy_config config = w->s.config;

    config.uses_post = true;
    nj_reference_init(&w->s, &config);
    struct task *t = add(w, NJ_BLOCKING);
    cr_assert(nj_reference_produce_elsewhere(&w->s));
    cr_assert_eq(w->n_posted, 1);
    run_queue(w);
    cr_assert_eq(t->n_run + w->n_queued, 1);
}

/* EWYK 5.11 */
Test(strategy_thread_strategy, demand_survives_epc)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_BLOCKING);
    w->n_waiting = 1;
    w->at_produce = ask_in_production;
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_produce, 2, "after its task the consumer calls the producer again");
    run_handed(w);
    cr_assert_eq(w->n_produce, 3, "and so does the recruit");
}

/* A producer that fails returns NULL, and can go on later. EWYK 5.6 */
Test(strategy_thread_strategy, failure_to_produce_is_none)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    cr_assert(nj_reference_produce(&w->s));
    cr_assert_eq(w->n_produce, 1);
    cr_assert_eq(word(w), IDLE_0);
    add(w, NJ_NON_BLOCKING);
    cr_assert(nj_reference_produce(&w->s));
    cr_assert_eq(w->tasks[0].n_run, 1);
}

/* --- refusals, the end -------------------------------------------------------------------------
 */

/* EWYK 5.3, EWYK 5.49 */
Test(strategy_thread_strategy, rejected_task)
{
    struct world *w = world(NJ_STRATEGY_PEC);

    for (unsigned i = 0; i < 3; i++)
        add(w, NJ_BLOCKING);
    w->refuses = true;
    nj_reference_produce(&w->s);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(w->tasks[i].n_rejected, 1);
        cr_assert_eq(w->tasks[i].n_run, 0);
    }
    cr_assert_eq(nj_strategy_counters(&w->s).rejected, 3);
}

/* EWYK 5.50 */
Test(strategy_thread_strategy, rejected_dispatch)
{
    for (int kind = 0; kind < NJ_N_STRATEGIES; kind++) {
        struct world *w = world((enum nj_strategy_kind)kind);

        add(w, NJ_NON_BLOCKING);
        w->refuses = true;
        cr_assert_not(nj_reference_produce_elsewhere(&w->s));
        cr_assert_eq(word(w), IDLE_0);
        w->refuses = false;
        cr_assert(nj_reference_produce_elsewhere(&w->s));
        run_queue(w);
        cr_assert_eq(w->tasks[0].n_run, 1);
        cr_assert_eq(nj_strategy_counters(&w->s).dispatch_rejected, 1);
    }
}

/* The pool accepts the recruit, and is stopped before the recruit runs. EWYK 5.50 */
Test(strategy_thread_strategy, accepted_recruit_is_rejected_later)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    cr_assert(nj_reference_produce_elsewhere(&w->s));
    w->queue[--w->n_queued]->ops->reject(w->queue[0]);
    cr_assert_eq(word(w), IDLE_0);
    nj_reference_stop(&w->s);
    cr_assert_eq(w->n_stopped, 1, "no reference is left");
}

static void stop_it(struct world *w, struct task *t)
{
    (void)t;
    nj_reference_stop(&w->s);
    cr_assert_eq(w->n_stopped, 0, "we are inside");
    cr_assert_not(nj_reference_restart(&w->s), "refused while a thread is inside");
}

/* EWYK 5.51, EWYK 5.52 */
Test(strategy_thread_strategy, stop_and_restart)
{
    for (int kind = 0; kind < NJ_N_STRATEGIES; kind++) {
        struct world *w = world((enum nj_strategy_kind)kind);

        add(w, NJ_NON_BLOCKING)->body = stop_it;
        add(w, NJ_NON_BLOCKING);
        cr_assert_not(nj_reference_restart(&w->s), "it runs");
        nj_reference_produce(&w->s);
        cr_assert_eq(w->n_produce, 1, "no task is produced after the stop");
        cr_assert_eq(w->n_stopped, 1);
        cr_assert_not(nj_reference_produce(&w->s));
        cr_assert_not(nj_reference_produce_elsewhere(&w->s));
        cr_assert_eq(w->n_produce, 1);
        cr_assert(nj_reference_restart(&w->s));
        nj_reference_produce(&w->s);
        cr_assert_eq(w->tasks[1].n_run, 1);
        nj_reference_stop(&w->s);
        cr_assert_eq(w->n_stopped, 2);
    }
}

static void stop_it_twice(struct world *w, struct task *t)
{
    stop_it(w, t);
    stop_it(w, t);
}

/* Two calls of stop return the owner's reference once. EWYK 5.51 */
Test(strategy_thread_strategy, stop_twice)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_NON_BLOCKING)->body = stop_it_twice;
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_stopped, 1);
}

/* With a recruit under way, and one that runs after the stop. EWYK 5.51 */
Test(strategy_thread_strategy, stop_with_a_recruit_under_way)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_BLOCKING);
    w->n_waiting = 1;
    nj_reference_produce(&w->s);
    nj_reference_stop(&w->s);
    cr_assert_eq(w->n_stopped, 0);
    unsigned n_produce = w->n_produce;
    run_handed(w);
    cr_assert_eq(w->n_produce, n_produce);
    cr_assert_eq(w->n_stopped, 1);
}

static void read_counters(struct world *w, struct task *t)
{
    (void)t;
    struct nj_strategy_counters c = nj_strategy_counters(&w->s);
    cr_assert(c.epc == 1 && c.pc + c.pic + c.pec == 0);
    cr_assert_eq(word(w), nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_SURE));
}

/* The counters can be read in the middle of a task, while another thread may produce: there is no
 * lock. EWYK 5.53 */
Test(strategy_thread_strategy, counters_in_a_task)
{
    struct world *w = world(NJ_STRATEGY_ADAPTIVE);

    add(w, NJ_BLOCKING)->body = read_counters;
    w->n_waiting = 1;
    nj_reference_produce(&w->s);
    cr_assert_eq(w->tasks[0].n_run, 1);
}

/* --- the older ones ----------------------------------------------------------------------------
 */

Test(strategy_thread_strategy, pc_runs_all_inline)
{
    struct world *w = world(NJ_STRATEGY_PC);

    for (int type = NJ_NON_BLOCKING; type <= NJ_OS_BLOCKING; type++)
        add(w, (enum nj_task_type)type);
    nj_reference_produce(&w->s);
    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(w->tasks[i].n_run, 1);
    cr_assert(w->tasks[0].tag && w->tasks[1].tag && !w->tasks[2].tag);
    cr_assert_eq(w->n_try + w->n_execute, 0);
}

Test(strategy_thread_strategy, pec_queues_what_may_block)
{
    struct world *w = world(NJ_STRATEGY_PEC);

    for (int type = NJ_NON_BLOCKING; type <= NJ_BLOCKING; type++)
        add(w, (enum nj_task_type)type);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_queued, 1);
    cr_assert_eq(w->tasks[0].n_run + w->tasks[1].n_run, 2);
    run_queue(w);
    cr_assert(w->tasks[2].n_run == 1 && w->n_try == 0);
}

/* The recruit is queued, and the task runs at once. If the recruit is refused, production continues
 * after the task. */
Test(strategy_thread_strategy, epc_queues_production)
{
    struct world *w = world(NJ_STRATEGY_EPC);

    add(w, NJ_BLOCKING);
    add(w, NJ_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_queued, 1, "one recruit for both");
    cr_assert_eq(w->tasks[0].n_run + w->tasks[1].n_run, 2);
    run_queue(w);
    cr_assert_eq(word(w), IDLE_0);
    w->refuses = true;
    add(w, NJ_BLOCKING);
    add(w, NJ_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->tasks[2].n_run + w->tasks[3].n_run, 2);
    cr_assert_eq(word(w), IDLE_0);
    cr_assert_eq(w->n_try, 0);
}
