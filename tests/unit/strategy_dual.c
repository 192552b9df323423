/* SPDX-License-Identifier: BSD-3-Clause */
/* The dual strategy: when one of its two threads produces alone, sleeps or leaves. tests/explore
 * covers every order of threads. */
#include "strategy_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "strategy/thread_pool.h"

/* --- on one thread -----------------------------------------------------------------------------
 */

/* Another thread joins and sleeps. */
static void one_sits(struct world *w, struct task *found)
{
    if (found == &w->tasks[0])
        cr_assert_eq(nj__state_join(&w->s.word, NJ__RECRUIT_NONE), 0);
}

/* All combinations of 3 types, tagged or not, and another thread that sleeps or not: which counter
 * grows, what is queued, where the task runs, with which tag. EWYK 5.20, EWYK 5.21, EWYK 5.22,
 * EWYK 5.31 */
Test(strategy_dual, by_all_that_matters)
{
    for (unsigned bits = 0; bits < 12; bits++) {
        enum nj_task_type type = (enum nj_task_type)(NJ_NON_BLOCKING + bits / 4);
        bool tagged = bits & 1, sleeper = bits & 2;
        struct world *w = world(NJ_STRATEGY_DUAL);
        struct task *t = add(w, type);

        w->at_produce = sleeper ? one_sits : NULL;
        bool before = tagged && nj_noblock_enter();
        nj_reference_produce(&w->s);
        cr_assert_eq(nj_noblock_is_set(), tagged, "the tag is unchanged");
        nj_noblock_leave(before);

        enum nj_run_mode mode = nj_run_mode_choose(type, tagged, sleeper);
        bool matters = type != NJ_NON_BLOCKING && !tagged;
        struct nj_strategy_counters c = nj_strategy_counters(&w->s);
        cr_assert_eq(c.pc, mode == NJ_MODE_PC, "%u", bits);
        cr_assert_eq(c.pic, mode == NJ_MODE_PIC, "%u", bits);
        cr_assert_eq(c.epc, mode == NJ_MODE_EPC_INLINE, "%u", bits);
        cr_assert_eq(c.pec, mode == NJ_MODE_PEC_WORKER, "%u", bits);
        cr_assert_eq(c.recruits_sent, matters, "%u", bits);
        cr_assert_eq(w->n_execute, matters + (mode == NJ_MODE_PEC_WORKER), "%u", bits);
        cr_assert_eq(w->n_try, 0, "no reserved thread is requested");
        cr_assert_eq(t->n_run, mode != NJ_MODE_PEC_WORKER, "%u", bits);
        cr_assert_eq(t->tag, mode == NJ_MODE_PC || mode == NJ_MODE_PIC, "%u", bits);
    }
}

/* As many tasks as like: one recruit is on its way. EWYK 5.26 */
Test(strategy_dual, one_recruit_for_many_tasks)
{
    struct world *w = world(NJ_STRATEGY_DUAL);

    for (unsigned i = 0; i < 10; i++)
        add(w, NJ_BLOCKING);
    nj_reference_produce(&w->s);
    cr_assert_eq(w->n_execute, 11);
    cr_assert_eq(nj_strategy_counters(&w->s).pec, 10);
    cr_assert_eq(word(w), nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_QUEUED));
    run_queue(w); /* the recruit finds no task, and leaves. EWYK 5.17 */
    cr_assert_eq(word(w), IDLE_0);
    cr_assert_eq(nj_strategy_counters(&w->s).recruits_wasted, 1);
}

/* The executor has no thread: the producer is alone, and continues. EWYK 5.12, EWYK 5.50 */
Test(strategy_dual, refused_recruit)
{
    struct world *w = world(NJ_STRATEGY_DUAL);

    for (unsigned i = 0; i < 3; i++)
        add(w, (enum nj_task_type)(NJ_NON_BLOCKING + i));
    w->refuses = true;
    nj_reference_produce(&w->s);
    struct nj_strategy_counters c = nj_strategy_counters(&w->s);
    cr_assert(c.pc == 1 && c.pic == 1 && c.pec == 1 && c.rejected == 1);
    cr_assert_eq(c.dispatch_rejected, 2, "for EITHER and for BLOCKING");
    cr_assert_eq(word(w), IDLE_0);
}

