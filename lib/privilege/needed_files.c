/* SPDX-License-Identifier: BSD-3-Clause */
#include "privilege/needed_files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/set_error.h"
#include "log/access_file.h"

static int check_readable(const struct nj_needed_file *f, const struct nj_run_user *u, char *why,
                          size_t n)
{
    bool is_folder = f->need == NJ_NEED_FOLDER;

    if (faccessat(AT_FDCWD, f->path, is_folder ? R_OK | X_OK : R_OK, AT_EACCESS) == 0 ||
        errno != EACCES)
        return 0;
    return nj_set_error(
        why, n,
        "%s %s: user %s (group %s) cannot read it: make it and the folders above it "
        "accessible, e.g. setfacl -m u:%s:%s %s (namei -l %s shows their modes), or "
        "choose another user with %s",
        f->option, f->path, u->name, u->group, u->name, is_folder ? "rx" : "r", f->path, f->path,
        f->option[0] == '-' ? "--user" : "[user] user"); /* a key of the file */
}

/* The file, or its folder if there is no such file. */
static int check_appendable(const struct nj_needed_file *f, const struct nj_run_user *u, char *why,
                            size_t n)
{
    char *copy = strdup(f->path);
    const char *which = !copy                                                          ? NULL
                        : faccessat(AT_FDCWD, f->path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? f->path
                        : errno == ENOENT ? dirname(copy)
                                          : f->path;
    int rc = 0;

    if (which && faccessat(AT_FDCWD, which, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0 &&
        errno == EACCES)
        rc = nj_set_error(why, n,
                          "%s %s: user %s (group %s) cannot write to %s: chown %s it, or choose "
                          "another user with --user",
                          f->option, f->path, u->name, u->group, which, u->name);
    free(copy);
    return rc;
}

static int check_log(const char *path, const struct nj_run_user *u, char *why, size_t n)
{
    char text[512];

    if (nj_access_file_check(path, text, sizeof text) == 0)
        return 0;
    if (errno != EACCES && errno != EPERM) /* another user could not write it either */
        return nj_set_error(why, n, "%s", text);
    return nj_set_error(why, n,
                        "%s: user %s must be able to write it, and to make it again in its folder "
                        "after a rotation: chown %s the folder, or choose another user with --user",
                        text, u->name, u->name);
}

static int check(const struct nj_needed_file *f, const struct nj_run_user *u, char *why, size_t n)
{
    switch (f->need) {
    case NJ_NEED_READ:
    case NJ_NEED_FOLDER:
        return check_readable(f, u, why, n);
    case NJ_NEED_APPEND:
        return check_appendable(f, u, why, n);
    case NJ_NEED_LOG:
        return check_log(f->path, u, why, n);
    case NJ_NEED_SOCKET:
    case NJ_NEED_ALL:
        break;
    }
    return 0;
}

int nj__needed_files_check(const struct nj_needed_file *file, uint32_t n_files,
                           const struct nj_run_user *user, char *why, size_t why_bytes)
{
    char text[1024];

    for (uint32_t i = 0; i < n_files; i++) {
        const struct nj_needed_file *f = &file[i];
        if (!f->option || !f->path || check(f, user, text, sizeof text) == 0)
            continue;
        return f->file ? nj_set_error(why, why_bytes, "%s:%u: %s", f->file, f->line, text)
                       : nj_set_error(why, why_bytes, "%s", text);
    }
    return 0;
}
