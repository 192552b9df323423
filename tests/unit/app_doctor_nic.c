/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: NICs, and the facts by which doctor excludes them. */
#include <criterion/criterion.h>
#include <nightjar/server.h>

#include "doctor_rig.h"

TestSuite(app_doctor_nic, .init = good_host, .fini = scratch_remove);

#define FREE "0000:04:00.0"

#define BIND(driver)                                                                               \
    "echo " driver " | tee /sys/bus/pci/devices/" FREE "/driver_override\n"                        \
    "echo " FREE " | tee /sys/bus/pci/devices/" FREE "/driver/unbind\n"                            \
    "echo " FREE " | tee /sys/bus/pci/drivers_probe\n"                                             \
    "# at each boot (package driverctl): driverctl set-override " FREE " " driver "\n"

/* In place of the NIC that is bound. */
static void put_free(int group)
{
    take_away("/sys/bus/pci/devices/%s", BOUND);
    put_device(FREE, "0x020000", "ixgbe", group);
    put_interface(FREE, "ens4");
}

/* No command does anything to this device. */
static void expect_left_alone(const char *address)
{
    char of_it[64];

    snprintf(of_it, sizeof of_it, "devices/%s/", address);
    cr_expect_null(strstr(said, of_it), "%s", said);
}

static void no_iommu(void)
{
    take_away("/sys/kernel/iommu_groups");
    take_away("/sys/class/iommu");
    take_away("/sys/firmware");
}

/* --- binding -------------------------------------------------------------------------------- */

Test(app_doctor_nic, one_to_bind)
{
    put_free(12);
    cr_expect_eq(doctor(), 1);
    says("nic/" FREE, "warning", "IOMMU group 12: DPDK cannot use it yet", BIND("vfio-pci"));
    says("nics", "error", "0 of 2 NICs", "# bind one: see its line\n");
    expect_left_alone(KEPT);
    /* Beside a ready NIC it may keep its driver. */
    put_device(BOUND, "0x020000", "vfio-pci", 13);
    put("", "/dev/vfio/13");
    put_mode(0666, "/dev/vfio/13");
    cr_expect_eq(doctor(), 0, "%s", said);
    says("nic/" FREE, "ok", "not used by DPDK", NULL);
}

Test(app_doctor_nic, one_that_is_bound_until_the_next_boot)
{
    doctor();
    says("nic/" BOUND "/boot", "ok", "also bound to vfio-pci at the next boot", NULL);
    put("uio_pci_generic", "/etc/driverctl.d/pci-" BOUND);
    cr_expect_eq(doctor(), 0);
    says("nic/" BOUND "/boot", "warning", "bound to vfio-pci only until the next boot",
         "# apt-get install -y driverctl\n# driverctl set-override " BOUND " vfio-pci\n");
    take_away("/etc/driverctl.d");
    put("pci 0000:05:00.0 vfio-pci\n#pci " BOUND " vfio-pci", "/etc/dpdk/interfaces");
    doctor();
    says("nic/" BOUND "/boot", "warning", "only until the next boot", "*");
    put("pci " BOUND " vfio-pci", "/etc/dpdk/interfaces");
    doctor();
    says("nic/" BOUND "/boot", "ok", "at the next boot", NULL);
}

Test(app_doctor_nic, one_without_a_driver_and_with_a_name)
{
    put_free(12);
    take_away("/sys/bus/pci/devices/%s/driver", FREE);
    take_away("/sys/bus/pci/devices/%s/net", FREE);
    put("# list\n8085  Other\n\t10fb  Wrong\n8086  Intel Corporation\n\t10fb  82599ES\n"
        "\t\t8086 0003  Sub\n8087  Third\n\t10fb  Wrong",
        "/usr/share/misc/pci.ids");
    doctor();
    says("nic/" FREE, "warning",
         "Intel Corporation 82599ES (8086:10fb), no driver, NUMA node 0, IOMMU group 12: DPDK "
         "cannot use it yet",
         "echo vfio-pci | tee /sys/bus/pci/devices/" FREE "/driver_override\n"
         "echo " FREE " | tee /sys/bus/pci/drivers_probe\n"
         "# at each boot (package driverctl): driverctl set-override " FREE " vfio-pci\n");
}

