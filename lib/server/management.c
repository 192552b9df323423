/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/management.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/address_text.h"
#include "log/log.h"

#define URL_BYTES (NJ_ADDRESS_TEXT_BYTES + 21u) /* ", http://[...]:65535" */

int nj__management_bind(struct nj_management *m, const struct nj_settings *settings,
                        const struct nj_privileges *privileges, const struct nj_upgrade *upgrade,
                        char *why, size_t n)
{
    const struct nj_server_config *c = settings->config;
    struct nj_mgmt_sockets *s = &m->sockets;
    bool changes_user = nj_privileges_change_user(privileges);

    m->config = c;
    nj_mgmt_sockets_init(s, nj_settings_management_socket(c), !c->management_socket);
    if (geteuid() == 0)
        nj_mgmt_sockets_make_folder(s, changes_user ? privileges->user.uid : 0,
                                    changes_user ? privileges->user.gid : 0);
    s->is_taken_over = nj_upgrade_shares_ports(upgrade);
    s->taken_from = s->is_taken_over ? upgrade->running.pid : 0;
    return nj_mgmt_sockets_bind_tcp(s, settings->management, settings->n_management,
                                    s->is_taken_over, c->upgrade_socket, why, n);
}

int nj__management_prepare(struct nj_management *m, const char *user, char *why, size_t n)
{
    const struct nj_server_config *c = m->config;

    if (nj_mgmt_tokens_read(c->management_token, c->management_read_token, &m->tokens, why, n) != 0)
        return -1;
    if (nj_mgmt_sockets_open_wake(&m->sockets, why, n) != 0)
        return -1;
    return nj_mgmt_sockets_bind_unix(&m->sockets, user, why, n);
}

static void log_sockets(const struct nj_mgmt_sockets *s)
{
    char urls[NJ_SERVER_MANAGEMENT_MAX * URL_BYTES] = "", ip[NJ_ADDRESS_TEXT_BYTES];
    const char *path = s->unix_fd >= 0 ? s->path : NULL;
    size_t at = 0;

    for (uint32_t i = 0; i < s->n_tcp && at < sizeof urls; i++) {
        const struct nj_management_address *a = s->tcp[i].address;
        bool v4 = nj_addr_is_v4(&a->ip);
        at += (size_t)snprintf(urls + at, sizeof urls - at, "%shttp://%s%s%s:%u",
                               i > 0 || path ? ", " : "", v4 ? "" : "[",
                               nj_address_text(&a->ip, ip), v4 ? "" : "]", a->port);
    }
    nj_log(NJ_LEVEL_INFO, "management: %s%s", path ? path : "", urls);
}

/* After an upgrade has begun, a name that somebody else took does not end the server. */
static int publish(struct nj_mgmt_sockets *s, char *why, size_t n)
{
    if (nj_mgmt_sockets_publish(s, why, n) == 0)
        return 0;
    if (!s->is_taken_over)
        return -1;
    nj_log(NJ_LEVEL_ERROR, "%s", why);
    return 0;
}

static nj_ns stall_of(const struct nj_server_config *c)
{
    return (nj_ns)(c->ready_stall_s * (double)NJ_SEC);
}

int nj__management_start(struct nj_management *m, const struct nj_mgmt_view *view,
                         const cpu_set_t *cpus, char *why, size_t n)
{
    atomic_store(&m->ready_stall, stall_of(m->config));
    if (!nj_mgmt_sockets_has_any(&m->sockets))
        return 0;
    if (publish(&m->sockets, why, n) == 0)
        m->listener = nj_mgmt_listener_start(view, &m->sockets, cpus, why, n);
    if (!m->listener)
        return -1;
    nj__management_configure(m, m->config, &m->tokens);
    log_sockets(&m->sockets);
    return 0;
}

void nj__management_stop(struct nj_management *m)
{
    nj_mgmt_listener_stop(m->listener);
    m->listener = NULL;
    nj__management_close(m);
}

void nj__management_close(struct nj_management *m)
{
    nj_mgmt_sockets_close(&m->sockets);
}

void nj__management_configure(struct nj_management *m, const struct nj_server_config *c,
                              const struct nj_mgmt_tokens *tokens)
{
    atomic_store(&m->ready_stall, stall_of(c));
    if (m->listener)
        nj_mgmt_listener_set(m->listener, tokens);
}
