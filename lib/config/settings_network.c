/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the settings of ports and their links: addresses, gateways, routes, static neighbours,
 * VLANs (IEEE 802.1Q). */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "base/compiler.h"
#include "base/set_error.h"
#include "base/units.h"
#include "config/settings_validate.h"
#include "dpdk/rss_key.h"
#include "log/address_text.h"
#include "topo/cpus.h"
#include "wire/ip6.h"

#define PORT_ADDRS_MAX 8u    /* addresses that are configured */
#define VLAN_MAX       4094u /* 0 and 4095 are reserved (IEEE 802.1Q) */
#define TEXT_BYTES     160u  /* maximum length of a valid value */

_Static_assert(PORT_ADDRS_MAX < NJ_ADDRS_MAX, "room for the link-local address and others");

/* --- parsers ------------------------------------------------------------------------------- */

/* Are the bits of the address after the prefix all 1 (`ones`), or all 0? */
static bool host_bits_are(const struct nj_addr *ip, unsigned first, bool ones)
{
    for (unsigned bit = first; bit < 128; bit++)
        if ((ip->b[bit / 8] >> (7 - bit % 8) & 1) != ones)
            return false;
    return true;
}

/* May a host have this address on a link with this prefix? Not the link's own address and, in IPv4,
 * not its broadcast address (RFC 1122 3.2.1.3, RFC 4291 2.6.1). */
static bool is_host_address(const struct nj_addr *ip, unsigned prefix_bits)
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

/* Parses "ADDRESS/PREFIX", `n_bytes` at `text`. */
static bool parse_address_prefix(const char *text, size_t n_bytes, struct nj_iface_addr *a)
{
    unsigned bits = 0;
    bool ok = memchr(text, '/', n_bytes) && nj_prefix_parse(text, n_bytes, &a->ip, &bits);

    a->prefix_bits = (uint8_t)bits;
    a->state = NJ_ADDR_READY;
    return ok && bits > 0;
}

/* Parses six pairs of hexadecimal digits separated by colons; rejects zero and group addresses. */
static bool read_mac(const char *text, struct rte_ether_addr *mac)
{
    return strlen(text) == 17 && rte_ether_unformat_addr(text, mac) == 0 &&
           rte_is_valid_assigned_ether_addr(mac);
}

static bool read_number(const char *text, uint64_t max, unsigned *out)
{
    uint64_t number = 0;
    bool ok = nj_parse_decimal(text, &number) && number <= max;

    *out = (unsigned)number;
    return ok;
}

/* Network addresses, as in a routing table, have zero bits after the prefix. */
static bool is_network(const struct nj_iface_addr *a)
{
    return host_bits_are(&a->ip, a->prefix_bits + (nj_addr_is_v4(&a->ip) ? 96u : 0u), false);
}

/* --- the port of a value ------------------------------------------------------------------- */

/* A value and the ports that it applies to: all, or the one named after '@'. */
struct value {
    const char *option, *given;
    char *why; /* receives the reason of an error */
    size_t why_bytes;
    char text[TEXT_BYTES]; /* without "@PORT" */
    struct nj_settings_port *first, *end;
};

static struct nj_settings_port *find_port(struct nj_settings *s, int id)
{
    for (uint32_t i = 0; i < s->n_ports; i++)
        if (s->port[i].id == id)
            return &s->port[i];
    return NULL;
}

/* "OPTION VALUE: what is wrong". Returns -1. */
static int NJ_PRINTF(2, 3) value_error(const struct value *v, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return nj_set_error(v->why, v->why_bytes, "%s %s: %s", v->option, v->given, text);
}

/* Splits the value from its port. */
static int read_value(struct nj_settings *s, struct value *v)
{
    const char *at = strrchr(v->given, '@');
    unsigned id;

    v->first = s->port;
    v->end = s->port + s->n_ports;
    if (at) {
        bool is_number = read_number(at + 1, UINT16_MAX, &id);
        v->first = is_number ? find_port(s, (int)id) : NULL;
        v->end = v->first + 1;
        if (!v->first)
            return value_error(v, "there is no --port %s", at + 1);
    }
    size_t n_text = at ? (size_t)(at - v->given) : strlen(v->given);
    if (n_text < sizeof v->text) /* otherwise it stays empty, which is never valid */
        memcpy(v->text, v->given, n_text);
    return 0;
}

/* Is the address another host on the link of one of our addresses? */
static bool is_on_link(const struct nj_iface *iface, const struct nj_addr *ip)
{
    if (!nj_addr_is_v4(ip) && nj_ip6_is_link_local(ip))
        return iface->ip6;
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        struct nj_iface one = {.n_addrs = 1, .addr = {iface->addr[i]}};
        if (nj_ip_is_on_link(&one, ip) && is_host_address(ip, iface->addr[i].prefix_bits))
            return true;
    }
    return false;
}