Test(app_doctor_nic, one_with_routes)
{
    put_free(12);
    put("Iface\tDestination\tGateway\n"
        "eno1\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "ens4\t00000000\t00000000\t0001\t0\t0\t0\t000000C0\t0\t0\t0", /* 0.0.0.0/2 */
        "/proc/net/route");
    doctor();
    says("nic/" FREE, "warning", "interface ens4",
         "# ens4 has kernel routes, which this removes\n" BIND("vfio-pci"));
}

Test(app_doctor_nic, modules_that_are_not_loaded)
{
    put_free(12);
    take_away("/sys/module/vfio_pci");
    doctor();
    says("module/vfio-pci", "error", "not loaded",
         "modprobe vfio-pci\n"
         "echo vfio-pci | tee -a /etc/modules-load.d/nightjar.conf\n");
    put("kernel/drivers/vfio/pci/vfio-pci-core.ko.xz:", "/lib/modules/6.1.0-test/modules.dep");
    doctor();
    says("module/vfio-pci", "error", "not part of kernel 6.1.0-test", "*");
    says("nic/" FREE, "warning", "no DPDK driver can use it", NULL);
    put("kernel/drivers/vfio/pci/vfio-pci.ko", "/lib/modules/6.1.0-test/modules.builtin");
    doctor();
    says("module/vfio-pci", "ok", "loaded", NULL);
}

/* --- the default route --------------------------------------------------------------------------
 */

Test(app_doctor_nic, only_one_and_it_carries_the_default_route)
{
    take_away("/sys/bus/pci/devices/%s", BOUND);
    cr_expect_eq(doctor(), 1);
    says("nic/" KEPT, "ok", "carries the default route (eno1), never bind it", NULL);
    says("nics", "error", "0 of 1 NICs", "# without a NIC: drivers-config/README.md\n");
    expect_left_alone(KEPT);
    put("63", "/sys/bus/pci/devices/%s/sriov_totalvfs", KEPT);
    doctor();
    says("nics", "error", "0 of 1 NICs",
         "# a virtual function of it (SR-IOV; untested):\n"
         "echo 1 | tee /sys/bus/pci/devices/" KEPT "/sriov_numvfs\n"
         "# without a NIC: drivers-config/README.md\n");
}

/* A VLAN on a bond of two NICs, below a bridge. */
Test(app_doctor_nic, the_default_route_of_an_upper_interface)
{
    take_away("/sys/bus/pci/devices/%s", BOUND);
    put_device(FREE, "0x020000", "ixgbe", 14);
    put_interface(FREE, "ens4");
    put_routes("br0");
    put_link("../bond0.7", "/sys/class/net/br0/lower_bond0.7");
    put_link("../bond0", "/sys/class/net/bond0.7/lower_bond0");
    put_link("../eno1", "/sys/class/net/bond0/lower_eno1");
    put_link("../ens4", "/sys/class/net/bond0/lower_ens4");
    put_link("../br0", "/sys/class/net/ens4/lower_br0"); /* no kernel makes a circle, and it ends */
    cr_expect_eq(doctor(), 1);
    says("nic/" KEPT, "ok", "carries the default route (br0), never bind it", NULL);
    says("nic/" FREE, "ok", "carries the default route (br0), never bind it", NULL);
    says("default-route", "ok", "br0, bond0.7 (below br0), bond0 (below br0), eno1 (below br0)",
         NULL);
    expect_left_alone(KEPT);
    expect_left_alone(FREE);
}

/* The interface has a route of its own, which is seen first. */
Test(app_doctor_nic, the_default_route_weighs_more_than_others)
{
    put_free(12);
    put("Iface\tDestination\tGateway\n"
        "ens4\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
        "bond0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
        "/proc/net/route");
    put_link("../ens4", "/sys/class/net/bond0/lower_ens4");
    doctor();
    says("nic/" FREE, "ok", "carries the default route (bond0)", NULL);
    expect_left_alone(FREE);
}

