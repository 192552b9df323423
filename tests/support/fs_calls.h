/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that a test can block: the libc functions that the file store calls, defined in the
 * test's own program, where they replace those of libc (or of a sanitizer, which they call). A
 * thread whose `gate` is set stops in the call that the gate names, as with a disk that does not
 * answer. A thread whose `on_call` is set calls that function before each. A test can also replace
 * what fstat(2) tells, end a sleep at once, and let reads return less. For tests of one file.
 */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct gate {
    const char *call;
    bool after; /* the call was made, and its answer is late; else it is made when the gate opens */
    bool fails; /* pread(): and then there are no bytes */
    sem_t reached, open;
};

static _Thread_local struct gate *gate;
static _Thread_local void (*on_call)(const char *call);
/* fstat(): changes its result. nanosleep(): is called instead. pread(): the most that it returns;
 * 0: no limit. */
static _Thread_local void (*on_stat)(struct stat *st);
static _Thread_local void (*on_sleep)(const struct timespec *wait);
static _Thread_local size_t pread_max;

/* Once: the next calls go through. True: the call is to fail. */
static bool pass(const char *call, bool after)
{
    struct gate *g = gate;

    if (on_call && !after)
        on_call(call);
    if (!g || g->after != after || strcmp(g->call, call) != 0)
        return false;
    gate = NULL;
    sem_post(&g->reached);
    while (sem_wait(&g->open) < 0)
        ;
    return g->fails;
}

/* With 64-bit offsets some functions have other names. */
static struct {
    __typeof__(&pread) pread;
    __typeof__(&fstat) fstat;
    __typeof__(&fstatat) fstatat;
    __typeof__(&stat) stat;
    __typeof__(&close) close;
    __typeof__(&munmap) munmap;
    __typeof__(&posix_fadvise) posix_fadvise;
    __typeof__(&readlinkat) readlinkat;
    __typeof__(&nanosleep) nanosleep;
    __typeof__(&clock_gettime) clock_gettime;
} next;

__attribute__((constructor)) static void find_next(void)
{
    next.pread = dlsym(RTLD_NEXT, "pread64");
    next.fstat = dlsym(RTLD_NEXT, "fstat64");
    next.fstatat = dlsym(RTLD_NEXT, "fstatat64");
    next.stat = dlsym(RTLD_NEXT, "stat64");
    next.close = dlsym(RTLD_NEXT, "close");
    next.munmap = dlsym(RTLD_NEXT, "munmap");
    next.posix_fadvise = dlsym(RTLD_NEXT, "posix_fadvise64");
    next.readlinkat = dlsym(RTLD_NEXT, "readlinkat");
    next.nanosleep = dlsym(RTLD_NEXT, "nanosleep");
    next.clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

/* The number of further preads of this thread that fail with this errno. */
static _Thread_local uint32_t n_preads_fail;
static _Thread_local int pread_errno;

ssize_t pread(int fd, void *out, size_t n, off_t at)
{
    if (pass("pread", false))
        return 0;
    if (n_preads_fail == 0)
        return next.pread(fd, out, pread_max > 0 && n > pread_max ? pread_max : n, at);
    n_preads_fail--;
    errno = pread_errno;
    return -1;
}

int fstat(int fd, struct stat *st)
{
    pass("fstat", false);
    int rc = next.fstat(fd, st);
    if (on_stat && rc == 0)
        on_stat(st);
    pass("fstat", true);
    return rc;
}

int fstatat(int fd, const char *restrict path, struct stat *restrict st, int flags)
{
    pass("fstatat", false);
    return next.fstatat(fd, path, st, flags);
}

int stat(const char *restrict path, struct stat *restrict st)
{
    pass("stat", false);
    return next.stat(path, st);
}

int close(int fd)
{
    pass("close", false);
    return next.close(fd);
}

int munmap(void *p, size_t n)
{
    pass("munmap", false);
    return next.munmap(p, n);
}

int posix_fadvise(int fd, off_t at, off_t n, int advice)
{
    pass("fadvise", false);
    return next.posix_fadvise(fd, at, n, advice);
}

ssize_t readlinkat(int fd, const char *restrict path, char *restrict out, size_t n)
{
    pass("readlinkat", false);
    return next.readlinkat(fd, path, out, n);
}

int nanosleep(const struct timespec *wait, struct timespec *left)
{
    pass("nanosleep", false);
    if (on_sleep) {
        on_sleep(wait);
        return 0;
    }
    return next.nanosleep(wait, left);
}

/* The store's clocks: the coarse one is ahead by this time, and a test may set the wall clock. */
static _Atomic int64_t coarse_ahead_s, wall_ns;

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int64_t wall = atomic_load(&wall_ns);
    int rc = next.clock_gettime(id, ts);

    if (id == CLOCK_MONOTONIC_COARSE)
        ts->tv_sec += atomic_load(&coarse_ahead_s);
    if (id == CLOCK_REALTIME && wall != 0)
        *ts = (struct timespec){wall / 1000000000, wall % 1000000000};
    return rc;
}
