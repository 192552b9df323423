/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table by which google/packetdrill calls a TCP in a shared object (`--so_filename`). Only the
 * order and types of the members matter: the loading program was compiled with its own declaration.
 * Members are named after their calls. Every call takes `userdata` first and otherwise behaves like
 * the system call of that name, including errno.
 */
#pragma once

#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

struct packetdrill_interface {
    void *userdata;
    void (*free)(void *);

    int (*socket)(void *, int, int, int);
    int (*bind)(void *, int, const struct sockaddr *, socklen_t);
    int (*listen)(void *, int, int);
    int (*accept)(void *, int, struct sockaddr *, socklen_t *);
    int (*connect)(void *, int, const struct sockaddr *, socklen_t);

    ssize_t (*read)(void *, int, void *, size_t);
    ssize_t (*readv)(void *, int, const struct iovec *, int);
    ssize_t (*recv)(void *, int, void *, size_t, int);
    ssize_t (*recvfrom)(void *, int, void *, size_t, int, struct sockaddr *, socklen_t *);
    ssize_t (*recvmsg)(void *, int, struct msghdr *, int);
    ssize_t (*write)(void *, int, const void *, size_t);
    ssize_t (*writev)(void *, int, const struct iovec *, int);
    ssize_t (*send)(void *, int, const void *, size_t, int);
    ssize_t (*sendto)(void *, int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    ssize_t (*sendmsg)(void *, int, const struct msghdr *, int);

    int (*fcntl)(void *, int, int, ...);
    int (*ioctl)(void *, int, unsigned long, ...);
    int (*close)(void *, int);
    int (*shutdown)(void *, int, int);
    int (*getsockopt)(void *, int, int, int, void *, socklen_t *);
    int (*setsockopt)(void *, int, int, int, const void *, socklen_t);
    int (*poll)(void *, struct pollfd *, nfds_t, int);

    /* Pass an IP packet to the stack. 0, or -1. */
    int (*netdev_send)(void *, const void *, size_t);
    /* Wait for the next IP packet that the stack sends. `count` is the size of the buffer on entry
     * and the size of the packet on return, 0 if none will follow; with the time of sending in
     * microseconds of the clock below. 0, or -1. */
    int (*netdev_receive)(void *, void *, size_t *count, long long *time_us);

    /* The clock. */
    int (*usleep)(void *, useconds_t);
    int (*gettimeofday)(void *, struct timeval *, struct timezone *);

    int (*epoll_create)(void *, int);
    int (*epoll_ctl)(void *, int, int, int, struct epoll_event *);
    int (*epoll_wait)(void *, int, struct epoll_event *, int, int);
    int (*pipe)(void *, int[2]);
    int (*splice)(void *, int, loff_t *, int, loff_t *, size_t, unsigned);
};

/* The only symbol that is looked up. `flags` is the text of `--so_flags`, or NULL. */
void packetdrill_interface_init(const char *flags, struct packetdrill_interface *table);
