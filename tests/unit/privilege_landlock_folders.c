/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process may open with the rules of a configuration. tests/e2e/test_privileges.py has the
 * folders of deployments. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "privilege/landlock_folders.h"
#include "support/scratch.h"

TestSuite(privilege_landlock_folders, .init = scratch_make, .fini = scratch_remove);

/* The errno of open(2) for writing in a process with these rules; 0: it may. */
static int error_to_write(int rules, const char *path)
{
    int status;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            syscall(SYS_landlock_restrict_self, rules, 0) != 0)
            _exit(255);
        _exit(open(path, O_WRONLY | O_CLOEXEC) < 0 ? errno : 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) != 255);
    return WEXITSTATUS(status);
}

/* Its links lead through /proc, which has files of all processes. */
Test(privilege_landlock_folders, the_access_log_on_standard_output)
{
    static const char *const outputs[] = {"/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"};
    static const char *const others[] = {"/proc/self/comm", "/dev/full"};
    struct nj_needed_file log = {.need = NJ_NEED_LOG};
    char path[128];
    int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    snprintf(path, sizeof path, "%s/log", scratch);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
    for (size_t i = 0; i < NJ_ARRAY_LEN(outputs); i++) {
        log.path = outputs[i];
        int rules = nj__landlock_open(&log, 1);
        if (rules < 0)
            cr_skip("no Landlock");
        cr_expect_eq(error_to_write(rules, outputs[i]), 0, "%s", outputs[i]);
        for (size_t k = 0; k < NJ_ARRAY_LEN(others); k++)
            cr_expect_eq(error_to_write(rules, others[k]), EACCES, "%s, with %s", others[k],
                         outputs[i]);
        close(rules);
    }
    dup2(saved, STDOUT_FILENO);
}
