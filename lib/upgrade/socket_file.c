/* SPDX-License-Identifier: BSD-3-Clause */
#include "upgrade/socket_file.h"

#include "log/log.h"

/* While a deployment replaces a link on the path, it may lead nowhere for a moment. */
#define CHECKS_UNTIL_LOGGED 2u

void nj__socket_file_remember(struct nj_socket_file *f)
{
    nj_socket_path_remember(f->path, &f->file);
}

bool nj__socket_file_is_own(const struct nj_socket_file *f)
{
    return nj_socket_path_is_same(f->path, &f->file);
}

void nj_socket_file_watch(struct nj_socket_file *f)
{
    if (!f->path)
        return;
    if (nj__socket_file_is_own(f))
        f->n_lost = 0;
    else if (++f->n_lost == CHECKS_UNTIL_LOGGED)
        nj_log(NJ_LEVEL_WARNING,
               "--upgrade-socket %s: this path leads no longer to the socket of this server: no "
               "process can take over from it: name a path that deployments do not change",
               f->path);
}
