/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of JSON (RFC 8259 7) from bytes that may be anything. Pure. */
#ifndef NJ_SERVER_JSON_STRING_H
#define NJ_SERVER_JSON_STRING_H

#include <stddef.h>

/* The most bytes that nj_json_string() writes for `n`. */
#define NJ_JSON_STRING_BYTES(n) (6 * (n) + 2)

/* Write `n` bytes at `from` as a string with its quotes. A byte that is no UTF-8 is taken for the
 * character of that number. Returns where the string ends. */
char *nj_json_string(char *to, const void *from, size_t n);

#endif
