/* SPDX-License-Identifier: BSD-3-Clause */
/* READs that wait for memory, or for another thread's READ, with real workers. */
#include "store_rig.h"

#include <sched.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "store/file_client.h"
#include "threads/worker_pool.h"

TestSuite(store_file_client, .fini = scratch_remove);

#define READS 40000u

struct world {
    struct bench b;
    struct nj_worker_pool *w;
    struct nj_file_client lane[2];
    struct nj_file_ops port[2];
    struct nj_file_object *o;
    struct nj_file_job *jobs; /* enough to use up the budget */
    uint32_t n_out, n_held;
    struct nj_file_chunk *held[READS];
};

static struct world world;

/* Two shards, and memory for READS jobs. */
static struct world *start(uint32_t n_workers)
{
    struct world *x = &world;
    begin(&x->b, 32 * MIB);
    sparse_file(&x->b, "f", 8192ll * MIB);
    cr_assert_eq(open_job(&x->b, "f"), NJ_FILE_OK);
    x->o = x->b.job.object;
    x->jobs = calloc(READS, sizeof x->jobs[0]);
    struct nj_worker_pool_config config = {
        .n_shards = 2,
        .kind = {[NJ_WORKER_FILES] = {.n_max = n_workers, .tasks_max = 64}},
    };
    cr_assert_eq(nj_worker_pool_start(&config, &x->w), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct nj_worker_ops workers = nj_worker_pool_ops(x->w, i, NJ_WORKER_FILES);
        x->port[i] = nj_file_client_init(&x->lane[i], &workers, NULL, x->b.store);
    }
    return x;
}

static void stop(struct world *x)
{
    cr_assert_eq(nj_worker_pool_stop(x->w, 60000), 0);
    nj_worker_pool_free(x->w);
    nj_ref_put(&x->o->ref);
    free(x->jobs);
    end(&x->b);
}

static struct nj_file_job *ask(struct world *x, uint32_t shard, uint32_t i)
{
    struct nj_file_job *job = &x->jobs[i];
    *job = (struct nj_file_job){.op = NJ_FILE_READ,
                                .object = x->o,
                                .offset = (uint64_t)i * NJ_CHUNK_BYTES % (8192ull * MIB) +
                                          i / 32768 * NJ_CHUNK_SMALL_BYTES,
                                .n_bytes = NJ_CHUNK_SMALL_BYTES,
                                .owner = x};
    cr_assert(x->port[shard].submit(x->port[shard].ctx, job));
    x->n_out++;
    return job;
}

/* Collect the completed jobs of one lane. */
static uint32_t poll_lane(struct world *x, uint32_t shard)
{
    struct nj_file_job *done[8];
    uint32_t n = x->port[shard].poll(x->port[shard].ctx, done, 8);

    for (uint32_t i = 0; i < n; i++) {
        x->n_out--;
        if (done[i]->result == NJ_FILE_OK)
            x->held[x->n_held++] = done[i]->chunk;
        else
            cr_assert_null(done[i]->owner, "result %u reached an owner", done[i]->result);
    }
    return n;
}

/* Read until no READ completes: all memory is lent, and one READ waits in the lane. */
static void use_up(struct world *x)
{
    const struct nj_file_store_stats *counts = stats(&x->b);
    cr_expect_not(x->port[0].needs_polling(x->port[0].ctx));
    for (uint32_t i = 0; counts->waits == 0; i++) {
        cr_assert_lt(i, READS);
        ask(x, 0, i);
        while (x->n_out > 0 && counts->waits == 0)
            poll_lane(x, 0);
    }
    while (!x->lane[0].memory.first)
        poll_lane(x, 0);
    cr_expect(x->port[0].needs_polling(x->port[0].ctx), "it has to be polled");
    cr_expect_eq(x->n_out, 1);
    cr_expect_eq(counts->chunk_lent_bytes, 128 * MIB);
}

Test(store_file_client, waits_until_somebody_lets_go, .timeout = 60)
{
    struct world *x = start(1);
    use_up(x);
    uint64_t n_waits = stats(&x->b)->waits;
    for (uint32_t i = 0; i < 1000; i++)
        cr_assert_eq(poll_lane(x, 0), 0);
    cr_expect_eq(stats(&x->b)->waits, n_waits, "no job is retried without a change");

    /* Another lane waits, too; each returned chunk completes one of the two READs. */
    ask(x, 1, READS - 1);
    while (!x->lane[1].memory.first)
        poll_lane(x, 1);
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t before = x->n_out;
        nj_ref_put(&x->held[--x->n_held]->ref);
        while (x->n_out == before) {
            poll_lane(x, 0);
            poll_lane(x, 1);
        }
    }
    cr_expect_eq(x->n_out, 0);
    while (x->n_held > 0)
        nj_ref_put(&x->held[--x->n_held]->ref);
    stop(x);
}

