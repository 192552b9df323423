/* SPDX-License-Identifier: BSD-3-Clause */
/* The table that drivers-config/embed.py makes of the files of drivers-config. */
#include <criterion/criterion.h>
#include <string.h>

#include "config/eal_preset.h"

static const struct nj_preset *find(const char *name)
{
    const struct nj_preset *p = nj_preset_table;

    while (p->name && strcmp(p->name, name) != 0)
        p++;
    cr_assert(p->name, "%s", name);
    return p;
}

static const struct nj_preset_key *find_key(const struct nj_preset *p, const char *name)
{
    const struct nj_preset_key *k = p->keys;

    while (k->name && strcmp(k->name, name) != 0)
        k++;
    return k->name ? k : NULL;
}

Test(config_eal_preset_table, each_file)
{
    uint32_t n = 0;

    for (const struct nj_preset *p = nj_preset_table; p->name; p++, n++) {
        const struct nj_preset_key *pci = find_key(p, "pci");
        bool has_variable = strstr(p->text, "{pci}");
        cr_expect_eq(has_variable, pci && pci->may_repeat && pci->is_needed, "%s", p->name);
        cr_expect_eq(has_variable, strcmp(p->bind, "none") != 0, "%s", p->name);
        cr_expect_lt(strlen(p->title), 90, "%s", p->name);
        cr_expect(p->queues > 0 && *p->driver && (pci || p->vdev), "%s", p->name);
        cr_expect_eq(p->offloads & p->offloads_optional, 0, "%s", p->name);
    }
    cr_expect_geq(n, 18);
}

Test(config_eal_preset_table, facts)
{
    const struct nj_preset *p = find("bonding"), *tap = find("tap"), *virtio = find("virtio"),
                           *ixgbe = find("ixgbe");

    cr_expect_str_eq(p->title, "Several NICs as one port: net_bonding.");
    cr_expect_str_eq(p->driver, "net_bonding");
    cr_expect_str_eq(p->bind, "any");
    cr_expect_eq(p->rss, NJ_PRESET_RSS_ANY);
    cr_expect(find_key(p, "member")->is_needed && find_key(p, "member")->may_repeat);
    cr_expect(!find_key(p, "mode")->is_needed && !find_key(p, "mode")->may_repeat);
    cr_expect_null(find_key(p, "pci..."));
    cr_expect_eq(p->offloads, 0);
    cr_expect_eq(p->offloads_optional,
                 NJ_PRESET_RX_CHECKSUM | NJ_PRESET_TX_CHECKSUM | NJ_PRESET_TSO, "any");
    cr_expect_eq(virtio->offloads_optional, p->offloads_optional, "each with a ?");
    cr_expect(tap->offloads == 0 && tap->offloads_optional == 0, "none");
    cr_expect_eq(tap->rss, NJ_PRESET_RSS_RINGS);
    cr_expect_eq(ixgbe->rss, NJ_PRESET_RSS_DEVICE);
    cr_expect_eq(ixgbe->offloads, p->offloads_optional);
    cr_expect_str_eq(tap->arguments[2].word, "-m");
    cr_expect_str_eq(tap->arguments[2].value, "512");
    cr_expect_null(tap->arguments[1].value);
    cr_expect_null(tap->arguments[4].word);
    cr_expect_str_eq(tap->vdev, "net_tap");
    cr_expect_str_eq(tap->vdev_keys[0].word, "iface");
    cr_expect_str_eq(tap->vdev_keys[0].value, "nj0");
    cr_expect_null(ixgbe->vdev);
}
