/* SPDX-License-Identifier: BSD-3-Clause */
/* The lookup that mime_type.c does in a parsed mime.types table. False: no such extension. *type
 * lives as long as the table. */
#ifndef NJ_HTTP_FILES_MIME_TYPES_FILE_H
#define NJ_HTTP_FILES_MIME_TYPES_FILE_H

#include <stdbool.h>

#include "http/files/mime_type.h"

bool nj__mime_table_find(const struct nj_mime_table *t, struct nj_str ext, struct nj_str *type);

#endif
