/* SPDX-License-Identifier: BSD-3-Clause */
/* Media types of files by extension: a built-in table, and an optional one from a mime.types file
 * (RFC 6838 names). Pure. */
#ifndef NJ_HTTP_FILES_MIME_TYPE_H
#define NJ_HTTP_FILES_MIME_TYPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Most extensions of a table; the largest mime.types files have some 2000. */
#define NJ_MIME_EXTENSIONS_MAX 16384u
#define NJ_MIME_NAME_MAX       127u /* bytes of a type or subtype (RFC 6838 4.2) */
#define NJ_MIME_TYPE_MAX       255u /* of a media type with its parameters */

struct nj_mime_table;

/*
 * Parses a mime.types file: each line has a type and its extensions, in any case and without the
 * dot; '#' begins a comment. The last line about an extension wins. A text type without parameters
 * gets charset=utf-8, as in the built-in table. NULL: *line is the first bad line and *why the
 * error, a constant string; or *line is 0 and memory was refused.
 */
struct nj_mime_table *nj_mime_table_parse(const char *text, size_t n_bytes, uint32_t *line,
                                          const char **why);
void nj_mime_table_free(struct nj_mime_table *t);

/* The content-type of a file by its extension (case ignored): from `own` (may be NULL), else
 * built-in, else application/octet-stream. Lives as long as `own`. */
struct nj_str nj_mime_type(const struct nj_mime_table *own, struct nj_str name);

#endif
