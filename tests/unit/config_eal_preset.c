/* SPDX-License-Identifier: BSD-3-Clause */
/* --preset: the resulting EAL arguments, the errors, and ports that differ from the preset. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "config/eal_preset.h"
#include "dpdk/compat.h"
#include "support/scratch.h"

TestSuite(config_eal_preset, .init = scratch_make, .fini = scratch_remove);

static struct nj_presets presets;
static char why[512];

/* The words of a command line. */
static int expand(const char *line)
{
    static char copy[512];
    char *argv[64], *save = NULL;
    int argc = 0;

    nj_presets_free(&presets);
    why[0] = '\0';
    snprintf(copy, sizeof copy, "x %s", line);
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    return nj_presets_expand_eal_args(&presets, argc, argv, why, sizeof why);
}

/* The resulting arguments, in one line. */
static const char *becomes(const char *line)
{
    static char text[2048];
    size_t at = 0;

    if (expand(line) != 0)
        return why;
    cr_expect_str_eq(presets.argv[0], "x");
    cr_expect_null(presets.argv[presets.argc]);
    text[0] = '\0';
    for (int i = 1; i < presets.argc; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 1 ? " " : "",
                               presets.argv[i]);
    return text;
}

#define PLAIN "--no-pci --no-huge -m 512 --no-shconf "

Test(config_eal_preset, without_a_nic)
{
    cr_expect_str_eq(becomes("--preset tap"), PLAIN "--vdev=net_tap0,iface=nj0");
    cr_expect_str_eq(presets.summary, "preset tap: " PLAIN "--vdev=net_tap0,iface=nj0");
    cr_assert_eq(presets.n_devices, 1);
    cr_expect_str_eq(presets.device[0].name, "net_tap0");
    cr_expect_str_eq(presets.device[0].preset->name, "tap");
    cr_expect_str_eq(becomes("-l 0 --preset=tap,mac=fixed,iface=a -m 1024 -- --preset tap"),
                     "-l 0 --no-pci --no-huge --no-shconf --vdev=net_tap0,iface=a,mac=fixed "
                     "-m 1024 -- --preset tap");
    cr_expect_str_eq(becomes("--preset virtio_user,path=/x/y=z,queues=2"),
                     PLAIN "--vdev=virtio_user0,path=/x/y=z,queues=2");
    cr_expect_str_eq(becomes("--preset af_packet,framecnt=16,iface=veth1"),
                     PLAIN "--vdev=net_af_packet0,iface=veth1,framecnt=16");
}

Test(config_eal_preset, none)
{
    cr_expect_str_eq(becomes("-l 0,1 --vdev=net_null0"), "-l 0,1 --vdev=net_null0");
    cr_expect_null(presets.summary);
    cr_expect_eq(presets.n_devices, 0);
}

Test(config_eal_preset, pci)
{
    cr_expect_str_eq(becomes("--preset ixgbe,pci=3:0.1"), "-a 0000:03:00.1");
    cr_expect_str_eq(presets.device[0].name, "0000:03:00.1");
    cr_expect_str_eq(becomes("--preset ixgbe,pci=10000:fF:1f.7"), "-a 10000:ff:1f.7");
    cr_expect_str_eq(becomes("--preset ice,safe-mode-support=1,pci=03:00.0,pci=04:00.0"),
                     "-a 0000:03:00.0,safe-mode-support=1 -a 0000:04:00.0,safe-mode-support=1");
    cr_expect_eq(presets.n_devices, 2);
    cr_expect_str_eq(becomes("--preset igb,pci=03:00.0 --preset vfio,pci=04:00.0"),
                     "-a 0000:03:00.0 -a 0000:04:00.0");
    cr_expect_str_eq(presets.summary, "preset igb: -a 0000:03:00.0\npreset vfio: -a 0000:04:00.0");
    cr_expect_str_eq(presets.device[1].name, "0000:04:00.0");
    cr_expect_str_eq(presets.device[1].preset->name, "vfio");
}

