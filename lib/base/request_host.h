/* SPDX-License-Identifier: BSD-3-Clause */
/* The host of a request. Pure. */
#pragma once

#include "base/str.h"

/* The host of an authority, without user, port and one trailing dot (RFC 3986 3.2, RFC 9110 7.2).
 * It refers to the authority and keeps its case. An IPv6 address keeps its brackets. */
static inline struct nj_str nj_host_of_authority(struct nj_str authority)
{
    struct nj_str h = authority;

    for (uint32_t i = h.n_bytes; i-- > 0;) {
        if (h.p[i] == '@') {
            nj_str_skip(&h, i + 1);
            break;
        }
    }
    for (uint32_t i = h.n_bytes; i-- > 0 && h.p[i] != ']';)
        if (h.p[i] == ':')
            h.n_bytes = i;
    if (h.n_bytes > 1 && h.p[h.n_bytes - 1] == '.')
        h.n_bytes--;
    return h;
}
