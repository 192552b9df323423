/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of chunks of large files, shared by all readers. A chunk is read once for all bodies
 * that want it, and stays cached after its last reference. The first thread to ask fills the chunk;
 * other READs of it get BUSY and retry. No thread waits for another.
 *
 * Chunks have three sizes and are aligned to them. "Lent" means referenced by a body or a fill. The
 * size of a new chunk depends on the READ and on the bytes lent:
 *
 *   up to 1/4 of the budget lent:  256 KiB for fast readers, 32 KiB for slow ones
 *   up to 1/2:                     32 KiB
 *   beyond:                        4 KiB, and NO_MEMORY when the budget is used up
 *
 * A body holds two chunks at most. So a budget of 1 GiB carries 512 MiB / 64 KiB = 8,192 slow
 * bodies with two chunks of 32 KiB (16,384 with one, which is typical), and 65,536 more with two of
 * 4 KiB. The minimum budget, 128 MiB, carries 1,024 and 8,192 of them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/relaxed_atomics.h"
#include "base/keyed_hash.h"
#include "base/list.h"
#include "http/files/file_ops.h"
#include "store/chunk_buddy_arena.h"
#include "store/file_cache.h"

#define NJ__CHUNK_TINY_BYTES  4096u
/* Minimum of the bytes that may be lent at once. */
#define NJ__CHUNK_BUDGET_MIN  (128u * 1024u * 1024u)
#define NJ__CHUNK_BUCKETS     16384u
/* Kernel readahead (posix_fadvise(2)) after a READ of 256 KiB: four chunks. At 200 MB/s a disk may
 * then take 5 ms to seek. */
#define NJ__CHUNK_AHEAD_BYTES (4u * NJ_CHUNK_BYTES)
/* Readahead chunks that no READ has used yet take at most this fraction (1/N) of the budget. They
 * are pinned until their first use or for this number of seconds. */
#define NJ__CHUNK_AHEAD_DIV   4u
#define NJ__CHUNK_AHEAD_S     10u

struct nj__chunks {
    const struct nj_hash_key *key;
    struct nj__file_cache *cache;
    struct nj__store *shared; /* its lock guards the members below */
    struct nj__arena *arena;
    uint64_t lent_max;
    uint64_t n_lent_bytes;
    _Atomic uint32_t n_lent; /* read without the lock */
    struct nj_list ahead;    /* readahead without a READ so far; oldest first */
    uint32_t now_s;          /* count of calls of nj__chunks_expire_readahead() */
    struct nj_list buckets[NJ__CHUNK_BUCKETS];
    /* Fills that ended in each bucket, failed ones included. Read without the lock. */
    _Atomic uint32_t n_fills[NJ__CHUNK_BUCKETS];
};

/* The caller owns `key` and keeps it until fini. Returns false if there is no memory. */
bool nj__chunks_init(struct nj__chunks *c, const struct nj_hash_key *key, uint64_t cache_bytes,
                     struct nj__file_cache *cache);
/* Precondition: no chunks are left. Does nothing if `c` is zeroed. */
void nj__chunks_fini(struct nj__chunks *c);

/* A fill: the caller of a begin function writes n_bytes of the file at `offset` to `out`, then
 * calls nj__chunks_end_fill(). It may write all n_room bytes. `from` not NULL:
 * nj__chunks_copy_fill() fills it without a read. */
struct nj__chunk_fill {
    struct chunk_entry *chunk; /* NULL: nothing to fill */
    struct chunk_entry *from;
    uint8_t *out;
    uint32_t n_room, n_bytes;
    uint64_t offset;
    uint32_t place; /* bucket; job->place of READs that wait for it */
};

/*
 * READs of a large file `f`, which the job references. Call without the lock. OK: job->chunk is the
 * chunk. BUSY: another thread fills it, and job->seen is nj__chunks_count_ended_fills() of
 * job->place, which changes when that fill has ended. NO_MEMORY: job->seen is the counter
 * chunk_returns.
 */

/* Look the chunk up. Returns true if it is cached (job->result OK) or being filled (BUSY). */
bool nj__chunks_lookup(struct nj__chunks *c, struct nj__file *f, struct nj_file_job *job);
/* Look up or start a fill. OK with fill->chunk: the caller fills and ends it. */
enum nj_file_result nj__chunks_lookup_or_begin_fill(struct nj__chunks *c, struct nj__file *f,
                                                    struct nj_file_job *job,
                                                    struct nj__chunk_fill *fill);
/* Start readahead of the first chunk of 256 KiB between `offset` and `end` that is neither cached
 * nor being filled. Returns false if there is none or its memory is needed for READs. The caller
 * references the file. */
bool nj__chunks_begin_readahead(struct nj__chunks *c, struct nj__file *f, uint64_t offset,
                                uint64_t end, struct nj__chunk_fill *fill);
void nj__chunks_copy_fill(const struct nj__chunk_fill *fill);
/* End a fill. OK: job->chunk is set. `job` is NULL for readahead. */
enum nj_file_result nj__chunks_end_fill(struct nj__chunks *c, const struct nj__chunk_fill *fill,
                                        bool ok, struct nj_file_job *job);
/* Do a whole READ with pread(2). */
enum nj_file_result nj__chunks_do_read_blocking(struct nj__chunks *c, struct nj__file *f,
                                                struct nj_file_job *job);
/* Count of fills that ended in bucket `place`. Without the lock. */
static inline uint32_t nj__chunks_count_ended_fills(const struct nj__chunks *c, uint32_t place)
{
    return nj_load_relaxed(&c->n_fills[place]);
}
/* With the lock: drop all chunks of a file that is about to be freed. */
void nj__chunks_drop_file(struct nj__file *f);
/* With the lock: free all chunks without references. */
void nj__chunks_clear(struct nj__chunks *c);
/* Without the lock: call once a second, to expire readahead. */
void nj__chunks_expire_readahead(struct nj__chunks *c);
/* Without the lock: unlink chunks and files without references; closes no file. Cheap if there are
 * none. */
void nj__chunks_run_nonblocking_frees(struct nj__chunks *c);
/* Without the lock: populate one block. Returns 0 or a negative errno: EAGAIN if enough blocks are
 * populated, EINVAL if the system does not support it. One thread. */
int nj__chunks_populate_block(struct nj__chunks *c);
/* Without the lock: release surplus free memory to the system. One thread. */
void nj__chunks_release_free_memory(struct nj__chunks *c);
