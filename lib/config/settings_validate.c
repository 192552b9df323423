/* SPDX-License-Identifier: BSD-3-Clause */
/* Validates a configuration and converts it to settings that bring-up uses. The order of the checks
 * is that of the error messages. */
#include "config/settings_validate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/set_error.h"
#include "config/config_by_name.h"
#include "config/site_sections.h"
#include "http/files/mime_type.h"

/* Called last, since only this step allocates. */
static int read_handlers(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *config = s->config;

    if (config->n_routes == 0)
        return 0;
    s->routes = nj_routes_new(config->routes, config->n_routes, why, n);
    return s->routes ? 0 : -1;
}

/* bind(2) would take an empty path for a name of the abstract namespace. In "/" only root makes and
 * removes sockets. */
static int check_upgrade_socket(const char *path, char *why, size_t n)
{
    const size_t bytes_max = sizeof((struct sockaddr_un *)NULL)->sun_path;

    if (!path)
        return 0;
    if (!*path || strlen(path) >= bytes_max)
        return nj_set_error(why, n, "--upgrade-socket %s: expected a path of 1 to %zu bytes", path,
                            bytes_max - 1);
    if (path[0] == '/' && !strchr(path + strspn(path, "/"), '/'))
        return nj_set_error(
            why, n,
            "--upgrade-socket %s: it would be in /: name a folder that the server's "
            "user may write to, e.g. /run/nightjar/upgrade",
            path);
    return 0;
}

static int check_root(struct nj_settings *s, char *why, size_t n)
{
    const char *root = s->config->root;
    struct stat st;

    if (root && stat(root, &st) != 0)
        return nj_set_error(why, n, "--root %s: %s", root, strerror(errno));
    if (root && !S_ISDIR(st.st_mode))
        return nj_set_error(why, n, "--root %s: not a folder", root);
    return check_upgrade_socket(s->config->upgrade_socket, why, n);
}

static int check_complete_address(struct nj_settings *s, char *why, size_t n)
{
    if (s->config->addr[0])
        return 0;
    return nj_set_error(why, n,
                        "--addr is missing: give our address on the link, e.g. --addr "
                        "198.18.0.2/24%s",
                        s->config->policy_file ? ", or addr in [network] of the file" : "");
}

static int check_complete_root(struct nj_settings *s, char *why, size_t n)
{
    if (s->config->root || s->config->n_routes > 0)
        return 0;
    return nj_set_error(why, n,
                        "--root is missing: give the folder to serve, e.g. --root /srv/www%s",
                        s->config->policy_file ? ", or root in [files] of the file" : "");
}

static int check_addresses(struct nj_settings *s, char *why, size_t n)
{
    for (uint32_t i = 0; i < s->n_ports; i++) {
        const struct nj_settings_port *p = &s->port[i];
        if (p->iface.n_addrs == 0 && !p->slaac)
            return nj_set_error(
                why, n, "--port %d has no address: give it one with --addr ADDRESS/PREFIX@%d",
                p->id, p->id);
    }
    return 0;
}

/* Without a root there is no file server. */
static int check_folders(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_site_sections *sites = s->policy->sites;

    if (s->config->root || !sites || sites->n_folders == 0)
        return 0;
    const struct nj_ini_entry *e = sites->folders[0].at;
    return nj_set_error(why, n,
                        "%s:%u: %s needs the folder of all other sites, too: root in [files], e.g. "
                        "an empty folder",
                        e->file, e->line, e->key);
}

static int check_ranges(struct nj_settings *s, char *why, size_t n)
{
    return nj_config_check_ranges(s->config, why, n);
}

/* The order of the messages. Those before and after the others need a complete configuration. The
 * last ones need that no other has failed. */
static const struct {
    int (*read)(struct nj_settings *s, char *why, size_t n);
    bool of_complete, last;
} steps[] = {
    {.read = check_complete_address, .of_complete = true},
    {.read = check_complete_root, .of_complete = true},
    {.read = check_folders, .of_complete = true},
    {.read = nj__settings_read_network},
    {.read = check_ranges},
    {.read = check_root},
    {.read = nj__settings_read_http},
    {.read = nj__settings_check_tls},
    {.read = nj__settings_read_management},
    {.read = nj__settings_read_listeners, .last = true},
    {.read = nj__settings_load_mime_types, .last = true},
    {.read = check_addresses, .of_complete = true, .last = true},
    {.read = read_handlers, .last = true},
};

/* Runs all steps. One error is in `why`; more are in s->faults, and `why` has their number. */
static int run_steps(struct nj_settings *s, bool is_complete, char *why, size_t n)
{
    struct nj_diags *faults = &s->faults;
    char text[512];

    for (size_t i = 0; i < NJ_ARRAY_LEN(steps); i++) {
        if ((steps[i].of_complete && !is_complete) || (steps[i].last && faults->n > 0) ||
            steps[i].read(s, text, sizeof text) == 0)
            continue;
        nj_policy_file_name_source(s->policy, s->given, text, sizeof text);
        nj_diag_add_line(faults, text);
    }
    if (faults->n == 0)
        return 0;
    if (faults->n > 1)
        return nj_set_error(why, n, "%u errors, see above; nothing was started", faults->n);
    nj_diags_free(faults);
    return nj_set_error(why, n, "%s", text);
}

static int read_settings(struct nj_settings *s, const struct nj_server_config *config,
                         bool is_complete, char *why, size_t n)
{
    memset(s, 0, sizeof *s);
    s->effective = *config;
    s->given = config;
    s->config = &s->effective;
    s->policy = nj_policy_file_read(config->policy_file, &s->effective, &s->faults);
    if (!s->policy)
        return nj_set_error(why, n, "%s: %u error%s, see above; nothing was started",
                            config->policy_file ? config->policy_file : "no policy", s->faults.n,
                            s->faults.n == 1 ? "" : "s");
    if (run_steps(s, is_complete, why, n) == 0)
        return 0;
    struct nj_diags faults = s->faults;
    s->faults = (struct nj_diags){0};
    nj_settings_free(s);
    s->faults = faults;
    return -1;
}

int nj_settings_from_partial_config(struct nj_settings *s, const struct nj_server_config *config,
                                    char *why, size_t n)
{
    return read_settings(s, config, false, why, n);
}

int nj_settings_from_config(struct nj_settings *s, const struct nj_server_config *config, char *why,
                            size_t n)
{
    return read_settings(s, config, true, why, n);
}

void nj_settings_free(struct nj_settings *s)
{
    nj_routes_free(s->routes);
    s->routes = NULL;
    nj_policy_file_free(s->policy);
    s->policy = NULL;
    nj_mime_table_free(s->mime);
    s->mime = NULL;
    nj_diags_free(&s->faults);
}

struct nj_settings *nj_settings_read_again(const struct nj_settings *start, struct nj_diags *faults,
                                           struct nj_diags *notes, char *why, size_t n)
{
    struct nj_settings *s = malloc(sizeof *s);

    why[0] = '\0';
    if (!s) {
        nj_set_error(why, n, "out of memory");
        return NULL;
    }
    if (nj_settings_from_config(s, start->given, why, n) != 0) {
        if (s->faults.text)
            why[0] = '\0';
        *faults = s->faults;
        free(s);
        return NULL;
    }
    nj_routes_free(s->routes);
    s->routes = NULL;
    nj_policy_file_keep_restart_keys(s->policy, start->policy, start->config, &s->effective, notes);
    nj__settings_keep_http(&s->http, &start->http);
    return s;
}
