/* SPDX-License-Identifier: BSD-3-Clause */
/* Media types by file name. */
#ifndef NJ_HTTP_MIME_H
#define NJ_HTTP_MIME_H

#include "base/field.h"

/* The content-type of a file, by the extension of its name (case ignored). Text is UTF-8. Unknown:
 * application/octet-stream. The string is static. */
struct nj_str nj_mime_type(const char *name);

#endif
