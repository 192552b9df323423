/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes what --check says to standard output: items, each with keys and their values, as text or
 * as JSON (RFC 8259), an array of objects. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "config/ini_file_diagnostics.h"

struct nj__report {
    bool json;
    bool shows_places; /* in text; JSON always has them */
    uint32_t n_items, n_keys;
    const char *key;               /* that is open; NULL: none */
    const struct nj_ini_entry *at; /* where it is set; NULL: it has no place */
};

/* Begin an item, e.g. a site. `name` and `file` may be NULL. What is open ends. */
void nj__report_item(struct nj__report *r, const char *kind, const char *name, const char *file,
                     uint32_t line);
/* Begin the item of a section, "KIND NAME", at its place. */
void nj__report_section(struct nj__report *r, const struct nj_ini_section *s);
/* Begin the value of a key, which is set at `at`, if that is not NULL. The name of the key lives
 * until the value ends. */
void nj__report_key(struct nj__report *r, const char *key, const struct nj_ini_entry *at);
/* Add to the value of the key; at most 4 KiB. */
void nj__report_add(struct nj__report *r, const char *fmt, ...) NJ_PRINTF(2, 3);
/* nj__report_key(), and its whole value. */
#define nj__report_value(r, key, ...) (nj__report_key(r, key, NULL), nj__report_add(r, __VA_ARGS__))
/* The key and its value, at its place. */
void nj__report_entry(struct nj__report *r, const struct nj_ini_entry *e);
/* Begin the value of a key, or, if that is open, add ", " to it. */
void nj__report_next(struct nj__report *r, const char *key);
/* nj__report_next(), and the item of the list. */
#define nj__report_listed(r, key, ...) (nj__report_next(r, key), nj__report_add(r, __VA_ARGS__))
/* End the value that is open, if any; the item may go on. */
void nj__report_end_key(struct nj__report *r);
void nj__report_end(struct nj__report *r);
