/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adjusts and finds the sockets of DPDK's net_af_packet driver, see packet(7). The driver has no
 * call that names its sockets, so they are found in /proc/self/fd.
 */
#include "dpdk/af_packet_sockets.h"

#include <dirent.h>
#include <linux/if_packet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

/* 4096 full frames and the kernel's overhead take 10 MiB. The kernel doubles the value, and the
 * driver's poll() does not sleep while less than half of that is in use. */
#define SNDBUF_BYTES (16 << 20)

static bool is_packet_socket(int fd)
{
    int domain;
    socklen_t n = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_PACKET;
}

static bool is_sndbuf_small(int fd)
{
    int room;
    socklen_t n = sizeof room;

    return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &n) == 0 && room < 2 * SNDBUF_BYTES;
}

static void grow_sndbuf(void *ctx, int fd)
{
    int room = SNDBUF_BYTES;

    (void)ctx;
    if (is_sndbuf_small(fd))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
}

static void for_each_packet_socket(void (*visit)(void *ctx, int fd), void *ctx)
{
    DIR *open_files = opendir("/proc/self/fd");
    struct dirent *entry;

    if (!open_files)
        return;
    while ((entry = readdir(open_files)))
        if (entry->d_name[0] != '.' && is_packet_socket(atoi(entry->d_name)))
            visit(ctx, atoi(entry->d_name));
    closedir(open_files);
}

void nj_af_packet_grow_sndbuf(void)
{
    for_each_packet_socket(grow_sndbuf, NULL);
}

struct found {
    unsigned if_index;
    int *fd;
    uint32_t n, n_max;
};

/* The driver opens its sockets in queue order, each with the lowest free descriptor. */
static void insert(struct found *f, int fd)
{
    uint32_t i = f->n++;

    for (; i > 0 && f->fd[i - 1] > fd; i--)
        f->fd[i] = f->fd[i - 1];
    f->fd[i] = fd;
}

static void find(void *found, int fd)
{
    struct found *f = found;
    struct sockaddr_ll on;
    socklen_t n = sizeof on;

    if (f->n < f->n_max && getsockname(fd, (struct sockaddr *)&on, &n) == 0 &&
        (unsigned)on.sll_ifindex == f->if_index)
        insert(f, fd);
}

uint32_t nj_af_packet_sockets(unsigned if_index, int *fd, uint32_t n_max)
{
    struct found f = {.if_index = if_index, .fd = fd, .n_max = n_max};

    for_each_packet_socket(find, &f);
    return f.n;
}