Test(app_doctor_nic, the_default_route_of_ipv6)
{
#define ZEROS "00000000000000000000000000000000"
    put_free(12);
    put("Iface\tDestination\tGateway", "/proc/net/route");
    put(ZEROS " 00 " ZEROS " 00 fe800000000000000000000000000001 00000400 2 0 00000003     ens4\n"
              "fe800000000000000000000000000000 40 " ZEROS " 00 " ZEROS
              " 00000100 2 0 00000001     eno1\n"
              "20010db8000000000000000000000002 80 " ZEROS " 00 " ZEROS
              " 00000000 3 0 80200001     eno1\n" ZEROS " 00 " ZEROS " 00 " ZEROS
              " ffffffff 1 0 00200200       eno1",
        "/proc/net/ipv6_route");
    cr_expect_eq(doctor(), 1);
    says("default-route", "ok", "ens4", NULL);
    says("nic/" FREE, "ok", "carries the default route (ens4)", NULL);
    says("nic/" KEPT, "warning", "DPDK cannot use it yet", "*");
    expect_left_alone(FREE);
    cr_expect_null(strstr(said, "# eno1 has routes")); /* of its link, and to itself */
}

/* Interfaces without a link to a NIC: a tunnel, a port of Open vSwitch. */
Test(app_doctor_nic, the_default_route_of_an_interface_without_a_nic)
{
    put_free(12);
    put_routes("br-ex");
    put("1500", "/sys/class/net/br-ex/mtu");
    put_link("../eno1", "/sys/class/net/ovs-system/lower_eno1");
    cr_expect_eq(doctor(), 1);
    says("default-route", "warning", "br-ex: the NIC of br-ex is not known", NULL);
    says("nic/" KEPT, "ok", "may carry the default route (br-ex), whose NIC is not known", NULL);
    says("nic/" FREE, "ok", "may carry the default route (br-ex)", NULL);
    expect_left_alone(KEPT);
    expect_left_alone(FREE);
    put("0", "/sys/class/net/ens4/carrier");
    doctor();
    says("nic/" FREE, "warning", "DPDK cannot use it yet", BIND("vfio-pci"));
    expect_left_alone(KEPT);
    put_folder(0755, "/sys/class/net/br-ex/device"); /* such as one of USB */
    doctor();
    says("default-route", "ok", "br-ex", NULL);
    says("nic/" KEPT, "warning", "DPDK cannot use it yet", "*");
}

/* A NIC with another default route mentions that in its line. */
Test(app_doctor_nic, default_routes_with_and_without_a_nic)
{
    put_free(12);
    put("Iface\tDestination\tGateway\n"
        "ppp0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eno1\t00000000\t010200C0\t0003\t0\t0\t9\t00000000\t0\t0\t0",
        "/proc/net/route");
    doctor();
    says("default-route", "warning", "ppp0, eno1: the NIC of ppp0", NULL);
    says("nic/" KEPT, "ok", "carries the default route (eno1), never", NULL);
    says("nic/" FREE, "ok", "may carry the default route (ppp0)", NULL);
}

Test(app_doctor_nic, default_routes_that_lead_nowhere)
{
    put_free(12);
    put("Iface\tDestination\tGateway\n"
        "*\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n"
        "*\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n"
        "lo\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0",
        "/proc/net/route");
    doctor();
    says("default-route", "ok", "none", NULL);
    says("nic/" FREE, "warning", "DPDK cannot use it yet", BIND("vfio-pci"));
}

/* The two routes that a VPN adds instead of the default route. */
Test(app_doctor_nic, the_default_route_in_halves)
{
    static const char *const halves4[] = {"00000000", "00000080"};
    static const char *const parts6[] = {"0 01", "8 01", "2 03"};
    char text[256];

    put_free(12);
    for (size_t i = 0; i < NJ_ARRAY_LEN(halves4); i++) {
        snprintf(text, sizeof text, "ens4\t%s\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0",
                 halves4[i]);
        put(text, "/proc/net/route");
        doctor();
        says("nic/" FREE, "ok", "carries the default route (ens4)", NULL);
    }
    put("Iface", "/proc/net/route");
    for (size_t i = 0; i < NJ_ARRAY_LEN(parts6); i++) {
        snprintf(text, sizeof text, "%c%031d %s %032d 00 %032d 00000400 2 0 00000003 ens4",
                 parts6[i][0], 0, parts6[i] + 2, 0, 0);
        put(text, "/proc/net/ipv6_route");
        doctor();
        says("nic/" FREE, "ok", "carries the default route (ens4)", NULL);
    }
}

