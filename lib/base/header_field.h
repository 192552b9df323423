/* SPDX-License-Identifier: BSD-3-Clause */
/* Header fields: a name and a value (RFC 9110 5). */
#pragma once

#include "base/str.h"

struct nj_field {
    struct nj_str name, value; /* name in lower case (RFC 9113 8.2) */
};

/* The first field of this name, or NULL. */
static inline const struct nj_field *nj_field_find(const struct nj_field *fields, size_t n,
                                                   struct nj_str name)
{
    for (size_t i = 0; i < n; i++)
        if (nj_str_eq(fields[i].name, name))
            return &fields[i];
    return NULL;
}
