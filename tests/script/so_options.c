/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket options, fcntl() and ioctl(). Features that lib/tcp lacks are refused, not ignored. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "script/so_world.h"

static int fcntl_locked(struct sock *s, int cmd, int arg)
{
    switch (cmd) {
    case F_GETFL:
        return O_RDWR | (s->nonblock ? O_NONBLOCK : 0);
    case F_SETFL:
        s->nonblock = arg & O_NONBLOCK;
        return 0;
    default:
        return so_fail(EINVAL);
    }
}

int so_fcntl(void *arg, int fd, int cmd, ...)
{
    struct so_world *w = arg;
    va_list ap;

    va_start(ap, cmd);
    int value = cmd == F_SETFL ? va_arg(ap, int) : 0;
    va_end(ap);
    so_lock(w);
    struct sock *s = so_sock(w, fd);
    int result = s ? fcntl_locked(s, cmd, value) : -1;
    so_unlock(w);
    return result;
}

static int ioctl_locked(const struct sock *s, unsigned long request, int *value)
{
    struct tcp_info info;

    if (s->kind != SOCK_CONNECTION)
        return so_fail(EINVAL);
    if (!value)
        return so_fail(EFAULT);
    switch (request) {
    case SIOCINQ: /* FIONREAD */
        *value = s->tcb ? (int)probe_unread(s->tcb) : 0;
        return 0;
    case SIOCOUTQ: /* TIOCOUTQ */
        *value = s->tcb ? (int)probe_unacked_bytes(s->tcb) : 0;
        return 0;
    case SIOCOUTQNSD:
        *value = 0;
        if (s->tcb) {
            probe_tcp_info(s->tcb, &info);
            *value = (int)info.tcpi_notsent_bytes;
        }
        return 0;
    default:
        return so_fail(EINVAL);
    }
}

int so_ioctl(void *arg, int fd, unsigned long request, ...)
{
    struct so_world *w = arg;
    va_list ap;

    va_start(ap, request);
    int *value = va_arg(ap, int *);
    va_end(ap);
    so_lock(w);
    struct sock *s = so_sock(w, fd);
    int result = s ? ioctl_locked(s, request, value) : -1;
    so_unlock(w);
    return result;
}

/* --- getsockopt --------------------------------------------------------------------------------
 */

static int put(void *value, socklen_t *n, const void *from, size_t n_from)
{
    if (*n > n_from)
        *n = (socklen_t)n_from;
    memcpy(value, from, *n);
    return 0;
}

static int put_int(void *value, socklen_t *n, int v)
{
    return put(value, n, &v, sizeof v);
}

/* SO_MEMINFO. lib/tcp counts payload bytes, without the buffers' overhead. */
static int get_meminfo(const struct sock *s, void *value, socklen_t *n)
{
    uint32_t unacked = s->tcb ? probe_unacked_bytes(s->tcb) : 0;
    uint32_t info[SK_MEMINFO_VARS] = {
        [SK_MEMINFO_RMEM_ALLOC] = s->tcb ? probe_unread(s->tcb) : 0,
        [SK_MEMINFO_RCVBUF] = NJ_RECV_WINDOW_BYTES,
        [SK_MEMINFO_WMEM_ALLOC] = unacked,
        [SK_MEMINFO_SNDBUF] = NJ_SENDQ_BYTES_MAX,
        [SK_MEMINFO_WMEM_QUEUED] = unacked,
    };
    return put(value, n, info, sizeof info);
}

static int get_socket(struct sock *s, int name, void *value, socklen_t *n)
{
    struct linger linger = {s->linger_on, s->linger_s};
    int e = s->error;

    switch (name) {
    case SO_ERROR:
        s->error = 0;
        return put_int(value, n, e);
    case SO_REUSEADDR:
        return put_int(value, n, s->reuse_addr);
    case SO_KEEPALIVE:
        return put_int(value, n, s->keepalive);
    case SO_LINGER:
        return put(value, n, &linger, sizeof linger);
    case SO_SNDBUF:
        return put_int(value, n, NJ_SENDQ_BYTES_MAX);
    case SO_RCVBUF:
        return put_int(value, n, NJ_RECV_WINDOW_BYTES);
    case SO_TYPE:
        return put_int(value, n, SOCK_STREAM);
    case SO_PROTOCOL:
        return put_int(value, n, IPPROTO_TCP);
    case SO_ACCEPTCONN:
        return put_int(value, n, s->kind == SOCK_LISTENER);
    case SO_MEMINFO:
        return get_meminfo(s, value, n);
    default:
        return so_fail(ENOPROTOOPT);
    }
}

