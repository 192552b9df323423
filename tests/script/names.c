/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of constants in scripts. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#include "script/script.h"

struct name {
    const char *name;
    int64_t value;
};

#define N(x)                                                                                       \
    {                                                                                              \
#x, x                                                                                      \
    }

static const struct name names[] = {
    N(AF_INET),
    N(AF_INET6),
    N(PF_INET),
    N(PF_INET6),
    N(SOCK_STREAM),
    N(SOCK_NONBLOCK),
    N(SOCK_CLOEXEC),
    N(SOCK_DGRAM),
    N(IPPROTO_TCP),
    N(IPPROTO_IP),
    N(IPPROTO_IPV6),
    N(SOL_SOCKET),
    {"SOL_TCP", IPPROTO_TCP},
    {"NULL", 0},
    N(SO_REUSEADDR),
    N(SO_REUSEPORT),
    N(SO_KEEPALIVE),
    N(SO_LINGER),
    N(SO_ERROR),
    N(SO_SNDBUF),
    N(SO_RCVBUF),
    N(SO_TYPE),
    N(SO_PROTOCOL),
    N(SO_ACCEPTCONN),
    N(SO_PRIORITY),
    N(SO_ZEROCOPY),
    N(TCP_NODELAY),
    N(TCP_MAXSEG),
    N(TCP_CORK),
    N(TCP_KEEPIDLE),
    N(TCP_KEEPINTVL),
    N(TCP_KEEPCNT),
    N(TCP_SYNCNT),
    N(TCP_LINGER2),
    N(TCP_DEFER_ACCEPT),
    N(TCP_WINDOW_CLAMP),
    N(TCP_INFO),
    N(TCP_QUICKACK),
    N(TCP_CONGESTION),
    N(TCP_USER_TIMEOUT),
    N(TCP_FASTOPEN),
    N(TCP_FASTOPEN_CONNECT),
    N(TCP_NOTSENT_LOWAT),
    N(TCP_TIMESTAMP),
    N(TCP_INQ),
    N(O_NONBLOCK),
    N(O_RDWR),
    N(O_RDONLY),
    N(O_WRONLY),
    N(F_GETFL),
    N(F_SETFL),
    N(SHUT_RD),
    N(SHUT_WR),
    N(SHUT_RDWR),
    N(MSG_DONTWAIT),
    N(MSG_PEEK),
    N(MSG_WAITALL),
    N(MSG_TRUNC),
    N(MSG_NOSIGNAL),
    N(MSG_MORE),
    N(MSG_EOR),
    N(MSG_FASTOPEN),
    N(MSG_ZEROCOPY),
    N(MSG_ERRQUEUE),
    N(POLLIN),
    N(POLLOUT),
    N(POLLERR),
    N(POLLHUP),
    N(POLLRDHUP),
    N(POLLNVAL),
    N(POLLPRI),
    N(POLLRDNORM),
    N(POLLWRNORM),
    N(EPOLLIN),
    N(EPOLLOUT),
    N(EPOLLERR),
    N(EPOLLHUP),
    N(EPOLLRDHUP),
    N(EPOLLET),
    {"EPOLLONESHOT", (int64_t)(uint32_t)EPOLLONESHOT},
    N(EPOLL_CTL_ADD),
    N(EPOLL_CTL_MOD),
    N(EPOLL_CTL_DEL),
    N(FIONREAD),
    N(SIOCINQ),
    N(SIOCOUTQ),
    N(SIOCOUTQNSD),
    {"TCP_ESTABLISHED", 1},
    {"TCP_SYN_SENT", 2},
    {"TCP_SYN_RECV", 3},
    {"TCP_FIN_WAIT1", 4},
    {"TCP_FIN_WAIT2", 5},
    {"TCP_TIME_WAIT", 6},
    {"TCP_CLOSE", 7},
    {"TCP_CLOSE_WAIT", 8},
    {"TCP_LAST_ACK", 9},
    {"TCP_LISTEN", 10},
    {"TCP_CLOSING", 11},
    N(TCP_CA_Open),
    N(TCP_CA_Disorder),
    N(TCP_CA_CWR),
    N(TCP_CA_Recovery),
    N(TCP_CA_Loss),
    N(TCPI_OPT_TIMESTAMPS),
    N(TCPI_OPT_SACK),
    N(TCPI_OPT_WSCALE),
    N(TCPI_OPT_ECN),
};

static const struct name errnos[] = {
    N(EAGAIN),          N(EINPROGRESS),  N(EALREADY),
    N(EISCONN),         N(ENOTCONN),     N(ECONNRESET),
    N(ECONNREFUSED),    N(ECONNABORTED), N(ETIMEDOUT),
    N(EPIPE),           N(EINVAL),       N(EBADF),
    N(EADDRINUSE),      N(ENOPROTOOPT),  N(EOPNOTSUPP),
    N(EPROTONOSUPPORT), N(EAFNOSUPPORT), N(EMFILE),
    N(ENOBUFS),         N(EHOSTUNREACH), N(ENETUNREACH),
    N(EMSGSIZE),        N(EEXIST),       N(ENOENT),
    N(ENOSPC),          N(ENOSYS),       {"EWOULDBLOCK", EAGAIN},
    N(EFAULT),          N(EPERM),        N(EINTR),
    N(EDESTADDRREQ),    N(EPROTO),       N(EADDRNOTAVAIL),
};

bool name_value(const char *name, int64_t *value)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++) {
        if (strcmp(names[i].name, name) == 0) {
            *value = names[i].value;
            return true;
        }
    }
    return false;
}

const char *name_of_errno(int e)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(errnos); i++)
        if (errnos[i].value == e)
            return errnos[i].name;
    return strerror(e);
}

int name_errno(const char *name)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(errnos); i++)
        if (strcmp(errnos[i].name, name) == 0)
            return (int)errnos[i].value;
    return 0;
}
