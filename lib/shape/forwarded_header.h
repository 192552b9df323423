/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For whom a proxy asks: X-Forwarded-For, and Forwarded of RFC 7239.
 *
 * Each proxy appends the address that it was asked from, so what is to the right was written by who
 * is nearer to us. The client is the rightmost address that is not a trusted proxy itself: what
 * stands to the left of it was written by the client, or by somebody we do not trust. Pure.
 */
#ifndef NJ_SHAPE_FORWARDED_HEADER_H
#define NJ_SHAPE_FORWARDED_HEADER_H

#include "base/field.h"
#include "shape/request_class.h"

/* Elements that are looked at, from the right. A request passes two or three proxies. */
#define NJ_FORWARDED_HOPS_MAX 16u

/* Is a field of this name such a list? In lower case. */
bool nj_forwarded_is(struct nj_str name);
/* False: the fields of that name name nobody. An element that is no address ("unknown", RFC 7239
 * 6.2, or garbage) ends the search, and the last address before it is the client, be it a trusted
 * proxy's. */
bool nj_forwarded_client(const struct nj_policy *p, const struct nj_policy_request *req,
                         struct nj_addr *out);

#endif
