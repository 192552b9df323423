/* SPDX-License-Identifier: BSD-3-Clause */
/* A buffered log file that is written in whole lines, reopened after a rename, and retried after
 * errors. Writes to a pipe are bounded by PIPE_BUF and preceded by poll(2) (pipe(7)). */
#include "log/access_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/open_error.h"
#include "base/relaxed_atomics.h"
#include "base/set_error.h"
#include "log/log.h"
#include "threads/os_clock.h"

/* Writes of up to this size to a pipe are atomic (pipe(7), PIPE_BUF). */
#define PIPE_BYTES 4096u

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

static const char *name_of(const char *path)
{
    return is_stdout(path) ? "standard output" : path;
}

/* --- opening ------------------------------------------------------------------------------- */

/* A user who can write to the folder of the log could place a link to any file that the server may
 * write. Links below /dev and /proc, such as /dev/stdout, are made by the system. */
static bool may_be_link(const char *path)
{
    return (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0) &&
           !strstr(path, "/../");
}

static bool is_refused_link(const char *path)
{
    struct stat st;
    return !may_be_link(path) && lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Without O_NONBLOCK the open of a FIFO would wait for a reader. */
static int open_path(const struct nj_access_file *f)
{
    if (is_stdout(f->path))
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return open(f->path,
                O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                    (may_be_link(f->path) ? 0 : O_NOFOLLOW),
                0640);
}

static void set_fd(struct nj_access_file *f, int fd)
{
    struct stat st = {0};

    f->fd = fd;
    f->regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->n_missing = 0;
    f->has_old_file = false;
}

static bool is_fifo(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

static const char *error_text(int err)
{
    return err == ELOOP ? "it is a symbolic link, and these are not followed" : strerror(err);
}

static int fail_unwritable(const char *path, int err, char *why, size_t why_bytes)
{
    nj_set_error(why, why_bytes, "the access log %s can't be written: %s", name_of(path),
                 error_text(err));
    errno = err;
    return -1;
}

/* Can a file of that name be created? Returns 0 or an errno. */
static int can_create(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
    int err = 0;

    if (!folder)
        err = ENOMEM;
    else if (slash && slash[1] == '\0')
        err = EISDIR;
    else if (faccessat(AT_FDCWD, slash ? folder : ".", W_OK | X_OK, AT_EACCESS) != 0)
        err = errno;
    free(folder);
    return err;
}

int nj_access_file_check(const char *path, char *text, size_t text_bytes)
{
    const char *what = "exists, lines are added";
    struct stat st;
    int err = 0;

    if (is_stdout(path)) {
        what = "as it is";
    } else if (is_refused_link(path)) {
        err = ELOOP;
    } else if (stat(path, &st) == 0) {
        if (S_ISFIFO(st.st_mode))
            what = "a FIFO, lines wait for its reader";
        if (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode))
            err = S_ISDIR(st.st_mode) ? EISDIR : ENXIO;
        else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
            err = errno;
    } else if (errno != ENOENT) {
        err = errno;
    } else {
        what = "would be made";
        err = can_create(path);
    }
    if (err != 0)
        return fail_unwritable(path, err, text, text_bytes);
    snprintf(text, text_bytes, "access log %s: %s", name_of(path), what);
    return 0;
}

int nj_access_file_open(struct nj_access_file *f, const char *path, char *why, size_t why_bytes)
{
    *f = (struct nj_access_file){.path = path, .fd = -1};
    int fd = open_path(f), err = errno;
    if (fd < 0 && !(err == ENXIO && is_fifo(path)))
        return fail_unwritable(path, err, why, why_bytes);
    f->kept = malloc(NJ_ACCESS_BUFFER_BYTES);
    if (!f->kept) {
        if (fd >= 0)
            close(fd);
        return nj_set_error(why, why_bytes, "not enough memory for the access log");
    }
    set_fd(f, fd);
    return 0;
}

/* --- reports to the operator --------------------------------------------------------------- */

/* Rate limited: not for every line, and not for every short failure of a nearly full disk. */
static void report_failure(struct nj_access_file *f, const char *what)
{
    if (f->is_failing || (f->reported_at > 0 && f->now - f->reported_at < NJ_ACCESS_REPORT_NS))
        return;
    f->is_failing = true;
    f->reported_at = f->now;
    f->n_lost_at_failure = nj_load_relaxed(&f->n_lost);
    nj_log(NJ_LEVEL_ERROR, "the access log %s: %s; trying again, and counting what is lost",
           name_of(f->path), what);
}

static void report_recovery(struct nj_access_file *f)
{
    if (!f->is_failing)
        return;
    f->is_failing = false;
    nj_log(NJ_LEVEL_INFO, "the access log %s takes lines again; %lu were lost", name_of(f->path),
           (unsigned long)(nj_load_relaxed(&f->n_lost) - f->n_lost_at_failure));
}

/* --- the buffer ---------------------------------------------------------------------------- */

static uint64_t lines_in(const char *p, size_t n)
{
    uint64_t n_lines = 0;
    const char *end = p + n;

    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        n_lines++;
        p++;
    }
    return n_lines;
}

