/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are full, renamed, gone, or pipes. Time is an argument; a limit of this process plays
 * a full disk: a write is short there, and the next ones fail. */
#include "log/access_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "log/log.h"
#include "support/landlock_enter.h"
#include "support/scratch.h"

static struct nj_access_file f;
static char folder[64], path[96], other[96], why[256]; /* a folder in the scratch folder */
static nj_ns now = 100 * NJ_SEC;
static char got[4 * NJ_ACCESS_BUFFER_BYTES];

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    scratch_make();
    snprintf(folder, sizeof folder, "%s/folder", scratch);
    cr_assert_eq(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(other, sizeof other, "%s/log.1", folder);
}

static void begin(void)
{
    cr_assert_eq(nj_access_file_open(&f, path, why, sizeof why), 0, "%s", why);
}

static bool line(const char *text)
{
    size_t n = strlen(text);
    char *room = nj_access_file_reserve(&f, n + 1);

    if (!room)
        return false;
    memcpy(room, text, n);
    room[n] = '\n';
    nj_access_file_commit(&f, n + 1, now);
    return true;
}

static void after(nj_ns wait)
{
    now += wait;
    nj_access_file_write_due(&f, now);
}

static size_t read_fd(int fd, char *to, size_t room)
{
    size_t n = 0;
    ssize_t r;

    while (n < room && (r = read(fd, to + n, room - n)) > 0)
        n += (size_t)r;
    to[n] = '\0';
    return n;
}

static const char *in_file(const char *name)
{
    int fd = open(name, O_RDONLY);
    cr_assert_geq(fd, 0, "%s", name);
    read_fd(fd, got, sizeof got - 1);
    close(fd);
    return got;
}

static void counted(uint64_t n_written, uint64_t n_lost)
{
    cr_assert_eq(f.n_written, n_written, "%" PRIu64 " written", f.n_written);
    cr_assert_eq(f.n_lost, n_lost, "%" PRIu64 " lost", f.n_lost);
}

static void disk_ends_at(rlim_t n_bytes)
{
    struct rlimit l;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = n_bytes;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
}

TestSuite(access_file, .init = setup, .fini = scratch_remove);

static void tried(const char *name, int rc, const char *said)
{
    cr_expect_eq(nj_access_file_check(name, why, sizeof why), rc, "%s", name);
    cr_expect(strstr(why, said), "%s: %s", name, why);
}