/* One thread sleeps beside a producer. A second one may sleep while production is IDLE. EWYK 5.7,
 * EWYK 5.17 */
Test(strategy_dual, no_more_no_less)
{
    nj__state_word word = nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_QUEUED);
    bool send;
    int seat;

    cr_assert_eq(nj__state_join(&word, NJ__RECRUIT_QUEUED), NJ__SEAT_PRODUCE);
    cr_assert_not(nj__state_leave_seated(&word, &send), "alone");
    cr_assert(send);
    cr_assert_eq(word, nj__state_pack(NJ__STATE_PRODUCING, NJ__RECRUIT_QUEUED));
    cr_assert_eq(nj__state_join(&word, NJ__RECRUIT_QUEUED), 0);
    cr_assert_eq(nj__state_join(&word, NJ__RECRUIT_NONE), NJ__SEAT_LEAVE);
    cr_assert_eq(word, nj__state_pack(NJ__STATE_REPRODUCING, NJ__SEAT_BIT),
                 "the producer produces once more");
    cr_assert_not(nj__state_take_seat(&word, &seat));
    cr_assert(nj__state_take_seat(&word, &seat));
    cr_assert_eq(seat, 1);
    cr_assert_eq(word, nj__state_pack(NJ__STATE_IDLE, 3 * NJ__SEAT_BIT));

    cr_assert_eq(nj__state_leave_seat(&word, 1), 1, "nobody called");
    cr_assert_eq(nj__state_wake_seated(&word), 0);
    cr_assert_eq(nj__state_wake_seated(&word), -1, "one is on its way");
    cr_assert_eq(nj__state_leave_seat(&word, 0), NJ__SEAT_PRODUCE);
    cr_assert_eq(nj__state_wake_seated(&word), -1, "another thread produces");
    cr_assert_eq(word, nj__state_pack(NJ__STATE_PRODUCING, 2 * NJ__SEAT_BIT));
    cr_assert(nj__state_leave_seated(&word, &send));
    cr_assert_eq(nj__state_wake_seated(&word), 1);
    cr_assert(nj__state_try_resume(&word, false),
              "the consumer resumes before the woken thread runs");
    cr_assert_eq(nj__state_leave_seat(&word, 1), 1, "it sleeps on");
    cr_assert_eq(word, nj__state_pack(NJ__STATE_PRODUCING, NJ__RECRUIT_QUEUED | 2 * NJ__SEAT_BIT));
}

/* After EPC both recruits are on their way: one from the queue, and the thread that slept.
 * EWYK 5.7 */
Test(strategy_dual, both_recruits_on_their_way)
{
    struct world *w = world(NJ_STRATEGY_DUAL);

    add(w, NJ_BLOCKING);
    w->at_produce = one_sits;
    nj_reference_produce(&w->s);
    cr_assert_eq(nj_strategy_counters(&w->s).epc, 1);
    cr_assert_eq(word(w), nj__state_pack(NJ__STATE_IDLE,
                                         NJ__RECRUIT_QUEUED | NJ__RECRUIT_SURE | NJ__SEAT_BIT));
}

/* --- on a pool ---------------------------------------------------------------------------------
 */

#define GATES 3u

static struct server {
    struct nj_thread_pool *pool;
    struct nj_producer producer;
    union {
        struct nj_strategy s;
        struct nj_dual dual;
    };
    uint32_t n_produced; /* the producer's */
    _Atomic uint32_t n_there, n_at_gate[GATES], n_run, n_stopped;
    _Atomic bool open[GATES];
} v;

enum what { QUICK, OPENS, AT_GATE /* 0, or more */ };

static struct step {
    struct nj_task task;
    enum nj_task_type type;
    unsigned what;
    pthread_t ran_on;
} steps[16];

static void open_gate(unsigned gate)
{
    atomic_store(&v.open[gate], true);
}

