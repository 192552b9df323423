/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A preset: EAL arguments for a family of devices, and the expected properties of its ports. Each
 * is a file of drivers-config, compiled in. Its lines:
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
 *     -a {pci}                       every other line is an argument
 */
#pragma once

#include "base/str.h"

struct nj_preset_file {
    const char *name, *text; /* both NULL after the last file */
};
extern const struct nj_preset_file nj_preset_files[];

enum nj_preset_offload {
    NJ_PRESET_RX_CHECKSUM = 1,
    NJ_PRESET_TX_CHECKSUM = 2,
    NJ_PRESET_TSO = 4,
    NJ_PRESET_OFFLOADS = 7, /* all */
};

enum nj_preset_rss { NJ_PRESET_RSS_ANY, NJ_PRESET_RSS_DEVICE, NJ_PRESET_RSS_RINGS };

/* A parsed file. Strings point into its text. */
struct nj_preset {
    const struct nj_preset_file *file;
    struct nj_str title, driver, bind, needs, takes, tried, source;
    uint32_t queues;
    uint32_t offloads;          /* expected, of enum nj_preset_offload */
    uint32_t offloads_optional; /* expected or absent */
    enum nj_preset_rss rss;
};

/* Returns 0, or -1 with "NAME.args:LINE: what is wrong" in `why`. Pure. */
int nj_preset_parse(const struct nj_preset_file *file, struct nj_preset *out, char *why, size_t n);

/* The file of that name, or NULL. */
const struct nj_preset_file *nj_preset_find(struct nj_str name);
/* The most similar name, or NULL. */
const char *nj_preset_closest(struct nj_str name);

/* The next line of arguments after *at, which starts as the text of the file. False: none left. */
bool nj_preset_next_arg_line(const char **at, struct nj_str *line);
/* Is it one of these words? */
bool nj_preset_word_list_contains(struct nj_str words, struct nj_str word);

enum nj_preset_key_kind { NJ_KEY_UNKNOWN, NJ_KEY_ONCE, NJ_KEY_REPEATABLE };
/* May the key be given never, once or several times? */
enum nj_preset_key_kind nj_preset_key_allowed_times(const struct nj_preset *p, struct nj_str key);
/* Write the most similar key of the file to `near`. False: none. */
bool nj_preset_closest_key(const struct nj_preset *p, struct nj_str key, char *near, size_t n);