/* The next device gets another name. Arguments that both need occur once. */
Test(config_eal_preset, several_of_one)
{
    cr_expect_str_eq(becomes("--preset tap,iface=a --preset tap,iface=b"),
                     PLAIN "--vdev=net_tap0,iface=a --vdev=net_tap1,iface=b");
    cr_expect_str_eq(presets.device[1].name, "net_tap1");
    cr_expect_str_eq(becomes("--vdev net_tap0,iface=a --no-huge -m 1024 --preset tap,iface=b"),
                     "--vdev net_tap0,iface=a --no-huge -m 1024 --no-pci --no-shconf "
                     "--vdev=net_tap1,iface=b");
    cr_expect_str_eq(becomes("--preset tap --vdev=net_tap0,iface=a"),
                     PLAIN "--vdev=net_tap1,iface=nj0 --vdev=net_tap0,iface=a");
}

/* The user's amount of memory has precedence, at any position. An option without huge pages states
 * no amount. */
Test(config_eal_preset, memory)
{
    cr_expect_str_eq(becomes("--no-huge --preset tap"),
                     "--no-huge --no-pci -m 512 --no-shconf --vdev=net_tap0,iface=nj0");
    cr_expect_str_eq(becomes("-m1024 --preset tap"),
                     "-m1024 --no-pci --no-huge --no-shconf --vdev=net_tap0,iface=nj0");
    cr_expect_str_eq(becomes("--preset tap --socket-mem=700"),
                     "--no-pci --no-huge --no-shconf --vdev=net_tap0,iface=nj0 --socket-mem=700");
}

Test(config_eal_preset, bonding)
{
    cr_expect_str_eq(becomes("--preset bonding,pci=03:00.0,mode=4,pci=03:00.1,xmit_policy=l34"),
                     "-a 0000:03:00.0 -a 0000:03:00.1 --vdev=net_bonding0,mode=4," NJ_BOND_MEMBER
                     "=0000:03:00.0," NJ_BOND_MEMBER "=0000:03:00.1,xmit_policy=l34");
    cr_expect_eq(presets.n_devices, 1, "the bond is the port, its members are none");
    cr_expect_str_eq(presets.device[0].name, "net_bonding0");
    cr_expect_str_eq(becomes("--preset bonding,member=net_tap0,pci=03:00.0,member=net_tap1"),
                     "-a 0000:03:00.0 --vdev=net_bonding0,mode=1," NJ_BOND_MEMBER
                     "=0000:03:00.0," NJ_BOND_MEMBER "=net_tap0," NJ_BOND_MEMBER "=net_tap1");
    cr_expect_str_eq(becomes("--preset bonding,member=net_tap0"),
                     "--vdev=net_bonding0,mode=1," NJ_BOND_MEMBER "=net_tap0");
}

#define LSPCI        " (lspci -D lists them)"
#define EXPECTED_PCI ": expected an address such as 0000:03:00.0 or 03:00.0" LSPCI

