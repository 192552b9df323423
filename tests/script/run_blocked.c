/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls with a duration: `0.1...0.3 read(4, ..., 1000) = 1000`. As in packetdrill, such a call runs
 * in a thread of its own while the script continues. The state of the thread in /proc shows whether
 * it sleeps: the table cannot distinguish a waiting call from a running one.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/script.h"

struct blocked {
    pthread_t thread;
    struct job job;
    _Atomic int tid; /* 0: not started */
    _Atomic bool done;
    int64_t until_us; /* script time by which it must return */
};

static void *thread_main(void *arg)
{
    struct blocked *b = arg;
    atomic_store(&b->tid, gettid());
    job_run(&b->job);
    atomic_store(&b->done, true);
    return NULL;
}

static bool sleeps(int tid)
{
    char path[64], text[512] = "";

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *state = strrchr(text, ')'); /* the name before it may contain spaces */
    return state && state[1] == ' ' && state[2] == 'S';
}

/* Waits until the call has returned (true) or sleeps. */
static bool returned(struct blocked *b)
{
    for (;;) {
        if (atomic_load(&b->done))
            return true;
        int tid = atomic_load(&b->tid);
        if (tid && sleeps(tid) && !atomic_load(&b->done))
            return false;
        sched_yield();
    }
}

void run_blocking(struct run *r, const struct event *e)
{
    run_settle(r);
    if (r->blocked)
        script_fail(r->s, e->line, "the call of line %d still waits", r->blocked->job.event->line);
    struct blocked *b = calloc(1, sizeof *b);
    b->job.event = e;
    b->job.run = r;
    b->until_us = e->end_us + (e->time == TIME_RELATIVE ? r->now_us - e->at_us : 0);
    if (pthread_create(&b->thread, NULL, thread_main, b) != 0) {
        free(b);
        script_fail(r->s, e->line, "no thread for it");
    }
    r->blocked = b;
    run_settle(r);
}

void run_settle(struct run *r)
{
    struct blocked *b = r->blocked;
    struct event end;

    if (!b || !returned(b))
        return;
    pthread_join(b->thread, NULL);
    r->blocked = NULL;
    struct job j = b->job;
    end = *j.event;
    end.time = TIME_ABSOLUTE;
    end.is_range = false;
    end.at_us = b->until_us;
    free(b);
    job_check(r, &j);
    run_check_time(r, &end, j.end_us, "the return of this call");
}

void run_all_returned(struct run *r)
{
    run_settle(r);
    if (r->blocked)
        script_fail(r->s, r->blocked->job.event->line, "the call has not returned at the end");
}

void run_end(struct run *r)
{
    struct blocked *b = r->blocked;

    if (b)
        (void)returned(b); /* or it sleeps, and wakes when the stack ends */
    atomic_store(&r->ends, true);
    if (r->call.userdata)
        r->call.free(r->call.userdata);
    if (!b)
        return;
    pthread_join(b->thread, NULL);
    free(b);
    r->blocked = NULL;
}
