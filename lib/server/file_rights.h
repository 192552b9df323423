/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With whose rights a thread looks at files. A server that drives a NIC runs as root mostly, who
 * may read every file; what is served should be what everybody may read. The thread that looks up
 * the name of a file also runs handlers, which have the rights of the process: so a thread changes
 * between the two, by system calls that concern this thread alone.
 *
 * Each function changes the rights of the calling thread, and does system calls only when they
 * really change. Descriptors that are open stay so: reading from one needs no rights.
 */
#ifndef NJ_SERVER_FILE_RIGHTS_H
#define NJ_SERVER_FILE_RIGHTS_H

#include <stdbool.h>

#define NJ_NOBODY 65534u /* the user and group of that name everywhere */

/* To be called before a name is looked up. If the process is root's, the thread looks at files as
 * user and group NJ_NOBODY, in no other group, until nj_file_rights_use_own(): the kernel checks
 * each file and each folder on the way there. In a process of another user nothing changes. False
 * when the system refuses: then the thread has the rights it had, and must not look.
 * A side effect: the process makes no core dumps any more (Linux, fs.suid_dumpable). */
bool nj_file_rights_use_others(void);

/* To be called before anything but a file job runs on a thread. The thread has the rights of the
 * process again: user and groups, and root's capabilities with them. The groups are those that the
 * process had when the first thread gave its own up. */
void nj_file_rights_use_own(void);

/* As root and with the rights of others: could anybody be served from this folder? */
bool nj_file_rights_reach(const char *folder);

#endif
