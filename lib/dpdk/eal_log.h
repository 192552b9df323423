/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What DPDK prints while it starts, held back: a user wants one line that says what is wrong, not
 * the log of a library. With NJ_EAL_VERBOSE in the environment everything is shown afterwards.
 */
#ifndef NJ_DPDK_EAL_LOG_H
#define NJ_DPDK_EAL_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* stdout and stderr of the process are led into a memory file, until nj_quiet_end(). False: there
 * is none, and everything is shown. Main thread, while nobody else prints. */
bool nj_quiet_begin(void);
/* End it, if it was begun. `cause` (may be NULL) gets the line that most likely names the cause of
 * a failure, with what to do where that is known, or is left alone when there is none. */
void nj_quiet_end(char *cause, size_t cause_bytes);

/* Where stderr of the process goes, also between begin and end. Any thread, signal handlers too. */
int nj_quiet_stderr(void);

/* The line in which DPDK said, in what was held back until now, that vfio refused to map memory
 * for devices; NULL: it did not. DPDK goes on without, and the device can then neither read nor
 * write packets there. Main thread. */
const char *nj_quiet_unmapped(void);

#endif
