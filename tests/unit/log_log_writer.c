/* SPDX-License-Identifier: BSD-3-Clause */
/* Outputs that take nothing for a while, or never: no thread waits for them, and what is lost is
 * counted in the log. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/log.h"
#include "log/log_writer.h"

#define THREADS 4u
#define LINES   5000u /* of each thread: more than a pipe and the queue take */

#define PIPE_BYTES 4096

static char text[THREADS * LINES * 128];

/* Makes `fd` the standard error of a writer. Criterion's own is restored by end(). */
static int saved_stderr = -1;

static void begin(int fd)
{
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    cr_assert(saved_stderr >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    cr_assert_eq(nj_log_writer_start(), 0);
    dup2(saved_stderr, STDERR_FILENO);
}

/* A pipe as standard error, which has `n_bytes` of empty lines. Returns the end to read. */
static int begin_pipe(size_t n_bytes)
{
    char newlines[PIPE_BYTES];
    int ends[2];

    memset(newlines, '\n', sizeof newlines);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    cr_assert_eq(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES), PIPE_BYTES);
    cr_assert_eq(write(ends[1], newlines, n_bytes), n_bytes);
    begin(ends[1]);
    close(ends[1]); /* the writer has a copy */
    return ends[0];
}

static void *read_all(void *fd)
{
    size_t at = 0;

    for (ssize_t n; (n = read(*(int *)fd, text + at, sizeof text - 1 - at)) > 0;)
        at += (size_t)n;
    text[at] = '\0';
    return NULL;
}

/* Checks that the lines of each thread are in order, and returns how many there are. Adds up in
 * `n_lost` what lines about lost lines say. */
static unsigned check_text(uint64_t *n_lost)
{
    unsigned next[THREADS] = {0}, n_seen = 0;
    char *rest = NULL;

    *n_lost = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *lost = strstr(line, " warning: log: "), *info = strstr(line, " info: ");
        unsigned thread, number;
        if (lost) {
            *n_lost += strtoul(lost + strlen(" warning: log: "), NULL, 10);
            continue;
        }
        cr_assert(info && sscanf(info, " info: %u %u", &thread, &number) == 2, "%s", line);
        cr_assert(thread < THREADS && number >= next[thread] && number < LINES, "%s", line);
        next[thread] = number + 1;
        n_seen++;
    }
    return n_seen;
}

static void *log_lines(void *thread)
{
    for (unsigned i = 0; i < LINES; i++)
        nj_log(NJ_LEVEL_INFO, "%u %u", *(unsigned *)thread, i);
    return NULL;
}

/* The pipe is full before one thread logs all its lines, so that they are lost at one place. */
static int begin_full_pipe(void)
{
    int out = begin_pipe(PIPE_BYTES);
    unsigned thread = 0;

    log_lines(&thread);
    return out;
}

/* The thread would wait for ever: nobody reads until it has logged all lines. */
Test(log_log_writer, a_pipe_that_nobody_reads, .timeout = 100)
{
    int out = begin_full_pipe();
    uint64_t told;
    pthread_t reader;

    cr_expect_eq(nj_log_writer_n_waiting(), NJ_LOG_LINES);
    uint64_t n_lost = nj_log_writer_n_lost();
    cr_expect_eq(n_lost, LINES - NJ_LOG_LINES);
    cr_assert_eq(pthread_create(&reader, NULL, read_all, &out), 0);
    cr_expect(nj_log_writer_wait(60000));
    cr_expect(nj_log_writer_stop(60000));
    pthread_join(reader, NULL);
    cr_expect_eq(check_text(&told) + n_lost, LINES);
    cr_expect_eq(told, n_lost);
    cr_expect_eq(nj_log_writer_n_lost(), n_lost);
}

Test(log_log_writer, the_place_of_lost_lines, .timeout = 100)
{
    int out = begin_full_pipe();
    pthread_t reader;

    cr_assert_eq(pthread_create(&reader, NULL, read_all, &out), 0);
    cr_expect(nj_log_writer_wait(60000));
    nj_log(NJ_LEVEL_INFO, "after");
    cr_expect(nj_log_writer_stop(60000));
    pthread_join(reader, NULL);
    const char *lost = strstr(text, " lost here: "), *after = strstr(text, " info: after\n");
    cr_assert(lost && after && lost < after);
    cr_expect_null(strstr(lost + 1, " lost here: "));
}

