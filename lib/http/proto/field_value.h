/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsers for the common parts of field values (RFC 9110 5.6). Pure. The nj__ functions are for
 * lib/http only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Splits an element of Accept or a similar field into the part before the first ';' and its weight
 * in thousandths (RFC 9110 12.4.2), 1000 by default. False: the weight is malformed. */
bool nj__parse_weighted(struct nj_str element, struct nj_str *name, uint16_t *q);

/* True if the value may be sent: no line break or other control character (clients reset the stream
 * for one), no blank at either end (RFC 9110 5.5, RFC 9113 8.2.1). Also used outside of
 * lib/http. */
bool nj_field_value_is_valid(const char *value);

/* Decodes a percent-encoded byte such as "%41" at the front of `n` bytes (RFC 3986 2.1). -1: there
 * is none. */
int nj__percent_decode_byte(const char *p, size_t n);
