/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer of log lines: a thread writes them to standard error, so that no other thread waits
 * for a pipe that nobody reads, a stopped terminal, a socket or a disk. Lines wait in a queue of
 * NJ_LOG_LINES. A line is lost if the queue is full or if the write fails (a full disk, a pipe
 * without a reader). Lost lines are counted, and a line at their place says how many they were, as
 * soon as standard error takes lines again.
 *
 * The thread writes to a copy of the descriptor, made at its start: the output of DPDK may be
 * captured meanwhile (dpdk/eal_output_capture.h). It does not set O_NONBLOCK, which would concern
 * all processes that share the terminal, pipe or socket.
 *
 * After fork(2) the child has no writer: its lines are written by the threads that log them, and
 * those that waited are the parent's. A child does not start a writer of its own.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines that wait: more than the errors of some policy files, of which 64 are logged each. */
#define NJ_LOG_LINES      512u
/* Bytes of a line, with its newline. Longer ones are cut. */
#define NJ_LOG_LINE_BYTES 2048u

/* Start the thread, if it does not run. It blocks all signals but those of faults and real-time
 * signals. Main thread. Returns 0 or an errno. */
int nj_log_writer_start(void);
/* Write what waits, for `wait_ms` at most, and end the thread. False: standard error still
 * blocks it. Then it stays, with its queue, until the process ends or nj_log_writer_start() uses it
 * again. Does nothing if the thread does not run. Main thread, when no other thread logs. */
bool nj_log_writer_stop(uint32_t wait_ms);
/* The CPUs of the thread. Main thread. */
void nj_log_writer_set_cpus(const cpu_set_t *cpus);

/* Does the thread run? Then `put` takes lines. Any thread. */
bool nj_log_writer_runs(void);
/* Is its output the journal? Only while it runs. Any thread. */
bool nj_log_writer_is_journal(void);
/* Queue `n` bytes, a line with its newline or another text of at most NJ_LOG_LINE_BYTES. Never
 * blocks, makes no system call but the one that wakes the thread. False: lost, and counted. Any
 * thread, while the thread runs. */
bool nj_log_writer_put(const char *line, size_t n);
/* Lines that wait, with the one that is being written. Any thread; async-signal-safe. */
uint32_t nj_log_writer_n_waiting(void);
/* Wait until no line waits, for `wait_ms` at most. True: none waits. False at once on the writer's
 * own thread. Any thread; async-signal-safe. */
bool nj_log_writer_wait(uint32_t wait_ms);
/* Lines lost since the start of the thread. Any thread. */
uint64_t nj_log_writer_n_lost(void);

/* Write `n` bytes to `fd`, however it takes them: waits if it would block. False: an error, and
 * `*n_put` bytes were written. Any thread that may block. */
bool nj_log_write_all(int fd, const char *text, size_t n, size_t *n_put);
