/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fail.h"

static bool parse_v4(const char *text, size_t n, uint32_t *ip)
{
    char buf[INET_ADDRSTRLEN];
    struct in_addr in;

    if (n >= sizeof buf)
        return false;
    memcpy(buf, text, n);
    buf[n] = '\0';
    if (inet_pton(AF_INET, buf, &in) != 1)
        return false;
    *ip = ntohl(in.s_addr);
    return true;
}

static uint32_t mask_of(unsigned prefix_bits)
{
    return prefix_bits ? ~0u << (32 - prefix_bits) : 0;
}

/* May a host have this address on a link with this prefix? */
static bool host_address(uint32_t ip, unsigned prefix_bits)
{
    uint32_t host = ip & ~mask_of(prefix_bits);
    bool edge = prefix_bits < 31 && (host == 0 || host == ~mask_of(prefix_bits));
    return ip >> 24 != 0 && ip >> 24 != 127 && ip >> 28 < 14 && !edge;
}

static int read_addr(struct nj_settings *s, const char *text, uint32_t *ip, char *why, size_t n)
{
    const char *slash = strchr(text, '/');
    char *end = NULL;
    errno = 0;
    long bits = slash ? strtol(slash + 1, &end, 10) : -1;

    if (!slash || slash[1] < '0' || slash[1] > '9' || *end != '\0' || errno || bits < 1 ||
        bits > 32 || !parse_v4(text, (size_t)(slash - text), ip))
        return nj_fail(why, n,
                       "--addr %s: expected an IPv4 address with its prefix, e.g. "
                       "198.18.0.2/24",
                       text);
    if (!host_address(*ip, (unsigned)bits))
        return nj_fail(why, n, "--addr %s: not an address a host can have on that link", text);
    s->ip = nj_addr_v4(htonl(*ip));
    s->prefix_bits = (uint8_t)bits;
    return 0;
}

static int read_gateway(struct nj_settings *s, const char *text, uint32_t own, char *why, size_t n)
{
    uint32_t ip, mask = mask_of(s->prefix_bits);

    if (!parse_v4(text, strlen(text), &ip))
        return nj_fail(why, n, "--gateway %s: expected an IPv4 address, e.g. 198.18.0.1", text);
    if ((ip & mask) != (own & mask) || ip == own || !host_address(ip, s->prefix_bits))
        return nj_fail(why, n, "--gateway %s: not a neighbour of --addr %s", text, s->config->addr);
    s->gateway = nj_addr_v4(htonl(ip));
    s->has_gateway = true;
    return 0;
}

int nj_settings_read(struct nj_settings *s, const struct nj_server_config *config, char *why,
                     size_t n)
{
    struct stat st;
    uint32_t own = 0;

    memset(s, 0, sizeof *s);
    s->config = config;
    if (!config->addr)
        return nj_fail(why, n,
                       "--addr is missing: give our address on the link, e.g. "
                       "--addr 198.18.0.2/24");
    if (!config->root)
        return nj_fail(why, n, "--root is missing: give the folder to serve, e.g. --root /srv/www");
    if (read_addr(s, config->addr, &own, why, n) != 0)
        return -1;
    if (config->gateway && read_gateway(s, config->gateway, own, why, n) != 0)
        return -1;
    if (config->listen_port == 0)
        return nj_fail(why, n, "--listen: expected a port from 1 to 65535");
    if (stat(config->root, &st) != 0)
        return nj_fail(why, n, "--root %s: %s", config->root, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return nj_fail(why, n, "--root %s: not a folder", config->root);
    if (!(config->drain_timeout_s >= 0 && config->drain_timeout_s <= 86400))
        return nj_fail(why, n, "--drain-timeout: expected 0 to 86400 seconds");
    if (config->conns_max == 0 || config->conns_max > 1u << 24)
        return nj_fail(why, n, "--max-connections: expected 1 to %u", 1u << 24);
    return 0;
}
