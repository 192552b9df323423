/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A preset: EAL arguments for a family of devices, and the expected properties of its ports. Each
 * is a file of drivers-config, of which embed.py there makes an element of a table. Its lines:
 *
 *     # comment; the first one is the title
 *     #: driver net_ixgbe            drivers of the port, or `any`
 *     #: bind vfio-pci igb_uio       kernel drivers of the PCI device, or `any`, or `none`
 *     #: queues 64                   minimum number of queues in the family
 *     #: offloads rx-checksum tso?   `?`: optional; or `none`, or `any`
 *     #: rss device                  or `rings`, or `any`
 *     #: needs pci...                keys, one of which is required; `...`: repeatable
 *     #: takes iface                 optional keys
 *     #: tried under QEMU            documentation: how it was tested
 *     #: source DPDK's guide         documentation
 *     --no-huge                      every other line is an argument; the last ones are:
 *     -a {pci}                       a device for each address
 *     --vdev=net_tap0,iface=nj0      a device whose number is the first free one
 *
 * --preset NAME,KEY=VALUE,... among the EAL arguments is expanded to the arguments of the file, and
 * the resulting port is compared with the expectations. pci=ADDRESS replaces {pci} in the file.
 * Every other key is an argument of the last device in the file: it replaces KEY=... there, or is
 * appended. Main thread.
 */
#pragma once

#include "dpdk/port.h"

#define NJ_PRESET_DEVICES_MAX 32u
#define NJ_PRESET_DEVICE_MAX  40u

enum nj_preset_offload {
    NJ_PRESET_RX_CHECKSUM = 1,
    NJ_PRESET_TX_CHECKSUM = 2,
    NJ_PRESET_TSO = 4,
};

enum nj_preset_rss { NJ_PRESET_RSS_ANY, NJ_PRESET_RSS_DEVICE, NJ_PRESET_RSS_RINGS };

struct nj_preset {
    const char *name, *text; /* both NULL after the last one; `text`: the file */
    const char *title, *driver, *bind;
    const struct nj_preset_key {
        const char *name; /* NULL after the last one */
        bool is_needed, may_repeat;
    } * keys;
    const struct nj_preset_argument {
        const char *word, *value; /* `word` NULL after the last one; `value` NULL: none */
    } * arguments, *vdev_keys;    /* all before the device; those of the virtual device */
    const char *vdev;             /* its name without the number; NULL: there is none */
    uint32_t queues;
    uint32_t offloads;          /* expected, of enum nj_preset_offload */
    uint32_t offloads_optional; /* expected or absent */
    enum nj_preset_rss rss;
};
extern const struct nj_preset nj_preset_table[];

struct nj_presets {
    int argc; /* the EAL arguments, with presets expanded */
    char **argv;
    char **words;  /* the same, which this struct owns: the EAL moves those of argv */
    char *summary; /* "preset NAME: ARGUMENTS", one line per preset; NULL without presets */
    struct nj_preset_device {
        const struct nj_preset *preset;
        char name[NJ_PRESET_DEVICE_MAX]; /* as DPDK names the port */
    } device[NJ_PRESET_DEVICES_MAX];
    uint32_t n_devices;
};

/* Expand argv[0..argc-1], up to "--". Strings are copied. Returns 0, or -1 with the reason in
 * `why`; call nj_presets_free() in both cases. */
int nj_presets_expand_eal_args(struct nj_presets *out, int argc, char **argv, char *why, size_t n);
void nj_presets_free(struct nj_presets *p);

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
