/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buffered writer for a log file, which may be full, renamed, missing, or a pipe without a
 * reader. Lines are buffered, and dropped and counted when the buffer is full. A line is written
 * whole or not at all, in order.
 *
 * One thread. Calls block only where the file system or a terminal does, and in
 * nj_access_file_close().
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/types.h"

/* The buffer is written at this size, or at this age of its oldest line. */
#define NJ_ACCESS_BATCH_BYTES    (64u * 1024u)
#define NJ_ACCESS_BATCH_NS       (50 * NJ_MS)
/* Size of the buffer: 5,000 lines of 200 bytes. */
#define NJ_ACCESS_BUFFER_BYTES   (1024u * 1024u)
/* Intervals: retry of a full pipe, retry after an error, reports of failures, checks for a rename.
 */
#define NJ_ACCESS_FULL_RETRY_NS  NJ_MS
#define NJ_ACCESS_ERROR_RETRY_NS (50 * NJ_MS)
#define NJ_ACCESS_REPORT_NS      (10 * NJ_SEC)
#define NJ_ACCESS_CHECK_NS       NJ_SEC
/* A missing file is recreated at the second check: a log rotation may be about to create it. */
#define NJ_ACCESS_GONE_CHECKS    2u
/* Maximum time of the close. */
#define NJ_ACCESS_CLOSE_NS       NJ_SEC

struct nj_access_file {
    const char *path; /* "-": standard output */
    int fd;           /* -1: a FIFO without a reader */
    bool regular;
    bool mid_line;     /* the beginning of the first line is already written */
    bool is_failing;   /* writing failed, which was reported */
    bool has_old_file; /* the path cannot be opened: lines go to the old file, which was reported */
    dev_t dev;
    ino_t ino;
    uint32_t n_missing;
    nj_ns now;      /* of the last call */
    nj_ns first_at; /* arrival of the oldest line in the buffer */
    nj_ns retry_at, recheck_at, reported_at;
    uint64_t n_lost_at_failure; /* n_lost when the failure began */
    char *kept;                 /* bytes [from, to) are not written yet */
    size_t from, to;
    _Atomic uint64_t n_written, n_lost; /* lines; any thread may read */
};

/* Returns 0, or -1 and a message in `why`. The caller owns `path` and keeps it until close. */
int nj_access_file_open(struct nj_access_file *f, const char *path, char *why, size_t why_bytes);
/* Dry run of open. Returns 0 and a description in `text`, or -1 and the error there and in errno.
 * Changes nothing. */
int nj_access_file_check(const char *path, char *text, size_t text_bytes);
/* Write the buffer for NJ_ACCESS_CLOSE_NS at most, then free all. */
void nj_access_file_close(struct nj_access_file *f);

/* Space for a line of up to n_bytes. NULL: the line is counted as lost. */
char *nj_access_file_reserve(struct nj_access_file *f, size_t n_bytes);
/* Commit the line of n_bytes written there, including its '\n'. */
void nj_access_file_commit(struct nj_access_file *f, size_t n_bytes, nj_ns now);
/* Write the buffer if it is due; check whether the file was renamed or removed. */
void nj_access_file_write_due(struct nj_access_file *f, nj_ns now);
/* Go on with the file of another path, which the caller keeps until close; if it cannot be opened
 * now, later, and with the former file meanwhile. */
void nj_access_file_move(struct nj_access_file *f, const char *path, nj_ns now);
/* Reopen the path; lines that the old file did not take go to the new one. */
void nj_access_file_reopen(struct nj_access_file *f, nj_ns now);