/* As --check does. */
Test(access_file, is_tried_and_nothing_is_made)
{
    char in_nowhere[96], as_folder[98];
    struct stat before, then;
    uid_t me = geteuid();

    snprintf(in_nowhere, sizeof in_nowhere, "%s/nowhere/log", folder);
    snprintf(as_folder, sizeof as_folder, "%s/", path);
    tried(path, 0, "would be made");
    tried(in_nowhere, -1, "No such file");
    tried(folder, -1, "Is a directory");
    tried(as_folder, -1, "Is a directory");
    tried("-", 0, "standard output");
    tried("nj-test-log", 0, "nj-test-log: would be made");
    cr_expect_eq(access(path, F_OK) + access(in_nowhere, F_OK) + access("nj-test-log", F_OK), -3);
    begin();
    line("one");
    nj_access_file_close(&f);
    cr_assert_eq(stat(path, &before), 0);
    tried(path, 0, "lines are added");
    cr_assert_eq(stat(path, &then), 0);
    cr_expect(then.st_size == before.st_size && then.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    tried(as_folder, -1, "Not a directory");
    if (me == 0 && seteuid(65534) == 0) {
        tried(path, -1, "Permission denied");
        tried(other, -1, "Permission denied");
        cr_expect_eq(errno, EACCES);
        cr_assert_eq(seteuid(me), 0);
    }
    cr_assert_eq(symlink("nowhere", other), 0);
    tried(other, -1, "a symbolic link");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    tried(path, 0, "a FIFO");
}

/* A user who can write to the folder of the log must not choose the file that grows. */
Test(access_file, links_are_not_followed)
{
    char victim[100];

    snprintf(victim, sizeof victim, "%s/victim", folder);
    FILE *v = fopen(victim, "w");
    cr_assert(v && fclose(v) == 0);
    cr_assert_eq(symlink(victim, path), 0);
    cr_expect_eq(nj_access_file_open(&f, path, why, sizeof why), -1);
    cr_expect(strstr(why, "a symbolic link"), "%s", why);
    tried(path, -1, "a symbolic link");
    cr_assert_eq(unlink(path), 0);
    begin();
    line("one");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_eq(rename(path, other) | symlink(victim, path), 0);
    nj_access_file_reopen(&f, now);
    line("two");
    after(NJ_ACCESS_BATCH_NS);
    cr_expect_str_eq(in_file(other), "one\ntwo\n", "lines go on where they went");
    cr_expect_str_eq(in_file(victim), "");
    nj_access_file_close(&f);
    unlink(victim);
}

/* But /dev/stdout is a link that the operator means. */
Test(access_file, links_of_devices_are_followed)
{
    tried("/dev/stdout", 0, "/dev/stdout");
    cr_assert_eq(nj_access_file_open(&f, "/dev/stdout", why, sizeof why), 0, "%s", why);
    nj_access_file_close(&f);
}

Test(access_file, is_written_in_batches)
{
    begin();
    line("one");
    after(0);
    line("two");
    after(NJ_ACCESS_BATCH_NS - 1);
    cr_assert_str_eq(in_file(path), "", "neither old nor many");
    after(1);
    cr_assert_str_eq(in_file(path), "one\ntwo\n");
    counted(2, 0);

    static char wide[NJ_ACCESS_BATCH_BYTES];
    memset(wide, 'x', sizeof wide - 1);
    line(wide);
    after(0);
    cr_assert_eq(strlen(in_file(path)), 8 + sizeof wide);
    line("the end");
    nj_access_file_close(&f);
    counted(4, 0);
    cr_assert_str_eq(in_file(path) + 8 + sizeof wide, "the end\n");
}

Test(access_file, is_appended_to)
{
    for (int i = 0; i < 2; i++) {
        begin();
        line(i ? "second" : "first");
        nj_access_file_close(&f);
    }
    cr_assert_str_eq(in_file(path), "first\nsecond\n");
}

Test(access_file, what_cannot_be_opened_is_said)
{
    cr_assert_eq(nj_access_file_open(&f, folder, why, sizeof why), -1);
    cr_assert(strstr(why, folder) && strstr(why, "Is a directory"), "%s", why);
    cr_assert_eq(nj_access_file_open(&f, "/nonexistent/log", why, sizeof why), -1);
    cr_assert(strstr(why, "/nonexistent/log") && strstr(why, "No such file"), "%s", why);
}

Test(access_file, half_a_line_is_taken_back)
{
    begin();
    disk_ends_at(10);
    line("12345");
    line("abcdef");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_str_eq(in_file(path), "12345\n", "not 12345 abcd");
    counted(1, 0);
    after(NJ_ACCESS_ERROR_RETRY_NS);
    cr_assert_str_eq(in_file(path), "12345\n");
    cr_assert(f.is_failing);
    disk_ends_at(1000);
    after(NJ_ACCESS_ERROR_RETRY_NS);
    cr_assert_str_eq(in_file(path), "12345\nabcdef\n");
    cr_assert(!f.is_failing);
    counted(2, 0);
    nj_access_file_close(&f);
}

/* For a limit that changes at random: whole lines, in order, and the sums agree. */
Test(access_file, a_disk_that_is_full_now_and_then)
{
    uint64_t seed = 0xd15c, n_sent = 0, next = 0;
    struct nj_prng rng;
    char text[256];
    rlim_t end = 0;

    nj_prng_init(&rng, seed);
    begin();
    for (unsigned round = 0; round < 3000; round++) {
        if (round % 3 == 0)
            disk_ends_at(end += nj_prng_below(&rng, 8) == 0 ? nj_prng_below(&rng, 20000)
                                                            : nj_prng_below(&rng, 300));
        for (unsigned i = nj_prng_below(&rng, 20); i > 0; i--) {
            snprintf(
                text, sizeof text, "%" PRIu64 " %.*s", n_sent++, (int)nj_prng_below(&rng, 200),
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
            line(text);
        }
        after(nj_prng_below(&rng, 100) * NJ_MS);
        struct stat st;
        cr_assert(stat(path, &st) == 0 && (rlim_t)st.st_size <= end);
    }
    nj_access_file_close(&f);
    cr_assert_eq(f.n_written + f.n_lost, n_sent, "seed %" PRIu64, seed);
    cr_assert(f.n_lost > 0 && f.n_written > 0);
    uint64_t n_lines = 0;
    for (const char *p = in_file(path); *p; n_lines++) {
        char *rest;
        uint64_t n = strtoull(p, &rest, 10);
        cr_assert(rest > p && *rest == ' ' && n >= next, "seed %" PRIu64 ": %.40s", seed, p);
        next = n + 1;
        p = strchr(p, '\n');
        cr_assert_not_null(p, "half a line at the end");
        p++;
    }
    cr_assert_eq(n_lines, f.n_written);
}

Test(access_file, a_device_that_is_full)
{
    static char wide[1024];
    unsigned n = 0;

    memset(wide, 'x', sizeof wide - 1);
    cr_assert_eq(nj_access_file_open(&f, "/dev/full", why, sizeof why), 0, "%s", why);
    for (; n < 2 * NJ_ACCESS_BUFFER_BYTES / sizeof wide; n++) {
        line(wide);
        after(NJ_ACCESS_BATCH_NS);
    }
    cr_assert(f.is_failing);
    counted(0, n / 2);
    nj_access_file_close(&f);
    counted(0, n);
}

Test(access_file, renamed)
{
    begin();
    line("before");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_eq(rename(path, other), 0);
    line("meanwhile");
    nj_access_file_reopen(&f, now);
    line("after");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_str_eq(in_file(other), "before\nmeanwhile\n");
    cr_assert_str_eq(in_file(path), "after\n");
    nj_access_file_close(&f);
    counted(3, 0);
}

/* Without a signal: the second check creates the file again. The first check leaves time for the
 * program that renames it to create it. */
Test(access_file, renamed_in_silence)
{
    struct stat st;

    begin();
    after(0);
    cr_assert_eq(rename(path, other), 0);
    after(NJ_ACCESS_CHECK_NS);
    cr_assert_eq(stat(path, &st), -1);
    after(NJ_ACCESS_CHECK_NS);
    line("here");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_str_eq(in_file(path), "here\n");
    cr_assert_str_eq(in_file(other), "");

    /* Another file is there: it is opened at once. */
    cr_assert_eq(rename(path, other), 0);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    after(NJ_ACCESS_CHECK_NS);
    line("there");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_str_eq(in_file(path), "there\n");
    nj_access_file_close(&f);
}

Test(access_file, reopened_where_nothing_can_be)
{
    begin();
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    nj_access_file_reopen(&f, now);
    line("goes on");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_str_eq(in_file(other), "goes on\n");
    cr_expect(f.has_old_file, "the next check opens it without another signal");
    rmdir(path);
    nj_access_file_close(&f);
}

/* The folder was moved away, and made again much later. */
Test(access_file, folder_that_comes_back)
{
    char moved[80];

    snprintf(moved, sizeof moved, "%s.old", folder);
    begin();
    after(0);
    cr_assert_eq(rename(folder, moved), 0);
    for (int i = 0; i < 10; i++)
        after(NJ_ACCESS_CHECK_NS);
    cr_expect(f.has_old_file, "the error was reported once");
    cr_assert_eq(mkdir(folder, 0700), 0);
    after(NJ_ACCESS_CHECK_NS);
    line("here");
    after(NJ_ACCESS_BATCH_NS);
    cr_expect_str_eq(in_file(path), "here\n");
    cr_expect_not(f.has_old_file);
    nj_access_file_close(&f);
}

/* With a full disk the lines are kept for the new file. */
Test(access_file, renamed_while_full)
{
    begin();
    disk_ends_at(8);
    line("1234");
    line("5678");
    after(NJ_ACCESS_BATCH_NS);
    cr_assert_eq(rename(path, other), 0);
    nj_access_file_reopen(&f, now);
    after(NJ_ACCESS_ERROR_RETRY_NS);
    cr_assert_str_eq(in_file(other), "1234\n");
    cr_assert_str_eq(in_file(path), "5678\n");
    nj_access_file_close(&f);
    counted(2, 0);
}

static int reader(void)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert_geq(fd, 0);
    return fd;
}

Test(access_file, fifo_without_reader)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
    begin();
    line("early");
    after(NJ_ACCESS_BATCH_NS);
    counted(0, 0);
    cr_assert(f.is_failing);
    int fd = reader();
    after(NJ_ACCESS_ERROR_RETRY_NS);
    read_fd(fd, got, sizeof got - 1);
    cr_assert_str_eq(got, "early\n");
    close(fd);

    line("nobody"); /* the reader exited; a new one opens the pipe */
    after(NJ_ACCESS_BATCH_NS);
    counted(1, 0);
    fd = reader();
    after(NJ_ACCESS_ERROR_RETRY_NS);
    read_fd(fd, got, sizeof got - 1);
    cr_assert_str_eq(got, "nobody\n");
    close(fd);
    line("lost");
    nj_access_file_close(&f);
    counted(2, 1);
}

