/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client named by a proxy: X-Forwarded-For, and Forwarded of RFC 7239.
 *
 * Each proxy appends the address of its peer, so elements further right were written by proxies
 * closer to us. The client is the rightmost address that is not a trusted proxy; elements to the
 * left of it are not trustworthy. Pure.
 */
#ifndef NJ_SHAPE_FORWARDED_HEADER_H
#define NJ_SHAPE_FORWARDED_HEADER_H

#include "base/str.h"
#include "shape/request_policy.h"

/* Elements examined, from the right. A request passes two or three proxies. */
#define NJ_FORWARDED_HOPS_MAX 16u

/* Is `name`, in lower case, one of these two fields? */
bool nj_forwarded_is_name(struct nj_str name);
/* Finds the client named by the field p->client_field. Returns false when it contains no address.
 * An element that is not an address ("unknown", RFC 7239 6.2, or garbage) ends the search; the last
 * address before it is the client, even a trusted proxy's. */
bool nj_forwarded_client(const struct nj_policy *p, const struct nj_policy_request *req,
                         struct nj_addr *out);

#endif
