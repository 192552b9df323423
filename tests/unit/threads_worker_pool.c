/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of workers: tasks run once, return, and are not blocked by others. Run it under
 * ThreadSanitizer too. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fenv.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/prng.h"
#include "support/workers_rig.h"

/* --- no task is lost ------------------------------------------------------------------------ */

struct shard {
    struct nj_worker_pool *w;
    uint32_t index, n_jobs, n_displaced;
    struct job *jobs;
    struct nj_prng prng;
};

/* It is withdrawn if it is out, and was not before. Returns 1 when it is back at once. */
static uint32_t take_back(struct nj_worker_ops *port, struct job *j)
{
    if (j->n_home > 0 || j->n_withdrawn > 0 || j->n_rejected > 0 || j->cancelled)
        return 0;
    j->cancelled = true;
    j->n_withdrawn = port->withdraw(port->ctx, &j->task);
    return j->n_withdrawn;
}

/* A life of steps as a shard has them: some submits, one flush, one poll. Now and then a task is
 * withdrawn, and tasks are of a few clients and two classes. */
static void *drive_shard(void *arg)
{
    struct shard *s = arg;
    struct nj_worker_ops port = nj_worker_pool_ops(s->w, s->index, NJ_WORKER_HANDLERS);
    uint32_t n_in = 0, n_back = 0;

    while (n_back + s->n_displaced < s->n_jobs) {
        uint64_t dice = nj_prng_next(&s->prng);
        uint32_t n = dice % 4 == 0 ? dice / 4 % 40 : 0;
        while (n-- > 0 && n_in < s->n_jobs && port.submit(port.ctx, &s->jobs[n_in].task))
            n_in++;
        port.flush(port.ctx);
        if (n_in > 0 && dice / 16 % 4 == 0)
            n_back += take_back(&port, &s->jobs[nj_prng_below(&s->prng, n_in)]);
        uint32_t n_home = take_home(&port, 1 + dice / 256 % 16);
        n_back += n_home;
        if (n_home == 0 && dice / 65536 % 8 == 0)
            sched_yield();
    }
    return NULL;
}

/* EWYK 5.3, EWYK 5.59, EWYK 5.60: shards and workers at random; each task runs once and returns
 * once, or is displaced. Each thread sees the writes of the other. */
Test(threads_worker_pool, each_task_once, .timeout = 100)
{
    const char *given = getenv("NJ_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261121;
    struct shard shards[SHARDS];
    pthread_t threads[SHARDS];
    static char client[5][NJ_CACHE_LINE];
    static struct nj_task_class quick[SHARDS][2];
    struct nj_worker_pool *w = start(3, 100);

    printf("NJ_SEED=%lu\n", (unsigned long)seed);
    for (uint32_t i = 0; i < SHARDS; i++) {
        shards[i] = (struct shard){.w = w, .index = i, .n_jobs = 30000};
        shards[i].jobs = new_jobs(shards[i].n_jobs, NULL);
        nj_prng_init(&shards[i].prng, seed + i);
        for (uint32_t k = 0; k < shards[i].n_jobs; k++) {
            shards[i].jobs[k].task.class_of = &quick[i][k % 2];
            shards[i].jobs[k].task.client = client[k * 7 % 5];
            shards[i].jobs[k].n_displaced = &shards[i].n_displaced;
        }
        pthread_create(&threads[i], NULL, drive_shard, &shards[i]);
    }
    uint64_t n_displaced = 0;
    for (uint32_t i = 0; i < SHARDS; i++) {
        uint32_t n_bad = 0, n_never = 0, n_rejected = 0;
        pthread_join(threads[i], NULL);
        for (uint32_t k = 0; k < shards[i].n_jobs; k++) {
            const struct job *j = &shards[i].jobs[k];
            n_bad += j->n_home + j->n_withdrawn + j->n_rejected != 1 || j->n_run > j->n_home ||
                     (!j->cancelled && j->n_run + j->n_rejected != 1);
            n_never += j->n_run == 0;
            n_rejected += j->n_rejected;
        }
        cr_expect_eq(n_rejected, shards[i].n_displaced);
        cr_expect_eq(n_bad, 0);
        cr_expect_gt(n_never, 0);
        n_displaced += shards[i].n_displaced;
    }
    cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_displaced, n_displaced);
    finish(w);
    for (uint32_t i = 0; i < SHARDS; i++)
        free(shards[i].jobs);
}

