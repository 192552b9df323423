/* SPDX-License-Identifier: BSD-3-Clause */
/* The worlds that are explored. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "explore.h"
#include "reference/strategies.h"

enum model_how {
    MODEL_DISPATCH,
    MODEL_PRODUCE,
    MODEL_PRODUCE_TAGGED,
    MODEL_STOP,
    MODEL_RESTART /* stop, wait until it has stopped, restart, and MODEL_PRODUCE */
};

/* A task is queued, and then production is requested; except for MODEL_STOP. */
struct model_event {
    enum model_how how;
    enum nj_task_type type;
    bool brings; /* the task queues a second one, from its own context */
};

#define MODEL_EVENTS_MAX 4u

/* A struct nj_thread_pool. */
struct model_threads {
    uint8_t n_min, n_max, n_seats;
    bool is_warm; /* a thread is reserved before anything else begins */
    uint8_t n_timeouts, n_early, n_no_threads; /* as in struct explore_system */
};

/* In a thread. */
struct nj_thread_pool *model_threads_start(const struct model_threads *m);
uint64_t model_threads_hash(const struct nj_thread_pool *p);
/* Checks the final state, with n_blocked threads of the pool blocked in tasks forever. */
void model_threads_end(const struct nj_thread_pool *p, unsigned n_blocked);

struct model_strategy {
    enum nj_strategy_kind kind;
    bool keeps_two;
    struct model_event events[MODEL_EVENTS_MAX];
    uint8_t n_events, n_each;     /* each caller thread performs n_each events in turn */
    struct model_threads threads; /* the executor, when its n_max > 0; else a model: */
    uint8_t n_reserved;
    uint8_t n_rejects;      /* how often it may refuse */
    uint8_t n_late_rejects; /* ... or reject an accepted task, as after a stop */
    bool tells_more;        /* the producer has has_more() */
    bool one_at_a_time;     /* ... which is false while a produced task is not done */
    bool asks_after_run;    /* as in struct nj_strategy_config */
    bool may_block;         /* a consumer that may block may block forever */
    bool is_bounded;        /* the queue has n_pool threads; else unlimited */
    uint8_t n_pool;
    bool by_stack; /* as in struct explore_world, and ... */
    const char *must_fail;
};

struct explore_result model_strategy(const struct model_strategy *m, uint64_t states_max);

/* park.c: one thread sleeps, others add work and wake it. */
struct model_park {
    uint8_t n_wakers, n_timeouts, n_early;
};

struct explore_result model_park(const struct model_park *m, uint64_t states_max);

struct model_reserved {
    uint8_t n_threads; /* threads that call nj_reserved_serve() */
    uint8_t capacity, n_min;
    uint8_t n_tasks;    /* one thread tries to hand them over in turn */
    uint8_t n_timeouts; /* time-outs of idle threads, in sum */
    uint8_t n_early;    /* spurious wake-ups, in sum */
    bool stops;         /* another thread stops it, at any time */
    bool rouses;        /* a second thread calls nj_reserved_unreserve_one() */
};

struct explore_result model_reserved(const struct model_reserved *m, uint64_t states_max);
struct nj_reserved;
unsigned model_reserved_waiting(const struct nj_reserved *r); /* threads that do, on their seats */

enum model_call {
    MODEL_EXECUTE,
    MODEL_TRY, /* try_execute() */
    MODEL_POST,
    MODEL_STOP_POOL
};

#define MODEL_CALLS_MAX 4u

struct model_pool {
    struct model_threads threads;
    enum model_call calls[MODEL_CALLS_MAX]; /* with a task each */
    uint8_t n_calls, n_each;                /* calls of each caller, one after the other */
    const char *must_fail;
};

struct explore_result model_pool(const struct model_pool *m, uint64_t states_max);
