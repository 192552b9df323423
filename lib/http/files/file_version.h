/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The version of a file. Caches, entity tags, dates, precompressed siblings and ranges take their
 * identity from it alone (docs/adr/0026-the-version-of-a-file.md). Pure; any thread.
 *
 * The kernel sets ctime at each change and no program can set it back, so a later version differs
 * in it, unless it was made within the same tick of the file system's clock: the store tells these
 * by nj_file_object.is_racy. Stores through a mapping (mmap) change a page's times only once until
 * the page has been written back: the version does not show the others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* From stat(2). Times are UNIX times in nanoseconds; a time that int64_t cannot hold (before 1677
 * or after 2262) is NJ_FILE_TIME_MIN or NJ_FILE_TIME_MAX. No padding. */
struct nj_file_version {
    uint64_t dev, inode, size_bytes;
    int64_t mtime_ns, ctime_ns;
};

#define NJ_FILE_TIME_MIN INT64_MIN
#define NJ_FILE_TIME_MAX INT64_MAX

/* Of an object that is no file. */
#define NJ_FILE_NO_VERSION                                                                         \
    ((struct nj_file_version){.mtime_ns = NJ_FILE_TIME_MIN, .ctime_ns = NJ_FILE_TIME_MIN})

bool nj_file_version_eq(const struct nj_file_version *a, const struct nj_file_version *b);
/* True if both times are known and exact. */
bool nj_file_version_has_times(const struct nj_file_version *v);
/* Was a precompressed sibling made from this version of its file? It counts as such if neither of
 * its times is older. An mtime can be set back and ctime cannot: it shows a file that was replaced
 * afterwards by one with an older mtime. A later change of the file's permissions looks the same.
 * An mtime in whole seconds is compared in seconds.
 *
 * Equal ctimes count, because files that are unpacked together have them, and all files of some
 * images. So a file keeps a former sibling if it was replaced in the tick of the file system's
 * clock in which that was made, and its mtime is not newer than the sibling's. */
bool nj_file_version_is_made_from(const struct nj_file_version *sibling,
                                  const struct nj_file_version *file);
/* The whole second of a time, rounded down. */
int64_t nj_file_time_s(int64_t ns);
/* Different versions on one device have different hashes, but for one pair in 2^64. The same in
 * every process, and when the file system is mounted again: the device is no part of it. */
uint64_t nj_file_version_hash(const struct nj_file_version *v);
