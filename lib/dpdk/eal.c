/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/eal.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>

#include "base/attr.h"
#include "dpdk/quiet.h"

/* Help, after which the EAL exits, and the version, after which it goes on. */
static bool wants_to_see(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0 ||
            strcmp(argv[i], "-v") == 0)
            return true;
    return false;
}

/* Does another process hold the EAL's lock on this run-time folder? */
static bool folder_in_use(int dir)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
    int fd = openat(dir, "config", O_RDWR | O_CLOEXEC);
    bool held = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

    if (fd >= 0)
        close(fd);
    return held;
}

/* The EAL keeps these for secondary processes, and clears them only at the next start. */
static bool is_leftover(const char *name)
{
    return strcmp(name, "config") == 0 || strncmp(name, "fbarray_", 8) == 0 ||
           strncmp(name, "hugepage_", 9) == 0 || strncmp(name, "mp_socket", 9) == 0;
}

/* At exit, not at cleanup: the telemetry library takes its socket away only then. It registers
 * after us, so it comes before us. Sockets of others that share the folder stay, and so does it
 * then. */
static void remove_runtime_dir(void)
{
    const char *path = rte_eal_get_runtime_dir();
    DIR *d = opendir(path);

    if (!d)
        return;
    if (!folder_in_use(dirfd(d)))
        for (const struct dirent *e; (e = readdir(d));)
            if (is_leftover(e->d_name))
                unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(path);
}

static char complaint[384]; /* of a start that went on without a device */

const char *nj_eal_complaint(void)
{
    return complaint;
}

/* Packets are in the EAL's memory, request bodies among them. Of huge pages only those that are
 * there are mapped for use; those to come are told of by an event. */
static int leave_out_list(const struct rte_memseg_list *list, void *arg)
{
    if (!list->external)
        madvise(list->base_va, list->len, MADV_DONTDUMP);
    return 0;
}

static void leave_out_new(enum rte_mem_event event, const void *p, size_t n_bytes, void *arg)
{
    if (event == RTE_MEM_EVENT_ALLOC)
        madvise((void *)(uintptr_t)p, n_bytes, MADV_DONTDUMP);
}

static void leave_out_of_core_dumps(void)
{
    /* Refused where memory can't grow (--no-huge, --legacy-mem): the lists are all there is. */
    rte_mem_event_callback_register("nj_core_dump", leave_out_new, NULL);
    rte_memseg_list_walk(leave_out_list, NULL);
}

int nj_eal_init(int argc, char **argv, char *why, size_t why_bytes)
{
    struct nj_quiet quiet = {.on = false};
    char not_bound[sizeof complaint] = "";

    /* Before, since the EAL writes the program's name over the last argument. */
    nj_eal_not_bound("/sys/bus/pci/devices", argc, argv, not_bound, sizeof not_bound);
    atexit(remove_runtime_dir);
    if (!wants_to_see(argc, argv))
        nj_quiet_begin(&quiet);
    int rc = rte_eal_init(argc, argv);
    if (rc < 0)
        snprintf(why, why_bytes, "%s", rte_strerror(rte_errno));
    nj_quiet_end(&quiet, rc < 0 ? why : complaint, rc < 0 ? why_bytes : sizeof complaint);
    if (rc >= 0) {
        leave_out_of_core_dumps();
        if (*not_bound)
            memcpy(complaint, not_bound, sizeof complaint);
    }
    return rc < 0 ? -1 : 0;
}

void nj_eal_fini(void)
{
    struct nj_quiet quiet;

    nj_quiet_begin(&quiet); /* it tells which memory of a NIC it unmaps */
    rte_eal_cleanup();
    nj_quiet_end(&quiet, NULL, 0);
}

/* The value of the option in argv[i] that names a device to use, or NULL. */
static const char *allowed(int argc, char **argv, int i)
{
    if (strcmp(argv[i], "-a") == 0 || strcmp(argv[i], "--allow") == 0)
        return i + 1 < argc ? argv[i + 1] : NULL;
    if (strncmp(argv[i], "-a", 2) == 0)
        return argv[i] + 2;
    return strncmp(argv[i], "--allow=", 8) == 0 ? argv[i] + 8 : NULL;
}

/* "DOMAIN:BUS:DEVICE.FUNCTION" of it, also when the domain was left out. */
static bool pci_address(const char *text, char *address, size_t n)
{
    unsigned domain, bus, device, function;

    if (sscanf(text, "%x:%x:%x.%u", &domain, &bus, &device, &function) != 4) {
        domain = 0;
        if (sscanf(text, "%x:%x.%u", &bus, &device, &function) != 3)
            return false;
    }
    snprintf(address, n, "%04x:%02x:%02x.%u", domain, bus, device, function);
    return true;
}

enum nj_eal_binding nj_eal_binding(const char *driver)
{
    static const struct {
        const char *name;
        enum nj_eal_binding binding;
    } drivers[] = {
        {"vfio-pci", NJ_BOUND_VFIO},    {"uio_pci_generic", NJ_BOUND_UIO},
        {"igb_uio", NJ_BOUND_UIO},      {"uio_hv_generic", NJ_BOUND_UIO},
        {"mlx5_core", NJ_BOUND_SHARED}, {"mlx4_core", NJ_BOUND_SHARED},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(drivers); i++)
        if (strcmp(driver, drivers[i].name) == 0)
            return drivers[i].binding;
    return NJ_BOUND_KERNEL;
}

bool nj_eal_not_bound(const char *sysfs, int argc, char **argv, char *why, size_t why_bytes)
{
    char address[32], path[512], target[512];

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *text = allowed(argc, argv, i);
        if (!text || !pci_address(text, address, sizeof address))
            continue;
        snprintf(path, sizeof path, "%s/%s", sysfs, address);
        if (access(path, F_OK) != 0) {
            snprintf(why, why_bytes, "%s: there is no such PCI device (lspci -D lists them)",
                     address);
            return true;
        }
        snprintf(path, sizeof path, "%s/%s/driver", sysfs, address);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        const char *slash = strrchr(target, '/'), *driver = slash ? slash + 1 : target;
        if (nj_eal_binding(driver) != NJ_BOUND_KERNEL)
            continue;
        snprintf(why, why_bytes,
                 "%s is bound to %s%s: bind it to vfio-pci first (dpdk-devbind.py --bind=vfio-pci "
                 "%s)",
                 address, *driver ? "the kernel's " : "no driver", driver, address);
        return true;
    }
    return false;
}

/* The value of iface= in a net_tap device string; `name` receives it. */
static bool tap_name(const char *arg, char *name, size_t name_bytes)
{
    const char *dev = strstr(arg, "net_tap");
    const char *key = dev ? strstr(dev, "iface=") : NULL;
    if (!key)
        return false;
    key += strlen("iface=");
    size_t n = strcspn(key, ",");
    if (n == 0 || n >= name_bytes)
        return false;
    memcpy(name, key, n);
    name[n] = '\0';
    return true;
}

const char *nj_eal_tap_taken(int argc, char **argv)
{
    char name[IF_NAMESIZE];

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (tap_name(argv[i], name, sizeof name) && if_nametoindex(name) != 0)
            return strstr(argv[i], "iface=") + strlen("iface=");
    return NULL;
}
