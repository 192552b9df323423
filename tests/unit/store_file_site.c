/* SPDX-License-Identifier: BSD-3-Clause */
/* A site over a lane over workers: the responses to requests of several clients, and their order.
 */
#include <sched.h>

#include "http/files/file_server.h"
#include "http/http_options.h"
#include "lane_rig.h"
#include "telem/counters.h"
#include "threads/worker_pool.h"

TestSuite(store_file_site, .init = start_stuck, .fini = scratch_remove, .timeout = 60);

struct reply {
    const char *to; /* the name of the stream */
    uint16_t status;
    struct nj_body *body;
};

struct world {
    struct bench b;
    struct shard sh;
    struct nj_counters counters;
    nj_ns now;
    struct nj_txns txns;
    struct nj_txn txn[64];
    uint32_t n_txns;
    struct nj_file_server *site;
    struct reply said[64];
    uint32_t n_said;
    struct nj_worker_pool *workers;
    struct nj_task blocker; /* with their only thread */
    struct nj_worker_ops other;
};

static struct world world;

static int respond(void *stream, uint16_t status, const struct nj_field *fields, uint32_t n_fields,
                   uint64_t stamp, struct nj_body *body)
{
    struct world *w = &world;

    cr_assert_lt(w->n_said, NJ_ARRAY_LEN(w->said));
    w->said[w->n_said++] = (struct reply){stream, status, body};
    return 0;
}

static bool respond_cached(void *stream, uint16_t status, uint64_t stamp, struct nj_body *body)
{
    return false;
}

static const struct nj_framing framing = {.respond = respond, .respond_cached = respond_cached};

static void wake(void *waiter)
{
    (void)waiter;
}

static struct world *begin_site(void)
{
    static const struct nj_txn_events events = {.wake = wake};
    struct world *w = &world;
    struct nj_file_server_config config = {
        .txns = &w->txns,
        .files = &w->sh.port,
        .exchanges_max = 64,
        .options = &nj_http_options_default.files,
    };

    memset(w, 0, sizeof *w);
    w->now = NJ_SEC;
    w->txns.events = &events;
    w->txns.now = &w->now;
    w->txns.counters = &w->counters;
    w->txns.wall_s_at_zero = 784111777;
    begin(&w->b, 64 * MIB);
    begin_shard(&w->sh, &w->b);
    w->site = nj_file_server_new(&config);
    cr_assert_not_null(w->site);
    return w;
}

static void end_site(struct world *w)
{
    cr_expect_eq(nj_file_server_jobs_in_flight(w->site), 0);
    nj_file_server_free(w->site);
    end(&w->b);
}

/* The first letter of the name identifies the client. */
static struct nj_requester *client_of(const char *who)
{
    struct nj_requester *r = &world.txns.requester[(int)*who];

    r->n_open = 1;
    return r;
}

static struct nj_txn *get(struct world *w, const char *who, const char *path)
{
    struct nj_str p = {path, (uint32_t)strlen(path)};
    struct nj_target target;

    nj_file_server_parse_target(w->site, p, &target);
    struct nj_request_head head = {.method = NJ_STR("GET"), .path = p};
    struct nj_txn *t = &w->txn[w->n_txns++ % NJ_ARRAY_LEN(w->txn)];
    *t = (struct nj_txn){.set = &w->txns,
                         .framing = &framing,
                         .stream = (void *)(uintptr_t)who,
                         .method = NJ_METHOD_GET,
                         .requester = client_of(who)};
    nj_file_server_serve(w->site, t, &head, &target, NJ_SEC);
    return t;
}

/* A shard's step, as far as files go. */
static void poll_site(struct world *w)
{
    struct nj_file_job *jobs[4];
    uint32_t n = w->sh.port.poll(w->sh.port.ctx, jobs, NJ_ARRAY_LEN(jobs));

    for (uint32_t i = 0; i < n; i++)
        nj_file_server_job_done(w->site, jobs[i], NJ_SEC);
    nj_file_server_retry_reads(w->site);
}

