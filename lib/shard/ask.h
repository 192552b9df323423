/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request of a stream, the site's and a route's alike, from its head until its stream is over:
 * who asks, what the policy said, how far the response got, and what is to be remembered of it.
 * Requests that are refused have one, too. One lcore only.
 */
#ifndef NJ_SHARD_ASK_H
#define NJ_SHARD_ASK_H

#include "base/list.h"
#include "h2/h2.h"
#include "shape/shape.h"
#include "telem/access.h"

struct nj_conn;
struct nj_exchange;
struct nj_shard;
struct nj_site_wait;

struct nj_ask {
    struct nj_list node; /* member of shard->asks, see patience.c */
    struct nj_conn *conn;
    struct nj_h2_stream *stream;
    struct nj_exchange *exchange; /* a route's */
    struct nj_site_wait *wait;    /* the site's, while it waits for a worker */
    struct nj_client *client;     /* held; NULL: none was taken */
    struct nj_stacks_client *who; /* asks, in whatever class; the shard's */
    struct nj_access *access;     /* NULL: it is not logged */
    struct nj_paced paced;
    nj_ns came, head_at; /* the response's head; 0: none was sent */
    uint16_t status;     /* 0 as well */
    bool unnamed;        /* a trusted proxy asks, and did not say for whom */
    bool admitted;       /* it counts for its client, and paced has begun */
    bool whole;          /* all of the request came */
    bool held;           /* it waits for a stack, and node is of its client's waiting ones */
    nj_ns stack_at;      /* it began to wait for a stack; not held: it was offered */

    /* patience.c: how far it was when it last was fast enough. */
    nj_ns fine_at, fine_throttled;
    uint64_t fine_bytes, fine_came; /* of the response; of the request's body */
    uint32_t fine_una;              /* of its connection */
    nj_ns look_at;
    bool body_moved; /* bytes of the request came since it was looked at */
    bool for_file;   /* it waited for a file when it was looked at */
};

/* A request came, for a plain path (http/path.h) if it has one. It is recorded with its stream, and
 * the policy asked what is to become of it.
 * NULL: it was answered or reset, and there is nothing more to do. */
struct nj_ask *nj__ask_begin(struct nj_conn *c, struct nj_h2_stream *st,
                             const struct nj_request_head *req, struct nj_str path);
/* So many places of what it needs are left: does its client have too many requests open to get one
 * of them? Then it was answered with 503. */
bool nj__ask_hoards(struct nj_ask *a, uint32_t n_left);
/* The answer, as nj_h2_respond_stamped(); the body is paced from here on. */
int nj__ask_respond(struct nj_ask *a, uint16_t status, const struct nj_field *fields,
                    uint32_t n_fields, uint64_t stamp, struct nj_body *body);
/* The answer is this status, and no more. */
void nj__ask_refuse(struct nj_ask *a, uint16_t status);
/* The answer is 503, and when to come again. */
void nj__ask_busy(struct nj_ask *a);
/* A request that HTTP/2 refuses for its head alone: it is answered, and not remembered. */
void nj__ask_refused(struct nj_conn *c, struct nj_h2_stream *st, const struct nj_request_head *req,
                     uint16_t status);
/* Its stream is over. `runs`: its handler is not home, and it counts for its client until
 * nj__ask_home(); nothing else of it is used any more. */
void nj__ask_end(struct nj_ask *a, bool complete, bool runs);
void nj__ask_home(struct nj_shard *s, struct nj_ask *a);

/* patience.c: how it gets on is to be looked at, the next time after a while. */
void nj__ask_watch(struct nj_ask *a, nj_ns now);
/* Is it the peer for whom it waits now? */
bool nj__ask_is_peers(const struct nj_ask *a);

static inline struct nj_ask *nj__ask_of(const struct nj_h2_stream *st)
{
    return nj_h2_stream_user(st);
}

#endif
