/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An INI file: sections, keys and values, each with its line number. Unlike rte_cfgfile, which
 * skips or truncates invalid lines, this parser reports each of them. A line "include = NAME"
 * stands for the file of that name, relative to the folder of its own file, and "include =
 * conf.d/a*.conf" for those that match, in the order of their names; it ends the section above it.
 * nj_ini_parse() is pure. The caller owns the results.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

#define NJ_INI_BYTES_MAX     (32u << 20)
#define NJ_INI_SECTIONS_MAX  (1u << 17)
#define NJ_INI_ENTRIES_MAX   (1u << 20)
#define NJ_INI_FILES_MAX     128u /* with their includes */
#define NJ_INI_DEPTH_MAX     8u   /* files that include each other */
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
/* The same at the line of `at`, which is evaluated twice: an entry, a section, or what else has a
 * file and a line. */
#define nj_diag_at(diags, at, ...) nj_diag_add(diags, (at)->file, (at)->line, __VA_ARGS__)
/* Add a line that says itself where, after the others. */
void nj_diag_add_line(struct nj_diags *f, const char *text);
void nj_diags_free(struct nj_diags *f);

struct nj_ini_entry {
    const char *key, *value; /* not empty; the key with '_' where the file has '-' */
    const char *file;
    uint32_t line;
    bool is_cut; /* a comment begins right behind the value */
};

struct nj_ini_section {
    const char *name; /* not empty */
    const char *file;
    uint32_t line, first, n; /* entries */
    bool is_incomplete;      /* an invalid line in it was skipped */
    bool is_duplicate;       /* an earlier section has its name */
};

struct nj_ini {
    uint32_t n_sections, n_entries;
    struct nj_ini_section *section;
    struct nj_ini_entry *entry;
    uint32_t n_files;
    struct nj_ini_file {
        char *name;  /* of a file that was read; or of the pattern of an include */
        void *store; /* the strings of the file; NULL: a pattern */
    } file[NJ_INI_FILES_MAX];
};

/* Read a regular file, without a byte order mark of UTF-8 at its beginning. Returns its text with a
 * NUL, for free(); NULL with a diagnostic. */
char *nj_read_text_file(const char *path, size_t max_bytes, size_t *n_bytes,
                        struct nj_diags *faults);

/* Trim white space at both ends, other than newlines. */
struct nj_str nj_ini_trim(struct nj_str s);

/* The name of a file that `file` names, for free(): relative to the folder of `file`. NULL: there
 * is no memory. */
char *nj_ini_path_beside(const char *file, const char *name);

/* Parse the text, in which an include is an error. Invalid lines are reported and skipped. NULL if
 * there is no memory. */
struct nj_ini *nj_ini_parse(const char *file, const char *text, size_t n_bytes,
                            struct nj_diags *faults);
/* Parse a file and what it includes. NULL with a diagnostic if the file cannot be read. */
struct nj_ini *nj_ini_read(const char *file, struct nj_diags *faults);
/* Report and mark each section whose name an earlier one has. The number of blanks between words
 * makes no difference. `file` is for other errors. */
void nj_ini_mark_duplicates(struct nj_ini *ini, const char *file, struct nj_diags *faults);
/* The order of two names of sections; 0: they are equal but for the number of blanks. */
int nj_ini_compare_names(const char *a, const char *b);
void nj_ini_free(struct nj_ini *ini);