static void close_bodies(struct world *w)
{
    for (uint32_t i = 0; i < w->n_said; i++) {
        if (w->said[i].body)
            w->said[i].body->ops->close(w->said[i].body);
        w->said[i].body = NULL;
    }
}

static int show(struct nj_body *body)
{
    struct nj_slice s;
    return body->ops->peek(body, 1000, &s);
}

/* The port has room for one job. Its READ is kept, because another thread reads the same chunk: the
 * port has room again, although no job completed. */
Test(store_file_site, a_body_that_was_refused)
{
    struct world *w = begin_site();
    nj_ref_put(&open_large(&w->b, "one")->ref);
    nj_ref_put(&open_large(&w->b, "two")->ref);
    wait_for_tick(&w->b, "one");
    wait_for_tick(&w->b, "two");
    cr_assert_eq(open_job(&w->b, "one"), NJ_FILE_OK);
    struct nj_file_object *o = w->b.job.object;
    struct other other = {.job = read_of(o, 0)};
    begin_other(&other, &w->b, "pread", false);
    get(w, "a", "/one");
    get(w, "b", "/two");
    for (int i = 0; i < 8; i++)
        poll_site(w);
    cr_assert_eq(w->n_said, 2);
    bool swapped = *w->said[0].to == 'b';
    struct nj_body *one = w->said[swapped].body, *two = w->said[!swapped].body;

    w->sh.direct.by_hand = true;
    cr_assert_eq(show(one), 0);
    w->sh.direct.is_full = true;
    cr_assert_eq(show(two), 0);
    w->sh.direct.is_full = false;
    for (int i = 0; i < 8; i++)
        poll_site(w);
    cr_expect_eq(w->sh.direct.in[0]->client, client_of("a"), "also a READ is a client's");
    cr_expect_eq(w->sh.direct.n_in, 1, "no READ is submitted while the port is full");
    direct_run_next(&w->sh.direct);
    poll_site(w);
    cr_expect_not_null(w->sh.lane.busy.first);
    cr_assert_eq(w->sh.direct.n_in, 1);
    direct_run_next(&w->sh.direct);
    poll_site(w);
    cr_expect_gt(show(two), 0);

    w->sh.direct.by_hand = false;
    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    for (int i = 0; i < 8; i++)
        poll_site(w);
    cr_expect_gt(show(one), 0);
    close_bodies(w);
    put(other.job.chunk);
    nj_ref_put(&o->ref);
    end_site(w);
}

static uint16_t status_of(const struct world *w, const char *who)
{
    for (uint32_t i = 0; i < w->n_said; i++)
        if (strcmp(w->said[i].to, who) == 0)
            return w->said[i].status;
    return 0;
}

/* A's last job is displaced while B waits for the same file: the job is submitted again, as B's. */
Test(store_file_site, a_displaced_open)
{
    static const char *const path[] = {"/x", "/y"};
    struct world *w = begin_site();
    write_file(&w->b, "x", "x", 1);
    for (int full = 0; full < 2; full++) {
        close_bodies(w);
        w->n_said = 0;
        w->sh.direct.by_hand = true;
        get(w, "a", path[full]);
        get(w, "b", path[full]);
        get(w, "a2", path[full]);
        get(w, "c", path[full]);
        cr_assert_eq(w->sh.direct.n_in, 1);
        cr_expect_eq(w->sh.direct.in[0]->client, client_of("a"));
        direct_displace(&w->sh.direct);
        cr_expect(w->sh.port.needs_polling(w->sh.port.ctx), "it has to be polled");
        w->sh.direct.is_full = full;
        poll_site(w);
        cr_expect_eq(status_of(w, "a"), 503);
        cr_expect_eq(status_of(w, "a2"), 503);
        cr_expect_eq(w->n_said, full ? 4 : 2);
        cr_expect_eq(w->counters.n[NJ_C_file_busy], full ? 2 + 1 + 4 : 2);
        if (full)
            continue;

        cr_assert_eq(w->sh.direct.n_in, 1);
        cr_expect_eq(w->sh.direct.in[0]->client, client_of("b"));
        direct_displace(&w->sh.direct);
        poll_site(w);
        cr_expect_eq(status_of(w, "b"), 503);
        cr_assert_eq(w->sh.direct.n_in, 1);
        direct_run_next(&w->sh.direct);
        poll_site(w);
        cr_expect_eq(status_of(w, "c"), 200);
        cr_expect_eq(w->counters.n[NJ_C_file_busy], 3);
    }
    close_bodies(w);
    end_site(w);
}

