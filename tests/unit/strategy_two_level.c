/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of two levels, with real threads: a selector produces readable connections, and each
 * connection produces requests, by a strategy of its own. Requests are written under flow control:
 * a request blocks its thread while its window is 0, or until its body arrives. A frame ends the
 * wait. The connection's producer handles frames itself; they are no tasks.
 *
 * The client sends such a frame only after it saw requests that wait for it. So the server ends if
 * and only if production continues while all threads that may block are blocked. The selector waits
 * in produce(): it occupies a thread of the pool, which has one more for it (two with the dual
 * strategy). NJ_TEST_SEED=n chooses other requests and windows. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "reference/strategies.h"
#include "sched/fiber.h"
#include "strategy/thread_pool.h"

#define CONNS_MAX    3u
#define REQUESTS_MAX 24u /* of a connection */
#define FRAMES_MAX   256u
#define MANY         1000u /* more units than all requests write */

enum frame_kind { REQUEST, DATA, WINDOW_UPDATE };

struct frame {
    enum frame_kind kind;
    struct request *request; /* NULL: the session's window */
    uint32_t n;
};

struct conn;

struct request {
    struct nj_task task;
    struct conn *conn;
    uint32_t window, n_body, n_units; /* n_body: to be read before n_units are written */
    bool waits;
    uint32_t n_run;
};

struct conn {
    struct nj_task task; /* EITHER: it runs the strategy of its requests */
    struct nj_producer producer;
    union {
        struct nj_strategy strategy;
        struct nj_dual dual;
    };
    struct frame frames[FRAMES_MAX];    /* unread frames of the client: a ring */
    uint32_t head, n_frames, n_answers; /* n_answers: frames that are no REQUEST */
    bool interested;                    /* the selector reports when there is a frame to read */
    bool is_ready;
    uint32_t window; /* of the session */
    struct request requests[REQUESTS_MAX];
    uint32_t n_requests;
    _Atomic bool inside; /* produce() */
};

static struct {
    pthread_mutex_t lock; /* of all non-atomic fields below */
    pthread_cond_t changed;
    struct nj_thread_pool *pool;
    uint32_t n_threads;
    struct nj_producer selector;
    union {
        struct nj_strategy strategy;
        struct nj_dual dual;
    };
    struct conn conns[CONNS_MAX], *ready[CONNS_MAX];
    uint32_t n_conns, n_ready, n_requests, n_done, n_stopped;
    bool selecting; /* a thread waits in the selector, and no connection is ready */
    bool over;
    _Atomic bool inside;
    _Atomic uint32_t n_bad;
} w;

static void lock(void)
{
    pthread_mutex_lock(&w.lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&w.lock);
}

static void wait(void)
{
    pthread_cond_wait(&w.changed, &w.lock);
}

static void say(void)
{
    pthread_cond_broadcast(&w.changed);
}

/* --- requests ----------------------------------------------------------------------------------
 */

enum lack { NOTHING, BODY, SESSION, STREAM };

static enum lack lacks(const struct request *r)
{
    if (r->n_body)
        return BODY;
    if (!r->n_units)
        return NOTHING;
    return !r->conn->window ? SESSION : !r->window ? STREAM : NOTHING;
}

static void run_request(struct nj_task *task)
{
    struct request *r = nj_container_of(task, struct request, task);

    if (nj_noblock_is_set())
        atomic_fetch_add(&w.n_bad, 1);
    lock();
    r->n_run++;
    do {
        while (lacks(r)) {
            if (!r->waits)
                say();
            r->waits = true;
            wait();
        }
        r->waits = false;
        if (r->n_units) {
            r->n_units--;
            r->window--;
            r->conn->window--;
        }
    } while (r->n_units);
    w.n_done++;
    say();
    unlock();
}

static void reject(struct nj_task *task)
{
    (void)task;
    atomic_fetch_add(&w.n_bad, 1);
}

/* Frames that are no request are handled here: only the producing thread is needed for them. */
static struct nj_task *next_request(struct nj_producer *p)
{
    struct conn *c = nj_container_of(p, struct conn, producer);
    struct nj_task *found = NULL;

