/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: the IOMMU, interrupt remapping, and the kernel modules that hand a NIC to user
 * space. */
#include <string.h>

#include "doctor/doctor.h"

/* --- facts ---------------------------------------------------------------------------------- */

struct module {
    const char *name;
    bool found;
};

/* Parses "kernel/drivers/vfio/pci/vfio-pci.ko.xz: ..." of modules.dep, and modules.builtin, which
 * ends at ".ko". Module names do not distinguish '-' from '_'. */
static void parse_module(void *ctx, const char *path, char *line)
{
    struct module *m = ctx;
    const char *name, *slash;

    line[strcspn(line, ":")] = '\0';
    slash = strrchr(line, '/');
    name = slash ? slash + 1 : line;
    for (const char *p = m->name;; p++, name++) {
        if (*p == '\0') {
            m->found |= strncmp(name, ".ko", 3) == 0;
            return;
        }
        if (*p != *name && !(*p == '_' && *name == '-'))
            return;
    }
}

/* `name` is written with '_', as in /sys/module. */
static enum nj_module module_state(const struct nj_doctor *d, const char *name, const char *driver)
{
    struct module m = {name, false};

    if (nj__host_exists(d, "/sys/module/%s", name) ||
        nj__host_exists(d, "/sys/bus/pci/drivers/%s", driver))
        return NJ_MODULE_LOADED;
    nj__host_lines(d, parse_module, &m, "/lib/modules/%s/modules.builtin", d->release);
    if (m.found)
        return NJ_MODULE_LOADED;
    nj__host_lines(d, parse_module, &m, "/lib/modules/%s/modules.dep", d->release);
    return m.found ? NJ_MODULE_AVAILABLE : NJ_MODULE_NONE;
}

/* The name of an interrupt's chip shows remapping: "IR-PCI-MSI" on x86. Interrupts through an ARM
 * ITS are always remapped. */
static void parse_interrupt(void *ctx, const char *path, char *line)
{
    if (strstr(line, " IR-") || strstr(line, " ITS-"))
        *(bool *)ctx = true;
}

static void parse_noiommu_config(void *ctx, const char *path, char *line)
{
    struct nj_doctor *d = ctx;

    d->noiommu_known = true;
    d->has_noiommu |= strcmp(line, "CONFIG_VFIO_NOIOMMU=y") == 0;
}

static void read_noiommu(struct nj_doctor *d)
{
    char on[8];

    if (nj__host_line(d, on, sizeof on, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")) {
        d->noiommu = *on == 'Y' || *on == '1';
        d->noiommu_known = d->has_noiommu = true;
    } else if (d->vfio_pci == NJ_MODULE_NONE || nj__host_exists(d, "/sys/module/vfio")) {
        d->noiommu_known = true;
    } else {
        nj__host_lines(d, parse_noiommu_config, d, "/boot/config-%s", d->release);
    }
}

static void count_groups(struct nj_doctor *d)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "/sys/kernel/iommu_groups");
    char name[64];

    for (uint32_t i = 0; i < n; i++) {
        nj__host_line(d, name, sizeof name, "/sys/kernel/iommu_groups/%s/name", names[i]->d_name);
        d->n_iommu_groups += strcmp(name, "vfio-noiommu") != 0;
    }
    nj__host_names_free(names, n);
}

static enum nj_bind_method choose_bind_method(const struct nj_doctor *d)
{
    if (d->n_iommu_groups > 0)
        return d->vfio_pci != NJ_MODULE_NONE ? NJ_BIND_VFIO : NJ_BIND_NONE;
    if (d->noiommu && d->vfio_pci != NJ_MODULE_NONE)
        return NJ_BIND_NOIOMMU;
    if (d->uio != NJ_MODULE_NONE)
        return NJ_BIND_UIO;
    return d->has_noiommu && d->vfio_pci != NJ_MODULE_NONE ? NJ_BIND_NOIOMMU : NJ_BIND_NONE;
}

void nj__facts_iommu(struct nj_doctor *d)
{
    char on[8];

    nj__host_line(d, d->release, sizeof d->release, "/proc/sys/kernel/osrelease");
    count_groups(d);
    d->has_dmar = nj__host_exists(d, "/sys/firmware/acpi/tables/DMAR");
    d->has_ivrs = nj__host_exists(d, "/sys/firmware/acpi/tables/IVRS");
    nj__host_lines(d, parse_interrupt, &d->remapped, "/proc/interrupts");
    d->type1_loaded = nj__host_line(d, on, sizeof on,
                                    "/sys/module/vfio_iommu_type1/parameters/"
                                    "allow_unsafe_interrupts");
    d->unsafe_allowed = d->type1_loaded && (*on == 'Y' || *on == '1');
    d->vfio_pci = module_state(d, "vfio_pci", "vfio-pci");
    d->uio = module_state(d, "uio_pci_generic", "uio_pci_generic");
    read_noiommu(d);
    d->bind_method = choose_bind_method(d);
}

/* --- checks --------------------------------------------------------------------------------- */

static void advise_iommu(struct nj_doctor *d)
{
    char value[64];
    bool intel =
        nj__host_cmdline(d, "intel_iommu", value, sizeof value) && strcmp(value, "on") == 0;

    if (d->has_dmar && !intel)
        nj__advise_cmdline(d, "iommu", "intel_iommu=on iommu=pt");
    else if (d->has_ivrs && nj__host_cmdline(d, "amd_iommu", value, sizeof value))
        nj__advise(d,
                   "# remove amd_iommu=%s from the kernel's command line, and reboot (untested)\n",
                   value);
    else if (d->has_dmar || d->has_ivrs)
        nj__advise(d,
                   "# the kernel does not use the IOMMU that the firmware reports; why "
                   "(untested):\n"
                   "%sdmesg | grep -i -e DMAR -e AMD-Vi\n",
                   d->sudo);
    else
        nj__advise(d, "# the firmware reports no IOMMU (no table DMAR or IVRS): switch VT-d or "
                      "AMD-Vi on in its setup, or in the hypervisor (untested)\n");
}

