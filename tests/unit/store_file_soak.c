/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers of two shards with workers and a reader, while files are replaced, rewritten, truncated
 * and deleted, and the disk fails, reads less or is slow. Each body that reaches its end is of one
 * version of its file. NJ_SOAK_S=600 runs for ten minutes, NJ_SEED sets another seed. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "base/prng.h"
#include "store/file_client.h"
#include "store/file_reader.h"
#include "store/io_uring.h"
#include "store_rig.h"
#include "threads/worker_pool.h"

#define SHARDS      2u
#define BODIES      24u
#define FILES       12u
#define CACHE_BYTES (48ull * MIB)
#define LARGEST     (24ull * MIB)
#define SMALLEST    (17ull * MIB)  /* not whole */
#define N_FEW       250u           /* bodies without NJ_SOAK_S */
#define LENT_LEAST  (128ull * MIB) /* chunks that may be lent for any budget */

/* --- a disk with faults, in place of io_uring.c ---------------------------------------------- */

static struct faulty {
    struct {
        struct nj__uring_read read;
        void *user;
        uint32_t n_turns; /* until it is done */
    } under_way[NJ_FILE_READS_MAX];
    uint32_t n;
    struct nj_prng prng;
    _Atomic bool is_awake;
} disk;

#include "support/ring_double.h"

void nj__uring_read(struct nj__uring *r, const struct nj__uring_read *read, void *user)
{
    (void)r;
    cr_assert_lt(disk.n, NJ_FILE_READS_MAX);
    disk.under_way[disk.n].read = *read;
    disk.under_way[disk.n].user = user;
    disk.under_way[disk.n++].n_turns = nj_prng_below(&disk.prng, 20);
}

static int32_t one_read(const struct nj__uring_read *r)
{
    uint32_t n_bytes = r->n_bytes;

    switch (nj_prng_below(&disk.prng, 200)) {
    case 0:
        return -EIO;
    case 1:
    case 2:
        return -EAGAIN;
    case 3:
    case 4:
    case 5: /* in whole blocks, as past the page cache */
        n_bytes = n_bytes > 8192 ? (1 + nj_prng_below(&disk.prng, n_bytes / 4096)) * 4096 : n_bytes;
    }
    ssize_t n = pread(r->fd, r->out, n_bytes, (off_t)r->offset);
    return n < 0 ? -errno : (int32_t)n;
}

uint32_t nj__uring_submit_and_reap(struct nj__uring *r, struct nj__uring_done *done, uint32_t n)
{
    uint32_t n_done = 0;

    (void)r;
    for (uint32_t i = 0; i < disk.n && n_done < n;) {
        if (disk.under_way[i].n_turns-- > 0) {
            i++;
            continue;
        }
        done[n_done].user = disk.under_way[i].user;
        done[n_done++].result = one_read(&disk.under_way[i].read);
        disk.under_way[i] = disk.under_way[--disk.n];
    }
    return n_done;
}

void nj__uring_mark_asleep(struct nj__uring *r)
{
    (void)r;
    atomic_store(&disk.is_awake, false);
}

void nj__uring_wait(struct nj__uring *r)
{
    (void)r;
    while (disk.n == 0 && !atomic_load(&disk.is_awake))
        sched_yield();
}

void nj__uring_wake(struct nj__uring *r)
{
    (void)r;
    atomic_store(&disk.is_awake, true);
}

/* --- files ------------------------------------------------------------------------------------ */

static struct bench b;
static _Atomic bool is_over;
static uint64_t n_versions;
/* Count of begins and ends of rewrites in place, by file: odd during a rewrite. A file that is
 * opened during a rewrite has bytes of two versions, if the rewriter pauses for long enough. */
static _Atomic uint32_t rewrites[FILES];

/* A word contains its version and its offset. */
static uint64_t word_of(uint64_t version, uint64_t offset)
{
    return version << 32 | offset;
}

/* Memory of one thread only is not instrumented: these loops are most of the work. */
#define UNWATCHED __attribute__((no_sanitize("thread", "address"), noinline))

