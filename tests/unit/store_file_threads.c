/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads run random jobs of one store, while another thread changes the files. Every job
 * completes. All bytes of an object are of one version, right after OPEN and later. No memory is
 * lost, and no limit is exceeded. NJ_TEST_SEED runs a seed again, as far as the threads are
 * scheduled in the same order. */
#include "store_rig.h"

#include <sched.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "support/fs_calls.h"

TestSuite(store_file_threads, .fini = scratch_remove, .timeout = 120);

#define THREADS      4u
#define JOBS         1500u /* of each */
#define PAGE         4096u
#define LARGE_BYTES  (NJ_OBJECT_IN_MEMORY_MAX + 2 * PAGE)
#define LARGE_FILLED MIB /* of these, pages that begin with the version; then zeros */

static uint64_t seed_of_test(void)
{
    const char *given = getenv("NJ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;

    fprintf(stderr, "seed %lu (NJ_TEST_SEED)\n", (unsigned long)seed);
    return seed;
}

/* Yield to other threads in some system calls. */
static _Thread_local struct nj_prng turns;

static void let_others_on(const char *call)
{
    (void)call;
    for (uint32_t n = nj_prng_below(&turns, 8); n > 4; n--)
        sched_yield();
}

static void begin_thread(uint64_t seed)
{
    nj_prng_init(&turns, seed);
    on_call = let_others_on;
}

struct tree {
    struct nj_file_store *store;
    char root[80];
    _Atomic uint32_t n_jobs, n_changes;
    _Atomic bool stop;
};

struct large {
    struct nj_file_object *object;
    uint64_t version; /* 0: not yet known */
};

#define LARGE_HELD 1u
#define HELD       12u

struct worker {
    struct tree *tree;
    struct nj_prng prng;
    struct large large[LARGE_HELD];
    struct nj_file_object *objects[HELD];
    uint64_t versions[HELD]; /* of these */
    struct nj_file_chunk *chunks[HELD];
    uint32_t n_of[NJ_FILE_BROKEN + 1]; /* by result */
};

static void path_of(const struct tree *t, char out[PATH_MAX], const char *name)
{
    snprintf(out, PATH_MAX, "%s/%s", t->root, name);
}

/* The writer. A version is put in place by rename(), or loses pages at its end. */

static void write_words(int fd, uint64_t version, uint32_t n)
{
    uint64_t words[2048];

    for (uint32_t i = 0; i < n; i++)
        words[i] = version;
    if (write(fd, words, n * sizeof words[0]) != (ssize_t)(n * sizeof words[0]))
        abort();
}

static void write_pages(int fd, uint64_t version)
{
    static uint8_t data[LARGE_FILLED];

    for (uint32_t at = 0; at < LARGE_FILLED; at += PAGE)
        memcpy(data + at, &version, sizeof version);
    if (write(fd, data, sizeof data) != (ssize_t)sizeof data || ftruncate(fd, LARGE_BYTES) < 0)
        abort();
}

static void replace(const struct tree *t, const char *name, uint64_t version, uint32_t n_words)
{
    char new[PATH_MAX], path[PATH_MAX];

    path_of(t, new, ".new");
    path_of(t, path, name);
    int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        abort();
    if (n_words > 0)
        write_words(fd, version, n_words);
    else
        write_pages(fd, version);
    close(fd);
    if (rename(new, path) < 0)
        abort();
}

static void name_small(char out[8], struct nj_prng *r)
{
    snprintf(out, 8, "s%u", nj_prng_below(r, 8));
}

static void name_large(char out[8], struct nj_prng *r)
{
    snprintf(out, 8, "l%u", nj_prng_below(r, 2));
}

static void change(struct tree *t, struct nj_prng *r, uint64_t version)
{
    char name[8], path[PATH_MAX];
    uint32_t what = nj_prng_below(r, 40);

    if (what < 4)
        name_large(name, r);
    else
        name_small(name, r);
    path_of(t, path, name);
    switch (what) {
    case 0:
    case 1:
        replace(t, name, version, 0);
        return;
    case 2:
        (void)truncate(path, LARGE_BYTES - PAGE); /* it may not be there */
        return;
    case 3:
        (void)chmod(path, nj_prng_below(r, 2) ? 0644 : 0600);
        return;
    case 4:
    case 5:
        (void)unlink(path);
        return;
    case 6:
        (void)truncate(path, 8);
        return;
    default:
        replace(t, name, version, 1 + nj_prng_below(r, 2048));
    }
}

struct changer {
    struct tree *tree;
    struct nj_prng prng;
};

/* One change per so many jobs; threads that are ahead wait for the others. */
#define JOBS_TO_CHANGE 8u
#define JOBS_AHEAD     64u

static void *change_all(void *arg)
{
    struct changer *c = arg;
    struct tree *t = c->tree;

    while (!atomic_load(&t->stop)) {
        uint32_t n = atomic_load(&t->n_changes);
        if (n * JOBS_TO_CHANGE > atomic_load(&t->n_jobs)) {
            sched_yield();
            continue;
        }
        change(t, &c->prng, 1000 + n);
        atomic_fetch_add(&t->n_changes, 1);
    }
    return NULL;
}

/* Checks of the bytes. */

/* The version of a small file, all of whose words are the same. */
static uint64_t version_of(const struct nj_file_object *o)
{
    uint64_t first, word;

    cr_assert(o->bytes && o->size_bytes >= sizeof first && o->size_bytes % sizeof first == 0);
    memcpy(&first, o->bytes, sizeof first);
    for (uint64_t at = sizeof word; at < o->size_bytes; at += sizeof word) {
        memcpy(&word, o->bytes + at, sizeof word);
        cr_assert_eq(word, first, "at %lu", (unsigned long)at);
    }
    return first;
}

static void open_small(struct worker *w)
{
    struct nj_file_job job = {.op = NJ_FILE_OPEN,
                              .wants_siblings = nj_prng_below(&w->prng, 4) == 0};
    uint32_t k = nj_prng_below(&w->prng, HELD);

    name_small(job.path, &w->prng);
    nj_file_store_do_job(w->tree->store, &job);
    w->n_of[job.result]++;
    cr_assert(job.result == NJ_FILE_OK || job.result == NJ_FILE_ABSENT ||
              job.result == NJ_FILE_BROKEN);
    cr_assert_eq(job.object != NULL, job.result == NJ_FILE_OK);
    if (w->objects[k]) {
        cr_assert_eq(version_of(w->objects[k]), w->versions[k], "it is still the same");
        nj_ref_put(&w->objects[k]->ref);
    }
    w->objects[k] = job.object;
    w->versions[k] = job.object ? version_of(job.object) : 0;
}

static void forget_large(struct large *l)
{
    nj_ref_put(&l->object->ref);
    l->object = NULL;
}

static void open_large_one(struct worker *w, struct large *l)
{
    struct nj_file_job job = {.op = NJ_FILE_OPEN};

    if (l->object)
        forget_large(l);
    name_large(job.path, &w->prng);
    nj_file_store_do_job(w->tree->store, &job);
    w->n_of[job.result]++;
    cr_assert(job.result == NJ_FILE_OK || job.result == NJ_FILE_ABSENT ||
              job.result == NJ_FILE_BROKEN);
    *l = (struct large){.object = job.object};
}

static void check_chunk(struct large *l, const struct nj_file_chunk *c)
{
    uint64_t version;

    for (uint32_t at = 0; at < c->n_bytes; at += PAGE) {
        memcpy(&version, c->bytes + at, sizeof version);
        if (c->offset + at >= LARGE_FILLED) {
            cr_assert_eq(version, 0);
            continue;
        }
        if (l->version == 0)
            l->version = version;
        cr_assert_eq(version, l->version, "at %lu", (unsigned long)(c->offset + at));
    }
}

static void read_large(struct worker *w)
{
    struct large *l = &w->large[nj_prng_below(&w->prng, LARGE_HELD)];
    uint32_t k = nj_prng_below(&w->prng, HELD);

    if (!l->object || nj_prng_below(&w->prng, 40) == 0)
        open_large_one(w, l);
    if (!l->object)
        return;
    /* All threads are about the same place, which moves on. */
    uint64_t offset =
        ((uint64_t)atomic_load(&w->tree->n_jobs) * PAGE + nj_prng_below(&w->prng, 65536)) %
        (LARGE_BYTES - PAGE);
    struct nj_file_job job = {.op = NJ_FILE_READ,
                              .object = l->object,
                              .offset = offset,
                              .n_bytes = nj_prng_below(&w->prng, 3) ? NJ_CHUNK_SMALL_BYTES
                                                                    : NJ_CHUNK_BYTES};
    for (;;) {
        nj_file_store_do_job(w->tree->store, &job);
        w->n_of[job.result]++;
        if (job.result != NJ_FILE_BUSY)
            break;
        while (!nj_file_store_may_retry_read(w->tree->store, &job))
            sched_yield();
    }
    cr_assert(job.result == NJ_FILE_OK || job.result == NJ_FILE_BROKEN);
    cr_assert_eq(job.chunk != NULL, job.result == NJ_FILE_OK);
    if (w->chunks[k])
        nj_ref_put(&w->chunks[k]->ref);
    w->chunks[k] = job.chunk;
    if (job.chunk)
        check_chunk(l, job.chunk);
    else
        forget_large(l);
}

static void list(struct worker *w)
{
    struct nj_file_job job = {.op = NJ_FILE_LIST, .json = true};

    nj_file_store_do_job(w->tree->store, &job);
    w->n_of[job.result]++;
    cr_assert_eq(job.result, NJ_FILE_OK);
    cr_assert_eq(memcmp(job.object->bytes, "{\"path\":\"/\"", 11), 0);
    cr_assert_eq(memcmp(job.object->bytes + job.object->size_bytes - 3, "]}\n", 3), 0);
    nj_ref_put(&job.object->ref);
}

static void put_all(struct worker *w)
{
    for (uint32_t i = 0; i < LARGE_HELD; i++)
        if (w->large[i].object)
            nj_ref_put(&w->large[i].object->ref);
    for (uint32_t i = 0; i < HELD; i++) {
        if (w->objects[i])
            nj_ref_put(&w->objects[i]->ref);
        if (w->chunks[i])
            nj_ref_put(&w->chunks[i]->ref);
    }
}

static void *do_jobs(void *arg)
{
    struct worker *w = arg;

    begin_thread(nj_prng_next(&w->prng));
    for (uint32_t i = 0; i < JOBS; i++) {
        uint32_t what = nj_prng_below(&w->prng, 32);
        if (what < 16)
            open_small(w);
        else if (what < 30)
            read_large(w);
        else
            list(w);
        if (what % 4 == 0)
            nj_file_store_run_housekeeping(w->tree->store);
        uint32_t n = atomic_fetch_add(&w->tree->n_jobs, 1);
        while (n > atomic_load(&w->tree->n_changes) * JOBS_TO_CHANGE + JOBS_AHEAD)
            sched_yield();
    }
    put_all(w);
    return NULL;
}

/* With a cache that has place for everything, and with one that has not. */
static void run_jobs(uint64_t seed, uint64_t cache_bytes)
{
    static struct worker w[THREADS];
    struct bench b;
    struct tree t = {.n_jobs = 0};
    struct changer c = {.tree = &t};
    pthread_t thread[THREADS], changes;

    begin(&b, cache_bytes);
    t.store = b.store;
    strcpy(t.root, b.root);
    nj_prng_init(&c.prng, seed);
    for (uint32_t i = 0; i < 2; i++)
        replace(&t, (char[]){'l', (char)('0' + i), '\0'}, 1 + i, 0);
    pthread_create(&changes, NULL, change_all, &c);
    for (uint32_t i = 0; i < THREADS; i++) {
        memset(&w[i], 0, sizeof w[i]);
        w[i].tree = &t;
        nj_prng_init(&w[i].prng, seed * 100 + i);
        pthread_create(&thread[i], NULL, do_jobs, &w[i]);
    }
    uint32_t n[NJ_FILE_BROKEN + 1] = {0};
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        for (uint32_t k = 0; k < NJ_ARRAY_LEN(n); k++)
            n[k] += w[i].n_of[k];
    }
    atomic_store(&t.stop, true);
    pthread_join(changes, NULL);
    fprintf(stderr, "%u changes, %u ok, %u absent, %u busy, %u broken, %lu hits, %lu evictions\n",
            t.n_changes, n[NJ_FILE_OK], n[NJ_FILE_ABSENT], n[NJ_FILE_BUSY], n[NJ_FILE_BROKEN],
            (unsigned long)stats(&b)->hits, (unsigned long)stats(&b)->evictions);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->chunk_lent_bytes, 0);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), stats(&b)->cached_files);
    cr_expect_eq(stats(&b)->waits_for_read, n[NJ_FILE_BUSY]);
    end(&b);
}

