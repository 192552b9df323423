/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the waits of fibers need from the loop that runs their thread: dpdk/fd_waits.h, or a
 * stand-in of a test. Only the thread of the fibers calls these functions, except wake(). None of
 * them blocks.
 */
#pragma once

struct nj_fiber;
struct pollfd; /* of <poll.h> */

struct nj_wait_ops {
    void *ctx;
    /* Any thread: ends the sleep of the thread, if it sleeps, since a fiber was signalled. NULL: it
     * does not sleep. */
    void (*wake)(void *ctx);
    /* poll(2) with a time-out of 0: the number of ready descriptors, or a negative errno. */
    int (*poll)(void *ctx, struct pollfd *fds, unsigned n);
    /* Watches a descriptor: calls nj_fiber_signal(f) once when one of the events, POLLERR or
     * POLLHUP has come; never for a descriptor that reports none, as a regular file. 0 or an errno;
     * EEXIST: it is watched already. NULL: no descriptor can be awaited. */
    int (*watch)(void *ctx, int fd, short events, struct nj_fiber *f);
    /* Ends that, once for each watch() that returned 0. A handler must not close the descriptor
     * before: a new one with its number would lose its watch here. */
    void (*unwatch)(void *ctx, int fd);
};
