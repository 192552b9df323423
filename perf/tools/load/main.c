/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nightjar-load: a load generator for HTTP/2 and HTTP/1.1. Each thread has a crowd of clients
 * (crowd.h), which opens connections over sockets of the kernel; or each lcore, over a shard of
 * nightjar's own stack as in the server (dpdk.h). The main thread also conducts: it sets the phases
 * of the others, such as warm-up, measurement and end.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <rte_pause.h>

#include "base/relaxed_atomics.h"
#include "dpdk.h"
#include "report.h"
#include "transport.h"

#define CLOSE_TIME   (2 * NJ_SEC)
#define CLOSED_TIME  (200 * NJ_MS) /* for the last ACKs of our TCP, which a peer may need again */
#define ENDED_MAX    100u          /* connections, and an eighth, while others are opened */
#define FAILED_MAX   10u           /* connections, and an eighth, before anything succeeded */
#define LOOK_EVERY   64u           /* loops between two checks of the conductor */
#define FILES_BESIDE (2 * NJ_SHARDS_MAX) /* open files beside the sockets */

struct load {
    struct load_options o;
    uint32_t n;
    struct crowd *crowd[NJ_SHARDS_MAX];
    struct load_report report;
    _Atomic enum load_phase phase;
    nj_ns phase_at, told_at, closed_at, moved_at;
    uint64_t moved; /* completed connections and requests, until moved_at */
    bool failed;
    char why[256];
};

static struct load load;
static volatile sig_atomic_t told_to_stop;

static void on_signal(int number)
{
    (void)number;
    told_to_stop = 1;
}

/* ---- up and down ---- */

static nj_ns now_of(const struct load *l)
{
    struct timespec t;

    if (l->o.over_dpdk)
        return load_dpdk_now();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (nj_ns)t.tv_sec * NJ_SEC + (nj_ns)t.tv_nsec;
}

/* Permits a file descriptor for each connection. */
static bool raise_files_limit(struct load *l)
{
    rlim_t wanted = l->o.n_conns + FILES_BESIDE;
    struct rlimit r = {.rlim_cur = 0};

    getrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_cur >= wanted)
        return true;
    const struct rlimit more = {wanted, r.rlim_max < wanted ? wanted : r.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &more) == 0)
        return true;
    snprintf(l->why, sizeof l->why,
             "--connections %u: this process may open %lu files (ulimit -Hn)", l->o.n_conns,
             (unsigned long)r.rlim_max);
    return false;
}

static bool up(void)
{
    struct load *l = &load;
    uint32_t n = l->o.n_threads;

    if (l->o.over_dpdk ? load_dpdk_up(&l->o, &n, l->why, sizeof l->why) != 0
                       : !raise_files_limit(l))
        return false;
    snprintf(l->why, sizeof l->why, "not enough memory for %u connections", l->o.n_conns);
    for (uint32_t i = 0; i < n; i++) {
        struct nj_shard *shard = l->o.over_dpdk ? load_dpdk_shard(i) : NULL;
        l->crowd[i] = calloc(1, sizeof *l->crowd[i]);
        if (!l->crowd[i])
            return false;
        l->n++;
        if (!crowd_init(l->crowd[i], &l->o, shard, i, n))
            return false;
    }
    l->report = (struct load_report){
        .o = &l->o, .driver = l->o.over_dpdk ? load_dpdk_driver() : "kernel", .n_lcores = n};
    l->report.series = calloc(LOAD_SERIES_MAX, sizeof *l->report.series);
    l->phase_at = l->told_at = l->moved_at = now_of(l);
    load_sum_take(&l->report.last, l->crowd, l->n, l->phase_at);
    return true;
}

static void down(void)
{
    struct load *l = &load;

    for (uint32_t i = 0; i < l->n; i++) {
        crowd_fini(l->crowd[i], l->phase_at);
        free(l->crowd[i]);
    }
    if (l->o.over_dpdk)
        load_dpdk_down();
    free(l->report.series);
}

