/* SPDX-License-Identifier: BSD-3-Clause */
/* A file client whose jobs a test runs one by one, and the client's state while a thread is stuck.
 */
#include "lane_rig.h"

TestSuite(store_file_client_stuck, .init = start_stuck, .fini = scratch_remove, .timeout = 60);

static void ask(struct shard *sh, struct nj_file_job *job, struct nj_file_object *o,
                uint64_t offset)
{
    *job = read_of(o, offset);
    job->owner = sh;
    cr_assert(sh->port.submit(sh->port.ctx, job));
}

/* Poll until no job completes; each completed job has succeeded. */
static uint32_t take_all(struct shard *sh)
{
    struct nj_file_job *jobs[8];
    uint32_t all = 0, n, n_none = 0;

    while (n_none < 20) {
        n = sh->port.poll(sh->port.ctx, jobs, 8);
        for (uint32_t i = 0; i < n; i++) {
            cr_assert_eq(jobs[i]->result, NJ_FILE_OK);
            put(jobs[i]->chunk);
        }
        all += n;
        n_none = n > 0 ? 0 : n_none + 1;
    }
    return all;
}

/* A job completes before any thread checks for deleted files, because the disk may not answer. */
Test(store_file_client_stuck, a_job_does_not_look_for_deleted_files)
{
    static struct nj_file_job job;
    struct bench b;
    struct shard sh;
    begin(&b, 64 * MIB);
    begin_shard(&sh, &b);
    struct nj_file_object *o = open_large(&b, "f");
    read_and_put(&b, o, 0);
    atomic_fetch_add(&coarse_ahead_s, 17);
    count("fstat");
    ask(&sh, &job, o, 0);
    cr_expect_eq(take_all(&sh), 1);
    cr_expect_eq(n_calls, 0);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(n_calls, 1);
    nj_ref_put(&o->ref);
    end(&b);
}

/* A large file of a new store, with a thread that is stuck in the read of the first chunk. */
static struct nj_file_object *begin_stuck_read(struct bench *b, struct shard *sh,
                                               struct other *other)
{
    begin(b, 64 * MIB);
    begin_shard(sh, b);
    struct nj_file_object *o = open_large(b, "f");
    *other = (struct other){.job = read_of(o, 0)};
    begin_other(other, b, "pread", false);
    return o;
}

/* Many READs wait for one chunk, while other chunks of the file are read. Only the first READ is
 * retried, after the chunk was read. Two chunks may be counted as one, but rarely. */
Test(store_file_client_stuck, a_lane_waits_for_its_piece)
{
    enum { N = 500, FILLS = 50 };
    static struct nj_file_job jobs[N];
    struct bench b;
    struct shard sh;
    struct other other;
    struct nj_file_object *o = begin_stuck_read(&b, &sh, &other);
    for (uint32_t i = 0; i < N; i++) {
        ask(&sh, &jobs[i], o, i);
        cr_assert_eq(take_all(&sh), 0);
    }
    cr_expect_eq(stats(&b)->waits_for_read, N);
    for (uint32_t i = 1; i <= FILLS; i++) {
        read_and_put(&b, o, i * SMALL);
        nj_file_store_free_unreferenced(b.store);
        for (uint32_t k = 0; k < 2; k++) /* the lane examines some jobs in each poll */
            cr_assert_eq(take_all(&sh), 0);
    }
    cr_expect_leq(stats(&b)->waits_for_read, 2 * N, "each fill retried all waiting READs");
    end_other(&other, false);
    cr_expect_eq(take_all(&sh), N);
    put(other.job.chunk);
    nj_ref_put(&o->ref);
    end(&b);
}

/* Two disks are stuck. READs of chunks on these disks wait, in any order; all other READs complete.
 */