static void check_iommu(struct nj_doctor *d)
{
    struct dirent **names;

    nj__begin_finding(d, "iommu");
    if (d->n_iommu_groups > 0) {
        uint32_t n = nj__host_names(d, &names, "/sys/class/iommu");
        nj__add_text(d, "on, %u groups%s%s", d->n_iommu_groups, n ? ", " : "",
                     n ? names[0]->d_name : "");
        nj__host_names_free(names, n);
    } else {
        nj__set_verdict(d,
                        d->bind_method == NJ_BIND_NONE && d->n_ready == 0 ? NJ_VERDICT_ERROR
                                                                          : NJ_VERDICT_WARNING,
                        "off or missing: vfio-pci cannot be used%s",
                        d->bind_method == NJ_BIND_UIO
                            ? ", uio_pci_generic can, by root; a NIC can then "
                              "write to all memory"
                        : d->bind_method == NJ_BIND_NOIOMMU ? " except by root, without protection"
                                                            : "");
        advise_iommu(d);
    }
}

static void check_remapping(struct nj_doctor *d)
{
    char off[64];

    if (d->n_iommu_groups == 0)
        return;
    nj__begin_finding(d, "interrupt-remapping");
    if (d->remapped) {
        nj__add_text(d, "on");
    } else if (d->unsafe_allowed) {
        nj__add_text(d, "off, and vfio works without it (allow_unsafe_interrupts): a NIC can "
                        "forge interrupts");
    } else {
        nj__set_verdict(d, d->needs_vfio ? NJ_VERDICT_ERROR : NJ_VERDICT_WARNING,
                        "off: vfio refuses devices unless allow_unsafe_interrupts is set");
        if (nj__host_cmdline(d, "intremap", off, sizeof off))
            nj__advise(
                d, "# better: remove intremap=%s from the kernel's command line (untested)\n", off);
        else
            nj__advise(d, "# better: switch it on in the firmware's setup (VT-d, x2APIC),"
                          " or in the hypervisor (untested)\n");
        nj__advise(d,
                   "echo options vfio_iommu_type1 allow_unsafe_interrupts=1 | %stee "
                   "/etc/modprobe.d/nightjar-vfio.conf\n",
                   d->sudo);
        if (d->type1_loaded)
            nj__advise(d,
                       "echo 1 | %stee "
                       "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts\n",
                       d->sudo);
        else
            nj__advise(d, "%smodprobe vfio_iommu_type1\n", d->sudo);
    }
}

static void check_module(struct nj_doctor *d, const char *name, enum nj_module state, bool wanted)
{

    nj__begin_finding(d, "module/%s", name);
    if (state == NJ_MODULE_LOADED) {
        nj__add_text(d, "loaded");
    } else if (!wanted) {
        nj__add_text(d, "%s, not needed on this host",
                     state == NJ_MODULE_AVAILABLE ? "not loaded" : "not there");
    } else if (state == NJ_MODULE_AVAILABLE) {
        nj__set_verdict(d, NJ_VERDICT_ERROR, "not loaded");
        nj__advise(d, "%smodprobe %s\n", d->sudo, name);
        nj__advise(d, "echo %s | %stee -a /etc/modules-load.d/nightjar.conf\n", name, d->sudo);
    } else {
        nj__set_verdict(d, NJ_VERDICT_ERROR, "not part of kernel %s, and not below /lib/modules/%s",
                        d->release, d->release);
        nj__advise(
            d, "# boot a kernel that has it, such as that of Debian's package linux-image-amd64 "
               "(untested)\n");
    }
}

static void check_noiommu(struct nj_doctor *d)
{
    bool missing = !d->noiommu && d->bind_method == NJ_BIND_NOIOMMU && d->n_ready == 0;

    nj__begin_finding(d, "vfio-noiommu");
    nj__set_verdict(d, missing ? NJ_VERDICT_ERROR : NJ_VERDICT_OK, "%s",
                    d->noiommu         ? "on: vfio-pci works without an IOMMU, for root"
                    : d->has_noiommu   ? "off"
                    : d->noiommu_known ? "this kernel does not have it (CONFIG_VFIO_NOIOMMU)"
                                       : "unknown until the module vfio is loaded");
    if (missing) {
        nj__advise(d, "%smodprobe vfio enable_unsafe_noiommu_mode=1\n", d->sudo);
        nj__advise(
            d,
            "echo 1 | %stee /sys/module/vfio/parameters/enable_unsafe_noiommu_mode\n" NJ_UNTESTED,
            d->sudo);
    }
}

void nj__check_iommu(struct nj_doctor *d)
{
    bool to_bind = d->n_ready == 0;
    bool by_vfio = d->n_iommu_groups > 0 || d->bind_method == NJ_BIND_NOIOMMU;

    check_iommu(d);
    check_remapping(d);
    check_module(d, "vfio-pci", d->vfio_pci, to_bind && by_vfio);
    check_module(d, "uio_pci_generic", d->uio, to_bind && !by_vfio);
    check_noiommu(d);
}
