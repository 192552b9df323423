/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/af_packet.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

/* 4096 full frames and what the kernel has beside each are 10 MiB. The kernel doubles what it is
 * told, and while less than half of that is taken, the driver's poll() does not sleep. */
#define ROOM_BYTES (16 << 20)

static bool is_shallow(int fd)
{
    int domain, room;
    socklen_t n = sizeof domain;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) != 0 || domain != AF_PACKET)
        return false;
    return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &n) == 0 && room < 2 * ROOM_BYTES;
}

static void deepen(int fd)
{
    int room = ROOM_BYTES;

    if (is_shallow(fd))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
}

void nj_af_packet_deepen(void)
{
    DIR *open_files = opendir("/proc/self/fd"); /* the driver does not tell which are its own */
    struct dirent *entry;

    if (!open_files)
        return;
    while ((entry = readdir(open_files)))
        if (entry->d_name[0] != '.')
            deepen(atoi(entry->d_name));
    closedir(open_files);
}
