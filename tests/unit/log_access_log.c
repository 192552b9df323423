/* SPDX-License-Identifier: BSD-3-Clause */
/* Shards, the thread that writes, and a thread that has the file reopened: every record becomes a
 * line, or is counted. Run it under ThreadSanitizer too. */
#include "log/access_log.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/scratch.h"

#define SHARDS 3u

static char path[96], why[256];

TestSuite(access_log, .fini = scratch_remove);

static void in_folder(void)
{
    signal(SIGPIPE, SIG_IGN);
    scratch_make();
    snprintf(path, sizeof path, "%s/log", scratch);
}

static struct nj_access_log *begin(const char *file, enum nj_access_format format,
                                   uint32_t n_records)
{
    struct nj_access_log *log = NULL;
    const struct nj_access_log_config c = {
        .path = file, .format = format, .n_shards = SHARDS, .n_records = n_records};

    cr_assert_eq(nj_access_log_open(&c, &log, why, sizeof why), 0, "%s", why);
    return log;
}

static void fill(struct nj_access_record *a, uint32_t shard, uint64_t number)
{
    a->shard = shard;
    a->conn = number;
    a->status = 200;
    a->complete = true;
    a->n_method = 3;
    a->n_path = 2;
    memcpy(a->text, "GET/x", 5);
}

/* Check the lines of each shard in `file`, which continue with the number in `next`. Returns the
 * number of lines. */
static uint64_t check_file(const char *file, uint64_t next[SHARDS], uint64_t *skipped)
{
    FILE *in = fopen(file, "r");
    char line[NJ_ACCESS_LINE_BYTES + 2];
    uint64_t n_lines = 0;

    cr_assert_not_null(in);
    for (; fgets(line, sizeof line, in); n_lines++) {
        const char *at = strstr(line, "\"shard\":"), *conn = strstr(line, "\"connection\":");
        cr_assert(line[0] == '{' && at && conn && strstr(line, "}\n"), "%s", line);
        unsigned shard = (unsigned)atoi(at + 8);
        uint64_t number = strtoull(conn + 13, NULL, 10);
        cr_assert(shard < SHARDS && number >= next[shard], "%s", line);
        *skipped += number - next[shard];
        next[shard] = number + 1;
    }
    fclose(in);
    return n_lines;
}

struct shard {
    struct nj_access_ops port;
    uint32_t index, n_open_max;
    uint64_t n_requests, n_refused;
    _Atomic bool *over;
};

/* Requests that overlap: a record is held while others are taken and put. */
static void *run_shard(void *arg)
{
    struct shard *s = arg;
    struct nj_access_record *open[64] = {0};
    uint64_t number = 0;

    for (uint64_t i = 0; i < s->n_requests; i++) {
        uint32_t k = (uint32_t)(i % s->n_open_max);
        if (open[k]) {
            fill(open[k], s->index, number++);
            s->port.put(s->port.ctx, open[k]);
        }
        open[k] = s->port.take(s->port.ctx);
        s->n_refused += !open[k];
        if (i % 1000 == 999)
            sched_yield();
    }
    for (uint32_t k = 0; k < s->n_open_max; k++)
        if (open[k]) {
            fill(open[k], s->index, number++);
            s->port.put(s->port.ctx, open[k]);
        }
    return NULL;
}

static uint64_t run_shards(struct nj_access_log *log, uint64_t n_requests, uint32_t n_open)
{
    struct shard shard[SHARDS];
    pthread_t thread[SHARDS];
    uint64_t n_refused = 0;

    for (uint32_t i = 0; i < SHARDS; i++) {
        shard[i] = (struct shard){.port = nj_access_log_port(log, i),
                                  .index = i,
                                  .n_open_max = n_open,
                                  .n_requests = n_requests};
        cr_assert_eq(pthread_create(&thread[i], NULL, run_shard, &shard[i]), 0);
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        pthread_join(thread[i], NULL);
        n_refused += shard[i].n_refused;
    }
    return n_refused;
}

