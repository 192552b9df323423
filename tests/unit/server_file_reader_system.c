/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader and the system: what it leaves to other threads. */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "reader_rig.h"

TestSuite(server_file_reader_system, .init = start_world, .fini = scratch_remove, .timeout = 60);

static _Atomic uint32_t n_frees; /* close(2) and munmap(2) by it */

static void count_free(void)
{
    char name[16];
    if (pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
        strcmp(name, "nj-reader") == 0)
        atomic_fetch_add(&n_frees, 1);
}

int close(int fd)
{
    count_free();
    return (int)syscall(SYS_close, fd);
}

int munmap(void *p, size_t n_bytes)
{
    count_free();
    return (int)syscall(SYS_munmap, p, n_bytes);
}

/* Whoever put a file last, and whoever found that: the reader leaves close(2) and munmap(2), which
 * may block, to others. */
Test(server_file_reader_system, closes_no_file)
{
    sparse_file(&w.b, "whole", MIB);
    cr_assert_eq(open_job(&w.b, "whole"), NJ_FILE_OK);
    struct nj_object *whole = w.b.job.object, *large = open_large(&w.b, "large");
    int fd = nj_container_of(large, struct nj__file, object)->fd;

    cr_assert(whole->bytes && fd >= 0);
    cache(1);
    cr_assert_eq(unlink(at(&w.b, "whole")), 0);
    cr_assert_eq(unlink(at(&w.b, "large")), 0);
    cr_expect_eq(open_job(&w.b, "whole"), NJ_FILE_ABSENT);
    cr_expect_eq(open_job(&w.b, "large"), NJ_FILE_ABSENT);
    atomic_store(&n_frees, 0);
    nj_ref_put(&whole->ref);
    nj_ref_put(&large->ref);
    read_cached(1);
    read_cached(1); /* the reader has looked at the dead after the first one */
    cr_expect_eq(stats(&w.b)->whole_bytes, 0, "they were buried");
    cr_expect_eq(n_frees, 0);
    cr_expect_neq(fcntl(fd, F_GETFD), -1);
    nj_file_store_bury(w.b.store);
    cr_expect_eq(fcntl(fd, F_GETFD), -1);
    end_world();
}
