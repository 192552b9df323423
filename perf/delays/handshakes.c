/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-handshakes-virtual: what TLS handshakes do to other requests, in virtual time, with lengths
 * that ./dev bench handshakes has measured. Prints a line of JSON.
 *
 * The driver is an lcore. Its steps take time: each request, each part of a handshake, and each
 * burst of output to the device has a length. A response leaves at the end of its step. Handshakes
 * run on the server's own pool of workers (lib/threads/worker_pool.c), beside tasks of OS_BLOCKING
 * handlers. Requests, handshakes and tasks are due at exponential intervals, which are drawn in
 * advance.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/prng.h"
#include "delays.h"
#include "threads/worker_pool.h"

#define DUE_MAX       4000000u
#define BURST         32u /* packets of a step, as NJ_BURST_MAX */
#define ROUND_TRIP_NS (200 * NJ_US)
#define START_NS      (100 * NJ_MS)

/* The parts of a handshake on the lcore. Workers run between HELLO and FLIGHT, and between FINISHED
 * and TICKET; the client answers between SYN and HELLO, FLIGHT and FINISHED. */
enum part { SYN, HELLO, FLIGHT, FINISHED, TICKET, END, N_PARTS };

static struct options {
    uint32_t handshakes, requests, tasks; /* per second */
    nj_ns request_ns, part_ns, device_ns, hello_ns, finished_ns, task_ns, length_ns;
    uint64_t seed;
} o;

struct job {
    struct nj_task task;
    struct nj_list node; /* of handshakes: in `events` */
    nj_ns due, started;
    enum part part;
    bool is_handshake;
};

/* Requests, handshakes, tasks: in the order of their due times. */
struct plan {
    nj_ns *due;
    uint32_t n, n_begun;
};

static struct plan requests, handshakes, tasks;
static nj_ns *waited; /* of requests */
static nj_ns busy_ns; /* of the lcore */
static struct job *handshake_jobs, *task_jobs;
static struct nj_list events; /* handshakes whose client sends a packet: all wait ROUND_TRIP_NS */
static struct nj_worker_ops tls, handlers;
static struct nj_prng prng;

/* --- tasks ------------------------------------------------------------------------------------ */

static void run(struct nj_task *task)
{
    struct job *j = nj_container_of(task, struct job, task);

    j->started = time_now();
    time_burn(!j->is_handshake ? o.task_ns : j->part == HELLO ? o.hello_ns : o.finished_ns);
}

static void reject(struct nj_task *task)
{
    (void)task;
    NJ_UNREACHABLE("the benchmark submits fewer tasks than tasks_max");
}

static const struct nj_task_ops ops = {run, reject};

static void submit(const struct nj_worker_ops *to, struct job *j)
{
    j->task = (struct nj_task){.ops = &ops};
    nj_list_init(&j->task.node);
    NJ_CHECK(to->submit(to->ctx, &j->task));
}

/* --- the plan --------------------------------------------------------------------------------- */

static double uniform(void)
{
    return ((double)(nj_prng_next(&prng) >> 11) + 1) / 9007199254740993.0;
}

static void draw(struct plan *p, uint32_t rate)
{
    double at = 0;

    p->due = calloc(DUE_MAX, sizeof *p->due);
    NJ_CHECK(p->due);
    while (rate > 0 && p->n < DUE_MAX) {
        at += -log(uniform()) * 1e9 / rate;
        if (at >= (double)o.length_ns)
            return;
        p->due[p->n++] = (nj_ns)at;
    }
}

/* --- the lcore -------------------------------------------------------------------------------- */

/* What a step does. */
struct step {
    nj_ns began, spent;
    bool has_output;
};

/* SYN, FLIGHT or TICKET: output, which a packet of the client follows. */
static void answer(struct step *s, struct job *j)
{
    j->part++;
    j->due = s->began + ROUND_TRIP_NS;
    nj_list_push_back(&events, &j->node);
    s->spent += o.part_ns;
    s->has_output = true;
}

static void packets_of_handshakes(struct step *s)
{
    while (handshakes.n_begun < handshakes.n && handshakes.due[handshakes.n_begun] <= s->began) {
        struct job *j = &handshake_jobs[handshakes.n_begun++];
        j->is_handshake = true;
        j->part = SYN;
        answer(s, j);
    }
    while (!nj_list_empty(&events)) {
        struct job *j = nj_container_of(events.next, struct job, node);
        if (j->due > s->began)
            break;
        nj_list_del(&j->node);
        s->spent += o.part_ns;
        if (j->part == HELLO || j->part == FINISHED)
            submit(&tls, j);
    }
}

/* Returns the number of tasks of handlers that are done. */
static uint32_t results_of_workers(struct step *s)
{
    struct nj_task *done[64];

    uint32_t n = tls.poll(tls.ctx, done, NJ_ARRAY_LEN(done));
    for (uint32_t i = 0; i < n; i++) {
        struct job *j = nj_container_of(done[i], struct job, task);
        j->part++; /* FLIGHT or TICKET */
        answer(s, j);
    }
    return handlers.poll(handlers.ctx, done, NJ_ARRAY_LEN(done));
}

