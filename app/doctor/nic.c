/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: NICs on the PCI bus, their drivers, and how to bind them for DPDK. */
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

#define CLASS_NETWORK 0x02 /* PCI Code and ID Assignment Specification: base classes */
#define CLASS_BRIDGE  0x06
#define CLASS_OTHER   0x0280 /* with a subclass: an unlisted kind of network device */

#define VENDOR_MELLANOX 0x15b3 /* its virtual functions have that class */

/* --- facts ---------------------------------------------------------------------------------- */

struct pci_ids {
    struct nj_nic *nic;
    char vendor[80];
    bool here; /* within the entries of the vendor */
};

/* Parses "8086  Intel Corporation", followed by "<tab>100e  82540EM Gigabit Ethernet
 * Controller". */
static void parse_pci_id(void *ctx, const char *path, char *line)
{
    struct pci_ids *ids = ctx;
    unsigned id;
    int at = 0;

    if (line[0] == '#' || line[0] == '\0')
        return;
    if (line[0] != '\t') {
        ids->here = sscanf(line, "%4x %n", &id, &at) == 1 && at > 4 && id == ids->nic->vendor;
        if (ids->here)
            snprintf(ids->vendor, sizeof ids->vendor, "%s", line + at);
    } else if (ids->here && line[1] != '\t' && sscanf(line + 1, "%4x %n", &id, &at) == 1 &&
               id == ids->nic->device) {
        snprintf(ids->nic->name, sizeof ids->nic->name, "%s %.70s", ids->vendor, line + 1 + at);
    }
}

static void read_name(const struct nj_doctor *d, struct nj_nic *nic)
{
    struct pci_ids ids = {.nic = nic};

    if (!nj__host_lines(d, parse_pci_id, &ids, "/usr/share/misc/pci.ids"))
        nj__host_lines(d, parse_pci_id, &ids, "/usr/share/hwdata/pci.ids");
    if (!nic->name[0])
        snprintf(nic->name, sizeof nic->name, "%s", ids.vendor);
}

static void read_interface(const struct nj_doctor *d, struct nj_nic *nic, const char *name)
{
    struct nj_route_if *route = nj__route_of(d, name);
    int64_t n;
    bool link = nj__host_number(d, &n, "/sys/class/net/%s/carrier", name) && n == 1;

    nic->any_link |= link;
    if (route)
        route->has_device = true;
    if (!nic->interface[0]) {
        snprintf(nic->interface, sizeof nic->interface, "%.15s", name);
        nic->has_link = link;
        if (link && nj__host_number(d, &n, "/sys/class/net/%s/speed", name) && n > 0)
            nic->mbit_per_s = n;
    }
    if (route && !nic->has_default) {
        nic->has_routes = true;
        nic->has_default = route->is_default;
        snprintf(nic->route_of, sizeof nic->route_of, "%s", route->top);
    }
}

/* Interfaces in the folder of the device, or of its virtio device. */
static void read_interfaces(const struct nj_doctor *d, struct nj_nic *nic, const char *below)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "/sys/bus/pci/devices/%s%s/net", nic->address, below);

    for (uint32_t i = 0; i < n; i++)
        read_interface(d, nic, names[i]->d_name);
    nj__host_names_free(names, n);
    if (*below)
        return;
    n = nj__host_names(d, &names, "/sys/bus/pci/devices/%s", nic->address);
    for (uint32_t i = 0; i < n; i++) {
        char virtio[64];
        if (strncmp(names[i]->d_name, "virtio", 6) == 0) {
            snprintf(virtio, sizeof virtio, "/%.32s", names[i]->d_name);
            read_interfaces(d, nic, virtio);
        }
    }
    nj__host_names_free(names, n);
}

static int64_t group_of(const struct nj_doctor *d, const char *address)
{
    char name[32], *end;

    if (!nj__host_link(d, name, sizeof name, "/sys/bus/pci/devices/%s/iommu_group", address))
        return -1;
    long n = strtol(name, &end, 10);
    return *end || end == name ? -1 : n;
}

static void driver_of(const struct nj_doctor *d, const char *address, char *driver, size_t n)
{
    nj__host_link(d, driver, n, "/sys/bus/pci/devices/%s/driver", address);
}

