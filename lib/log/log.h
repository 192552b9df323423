/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server tells people: lines on standard error, each with its time and how bad it is. What
 * the program was asked to print (--check, --print-placement, the access log) goes to standard
 * output, and nothing else does.
 *
 *     2026-11-23T02:57:00.123Z nightjar: warning: the access log ...
 *
 * Where standard error is the journal's (systemd sets JOURNAL_STREAM), a line has neither time nor
 * word but the priority that sd-daemon(3) asks for: the journal notes both itself.
 */
#ifndef NJ_LOG_LOG_H
#define NJ_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nightjar/server.h>

#include "base/attr.h"

enum nj_say {
    NJ_SAY_ERROR = NJ_LOG_ERROR,
    NJ_SAY_WARNING = NJ_LOG_WARNING,
    NJ_SAY_INFO = NJ_LOG_INFO,
};

/* Where lines go; `log` NULL: to standard error. */
struct nj_say_sink {
    void (*log)(void *ctx, enum nj_log_level level, const char *line);
    void *ctx;
};
/* From now on, for the whole process. While no other thread of the library runs. */
void nj_say_to(struct nj_say_sink sink);
/* The lines of `text`, into that sink. */
void nj_say_lines(struct nj_say_sink sink, enum nj_say level, const char *text);

/* One line, written with one write(), or several with '\n' between them, each with its own head.
 * What is too long is cut. May wait for the reader of standard error: not from an lcore
 * (lcore_log.h). Any other thread. */
void nj_say(enum nj_say level, const char *format, ...) NJ_PRINTF(2, 3);

/* The head of a line, for a moment in ns since 1970. Pure. */
size_t nj_say_head(char *out, size_t n, enum nj_say level, bool to_journal, int64_t wall_ns);
/* Is `fd` what `stream` says, the value of JOURNAL_STREAM, "DEVICE:INODE"? NULL: no. */
bool nj_say_is_journal(const char *stream, int fd);

#endif
