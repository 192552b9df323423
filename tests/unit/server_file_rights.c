/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread may read that has the rights of others. As root; else there is nothing to take. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "server/file_rights.h"
#include "support/scratch.h"

TestSuite(server_file_rights, .init = scratch_make, .fini = scratch_remove);

static const char *const names[] = {"own", "group", "all", "open/all", "closed/all"};
static const mode_t modes[] = {0600, 0640, 0644, 0644, 0644};
enum { N = 5 };

static const char *at(const char *name)
{
    static _Thread_local char path[96];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

/* 0 for each that could be read, or why not. */
static void read_all(int err[N])
{
    for (unsigned i = 0; i < N; i++) {
        int fd = open(at(names[i]), O_RDONLY);
        err[i] = fd < 0 ? errno : 0;
        if (fd >= 0)
            close(fd);
    }
}

static void *as_others(void *err)
{
    if (!nj_file_rights_of_others())
        return NULL;
    read_all(err);
    return err;
}

Test(server_file_rights, of_others)
{
    int there[N], here[N];
    bool root = geteuid() == 0;
    pthread_t thread;
    void *done;

    cr_assert_eq(chmod(scratch, 0711) | mkdir(at("open"), 0755), 0);
    cr_assert_eq(mkdir(at("closed"), 0750), 0);
    for (unsigned i = 0; i < N; i++) {
        int fd = open(at(names[i]), O_WRONLY | O_CREAT, 0600);
        cr_assert(fd >= 0 && fchmod(fd, modes[i]) == 0 && close(fd) == 0);
    }
    cr_assert_eq(chmod(at("open"), 0711) | chmod(at("closed"), 0750), 0);
    cr_assert_eq(pthread_create(&thread, NULL, as_others, there), 0);
    cr_assert_eq(pthread_join(thread, &done), 0);
    cr_assert_not_null(done, "the system refused");
    read_all(here);
    for (unsigned i = 0; i < N; i++) {
        bool all = i == 2 || i == 3;
        cr_expect_eq(there[i], all || !root ? 0 : EACCES, "%s: %s", names[i], strerror(there[i]));
        cr_expect_eq(here[i], 0, "other threads are as they were: %s", names[i]);
    }
}

Test(server_file_rights, reach)
{
    bool root = geteuid() == 0;

    cr_assert_eq(chmod(scratch, 0700), 0);
    cr_expect_eq(nj_file_rights_reach(scratch), !root);
    cr_assert_eq(chmod(scratch, 0711), 0);
    cr_expect(nj_file_rights_reach(scratch));
    cr_expect(nj_file_rights_reach("/nowhere"), "that is told elsewhere");
}