/* EWYK 5.56: the queue is bounded, tasks beyond the bound stay with their owner, and room is
 * available again later. */
Test(threads_worker_pool, bound, .timeout = 60)
{
    enum { MAX = 40 };
    sem_t gate;
    sem_init(&gate, 0, 0);
    struct nj_worker_pool *w = start(2, MAX);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 1, NJ_WORKER_HANDLERS),
                         other = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *jobs = new_jobs(MAX + 2, &gate);
    struct nj_task_class quick = {.worker_max_ns = 1};

    for (int i = 0; i < MAX; i++) {
        jobs[i].task.class_of = &quick;
        send(&port, &jobs[i]);
    }
    cr_expect(!port.submit(port.ctx, &jobs[MAX].task));
    cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_refused, 1);
    cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_out, MAX);
    cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_waiting,
                 MAX - 2 * NJ_WORKER_DEPTH);
    for (int i = 0; i < 100; i++)
        cr_expect_eq(take_home(&port, 1), 0);
    cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_held_back,
                 MAX - 2 * NJ_WORKER_DEPTH, "each once, for any number of polls");
    send(&other, &jobs[MAX]); /* another lcore has a bound of its own */
    for (int i = 0; i < MAX + 2; i++)
        sem_post(&gate);
    await_home(&other, 1);
    await_home(&port, 1);
    send(&port, &jobs[MAX + 1]);
    await_home(&port, MAX);
    cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_out, 0);
    cr_expect_eq(take_home(&port, 1), 0);
    finish(w);
    for (int i = 0; i < MAX + 2; i++)
        cr_expect(jobs[i].n_run == 1 && jobs[i].n_home == 1);
    free(jobs);
}

/* --- no task waits behind a task that does not end
 * ------------------------------------------------ */

/* EWYK 5.12: all workers but one are held; all other tasks run on that one. */
Test(threads_worker_pool, one_free_worker_is_enough, .timeout = 60)
{
    enum { WORKERS = 4, QUICK = 500 };
    sem_t gate;
    sem_init(&gate, 0, 0);
    struct nj_worker_pool *w = start(WORKERS, 100);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS),
                         other = nj_worker_pool_ops(w, 1, NJ_WORKER_HANDLERS);
    struct job *held = new_jobs(WORKERS - 1, &gate), *quick = new_jobs(QUICK, NULL);

    for (int i = 0; i < WORKERS - 1; i++) {
        send(&other, &held[i]);
        await_start(&held[i]); /* so the next one is sent to another worker */
    }
    for (int i = 0; i < QUICK; i++) {
        send(&port, &quick[i]);
        await_home(&port, 1);
    }
    for (int i = 0; i < WORKERS - 1; i++)
        sem_post(&gate);
    await_home(&other, WORKERS - 1);
    finish(w);
    free(held);
    free(quick);
}

/* Of many tasks, all return but the held one, although all were known to be short: none is bound to
 * the held thread. */
Test(threads_worker_pool, a_held_thread_binds_no_other_task, .timeout = 60)
{
    enum { QUICK = 90 };
    sem_t gate;
    sem_init(&gate, 0, 0);
    struct nj_worker_pool *w = start(2, 100);
    struct nj_task_class quick_class = {.worker_max_ns = 1};
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *held = new_jobs(1, &gate), *quick = new_jobs(QUICK, NULL);

    held->task.class_of = &quick_class;
    cr_assert(port.submit(port.ctx, &held->task));
    for (int i = 0; i < QUICK; i++) {
        quick[i].task.class_of = &quick_class;
        cr_assert(port.submit(port.ctx, &quick[i].task));
    }
    port.flush(port.ctx);
    await_home(&port, QUICK);
    cr_expect_eq(held->n_home, 0);
    sem_post(&gate);
    await_home(&port, 1);
    finish(w);
    free(held);
    free(quick);
}

/* As many tasks of one kind are stuck as may run. The other kind has threads of its own, and no
 * more tasks of the first kind start. */
