/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals that fiber.c shares with the strategy of an lcore (ewyk_fiber_scheduler.c). Owning
 * thread only. */
#pragma once

#include <stdatomic.h>

#include "base/compiler.h"
#include "sched/fiber.h"
#include "sched/stack_switch.h"

/* Capacity of the ordered list for waits shorter than a tick, which are exact. It is searched from
 * its end. Further waits use the wheel and may end a tick late. */
#define NJ__DUE_SOON_MAX 32u

enum nj__fiber_state { NJ__FIBER_FREE, NJ__FIBER_RUNNING, NJ__FIBER_PARKED, NJ__FIBER_WOKEN };

struct nj_fiber {
    void *context; /* where it resumes; NULL: its stack is unused */
    void *top;     /* of its stack */
    void (*fn)(void *arg);
    void *arg;
    uint64_t generation; /* of its latest wait */
    struct nj_fibers *all;
    struct nj_fiber *next_free;
    struct nj_task_class *class_of; /* class of its task, set by the strategy */
    enum nj__fiber_state state;
    enum nj_wake_reason why;
    int saved_errno;
    unsigned valgrind_id; /* of its stack */
    bool cancelled;
    bool is_uncancelled;       /* cancellation does not end its wait */
    bool takes_signals;        /* nj_fiber_signal() ends its wait */
    _Atomic bool is_signalled; /* in all->signalled, or about to be */
    struct nj_fiber *next_signalled;
    uint32_t n_ignored_cancels; /* waits and calls since then that reported the cancellation */
    struct nj_list node;        /* in the list `runnable` or `soon` */
    struct nj_timer timer;
    struct nj__switch_stack stack;
} NJ_CACHE_ALIGNED;

struct nj_fibers {
    const void *owner; /* the owning thread: the address of its nj__current; NULL: not bound */
    struct nj_fiber *free;
    uint32_t n_in_use, n_high_water, n_max;
    uint32_t n_runnable, n_soon;
    bool has_sanitizer;            /* nj__sanitizer_is_there() */
    struct nj_list runnable, soon; /* soon: by deadline */
    nj_ns now;
    void *root; /* where the root resumes, while a fiber runs */
    struct nj__switch_stack root_stack;
    void (*would_block)(void *ctx);
    void *ctx;
    uint8_t *stacks;
    size_t slot_bytes, stack_bytes;
    struct nj_wheel wheel;
    struct nj_wait_ops waits;
    struct nj_await_count awaits[NJ_N_AWAITS];
    _Atomic(struct nj_fiber *) signalled; /* by other threads, the latest first */
    struct nj_fiber fiber[];
};

/* The context that runs on this thread. */
struct nj__current {
    struct nj_fiber *fiber;               /* NULL: the root, or a thread without fibers */
    struct nj_fibers *home;               /* the fibers to which the root or fiber belongs */
    const struct nj_task_class *class_of; /* of the task on a thread without fibers; NULL: none */
    bool tagged;
    struct nj_worker_wait *worker; /* see nj_worker_wait_bind(); NULL: it is no worker */
};

/*
 * Mutable data at file scope: a blocking call has no argument that names its context, and user code
 * is in between. The variable is thread-local, and a fiber never migrates.
 * initial-exec: one load, no call of __tls_get_addr().
 */
extern _Thread_local struct nj__current nj__current __attribute__((tls_model("initial-exec")));

/* Runs fn(arg), of a task of this class or NULL, on a free stack until it ends or parks. O(1),
 * allocates nothing. Root only, which must be bound. */
enum nj_fiber_started nj__fiber_start_for_class(struct nj_fibers *, void (*fn)(void *arg),
                                                void *arg, struct nj_task_class *class_of);
/* Makes due fibers runnable. Returns the number of runnable fibers. */
uint32_t nj__fibers_wake_due(struct nj_fibers *, nj_ns now);
/* Takes the next runnable fiber from the queue, which must not be empty. */
struct nj_fiber *nj__fibers_pop_runnable(struct nj_fibers *);
void nj__fiber_resume(struct nj_fiber *f);
/* Makes this thread the owner. */
void nj__fibers_bind(struct nj_fibers *);
