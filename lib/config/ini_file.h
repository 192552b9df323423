/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An INI file: sections, keys and values, each with the number of its line. rte_cfgfile skips lines
 * that it does not understand, cuts values that are too long, and keeps no line numbers; this one
 * reports a fault for each such line.
 */
#ifndef NJ_CONFIG_INI_FILE_H
#define NJ_CONFIG_INI_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define NJ_INI_BYTES_MAX    (1u << 20)
#define NJ_INI_SECTIONS_MAX 256u
#define NJ_INI_ENTRIES_MAX  4096u
/* Of a section's name or a key, and of a value, with the zero byte that ends them. */
#define NJ_INI_NAME_BYTES   64
#define NJ_INI_VALUE_BYTES  256

/* Everything that is wrong, a line each, "FILE:LINE: what: what is expected". */
#define NJ_FAULTS_TOLD 64u /* more are counted */

struct nj_faults {
    uint32_t n;
    char *text; /* told lines, one behind the other in the order of their numbers; or NULL */
    size_t n_bytes;
};

/* `line` 0: the file as a whole. */
void nj_fault(struct nj_faults *f, const char *file, uint32_t line, const char *fmt, ...)
    NJ_PRINTF(4, 5);
void nj_faults_free(struct nj_faults *f);

struct nj_ini_entry {
    const char *key, *value; /* not empty */
    uint32_t line;
};

struct nj_ini_section {
    const char *name;        /* not empty */
    uint32_t line, first, n; /* entries */
    bool lacks;              /* a line of it has a fault and was left out */
};

struct nj_ini {
    uint32_t n_sections, n_entries;
    struct nj_ini_section section[NJ_INI_SECTIONS_MAX];
    struct nj_ini_entry *entry;
    void *store; /* the strings */
};

/* All of a file, terminated, for the caller to free(); NULL with a fault. */
char *nj_ini_slurp(const char *path, size_t max_bytes, size_t *n_bytes, struct nj_faults *faults);

/* Leave away the white space at both ends. */
void nj_ini_strip(const char **from, const char **to);

/* NULL when there is no memory. What has a fault is told and left out. */
struct nj_ini *nj_ini_parse(const char *file, const char *text, size_t n_bytes,
                            struct nj_faults *faults);
void nj_ini_free(struct nj_ini *ini);

#endif
