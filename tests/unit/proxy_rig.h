/* SPDX-License-Identifier: BSD-3-Clause */
/* For connections that begin with a PROXY header: headers, a policy with trusted proxies, and the
 * records of the access log. */
#pragma once

#include <criterion/criterion.h>

#include "conn_http1_rig.h"
#include "support/access_book.h"
#include "support/addr.h"

#define PROXY     "198.18.0.1"   /* trusted */
#define CLIENT    "203.0.113.7"  /* behind it */
#define OTHER     "203.0.113.8"  /* another one */
#define DENIED    "198.51.100.1" /* on a list that a policy may deny */
#define HEADER(a) "PROXY TCP4 " a " 192.0.2.1 4711 80\r\n"
#define GET       "GET /index.html HTTP/1.1\r\nHost: a.test\r\n\r\n"

enum { TRUSTED_LIST = 1, DENIED_LIST = 2 };

static inline bool in_network(const struct nj_addr *a, const char *network, unsigned bits)
{
    struct nj_addr net = addr(network), of = nj_addr_network(a, bits);
    return nj_addr_eq(&net, &of);
}

static inline uint32_t lists_of_proxies(const void *ctx, const struct nj_addr *a)
{
    return (in_network(a, PROXY, 128) || in_network(a, "10.0.0.0", 96 + 8) ? TRUSTED_LIST : 0) |
           (in_network(a, "198.51.100.0", 96 + 24) ? DENIED_LIST : 0);
}

static inline struct nj_policy proxy_policy(void)
{
    struct nj_policy p = nj_policy_none;

    p.trusted = TRUSTED_LIST;
    p.lists = lists_of_proxies;
    return p;
}

/* The line is of a request of this client, over a connection of `remote`. */
static inline void line_names(uint32_t at, const char *client, const char *remote, uint16_t port)
{
    cr_assert_lt(at, book.n_lines);
    const struct nj_access_record *a = &book.line[at];
    struct nj_addr want = addr(client), from = addr(remote), peer = addr(PROXY);

    cr_expect(nj_addr_eq(&a->client, &want), "line %u: not %s", at, client);
    cr_expect(nj_addr_eq(&a->remote, &from), "line %u: not %s", at, remote);
    cr_expect(nj_addr_eq(&a->peer, &peer), "line %u", at);
    cr_expect_eq(a->rport, port, "line %u: %u", at, a->rport);
}

static inline uint64_t n_recorded(const struct rig *r, nj_counter reason, const char *client)
{
    struct nj_abuse_view v = {0};
    struct nj_addr want = addr(client);

    nj_abuse_get_count_and_client(&r->s->conns.abuse, reason, &v);
    return v.n > 0 && nj_addr_eq(&v.client, &want) ? v.n : 0;
}
