/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a log line is a timestamp and the level. A line for the journal has the priority
 * prefix of sd-daemon(3) instead. Any thread may call these functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/log.h"

/* Format the head of a line. `wall_ns` is UNIX time in ns. Returns its length. Pure. */
size_t nj_log_format_head(char *out, size_t n, enum nj_log level, bool to_journal, int64_t wall_ns);
/* Does `fd` match `stream`, the value of JOURNAL_STREAM ("DEVICE:INODE")? NULL: no. */
bool nj_log_fd_is_journal(const char *stream, int fd);
