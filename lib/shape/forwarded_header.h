/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What proxies tell of their clients: X-Forwarded-For, X-Forwarded-Proto, and Forwarded of RFC
 * 7239.
 *
 * Each proxy appends the address of its peer, so elements further right were written by proxies
 * closer to us. The client is the rightmost address that is not a trusted proxy; elements to the
 * left of it are not trustworthy. Pure.
 */
#pragma once

#include "base/request_head.h"
#include "base/str.h"
#include "base/types.h"

/* Elements examined, from the right. A request passes two or three proxies. */
#define NJ_FORWARDED_HOPS_MAX 16u

/* A walk through the elements of a request. The caller sets the first three fields. */
struct nj_forwarded {
    const struct nj_request_head *head;
    struct nj_str name;    /* of the field */
    uint32_t n_lines_left; /* first all fields of `head` */
    struct nj_str list;    /* the rest of the current line */
    struct nj_str element; /* the last one that was examined */
    uint32_t n_hops;
};

/* Is `name`, in lower case, one of these two fields? */
bool nj_forwarded_is_name(struct nj_str name);
/* The next address, from the right. False: there is no other, NJ_FORWARDED_HOPS_MAX elements were
 * examined, or the element is no address ("unknown", RFC 7239 6.2, or garbage). That ends the walk:
 * later calls return false, too. */
bool nj_forwarded_next(struct nj_forwarded *f, struct nj_addr *out);
/* The scheme in an element of Forwarded (RFC 7239 5.4). */
enum nj_scheme nj_forwarded_proto(struct nj_str element);
/* The value of X-Forwarded-Proto. NONE: there is no such line, or there are several. */
enum nj_scheme nj_x_forwarded_proto(const struct nj_request_head *head);
