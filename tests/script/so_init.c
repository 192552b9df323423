/* SPDX-License-Identifier: BSD-3-Clause */
/* The entry point that packetdrill looks up, and the table it gets. See docs/rfc/packetdrill.md. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "script/so_world.h"

/* The world of this process, for getsockopt() below, which has no argument for it. */
static struct so_world *_Atomic the_world;

/* Makes blocked calls return, aborts everything, and checks that all mbufs were released. */
static void end(void *arg)
{
    struct so_world *w = arg, *was = w;

    atomic_compare_exchange_strong(&the_world, &was, NULL);
    so_lock(w);
    w->ending = true;
    so_turn(w);
    for (int i = 0; i < SO_FDS_MAX; i++) {
        w->sock[i].linger_on = true;
        w->sock[i].linger_s = 0;
    }
    for (int i = 0; i < SO_FDS_MAX; i++)
        if (w->sock[i].kind != SOCK_FREE)
            so_sock_close(w, &w->sock[i]);
    nj_tcp_abort_all(&w->tcp, w->now);
    so_turn(w);
    so_unlock(w);
    so_stack_fini(w);
    pthread_cond_destroy(&w->turn);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static int no_pipe(void *w, int fds[2])
{
    (void)w;
    (void)fds;
    return so_fail(ENOSYS);
}

static int no_splice(void *w, int in, loff_t *in_off, int out, loff_t *out_off, size_t n,
                     unsigned flags)
{
    (void)w;
    (void)in;
    (void)in_off;
    (void)out;
    (void)out_off;
    (void)n;
    (void)flags;
    return so_fail(ENOSYS);
}

static const struct packetdrill_interface calls = {
    .free = end,
    .socket = so_socket,
    .bind = so_bind,
    .listen = so_listen,
    .accept = so_accept,
    .connect = so_connect,
    .read = so_read,
    .readv = so_readv,
    .recv = so_recv,
    .recvfrom = so_recvfrom,
    .recvmsg = so_recvmsg,
    .write = so_write,
    .writev = so_writev,
    .send = so_send,
    .sendto = so_sendto,
    .sendmsg = so_sendmsg,
    .fcntl = so_fcntl,
    .ioctl = so_ioctl,
    .close = so_close,
    .shutdown = so_shutdown,
    .getsockopt = so_getsockopt,
    .setsockopt = so_setsockopt,
    .poll = so_poll,
    .netdev_send = so_netdev_send,
    .netdev_receive = so_netdev_receive,
    .usleep = so_usleep,
    .gettimeofday = so_gettimeofday,
    .epoll_create = so_epoll_create,
    .epoll_ctl = so_epoll_ctl,
    .epoll_wait = so_epoll_wait,
    .pipe = no_pipe,
    .splice = no_splice,
};

/* Replaces the C library's in programs that preload this object: packetdrill gets TCP_INFO for a
 * script's code by the system call, not by the table. */
__attribute__((visibility("default"))) int getsockopt(int fd, int level, int name,
                                                      void *restrict value, socklen_t *restrict n)
{
    struct so_world *w = atomic_load(&the_world);
    bool is_ours = false;

    if (w) {
        so_lock(w);
        is_ours = so_sock(w, fd) != NULL;
        so_unlock(w);
    }
    return is_ours ? so_getsockopt(w, fd, level, name, value, n)
                   : (int)syscall(SYS_getsockopt, fd, level, name, value, n);
}

__attribute__((visibility("default"))) void
packetdrill_interface_init(const char *flags, struct packetdrill_interface *table)
{
    struct so_world *w = aligned_alloc(NJ_CACHE_LINE, RTE_ALIGN(sizeof *w, NJ_CACHE_LINE));

    *table = calls; /* userdata NULL: the start failed */
    if (!w)
        return;
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->turn, NULL);
    w->first = pthread_self();
    if (so_stack_init(w, flags))
        atomic_store(&the_world, table->userdata = w);
    else
        free(w);
}
