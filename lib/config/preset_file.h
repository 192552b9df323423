/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A preset: EAL arguments for a family of devices, and what to expect of such a port. Each is a
 * file of drivers-config, compiled in. Its lines:
 *
 *     # for people; the first one is the title
 *     #: driver net_ixgbe            of the port, any of these, or `any`
 *     #: bind vfio-pci igb_uio       the kernel's driver of the PCI device, `any`, or `none`
 * without
 *     #: queues 64                   that each device of the family has at least
 *     #: offloads rx-checksum tso?   with `?`: perhaps; or `none`, or `any`
 *     #: rss device                  or `rings`, or `any`
 *     #: needs pci...                keys, one of which must be given; with `...`: several times
 *     #: takes iface                 keys that may be given
 *     #: tried under QEMU            how, for people
 *     #: source DPDK's guide         for people
 *     -a {pci}                       all others are arguments
 */
#ifndef NJ_CONFIG_PRESET_FILE_H
#define NJ_CONFIG_PRESET_FILE_H

#include "base/field.h"

struct nj_preset_file {
    const char *name, *text; /* NULL: behind the last */
};
extern const struct nj_preset_file nj_preset_files[];

enum nj_preset_offload {
    NJ_PRESET_RX_CHECKSUM = 1,
    NJ_PRESET_TX_CHECKSUM = 2,
    NJ_PRESET_TSO = 4,
    NJ_PRESET_OFFLOADS = 7, /* all */
};

enum nj_preset_rss { NJ_PRESET_RSS_ANY, NJ_PRESET_RSS_DEVICE, NJ_PRESET_RSS_RINGS };

/* A file that was read; strings are in its text. */
struct nj_preset {
    const struct nj_preset_file *file;
    struct nj_str title, driver, bind, needs, takes, tried, source;
    uint32_t queues;
    uint32_t offloads;          /* expected, of enum nj_preset_offload */
    uint32_t offloads_optional; /* that may be there or not */
    enum nj_preset_rss rss;
};

/* Returns 0, or -1 with "NAME.args:LINE: what is wrong" in `why`. Pure. */
int nj_preset_read(const struct nj_preset_file *file, struct nj_preset *out, char *why, size_t n);

/* The file of that name, or NULL. */
const struct nj_preset_file *nj_preset_find(struct nj_str name);
/* The name most like it, or NULL. */
const char *nj_preset_closest(struct nj_str name);

/* The next line of arguments behind *at, which begins as the text of the file. False: no more. */
bool nj_preset_next_line(const char **at, struct nj_str *line);
/* The next word between blanks of *rest, which shrinks. False: no more. */
bool nj_preset_next_word(struct nj_str *rest, struct nj_str *word);
/* Is it one of these words? */
bool nj_preset_has_word(struct nj_str words, struct nj_str word);

enum nj_preset_key_kind { NJ_KEY_UNKNOWN, NJ_KEY_ONCE, NJ_KEY_REPEATABLE };
/* How often may the key be given? */
enum nj_preset_key_kind nj_preset_key_kind(const struct nj_preset *p, struct nj_str key);
/* The key of the file that is most like it, in `near`, or false. */
bool nj_preset_closest_key(const struct nj_preset *p, struct nj_str key, char *near, size_t n);

#endif