UNWATCHED static void fill_words(uint64_t *words, uint64_t n, uint64_t version, uint64_t at)
{
    for (uint64_t i = 0; i < n; i++)
        words[i] = word_of(version, at + i * sizeof words[0]);
}

/* The offset of the first word that is not of this version, or of none; or `end`. */
UNWATCHED static uint64_t check_words(const uint8_t *bytes, uint64_t at, uint64_t end,
                                      uint64_t version, bool is_mixed)
{
    uint64_t mask = is_mixed ? UINT32_MAX : UINT64_MAX;

    for (; at + 8 <= end; at += 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        if ((word ^ word_of(version, at)) & mask)
            return at;
    }
    return end;
}

static void fill_file(int fd, uint64_t version, uint64_t n_bytes)
{
    static uint64_t words[MIB / sizeof(uint64_t)];

    for (uint64_t at = 0; at < n_bytes; at += MIB) {
        fill_words(words, NJ_ARRAY_LEN(words), version, at);
        size_t n = n_bytes - at < MIB ? n_bytes - at : MIB;
        cr_assert_eq(pwrite(fd, words, n, (off_t)at), (ssize_t)n);
    }
}

static void name_of(uint32_t i, char *name)
{
    snprintf(name, 8, "f%u", i);
}

static void change_one(struct nj_prng *prng)
{
    char name[8], path[128], other[128];
    uint32_t i = nj_prng_below(prng, FILES);
    uint64_t n_bytes = SMALLEST + nj_prng_below(prng, (uint32_t)(LARGEST - SMALLEST)) / 8 * 8;

    name_of(i, name);
    snprintf(path, sizeof path, "%s/%s", b.root, name);
    snprintf(other, sizeof other, "%s/new", b.root);
    switch (nj_prng_below(prng, 8)) {
    case 0:
        cr_assert(unlink(path) == 0 || errno == ENOENT);
        return;
    case 1:
        cr_assert(truncate(path, (off_t)(n_bytes / 2)) == 0 || errno == ENOENT);
        return;
    case 2: { /* in place, which users should not do */
        int fd = open(path, O_RDWR);
        if (fd < 0)
            return;
        atomic_fetch_add(&rewrites[i], 1);
        fill_file(fd, ++n_versions, n_bytes);
        cr_assert_eq(ftruncate(fd, (off_t)n_bytes), 0); /* and its times change */
        atomic_fetch_add(&rewrites[i], 1);
        close(fd);
        return;
    }
    default: { /* by rename(), as recommended */
        int fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
        cr_assert_geq(fd, 0);
        fill_file(fd, ++n_versions, n_bytes);
        close(fd);
        cr_assert_eq(rename(other, path), 0);
    }
    }
}

/* --- bodies ----------------------------------------------------------------------------------- */

struct body {
    struct nj_file_job job;
    struct nj_file_object *object;
    uint64_t version, at, end;
    uint32_t file, rewrites; /* of the file when it was requested */
    bool is_mixed;           /* opened while it was rewritten */
};

struct shard {
    pthread_t thread;
    struct nj_file_client lane;
    struct nj_file_ops port;
    struct nj_prng prng;
    struct body body[BODIES];
    uint32_t n_out;
    _Atomic uint64_t n_whole, n_broken; /* looked at meanwhile */
    uint64_t n_absent, n_bytes, n_mixed;
    /* The first thread alone may assert: criterion jumps on its stack. */
    uint64_t n_wrong, wrong_at, wrong_version;
};

static struct shard shards[SHARDS];
static char clients[8];

static void send(struct shard *sh, struct body *x)
{
    x->job.owner = x;
    x->job.client = &clients[nj_prng_below(&sh->prng, sizeof clients)];
    while (!sh->port.submit(sh->port.ctx, &x->job))
        sched_yield();
    sh->n_out++;
}

static void ask_for_file(struct shard *sh, struct body *x)
{
    memset(&x->job, 0, sizeof x->job);
    x->object = NULL;
    x->job.op = NJ_FILE_OPEN;
    x->file = nj_prng_below(&sh->prng, FILES);
    x->rewrites = atomic_load(&rewrites[x->file]);
    name_of(x->file, x->job.path);
    send(sh, x);
}