static void new_tasks(nj_ns now, nj_ns began)
{
    while (tasks.n_begun < tasks.n && tasks.due[tasks.n_begun] <= now) {
        struct job *j = &task_jobs[tasks.n_begun];
        j->due = began + tasks.due[tasks.n_begun++];
        submit(&handlers, j);
    }
}

static void new_requests(struct step *s)
{
    for (uint32_t n = 0;
         n < BURST && requests.n_begun < requests.n && requests.due[requests.n_begun] <= s->began;
         n++) {
        requests.n_begun++;
        s->spent += o.request_ns;
        s->has_output = true;
    }
}

static void drive(void)
{
    time_block(START_NS); /* until the workers have started */
    nj_ns began = time_now();
    uint32_t n_done = 0;

    while (requests.n_begun < requests.n || n_done < tasks.n) {
        struct step s = {.began = time_now() - began};
        uint32_t first = requests.n_begun;
        new_requests(&s);
        n_done += results_of_workers(&s);
        packets_of_handshakes(&s);
        new_tasks(s.began, began);
        tls.flush(tls.ctx);
        handlers.flush(handlers.ctx);
        s.spent += s.has_output ? o.device_ns : 0;
        busy_ns += s.spent;
        if (s.spent > 0)
            time_burn(s.spent);
        else
            time_step();
        for (uint32_t i = first; i < requests.n_begun; i++)
            waited[i] = time_now() - began - requests.due[i];
    }
}

/* --- results ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *z)
{
    nj_ns x = *(const nj_ns *)a, y = *(const nj_ns *)z;
    return x < y ? -1 : x > y;
}

static void print(const char *name, nj_ns *values, uint32_t n, const char *end)
{
    qsort(values, n, sizeof *values, by_value);
    printf("\"%s\": %u, \"%s_p50_ns\": %" PRIu64 ", \"%s_p99_ns\": %" PRIu64
           ", \"%s_p999_ns\": %" PRIu64 "%s",
           name, n, name, n ? values[n / 2] : 0, name, n ? values[(uint64_t)n * 99 / 100] : 0, name,
           n ? values[(uint64_t)n * 999 / 1000] : 0, end);
}

static int measure(void)
{
    struct nj_worker_pool_config c = {
        .n_shards = 1,
        .kind = {[NJ_WORKER_HANDLERS] = {.n_max = 4, .tasks_max = 100000},
                 [NJ_WORKER_TLS] = {.n_max = 4, .tasks_max = 100000}}};
    struct nj_worker_pool *w;

    nj_prng_init(&prng, o.seed);
    draw(&requests, o.requests);
    draw(&tasks, o.tasks);
    draw(&handshakes, o.handshakes); /* last: the others are the same without handshakes */
    waited = calloc(requests.n + 1, sizeof *waited);
    handshake_jobs = calloc(handshakes.n + 1, sizeof *handshake_jobs);
    task_jobs = calloc(tasks.n + 1, sizeof *task_jobs);
    NJ_CHECK(waited && handshake_jobs && task_jobs);
    nj_list_init(&events);
    NJ_CHECK(nj_worker_pool_start(&c, &w) == 0);
    tls = nj_worker_pool_ops(w, 0, NJ_WORKER_TLS);
    handlers = nj_worker_pool_ops(w, 0, NJ_WORKER_HANDLERS);
    drive();
    printf("{\"handshakes\": %u, \"busy\": %.3f, ", handshakes.n_begun,
           (double)busy_ns / (double)o.length_ns);
    print("requests", waited, requests.n, ", ");
    for (uint32_t i = 0; i < tasks.n; i++)
        tasks.due[i] = task_jobs[i].started - task_jobs[i].due;
    print("tasks", tasks.due, tasks.n, "}\n");
    fflush(stdout);
    _Exit(0); /* handshakes may still be at workers */
}

int main(int argc, char **argv)
{
    if (argc != 12) {
        fputs("usage: nj-handshakes-virtual HANDSHAKES_PER_S REQUESTS_PER_S TASKS_PER_S REQUEST_NS "
              "PART_NS DEVICE_NS HELLO_NS FINISHED_NS TASK_NS MS SEED\n",
              stderr);
        return 2;
    }
    o = (struct options){
        .handshakes = (uint32_t)atoi(argv[1]),
        .requests = (uint32_t)atoi(argv[2]),
        .tasks = (uint32_t)atoi(argv[3]),
        .request_ns = (nj_ns)atoi(argv[4]),
        .part_ns = (nj_ns)atoi(argv[5]),
        .device_ns = (nj_ns)atoi(argv[6]),
        .hello_ns = (nj_ns)atoi(argv[7]),
        .finished_ns = (nj_ns)atoi(argv[8]),
        .task_ns = (nj_ns)atoi(argv[9]),
        .length_ns = (nj_ns)atoi(argv[10]) * NJ_MS,
        .seed = strtoull(argv[11], NULL, 0),
    };
    return time_run(measure);
}
