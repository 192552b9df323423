/* SPDX-License-Identifier: BSD-3-Clause */
/* What mime.c asks of a table that was read from a file. */
#ifndef NJ_HTTP_FILES_MIME_TABLE_H
#define NJ_HTTP_FILES_MIME_TABLE_H

#include <stdbool.h>

#include "http/files/mime.h"

bool nj__mime_table_find(const struct nj_mime_table *t, struct nj_str ext, struct nj_str *type);

#endif
