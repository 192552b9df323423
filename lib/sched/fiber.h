/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fibers: stackful coroutines that can be suspended and resumed. A struct nj_fibers belongs to one
 * thread; fibers never migrate to another.
 *
 * The thread's own stack is the root context. The root starts and resumes fibers. When a fiber
 * parks or ends, the root continues. Fibers do not start fibers. All functions belong to the owning
 * thread; "root only" and "fiber only" restrict them further.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timer_wheel.h"
#include "base/types.h"
#include "sched/wait_ops.h"

struct nj_fiber;

struct nj_fibers_config {
    uint32_t n_max;       /* stacks, and so tasks that can be parked at once */
    uint32_t stack_bytes; /* usable, rounded up to pages; 0: 64 KiB */
    nj_ns now;
    /* Called when nj_fiber_park() is called in a context that must not block; may return. NULL: an
     * assertion fails. */
    void (*would_block)(void *ctx);
    void *ctx;
    struct nj_wait_ops waits;
};

/* A fiber takes two mappings; Linux allows a process 65,530 (vm.max_map_count). With a sanitizer a
 * stack is four times as large, for its larger frames. */
#define NJ_FIBERS_MAX        16384u
#define NJ_FIBER_STACK_BYTES (64u * 1024u)

/* Inaccessible address space below each stack. Any guard catches a frame of one page. A larger
 * frame of code without -fstack-clash-protection, which does not touch every page, skips a small
 * guard and overwrites the stack of a neighbour. */
#define NJ_FIBER_GUARD_BYTES (64u * 1024u)

struct nj_fibers;
struct nj_task_class;

/* A handle to one wait of a fiber. Waking it after that wait has no effect. */
struct nj_waiter {
    struct nj_fiber *fiber; /* NULL: none */
    uint64_t generation;    /* number of the wait */
};

enum nj_wake_reason {
    NJ_WAKE_OK,
    NJ_WAKE_TIMEOUT,
    NJ_WAKE_CANCELLED,   /* nj_fiber_cancel() was called */
    NJ_WAKE_WOULD_BLOCK, /* it did not wait: the context must not block */
};

enum nj_fiber_started { NJ_FIBER_NONE_FREE, NJ_FIBER_ENDED, NJ_FIBER_PARKED };

/* NULL: no memory, or n_max exceeds NJ_FIBERS_MAX. Stacks are mapped, but touched only at first
 * use. The first thread that starts or runs a fiber becomes the owner. */
struct nj_fibers *nj_fibers_new(const struct nj_fibers_config *config);
/* No fiber may be parked. */
void nj_fibers_free(struct nj_fibers *);

/* The running fiber; NULL in a root context or on a thread without fibers. Any thread. */
struct nj_fiber *nj_fiber_self(void);
/* The time at which the root last resumed fibers. Fiber only. */
nj_ns nj_fiber_now(void);

/*
 * Yields the core until nj_fiber_wake() or `deadline` (NJ_NEVER: no deadline). Fiber only, and only
 * while untagged. Elsewhere it calls config.would_block() and returns NJ_WAKE_WOULD_BLOCK at once.
 * `w`, if not NULL, is filled in before the fiber parks and not accessed afterwards. Cancellation
 * is sticky: after nj_fiber_cancel() every wait of this fiber ends at once with NJ_WAKE_CANCELLED.
 *
 * A wait never times out early. A wait shorter than a tick of the wheel (1.05 ms) ends when the
 * root first resumes fibers at or after its deadline, for up to NJ__DUE_SOON_MAX such waits; other
 * waits end up to a tick later.
 */
enum nj_wake_reason nj_fiber_park(struct nj_waiter *w, nj_ns deadline);
/* As nj_fiber_park() without a deadline, but cancellation does not end it: for the end of something
 * that uses the fiber's stack, which must come soon. Returns NJ_WAKE_OK or NJ_WAKE_WOULD_BLOCK. */
enum nj_wake_reason nj_fiber_park_uncancelled(struct nj_waiter *w);