/* Bytes of the complete lines among these. */
static size_t whole_lines(const char *p, size_t n)
{
    while (n > 0 && p[n - 1] != '\n')
        n--;
    return n;
}

/* The new file lacks the beginning of the line. */
static void drop_partial_line(struct nj_access_file *f)
{
    if (!f->mid_line)
        return;
    const char *end = memchr(f->kept + f->from, '\n', f->to - f->from);
    NJ_CHECK(end);
    f->from = (size_t)(end - f->kept) + 1;
    f->mid_line = false;
    nj_add_single_writer(&f->n_lost, 1);
}

char *nj_access_file_reserve(struct nj_access_file *f, size_t n_bytes)
{
    if (f->from == f->to)
        f->from = f->to = 0;
    if (NJ_ACCESS_BUFFER_BYTES - f->to < n_bytes && f->from >= NJ_ACCESS_BUFFER_BYTES / 2) {
        memmove(f->kept, f->kept + f->from, f->to - f->from);
        f->to -= f->from;
        f->from = 0;
    }
    if (NJ_ACCESS_BUFFER_BYTES - f->to >= n_bytes)
        return f->kept + f->to;
    report_failure(f, "it takes too few lines");
    nj_add_single_writer(&f->n_lost, 1);
    return NULL;
}

void nj_access_file_commit(struct nj_access_file *f, size_t n_bytes, nj_ns now)
{
    f->now = now;
    if (f->from == f->to)
        f->first_at = now;
    f->to += n_bytes;
}

/* --- writing ------------------------------------------------------------------------------- */

/* Standard output may be shared with a program that expects it to block, so O_NONBLOCK is not set:
 * poll first, and write no more than a writable pipe takes at once. */
static bool is_writable(const struct nj_access_file *f, int wait_ms)
{
    struct pollfd p = {.fd = f->fd, .events = POLLOUT};
    return f->regular || poll(&p, 1, wait_ms) > 0;
}

static size_t next_bytes(const struct nj_access_file *f)
{
    size_t n = f->to - f->from;

    if (f->regular || n <= PIPE_BYTES)
        return n;
    n = whole_lines(f->kept + f->from, PIPE_BYTES);
    return n > 0 ? n : PIPE_BYTES;
}

/* Truncate the file by `n_bytes`, unless another process has appended to it. */
static bool cut_file(const struct nj_access_file *f, size_t n_bytes)
{
    struct stat st;
    off_t end = lseek(f->fd, 0, SEEK_CUR), to = end - (off_t)n_bytes;

    return to >= 0 && fstat(f->fd, &st) == 0 && st.st_size == end && ftruncate(f->fd, to) == 0 &&
           lseek(f->fd, to, SEEK_SET) == to;
}

/* `n` bytes were written. If they end within a line, the file is truncated to the line before, so
 * that no partial line is visible while the disk is full. Returns the bytes that remain. */
static size_t consume_written(struct nj_access_file *f, size_t n)
{
    const char *from = f->kept + f->from;
    size_t n_whole = whole_lines(from, n), half = n - n_whole;

    nj_add_single_writer(&f->n_written, lines_in(from, n));
    if (half > 0 && f->regular && (n_whole > 0 || !f->mid_line) && cut_file(f, half)) {
        n -= half;
        half = 0;
    }
    f->from += n;
    if (n > 0)
        f->mid_line = half > 0;
    return n;
}

static void on_write_error(struct nj_access_file *f, int err)
{
    bool unread = err == EPIPE || err == ENXIO;
    int n_unread = 0;

    report_failure(f, unread ? "nobody reads it" : strerror(err));
    /* The next reader of a pipe finds its contents, and possibly the rest of the line. */
    if (err == EPIPE && ioctl(f->fd, FIONREAD, &n_unread) == 0 && n_unread == 0)
        drop_partial_line(f);
}

