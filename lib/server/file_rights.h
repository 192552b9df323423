/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With whose rights files are looked at. A server that drives a NIC runs as root mostly, who may
 * read every file; what is served should be what everybody may read.
 */
#ifndef NJ_SERVER_FILE_RIGHTS_H
#define NJ_SERVER_FILE_RIGHTS_H

#include <stdbool.h>

/* If we are root: this thread looks at files as NJ_NOBODY from now on, in no group; the kernel
 * checks each file and each folder on the way there. Descriptors that are open stay so, other
 * threads are as they were. A side effect: the process makes no core dumps any more (Linux,
 * fs.suid_dumpable). False when the system refuses: then nothing has changed. */
bool nj_file_rights_of_others(void);

/* As root and with that: could anybody be served from this folder? */
bool nj_file_rights_reach(const char *folder);

#define NJ_NOBODY 65534u /* the user and group of that name everywhere */

#endif
