/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fibers: stacks that a task can be started on, and that can be left in the middle and continued
 * later. One nj_fibers is one thread's: fibers never move to another one.
 *
 * The thread's own stack is the root context. The root starts and resumes fibers; a fiber parks or
 * ends, and then the root goes on. Fibers do not start fibers.
 */
#ifndef NJ_SCHED_FIBER_H
#define NJ_SCHED_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/types.h"
#include "sched/timer_wheel.h"

struct nj_fiber;

struct nj_fibers_config {
    uint32_t n_max;       /* stacks; so many tasks can be parked at once */
    uint32_t stack_bytes; /* usable, rounded up to pages; 0: 64 KiB */
    nj_ns now;
    /* nj_fiber_park() was called where it must not. NULL: an assertion fails. It may return. */
    void (*would_block)(void *ctx);
    void *ctx;
};

/* Each takes two mappings, of which Linux grants a process 65,530; and four times the stack when a
 * sanitizer is compiled in, whose frames are large. */
#define NJ_FIBERS_MAX        16384u
#define NJ_FIBER_STACK_BYTES (64u * 1024u)

/* Below each stack so much of address space cannot be touched. A frame of one page beyond the stack
 * is met by any guard; one that is larger, of code that does not touch each page of its frames
 * (-fstack-clash-protection does), skips a small one and destroys a neighbour's stack. */
#define NJ_FIBER_GUARD_BYTES (64u * 1024u)

struct nj_fibers;
struct nj_task_class;

/* Who waits, for whoever wakes it: stays harmless when the fiber is long gone. */
struct nj_waiter {
    struct nj_fiber *fiber; /* NULL: nobody */
    uint64_t generation;    /* of its wait */
};

enum nj_wake {
    NJ_WAKE_OK,
    NJ_WAKE_TIMEOUT,
    NJ_WAKE_CANCELLED,   /* what it works for is gone */
    NJ_WAKE_WOULD_BLOCK, /* it did not wait: this context must not */
};

enum nj_started { NJ_FIBER_NONE_FREE, NJ_FIBER_ENDED, NJ_FIBER_PARKED };

/* NULL when memory is refused, or n_max is beyond NJ_FIBERS_MAX. The stacks are reserved, touched
 * when first used. It belongs to the thread that first starts or runs a fiber. */
struct nj_fibers *nj_fibers_new(const struct nj_fibers_config *config);
/* No fiber may be parked. */
void nj_fibers_free(struct nj_fibers *);

/* Run fn(arg) on a free stack until it ends or parks. Root only. O(1), allocates nothing. */
enum nj_started nj_fiber_start(struct nj_fibers *, void (*fn)(void *arg), void *arg);

/* The fiber that runs, or NULL in a root context or on a thread without fibers. */
struct nj_fiber *nj_fiber_self(void);
/* What nj_fibers_run() was told last. Fiber only. */
nj_ns nj_fiber_now(void);

/*
 * Give the core back until nj_fiber_wake() or `deadline` (NJ_NEVER: no deadline). Fiber only, and
 * not while it is tagged: elsewhere would_block() of the configuration is called, and then it
 * returns NJ_WAKE_WOULD_BLOCK at once. `w`, if not NULL, is filled in before it parks and not
 * looked at afterwards. Cancellation is sticky: once nj_fiber_cancel() was called every later wait
 * of this fiber ends at once with NJ_WAKE_CANCELLED.
 *
 * It never ends early. A wait shorter than a tick of the wheel (1.05 ms) ends in the first
 * nj_fibers_run() at or after its deadline as long as few are that short; others up to a tick
 * later.
 */
enum nj_wake nj_fiber_park(struct nj_waiter *w, nj_ns deadline);
/* Somebody wanted to wait where it must not, and was sent away before it came to nj_fiber_park():
 * config.would_block hears of it. Nothing happens on a thread without fibers. */
void nj_fiber_refused(void);
/* The caller was told once more that nobody wants what it does. Who goes on in spite of it gives
 * the core back from time to time. Nothing happens but on a fiber that may park. */
void nj_fiber_told(void);

/* Let a parked fiber go on: it is queued, and runs in the next nj_fibers_run(). False when that
 * wait is over already. Any context of the owning thread. */
bool nj_fiber_wake(struct nj_waiter w, enum nj_wake why);
/* What this fiber works for is gone: its present wait ends, and all that follow. Not for a fiber
 * that has ended: it may work for somebody else by now. */
void nj_fiber_cancel(struct nj_fiber *f);

/* Is this address in the guard of the stack on which this thread runs? Then the stack overflowed,
 * and *class_of is whose task runs there (NULL: nobody said). For handlers of SIGSEGV, with
 * siginfo_t.si_addr: async-signal-safe, on the thread that faulted, which needs a sigaltstack(). */
bool nj_fiber_guard_hit(const void *addr, const struct nj_task_class **class_of);

/* Resume what was woken or is due, at most `n_max`. Root only. Returns how many ran. */
uint32_t nj_fibers_run(struct nj_fibers *, nj_ns now, uint32_t n_max);
/* Nothing happens before; 0: something is runnable now. NJ_NEVER. */
nj_ns nj_fibers_next(const struct nj_fibers *);

uint32_t nj_fibers_in_use(const struct nj_fibers *);
uint32_t nj_fibers_high_water(const struct nj_fibers *);
/* The most bytes of stack that a fiber used. Looks through all stacks; 0 unless NJ_CHECKED. */
size_t nj_fibers_stack_high_water(const struct nj_fibers *);
/* Give the memory of free stacks back to the system, but for the `n_keep` that are used next, and
 * of no more than `n_max`: each takes a system call. Returns of how many. */
uint32_t nj_fibers_trim(struct nj_fibers *, uint32_t n_keep, uint32_t n_max);

/* --- the must-not-block tag ------------------------------------------------------------------- */

/*
 * Belongs to the context (root or fiber), not to the thread: each fiber starts without it, a root
 * context of a thread with fibers has it for ever. nj_tag_set() returns what it was, for
 * nj_tag_restore(), which has no effect in such a root. A thread without fibers has its own.
 */
bool nj_tag_must_not_block(void);
bool nj_tag_set(void);
void nj_tag_restore(bool before);

#endif
