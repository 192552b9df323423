/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory by pages: zeroed, aligned, resident only when used, and all of it freed. */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/page_alloc.h"

static const size_t sizes[] = {
    1, 4096, NJ_LARGE_PAGE - 1, NJ_LARGE_PAGE, NJ_LARGE_PAGE + 1, 5 * NJ_LARGE_PAGE - 4095};

/* Pages of address space that this process has. */
static long n_pages(void)
{
    long n = -1;
    FILE *f = fopen("/proc/self/statm", "r");

    cr_assert_not_null(f);
    cr_assert_eq(fscanf(f, "%ld", &n), 1);
    fclose(f);
    return n;
}

Test(base_page_alloc, zeroed_and_aligned_to_the_last_byte)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        uint8_t *mem = nj_pages_map(sizes[i], i % 2 ? NJ_LARGE_PAGE : 0);
        cr_assert_not_null(mem);
        if (sizes[i] >= NJ_LARGE_PAGE)
            cr_expect_eq((uintptr_t)mem % NJ_LARGE_PAGE, 0);
        cr_expect_eq(mem[0] | mem[sizes[i] / 2] | mem[sizes[i] - 1], 0);
        memset(mem, 0xff, sizes[i]);
        nj_pages_unmap(mem, sizes[i]);
    }
}

Test(base_page_alloc, no_more_than_it_takes_and_all_of_it_back)
{
    const long small = sysconf(_SC_PAGESIZE), large = (long)NJ_LARGE_PAGE / small;

    n_pages(); /* pages that the read of the statistics needs are resident now */
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        long unit = sizes[i] < NJ_LARGE_PAGE ? 1 : large, before = n_pages();
        long want = ((long)sizes[i] + unit * small - 1) / (unit * small) * unit;
        uint8_t *mem = nj_pages_map(sizes[i], i % 2 ? NJ_LARGE_PAGE : 0);
        cr_assert_not_null(mem);
        cr_expect_eq(n_pages() - before, want, "%zu bytes", sizes[i]);
        nj_pages_unmap(mem, sizes[i]);
        cr_expect_eq(n_pages(), before, "%zu bytes", sizes[i]);
    }
}

Test(base_page_alloc, what_is_not_used_is_not_there)
{
    const size_t n = (size_t)64 << 30;
    uint8_t *mem = nj_pages_map(n, NJ_LARGE_PAGE);
    cr_assert_not_null(mem);
    mem[n - 1] = 1;
    cr_expect_eq(mem[n - 1], 1);
    nj_pages_unmap(mem, n);
}

/* The flags of the mapping that has this byte (proc_pid_smaps(5)). */
static void flags_of(const void *p, char *flags, size_t n_flags)
{
    char line[512];
    bool here = false, found = false;
    FILE *f = fopen("/proc/self/smaps", "r");

    cr_assert_not_null(f);
    while (!found && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)p >= from && (uintptr_t)p < to;
        found = here && strncmp(line, "VmFlags:", 8) == 0;
    }
    fclose(f);
    cr_assert(found);
    snprintf(flags, n_flags, "%s", line + 8);
}

Test(base_page_alloc, none_of_it_is_in_a_core_dump)
{
    char flags[512];

    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        uint8_t *mem = nj_pages_map(sizes[i], i % 2 ? NJ_LARGE_PAGE : 0);
        cr_assert_not_null(mem);
        flags_of(mem, flags, sizeof flags);
        cr_expect(strstr(flags, " dd ") != NULL, "%zu bytes:%s", sizes[i], flags);
        flags_of(mem + sizes[i] - 1, flags, sizeof flags);
        cr_expect(strstr(flags, " dd ") != NULL, "the end of %zu bytes:%s", sizes[i], flags);
        nj_pages_unmap(mem, sizes[i]);
    }
    flags_of(flags, flags, sizeof flags);
    cr_expect(strstr(flags, " dd ") == NULL, "a stack:%s", flags);
}

Test(base_page_alloc, what_is_too_much_is_refused)
{
    cr_expect_null(nj_pages_map((size_t)1 << 60, 0));
    nj_pages_unmap(NULL, 4096);
}
