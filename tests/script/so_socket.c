/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets: creation, binding, connecting, closing. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "script/so_world.h"

int so_fail(int e)
{
    errno = e;
    return -1;
}

struct sock *so_sock(struct so_world *w, int fd)
{
    for (int i = 0; fd >= 0 && i < SO_FDS_MAX; i++)
        if (w->sock[i].kind != SOCK_FREE && w->sock[i].fd == fd)
            return &w->sock[i];
    errno = EBADF;
    return NULL;
}

struct sock *so_sock_new(struct so_world *w, enum sock_kind kind)
{
    for (int i = 0; i < SO_FDS_MAX; i++) {
        struct sock *s = &w->sock[i];
        if (s->kind == SOCK_FREE) {
            *s = (struct sock){.kind = kind, .fd = -1, .family = AF_INET, .born = ++w->n_born};
            return s;
        }
    }
    errno = EMFILE;
    return NULL;
}

int so_sock_open(struct so_world *w, struct sock *s)
{
    int fd = fcntl(w->anchor, F_DUPFD_CLOEXEC, SO_FD_MIN);
    struct sock *stale = fd >= 0 ? so_sock(w, fd) : NULL;

    if (stale) /* its descriptor was closed by the kernel's close(), and the number was reused */
        stale->fd = -1;
    if (fd >= 0)
        s->fd = fd;
    return fd;
}

/* Only if it is ours: the stock runner closes descriptors itself, and the number may have another
 * owner. */
static void close_descriptor(const struct so_world *w, struct sock *s)
{
    struct stat is, ours;

    if (s->fd >= 0 && fstat(s->fd, &is) == 0 && fstat(w->anchor, &ours) == 0 &&
        is.st_dev == ours.st_dev && is.st_ino == ours.st_ino)
        close(s->fd);
    s->fd = -1;
}

/* --- addresses: IPv4, bare or mapped into IPv6, and IPv6 -------------------------------------- */

static bool addr_get(const struct sockaddr *from, socklen_t n, struct nj_addr *ip, uint16_t *port)
{
    if (n >= sizeof(struct sockaddr_in) && from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        *ip = nj_addr_from_v4(in.sin_addr.s_addr);
        *port = ntohs(in.sin_port);
        return true;
    }
    if (n >= sizeof(struct sockaddr_in6) && from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof in6);
        memcpy(ip, &in6.sin6_addr, sizeof *ip);
        *port = ntohs(in6.sin6_port);
        return true;
    }
    return false;
}

void so_addr_put(const struct sock *s, const struct nj_addr *ip, uint16_t port, struct sockaddr *to,
                 socklen_t *n)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool v6 = s->family == AF_INET6;

    if (!to || !n)
        return;
    in.sin_addr.s_addr = nj_addr_to_v4(ip);
    memcpy(&in6.sin6_addr, ip, sizeof *ip);
    socklen_t whole = v6 ? sizeof in6 : sizeof in;
    memcpy(to, v6 ? (void *)&in6 : (void *)&in, *n < whole ? *n : whole);
    *n = whole;
}

/* --- news from the stack ---------------------------------------------------------------------- */

static struct sock *listener_of(struct so_world *w, uint16_t port)
{
    for (int i = 0; i < SO_FDS_MAX; i++)
        if (w->sock[i].kind == SOCK_LISTENER && w->sock[i].port == port)
            return &w->sock[i];
    return NULL;
}

/* A peer opened a connection: it waits for accept() as a socket without a descriptor. */
static struct sock *arrived(struct so_world *w, struct nj_tcb *t)
{
    struct sock *listener = listener_of(w, probe_tuple(t)->lport);
    struct sock *s = listener ? so_sock_new(w, SOCK_CONNECTION) : NULL;

    if (!s)
        return NULL;
    s->listener = listener;
    s->family = listener->family;
    s->tcb = t;
    s->tuple = *probe_tuple(t);
    listener->news++;
    probe_set_user(t, s);
    return s;
}

/* Error of an ended connection: by a time-out, or by a segment of the peer. A close by both ends
 * is none. */
static int why_dead(const struct so_world *w, const struct sock *s)
{
    if (s->peer_fin && s->no_more_writes)
        return 0;
    if (w->in_tick)
        return ETIMEDOUT;
    if (!s->opened)
        return ECONNREFUSED;
    return s->peer_fin ? EPIPE : ECONNRESET;
}

