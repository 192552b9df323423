/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes what --check says to standard output: items, each with keys and their values, as text or
 * as JSON (RFC 8259), an array of objects. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct nj__report {
    bool json;
    bool shows_places; /* in text; JSON always has them */
    uint32_t n_items, n_keys;
    bool in_key;
    const char *file; /* of the key that is open; NULL: it has no place */
    uint32_t line;
};

/* Begin an item, e.g. a site. `name` and `file` may be NULL. What is open ends. */
void nj__report_item(struct nj__report *r, const char *kind, const char *name, const char *file,
                     uint32_t line);
/* Begin the value of a key, which is set at `file`, if that is not NULL. */
void nj__report_key(struct nj__report *r, const char *key, const char *file, uint32_t line);
/* Add to the value of the key; at most 4 KiB. */
void nj__report_add(struct nj__report *r, const char *fmt, ...) NJ_PRINTF(2, 3);
/* nj__report_key(), and its whole value. */
#define nj__report_value(r, key, ...)                                                              \
    (nj__report_key(r, key, NULL, 0), nj__report_add(r, __VA_ARGS__))
/* End the value that is open, if any; the item may go on. */
void nj__report_end_key(struct nj__report *r);
void nj__report_end(struct nj__report *r);