Test(app_doctor_nic, routes_that_cannot_be_read)
{
    put_free(12);
    take_away("/proc/net/route");
    cr_expect_eq(doctor(), 1);
    says("default-route", "warning", "cannot be read", NULL);
    says("nic/" FREE, "ok", "may carry the default route", NULL);
    expect_left_alone(FREE);
}

/* Its interface is that of a virtio device, which the PCI device carries. */
Test(app_doctor_nic, interface_of_virtio)
{
    put_free(12);
    take_away("/sys/bus/pci/devices/%s/net", FREE);
    put_folder(0755, "/sys/bus/pci/devices/%s/virtio3/net/ens4", FREE);
    put_routes("ens4");
    doctor();
    says("nic/" FREE, "ok", "interface ens4, link of 10000 Mbit/s", NULL);
    says("nic/" FREE, "ok", "carries the default route (ens4)", NULL);
}

/* --- IOMMU ---------------------------------------------------------------------------------- */

Test(app_doctor_nic, no_iommu)
{
    put_free(-1);
    no_iommu();
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "root"}), 1);
    says("iommu", "warning", "uio_pci_generic can, by root", "*");
    cr_expect_null(line_of("interrupt-remapping", NULL, 0));
    says("module/uio_pci_generic", "error", "not loaded",
         "modprobe uio_pci_generic\n"
         "echo uio_pci_generic | tee -a /etc/modules-load.d/nightjar.conf\n");
    says("nic/" FREE, "warning", "DPDK cannot use it yet", BIND("uio_pci_generic"));
    says("vfio-noiommu", "ok", "this kernel does not have it", NULL);
    put_driver(FREE, "uio_pci_generic");
    put_folder(0755, "/sys/bus/pci/drivers/uio_pci_generic");
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "root"}), 0, "%s", said);
    says("nic/" FREE, "ok", "ready", NULL);
    cr_expect_eq(doctor(), 1);
    says("user", "error", "nj: without an IOMMU only root can use a NIC", "*");
}