Test(config_eal_preset, wrong)
{
    static const struct {
        const char *line, *why;
    } lines[] = {
        {"--preset", "--preset: expected a name; --preset list shows them"},
        {"--preset=", "--preset: expected a name; --preset list shows them"},
        {"--preset -- x", "--preset: expected a name; --preset list shows them"},
        {"--preset ixbge,pci=1",
         "--preset ixbge: there is no such preset: did you mean ixgbe? (--preset list shows all)"},
        {"--preset nothing-like-it",
         "--preset nothing-like-it: there is no such preset (--preset list shows all)"},
        {"--preset ixgbe",
         "--preset ixgbe: pci= is missing: an address such as 0000:03:00.0" LSPCI},
        {"--preset bonding,mode=1",
         "--preset bonding: pci= is missing: an address such as 0000:03:00.0" LSPCI},
        {"--preset ixgbe,pci=3", "--preset ixgbe: pci=3" EXPECTED_PCI},
        {"--preset ixgbe,pci=03:20.0", "--preset ixgbe: pci=03:20.0" EXPECTED_PCI},
        {"--preset ixgbe,pci=03:00.8", "--preset ixgbe: pci=03:00.8" EXPECTED_PCI},
        {"--preset ixgbe,pci=03:00.0x", "--preset ixgbe: pci=03:00.0x" EXPECTED_PCI},
        {"--preset ixgbe,pci=03:00.", "--preset ixgbe: pci=03:00." EXPECTED_PCI},
        {"--preset ixgbe,pci=0:0:03:00.0", "--preset ixgbe: pci=0:0:03:00.0" EXPECTED_PCI},
        {"--preset ixgbe,pci=:03:00.0", "--preset ixgbe: pci=:03:00.0" EXPECTED_PCI},
        {"--preset ixgbe,pci=g3:00.0", "--preset ixgbe: pci=g3:00.0" EXPECTED_PCI},
        {"--preset ixgbe,pci=003:00.0", "--preset ixgbe: pci=003:00.0" EXPECTED_PCI},
        {"--preset tap,ifcae=a", "--preset tap: there is no key \"ifcae\": did you mean iface? "
                                 "(--preset tap,help shows all)"},
        {"--preset tap,pci=03:00.0",
         "--preset tap: there is no key \"pci\" (--preset tap,help shows all)"},
        {"--preset tap,iface", "--preset tap: expected KEY=VALUE, not \"iface\""},
        {"--preset tap,iface=", "--preset tap: expected KEY=VALUE, not \"iface=\""},
        {"--preset tap,", "--preset tap: expected KEY=VALUE, not \"\""},
        {"--preset tap,=a", "--preset tap: there is no key \"\" (--preset tap,help shows all)"},
        {"--preset tap,iface=a,iface=b", "--preset tap: iface= was given twice"},
        {"--preset igb,pci=03:00.0,pci=0000:3:0.0",
         "--preset igb: pci=0000:03:00.0 was given twice"},
        {"--preset tap --preset igb,pci=03:00.0",
         "--preset tap and --preset igb do not go together: the first has --no-pci"},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(lines); i++) {
        cr_expect_eq(expand(lines[i].line), -1, "%s", lines[i].line);
        cr_expect_str_eq(why, lines[i].why);
    }
}

Test(config_eal_preset, too_much)
{
    char line[2048];
    size_t at = (size_t)snprintf(line, sizeof line, "--preset ixgbe");

    for (unsigned i = 0; i < 33; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, ",pci=%x:0.0", i);
    cr_expect_eq(expand(line), -1);
    cr_expect_str_eq(why, "--preset ixgbe: more than 32 keys");
    memset(line, 'a', sizeof line);
    memcpy(line, "tap,iface=", 10);
    line[1500] = '\0';
    char program[] = "x", option[] = "--preset";
    char *argv[] = {program, option, line};
    nj_presets_free(&presets);
    cr_expect_eq(nj_presets_expand_eal_args(&presets, 3, argv, why, sizeof why), -1);
    cr_expect_str_eq(why, "--preset: an argument would be too long");
}

/* --- the port --------------------------------------------------------------------------------- */

static struct nj_dpdk_port port_like(const char *name, const char *driver)
{
    struct nj_dpdk_port p = {.n_rxq = 4, .n_txq = 4, .steering = NJ_STEER_ON_MISS, .rx_csum = true};

    p.tx.tcp_csum = p.tx.tso = true;
    snprintf(p.name, sizeof p.name, "%s", name);
    snprintf(p.driver, sizeof p.driver, "%s", driver);
    snprintf(p.spread, sizeof p.spread, "SPREAD");
    return p;
}

static const char *differs(const char *line, const struct nj_dpdk_port *port, uint32_t n_shards,
                           bool offload)
{
    static char text[2048];

    cr_assert_eq(expand(line), 0, "%s", why);
    nj_presets_diff_port(&presets, port, n_shards, offload, scratch, text, sizeof text);
    return text;
}

#define NIC "preset ixgbe: 0000:03:00.0: expected "
static const char ixgbe[] = "--preset ixgbe,pci=03:00.0";

