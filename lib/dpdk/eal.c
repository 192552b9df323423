/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts and ends DPDK's environment abstraction layer (EAL) and checks its arguments. It also
 * removes the EAL's run-time folder at exit and keeps its memory out of core dumps.
 */
#include "dpdk/eal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_memory.h>

#include "base/set_error.h"
#include "dpdk/eal_output_capture.h"
#include "topo/pci_driver.h"

/* Do the arguments ask for help (the EAL prints it and exits) or the version? */
static bool wants_output(int argc, char **argv)
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
    int fd = openat(dir, "config", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
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

/* The run-time folder, open since a time at which the process could enter /run/dpdk; or -1. */
static int given_dir = -1;

/* Removes the sockets of this process, which the telemetry library cannot find by their path. */
static void remove_own_sockets(int dir)
{
    const char *path = rte_eal_get_runtime_dir();
    size_t n = strlen(path);
    DIR *fds = opendir("/proc/self/fd");

    for (const struct dirent *e; fds && (e = readdir(fds));) {
        struct sockaddr_un a = {.sun_family = AF_UNSPEC};
        socklen_t n_addr = sizeof a - 1; /* so that the path ends */
        if (getsockname(atoi(e->d_name), (struct sockaddr *)&a, &n_addr) == 0 &&
            a.sun_family == AF_UNIX && strncmp(a.sun_path, path, n) == 0 && a.sun_path[n] == '/')
            unlinkat(dir, a.sun_path + n + 1, 0);
    }
    if (fds)
        closedir(fds);
}

/* Runs at exit, because the telemetry library removes its socket only then. That library registers
 * its handler after this one, so its handler runs first. If other processes have sockets in the
 * folder, these and the folder stay. */
static void remove_runtime_dir(void)
{
    const char *path = rte_eal_get_runtime_dir();
    DIR *d = given_dir >= 0 ? fdopendir(given_dir) : opendir(path);

    if (!d)
        return;
    if (given_dir >= 0)
        remove_own_sockets(given_dir);
    if (!folder_in_use(dirfd(d)))
        for (const struct dirent *e; (e = readdir(d));)
            if (is_leftover(e->d_name))
                unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(path);
}

int nj_eal_give_runtime_dir(uid_t uid, gid_t gid, char *why, size_t why_bytes)
{
    const char *path = rte_eal_get_runtime_dir();
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = dir >= 0 ? fdopendir(dup(dir)) : NULL;
    int rc = 0;

    if (!d) {
        rc = nj_set_error(why, why_bytes, "%s: %s", path, strerror(errno));
        if (dir >= 0)
            close(dir);
        return rc;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, "..") != 0 &&
            fchownat(dir, e->d_name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
            rc = nj_set_error(why, why_bytes, "%s/%s: chown: %s", path, e->d_name, strerror(errno));
    closedir(d);
    given_dir = dir;
    return rc;
}

/* A server that has become another user leaves its run-time folder to that user, who may have made
 * links in it: the EAL, as root, would follow them. Root takes the folder back, and empties it. */
static void take_runtime_dir_back(int argc, char **argv)
{
    const char *base = getenv("RUNTIME_DIRECTORY"), *prefix = "rte";
    char path[512];
    struct stat st;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *text = nj_eal_option_value(argc, argv, &i, "--file-prefix");
        prefix = text ? text : prefix;
    }
    snprintf(path, sizeof path, "%s/dpdk/%s", base ? base : "/var/run", prefix);
    int dir = geteuid() == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *d = dir >= 0 ? fdopendir(dir) : NULL;
    if (d && fstat(dir, &st) == 0 && st.st_uid != 0 && !folder_in_use(dir) &&
        fchown(dir, 0, 0) == 0)
        for (const struct dirent *e; (e = readdir(d));)
            (void)unlinkat(dir, e->d_name, 0);
    if (d)
        closedir(d);
    else if (dir >= 0)
        close(dir);
}

static char device_error[384]; /* of a device that rte_eal_init() left out */

const char *nj_eal_skipped_device_error(void)
{
    return device_error;
}

/* The EAL's memory holds packets, and so request bodies. An event reports huge pages that are
 * mapped later. */
static int exclude_memseg_list(const struct rte_memseg_list *list, void *arg)
{
    if (!list->external)
        madvise(list->base_va, list->len, MADV_DONTDUMP);
    return 0;
}

static void exclude_new_memory(enum rte_mem_event event, const void *p, size_t n_bytes, void *arg)
{
    if (event == RTE_MEM_EVENT_ALLOC)
        madvise((void *)(uintptr_t)p, n_bytes, MADV_DONTDUMP);
}

static void exclude_from_core_dumps(void)
{
    /* Fails where memory cannot grow (--no-huge, --legacy-mem); the walk below then covers all. */
    rte_mem_event_callback_register("nj_core_dump", exclude_new_memory, NULL);
    rte_memseg_list_walk(exclude_memseg_list, NULL);
}

static enum {
    EAL_NOT_OURS, /* not initialised, or initialised by the program */
    EAL_OURS,
    EAL_ENDED, /* cleaned up, or failed half-way: DPDK initialises the EAL only once */
} eal;

/* rte_eal_init() sets the frequency of the TSC in its second half. */
bool nj_eal_is_up(void)
{
    return eal != EAL_ENDED && rte_get_tsc_hz() != 0;
}

int nj_eal_init(int argc, char **argv, char *why, size_t why_bytes)
{
    char not_bound[sizeof device_error] = "";

    if (eal == EAL_ENDED)
        return nj_set_error(
            why, why_bytes,
            "the EAL was cleaned up or failed in this process: DPDK cannot initialise it again");

    /* Before rte_eal_init(), which overwrites the last argument with the program's name. */
    nj_eal_find_unbound("/sys/bus/pci/devices", argc, argv, not_bound, sizeof not_bound);
    take_runtime_dir_back(argc, argv);
    atexit(remove_runtime_dir);
    if (!wants_output(argc, argv))
        nj_eal_log_capture_stdio();
    int rc = rte_eal_init(argc, argv);
    if (rc < 0)
        snprintf(why, why_bytes, "%s", rte_strerror(rte_errno));
    nj_eal_log_end_get_cause(rc < 0 ? why : device_error, rc < 0 ? why_bytes : sizeof device_error);
    if (rc >= 0) {
        exclude_from_core_dumps();
        if (*not_bound)
            memcpy(device_error, not_bound, sizeof device_error);
    }
    eal = rc >= 0 ? EAL_OURS : rte_get_tsc_hz() != 0 ? EAL_ENDED : EAL_NOT_OURS;
    return rc < 0 ? -1 : 0;
}

void nj_eal_keep_devices(void)
{
    if (eal == EAL_OURS)
        eal = EAL_ENDED;
}

void nj_eal_fini(void)
{
    if (eal != EAL_OURS)
        return;
    eal = EAL_ENDED;
    nj_eal_log_capture_stdio(); /* drivers print the device memory that they unmap */
    rte_eal_cleanup();
    nj_eal_log_end_get_cause(NULL, 0);
}

const char *nj_eal_option_value(int argc, char **argv, int *i, const char *name)
{
    const char *arg = argv[*i];
    size_t n = strlen(name);
    bool is_long = name[1] == '-';

    if (strncmp(arg, name, n) != 0)
        return NULL;
    if (arg[n] == '\0')
        return *i + 1 < argc ? argv[++*i] : NULL;
    if (is_long)
        return arg[n] == '=' ? arg + n + 1 : NULL;
    return arg + n;
}

bool nj_eal_find_unbound(const char *sysfs, int argc, char **argv, char *why, size_t why_bytes)
{
    char address[32], path[512], driver[64];

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *text = nj_eal_option_value(argc, argv, &i, "-a");
        text = text ? text : nj_eal_option_value(argc, argv, &i, "--allow");
        if (!text || !nj_pci_parse_address(text, address, sizeof address))
            continue;
        snprintf(path, sizeof path, "%s/%s", sysfs, address);
        if (access(path, F_OK) != 0) {
            snprintf(why, why_bytes, "%s: no such PCI device (lspci -D lists them)", address);
            return true;
        }
        nj_pci_driver_of(sysfs, address, driver, sizeof driver);
        if (nj_pci_binding_of_driver(driver) != NJ_BOUND_KERNEL)
            continue;
        snprintf(why, why_bytes,
                 "%s is bound to %s%s: bind it to vfio-pci first (dpdk-devbind.py --bind=vfio-pci "
                 "%s)",
                 address, *driver ? "the kernel's " : "no driver", driver, address);
        return true;
    }
    return false;
}

