/* SPDX-License-Identifier: BSD-3-Clause */
/* Reserved threads: some that reserve themselves, one that hands over tasks, and one that stops
 * everything. The wait of a reserved thread may time out at any moment. */
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "system.h"

#define aligned_alloc(alignment, n_bytes) explore_alloc(n_bytes)
#define free(memory)                      ((void)(memory))
#include "strategy/reserved_threads.c" /* for its seats */

#define TASKS_MAX 8u

enum { PLACE_WANTED = EXPLORE_N_PLACES, PLACE_STOP, PLACE_TRY, PLACE_NEEDED, PLACE_ROUSE };
enum { ROLE_THREAD = 1, ROLE_GIVER, ROLE_STOPPER, ROLE_ROUSER };

struct task {
    struct nj_task task;
    bool accepted;
    uint8_t n_run;
};

static struct {
    const struct model_reserved *model;
    struct nj_reserved *r;
    struct task tasks[TASKS_MAX];
    uint8_t n_tried;
    bool served;                       /* a thread was reserved */
    uint8_t n_roused, n_back_roused;   /* calls of nj_reserved_unreserve_one(); returns of _serve()
                                        * for it */
    bool stopped, has_stopped, needed; /* n_back_roused: returns of _serve() for that */
} w;

static void check(bool is, const char *what)
{
    if (!is)
        explore_fail("%s", what);
}

static void run(struct nj_task *task)
{
    struct task *t = (struct task *)((char *)task - offsetof(struct task, task));

    explore_note("runs task %ld", (long)(t - w.tasks));
    check(t->n_run++ == 0, "a task runs twice");
}

static bool wanted(void *arg)
{
    (void)arg;
    return nj_reserved_is_wanted(w.r) || w.stopped;
}

static void thread(void *arg)
{
    (void)arg;
    while (!w.stopped) {
        explore_wait(wanted, NULL, PLACE_WANTED);
        explore_note("serves");
        w.served = true;
        w.n_back_roused += nj_reserved_serve(w.r);
    }
}

static bool is_needed(void *ctx)
{
    (void)ctx;
    explore_step(PLACE_NEEDED, 0);
    return w.needed;
}

static void giver(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < w.model->n_tasks; i++) {
        struct task *t = &w.tasks[i];
        explore_step(PLACE_TRY, i);
        w.n_tried++;
        bool late = w.has_stopped;
        t->accepted = nj_reserved_try_execute(w.r, &t->task);
        check(!late || !t->accepted, "accepted after the stop"); /* EWYK 5.42 */
        explore_note("task %u %s", i, t->accepted ? "accepted" : "refused");
    }
}

/* Needs a thread for something else, from now on. */
static void rouser(void *arg)
{
    (void)arg;
    explore_step(PLACE_ROUSE, 0);
    w.needed = true;
    w.n_roused = nj_reserved_unreserve_one(w.r);
    explore_note("rouses %u", w.n_roused);
}

static void stopper(void *arg)
{
    (void)arg;
    explore_step(PLACE_STOP, 0);
    explore_note("stops it");
    w.stopped = true;
    nj_reserved_stop(w.r);
    w.has_stopped = true;
}

static void begin(void *ctx)
{
    static const struct nj_task_ops ops = {run, NULL};
    const struct model_reserved *m = ctx;
    struct nj_reserved_config config = {
        .capacity = m->capacity, .n_min = m->n_min, .idle_ns = 1, .is_needed = is_needed};

    w.model = m;
    w.r = nj_reserved_new(&config);
    explore_system_begin();
    explore_system((struct explore_system){.n_timeouts = m->n_timeouts, .n_early = m->n_early});
    for (unsigned i = 0; i < TASKS_MAX; i++)
        w.tasks[i].task.ops = &ops;
    for (unsigned i = 0; i < m->n_threads; i++)
        explore_start(thread, NULL, ROLE_THREAD);
    explore_start(giver, NULL, ROLE_GIVER);
    if (m->stops)
        explore_start(stopper, NULL, ROLE_STOPPER);
    if (m->rouses)
        explore_start(rouser, NULL, ROLE_ROUSER);
}

static uint64_t hash(const void *ctx)
{
    uint32_t count = look(w.r);
    uint64_t h = explore_mix(count, (uint64_t)w.n_tried << 8 | w.has_stopped << 2 | w.needed << 1 |
                                        w.stopped);

    (void)ctx;
    h = explore_mix(h, (uint64_t)w.n_roused << 8 | w.n_back_roused);
    h = explore_mix(h, explore_system_hash());
    check((count & N_SEATED) + n_wanted(count) <= w.model->capacity,
          "more reserved and wanted threads than the capacity"); /* EWYK 5.44 */
    unsigned n_taken = 0;
    for (unsigned i = 0; i < w.model->capacity; i++) {
        struct seat *seat = &w.r->seats[i];
        n_taken += atomic_load(&seat->state) != FREE;
        h = explore_mix(h, atomic_load(&seat->state));
        h = explore_mix(h, atomic_load(&seat->n_wakes));
    }
    check(n_taken <= (count & N_SEATED), "more seats are taken than counted");
    for (unsigned i = 0; i < w.n_tried; i++)
        h = explore_mix(h, (uint64_t)w.tasks[i].n_run << 1 | w.tasks[i].accepted);
    return h;
}

unsigned model_reserved_waiting(const struct nj_reserved *r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < r->config.capacity; i++)
        n += atomic_load(&r->seats[i].state) == WAITING;
    return n;
}

static void on_end(void *ctx)
{
    const struct model_reserved *m = ctx;
    unsigned n_waiting = model_reserved_waiting(w.r);

    for (unsigned i = 0; i < m->n_tasks; i++) /* EWYK 5.39, EWYK 5.40, EWYK 5.41, EWYK 5.42 */
        check(w.tasks[i].n_run == w.tasks[i].accepted,
              w.tasks[i].accepted ? "an accepted task does not run" : "a refused task runs");
    check(n_waiting == (look(w.r) & N_SEATED), "seats and their count differ");
    bool may_leave = w.needed || w.stopped || !w.served;
    check(may_leave || n_waiting >= m->n_min, "fewer are reserved than stay"); /* EWYK 5.45 */
    check(w.n_roused == w.n_back_roused, "was roused, and _serve() does not return that");
    check(!w.needed || w.n_roused || n_waiting == 0, "a thread sleeps that is needed elsewhere");
    if (w.stopped)
        check(n_waiting == 0 && explore_n_stuck() == 0, "a reserved thread stays"); /* EWYK 5.42 */
    else
        check(n_waiting <= explore_n_stuck(), "a seat without its thread");
}

struct explore_result model_reserved(const struct model_reserved *m, uint64_t states_max)
{
    struct explore_world world = {.begin = begin,
                                  .hash = hash,
                                  .end = on_end,
                                  .ctx = (void *)(uintptr_t)m,
                                  .memory = &w,
                                  .by_stack = true,
                                  .n_memory = sizeof w};
    return explore(&world, states_max);
}
