/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File access rights of a thread. A server that drives a NIC usually runs as root, which may read
 * every file; but only files that everybody may read should be served. Worker threads open files
 * and also run handlers with the rights of the process, so they switch between both, by setfsuid(2)
 * and system calls that affect only the calling thread.
 *
 * Each function affects the calling thread alone. It queries the current rights from the kernel,
 * since the process may change those of all threads at any time (a handler that calls seteuid() or
 * setgroups()). Open descriptors are not affected.
 */
#pragma once

#include <stdbool.h>

#define NJ_NOBODY 65534u /* the user and group of that name everywhere */

/* Call before a path lookup. In a process of root, the thread accesses files as user and group
 * NJ_NOBODY without supplementary groups, until nj_file_rights_restore() or a change by the
 * process. In a process of another user nothing changes. Returns false if the kernel refuses: the
 * rights are unchanged, and the caller must not open files. Side effect: the process dumps no core
 * any more (Linux, fs.suid_dumpable). */
bool nj_file_rights_drop(void);
/* Call after the lookup: did the thread keep these rights? A change by the process is permanent. */
bool nj_file_rights_are_dropped(void);

/* Restore the rights of the process: user, groups and root's capabilities. Call before a thread
 * runs anything but a file job. The groups are those that the process set last. If the process may
 * not set groups any more, the thread stays in group NJ_NOBODY. */
void nj_file_rights_restore(void);

/* Could files below `folder` be opened with the dropped rights? True if the process is not root. */
bool nj_file_rights_can_reach(const char *folder);