/* A line longer than PIPE_BUF: the pipe is full in the middle of the line. */
static int half_in_pipe(void)
{
    static char wide[50000];

    cr_assert_eq(mkfifo(path, 0600), 0);
    int fd = reader();
    begin();
    memset(wide, 'a', sizeof wide - 1);
    line(wide);
    memset(wide, 'b', sizeof wide - 1);
    line(wide);
    line("end");
    after(NJ_ACCESS_BATCH_NS);
    counted(1, 0);
    cr_assert(f.mid_line);
    return fd;
}

static void the_rest_is_read(int fd, size_t n)
{
    after(NJ_ACCESS_ERROR_RETRY_NS);
    n += read_fd(fd, got + n, sizeof got - 1 - n);
    cr_assert_eq(n, 100004);
    cr_assert_str_eq(got + 99999, "\nend\n");
    cr_assert(got[50000] == 'b' && got[99998] == 'b');
    counted(3, 0);
    close(fd);
    nj_access_file_close(&f);
}

Test(access_file, half_a_line_in_a_pipe_goes_on)
{
    int fd = half_in_pipe();
    size_t n = read_fd(fd, got, sizeof got - 1);

    nj_access_file_reopen(&f, now); /* it is the same one */
    the_rest_is_read(fd, n);
}

