/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors that handlers of one lcore await (nj_await_fd()), in an epoll(7) instance. The
 * lcore itself asks it for events: at most every NJ_FD_LOOK_BUSY while it has work, more often
 * while it polls without any, and never while no handler waits. While the lcore sleeps the instance
 * is one of the descriptors that wake it (dpdk/wakeup.h). So no other thread is involved
 * (docs/adr/0032-the-lcore-asks-for-descriptors.md).
 *
 * All calls belong to the lcore, unless stated otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/types.h"
#include "dpdk/wakeup.h"
#include "sched/wait_ops.h"

#define NJ_FD_LOOK_BUSY (50 * NJ_US)
#define NJ_FD_LOOK_IDLE (2 * NJ_US)

struct nj_fd_waits {
    int epoll_fd;
    uint32_t n; /* descriptors that are awaited */
    nj_ns looked_at;
    struct nj_wakeup *waker; /* of the lcore */
};

/* False: no descriptor; errno has the reason. Any thread. */
bool nj_fd_waits_open(struct nj_fd_waits *w, struct nj_wakeup *waker);
/* After the end of the lcore, or a failed open. Any thread. */
void nj_fd_waits_close(struct nj_fd_waits *w);
/* A descriptor that is readable when one of those is ready; -1: no handler waits. */
static inline int nj_fd_waits_fd(const struct nj_fd_waits *w)
{
    return w->n > 0 ? w->epoll_fd : -1;
}

/* For struct nj_conns_ops of the lcore's shard. Any thread. */
struct nj_wait_ops nj_fd_waits_ops(struct nj_fd_waits *w);

void nj__fd_waits_collect(struct nj_fd_waits *w, nj_ns now);

/* Before each step: signals fibers whose descriptors are ready. `idle`: the last step had no work.
 */
static inline void nj_fd_waits_look(struct nj_fd_waits *w, nj_ns now, bool idle)
{
    if (nj_unlikely(w->n > 0) && now - w->looked_at >= (idle ? NJ_FD_LOOK_IDLE : NJ_FD_LOOK_BUSY))
        nj__fd_waits_collect(w, now);
}
