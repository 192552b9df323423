/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads by io_uring of this kernel, from a real file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/vfs.h>

#include "store/io_uring.h"
#include "support/scratch.h"

#define PIECE  NJ_CHUNK_BYTES
#define PIECES 16u
#define TAIL   1234u /* of the last piece */

static struct nj__uring *ring;
static struct nj__arena *arena;
static int fd = -1;

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset * 31 + (offset >> 12) * 7);
}

static void start(void)
{
    static uint8_t piece[PIECE];
    char path[64];

    scratch_make();
    snprintf(path, sizeof path, "%s/f", scratch);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    cr_assert_geq(fd, 0);
    for (uint64_t i = 0; i < PIECES; i++) {
        size_t n = i == PIECES - 1 ? TAIL : PIECE;
        for (size_t k = 0; k < n; k++)
            piece[k] = byte_at(i * PIECE + k);
        cr_assert_eq(pwrite(fd, piece, n, (off_t)(i * PIECE)), (ssize_t)n);
    }
    cr_assert_eq(fsync(fd), 0);
    arena = nj__arena_new(PIECES * PIECE);
    struct nj__arena_memory m = nj__arena_memory_range(arena);
    int rc = nj__uring_open(&ring, PIECES, &m);
    if (rc == -ENOSYS || rc == -EPERM)
        cr_skip("no io_uring");
    cr_assert_eq(rc, 0, "%s", strerror(-rc));
}

static void stop(void)
{
    nj__uring_close(ring);
    nj__arena_free(arena);
    close(fd);
    scratch_remove();
}

TestSuite(store_io_uring, .init = start, .fini = scratch_remove, .timeout = 60);

static void await(struct nj__uring_done *done)
{
    while (nj__uring_submit_and_reap(ring, done, 1) == 0) {
        nj__uring_mark_asleep(ring);
        nj__uring_wait(ring);
    }
}

/* All of the file, all at once. */
static void read_all(bool is_direct)
{
    uint8_t *out[PIECES];

    for (uint64_t i = 0; i < PIECES; i++) {
        out[i] = nj__arena_take(arena, PIECE);
        struct nj__uring_read r = {fd, is_direct, out[i], PIECE, i * PIECE};
        nj__uring_read(ring, &r, &out[i]);
    }
    for (uint64_t n = 0; n < PIECES; n++) {
        struct nj__uring_done done;
        await(&done);
        uint64_t i = (uint64_t)((uint8_t **)done.user - out);
        cr_expect_eq(done.result, i == PIECES - 1 ? (int)TAIL : (int)PIECE, "%lu: %d", i,
                     done.result);
        for (int k = 0; k < done.result; k++)
            cr_assert_eq(out[i][k], byte_at(i * PIECE + (uint64_t)k));
    }
}

Test(store_io_uring, through_the_page_cache)
{
    read_all(false);
    stop();
}

Test(store_io_uring, past_the_page_cache)
{
    if (fcntl(fd, F_SETFL, O_DIRECT) < 0)
        cr_skip("this file system has no O_DIRECT");
    read_all(true);
    stop();
}

/* A thread that polls between other work gets the end of a read without waiting for it. */
Test(store_io_uring, seen_without_waiting)
{
    uint8_t *out = nj__arena_take(arena, PIECE);
    struct nj__uring_read r = {fd, false, out, PIECE, 0};
    struct nj__uring_done done;

    nj__uring_read(ring, &r, out);
    while (nj__uring_submit_and_reap(ring, &done, 1) == 0)
        sched_yield();
    cr_expect_eq(done.result, PIECE);
    stop();
}

Test(store_io_uring, errors_are_told)
{
    uint8_t *out = nj__arena_take(arena, PIECE);
    struct nj__uring_read r = {1 << 20, false, out, PIECE, 0};
    struct nj__uring_done done;

    nj__uring_read(ring, &r, out);
    await(&done);
    cr_expect_eq(done.user, out);
    cr_expect_eq(done.result, -EBADF);
    stop();
}

/* --- waking ----------------------------------------------------------------------------------- */

#define ROUNDS 20000u

static _Atomic uint32_t n_left, n_seen;

static void *leave_and_wake(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&n_left, 1);
        nj__uring_wake(ring);
        while (i % 3 == 0 && atomic_load(&n_seen) <= i)
            sched_yield();
    }
    return NULL;
}

/* No wake-up is lost: else this hangs. */
Test(store_io_uring, wake)
{
    struct nj__uring_done done;
    pthread_t thread;

    pthread_create(&thread, NULL, leave_and_wake, NULL);
    while (atomic_load(&n_seen) < ROUNDS) {
        cr_assert_eq(nj__uring_submit_and_reap(ring, &done, 1), 0);
        if (atomic_load(&n_left) == atomic_load(&n_seen)) {
            nj__uring_mark_asleep(ring);
            if (atomic_load(&n_left) == atomic_load(&n_seen))
                nj__uring_wait(ring);
        }
        atomic_store(&n_seen, atomic_load(&n_left));
    }
    pthread_join(thread, NULL);
    stop();
}
