/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that serves jobs of all shards in order of arrival: its rings, loop and sleep.
 *
 * No wake-up is lost (base/futex_park.h). A submitter fills a ring, or sets `stopping`, and
 * then counts a wake-up. The thread reads the count and then checks both once more before it
 * sleeps.
 */
#include "threads/service_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Acquire and release where DPDK's x86 rings use compiler barriers: the same instructions, but
 * ThreadSanitizer can follow them. */
#define RTE_USE_C11_MEM_MODEL
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/signal_stack.h"
#include "base/thread_start_on_cpus.h"
#include "base/futex_park.h"
#include "threads/os_clock.h"
#include "rights/syscall_filter.h"
#include "threads/task_rings.h"

#define BATCH 32
/* Empty rounds before sleep, each with a pause of 40 to 140 cycles: 10 to 50 us, about what a
 * sleep and its wake-up cost. */
#define SPINS 1000

struct nj_service_rings {
    struct nj_service_thread *worker;
    struct rte_ring *in, *out;
    uint32_t n_out; /* jobs submitted and not polled; of the lcore */
    bool unflushed; /* jobs were submitted since the last flush */
    bool closed;    /* nj_service_begin_stop() was called */
} NJ_CACHE_ALIGNED;

struct nj_service_thread {
    struct nj_service_config config;
    char name[16];
    pthread_t thread;
    bool joined;
    _Atomic uint32_t n_wakes NJ_CACHE_ALIGNED;
    _Atomic bool stopping;
    struct nj_service_rings ports[] NJ_CACHE_ALIGNED;
};

/* rte_ring_empty() for the consumer, with an atomic read of the producer's index. */
static bool is_empty(const struct rte_ring *r)
{
    return __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE) == r->cons.tail;
}

static bool has_work(const struct nj_service_thread *w)
{
    for (uint32_t i = 0; i < w->config.n_shards; i++)
        if (!is_empty(w->ports[i].in))
            return true;
    return false;
}

/* One batch of each shard, so that a shard waits for at most one batch of each other shard. */
static uint32_t run_batches(struct nj_service_thread *w)
{
    uint32_t n_run = 0;

    for (uint32_t i = 0; i < w->config.n_shards; i++) {
        struct nj_service_rings *p = &w->ports[i];
        void *jobs[BATCH];
        uint32_t n = rte_ring_sc_dequeue_burst(p->in, jobs, BATCH, NULL);
        for (uint32_t k = 0; k < n; k++) {
            w->config.run(w->config.ctx, jobs[k]);
            /* Each job at once: a slow job must not delay the results before it. The ring has
             * room for jobs_max. */
            NJ_CHECK(rte_ring_sp_enqueue(p->out, jobs[k]) == 0);
        }
        n_run += n;
    }
    return n_run;
}

static void tidy(struct nj_service_thread *w)
{
    if (w->config.tidy)
        w->config.tidy(w->config.ctx);
}

static void sleep_until_woken(struct nj_service_thread *w)
{
    uint32_t seen = atomic_load_explicit(&w->n_wakes, memory_order_acquire);

    if (!has_work(w) && !atomic_load_explicit(&w->stopping, memory_order_acquire))
        nj_park(&w->n_wakes, seen, w->config.tidy_ms > 0 ? w->config.tidy_ms * NJ_MS : NJ_NEVER);
}

static void *worker_main(void *arg)
{
    struct nj_service_thread *w = arg;
    uint32_t n_idle = 0;
    void *altstack = nj_altstack_install();

    pthread_setname_np(pthread_self(), w->name);
    bool registered = w->config.eal && rte_thread_register() == 0;
    nj_syscall_allow_list_load();
    for (;;) {
        /* Read before the rings, so that jobs submitted before the stop are seen below. */
        bool stopping = atomic_load_explicit(&w->stopping, memory_order_acquire);
        if (run_batches(w) > 0) {
            tidy(w);
            n_idle = 0;
        } else if (stopping) {
            break;
        } else if (n_idle++ < SPINS) {
            rte_pause();
        } else {
            tidy(w);
            sleep_until_woken(w);
            n_idle = 0;
        }
    }
    tidy(w);
    if (w->config.end)
        w->config.end(w->config.ctx);
    if (registered)
        rte_thread_unregister();
    nj_altstack_remove(altstack);
    return NULL;
}

struct nj_service_rings *nj_service_shard_rings(struct nj_service_thread *w, uint32_t shard)
{
    NJ_CHECK(shard < w->config.n_shards);
    return &w->ports[shard];
}

bool nj_service_submit(struct nj_service_rings *p, void *job)
{
    if (p->closed || p->n_out >= p->worker->config.jobs_max)
        return false;
    NJ_CHECK(rte_ring_sp_enqueue(p->in, job) == 0);
    p->n_out++;
    p->unflushed = true;
    return true;
}

void nj_service_wake_if_submitted(struct nj_service_rings *p)
{
    if (p->unflushed)
        nj_unpark(&p->worker->n_wakes);
    p->unflushed = false;
}

uint32_t nj_service_poll(struct nj_service_rings *p, void **jobs, uint32_t n)
{
    if (p->n_out == 0) /* avoids the worker's cache line */
        return 0;
    n = rte_ring_sc_dequeue_burst(p->out, jobs, n, NULL);
    p->n_out -= n;
    return n;
}

uint32_t nj_service_n_out(const struct nj_service_rings *p)
{
    return p->n_out;
}

static void free_memory(struct nj_service_thread *w)
{
    for (uint32_t i = 0; i < w->config.n_shards; i++) {
        free(w->ports[i].in);
        free(w->ports[i].out);
    }
    free(w);
}

int nj_service_start(const struct nj_service_config *config, struct nj_service_thread **out)
{
    NJ_CHECK(config->name && config->n_shards > 0 && config->jobs_max > 0 &&
             config->jobs_max < 1u << 24);
    size_t n_bytes =
        sizeof(struct nj_service_thread) + config->n_shards * sizeof(struct nj_service_rings);
    struct nj_service_thread *w = aligned_alloc(NJ_CACHE_LINE, n_bytes);
    if (!w)
        return -ENOMEM;
    memset(w, 0, n_bytes);
    w->config = *config;
    snprintf(w->name, sizeof w->name, "%s", config->name);
    int err = 0;
    for (uint32_t i = 0; i < config->n_shards; i++) {
        w->ports[i].worker = w;
        w->ports[i].in = nj__task_ring_new(config->jobs_max);
        w->ports[i].out = nj__task_ring_new(config->jobs_max);
        if (!w->ports[i].in || !w->ports[i].out)
            err = -ENOMEM;
    }
    if (!err)
        err = -nj_thread_start(&w->thread, config->affinity, worker_main, w);
    if (err) {
        free_memory(w);
        return err;
    }
    *out = w;
    return 0;
}

void nj_service_begin_stop(struct nj_service_thread *w)
{
    for (uint32_t i = 0; i < w->config.n_shards; i++)
        w->ports[i].closed = true;
    atomic_store_explicit(&w->stopping, true, memory_order_release);
    nj_unpark(&w->n_wakes);
}

bool nj_service_join(struct nj_service_thread *w, uint32_t wait_ms)
{
    struct timespec until = nj_os_clock_deadline(wait_ms);

    w->joined = w->joined || pthread_timedjoin_np(w->thread, NULL, &until) == 0;
    return w->joined;
}

void nj_service_free(struct nj_service_thread *w)
{
    for (uint32_t i = 0; i < w->config.n_shards; i++)
        NJ_ASSERT(w->ports[i].n_out == 0);
    free_memory(w);
}
