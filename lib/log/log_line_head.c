/* SPDX-License-Identifier: BSD-3-Clause */
#include "log/log_line_head.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/types.h"

bool nj_log_fd_is_journal(const char *stream, int fd)
{
    uintmax_t device, inode;
    struct stat st;

    return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 && fstat(fd, &st) == 0 &&
           st.st_dev == device && st.st_ino == inode;
}

size_t nj_log_format_head(char *out, size_t n, enum nj_log level, bool to_journal, int64_t wall_ns)
{
    static const char *const words[] = {"error", "warning", "info"};
    static const int priorities[] = {3, 4, 6}; /* of syslog(3) */
    time_t seconds = (time_t)(wall_ns / (int64_t)NJ_SEC);
    int ms = (int)(wall_ns % (int64_t)NJ_SEC / (int64_t)NJ_MS);
    struct tm tm;
    int put;

    if (to_journal) {
        put = snprintf(out, n, "<%d>nightjar: ", priorities[level]);
    } else {
        gmtime_r(&seconds, &tm);
        put = snprintf(
            out, n, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ nightjar: %s: ", tm.tm_year + 1900,
            tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms, words[level]);
    }
    return put < 0 ? 0 : (size_t)put < n ? (size_t)put : n - 1;
}
