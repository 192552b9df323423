/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks that were read ahead: how long they stay, their limit, and which readers evict them. */
#include "store/chunk_cache.h"
#include "store_rig.h"

TestSuite(store_file_ahead, .fini = scratch_remove);

#define PIECE    NJ_CHUNK_BYTES
#define N_PIECES (2 * NJ_OBJECT_IN_MEMORY_MAX / PIECE) /* of a file of open_large() */

static struct nj__file *file_of(struct nj_file_object *o)
{
    return nj_container_of(o, struct nj__file, object);
}

/* The next piece from `offset` on. False: none was read. */
static bool read_ahead(struct bench *b, struct nj_file_object *o, uint64_t offset)
{
    struct nj__chunks *c = nj__file_store_chunks(b->store);
    struct nj__chunk_fill fill;

    if (!nj__chunks_begin_readahead(c, file_of(o), offset, o->size_bytes, &fill))
        return false;
    cr_assert_geq(fill.offset, offset);
    memset(fill.out, 'a', fill.n_bytes);
    nj__chunks_end_fill(c, &fill, true, NULL);
    nj_file_store_free_unreferenced(b->store);
    return true;
}

static void read_one(struct bench *b, struct nj_file_object *o, uint64_t piece)
{
    cr_assert_eq(read_job(b, o, piece * PIECE, PIECE), NJ_FILE_OK);
    nj_ref_put(&b->job.chunk->ref);
    nj_file_store_free_unreferenced(b->store);
}

/* Read each chunk of `n_files` files of 128 chunks once. */
static void crawl(struct bench *b, char first, uint32_t n_files)
{
    for (uint32_t i = 0; i < n_files; i++) {
        char name[3] = {'x', (char)(first + (char)i)};
        struct nj_file_object *o = open_large(b, name);
        for (uint32_t k = 0; k < N_PIECES; k++)
            read_one(b, o, k);
        nj_ref_put(&o->ref);
    }
}

static uint64_t n_reads(struct bench *b)
{
    return stats(b)->reads;
}

/* A chunk that was read ahead may be evicted after its first use, like any other chunk, and not
 * before. */
Test(store_file_ahead, stays_until_it_is_asked_for)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    for (uint32_t i = 0; i < 8; i++)
        cr_assert(read_ahead(&b, o, 0));
    cr_expect_eq(stats(&b)->ahead_bytes, 8 * PIECE);
    crawl(&b, 'a', 5);
    uint64_t n = n_reads(&b);
    for (uint32_t i = 0; i < 8; i++)
        read_one(&b, o, i);
    cr_expect_eq(n_reads(&b), n, "all are still here");
    cr_expect_eq(stats(&b)->ahead_bytes, 0);
    crawl(&b, 'a', 5);
    n = n_reads(&b);
    for (uint32_t i = 0; i < 8; i++)
        read_one(&b, o, i);
    cr_expect_eq(n_reads(&b), n + 8,
                 "the first read of a chunk that was read ahead does not count as a use");
    cr_expect_eq(stats(&b)->unused_bytes, 0);
    nj_ref_put(&o->ref);
    end(&b);
}

/* The reader, for which the chunk was read ahead, does not return. */
Test(store_file_ahead, does_not_stay_for_ever)
{
    struct bench b;
    begin(&b, 64 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    cr_assert(read_ahead(&b, o, 0));
    for (uint32_t i = 0; i < NJ__CHUNK_AHEAD_S; i++)
        nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->ahead_bytes, PIECE);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->ahead_bytes, 0);
    cr_expect_eq(stats(&b)->unused_bytes, 0, "it is still here");
    crawl(&b, 'a', 5);
    cr_expect_eq(stats(&b)->unused_bytes, PIECE);
    nj_ref_put(&o->ref);
    end(&b);
}

/* Chunks read ahead beyond the budget are evicted. */
Test(store_file_ahead, leaves_the_budget_as_it_is)
{
    struct bench b;
    begin(&b, 4 * PIECE);
    struct nj_file_object *o = open_large(&b, "f");
    for (uint32_t i = 0; i < 8; i++)
        cr_assert(read_ahead(&b, o, 0));
    cr_expect_eq(stats(&b)->chunk_bytes, 8 * PIECE);
    for (uint32_t i = 0; i <= NJ__CHUNK_AHEAD_S; i++)
        nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(stats(&b)->chunk_bytes, 4 * PIECE);
    nj_ref_put(&o->ref);
    end(&b);
}

/* Read-ahead uses at most a quarter of the budget, and stops while readers hold more than a
 * quarter. */
Test(store_file_ahead, has_a_part_of_the_budget)
{
    struct bench b;
    uint32_t n = 0;
    begin(&b, 128 * MIB);
    struct nj_file_object *o = open_large(&b, "f"), *p = open_large(&b, "g");
    while (read_ahead(&b, o, 0))
        n++;
    cr_expect_eq(n, N_PIECES, "the file has no more");
    cr_expect_eq(stats(&b)->ahead_bytes, 32 * MIB);
    cr_expect_not(read_ahead(&b, p, 0));
    read_one(&b, o, 7);
    cr_expect(read_ahead(&b, p, 0), "there is room for one again");
    cr_expect_not(read_ahead(&b, p, 0));
    nj_ref_put(&o->ref);
    nj_ref_put(&p->ref);
    end(&b);
}

/* Unused chunks are evicted for readers, which may use all of the budget. */
Test(store_file_ahead, readers_come_first)
{
    enum { MOST = 20000 };
    static struct nj_file_chunk *held[MOST];
    struct bench b;
    uint32_t n = 0;

    begin(&b, 128 * MIB);
    struct nj_file_object *o = open_large(&b, "f");
    while (read_ahead(&b, o, 0))
        ;
    cr_assert_eq(stats(&b)->ahead_bytes, 32 * MIB);
    nj_ref_put(&o->ref);
    sparse_file(&b, "g", 8192ll * MIB);
    cr_assert_eq(open_job(&b, "g"), NJ_FILE_OK);
    o = b.job.object;
    while (n < MOST && read_job(&b, o, (uint64_t)n * PIECE, PIECE) == NJ_FILE_OK) {
        held[n++] = b.job.chunk;
        cr_assert_leq(stats(&b)->chunk_bytes, 128 * MIB);
    }
    cr_expect_eq(b.job.result, NJ_FILE_NO_MEMORY);
    cr_expect_eq(stats(&b)->chunk_lent_bytes, 128 * MIB);
    cr_expect_eq(stats(&b)->ahead_bytes, 0);
    cr_expect_eq(stats(&b)->unused_bytes, 32 * MIB);
    while (n > 0)
        nj_ref_put(&held[--n]->ref);
    nj_ref_put(&o->ref);
    end(&b);
}
