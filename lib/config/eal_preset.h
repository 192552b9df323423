/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expands --preset NAME,KEY=VALUE,... among the EAL arguments to the arguments of the file NAME
 * (eal_preset_file.h), and compares the resulting port with the expectations of the file. Main
 * thread.
 *
 * pci=ADDRESS replaces {pci} in the file. Every other key is an argument of the last device in the
 * file: it replaces KEY=... there, or is appended.
 */
#pragma once

#include "config/eal_preset_file.h"
#include "dpdk/port.h"

#define NJ_PRESET_DEVICES_MAX 32u
#define NJ_PRESET_DEVICE_MAX  40u

struct nj_presets {
    int argc; /* the EAL arguments, with presets expanded */
    char **argv;
    char *const *user; /* the original arguments, while nj_presets_expand_eal_args() runs */
    int n_user;
    char **owned; /* strings of argv that this struct owns */
    uint32_t n_owned;
    char *file_text; /* has words of argv that are in the file of the configuration, or NULL */
    char *summary;   /* see nj_presets_summary() */
    struct nj_preset_device {
        struct nj_preset preset;
        char name[NJ_PRESET_DEVICE_MAX]; /* as DPDK names the port */
    } device[NJ_PRESET_DEVICES_MAX];
    uint32_t n_devices;
};

/* Expand argv[0..argc-1], up to "--". Strings outside presets are not copied and remain the
 * caller's. Returns 0, or -1 with the reason in `why`; call nj_presets_free() in both cases. */
int nj_presets_expand_eal_args(struct nj_presets *out, int argc, char **argv, char *why, size_t n);
void nj_presets_free(struct nj_presets *p);

/* "preset NAME: ARGUMENTS", one line per preset, or NULL without presets. */
const char *nj_presets_summary(const struct nj_presets *p);

/* Check that each device of the presets has a port. Returns 0, or -1 with the first missing one in
 * `why`. Call after rte_eal_init(). */
int nj_presets_check_ports_exist(const struct nj_presets *p, char *why, size_t n);

/* Write the differences between a port and its preset to `text`, one per line; "" if there are none
 * or the port has no preset. `offload`: offloads are enabled. `sysfs`: /sys/bus/pci/devices, or a
 * substitute in tests. */
void nj_presets_diff_port(const struct nj_presets *p, const struct nj_dpdk_port *port,
                          uint32_t n_shards, bool offload, const char *sysfs, char *text, size_t n);
/* The same, logged as warnings. */
void nj_presets_warn_port_diff(const struct nj_presets *p, const struct nj_dpdk_port *port,
                               uint32_t n_shards, bool offload);
