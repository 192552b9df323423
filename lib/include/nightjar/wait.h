/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Waiting: for a time, and for events. nightjar/handler.h includes this header and defines the
 * errors.
 */
#ifndef NIGHTJAR_WAIT_H
#define NIGHTJAR_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NJ_API
#define NJ_API __attribute__((visibility("default")))
#endif

/**
 * Wait for `ns` nanoseconds. May yield the core. On a worker the thread sleeps.
 *
 * On an lcore the time counts from the last time that the lcore read its clock, before the handler
 * began or continued, and the wait may last a millisecond longer.
 *
 * Context: a handler; also on a worker. Not for callbacks, which must not wait.
 * Errors:  NJ_ERR_CANCELLED as soon as the stream has ended, not on a worker; NJ_ERR_WOULD_BLOCK if
 *          it must not wait.
 * Returns: 0 when the time has passed.
 */
NJ_API int nj_sleep(uint64_t ns);

/**
 * Test whether the caller must not wait: in an NJ_NON_BLOCKING handler, in an NJ_EITHER handler
 * that runs inline, and in callbacks.
 *
 * Context: any thread.
 * Returns: true if each call that may yield the core would return NJ_ERR_WOULD_BLOCK instead. False
 *          on a worker, although nj_await() returns that error there.
 */
NJ_API bool nj_must_not_block(void);

/**
 * Call fn(arg) on a worker thread, and wait until it has returned. May yield the core. For work
 * that blocks in the kernel or computes for long, in a handler that is not NJ_OS_BLOCKING: such a
 * handler reads a body as it arrives, and each piece can be written to a disk by one call.
 *
 * The call waits its turn among the tasks of all clients, as an NJ_OS_BLOCKING handler of the same
 * client and route does (docs/limits.md). Its time does not count as time of the handler on the
 * core, and its route is never moved to workers. If the stream ends while `fn` runs, the handler
 * waits for the end of `fn` all the same.
 *
 * Context:   a handler. A handler that runs on a worker calls `fn` itself. Not for callbacks, which
 *            must not wait.
 * Ownership: `arg` belongs to the caller, who may use its stack: `fn` has returned when this does.
 *            `fn` must not use the handler's `req` and `resp`.
 * Errors:    without a call of `fn`: NJ_ERR_CANCELLED: the stream has ended; NJ_ERR_MEMORY: the
 *            workers have too many tasks; NJ_ERR_WOULD_BLOCK if it must not wait.
 * Returns:   0 when `fn` has returned.
 */
NJ_API int nj_call_on_worker(void (*fn)(void *arg), void *arg);

/** A one-shot event. Initialise all members to 0. It belongs to one lcore: set and await it
 * there. */
struct nj_event {
    void *waiter; /**< private */
    bool set;     /**< the event is set */
};

/**
 * Wait for an event, at most `timeout_ns` nanoseconds, counted as for nj_sleep(); 0: without limit.
 * May yield the core. Only one handler at a time may wait for an event.
 *
 * Context:   a handler on the event's lcore, not on a worker. Callbacks may poll an event and not
 *            wait.
 * Ownership: the event belongs to the caller and must exist until this returns.
 * Errors:    NJ_ERR_TIMEOUT; NJ_ERR_CANCELLED; NJ_ERR_WOULD_BLOCK if it must not wait, and on a
 *            worker; NJ_ERR_INVALID: another handler waits for it.
 * Returns:   0 when the event is set; immediately if it is set already.
 */
NJ_API int nj_await(struct nj_event *event, uint64_t timeout_ns);

/**
 * Set an event. It remains set. The handler that waits for it continues when the caller has yielded
 * the core or returned.
 *
 * Context: the event's lcore: a handler or a callback, not on a worker.
 */
NJ_API void nj_event_set(struct nj_event *event);

#ifdef __cplusplus
}
#endif

#endif