static void ask_for_piece(struct shard *sh, struct body *x)
{
    uint64_t left = x->end - x->at;

    memset(&x->job, 0, sizeof x->job);
    x->job.op = NJ_FILE_READ;
    x->job.object = x->object;
    x->job.offset = x->at;
    x->job.n_bytes = left < NJ_CHUNK_BYTES ? (uint32_t)left : NJ_CHUNK_BYTES;
    x->job.n_ahead = nj_prng_below(&sh->prng, 4);
    x->job.end = x->end;
    if (nj_prng_below(&sh->prng, 8) == 0 && x->job.n_bytes > 100)
        x->job.n_bytes = 100; /* a small chunk */
    send(sh, x);
}

static void begin_body(struct shard *sh, struct body *x)
{
    x->object = x->job.object;
    x->is_mixed = x->rewrites % 2 == 1 || atomic_load(&rewrites[x->file]) != x->rewrites;
    sh->n_mixed += x->is_mixed;
    x->version = UINT64_MAX;
    x->at =
        nj_prng_below(&sh->prng, 2) ? 0 : nj_prng_below(&sh->prng, (uint32_t)(16 * MIB)) / 8 * 8;
    x->end = x->at + 8 + nj_prng_below(&sh->prng, (uint32_t)(4 * MIB)) / 8 * 8;
    x->end = x->end < x->object->size_bytes ? x->end : x->object->size_bytes;
    x->at = x->at < x->end ? x->at : 0;
}

/* False: that was the last of it. */
static bool take_piece(struct shard *sh, struct body *x)
{
    const struct nj_file_chunk *c = x->job.chunk;
    uint64_t end = c->offset + c->n_bytes < x->end ? c->offset + c->n_bytes : x->end;

    NJ_CHECK(c->offset <= x->at && x->at < end);
    const uint8_t *bytes = c->bytes + (x->at - c->offset);
    if (x->version == UINT64_MAX) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        x->version = word >> 32;
    }
    uint64_t wrong = check_words(bytes, x->at, end, x->version, x->is_mixed);
    if (wrong != end && sh->n_wrong++ == 0) {
        sh->wrong_at = wrong;
        sh->wrong_version = x->version;
    }
    x->at = end;
    sh->n_bytes += c->n_bytes;
    nj_ref_put(&x->job.chunk->ref);
    return x->at < x->end;
}

static void end_body(struct shard *sh, struct body *x, bool is_whole)
{
    if (x->object)
        nj_ref_put(&x->object->ref);
    x->object = NULL;
    sh->n_whole += is_whole;
    sh->n_broken += !is_whole;
}

static void done(struct shard *sh, struct body *x)
{
    bool ok = x->job.result == NJ_FILE_OK;

    if (x->job.op == NJ_FILE_OPEN) {
        sh->n_absent += !ok;
        if (ok && x->job.object->bytes) { /* it was truncated, and is small now */
            nj_ref_put(&x->job.object->ref);
        } else if (ok) {
            begin_body(sh, x);
            ask_for_piece(sh, x);
            return;
        }
    } else if (!ok || !take_piece(sh, x) || nj_prng_below(&sh->prng, 64) == 0) {
        end_body(sh, x, ok && x->at == x->end);
    } else {
        ask_for_piece(sh, x);
        return;
    }
    if (!atomic_load(&is_over))
        ask_for_file(sh, x);
}

static void *drive(void *arg)
{
    struct shard *sh = arg;

    for (uint32_t i = 0; i < BODIES; i++)
        ask_for_file(sh, &sh->body[i]);
    while (sh->n_out > 0) {
        struct nj_file_job *jobs[16];
        uint32_t n = sh->port.poll(sh->port.ctx, jobs, NJ_ARRAY_LEN(jobs));
        sh->n_out -= n;
        for (uint32_t i = 0; i < n; i++)
            done(sh, jobs[i]->owner);
        if (n == 0)
            sched_yield();
    }
    return NULL;
}

/* --- all together ----------------------------------------------------------------------------- */

static uint32_t n_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    uint32_t n = 0;

    cr_assert(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static uint64_t n_bodies(void)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < SHARDS; i++)
        n += shards[i].n_whole + shards[i].n_broken;
    return n;
}

