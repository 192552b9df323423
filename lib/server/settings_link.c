/* SPDX-License-Identifier: BSD-3-Clause */
/* What the configuration says of the link beyond addresses and gateways. */
#include <string.h>

#include <rte_ether.h>

#include "base/fail.h"
#include "server/addresses.h"
#include "server/rss_key.h"
#include "server/settings.h"

_Static_assert((unsigned)NJ_SERVER_NEIGHBOURS_MAX == NJ_NEIGH_FIXED_MAX, "one for each");

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
    if (!nj__settings_is_neighbour(iface, &to->ip))
        return nj_fail(why, n, "--neighbour %s: not a neighbour of any --addr", text);
    for (uint32_t i = 0; i < iface->n_fixed; i++)
        if (nj_addr_eq(&iface->fixed[i].ip, &to->ip))
            return nj_fail(why, n, "--neighbour %s: that neighbour is given twice", text);
    iface->n_fixed++;
    return 0;
}

int nj__settings_read_neighbours(struct nj_settings *s, char *why, size_t n)
{
    for (uint32_t i = 0; i < NJ_SERVER_NEIGHBOURS_MAX && s->config->neighbour[i]; i++)
        if (read_neighbour(s, s->config->neighbour[i], why, n) != 0)
            return -1;
    return 0;
}

/* The message does not repeat the key: it would end in logs. */
int nj__settings_read_rss_key(struct nj_settings *s, char *why, size_t n)
{
    s->has_rss_key = s->config->rss_key != NULL;
    if (!s->has_rss_key || nj_rss_key_read(s->config->rss_key, &s->rss_key))
        return 0;
    return nj_fail(why, n, "--rss-key: expected %u hexadecimal digits, not all of them 0",
                   2 * NJ_RSS_KEY_BYTES);
}
