/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head of a request (RFC 9110 6.1), independent of its framing. lib/h2 and lib/h1 write it; the
 * policy, the file server, the handlers and the access log read it.
 */
#pragma once

#include "base/header_field.h"
#include "base/header_id.h"

/* Methods on which responses of files depend (RFC 9110 9.3). */
enum nj_method { NJ_METHOD_OTHER, NJ_METHOD_GET, NJ_METHOD_HEAD, NJ_METHOD_OPTIONS };

static inline enum nj_method nj_method_parse(struct nj_str method)
{
    return nj_str_eq(method, NJ_STR("GET"))       ? NJ_METHOD_GET
           : nj_str_eq(method, NJ_STR("HEAD"))    ? NJ_METHOD_HEAD
           : nj_str_eq(method, NJ_STR("OPTIONS")) ? NJ_METHOD_OPTIONS
                                                  : NJ_METHOD_OTHER;
}

/* The version of a message (RFC 9110 2.5). A higher minor version of HTTP/1 counts as 1.1. */
enum nj_http_version { NJ_HTTP_2, NJ_HTTP_1_1, NJ_HTTP_1_0, NJ_N_HTTP_VERSIONS };

/* As log lines and request lines name it. */
static inline const char *nj_http_version_text(enum nj_http_version version)
{
    static const char *const text[NJ_N_HTTP_VERSIONS] = {"HTTP/2.0", "HTTP/1.1", "HTTP/1.0"};

    return text[version];
}

/* The scheme of a target (RFC 9110 4.2). NONE: another one, or none, as for CONNECT. */
enum nj_scheme { NJ_SCHEME_NONE, NJ_SCHEME_HTTP, NJ_SCHEME_HTTPS, NJ_N_SCHEMES };

static inline struct nj_str nj_scheme_text(enum nj_scheme scheme)
{
    static const struct nj_str text[NJ_N_SCHEMES] = {
        {"", 0}, NJ_STR_INIT("http"), NJ_STR_INIT("https")};

    return text[scheme];
}

static inline enum nj_scheme nj_scheme_parse(struct nj_str s)
{
    return nj_str_eq_nocase(s, NJ_STR("http"))    ? NJ_SCHEME_HTTP
           : nj_str_eq_nocase(s, NJ_STR("https")) ? NJ_SCHEME_HTTPS
                                                  : NJ_SCHEME_NONE;
}

/* Strings are valid until the call returns that passed the head. Copy them to keep them. */
struct nj_request_head {
    /* As sent. `path` is the target, with its query; empty when there is none (CONNECT). The Host
     * field replaces a missing authority (RFC 9113 8.3.1). */
    struct nj_str method, scheme, authority, path;
    /* All fields except pseudo-header fields, in order. Trailers are not included. */
    const struct nj_field *fields;
    uint32_t n_fields;
    uint8_t version;          /* enum nj_http_version */
    uint16_t header_set;      /* bit i: header[i] is valid */
    uint16_t header_repeated; /* bit i: there are several such fields, and header[i] is the first */
    bool ends;                /* there is no body */
    bool expects_continue;    /* the client may wait for 100 (Continue) (RFC 9110 10.1.1) */
    uint64_t content_length;  /* in bytes; 0 when the request gives none */
    struct nj_str header[NJ_N_HEADERS];
};

/* The decoder calls this for each field. A repeated field keeps its first value. */
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

/* The value of the first field of this name. `p` is NULL if there is none. */
static inline struct nj_str nj_header_first_value(const struct nj_request_head *head,
                                                  enum nj_header which)
{
    return nj_header_has(head, which) ? head->header[which] : (struct nj_str){NULL, 0};
}