Test(store_file_client, gives_back_what_nobody_waits_for, .timeout = 60)
{
    struct world *x = start(1);
    struct nj_file_job *job[4];
    use_up(x);
    job[0] = x->lane[0].memory.first;
    for (uint32_t i = 1; i < NJ_ARRAY_LEN(job); i++) {
        job[i] = ask(x, 0, READS - i);
        while (x->lane[0].memory.last != &job[i]->next)
            poll_lane(x, 0);
    }
    /* One in the middle, the last, the only one behind the first, the first. */
    static const uint32_t order[] = {1, 3, 2, 0};
    for (uint32_t k = 0; k < NJ_ARRAY_LEN(order); k++) {
        job[order[k]]->owner = NULL;
        while (x->n_out > 3 - k)
            poll_lane(x, 0);
        cr_expect_eq(x->lane[0].memory.first, k < 3 ? job[0] : NULL);
    }
    cr_expect_eq(x->lane[0].memory.last, &x->lane[0].memory.first);
    while (x->n_held > 0)
        nj_ref_put(&x->held[--x->n_held]->ref);
    stop(x);
}

#define HOLDS 6u

struct reader {
    struct nj_file_ops port;
    struct nj_file_object *o;
    struct nj_prng prng;
};

/* The 64-bit words of the file are their own offsets. */
static bool is_right(const struct nj_file_chunk *c)
{
    uint64_t first, last;
    memcpy(&first, c->bytes, sizeof first);
    memcpy(&last, c->bytes + c->n_bytes - sizeof last, sizeof last);
    return first == c->offset && last == c->offset + c->n_bytes - sizeof last;
}

/* Read at random offsets of the first megabyte, and hold a few of the chunks. */
static void *read_about(void *arg)
{
    struct reader *r = arg;
    struct nj_file_chunk *held[HOLDS] = {NULL};
    struct nj_file_job job, *done;

    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t k = nj_prng_below(&r->prng, HOLDS);
        if (held[k])
            nj_ref_put(&held[k]->ref);
        job = (struct nj_file_job){.op = NJ_FILE_READ,
                                   .object = r->o,
                                   .offset = nj_prng_below(&r->prng, MIB),
                                   .n_bytes = nj_prng_below(&r->prng, 4) ? NJ_CHUNK_SMALL_BYTES
                                                                         : NJ_CHUNK_BYTES,
                                   .owner = r};
        cr_assert(r->port.submit(r->port.ctx, &job));
        while (r->port.poll(r->port.ctx, &done, 1) == 0)
            sched_yield();
        cr_assert_eq(job.result, NJ_FILE_OK);
        held[k] = job.chunk;
        cr_assert(is_right(held[k]));
    }
    for (uint32_t k = 0; k < HOLDS; k++)
        nj_ref_put(&held[k]->ref);
    return NULL;
}

/* One thread releases chunks while another one requests them. */
Test(store_file_client, readers_share_pieces, .timeout = 60)
{
    static uint64_t words[MIB / sizeof(uint64_t)];
    struct world *x = start(2);
    struct reader r[2];
    pthread_t thread[2];

    nj_ref_put(&x->o->ref);
    int fd = open(at(&x->b, "g"), O_WRONLY | O_CREAT, 0644);
    for (uint64_t m = 0; m < 17; m++) {
        for (uint64_t i = 0; i < MIB / sizeof words[0]; i++)
            words[i] = m * MIB + i * sizeof words[0];
        cr_assert_eq(write(fd, words, sizeof words), (ssize_t)sizeof words);
    }
    close(fd);
    struct nj_file_job job = {.op = NJ_FILE_OPEN, .path = "g"}, *done;
    cr_assert(x->port[0].submit(x->port[0].ctx, &job));
    while (x->port[0].poll(x->port[0].ctx, &done, 1) == 0)
        sched_yield();
    x->o = job.object;
    cr_assert_not_null(x->o);
    cr_assert_null(x->o->bytes);
    for (uint32_t i = 0; i < 2; i++) {
        r[i] = (struct reader){.port = x->port[i], .o = x->o};
        nj_prng_init(&r[i].prng, 1 + i);
        pthread_create(&thread[i], NULL, read_about, &r[i]);
    }
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    cr_expect_geq(stats(&x->b)->chunk_hits, 39000, "36 chunks, read once or a little more");
    cr_expect_leq(stats(&x->b)->read_bytes, 100 * MIB);
    stop(x);
}

/* Random jobs of five clients that displace each other, wait for each other's READs, are joined and
 * withdrawn, or have lost their owner. Each job completes once. */
enum { JOBS = 400, CLIENTS = 5, STEPS = 20000 };
#if defined(__SANITIZE_THREAD__) /* 10 take 30 s */
enum { ROUNDS = 2 };
#else
enum { ROUNDS = 10 };
#endif

static struct {
    struct bench b;
    struct nj_prng prng;
    struct nj_file_client lane;
    struct nj_file_ops port;
    struct nj_file_object *o[2];
    struct nj_file_job job[JOBS];
    bool is_out[JOBS];
    uint32_t n_out, n_withdrawn, n_ok;
} any;

