/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that populates blocks of the chunk arena ahead of their use. A semaphore wakes it, and
 * it works until the arena's high-water mark is reached (madvise(2), MADV_POPULATE_WRITE). */
#include "store/arena_populate.h"

#include <errno.h>

#include "base/signal_stack.h"

static void work(struct nj__pages *p)
{
    for (;;) {
        while (sem_wait(&p->asked) < 0)
            ;
        /* Cleared first: a reader that takes blocks from here on posts the semaphore again. */
        atomic_store(&p->is_asked, false);
        int rc = -EAGAIN;
        while (!atomic_load(&p->is_stopping) && (rc = nj__chunks_populate(p->chunks)) == 0)
            ;
        if (atomic_load(&p->is_stopping))
            return;
        if (rc != -EAGAIN)
            atomic_store(&p->is_over, true);
    }
}

static void *pages_main(void *arg)
{
    pthread_setname_np(pthread_self(), "nj-pages");
    void *altstack = nj_altstack_begin();
    work(arg);
    nj_altstack_end(altstack);
    return NULL;
}

int nj__pages_start(struct nj__pages *p, struct nj__chunks *c, const cpu_set_t *affinity)
{
    *p = (struct nj__pages){.chunks = c};
    sem_init(&p->asked, 0, 0);
    int rc = pthread_create(&p->thread, NULL, pages_main, p);
    p->is_up = rc == 0;
    if (p->is_up && affinity)
        pthread_setaffinity_np(p->thread, sizeof *affinity, affinity);
    if (!p->is_up)
        sem_destroy(&p->asked);
    return -rc;
}

void nj__pages_stop(struct nj__pages *p)
{
    if (!p->is_up)
        return;
    atomic_store(&p->is_stopping, true);
    sem_post(&p->asked);
    pthread_join(p->thread, NULL);
    sem_destroy(&p->asked);
    p->is_up = false;
}

void nj__pages_ask(struct nj__pages *p)
{
    if (nj__arena_is_low(p->chunks->arena) && !atomic_load(&p->is_over) &&
        !atomic_exchange(&p->is_asked, true))
        sem_post(&p->asked);
}
