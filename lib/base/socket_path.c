/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/socket_path.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

_Static_assert(sizeof((struct sockaddr_un *)NULL)->sun_path == NJ_SOCKET_PATH_MAX + 1,
               "NJ_SOCKET_PATH_MAX is that of unix(7)");

static int open_socket(const char *path, struct sockaddr_un *address, int type)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address->sun_path, path);
    return socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
}

static int close_after_error(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
    return -1;
}

bool nj_socket_path_is_other_file(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

int nj_socket_path_listen(const char *path, int type, int backlog)
{
    struct sockaddr_un address;
    int fd = open_socket(path, &address, type);

    if (fd < 0)
        return -1;
    if (nj_socket_path_is_other_file(path)) {
        errno = ENOTSOCK;
        return close_after_error(fd);
    }
    unlink(path);
    /* Linux gives the file the mode of the socket (net/unix/af_unix.c), less the umask, which
     * belongs to all threads. */
    bool ok = fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
              bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
              listen(fd, backlog) == 0;
    return ok ? fd : close_after_error(fd);
}

int nj_socket_path_connect(const char *path, int type, int wait_s)
{
    struct sockaddr_un address;
    struct timeval wait = {.tv_sec = wait_s};
    int fd = open_socket(path, &address, type);

    if (fd < 0)
        return -2;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait); /* of connect(), too */
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close_after_error(fd);
    if (errno != ENOENT && errno != ECONNREFUSED)
        return -2;
    if (!nj_socket_path_is_other_file(path))
        return -1;
    errno = ENOTSOCK;
    return -2;
}

void nj_socket_path_remember(const char *path, struct nj_socket_path_file *f)
{
    struct stat st = {0};

    (void)lstat(path, &st);
    *f = (struct nj_socket_path_file){st.st_dev, st.st_ino};
}

bool nj_socket_path_is_same(const char *path, const struct nj_socket_path_file *f)
{
    struct stat st;

    return lstat(path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino;
}
