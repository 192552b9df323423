/* SPDX-License-Identifier: BSD-3-Clause */
/* poll() and epoll: current state of sockets, and waiting for changes. */
#include <errno.h>

#include "script/so_world.h"

static bool has_unaccepted(const struct so_world *w, const struct sock *listener)
{
    for (int i = 0; i < SO_FDS_MAX; i++) {
        const struct sock *s = &w->sock[i];
        if (s->kind == SOCK_CONNECTION && s->listener == listener && !s->accepted)
            return true;
    }
    return false;
}

short so_sock_ready(const struct so_world *w, const struct sock *s)
{
    short r = 0;

    if (s->kind == SOCK_LISTENER)
        return has_unaccepted(w, s) ? POLLIN | POLLRDNORM : 0;
    if (s->kind == SOCK_FRESH)
        return POLLOUT | POLLWRNORM | POLLHUP;
    if (s->kind != SOCK_CONNECTION)
        return POLLNVAL;
    bool no_input = s->peer_fin || s->no_more_reads || s->dead;
    if (no_input || (s->tcb && probe_unread(s->tcb) > 0))
        r |= POLLIN | POLLRDNORM;
    if (no_input)
        r |= POLLRDHUP;
    if (s->dead || s->no_more_writes ||
        (s->tcb && s->opened && nj_tcp_send_room(s->tcb) >= NJ_SENDQ_BYTES_MIN / 3))
        r |= POLLOUT | POLLWRNORM;
    if (s->dead || (no_input && s->no_more_writes))
        r |= POLLHUP;
    if (s->error)
        r |= POLLERR;
    return r;
}

/* --- poll --------------------------------------------------------------------------------------
 */

struct poll_wish {
    struct so_world *w;
    struct pollfd *fds;
    nfds_t n;
};

static int poll_now(const struct poll_wish *p)
{
    int n_ready = 0;

    for (nfds_t i = 0; i < p->n; i++) {
        struct pollfd *f = &p->fds[i];
        f->revents = 0;
        if (f->fd < 0)
            continue;
        const struct sock *s = so_sock(p->w, f->fd);
        short is = s ? so_sock_ready(p->w, s) : POLLNVAL;
        f->revents = (short)(is & (f->events | POLLERR | POLLHUP | POLLNVAL));
        n_ready += f->revents != 0;
    }
    return n_ready;
}

static bool poll_ready(void *arg)
{
    return poll_now(arg) > 0;
}

static nj_ns deadline_of(const struct so_world *w, int timeout_ms)
{
    return timeout_ms < 0 ? NJ_NEVER : w->now + (nj_ns)timeout_ms * NJ_MS;
}

int so_poll(void *arg, struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct so_world *w = arg;
    struct poll_wish p = {w, fds, n};

    if (!fds && n > 0)
        return so_fail(EFAULT);
    so_lock(w);
    so_wait(w, poll_ready, &p, deadline_of(w, timeout_ms));
    int n_ready = poll_now(&p);
    so_unlock(w);
    return n_ready;
}

/* --- epoll -------------------------------------------------------------------------------------
 */

int so_epoll_create(void *arg, int size)
{
    struct so_world *w = arg;

    if (size <= 0)
        return so_fail(EINVAL);
    so_lock(w);
    struct sock *s = so_sock_new(w, SOCK_EPOLL);
    int fd = s ? so_sock_open(w, s) : -1;
    if (s && fd < 0)
        s->kind = SOCK_FREE;
    so_unlock(w);
    return fd;
}

static struct watch *find_watch(struct sock *ep, int fd)
{
    for (int i = 0; i < SO_WATCHES_MAX; i++)
        if (ep->watch[i].fd == fd)
            return &ep->watch[i];
    return NULL;
}

static int ctl_locked(struct sock *ep, const struct sock *s, int op, int fd,
                      const struct epoll_event *event)
{
    struct watch *x = find_watch(ep, fd);

    if (ep->kind != SOCK_EPOLL || s->kind == SOCK_EPOLL)
        return so_fail(EINVAL);
    if (!event && op != EPOLL_CTL_DEL)
        return so_fail(EFAULT);
    if (op == EPOLL_CTL_ADD) {
        if (x)
            return so_fail(EEXIST);
        x = find_watch(ep, 0);
        if (!x)
            return so_fail(ENOSPC);
    } else if (!x) {
        return so_fail(ENOENT);
    }
    if (op == EPOLL_CTL_DEL)
        *x = (struct watch){0};
    else
        *x = (struct watch){.fd = fd, .event = *event, .seen = s->news - 1};
    return 0;
}

int so_epoll_ctl(void *arg, int epfd, int op, int fd, struct epoll_event *event)
{
    struct so_world *w = arg;

    so_lock(w);
    struct sock *ep = so_sock(w, epfd), *s = so_sock(w, fd);
    int result = ep && s ? ctl_locked(ep, s, op, fd, event) : so_fail(EBADF);
    so_unlock(w);
    return result;
}

struct epoll_wish {
    struct so_world *w;
    struct sock *ep;
};

static uint32_t watch_ready(struct so_world *w, const struct watch *x)
{
    const struct sock *s = x->fd ? so_sock(w, x->fd) : NULL;

    if (!s || !x->event.events || ((x->event.events & EPOLLET) && x->seen == s->news))
        return 0;
    return (uint32_t)so_sock_ready(w, s) & (x->event.events | EPOLLERR | EPOLLHUP);
}

static bool epoll_ready(void *arg)
{
    const struct epoll_wish *e = arg;

    for (int i = 0; i < SO_WATCHES_MAX; i++)
        if (watch_ready(e->w, &e->ep->watch[i]))
            return true;
    return false;
}

static int tell(struct so_world *w, struct sock *ep, struct epoll_event *events, int n_max)
{
    int n = 0;

    for (int i = 0; i < SO_WATCHES_MAX && n < n_max; i++) {
        struct watch *x = &ep->watch[i];
        uint32_t ready = watch_ready(w, x);
        if (!ready)
            continue;
        events[n].events = ready;
        events[n++].data = x->event.data;
        x->seen = so_sock(w, x->fd)->news;
        if (x->event.events & EPOLLONESHOT)
            x->event.events = 0;
    }
    return n;
}

int so_epoll_wait(void *arg, int epfd, struct epoll_event *events, int n_max, int timeout_ms)
{
    struct so_world *w = arg;
    int n = -1;

    so_lock(w);
    struct sock *ep = so_sock(w, epfd);
    if (ep && (ep->kind != SOCK_EPOLL || n_max <= 0))
        n = so_fail(EINVAL);
    else if (ep && !events)
        n = so_fail(EFAULT);
    else if (ep) {
        struct epoll_wish e = {w, ep};
        so_wait(w, epoll_ready, &e, deadline_of(w, timeout_ms));
        n = tell(w, ep, events, n_max);
    }
    so_unlock(w);
    return n;
}
