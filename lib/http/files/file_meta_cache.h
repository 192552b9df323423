/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one shard learned lately about file names: objects, and names without one.
 *
 * An answer is good for a second, so that a changed file is seen; then the worker is asked again.
 * Bounded in names and in the bytes it keeps alive; the least recently used goes first. Names
 * without an object have a bound of their own: asking for nonsense cannot push out files.
 */
#ifndef NJ_HTTP_FILES_FILE_META_CACHE_H
#define NJ_HTTP_FILES_FILE_META_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "http/files/file_ops.h"
#include "http/proto/date.h"
#include "http/proto/path.h"
#include "http/proto/preconditions.h"

#define NJ_OBJECT_TABLE_FILES_MAX  1024u
#define NJ_OBJECT_TABLE_OTHERS_MAX 256u
#define NJ_OBJECT_TABLE_BYTES_MAX  (64u * 1024u * 1024u)
/* A large object is open file, not memory. Counted as this much, 64 of them fill the table. */
#define NJ_OBJECT_TABLE_LARGE_COST (1024u * 1024u)
#define NJ_OBJECT_TABLE_TTL        NJ_SEC

/* What OPEN or LIST said of a name, and what replies say of the object: worked out once. */
struct nj_known {
    enum nj_file_result result;
    uint8_t siblings;         /* as in nj_file_job */
    struct nj_object *object; /* or NULL */
    struct nj_str type;       /* content-type; lives as long as the table */
    struct nj_validators validators;
    char modified[NJ_DATE_BYTES]; /* validators.modified_s, when it has a date */
    uint8_t n_length;
    char length[NJ_DIGITS_MAX]; /* of the object, in digits */
    uint64_t stamp[2]; /* of replies with 200 at the time of `said_s`, see response_head.c; 0: none
                          yet */
    int64_t said_s;
};

struct nj_object_table;

/* NULL when memory ran out. */
struct nj_object_table *nj_object_table_new(void);
void nj_object_table_free(struct nj_object_table *t);

/* What is known of this name since less than a second; lent until the next call. NULL: nothing. */
struct nj_known *nj_object_table_find(struct nj_object_table *t, const struct nj_object_name *name,
                                      nj_ns now);

/* Remember an answer; takes its own reference. Results that say nothing about the name (no memory,
 * I/O error) are not kept. */
void nj_object_table_put(struct nj_object_table *t, const struct nj_object_name *name,
                         const struct nj_known *known, nj_ns now);

#endif
