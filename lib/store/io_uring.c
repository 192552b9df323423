/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File reads by io_uring(7), with wakeups by an eventfd(2) of which a read is always pending in the
 * ring. The thread that changes the state from ASLEEP to AWAKE writes the eventfd. The ring's
 * thread sets ASLEEP and then checks the queues; others queue work and then check the state: one of
 * them sees the other's write (Dekker's pattern).
 */
#include "store/io_uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"

#define REGISTERED_MAX (1024u * 1024u * 1024u) /* bytes of one buffer, by the kernel's limit */

enum { AWAKE, ASLEEP };

struct nj__uring {
    struct io_uring uring;
    int event_fd;
    uint64_t event; /* buffer for reads of event_fd */
    uint8_t *memory;
    bool is_registered;
    _Atomic int state NJ_CACHE_ALIGNED;
};

static char wakeup_tag; /* its address is the user data of eventfd reads */

static struct io_uring_sqe *next_entry(struct nj__uring *r)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);

    NJ_CHECK(sqe); /* the ring has two more entries than reads in progress */
    return sqe;
}

static void arm_wakeup(struct nj__uring *r)
{
    struct io_uring_sqe *sqe = next_entry(r);

    io_uring_prep_read(sqe, r->event_fd, &r->event, sizeof r->event, 0);
    io_uring_sqe_set_data(sqe, &wakeup_tag);
}

/* One buffer per GiB. */
static bool register_memory(struct nj__uring *r, const struct nj__arena_memory *m)
{
    uint32_t n = (uint32_t)((m->n_bytes + REGISTERED_MAX - 1) / REGISTERED_MAX);
    struct iovec *v = m->is_huge ? calloc(n, sizeof *v) : NULL;

    if (!v)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = (uint64_t)i * REGISTERED_MAX, left = m->n_bytes - from;
        v[i] = (struct iovec){m->at + from, left < REGISTERED_MAX ? left : REGISTERED_MAX};
    }
    int rc = io_uring_register_buffers(&r->uring, v, n);
    free(v);
    return rc == 0;
}

/* Prefer deferred task work (Linux 6.1), which causes fewer interrupts. TASKRUN_FLAG lets a peek at
 * the ring see that completions are pending. */
static int set_up(struct io_uring *uring, uint32_t n)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0};
    int rc = -EINVAL;

    for (size_t i = 0; rc == -EINVAL && i < NJ_ARRAY_LEN(flags); i++) {
        struct io_uring_params p = {.flags = flags[i] | IORING_SETUP_CLAMP};
        rc = io_uring_queue_init_params(n, uring, &p);
    }
    return rc;
}

int nj__uring_open(struct nj__uring **out, uint32_t n_max, const struct nj__arena_memory *memory)
{
    struct nj__uring *r = aligned_alloc(NJ_CACHE_LINE, sizeof *r);
    unsigned copiers[2] = {NJ__URING_IOWQ_MAX, 1};

    if (!r)
        return -ENOMEM;
    *r = (struct nj__uring){.memory = memory->at};
    int rc = set_up(&r->uring, n_max + 2);
    if (rc < 0) {
        free(r);
        return rc;
    }
    r->event_fd = eventfd(0, EFD_CLOEXEC);
    if (r->event_fd < 0) {
        rc = -errno;
        io_uring_queue_exit(&r->uring);
        free(r);
        return rc;
    }
    io_uring_register_iowq_max_workers(&r->uring, copiers); /* else the kernel's own limit */
    r->is_registered = register_memory(r, memory);
    arm_wakeup(r);
    *out = r;
    return 0;
}

void nj__uring_close(struct nj__uring *r)
{
    if (!r)
        return;
    io_uring_queue_exit(&r->uring);
    close(r->event_fd);
    free(r);
}

bool nj__uring_has_registered_buffers(const struct nj__uring *r)
{
    return r->is_registered;
}

void nj__uring_read(struct nj__uring *r, const struct nj__uring_read *read, void *user)
{
    struct io_uring_sqe *sqe = next_entry(r);

    if (r->is_registered) {
        uint64_t at = (uint64_t)(read->out - r->memory);
        io_uring_prep_read_fixed(sqe, read->fd, read->out, read->n_bytes, read->offset,
                                 (int)(at / REGISTERED_MAX));
    } else {
        io_uring_prep_read(sqe, read->fd, read->out, read->n_bytes, read->offset);
    }
    if (!read->is_direct)
        io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    io_uring_sqe_set_data(sqe, user);
}

uint32_t nj__uring_submit_and_reap(struct nj__uring *r, struct nj__uring_done *done, uint32_t n)
{
    struct io_uring_cqe *cqe;
    uint32_t n_done = 0;

    if (io_uring_sq_ready(&r->uring) > 0)
        io_uring_submit(&r->uring);
    while (n_done < n && io_uring_peek_cqe(&r->uring, &cqe) == 0) {
        void *user = io_uring_cqe_get_data(cqe);
        if (user == &wakeup_tag)
            arm_wakeup(r);
        else
            done[n_done++] = (struct nj__uring_done){user, cqe->res};
        io_uring_cqe_seen(&r->uring, cqe);
    }
    return n_done;
}

void nj__uring_mark_asleep(struct nj__uring *r)
{
    atomic_exchange(&r->state, ASLEEP);
}

void nj__uring_wait(struct nj__uring *r)
{
    if (atomic_load(&r->state) == ASLEEP)
        io_uring_submit_and_wait(&r->uring, 1);
    atomic_exchange(&r->state, AWAKE);
}

void nj__uring_wake(struct nj__uring *r)
{
    static const uint64_t one = 1;

    atomic_thread_fence(memory_order_seq_cst);
    if (nj_load_relaxed(&r->state) == ASLEEP && atomic_exchange(&r->state, AWAKE) == ASLEEP)
        NJ_CHECK(write(r->event_fd, &one, sizeof one) == sizeof one);
}
