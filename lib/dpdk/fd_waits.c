/* SPDX-License-Identifier: BSD-3-Clause */
/* An epoll(7) instance of an lcore, for handlers that await descriptors. The struct nj_fiber is the
 * data of an event, and is valid as long as the shard. */
#include "dpdk/fd_waits.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sched/fiber.h"

#define EVENTS_MAX 64

_Static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLPRI == EPOLLPRI &&
                   POLLERR == EPOLLERR && POLLHUP == EPOLLHUP && POLLRDNORM == EPOLLRDNORM &&
                   POLLRDBAND == EPOLLRDBAND && POLLWRNORM == EPOLLWRNORM &&
                   POLLWRBAND == EPOLLWRBAND,
               "events of poll(2) are events of epoll(7)");

bool nj_fd_waits_open(struct nj_fd_waits *w, struct nj_wakeup *waker)
{
    *w = (struct nj_fd_waits){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .waker = waker};
    return w->epoll_fd >= 0;
}

void nj_fd_waits_close(struct nj_fd_waits *w)
{
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    w->epoll_fd = -1;
}

static void wake(void *waits)
{
    struct nj_fd_waits *w = waits;
    nj_wakeup_signal(w->waker);
}

static int poll_now(void *waits, struct pollfd *fds, unsigned n)
{
    (void)waits;
    int n_ready = poll(fds, n, 0);
    return n_ready >= 0 ? n_ready : errno == EINTR ? 0 : -errno;
}

static int watch(void *waits, int fd, short events, struct nj_fiber *f)
{
    struct nj_fd_waits *w = waits;
    struct epoll_event event = {.events = (uint16_t)events | EPOLLONESHOT, .data.ptr = f};

    if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EPERM)
        return errno;
    w->n++;
    return 0;
}

static void unwatch(void *waits, int fd)
{
    struct nj_fd_waits *w = waits;

    (void)epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, &(struct epoll_event){0});
    w->n--;
}

struct nj_wait_ops nj_fd_waits_ops(struct nj_fd_waits *w)
{
    return (struct nj_wait_ops){
        .ctx = w, .wake = wake, .poll = poll_now, .watch = watch, .unwatch = unwatch};
}

void nj__fd_waits_collect(struct nj_fd_waits *w, nj_ns now)
{
    struct epoll_event event[EVENTS_MAX];
    int n;

    w->looked_at = now;
    do {
        n = epoll_wait(w->epoll_fd, event, EVENTS_MAX, 0);
        for (int i = 0; i < n; i++)
            nj_fiber_signal(event[i].data.ptr);
    } while (n == EVENTS_MAX);
}
