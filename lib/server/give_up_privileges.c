/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The step of bring-up that gives up privileges, after what needs them, last the sockets of
 * management, and before the steps that open files of the configuration, so that these are opened
 * as the user that will read them again on SIGHUP.
 */
#include <rte_eal.h>

#include "dpdk/eal.h"
#include "log/log.h"
#include "server/server_internal.h"

/* Does code of the program run on lcores? What it calls and opens is not known. */
static bool has_own_code(const struct nj_server_config *c)
{
    return c->n_routes > 0 || c->lcore_init || c->lcore_fini;
}

bool nj__server_drop_privileges(struct nj_server *s)
{
    const struct nj_privileges *p = &s->privileges;
    struct nj_needed_file file[NJ_SETTINGS_FILES_MAX + 1];
    uint32_t n = nj_settings_list_files(&s->settings, file);
    char cause[256];

    if (nj__management_bind(&s->management, &s->settings, p, &s->upgrade, s->why, sizeof s->why) !=
        0) {
        nj__management_close(&s->management);
        return false;
    }
    file[n++] = (struct nj_needed_file){.path = rte_eal_get_runtime_dir(), .need = NJ_NEED_ALL};
    if (nj_privileges_change_user(p) &&
        nj_eal_give_runtime_dir(p->user.uid, p->user.gid, cause, sizeof cause) != 0)
        nj_log(NJ_LEVEL_WARNING, "%s: files stay there at the end", cause);
    if (nj_privileges_drop(p, file, n, has_own_code(&s->given), s->why, sizeof s->why) == 0)
        return true;
    nj__management_close(&s->management);
    return false;
}