Test(store_file_threads, random_jobs)
{
    uint64_t seed = seed_of_test();

    run_jobs(seed, 64 * MIB);
    run_jobs(seed + 1, 2 * MIB);
}

/* Memory for chunks runs out again and again, and never is there more. */

#define POOR_READS 5500u
#define POOR_HELD  5000u          /* more than a quarter of the 17,500 for which there is memory */
#define POOR_PAGES (8192u * 256u) /* 8 GiB: two seldom read the same */

struct reader {
    struct nj_file_store *store;
    struct nj_file_object *object;
    struct nj_prng prng;
    struct nj_file_chunk *held[POOR_HELD];
    uint32_t n_held, n_refused;
};

static pthread_barrier_t all_hold;

static void put_some(struct reader *r, uint32_t n)
{
    while (n-- > 0 && r->n_held > 0) {
        uint32_t k = nj_prng_below(&r->prng, r->n_held);
        nj_ref_put(&r->held[k]->ref);
        r->held[k] = r->held[--r->n_held];
    }
}

static void *read_and_hold(void *arg)
{
    struct reader *r = arg;

    begin_thread(nj_prng_next(&r->prng));
    for (uint32_t i = 0; i < POOR_READS; i++) {
        struct nj_file_job job = {.op = NJ_FILE_READ,
                                  .object = r->object,
                                  .offset = (uint64_t)nj_prng_below(&r->prng, POOR_PAGES) * PAGE,
                                  .n_bytes = PAGE};
        for (;;) {
            nj_file_store_do_job(r->store, &job);
            cr_assert_leq(nj_file_store_stats(r->store)->chunk_bytes, 128 * MIB);
            if (job.result == NJ_FILE_OK)
                break;
            cr_assert(job.result == NJ_FILE_NO_MEMORY || job.result == NJ_FILE_BUSY);
            if (job.result == NJ_FILE_NO_MEMORY) {
                r->n_refused++;
                put_some(r, 1 + r->n_held / 64);
            }
            while (!nj_file_store_may_retry_read(r->store, &job))
                sched_yield();
        }
        cr_assert(job.chunk->offset <= job.offset &&
                  job.offset < job.chunk->offset + job.chunk->n_bytes);
        if (r->n_held == POOR_HELD)
            put_some(r, 1);
        r->held[r->n_held++] = job.chunk;
        if (i % 8 == 0)
            nj_file_store_run_housekeeping(r->store);
    }
    pthread_barrier_wait(&all_hold); /* their sum was too much at one time */
    put_some(r, r->n_held);
    return NULL;
}

Test(store_file_threads, memory_runs_out)
{
    static struct reader r[THREADS];
    struct bench b;
    pthread_t thread[THREADS];
    uint64_t seed = seed_of_test();
    uint32_t n_refused = 0;

    begin(&b, MIB);
    sparse_file(&b, "f", (off_t)POOR_PAGES * PAGE);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    struct nj_file_object *o = b.job.object;
    pthread_barrier_init(&all_hold, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        memset(&r[i], 0, sizeof r[i]);
        r[i].store = b.store;
        r[i].object = o;
        nj_prng_init(&r[i].prng, seed * 100 + i);
        pthread_create(&thread[i], NULL, read_and_hold, &r[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        n_refused += r[i].n_refused;
    }
    fprintf(stderr, "%u refused\n", n_refused);
    cr_expect_gt(n_refused, 0);
    cr_expect_eq(stats(&b)->waits, n_refused);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->chunk_lent_bytes, 0);
    cr_expect_leq(stats(&b)->chunk_bytes, 8 * MIB);
    nj_ref_put(&o->ref);
    end(&b);
}
