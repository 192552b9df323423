/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of files by path. Small files are cached with their contents, in the budget that they
 * share with chunks (cache_policy.h). A large file is cached as an open descriptor: while it has
 * chunks, and, without chunks, in a list of bounded length, least recently used first. When
 * descriptors run out, large files without references are evicted: first those without chunks, then
 * the others in CLOCK order (second chance). The caller holds the store's lock in every call. No
 * call makes a system call.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/keyed_hash.h"
#include "base/list.h"
#include "http/files/file_ops.h"
#include "store/store_state.h"

/* The result of stat(2). */
struct nj__file_id {
    struct nj_file_version version;
    /* A change of these explains a change of ctime. They are not part of the version. */
    uint32_t mode, uid, gid;
    uint64_t n_links;
};

struct nj__file_id nj__file_id(const struct stat *st);

struct nj__file_cache;

struct nj__file {
    struct nj_file_object object;
    struct nj__deferred deferred;
    struct nj__store *shared;
    struct nj__file_cache *cache; /* its current or former cache */
    struct nj__file_id id;
    uint8_t *memory; /* contents of a small file */

    int fd; /* of a large file, else -1 */
    /* Of a large file: its timestamps were older than a tick at the open, or a read has waited for
     * that. */
    _Atomic bool is_settled;
    /* A read of the reader failed for lack of kernel memory: READs are tasks of the workers until a
     * worker has read a chunk. */
    _Atomic bool needs_worker;
    bool is_local; /* on a local file system: fstat(2) does not wait */
    enum { NJ__DIRECT_UNKNOWN, NJ__DIRECT_YES, NJ__DIRECT_NO } direct; /* O_DIRECT; the reader's */

    /* With the lock: */
    struct nj__file_id seen;   /* at the last check */
    uint32_t n_rights_changes; /* count of changes of `seen` */
    bool has_changed;          /* or is unreadable: all further READs fail */
    struct nj_list chunk_list; /* its chunks in the chunk table */

    /* With the lock, while in the cache, which is when `path` is not NULL: */
    struct nj_list hash_node;
    struct nj__cache_item cached; /* of a large file only n_uses is used */
    struct nj_list lru_node;      /* a large file: in c->chunkless or c->chunked */
    bool is_chunkless;
    struct nj_list open; /* in c->open, if it has a descriptor */
    int64_t checked_s;   /* time of the last check for deletion */
    uint64_t hash, cost;
    char *path;
};

#define NJ__FILE_BUCKETS       16384u
/* Maximum of cached large files without chunks. */
#define NJ__FILE_CHUNKLESS_MAX 1024u
/* Files that one search for a victim examines. */
#define NJ__FILE_SCAN_MAX      256u
/* Interval of the checks whether an open file was deleted, in seconds. */
#define NJ__FILE_CHECK_S       16

struct nj__file_cache {
    const struct nj_hash_key *key;
    struct nj_list buckets[NJ__FILE_BUCKETS];
    struct nj_list chunkless; /* least recently used first */
    struct nj_list chunked;   /* large files with chunks, in CLOCK order */
    uint32_t n_chunkless, n_open, open_max;
    struct nj_list open; /* files with a descriptor; most recently checked last */
    struct nj__store *shared;
};

/* The caller owns `key` and keeps it while the cache is used. `open_max`: maximum of cached large
 * files; referenced ones may exceed it. */
void nj__file_cache_init(struct nj__file_cache *c, const struct nj_hash_key *key,
                         struct nj__store *shared, uint32_t open_max);
/* The cached file of `path`, or NULL. Takes no reference. */
struct nj__file *nj__file_cache_find(struct nj__file_cache *c, const char *path);
/* Count a use of the file. */
void nj__file_cache_touch(struct nj__file_cache *c, struct nj__file *f);
/* Add a file and take a reference; replaces another file of this path. May evict other files, and
 * this one. */
void nj__file_cache_add(struct nj__file_cache *c, const char *path, struct nj__file *f);
/* Move a large file between the lists: it got its first chunk, or lost its last. */
void nj__file_cache_mark_chunked(struct nj__file_cache *c, struct nj__file *f);
void nj__file_cache_mark_chunkless(struct nj__file_cache *c, struct nj__file *f);
/* Evict up to `n` large files without other references, least used first. Returns false if the next
 * NJ__FILE_SCAN_MAX files contain none; the next call continues behind them. */
bool nj__file_cache_evict_large(struct nj__file_cache *c, uint32_t n);
/* Remove a file if it is cached; remove all files. */
void nj__file_cache_remove(struct nj__file_cache *c, struct nj__file *f);
void nj__file_cache_clear(struct nj__file_cache *c);
/* The next open file that is due for a check for deletion, with a reference for the caller; or
 * NULL. A deleted file occupies its disk space while it is open. */
struct nj__file *nj__file_cache_next_delete_check(struct nj__file_cache *c, int64_t now_s);
