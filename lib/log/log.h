/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's log: lines on standard error, each with a timestamp and a level. Standard output is
 * only for requested output (--check, --print-placement, the access log).
 *
 * The rule: a diagnostic is an nj_log() line or a text that is returned to the caller. Only a file
 * whose job is requested output prints; ./dev tidy has their list (rule `printing`).
 *
 *     2026-11-23T02:57:00.123Z nightjar: warning: the access log ...
 *
 * If standard error is the journal (systemd sets JOURNAL_STREAM), a line has the priority prefix of
 * sd-daemon(3) instead: the journal stores time and level itself.
 */
#pragma once

#include <nightjar/server.h>

#include "base/compiler.h"

enum nj_log {
    NJ_LEVEL_ERROR = NJ_LOG_ERROR,
    NJ_LEVEL_WARNING = NJ_LOG_WARNING,
    NJ_LEVEL_INFO = NJ_LOG_INFO,
};

/* The receiver of lines. `log` NULL: standard error. */
struct nj_log_sink {
    void (*log)(void *ctx, enum nj_log_level level, const char *line);
    void *ctx;
};
/* Set the sink of the process. Call while no other thread of the library runs. */
void nj_log_set_sink(struct nj_log_sink sink);
/* Pass each line of `text` to `sink`. */
void nj_log_lines_to_sink(struct nj_log_sink sink, enum nj_log level, const char *text);

/* Log one line, or several separated by '\n', each with its own head. Long lines are truncated.
 * Does not wait for standard error while the writer thread runs (log_writer.h), from the start of a
 * server to its end; before and after, and in commands such as --check, it does. Allocates memory:
 * any thread except lcores, which use lcore_log.h. */
void nj_log(enum nj_log level, const char *format, ...) NJ_PRINTF(2, 3);