static volatile sig_atomic_t is_late;

static void on_alarm(int signal)
{
    (void)signal;
    is_late = 1;
}

static bool is_enough(bool soaks)
{
    return soaks ? is_late : n_bodies() >= N_FEW;
}

static void start_shards(struct nj_worker_pool *workers, struct nj_file_reader *reader,
                         uint64_t seed)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *sh = &shards[i];
        struct nj_worker_ops ops = nj_worker_pool_ops(workers, i, NJ_WORKER_FILES);
        struct nj_worker_ops reads = nj_file_reader_ops_of_shard(reader, i);
        sh->port = nj_file_client_init(&sh->lane, &ops, &reads, b.store);
        nj_prng_init(&sh->prng, seed + 1 + i);
        cr_assert_eq(pthread_create(&sh->thread, NULL, drive, sh), 0);
    }
}

TestSuite(store_file_soak, .fini = scratch_remove);

Test(store_file_soak, bodies_are_of_one_version, .timeout = 1200)
{
    const char *given = getenv("NJ_SEED"), *soak_s = getenv("NJ_SOAK_S");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261124;
    struct nj_worker_pool *workers;
    struct nj_file_reader *reader;
    struct nj_prng prng;
    uint32_t n_fds = n_descriptors();

    printf("NJ_SEED=%lu\n", (unsigned long)seed);
    nj_prng_init(&prng, seed);
    nj_prng_init(&disk.prng, seed + 100);
    begin(&b, CACHE_BYTES);
    struct nj_worker_pool_config wc = {
        .n_shards = SHARDS, .kind = {[NJ_WORKER_FILES] = {.n_max = 4, .tasks_max = 100}}};
    struct nj_file_reader_config rc = {.store = b.store, .n_shards = SHARDS, .tasks_max = 100};
    cr_assert_eq(nj_worker_pool_start(&wc, &workers), 0);
    cr_assert_eq(nj_file_reader_start(&rc, &reader), 0);
    for (uint32_t i = 0; i < 4 * FILES; i++)
        change_one(&prng);
    start_shards(workers, reader, seed);

    if (soak_s) {
        signal(SIGALRM, on_alarm);
        alarm((unsigned)atoi(soak_s));
    }
    while (!is_enough(soak_s)) {
        change_one(&prng);
        nj_file_store_run_housekeeping(b.store);
        cr_assert_leq(stats(&b)->chunk_bytes + stats(&b)->cached_bytes, CACHE_BYTES + LENT_LEAST);
        for (uint32_t i = nj_prng_below(&prng, 100); i > 0; i--)
            sched_yield();
    }
    atomic_store(&is_over, true);
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct shard *sh = &shards[i];
        pthread_join(sh->thread, NULL);
        printf("shard %u: %lu bodies whole, %lu not, %lu mixed, %lu files absent, %lu MiB\n", i,
               (unsigned long)sh->n_whole, (unsigned long)sh->n_broken, (unsigned long)sh->n_mixed,
               (unsigned long)sh->n_absent, (unsigned long)(sh->n_bytes / MIB));
        cr_expect_eq(sh->n_wrong, 0, "%lu chunks; the first one at %lx, not of version %lu",
                     sh->n_wrong, sh->wrong_at, sh->wrong_version);
        cr_expect(sh->n_whole > 0 && sh->n_broken > 0);
    }
    printf("%lu reads, %lu failed, %lu changed, %lu MiB unused, %lu evictions\n",
           (unsigned long)stats(&b)->reads, (unsigned long)nj_file_reader_stats(reader)->n_failed,
           (unsigned long)stats(&b)->changed, (unsigned long)(stats(&b)->unused_bytes / MIB),
           (unsigned long)stats(&b)->evictions);
    cr_expect_gt(nj_file_reader_stats(reader)->n_failed, 0);
    cr_expect_eq(nj_file_reader_stop(reader, 60000), 0);
    cr_expect_eq(nj_worker_pool_stop(workers, 60000), 0);
    nj_file_reader_free(reader);
    nj_worker_pool_free(workers);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->chunk_lent_bytes, 0);
    end(&b);
    cr_expect_eq(n_descriptors(), n_fds);
}
