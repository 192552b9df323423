/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the ports of --proxy-protocol. */
#include "base/set_error.h"
#include "base/str.h"
#include "base/units.h"
#include "config/settings_validate.h"

static bool is_listening(const struct nj_server_config *c, uint64_t port)
{
    return port == c->listen_port || (c->tls_cert[0] && port == c->tls_port);
}

static int read_port(struct nj_settings *s, uint32_t at, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;
    const char *text = c->proxy_protocol[at];
    uint64_t port;

    if (!nj_parse_decimal(text, &port) || !is_listening(c, port))
        return nj_set_error(why, n,
                            "--proxy-protocol %s: expected a port that the server listens on, that "
                            "of --listen%s",
                            text, c->tls_cert[0] ? " or --tls-port" : "");
    for (uint32_t i = 0; i < at; i++)
        if (s->proxy_port[i] == port)
            return nj_set_error(why, n, "--proxy-protocol %s: that port is given twice", text);
    s->proxy_port[at] = (uint16_t)port;
    return 0;
}

int nj__settings_read_proxy_ports(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;

    for (uint32_t i = 0; i < NJ_SERVER_PROXY_MAX && c->proxy_protocol[i]; i++)
        if (read_port(s, i, why, n) != 0)
            return -1;
    if (c->proxy_protocol[0] && !s->policy->trusted)
        return nj_set_error(
            why, n,
            "--proxy-protocol needs --trusted-proxy NETWORK, or trusted_proxy in "
            "[client] of the configuration file: only these may connect to that port");
    return 0;
}