/* Copies the value of iface= in a net_tap device string to `name`. */
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

static bool mac_of_interface(const char *name, struct rte_ether_addr *mac)
{
    struct ifreq request = {.ifr_flags = 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(request.ifr_name, name, strlen(name));
    bool ok = fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &request) == 0;
    if (ok)
        memcpy(mac->addr_bytes, request.ifr_hwaddr.sa_data, sizeof mac->addr_bytes);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool nj_eal_tap_with_mac_of_interface(const char *arg, char *out, size_t n)
{
    char name[IF_NAMESIZE], text[RTE_ETHER_ADDR_FMT_SIZE];
    struct rte_ether_addr mac;

    if (!tap_name(arg, name, sizeof name) || !mac_of_interface(name, &mac))
        return false;
    rte_ether_format_addr(text, sizeof text, &mac);
    const char *given = strstr(arg, ",mac=");
    int n_before = given ? (int)(given - arg) : (int)strlen(arg);
    const char *after = given ? given + 1 + strcspn(given + 1, ",") : "";
    return (size_t)snprintf(out, n, "%.*s%s,mac=%s", n_before, arg, after, text) < n;
}

const char *nj_eal_find_existing_tap(int argc, char **argv)
{
    char name[IF_NAMESIZE];

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (tap_name(argv[i], name, sizeof name) && if_nametoindex(name) != 0)
            return strstr(argv[i], "iface=") + strlen("iface=");
    return NULL;
}
