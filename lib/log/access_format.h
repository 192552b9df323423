/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats a record of the access log as text. Pure, except for the system's time zone. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "telem/access_log_record.h"

enum nj_access_format {
    NJ_ACCESS_COMBINED, /* Apache's and nginx's, followed by further fields */
    NJ_ACCESS_JSON,     /* one JSON object per line */
    NJ_ACCESS_LOGFMT,   /* name=value, with a space between; texts of the client in quotes */
};

/* The longest line: six bytes for each byte of text, plus keys and numbers. */
#define NJ_ACCESS_LINE_BYTES (6u * (NJ_ACCESS_TEXT_BYTES + 32u) + 660u)

/* Cached text of the last second: most lines share it. Zero-initialized. */
struct nj_access_time_cache {
    int64_t second;
    char text[40];
    uint32_t n_text;
};

/* Write one line including '\n'; `out` holds NJ_ACCESS_LINE_BYTES. Returns its length. The record
 * may contain any bytes. */
size_t nj_access_format_line(enum nj_access_format format, const struct nj_access_record *a,
                             struct nj_access_time_cache *clock, char *out);
