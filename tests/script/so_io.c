/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes to and from a connection. Every form of read and write is converted to a list of
 * buffers. */
#include <errno.h>

#include "script/so_world.h"

struct wish {
    struct so_world *w;
    struct sock *s;
};

static bool can_read(void *arg)
{
    const struct sock *s = ((struct wish *)arg)->s;
    return s->kind != SOCK_CONNECTION || s->dead || s->peer_fin || s->no_more_reads ||
           (s->tcb && probe_unread(s->tcb) > 0);
}

static bool can_write(void *arg)
{
    const struct sock *s = ((struct wish *)arg)->s;
    return s->kind != SOCK_CONNECTION || s->dead || s->no_more_writes ||
           (s->tcb && s->opened && nj_tcp_send_room(s->tcb) > 0);
}

/* An error is reported once. */
static ssize_t end_of_stream(struct sock *s)
{
    int e = s->error;
    s->error = 0;
    return e && e != EPIPE ? so_fail(e) : 0;
}

/* Reads up to `n` bytes. With MSG_PEEK at most the first contiguous part. MSG_TRUNC discards bytes
 * (tcp(7)); otherwise none are read without a buffer. */
static size_t take_bytes(struct so_world *w, struct sock *s, uint8_t *to, size_t n, int flags)
{
    const uint8_t *data;
    bool drop = flags & MSG_TRUNC;
    size_t got = 0;
    uint32_t there;

    while (got < n && s->tcb && (there = nj_tcp_recv_peek(s->tcb, &data)) > 0) {
        uint32_t part = there < n - got ? there : (uint32_t)(n - got);
        if (!to && !drop)
            break;
        if (!drop)
            memcpy(to + got, data, part);
        got += part;
        if (flags & MSG_PEEK)
            break;
        nj_tcp_recv_take(&w->tcp, s->tcb, part);
    }
    return got;
}

static ssize_t read_locked(struct so_world *w, struct sock *s, const struct iovec *iov,
                           size_t n_iov, int flags)
{
    struct wish wish = {w, s};
    size_t got = 0, wanted = 0;

    for (size_t i = 0; i < n_iov; i++)
        wanted += iov[i].iov_len;
    if (s->kind != SOCK_CONNECTION)
        return so_fail(ENOTCONN);
    bool blocks = !s->nonblock && !(flags & MSG_DONTWAIT);
    do {
        if (wanted == 0)
            break;
        if (!can_read(&wish) && (!blocks || !so_wait(w, can_read, &wish, NJ_NEVER)))
            return got ? (ssize_t)got : so_fail(EAGAIN);
        size_t before = got, skip = got;
        for (size_t i = 0; i < n_iov; i++) {
            size_t at = skip < iov[i].iov_len ? skip : iov[i].iov_len;
            skip -= at;
            uint8_t *to = iov[i].iov_base ? (uint8_t *)iov[i].iov_base + at : NULL;
            got += take_bytes(w, s, to, iov[i].iov_len - at, flags);
        }
        if (got == 0 && s->tcb && probe_unread(s->tcb) > 0)
            return so_fail(EFAULT); /* there are bytes and no buffer */
        if (got == before)
            break; /* the end */
    } while ((flags & MSG_WAITALL) && got < wanted);
    if (got == 0 && wanted > 0)
        return end_of_stream(s);
    so_turn(w); /* the window may have opened */
    return (ssize_t)got;
}

static ssize_t write_error(struct sock *s)
{
    int e = s->error ? s->error : EPIPE;
    s->error = 0;
    return so_fail(e);
}

static ssize_t write_locked(struct so_world *w, struct sock *s, const uint8_t *data, size_t n,
                            int flags)
{
    struct wish wish = {w, s};
    size_t done = 0;
    bool blocks = !s->nonblock && !(flags & MSG_DONTWAIT);

    if (s->kind != SOCK_CONNECTION)
        return so_fail(s->kind == SOCK_FRESH ? EPIPE : ENOTCONN);
    while (done < n) {
        if (!can_write(&wish) && (!blocks || !so_wait(w, can_write, &wish, NJ_NEVER)))
            return done ? (ssize_t)done : so_fail(EAGAIN);
        if (!s->tcb || s->no_more_writes)
            return done ? (ssize_t)done : write_error(s);
        if (!data)
            return so_fail(EFAULT);
        uint32_t room = nj_tcp_send_room(s->tcb);
        uint32_t part = n - done < room ? (uint32_t)(n - done) : room;
        if (!nj_tcp_send_copy(&w->tcp, s->tcb, data + done, part))
            return done ? (ssize_t)done : so_fail(ENOBUFS);
        done += part;
        so_turn(w);
    }
    return (ssize_t)done;
}

