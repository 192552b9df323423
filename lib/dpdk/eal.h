/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment abstraction layer: started with the user's own arguments, unchanged. */
#ifndef NJ_DPDK_EAL_H
#define NJ_DPDK_EAL_H

#include <stddef.h>

/*
 * Start the EAL with argv[0..argc-1]. What it and its drivers print meanwhile is held back: when
 * all goes well the warnings appear on stderr, when it fails the one line that tells why is in
 * `why`. Returns 0, or -1. Main thread, once per process.
 */
int nj_eal_init(int argc, char **argv, char *why, size_t why_bytes);

/* Release everything. The run-time folder of the process goes at exit, if it is empty then. */
void nj_eal_fini(void);

/* The name of a tap device that the arguments would create although an interface has that name
 * already (the kernel would attach us to somebody else's device), or NULL. */
const char *nj_eal_tap_taken(int argc, char **argv);

#endif
