/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines to standard error, through the writer thread while it runs, or to a callback. Standard
 * error gets timestamps, or the priority prefix of sd-daemon(3) if it is the journal. */
#include "log/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log/log_line_head.h"
#include "log/log_writer.h"
#include "threads/os_clock.h"

/* The faults of a policy file: 64 lines of a KiB, and one more. */
#define TEXT_BYTES (80u * 1024u)
#define HEAD_BYTES 64u
#define LINE_BYTES NJ_LOG_LINE_BYTES

static bool is_journal(void)
{
    return nj_log_writer_runs() ? nj_log_writer_is_journal()
                                : nj_log_fd_is_journal(getenv("JOURNAL_STREAM"), STDERR_FILENO);
}

/* A line that cannot be written is lost: without the writer there is nobody to count it. */
static void write_line(const char *head, size_t n_head, const char *text, size_t n)
{
    char line[LINE_BYTES];
    size_t n_put;

    if (n > sizeof line - n_head - 1)
        n = sizeof line - n_head - 1;
    memcpy(line, head, n_head);
    memcpy(line + n_head, text, n);
    line[n_head + n] = '\n';
    if (nj_log_writer_runs())
        nj_log_writer_put(line, n_head + n + 1);
    else
        (void)nj_log_write_all(STDERR_FILENO, line, n_head + n + 1, &n_put);
}

static struct nj_log_sink process_sink;

void nj_log_set_sink(struct nj_log_sink sink)
{
    process_sink = sink;
}

void nj_log_lines_to_sink(struct nj_log_sink sink, enum nj_log level, const char *text)
{
    char head[HEAD_BYTES], line[LINE_BYTES];

    size_t n_head = nj_log_format_head(head, sizeof head, level, is_journal(),
                                       (int64_t)nj_os_clock_gettime_ns(CLOCK_REALTIME));
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        if (sink.log) {
            snprintf(line, sizeof line, "%.*s", (int)n, p);
            sink.log(sink.ctx, (enum nj_log_level)level, line);
        } else {
            write_line(head, n_head, p, n);
        }
        p += n + (p[n] == '\n');
    }
}

void nj_log(enum nj_log level, const char *format, ...)
{
    char *text = malloc(TEXT_BYTES);
    va_list ap;

    if (!text)
        return;
    va_start(ap, format);
    vsnprintf(text, TEXT_BYTES, format, ap);
    va_end(ap);
    nj_log_lines_to_sink(process_sink, level, text);
    free(text);
}
