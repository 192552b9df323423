/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/listener_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/set_error.h"
#include "log/address_text.h"
#include "log/log.h"

#define BACKLOG              256
#define CONNECT_WAIT_S       2
#define MODE                 (S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP)
#define FOLDER_MODE          (S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH)
#define CHECKS_UNTIL_REPAIRS 2u
#define OPTION               "--management-socket"

void nj_mgmt_sockets_init(struct nj_mgmt_sockets *s, const char *path, bool is_default)
{
    *s = (struct nj_mgmt_sockets){
        .path = path, .is_default = is_default, .unix_fd = -1, .wake_fd = -1, .repaired_fd = -1};
    pthread_mutex_init(&s->lock, NULL);
    for (uint32_t i = 0; i < NJ_SERVER_MANAGEMENT_MAX; i++)
        s->tcp[i].fd = -1;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* --- TCP -------------------------------------------------------------------------------------- */

static int bind_tcp(const struct nj_management_address *a, bool is_shared, bool may_be_shared)
{
    const int on = 1;
    bool v4 = nj_addr_is_v4(&a->ip);
    struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};

    memcpy(&to4.sin_addr, a->ip.b + 12, sizeof to4.sin_addr);
    memcpy(&to6.sin6_addr, a->ip.b, sizeof to6.sin6_addr);
    int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!v4)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (is_shared)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    const struct sockaddr *to = v4 ? (const struct sockaddr *)&to4 : (const struct sockaddr *)&to6;
    if (bind(fd, to, v4 ? sizeof to4 : sizeof to6) == 0) {
        /* Only now, so that a server that is no successor finds its address in use. */
        if (may_be_shared)
            setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int set_tcp_error(const struct nj_management_address *a, char *why, size_t n)
{
    char text[NJ_ADDRESS_TEXT_BYTES];
    bool v4 = nj_addr_is_v4(&a->ip);

    return nj_set_error(why, n, "--management-listen %s%s%s:%u: %s%s", v4 ? "" : "[",
                        nj_address_text(&a->ip, text), v4 ? "" : "]", a->port, strerror(errno),
                        errno == EADDRNOTAVAIL
                            ? ": it must be an address of the kernel, not of the server's port"
                            : "");
}

int nj_mgmt_sockets_bind_tcp(struct nj_mgmt_sockets *s, const struct nj_management_address *address,
                             uint32_t n, bool is_shared, bool may_be_shared, char *why,
                             size_t why_bytes)
{
    for (uint32_t i = 0; i < n; i++) {
        s->tcp[i] = (struct nj_mgmt_tcp_socket){bind_tcp(&address[i], is_shared, may_be_shared),
                                                &address[i]};
        if (s->tcp[i].fd < 0)
            return set_tcp_error(&address[i], why, why_bytes);
        s->n_tcp = i + 1;
    }
    return 0;
}

/* --- the folder of the Unix socket ------------------------------------------------------------ */

static bool belongs_to_root(const char *folder)
{
    struct stat st;

    return stat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

void nj_mgmt_sockets_make_folder(const struct nj_mgmt_sockets *s, uid_t uid, gid_t gid)
{
    char *copy = s->path ? strdup(s->path) : NULL, *above = NULL;
    const char *folder = copy ? dirname(copy) : NULL;

    if (folder)
        above = strdup(folder);
    if (above && belongs_to_root(dirname(above)) && mkdir(folder, FOLDER_MODE) == 0) {
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && (fchmod(fd, FOLDER_MODE) != 0 || fchown(fd, uid, gid) != 0))
            nj_log(NJ_LEVEL_WARNING, OPTION " %s: its folder: %s", s->path, strerror(errno));
        close_fd(&fd);
    }
    free(above);
    free(copy);
}

/* --- the Unix socket -------------------------------------------------------------------------- */

/* The process that listens there; 0: none, or its id is not known here. */
static pid_t process_of(int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 ? who.pid : 0;
}

static int check_free(const struct nj_mgmt_sockets *s, char *why, size_t n)
{
    if (nj_socket_path_is_other_file(s->path))
        return nj_set_error(why, n,
                            "%s: something else than a socket exists there: name another path "
                            "with " OPTION,
                            s->path);
    int fd = nj_socket_path_connect(s->path, SOCK_STREAM, CONNECT_WAIT_S);
    if (fd == -1)
        return 0;
    if (fd == -2)
        return nj_set_error(why, n,
                            "%s: the socket there is of another user or program: %s: name another "
                            "path with " OPTION,
                            s->path, strerror(errno));
    pid_t owner = process_of(fd);
    close(fd);
    /* Two servers may have the default path; ids of other PID namespaces are 0. */
    if (s->is_taken_over && (!s->is_default || owner == 0 || owner == s->taken_from))
        return 0;
    return nj_set_error(why, n, "%s: process %ld listens there: name another path with " OPTION,
                        s->path, (long)owner);
}

static int set_unix_error(const struct nj_mgmt_sockets *s, const char *user, char *why, size_t n)
{
    bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;

    if (errno == ENOENT)
        return nj_set_error(why, n,
                            "%s: its folder does not exist: make it, for user %s, or name "
                            "another path with " OPTION,
                            s->path, user[0] ? user : "of the server");
    if (is_denied && user[0])
        return nj_set_error(why, n,
                            "%s: user %s cannot make a socket there: chown %s its folder, or name "
                            "another path with " OPTION,
                            s->path, user, user);
    return nj_set_error(why, n, "%s: %s: name another path with " OPTION, s->path,
                        errno == ENOTSOCK ? "something else than a socket exists beside it"
                                          : strerror(errno));
}

/* A socket under another name. */
static int make_socket(const char *path, char made_at[NJ_SOCKET_PATH_MAX + 1])
{
    snprintf(made_at, NJ_SOCKET_PATH_MAX + 1, "%s.new", path);
    int fd = nj_socket_path_listen(made_at, SOCK_STREAM | SOCK_NONBLOCK, BACKLOG);
    if (fd >= 0 && fchmodat(AT_FDCWD, made_at, MODE, AT_SYMLINK_NOFOLLOW) == 0)
        return fd;
    int error = errno;
    if (fd >= 0)
        unlink(made_at);
    close_fd(&fd);
    errno = error;
    return -1;
}

/* Not if something else than a socket has come to be there. */
static int name_socket(const char *made_at, const char *path, struct nj_socket_path_file *file)
{
    if (nj_socket_path_is_other_file(path)) {
        errno = ENOTSOCK;
        return -1;
    }
    nj_socket_path_remember(made_at, file);
    return rename(made_at, path);
}

int nj_mgmt_sockets_open_wake(struct nj_mgmt_sockets *s, char *why, size_t n)
{
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return s->wake_fd >= 0 ? 0 : nj_set_error(why, n, "management: %s", strerror(errno));
}

int nj_mgmt_sockets_bind_unix(struct nj_mgmt_sockets *s, const char *user, char *why, size_t n)
{
    char cause[400];

    if (!s->path)
        return 0;
    int rc = check_free(s, cause, sizeof cause);
    if (rc == 0) {
        s->unix_fd = make_socket(s->path, s->made_at);
        rc = s->unix_fd >= 0 ? 0 : set_unix_error(s, user, cause, sizeof cause);
    }
    if (rc == 0)
        return 0;
    if (!s->is_default)
        return nj_set_error(why, n, OPTION " %s", cause);
    nj_log(NJ_LEVEL_INFO, "no management socket: %s, or none", cause);
    s->path = NULL;
    return 0;
}

bool nj_mgmt_sockets_has_any(const struct nj_mgmt_sockets *s)
{
    return s->unix_fd >= 0 || s->n_tcp > 0;
}

void nj_mgmt_sockets_wake(struct nj_mgmt_sockets *s)
{
    const uint64_t one = 1;

    (void)!write(s->wake_fd, &one, sizeof one);
}

int nj_mgmt_sockets_publish(struct nj_mgmt_sockets *s, char *why, size_t n)
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (s->unix_fd >= 0) {
        s->is_published = name_socket(s->made_at, s->path, &s->file) == 0;
        if (!s->is_published && s->is_default)
            nj_log(NJ_LEVEL_INFO, "no management socket: %s: %s", s->path, strerror(errno));
        else if (!s->is_published)
            rc = nj_set_error(why, n, OPTION " %s: %s", s->path, strerror(errno));
    }
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->n_tcp; i++)
        if (listen(s->tcp[i].fd, BACKLOG) != 0)
            rc = set_tcp_error(s->tcp[i].address, why, n);
    return rc;
}

