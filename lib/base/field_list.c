/* SPDX-License-Identifier: BSD-3-Clause */
/* Contract: field_list.h. */
#include "base/field_list.h"

uint32_t nj_list_span_to(struct nj_str s, char end)
{
    bool quoted = false;
    uint32_t n = 0;

    for (; n < s.n_bytes && (quoted || s.p[n] != end); n++) {
        if (s.p[n] == '"')
            quoted = !quoted;
        else if (quoted && s.p[n] == '\\' && n + 1 < s.n_bytes)
            n++;
    }
    return n;
}

bool nj_list_next(struct nj_str *rest, struct nj_str *element)
{
    while (rest->n_bytes > 0) {
        uint32_t n = nj_list_span_to(*rest, ',');
        *element = nj_str_trim((struct nj_str){rest->p, n});
        nj_str_skip(rest, n < rest->n_bytes ? n + 1 : n);
        if (element->n_bytes > 0)
            return true;
    }
    return false;
}

void nj_expect_read(struct nj_str list, bool *expects_continue, bool *expects_other)
{
    struct nj_str expectation;

    while (nj_list_next(&list, &expectation)) {
        bool is_continue = nj_str_eq_nocase(expectation, NJ_STR("100-continue"));
        *expects_continue |= is_continue;
        *expects_other |= !is_continue;
    }
}
