/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool of workers: lanes and clients take turns, and the tasks that a ring may hold in advance.
 */
#include "support/workers_rig.h"

/* Lanes take turns: the only task of one lcore is not behind all tasks of another lcore. */
Test(threads_worker_pool_turns, lanes_take_turns, .timeout = 60)
{
    enum { MANY = NJ_WORKER_DEPTH };
    sem_t gate;
    sem_init(&gate, 0, 0);
    struct nj_worker_pool *w = start(1, 100);
    struct nj_task_class quick = {.worker_max_ns = 1};
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS),
                         other = nj_worker_pool_ops(w, 1, NJ_WORKER_HANDLERS);
    struct job *many = new_jobs(MANY, &gate), *one = new_jobs(1, &gate);

    for (unsigned i = 0; i < MANY; i++) {
        many[i].task.class_of = &quick;
        send(&port, &many[i]);
    }
    await_start(&many[0]);
    send(&other, one);
    for (unsigned i = 0; i < 3; i++)
        sem_post(&gate);
    await_home(&other, 1); /* it was the second one or the third */
    for (unsigned i = 3; i <= MANY; i++)
        sem_post(&gate);
    await_home(&port, MANY);
    finish(w);
    free(many);
    free(one);
}

/* Only tasks that are known to be short are put into a ring in advance; none waits behind another
 * task. */
Test(threads_worker_pool_turns, only_short_tasks_go_ahead, .timeout = 60)
{
    enum { TASKS = 20 };
    static struct {
        nj_ns worker_max_ns;
        uint32_t n_ahead;
    } cases[] = {{0, 1}, {1, NJ_WORKER_DEPTH}, {NJ_WORKER_SHORT_TASK_NS + 1, 1}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        sem_t gate;
        sem_init(&gate, 0, 0);
        struct nj_worker_pool *w = start(1, 100);
        struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
        struct job *jobs = new_jobs(TASKS, &gate);
        struct nj_task_class c = {.worker_max_ns = cases[i].worker_max_ns};
        for (int k = 0; k < TASKS; k++) {
            jobs[k].task.class_of = &c;
            send(&port, &jobs[k]);
        }
        cr_expect_eq(nj_worker_pool_stats(w).kind[NJ_WORKER_HANDLERS].n_waiting,
                     TASKS - cases[i].n_ahead, "case %zu", i);
        for (int k = 0; k < TASKS; k++)
            sem_post(&gate);
        await_home(&port, TASKS);
        cr_expect_gt(c.worker_max_ns, 0, "it was learned");
        finish(w);
        free(jobs);
    }
}

/* ---- clients take turns ---- */

/* One worker, and a client with a long queue: another client's first task is the next to run. */
Test(threads_worker_pool_turns, the_first_of_another_client_is_next, .timeout = 60)
{
    enum { MANY = 300 };
    static char key[2][NJ_CACHE_LINE];
    sem_t gate, gate_b;
    sem_init(&gate, 0, 0);
    sem_init(&gate_b, 0, 1);
    struct nj_worker_pool *w = start(1, MANY + 1);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *a = new_jobs(MANY, &gate), *b = new_jobs(1, &gate_b);

    for (int i = 0; i < MANY; i++) {
        a[i].task.client = key[0];
        send(&port, &a[i]);
    }
    b->task.client = key[1];
    send(&port, b);
    await_start(a);
    sem_post(&gate);
    await_home(&port, 1); /* the task that ran, and its place is given to b */
    await_home(&port, 1);
    cr_expect(b->n_home == 1 && !atomic_load(&a[2].started));
    for (int i = 0; i < MANY; i++)
        sem_post(&gate);
    await_home(&port, MANY - 1);
    finish(w);
    free(a);
    free(b);
}

/* Four workers, and a client with many tasks that may be slow: while another client is there, two
 * workers stay free for it. A client that is alone has all. */
Test(threads_worker_pool_turns, a_worker_stays_free_for_other_clients, .timeout = 60)
{
    enum { MANY = 100, WORKERS = 4 };
    static char key[2][NJ_CACHE_LINE];
    sem_t gate, open_gate;
    sem_init(&gate, 0, 0);
    sem_init(&open_gate, 0, 2);
    struct nj_worker_pool *w = start(WORKERS, MANY + 2);
    struct nj_worker_ops port = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    struct job *a = new_jobs(MANY, &gate), *b = new_jobs(2, &open_gate);

    for (int i = 0; i < MANY; i++)
        a[i].task.client = key[0];
    b[0].task.client = b[1].task.client = key[1];
    for (int i = 0; i < WORKERS; i++)
        send(&port, &a[i]);
    for (int i = 0; i < WORKERS; i++)
        await_start(&a[i]); /* alone */
    for (int i = 0; i < WORKERS; i++)
        sem_post(&gate);
    await_home(&port, WORKERS);
    send(&port, &b[0]);
    await_home(&port, 1);
    for (int i = WORKERS; i < MANY; i++)
        send(&port, &a[i]);
    for (int i = 0; i < WORKERS - 2; i++)
        await_start(&a[WORKERS + i]);
    send(&port, &b[1]);
    await_home(&port, 1);
    cr_expect_eq(b[1].n_home, 1);
    struct nj_worker_pool_stats s = nj_worker_pool_stats(w);
    cr_expect_eq(s.kind[NJ_WORKER_HANDLERS].n_out - s.kind[NJ_WORKER_HANDLERS].n_waiting,
                 WORKERS - 2, "the other tasks are in no ring, so they do not start");
    for (int i = WORKERS; i < MANY; i++)
        sem_post(&gate);
    await_home(&port, MANY - WORKERS);
    finish(w);
    free(a);
    free(b);
}
