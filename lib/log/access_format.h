/* SPDX-License-Identifier: BSD-3-Clause */
/* A record of the access log as text. Pure, but for the time zone of the system. */
#ifndef NJ_LOG_ACCESS_FORMAT_H
#define NJ_LOG_ACCESS_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "telem/access.h"

enum nj_access_format {
    NJ_ACCESS_COMBINED, /* Apache's and nginx's, and what we know besides behind it */
    NJ_ACCESS_JSON,     /* one object */
};

/* The longest line, each byte of text written as six, and the rest: names of keys, numbers. */
#define NJ_ACCESS_LINE_BYTES (6u * (NJ_ACCESS_TEXT_BYTES + 32u) + 600u)

/* The second that was turned into text last: most lines are of the same one. Begins as zero. */
struct nj_access_clock {
    int64_t second;
    char text[40];
    uint32_t n_text;
};

/* One line with its end, whatever bytes are in the record; `out` holds NJ_ACCESS_LINE_BYTES.
 * Returns its length. */
size_t nj_access_write(enum nj_access_format format, const struct nj_access *a,
                       struct nj_access_clock *clock, char *out);

#endif