static int64_t class_of(const struct nj_doctor *d, const char *address)
{
    int64_t class;

    return nj__host_number(d, &class, "/sys/bus/pci/devices/%s/class", address) ? class >> 16 : -1;
}

/* Excludes WiFi. */
static bool is_nic(const struct nj_doctor *d, const char *address)
{
    int64_t class, vendor;

    if (!nj__host_number(d, &class, "/sys/bus/pci/devices/%s/class", address) ||
        class >> 16 != CLASS_NETWORK)
        return false;
    return class >> 8 != CLASS_OTHER ||
           (nj__host_number(d, &vendor, "/sys/bus/pci/devices/%s/vendor", address) &&
            vendor == VENDOR_MELLANOX);
}

static void read_nic(const struct nj_doctor *d, struct nj_nic *nic, const char *address)
{
    int64_t n;

    memset(nic, 0, sizeof *nic);
    nic->mbit_per_s = nic->node = -1;
    snprintf(nic->address, sizeof nic->address, "%.23s", address);
    if (nj__host_number(d, &n, "/sys/bus/pci/devices/%s/vendor", address))
        nic->vendor = (unsigned)n;
    if (nj__host_number(d, &n, "/sys/bus/pci/devices/%s/device", address))
        nic->device = (unsigned)n;
    if (nj__host_number(d, &n, "/sys/bus/pci/devices/%s/numa_node", address))
        nic->node = n;
    nic->group = group_of(d, address);
    nic->has_uverbs = nj__host_exists(d, "/sys/bus/pci/devices/%s/infiniband_verbs", address);
    driver_of(d, address, nic->driver, sizeof nic->driver);
    nic->binding = nj_pci_binding_of_driver(nic->driver);
    read_name(d, nic);
    read_interfaces(d, nic, "");
    /* with unknown routes, any interface may carry the default route */
    nic->has_default |= d->no_routes && nic->interface[0];
}

/* --- IOMMU groups --------------------------------------------------------------------------- */

static const struct nj_nic *nic_at(const struct nj_doctor *d, const char *address)
{
    for (uint32_t i = 0; i < d->n_nics; i++)
        if (strcmp(d->nic[i].address, address) == 0)
            return &d->nic[i];
    return NULL;
}

/* Does this driver of another device in the group block vfio? Drivers of bridges do not. */
static bool blocks_vfio(const struct nj_doctor *d, const char *address, const char *driver)
{
    return *driver && strcmp(driver, "vfio-pci") != 0 && strcmp(driver, "pci-stub") != 0 &&
           class_of(d, address) != CLASS_BRIDGE;
}

/* Devices other than NICs stay with the kernel: one may be the system's disk. */
static bool must_stay_with_kernel(const struct nj_doctor *d, const char *address)
{
    const struct nj_nic *nic = nic_at(d, address);

    return !is_nic(d, address) || (nic && nic->has_default);
}

static void warn_routes_end(struct nj_doctor *d, const struct nj_nic *nic)
{
    if (nic && nic->has_routes)
        nj__advise(d, "# %s has kernel routes, which this removes\n", nic->route_of);
}

/* Counts the devices of the group that block vfio. `*n_stay` of them must stay with the kernel;
 * `why` names one. `advise`: print commands that unbind the others. */
static uint32_t check_group_others(struct nj_doctor *d, const struct nj_nic *nic, uint32_t *n_stay,
                                   bool advise, char *why, size_t why_bytes)
{
    struct dirent **names;
    uint32_t n =
        nj__host_names(d, &names, "/sys/kernel/iommu_groups/%lld/devices", (long long)nic->group);
    uint32_t n_others = 0;

    *n_stay = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *address = names[i]->d_name;
        char driver[32];
        driver_of(d, address, driver, sizeof driver);
        if (strcmp(address, nic->address) == 0 || !blocks_vfio(d, address, driver))
            continue;
        bool stays = must_stay_with_kernel(d, address);
        n_others++;
        if (stays || n_others == 1)
            snprintf(why, why_bytes, "%.23s of its IOMMU group is bound to %s", address, driver);
        *n_stay += stays;
        if (!advise || stays)
            continue;
        warn_routes_end(d, nic_at(d, address));
        nj__advise(d, "echo %s | %stee /sys/bus/pci/devices/%s/driver/unbind\n", address, d->sudo,
                   address);
    }
    nj__host_names_free(names, n);
    return n_others;
}

