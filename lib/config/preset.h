/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --preset NAME,KEY=VALUE,... among the EAL's arguments: replaced by those of the file NAME
 * (preset_file.h), and what the file expects compared with the port that comes of it.
 *
 * pci=ADDRESS takes the place of {pci} in the file. Every other key is an argument of the device,
 * the last one that the file names: it replaces KEY=... there, or is added.
 */
#ifndef NJ_CONFIG_PRESET_H
#define NJ_CONFIG_PRESET_H

#include "config/preset_file.h"
#include "dpdk/port.h"

#define NJ_PRESET_DEVICES_MAX 32u
#define NJ_PRESET_DEVICE_MAX  40u

struct nj_presets {
    int argc; /* the EAL's arguments, with presets in place */
    char **argv;
    char *const *user; /* as they were given, while nj_presets_expand() runs */
    int n_user;
    char **ours; /* strings of argv that are to be freed */
    uint32_t n_ours;
    char *said; /* what to say of it, see nj_presets_said() */
    struct nj_preset_device {
        struct nj_preset preset;
        char name[NJ_PRESET_DEVICE_MAX]; /* as DPDK names the port */
    } device[NJ_PRESET_DEVICES_MAX];
    uint32_t n_devices;
};

/* Of argv[0..argc-1], up to "--". Strings without a preset in them stay the caller's. Returns 0, or
 * -1 with the reason in `why`; nj_presets_free() is to be called in both cases. */
int nj_presets_expand(struct nj_presets *out, int argc, char **argv, char *why, size_t n);
void nj_presets_free(struct nj_presets *p);

/* "preset NAME: ARGUMENTS", a line for each preset, or NULL when there is none. */
const char *nj_presets_said(const struct nj_presets *p);

/* Does each device of the presets have a port? Else -1, with the first that has none in `why`.
 * After the EAL's start. */
int nj_presets_check_ports(const struct nj_presets *p, char *why, size_t n);

/* What a port that was opened by a preset has otherwise than the file expects: a line for each, in
 * `text`; "" for none, and for ports of no preset. `offload`: was the device to have work of ours?
 * `sysfs` is /sys/bus/pci/devices, or a test's. */
void nj_presets_differences(const struct nj_presets *p, const struct nj_dpdk_port *port,
                            uint32_t n_shards, bool offload, const char *sysfs, char *text,
                            size_t n);
/* The same for the server: these lines are warnings. */
void nj_presets_compare(const struct nj_presets *p, const struct nj_dpdk_port *port,
                        uint32_t n_shards, bool offload);

#endif
