/* SPDX-License-Identifier: BSD-3-Clause */
/* Production and consumption of tasks, and their delays. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "threads/os_clock.h"

_Atomic bool bench_over;
_Atomic nj_ns bench_from = NJ_NEVER;

nj_ns bench_now(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

void bench_wait(nj_ns ns)
{
    struct timespec ts = {(time_t)(ns / NJ_SEC), (long)(ns % NJ_SEC)};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

/* --- production --------------------------------------------------------------------------------
 */

static void fill(struct bench_task *t, uint64_t n)
{
    uint64_t *words = (uint64_t *)t->buffer;

    for (uint32_t i = 0; i < t->producer->options->n_bytes / sizeof *words; i++)
        words[i] = n + i;
}

static bool has_room(struct producer *p, uint32_t window)
{
    return atomic_load(&p->n_under_way) < window && atomic_load(&p->n_blocked) < BLOCKED_MAX;
}

/* True: the window is full, or too many tasks wait. The producer stops; in strategies with threads
 * restart() starts it again. */
static bool must_wait(struct producer *p)
{
    if (has_room(p, p->options->window))
        return false;
    atomic_store(&p->waits, true);
    return !has_room(p, p->options->window / 2) || !atomic_exchange(&p->waits, false);
}

/* Starts a stopped producer if half of its window is free. */
static void restart(struct producer *p)
{
    if (atomic_load(&p->waits) && has_room(p, p->options->window / 2) &&
        p->strategy.config.producer && atomic_exchange(&p->waits, false))
        while (!nj_reference_produce_elsewhere(&p->strategy))
            ;
}

/* Draws the due time of the next task. An exponential interval is one of GAPS quantiles, because a
 * logarithm per task would cost more than the smallest tasks. */
static void draw_next(struct producer *p)
{
    p->due += p->gaps[nj_prng_below(&p->random, GAPS)];
}

struct nj_task *bench_produce(struct producer *p, bool *none_is_due)
{
    const struct options *o = p->options;

    *none_is_due = false;
    if (atomic_load_explicit(&bench_over, memory_order_relaxed) || must_wait(p))
        return NULL;
    if (o->rate && bench_now() < p->due) {
        *none_is_due = true;
        return NULL;
    }
    if (atomic_exchange_explicit(&p->n_inside, 1, memory_order_acquire))
        atomic_fetch_add(&p->n_violations, 1); /* two threads produce at the same time */
    while (atomic_load_explicit(&p->tasks[p->cursor % BUFFERS].busy, memory_order_acquire))
        p->cursor++;
    struct bench_task *t = &p->tasks[p->cursor++ % BUFFERS];
    uint64_t n = atomic_load_explicit(&p->n_produced, memory_order_relaxed);
    atomic_store_explicit(&t->busy, true, memory_order_relaxed);
    fill(t, n);
    t->blocks = o->block_every && n % o->block_every == o->block_every - 1;
    t->due = p->due >= atomic_load_explicit(&bench_from, memory_order_relaxed) ? p->due : 0;
    if (o->rate)
        draw_next(p);
    atomic_store_explicit(&p->n_produced, n + 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->n_under_way, 1, memory_order_relaxed);
    atomic_store_explicit(&p->n_inside, 0, memory_order_release);
    return &t->task;
}

/* --- consumption -------------------------------------------------------------------------------
 */

/* The bucket of a delay. Each power of two has 8 buckets. */
static uint32_t bucket(uint64_t ns)
{
    uint32_t log = ns ? 63 - (uint32_t)__builtin_clzll(ns) : 0;
    return log < 3 ? (uint32_t)ns : log * 8 + (uint32_t)(ns >> (log - 3) & 7);
}

/* The lower bound of a bucket, in ns. */
static uint64_t of_bucket(uint32_t b)
{
    return b < 24 ? b : (8 + b % 8) * (UINT64_C(1) << (b / 8 - 3));
}

static void count_delay(struct producer *p, nj_ns delay)
{
    atomic_fetch_add_explicit(&p->delays[bucket(delay)], 1, memory_order_relaxed);
}

static void spin(uint64_t n)
{
    for (; n; n--)
        __asm__ volatile("" : : : "memory");
}

bool bench_work(struct bench_task *t)
{
    const uint64_t *words = (const uint64_t *)t->buffer;
    struct producer *p = t->producer;
    uint64_t sum = 0;

    if (t->due)
        count_delay(p, bench_now() - t->due);
    for (uint32_t i = 0; i < p->options->n_bytes / sizeof *words; i++)
        sum += words[i];
    __asm__ volatile("" : : "r"(sum));
    spin(p->n_spin);
    if (!t->blocks)
        return false;
    atomic_fetch_add(&p->n_blocked, 1);
    atomic_fetch_sub(&p->n_under_way, 1);
    restart(p);
    return true;
}

