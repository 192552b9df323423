/* SPDX-License-Identifier: BSD-3-Clause */
/* A request of the management listener: who may send it, its body, and its response. The management
 * thread. */
#pragma once

#include <microhttpd.h>

#include "mgmt/access_tokens.h"
#include "mgmt/routes.h"
#include "mgmt/slow_route.h"

#define NJ__MGMT_QUERY_MAX 1023u
#define NJ__MGMT_BODY_MAX  (64u << 10)

/* Where a connection has arrived. */
enum nj__mgmt_place {
    NJ__MGMT_UNIX,
    NJ__MGMT_LOOPBACK,
    NJ__MGMT_ELSEWHERE,
    NJ__MGMT_PLACES,
};

/* What answers a request needs to know. */
struct nj__mgmt_answerer {
    const struct nj_mgmt_view *view;
    struct nj_mgmt_tokens tokens;
    struct nj__mgmt_slow *slow;
    struct nj__mgmt_events events;
    uint64_t n_unsent[NJ__MGMT_PLACES]; /* bytes of responses that clients have not taken yet */
};

/* One request at a time of a connection. Zero-initialized, except for `place`. */
struct nj__mgmt_exchange {
    enum nj__mgmt_place place;
    bool has_head, is_checked, is_answered;
    bool is_too_long; /* the query or the body */
    char query[NJ__MGMT_QUERY_MAX + 1];
    char *body;
    size_t n_body, n_room;
    struct nj__mgmt_answerer *answerer; /* of the response, and of what follows */
    struct MHD_Connection *connection;
    uint64_t n_unsent;             /* its part of the answerer's */
    struct nj__mgmt_stream stream; /* that is sent; read is NULL: none */
    bool is_suspended;             /* libmicrohttpd leaves the connection alone meanwhile */
    bool has_taken;                /* the client has taken all of the stream until now */
    bool is_cut;                   /* the stream must end */
};

/* Before the head has arrived. Keeps the query of the URL. */
void nj__mgmt_exchange_begin(struct nj__mgmt_exchange *e, const char *url);
/* Called by libmicrohttpd when the head has arrived, for each part of the body, and at its end. */
enum MHD_Result nj__mgmt_exchange_step(struct nj__mgmt_exchange *e, struct nj__mgmt_answerer *a,
                                       struct MHD_Connection *c, const char *path,
                                       const char *method, const char *data, size_t *n_data);
/* The response was sent, or the connection has ended. */
void nj__mgmt_exchange_end(struct nj__mgmt_exchange *e);
/* Is there a reason to ask a suspended one again? */
bool nj__mgmt_exchange_has_more(const struct nj__mgmt_exchange *e);
/* Ask a suspended one again, unless its route runs; others are left alone. */
void nj__mgmt_exchange_resume(struct nj__mgmt_exchange *e);
/* Does the slow thread run its route? It has to stay then. */
bool nj__mgmt_exchange_runs(const struct nj__mgmt_exchange *e);

/* Is it an address or localhost, with or without a port? Other names may be those of a page in a
 * browser here that has changed its address to this one. */
bool nj__mgmt_is_local_host(const char *host);
/* Does the field Origin name the server that the field Host does? */
bool nj__mgmt_is_same_origin(const char *origin, const char *host);
