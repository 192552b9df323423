/* SPDX-License-Identifier: BSD-3-Clause */
/* Characters of UTF-8 (RFC 3629), and strings of JSON (RFC 8259 7) from any bytes. Pure. */
#ifndef NJ_BASE_JSON_STRING_H
#define NJ_BASE_JSON_STRING_H

#include "base/field.h"

#define NJ_NO_CHAR UINT32_MAX

/* Take the character at the front of `s`, which is not empty. Returns its number, or NJ_NO_CHAR
 * where the bytes are no UTF-8 (RFC 3629 4: overlong forms, surrogates and numbers above U+10FFFF
 * are none); then one byte is taken. */
uint32_t nj_utf8_next(struct nj_str *s);

/* The most bytes that nj_json_chars() writes for `n`. */
#define NJ_JSON_BYTES(n) (6 * (n))

/* What a byte becomes that is no UTF-8. */
enum nj_json_bad {
    NJ_JSON_REPLACED, /* U+FFFD */
    NJ_JSON_LATIN1,   /* the character of that number, as in ISO 8859-1 */
};

/* Write `s` as it stands between the quotes of a JSON string; of what does not fit into `n_out`
 * bytes nothing, up to the end. Returns how many bytes the whole has. */
size_t nj_json_chars(char *out, size_t n_out, struct nj_str s, enum nj_json_bad bad);

#endif
