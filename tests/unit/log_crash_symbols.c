/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of functions from ELF files: of this program, and of other files. */
#include <criterion/criterion.h>

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/prng.h"
#include "log/crash_symbols.h"

#define RUNS 100u

static uint32_t not_exported(uint32_t x)
{
    return x * 3u + 1u;
}

/* This program's code as an offset. */
static uint64_t offset_of(uintptr_t code)
{
    struct dl_find_object found;
    cr_assert_eq(_dl_find_object((void *)code, &found), 0);
    return code - found.dlfo_link_map->l_addr;
}

/* A file of these bytes; its path lasts until the next call. */
static const char *file_of(const uint8_t *bytes, size_t n)
{
    static char path[] = "/tmp/nj-symbols-XXXXXX";
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    return path;
}

static uint8_t *read_self(size_t *n)
{
    FILE *f = fopen("/proc/self/exe", "rb");
    uint8_t *bytes;

    cr_assert_not_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    bytes = malloc(*n);
    cr_assert_not_null(bytes);
    cr_assert_eq(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

Test(log_crash_symbols, names_what_is_not_exported)
{
    struct nj_crash_symbols s;
    uint64_t into = 99, at = offset_of((uintptr_t)not_exported);

    cr_assert_eq(not_exported(1), 4);
    nj_crash_symbols_read(&s, "/proc/self/exe");
    cr_expect_str_eq(nj_crash_symbols_find(&s, at, &into), "not_exported");
    cr_expect_eq(into, 0);
    cr_expect_str_eq(nj_crash_symbols_find(&s, at + 3, &into), "not_exported");
    cr_expect_eq(into, 3);
    nj_crash_symbols_free(&s);
}

Test(log_crash_symbols, names_nothing_where_no_function_is)
{
    struct nj_crash_symbols s;
    uint64_t into;

    nj_crash_symbols_read(&s, "/proc/self/exe");
    cr_assert_gt(s.n, 0);
    cr_expect_null(nj_crash_symbols_find(&s, 0, &into));
    cr_expect_null(nj_crash_symbols_find(&s, UINT64_MAX, &into));
    nj_crash_symbols_free(&s);
}

Test(log_crash_symbols, a_file_that_is_none_has_none)
{
    static const char *const paths[] = {"/no/such/file", "/dev/null", "/proc/self/maps", "/"};
    struct nj_crash_symbols s;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        nj_crash_symbols_read(&s, paths[i]);
        cr_expect_eq(s.n, 0, "%s", paths[i]);
    }
}

/* Files cut at any length, with any bytes in the ELF header and the section headers: the worst
 * result is no name. Names are within the bytes that were read (ASan checks that). */
Test(log_crash_symbols, broken_files)
{
    const char *given = getenv("NJ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 0x5eed + (uint64_t)getpid();
    struct nj_prng rng;
    size_t n;
    uint8_t *whole = read_self(&n), *broken = malloc(n);
    ElfW(Ehdr) head;

    nj_prng_init(&rng, seed);
    memcpy(&head, whole, sizeof head);
    for (uint32_t run = 0; run < RUNS; run++) {
        struct nj_crash_symbols s;
        uint64_t into;
        size_t left = run % 4 == 0 ? nj_prng_next(&rng) % n + 1 : n;

        memcpy(broken, whole, n);
        for (uint32_t k = run % 7; k > 0; k--)
            broken[nj_prng_next(&rng) % sizeof head] = (uint8_t)nj_prng_next(&rng);
        for (uint32_t k = run % 11; k > 0; k--) {
            size_t at = head.e_shoff + nj_prng_next(&rng) % (head.e_shnum * head.e_shentsize);
            broken[at] = (uint8_t)nj_prng_next(&rng);
        }
        const char *path = file_of(broken, left);
        nj_crash_symbols_read(&s, path);
        unlink(path);
        for (uint32_t k = 0; k < 100 && s.n > 0; k++) {
            const char *name =
                nj_crash_symbols_find(&s, s.symbol[nj_prng_next(&rng) % s.n].at, &into);
            cr_expect(!name || strlen(name) < n, "seed %llu", (unsigned long long)seed);
        }
        nj_crash_symbols_free(&s);
    }
    free(whole);
    free(broken);
}