Test(app_doctor_nic, no_iommu_and_no_module)
{
    put_free(-1);
    no_iommu();
    put("", "/lib/modules/6.1.0-test/modules.dep");
    cr_expect_eq(doctor(), 1);
    says("iommu", "error", "off or missing", "*");
    says("nic/" FREE, "warning", "no DPDK driver can use it", NULL);
    put("N", "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
    doctor();
    says("vfio-noiommu", "error", "off",
         "modprobe vfio enable_unsafe_noiommu_mode=1\n"
         "echo 1 | tee /sys/module/vfio/parameters/enable_unsafe_noiommu_mode\n# (untested)\n");
    put("Y", "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
    doctor();
    says("nic/" FREE, "warning", "DPDK cannot use it yet", BIND("vfio-pci"));
}

/* vfio-pci has it, and cannot work. */
Test(app_doctor_nic, one_bound_to_vfio_without_an_iommu)
{
    put_free(12);
    put_driver(FREE, "vfio-pci");
    take_away("/sys/kernel/iommu_groups");
    cr_expect_eq(doctor(), 1);
    says("nic/" FREE, "error", "bound to vfio-pci, which has no IOMMU here",
         BIND("uio_pci_generic"));
    cr_expect_null(strstr(said, "noiommu-12"));
    put("", "/lib/modules/6.1.0-test/modules.dep");
    doctor();
    says(
        "nic/" FREE, "error", "bound to vfio-pci",
        "# once the kernel has the module (see module/uio_pci_generic):\n" BIND("uio_pci_generic"));
    put("N", "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
    doctor();
    says("vfio-noiommu", "error", "off", "*");
    says("nic/" FREE, "error", "bound to vfio-pci", BIND("vfio-pci"));
    cr_expect_null(strstr(said, "noiommu-12"));
    put("Y", "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
    doctor();
    says("permission/dev/vfio/noiommu-12", "error", "missing", NULL);
}

Test(app_doctor_nic, iommu_that_can_be_switched_on)
{
    no_iommu();
    doctor();
    says("iommu", "warning", "",
         "# the firmware reports no IOMMU (no table DMAR or IVRS): switch "
         "VT-d or AMD-Vi on in its setup, or in the hypervisor (untested)\n");
    says("nic/" BOUND, "error", "bound to vfio-pci, which has no IOMMU here", "*");
    put("", "/sys/firmware/acpi/tables/DMAR");
    doctor();
    says("iommu", "warning", "",
         "# add to the kernel's command line, and reboot: intel_iommu=on iommu=pt\n# (untested)\n");
    put("GRUB_CMDLINE_LINUX=\"\"", "/etc/default/grub");
    doctor();
    says("iommu", "warning", "",
         "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX intel_iommu=on iommu=pt\"' | tee "
         "/etc/default/grub.d/nightjar-iommu.cfg\nupdate-grub\n# and reboot\n# (untested)\n");
    put("quiet intel_iommu=on", "/proc/cmdline");
    doctor();
    says("iommu", "warning", "",
         "# the kernel does not use the IOMMU that the firmware reports; why (untested):\n"
         "dmesg | grep -i -e DMAR -e AMD-Vi\n");
    take_away("/sys/firmware/acpi/tables/DMAR");
    put("", "/sys/firmware/acpi/tables/IVRS");
    put("quiet amd_iommu=off", "/proc/cmdline");
    doctor();
    says("iommu", "warning", "",
         "# remove amd_iommu=off from the kernel's command line, and reboot (untested)\n");
}

Test(app_doctor_nic, interrupts_are_not_remapped)
{
    put(" 24:  1  0  IO-APIC   5-edge  ACPI:Ged", "/proc/interrupts");
    cr_expect_eq(doctor(), 1);
    says("interrupt-remapping", "error", "allow_unsafe_interrupts is set",
         "# better: switch it on in the firmware's setup (VT-d, x2APIC), or in the hypervisor "
         "(untested)\n"
         "echo options vfio_iommu_type1 allow_unsafe_interrupts=1 | tee "
         "/etc/modprobe.d/nightjar-vfio.conf\n"
         "echo 1 | tee /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts\n");
    put("Y", "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts");
    cr_expect_eq(doctor(), 0);
    says("interrupt-remapping", "ok", "off, and vfio works without it", NULL);
    take_away("/sys/module/vfio_iommu_type1");
    put("quiet intremap=off", "/proc/cmdline");
    cr_expect_eq(doctor(), 1);
    says("interrupt-remapping", "error", "off",
         "# better: remove intremap=off from the kernel's command line (untested)\n"
         "echo options vfio_iommu_type1 allow_unsafe_interrupts=1 | tee "
         "/etc/modprobe.d/nightjar-vfio.conf\n"
         "modprobe vfio_iommu_type1\n");
    put(" 24:  1  0  ITS-PCI-MSI-0000:03:00.0   0-edge  eth0", "/proc/interrupts");
    cr_expect_eq(doctor(), 0);
}

/* A NIC that is bound, and another function of the card in its group. */
Test(app_doctor_nic, group_that_is_not_viable)
{
    put_device("0000:03:00.1", "0x020000", "ixgbe", 12);
    put_device("0000:00:01.0", "0x060400", "pcieport", 12); /* bridges do not count */
    cr_expect_eq(doctor(), 1);
    says("nic/" BOUND, "error", "0000:03:00.1 of its IOMMU group is bound to ixgbe",
         "echo 0000:03:00.1 | tee /sys/bus/pci/devices/0000:03:00.1/driver/unbind\n");
    expect_left_alone(KEPT);
    put_driver("0000:03:00.1", "vfio-pci");
    cr_expect_eq(doctor(), 0, "%s", said);
}

/* Another device of the group may hold the host's root disk. */
Test(app_doctor_nic, group_with_a_disk)
{
    put_device("0000:00:1f.2", "0x010601", "ahci", 12);
    cr_expect_eq(doctor(), 1);
    says("nic/" BOUND, "error", "0000:00:1f.2 of its IOMMU group is bound to ahci",
         "# 0000:00:1f.2 of its IOMMU group is bound to ahci, which must stay: put one of the two "
         "into another slot (untested)\n");
    put_free(12);
    doctor();
    says("nic/" FREE, "ok", "cannot be bound: 0000:00:1f.2 of its IOMMU group is bound to ahci",
         NULL);
    expect_left_alone("0000:00:1f.2");
    expect_left_alone(FREE);
}

Test(app_doctor_nic, group_with_the_default_route)
{
    take_away("/sys/bus/pci/devices/%s", KEPT);
    put_device(KEPT, "0x020000", "e1000e", 12);
    put_interface(KEPT, "eno1");
    put_free(12);
    cr_expect_eq(doctor(), 1);
    says("nic/" FREE, "ok", "cannot be bound: " KEPT " of its IOMMU group is bound to e1000e",
         NULL);
    expect_left_alone(KEPT);
    expect_left_alone(FREE);
}

/* Commands that do not fit are left out one by one. */
Test(app_doctor_nic, a_very_large_group)
{
    char advice[9000];

    for (int i = 0; i < 100; i++) {
        char address[32];
        snprintf(address, sizeof address, "0000:05:%02x.%d", i / 8, i % 8);
        put_device(address, "0x020000", "ixgbe", 12);
    }
    cr_expect_eq(doctor(), 1);
    cr_assert_not_null(line_of("nic/" BOUND, advice, sizeof advice));
    const char *last = "# more lines of the same kind did not fit\n";
    size_t n = strlen(advice), n_last = strlen(last);
    cr_assert_gt(n, n_last);
    cr_expect_str_eq(advice + n - n_last, last);
    cr_expect_eq(strncmp(advice + n - n_last - 15, "/driver/unbind\n", 15), 0);
}

Test(app_doctor_nic, drivers_that_do_not_fit_the_iommu)
{
    put_driver(BOUND, "uio_pci_generic");
    cr_expect_eq(doctor(), 1);
    says("nic/" BOUND, "error", "the IOMMU is on and refuses its DMA", "*");
    put("identity", "/sys/kernel/iommu_groups/12/type");
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "root"}), 0, "%s", said);
    take_away("/sys/bus/pci/devices/%s/iommu_group", BOUND);
    put_driver(BOUND, "vfio-pci");
    cr_expect_eq(doctor(), 1);
    says("nic/" BOUND, "error", "in no IOMMU group", "*");
}

/* mlx5 stays with its kernel driver, which has to show verbs. */
Test(app_doctor_nic, one_that_is_shared)
{
    put_free(12);
    put_driver(FREE, "mlx5_core");
    cr_expect_eq(doctor(), 1);
    says("nic/" FREE, "error", "modules for verbs are not loaded",
         "modprobe -a ib_uverbs mlx5_ib\n# (untested)\n");
    put_folder(0755, "/sys/bus/pci/devices/%s/infiniband_verbs/uverbs0", FREE);
    cr_expect_eq(doctor(), 0, "%s", said);
    says("nic/" FREE, "ok", "ready, EAL argument -a " FREE, NULL);
    put_routes("ens4");
    cr_expect_eq(doctor(), 1);
    says("nic/" FREE, "ok", "never bind it", NULL);
}

/* WiFi is another kind of device, and may be the host's connection. */
Test(app_doctor_nic, what_is_no_nic)
{
    put_free(12);
    put_device("0000:05:00.0", "0x028000", "iwlwifi", 12);
    put_interface("0000:05:00.0", "wlan0");
    put_folder(0755, "/sys/class/net/wlan0/device");
    put_routes("wlan0");
    doctor();
    says("default-route", "ok", "wlan0", NULL);
    cr_expect_null(line_of("nic/0000:05:00.0", NULL, 0));
    says("nic/" FREE, "ok", "cannot be bound: 0000:05:00.0 of its IOMMU group is bound to iwlwifi",
         NULL);
    expect_left_alone("0000:05:00.0");
    put("0x15b3", "/sys/bus/pci/devices/0000:05:00.0/vendor");
    put_driver("0000:05:00.0", "mlx4_core");
    doctor();
    says("nic/0000:05:00.0", "ok", "never bind it", NULL);
}

/* --- beside one that can be used ----------------------------------------------------------------
 */

/* A virtual machine uses the other NIC. */
Test(app_doctor_nic, one_that_somebody_else_has)
{
    put_device(FREE, "0x020000", "vfio-pci", 13);
    put("vfio-pci", "/etc/driverctl.d/pci-" FREE);
    put("", "/dev/vfio/13");
    put_mode(0600, "/dev/vfio/13");
    cr_expect_eq(doctor(), 0, "%s", said);
    says("permission/dev/vfio/13", "warning", "nj may not",
         "chown nj /dev/vfio/13\n"
         "echo 'SUBSYSTEM==\"vfio\", KERNEL==\"13\", OWNER=\"nj\"' | tee -a "
         "/etc/udev/rules.d/60-nightjar.rules\n");
    cr_expect_not_null(strstr(said, "0 errors, 1 warning\n"), "%s", said);
    put_mode(0600, "/dev/vfio/12");
    cr_expect_eq(doctor(), 1);
    says("permission/dev/vfio/12", "error", "nj may not", "*");
    says("permission/dev/vfio/13", "error", "nj may not", "*");
    put_mode(0666, "/dev/vfio/12");
    take_away("/dev/vfio/13");
    cr_expect_eq(doctor(), 0, "%s", said);
    says("permission/dev/vfio/13", "warning", "missing", NULL);
}

Test(app_doctor_nic, others_that_are_stuck)
{
    put_device(FREE, "0x020000", "uio_pci_generic", 13);
    cr_expect_eq(doctor(), 0, "%s", said);
    says("nic/" FREE, "warning", "the IOMMU is on and refuses its DMA", "*");
    put("identity", "/sys/kernel/iommu_groups/13/type"); /* only for root */
    cr_expect_eq(doctor(), 0, "%s", said);
    says("user", "warning", "only root can use a NIC", "*");
}

/* Missing parts of vfio are no error while a NIC works without vfio. */
Test(app_doctor_nic, one_without_vfio_beside_one_with)
{
    put_mode(0600, "/dev/vfio/12");
    put_mode(0600, "/dev/vfio/vfio");
    take_away("/etc/security/limits.d/nj.conf");
    put_device(FREE, "0x020000", "mlx5_core", 13);
    put_folder(0755, "/sys/bus/pci/devices/%s/infiniband_verbs/uverbs0", FREE);
    cr_expect_eq(doctor(), 0, "%s", said);
    says("memlock", "ok", "not used on this host", NULL);
    says("permission/dev/vfio/12", "warning", "nj may not", "*");
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* Names may contain any character. */
Test(app_doctor_nic, json)
{
    put_free(12);
    take_away("/sys/bus/pci/devices/%s/net", FREE);
    put_folder(0755, "/sys/bus/pci/devices/%s/net/e\"\\\x01\xff", FREE);
    cr_expect_eq(ask(&(struct nj_doctor_config){.root = scratch, .user = "nj", .json = true}), 1);
    char begin[128];
    snprintf(begin, sizeof begin, "{\"version\": \"%s\", \"lines\": [\n  {\"id\": ", nj_version());
    cr_expect_eq(strncmp(said, begin, strlen(begin)), 0, "%s", said);
    cr_expect_not_null(strstr(said, ", interface e\\\"\\\\?\\u00ff, no link, "), "%s", said);
    cr_expect_not_null(strstr(said, "/driver_override\\u000aecho " FREE " | tee "));
    cr_expect_not_null(strstr(said, "\", \"advice\": \"\"},\n"));
    cr_expect_str_eq(said + strlen(said) - 4, "\n]}\n");
}
