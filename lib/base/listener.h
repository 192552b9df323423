/* SPDX-License-Identifier: BSD-3-Clause */
/* Where connections are accepted. The configuration makes the table; TCP looks up whether it may
 * accept a SYN, and lib/conn what a new connection begins with. Pure. */
#pragma once

#include "base/types.h"

#define NJ_LISTENERS_MAX 8u

struct nj_listener {
    struct nj_addr addr; /* with has_addr: the one of our addresses */
    uint16_t port;       /* in host byte order */
    bool has_addr;       /* false: all of our addresses */
    bool has_proxy;      /* connections begin with a PROXY header */
    bool is_tls;         /* they speak TLS, behind that header */
};

struct nj_listeners {
    uint32_t n;
    struct nj_listener at[NJ_LISTENERS_MAX];
};

/* The listener of a connection to `addr` and `port`: the one with this address, else the one for
 * all addresses. NULL: there is none. */
static inline const struct nj_listener *nj_listener_find(const struct nj_listeners *l,
                                                         const struct nj_addr *addr, uint16_t port)
{
    const struct nj_listener *found = NULL;

    for (const struct nj_listener *at = l->at; at < l->at + l->n; at++) {
        if (at->port != port)
            continue;
        if (!at->has_addr)
            found = at;
        else if (nj_addr_eq(&at->addr, addr))
            return at;
    }
    return found;
}
