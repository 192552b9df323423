/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of C as struct nj_str, and the order of strings. */
#pragma once

#include "base/str.h"

static inline struct nj_str nj_str_of(const char *s)
{
    return (struct nj_str){s, (uint32_t)strlen(s)};
}

/* Byte by byte; a prefix is before what it begins. */
static inline int nj_str_compare(struct nj_str a, struct nj_str b)
{
    int order = memcmp(a.p, b.p, a.n_bytes < b.n_bytes ? a.n_bytes : b.n_bytes);

    return order != 0 ? order : (a.n_bytes > b.n_bytes) - (a.n_bytes < b.n_bytes);
}
