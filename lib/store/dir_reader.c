/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a folder with readdir(3) and sorts its entries for a listing. Symbolic links are resolved
 * by the rules of file_root.h, as for a request. */
#include "store/dir_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Entries for which memory is allocated first; it grows by half. */
#define ENTRIES_MIN 64u

/* Follow a link as for a request. Returns 0 or an errno. */
static int stat_link(struct nj__root *r, const char *path, const char *name, struct stat *st)
{
    char below[NJ_PATH_MAX];
    int n = snprintf(below, sizeof below, "%s%s%s", path, path[0] ? "/" : "", name);

    if (r->symlinks == NJ_SYMLINKS_NONE || n < 0 || (size_t)n >= sizeof below)
        return ENOENT; /* no request can name it */
    int fd = nj__root_openat(r, below, O_PATH);
    if (fd < 0)
        return errno;
    int err = fstat(fd, st) < 0 ? errno : 0;
    close(fd);
    return err;
}

/* Does the error concern the target of a link alone? A request gets 403 or 404 for the link. */
static bool is_unusable_target(int err)
{
    return err == EACCES || err == EPERM || err == ENOENT || err == ENOTDIR || err == ELOOP ||
           err == EXDEV || err == ENAMETOOLONG || err == ENXIO || err == ENODEV;
}

/* Fill `e` with the metadata of `name` in the open folder. Links are followed as for a request.
 * *is_shown: it is listed. Returns 0 or an errno. */
static int stat_entry(struct nj__root *r, const char *path, int dir_fd, const char *name,
                      struct nj_listing_entry *e, bool *is_shown)
{
    struct stat st;

    *is_shown = false;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : errno; /* it was deleted meanwhile */
    if (S_ISLNK(st.st_mode)) {
        int err = stat_link(r, path, name, &st);
        if (err)
            return is_unusable_target(err) ? 0 : err;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    e->is_folder = S_ISDIR(st.st_mode);
    e->size_bytes = e->is_folder ? 0 : (uint64_t)st.st_size;
    e->mtime_s = st.st_mtim.tv_sec;
    e->name = strdup(name);
    *is_shown = e->name != NULL;
    return e->name ? 0 : ENOMEM;
}

/* Make room for one more entry. *n_room: entries that have memory. Returns 0 or an errno. */
static int grow(struct nj_listing *l, uint32_t *n_room)
{
    if (l->n_entries < *n_room)
        return 0;
    if (*n_room == NJ_DIR_ENTRIES_MAX)
        return E2BIG;
    uint32_t n = *n_room < ENTRIES_MIN ? ENTRIES_MIN : *n_room + *n_room / 2;
    n = n < NJ_DIR_ENTRIES_MAX ? n : NJ_DIR_ENTRIES_MAX;
    struct nj_listing_entry *entries = realloc(l->entries, n * sizeof l->entries[0]);
    if (!entries)
        return ENOMEM;
    l->entries = entries;
    *n_room = n;
    return 0;
}

/* Returns 0 or an errno. */
static int read_entries(struct nj__root *r, const char *path, DIR *dir, struct nj_listing *l)
{
    uint32_t n_room = 0, n_seen = 0;

    for (;;) {
        bool is_shown = false;
        errno = 0;
        const struct dirent *d = readdir(dir);
        if (!d)
            return errno;
        if (!nj_listing_may_show(d->d_name))
            continue;
        if (n_seen++ == NJ_DIR_ENTRIES_MAX)
            return E2BIG;
        int err = grow(l, &n_room);
        if (!err)
            err = stat_entry(r, path, dirfd(dir), d->d_name, &l->entries[l->n_entries], &is_shown);
        if (err)
            return err;
        l->n_entries += is_shown;
    }
}

int nj__dir_read(struct nj__root *r, const char *path, struct nj_listing *l)
{
    *l = (struct nj_listing){.path = path};
    int fd = nj__root_openat(r, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return errno;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int err = errno;
        close(fd);
        return err;
    }
    int err = read_entries(r, path, dir, l);
    closedir(dir);
    nj_listing_sort(l);
    return err;
}

void nj__dir_free(struct nj_listing *l)
{
    for (uint32_t i = 0; i < l->n_entries; i++) {
        union {
            const char *in;
            char *out;
        } name = {.in = l->entries[i].name};
        free(name.out);
    }
    free(l->entries);
}
