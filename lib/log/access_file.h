/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines on their way into a file that may be full, renamed, a pipe that nobody reads, or gone for a
 * while. Lines are kept while there is room for them and then lost, which is counted; a line is
 * written whole or not at all, and those that are come in order.
 *
 * One thread. It only waits where the file system does, or in nj_access_file_close().
 */
#ifndef NJ_LOG_ACCESS_FILE_H
#define NJ_LOG_ACCESS_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/types.h"

/* Written when so much is there, or when it is so old. */
#define NJ_ACCESS_BATCH_BYTES (64u * 1024u)
#define NJ_ACCESS_BATCH_NS    (50 * NJ_MS)
/* What a file that takes nothing makes us keep: 5,000 lines of 200 bytes. */
#define NJ_ACCESS_KEPT_BYTES  (1024u * 1024u)
/* When a file that takes nothing is tried again: a pipe that is full, and one with an error. How
 * often people are told of that, and whether the file was renamed is looked at. */
#define NJ_ACCESS_SOON_NS     NJ_MS
#define NJ_ACCESS_RETRY_NS    (50 * NJ_MS)
#define NJ_ACCESS_TELL_NS     (10 * NJ_SEC)
#define NJ_ACCESS_LOOK_NS     NJ_SEC
/* A name that is gone is made again at the second look: who renames the file may be about to. */
#define NJ_ACCESS_GONE_LOOKS  2u
/* At the end a pipe that is read slowly gets this long. */
#define NJ_ACCESS_END_NS      NJ_SEC

struct nj_access_file {
    const char *path; /* "-": standard output */
    int fd;           /* -1: a FIFO that nobody reads */
    bool regular;
    bool mid_line;     /* the first of the kept bytes are the end of a line of which some went */
    bool troubled;     /* it took nothing, and people were told */
    bool is_elsewhere; /* the path can't be opened: lines go to what had its name, people know */
    dev_t dev;
    ino_t ino;
    uint32_t n_gone;
    nj_ns now;      /* as its user said last */
    nj_ns first_at; /* when the oldest of the kept lines came */
    nj_ns retry_at, look_at, told_at;
    uint64_t n_lost_before; /* when the trouble began */
    char *kept;             /* lines from `from` to `to` wait */
    size_t from, to;
    _Atomic uint64_t n_written, n_lost; /* lines; any thread may read */
};

/* 0; or -1, with what is wrong in `why`. The path stays the caller's. */
int nj_access_file_open(struct nj_access_file *f, const char *path, char *why, size_t why_bytes);
/* What that would come to, for people, in `text`: 0; or -1, with what is wrong. Makes and changes
 * nothing. */
int nj_access_file_try(const char *path, char *text, size_t text_bytes);
/* Write what can be, and let go. */
void nj_access_file_close(struct nj_access_file *f);

/* Room for a line of at most n_bytes, or NULL, and then the line is counted as lost. */
char *nj_access_file_room(struct nj_access_file *f, size_t n_bytes);
/* The line that was put there, with its end. */
void nj_access_file_line(struct nj_access_file *f, size_t n_bytes, nj_ns now);
/* Write, if it is time to. Also looks whether the file was renamed or removed. */
void nj_access_file_turn(struct nj_access_file *f, nj_ns now);
/* Open the path anew; what is kept goes there. */
void nj_access_file_reopen(struct nj_access_file *f, nj_ns now);

#endif
