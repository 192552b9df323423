/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens paths below the document root by openat2(2). Two symlink policies map to its flags. The
 * third, links with the same owner as their target, is resolved one name at a time: each open is of
 * one name relative to an open folder, so no check can race with a replacement (TOCTOU). A link is
 * read through its own descriptor; the owner checked is that of the final descriptor.
 */
#include "store/file_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/relaxed_atomics.h"
#include "threads/os_clock.h"

/* openat2(2) returns EAGAIN if a component of the path was renamed meanwhile. */
#define OPEN_TRIES 4
/* Interval of the checks whether the root was replaced. */
#define CHECK_MS   1000
/* Maximum of links followed, as in Linux. */
#define LINKS_MAX  40u

static int open_at(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd = -1;

    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd;
}

static int64_t now_ms(void)
{
    return (int64_t)(nj_os_clock_gettime_ns(CLOCK_MONOTONIC_COARSE) / NJ_MS);
}

static int fill_error(int err, char *out, size_t n_out, const char *what, const char *root)
{
    snprintf(out, n_out, "%s: %s: %s", root, what, strerror(err));
    return -err;
}

int nj__root_open(struct nj__root *r, const char *path, enum nj_symlinks symlinks, char *err,
                  size_t n_err)
{
    int root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return fill_error(errno, err, n_err, "can't open the root folder", path);

    int fd = open_at(root_fd, ".", O_RDONLY | O_DIRECTORY, 0);
    int open_errno = errno;
    if (fd < 0) {
        close(root_fd);
        return fill_error(open_errno, err, n_err,
                          open_errno == ENOSYS ? "openat2 is missing (Linux 5.6 or later is needed)"
                                               : "can't read the root folder",
                          path);
    }
    close(fd);
    *r = (struct nj__root){
        .path = strdup(path), .fd = root_fd, .symlinks = symlinks, .checked_ms = now_ms()};
    if (r->path)
        return 0;
    close(root_fd);
    return fill_error(ENOMEM, err, n_err, "can't remember the root folder", path);
}

void nj__root_close(struct nj__root *r)
{
    close(r->fd);
    free(r->path);
}

/* While the root's name does not exist, or names an unreadable folder, the old folder is served.
 * dup3(2) replaces the folder of the descriptor atomically: a call in progress continues in the old
 * folder, the next one uses the new one. A walk that returns to the root by ".." may continue in
 * the new one. */
static void reopen_root(struct nj__root *r)
{
    struct stat now, held;

    if (stat(r->path, &now) < 0 || fstat(r->fd, &held) < 0 ||
        (now.st_dev == held.st_dev && now.st_ino == held.st_ino))
        return;
    int fd = open(r->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    int readable = open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0);
    if (readable < 0) { /* as at the start: a folder that cannot be read is not served */
        close(fd);
        return;
    }
    close(readable);
    (void)dup3(fd, r->fd, O_CLOEXEC); /* if it fails, the old one stays */
    close(fd);
}

/* A release is often deployed by replacing the folder (or link) of the root's name: switch to it.
 * One thread checks at a time, so that a file system that does not respond blocks only one. */