/* Nobody listens at the path. */
static int make_again(struct nj_mgmt_sockets *s)
{
    char made_at[NJ_SOCKET_PATH_MAX + 1], cause[400];
    const struct nj_mgmt_sockets any = {.path = s->path};

    if (check_free(&any, cause, sizeof cause) != 0)
        return -1;
    int fd = make_socket(s->path, made_at);
    if (fd >= 0 && name_socket(made_at, s->path, &s->file) == 0) {
        nj_log(NJ_LEVEL_INFO, OPTION " %s: the socket was missing, and is there again", s->path);
        return fd;
    }
    nj_log(NJ_LEVEL_WARNING, OPTION " %s: the socket is missing, and cannot be made again: %s",
           s->path, strerror(errno));
    if (fd >= 0)
        unlink(made_at);
    close_fd(&fd);
    return -1;
}

void nj_mgmt_sockets_repair(struct nj_mgmt_sockets *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->is_published && nj_socket_path_is_same(s->path, &s->file)) {
        s->n_lost = 0;
    } else if (s->is_published && ++s->n_lost % CHECKS_UNTIL_REPAIRS == 0) {
        close_fd(&s->repaired_fd);
        s->repaired_fd = make_again(s);
    }
    if (s->repaired_fd >= 0)
        nj_mgmt_sockets_wake(s);
    pthread_mutex_unlock(&s->lock);
}

void nj_mgmt_sockets_take_repaired(struct nj_mgmt_sockets *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->repaired_fd >= 0) {
        close_fd(&s->unix_fd);
        s->unix_fd = s->repaired_fd;
        s->repaired_fd = -1;
    }
    pthread_mutex_unlock(&s->lock);
}

void nj_mgmt_sockets_close(struct nj_mgmt_sockets *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->is_published && nj_socket_path_is_same(s->path, &s->file))
        unlink(s->path);
    else if (!s->is_published && s->unix_fd >= 0)
        unlink(s->made_at);
    s->is_published = false;
    close_fd(&s->repaired_fd);
    close_fd(&s->unix_fd);
    close_fd(&s->wake_fd);
    pthread_mutex_unlock(&s->lock);
    s->n_tcp = 0;
    for (uint32_t i = 0; i < NJ_SERVER_MANAGEMENT_MAX; i++)
        close_fd(&s->tcp[i].fd);
}