void so_sock_events(struct so_world *w, struct nj_tcb *t, uint8_t events)
{
    struct sock *s = probe_user(t);

    if (!s && !(events & NJ_TCP_EV_DEAD))
        s = arrived(w, t);
    if (!s) { /* the listener is gone, or the connection ended before accept() */
        nj_tcp_release(&w->tcp, t, w->now);
        return;
    }
    s->news++;
    /* A failed connect() reports both at once: it never opened. */
    s->opened |= (events & (NJ_TCP_EV_OPENED | NJ_TCP_EV_DEAD)) == NJ_TCP_EV_OPENED;
    s->peer_fin |= (events & NJ_TCP_EV_PEER_FIN) != 0;
    if (!(events & NJ_TCP_EV_DEAD))
        return;
    s->error = why_dead(w, s);
    s->dead = true;
    s->tcb = NULL;
    probe_tcp_info(t, &s->last_info);
    nj_tcp_release(&w->tcp, t, w->now);
}

/* --- the calls -------------------------------------------------------------------------------- */

int so_socket(void *arg, int domain, int type, int protocol)
{
    struct so_world *w = arg;

    if (domain != AF_INET && domain != AF_INET6)
        return so_fail(EAFNOSUPPORT);
    if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM ||
        (protocol != IPPROTO_TCP && protocol != 0))
        return so_fail(EPROTONOSUPPORT);
    so_lock(w);
    struct sock *s = so_sock_new(w, SOCK_FRESH);
    int fd = s ? so_sock_open(w, s) : -1;
    if (fd >= 0) {
        s->family = domain;
        s->nonblock = type & SOCK_NONBLOCK;
    } else if (s) {
        s->kind = SOCK_FREE;
    }
    so_unlock(w);
    return fd;
}

int so_bind(void *arg, int fd, const struct sockaddr *addr, socklen_t n)
{
    struct so_world *w = arg;
    int result = 0;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    if (!s)
        result = -1;
    else if (!addr)
        result = so_fail(EFAULT);
    else if (s->kind != SOCK_FRESH || s->bound || !addr_get(addr, n, &s->local, &s->port))
        result = so_fail(EINVAL);
    else
        s->bound = true;
    so_unlock(w);
    return result;
}

int so_listen(void *arg, int fd, int backlog)
{
    struct so_world *w = arg;
    int result = 0;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    if (!s) {
        result = -1;
    } else if (s->kind == SOCK_LISTENER) {
        s->backlog = backlog;
    } else if (s->kind != SOCK_FRESH || !s->bound) {
        result = so_fail(EINVAL);
    } else if (listener_of(w, s->port) ||
               !nj_tcp_listen(&w->tcp, &(struct nj_listener){.port = s->port})) {
        result = so_fail(EADDRINUSE);
    } else {
        s->kind = SOCK_LISTENER;
        s->backlog = backlog;
    }
    so_unlock(w);
    return result;
}

static struct sock *oldest_unaccepted(struct so_world *w, const struct sock *listener)
{
    struct sock *oldest = NULL;

    for (int i = 0; i < SO_FDS_MAX; i++) {
        struct sock *s = &w->sock[i];
        if (s->kind == SOCK_CONNECTION && s->listener == listener && !s->accepted &&
            (!oldest || s->born < oldest->born))
            oldest = s;
    }
    return oldest;
}

/* The condition of a blocking call. */
struct wish {
    struct so_world *w;
    struct sock *s;
};

static bool can_accept(void *arg)
{
    const struct wish *wish = arg;
    return wish->s->kind != SOCK_LISTENER || oldest_unaccepted(wish->w, wish->s);
}

static int accept_locked(struct so_world *w, struct sock *s, struct sockaddr *addr, socklen_t *n)
{
    struct wish wish = {w, s};

    if (s->kind != SOCK_LISTENER)
        return so_fail(EINVAL);
    if (!can_accept(&wish) && (s->nonblock || !so_wait(w, can_accept, &wish, NJ_NEVER)))
        return so_fail(EAGAIN);
    struct sock *c = s->kind == SOCK_LISTENER ? oldest_unaccepted(w, s) : NULL;
    if (!c)
        return so_fail(EINVAL); /* closed in the meantime */
    if (addr && !n)
        return so_fail(EFAULT);
    if (so_sock_open(w, c) < 0)
        return -1;
    c->accepted = true;
    so_addr_put(c, &c->tuple.remote, c->tuple.rport, addr, n);
    return c->fd;
}

