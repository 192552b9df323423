/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker thread with two shards: no job is lost, with any sleep of the worker. Run it under
 * ThreadSanitizer too. No sleeps: a test that waits polls, and its time-out is the bound. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_pause.h>

#include "threads/service_thread.h"

#define SHARDS   2
#define JOBS_MAX 50

struct job {
    uint64_t offset;
};

static uint32_t poll_jobs(struct nj_service_thread *w, uint32_t shard, struct job **jobs,
                          uint32_t n)
{
    return nj_service_poll(nj_service_shard_rings(w, shard), (void **)jobs, n);
}

static bool submit(struct nj_service_rings *port, struct job *job)
{
    bool ok = nj_service_submit(port, job);
    nj_service_wake_if_submitted(port);
    return ok;
}

struct tally {
    _Atomic uint64_t n_run, n_tidy;
    uint32_t tidy_pauses;
    char thread_name[16];
};

/* Change the offset as the answer, so that the shard recognizes its job. */
static void run(void *ctx, void *arg)
{
    struct tally *t = ctx;
    struct job *job = arg;

    if (atomic_fetch_add(&t->n_run, 1) == 0)
        pthread_getname_np(pthread_self(), t->thread_name, sizeof t->thread_name);
    job->offset = ~job->offset;
}

static void tidy(void *ctx)
{
    struct tally *t = ctx;
    atomic_fetch_add(&t->n_tidy, 1);
    for (uint32_t k = 0; k < t->tidy_pauses; k++)
        rte_pause();
}

static struct nj_service_thread *start(struct tally *t)
{
    struct nj_service_thread *w = NULL;
    struct nj_service_config config = {
        .name = "nj-log",
        .n_shards = SHARDS,
        .jobs_max = JOBS_MAX,
        .run = run,
        .tidy = tidy,
        .ctx = t,
    };
    cr_assert_eq(nj_service_start(&config, &w), 0);
    return w;
}

static struct job *poll_one(struct nj_service_thread *w, uint32_t shard)
{
    struct job *job;
    while (poll_jobs(w, shard, &job, 1) == 0)
        sched_yield();
    return job;
}

struct shard {
    struct nj_service_thread *w;
    uint32_t index, n_jobs, depth;
    uint64_t n_bad;
    bool idles; /* now and then, long enough for the worker to fall asleep */
    struct job jobs[JOBS_MAX];
};

/* Keep `depth` jobs running until n_jobs are done; check that they return in order and changed. */
static void *drive_shard(void *arg)
{
    struct shard *s = arg;
    struct nj_service_rings *port = nj_service_shard_rings(s->w, s->index);
    uint32_t n_in = 0, n_back = 0;

    while (n_back < s->n_jobs) {
        while (n_in < s->n_jobs && n_in - n_back < s->depth) {
            struct job *job = &s->jobs[n_in % JOBS_MAX];
            job->offset = n_in;
            if (!submit(port, job))
                break;
            n_in++;
        }
        struct job *back[7];
        uint32_t n = poll_jobs(s->w, s->index, back, 7);
        for (uint32_t i = 0; i < n; i++, n_back++)
            s->n_bad +=
                back[i] != &s->jobs[n_back % JOBS_MAX] || back[i]->offset != ~(uint64_t)n_back;
        if (n == 0)
            sched_yield();
        if (s->idles && n_back == n_in) /* a gap that sweeps over the worker's spinning time */
            for (uint32_t k = 0; k < n_back * 7919 % 3000; k++)
                rte_pause();
    }
    return NULL;
}

static void stop(struct nj_service_thread *w)
{
    nj_service_begin_stop(w);
    while (!nj_service_join(w, 60000))
        ;
}

static void drive(uint32_t n_jobs, uint32_t depth, bool idles, uint32_t tidy_pauses)
{
    static struct tally t;
    static struct shard shards[SHARDS];
    pthread_t threads[SHARDS];

    memset(&t, 0, sizeof t);
    t.tidy_pauses = tidy_pauses;
    struct nj_service_thread *w = start(&t);
    for (uint32_t i = 0; i < SHARDS; i++) {
        shards[i].w = w;
        shards[i].index = i;
        shards[i].n_jobs = n_jobs;
        shards[i].depth = depth;
        shards[i].idles = idles;
        pthread_create(&threads[i], NULL, drive_shard, &shards[i]);
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(shards[i].n_bad, 0);
    }
    stop(w);
    cr_expect_eq(atomic_load(&t.n_run), (uint64_t)SHARDS * n_jobs);
    cr_expect_gt(atomic_load(&t.n_tidy), 0);
    nj_service_free(w);
}

/* One job at a time: the worker is often about to sleep when the next job is sent. tidy() prolongs
 * the last moment before the sleep. */
Test(threads_service_thread, one_at_a_time, .timeout = 60)
{
    drive(10000, 1, true, 300);
}

Test(threads_service_thread, many_at_once, .timeout = 60)
{
    drive(100000, JOBS_MAX, false, 0);
}

Test(threads_service_thread, name_and_bound, .timeout = 60)
{
    struct tally t = {0};
    struct nj_service_thread *w = start(&t);
    struct nj_service_rings *port = nj_service_shard_rings(w, 1);
    static struct job jobs[JOBS_MAX + 1];

    for (int i = 0; i < JOBS_MAX; i++)
        cr_assert(submit(port, &jobs[i]));
    cr_expect(!submit(port, &jobs[JOBS_MAX]), "not polled yet, so all are out");
    cr_expect_eq(poll_one(w, 1), &jobs[0]);
    cr_expect(submit(port, &jobs[JOBS_MAX]));
    for (int i = 1; i <= JOBS_MAX; i++)
        cr_expect_eq(poll_one(w, 1), &jobs[i]);
    struct job *none;
    cr_expect_eq(poll_jobs(w, 0, &none, 1), 0);
    stop(w);
    cr_expect_str_eq(t.thread_name, "nj-log");
    nj_service_free(w);
}

Test(threads_service_thread, stop_runs_what_was_submitted, .timeout = 60)
{
    for (int round = 0; round < 50; round++) {
        struct tally t = {0};
        struct nj_service_thread *w = start(&t);
        struct nj_service_rings *port = nj_service_shard_rings(w, round % SHARDS);
        static struct job jobs[JOBS_MAX];
        struct job *back[JOBS_MAX];

        for (int i = 0; i < round; i++)
            cr_assert(submit(port, &jobs[i]));
        stop(w);
        cr_expect(!submit(port, &jobs[0]));
        cr_expect_eq(poll_jobs(w, round % SHARDS, back, JOBS_MAX), (uint32_t)round);
        nj_service_free(w);
    }
}

/* tidy() is called without any job on request. */
Test(threads_service_thread, tidies_while_idle, .timeout = 60)
{
    struct tally t = {0};
    struct nj_service_thread *w = NULL;
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    struct nj_service_config config = {
        .name = "nj-log",
        .n_shards = 1,
        .jobs_max = 1,
        .run = run,
        .tidy = tidy,
        .ctx = &t,
        .tidy_ms = 1,
        .affinity = &cpus,
    };
    cr_assert_eq(nj_service_start(&config, &w), 0);
    while (atomic_load(&t.n_tidy) < 5)
        sched_yield();
    stop(w);
    nj_service_free(w);
}
