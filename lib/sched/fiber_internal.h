/* SPDX-License-Identifier: BSD-3-Clause */
/* What fiber.c and the strategy of an lcore (ewyk.c) share. */
#ifndef NJ_SCHED_FIBER_INTERNAL_H
#define NJ_SCHED_FIBER_INTERNAL_H

#include "base/attr.h"
#include "sched/fiber.h"
#include "sched/stack_switch.h"

/* Waits shorter than a tick are exact while there are no more than these: an ordered list, looked
 * through from its end. More of them take the wheel and may be a tick late. */
#define NJ__SOON_MAX 32u

enum nj__fiber_state { NJ__FREE, NJ__RUNNING, NJ__PARKED, NJ__WOKEN };

struct nj_task_class;

struct nj_fiber {
    void *context; /* where it goes on; NULL: nothing is on its stack yet */
    void *top;     /* of its stack */
    void (*fn)(void *arg);
    void *arg;
    uint64_t generation; /* of its latest wait */
    struct nj_fibers *all;
    struct nj_fiber *next_free;
    struct nj_task_class *class_of; /* the strategy's note: for whom it runs */
    enum nj__fiber_state state;
    enum nj_wake why;
    int saved_errno;
    unsigned valgrind_id; /* of its stack */
    bool cancelled;
    uint32_t n_deaf;     /* times that it was told so since, or that nobody is there */
    bool filled;         /* its stack, to see later how much was used */
    struct nj_list node; /* runnable, or among those due soon */
    struct nj_timer timer;
    struct nj__lane lane;
} NJ_CACHE_ALIGNED;

struct nj_fibers {
    const void *owner; /* the thread, once it is known: the address of its nj__here */
    struct nj_fiber *free;
    uint32_t n_in_use, n_high_water, n_max;
    uint32_t n_runnable, n_soon;
    struct nj_list runnable, soon; /* soon: by deadline */
    nj_ns now;
    void *root; /* where the root goes on while a fiber runs */
    struct nj__lane root_lane;
    void (*would_block)(void *ctx);
    void *ctx;
    uint8_t *stacks;
    size_t slot_bytes, stack_bytes;
    struct nj_wheel wheel;
    struct nj_fiber fiber[];
};

/* What runs on this thread. */
struct nj__here {
    struct nj_fiber *fiber; /* NULL: the root, or a thread without fibers */
    struct nj_fibers *home; /* whose root, or fiber, it is */
    bool tagged;
};

/*
 * The one piece of file-scope data below lib/server that changes. A blocking call has no argument
 * to tell it on which stack it was made, and the code in between is the user's. It is the thread's
 * own, and a fiber never changes threads. initial-exec: one load, no call to find it.
 */
extern _Thread_local struct nj__here nj__here __attribute__((tls_model("initial-exec")));

/* nj_fiber_start(), with a note who it is for. The root is bound already. */
enum nj_started nj__fiber_start(struct nj_fibers *, void (*fn)(void *arg), void *arg,
                                struct nj_task_class *class_of);
/* Make what is due runnable. Returns how many are runnable. */
uint32_t nj__fibers_due(struct nj_fibers *, nj_ns now);
/* The next to resume, taken from the queue; there is one. */
struct nj_fiber *nj__fibers_take(struct nj_fibers *);
void nj__fiber_resume(struct nj_fiber *f);
/* The root is this thread's, from now on. */
void nj__fibers_bind(struct nj_fibers *);

#endif