Test(log_log_writer, many_threads, .timeout = 100)
{
    int out = begin_pipe(0);
    pthread_t reader, thread[THREADS];
    unsigned number[THREADS];
    uint64_t told;

    cr_assert_eq(pthread_create(&reader, NULL, read_all, &out), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        number[i] = i;
        cr_assert_eq(pthread_create(&thread[i], NULL, log_lines, &number[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    cr_expect(nj_log_writer_wait(60000));
    cr_expect(nj_log_writer_stop(60000));
    pthread_join(reader, NULL);
    uint64_t n_lost = nj_log_writer_n_lost();
    cr_expect_eq(check_text(&told) + n_lost, THREADS * LINES);
    cr_expect_eq(told, n_lost);
}

/* The end of a server waits, but not for ever. The lines are there when somebody reads. */
Test(log_log_writer, the_end, .timeout = 100)
{
    int out = begin_full_pipe();
    uint64_t told;
    pthread_t reader;

    cr_expect_not(nj_log_writer_stop(0));
    cr_expect(nj_log_writer_runs());
    cr_expect_eq(nj_log_writer_start(), 0, "it is used again");
    uint64_t n_lost = nj_log_writer_n_lost();
    cr_assert_eq(pthread_create(&reader, NULL, read_all, &out), 0);
    cr_expect(nj_log_writer_stop(60000));
    cr_expect_not(nj_log_writer_runs());
    pthread_join(reader, NULL);
    cr_expect_eq(check_text(&told) + n_lost, LINES);
    cr_expect(nj_log_writer_stop(60000), "there is nothing to stop");
}

/* The child of a handler, whose exec(3) fails: no thread of it writes what waits. */
Test(log_log_writer, a_forked_child, .timeout = 100)
{
    int out = begin_full_pipe(), status, ends[2];
    char line[128] = "";

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        bool has_writer = nj_log_writer_runs(), stops = nj_log_writer_stop(0);
        dup2(ends[1], STDERR_FILENO);
        nj_log(NJ_LEVEL_ERROR, "of the child");
        _exit(has_writer ? 1 : stops ? 0 : 2);
    }
    close(ends[1]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status));
    cr_expect_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
    cr_expect_gt(read(ends[0], line, sizeof line - 1), 0);
    cr_expect(strstr(line, " error: of the child\n"), "%s", line);
    cr_expect(nj_log_writer_runs(), "in the parent");
    close(out);
    cr_expect(nj_log_writer_stop(60000));
}

/* As in a program that ends with an error after one line. */
Test(log_log_writer, the_last_line, .timeout = 100)
{
    for (unsigned i = 0; i < 200; i++) {
        int out = begin_pipe(0);
        nj_log(NJ_LEVEL_ERROR, "the last");
        cr_assert(nj_log_writer_stop(60000));
        read_all(&out);
        cr_assert(strstr(text, " error: the last\n"), "%s", text);
        close(out);
        close(saved_stderr);
    }
}

Test(log_log_writer, errors_lose_lines, .timeout = 100)
{
    static const char *const path[] = {"/dev/full", "/dev/null"};

    for (unsigned i = 0; i < 2; i++) {
        int fd = open(path[i], O_WRONLY | O_CLOEXEC);
        begin(fd);
        for (unsigned k = 0; k < 10; k++)
            nj_log(NJ_LEVEL_INFO, "%u", k);
        cr_expect(nj_log_writer_wait(60000));
        cr_expect(nj_log_writer_stop(60000));
        cr_expect_eq(nj_log_writer_n_lost(), i == 0 ? 10 : 0, "%s", path[i]);
        close(fd);
    }
}

static void limit_file(rlim_t n_bytes)
{
    const struct rlimit limit = {n_bytes, RLIM_INFINITY};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The limit of a file's size cuts a write, and fails the next one, as a full disk does. */
Test(log_log_writer, a_disk_that_is_full_for_a_while, .timeout = 100)
{
    FILE *f = tmpfile();

    signal(SIGXFSZ, SIG_IGN);
    cr_assert(f);
    begin(fileno(f));
    nj_log(NJ_LEVEL_INFO, "one");
    cr_expect(nj_log_writer_wait(60000));
    limit_file((rlim_t)lseek(fileno(f), 0, SEEK_END) + 10);
    nj_log(NJ_LEVEL_INFO, "two");
    nj_log(NJ_LEVEL_INFO, "three");
    cr_expect(nj_log_writer_wait(60000));
    cr_expect_eq(nj_log_writer_n_lost(), 2);
    limit_file(RLIM_INFINITY);
    nj_log(NJ_LEVEL_INFO, "four");
    cr_expect(nj_log_writer_stop(60000));
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    unsigned n_lines = 0;
    char *line[8], *rest = NULL;
    for (char *l = strtok_r(text, "\n", &rest); l && n_lines < 8; l = strtok_r(NULL, "\n", &rest))
        line[n_lines++] = l;
    cr_assert_eq(n_lines, 4);
    cr_expect(strstr(line[0], " info: one"));
    cr_expect_eq(strlen(line[1]), 10, "the part of a line that was written: %s", line[1]);
    cr_expect(strstr(line[2], " warning: log: 2 lines were lost here: "), "%s", line[2]);
    cr_expect(strstr(line[3], " info: four"));
}
