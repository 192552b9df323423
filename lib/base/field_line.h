/* SPDX-License-Identifier: BSD-3-Clause */
/* A header field as a line of text (RFC 9112 5). */
#pragma once

#include "base/header_field.h"

enum nj_field_line { NJ_FIELD_LINE_OK, NJ_FIELD_LINE_BAD_NAME, NJ_FIELD_LINE_BAD_VALUE };

/* Parses a line without its line end, which must follow in memory. The name is written to `names`
 * in lower case; the value points into the line. A name must be followed by its colon, a line must
 * not be folded, and a value has no control characters but HTAB. */
enum nj_field_line nj_field_line_parse(struct nj_str line, char *names, struct nj_field *out);
/* Writes a line with CRLF, of nj_field_line_bytes(). Each word of the name begins with an upper
 * case letter. Returns where it ends. */
uint8_t *nj_field_line_put(uint8_t *to, const struct nj_field *field);

static inline uint32_t nj_field_line_bytes(const struct nj_field *field)
{
    return field->name.n_bytes + field->value.n_bytes + 4;
}
