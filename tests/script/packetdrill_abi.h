/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table through which google/packetdrill talks to a TCP that lives in a shared object
 * (`--so_filename`). Only the order and the types of the members matter: the program that loads us
 * was compiled with its own declaration. Names of members follow the calls they stand for; every
 * call takes `userdata` first and otherwise behaves like the system call of its name, errno and
 * all.
 */
#ifndef NJ_TESTS_SCRIPT_PACKETDRILL_ABI_H
#define NJ_TESTS_SCRIPT_PACKETDRILL_ABI_H

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

    /* An IP packet for the stack. 0, or -1. */
    int (*netdev_send)(void *, const void *, size_t);
    /* The next IP packet that leaves the stack: waits for it. The size of the buffer goes in by
     * `count` and the size of the packet comes out, 0 when there will be none; with it the time
     * when the packet left, in microseconds of the clock below. 0, or -1. */
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

/* The one symbol that is looked up. `flags` is the text of `--so_flags`, or NULL. */
void packetdrill_interface_init(const char *flags, struct packetdrill_interface *table);

#endif
