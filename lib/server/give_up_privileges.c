/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The step of bring-up that gives up privileges, after those that need them and before those that
 * open files of the configuration, so that these are opened as the user that will read them again
 * on SIGHUP.
 */
#include <string.h>

#include <rte_eal.h>

#include "dpdk/eal.h"
#include "log/log.h"
#include "server/server_internal.h"

#define FILES_MAX (8u + 3u * NJ_SERVER_TLS_CERTS_MAX + NJ_LIST_FILES_MAX + NJ_INI_FILES_MAX)

struct files {
    uint32_t n;
    struct nj_needed_file file[FILES_MAX];
};

static void need(struct files *f, enum nj_file_need what, const char *option, const char *path)
{
    f->file[f->n++] = (struct nj_needed_file){.option = option, .path = path, .need = what};
}

/* In this order they are checked. The types of media were read before; only a later server of this
 * process reads them again. Who makes the socket checks it. */
static void list_files(struct files *f, const struct nj_settings *set)
{
    const struct nj_server_config *c = set->config;
    bool logs_to_file = c->access_log && strcmp(c->access_log, "-") != 0;

    need(f, NJ_NEED_FOLDER, "--root", c->root);
    need(f, NJ_NEED_READ, "--config", c->policy_file);
    const struct nj_ini *ini = set->policy ? set->policy->ini : NULL;
    for (uint32_t i = 1; ini && i < ini->n_files; i++)
        need(f, NJ_NEED_READ, "include", ini->file[i].name);
    for (uint32_t i = 0; set->policy && i < set->policy->n_list_files; i++)
        need(f, NJ_NEED_READ, "list", set->policy->list_file[i]);
    for (uint32_t i = 0; i < NJ_SERVER_TLS_CERTS_MAX; i++) {
        need(f, NJ_NEED_READ, "--tls-cert", c->tls_cert[i]);
        need(f, NJ_NEED_READ, "--tls-key", c->tls_key[i]);
        need(f, NJ_NEED_READ, "--tls-ocsp", c->tls_ocsp[i]);
    }
    need(f, NJ_NEED_READ, "--tls-client-ca", c->tls_client_ca);
    need(f, NJ_NEED_APPEND, "--keylog", c->tls_keylog);
    need(f, NJ_NEED_LOG, "--access-log", logs_to_file ? c->access_log : NULL);
    need(f, NJ_NEED_READ, NULL, c->mime_types);
    need(f, NJ_NEED_SOCKET, NULL, c->upgrade_socket);
    need(f, NJ_NEED_ALL, NULL, rte_eal_get_runtime_dir());
}

/* Does code of the program run on lcores? What it calls and opens is not known. */
static bool has_own_code(const struct nj_server_config *c)
{
    return c->n_routes > 0 || c->lcore_init || c->lcore_fini;
}

bool nj__server_drop_privileges(struct nj_server *s)
{
    const struct nj_privileges *p = &s->privileges;
    struct files f = {0};
    char cause[256];

    if (nj_privileges_change_user(p) &&
        nj_eal_give_runtime_dir(p->user.uid, p->user.gid, cause, sizeof cause) != 0)
        nj_log(NJ_LEVEL_WARNING, "%s: files stay there at the end", cause);
    list_files(&f, &s->settings);
    return nj_privileges_drop(p, f.file, f.n, has_own_code(&s->given), s->why, sizeof s->why) == 0;
}
