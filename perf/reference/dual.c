/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dual strategy, "always two": one thread produces and another one sleeps. The producer
 * consumes a task that may block only while the sleeper can take over production.
 *
 * The source is Jetty 9.3.9 to 9.4.3. A selector has two strategies on one producer, whose
 * produce() is synchronized:
 *
 *   - the normal one is EPC: for each task that may block it queues a recruit, if none is pending,
 *     and consumes the task;
 *   - the other one is PEC on a permanent thread of the lowest priority. It runs NON_BLOCKING
 *     tasks, runs EITHER tasks without permission to block, queues BLOCKING tasks, and yields the
 *     CPU after each task. It gets the lock when the normal producer consumes a task and its
 *     recruit has not arrived, possibly because all threads of the pool are blocked.
 *
 * An HTTP/2 connection has the two strategies, too, but no thread: it uses PEC where the context
 * must not block (the thread of low priority called it), else EPC.
 *
 * Here the state word is the lock. Two threads are inside; one produces and the other one sleeps.
 * For a task that may block the producer queues a recruit, unless one is pending, and
 *
 *   - with a sleeper it has normal priority: it leaves production, wakes the sleeper and consumes
 *     the task (EPC). The sleeper takes over, alone. After its task the consumer produces again,
 *     becomes the sleeper, or leaves if there is one;
 *   - alone it has low priority: it consumes no task that may block (PEC, PIC), until the next
 *     recruit arrives or the consumer returns.
 *
 * When there is nothing to produce, both sleep until they are called or the strategy is stopped
 * (keeps_two), or both leave.
 *
 * Differences from the source:
 *
 *   - Low priority is the role of a producer that is alone, not of one thread. Linux ignores the
 *     priorities of Java's threads, and a change of roles needs no switch between threads.
 *   - A thread that waits in Jetty for the lock, or in select(), sleeps here.
 *   - Alone, EPC of an HTTP/2 connection starves in the source: all threads of the pool consume
 *     requests that wait for the window, and the recruit that would read the WINDOW_UPDATE waits in
 *     the queue behind them. Here a connection's strategy, which keeps no threads, is PEC until a
 *     recruit has come.
 *
 * It uses no reserved threads, which came later in Jetty (ewyk_thread_strategy.c).
 */
#include "reference/seats.h"
#include "reference/strategies.h"
#include "base/futex_park.h"
#include "base/interleaving_points.h"
#include "strategy/thread_strategy_internal.h"

static struct nj_dual *dual_of(struct nj_strategy *s)
{
    return nj_container_of(s, struct nj_dual, strategy);
}

/* Production is requested while it is IDLE: wakes a thread that sleeps in the strategy, if any. */
void nj__dual_wake_seated(struct nj_strategy *s)
{
    struct nj_dual *d = dual_of(s);
    int seat = nj__state_wake_seated(&s->word);

    if (seat >= 0)
        nj_unpark(&d->n_wakes[seat]);
}

/* A sleeper reads n_wakes before it checks whether the strategy was stopped. */
void nj__dual_wake_stopped(struct nj_strategy *s)
{
    struct nj_dual *d = dual_of(s);

    for (int seat = 0; seat < NJ__N_SEATS; seat++)
        nj_unpark(&d->n_wakes[seat]);
}

/* Returns NJ__SEAT_PRODUCE or NJ__SEAT_LEAVE. After a stop the word is not changed. */
static int sleep_until_called(struct nj_strategy *s, int seat)
{
    struct nj_dual *d = dual_of(s);

    for (;;) {
        uint32_t seen = atomic_load_explicit(&d->n_wakes[seat], memory_order_acquire);
        NJ__SCHED_POINT(NJ__AT_SEATED, seen | (uint64_t)(uint32_t)seat << 32);
        if (nj__is_stopped(s))
            return NJ__SEAT_LEAVE;
        int where = nj__state_leave_seat(&s->word, seat);
        if (where < 0)
            return where;
        nj_park(&d->n_wakes[seat], seen, NJ_NEVER);
    }
}

/* True: production is IDLE. `seat` NULL: the thread leaves; otherwise it may take a seat. */
static bool rest(struct nj_strategy *s, int *seat)
{
    const struct nj_dual *d = dual_of(s);

    if (!(seat ? nj__state_take_seat(&s->word, seat) : nj__state_try_idle(&s->word)))
        return false;
    if (!d->keeps_two)
        nj__dual_wake_seated(s); /* the sleeper leaves, too */
    return true;
}

/* As nj__produce_and_consume(), with the rest() of this strategy. */
static enum nj__production_end produce_and_consume(struct nj_strategy *s, bool *is_recruit,
                                                   int *seat)
{
    for (;;) {
        enum nj__production_end end = nj__produce_until_none(s, is_recruit);
        if (end != NJ__END_NO_TASK || rest(s, seat))
            return end;
    }
}

void nj__dual_produce(struct nj_strategy *s)
{
    bool is_recruit = false;
    produce_and_consume(s, &is_recruit, NULL);
}

static void arrive(struct nj_strategy *s, bool *is_recruit)
{
    const struct nj_dual *d = dual_of(s);
    int where = nj__state_join(&s->word, NJ__RECRUIT_QUEUED);

    for (;;) {
        if (where >= 0)
            where = sleep_until_called(s, where);
        if (where == NJ__SEAT_LEAVE)
            return;
        where = NJ__SEAT_LEAVE;
        if (produce_and_consume(s, is_recruit, d->keeps_two ? &where : NULL) == NJ__END_TAKEN_OVER)
            where = nj__state_join(&s->word, NJ__RECRUIT_NONE);
    }
}

static void recruit_run(struct nj_task *task)
{
    struct nj_strategy *s = nj_container_of(task, struct nj_strategy, queued_recruit);
    bool is_recruit = true;

    arrive(s, &is_recruit);
    nj__recruit_leave(s, is_recruit);
}

void nj__dual_init(struct nj_strategy *s)
{
    struct nj_dual *d = dual_of(s);

    d->recruit = (struct nj_task_ops){recruit_run, s->queued_recruit.ops->reject};
    s->queued_recruit.ops = &d->recruit;
}

/* Returns whether the caller left production to the sleeper. Wakes the sleeper before it queues the
 * recruit, because only the sleeper certainly takes over. */
static bool leave_to_sleeper(struct nj_strategy *s)
{
    bool send;
    bool left = nj__state_leave_seated(&s->word, &send);

    if (left)
        nj__dual_wake_seated(s);
    if (send)
        nj__queue_recruit(s);
    return left;
}

bool nj_consume_dual(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    return nj__consume_by_mode(s, task, tagged, leave_to_sleeper);
}