static sem_t hold, held;

static void run_blocker(struct nj_task *task)
{
    (void)task;
    sem_post(&held);
    while (sem_wait(&hold) < 0)
        ;
}

static void reject_blocker(struct nj_task *task)
{
    (void)task;
    cr_assert(false, "the blocker was rejected");
}

/* From now on over real workers: one thread for files, which is busy until run_down(). */
static void begin_workers(struct world *w, uint32_t tasks_max)
{
    static const struct nj_task_ops ops = {run_blocker, reject_blocker};
    struct nj_worker_pool_config config = {
        .n_shards = 2, .kind = {[NJ_WORKER_FILES] = {.n_max = 1, .tasks_max = tasks_max}}};

    cr_assert_eq(nj_worker_pool_start(&config, &w->workers), 0);
    struct nj_worker_ops workers = nj_worker_pool_ops(w->workers, 0, NJ_WORKER_FILES);
    w->sh.port = nj_file_client_init(&w->sh.lane, &workers, NULL, w->b.store);
    w->other = nj_worker_pool_ops(w->workers, 1, NJ_WORKER_FILES);
    w->blocker = (struct nj_task){.ops = &ops};
    nj_list_init(&w->blocker.node);
    sem_init(&hold, 0, 0);
    sem_init(&held, 0, 0);
    cr_assert(w->other.submit(w->other.ctx, &w->blocker));
    w->other.flush(w->other.ctx);
    while (sem_wait(&held) < 0)
        ;
}

static struct world *begin_queue(uint32_t tasks_max)
{
    struct world *w = begin_site();

    begin_workers(w, tasks_max);
    return w;
}

static uint32_t n_waiting(const struct world *w)
{
    return nj_worker_pool_stats(w->workers).kind[NJ_WORKER_FILES].n_waiting;
}

static void run_down(struct world *w)
{
    struct nj_file_job *job;
    struct nj_task *task;

    sem_post(&hold);
    while (nj_file_server_jobs_in_flight(w->site) > 0) {
        if (w->sh.port.poll(w->sh.port.ctx, &job, 1) == 1)
            nj_file_server_job_done(w->site, job, NJ_SEC);
        sched_yield();
    }
    while (w->other.poll(w->other.ctx, &task, 1) == 0)
        sched_yield();
    close_bodies(w);
    cr_assert_eq(nj_worker_pool_stop(w->workers, 60000), 0);
    nj_worker_pool_free(w->workers);
}

/* Request `n` files of the client's own, and one that other clients request, too. */
static void ask_for_many(struct world *w, const char *who, uint32_t n, const char *last)
{
    static char path[32][16];

    for (uint32_t i = 0; i < n; i++) {
        snprintf(path[i], sizeof path[i], "/%c%u", *who, i);
        write_file(&w->b, path[i] + 1, "x", 1);
        get(w, who, path[i]);
    }
    write_file(&w->b, "all", "x", 1);
    get(w, last, "/all");
}

static uint32_t place_of(const struct world *w, const char *who)
{
    uint32_t i = 0;

    while (i < w->n_said && strcmp(w->said[i].to, who) != 0)
        i++;
    return i;
}

/* A client that requests a file, which another client has requested behind many others, gets it as
 * early as a file of its own. */
