/* SPDX-License-Identifier: BSD-3-Clause */
/* What the configuration says of the link: addresses, who routes, whose MAC address is known. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "base/fail.h"
#include "server/addresses.h"
#include "server/rss_key.h"
#include "server/settings.h"
#include "wire/ip6.h"

_Static_assert((unsigned)NJ_SERVER_NEIGHBOURS_MAX == NJ_NEIGH_FIXED_MAX, "one for each");
_Static_assert((unsigned)NJ_SERVER_ROUTES_MAX == NJ_IP_ROUTES_MAX, "one for each");
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

/* "ADDRESS/PREFIX", all of the `n_bytes` at `text`. */
static bool parse_prefixed(const char *text, size_t n_bytes, struct nj_iface_addr *a)
{
    const char *slash = memchr(text, '/', n_bytes);
    char *end = NULL;

    if (!slash || slash[1] < '0' || slash[1] > '9' ||
        !nj_address_read(text, (size_t)(slash - text), &a->ip))
        return false;
    errno = 0;
    long bits = strtol(slash + 1, &end, 10);
    if (end != text + n_bytes || errno || bits < 1 || bits > (nj_addr_is_v4(&a->ip) ? 32 : 128))
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
    if (!parse_prefixed(text, strlen(text), &a))
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

/* Is it another host on the link of one of our addresses? */
static bool is_neighbour(const struct nj_iface *iface, const struct nj_addr *ip)
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
    if (!is_neighbour(iface, &ip))
        return nj_fail(why, n, "--gateway %s: not a neighbour of any --addr", text);
    bool v4 = nj_addr_is_v4(&ip), *has = v4 ? &iface->has_gateway : &iface->has_gateway6;
    if (*has)
        return nj_fail(why, n, "--gateway %s: there is another one for %s", text,
                       v4 ? "IPv4" : "IPv6");
    *has = true;
    *(v4 ? &iface->gateway : &iface->gateway6) = ip;
    return 0;
}

/* Six pairs of hexadecimal digits between colons, of a host: not zero, and of no group. */
static bool read_mac(const char *text, struct rte_ether_addr *mac)
{
    return strlen(text) == 17 && rte_ether_unformat_addr(text, mac) == 0 &&
           rte_is_valid_assigned_ether_addr(mac);
}

static int read_neighbour(struct nj_settings *s, const char *text, char *why, size_t n)
{
    struct nj_iface *iface = &s->iface;
    struct nj_iface_neighbour *to = &iface->fixed[iface->n_fixed];
    const char *equals = strchr(text, '=');

    if (!equals || !nj_address_read(text, (size_t)(equals - text), &to->ip) ||
        !read_mac(equals + 1, &to->mac))
        return nj_fail(why, n,
                       "--neighbour %s: expected an address and the MAC address of a host, e.g. "
                       "198.18.0.1=02:00:00:00:00:01",
                       text);
    if (nj_iface_find(iface, &to->ip))
        return nj_fail(why, n, "--neighbour %s: that is our own address", text);
    if (!is_neighbour(iface, &to->ip))
        return nj_fail(why, n, "--neighbour %s: not a neighbour of any --addr", text);
    for (uint32_t i = 0; i < iface->n_fixed; i++)
        if (nj_addr_eq(&iface->fixed[i].ip, &to->ip))
            return nj_fail(why, n, "--neighbour %s: that neighbour is given twice", text);
    iface->n_fixed++;
    return 0;
}

/* The message does not repeat the key: it would end in logs. */
static int read_rss_key(struct nj_settings *s, char *why, size_t n)
{
    s->has_rss_key = s->config->rss_key != NULL;
    if (!s->has_rss_key || nj_rss_key_read(s->config->rss_key, &s->rss_key))
        return 0;
    return nj_fail(why, n, "--rss-key: expected %u hexadecimal digits, not all of them 0",
                   2 * NJ_RSS_KEY_BYTES);
}

/* Of a network: the bits behind the prefix are 0, as in a routing table. */
static bool is_network(const struct nj_iface_addr *a)
{
    unsigned bits = a->prefix_bits + (nj_addr_is_v4(&a->ip) ? 96u : 0u);
    return host_bits_are(&a->ip, bits, false);
}

static int read_route(struct nj_settings *s, const char *text, char *why, size_t n)
{
    struct nj_iface *iface = &s->iface;
    struct nj_ip_route *r = &iface->route[iface->n_routes];
    const char *equals = strchr(text, '=');
    struct nj_iface_addr net;

    if (!equals || !parse_prefixed(text, (size_t)(equals - text), &net) || !is_network(&net) ||
        !nj_address_read(equals + 1, strlen(equals + 1), &r->hop) ||
        nj_addr_is_v4(&net.ip) != nj_addr_is_v4(&r->hop))
        return nj_fail(why, n,
                       "--route %s: expected a network and a router of the same family, e.g. "
                       "10.0.0.0/8=198.18.0.9",
                       text);
    if (!is_neighbour(iface, &r->hop))
        return nj_fail(why, n, "--route %s: the router is not a neighbour of any --addr", text);
    r->net = net.ip;
    r->bits = (uint8_t)(net.prefix_bits + (nj_addr_is_v4(&net.ip) ? 96 : 0));
    for (uint32_t i = 0; i < iface->n_routes; i++)
        if (iface->route[i].bits == r->bits && nj_addr_eq(&iface->route[i].net, &r->net))
            return nj_fail(why, n, "--route %s: there is another one for that network", text);
    iface->n_routes++;
    return 0;
}

int nj__settings_read_link(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *config = s->config;

    for (unsigned i = 0; i < NJ_SERVER_ADDRS_MAX && config->addr[i]; i++)
        if (read_addr(s, config->addr[i], why, n) != 0)
            return -1;
    for (unsigned i = 0; i < NJ_SERVER_GATEWAYS_MAX && config->gateway[i]; i++)
        if (read_gateway(s, config->gateway[i], why, n) != 0)
            return -1;
    for (unsigned i = 0; i < NJ_SERVER_ROUTES_MAX && config->route[i]; i++)
        if (read_route(s, config->route[i], why, n) != 0)
            return -1;
    for (unsigned i = 0; i < NJ_SERVER_NEIGHBOURS_MAX && config->neighbour[i]; i++)
        if (read_neighbour(s, config->neighbour[i], why, n) != 0)
            return -1;
    return read_rss_key(s, why, n);
}