Test(access_log, every_record_is_a_line, .timeout = 100)
{
    struct nj_access_counts counts;
    uint64_t next[SHARDS] = {0}, skipped = 0;

    in_folder();
    struct nj_access_log *log = begin(path, NJ_ACCESS_JSON, 0);
    cr_assert_eq(run_shards(log, 20000, 64), 0, "there are records enough for all");
    cr_assert(nj_access_log_close(log, 60000, &counts));
    cr_assert_eq(counts.n_written, SHARDS * 20000u);
    cr_assert_eq(counts.n_lost, 0);
    cr_assert_eq(check_file(path, next, &skipped), SHARDS * 20000u);
    cr_assert_eq(skipped, 0);
}

/* More requests than records: each record is in the file, and the caller knows which requests got
 * none. */
Test(access_log, few_records, .timeout = 100)
{
    struct nj_access_counts counts;
    uint64_t next[SHARDS] = {0}, skipped = 0;

    in_folder();
    struct nj_access_log *log = begin(path, NJ_ACCESS_JSON, 40);
    uint64_t n_refused = run_shards(log, 5000, 64);
    cr_assert_gt(n_refused, 0);
    cr_assert(nj_access_log_close(log, 60000, &counts));
    cr_assert_eq(counts.n_lost, n_refused);
    cr_assert_eq(counts.n_written + n_refused, SHARDS * 5000u);
    cr_assert_eq(check_file(path, next, &skipped), counts.n_written);
    cr_assert_eq(skipped, 0);
}

Test(access_log, records_come_back_clean)
{
    struct nj_access_counts counts;
    struct nj_access_log *log = begin("/dev/null", NJ_ACCESS_COMBINED, 2);
    struct nj_access_ops port = nj_access_log_port(log, 1);

    struct nj_access_record *a = port.take(port.ctx), *b = port.take(port.ctx);
    cr_assert(a && b && a != b);
    cr_assert_null(port.take(port.ctx));
    memset(a, 0, sizeof *a);
    fill(a, 1, 77);
    a->throttled = 5;
    port.put(port.ctx, a);
    struct nj_access_record *again;
    while (!(again = port.take(port.ctx))) /* within a moment it is written */
        sched_yield();
    cr_assert_eq(again, a);
    cr_assert(again->conn == 0 && again->throttled == 0 && again->n_path == 0 && !again->complete);
    port.put(port.ctx, again);
    port.put(port.ctx, b);
    cr_assert(nj_access_log_close(log, 60000, &counts));
    cr_assert_eq(counts.n_written, 3);
}

/* The shards think it is 1970. */
static int64_t long_ago(void *ctx)
{
    return 5 * (int64_t)NJ_SEC;
}

static time_t changed_at(void)
{
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    return st.st_mtime;
}

Test(access_log, times_are_those_of_the_system)
{
    struct nj_access_counts counts;
    struct nj_access_log *log = NULL;
    char line[NJ_ACCESS_LINE_BYTES + 2] = "";

    in_folder();
    const struct nj_access_log_config c = {
        .path = path, .format = NJ_ACCESS_JSON, .n_shards = 1, .wall_ns = long_ago};
    cr_assert_eq(nj_access_log_open(&c, &log, why, sizeof why), 0, "%s", why);
    time_t from = changed_at(); /* the system's time, as the file system has it */
    struct nj_access_ops port = nj_access_log_port(log, 0);
    struct nj_access_record *a = port.take(port.ctx);
    a->wall_ns = 4 * (int64_t)NJ_SEC; /* a second before */
    port.put(port.ctx, a);
    cr_assert(nj_access_log_close(log, 60000, &counts));
    time_t to = changed_at();
    FILE *in = fopen(path, "r");
    cr_assert(in && fgets(line, sizeof line, in));
    fclose(in);
    struct tm tm = {0};
    cr_assert_not_null(strptime(line, "{\"time\":\"%Y-%m-%dT%H:%M:%S", &tm));
    time_t at = timegm(&tm);
    cr_assert(at >= from - 1 && at <= to - 1, "%s", line);
}

struct rotation {
    struct nj_access_log *log;
    _Atomic bool over;
    unsigned n_done;
};

