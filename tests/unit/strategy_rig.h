/* SPDX-License-Identifier: BSD-3-Clause */
/* Strategies on one thread. The test is the executor, and decides when to run what other threads
 * would run. tests/explore covers every order of many threads. */
#pragma once

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "reference/frames.h"
#include "reference/strategies.h"
#include "sched/fiber.h"

#define TASKS_MAX 64u

struct world;

struct task {
    struct nj_task task;
    struct world *w;
    enum nj_task_type type;
    void (*body)(struct world *w, struct task *t);
    bool tag; /* seen while it ran */
    unsigned n_run, n_rejected, depth;
};

struct world {
    struct nj_producer producer;
    struct nj_executor executor;
    union {
        struct nj_strategy s;
        struct nj_dual dual;
    };
    struct task tasks[TASKS_MAX];
    unsigned n_tasks, n_produced, n_produce;
    void (*at_produce)(struct world *w, struct task *found);
    void (*at_try)(struct world *w);
    struct nj_task *queue[TASKS_MAX];
    unsigned n_queued, n_execute, n_try, n_waiting, n_started;
    struct nj_task *handed; /* to a waiting thread that has not begun */
    bool refuses, hasty;    /* hasty: a waiting thread begins inside of try_execute() */
    bool is_more;           /* the return value of has_more() */
    void (*at_has_more)(struct world *w);
    unsigned n_stopped, n_posted;
};

/* As another thread would: with its own stack of frames and its own tag. */
static inline void elsewhere(const struct nj_strategy *of, struct nj_task *task)
{
    struct nj__frame *top = nj__strategy_frame_top();
    bool tag = nj_noblock_is_set();

    nj__run_task_of(of, task);
    nj__strategy_frame_set_top(top);
    nj_noblock_leave(tag);
}

static inline void run_handed(struct world *w)
{
    struct nj_task *t = w->handed;
    w->handed = NULL;
    if (t)
        elsewhere(NULL, t);
}

static inline void run_queue(struct world *w)
{
    while (w->n_queued) {
        struct nj_task *t = w->queue[0];
        memmove(w->queue, w->queue + 1, --w->n_queued * sizeof w->queue[0]);
        elsewhere(t == &w->s.queued_recruit ? NULL : &w->s, t);
    }
}

static inline bool execute(struct nj_executor *e, struct nj_task *t)
{
    struct world *w = nj_container_of(e, struct world, executor);

    w->n_execute++;
    if (w->refuses || w->n_queued == TASKS_MAX)
        return false;
    w->queue[w->n_queued++] = t;
    return true;
}

static inline bool try_execute(struct nj_executor *e, struct nj_task *t)
{
    struct world *w = nj_container_of(e, struct world, executor);

    w->n_try++;
    if (w->at_try)
        w->at_try(w);
    if (!w->n_waiting)
        return false;
    w->n_waiting--;
    cr_assert_null(w->handed, "one recruit at a time"); /* EWYK 5.26 */
    w->handed = t;
    if (w->hasty)
        run_handed(w);
    return true;
}

static inline bool post(struct nj_executor *e, struct nj_task *t)
{
    nj_container_of(e, struct world, executor)->n_posted++;
    return execute(e, t);
}

static inline bool has_more(struct nj_producer *p)
{
    struct world *w = nj_container_of(p, struct world, producer);

    if (w->at_has_more)
        w->at_has_more(w);
    return w->is_more;
}

static inline void run(struct nj_task *task)
{
    struct task *t = nj_container_of(task, struct task, task);

    t->tag = nj_noblock_is_set();
    t->n_run++;
    t->depth = nj__strategy_frame_top()->depth;
    if (t->body)
        t->body(t->w, t);
}

static inline void reject(struct nj_task *task)
{
    nj_container_of(task, struct task, task)->n_rejected++;
}

static inline enum nj_task_type type_of(const struct nj_task *task)
{
    return ((const struct task *)task)->type; /* its first member */
}

static inline struct nj_task *produce(struct nj_producer *p)
{
    struct world *w = nj_container_of(p, struct world, producer);
    struct task *t = w->n_produced < w->n_tasks ? &w->tasks[w->n_produced++] : NULL;

    w->n_produce++;
    if (w->at_produce)
        w->at_produce(w, t);
    return t ? &t->task : NULL;
}

static inline void on_stopped(void *ctx)
{
    ((struct world *)ctx)->n_stopped++;
}

static inline struct world *world(enum nj_strategy_kind kind)
{
    static const struct nj_executor_ops executor_ops = {
        .execute = execute, .try_execute = try_execute, .post = post};
    static struct world w;

    memset(&w, 0, sizeof w);
    w.producer.produce = produce;
    w.executor.ops = &executor_ops;
    struct nj_strategy_config config = {.consume = nj_strategies[kind].consume,
                                        .producer = &w.producer,
                                        .executor = &w.executor,
                                        .type_of = type_of,
                                        .on_stopped = on_stopped,
                                        .ctx = &w};
    nj_reference_init(&w.s, &config);
    return &w;
}

static inline struct task *add(struct world *w, enum nj_task_type type)
{
    static const struct nj_task_ops ops = {run, reject};
    struct task *t = &w->tasks[w->n_tasks++];

    *t = (struct task){.task = {.ops = &ops}, .w = w, .type = type};
    return t;
}

static inline uint32_t word(const struct world *w)
{
    return atomic_load(&w->s.word);
}

#define IDLE_0 nj__state_pack(NJ__STATE_IDLE, 0)