/* Returns the only interface with the host `ip` on its link, or NULL with the reason. `who` names
 * the role of the host in messages. */
static struct nj_iface *find_link(const struct value *v, const char *who, const struct nj_addr *ip)
{
    struct nj_settings_port *found = NULL;

    for (struct nj_settings_port *p = v->first; p < v->end; p++) {
        if (nj_iface_find_addr(&p->iface, ip)) {
            value_error(v, "%s our own address", who);
            return NULL;
        }
        if (!is_on_link(&p->iface, ip))
            continue;
        if (found) {
            value_error(v, "%s on the links of ports %d and %d: choose one with @%d or @%d", who,
                        found->id, p->id, found->id, p->id);
            return NULL;
        }
        found = p;
    }
    if (!found)
        value_error(v, "%s not a neighbour of any --addr%s", who,
                    v->first->id >= 0 && v->end == v->first + 1 ? " of that port" : "");
    return found ? &found->iface : NULL;
}

/* --- options ------------------------------------------------------------------------------- */

static int read_port(struct nj_settings *s, const struct value *v)
{
    struct nj_settings_port *p = &s->port[s->n_ports];
    const char *text = v->given, *equals = strchr(text, '=');
    char number[8] = "";
    unsigned id;

    if (strcspn(text, "=") < sizeof number)
        memcpy(number, text, strcspn(text, "="));
    CPU_ZERO(&p->lcores);
    if (!read_number(number, UINT16_MAX, &id) ||
        (equals && (!nj_cpus_parse(equals + 1, &p->lcores) || CPU_COUNT(&p->lcores) == 0)))
        return value_error(
            v, "expected a DPDK port number, or one with the lcores that poll it, e.g. 1 or 1=4-7");
    if (find_port(s, (int)id))
        return value_error(v, "that port is given twice");
    for (uint32_t i = 0; i < s->n_ports; i++) {
        cpu_set_t both;
        CPU_AND(&both, &p->lcores, &s->port[i].lcores);
        if (CPU_COUNT(&both) > 0)
            return value_error(v, "port %d has some of these lcores already", s->port[i].id);
    }
    p->id = (int)id;
    s->n_ports++;
    return 0;
}

static int read_addr(struct nj_settings *s, const struct value *v)
{
    struct nj_iface *iface = &v->first->iface;
    struct nj_iface_addr a;

    if (strcmp(v->text, "auto6") == 0) {
        iface->ip6 = v->first->slaac = true;
        return 0;
    }
    if (!parse_address_prefix(v->text, strlen(v->text), &a))
        return value_error(v, "expected an address with its prefix, e.g. 198.18.0.2/24 or "
                              "2001:db8::2/64, or auto6");
    if (!is_host_address(&a.ip, a.prefix_bits))
        return value_error(v, "not an address a host can have on that link");
    for (uint32_t i = 0; i < s->n_ports; i++)
        if (nj_iface_find_addr(&s->port[i].iface, &a.ip))
            return value_error(v, "that address is given twice");
    if (iface->n_addrs == PORT_ADDRS_MAX)
        return value_error(v, "a port has at most %u addresses", PORT_ADDRS_MAX);
    iface->ip6 |= !nj_addr_is_v4(&a.ip);
    iface->addr[iface->n_addrs++] = a;
    return 0;
}

static int read_gateway(struct nj_settings *s, const struct value *v)
{
    struct nj_addr ip;

    if (!nj_address_parse(v->text, strlen(v->text), &ip))
        return value_error(v, "expected an address, e.g. 198.18.0.1 or 2001:db8::1");
    struct nj_iface *iface = find_link(v, "that is", &ip);
    if (!iface)
        return -1;
    bool v4 = nj_addr_is_v4(&ip), *has = v4 ? &iface->has_gateway : &iface->has_gateway6;
    if (*has)
        return value_error(v, "there is another one for %s", v4 ? "IPv4" : "IPv6");
    *has = true;
    *(v4 ? &iface->gateway : &iface->gateway6) = ip;
    return 0;
}

