/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of a store, and those of them that are kept by path. Small ones are kept with their
 * contents, in the budget that they share with pieces of large ones (cache_policy.h). Large ones
 * are kept while there are pieces of them; of the others those that were asked for last. Where that
 * would be more descriptors than there may be, large ones that nobody holds are let go of: first
 * those without pieces; then in their order, while one that was used again meanwhile gets another
 * turn. All of it is for whoever has the store's lock, and makes no system call.
 */
#ifndef NJ_STORE_FILE_CACHE_H
#define NJ_STORE_FILE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/list.h"
#include "http/files/file_ops.h"
#include "store/store_shared.h"

/* What makes a file the same file with the same contents, as far as the kernel tells. */
struct nj__file_id {
    uint64_t dev, inode, size;
    int64_t mtime_ns, ctime_ns;
    /* Changes of these explain one of ctime; they are no part of the identity. */
    uint32_t mode, uid, gid;
    uint64_t n_links;
};

struct nj__file_id nj__file_id(const struct stat *st);
bool nj__file_id_eq(const struct nj__file_id *a, const struct nj__file_id *b);

struct nj__file_cache;

struct nj__file {
    struct nj_object object;
    struct nj__grave grave;
    struct nj__shared *shared;
    struct nj__file_cache *cache; /* that has it, or had it */
    struct nj__file_id id;
    uint8_t *memory; /* of a small file */

    int fd; /* of a large file, else -1 */
    /* Of a large file: it was not changed just before it was opened, or a read has waited until a
     * change would show. */
    _Atomic bool is_settled;
    /* The system had no memory for a read of the reader's: READs are the workers' until one of
     * these has read a piece. */
    _Atomic bool is_put_off;
    bool is_local; /* its file system is of this machine: fstat(2) of it does not wait */
    enum { NJ__DIRECT_UNKNOWN, NJ__DIRECT, NJ__NOT_DIRECT } direct; /* the reader's: has O_DIRECT */

    /* With the lock: */
    struct nj__file_id seen; /* when it was last looked at */
    uint32_t n_seen;         /* how often that was something else than before */
    bool has_changed;        /* or could not be read: no READ succeeds any more */
    struct nj_list pieces;   /* of it that can be found */

    /* With the lock, while in the cache, which is when `path` is not NULL: */
    struct nj_list chain;
    struct nj__cached cached; /* of a large one only the uses count */
    struct nj_list by_use;    /* a large one: in `pieceless`, or in `pieced` */
    bool is_pieceless;
    struct nj_list open; /* if it has a descriptor */
    int64_t looked_s;    /* when somebody took it to look whether it was deleted */
    uint64_t hash, cost;
    char *path;
};

#define NJ__FILE_BUCKETS       16384u
/* Large files that are kept open without pieces of them. */
#define NJ__FILE_PIECELESS_MAX 1024u
/* Files that are looked at for one that is let go of. */
#define NJ__FILE_LOOKS         256u
/* Whether an open file was deleted is looked at once in so many seconds. */
#define NJ__FILE_LOOK_S        16

struct nj__file_cache {
    const struct nj_hash_key *key;
    struct nj_list buckets[NJ__FILE_BUCKETS];
    struct nj_list pieceless; /* least recently used first */
    struct nj_list pieced;    /* large ones with pieces; at the end who came or was spared last */
    uint32_t n_pieceless, n_open, open_max;
    struct nj_list open; /* those with a descriptor; at the end who came or was looked at last */
    struct nj__shared *shared;
};

/* `key` stays the caller's, as long as the cache is used. `open_max`: large files that are kept,
 * unless more of them are held by others, too. */
void nj__file_cache_init(struct nj__file_cache *c, const struct nj_hash_key *key,
                         struct nj__shared *shared, uint32_t open_max);
/* The file kept for `path`, or NULL. Lent. */
struct nj__file *nj__file_cache_find(struct nj__file_cache *c, const char *path);
/* It was asked for once more. */
void nj__file_cache_used(struct nj__file_cache *c, struct nj__file *f);
/* Keep a file that is in no cache, in place of another one of this path; takes a reference. May
 * drop others, and the file itself. */
void nj__file_cache_add(struct nj__file_cache *c, const char *path, struct nj__file *f);
/* The first piece of a large file is here; the last one is gone. */
void nj__file_cache_has_pieces(struct nj__file_cache *c, struct nj__file *f);
void nj__file_cache_no_pieces(struct nj__file_cache *c, struct nj__file *f);
/* Let go of up to `n` large files that nobody else holds, the least useful first. False: there is
 * none among the NJ__FILE_LOOKS that are next; others are next then. */
bool nj__file_cache_let_go(struct nj__file_cache *c, uint32_t n);
/* Let go of a file, if it is in the cache; of all. */
void nj__file_cache_drop(struct nj__file_cache *c, struct nj__file *f);
void nj__file_cache_clear(struct nj__file_cache *c);
/* An open file that was not looked at for NJ__FILE_LOOK_S, with a reference for the caller, who
 * looks at it now; or NULL. Once its last name is gone nobody can ask for it any more, but it uses
 * its disk for as long as it is open. */
struct nj__file *nj__file_cache_due(struct nj__file_cache *c, int64_t now_s);

#endif
