/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleep and wake-up of an lcore by an eventfd(2). The protocol, a store, a full fence and a load
 * on both sides (Dekker's), is explained in wakeup.h.
 */
#include "dpdk/wakeup.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

bool nj_wakeup_open(struct nj_wakeup *w)
{
    atomic_store_explicit(&w->asleep, 0, memory_order_relaxed);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->fd >= 0;
}

void nj_wakeup_close(struct nj_wakeup *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

void nj_wakeup_arm(struct nj_wakeup *w)
{
    atomic_store_explicit(&w->asleep, 1, memory_order_relaxed);
    rte_smp_mb();
}

void nj_wakeup_disarm(struct nj_wakeup *w)
{
    atomic_store_explicit(&w->asleep, 0, memory_order_relaxed);
}

short nj_wakeup_wait(struct nj_wakeup *w, int fd, int other, nj_ns time)
{
    struct pollfd fds[] = {{.fd = w->fd, .events = POLLIN},
                           {.fd = fd, .events = POLLIN},
                           {.fd = other, .events = POLLIN}};
    struct timespec ts = {(time_t)(time / NJ_SEC), (long)(time % NJ_SEC)};
    uint64_t n_signals;

    if (ppoll(fds, NJ_ARRAY_LEN(fds), &ts, NULL) <= 0)
        return 0;
    if (fds[0].revents)
        (void)!read(w->fd, &n_signals, sizeof n_signals);
    return fds[1].revents;
}

/* Of several concurrent callers only the one that finds the 1 writes to the eventfd. */
void nj__wakeup_write(struct nj_wakeup *w)
{
    const uint64_t one = 1;

    if (atomic_exchange_explicit(&w->asleep, 0, memory_order_acq_rel) != 0)
        (void)!write(w->fd, &one, sizeof one);
}
