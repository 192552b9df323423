/* SPDX-License-Identifier: BSD-3-Clause */
/* Landlock for one test, which is a process of its own: as a server has it when it serves. */
#pragma once

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "support/scratch.h"

#define LANDLOCK_READS  (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_WRITES (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG)

static inline bool landlock_allow(int rules, const char *folder, __u64 rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights,
                                              .parent_fd = open(folder, O_PATH | O_CLOEXEC)};
    bool ok = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;

    close(rule.parent_fd);
    return ok;
}

/* From here on this thread reads files of the scratch folder only, and writes those in `folder`.
 * False: the kernel has no Landlock. */
static inline bool landlock_enter(const char *folder)
{
    const struct landlock_ruleset_attr attr = {.handled_access_fs =
                                                   LANDLOCK_READS | LANDLOCK_WRITES};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);

    if (rules < 0)
        return false;
    bool ok = landlock_allow(rules, scratch, LANDLOCK_READS) &&
              landlock_allow(rules, folder, LANDLOCK_WRITES) &&
              prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return ok;
}