    if (atomic_exchange(&c->inside, true))
        atomic_fetch_add(&w.n_bad, 1);
    lock();
    while (!found && c->n_frames) {
        struct frame f = c->frames[c->head];
        c->head = (c->head + 1) % FRAMES_MAX;
        c->n_frames--;
        c->n_answers -= f.kind != REQUEST;
        if (f.kind == REQUEST)
            found = &f.request->task;
        else if (f.kind == DATA)
            f.request->n_body -= f.n;
        else if (f.request)
            f.request->window += f.n;
        else
            c->window += f.n;
        say();
    }
    c->interested = !found;
    unlock();
    atomic_store(&c->inside, false);
    return found;
}

static enum nj_task_type type_of_request(const struct nj_task *task)
{
    (void)task;
    return NJ_BLOCKING;
}

/* --- connections -------------------------------------------------------------------------------
 */

static void run_conn(struct nj_task *task)
{
    nj_reference_produce(&nj_container_of(task, struct conn, task)->strategy);
}

static struct nj_task *next_conn(struct nj_producer *p)
{
    struct conn *c = NULL;

    (void)p;
    if (atomic_exchange(&w.inside, true))
        atomic_fetch_add(&w.n_bad, 1);
    lock();
    w.selecting = !w.n_ready;
    say();
    while (!w.n_ready && !w.over)
        wait();
    w.selecting = false;
    if (w.n_ready) {
        c = w.ready[0];
        memmove(w.ready, w.ready + 1, --w.n_ready * sizeof *w.ready);
        c->is_ready = false;
    }
    unlock();
    atomic_store(&w.inside, false);
    return c ? &c->task : NULL;
}

static enum nj_task_type type_of_conn(const struct nj_task *task)
{
    (void)task;
    return NJ_EITHER;
}

/* --- the server --------------------------------------------------------------------------------
 */

static void on_stopped(void *ctx)
{
    (void)ctx;
    lock();
    w.n_stopped++;
    say();
    unlock();
}

static void begin_conn(struct conn *c, enum nj_strategy_kind kind)
{
    static const struct nj_task_ops ops = {run_conn, reject};
    struct nj_strategy_config config = {.consume = nj_strategies[kind].consume,
                                        .producer = &c->producer,
                                        .executor = nj_thread_pool_executor(w.pool),
                                        .type_of = type_of_request,
                                        .on_stopped = on_stopped};

    c->task.ops = &ops;
    c->producer.produce = next_request;
    c->interested = true;
    nj_reference_init(&c->strategy, &config);
}

/* With n_threads besides those that the selector occupies. */
static void begin(enum nj_strategy_kind kind, uint32_t n_threads, uint32_t n_reserved,
                  uint32_t n_conns)
{
    bool dual = kind == NJ_STRATEGY_DUAL;
    uint32_t n_occupied = dual ? 2 : 1;
    struct nj_thread_pool_config config = {
        .n_max = n_threads + n_occupied, .n_reserved = (int)n_reserved, .idle_ns = NJ_NEVER};
    char why[200];

    memset(&w, 0, sizeof w);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    w.n_threads = config.n_max;
    w.n_conns = n_conns;
    w.selector.produce = next_conn;
    w.pool = nj_thread_pool_start(&config, why, sizeof why);
    cr_assert(w.pool, "%s", why);
    for (uint32_t i = 0; i < n_conns; i++)
        begin_conn(&w.conns[i], kind);
    w.dual.keeps_two = dual;
    struct nj_strategy_config strategy = {.consume = nj_strategies[kind].consume,
                                          .producer = &w.selector,
                                          .executor = nj_thread_pool_executor(w.pool),
                                          .type_of = type_of_conn,
                                          .on_stopped = on_stopped};
    nj_reference_init(&w.strategy, &strategy);
    cr_assert(nj_reference_produce_elsewhere(&w.strategy));
}

static uint64_t n_consumed(const struct nj_strategy *s)
{
    struct nj_strategy_counters c = nj_strategy_counters(s);
    return c.pc + c.pic + c.pec + c.epc;
}

static void end(void)
{
    nj_reference_stop(&w.strategy);
    for (uint32_t i = 0; i < w.n_conns; i++)
        nj_reference_stop(&w.conns[i].strategy);
    lock();
    w.over = true;
    say();
    while (w.n_stopped < 1 + w.n_conns)
        wait();
    unlock();
    nj_thread_pool_stop(w.pool);
    nj_thread_pool_free(w.pool);
    for (uint32_t i = 0; i < w.n_conns; i++) {
        struct conn *c = &w.conns[i];
        cr_assert_eq(n_consumed(&c->strategy), c->n_requests, "requests are tasks, nothing else");
        for (uint32_t k = 0; k < c->n_requests; k++)
            cr_assert_eq(c->requests[k].n_run, 1);
    }
    cr_assert_eq(w.n_bad, 0);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
}

