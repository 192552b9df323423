/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Waiting: for a time, for events that any thread sets, and for descriptors. nightjar/handler.h
 * includes this header and defines the errors.
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

struct pollfd; /* of <poll.h> */

/**
 * Wait for `ns` nanoseconds. May yield the core. On a worker the thread sleeps.
 *
 * On an lcore the time counts from the last time that the lcore read its clock, before the handler
 * began or continued, and the wait may last a millisecond longer.
 *
 * Context: a handler; also on a worker. Not for callbacks, which must not wait.
 * Errors:  NJ_ERR_CANCELLED as soon as the stream has ended, also on a worker; NJ_ERR_WOULD_BLOCK
 *          if it must not wait.
 * Returns: 0 when the time has passed.
 */
NJ_API int nj_sleep(uint64_t ns);

/**
 * Test whether the caller must not wait: in an NJ_NON_BLOCKING handler, in an NJ_EITHER handler
 * that runs inline, and in callbacks.
 *
 * Context: any thread.
 * Returns: true if each call that may yield the core would return NJ_ERR_WOULD_BLOCK instead. False
 *          on a worker.
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

/**
 * An event, which one handler awaits and any thread sets: other handlers and callbacks, on any
 * lcore or worker, and threads of the program. Initialise it to 0 ({0}, or {} in C++). The calls
 * below are the only access to it.
 */
struct nj_event {
    uintptr_t state; /**< private */
};

/**
 * Wait for an event, at most `timeout_ns` nanoseconds, counted as for nj_sleep(); 0: without limit.
 * May yield the core. On a worker the thread waits. Only one handler at a time may wait for an
 * event.
 *
 * What a thread stored before nj_event_set() is visible to the handler when this returns 0.
 *
 * Context:   a handler; also on a worker.
 * Ownership: the event belongs to the caller. It must exist until this has returned 0, or until
 *            no thread can call nj_event_set() any more: after an error one may still do so. So an
 *            event on the handler's stack is for threads that the handler waits for in any case.
 * Errors:    NJ_ERR_TIMEOUT; NJ_ERR_CANCELLED as soon as the stream has ended; NJ_ERR_WOULD_BLOCK
 *            if it must not wait; NJ_ERR_INVALID: another handler waits for it.
 * Returns:   0 when the event is set; immediately if it is set already.
 */
NJ_API int nj_await(struct nj_event *event, uint64_t timeout_ns);

/**
 * Set an event. It remains set until nj_event_clear(). The handler that waits for it continues soon
 * on its own thread; a sleeping lcore wakes up for it. Never blocks.
 *
 * Context:   any thread. A thread of the program returns from it before nj_server_free() is called.
 * Ownership: the event must exist when this is called, and is not used after the handler can see
 *            that it is set. So the handler may free it when nj_await() has returned 0.
 */
NJ_API void nj_event_set(struct nj_event *event);

/**
 * Make a set event usable again. No effect on one that is not set.
 *
 * Clear it first and then look for what other threads have stored: what they store later sets the
 * event again. What was stored before the event was set is visible to the caller.
 *
 * Context: any thread; usually the handler that awaits it.
 */
NJ_API void nj_event_clear(struct nj_event *event);

/**
 * Test an event, for callbacks and others that must not wait. If it is set, what was stored before
 * is visible to the caller.
 *
 * Context: any thread.
 * Returns: true if it is set.
 */
NJ_API bool nj_event_is_set(const struct nj_event *event);

/**
 * Wait until a descriptor is ready, at most `timeout_ns` nanoseconds, counted as for nj_sleep(); 0:
 * without limit. May yield the core. On a worker the thread waits.
 *
 * `events` and the result are those of poll(2): POLLIN, POLLOUT and others; POLLERR and POLLHUP are
 * reported in any case. It tests the level: it returns at once if the descriptor is ready, as a
 * regular file always is. For edges, and for registrations that outlive a wait, add descriptors to
 * an epoll(7) instance of the program with EPOLLET, and wait for POLLIN of that instance.
 *
 * A descriptor is awaited by one handler of an lcore at a time (dup(2) makes another one), and is
 * not closed meanwhile: the wait, or one for a new descriptor with its number, might not end. It
 * should be in non-blocking mode: another thread may read what has come.
 *
 * Context: a handler; also on a worker.
 * Errors:  NJ_ERR_TIMEOUT; NJ_ERR_CANCELLED as soon as the stream has ended; NJ_ERR_WOULD_BLOCK if
 *          it must not wait; NJ_ERR_INVALID: no open descriptor, or another handler of the lcore
 *          waits for it; NJ_ERR_MEMORY.
 * Returns: the events that are ready, greater than 0.
 */
NJ_API int nj_await_fd(int fd, short events, uint64_t timeout_ns);

/**
 * As nj_await_fd(), for `n` descriptors at once, as in poll(2): those below 0 are ignored, and
 * `revents` of each is set when this returns a count; it has POLLNVAL for one that is not open.
 * With none it waits for the time. On an lcore each wait takes some system calls for each
 * descriptor: for many, or often, wait for one epoll(7) instance that has them.
 *
 * Context:   as for nj_await_fd().
 * Ownership: `fds` belongs to the caller.
 * Errors:    as for nj_await_fd(), except that a descriptor that is not open is a result. On an
 *            lcore no descriptor may be given twice: NJ_ERR_INVALID.
 * Returns:   the number of descriptors that are ready, greater than 0.
 */
NJ_API int nj_await_fds(struct pollfd *fds, unsigned n, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