/* --- state of a NIC -------------------------------------------------------------------------- */

static bool iommu_translates(const struct nj_doctor *d, const struct nj_nic *nic)
{
    char type[32];

    return d->n_iommu_groups > 0 && nic->group >= 0 &&
           nj__host_line(d, type, sizeof type, "/sys/kernel/iommu_groups/%lld/type",
                         (long long)nic->group) &&
           strncmp(type, "DMA", 3) == 0;
}

static enum nj_nic_state misbound(struct nj_nic *nic, const char *why)
{
    snprintf(nic->why, sizeof nic->why, "%s", why);
    return NJ_NIC_MISBOUND;
}

static enum nj_nic_state state_of(struct nj_doctor *d, struct nj_nic *nic)
{
    uint32_t n_stay = 0;

    switch (nic->binding) {
    case NJ_BOUND_VFIO:
        if (d->n_iommu_groups == 0)
            return d->noiommu ? NJ_NIC_READY
                              : misbound(nic, "bound to vfio-pci, which has no IOMMU here");
        if (nic->group < 0)
            return misbound(nic, "bound to vfio-pci, and in no IOMMU group");
        return check_group_others(d, nic, &n_stay, false, nic->why, sizeof nic->why) > 0
                   ? NJ_NIC_MISBOUND
                   : NJ_NIC_READY;
    case NJ_BOUND_UIO:
        if (iommu_translates(d, nic))
            return misbound(nic,
                            "bound to a uio driver, while the IOMMU is on and refuses its DMA");
        return NJ_NIC_READY;
    case NJ_BOUND_BIFURCATED:
        if (!nic->has_default)
            return nic->has_uverbs
                       ? NJ_NIC_READY
                       : misbound(nic, "shared with its kernel driver, whose modules for "
                                       "verbs are not loaded");
        break;
    case NJ_BOUND_KERNEL:
        break;
    }
    if (nic->has_default)
        return NJ_NIC_PROTECTED;
    if (d->bind_method == NJ_BIND_VFIO && nic->group >= 0)
        check_group_others(d, nic, &n_stay, false, nic->why, sizeof nic->why);
    return n_stay > 0 ? NJ_NIC_UNBINDABLE : NJ_NIC_BINDABLE;
}

/* A default route without a known NIC (ppp0, an Open vSwitch port) may use any NIC that has a
 * link. */
static void protect_suspects(struct nj_doctor *d)
{
    d->route_without_nic = nj__route_without_nic(d);
    for (uint32_t i = 0; d->route_without_nic && i < d->n_nics; i++) {
        struct nj_nic *nic = &d->nic[i];
        nic->is_suspect = !nic->has_default && nic->any_link;
        nic->has_default |= nic->any_link;
    }
}

void nj__facts_nics(struct nj_doctor *d)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "/sys/bus/pci/devices");

    d->nic = calloc(n ? n : 1, sizeof *d->nic);
    for (uint32_t i = 0; d->nic && i < n; i++)
        if (is_nic(d, names[i]->d_name))
            read_nic(d, &d->nic[d->n_nics++], names[i]->d_name);
    nj__host_names_free(names, n);
    protect_suspects(d);
    bool by_vfio = false;
    for (uint32_t i = 0; i < d->n_nics; i++) {
        struct nj_nic *nic = &d->nic[i];
        nic->state = state_of(d, nic);
        d->n_ready += nic->state == NJ_NIC_READY;
        d->n_free += nic->state == NJ_NIC_BINDABLE;
        by_vfio |= nic->binding == NJ_BOUND_VFIO && d->n_iommu_groups > 0;
    }
    d->needs_vfio = by_vfio || (d->n_ready == 0 && d->bind_method == NJ_BIND_VFIO);
}

/* --- checks --------------------------------------------------------------------------------- */

static void describe_nic(struct nj_doctor *d, const struct nj_nic *nic)
{
    nj__add_text(d, "%s%s%04x:%04x%s, %s%s", nic->name, *nic->name ? " (" : "", nic->vendor,
                 nic->device, *nic->name ? ")" : "", *nic->driver ? "driver " : "no driver",
                 nic->driver);
    if (nic->interface[0]) {
        nj__add_text(d, ", interface %s, %s", nic->interface, nic->has_link ? "link" : "no link");
        if (nic->mbit_per_s > 0)
            nj__add_text(d, " of %lld Mbit/s", (long long)nic->mbit_per_s);
    }
    if (nic->node >= 0)
        nj__add_text(d, ", NUMA node %lld", (long long)nic->node);
    if (nic->group >= 0)
        nj__add_text(d, ", IOMMU group %lld", (long long)nic->group);
}

