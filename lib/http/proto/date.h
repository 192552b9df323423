/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP dates (RFC 9110 5.6.7): writes IMF-fixdate and parses all three formats. Pure: no locale,
 * clock or time zone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define NJ_DATE_BYTES 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* Writes IMF-fixdate (RFC 9110 5.6.7) of a UNIX time. Years outside 1 to 9999 are clamped. Not
 * terminated. */
void nj_date_format(int64_t unix_s, char out[NJ_DATE_BYTES]);

/* The current date, formatted once a second. Initially all zero. */
struct nj_date_cached {
    int64_t unix_s;
    char text[NJ_DATE_BYTES];
};

/* The string is valid until the next call with another second. */
struct nj_str nj_date_cached(struct nj_date_cached *d, int64_t unix_s);

/* Parses an HTTP-date: IMF-fixdate, RFC 850 or asctime(). False: none of these formats, or not a
 * calendar day. The name of the weekday is not verified. `now_s` selects the century of a two-digit
 * year. */
bool nj_date_parse(struct nj_str text, int64_t now_s, int64_t *unix_s);