/* TCP_INFO, as long as the caller asks for. The struct grows with Linux, and packetdrill refuses an
 * answer that is shorter than its own copy. Fields that our headers lack are 0. */
static int put_tcp_info(void *value, const socklen_t *n, const struct tcp_info *info)
{
    size_t n_info = *n < sizeof *info ? *n : sizeof *info;

    memset(value, 0, *n);
    memcpy(value, info, n_info);
    return 0;
}

static int get_tcp(const struct sock *s, int name, void *value, socklen_t *n)
{
    struct tcp_info info = s->last_info;

    switch (name) {
    case TCP_INFO:
        if (s->tcb)
            probe_tcp_info(s->tcb, &info);
        else
            info.tcpi_state = s->kind == SOCK_LISTENER ? 10 : 7;
        return put_tcp_info(value, n, &info);
    case TCP_CC_INFO: /* empty, as in Linux for CUBIC and Reno */
        *n = 0;
        return 0;
    case TCP_MAXSEG:
        return put_int(value, n, s->tcb ? (int)probe_mss(s->tcb) : 536);
    case TCP_NODELAY:
        return put_int(value, n, 1);
    default:
        return so_fail(ENOPROTOOPT);
    }
}

int so_getsockopt(void *arg, int fd, int level, int name, void *value, socklen_t *n)
{
    struct so_world *w = arg;
    int result = -1;

    so_lock(w);
    struct sock *s = so_sock(w, fd);
    if (s && (!value || !n))
        result = so_fail(EFAULT);
    else if (s && level == SOL_SOCKET)
        result = get_socket(s, name, value, n);
    else if (s && level == IPPROTO_TCP)
        result = get_tcp(s, name, value, n);
    else if (s)
        result = so_fail(ENOPROTOOPT);
    so_unlock(w);
    return result;
}

/* --- setsockopt --------------------------------------------------------------------------------
 */

static int set_linger(struct sock *s, const void *value, socklen_t n)
{
    struct linger linger;

    if (n < sizeof linger)
        return so_fail(EINVAL);
    memcpy(&linger, value, sizeof linger);
    s->linger_on = linger.l_onoff;
    s->linger_s = linger.l_linger;
    return 0;
}

/* Buffers have a fixed size, so setting another size is refused. An address is never in use longer
 * than its connection, so SO_REUSEADDR always succeeds. */
static int set_option(struct so_world *w, struct sock *s, int level, int name, int v)
{
    if (level == SOL_SOCKET && (name == SO_REUSEADDR || name == SO_REUSEPORT)) {
        s->reuse_addr = v;
        return 0;
    }
    if (!probe_set_option(&w->tcp, s->tcb, level, name, v, w->now))
        return so_fail(ENOPROTOOPT);
    if (level == SOL_SOCKET && name == SO_KEEPALIVE)
        s->keepalive = v;
    so_turn(w);
    return 0;
}

int so_setsockopt(void *arg, int fd, int level, int name, const void *value, socklen_t n)
{
    struct so_world *w = arg;
    int v = 0, result;

    if (value && n >= sizeof v)
        memcpy(&v, value, sizeof v);
    so_lock(w);
    struct sock *s = so_sock(w, fd);
    if (!s)
        result = -1;
    else if (!value)
        result = so_fail(EFAULT);
    else if (level == SOL_SOCKET && name == SO_LINGER)
        result = set_linger(s, value, n);
    else if (n < sizeof v)
        result = so_fail(EINVAL);
    else
        result = set_option(w, s, level, name, v);
    so_unlock(w);
    return result;
}