/* --- the client, under the lock ----------------------------------------------------------------
 */

static void send_frame(struct conn *c, struct frame f)
{
    cr_assert_lt(c->n_frames, FRAMES_MAX);
    c->frames[(c->head + c->n_frames++) % FRAMES_MAX] = f;
    c->n_answers += f.kind != REQUEST;
    if (c->interested && !c->is_ready) {
        c->is_ready = true;
        w.ready[w.n_ready++] = c;
    }
    c->interested = false;
    say();
}

static void send_request(struct conn *c, uint32_t window, uint32_t n_body, uint32_t n_units)
{
    static const struct nj_task_ops ops = {run_request, reject};
    struct request *r = &c->requests[c->n_requests++];

    *r = (struct request){{.ops = &ops}, c, window, n_body, n_units, false, 0};
    w.n_requests++;
    send_frame(c, (struct frame){REQUEST, r, 0});
}

static bool waits(const struct request *r)
{
    return r->waits && lacks(r);
}

static uint32_t n_waiting(void)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w.n_conns; i++)
        for (uint32_t k = 0; k < w.conns[i].n_requests; k++)
            n += waits(&w.conns[i].requests[k]);
    return n;
}

static void wait_for_all(void)
{
    while (w.n_done < w.n_requests)
        wait();
}

/* A request that waits, with no frame under way that may be for it. The search starts at a random
 * connection. */
static struct request *starving(struct nj_prng *prng)
{
    uint32_t from = nj_prng_below(prng, w.n_conns * REQUESTS_MAX);

    for (uint32_t i = 0; i < w.n_conns * REQUESTS_MAX; i++) {
        uint32_t at = (from + i) % (w.n_conns * REQUESTS_MAX);
        struct conn *c = &w.conns[at / REQUESTS_MAX];
        struct request *r = &c->requests[at % REQUESTS_MAX];
        if (at % REQUESTS_MAX < c->n_requests && waits(r) && !c->n_answers)
            return r;
    }
    return NULL;
}

static void answer(struct request *r, struct nj_prng *prng)
{
    switch (lacks(r)) {
    case BODY:
        send_frame(r->conn, (struct frame){DATA, r, 1 + nj_prng_below(prng, r->n_body)});
        break;
    case SESSION:
        send_frame(r->conn, (struct frame){WINDOW_UPDATE, NULL, 1 + nj_prng_below(prng, 3)});
        break;
    case STREAM:
        send_frame(r->conn, (struct frame){WINDOW_UPDATE, r, 1 + nj_prng_below(prng, 2)});
        break;
    case NOTHING:
        break;
    }
}

/* --- tests -------------------------------------------------------------------------------------
 */

static const enum nj_strategy_kind live_kinds[] = {NJ_STRATEGY_PEC, NJ_STRATEGY_ADAPTIVE,
                                                   NJ_STRATEGY_DUAL};

static void random_requests(enum nj_strategy_kind kind, uint32_t n_threads, uint32_t n_reserved,
                            struct nj_prng *prng)
{
    begin(kind, n_threads, n_reserved, 1 + nj_prng_below(prng, CONNS_MAX));
    lock();
    for (uint32_t i = 0; i < w.n_conns; i++)
        w.conns[i].window = nj_prng_below(prng, 2);
    for (uint32_t n = 1 + nj_prng_below(prng, REQUESTS_MAX); n; n--) {
        send_request(&w.conns[nj_prng_below(prng, w.n_conns)], nj_prng_below(prng, 3),
                     nj_prng_below(prng, 2) * nj_prng_below(prng, 3), 1 + nj_prng_below(prng, 3));
        if (nj_prng_below(prng, 4) == 0) { /* other frames arrive */
            unlock();
            lock();
        }
    }
    while (w.n_done < w.n_requests) {
        struct request *r = starving(prng);
        if (r)
            answer(r, prng);
        else
            wait();
    }
    unlock();
    end();
}

