/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that populates blocks of the chunk arena ahead of their use. A semaphore wakes it, and
 * it works until the arena's high-water mark is reached (madvise(2), MADV_POPULATE_WRITE). */
#include "store/arena_populate.h"

#include <errno.h>

#include "base/signal_stack.h"
#include "rights/syscall_filter.h"

static void populate_loop(struct nj__populator *p)
{
    for (;;) {
        while (sem_wait(&p->wakeup) < 0)
            ;
        /* Cleared first: a reader that takes blocks from here on posts the semaphore again. */
        atomic_store(&p->is_wake_pending, false);
        int rc = -EAGAIN;
        while (!atomic_load(&p->is_stopping) && (rc = nj__chunks_populate_block(p->chunks)) == 0)
            ;
        if (atomic_load(&p->is_stopping))
            return;
        if (rc != -EAGAIN)
            atomic_store(&p->has_failed, true);
    }
}

static void *populator_main(void *arg)
{
    pthread_setname_np(pthread_self(), "nj-pages");
    void *altstack = nj_altstack_install();
    nj_syscall_allow_list_load();
    populate_loop(arg);
    nj_altstack_remove(altstack);
    return NULL;
}

int nj__populator_start(struct nj__populator *p, struct nj__chunks *c, const cpu_set_t *affinity)
{
    *p = (struct nj__populator){.chunks = c};
    sem_init(&p->wakeup, 0, 0);
    int rc = pthread_create(&p->thread, NULL, populator_main, p);
    p->is_up = rc == 0;
    if (p->is_up && affinity)
        pthread_setaffinity_np(p->thread, sizeof *affinity, affinity);
    if (!p->is_up)
        sem_destroy(&p->wakeup);
    return -rc;
}

void nj__populator_stop(struct nj__populator *p)
{
    if (!p->is_up)
        return;
    atomic_store(&p->is_stopping, true);
    sem_post(&p->wakeup);
    pthread_join(p->thread, NULL);
    sem_destroy(&p->wakeup);
    p->is_up = false;
}

void nj__populator_wake(struct nj__populator *p)
{
    if (nj__arena_needs_pages(p->chunks->arena) && !atomic_load(&p->has_failed) &&
        !atomic_exchange(&p->is_wake_pending, true))
        sem_post(&p->wakeup);
}
