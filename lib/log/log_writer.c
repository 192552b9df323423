/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bounded queue of lines with many producers and one consumer, after Dmitry Vyukov's: each slot
 * has a turn, 2 * round while a producer may fill it in that round, and 2 * round + 1 when it is
 * filled. A producer takes a position by compare-and-swap, so that none waits for another one. The
 * consumer writes a line in place and releases its slot afterwards.
 *
 * DPDK's rte_ring would need a second ring for free lines, and its producers wait for one that was
 * interrupted while it enqueued.
 */
#include "log/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/relaxed_atomics.h"
#include "base/signal_stack.h"
#include "base/thread_start_on_cpus.h"
#include "log/log_line_head.h"
#include "log/output_wait.h"
#include "base/futex_park.h"
#include "threads/os_clock.h"
#include "rights/syscall_filter.h"

#define RETRY_NS (100 * NJ_MS) /* of the line about lost lines, while no other one is logged */

struct slot {
    _Atomic uint64_t turn;
    uint64_t n_refused_before; /* when this line was queued */
    uint32_t n;
    char text[NJ_LOG_LINE_BYTES];
};

enum state { NONE, RUNS, STOPS, ENDED };

static struct {
    _Atomic enum state state;
    _Atomic uint64_t n_queued NJ_CACHE_ALIGNED; /* position of the next line */
    _Atomic uint64_t n_refused;                 /* lines lost because no slot was free */
    _Atomic uint32_t n_wakes;
    pthread_t thread;
    int fd;
    bool is_journal;
    bool has_timed_out; /* nj_log_writer_stop() has waited in vain */
    struct slot slot[NJ_LOG_LINES];
    /* written by the thread */
    _Atomic uint64_t n_done NJ_CACHE_ALIGNED;
    _Atomic uint64_t n_failed; /* lines lost because their write failed */
    uint64_t n_lost_told;
    bool mid_line; /* an error has cut a line: the next one begins with a newline */
    bool is_confined;
} writer;

/* --- producers ------------------------------------------------------------------------------- */

bool nj_log_writer_runs(void)
{
    return atomic_load_explicit(&writer.state, memory_order_acquire) != NONE;
}

bool nj_log_writer_is_journal(void)
{
    return writer.is_journal;
}

/* Takes a free slot. NULL: none is free. */
static struct slot *take_slot(uint64_t *position)
{
    uint64_t at = nj_load_relaxed(&writer.n_queued);

    for (;;) {
        struct slot *slot = &writer.slot[at % NJ_LOG_LINES];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        uint64_t free = at / NJ_LOG_LINES * 2;
        if (turn < free)
            return NULL; /* the line of the round before still waits */
        if (turn > free) {
            at = nj_load_relaxed(&writer.n_queued);
        } else if (atomic_compare_exchange_weak_explicit(
                       &writer.n_queued, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
            *position = at;
            return slot;
        }
    }
}

bool nj_log_writer_put(const char *line, size_t n)
{
    uint64_t position;
    struct slot *slot = take_slot(&position);

    if (!slot) {
        nj_add_relaxed(&writer.n_refused, 1);
        return false;
    }
    slot->n = n < sizeof slot->text ? (uint32_t)n : (uint32_t)sizeof slot->text;
    memcpy(slot->text, line, slot->n);
    slot->n_refused_before = nj_load_relaxed(&writer.n_refused);
    atomic_store_explicit(&slot->turn, position / NJ_LOG_LINES * 2 + 1, memory_order_release);
    nj_unpark(&writer.n_wakes);
    return true;
}

uint32_t nj_log_writer_n_waiting(void)
{
    uint64_t n_done = atomic_load_explicit(&writer.n_done, memory_order_acquire);
    return (uint32_t)(nj_load_relaxed(&writer.n_queued) - n_done);
}

uint64_t nj_log_writer_n_lost(void)
{
    return nj_load_relaxed(&writer.n_refused) + nj_load_relaxed(&writer.n_failed);
}

bool nj_log_writer_wait(uint32_t wait_ms)
{
    if (!nj_log_writer_runs())
        return true;
    if (pthread_equal(pthread_self(), writer.thread))
        return false;
    for (uint32_t ms = 0; nj_log_writer_n_waiting() > 0; ms++) {
        if (ms == wait_ms)
            return false;
        (void)poll(NULL, 0, 1);
    }
    return true;
}

/* --- the thread ------------------------------------------------------------------------------ */

bool nj_log_write_all(int fd, const char *text, size_t n, size_t *n_put)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    *n_put = 0;
    while (*n_put < n) {
        ssize_t got = write(fd, text + *n_put, n - *n_put);
        if (got > 0)
            *n_put += (size_t)got;
        else if (got < 0 && errno == EAGAIN) /* another process has set O_NONBLOCK */
            (void)poll(&p, 1, -1);
        else if (got == 0 || errno != EINTR)
            return false;
    }
    return true;
}

static bool write_text(const char *text, size_t n)
{
    size_t n_put;

    if (writer.mid_line) {
        if (!nj_log_write_all(writer.fd, "\n", 1, &n_put))
            return false;
        writer.mid_line = false;
    }
    bool ok = nj_log_write_all(writer.fd, text, n, &n_put);
    writer.mid_line = !ok && n_put > 0;
    return ok;
}

