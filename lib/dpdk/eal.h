/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment abstraction layer: started with the user's own arguments, unchanged. */
#ifndef NJ_DPDK_EAL_H
#define NJ_DPDK_EAL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Start the EAL with argv[0..argc-1]. What it and its drivers print meanwhile is held back; when it
 * fails the one line that tells why is in `why`. Returns 0, or -1. The calling thread becomes that
 * of the main lcore, and is pinned to its CPUs. Once per process.
 */
int nj_eal_init(int argc, char **argv, char *why, size_t why_bytes);

/* What the EAL or a driver said of a device that it could not use, while nj_eal_init() went on
 * without it: for who finds no port. "" when there was nothing. After nj_eal_init(). */
const char *nj_eal_complaint(void);

/* The value of `-x VALUE`, `-xVALUE`, `--long VALUE` or `--long=VALUE` at argv[*i], or NULL. `*i`
 * moves on to the last word of it. */
const char *nj_eal_value(int argc, char **argv, int *i, const char *name);

/* Why can a PCI device that the arguments name with -a not be DPDK's? True, with the reason and
 * what to do in `why`, when it is not there or not bound to a driver that gives it away; the EAL
 * passes over such a device without a word. `sysfs` is /sys/bus/pci/devices, or a test's. */
bool nj_eal_not_bound(const char *sysfs, int argc, char **argv, char *why, size_t why_bytes);

/* Has nj_eal_init() or the program initialised the EAL, and may it be used? Any thread. */
bool nj_eal_is_up(void);

/* Release everything that nj_eal_init() made; an EAL that the program initialised is left alone.
 * The EAL cannot be initialised again in this process. The run-time folder of the process goes at
 * exit, if it is empty then. */
void nj_eal_fini(void);

/* The name of a tap device that the arguments would create although an interface has that name
 * already (the kernel would attach us to somebody else's device), or NULL. */
const char *nj_eal_tap_taken(int argc, char **argv);

#endif
