/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shard's cache of file lookups: names with an object, and names without one (negative entries).
 * One lcore only.
 *
 * An entry is valid for one second, so that changed files are noticed. Entries and pinned bytes are
 * bounded; eviction is LRU. Negative entries have a bound of their own: requests for absent names
 * cannot evict files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/types.h"
#include "http/files/file_ops.h"
#include "http/proto/date.h"
#include "http/proto/path.h"
#include "http/proto/preconditions.h"

#define NJ_META_CACHE_FILES_MAX  1024u
#define NJ_META_CACHE_ABSENT_MAX 256u
#define NJ_META_CACHE_BYTES_MAX  (64u * 1024u * 1024u)
/* A large object pins an open file, not memory. It counts as this much: 64 of them fill the
 * cache. */
#define NJ_META_CACHE_LARGE_COST (1024u * 1024u)
#define NJ_META_CACHE_TTL        NJ_SEC

/* The result of OPEN or LIST for a name, and response fields derived from the object once. */
struct nj_file_meta {
    enum nj_file_result result;
    uint8_t siblings;                    /* as in nj_file_job */
    uint64_t sibling_hash[NJ_N_CODINGS]; /* as in nj_file_job */
    uint64_t version_hash;               /* of the object */
    struct nj_file_object *object;       /* one reference; NULL: none */
    struct nj_str type;                  /* content-type; lives as long as the mime table */
    bool is_gzip;                        /* the bytes are `type` in the coding gzip */
    struct nj_validators validators;
    char modified[NJ_DATE_BYTES]; /* text of validators.modified_s, if is_date_sent */
    uint8_t n_length;
    char length[NJ_U64_DIGITS_MAX]; /* size of the object, in decimal */
    uint64_t stamp[2]; /* of responses with 200 at the time `stamp_s`, plain and coded, see
                          file_response.c; 0: none */
    int64_t stamp_s, long_stamp_s; /* one of them, by the length of the response */
    uint64_t stamp_rules;          /* identifies the rules of the site of these responses */
};

struct nj_lookup_cache;

/* NULL when memory is refused. */
struct nj_lookup_cache *nj_lookup_cache_new(void);
void nj_lookup_cache_free(struct nj_lookup_cache *t);

/* Looks up a name. The entry is borrowed until the next call. NULL: no valid entry. */
struct nj_file_meta *nj_lookup_cache_find(struct nj_lookup_cache *t,
                                          const struct nj_file_name *name, nj_ns now);

/* Drops some expired entries. Each request calls it, so that unused files are not pinned. */
void nj_lookup_cache_sweep(struct nj_lookup_cache *t, nj_ns now);

/* Stores a result; takes its own reference to the object. Results that do not depend on the name
 * (no memory, I/O error) are not stored. Sweeps as well: a request may add several entries. */
void nj_lookup_cache_put(struct nj_lookup_cache *t, const struct nj_file_name *name,
                         const struct nj_file_meta *meta, nj_ns now);
