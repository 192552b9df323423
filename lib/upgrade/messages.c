/* SPDX-License-Identifier: BSD-3-Clause */
/* The sockets of an upgrade (unix(7)): SOCK_SEQPACKET keeps the bounds of messages, SCM_RIGHTS
 * passes descriptors. */
#include "upgrade/messages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nightjar/nightjar.h>

#include "base/socket_path.h"
#include "base/types.h"
#include "dpdk/port.h"
#include "threads/os_clock.h"

#define MAGIC            "nightjar-up-1"
#define BACKLOG          4
#define ANSWER_TIMEOUT_S 10 /* the supervisor answers within 20 ms */

void nj__upgrade_describe(const struct nj_upgrade_port *port, uint32_t n_ports,
                          struct nj_upgrade_description *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->magic, sizeof out->magic, MAGIC);
    /* The field has room for the version without "+changed" and Debian's revision. */
    snprintf(out->version, sizeof out->version, "%.*s", (int)strcspn(nj_version(), "+-"),
             nj_version());
    out->pid = getpid();
    out->n_ports = n_ports;
    for (uint32_t k = 0; k < n_ports; k++) {
        const struct nj_dpdk_port *dev = port[k].dev;
        const struct nj_iface *iface = port[k].iface;
        struct nj_port_description *to = &out->port[k];
        snprintf(to->name, sizeof to->name, "%s", dev->name);
        snprintf(to->driver, sizeof to->driver, "%s", dev->driver);
        memcpy(to->mac, dev->mac.addr_bytes, sizeof to->mac);
        to->vlan = iface->vlan;
        to->shareable = dev->is_shareable;
        for (uint32_t i = 0; i < iface->n_addrs && i < NJ_SERVER_ADDRS_MAX; i++)
            to->addr[to->n_addrs++] = iface->addr[i].ip;
    }
}

int nj__upgrade_listen(const char *path)
{
    return nj_socket_path_listen(path, SOCK_SEQPACKET | SOCK_NONBLOCK, BACKLOG);
}

int nj__upgrade_connect(const char *path)
{
    return nj_socket_path_connect(path, SOCK_SEQPACKET, ANSWER_TIMEOUT_S);
}

static int close_after_error(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
    return -1;
}

int nj__upgrade_accept(int listen_fd)
{
    struct ucred who;
    socklen_t n = sizeof who;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
        (who.uid == 0 || who.uid == geteuid()))
        return fd;
    return close_after_error(fd);
}

bool nj__upgrade_send_description(int fd, const struct nj_upgrade_description *d)
{
    return send(fd, d, sizeof *d, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *d;
}

bool nj__upgrade_receive_description(int fd, struct nj_upgrade_description *d)
{
    ssize_t n = recv(fd, d, sizeof *d, MSG_TRUNC);

    if (n < 0)
        return false;
    errno = EPROTO;
    if (n != (ssize_t)sizeof *d || memcmp(d->magic, MAGIC, sizeof MAGIC) != 0 ||
        d->n_ports > NJ_SERVER_PORTS_MAX)
        return false;
    d->version[sizeof d->version - 1] = '\0';
    for (uint32_t k = 0; k < d->n_ports; k++) {
        struct nj_port_description *p = &d->port[k];
        p->name[sizeof p->name - 1] = p->driver[sizeof p->driver - 1] = '\0';
        if (p->n_addrs > NJ_SERVER_ADDRS_MAX)
            return false;
    }
    return true;
}

union control {
    char bytes[CMSG_SPACE(NJ_SERVER_PORTS_MAX * sizeof(int))];
    struct cmsghdr align;
};

bool nj__upgrade_send(int fd, enum nj_upgrade_message what, const int *fds, uint32_t n)
{
    uint32_t type = what;
    struct iovec part = {&type, sizeof type};
    union control control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (n > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof type;
}

/* The kernel has passed at most NJ_SERVER_PORTS_MAX. */
static void take_descriptors(struct msghdr *message, int *fds, uint32_t *n)
{
    uint32_t n_max = *n;

    *n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (*n < n_max)
                fds[(*n)++] = fd;
            else
                close(fd);
        }
    }
}

enum nj_upgrade_message nj__upgrade_receive(int fd, bool wait, int *fds, uint32_t *n)
{
    uint32_t type = NJ_MESSAGE_NONE;
    struct iovec part = {&type, sizeof type};
    union control control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    nj_ns until = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) + ANSWER_TIMEOUT_S * NJ_SEC;
    ssize_t n_bytes;

    do /* net_tap sends signals to this thread */
        n_bytes = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    while (n_bytes < 0 && errno == EINTR && nj_os_clock_gettime_ns(CLOCK_MONOTONIC) < until);
    if (n_bytes < 0) {
        *n = 0;
        return errno == EAGAIN || errno == EINTR ? NJ_MESSAGE_NONE : NJ_MESSAGE_CLOSED;
    }
    take_descriptors(&message, fds, n);
    bool is_known =
        n_bytes == (ssize_t)sizeof type && type > NJ_MESSAGE_CLOSED && type <= NJ_MESSAGE_REFUSED;
    return is_known ? (enum nj_upgrade_message)type : NJ_MESSAGE_CLOSED;
}

void nj__upgrade_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
