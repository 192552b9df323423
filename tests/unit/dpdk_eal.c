/* SPDX-License-Identifier: BSD-3-Clause */
/* Reasons why the EAL cannot use a device of its arguments. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "dpdk/eal.h"
#include "support/scratch.h"

TestSuite(dpdk_eal, .init = scratch_make, .fini = scratch_remove);

/* A device of a made-up sysfs, bound to `driver` or to none. */
static void device(const char *address, const char *driver)
{
    char path[256], target[64];

    snprintf(path, sizeof path, "%s/%s", scratch, address);
    cr_assert_eq(mkdir(path, 0700), 0);
    if (!driver)
        return;
    snprintf(path, sizeof path, "%s/%s/driver", scratch, address);
    snprintf(target, sizeof target, "../../../bus/pci/drivers/%s", driver);
    cr_assert_eq(symlink(target, path), 0);
}

static const char *reason(const char *a, const char *b)
{
    static char why[256];
    char program[] = "x", first[64], second[64];
    char *argv[] = {program, first, second, NULL};

    snprintf(first, sizeof first, "%s", a);
    snprintf(second, sizeof second, "%s", b ? b : "");
    why[0] = '\0';
    return nj_eal_find_unbound(scratch, b ? 3 : 2, argv, why, sizeof why) ? why : NULL;
}

Test(dpdk_eal, not_bound)
{
    device("0000:01:00.0", "ixgbe");
    device("0000:02:00.0", NULL);
    device("0000:03:00.0", "vfio-pci");
    device("0000:04:00.0", "mlx5_core");
    device("0000:05:00.0", "uio_pci_generic");

    cr_expect_str_eq(reason("-a", "0000:01:00.0"),
                     "0000:01:00.0 is bound to the kernel's ixgbe: bind it to vfio-pci first "
                     "(dpdk-devbind.py --bind=vfio-pci 0000:01:00.0)");
    cr_expect_str_eq(reason("-a0000:02:00.0,arg=1", NULL),
                     "0000:02:00.0 is bound to no driver: bind it to vfio-pci first "
                     "(dpdk-devbind.py --bind=vfio-pci 0000:02:00.0)");
    cr_expect(strstr(reason("--allow=01:00.0", NULL), "0000:01:00.0 is bound to the kernel's"));
    cr_expect_str_eq(reason("--allow", "0000:09:00.0"),
                     "0000:09:00.0: no such PCI device (lspci -D lists them)");
    cr_expect_null(reason("-a", "0000:03:00.0"));
    cr_expect_null(reason("-a", "0000:04:00.0"));
    cr_expect_null(reason("-a", "0000:05:00.0"));
    cr_expect_null(reason("-a", "virtio_user0"));
    cr_expect_null(reason("--vdev=net_tap0", "-a"));
    cr_expect_null(reason("-l", "0"));
}