static void run_step(struct nj_task *task)
{
    struct step *t = nj_container_of(task, struct step, task);

    t->ran_on = pthread_self();
    if (t->what == OPENS)
        open_gate(0);
    if (t->what >= AT_GATE) {
        atomic_fetch_add(&v.n_at_gate[t->what - AT_GATE], 1);
        while (!atomic_load(&v.open[t->what - AT_GATE]))
            sched_yield();
    }
    atomic_fetch_add(&v.n_run, 1);
}

static struct nj_task *next_step(struct nj_producer *p)
{
    (void)p;
    return v.n_produced < atomic_load(&v.n_there) ? &steps[v.n_produced++].task : NULL;
}

static enum nj_task_type type_of_step(const struct nj_task *task)
{
    return nj_container_of(task, const struct step, task)->type;
}

static void count_stop(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&v.n_stopped, 1);
}

static void bring(enum nj_task_type type, unsigned what)
{
    static const struct nj_task_ops ops = {run_step, NULL};

    steps[atomic_load(&v.n_there)] = (struct step){{.ops = &ops}, type, what, 0};
    atomic_fetch_add(&v.n_there, 1);
}

static void start(enum nj_strategy_kind kind, bool keeps_two, uint32_t n_max, int n_reserved)
{
    struct nj_thread_pool_config pool = {
        .n_max = n_max, .n_reserved = n_reserved, .idle_ns = NJ_NEVER};

    memset(&v, 0, sizeof v);
    v.pool = nj_thread_pool_start(&pool, NULL, 0);
    v.producer.produce = next_step;
    struct nj_strategy_config config = {.consume = nj_strategies[kind].consume,
                                        .producer = &v.producer,
                                        .executor = nj_thread_pool_executor(v.pool),
                                        .type_of = type_of_step,
                                        .on_stopped = count_stop};
    v.dual.keeps_two = keeps_two;
    nj_reference_init(&v.s, &config);
}

static void finish(void)
{
    nj_reference_stop(&v.s);
    while (!atomic_load(&v.n_stopped)) /* sleepers leave, too. EWYK 5.51 */
        sched_yield();
    nj_thread_pool_stop(v.pool);
    nj_thread_pool_free(v.pool);
}

static void wait_for(_Atomic uint32_t *n, uint32_t value)
{
    while (atomic_load(n) != value)
        sched_yield();
}

static void wait_for_word(enum nj__production state, uint32_t recruits)
{
    while (atomic_load(&v.s.word) != nj__state_pack(state, recruits))
        sched_yield();
}

/* All threads of the pool are stuck, and one task would end that. A recruit is in the queue, where
 * it stays. Then production is called for from outside, and meets tasks that would be stuck, too,
 * in front of that one. EWYK 5.9, EWYK 5.12, EWYK 5.13 */
static void exhausted_pool(enum nj_strategy_kind kind, int n_reserved)
{
    start(kind, false, 3, n_reserved);
    struct nj_executor *e = nj_thread_pool_executor(v.pool);
    for (unsigned i = 0; i < 3; i++) {
        bring(NJ_BLOCKING, AT_GATE);
        cr_assert(e->ops->execute(e, &steps[i].task));
    }
    v.n_produced = 3; /* they were given to the pool directly */
    wait_for(&v.n_at_gate[0], 3);
    for (unsigned i = 0; i < 3; i++)
        bring(NJ_BLOCKING, AT_GATE);
    cr_assert(nj_reference_produce_elsewhere(&v.s));
    bring(NJ_NON_BLOCKING, OPENS);
    cr_assert(nj_reference_produce(&v.s), "and the call returns");
    wait_for(&v.n_run, 7); /* 4 of 4, and the 3 tasks that held the threads */
    finish();
}

Test(strategy_dual, exhausted_pool, .timeout = 60)
{
    static const enum nj_strategy_kind kinds[] = {NJ_STRATEGY_PEC, NJ_STRATEGY_ADAPTIVE,
                                                  NJ_STRATEGY_DUAL};

    for (size_t i = 0; i < NJ_ARRAY_LEN(kinds); i++)
        for (int n_reserved = 0; n_reserved <= 2; n_reserved++)
            exhausted_pool(kinds[i], n_reserved);
}

