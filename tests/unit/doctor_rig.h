/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of files that represent a host, and the output of nightjar doctor for them. good_host()
 * makes one without a fault, for the user nj; a test breaks the part under test. */
#pragma once

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "support/scratch.h"

#define KEPT  "0000:02:00.0" /* carries the default route, as eno1 */
#define BOUND "0000:03:00.0" /* is bound to vfio-pci */

static char path_text[4096];

static inline NJ_PRINTF(1, 0) const char *below(const char *fmt, va_list ap)
{
    size_t at = (size_t)snprintf(path_text, sizeof path_text, "%s", scratch);

    vsnprintf(path_text + at, sizeof path_text - at, fmt, ap);
    return path_text;
}

#define BELOW(path)                                                                                \
    const char *path;                                                                              \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        path = below(fmt, ap);                                                                     \
        va_end(ap);                                                                                \
    } while (0)

/* The folders above a path. */
static inline void make_above(const char *path)
{
    char folder[4096];

    for (const char *p = path + strlen(scratch) + 1; (p = strchr(p, '/')); p++) {
        snprintf(folder, sizeof folder, "%.*s", (int)(p - path), path);
        cr_assert(mkdir(folder, 0777) == 0 || errno == EEXIST, "%s", folder);
    }
}

/* A file with that text and an end of the line. */
static inline NJ_PRINTF(2, 3) void put(const char *text, const char *fmt, ...)
{
    BELOW(path);
    make_above(path);
    unlink(path); /* the file of a link stays */
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static inline NJ_PRINTF(2, 3) void put_link(const char *target, const char *fmt, ...)
{
    BELOW(path);
    make_above(path);
    unlink(path);
    cr_assert_eq(symlink(target, path), 0, "%s", path);
}

static inline NJ_PRINTF(2, 3) void put_folder(mode_t mode, const char *fmt, ...)
{
    BELOW(path);
    make_above(path);
    cr_assert(mkdir(path, 0777) == 0 || errno == EEXIST);
    cr_assert_eq(chmod(path, mode), 0);
}

static inline NJ_PRINTF(2, 3) void put_mode(mode_t mode, const char *fmt, ...)
{
    BELOW(path);
    cr_assert_eq(chmod(path, mode), 0, "%s", path);
}

static inline NJ_PRINTF(1, 2) void take_away(const char *fmt, ...)
{
    BELOW(path);
    struct stat st;
    cr_assert_eq(lstat(path, &st), 0, "%s", path);
    if (S_ISDIR(st.st_mode))
        nftw(path, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
    else
        unlink(path);
}

/* --- devices -------------------------------------------------------------------------------- */

/* `driver` NULL: none. */
static inline void put_driver(const char *address, const char *driver)
{
    char target[128];

    snprintf(target, sizeof target, "../../../../bus/pci/drivers/%s", driver ? driver : "");
    if (driver)
        put_link(target, "/sys/bus/pci/devices/%s/driver", address);
}

static inline void put_device(const char *address, const char *class, const char *driver, int group)
{
    char target[128];

    put(class, "/sys/bus/pci/devices/%s/class", address);
    put("0x8086", "/sys/bus/pci/devices/%s/vendor", address);
    put("0x10fb", "/sys/bus/pci/devices/%s/device", address);
    put("0", "/sys/bus/pci/devices/%s/numa_node", address);
    put_driver(address, driver);
    if (group < 0)
        return;
    snprintf(target, sizeof target, "../../../../kernel/iommu_groups/%d", group);
    put_link(target, "/sys/bus/pci/devices/%s/iommu_group", address);
    put_link("x", "/sys/kernel/iommu_groups/%d/devices/%s", group, address);
    put("DMA-FQ", "/sys/kernel/iommu_groups/%d/type", group);
}

static inline void put_interface(const char *address, const char *name)
{
    put_folder(0755, "/sys/bus/pci/devices/%s/net/%s", address, name);
    put("1", "/sys/class/net/%s/carrier", name);
    put("10000", "/sys/class/net/%s/speed", name);
}

static inline void put_routes(const char *of_default)
{
    char text[512];

    snprintf(text, sizeof text,
             "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
             "%s\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
             "%s\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
             of_default, of_default);
    put(text, "/proc/net/route");
}

/* --- a host --------------------------------------------------------------------------------- */

static inline void good_memory(void)
{
    static const char *const node = "/sys/devices/system/node/node0/hugepages";

    put("512", "%s/hugepages-2048kB/nr_hugepages", node);
    put_link("nr_hugepages", "%s/hugepages-2048kB/free_hugepages", node);
    put("0", "%s/hugepages-1048576kB/nr_hugepages", node);
    put("0", "%s/hugepages-1048576kB/free_hugepages", node);
    put("MemAvailable:    8000000 kB\nHugepagesize:       2048 kB", "/proc/meminfo");
    put("sysfs /sys sysfs rw 0 0\nnodev /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0",
        "/proc/mounts");
    put_folder(0777, "/dev/hugepages");
    put("# pages\nvm.nr_hugepages = 512", "/etc/sysctl.d/80-huge.conf");
    put("always [madvise] never", "/sys/kernel/mm/transparent_hugepage/enabled");
}

static inline void good_iommu(void)
{
    put("6.1.0-test", "/proc/sys/kernel/osrelease");
    put_folder(0755, "/sys/class/iommu/dmar0");
    put("", "/sys/firmware/acpi/tables/DMAR");
    put(" 24:  1  0  IR-IO-APIC   5-edge  ACPI:Ged", "/proc/interrupts");
    put_folder(0755, "/sys/module/vfio_pci");
    put_folder(0755, "/sys/module/vfio");
    put("N", "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts");
    put("kernel/drivers/uio/uio_pci_generic.ko.xz: kernel/drivers/uio/uio.ko.xz\n"
        "kernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz",
        "/lib/modules/6.1.0-test/modules.dep");
}

static inline void good_nics(void)
{
    put_device("0000:00:1f.2", "0x010601", "ahci", 5);
    put_device(KEPT, "0x020000", "e1000e", 11);
    put_interface(KEPT, "eno1");
    put_device(BOUND, "0x020000", "vfio-pci", 12);
    put("vfio-pci", "/etc/driverctl.d/pci-" BOUND);
    put_routes("eno1");
}

static inline void good_cpus(void)
{
    put("0-3", "/sys/devices/system/cpu/online");
    put("2-3", "/sys/devices/system/cpu/isolated");
    put("2-3", "/sys/devices/system/cpu/nohz_full");
    put("0", "/sys/devices/system/cpu/smt/active");
    put("BOOT_IMAGE=/vmlinuz root=/dev/sda1 isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3 quiet",
        "/proc/cmdline");
    for (int cpu = 0; cpu < 4; cpu++) {
        char self[8];
        snprintf(self, sizeof self, "%d", cpu);
        put(self, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        put("performance", "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu);
    }
}

static inline void good_user(void)
{
    put("root:x:0:0::/:/bin/sh\nnj:x:4242:4242::/:/bin/false", "/etc/passwd");
    put("nj:x:4242:\nserving:x:4300:other,nj", "/etc/group");
    put("nj - memlock unlimited", "/etc/security/limits.d/nj.conf");
    put("", "/dev/vfio/vfio");
    put("", "/dev/vfio/12");
    put("", "/dev/net/tun");
    put_mode(0666, "/dev/vfio/vfio");
    put_mode(0666, "/dev/vfio/12");
    put_mode(0666, "/dev/net/tun");
}

static inline void good_host(void)
{
    umask(022); /* folders are open to all */
    scratch_make();
    good_memory();
    good_iommu();
    good_nics();
    good_cpus();
    good_user();
}

/* --- the output for it ----------------------------------------------------------------------- */

static char *said; /* all lines of the last run, without "sudo " */
static char why[256];

/* Returns the exit status. */
static inline int ask(const struct nj_doctor_config *config)
{
    size_t n;
    free(said);
    FILE *out = open_memstream(&said, &n);
    int status = nj__doctor_run(config, out, why, sizeof why);

    fclose(out);
    for (char *p = said; (p = strstr(p, "sudo "));)
        memmove(p, p + 5, strlen(p + 5) + 1);
    return status;
}

static inline int doctor(void)
{
    return ask(&(struct nj_doctor_config){.root = scratch, .user = "nj"});
}

/* The line of that id, cut at its end; NULL: there is none. `advice`, unless NULL, gets the
 * commands to type. */
static inline const char *line_of(const char *id, char *advice, size_t n_advice)
{
    static char line[5000];
    char word[16], found[128];

    for (const char *p = said; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        if (*p == ' ' || sscanf(p, "%15s %127s", word, found) != 2 || strcmp(found, id) != 0)
            continue;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
        size_t at = 0;
        for (p = strchr(p, '\n') + 1; advice && *p == ' '; p = strchr(p, '\n') + 1)
            at += (size_t)snprintf(advice + at, n_advice - at, "%.*s\n", (int)strcspn(p + 9, "\n"),
                                   p + 9);
        return line;
    }
    return NULL;
}

/* The line has that verdict, that text in it, and this advice (NULL: none; "*": any). */
static inline void says(const char *id, const char *verdict, const char *text, const char *advice)
{
    char is[9000] = "";
    const char *line = line_of(id, is, sizeof is);

    cr_assert_not_null(line, "no line of %s in\n%s", id, said);
    cr_expect(strncmp(line, verdict, strlen(verdict)) == 0, "not %s: %s", verdict, line);
    cr_expect_not_null(strstr(line, text), "%s\nhas not: %s", line, text);
    if (!advice || strcmp(advice, "*") != 0)
        cr_expect_str_eq(is, advice ? advice : "", "%s", id);
    else
        cr_expect_neq(is[0], '\0', "%s: no advice", id);
}