/* mv log log.N, then reopen; not again before the new file exists. */
static void *rotate(void *arg)
{
    struct rotation *r = arg;
    char name[128];
    struct stat st;

    while (!atomic_load(&r->over)) {
        if (stat(path, &st) != 0) {
            nj_access_log_reopen(r->log);
            sched_yield();
            continue;
        }
        snprintf(name, sizeof name, "%s.%u", path, r->n_done++);
        cr_assert_eq(rename(path, name), 0);
        nj_access_log_reopen(r->log);
    }
    return NULL;
}

Test(access_log, rotation_loses_nothing, .timeout = 100)
{
    struct nj_access_counts counts;
    struct rotation rotation = {0};
    uint64_t next[SHARDS] = {0}, skipped = 0, n_lines = 0;
    pthread_t thread;
    char name[128];
    struct stat st;

    in_folder();
    rotation.log = begin(path, NJ_ACCESS_JSON, 0);
    cr_assert_eq(pthread_create(&thread, NULL, rotate, &rotation), 0);
    uint64_t n_refused = run_shards(rotation.log, 20000, 7);
    atomic_store(&rotation.over, true);
    pthread_join(thread, NULL);
    cr_assert(nj_access_log_close(rotation.log, 60000, &counts));
    cr_assert_eq(counts.n_lost, n_refused);
    cr_assert_eq(counts.n_written + n_refused, SHARDS * 20000u);
    for (unsigned i = 0; i < rotation.n_done; i++) {
        snprintf(name, sizeof name, "%s.%u", path, i);
        n_lines += check_file(name, next, &skipped);
    }
    if (stat(path, &st) == 0)
        n_lines += check_file(path, next, &skipped);
    cr_assert_eq(n_lines, counts.n_written);
    cr_assert_eq(skipped, 0);
}

Test(access_log, full_disk_is_counted, .timeout = 100)
{
    struct nj_access_counts counts;
    struct nj_access_log *log = begin("/dev/full", NJ_ACCESS_JSON, 0);

    run_shards(log, 5000, 64);
    cr_assert(nj_access_log_close(log, 60000, &counts));
    cr_assert_eq(counts.n_written, 0);
    cr_assert_eq(counts.n_lost, SHARDS * 5000u);
}

Test(access_log, fifo_that_nobody_reads, .timeout = 100)
{
    struct nj_access_counts counts;

    in_folder();
    cr_assert_eq(mkfifo(path, 0600), 0);
    struct nj_access_log *log = begin(path, NJ_ACCESS_COMBINED, 0);
    run_shards(log, 5000, 64);
    cr_assert(nj_access_log_close(log, 60000, &counts));
    cr_assert_eq(counts.n_written, 0);
    cr_assert_eq(counts.n_lost, SHARDS * 5000u);
}

/* poll() reports a terminal as writable that takes less than a write of the log. The thread may
 * wait for it, but not the one that closes the log. */
Test(access_log, a_terminal_that_nobody_reads, .timeout = 100)
{
    struct nj_access_counts counts;
    static char block[4096];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), saved = fcntl(STDOUT_FILENO, F_DUPFD, 3);

    cr_assert(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_NONBLOCK);
    while (write(fd, block, sizeof block) > 0) {
    }
    cr_assert_gt(read(terminal, block, sizeof block), 0);
    cr_assert_eq(fcntl(fd, F_SETFL, 0), 0);
    dup2(fd, STDOUT_FILENO);
    struct nj_access_log *log = begin("-", NJ_ACCESS_COMBINED, 0);
    run_shards(log, 150, 64); /* less than a batch: the end of the log writes them */
    cr_expect_not(nj_access_log_close(log, 0, &counts));
    dup2(saved, STDOUT_FILENO);
    cr_expect_lt(counts.n_written, SHARDS * 150u);
    cr_expect_eq(counts.n_written + counts.n_lost, SHARDS * 150u);
}

Test(access_log, what_cannot_be_opened_is_said)
{
    struct nj_access_log *log = NULL;
    const struct nj_access_log_config c = {.path = "/nonexistent/log", .n_shards = 1};

    cr_assert_eq(nj_access_log_open(&c, &log, why, sizeof why), -1);
    cr_assert(strstr(why, "/nonexistent/log") && strstr(why, "No such file"), "%s", why);
}
