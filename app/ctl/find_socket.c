/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/socket_path.h"
#include "ctl/ctl.h"

/* Of struct dirent: sockets of management. Others in the folder, as that of --upgrade-socket and
 * those that a server makes, have other names. */
static int name_ends_with_sock(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return n > 5 && strcmp(e->d_name + n - 5, ".sock") == 0;
}

static bool is_socket(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* "FOLDER/NAME". False: it is too long. */
static bool join(char path[CTL_PATH_BYTES], const char *folder, const char *name)
{
    int n = snprintf(path, CTL_PATH_BYTES, "%s/%s", folder, name);

    return n > 0 && n < CTL_PATH_BYTES;
}

static void free_names(struct dirent **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

/* Returns how many sockets of management there are; the last one is in `path`, all in `why`. */
static int sockets_in(const char *folder, char path[CTL_PATH_BYTES], char *why, size_t why_bytes)
{
    struct dirent **names;
    int n = scandir(folder, &names, name_ends_with_sock, alphasort), n_found = 0;
    size_t at = (size_t)snprintf(why, why_bytes, "several servers: --socket PATH names one of");

    for (int i = 0; i < n; i++) {
        char one[CTL_PATH_BYTES];
        if (!join(one, folder, names[i]->d_name) || !is_socket(one))
            continue;
        n_found++;
        memcpy(path, one, sizeof one);
        if (at < why_bytes)
            at += (size_t)snprintf(why + at, why_bytes - at, " %s", one);
    }
    if (n >= 0)
        free_names(names, n);
    return n_found;
}

static bool find_in(const char *folder, char path[CTL_PATH_BYTES], char *why, size_t why_bytes)
{
    if (join(path, folder, CTL_SOCKET_NAME) && is_socket(path))
        return true;
    if (access(folder, R_OK | X_OK) != 0 && errno != ENOENT) {
        snprintf(why, why_bytes, "%s: %s: use sudo, or join the group of the server", folder,
                 strerror(errno));
        return false;
    }
    int n = sockets_in(folder, path, why, why_bytes);
    if (n == 0)
        snprintf(why, why_bytes,
                 "no server was found: there is no socket in %s; --socket PATH names that of a "
                 "server with --management-socket",
                 folder);
    return n == 1;
}

static bool may_write(const char *path, char *why, size_t why_bytes)
{
    struct stat st;

    if (access(path, W_OK) == 0)
        return true;
    int error = errno;
    const struct group *group = stat(path, &st) == 0 ? getgrgid(st.st_gid) : NULL;
    if (error == EACCES && group)
        snprintf(why, why_bytes, "%s: permission denied: use sudo, or join the group %s", path,
                 group->gr_name);
    else
        snprintf(why, why_bytes, "%s: %s%s", path, strerror(error),
                 error == ENOENT ? ": does the server run?" : "");
    return false;
}

bool ctl_find_socket(const char *given, char path[CTL_PATH_BYTES], char *why, size_t why_bytes)
{
    struct stat st;
    const char *from = given ? given : CTL_SOCKET_FOLDER;

    if (!given || (stat(from, &st) == 0 && S_ISDIR(st.st_mode)))
        return find_in(from, path, why, why_bytes) && may_write(path, why, why_bytes);
    int n = snprintf(path, CTL_PATH_BYTES, "%s", from);
    if (n <= 0 || n >= CTL_PATH_BYTES) {
        snprintf(why, why_bytes, "%s: the path of a socket has 1 to %d bytes", from,
                 CTL_PATH_BYTES - 1);
        return false;
    }
    if (!may_write(path, why, why_bytes))
        return false;
    if (!is_socket(path))
        snprintf(why, why_bytes, "%s: this is no socket", path);
    return is_socket(path);
}

static bool belongs_to(const char *path, pid_t pid)
{
    struct ucred who = {0};
    socklen_t n = sizeof who;
    int fd = nj_socket_path_connect(path, SOCK_STREAM, 1);

    if (fd < 0)
        return false;
    int rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n);
    close(fd);
    return rc == 0 && who.pid == pid;
}

static bool find_of(pid_t pid, const char *folder, char path[CTL_PATH_BYTES])
{
    struct dirent **names;
    int n = scandir(folder, &names, name_ends_with_sock, alphasort);
    bool found = false;

    for (int i = 0; i < n && !found; i++)
        found = join(path, folder, names[i]->d_name) && belongs_to(path, pid);
    if (n >= 0)
        free_names(names, n);
    return found;
}

bool ctl_find_socket_of(pid_t pid, const char *given, char path[CTL_PATH_BYTES], char *why,
                        size_t why_bytes)
{
    struct stat st;
    const char *from = given ? given : CTL_SOCKET_FOLDER;
    bool found =
        given && (stat(from, &st) != 0 || !S_ISDIR(st.st_mode))
            ? snprintf(path, CTL_PATH_BYTES, "%s", from) < CTL_PATH_BYTES && belongs_to(path, pid)
            : find_of(pid, from, path);

    if (!found)
        snprintf(why, why_bytes, "%s: no socket of process %ld, or permission is denied", from,
                 (long)pid);
    return found;
}
