/* SPDX-License-Identifier: BSD-3-Clause */
/* The one date format HTTP writes. */
#ifndef NJ_HTTP_DATE_H
#define NJ_HTTP_DATE_H

#include <stdint.h>

#define NJ_DATE_BYTES 29 /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* IMF-fixdate (RFC 9110 5.6.7) of a UNIX time, years 1 to 9999; others become the nearest of
 * these. Not terminated. */
void nj_date_format(int64_t unix_s, char out[NJ_DATE_BYTES]);

#endif