static void advise_binding(struct nj_doctor *d, const struct nj_nic *nic,
                           enum nj_bind_method bind_method)
{
    static const char *const drivers[] = {[NJ_BIND_VFIO] = "vfio-pci",
                                          [NJ_BIND_NOIOMMU] = "vfio-pci",
                                          [NJ_BIND_UIO] = "uio_pci_generic"};
    const char *driver = drivers[bind_method];
    char why[128];
    uint32_t n_stay;

    if (!driver)
        return;
    warn_routes_end(d, nic);
    nj__advise(d, "echo %s | %stee /sys/bus/pci/devices/%s/driver_override\n", driver, d->sudo,
               nic->address);
    if (nic->driver[0])
        nj__advise(d, "echo %s | %stee /sys/bus/pci/devices/%s/driver/unbind\n", nic->address,
                   d->sudo, nic->address);
    if (bind_method == NJ_BIND_VFIO && nic->group >= 0)
        check_group_others(d, nic, &n_stay, true, why, sizeof why);
    nj__advise(d, "echo %s | %stee /sys/bus/pci/drivers_probe\n", nic->address, d->sudo);
    nj__advise(d, "# at each boot (package driverctl): %sdriverctl set-override %s %s\n", d->sudo,
               nic->address, driver);
}

/* No driver for DPDK is available yet: advise the one that suits this host. */
static void advise_other_driver(struct nj_doctor *d, const struct nj_nic *nic)
{
    enum nj_bind_method bind_method = d->bind_method;

    if (bind_method == NJ_BIND_NONE) {
        bind_method = d->n_iommu_groups > 0 ? NJ_BIND_VFIO : NJ_BIND_UIO;
        nj__advise(d, "# once the kernel has the module (see module/%s):\n",
                   bind_method == NJ_BIND_VFIO ? "vfio-pci" : "uio_pci_generic");
    }
    advise_binding(d, nic, bind_method);
}

static void advise_misbound(struct nj_doctor *d, const struct nj_nic *nic)
{
    char why[128];
    uint32_t n_stay;

    if (nic->binding == NJ_BOUND_BIFURCATED) {
        nj__advise(d, "%smodprobe -a ib_uverbs mlx%s_ib\n" NJ_UNTESTED, d->sudo,
                   strncmp(nic->driver, "mlx4", 4) == 0 ? "4" : "5");
    } else if (nic->binding == NJ_BOUND_VFIO && nic->group >= 0 && d->n_iommu_groups > 0) {
        check_group_others(d, nic, &n_stay, true, why, sizeof why);
        if (n_stay > 0)
            nj__advise(
                d, "# %s, which must stay: put one of the two into another slot (untested)\n", why);
    } else {
        advise_other_driver(d, nic);
    }
}

static void check_nic(struct nj_doctor *d, const struct nj_nic *nic)
{

    nj__begin_finding(d, "nic/%s", nic->address);
    describe_nic(d, nic);
    switch (nic->state) {
    case NJ_NIC_PROTECTED:
        if (d->no_routes)
            nj__add_text(d, ": the routes cannot be read, so it may carry the default route");
        else if (nic->is_suspect)
            nj__add_text(d, ": may carry the default route (%s), whose NIC is not known",
                         d->route_without_nic->name);
        else
            nj__add_text(d, ": carries the default route (%s), never bind it", nic->route_of);
        break;
    case NJ_NIC_READY:
        nj__add_text(d, ": ready, EAL argument -a %s", nic->address);
        break;
    case NJ_NIC_BINDABLE:
        if (d->n_ready > 0) {
            nj__add_text(d, ": not used by DPDK");
        } else {
            nj__set_verdict(d, NJ_VERDICT_WARNING,
                            d->bind_method == NJ_BIND_NONE
                                ? ": no DPDK driver can use it, see iommu and module/"
                                : ": DPDK cannot use it yet");
            advise_binding(d, nic, d->bind_method);
        }
        break;
    case NJ_NIC_UNBINDABLE:
        nj__add_text(d, ": cannot be bound: %s, which must stay", nic->why);
        break;
    case NJ_NIC_MISBOUND:
        nj__set_verdict(d, d->n_ready > 0 ? NJ_VERDICT_WARNING : NJ_VERDICT_ERROR, ": %s",
                        nic->why);
        advise_misbound(d, nic);
        break;
    }
}

