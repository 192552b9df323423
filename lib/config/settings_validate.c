/* SPDX-License-Identifier: BSD-3-Clause */
/* Validates a configuration and converts it to settings that bring-up uses. The order of the checks
 * is that of the error messages. */
#include "config/settings_validate.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/set_error.h"
#include "config/config_by_name.h"
#include "http/files/mime_type.h"

/* Called last, since only this step allocates. */
static int read_handlers(struct nj_settings *s, const struct nj_server_config *config, char *why,
                         size_t n)
{
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

static int read_remaining(struct nj_settings *s, const struct nj_server_config *config, char *why,
                          size_t n)
{
    struct stat st;

    if (nj__settings_read_network(s, why, n) != 0)
        return -1;
    if (nj_config_check_ranges(config, why, n) != 0)
        return -1;
    if (config->root && stat(config->root, &st) != 0)
        return nj_set_error(why, n, "--root %s: %s", config->root, strerror(errno));
    if (config->root && !S_ISDIR(st.st_mode))
        return nj_set_error(why, n, "--root %s: not a folder", config->root);
    if (check_upgrade_socket(config->upgrade_socket, why, n) != 0)
        return -1;
    if (nj__settings_read_http(s, why, n) != 0 || nj__settings_check_tls(s, why, n) != 0 ||
        nj__settings_read_proxy_ports(s, why, n) != 0)
        return -1;
    return read_handlers(s, config, why, n);
}

/* An address and something to serve. */
static int check_complete(const struct nj_server_config *c, char *why, size_t n)
{
    if (!c->addr[0])
        return nj_set_error(why, n,
                            "--addr is missing: give our address on the link, e.g. --addr "
                            "198.18.0.2/24%s",
                            c->policy_file ? ", or addr in [network] of the file" : "");
    if (!c->root && c->n_routes == 0)
        return nj_set_error(why, n,
                            "--root is missing: give the folder to serve, e.g. --root /srv/www%s",
                            c->policy_file ? ", or root in [files] of the file" : "");
    return 0;
}

static int check_addresses(const struct nj_settings *s, char *why, size_t n)
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
    if ((!is_complete || check_complete(s->config, why, n) == 0) &&
        read_remaining(s, s->config, why, n) == 0 && nj__settings_load_mime_types(s, why, n) == 0 &&
        (!is_complete || check_addresses(s, why, n) == 0))
        return 0;
    nj_policy_file_name_source(s->policy, config, why, n);
    nj_settings_free(s);
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
