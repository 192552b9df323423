/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one shard learned lately about file names: objects, and names without one.
 *
 * An answer is good for a second, so that a changed file is seen; then the worker is asked again.
 * Bounded in names and in the bytes it keeps alive; the least recently used goes first. Names
 * without an object have a bound of their own: asking for nonsense cannot push out files.
 */
#ifndef NJ_HTTP_OBJECT_TABLE_H
#define NJ_HTTP_OBJECT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "http/file_port.h"

#define NJ_OBJECT_TABLE_FILES_MAX  1024u
#define NJ_OBJECT_TABLE_OTHERS_MAX 256u
#define NJ_OBJECT_TABLE_BYTES_MAX  (64u * 1024u * 1024u)
/* A large object is open file, not memory. Counted as this much, 64 of them fill the table. */
#define NJ_OBJECT_TABLE_LARGE_COST (1024u * 1024u)
#define NJ_OBJECT_TABLE_TTL        NJ_SEC

struct nj_object_name {
    const char *p; /* n_bytes < NJ_PATH_MAX */
    uint32_t n_bytes;
    uint64_t hash; /* keyed */
};

struct nj_object_table;

/* NULL when memory ran out. */
struct nj_object_table *nj_object_table_new(void);
void nj_object_table_free(struct nj_object_table *t);

/* What OPEN said about this name within the last second. The object, if any, is lent until the
 * next call. False: not known. */
bool nj_object_table_find(struct nj_object_table *t, const struct nj_object_name *name, nj_ns now,
                          enum nj_file_result *result, struct nj_object **object);

/* Remember an answer; takes its own reference. Results that say nothing about the name (no memory,
 * I/O error) are not kept. */
void nj_object_table_put(struct nj_object_table *t, const struct nj_object_name *name,
                         enum nj_file_result result, struct nj_object *object, nj_ns now);

#endif
