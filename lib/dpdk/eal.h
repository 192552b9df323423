/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's environment abstraction layer (EAL), initialised with the user's arguments unchanged. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Initialises the EAL with argv[0..argc-1]. Output of the EAL and its drivers is captured
 * (eal_output_capture.h). Returns 0, or -1 with the line that names the cause in `why`. The calling
 * thread becomes the main lcore's thread and is pinned to its CPUs. Once per process.
 */
int nj_eal_init(int argc, char **argv, char *why, size_t why_bytes);

/* The error that the EAL or a driver printed about a device that nj_eal_init() left out; "" when
 * there was none. Explains a missing port. After nj_eal_init(). */
const char *nj_eal_skipped_device_error(void);

/* The value of `-x VALUE`, `-xVALUE`, `--long VALUE` or `--long=VALUE` at argv[*i], or NULL. `*i`
 * is advanced to the last word of the option. */
const char *nj_eal_option_value(int argc, char **argv, int *i, const char *name);

/* Finds a PCI device of the arguments (-a) that DPDK cannot use. True: the device does not exist or
 * is not bound to a driver such as vfio-pci; `why` has the reason and a remedy. The EAL skips such
 * devices silently. `sysfs` is /sys/bus/pci/devices, or a folder of a test. */
bool nj_eal_find_unbound(const char *sysfs, int argc, char **argv, char *why, size_t why_bytes);

/* Is the EAL initialised (by nj_eal_init() or the program) and usable? Any thread. */
bool nj_eal_is_up(void);

/* Cleans up the EAL if nj_eal_init() initialised it. The EAL cannot be initialised again in this
 * process. Its run-time folder is removed at exit, if it is empty then. */
void nj_eal_fini(void);

/* Give the EAL's run-time folder (of --file-prefix) to a user whom the process is about to become,
 * so that it removes its files at exit. The folder itself stays if its parent does not belong to
 * that user. Returns 0, or -1 with the reason in `why`. Once per process, as root. */
int nj_eal_give_runtime_dir(uid_t uid, gid_t gid, char *why, size_t why_bytes);

/* The name of a tap device in the arguments that already exists as an interface, or NULL. The
 * kernel would attach the driver to that foreign device. */
const char *nj_eal_find_existing_tap(int argc, char **argv);

/* If `arg` names a net_tap device whose interface exists, writes it to `out` with mac= the address
 * of that interface. False: it does not, or `out` is too small. */
bool nj_eal_tap_with_mac_of_interface(const char *arg, char *out, size_t n);

/* From here on nj_eal_fini() leaves the devices as they are, for another process that uses them:
 * net_tap would set the interface down. Main thread. */
void nj_eal_keep_devices(void);
