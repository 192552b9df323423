/* SPDX-License-Identifier: BSD-3-Clause */
/* Where connections are accepted: the ports of --listen and --tls-port. */
#include "base/set_error.h"
#include "base/units.h"
#include "config/settings_validate.h"

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

int nj__settings_read_listeners(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;

    s->listeners = (struct nj_listeners){
        .n = c->tls_cert[0] ? 2 : 1,
        .at = {{.port = c->listen_port}, {.port = c->tls_port, .is_tls = true}}};
    for (uint32_t i = 0; i < NJ_SERVER_PROXY_MAX && c->proxy_protocol[i]; i++)
        if (read_proxy_port(s, c->proxy_protocol[i], why, n) != 0)
            return -1;
    if (c->proxy_protocol[0] && !s->policy->trusted)
        return nj_set_error(
            why, n,
            "--proxy-protocol needs --trusted-proxy NETWORK, or trusted_proxy in "
            "[client] of the configuration file: only these may connect to that port");
    return 0;
}