struct word_search {
    const char *word;
    bool found;
};

static void find_word(void *ctx, const char *path, char *line)
{
    struct word_search *s = ctx;

    s->found = s->found || (line[0] != '#' && strstr(line, s->word));
}

/* Will it be bound at the next boot, according to the files of driverctl, Debian's dpdk.service, or
 * udev rules that name it? */
static bool is_bound_at_boot(const struct nj_doctor *d, const struct nj_nic *nic)
{
    struct word_search s = {.word = nic->address};
    char driver[64];

    if (nj__host_line(d, driver, sizeof driver, "/etc/driverctl.d/pci-%s", nic->address))
        return strcmp(driver, nic->driver) == 0;
    nj__host_lines(d, find_word, &s, "/etc/dpdk/interfaces");
    nj__host_lines_below(d, find_word, &s, "/etc/udev/rules.d", ".rules");
    return s.found;
}

static void check_boot(struct nj_doctor *d, const struct nj_nic *nic)
{

    if (nic->state != NJ_NIC_READY || nic->binding == NJ_BOUND_BIFURCATED)
        return;
    nj__begin_finding(d, "nic/%s/boot", nic->address);
    if (is_bound_at_boot(d, nic)) {
        nj__add_text(d, "also bound to %s at the next boot", nic->driver);
    } else {
        nj__set_verdict(d, NJ_VERDICT_WARNING, "bound to %s only until the next boot", nic->driver);
        nj__advise(d, "# %sapt-get install -y driverctl\n# %sdriverctl set-override %s %s\n",
                   d->sudo, d->sudo, nic->address, nic->driver);
    }
}

/* A virtual function can be bound instead of a NIC that must stay. */
static void advise_virtual(struct nj_doctor *d)
{
    int64_t n;

    for (uint32_t i = 0; i < d->n_nics; i++)
        if (nj__host_number(d, &n, "/sys/bus/pci/devices/%s/sriov_totalvfs", d->nic[i].address) &&
            n > 0)
            nj__advise(d,
                       "# a virtual function of it (SR-IOV; untested):\n"
                       "echo 1 | %stee /sys/bus/pci/devices/%s/sriov_numvfs\n",
                       d->sudo, d->nic[i].address);
    nj__advise(d, "# without a NIC: drivers-config/README.md\n");
}

static void check_all(struct nj_doctor *d)
{

    nj__begin_finding(d, "nics");
    nj__set_verdict(d, d->n_ready > 0 ? NJ_VERDICT_OK : NJ_VERDICT_ERROR,
                    "%u of %u NICs of the PCI bus ready for DPDK", d->n_ready, d->n_nics);
    if (d->n_ready == 0) {
        if (d->n_free > 0)
            nj__advise(d, "# bind one: see its line\n");
        else
            advise_virtual(d);
    }
}

static void check_default_route(struct nj_doctor *d)
{
    uint32_t n = 0;

    nj__begin_finding(d, "default-route");
    for (uint32_t i = 0; i < d->n_routes; i++) {
        const struct nj_route_if *r = &d->route[i];
        if (!r->is_default)
            continue;
        nj__add_text(d, "%s%s", n++ ? ", " : "", r->name);
        if (strcmp(r->name, r->top) != 0)
            nj__add_text(d, " (below %s)", r->top);
    }
    if (d->no_routes) {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        "/proc/net/route cannot be read: bind no NIC that has an interface");
    } else if (d->route_without_nic) {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        ": the NIC of %s is not known: bind no NIC that has a link",
                        d->route_without_nic->name);
    } else if (n == 0) {
        nj__add_text(d, "none");
    }
}

void nj__check_nics(struct nj_doctor *d)
{
    check_default_route(d);
    for (uint32_t i = 0; i < d->n_nics; i++)
        check_nic(d, &d->nic[i]);
    for (uint32_t i = 0; i < d->n_nics; i++)
        check_boot(d, &d->nic[i]);
    check_all(d);
}
