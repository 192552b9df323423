/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions of files: their comparison and hash, and which siblings were made from them. */
#include <criterion/criterion.h>

#include "base/compiler.h"
#include "http/files/file_version.h"

#define S INT64_C(1000000000)

/* Each number counts. But tags stay the same when a file system gets another device number. */
Test(http_file_version, differences)
{
    static const struct nj_file_version first = {1, 2, 3, 4, 5};
    static const struct nj_file_version others[] = {
        {2, 2, 3, 4, 5}, {1, 3, 3, 4, 5}, {1, 2, 4, 4, 5}, {1, 2, 3, 5, 5}, {1, 2, 3, 4, 6}};
    struct nj_file_version same = first;

    cr_expect(nj_file_version_eq(&first, &same));
    cr_expect_eq(nj_file_version_hash(&first), nj_file_version_hash(&same));
    for (size_t i = 0; i < NJ_ARRAY_LEN(others); i++) {
        cr_expect_not(nj_file_version_eq(&first, &others[i]), "%zu", i);
        cr_expect_eq(nj_file_version_hash(&first) == nj_file_version_hash(&others[i]),
                     others[i].dev != first.dev, "%zu", i);
    }
}

Test(http_file_version, times)
{
    static const struct {
        int64_t mtime_ns, ctime_ns;
        bool are_known;
    } rows[] = {
        {0, 0, true},
        {-1, 1, true},
        {NJ_FILE_TIME_MIN, 0, false},
        {NJ_FILE_TIME_MAX, 0, false},
        {0, NJ_FILE_TIME_MIN, false},
        {0, NJ_FILE_TIME_MAX, false},
        {NJ_FILE_TIME_MIN + 1, NJ_FILE_TIME_MAX - 1, true},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_file_version v = {.mtime_ns = rows[i].mtime_ns, .ctime_ns = rows[i].ctime_ns};
        cr_expect_eq(nj_file_version_has_times(&v), rows[i].are_known, "row %zu", i);
    }
    cr_expect_eq(nj_file_time_s(0), 0);
    cr_expect_eq(nj_file_time_s(S - 1), 0);
    cr_expect_eq(nj_file_time_s(-1), -1);
    cr_expect_eq(nj_file_time_s(-S), -1);
    cr_expect_eq(nj_file_time_s(NJ_FILE_TIME_MIN), -9223372037);
}

Test(http_file_version, siblings)
{
    static const struct {
        int64_t mtime_ns, ctime_ns; /* of the sibling; of the file: 10.5 s and 20 s */
        bool is_made_from;
    } rows[] = {
        {10 * S + S / 2, 20 * S, true},      /* unpacked within one tick, or replaced within it */
        {10 * S + S / 2, 20 * S - 1, false}, /* the file was replaced afterwards */
        {30 * S, 20 * S - 1, false},
        {10 * S + S / 2 - 1, 30 * S, false},
        {10 * S, 30 * S, true}, /* whole seconds */
        {9 * S, 30 * S, false},
        {NJ_FILE_TIME_MIN, 30 * S, false},
        {NJ_FILE_TIME_MAX, 30 * S, true},
    };
    static const struct nj_file_version file = {.mtime_ns = 10 * S + S / 2, .ctime_ns = 20 * S};

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_file_version v = {.mtime_ns = rows[i].mtime_ns, .ctime_ns = rows[i].ctime_ns};
        cr_expect_eq(nj_file_version_is_made_from(&v, &file), rows[i].is_made_from, "row %zu", i);
    }
}
