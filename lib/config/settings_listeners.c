/* SPDX-License-Identifier: BSD-3-Clause */
/* Where connections are accepted: the sections [listen NAME] of the file, or without any, the ports
 * of --listen and --tls-port. */
#include <stdio.h>
#include <string.h>

#include "base/set_error.h"
#include "base/units.h"
#include "config/config_by_name.h"
#include "config/settings_validate.h"
#include "log/address_text.h"

#define OF_PROXIES "only these may connect to that port"

/* --- [listen NAME] ---------------------------------------------------------------------------- */

static bool read_flag(struct nj__policy_reader *r, const struct nj_ini_entry *e, bool *flag)
{
    *flag = strcmp(e->value, "yes") == 0;
    if (!*flag && strcmp(e->value, "no") != 0)
        nj__policy_report_bad_value(r, e, "yes or no");
    return true;
}

bool nj__listener_parse_key(struct nj__policy_reader *r, uint32_t index, const char *key,
                            const struct nj_ini_entry *e)
{
    struct nj_listener *l = &r->f->listeners.at[index];
    uint64_t port;

    if (strcmp(key, "tls") == 0)
        return read_flag(r, e, &l->is_tls);
    if (strcmp(key, "proxy_protocol") == 0)
        return read_flag(r, e, &l->has_proxy);
    if (strcmp(key, "port") == 0) {
        if (!nj_parse_decimal(e->value, &port) || port == 0 || port > UINT16_MAX)
            nj__policy_report_bad_value(r, e, "a port from 1 to 65535");
        else
            l->port = (uint16_t)port;
        return true;
    }
    if (strcmp(key, "address") != 0)
        return false;
    l->has_addr = strcmp(e->value, "any") != 0;
    if (l->has_addr && !nj_address_parse(e->value, strlen(e->value), &l->addr))
        nj__policy_report_bad_value(r, e,
                                    "any, or one address of the server, e.g. 192.0.2.10; port has "
                                    "the port");
    return true;
}

void nj__listeners_check(struct nj__policy_reader *r)
{
    struct nj_listeners *l = &r->f->listeners;
    char text[NJ_LISTENER_TEXT_BYTES], other[NJ_LISTENER_TEXT_BYTES];

    for (uint32_t i = 0; i < l->n; i++) {
        const struct nj_ini_section *s = r->f->listener_at[i], *first = NULL;
        if (!nj__policy_find_entry(r->f, s->name, "port"))
            l->at[i].port = l->at[i].is_tls ? 443 : 80;
        if (l->at[i].port == 0)
            continue; /* an invalid one, which was reported */
        nj__listener_format(&l->at[i], text);
        for (uint32_t k = 0; k < i && !first; k++)
            if (strcmp(text, nj__listener_format(&l->at[k], other)) == 0)
                first = r->f->listener_at[k];
        if (first)
            nj_diag_add(r->faults, s->file, s->line,
                        "[%s]: listens at %s, as [%s] on line %u does: expected another port or "
                        "address",
                        s->name, text, first->name, first->line);
    }
}

/* --- settings --------------------------------------------------------------------------------- */

/* Before all addresses are known (--check alone), and with router advertisements, it may be. */
static bool may_be_ours(const struct nj_settings *s, const struct nj_addr *a)
{
    for (uint32_t i = 0; i < s->n_ports; i++)
        if (nj_iface_find_addr(&s->port[i].iface, a) || (s->port[i].slaac && !nj_addr_is_v4(a)))
            return true;
    return !s->config->addr[0];
}

/* "FILE:LINE: KEY = VALUE: ..." of a section's key that is set. */
static int key_error(const struct nj_settings *s, uint32_t i, const char *key, const char *what,
                     char *why, size_t n)
{
    const struct nj_ini_entry *e =
        nj__policy_find_entry(s->policy, s->policy->listener_at[i]->name, key);

    return nj_set_error(why, n, "%s:%u: %s = %s: %s", e->file, e->line, e->key, e->value, what);
}

/* The options of ports are not for a file that has sections. */
static int refuse_options(const struct nj_settings *s, char *why, size_t n)
{
    static const char *const options[][4] = {
        {"listen", "network", "listen", "port = PORT"},
        {"tls-port", "tls", "port", "port = PORT and tls = yes"},
        {"proxy-protocol", "network", "proxy_protocol", "proxy_protocol = yes"},
    };
    const struct nj_ini_section *at = s->policy->listener_at[0];

    for (size_t i = 0; i < NJ_ARRAY_LEN(options); i++)
        if (nj_config_is_set(s->given, options[i][0]) ||
            nj__policy_find_entry(s->policy, options[i][1], options[i][2]))
            return nj_set_error(why, n,
                                "--%s: the sections of listeners have all ports, the first one is "
                                "[%s] at %s:%u: remove this, and set %s in such a section",
                                options[i][0], at->name, at->file, at->line, options[i][3]);
    return 0;
}

static int take_sections(struct nj_settings *s, char *why, size_t n)
{
    s->listeners = s->policy->listeners;
    for (uint32_t i = 0; i < s->listeners.n; i++) {
        const struct nj_listener *l = &s->listeners.at[i];
        if (l->has_addr && !may_be_ours(s, &l->addr))
            return key_error(s, i, "address",
                             "not an address of the server: expected one of addr in [network], or "
                             "any",
                             why, n);
        if (l->is_tls && !s->config->tls_cert[0])
            return key_error(s, i, "tls",
                             "there is no certificate: set cert and key in [site NAME] or [tls], "
                             "or tls = no",
                             why, n);
        if (l->has_proxy && !s->policy->trusted)
            return key_error(s, i, "proxy_protocol",
                             "set trusted_proxy = NETWORK in [client]: " OF_PROXIES, why, n);
    }
    return refuse_options(s, why, n);
}

static int read_proxy_port(struct nj_settings *s, const char *text, char *why, size_t n)
{
    struct nj_listener *l = s->listeners.at;
    uint64_t port;
    bool is_port = nj_parse_decimal(text, &port);

    while (is_port && l < s->listeners.at + s->listeners.n && l->port != port)
        l++;
    if (!is_port || l == s->listeners.at + s->listeners.n)
        return nj_set_error(why, n,
                            "--proxy-protocol %s: expected a port that the server listens on, that "
                            "of --listen%s",
                            text, s->config->tls_cert[0] ? " or --tls-port" : "");
    if (l->has_proxy)
        return nj_set_error(why, n, "--proxy-protocol %s: that port is given twice", text);
    l->has_proxy = true;
    return 0;
}

static int take_options(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;

    s->listeners = (struct nj_listeners){
        .n = c->tls_cert[0] ? 2 : 1,
        .at = {{.port = c->listen_port}, {.port = c->tls_port, .is_tls = true}}};
    for (uint32_t i = 0; i < NJ_SERVER_PROXY_MAX && c->proxy_protocol[i]; i++)
        if (read_proxy_port(s, c->proxy_protocol[i], why, n) != 0)
            return -1;
    if (c->proxy_protocol[0] && !s->policy->trusted)
        return nj_set_error(why, n,
                            "--proxy-protocol needs --trusted-proxy NETWORK, or trusted_proxy in "
                            "[client] of the configuration file: " OF_PROXIES);
    return 0;
}

int nj__settings_read_listeners(struct nj_settings *s, char *why, size_t n)
{
    return (s->policy->listeners.n > 0 ? take_sections : take_options)(s, why, n);
}
