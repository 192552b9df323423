/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces of large files, shared by all who read there: a piece is read once however many bodies
 * want it, and stays for a while when nobody holds it any more. The thread that comes first reads
 * it, and who wants it meanwhile is told to come again: no thread waits for another one.
 *
 * Pieces have three sizes and begin at multiples of them. How large the next one is depends on what
 * its reader wishes and on how much is lent out already:
 *
 *   up to 1/4 of the budget lent:  256 KiB for who takes much, 32 KiB for who takes little
 *   up to 1/2:                     32 KiB for everybody
 *   beyond:                        4 KiB, and nothing when the budget is used up
 *
 * A body holds two at most. So a budget of 1 GiB carries 512 MiB / 64 KiB = 8,192 slow bodies that
 * hold two pieces of 32 KiB (most of the time they hold one: 16,384), and 65,536 more with two of
 * 4 KiB; the least budget, 128 MiB, carries 1,024 and 8,192 of them.
 */
#ifndef NJ_STORE_CHUNK_CACHE_H
#define NJ_STORE_CHUNK_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomics.h"
#include "base/hash.h"
#include "base/list.h"
#include "http/files/file_ops.h"
#include "store/chunk_arena.h"
#include "store/file_cache.h"

#define NJ__CHUNK_TINY_BYTES  4096u
/* Pieces that may be lent at once, however small the cache is. */
#define NJ__CHUNK_BYTES_LEAST (128u * 1024u * 1024u)
#define NJ__CHUNK_BUCKETS     16384u
/* What the kernel is asked to read ahead of who reads in large pieces: four of them. At 200 MB/s a
 * disk may then take 5 ms to find the next megabyte. */
#define NJ__CHUNK_AHEAD_BYTES (4u * NJ_CHUNK_BYTES)
/* Pieces that were read ahead and that no reader has asked for yet have at most one part in so many
 * of the budget. They stay until they are asked for, or for so many seconds; then the policy may
 * evict them, as others. */
#define NJ__CHUNK_AHEAD_SHARE 4u
#define NJ__CHUNK_AHEAD_S     10u

struct nj__chunks {
    const struct nj_hash_key *key;
    struct nj__file_cache *cache;
    struct nj__shared *shared; /* the rest is for whoever has its lock */
    struct nj__arena *arena;
    uint64_t lent_max;
    uint64_t n_lent_bytes;
    _Atomic uint32_t n_lent; /* read without the lock */
    struct nj_list ahead; /* read ahead, or being read, and not asked for yet; the oldest first */
    uint32_t now_s;       /* calls of nj__chunks_age() */
    struct nj_list buckets[NJ__CHUNK_BUCKETS];
    /* By bucket: pieces that were read, or could not be. Read without the lock. */
    _Atomic uint32_t n_fills[NJ__CHUNK_BUCKETS];
};

/* `key` stays the caller's, as long as there are pieces. False: no memory. */
bool nj__chunks_init(struct nj__chunks *c, const struct nj_hash_key *key, uint64_t cache_bytes,
                     struct nj__file_cache *cache);
/* When there are no pieces. Also of zeroes. */
void nj__chunks_fini(struct nj__chunks *c);

/* A piece that whoever began it has to fill, and to end: n_bytes of the file from `offset` on. All
 * n_room bytes of `out` may be written. `from`: nj__chunks_copy() does it, no read is needed. */
struct nj__fill {
    struct piece *piece; /* NULL: there is nothing to fill */
    struct piece *from;
    uint8_t *out;
    uint32_t n_room, n_bytes;
    uint64_t offset;
    uint32_t place; /* as job->place of who waits for it */
};

/*
 * A READ of large file `f`, which the job keeps. None of these has the lock. What lend() and
 * begin() find goes into job->chunk (OK). Of BUSY, another one fills the piece; then job->seen is
 * nj__chunks_fills() of job->place, which changes when the piece has been read, and seldom else. Of
 * NO_MEMORY job->seen is the count of pieces that came back (chunk_returns).
 */

/* True: the piece is here (job->result OK), or is being filled (BUSY). */
bool nj__chunks_lend(struct nj__chunks *c, struct nj__file *f, struct nj_file_job *job);
/* OK and fill->piece: fill it, and end it. */
enum nj_file_result nj__chunks_begin(struct nj__chunks *c, struct nj__file *f,
                                     struct nj_file_job *job, struct nj__fill *fill);
/* For nobody yet, the first 256 KiB from `offset` to `end` that are not here and are not being
 * read. False: there are none, or they would take memory from readers. The caller keeps the file.
 */
bool nj__chunks_begin_ahead(struct nj__chunks *c, struct nj__file *f, uint64_t offset, uint64_t end,
                            struct nj__fill *fill);
void nj__chunks_copy(const struct nj__fill *fill);
/* OK: into job->chunk. `job` is NULL for what was begun ahead. */
enum nj_file_result nj__chunks_end(struct nj__chunks *c, const struct nj__fill *fill, bool ok,
                                   struct nj_file_job *job);
/* All of it, by pread(2). */
enum nj_file_result nj__chunks_read(struct nj__chunks *c, struct nj__file *f,
                                    struct nj_file_job *job);
/* Without the lock. */
static inline uint32_t nj__chunks_fills(const struct nj__chunks *c, uint32_t place)
{
    return nj_load_relaxed(&c->n_fills[place]);
}
/* With the lock: the file is about to be freed, forget its pieces. */
void nj__chunks_forget(struct nj__file *f);
/* With the lock: free what nobody holds. */
void nj__chunks_clear(struct nj__chunks *c);
/* Without the lock, once a second: a second has passed for what was read ahead. */
void nj__chunks_age(struct nj__chunks *c);
/* Without the lock: pieces and files that nobody holds are buried; no file is closed. Cheap when
 * there is nothing. */
void nj__chunks_bury(struct nj__chunks *c);
/* Without the lock: one block gets pages before it is used. Returns 0, or a negative errno: EAGAIN,
 * enough of them have some; EINVAL, the system cannot. One thread. */
int nj__chunks_populate(struct nj__chunks *c);
/* Without the lock: memory that nobody uses, but for some, goes back to the system. One thread. */
void nj__chunks_trim(struct nj__chunks *c);

#endif
