/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/iface.h"

#include <rte_byteorder.h>

#include "base/assert.h"
#include "wire/ip6.h"

/* The network part of an IPv4 address, host byte order. */
static uint32_t netmask(const struct nj_iface_addr *a)
{
    NJ_ASSERT(a->prefix_bits <= 32);
    return a->prefix_bits == 0 ? 0 : UINT32_MAX << (32 - a->prefix_bits);
}

const struct nj_iface_addr *nj_iface_find(const struct nj_iface *iface, const struct nj_addr *ip)
{
    for (unsigned i = 0; i < iface->n_addrs; i++)
        if (nj_addr_eq(&iface->addr[i].ip, ip) && iface->addr[i].state != NJ_ADDR_EXPIRED)
            return &iface->addr[i];
    return NULL;
}

bool nj_ip_source_ok(const struct nj_iface *iface, uint32_t ip_be)
{
    uint32_t ip = rte_be_to_cpu_32(ip_be);

    /* RFC 1122 3.2.1.3: 0/8 is "this host", 127/8 loopback; from 224/4 on it is multicast,
     * reserved and the limited broadcast. */
    if (ip >> 24 == 0 || ip >> 24 == 127 || ip >> 28 >= 14)
        return false;
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        const struct nj_iface_addr *a = &iface->addr[i];
        if (!nj_addr_is_v4(&a->ip))
            continue;
        uint32_t own = rte_be_to_cpu_32(nj_addr_to_v4(&a->ip)), mask = netmask(a);
        if (ip == own)
            return false;
        /* A link of /31 or /32 has no broadcast address (RFC 3021 2.1). */
        if (a->prefix_bits < 31 && (ip & mask) == (own & mask) && (ip | mask) == UINT32_MAX)
            return false;
    }
    return true;
}

static bool same_prefix(const struct nj_iface_addr *a, const struct nj_addr *ip)
{
    bool v4 = nj_addr_is_v4(&a->ip);

    if (v4 != nj_addr_is_v4(ip))
        return false;
    /* IPv4 addresses have 96 bits before their own, all alike. */
    return nj_ip6_same_prefix(&a->ip, ip, a->prefix_bits + (v4 ? 96u : 0u));
}

bool nj_ip_on_link(const struct nj_iface *iface, const struct nj_addr *ip)
{
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        const struct nj_iface_addr *a = &iface->addr[i];
        if (a->state != NJ_ADDR_EXPIRED && a->state != NJ_ADDR_DUPLICATE && same_prefix(a, ip))
            return true;
    }
    return false;
}

const struct nj_addr *nj_iface_source(const struct nj_iface *iface, const struct nj_addr *ip)
{
    const struct nj_addr *any = NULL;
    bool v4 = nj_addr_is_v4(ip);

    for (unsigned i = 0; i < iface->n_addrs; i++) {
        const struct nj_iface_addr *a = &iface->addr[i];
        if (a->state != NJ_ADDR_READY || nj_addr_is_v4(&a->ip) != v4)
            continue;
        if (same_prefix(a, ip))
            return &a->ip;
        any = any ? any : &a->ip;
    }
    return any;
}

const struct nj_addr *nj_ip_next_hop(const struct nj_iface *iface, const struct nj_addr *dst)
{
    if (nj_ip_on_link(iface, dst))
        return dst;
    if (nj_addr_is_v4(dst))
        return iface->has_gateway ? &iface->gateway : NULL;
    return iface->has_gateway6 ? &iface->gateway6 : NULL;
}
