/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An INI file: sections, keys and values, each with its line number. Unlike rte_cfgfile, which
 * skips or truncates invalid lines, this parser reports each of them. Pure, except
 * nj_read_text_file(). The caller owns the results.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define NJ_INI_BYTES_MAX     (32u << 20)
#define NJ_INI_SECTIONS_MAX  (1u << 17)
#define NJ_INI_ENTRIES_MAX   (1u << 20)
/* Sizes of names of sections, keys and values, including the NUL. */
#define NJ_INI_SECTION_BYTES 512
#define NJ_INI_NAME_BYTES    64
#define NJ_INI_VALUE_BYTES   2048

/* Diagnostics, one per line: "FILE:LINE: what is wrong: what is expected". */
#define NJ_DIAGS_MAX 64u /* further ones are only counted */

struct nj_diags {
    uint32_t n;
    char *text; /* the lines, sorted by line number; or NULL */
    size_t n_bytes;
};

/* Add a diagnostic. `line` 0: about the whole file. */
void nj_diag_add(struct nj_diags *f, const char *file, uint32_t line, const char *fmt, ...)
    NJ_PRINTF(4, 5);
void nj_diags_free(struct nj_diags *f);

struct nj_ini_entry {
    const char *key, *value; /* not empty */
    uint32_t line;
};

struct nj_ini_section {
    const char *name;        /* not empty */
    uint32_t line, first, n; /* entries */
    bool is_incomplete;      /* an invalid line in it was skipped */
    bool is_duplicate;       /* an earlier section has its name */
};

struct nj_ini {
    uint32_t n_sections, n_entries;
    struct nj_ini_section *section;
    struct nj_ini_entry *entry;
    void *store; /* the strings */
};

/* Read a regular file, without a byte order mark of UTF-8 at its beginning. Returns its text with a
 * NUL, for free(); NULL with a diagnostic. */
char *nj_read_text_file(const char *path, size_t max_bytes, size_t *n_bytes,
                        struct nj_diags *faults);

/* Trim white space at both ends. */
void nj_ini_trim_range(const char **from, const char **to);

/* Parse the text. Invalid lines are reported and skipped. NULL if there is no memory. */
struct nj_ini *nj_ini_parse(const char *file, const char *text, size_t n_bytes,
                            struct nj_diags *faults);
/* Report and mark each section whose name an earlier one has. The number of blanks between words
 * makes no difference. */
void nj_ini_mark_duplicates(struct nj_ini *ini, const char *file, struct nj_diags *faults);
void nj_ini_free(struct nj_ini *ini);
