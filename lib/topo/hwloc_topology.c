/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the CPU topology and the NUMA node of the NIC with hwloc. Contract: hwloc_topology.h. */
#include "topo/hwloc_topology.h"

#include <errno.h>
#include <hwloc.h>
#include <string.h>

#include "base/set_error.h"

#define CLASS_ETHERNET 0x0200 /* PCI Code and ID Assignment Specification, base class 02h */

static uint16_t ancestor_index(hwloc_topology_t h, hwloc_obj_type_t type, hwloc_obj_t pu)
{
    hwloc_obj_t o = hwloc_get_ancestor_obj_by_type(h, type, pu);
    return o ? (uint16_t)o->logical_index : NJ_TOPO_NONE;
}

static bool add_cpu(struct nj_topo *t, hwloc_topology_t h, hwloc_obj_t pu, const cpu_set_t *usable)
{
    unsigned id = pu->os_index;
    int node = hwloc_bitmap_first(pu->nodeset);

    if (id >= NJ_TOPO_CPUS_MAX || t->n_cpus == NJ_TOPO_CPUS_MAX)
        return false;
    struct nj_topo_cpu c = {
        .id = (uint16_t)id,
        .core = ancestor_index(h, HWLOC_OBJ_CORE, pu),
        .l2 = ancestor_index(h, HWLOC_OBJ_L2CACHE, pu),
        .l3 = ancestor_index(h, HWLOC_OBJ_L3CACHE, pu),
        .node = node < 0 ? 0 : (uint16_t)node,
        .usable = !usable || CPU_ISSET(id, usable),
    };
    if (c.core == NJ_TOPO_NONE) /* no core information: assume no siblings */
        c.core = (uint16_t)pu->logical_index;
    t->cpu[t->n_cpus++] = c;
    return true;
}

/* The node of a PCI device, or -1. */
static int numa_node_of_pci(hwloc_topology_t h, hwloc_obj_t device)
{
    hwloc_obj_t at = hwloc_get_non_io_ancestor_obj(h, device);
    bool one = at && at->nodeset && hwloc_bitmap_weight(at->nodeset) == 1;
    return one ? hwloc_bitmap_first(at->nodeset) : -1;
}

static void set_nic(struct nj_topo *t, hwloc_topology_t h, hwloc_obj_t device)
{
    snprintf(t->nic, sizeof t->nic, "%04x:%02x:%02x.%x", device->attr->pcidev.domain,
             device->attr->pcidev.bus, device->attr->pcidev.dev, device->attr->pcidev.func);
    t->nic_node = numa_node_of_pci(h, device);
}

/* If all Ethernet devices are on one node, the NIC is there too. */
static void find_nic(struct nj_topo *t, hwloc_topology_t h)
{
    bool agree = true;

    for (hwloc_obj_t d = NULL; (d = hwloc_get_next_pcidev(h, d));) {
        if (d->attr->pcidev.class_id != CLASS_ETHERNET)
            continue;
        if (t->nic[0] == '\0')
            set_nic(t, h, d);
        agree &= numa_node_of_pci(h, d) == t->nic_node;
    }
    if (!agree) {
        t->nic[0] = '\0';
        t->nic_node = -1;
    }
}

static int read_topology(struct nj_topo *t, hwloc_topology_t h, const cpu_set_t *usable, char *why,
                         size_t n)
{
    for (hwloc_obj_t pu = NULL; (pu = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PU, pu));)
        if (!add_cpu(t, h, pu, usable))
            return nj_set_error(why, n, "more than %u CPUs: not supported",
                                (unsigned)NJ_TOPO_CPUS_MAX);
    return 0;
}

int nj_topo_discover_by_hwloc(struct nj_topo *t, const cpu_set_t *usable, const char *nic,
                              char *why, size_t n)
{
    hwloc_topology_t h;

    memset(t, 0, sizeof *t);
    t->nic_node = -1;
    if (hwloc_topology_init(&h) != 0)
        return nj_set_error(why, n, "hwloc: %s", strerror(errno));
    hwloc_topology_set_type_filter(h, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    int rc = hwloc_topology_load(h);
    if (rc != 0) {
        nj_set_error(why, n, "hwloc can't read this machine: %s", strerror(errno));
    } else {
        rc = read_topology(t, h, hwloc_topology_is_thissystem(h) ? usable : NULL, why, n);
        hwloc_obj_t device = nic ? hwloc_get_pcidev_by_busidstring(h, nic) : NULL;
        if (device)
            set_nic(t, h, device);
        else if (!nic)
            find_nic(t, h);
    }
    hwloc_topology_destroy(h);
    return rc;
}

int nj_topo_synthetic(struct nj_topo *t, const char *description, char *why, size_t n)
{
    hwloc_topology_t h;

    memset(t, 0, sizeof *t);
    t->nic_node = -1;
    if (hwloc_topology_init(&h) != 0)
        return nj_set_error(why, n, "hwloc: %s", strerror(errno));
    int rc = hwloc_topology_set_synthetic(h, description) != 0 || hwloc_topology_load(h) != 0
                 ? nj_set_error(why, n, "hwloc does not understand \"%s\"", description)
                 : read_topology(t, h, NULL, why, n);
    hwloc_topology_destroy(h);
    return rc;
}

const struct nj_topo_cpu *nj_topo_cpu(const struct nj_topo *t, uint32_t id)
{
    for (uint32_t i = 0; i < t->n_cpus; i++)
        if (t->cpu[i].id == id)
            return &t->cpu[i];
    return NULL;
}

void nj_topo_flat(struct nj_topo *t, const cpu_set_t *usable)
{
    memset(t, 0, sizeof *t);
    for (unsigned i = 0; i < NJ_TOPO_CPUS_MAX; i++)
        if (CPU_ISSET(i, usable))
            t->cpu[t->n_cpus++] = (struct nj_topo_cpu){.id = (uint16_t)i,
                                                       .core = (uint16_t)i,
                                                       .l2 = NJ_TOPO_NONE,
                                                       .l3 = NJ_TOPO_NONE,
                                                       .usable = true};
}
