/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that is opened again later may have been replaced by another one of the same name, as
 * editors and deployments do, so that a rule is for the folder that has the name. Each link on the
 * path may be replaced, too: rules are for the folder of the link, and for that of its target.
 */
#include "privilege/landlock_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log/log.h"
#include "rights/syscall_filter.h"

/* Of later versions of the interface; the headers of Debian 12 end at REFER. */
#define ACCESS_TRUNCATE  (1ull << 14) /* version 3 */
#define ACCESS_IOCTL_DEV (1ull << 15) /* version 5 */

#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_ALL  (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1) /* version 1 */
/* Files that are written: they are made, opened again, and truncated. */
#define ACCESS_APPEND                                                                              \
    (ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | ACCESS_TRUNCATE)
/* The run-time folder of the EAL, and hugepages. */
#define ACCESS_ALL_BELOW                                                                           \
    (ACCESS_APPEND | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR)
#define ACCESS_DEVICE                                                                              \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_IOCTL_DEV)
/* A socket that is made, and removed at the end. */
#define ACCESS_SOCKET (LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE)

#define LINKS_MAX 40u /* on a path, as in Linux */

struct rules {
    int fd;
    uint64_t handled;
};

static uint64_t handled_of_version(long version)
{
    uint64_t handled = ACCESS_ALL;

    if (version >= 2)
        handled |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3)
        handled |= ACCESS_TRUNCATE;
    if (version >= 5)
        handled |= ACCESS_IOCTL_DEV;
    return handled;
}

/* A path that does not exist needs no rule. */
static void add_path(const struct rules *r, const char *path, uint64_t access)
{
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) /* the others are rights of folders */
        access &= LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                  LANDLOCK_ACCESS_FS_READ_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV;
    struct landlock_path_beneath_attr rule = {.allowed_access = access & r->handled,
                                              .parent_fd = fd};
    /* A rule without a right is ENOMSG: a file that may be removed only, with "/" as its folder.
     * EBADFD is a pipe, as standard output may be: it needs no rule. */
    if (rule.allowed_access != 0 &&
        syscall(SYS_landlock_add_rule, r->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0 &&
        errno != EBADFD)
        nj_log(NJ_LEVEL_WARNING, "Landlock: %s: %s", path, strerror(errno));
    close(fd);
}

/* The folder that has this name; the file itself if that would be all files of the system. */
static void add_parent(const struct rules *r, const char *path, uint64_t access)
{
    char *copy = strdup(path);
    const char *folder = copy ? dirname(copy) : "/";

    add_path(r, strcmp(folder, "/") == 0 ? path : folder, access);
    free(copy);
}

/* The system makes these links, and no deployment replaces them. Their folder has files of all
 * services, or of all processes: /dev/stdout leads to /proc/self/fd/1. */
static bool is_link_of_system(const char *path)
{
    bool is_device = strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0;
    struct stat st;

    return (is_device || strncmp(path, "/proc/", 6) == 0 || strcmp(path, "/var/run") == 0 ||
            strcmp(path, "/var/lock") == 0) &&
           lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static void add_links(const struct rules *r, const char *path, uint64_t access, uint32_t *n_left);

/* The folder of a link and that of its target now; and the links that this target goes through. */
static void add_link(const struct rules *r, const char *link, const char *to, uint64_t access,
                     uint32_t *n_left)
{
    char *copy = strdup(link), *target = realpath(link, NULL), *path = NULL;
    char *folder = copy ? realpath(dirname(copy), NULL) : NULL;

    add_parent(r, link, access);
    if (target)
        add_parent(r, target, access);
    if (to[0] == '/')
        add_links(r, to, access, n_left);
    else if (folder && asprintf(&path, "%s/%s", folder, to) > 0)
        add_links(r, path, access, n_left);
    free(path);
    free(folder);
    free(target);
    free(copy);
}

/* A release may be deployed by replacing any link on the path. */
static void add_links(const struct rules *r, const char *path, uint64_t access, uint32_t *n_left)
{
    size_t n = strlen(path), end = strspn(path, "/");
    char to[PATH_MAX];

    for (; end < n; end += strspn(path + end, "/")) {
        end += strcspn(path + end, "/");
        char *prefix = strndup(path, end);
        ssize_t n_to = prefix ? readlink(prefix, to, sizeof to - 1) : -1;
        if (n_to > 0 && *n_left > 0 && !is_link_of_system(prefix)) {
            to[n_to] = '\0';
            (*n_left)--;
            add_link(r, prefix, to, access, n_left);
        }
        free(prefix);
    }
}

static void add_named(const struct rules *r, const char *path, uint64_t access)
{
    uint32_t n_left = LINKS_MAX;
    size_t n = strlen(path);
    char *name = strndup(path, n > 1 && path[n - 1] == '/' ? n - 1 : n);
    if (name && is_link_of_system(name)) {
        add_path(r, name, access);
    } else if (name) {
        add_parent(r, name, access);
        add_links(r, name, access, &n_left);
    }
    free(name);
}

static void add_hugepages(const struct rules *r)
{
    char line[4352], folder[4096], type[64];
    FILE *f = fopen("/proc/self/mounts", "re");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%*s %4095s %63s", folder, type) == 2 && strcmp(type, "hugetlbfs") == 0)
            add_path(r, folder, ACCESS_ALL_BELOW);
    if (f)
        fclose(f);
}

/* What libraries open while the server runs. */
static void add_system(const struct rules *r)
{
    static const char *const read[] = {
        "/usr/lib",       "/usr/lib64", "/lib",     "/lib64", "/usr/share/zoneinfo",
        "/etc/localtime", "/etc/ssl",   "/proc",    "/sys",   "/etc/ld.so.cache",
        "/dev/urandom",   "/dev/zero",  "/dev/null"};
    static const char *const device[] = {"/dev/vfio", "/dev/net/tun", "/dev/null",
                                         "/dev/infiniband"};

    for (size_t i = 0; i < NJ_ARRAY_LEN(read); i++)
        add_path(r, read[i], ACCESS_READ);
    for (size_t i = 0; i < NJ_ARRAY_LEN(device); i++)
        add_path(r, device[i], ACCESS_DEVICE);
    add_hugepages(r);
}

static void add_needed(const struct rules *r, const struct nj_needed_file *f)
{
    static const uint64_t access_of[] = {
        [NJ_NEED_READ] = ACCESS_READ,     [NJ_NEED_FOLDER] = ACCESS_READ,
        [NJ_NEED_APPEND] = ACCESS_APPEND, [NJ_NEED_LOG] = ACCESS_APPEND,
        [NJ_NEED_SOCKET] = ACCESS_SOCKET,
    };

    if (f->need == NJ_NEED_ALL)
        add_path(r, f->path, ACCESS_ALL_BELOW);
    else
        add_named(r, f->path, access_of[f->need]);
}

int nj__landlock_open(const struct nj_needed_file *file, uint32_t n_files)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (version < 1 || NJ_IS_SANITIZED)
        return -1;
    struct rules r = {.handled = handled_of_version(version)};
    const struct landlock_ruleset_attr attr = {.handled_access_fs = r.handled};
    r.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (r.fd < 0)
        return -1;
    add_system(&r);
    for (uint32_t i = 0; i < n_files; i++)
        if (file[i].path)
            add_needed(&r, &file[i]);
    return r.fd;
}