Test(store_file_site, a_file_that_two_clients_want)
{
    struct world *w = begin_queue(64);
    ask_for_many(w, "a", 20, "a last");
    write_file(&w->b, "mine", "x", 1);
    get(w, "b", "/all");
    get(w, "b mine", "/mine");
    run_down(w);
    cr_expect_eq(w->n_said, 20 + 3);
    cr_expect_leq(place_of(w, "b"), 2, "%u", place_of(w, "b"));
    cr_expect_leq(place_of(w, "a last"), 2, "it is the same file");
    cr_expect_leq(place_of(w, "b mine"), 5);
    end_site(w);
}

/* The first client does not lose its turn to a client whose turn is later. */
Test(store_file_site, a_file_that_a_client_with_many_wants)
{
    struct world *w = begin_queue(64);
    ask_for_many(w, "a", 3, "a last");
    ask_for_many(w, "c", 25, "c last");
    run_down(w);
    cr_expect_leq(place_of(w, "a last"), 8, "%u", place_of(w, "a last"));
    end_site(w);
}

/* The queue is full of A's jobs and one that B shares: another job of A is displaced. */
Test(store_file_site, a_full_queue)
{
    struct world *w = begin_queue(8);
    write_file(&w->b, "c", "x", 1);
    ask_for_many(w, "a", 7, "a last");
    get(w, "b", "/all");
    get(w, "c", "/c");
    run_down(w);
    cr_expect_eq(status_of(w, "a last"), 200);
    cr_expect_eq(status_of(w, "b"), 200);
    cr_expect_eq(status_of(w, "c"), 200);
    cr_expect_eq(w->counters.n[NJ_C_file_busy], 1);
    end_site(w);
}

/* A job leaves the queue when its last request was cancelled. */
Test(store_file_site, requests_that_are_cancelled)
{
    struct world *w = begin_queue(64);
    struct nj_txn *first = get(w, "a", "/first"), *x[3];
    x[0] = get(w, "a", "/x");
    x[1] = get(w, "b", "/x");
    x[2] = get(w, "a", "/y");
    cr_expect_eq(n_waiting(w), 2);
    nj_file_server_cancel(x[0]);
    cr_expect_eq(nj_file_server_jobs_in_flight(w->site), 3, "b waits for it");
    nj_file_server_cancel(x[1]);
    cr_expect_eq(nj_file_server_jobs_in_flight(w->site), 2);
    nj_file_server_cancel(x[2]);
    cr_expect_eq(n_waiting(w), 0);
    nj_file_server_cancel(first);
    cr_expect_eq(nj_file_server_jobs_in_flight(w->site), 1, "a worker is to have it");
    get(w, "c", "/x");
    cr_expect_eq(n_waiting(w), 1);
    run_down(w);
    cr_expect_eq(w->n_said, 1);
    cr_expect_eq(status_of(w, "c"), 404);
    end_site(w);
}

/* The same of a READ; its place is for a body that was refused. */
Test(store_file_site, a_body_that_is_closed)
{
    struct world *w = begin_site();
    nj_ref_put(&open_large(&w->b, "f")->ref);
    wait_for_tick(&w->b, "f");
    get(w, "a", "/f");
    poll_site(w);
    get(w, "b", "/f");
    cr_assert_eq(w->n_said, 2);
    struct nj_body *one = w->said[0].body, *two = w->said[1].body;
    w->n_said = 0;
    begin_workers(w, 2);
    get(w, "a", "/first");
    cr_expect_eq(show(one), 0);
    cr_expect_eq(show(two), 0);
    poll_site(w);
    cr_expect_eq(nj_file_server_jobs_in_flight(w->site), 2);
    cr_expect(nj_file_server_has_refused_reads(w->site));
    one->ops->close(one);
    cr_expect_eq(nj_file_server_jobs_in_flight(w->site), 1);
    cr_expect_eq(n_waiting(w), 0);
    poll_site(w);
    cr_expect_eq(n_waiting(w), 1);
    cr_expect_not(nj_file_server_has_refused_reads(w->site));
    run_down(w);
    cr_expect_gt(show(two), 0);
    two->ops->close(two);
    nj_file_store_run_housekeeping(w->b.store);
    cr_expect_eq(stats(&w->b)->chunk_lent_bytes, 0);
    end_site(w);
}
