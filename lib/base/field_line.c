/* SPDX-License-Identifier: BSD-3-Clause */
/* Contract: field_line.h. */
#include "base/field_line.h"

#include "base/compiler.h"
#include "base/field_syntax.h"

/* Write the name at the begin of a line in lower case. It ends before an octet that is no tchar, at
 * the latest at the line's end. */
static struct nj_str lower_name(char *to, const char *from)
{
    uint32_t n = 0;
    uint8_t in;

    for (; (in = nj_syntax_allowed_in[(uint8_t)from[n]]) & NJ_IN_METHOD; n++)
        to[n] = (char)(from[n] | (in & NJ_IN_NAME ? 0 : 0x20)); /* else it is in upper case */
    return (struct nj_str){to, n};
}

enum nj_field_line nj_field_line_parse(struct nj_str line, char *names, struct nj_field *out)
{
    if (nj_unlikely(line.n_bytes > 0 && nj_is_ows(line.p[0]))) /* obs-fold (RFC 9112 5.2) */
        return NJ_FIELD_LINE_BAD_VALUE;
    out->name = lower_name(names, line.p);
    if (nj_unlikely(out->name.n_bytes == 0 || line.p[out->name.n_bytes] != ':'))
        return NJ_FIELD_LINE_BAD_NAME;
    nj_str_skip(&line, out->name.n_bytes + 1);
    out->value = nj_str_trim(line);
    if (nj_unlikely(!nj_syntax_allows_fast(out->value, ' ', NJ_IN_VALUE)))
        return NJ_FIELD_LINE_BAD_VALUE;
    return NJ_FIELD_LINE_OK;
}

uint8_t *nj_field_line_put(uint8_t *to, const struct nj_field *field)
{
    bool begins_word = true;

    for (uint32_t i = 0; i < field->name.n_bytes; i++) {
        char c = field->name.p[i];
        *to++ = (uint8_t)(begins_word && c >= 'a' && c <= 'z' ? c - 0x20 : c);
        begins_word = c == '-';
    }
    to = nj_str_put(to, NJ_STR(": "));
    to = nj_str_put(to, field->value);
    return nj_str_put(to, NJ_STR("\r\n"));
}
