/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With whose rights a thread looks at files. A server that drives a NIC runs as root mostly, who
 * may read every file; what is served should be what everybody may read. The thread that looks up
 * the name of a file also runs handlers, which have the rights of the process: so a thread changes
 * between the two, by system calls that concern this thread alone.
 *
 * Each function is about the rights of the calling thread alone. What they are it asks the system:
 * the process may change those of all its threads at any time (a handler that calls seteuid() or
 * setgroups()), and such a thread has the rights that the process gave it. Descriptors that are
 * open stay so: reading from one needs no rights.
 */
#ifndef NJ_STORE_FILE_RIGHTS_H
#define NJ_STORE_FILE_RIGHTS_H

#include <stdbool.h>

#define NJ_NOBODY 65534u /* the user and group of that name everywhere */

/* To be called before a name is looked up. If the process is root's, the thread looks at files as
 * user and group NJ_NOBODY, in no other group, until nj_file_rights_use_own(), or until the process
 * changes it: the kernel checks each file and each folder on the way there. In a process that is
 * another user's at this moment nothing changes. False when the system refuses: then the thread has
 * the rights it had, and must not look.
 * A side effect: the process makes no core dumps any more (Linux, fs.suid_dumpable). */
bool nj_file_rights_use_others(void);
/* To be called after it: was it looked up with these rights? Once the process has changed them they
 * do not come back by themselves. */
bool nj_file_rights_are_others(void);

/* To be called before anything but a file job runs on a thread. The thread has the rights of the
 * process again: user and groups, and root's capabilities with them. The groups are those that the
 * process has set last. Where it may set none any more, the thread stays in that of NJ_NOBODY. */
void nj_file_rights_use_own(void);

/* As root and with the rights of others: could anybody be served from this folder? */
bool nj_file_rights_reach(const char *folder);

#endif
