/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/limits.h"
#include "http/mime.h"
#include "sched/fiber.h"
#include "server/addresses.h"
#include "wire/ip6.h"

#define VLAN_MAX 4094u /* 0 and 4095 are reserved (IEEE 802.1Q) */

_Static_assert(NJ_SERVER_ADDRS_MAX < NJ_ADDRS_MAX, "room for the link-local address and others");

/* The bits of an address behind its prefix: all 0, all 1? (All 0 has none of them set.) */
static bool host_bits_are(const struct nj_addr *ip, unsigned first, bool ones)
{
    for (unsigned bit = first; bit < 128; bit++)
        if ((ip->b[bit / 8] >> (7 - bit % 8) & 1) != ones)
            return false;
    return true;
}

/* May a host have this address on a link with this prefix? Not the link's own address and, in IPv4,
 * not its broadcast address (RFC 1122 3.2.1.3, RFC 4291 2.6.1). */
static bool host_address(const struct nj_addr *ip, unsigned prefix_bits)
{
    if (nj_addr_is_v4(ip)) {
        uint32_t v4 = ntohl(nj_addr_to_v4(ip));
        bool edge = prefix_bits < 31 && (host_bits_are(ip, 96 + prefix_bits, false) ||
                                         host_bits_are(ip, 96 + prefix_bits, true));
        return v4 >> 24 != 0 && v4 >> 24 != 127 && v4 >> 28 < 14 && !edge;
    }
    bool edge = prefix_bits < 127 && host_bits_are(ip, prefix_bits, false);
    return !nj_ip6_is_multicast(ip) && !nj_ip6_is_unspecified(ip) && !nj_ip6_is_loopback(ip) &&
           !edge;
}

/* "ADDRESS/PREFIX", all of it. */
static bool parse_prefixed(const char *text, struct nj_iface_addr *a)
{
    const char *slash = strchr(text, '/');
    char *end = NULL;

    if (!slash || slash[1] < '0' || slash[1] > '9' ||
        !nj_address_read(text, (size_t)(slash - text), &a->ip))
        return false;
    errno = 0;
    long bits = strtol(slash + 1, &end, 10);
    if (*end != '\0' || errno || bits < 1 || bits > (nj_addr_is_v4(&a->ip) ? 32 : 128))
        return false;
    a->prefix_bits = (uint8_t)bits;
    a->state = NJ_ADDR_READY;
    return true;
}

static int read_addr(struct nj_settings *s, const char *text, char *why, size_t n)
{
    struct nj_iface *iface = &s->iface;
    struct nj_iface_addr a;

    if (strcmp(text, "auto6") == 0) {
        iface->ip6 = s->slaac = true;
        return 0;
    }
    if (!parse_prefixed(text, &a))
        return nj_fail(why, n,
                       "--addr %s: expected an address with its prefix, e.g. 198.18.0.2/24 or "
                       "2001:db8::2/64, or auto6",
                       text);
    if (!host_address(&a.ip, a.prefix_bits))
        return nj_fail(why, n, "--addr %s: not an address a host can have on that link", text);
    if (nj_iface_find(iface, &a.ip))
        return nj_fail(why, n, "--addr %s: that address is given twice", text);
    iface->ip6 |= !nj_addr_is_v4(&a.ip);
    iface->addr[iface->n_addrs++] = a;
    return 0;
}

/* Is it on the link of one of our addresses, and a host there? */
bool nj__settings_is_neighbour(const struct nj_iface *iface, const struct nj_addr *ip)
{
    if (nj_iface_find(iface, ip))
        return false;
    if (!nj_addr_is_v4(ip) && nj_ip6_is_link_local(ip))
        return iface->ip6;
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        struct nj_iface one = {.n_addrs = 1, .addr = {iface->addr[i]}};
        if (nj_ip_on_link(&one, ip) && host_address(ip, iface->addr[i].prefix_bits))
            return true;
    }
    return false;
}

static int read_gateway(struct nj_settings *s, const char *text, char *why, size_t n)
{
    struct nj_iface *iface = &s->iface;
    struct nj_addr ip;

    if (!nj_address_read(text, strlen(text), &ip))
        return nj_fail(why, n, "--gateway %s: expected an address, e.g. 198.18.0.1 or 2001:db8::1",
                       text);
    if (nj_iface_find(iface, &ip))
        return nj_fail(why, n, "--gateway %s: that is our own address", text);
    if (!nj__settings_is_neighbour(iface, &ip))
        return nj_fail(why, n, "--gateway %s: not a neighbour of any --addr", text);
    bool v4 = nj_addr_is_v4(&ip), *has = v4 ? &iface->has_gateway : &iface->has_gateway6;
    if (*has)
        return nj_fail(why, n, "--gateway %s: there is another one for %s", text,
                       v4 ? "IPv4" : "IPv6");
    *has = true;
    *(v4 ? &iface->gateway : &iface->gateway6) = ip;
    return 0;
}

