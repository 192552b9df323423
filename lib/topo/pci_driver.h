/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI devices: their addresses as text, their kernel drivers, and whether DPDK can use a device
 * that is bound to such a driver. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Can DPDK use a PCI device that is bound to this kernel driver ("": none)? */
enum nj_pci_binding {
    NJ_BOUND_KERNEL, /* no: used by the kernel, or bound to no driver */
    NJ_BOUND_VFIO,
    NJ_BOUND_UIO,
    NJ_BOUND_BIFURCATED, /* yes, together with the kernel (bifurcated driver) */
};
enum nj_pci_binding nj_pci_binding_of_driver(const char *driver);

/* The kernel driver that a PCI device is bound to; "" for none. False: no such device. `sysfs` is
 * /sys/bus/pci/devices, or a substitute in tests. */
bool nj_pci_driver_of(const char *sysfs, const char *address, char *driver, size_t driver_bytes);

/* Parse the PCI address at the start of `text`, and write it as "DOMAIN:BUS:DEVICE.FUNCTION"; the
 * domain is optional in `text`. Returns the number of bytes parsed; 0: no address. */
size_t nj_pci_parse_address(const char *text, char *address, size_t address_bytes);
