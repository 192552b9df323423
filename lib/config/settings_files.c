/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that a server opens as its user. */
#include <string.h>

#include "config/settings_validate.h"
#include "config/site_sections.h"

struct files {
    uint32_t n;
    struct nj_needed_file *file;
};

/* Once, also if several keys name it. */
static void need(struct files *f, enum nj_file_need what, const char *option, const char *path)
{
    for (uint32_t i = 0; path && i < f->n; i++)
        if (f->file[i].need == what && strcmp(f->file[i].path, path) == 0)
            return;
    if (path)
        f->file[f->n++] = (struct nj_needed_file){.option = option, .path = path, .need = what};
}

static void need_key(struct files *f, enum nj_file_need what, const struct nj_ini_entry *e)
{
    uint32_t n = f->n;

    need(f, what, e->key, e->value);
    if (f->n > n) {
        f->file[n].file = e->file;
        f->file[n].line = e->line;
    }
}

/* The types of media were read before; only a later server of this process reads them again. Who
 * makes the socket checks it. */
uint32_t nj_settings_list_files(const struct nj_settings *s,
                                struct nj_needed_file file[NJ_SETTINGS_FILES_MAX])
{
    const struct nj_server_config *c = s->config;
    const struct nj_ini *ini = s->policy ? s->policy->ini : NULL;
    bool logs_to_file = c->access_log && strcmp(c->access_log, "-") != 0;
    struct files f = {.file = file};

    need(&f, NJ_NEED_FOLDER, "--root", c->root);
    const struct nj_site_sections *sites = s->policy ? s->policy->sites : NULL;
    for (uint32_t i = 0; sites && i < sites->n_folders; i++)
        if (nj__site_folder_is_absolute(&sites->folders[i]))
            need_key(&f, NJ_NEED_FOLDER, sites->folders[i].at);
    for (uint32_t i = 0; sites && i < sites->n_files; i++)
        need_key(&f, NJ_NEED_READ, sites->files[i]);
    need(&f, NJ_NEED_READ, "--config", c->policy_file);
    for (uint32_t i = 1; ini && i < ini->n_files; i++)
        need(&f, NJ_NEED_READ, "include", ini->file[i].name);
    for (uint32_t i = 0; s->policy && i < s->policy->n_list_files; i++)
        need(&f, NJ_NEED_READ, "list", s->policy->list_file[i]);
    for (uint32_t i = 0; i < NJ_SERVER_TLS_CERTS_MAX; i++) {
        need(&f, NJ_NEED_READ, "--tls-cert", c->tls_cert[i]);
        need(&f, NJ_NEED_READ, "--tls-key", c->tls_key[i]);
        need(&f, NJ_NEED_READ, "--tls-ocsp", c->tls_ocsp[i]);
    }
    need(&f, NJ_NEED_READ, "--tls-client-ca", c->tls_client_ca);
    need(&f, NJ_NEED_APPEND, "--keylog", c->tls_keylog);
    need(&f, NJ_NEED_LOG, "--access-log", logs_to_file ? c->access_log : NULL);
    need(&f, NJ_NEED_READ, NULL, c->mime_types);
    need(&f, NJ_NEED_SOCKET, NULL, c->upgrade_socket);
    need(&f, NJ_NEED_SOCKET, NULL, nj_settings_management_socket(c));
    need(&f, NJ_NEED_READ, "--management-token", c->management_token);
    need(&f, NJ_NEED_READ, "--management-read-token", c->management_read_token);
    return f.n;
}
