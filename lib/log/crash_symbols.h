/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Function symbols of an ELF file, read in advance: a SIGSEGV handler cannot open files or take the
 * dynamic loader's locks, and dladdr(3) knows only the dynamic symbol table, which lacks most
 * functions of this library.
 */
#pragma once

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

/* Read the functions of an ELF file of this architecture: from .symtab, else from .dynsym. The
 * table stays empty if the file is unreadable or invalid. The caller frees it. */
void nj_crash_symbols_read(struct nj_crash_symbols *s, const char *path);
void nj_crash_symbols_free(struct nj_crash_symbols *s);

/* The name of the function that contains `at`, and the offset into it; or NULL. The string belongs
 * to `s`. Async-signal-safe. */
const char *nj_crash_symbols_find(const struct nj_crash_symbols *s, uint64_t at, uint64_t *into);
