/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the function symbols of an ELF file (elf(5)) into a sorted table. All offsets and sizes are
 * checked against the size of the file. */
#include "log/crash_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file in memory. Its contents are not trusted. */
struct image {
    const uint8_t *bytes;
    uint64_t n_bytes;
};

static bool has(const struct image *image, uint64_t at, uint64_t n)
{
    return at <= image->n_bytes && n <= image->n_bytes - at;
}

static bool map_file(struct image *image, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *mem = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (mem == MAP_FAILED)
        return false;
    *image = (struct image){mem, (uint64_t)st.st_size};
    return true;
}

static bool section_at(const struct image *image, const ElfW(Ehdr) * head, uint32_t i,
                       ElfW(Shdr) * out)
{
    uint64_t at = head->e_shoff + (uint64_t)i * sizeof *out;

    if (i >= head->e_shnum || !has(image, at, sizeof *out))
        return false;
    memcpy(out, image->bytes + at, sizeof *out);
    return out->sh_type == SHT_NOBITS || has(image, out->sh_offset, out->sh_size);
}

/* Find the symbol table of this type and its string table. */
static bool find_tables(const struct image *image, uint32_t type, ElfW(Shdr) * symbols,
                        ElfW(Shdr) * names)
{
    ElfW(Ehdr) head;

    if (!has(image, 0, sizeof head))
        return false;
    memcpy(&head, image->bytes, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_shentsize != sizeof *symbols || head.e_shoff > image->n_bytes)
        return false;
    for (uint32_t i = 0; i < head.e_shnum; i++)
        if (section_at(image, &head, i, symbols) && symbols->sh_type == type)
            return section_at(image, &head, symbols->sh_link, names) &&
                   names->sh_type == SHT_STRTAB && names->sh_size > 0 &&
                   names->sh_size <= UINT32_MAX &&
                   image->bytes[names->sh_offset + names->sh_size - 1] == '\0';
    return false;
}

static int by_address(const void *a, const void *b)
{
    const struct nj_crash_symbol *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool read_table(struct nj_crash_symbols *s, const struct image *image, uint32_t type)
{
    ElfW(Shdr) symbols, names;
    ElfW(Sym) sym;

    if (!find_tables(image, type, &symbols, &names))
        return false;
    uint64_t n_max = symbols.sh_size / sizeof sym;
    s->symbol = n_max <= UINT32_MAX ? calloc(n_max + 1, sizeof *s->symbol) : NULL;
    s->names = malloc(names.sh_size);
    if (!s->symbol || !s->names)
        return false;
    memcpy(s->names, image->bytes + names.sh_offset, names.sh_size);
    for (uint64_t i = 0; i < n_max; i++) {
        memcpy(&sym, image->bytes + symbols.sh_offset + i * sizeof sym, sizeof sym);
        if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx != SHN_UNDEF &&
            sym.st_name < names.sh_size)
            s->symbol[s->n++] = (struct nj_crash_symbol){sym.st_value, sym.st_size, sym.st_name};
    }
    qsort(s->symbol, s->n, sizeof *s->symbol, by_address);
    return s->n > 0;
}

void nj_crash_symbols_read(struct nj_crash_symbols *s, const char *path)
{
    struct image image;

    *s = (struct nj_crash_symbols){0};
    if (!map_file(&image, path))
        return;
    if (!read_table(s, &image, SHT_SYMTAB)) {
        nj_crash_symbols_free(s);
        if (!read_table(s, &image, SHT_DYNSYM))
            nj_crash_symbols_free(s);
    }
    munmap((void *)image.bytes, image.n_bytes);
}

void nj_crash_symbols_free(struct nj_crash_symbols *s)
{
    free(s->symbol);
    free(s->names);
    *s = (struct nj_crash_symbols){0};
}

const char *nj_crash_symbols_find(const struct nj_crash_symbols *s, uint64_t at, uint64_t *into)
{
    uint32_t from = 0, to = s->n; /* binary search for the last symbol at or before `at` */

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (s->symbol[middle].at <= at)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == 0 || at - s->symbol[from - 1].at >= s->symbol[from - 1].n_bytes)
        return NULL;
    *into = at - s->symbol[from - 1].at;
    return s->names + s->symbol[from - 1].name;
}