/* One write(2). Returns false if the file takes no more now. */
static bool write_once(struct nj_access_file *f, int wait_ms)
{
    size_t n = next_bytes(f);

    if (!is_writable(f, wait_ms))
        return false;
    ssize_t got = write(f->fd, f->kept + f->from, n);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR;
    if (got <= 0) {
        on_write_error(f, got < 0 ? errno : EIO);
        return false;
    }
    bool whole = (size_t)got == n;
    if (consume_written(f, (size_t)got) == 0)
        report_failure(f, "no room for a line");
    if (f->from == f->to)
        report_recovery(f);
    return whole || !f->regular;
}

static bool open_if_closed(struct nj_access_file *f)
{
    if (f->fd >= 0)
        return true;
    int fd = open_path(f);
    if (fd >= 0)
        set_fd(f, fd);
    else
        on_write_error(f, errno);
    return fd >= 0;
}

static void write_buffer(struct nj_access_file *f)
{
    bool more = open_if_closed(f);

    while (more && f->from < f->to)
        more = write_once(f, 0);
    if (!more)
        f->retry_at = f->now + (f->is_failing ? NJ_ACCESS_ERROR_RETRY_NS : NJ_ACCESS_FULL_RETRY_NS);
}

/* --- rename and reopen --------------------------------------------------------------------- */

static void reopen_path(struct nj_access_file *f, nj_ns now, bool tell)
{
    f->now = now;
    if (f->fd >= 0 && f->from < f->to) /* lines of before go to the old file */
        write_buffer(f);
    int fd = open_path(f), err = errno;
    if (fd < 0) {
        /* Lines continue to go to the old file. */
        if (tell)
            nj_log(NJ_LEVEL_ERROR, "the access log %s can't be opened again: %s", f->path,
                   err == EACCES ? nj_open_error_to_write(f->path, err) : error_text(err));
        f->has_old_file = true;
        return;
    }
    struct stat st;
    if (f->fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino) {
        close(fd); /* not renamed: keep the open descriptor, even within a line */
        f->has_old_file = false;
        return;
    }
    if (f->fd >= 0)
        close(f->fd);
    drop_partial_line(f);
    set_fd(f, fd);
    f->retry_at = 0;
}

void nj_access_file_reopen(struct nj_access_file *f, nj_ns now)
{
    if (!is_stdout(f->path))
        reopen_path(f, now, true);
}

void nj_access_file_move(struct nj_access_file *f, const char *path, nj_ns now)
{
    bool is_other = strcmp(path, f->path) != 0;

    f->path = path;
    if (is_other)
        reopen_path(f, now, true);
}

/* A failure to open is reported once and retried at each check. */
static void check_renamed(struct nj_access_file *f, nj_ns now)
{
    struct stat st;

    if ((!f->regular && !f->has_old_file) || is_stdout(f->path) || now < f->recheck_at)
        return;
    f->recheck_at = now + NJ_ACCESS_CHECK_NS;
    if (stat(f->path, &st) == 0) {
        f->n_missing = 0;
        if (st.st_dev != f->dev || st.st_ino != f->ino)
            reopen_path(f, now, !f->has_old_file);
    } else if (errno == ENOENT && ++f->n_missing >= NJ_ACCESS_GONE_CHECKS) {
        reopen_path(f, now, !f->has_old_file);
    }
}

void nj_access_file_write_due(struct nj_access_file *f, nj_ns now)
{
    size_t n = f->to - f->from;

    f->now = now;
    check_renamed(f, now);
    if (n == 0 || now < f->retry_at)
        return;
    if (n >= NJ_ACCESS_BATCH_BYTES || now - f->first_at >= NJ_ACCESS_BATCH_NS)
        write_buffer(f);
}

void nj_access_file_close(struct nj_access_file *f)
{
    nj_ns until = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) + NJ_ACCESS_CLOSE_NS;

    f->now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    bool more = f->from < f->to && open_if_closed(f);
    while (more && f->from < f->to && f->now < until) {
        more = write_once(f, (int)((until - f->now) / NJ_MS) + 1);
        f->now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    }
    if (f->from < f->to) {
        uint64_t n_left = lines_in(f->kept + f->from, f->to - f->from);
        nj_add_single_writer(&f->n_lost, n_left);
        nj_log(NJ_LEVEL_WARNING, "the access log %s: lines lost at the end: %lu", name_of(f->path),
               (unsigned long)n_left);
    }
    if (f->fd >= 0)
        close(f->fd);
    free(f->kept);
    f->kept = NULL;
    f->fd = -1;
}