/* All sizes of the pool, with each number of reserved threads that leaves one to the queue.
 * EWYK 5.1, EWYK 5.3, EWYK 5.12, EWYK 5.14, EWYK 5.15, EWYK 5.22, EWYK 5.35 */
static void random_worlds(enum nj_strategy_kind kind)
{
    const char *given = getenv("NJ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    struct nj_prng prng;

    fprintf(stderr, "seed %llu (NJ_TEST_SEED)\n", (unsigned long long)seed);
    nj_prng_init(&prng, seed);
    for (uint32_t n_threads = 1; n_threads <= 6; n_threads++)
        for (uint32_t n_reserved = 0; n_reserved <= 2 && n_reserved < n_threads; n_reserved++)
            for (uint32_t round = 0; round < 20; round++)
                random_requests(kind, n_threads, n_reserved, &prng);
}

Test(strategy_two_level, pec_ends, .timeout = 120)
{
    random_worlds(NJ_STRATEGY_PEC);
}

Test(strategy_two_level, adaptive_ends, .timeout = 120)
{
    random_worlds(NJ_STRATEGY_ADAPTIVE);
}

Test(strategy_two_level, dual_ends, .timeout = 120)
{
    random_worlds(NJ_STRATEGY_DUAL);
}

/* Each thread that may block waits for the same frame, and as many requests again are queued or
 * unread. Then the frame arrives. */
static void one_frame_for_all(enum nj_strategy_kind kind, uint32_t n_threads, bool bodies)
{
    begin(kind, n_threads, n_threads > 2 ? 1 : 0, 1);
    struct conn *c = &w.conns[0];
    lock();
    c->window = bodies ? MANY : 0;
    for (uint32_t i = 0; i < 3 * n_threads; i++)
        send_request(c, MANY, bodies, 2);
    while (n_waiting() < n_threads)
        wait();
    if (bodies)
        for (uint32_t i = 0; i < c->n_requests; i++)
            send_frame(c, (struct frame){DATA, &c->requests[i], 1});
    else
        send_frame(c, (struct frame){WINDOW_UPDATE, NULL, MANY});
    wait_for_all();
    unlock();
    end();
}

/* EWYK 5.12, EWYK 5.14 */
Test(strategy_two_level, one_window_update_for_all, .timeout = 60)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(live_kinds); i++)
        for (uint32_t n_threads = 1; n_threads <= 6; n_threads++)
            one_frame_for_all(live_kinds[i], n_threads, false);
}

/* EWYK 5.12, EWYK 5.15 */
Test(strategy_two_level, bodies_for_all, .timeout = 60)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(live_kinds); i++)
        for (uint32_t n_threads = 1; n_threads <= 6; n_threads++)
            one_frame_for_all(live_kinds[i], n_threads, true);
}

/* Why the other strategies exist. All threads consume requests but the one in the selector, and the
 * thread that would read the WINDOW_UPDATE is a recruit in the queue behind them. So production
 * stops: each thread of the pool waits for an action that only a thread of the pool could take. The
 * client is an additional thread, and when it produces, all requests end. */
static void epc_is_stuck(uint32_t n_threads, uint32_t n_reserved)
{
    begin(NJ_STRATEGY_EPC, n_threads, n_reserved, 1);
    struct conn *c = &w.conns[0];
    lock();
    for (uint32_t i = 0; i < n_threads; i++)
        send_request(c, MANY, 0, 1);
    while (n_waiting() < n_threads || !w.selecting)
        wait();
    send_frame(c, (struct frame){WINDOW_UPDATE, NULL, MANY});
    cr_assert(!c->interested && !c->is_ready && c->n_frames == 1, "it is not read");
    cr_assert(w.selecting && n_waiting() == n_threads);
    cr_assert_eq(n_waiting() + w.selecting, w.n_threads, "that is all threads");
    unlock();
    cr_assert_eq(nj_thread_pool_get_counts(w.pool).n_queued, 1, "the recruit");
    cr_assert(nj_reference_produce(&c->strategy));
    lock();
    wait_for_all();
    unlock();
    end();
}

Test(strategy_two_level, epc_is_stuck, .timeout = 60)
{
    for (uint32_t n_threads = 1; n_threads <= 6; n_threads++)
        for (uint32_t n_reserved = 0; n_reserved <= 2 && n_reserved < n_threads; n_reserved++)
            epc_is_stuck(n_threads, n_reserved);
}