Test(config_eal_preset, as_expected)
{
    struct nj_dpdk_port p = port_like("0000:03:00.0", "net_ixgbe");
    cr_expect_str_eq(differs(ixgbe, &p, 4, true), "");
    snprintf(p.name, sizeof p.name, "0000:04:00.0");
    snprintf(p.driver, sizeof p.driver, "net_other");
    cr_expect_str_eq(differs(ixgbe, &p, 4, true), "", "a port of no preset");
    p = port_like("net_tap0", "net_tap");
    p.rx_csum = p.tx.tcp_csum = p.tx.tso = false;
    p.steering = NJ_STEER_ALWAYS;
    cr_expect_str_eq(differs("--preset tap", &p, 4, true), "");
}

Test(config_eal_preset, all_differences)
{
    struct nj_dpdk_port p = port_like("0000:03:00.0", "net_e1000_em");

    p.n_txq = 1;
    p.rx_csum = p.tx.tcp_csum = p.tx.tso = false;
    p.steering = NJ_STEER_ALWAYS;
    cr_expect_str_eq(differs(ixgbe, &p, 4, true),
                     NIC "driver net_ixgbe, found net_e1000_em\n" NIC
                         "4 queues per direction for 4 lcores, found 4 receive and 1 transmit\n" NIC
                         "checksum offload for received packets, the port lacks it\n" NIC
                         "checksum offload for sent packets, the port lacks it\n" NIC
                         "TSO, the port lacks it\n" NIC "RSS by the device, found: SPREAD");
    cr_expect_str_eq(differs(ixgbe, &p, 1, false), NIC "driver net_ixgbe, found net_e1000_em");
}

Test(config_eal_preset, more_than_expected)
{
    struct nj_dpdk_port p = port_like("net_tap0", "net_tap");

    cr_expect_str_eq(
        differs("--preset tap", &p, 2, true),
        "preset tap: net_tap0: expected no checksum offload for received packets, the port has it\n"
        "preset tap: net_tap0: expected no checksum offload for sent packets, "
        "the port has it\n"
        "preset tap: net_tap0: expected no TSO, the port has it\n"
        "preset tap: net_tap0: expected no usable RSS, found: SPREAD");
}

/* Where the family leaves it open, with fewer queues than lcores, and with more lcores than the
 * family has queues. */
Test(config_eal_preset, nothing_to_say)
{
    struct nj_dpdk_port p = port_like("0000:03:00.0", "net_virtio");

    cr_expect_str_eq(differs("--preset virtio,pci=03:00.0", &p, 4, true), "");
    p.n_rxq = p.n_txq = 1;
    p.rx_csum = p.tx.tcp_csum = p.tx.tso = false;
    p.steering = NJ_STEER_ALWAYS;
    cr_expect_str_eq(differs("--preset virtio,pci=03:00.0", &p, 4, true), "");
    p = port_like("0000:03:00.0", "net_e1000_igb");
    p.n_rxq = p.n_txq = 2;
    p.steering = NJ_STEER_ALWAYS;
    cr_expect_str_eq(differs("--preset igb,pci=03:00.0", &p, 4, true), "");
}

Test(config_eal_preset, binding)
{
    struct nj_dpdk_port p = port_like("0000:03:00.0", "net_x");
    char path[256];

    snprintf(path, sizeof path, "%s/0000:03:00.0", scratch);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_expect_str_eq(differs("--preset uio,pci=03:00.0", &p, 4, true), "", "bound to nothing");
    snprintf(path, sizeof path, "%s/0000:03:00.0/driver", scratch);
    cr_assert_eq(symlink("../../../bus/pci/drivers/vfio-pci", path), 0);
    cr_expect_str_eq(
        differs("--preset uio,pci=03:00.0", &p, 4, true),
        "preset uio: 0000:03:00.0: expected it bound to uio_pci_generic igb_uio, found vfio-pci");
    cr_expect_str_eq(differs("--preset vfio,pci=03:00.0", &p, 4, true), "");
}
