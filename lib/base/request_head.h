/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head of a request, as a framing (lib/h2) decodes it and as everybody above reads it: policy,
 * file server, handlers and access log. It does not say which framing carried it.
 */
#ifndef NJ_BASE_REQUEST_HEAD_H
#define NJ_BASE_REQUEST_HEAD_H

#include "base/field.h"

/* Fields that the server itself reads. The framing keeps their values while it decodes, so nobody
 * searches the list for them. */
enum nj_header {
    NJ_HEADER_ACCEPT,
    NJ_HEADER_ACCEPT_ENCODING,
    NJ_HEADER_IF_MATCH,
    NJ_HEADER_IF_MODIFIED_SINCE,
    NJ_HEADER_IF_NONE_MATCH,
    NJ_HEADER_IF_RANGE,
    NJ_HEADER_IF_UNMODIFIED_SINCE,
    NJ_HEADER_RANGE,
    NJ_HEADER_REFERER,
    NJ_HEADER_USER_AGENT,
    NJ_N_HEADERS
};

/* Strings live until the framing's call returns that showed the head; a copy keeps them. */
struct nj_request_head {
    /* As sent. `path` is the target, with its query; empty when there is none (CONNECT). The Host
     * field stands in for an authority that is missing (RFC 9113 8.3.1). */
    struct nj_str method, scheme, authority, path;
    /* All fields but pseudo fields, in order; trailers are not among them. */
    const struct nj_field *fields;
    uint32_t n_fields;
    uint16_t header_set;      /* bit i: header[i] is valid */
    uint16_t header_repeated; /* bit i: there are several such fields, and header[i] is the first */
    bool ends;                /* there is no body */
    bool expects_continue;    /* the client may wait for 100 (Continue) (RFC 9110 10.1.1) */
    uint64_t content_length;  /* in bytes; 0 when the request gives none */
    struct nj_str header[NJ_N_HEADERS];
};

/* The one of that name (lower case), or NJ_N_HEADERS. */
enum nj_header nj_header_of(struct nj_str name);
struct nj_str nj_header_name(enum nj_header which);

/* The framing found such a field. */
static inline void nj_header_add(struct nj_request_head *head, enum nj_header which,
                                 struct nj_str value)
{
    uint16_t bit = (uint16_t)(1u << which);

    if (head->header_set & bit) {
        head->header_repeated |= bit;
        return;
    }
    head->header_set |= bit;
    head->header[which] = value;
}

static inline bool nj_header_has(const struct nj_request_head *head, enum nj_header which)
{
    return head->header_set >> which & 1;
}

/* The value of the first field of that kind; p is NULL when there is none. */
static inline struct nj_str nj_header_value(const struct nj_request_head *head,
                                            enum nj_header which)
{
    return nj_header_has(head, which) ? head->header[which] : (struct nj_str){NULL, 0};
}

#endif