int so_accept(void *arg, int fd, struct sockaddr *addr, socklen_t *n)
{
    struct so_world *w = arg;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    int result = s ? accept_locked(w, s, addr, n) : -1;
    so_unlock(w);
    return result;
}

static bool connect_done(void *arg)
{
    const struct wish *wish = arg;
    return wish->s->opened || wish->s->dead || wish->s->kind != SOCK_CONNECTION;
}

static int connect_result(struct sock *s)
{
    if (s->opened)
        return 0;
    int e = s->error ? s->error : ECONNABORTED;
    s->error = 0;
    return so_fail(e);
}

static int connect_locked(struct so_world *w, struct sock *s, const struct sockaddr *addr,
                          socklen_t n)
{
    struct wish wish = {w, s};
    struct nj_tuple t = {.lport = s->port, .local = s->bound ? s->local : w->local};

    if (!addr)
        return so_fail(EFAULT);
    if (s->kind == SOCK_CONNECTION)
        return s->dead ? connect_result(s) : so_fail(s->opened ? EISCONN : EALREADY);
    if (s->kind != SOCK_FRESH || !addr_get(addr, n, &t.remote, &t.rport))
        return so_fail(EINVAL);
    if (t.lport == 0)
        t.lport = w->next_port++;
    s->tcb = nj_tcp_connect(&w->tcp, &t, w->now);
    if (!s->tcb)
        return so_fail(EADDRINUSE);
    s->kind = SOCK_CONNECTION;
    s->accepted = true;
    s->tuple = t;
    probe_set_user(s->tcb, s);
    so_turn(w);
    if (s->nonblock)
        return so_fail(EINPROGRESS);
    so_wait(w, connect_done, &wish, NJ_NEVER);
    return connect_result(s);
}

int so_connect(void *arg, int fd, const struct sockaddr *addr, socklen_t n)
{
    struct so_world *w = arg;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    int result = s ? connect_locked(w, s, addr, n) : -1;
    so_unlock(w);
    return result;
}

/* The user releases the connection, if it still exists. */
static void let_go(struct so_world *w, struct sock *s, bool abort)
{
    struct nj_tcb *t = s->tcb;

    close_descriptor(w, s);
    s->tcb = NULL;
    s->kind = SOCK_FREE;
    if (!t)
        return;
    if (abort)
        nj_tcp_abort(&w->tcp, t, w->now);
    else if (probe_unread(t) == 0) /* otherwise it is reset: RFC 2525 2.17 */
        nj_tcp_close(&w->tcp, t, w->now);
    nj_tcp_release(&w->tcp, t, w->now);
}

static void close_listener(struct so_world *w, struct sock *listener)
{
    struct sock *s;

    probe_unlisten(&w->tcp, listener->port);
    while ((s = oldest_unaccepted(w, listener)))
        let_go(w, s, true);
    close_descriptor(w, listener);
    listener->kind = SOCK_FREE;
}

void so_sock_close(struct so_world *w, struct sock *s)
{
    if (s->kind == SOCK_LISTENER)
        close_listener(w, s);
    else
        let_go(w, s, s->linger_on && s->linger_s == 0);
    so_turn(w);
}

int so_close(void *arg, int fd)
{
    struct so_world *w = arg;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    if (s)
        so_sock_close(w, s);
    so_unlock(w);
    return s ? 0 : -1;
}

static int shutdown_locked(struct so_world *w, struct sock *s, int how)
{
    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        return so_fail(EINVAL);
    if (s->kind != SOCK_CONNECTION || !s->tcb || !s->opened)
        return so_fail(ENOTCONN);
    s->news++;
    s->no_more_reads |= how != SHUT_WR;
    if (how != SHUT_RD && !s->no_more_writes) {
        s->no_more_writes = true;
        nj_tcp_close(&w->tcp, s->tcb, w->now);
    }
    so_turn(w);
    return 0;
}

int so_shutdown(void *arg, int fd, int how)
{
    struct so_world *w = arg;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    int result = s ? shutdown_locked(w, s, how) : -1;
    so_unlock(w);
    return result;
}