Test(threads_worker_pool, kinds_leave_each_other_threads, .timeout = 60)
{
    enum { HANDLERS = 3, FILES = 2, TLS = 2, QUICK = 500 };
    struct nj_worker_pool_config c = {.n_shards = SHARDS,
                                      .kind = {{.n_max = HANDLERS, .tasks_max = 100},
                                               {.n_max = FILES, .tasks_max = 100},
                                               {.n_max = TLS, .tasks_max = 100}}};

    for (uint32_t stuck = 0; stuck < NJ_WORKER_N_KINDS; stuck++) {
        enum nj_worker_kind kind = (enum nj_worker_kind)stuck,
                            other = (enum nj_worker_kind)((stuck + 1) % NJ_WORKER_N_KINDS);
        uint32_t n_max = c.kind[kind].n_max;
        sem_t gate;
        sem_init(&gate, 0, 0);
        struct nj_worker_pool *w = NULL;
        cr_assert_eq(nj_worker_pool_start(&c, &w), 0);
        struct nj_worker_ops a = nj_worker_pool_ops(w, 0, kind),
                             b = nj_worker_pool_ops(w, 1, other);
        struct job *held = new_jobs(n_max + 4, &gate), *quick = new_jobs(QUICK, NULL);
        struct nj_task_class quick_class = {.worker_max_ns = 1};
        for (uint32_t i = 0; i < n_max + 4; i++) {
            held[i].task.class_of = &quick_class;
            send(&a, &held[i]);
        }
        for (uint32_t i = 0; i < n_max; i++)
            await_start(&held[i]);
        for (uint32_t i = 0; i < QUICK; i++) {
            send(&b, &quick[i]);
            await_home(&b, 1);
        }
        for (uint32_t i = n_max; i < n_max + 4; i++)
            cr_expect(!atomic_load(&held[i].started));
        struct nj_worker_pool_stats s = nj_worker_pool_stats(w);
        cr_expect_eq(s.n_threads, HANDLERS + FILES + TLS);
        cr_expect(s.kind[kind].n_running == n_max && s.kind[kind].n_out == n_max + 4);
        cr_expect_eq(s.kind[other].n_done, QUICK);
        for (uint32_t i = 0; i < n_max + 4; i++)
            sem_post(&gate);
        await_home(&a, n_max + 4);
        finish(w);
        free(held);
        free(quick);
    }
}

/* ---- withdrawn tasks ---- */

/* A withdrawn task in the lane belongs to the caller again at once. One in a worker's ring returns
 * without having run. A running one runs to its end. */
Test(threads_worker_pool, withdrawn, .timeout = 60)
{
    sem_t gate;
    sem_init(&gate, 0, 0);
    struct nj_worker_pool *w = start(1, 100);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct nj_task_class quick = {.worker_max_ns = 1};
    struct job *jobs = new_jobs(12, &gate);

    for (int i = 0; i < 12; i++) {
        jobs[i].task.class_of = &quick;
        send(&port, &jobs[i]);
    }
    await_start(&jobs[0]);
    cr_expect(!port.withdraw(port.ctx, &jobs[0].task), "it runs");
    for (int i = 1; i < (int)NJ_WORKER_DEPTH; i++)
        cr_expect(!port.withdraw(port.ctx, &jobs[i].task), "%d: the worker has it", i);
    for (int i = NJ_WORKER_DEPTH; i < 12; i++)
        cr_expect(port.withdraw(port.ctx, &jobs[i].task), "%d: it waits", i);
    cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_out, NJ_WORKER_DEPTH);
    for (int i = 0; i < 12; i++)
        sem_post(&gate);
    await_home(&port, NJ_WORKER_DEPTH);
    for (int i = 0; i < 12; i++) {
        cr_expect_eq(jobs[i].n_run, i == 0, "%d", i);
        cr_expect_eq(jobs[i].n_home, i < (int)NJ_WORKER_DEPTH, "%d", i);
        cr_expect_eq(jobs[i].n_rejected, 0);
        cr_expect(i == 0 || jobs[i].task.run_ns == 0, "it does not change the times of its route");
    }
    finish(w);
    free(jobs);
}

static void burn(struct nj_task *t)
{
    for (volatile uint32_t i = 0; i < 10000000; i++)
        ;
    job_of(t)->n_run++;
}

/* A task returns with its CPU time. The task that only waited, from before the other began until
 * after it ended, used less. */