Test(access_file, half_a_line_in_a_pipe_for_another_reader)
{
    int fd = half_in_pipe();

    close(fd);
    after(NJ_ACCESS_ERROR_RETRY_NS);
    fd = reader();
    the_rest_is_read(fd, read_fd(fd, got, sizeof got - 1));
}

Test(access_file, half_a_line_that_was_read_by_one_who_left)
{
    int fd = half_in_pipe();

    read_fd(fd, got, sizeof got - 1);
    close(fd);
    after(NJ_ACCESS_ERROR_RETRY_NS);
    counted(1, 1);
    fd = reader();
    after(NJ_ACCESS_ERROR_RETRY_NS);
    read_fd(fd, got, sizeof got - 1);
    cr_assert_str_eq(got, "end\n");
    counted(2, 1);
    close(fd);
    nj_access_file_close(&f);
}

/* The pipe has no reader, and was inherited, so it must stay blocking: this must not hang. */
Test(access_file, standard_output)
{
    int end[2], kept = dup(1);
    unsigned n;

    cr_assert_eq(pipe(end), 0);
    fcntl(end[0], F_SETFL, O_NONBLOCK);
    fflush(stdout);
    dup2(end[1], 1);
    close(end[1]);
    cr_assert_eq(nj_access_file_open(&f, "-", why, sizeof why), 0, "%s", why);
    dup2(kept, 1);
    for (n = 0; n < 200000; n++) {
        line("0123456789");
        after(NJ_MS);
    }
    cr_assert(f.n_lost > 0);
    nj_access_file_reopen(&f, now); /* has no effect */
    size_t n_bytes = read_fd(end[0], got, sizeof got - 1);
    cr_assert_eq(n_bytes, f.n_written * 11);
    uint64_t n_kept = (f.to - f.from) / 11;
    cr_assert_eq(f.n_written + f.n_lost + n_kept, n);
    close(end[0]);
    nj_access_file_close(&f);
    cr_assert_eq(f.n_written + f.n_lost, n);
}

static void keep_line(void *ctx, enum nj_log_level level, const char *text)
{
    (void)level;
    snprintf(ctx, sizeof why, "%s", text);
}

/* mv /var/log/nj /var/log/nj.1; mkdir /var/log/nj; kill -USR1 */
Test(access_file, a_folder_that_landlock_does_not_know)
{
    char former[80];

    begin();
    if (!landlock_enter(folder))
        cr_skip("no Landlock");
    snprintf(former, sizeof former, "%s.1", folder);
    cr_assert_eq(rename(folder, former), 0);
    cr_assert_eq(mkdir(folder, 0700), 0);
    nj_log_set_sink((struct nj_log_sink){keep_line, why});
    nj_access_file_reopen(&f, now);
    cr_expect(strstr(why, "can't be opened again: Permission denied, though its mode permits it"),
              "%s", why);
    cr_expect(strstr(why, "only after a restart (Landlock)"), "%s", why);
    cr_assert(line("one"));
    nj_access_file_close(&f);
    counted(1, 0);
}
