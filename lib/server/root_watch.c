/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/root_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"

/* While a deployment replaces the folder, its name may be missing for a moment. */
#define CHECKS_UNTIL_LOGGED 2u

/* `error`: of open(2) where the state is not SERVED. */
static enum nj_root_state look_at_root(const struct nj_root_watch *w, int *error)
{
    struct stat now;
    int fd = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *error = errno;
    if (fd >= 0) {
        close(fd);
        return NJ_ROOT_SERVED;
    }
    /* As root, threads have other rights while they open files, and the start has warned. */
    if (*error == EACCES && nj_privileges_keep_root(w->privileges))
        return NJ_ROOT_SERVED;
    if (*error != EACCES || stat(w->root, &now) != 0)
        return NJ_ROOT_MISSING;
    return nj_file_store_is_root(w->store, &now) ? NJ_ROOT_CLOSED : NJ_ROOT_ELSEWHERE;
}

static void log_root(const char *root, enum nj_root_state state, int error)
{
    if (state == NJ_ROOT_MISSING)
        nj_log(NJ_LEVEL_ERROR, "--root %s: %s: the folder that had this name is served meanwhile",
               root, error == ENOENT ? "it does not exist" : strerror(error));
    else if (state == NJ_ROOT_CLOSED)
        nj_log(NJ_LEVEL_ERROR,
               "--root %s: the server's user may not read it any more: requests get 403 until it "
               "may",
               root);
    else
        nj_log(NJ_LEVEL_ERROR,
               "--root %s: it names a folder now that this server may not read: its user cannot, "
               "or it is outside of the folders that the server declared at its start (those of "
               "the links on this path, and of their targets then); the former folder is served "
               "meanwhile, in the second case until a restart",
               root);
}

void nj__root_watch_check(const struct nj_root_watch *w)
{
    int error;

    if (!w->store)
        return;
    enum nj_root_state state = look_at_root(w, &error);
    if (state != NJ_ROOT_SERVED)
        log_root(w->root, state, error);
}

void nj__root_watch_tick(struct nj_root_watch *w)
{
    int error;
    enum nj_root_state state = look_at_root(w, &error);

    if (state != w->seen) {
        w->seen = state;
        w->n_checks = 0;
    }
    if (++w->n_checks < CHECKS_UNTIL_LOGGED || state == w->logged)
        return;
    w->logged = state;
    if (state != NJ_ROOT_SERVED)
        log_root(w->root, state, error);
    else
        nj_log(NJ_LEVEL_INFO, "--root %s: the folder that has this name now is served", w->root);
}