Test(threads_worker_pool, time_is_measured, .timeout = 60)
{
    static const struct nj_task_ops burning = {burn, reject};
    sem_t gate;
    sem_init(&gate, 0, 0);
    struct nj_worker_pool *w = start(2, 10);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *held = new_jobs(1, &gate), *busy = new_jobs(1, NULL);

    send(&port, held);
    await_start(held);
    busy->task.ops = &burning;
    send(&port, busy);
    await_home(&port, 1);
    cr_expect_eq(busy->n_home, 1);
    sem_post(&gate);
    await_home(&port, 1);
    cr_expect_gt(held->task.run_ns, 0);
    cr_expect_gt(busy->task.run_ns, held->task.run_ns);
    finish(w);
    free(held);
    free(busy);
}

/* --- each task finds the thread clean ------------------------------------------------------- */

static void look_and_spoil(struct nj_task *t)
{
    struct job *j = job_of(t);

    j->err = errno;
    j->rounding = fegetround();
    errno = EDOM;
    fesetround(FE_UPWARD);
}

/* EWYK 5.48 */
Test(threads_worker_pool, clean_context, .timeout = 60)
{
    static const struct nj_task_ops spoil = {look_and_spoil, reject};
    struct nj_worker_pool *w = start(1, 10);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *jobs = new_jobs(3, NULL);

    for (int i = 0; i < 3; i++) {
        jobs[i].task.ops = &spoil;
        send(&port, &jobs[i]);
    }
    await_home(&port, 3);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(jobs[i].err, 0);
        cr_expect_eq(jobs[i].rounding, FE_TONEAREST);
    }
    finish(w);
    free(jobs);
}

/* --- the end --------------------------------------------------------------------------------- */

/* EWYK 5.3, EWYK 5.42: for a stop at any time, each accepted task ran or was rejected, once. */
Test(threads_worker_pool, stop_runs_or_rejects, .timeout = 60)
{
    enum { JOBS = 60 };
    for (uint32_t round = 0; round < 200; round++) {
        struct nj_worker_pool *w = start(1 + round % 3, 100);
        struct nj_worker_ops port = nj_worker_pool_ops(w, round % SHARDS, NJ_WORKER_HANDLERS);
        struct job *jobs = new_jobs(JOBS, NULL);
        uint32_t n_in = round % JOBS, n_run = 0, n_rejected = 0;

        for (uint32_t i = 0; i < n_in; i++)
            cr_assert(port.submit(port.ctx, &jobs[i].task));
        port.flush(port.ctx);
        cr_assert_eq(nj_worker_pool_stop(w, FOR_EVER), 0);
        cr_expect(!port.submit(port.ctx, &jobs[n_in].task));
        while (nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_out > 0)
            take_home(&port, 16);
        for (uint32_t i = 0; i < JOBS; i++) {
            cr_expect_eq(jobs[i].n_home, jobs[i].n_run);
            cr_expect_eq(jobs[i].n_run + jobs[i].n_rejected, i < n_in);
            n_run += jobs[i].n_run;
            n_rejected += jobs[i].n_rejected;
        }
        cr_expect_eq(n_run + n_rejected, n_in);
        nj_worker_pool_free(w);
        free(jobs);
    }
}

/* A stop reports a task that does not end, rejects those behind it, and the task can still return
 * later. */
Test(threads_worker_pool, stop_does_not_wait_for_ever, .timeout = 60)
{
    enum { BEHIND = 30 };
    sem_t gate;
    sem_init(&gate, 0, 0);
    struct nj_worker_pool *w = start(1, 100);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *held = new_jobs(1, &gate), *behind = new_jobs(BEHIND, NULL);

    send(&port, held);
    await_start(held);
    for (int i = 0; i < BEHIND; i++)
        send(&port, &behind[i]);
    cr_expect_eq(nj_worker_pool_stop(w, 1), 1);
    cr_expect_eq(take_home(&port, 16), 0);
    sem_post(&gate);
    cr_expect_eq(nj_worker_pool_stop(w, FOR_EVER), 0);
    while (nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_out > 0)
        take_home(&port, 16);
    cr_expect(held->n_run == 1 && held->n_home == 1 && held->n_rejected == 0);
    for (int i = 0; i < BEHIND; i++)
        cr_expect(behind[i].n_run == 0 && behind[i].n_home == 0 && behind[i].n_rejected == 1);
    nj_worker_pool_free(w);
    free(held);
    free(behind);
}

/* --- an lcore that sleeps ------------------------------------------------------------------------
 */

/* A shard is woken for each of its completed tasks, and for no other's. The sleep is an hour long,
 * so a lost wake-up exceeds the test's time-out. */
