/* SPDX-License-Identifier: BSD-3-Clause */
/* Media types by file name: our own, and those of a file that an operator gives. */
#ifndef NJ_HTTP_FILES_MIME_H
#define NJ_HTTP_FILES_MIME_H

#include <stddef.h>
#include <stdint.h>

#include "base/field.h"

/* Extensions that a table holds: the largest mime.types around have some 2000. */
#define NJ_MIME_EXTENSIONS_MAX 16384u
#define NJ_MIME_NAME_MAX       127u /* bytes of type or subtype (RFC 6838 4.2) */
#define NJ_MIME_TYPE_MAX       255u /* of all of it, with its parameters */

struct nj_mime_table;

/*
 * A table of the text of a mime.types file: lines of a type and the extensions it goes with, in any
 * case and without the dot; '#' begins a comment. The last line about an extension counts. A text
 * type without parameters is sent as UTF-8, as our own are. NULL: *line is the first line that is
 * wrong and *why says how; or 0, and memory ran out.
 */
struct nj_mime_table *nj_mime_table_read(const char *text, size_t n_bytes, uint32_t *line,
                                         const char **why);
void nj_mime_table_free(struct nj_mime_table *t);

/* The content-type of a file, by the extension of its name (case ignored): what `own` says (may be
 * NULL), else what we know ourselves. Unknown: application/octet-stream. Lives as long as `own`. */
struct nj_str nj_mime_type(const struct nj_mime_table *own, struct nj_str name);

#endif