static void send_any(struct nj_file_job *job)
{
    static const char clients[CLIENTS];
    uint32_t client = nj_prng_below(&any.prng, 2) ? 0 : nj_prng_below(&any.prng, CLIENTS);

    *job = (struct nj_file_job){.op = NJ_FILE_READ, .owner = job, .client = &clients[client]};
    job->object = any.o[nj_prng_below(&any.prng, 2)];
    job->offset = (uint64_t)nj_prng_below(&any.prng, 64) * 131072;
    job->n_bytes = nj_prng_below(&any.prng, 2) ? NJ_CHUNK_SMALL_BYTES : NJ_CHUNK_BYTES;
    if (nj_prng_below(&any.prng, 6) == 0) {
        job->op = NJ_FILE_OPEN;
        strcpy(job->path, "small");
    }
    if (any.port.submit(any.port.ctx, job)) {
        any.is_out[job - any.job] = true;
        any.n_out++;
    } else {
        sched_yield();
    }
}

static void came_back(struct nj_file_job *job)
{
    cr_assert(any.is_out[job - any.job], "it was not out");
    any.is_out[job - any.job] = false;
    any.n_out--;
    any.n_ok += job->result == NJ_FILE_OK;
    if (job->op == NJ_FILE_READ && job->chunk)
        nj_ref_put(&job->chunk->ref);
    if (job->op == NJ_FILE_OPEN && job->object)
        nj_ref_put(&job->object->ref);
}

static void disturb(struct nj_file_job *job)
{
    switch (nj_prng_below(&any.prng, 40)) {
    case 0:
    case 1:
        job->owner = NULL;
        return;
    case 2:
    case 3:
        any.port.join(any.port.ctx, job, any.job[nj_prng_below(&any.prng, JOBS)].client);
        return;
    case 4:
        job->owner = NULL;
        if (!any.port.withdraw(any.port.ctx, job))
            return;
        any.is_out[job - any.job] = false;
        any.n_out--;
        any.n_withdrawn++;
        return;
    default:
        return;
    }
}

static void poll_any(void)
{
    struct nj_file_job *back[8];
    uint32_t n = any.port.poll(any.port.ctx, back, 1 + nj_prng_below(&any.prng, 8));

    for (uint32_t i = 0; i < n; i++)
        came_back(back[i]);
}

/* In every second round the workers stop while jobs are running. Returns the number of displaced
 * jobs. */
static uint64_t any_round(bool stops)
{
    struct nj_worker_pool_config config = {
        .n_shards = 1, .kind = {[NJ_WORKER_FILES] = {.n_max = 4, .tasks_max = 40}}};
    struct nj_worker_pool *w;

    cr_assert_eq(nj_worker_pool_start(&config, &w), 0);
    struct nj_worker_ops workers = nj_worker_pool_ops(w, 0, NJ_WORKER_FILES);
    any.port = nj_file_client_init(&any.lane, &workers, NULL, any.b.store);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct nj_file_job *job = &any.job[nj_prng_below(&any.prng, JOBS)];
        if (any.is_out[job - any.job])
            disturb(job);
        else
            send_any(job);
        if (nj_prng_below(&any.prng, 2) == 0)
            poll_any();
    }
    if (stops)
        cr_assert_eq(nj_worker_pool_stop(w, 60000), 0);
    for (uint32_t k = 0; stops && k < JOBS; k++)
        any.job[k].owner = NULL;
    while (any.n_out > 0)
        poll_any();
    cr_expect_not(any.port.needs_polling(any.port.ctx));
    uint64_t n = nj_worker_pool_stats(w).kind[NJ_WORKER_FILES].n_displaced;
    cr_assert_eq(nj_worker_pool_stop(w, 60000), 0);
    nj_worker_pool_free(w);
    return n;
}

Test(store_file_client, each_comes_back_once, .timeout = 120)
{
    const char *given = getenv("NJ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1, n_displaced = 0;

    printf("seed %lu (NJ_TEST_SEED)\n", (unsigned long)seed);
    nj_prng_init(&any.prng, seed);
    begin(&any.b, 64 * MIB);
    any.o[0] = open_large(&any.b, "f");
    any.o[1] = open_large(&any.b, "g");
    write_file(&any.b, "small", "x", 1);
    for (uint32_t i = 0; i < ROUNDS; i++)
        n_displaced += any_round(i % 2);
    printf("%u ok, %u withdrawn, %lu displaced, %lu busy\n", any.n_ok, any.n_withdrawn,
           (unsigned long)n_displaced, (unsigned long)stats(&any.b)->waits_for_read);
    cr_expect_gt(any.n_ok, 0);
    cr_expect_gt(any.n_withdrawn, 0);
    cr_expect_gt(n_displaced, 0);
    nj_file_store_run_housekeeping(any.b.store);
    cr_expect_eq(stats(&any.b)->chunk_lent_bytes, 0);
    for (int i = 0; i < 2; i++)
        nj_ref_put(&any.o[i]->ref);
    end(&any.b);
}
