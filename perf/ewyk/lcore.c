/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcore strategy: each producer has a polling thread, which consumes the producer's tasks on
 * fibers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define BURST 32u /* tasks of a step, as many as packets of a burst */

struct lcore {
    pthread_t thread;
    struct producer *producer;
    struct nj_task_class class_of;
} NJ_CACHE_ALIGNED;

static struct lcore lcores[PRODUCERS_MAX];
static uint32_t n_lcores;

static void run(struct nj_task *task)
{
    struct bench_task *t = nj_container_of(task, struct bench_task, task);

    if (bench_work(t))
        nj_fiber_park(NULL, bench_now() + BLOCK_NS);
    bench_done(t);
}

static void *lcore(void *arg)
{
    static const struct nj_task_ops ops = {
        .run = run}; /* without reject: there is a stack for each task */
    struct lcore *l = arg;
    struct nj_ewyk_config config = {
        .n_fibers_max = BUFFERS,
        .n_queue_max = BUFFERS,
        .now = bench_now(),
    };
    struct nj_ewyk *e = nj_ewyk_new(&config);

    if (!e)
        abort();
    nj_task_class_init(&l->class_of, "bench", NJ_BLOCKING);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        l->producer->tasks[i].task.ops = &ops;
        l->producer->tasks[i].task.class_of = &l->class_of;
    }
    while (!atomic_load_explicit(&bench_over, memory_order_relaxed) || !nj_ewyk_is_idle(e)) {
        nj_ewyk_run(e, bench_now(), BURST);
        for (uint32_t i = 0; i < BURST; i++) {
            bool none_is_due;
            struct nj_task *task = bench_produce(l->producer, &none_is_due);
            if (!task)
                break;
            nj_ewyk_offer(e, task);
        }
    }
    nj_ewyk_free(e);
    return NULL;
}

void lcores_start(struct producer *const *producers, uint32_t n_producers)
{
    n_lcores = n_producers;
    for (uint32_t i = 0; i < n_producers; i++) {
        lcores[i].producer = producers[i];
        if (pthread_create(&lcores[i].thread, NULL, lcore, &lcores[i]) != 0)
            abort();
    }
}

void lcores_join(uint64_t counts[NJ_N_MODES])
{
    for (uint32_t i = 0; i < n_lcores; i++) {
        pthread_join(lcores[i].thread, NULL);
        for (int m = 0; m < NJ_N_MODES; m++)
            counts[m] += lcores[i].class_of.n[m];
    }
}
