/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI devices: their addresses as text, their kernel drivers, and which of those let DPDK use the
 * device. Any thread. */
#ifndef NJ_TOPO_PCI_H
#define NJ_TOPO_PCI_H

#include <stdbool.h>
#include <stddef.h>

/* Whether DPDK can use a PCI device that is bound to this driver of the kernel ("": to none). */
enum nj_pci_binding {
    NJ_BOUND_KERNEL, /* it cannot: the device is the kernel's, or bound to no driver */
    NJ_BOUND_VFIO,
    NJ_BOUND_UIO,
    NJ_BOUND_BIFURCATED, /* DPDK uses it together with the kernel (bifurcated driver) */
};
enum nj_pci_binding nj_pci_binding(const char *driver);

/* The driver of the kernel that a PCI device is bound to; "" for none. False: there is none.
 * `sysfs` is /sys/bus/pci/devices, or a test's. */
bool nj_pci_driver_of(const char *sysfs, const char *address, char *driver, size_t driver_bytes);

/* "DOMAIN:BUS:DEVICE.FUNCTION" of the PCI address that `text` begins with, also when the domain was
 * left out. Returns how many bytes of `text` it has; 0: it does not begin with one. */
size_t nj_pci_parse_address(const char *text, char *address, size_t address_bytes);

#endif
