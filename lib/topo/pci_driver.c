/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses PCI addresses and reads kernel drivers from sysfs. Contract: pci_driver.h. */
#include "topo/pci_driver.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

size_t nj_pci_parse_address(const char *text, char *address, size_t n)
{
    unsigned domain, bus, device, function;
    int end = 0;

    if (sscanf(text, "%8x:%2x:%2x.%1u%n", &domain, &bus, &device, &function, &end) != 4) {
        domain = 0;
        if (sscanf(text, "%2x:%2x.%1u%n", &bus, &device, &function, &end) != 3)
            return 0;
    }
    snprintf(address, n, "%04x:%02x:%02x.%u", domain, bus, device, function);
    return device < 32 && function < 8 ? (size_t)end : 0;
}

bool nj_pci_driver_of(const char *sysfs, const char *address, char *driver, size_t driver_bytes)
{
    char path[512], target[512];

    snprintf(path, sizeof path, "%s/%s/driver", sysfs, address);
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(driver, driver_bytes, "%s", slash ? slash + 1 : target);
    return n > 0;
}

enum nj_pci_binding nj_pci_binding_of_driver(const char *driver)
{
    static const struct {
        const char *name;
        enum nj_pci_binding binding;
    } drivers[] = {
        {"vfio-pci", NJ_BOUND_VFIO},        {"uio_pci_generic", NJ_BOUND_UIO},
        {"igb_uio", NJ_BOUND_UIO},          {"uio_hv_generic", NJ_BOUND_UIO},
        {"mlx5_core", NJ_BOUND_BIFURCATED}, {"mlx4_core", NJ_BOUND_BIFURCATED},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(drivers); i++)
        if (strcmp(driver, drivers[i].name) == 0)
            return drivers[i].binding;
    return NJ_BOUND_KERNEL;
}