static void check_root_name(struct nj__root *r)
{
    int64_t then = nj_load_relaxed(&r->checked_ms);

    if (now_ms() - then < CHECK_MS ||
        !atomic_compare_exchange_strong_explicit(&r->checked_ms, &then, INT64_MAX,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    reopen_root(r);
    nj_store_relaxed(&r->checked_ms, now_ms());
}

struct walk {
    int dirs[NJ__ROOT_DEPTH_MAX]; /* [0] is the root's, the others are ours */
    uint32_t depth;
    char rest[NJ_PATH_MAX]; /* the unresolved rest of the path */
    uint32_t n_followed, n_open_links;
    struct {
        uid_t owner;
        size_t n_rest; /* its target is resolved when `rest` is at most this long */
    } link[LINKS_MAX];
};

static void walk_end(struct walk *w)
{
    while (w->depth > 0)
        close(w->dirs[w->depth--]);
}

/* Remove the first name from the rest. Returns false if the rest is empty. */
static bool next_name(struct walk *w, char *name)
{
    size_t from = strspn(w->rest, "/"), n = strcspn(w->rest + from, "/");

    if (n == 0)
        return false;
    memcpy(name, w->rest + from, n);
    name[n] = '\0';
    from += n;
    from += strspn(w->rest + from, "/");
    memmove(w->rest, w->rest + from, strlen(w->rest + from) + 1);
    return true;
}

/* Read the link `name` in the current folder and prepend its target to the rest. */
static int follow(struct walk *w, const char *name)
{
    char target[NJ_PATH_MAX];
    struct stat st;
    int fd = open_at(w->dirs[w->depth], name, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return -errno;

    int rc = 0;
    ssize_t n = -1;
    if (fstat(fd, &st) < 0 || (n = readlinkat(fd, "", target, sizeof target)) < 0)
        rc = -errno; /* also when it is no link any more */
    close(fd);
    if (rc < 0)
        return rc;
    size_t n_target = (size_t)n, n_rest = strlen(w->rest);
    if (n_target == 0 || target[0] == '/')
        return -EXDEV;
    if (w->n_followed++ == LINKS_MAX)
        return -ELOOP;
    if (n_target + 1 + n_rest >= sizeof w->rest)
        return -ENAMETOOLONG;
    memmove(w->rest + n_target + 1, w->rest, n_rest + 1);
    memcpy(w->rest, target, n_target);
    w->rest[n_target] = '/';
    w->link[w->n_open_links].owner = st.st_uid;
    w->link[w->n_open_links++].n_rest = n_rest;
    return 0;
}

/* Check `fd` against the owners of the links that resolve to it. */
static int check_owners(struct walk *w, int fd)
{
    struct stat st;
    size_t n_rest = strlen(w->rest + strspn(w->rest, "/"));

    if (w->n_open_links == 0 || n_rest > w->link[w->n_open_links - 1].n_rest)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    while (w->n_open_links > 0 && n_rest <= w->link[w->n_open_links - 1].n_rest)
        if (w->link[--w->n_open_links].owner != st.st_uid)
            return -ELOOP;
    return 0;
}

/* Enter a folder, or its parent for "..". */
static int enter(struct walk *w, const char *name)
{
    if (strcmp(name, "..") == 0) {
        if (w->depth == 0)
            return -EXDEV;
        close(w->dirs[w->depth--]);
    } else if (strcmp(name, ".") != 0) {
        if (w->depth + 1 == NJ__ROOT_DEPTH_MAX)
            return -ENAMETOOLONG;
        int fd = open_at(w->dirs[w->depth], name, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
        if (fd < 0)
            return errno == ELOOP ? follow(w, name) : -errno;
        w->dirs[++w->depth] = fd;
    }
    return check_owners(w, w->dirs[w->depth]);
}

/* Open the last name of the path, or ".". -ELOOP may mean a link, which the caller then follows. */
static int open_last(struct walk *w, const char *name, uint64_t flags)
{
    int fd = open_at(w->dirs[w->depth], name, flags, RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return -errno;
    int rc = check_owners(w, fd);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

static int walk_to(struct walk *w, uint64_t flags)
{
    char name[NJ_PATH_MAX];

    while (next_name(w, name)) {
        int rc;
        bool is_last = w->rest[0] == '\0' && strcmp(name, "..") != 0 && strcmp(name, ".") != 0;
        if (is_last) {
            uint32_t n_open = w->n_open_links;
            rc = open_last(w, name, flags);
            /* A link, and not a refusal of check_owners(), which takes links off. */
            if (rc == -ELOOP && w->n_open_links == n_open)
                rc = follow(w, name);
            else
                return rc;
        } else {
            rc = enter(w, name);
        }
        if (rc < 0)
            return rc;
    }
    return open_last(w, ".", flags);
}

static int openat_by_owner(int root_fd, const char *path, uint64_t flags)
{
    struct walk w = {.dirs = {root_fd}};
    int fd = open_at(root_fd, path, flags, RESOLVE_NO_SYMLINKS);

    if (fd >= 0 || errno != ELOOP)
        return fd;
    NJ_ASSERT(strlen(path) < sizeof w.rest);
    strcpy(w.rest, path);
    int rc = walk_to(&w, flags);
    walk_end(&w);
    if (rc >= 0)
        return rc;
    errno = -rc;
    return -1;
}

static int open_below(int root_fd, enum nj_symlinks symlinks, const char *path, uint64_t flags)
{
    path = path[0] ? path : ".";
    if (symlinks == NJ_SYMLINKS_OWNER)
        return openat_by_owner(root_fd, path, flags);
    return open_at(root_fd, path, flags, symlinks == NJ_SYMLINKS_NONE ? RESOLVE_NO_SYMLINKS : 0);
}

/* The path of a site. Its folder is opened each time, so that it may be replaced. */
static int open_of_site(struct nj__root *r, const char *path, uint64_t flags)
{
    const uint64_t folder_flags = O_PATH | O_DIRECTORY;
    const char *end = strlen(path) > 2 ? strstr(path + 2, "//") : NULL;
    size_t n = end ? (size_t)(end - path) : strlen(path);
    char folder[NJ_PATH_MAX];

    memcpy(folder, path + 1, n - 1);
    folder[n - 1] = '\0';
    int root_fd = folder[0] == '/' ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)
                                   : open_below(r->fd, r->symlinks, folder, folder_flags);
    if (root_fd < 0)
        return -1;
    int fd = open_below(root_fd, r->symlinks, end ? end + strspn(end, "/") : "", flags);
    int error = errno;
    close(root_fd);
    errno = error;
    return fd;
}

int nj__root_openat(struct nj__root *r, const char *path, uint64_t flags)
{
    check_root_name(r);
    return path[0] == '/' ? open_of_site(r, path, flags)
                          : open_below(r->fd, r->symlinks, path, flags);
}
