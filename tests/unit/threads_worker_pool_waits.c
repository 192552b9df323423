/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks that wait on workers: for a time, events and descriptors. The waits end when the shard
 * withdraws the task, and no wait of a later task of the thread does. Run it under ThreadSanitizer
 * too. Waits last an hour, so a lost wake-up exceeds the test's time-out. */
#include <criterion/criterion.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <nightjar/handler.h>

#include "base/prng.h"
#include "support/workers_rig.h"

#define HOUR  (3600 * NJ_SEC)
#define TURNS 3000u

enum { SLEEPS, AWAITS, POLLS, N_WAYS };

struct wait {
    struct job job;
    int way;
    uint64_t ns;
    int fd;
    struct nj_event event;
    uint32_t told; /* plain memory, before the event is set */
    int rc;
};

static void wait_run(struct nj_task *task)
{
    struct wait *w = nj_container_of(job_of(task), struct wait, job);

    atomic_store(&w->job.started, true);
    if (w->way == SLEEPS)
        w->rc = nj_sleep(w->ns);
    else if (w->way == AWAITS)
        w->rc = nj_await(&w->event, w->ns);
    else
        w->rc = nj_await_fd(w->fd, POLLIN, w->ns);
    if (w->way == AWAITS && w->rc == 0)
        cr_assert_eq(w->told, 42);
    w->job.n_run++;
}

static const struct nj_task_ops wait_ops = {wait_run, reject};

static void begin(struct nj_worker_ops *port, struct wait *w, int way, uint64_t ns)
{
    w->job.task.ops = &wait_ops;
    nj_list_init(&w->job.task.node);
    atomic_store(&w->job.started, false);
    w->way = way;
    w->ns = ns;
    send(port, &w->job);
}

static void end(struct nj_worker_ops *port)
{
    await_home(port, 1);
}

Test(threads_worker_pool_waits, they_end_by_themselves, .timeout = 60)
{
    struct nj_worker_pool *pool = start(1, 10);
    struct nj_worker_ops port = nj_worker_pool_ops(pool, 0, NJ_WORKER_HANDLERS);
    struct wait w = {.fd = -1};
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    begin(&port, &w, SLEEPS, 1);
    end(&port);
    cr_expect_eq(w.rc, 0);
    begin(&port, &w, AWAITS, NJ_US);
    end(&port);
    cr_expect_eq(w.rc, NJ_ERR_TIMEOUT);
    begin(&port, &w, AWAITS, 0);
    w.told = 42;
    nj_event_set(&w.event);
    end(&port);
    cr_expect_eq(w.rc, 0);
    w.fd = ends[0];
    begin(&port, &w, POLLS, NJ_US);
    end(&port);
    cr_expect_eq(w.rc, NJ_ERR_TIMEOUT);
    begin(&port, &w, POLLS, 0);
    cr_assert_eq(write(ends[1], "x", 1), 1);
    end(&port);
    cr_expect_eq(w.rc, POLLIN);
    begin(&port, &w, POLLS, 0);
    end(&port);
    cr_expect_eq(w.rc, POLLIN, "it is ready already");
    close(ends[0]);
    close(ends[1]);
    finish(pool);
}

/* Each task is withdrawn at a random moment, and the next one on the same thread is not. */
Test(threads_worker_pool_waits, they_end_when_the_task_is_withdrawn, .timeout = 100)
{
    struct nj_worker_pool *pool = start(1, 10);
    struct nj_worker_ops port = nj_worker_pool_ops(pool, 0, NJ_WORKER_HANDLERS);
    struct nj_prng prng;
    uint32_t n_never = 0;
    int ends[2];

    nj_prng_init(&prng, 41);
    cr_assert_eq(pipe(ends), 0);
    for (uint32_t i = 0; i < TURNS; i++) {
        struct wait gone = {.fd = ends[0]}, next = {.fd = ends[0]};
        begin(&port, &gone, (int)(i % N_WAYS), i % N_WAYS == SLEEPS || i % 2 ? HOUR : 0);
        while (i % 4 != 0 && !atomic_load(&gone.job.started))
            sched_yield();
        for (uint32_t k = nj_prng_below(&prng, 2000); k > 0; k--)
            nj_cpu_relax();
        cr_assert_not(port.withdraw(port.ctx, &gone.job.task));
        if (i % 8 == 5) /* the same cancellation once more */
            port.withdraw(port.ctx, &gone.job.task);
        end(&port);
        n_never += gone.job.n_run == 0;
        cr_assert(gone.job.n_run == 0 || gone.rc == NJ_ERR_CANCELLED, "%d", gone.rc);
        begin(&port, &next, (int)(i / N_WAYS % N_WAYS), 1 + nj_prng_below(&prng, 20000));
        end(&port);
        cr_assert_eq(next.rc, next.way == SLEEPS ? 0 : NJ_ERR_TIMEOUT);
    }
    cr_expect_lt(n_never, TURNS);
    close(ends[0]);
    close(ends[1]);
    finish(pool);
}

/* --- events, by another thread and beside cancellations --------------------------------------- */

static void *set_event(void *wait)
{
    struct wait *w = wait;

    w->told = 42;
    nj_event_set(&w->event);
    return NULL;
}

Test(threads_worker_pool_waits, an_event_and_the_end_at_once, .timeout = 100)
{
    struct nj_worker_pool *pool = start(2, 10);
    struct nj_worker_ops port = nj_worker_pool_ops(pool, 0, NJ_WORKER_HANDLERS);

    for (uint32_t i = 0; i < 1000; i++) {
        struct wait w = {.fd = -1};
        pthread_t thread;
        begin(&port, &w, AWAITS, 0);
        cr_assert_eq(pthread_create(&thread, NULL, set_event, &w), 0);
        if (i % 2)
            port.withdraw(port.ctx, &w.job.task);
        end(&port);
        cr_assert(w.rc == 0 || (i % 2 && w.rc == NJ_ERR_CANCELLED), "%d", w.rc);
        pthread_join(thread, NULL);
        cr_assert(nj_event_is_set(&w.event));
    }
    finish(pool);
}