/* ---- the conductor ---- */

static void enter(enum load_phase phase, nj_ns now)
{
    struct load *l = &load;

    if (phase == LOAD_MEASURING) {
        load_sum_take(&l->report.from, l->crowd, l->n, now);
        l->report.last = l->report.from;
        l->told_at = now;
    }
    if (phase == LOAD_FINISHING)
        load_sum_take(&l->report.to, l->crowd, l->n, now);
    l->phase_at = l->moved_at = l->closed_at = now;
    atomic_store_explicit(&l->phase, phase, memory_order_release);
}

static void give_up(const char *what, const struct load_sum *s, nj_ns now)
{
    struct load *l = &load;

    snprintf(l->why, sizeof l->why,
             "%s: %lu of %u connections are open after %.1f s, %lu were refused, %lu unreachable, "
             "%lu without TLS, %lu ended: %s",
             what, (unsigned long)s->n_open, l->o.n_conns,
             (double)(now - l->phase_at) / (double)NJ_SEC, (unsigned long)s->refused,
             (unsigned long)s->unreachable, (unsigned long)s->tls_failed,
             (unsigned long)(s->closed + s->cut + s->broken),
             s->fault     ? s->fault
             : s->refused ? "is it listening there, and how many does it take?"
                          : "no answer from there");
    l->failed = true;
    enter(LOAD_CLOSING, now);
}

/* No progress for longer than the timeout of a request. */
static bool stands_still(const struct load_sum *s, nj_ns now)
{
    struct load *l = &load;
    uint64_t moved = s->connected + s->done + s->reset + s->body_bytes + s->upload_bytes;

    if (moved != l->moved)
        l->moved_at = now;
    l->moved = moved;
    return now - l->moved_at > l->o.timeout;
}

/* Connections end, or none is made, and there was no response yet. */
static bool is_vain(const struct load_sum *s)
{
    uint64_t n_ended = s->closed + s->cut + s->broken;
    uint64_t n_failed = s->refused + s->unreachable + s->tls_failed;

    return (s->connected == 0 && n_failed >= FAILED_MAX) ||
           (s->done == 0 && n_ended > load.o.n_conns / 8 + FAILED_MAX);
}

static void conduct(nj_ns now)
{
    struct load *l = &load;
    enum load_phase phase = atomic_load_explicit(&l->phase, memory_order_relaxed);
    nj_ns time = now - l->phase_at;
    struct load_sum s;

    if (told_to_stop && phase < LOAD_MEASURING) {
        snprintf(l->why, sizeof l->why, "stopped before anything was measured");
        l->failed = true;
        enter(LOAD_CLOSING, now);
        return;
    }
    load_sum_take(&s, l->crowd, l->n, now);
    bool still = stands_still(&s, now);
    switch (phase) {
    case LOAD_OPENING:
        if (s.n_open == l->o.n_conns)
            enter(l->o.warm_up ? LOAD_WARMING : LOAD_MEASURING, now);
        else if (still || (s.connected == 0 && is_vain(&s)))
            give_up("it does not begin", &s, now);
        else if (s.closed + s.cut + s.broken > l->o.n_conns / 8 + ENDED_MAX)
            give_up("the server ends them again", &s, now); /* it would never end */
        break;
    case LOAD_WARMING:
        if (is_vain(&s))
            give_up("there is no response", &s, now);
        else if (time >= l->o.warm_up)
            enter(LOAD_MEASURING, now);
        break;
    case LOAD_MEASURING:
        if (told_to_stop || (l->o.n_requests ? s.asked >= l->o.n_requests && s.n_under_way == 0
                                             : time >= l->o.duration))
            enter(LOAD_FINISHING, now);
        else if (is_vain(&s))
            give_up("there is no response", &s, now);
        else if (l->o.n_requests && still)
            give_up("it does not go on", &s, now);
        break;
    case LOAD_FINISHING:
        if (s.n_under_way == 0 || time > l->o.timeout || told_to_stop)
            enter(LOAD_CLOSING, now);
        break;
    case LOAD_CLOSING:
        if (s.n_open > 0)
            l->closed_at = now;
        if (now - l->closed_at > (l->o.over_dpdk ? CLOSED_TIME : 0) || time > CLOSE_TIME)
            enter(LOAD_OVER, now);
        break;
    case LOAD_OVER:
        break;
    }
}

