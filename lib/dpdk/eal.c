/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/eal.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

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

int nj_eal_init(int argc, char **argv, char *why, size_t why_bytes)
{
    struct nj_quiet quiet = {.on = false};

    atexit(remove_runtime_dir);
    if (!wants_to_see(argc, argv))
        nj_quiet_begin(&quiet);
    int rc = rte_eal_init(argc, argv);
    if (rc < 0)
        snprintf(why, why_bytes, "%s", rte_strerror(rte_errno));
    nj_quiet_end(&quiet, rc < 0 ? why : NULL, why_bytes);
    return rc < 0 ? -1 : 0;
}

void nj_eal_fini(void)
{
    rte_eal_cleanup();
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
