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

/* Fill `e` with the metadata of `name` in the open folder. Links are followed as for a request.
 * Returns false if the entry is not listed. */
static bool stat_entry(struct nj__root *r, const char *path, int dir_fd, const char *name,
                       struct nj_listing_entry *e)
{
    char below[NJ_PATH_MAX];
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (S_ISLNK(st.st_mode)) {
        int n = snprintf(below, sizeof below, "%s%s%s", path, path[0] ? "/" : "", name);
        if (r->symlinks == NJ_SYMLINKS_NONE || n < 0 || (size_t)n >= sizeof below)
            return false;
        int fd = nj__root_openat(r, below, O_PATH);
        if (fd < 0)
            return false;
        int rc = fstat(fd, &st);
        close(fd);
        if (rc < 0)
            return false;
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return false;
    e->is_folder = S_ISDIR(st.st_mode);
    e->size_bytes = e->is_folder ? 0 : (uint64_t)st.st_size;
    e->mtime_s = st.st_mtim.tv_sec;
    e->name = strdup(name);
    return e->name != NULL;
}

/* Returns 0 or an errno. */
static int read_entries(struct nj__root *r, const char *path, DIR *dir, struct nj_listing *l)
{
    uint32_t n_seen = 0;

    for (;;) {
        errno = 0;
        const struct dirent *d = readdir(dir);
        if (!d)
            return errno;
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (n_seen++ == NJ_DIR_ENTRIES_MAX) {
            l->is_truncated = true;
            return 0;
        }
        if (nj_listing_may_show(d->d_name) &&
            stat_entry(r, path, dirfd(dir), d->d_name, &l->entries[l->n_entries]))
            l->n_entries++;
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
    l->entries = calloc(NJ_DIR_ENTRIES_MAX, sizeof l->entries[0]);
    int err = l->entries ? read_entries(r, path, dir, l) : ENOMEM;
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
