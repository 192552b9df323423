/* SPDX-License-Identifier: BSD-3-Clause */
/* The one date format HTTP writes, and the three it reads. */
#ifndef NJ_HTTP_PROTO_DATE_H
#define NJ_HTTP_PROTO_DATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"

#define NJ_DATE_BYTES 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* IMF-fixdate (RFC 9110 5.6.7) of a UNIX time, years 1 to 9999; others become the nearest of
 * these. Not terminated. */
void nj_date_format(int64_t unix_s, char out[NJ_DATE_BYTES]);

/* The date of now, written once a second; all zero at first. */
struct nj_date_of_now {
    int64_t unix_s;
    char text[NJ_DATE_BYTES];
};

/* Lives until the next call with another second. */
struct nj_str nj_date_of_now(struct nj_date_of_now *d, int64_t unix_s);

/* UNIX time of an HTTP-date in any of its forms: IMF-fixdate, that of RFC 850 and asctime()'s.
 * False when it is none of them, or no day of the calendar; whether the name of the day is the
 * right one is not looked at. `now_s` settles in which century a year of two digits is. */
bool nj_date_parse(struct nj_str text, int64_t now_s, int64_t *unix_s);

#endif
