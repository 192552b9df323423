/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transaction: one request and its response, from the decoded head to the record of the access
 * log. Files, handlers, redirects and refusals alike have one. It does not know which framing
 * carries it: that is behind struct nj_framing.
 *
 * The framing's owner begins it (nj_txn_begin), nj_http_serve() finds who answers it, whoever that
 * is responds once, and nj_txn_end() comes when its stream is over. All calls belong to the shard's
 * lcore, and to its root context.
 */
#ifndef NJ_HTTP_TRANSACTION_H
#define NJ_HTTP_TRANSACTION_H

#include "base/hash.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/request_head.h"
#include "http/proto/date.h"
#include "shape/shaper.h"
#include "telem/access.h"
#include "telem/counters.h"
#include "telem/histogram.h"

struct nj_conn;
struct nj_exchange;
struct nj_exchanges;
struct nj_site;
struct nj_site_wait;
struct nj_target;
struct nj_txns;

/* Why a stream is reset. */
enum nj_reset {
    NJ_RESET_NONE,
    NJ_RESET_INTERNAL, /* our fault: what was sent is not the whole */
    NJ_RESET_REFUSED,  /* nobody has looked at the request: the client may repeat it */
    NJ_RESET_CANCEL,   /* the peer lets us wait for too long */
    NJ_RESET_CALM,     /* it has too much */
};

/* How responses leave, and what else is asked of the stream that carries a transaction. The calls
 * of lib/h2/h2.h; none of them closes the stream before it returns. `stream` is txn->stream. */
struct nj_framing {
    int (*respond)(void *stream, uint16_t status, const struct nj_field *fields, uint32_t n_fields,
                   uint64_t stamp, struct nj_body *body);
    /* The head that had this stamp once more. False: it has to be built, and nothing was done. */
    bool (*respond_again)(void *stream, uint16_t status, uint64_t stamp, struct nj_body *body);
    int (*trailers)(void *stream, const struct nj_field *fields, size_t n_fields);
    void (*resume)(void *stream);
    void (*consume)(void *stream, size_t n_bytes);
    void (*reset)(void *stream, enum nj_reset why);
    void (*go_on)(void *stream); /* 100 (Continue) */
    /* Its place among the responses of the connection: RFC 9218 4. */
    void (*prioritize)(void *stream, uint8_t urgency, bool incremental);
};

/* A client as its requests see it, whatever their class. It lives as long as the shard. Clients are
 * told apart by a hash: two of one place share what it counts. */
struct nj_requester {
    uint32_t n_open;        /* requests that are open */
    uint32_t n_at_work;     /* handlers that may need a stack: until one has left */
    uint64_t n_held;        /* bytes of responses of workers, come and expected */
    struct nj_list waiting; /* struct nj_txn.node of those that wait for a stack, oldest first */
    uint32_t n_waiting;     /* of `waiting` */
    struct nj_list turn;    /* shard/stacks.c: among clients of which requests wait */
};

/* A line of text as a body. */
struct nj_text_body {
    struct nj_body body;
    struct nj_str rest;
};

struct nj_txn {
    struct nj_list node; /* shard/patience.c: of those that are looked at; or see nj_requester */
    struct nj_txns *set;
    const struct nj_framing *framing;
    void *stream;         /* NULL: it is over */
    struct nj_conn *conn; /* of the shard */
    struct nj_addr remote;
    uint16_t rport;
    uint64_t asker;               /* nj_policy_verdict.asker */
    struct nj_exchange *exchange; /* a handler's, or NULL */
    struct nj_site_wait *wait;    /* the file server's, while a worker opens a file, or NULL */
    struct nj_client *client;     /* held; NULL: none was taken */
    struct nj_requester *requester;
    struct nj_access *access; /* NULL: it is not logged */
    nj_ns came, head_at;      /* the response's head; 0: none was sent */
    uint16_t status;          /* 0 as well */
    bool is_head;             /* the method is HEAD */
    bool unnamed;             /* a trusted proxy asks, and does not say for whom */
    bool admitted;            /* it counts for its client, and `paced` has begun */
    bool whole;               /* all of the request came */
    bool held;                /* it waits for a stack, and node is of requester->waiting */
    nj_ns stack_at;           /* it began to wait for a stack; not held: it was offered */

    /* shard/patience.c: how far it was when it last was fast enough. */
    nj_ns fine_at, fine_throttled;
    uint64_t fine_bytes, fine_came; /* of the response; of the request's body */
    uint32_t fine_una;              /* of its connection */
    nj_ns look_at;
    bool body_moved; /* bytes of the request came since it was looked at */
    bool for_file;   /* it waited for a file when it was looked at */

    struct nj_text_body text; /* of an error; not cleared before */
    struct nj_paced paced;    /* valid while `admitted` */
};