/* Two threads stay. From then on each task that may block is consumed at once, although production
 * is IDLE after each; the other threads are free. EWYK 5.18 */
Test(strategy_dual, keeps_two, .timeout = 60)
{
    start(NJ_STRATEGY_DUAL, true, 4, 0);
    bring(NJ_BLOCKING, QUICK); /* the first finds one thread, and sends for another */
    nj_reference_produce_elsewhere(&v.s);
    wait_for(&v.n_run, 1);
    wait_for_word(NJ__STATE_IDLE, 3 * NJ__SEAT_BIT);
    cr_assert_eq(nj_strategy_counters(&v.s).pec, 1);
    for (uint32_t i = 1; i < NJ_ARRAY_LEN(steps); i++) {
        bring(i % 2 ? NJ_BLOCKING : NJ_EITHER, QUICK);
        nj_reference_produce_elsewhere(&v.s);
        wait_for(&v.n_run, 1 + i);
        wait_for_word(NJ__STATE_IDLE, 3 * NJ__SEAT_BIT);
    }
    struct nj_strategy_counters c = nj_strategy_counters(&v.s);
    cr_assert(c.epc == NJ_ARRAY_LEN(steps) - 1 && c.pec == 1 && c.pic == 0);
    finish();
}

/* Connections hold no thread: at rest all threads are back in the pool. */
Test(strategy_dual, leaves_at_rest, .timeout = 60)
{
    start(NJ_STRATEGY_DUAL, false, 2, 0);
    for (uint32_t i = 0; i < 10; i++) {
        bring(NJ_BLOCKING, QUICK);
        nj_reference_produce_elsewhere(&v.s);
        wait_for(&v.n_run, 1 + i);
        wait_for_word(NJ__STATE_IDLE, NJ__RECRUIT_NONE);
        while (nj_thread_pool_get_counts(v.pool).n_utilised)
            sched_yield();
    }
    finish();
}

/* The two threads alternate, without a third thread for the recruit. The producer is delayed in a
 * task that does not block for long, and the consumer returns meanwhile: it sleeps, and the next
 * task is consumed by the thread that produced it. */
Test(strategy_dual, the_consumer_stands_by, .timeout = 60)
{
    start(NJ_STRATEGY_DUAL, false, 2, 0);
    bring(NJ_EITHER, AT_GATE);
    nj_reference_produce_elsewhere(&v.s);
    wait_for_word(NJ__STATE_PRODUCING, NJ__SEAT_BIT);
    bring(NJ_BLOCKING, AT_GATE + 1);
    bring(NJ_NON_BLOCKING, AT_GATE + 2);
    bring(NJ_BLOCKING, QUICK);
    open_gate(0);
    wait_for(&v.n_at_gate[1], 1);
    wait_for(&v.n_at_gate[2], 1);
    cr_assert_eq(atomic_load(&v.s.word), nj__state_pack(NJ__STATE_PRODUCING, NJ__RECRUIT_QUEUED));
    open_gate(1);
    while (nj__state_recruit_mask(atomic_load(&v.s.word)) < NJ__SEAT_BIT)
        sched_yield();
    cr_assert_eq(atomic_load(&v.s.word),
                 nj__state_pack(NJ__STATE_PRODUCING, NJ__RECRUIT_QUEUED | NJ__SEAT_BIT));
    cr_assert_not(pthread_equal(steps[1].ran_on, steps[2].ran_on));
    open_gate(2);
    wait_for(&v.n_run, 4);
    wait_for_word(NJ__STATE_IDLE, NJ__RECRUIT_NONE);
    struct nj_strategy_counters c = nj_strategy_counters(&v.s);
    cr_assert(c.pic == 1 && c.pc == 1 && c.epc == 2 && c.pec == 0);
    cr_assert(pthread_equal(steps[3].ran_on, steps[2].ran_on));
    finish();
}