/* --- the forms of it -------------------------------------------------------------------------- */

static ssize_t read_any(void *arg, int fd, const struct iovec *iov, size_t n, int flags)
{
    struct so_world *w = arg;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    ssize_t result = !s ? -1 : iov || n == 0 ? read_locked(w, s, iov, n, flags) : so_fail(EFAULT);
    so_unlock(w);
    return result;
}

/* One buffer after the other; a short write ends it. */
static ssize_t write_any(void *arg, int fd, const struct iovec *iov, size_t n, int flags)
{
    struct so_world *w = arg;
    ssize_t total = 0, part = 0;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    bool bad = !s || (!iov && n > 0);
    if (bad)
        total = s ? so_fail(EFAULT) : -1;
    for (size_t i = 0; !bad && i < n && part == (ssize_t)(i ? iov[i - 1].iov_len : 0); i++) {
        part = write_locked(w, s, iov[i].iov_base, iov[i].iov_len, flags);
        if (part < 0 && total == 0)
            total = -1;
        else if (part > 0)
            total += part;
    }
    so_unlock(w);
    return total;
}

ssize_t so_recv(void *w, int fd, void *buf, size_t n, int flags)
{
    return read_any(w, fd, &(struct iovec){buf, n}, 1, flags);
}

ssize_t so_read(void *w, int fd, void *buf, size_t n)
{
    return so_recv(w, fd, buf, n, 0);
}

ssize_t so_readv(void *w, int fd, const struct iovec *iov, int n)
{
    return read_any(w, fd, iov, n > 0 ? (size_t)n : 0, 0);
}

ssize_t so_recvfrom(void *w, int fd, void *buf, size_t n, int flags, struct sockaddr *from,
                    socklen_t *n_from)
{
    (void)from;
    if (n_from)
        *n_from = 0; /* a stream has no sender addresses */
    return so_recv(w, fd, buf, n, flags);
}

ssize_t so_recvmsg(void *w, int fd, struct msghdr *msg, int flags)
{
    if (!msg)
        return so_fail(EFAULT);
    msg->msg_flags = 0;
    msg->msg_controllen = 0;
    msg->msg_namelen = 0;
    return read_any(w, fd, msg->msg_iov, msg->msg_iovlen, flags);
}

ssize_t so_send(void *w, int fd, const void *buf, size_t n, int flags)
{
    union {
        const void *in;
        void *out;
    } base = {.in = buf};
    return write_any(w, fd, &(struct iovec){base.out, n}, 1, flags);
}

ssize_t so_write(void *w, int fd, const void *buf, size_t n)
{
    return so_send(w, fd, buf, n, 0);
}

ssize_t so_writev(void *w, int fd, const struct iovec *iov, int n)
{
    return write_any(w, fd, iov, n > 0 ? (size_t)n : 0, 0);
}

ssize_t so_sendto(void *w, int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
                  socklen_t n_to)
{
    (void)n_to;
    if (flags & MSG_FASTOPEN)
        return so_fail(EOPNOTSUPP);
    if (to && so_sock(w, fd) && so_sock(w, fd)->kind == SOCK_CONNECTION)
        return so_fail(EISCONN);
    return so_send(w, fd, buf, n, flags);
}

ssize_t so_sendmsg(void *w, int fd, const struct msghdr *msg, int flags)
{
    if (flags & (MSG_FASTOPEN | MSG_ZEROCOPY))
        return so_fail(EOPNOTSUPP);
    if (!msg)
        return so_fail(EFAULT);
    return write_any(w, fd, msg->msg_iov, msg->msg_iovlen, flags);
}