/* What the shard does for transactions, and is told of them. */
struct nj_txn_events {
    /* Protection acted against the client of a request; `why` is counted by the caller. */
    void (*abuse)(void *shard, enum nj_counter why, const struct nj_addr *client);
    /* The workers, where its route was moved, have no room: it is to be offered once more, as its
     * route declares. Takes note of it only. */
    void (*again)(struct nj_txn *t);
    /* It is admitted: its progress is to be watched. */
    void (*watch)(struct nj_txn *t, nj_ns now);
    /* It ends while it waits for a stack. */
    void (*forget)(struct nj_txn *t);
    /* A body that had shown nothing has bytes again; `waiter` is body->waiter. */
    void (*wake)(void *waiter);
};

#define NJ_REQUESTERS 1024u /* 80 bytes each */

/* All transactions of a shard, and what they have in common. */
struct nj_txns {
    const struct nj_txn_events *events;
    void *shard; /* of events.abuse */
    const nj_ns *now;
    struct nj_counters *counters;
    int64_t wall_s_at_zero; /* UNIX time when *now was 0 */
    uint32_t shard_number;  /* for records */
    struct nj_access_port access;
    struct nj_hash_key client_key; /* secret; the same for all shards */
    struct nj_shape *shape;
    struct nj_clients *clients;
    uint64_t body_max; /* of requests, whatever their route says; 0: that */
    bool no_site;      /* what is no route's is answered with 404 */
    struct nj_site *site;
    struct nj_exchanges *exchanges; /* NULL: there are no routes */

    struct nj_pool pool;
    struct nj_date_of_now date;
    struct nj_policy_memo memo;
    struct nj_histogram ttfb, total, throttled; /* of responses; throttled: of those that were */
    struct nj_requester requester[NJ_REQUESTERS];
};

/* The caller sets the members before `pool` and zeroes the others. Returns false without memory. */
bool nj_txns_init(struct nj_txns *set, uint32_t n_max);
void nj_txns_fini(struct nj_txns *set);

/* UNIX time, and the value of a date field. The string lives until another second begins. */
int64_t nj_txns_now_s(const struct nj_txns *set);
struct nj_str nj_txns_date(struct nj_txns *set);

/* Where a request came from. */
struct nj_txn_origin {
    const struct nj_framing *framing;
    void *stream;
    uint32_t stream_id;
    struct nj_conn *conn;
    uint32_t conn_number; /* among those of the shard: for the log */
    const struct nj_addr *remote;
    uint16_t rport;
};

/* A request came, for a plain path (http/path.h) if it has one. The policy is asked what is to
 * become of it. True: it is to be served. False: it was answered or reset. In either case *out is
 * its transaction, which ends by nj_txn_end(); NULL, then false: there was no place for one. */
bool nj_txn_begin(struct nj_txns *set, const struct nj_txn_origin *from,
                  const struct nj_request_head *head, struct nj_str path, struct nj_txn **out);
/* A request that gets no place, as its framing refuses it for its head alone: it is answered with
 * an error and logged, and counts for nobody. */
void nj_txn_refused(struct nj_txns *set, const struct nj_txn_origin *from,
                    const struct nj_request_head *head, uint16_t status);
/* Find who answers it: the handler of a route, or the file server, which is mounted at "/" and may
 * answer at once. Returns the exchange of a handler, which is to be offered to the strategy; or
 * NULL. */
struct nj_exchange *nj_http_serve(struct nj_txn *t, const struct nj_request_head *head,
                                  const struct nj_target *target, uint32_t n_of_conn);
/* Its stream is over. `complete`: the response left to its last byte. One with an exchange counts
 * for its client until that calls nj_txn_release(): its handler may still run. */
void nj_txn_end(struct nj_txn *t, bool complete);
void nj_txn_release(struct nj_txn *t);

/* The response, once: up to 64 fields, copied; `stamp` as in h2.h. The body, or NULL, is the
 * stream's from here on, also when this fails (-1: the connection ends); it is paced. */
int nj_txn_respond(struct nj_txn *t, uint16_t status, const struct nj_field *fields,
                   uint32_t n_fields, uint64_t stamp, struct nj_body *body);
/* The same where the head went out before, by its stamp. False: it has to be built. */
bool nj_txn_respond_again(struct nj_txn *t, uint16_t status, uint64_t stamp, struct nj_body *body);

/* Before it is answered: it is one of that class from here on, for its client, too. False: it is
 * answered with a refusal, by the class's action or its limits for a client. */
bool nj_txn_set_class(struct nj_txn *t, const struct nj_class *class_of);
/* Of the policy in force; NULL: there is none of that name. */
const struct nj_class *nj_txns_class(const struct nj_txns *set, const char *name);

/* So many places of what it needs are left: does its client have too many requests open to get one
 * of them? Then it was answered with 503. */
bool nj_txn_hoards(struct nj_txn *t, uint32_t n_left);

/* The client of a key, held; if need be that of all for whom there is no place. */
struct nj_client *nj_txns_client(struct nj_txns *set, uint64_t key, const struct nj_addr *addr);
void nj_txns_client_put(struct nj_txns *set, struct nj_client *client);

/* Its client has too much; `why` is counted. */
void nj_txn_abuse(struct nj_txn *t, enum nj_counter why);

#endif