Test(store_file_client_stuck, a_lane_keeps_what_is_being_read)
{
    enum { N = 40 };
    static struct nj_file_job jobs[N], more;
    struct bench b;
    struct shard sh;
    begin(&b, 64 * MIB);
    begin_shard(&sh, &b);
    struct nj_file_object *o[2] = {open_large(&b, "f"), open_large(&b, "g")};
    struct other other[2] = {{.job = read_of(o[0], 0)}, {.job = read_of(o[1], 0)}};
    begin_other(&other[0], &b, "pread", false);
    begin_other(&other[1], &b, "pread", false);
    cr_expect_not(sh.port.needs_polling(sh.port.ctx));
    for (uint32_t i = 0; i < N; i++)
        ask(&sh, &jobs[i], o[i % 2], i);
    cr_expect_eq(take_all(&sh), 0);
    cr_expect(sh.port.needs_polling(sh.port.ctx), "it has to be polled");
    cr_expect_eq(stats(&b)->waits_for_read, N, "no job is retried without a change");
    ask(&sh, &more, o[0], MIB);
    cr_expect_eq(take_all(&sh), 1);

    end_other(&other[1], false);
    sh.direct.is_full = true;
    cr_expect_eq(take_all(&sh), 0);
    sh.direct.is_full = false;
    cr_expect_eq(take_all(&sh), N / 2);
    for (uint32_t i = 0; i < N; i += 4) /* f: every second READ loses its owner */
        jobs[i].owner = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < 100; i++) {
        struct nj_file_job *back;
        if (sh.port.poll(sh.port.ctx, &back, 1) == 0)
            continue;
        cr_expect(!back->owner && back->result == NJ_FILE_BUSY && !back->chunk);
        n++;
    }
    cr_expect_eq(n, N / 4);
    end_other(&other[0], false);
    cr_expect_eq(take_all(&sh), N / 4);
    cr_expect_not(sh.port.needs_polling(sh.port.ctx));
    cr_expect_eq(sh.lane.busy.last, &sh.lane.busy.first);
    cr_expect_eq(stats(&b)->reads, 3);
    for (uint32_t i = 0; i < 2; i++) {
        put(other[i].job.chunk);
        nj_ref_put(&o[i]->ref);
    }
    end(&b);
}

/* A displaced READ is submitted again as soon as the queue has room, even if other READs wait for
 * memory or for a stuck thread. */
Test(store_file_client_stuck, a_displaced_read)
{
    static struct nj_file_job stuck, poor, moved[3];
    struct nj_file_job *back;
    struct bench b;
    struct shard sh;
    struct other other;
    struct nj_file_object *o = begin_stuck_read(&b, &sh, &other);
    ask(&sh, &stuck, o, 0);
    sh.direct.by_hand = true;
    ask(&sh, &poor, o, 0);
    poor.result = NJ_FILE_NO_MEMORY; /* that is, it ran, and there was none */
    poor.seen = stats(&b)->chunk_returns;
    sh.direct.done[sh.direct.n++] = sh.direct.in[--sh.direct.n_in];
    cr_assert_eq(take_all(&sh), 0);
    cr_expect_eq(sh.lane.memory.first, &poor);
    cr_expect_eq(sh.lane.busy.first, &stuck);

    for (uint32_t i = 0; i < 3; i++) {
        ask(&sh, &moved[i], o, MIB);
        direct_displace(&sh.direct);
    }
    moved[1].owner = NULL;
    cr_expect(sh.port.needs_polling(sh.port.ctx));
    sh.direct.is_full = true;
    cr_expect_eq(sh.port.poll(sh.port.ctx, &back, 1), 0);
    cr_expect_eq(sh.direct.n_in, 0);
    sh.direct.is_full = false;
    cr_expect_eq(sh.port.poll(sh.port.ctx, &back, 1), 1, "it has no owner");
    cr_expect_eq(back, &moved[1]);
    cr_expect_eq(sh.port.poll(sh.port.ctx, &back, 1), 0);
    cr_assert_eq(sh.direct.n_in, 2, "both were submitted again");
    cr_expect_null(sh.lane.displaced.first);
    while (sh.direct.n_in > 0)
        direct_run_next(&sh.direct);
    cr_expect_eq(take_all(&sh), 2);

    end_other(&other, false);
    cr_expect_eq(take_all(&sh), 0);
    cr_assert_eq(sh.direct.n_in, 2, "memory came back, and the chunk was read");
    cr_expect_not(sh.port.needs_polling(sh.port.ctx));
    while (sh.direct.n_in > 0)
        direct_run_next(&sh.direct);
    cr_expect_eq(take_all(&sh), 2);
    put(other.job.chunk);
    nj_ref_put(&o->ref);
    end(&b);
}
