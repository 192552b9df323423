/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of functions, read from an ELF file while all is well: a handler of SIGSEGV can't open
 * files or take the dynamic loader's locks, and most of our functions are not in the dynamic symbol
 * table that dladdr(3) looks at.
 */
#ifndef NJ_LOG_CRASH_SYMBOLS_H
#define NJ_LOG_CRASH_SYMBOLS_H

#include <stdint.h>

struct nj_crash_symbol {
    uint64_t at, n_bytes; /* offset from where the module is loaded */
    uint32_t name;        /* offset in `names` */
};

struct nj_crash_symbols {
    struct nj_crash_symbol *symbol; /* ascending */
    uint32_t n;
    char *names;
};

/* The functions of an ELF file for this machine: those of its full symbol table, else of the
 * dynamic one. A file that can't be read, or is none, has no functions. */
void nj_crash_symbols_read(struct nj_crash_symbols *s, const char *path);
void nj_crash_symbols_free(struct nj_crash_symbols *s);

/* The name of the function that has the byte at `at`, and how far into it that is; or NULL.
 * Async-signal-safe. */
const char *nj_crash_symbols_find(const struct nj_crash_symbols *s, uint64_t at, uint64_t *into);

#endif