void bench_done(struct bench_task *t)
{
    struct producer *p = t->producer;
    bool blocked = t->blocks;

    atomic_store_explicit(&t->busy, false, memory_order_release);
    atomic_fetch_sub(blocked ? &p->n_blocked : &p->n_under_way, 1);
    restart(p);
}

static void run(struct nj_task *task)
{
    struct bench_task *t = nj_container_of(task, struct bench_task, task);

    if (bench_work(t))
        bench_wait(BLOCK_NS);
    bench_done(t);
}

static void reject(struct nj_task *task)
{
    struct bench_task *t = nj_container_of(task, struct bench_task, task);

    t->blocks = false;
    bench_done(t);
}

/* For strategies with threads. Polls until a task is due, where a selector would sleep. */
static struct nj_task *produce(struct nj_producer *port)
{
    struct producer *p = nj_container_of(port, struct producer, port);
    struct nj_task *task;
    bool none_is_due;

    while (!(task = bench_produce(p, &none_is_due)) && none_is_due)
        nj_cpu_relax();
    return task;
}

/* --- setup -------------------------------------------------------------------------------------
 */

uint64_t bench_calibrate(uint32_t ns)
{
    nj_ns best = NJ_NEVER;

    for (int i = 0; i < 20; i++) {
        nj_ns began = bench_now();
        spin(100000);
        nj_ns took = bench_now() - began;
        best = took < best ? took : best;
    }
    return (uint64_t)ns * 100000 / best;
}

static uint32_t *gaps_new(uint32_t rate)
{
    uint32_t *gaps = malloc(GAPS * sizeof *gaps);

    if (!gaps)
        abort();
    for (uint32_t i = 0; i < GAPS; i++)
        gaps[i] = (uint32_t)lrint(-log((i + 0.5) / GAPS) * 1e9 / rate);
    return gaps;
}

struct producer *bench_producer_new(const struct options *o, uint64_t n_spin, uint32_t index)
{
    static const struct nj_task_ops ops = {run, reject};
    struct producer *p = aligned_alloc(NJ_CACHE_LINE, sizeof *p);
    uint8_t *buffers = aligned_alloc(4096, (size_t)BUFFERS * BUFFER_BYTES);

    if (!p || !buffers)
        abort();
    memset(p, 0, sizeof *p);
    if (o->rate) {
        nj_prng_init(&p->random, o->seed + ((uint64_t)index << 32));
        p->gaps = gaps_new(o->rate);
        p->due = bench_now();
        draw_next(p);
    }
    memset(buffers, 0, (size_t)BUFFERS * BUFFER_BYTES);
    p->port.produce = produce;
    p->options = o;
    p->n_spin = n_spin;
    p->tasks = calloc(BUFFERS, sizeof *p->tasks);
    for (uint32_t i = 0; i < BUFFERS; i++)
        p->tasks[i] = (struct bench_task){
            .task = {.ops = &ops}, .producer = p, .buffer = buffers + (size_t)i * BUFFER_BYTES};
    return p;
}

/* --- delays ------------------------------------------------------------------------------------
 */

static uint64_t percentile(const uint64_t counts[BUCKETS], uint64_t all, double share)
{
    uint64_t seen = 0;

    for (uint32_t b = 0; b < BUCKETS; b++)
        if ((seen += counts[b]) > share * (double)all)
            return of_bucket(b);
    return 0;
}

struct bench_delays bench_delays(struct producer *const *p, uint32_t n, nj_ns until)
{
    struct bench_delays d = {0};
    uint64_t counts[BUCKETS] = {0};
    nj_ns from = atomic_load(&bench_from);

    for (uint32_t i = 0; i < n && p[i]->gaps; i++) {
        for (; p[i]->due < until; draw_next(p[i])) {
            if (p[i]->due < from)
                continue;
            count_delay(p[i], until - p[i]->due);
            d.n_unstarted++;
        }
        for (uint32_t b = 0; b < BUCKETS; b++) {
            counts[b] += atomic_load(&p[i]->delays[b]);
            d.n += atomic_load(&p[i]->delays[b]);
        }
    }
    d.p50 = percentile(counts, d.n, 0.5);
    d.p99 = percentile(counts, d.n, 0.99);
    d.p999 = percentile(counts, d.n, 0.999);
    return d;
}