static int read_link(struct nj_settings *s, const struct nj_server_config *config, char *why,
                     size_t n)
{
    for (unsigned i = 0; i < NJ_SERVER_ADDRS_MAX && config->addr[i]; i++)
        if (read_addr(s, config->addr[i], why, n) != 0)
            return -1;
    for (unsigned i = 0; i < NJ_SERVER_GATEWAYS_MAX && config->gateway[i]; i++)
        if (read_gateway(s, config->gateway[i], why, n) != 0)
            return -1;
    if (nj__settings_read_neighbours(s, why, n) != 0)
        return -1;
    return nj__settings_read_rss_key(s, why, n);
}

static bool ring_ok(uint16_t n)
{
    return n == 0 || (n >= NJ_RING_MIN && n <= NJ_RING_MAX);
}

/* Less would end connections whose first packet comes again once; more than a day is no limit. */
static bool silence_ok(double seconds)
{
    return seconds >= 0.1 && seconds <= 86400;
}

/* Last: it is the one that has something to give back. */
static int read_handlers(struct nj_settings *s, const struct nj_server_config *config, char *why,
                         size_t n)
{
    if (config->fibers_max == 0 || config->fibers_max > NJ_FIBERS_MAX)
        return nj_fail(why, n, "--fibers: expected 1 to %u", NJ_FIBERS_MAX);
    if ((unsigned)config->strategy > NJ_RUN_PEC)
        return nj_fail(why, n, "--strategy: expected ewyk, pc or pec");
    if (config->n_routes == 0)
        return 0;
    s->routes = nj_routes_new(config->routes, config->n_routes, why, n);
    return s->routes ? 0 : -1;
}

static int read_rest(struct nj_settings *s, const struct nj_server_config *config, char *why,
                     size_t n)
{
    struct stat st;

    if (read_link(s, config, why, n) != 0)
        return -1;
    if (config->vlan > VLAN_MAX)
        return nj_fail(why, n, "--vlan: expected a VLAN id from 1 to %u", VLAN_MAX);
    s->iface.vlan = config->vlan;
    if (config->mtu != 0 && (config->mtu < NJ_MTU_MIN || config->mtu > NJ_MTU_MAX))
        return nj_fail(why, n, "--mtu: expected %u to %u", NJ_MTU_MIN, NJ_MTU_MAX);
    if (!ring_ok(config->rx_ring) || !ring_ok(config->tx_ring))
        return nj_fail(why, n, "--rx-ring, --tx-ring: expected %u to %u", NJ_RING_MIN, NJ_RING_MAX);
    if (config->listen_port == 0)
        return nj_fail(why, n, "--listen: expected a port from 1 to 65535");
    if (config->root && stat(config->root, &st) != 0)
        return nj_fail(why, n, "--root %s: %s", config->root, strerror(errno));
    if (config->root && !S_ISDIR(st.st_mode))
        return nj_fail(why, n, "--root %s: not a folder", config->root);
    if (!(config->drain_timeout_s >= 0 && config->drain_timeout_s <= 86400))
        return nj_fail(why, n, "--drain-timeout: expected 0 to 86400 seconds");
    if (!silence_ok(config->preface_timeout_s))
        return nj_fail(why, n, "--preface-timeout: expected 0.1 to 86400 seconds");
    if (!silence_ok(config->idle_timeout_s))
        return nj_fail(why, n, "--idle-timeout: expected 0.1 to 86400 seconds");
    if (config->conns_max == 0 || config->conns_max > 1u << 24)
        return nj_fail(why, n, "--max-connections: expected 1 to %u", 1u << 24);
    if (config->workers > NJ_WORKERS_MAX)
        return nj_fail(why, n, "--workers: expected at most %u", NJ_WORKERS_MAX);
    if (nj__settings_read_requests(s, why, n) != 0 || nj__settings_read_files(s, why, n) != 0)
        return -1;
    return read_handlers(s, config, why, n);
}

int nj_settings_check(struct nj_settings *s, const struct nj_server_config *config, char *why,
                      size_t n)
{
    memset(s, 0, sizeof *s);
    s->effective = *config;
    s->given = config;
    s->config = &s->effective;
    s->policy = nj_policy_file_read(config->policy_file, &s->effective, &s->faults);
    if (!s->policy)
        return nj_fail(why, n, "%s: %u fault%s, see above; nothing was started",
                       config->policy_file ? config->policy_file : "no policy", s->faults.n,
                       s->faults.n == 1 ? "" : "s");
    if (read_rest(s, s->config, why, n) == 0 && nj__settings_read_mime(s, why, n) == 0)
        return 0;
    nj_settings_free(s);
    return -1;
}

int nj_settings_read(struct nj_settings *s, const struct nj_server_config *config, char *why,
                     size_t n)
{
    memset(s, 0, sizeof *s);
    if (!config->addr[0])
        return nj_fail(why, n,
                       "--addr is missing: give our address on the link, e.g. "
                       "--addr 198.18.0.2/24");
    if (!config->root && config->n_routes == 0)
        return nj_fail(why, n, "--root is missing: give the folder to serve, e.g. --root /srv/www");
    return nj_settings_check(s, config, why, n);
}

void nj_settings_free(struct nj_settings *s)
{
    nj_routes_free(s->routes);
    s->routes = NULL;
    nj_policy_file_free(s->policy);
    s->policy = NULL;
    nj_mime_table_free(s->mime);
    s->mime = NULL;
    nj_faults_free(&s->faults);
}