/* ---- the loop ---- */

static int loop(uint32_t i, bool conductor)
{
    struct load *l = &load;
    struct crowd *c = l->crowd[i];
    nj_ns now = now_of(l);
    enum load_phase phase;
    uint32_t n_loops = 0;

    while ((phase = atomic_load_explicit(&l->phase, memory_order_acquire)) != LOAD_OVER) {
        uint32_t work = crowd_run(c, phase, now);
        work += c->net->step(c, now, work == 0);
        bool waited = work == 0 && !l->o.over_dpdk;
        if (conductor && (n_loops++ % LOOK_EVERY == 0 || waited))
            conduct(now);
        if (conductor && now - l->told_at >= NJ_SEC) {
            l->told_at += NJ_SEC;
            load_report_progress(&l->report, l->crowd, phase, now);
        }
        if (work == 0)
            rte_pause();
        nj_ns then = now;
        now = now_of(l);
        nj_add_single_writer(work ? &c->busy : &c->idle, now - then);
    }
    c->net->end(c, now);
    return 0;
}

static void *run_thread(void *i)
{
    loop((uint32_t)(uintptr_t)i, false);
    return NULL;
}

/* A thread for each crowd, with sockets. */
static void run_threads(struct load *l)
{
    pthread_t thread[NJ_SHARDS_MAX];
    uint32_t n = 1;

    while (n < l->n && pthread_create(&thread[n], NULL, run_thread, (void *)(uintptr_t)n) == 0)
        n++;
    if (n < l->n) {
        snprintf(l->why, sizeof l->why, "cannot create a thread: %s", strerror(errno));
        l->failed = true;
        enter(LOAD_OVER, l->phase_at);
    }
    loop(0, true);
    while (n > 1)
        pthread_join(thread[--n], NULL);
}

static void run(void)
{
    struct load *l = &load;

    if (l->o.over_dpdk)
        load_dpdk_run(loop);
    else
        run_threads(l);
    load_sum_take(&l->report.end, l->crowd, l->n, l->phase_at);
    for (uint32_t i = 0; i < l->n; i++) {
        fine_histogram_merge(&l->report.total, &l->crowd[i]->total);
        fine_histogram_merge(&l->report.first, &l->crowd[i]->first);
    }
}

int main(int argc, char **argv)
{
    struct load *l = &load;
    int n_eal = 0;
    bool good = false;

    while (n_eal < argc && strcmp(argv[n_eal], "--") != 0)
        n_eal++;
    /* Without "--" there are no EAL arguments, such as in a call for help. */
    bool split = n_eal < argc;
    switch (load_options_read(&l->o, split ? argc - n_eal : argc, split ? argv + n_eal : argv,
                              split && n_eal > 1)) {
    case LOAD_HELPED:
        return 0;
    case LOAD_WRONG:
        return 2;
    case LOAD_NO_HOST:
        return 1;
    case LOAD_GO:
        break;
    }
    if (l->o.over_dpdk &&
        load_dpdk_check(&l->o, split ? n_eal : 1, argv, l->why, sizeof l->why) != 0) {
        fprintf(stderr, "nightjar-load: %s\n", l->why);
        load_dpdk_down();
        return 2;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (up()) {
        run();
        good = !l->failed && load_report_end(&l->report) && l->report.end.done > 0;
    } else {
        l->failed = true;
    }
    if (l->failed)
        fprintf(stderr, "nightjar-load: %s\n", l->why);
    down();
    return good ? 0 : 1;
}