/* Writes the line about lost lines, of which there were `n_lost` up to this place of the log.
 * Returns false if that fails. */
static bool tell_lost(uint64_t n_lost)
{
    char line[160];
    uint64_t n = n_lost - writer.n_lost_told;

    if (n_lost <= writer.n_lost_told) /* less: two producers were refused and accepted at once */
        return true;
    size_t at = nj_log_format_head(line, sizeof line, NJ_LEVEL_WARNING, writer.is_journal,
                                   (int64_t)nj_os_clock_gettime_ns(CLOCK_REALTIME));
    int put = snprintf(line + at, sizeof line - at,
                       "log: %lu line%s lost here: standard error took no more\n", (unsigned long)n,
                       n == 1 ? " was" : "s were");
    if (!write_text(line, at + (size_t)put))
        return false;
    writer.n_lost_told = n_lost;
    return true;
}

/* Writes one line, or counts it as lost. False: the queue is empty. */
static bool write_next(void)
{
    uint64_t at = nj_load_relaxed(&writer.n_done), round = at / NJ_LOG_LINES;
    struct slot *slot = &writer.slot[at % NJ_LOG_LINES];
    uint64_t n_failed = nj_load_relaxed(&writer.n_failed);

    if (atomic_load_explicit(&slot->turn, memory_order_acquire) != round * 2 + 1)
        return false;
    if (!tell_lost(slot->n_refused_before + n_failed) || !write_text(slot->text, slot->n))
        nj_store_relaxed(&writer.n_failed, n_failed + 1);
    atomic_store_explicit(&slot->turn, (round + 1) * 2, memory_order_release);
    atomic_store_explicit(&writer.n_done, at + 1, memory_order_release);
    return true;
}

/* The thread starts before the list of allowed calls is known. */
static void confine(void)
{
    if (!writer.is_confined && nj_syscall_allow_list_is_prepared()) {
        nj_syscall_allow_list_load();
        writer.is_confined = true;
    }
}

static void *writer_main(void *arg)
{
    void *altstack = nj_altstack_install();
    bool has_ended = false;

    (void)arg;
    pthread_setname_np(pthread_self(), "nj-log");
    while (!has_ended) {
        uint32_t seen = atomic_load_explicit(&writer.n_wakes, memory_order_acquire);
        enum state stops = STOPS;
        bool is_last = atomic_load_explicit(&writer.state, memory_order_acquire) == STOPS;
        confine();
        while (write_next()) {
        }
        bool is_told = tell_lost(nj_log_writer_n_lost());
        if (is_last)
            has_ended = atomic_compare_exchange_strong(&writer.state, &stops, ENDED);
        else
            nj_park(&writer.n_wakes, seen, is_told ? NJ_NEVER : RETRY_NS);
    }
    nj_altstack_remove(altstack);
    return NULL;
}

/* --- start and end --------------------------------------------------------------------------- */

static void stop_at_exit(void)
{
    if (!writer.has_timed_out) /* else the wait is over */
        (void)nj_log_writer_stop(NJ_OUTPUT_WAIT_MS);
}

/* A child has the state, but not the thread. */
static void forget_in_child(void)
{
    if (!nj_log_writer_runs())
        return;
    atomic_store_explicit(&writer.state, NONE, memory_order_release);
    close(writer.fd);
}

int nj_log_writer_start(void)
{
    static bool has_handlers; /* for exit() in the EAL, and for children */

    writer.has_timed_out = false;
    if (nj_log_writer_runs())
        return 0;
    if (!has_handlers &&
        (atexit(stop_at_exit) != 0 || pthread_atfork(NULL, NULL, forget_in_child) != 0))
        return ENOMEM;
    has_handlers = true;
    writer.fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (writer.fd < 0)
        return errno;
    writer.is_journal = nj_log_fd_is_journal(getenv("JOURNAL_STREAM"), writer.fd);
    nj_store_relaxed(&writer.n_refused, 0);
    nj_store_relaxed(&writer.n_failed, 0);
    writer.n_lost_told = 0;
    writer.mid_line = writer.is_confined = false;
    int rc = nj_thread_start(&writer.thread, NULL, writer_main, NULL);
    if (rc == 0)
        atomic_store_explicit(&writer.state, RUNS, memory_order_release);
    else
        close(writer.fd);
    return rc;
}

bool nj_log_writer_stop(uint32_t wait_ms)
{
    struct timespec until = nj_os_clock_deadline(wait_ms);
    enum state stops = STOPS;

    if (!nj_log_writer_runs())
        return true;
    atomic_store_explicit(&writer.state, STOPS, memory_order_release);
    nj_unpark(&writer.n_wakes);
    if (pthread_timedjoin_np(writer.thread, NULL, &until) != 0) {
        writer.has_timed_out = atomic_compare_exchange_strong(&writer.state, &stops, RUNS);
        if (writer.has_timed_out)
            return false;
        pthread_join(writer.thread, NULL); /* it has ended at this moment */
    }
    atomic_store_explicit(&writer.state, NONE, memory_order_release);
    close(writer.fd);
    return true;
}

void nj_log_writer_set_cpus(const cpu_set_t *cpus)
{
    if (nj_log_writer_runs())
        pthread_setaffinity_np(writer.thread, sizeof *cpus, cpus);
}