/* What nj_fiber_park_for_signal() is used for, and how often. */
enum nj_await { NJ_AWAIT_EVENT, NJ_AWAIT_FD, NJ_N_AWAITS };
struct nj_await_count {
    uint32_t n_now; /* fibers that wait */
    uint64_t n;     /* waits that have begun */
};

/* As nj_fiber_park(), for a condition that nj_fiber_signal() reports. NJ_WAKE_OK may come too
 * early, by the signal for an earlier wait of the fiber: the caller checks its condition and parks
 * again. Fiber only, and only while untagged. */
enum nj_wake_reason nj_fiber_park_for_signal(enum nj_await what, nj_ns deadline);
/* Ends the nj_fiber_park_for_signal() of a fiber, if it is in one when its thread next runs fibers,
 * or when this is called by that thread. What the caller stored before is visible to the fiber
 * then. The fiber may have ended; its struct nj_fibers has to exist until this returns. Any thread.
 */
void nj_fiber_signal(struct nj_fiber *f);
/* Was the running fiber cancelled? Then it calls nj_fiber_yield_if_ignoring_cancel(). */
bool nj_fiber_report_cancelled(void);
const struct nj_wait_ops *nj_fiber_wait_ops(const struct nj_fiber *f);
const struct nj_await_count *nj_fibers_await_counts(const struct nj_fibers *);

/* Reports an attempt to wait in a context that must not block, by a caller that did not reach
 * nj_fiber_park(): calls config.would_block(). No effect on a thread without fibers. */
void nj_fiber_report_would_block(void);
/* Counts a call that reported the cancellation to the running fiber. After many such calls each one
 * yields the core. No effect outside a fiber, or while tagged. */
void nj_fiber_yield_if_ignoring_cancel(void);

/* Makes a parked fiber runnable; it runs when the root next resumes fibers. False: that wait is
 * already over. Any context of the owning thread. */
bool nj_fiber_wake(struct nj_waiter w, enum nj_wake_reason why);
/* Ends the current and all later waits of a fiber. Not for a fiber that has ended: it may already
 * run another task. */
void nj_fiber_cancel(struct nj_fiber *f);

/* True: the address is in the guard of the running fiber's stack, so the stack overflowed. For
 * SIGSEGV handlers, with siginfo_t.si_addr: async-signal-safe, on the faulting thread, which needs
 * a sigaltstack(). */
bool nj_fiber_guard_hit(const void *addr);

/* The earliest time at which a fiber is due; 0: one is runnable now; NJ_NEVER: no time. */
nj_ns nj_fibers_next_due(const struct nj_fibers *);

uint32_t nj_fibers_in_use(const struct nj_fibers *);
uint32_t nj_fibers_high_water(const struct nj_fibers *);
/* The most bytes of stack that a fiber has used; 0 unless NJ_CHECKED. Scans all stacks. */
size_t nj_fibers_stack_high_water(const struct nj_fibers *);
/* Releases the memory of at most `n_max` free stacks, except the `n_keep` that are used next. Each
 * takes a system call. Returns the number of released stacks. */
uint32_t nj_fibers_trim(struct nj_fibers *, uint32_t n_keep, uint32_t n_max);

/* --- threads --- */

/* A value that tells threads apart, in one instruction. It is the thread's pointer (ELF TLS), or
 * what pthread_self() returns. */
static inline const void *nj_this_thread(void)
{
#if defined(__GNUC__) && !defined(__clang__)
    return __builtin_thread_pointer();
#else
    return (const void *)pthread_self();
#endif
}

/* --- the must-not-block tag ------------------------------------------------------------------- */

/*
 * The tag belongs to a context (root or fiber), not to the thread. A fiber starts untagged. The
 * root context of a thread with fibers is always tagged, and nj_noblock_leave() has no effect
 * there. A thread without fibers has a tag of its own. nj_noblock_enter() returns the old value,
 * for nj_noblock_leave().
 */
bool nj_noblock_is_set(void);
bool nj_noblock_enter(void);
void nj_noblock_leave(bool before);
