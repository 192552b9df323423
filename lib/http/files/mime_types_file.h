/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of media types, sorted by extension (case ignored): the built-in one, which
 * lib/mime_types_table.py writes, and those parsed from files. For mime_type.c. */
#pragma once

#include <stdbool.h>

#include "http/files/mime_type.h"

/* Follows the bytes of a type that may have it. */
#define NJ__MIME_CHARSET "; charset=utf-8"

struct nj__mime_row {
    struct nj_str ext, type;
    bool may_have_charset; /* the bytes after `type` are NJ__MIME_CHARSET */
    uint32_t line;         /* of a file: of duplicates the later line wins */
};

struct nj_mime_table {
    uint32_t n;
    char *names;
    struct nj__mime_row rows[];
};

extern const struct nj__mime_row nj__mime_builtin[];
extern const uint32_t nj__n_mime_builtin;

/* The row of an extension; NULL: none. */
const struct nj__mime_row *nj__mime_find(const struct nj__mime_row *rows, uint32_t n_rows,
                                         struct nj_str ext);
