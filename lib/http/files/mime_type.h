/* SPDX-License-Identifier: BSD-3-Clause */
/* Media types of files by extension: a built-in table, and an optional one from a mime.types file
 * (RFC 6838 names). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Most extensions of a table; the largest mime.types files have some 2000. */
#define NJ_MIME_EXTENSIONS_MAX 16384u
#define NJ_MIME_NAME_MAX       127u /* bytes of a type or subtype (RFC 6838 4.2) */
#define NJ_MIME_TYPE_MAX       255u /* of a media type with its parameters */

struct nj_mime_table;

/* Strings live as long as the options are used. */
struct nj_mime_options {
    const struct nj_mime_table *own; /* has precedence over the built-in table; NULL: none */
    const char *default_type;        /* of unknown extensions; NULL: application/octet-stream */
    bool is_utf8; /* text types without parameters get charset=utf-8, in both tables */
};

/*
 * Parses a mime.types file: each line has a type and its extensions, in any case and without the
 * dot; '#' begins a comment. The last line about an extension wins. NULL: *line is the first bad
 * line and *why the error, a constant string; or *line is 0 and memory was refused.
 */
struct nj_mime_table *nj_mime_table_parse(const char *text, size_t n_bytes, uint32_t *line,
                                          const char **why);
void nj_mime_table_free(struct nj_mime_table *t);

/* Why a media type of an operator is invalid, a constant string; NULL: it is valid. Parameters may
 * not have blanks. */
const char *nj_mime_type_error(struct nj_str type);

/* The content-type of a file by its extension (case ignored). Lives as long as the options. */
struct nj_str nj_mime_type(const struct nj_mime_options *o, struct nj_str name);

/* True if the bytes of the file are `type` in the coding gzip (RFC 9110 8.4): name.svgz, unless an
 * own table gives it another type. */
bool nj_mime_is_gzip(struct nj_str name, struct nj_str type);
