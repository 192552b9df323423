/* SPDX-License-Identifier: BSD-3-Clause */
#include "workers.h"

#include <stdlib.h>

#include "base/assert.h"
#include "sim.h"

/* A task and its owner, as argument of an event. */
struct errand {
    struct sim_workers *workers;
    struct nj_task *task;
};

static bool submit(void *ctx, struct nj_task *task)
{
    struct sim_workers *w = ctx;
    struct nj_prng *p = &w->sim->server.prng;

    if (w->n_out >= w->queue || (w->n_out > 0 && nj_sim_chance(p, w->refuse)))
        return false;
    struct errand *e = malloc(sizeof *e);
    NJ_CHECK(e);
    *e = (struct errand){w, task};
    nj_ns delay = w->delay ? nj_prng_next(p) % w->delay : 0;
    nj_sim_agenda_add(&w->sim->agenda, w->sim->now + delay, SIM_TASK_DONE, e);
    w->n_out++;
    return true;
}

static void flush(void *ctx)
{
    (void)ctx;
}

void nj_sim_workers_done(struct sim *sim, void *errand)
{
    struct errand *e = errand;

    (void)sim;
    e->task->ops->run(e->task);
    e->workers->done[e->workers->n_done++] = e->task;
    free(e);
}

static uint32_t poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    struct sim_workers *w = ctx;
    uint32_t taken = w->n_done < n ? w->n_done : n;

    memcpy(tasks, w->done, taken * sizeof *tasks);
    memmove(w->done, w->done + taken, (w->n_done - taken) * sizeof *tasks);
    w->n_done -= taken;
    w->n_out -= taken;
    return taken;
}

struct nj_worker_ops nj_sim_workers_port(struct sim_workers *w)
{
    return (struct nj_worker_ops){.ctx = w, .submit = submit, .flush = flush, .poll = poll};
}