Test(threads_worker_pool, wakes_who_waits_for_the_task, .timeout = 60)
{
    static struct nj_wakeup wakeups[SHARDS];
    struct job *job = new_jobs(1, NULL);
    struct nj_worker_pool *w = NULL;
    struct nj_worker_pool_config config = {
        .n_shards = SHARDS + 1, /* the last one has no lcore */
        .kind = {{.n_max = 1, .tasks_max = 10}, {.n_max = 1, .tasks_max = 10}},
        .wakeups = wakeups,
        .n_wakeups = SHARDS,
    };

    for (uint32_t i = 0; i < SHARDS; i++)
        cr_assert(nj_wakeup_open(&wakeups[i]));
    cr_assert_eq(nj_worker_pool_start(&config, &w), 0);
    nj_wakeup_arm(&wakeups[0]);
    for (uint32_t i = 0; i < 2000; i++) {
        struct nj_worker_ops port = nj_worker_pool_ops(w, 1, (enum nj_worker_kind)(i % 2));
        send(&port, job);
        nj_wakeup_disarm(&wakeups[1]);
        while (take_home(&port, 1) == 0) {
            if (nj_wakeup_is_armed(&wakeups[1]))
                nj_wakeup_wait(&wakeups[1], -1, -1, 3600 * NJ_SEC);
            else
                nj_wakeup_arm(&wakeups[1]);
        }
    }
    struct nj_worker_ops port = nj_worker_pool_ops(w, SHARDS, NJ_WORKER_FILES);
    send(&port, job);
    await_home(&port, 1);
    cr_expect(nj_wakeup_is_armed(&wakeups[0]));
    finish(w);
    for (uint32_t i = 0; i < SHARDS; i++)
        nj_wakeup_close(&wakeups[i]);
    free(job);
}

/* Before each task of a kind its thread is prepared for it. */
static _Atomic uint32_t n_prepared;

static void prepare(void)
{
    atomic_fetch_add(&n_prepared, 1);
}

Test(threads_worker_pool, prepares_its_thread, .timeout = 60)
{
    struct nj_worker_pool *w = NULL;
    struct nj_worker_pool_config config = {
        .n_shards = 1,
        .kind = {{.n_max = 2, .tasks_max = 10, .prepare = prepare}, {.n_max = 2, .tasks_max = 10}}};
    struct job *jobs = new_jobs(10, NULL);

    cr_assert_eq(nj_worker_pool_start(&config, &w), 0);
    for (uint32_t i = 0; i < 10; i++) {
        struct nj_worker_ops port = nj_worker_pool_ops(w, 0, (enum nj_worker_kind)(i % 2));
        send(&port, &jobs[i]);
        await_home(&port, 1);
        cr_expect_eq(atomic_load(&n_prepared), i / 2 + 1);
    }
    finish(w);
    free(jobs);
}

/* --- the return of a task needs no system call
 * ------------------------------------------------------- */

/* Sanitizers make calls of their own. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
/* From here on this thread may sleep, use the pool's lock and exit; any other system call ends the
 * process. */
static void forbid_system_calls(struct nj_task *t)
{
#define ALLOW(nr)                                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        ALLOW(FUTEX_WAIT_PRIVATE),
        ALLOW(FUTEX_WAKE_PRIVATE),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_clock_gettime), /* where the vDSO cannot */
        ALLOW(SYS_rt_sigprocmask),
        ALLOW(SYS_madvise),
        ALLOW(SYS_sigaltstack), /* at its end */
        ALLOW(SYS_munmap),
        ALLOW(SYS_exit),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog prog = {NJ_ARRAY_LEN(filter), filter};

    job_of(t)->err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0;
}

/* EWYK 5.60: the lcore is notified by memory alone. */
Test(threads_worker_pool, coming_home_costs_no_system_call, .timeout = 60)
{
    static const struct nj_task_ops forbid = {forbid_system_calls, reject};
    struct nj_worker_pool *w = start(1, 10);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *jobs = new_jobs(1000, NULL);

    jobs[0].task.ops = &forbid;
    for (int i = 0; i < 1000; i++) {
        send(&port, &jobs[i]);
        await_home(&port, 1);
        for (int k = 0; k < i * 7 % 50; k++) /* let it fall asleep now and then */
            sched_yield();
    }
    cr_expect_eq(jobs[0].err, 0);
    finish(w);
    free(jobs);
}
#endif