static int read_route(struct nj_settings *s, const struct value *v)
{
    struct nj_iface_addr net;
    struct nj_addr hop;
    const char *equals = strchr(v->text, '=');

    if (!equals || !parse_address_prefix(v->text, (size_t)(equals - v->text), &net) ||
        !is_network(&net) || !nj_address_parse(equals + 1, strlen(equals + 1), &hop) ||
        nj_addr_is_v4(&net.ip) != nj_addr_is_v4(&hop))
        return value_error(v, "expected a network and a router of the same family, e.g. "
                              "10.0.0.0/8=198.18.0.9");
    struct nj_iface *iface = find_link(v, "the router is", &hop);
    if (!iface)
        return -1;
    uint8_t bits = (uint8_t)(net.prefix_bits + (nj_addr_is_v4(&net.ip) ? 96 : 0));
    for (uint32_t i = 0; i < iface->n_routes; i++)
        if (iface->route[i].bits == bits && nj_addr_eq(&iface->route[i].net, &net.ip))
            return value_error(v, "there is another one for that network");
    if (iface->n_routes == NJ_IP_ROUTES_MAX)
        return value_error(v, "a port has at most %u routes", NJ_IP_ROUTES_MAX);
    iface->route[iface->n_routes++] = (struct nj_ip_route){net.ip, hop, bits};
    return 0;
}

static int read_neighbour(struct nj_settings *s, const struct value *v)
{
    struct nj_iface_neighbour host;
    const char *equals = strchr(v->text, '=');

    if (!equals || !nj_address_parse(v->text, (size_t)(equals - v->text), &host.ip) ||
        !read_mac(equals + 1, &host.mac))
        return value_error(v, "expected an address and the MAC address of a host, e.g. "
                              "198.18.0.1=02:00:00:00:00:01");
    struct nj_iface *iface = find_link(v, "that is", &host.ip);
    if (!iface)
        return -1;
    for (uint32_t i = 0; i < iface->n_fixed; i++)
        if (nj_addr_eq(&iface->fixed[i].ip, &host.ip))
            return value_error(v, "that neighbour is given twice");
    if (iface->n_fixed == NJ_NEIGH_FIXED_MAX)
        return value_error(v, "a port has at most %u of them", NJ_NEIGH_FIXED_MAX);
    iface->fixed[iface->n_fixed++] = host;
    return 0;
}

static int read_vlan(struct nj_settings *s, const struct value *v)
{
    unsigned id;

    if (!read_number(v->text, VLAN_MAX, &id) || id == 0)
        return value_error(v, "expected a VLAN id from 1 to %u", VLAN_MAX);
    for (struct nj_settings_port *p = v->first; p < v->end; p++) {
        if (p->iface.vlan != 0)
            return value_error(v, "the port is in VLAN %u already", p->iface.vlan);
        p->iface.vlan = (uint16_t)id;
    }
    return 0;
}

/* The message omits the key, because messages end up in logs. */
static int read_rss_key(struct nj_settings *s, char *why, size_t n)
{
    s->has_rss_key = s->config->rss_key != NULL;
    if (!s->has_rss_key || nj_rss_key_parse(s->config->rss_key, &s->rss_key))
        return 0;
    return nj_set_error(why, n, "--rss-key: expected %u hexadecimal digits, not all of them 0",
                        2 * NJ_RSS_KEY_BYTES);
}

/* Parses all values of an option. */
static int read_all(struct nj_settings *s, const char *option, const char *const *given,
                    unsigned n_max, int (*read)(struct nj_settings *, const struct value *),
                    char *why, size_t n)
{
    for (unsigned i = 0; i < n_max && given[i]; i++) {
        struct value v = {.option = option, .given = given[i], .why = why, .why_bytes = n};
        if ((read != read_port && read_value(s, &v) != 0) || read(s, &v) != 0)
            return -1;
    }
    return 0;
}

int nj__settings_read_network(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;

    if (read_all(s, "--port", c->port, NJ_SERVER_PORTS_MAX, read_port, why, n) != 0)
        return -1;
    if (s->n_ports == 0)
        s->port[s->n_ports++].id = -1;
    /* whether a host is a neighbour depends on all addresses */
    if (read_all(s, "--addr", c->addr, NJ_SERVER_ADDRS_MAX, read_addr, why, n) != 0 ||
        read_all(s, "--gateway", c->gateway, NJ_SERVER_GATEWAYS_MAX, read_gateway, why, n) != 0 ||
        read_all(s, "--route", c->route, NJ_SERVER_ROUTES_MAX, read_route, why, n) != 0 ||
        read_all(s, "--neighbour", c->neighbour, NJ_SERVER_NEIGHBOURS_MAX, read_neighbour, why,
                 n) != 0 ||
        read_all(s, "--vlan", c->vlan, NJ_SERVER_PORTS_MAX, read_vlan, why, n) != 0)
        return -1;
    return read_rss_key(s, why, n);
}
