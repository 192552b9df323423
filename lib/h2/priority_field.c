/* SPDX-License-Identifier: BSD-3-Clause */
/* The priority field (RFC 9218 4): a dictionary of RFC 8941. Unknown members are ignored. */
#include "h2/h2_internal.h"

#include <string.h>

/* The end of the dictionary entry at `p`: a comma outside of strings, or `end`. */
static const char *member_end(const char *p, const char *end)
{
    bool quoted = false;

    for (; p < end; p++) {
        if (quoted && *p == '\\' && p + 1 < end)
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (*p == ',' && !quoted)
            break;
    }
    return p;
}

/* The entry without its parameters, none of which are defined, and without surrounding blanks. */
static struct nj_str member_of(const char *p, const char *end)
{
    const char *semicolon = memchr(p, ';', (size_t)(end - p));

    return nj_str_trim((struct nj_str){p, (uint32_t)((semicolon ? semicolon : end) - p)});
}

static uint8_t apply_member(struct nj_str m, uint8_t was)
{
    if (m.n_bytes == 3 && memcmp(m.p, "u=", 2) == 0 && m.p[2] >= '0' && m.p[2] <= '7')
        return (uint8_t)(NJ__H2_URGENCY(m.p[2] - '0') | (was & NJ__H2_INCREMENTAL));
    if (nj_str_eq(m, NJ_STR("i")) || nj_str_eq(m, NJ_STR("i=?1")))
        return was | NJ__H2_INCREMENTAL;
    if (nj_str_eq(m, NJ_STR("i=?0")))
        return was & (uint8_t)~NJ__H2_INCREMENTAL;
    return was;
}

uint8_t nj__h2_priority_parse(struct nj_str value, uint8_t was)
{
    const char *p = value.p, *end = value.p + value.n_bytes;

    while (p < end) {
        const char *at = member_end(p, end);
        was = apply_member(member_of(p, at), was);
        p = at + 1;
    }
    return was;
}
