/* SPDX-License-Identifier: BSD-3-Clause */
/* Decode UTF-8 (RFC 3629), and escape any bytes for JSON strings (RFC 8259 7). Pure. */
#pragma once

#include "base/str.h"

#define NJ_UTF8_INVALID UINT32_MAX

/* Remove the first character of `s`, which must not be empty. Returns its code point. If the bytes
 * are not valid UTF-8 (RFC 3629 4: overlong forms, surrogates and code points above U+10FFFF are
 * invalid), removes one byte and returns NJ_UTF8_INVALID. */
uint32_t nj_utf8_next(struct nj_str *s);

/* The most bytes that nj_json_escape() writes for `n` input bytes. */
#define NJ_JSON_ESCAPED_MAX(n) (6 * (n))

/* Replacement for a byte that is not valid UTF-8. */
enum nj_json_invalid {
    NJ_JSON_REPLACE, /* U+FFFD */
    NJ_JSON_LATIN1,  /* the character of that number, as in ISO 8859-1 */
};

/* Write `s` escaped, without the quotes around it. Output beyond `n_out` bytes is discarded, never
 * in the middle of an escape. Returns the length of the complete output in bytes. */
size_t nj_json_escape(char *out, size_t n_out, struct nj_str s, enum nj_json_invalid bad);
