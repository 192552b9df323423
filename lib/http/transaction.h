/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An HTTP transaction: one request and its response, from the decoded head to the access-log
 * record. Static files, handlers, redirects and refusals all use it. The transaction does not know
 * its framing, HTTP/2 or HTTP/1: struct nj_framing hides it.
 *
 * The framing's owner begins a transaction (request_admission.h). The handler or the file server
 * responds exactly once. nj_txn_end() is called when the stream has closed. All calls belong to the
 * shard's lcore, in its root context.
 */
#pragma once

#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/request_head.h"
#include "http/client_cert.h"
#include "http/proto/date.h"
#include "shape/shaper.h"
#include "site/site_counts.h"
#include "telem/access_log_record.h"
#include "telem/count.h"
#include "telem/histogram.h"

struct nj_exchange;
struct nj_file_wait;
struct nj_http_options;
struct nj_site_identity;
struct nj_site_rules;
struct nj_txns;

/* Reasons to reset a stream. */
enum nj_reset {
    NJ_RESET_NONE,
    NJ_RESET_INTERNAL, /* server error: the response that was sent is incomplete */
    NJ_RESET_REFUSED,  /* the request was not processed: the client may repeat it (RFC 9113 8.7) */
    NJ_RESET_SILENT,   /* the same, by a policy that wants no response */
    NJ_RESET_CANCEL,   /* the client stalled for too long */
    NJ_RESET_ENHANCE_CALM, /* the client exceeds its share: ENHANCE_YOUR_CALM */
};

/* How a transaction acts on its stream, which is a stream of HTTP/2, or a connection of HTTP/1 with
 * its open request. The functions are those of lib/h2/h2.h and lib/h1/h1.h; none of them closes the
 * stream before it returns. `stream` is txn->stream. */
struct nj_framing {
    int (*respond)(void *stream, uint16_t status, const struct nj_field *fields, uint32_t n_fields,
                   uint64_t stamp, struct nj_body *body);
    /* Sends the head that was encoded with this stamp. False: the head must be built; nothing was
     * done. */
    bool (*respond_cached)(void *stream, uint16_t status, uint64_t stamp, struct nj_body *body);
    int (*trailers)(void *stream, const struct nj_field *fields, size_t n_fields);
    void (*resume)(void *stream);
    void (*consume)(void *stream, size_t n_bytes);
    void (*reset)(void *stream, enum nj_reset why);
    void (*send_continue)(void *stream); /* sends 100 (Continue) */
    /* The priority of the response within its connection: RFC 9218 4. */
    void (*prioritize)(void *stream, uint8_t urgency, bool incremental);
    /* Why the response makes no progress, once its head was sent. */
    enum nj_blocked_by (*blocked_by)(const void *stream);
    /* No other request of its connection is open. */
    bool (*is_alone)(const void *stream);
    /* reset() was called, or its connection ends: the stream closes with the next output. */
    bool (*is_reset)(const void *stream);
    /* Identifies the request among those of its shard: nj_txn_id(). NULL: nothing is kept for
     * management. */
    uint64_t (*id)(const void *stream);
    /* Of TLS connections, NULL for cleartext: the name of the cipher suite in RFC 8446, the
     * client's certificate, or NULL, of which the connection keeps its reference, and to what the
     * server name of the handshake belongs (site/site_table.h). */
    const char *(*tls_suite)(const void *conn);
    struct nj_client_cert *(*client_cert)(const void *conn);
    const struct nj_site_identity *(*identity)(const void *conn);
};

/* A client across all classes. Lives as long as the shard. Clients are identified by a hash: two
 * clients with the same hash share these counters. */
struct nj_requester {
    uint32_t n_open;        /* open requests */
    uint32_t n_need_stack;  /* handlers that may need a fiber stack */
    uint64_t n_held;        /* response bytes from workers: buffered and reserved */
    struct nj_list waiting; /* struct nj_txn.node: transactions queued for a stack, oldest first */
    uint32_t n_waiting;     /* length of `waiting` */
    struct nj_list turn; /* conn/fiber_admission.c: in the list of clients with queued requests */
};

/* A response body that is one line of text. */
struct nj_text_body {
    struct nj_body body;
    struct nj_str rest;
};

struct nj_txn {
    struct nj_list node; /* in conn/request_timeouts.c's list, or in nj_requester.waiting */
    struct nj_txns *set;
    const struct nj_framing *framing;
    void *stream; /* NULL: the stream has closed */
    void *conn;   /* the framing's connection */
    struct nj_addr remote;
    uint16_t rport;
    uint64_t client_hash;       /* nj_policy_verdict.client_hash */
    struct nj_addr client_addr; /* nj_policy_verdict.client */
    /* Who serves the request. nj_txn_end() calls on_end last, in place of nj_txn_release(): from
     * then on the transaction is the callee's, to release. NULL: nobody has to be told. */
    void (*on_end)(struct nj_txn *t);
    /* Opaque here. http/handlers sets `exchange` if a handler responds; the owner of the framing
     * passes it body bytes. http/files sets `wait` while a worker opens a file. Else NULL. */
    struct nj_exchange *exchange;
    struct nj_file_wait *wait;
    struct nj_client *client; /* one reference; NULL: none */
    struct nj_requester *requester;
    struct nj_access_record *access; /* NULL: not logged */
    /* Those of its site and path, until the response has begun; NULL: none
     * (http/site/site_fields.h) */
    const struct nj_site_rules *rules;
    struct nj_site_counts *site; /* NULL: it is not counted for a site */
    bool is_https; /* with rules: over TLS, or as a trusted proxy says that ends TLS */
    nj_ns arrived_at,
        head_sent_at;    /* when the request arrived; when the response head was sent, 0: not yet */
    uint16_t status;     /* of the response; 0: none yet */
    uint8_t method;      /* enum nj_method */
    bool client_unknown; /* the request is from a trusted proxy that does not name its client */
    uint8_t named_scheme; /* enum nj_scheme: of the request, as a trusted proxy names it; NONE: none
                             does */
    bool admitted;        /* counted for its client; `paced` is valid */
    bool request_whole;   /* the request has arrived completely */
    bool awaits_stack;    /* queued for a stack: node is in requester->waiting */
    nj_ns stack_since;    /* when it was queued for a stack; if not queued, when it was submitted */

    /* conn/request_timeouts.c: progress at the last check that found the stream fast enough.
     */
    nj_ns progressed_at, progress_throttled;
    uint64_t progress_sent,
        progress_received; /* bytes of the response; bytes of the request body */
    uint32_t progress_una; /* TCP's SND.UNA of its connection */
    nj_ns recheck_at;
    bool body_progressed; /* request bytes arrived since the last check */
    bool awaits_file;     /* at the last check the response waited for a file */

    struct nj_text_body text; /* body of an error response; not zeroed by nj_txn_begin() */
    struct nj_paced paced;    /* valid while `admitted` */
};

/* Callbacks from transactions to the owner of their set. */
struct nj_txn_events {
    /* A limit was enforced against the client of a request. The caller has counted `why`. */
    void (*abuse)(void *ctx, nj_counter why, const struct nj_addr *client);
    /* The workers that the route was moved to are full. The transaction is to be submitted once
     * more with the route's declared type. The callback only queues it. */
    void (*requeue)(struct nj_txn *t);
    /* The transaction was admitted: start to check its progress. */
    void (*watch_progress)(struct nj_txn *t, nj_ns now);
    /* The transaction ends while it is queued for a stack. */
    void (*leave_stack_queue)(struct nj_txn *t);
    /* A body that had no bytes has bytes now. `txn` is body->waiter, a struct nj_txn. */
    void (*wake)(void *txn);
};

#define NJ_REQUESTERS 1024u /* 80 bytes each */

/* Responses with more bytes than this have their path kept, for management. */
#define NJ_TXN_PATH_FROM_BYTES (16u * 1024u)
#define NJ_TXN_PATH_BYTES      109u

/* The path of a request whose response takes longer. It belongs to the transaction with this id. */
struct nj_txn_path {
    uint64_t id;
    uint64_t site; /* struct nj_site_identity.site of its rules; 0: none */
    uint8_t n_bytes;
    bool is_cut;
    char text[NJ_TXN_PATH_BYTES];
};

/* All transactions of a shard and their shared state. */
struct nj_txns {
    const struct nj_txn_events *events;
    void *ctx; /* argument of events.abuse */
    const nj_ns *now;
    struct nj_counters *counters;
    int64_t wall_s_at_zero; /* UNIX time when *now was 0 */
    uint32_t shard_number;  /* for access-log records */
    struct nj_access_ops access;
    struct nj_hash_key client_key; /* secret; equal on all shards */
    struct nj_shape *shape;
    struct nj_clients *clients;
    const struct nj_http_options *options;

    struct nj_pool pool;
    struct nj_txn_path *paths; /* by the index in `pool`; not of short responses */
    struct nj_site_counts *sites;
    struct nj_date_cached date;
    struct nj_policy_memo memo;
    struct nj_histogram ttfb, total,
        throttled; /* of responses; `throttled` only of those that were delayed */
    struct nj_requester requester[NJ_REQUESTERS];
};

/* The caller sets the members before `pool` and zeroes the others. Returns false when memory is
 * refused. */
bool nj_txns_init(struct nj_txns *set, uint32_t n_max);
void nj_txns_fini(struct nj_txns *set);

/* The counts of a site. */
static inline struct nj_site_counts *nj_txns_site(const struct nj_txns *set, uint32_t at)
{
    return (struct nj_site_counts *)((char *)set->sites + at);
}

/* Current UNIX time, and the same as a date field's value. The string is valid until the next
 * second. */
int64_t nj_txns_now_s(const struct nj_txns *set);
struct nj_str nj_txns_date_value(struct nj_txns *set);

/* The source of a request. */
struct nj_txn_origin {
    const struct nj_framing *framing;
    void *stream;
    uint32_t stream_id;
    void *conn;
    uint32_t conn_number;         /* unique in the shard; for the access log */
    const struct nj_addr *remote; /* of the connection: the source of its PROXY header, if any */
    uint16_t rport;
    const struct nj_addr *peer; /* of TCP */
};

/* The connection's number, and in the lower half the stream's id of HTTP/2, or the number of the
 * request in its connection. Not reused within 2^32 connections. The stream is open. */
static inline uint64_t nj_txn_id(const struct nj_txn *t)
{
    return t->framing->id(t->stream);
}

static inline uint64_t nj_txn_id_of(uint32_t conn_number, uint32_t stream_id)
{
    return (uint64_t)conn_number << 32 | stream_id;
}

/* The path that http/files has kept of a long response; NULL: none. The stream is open. */
const struct nj_txn_path *nj_txn_kept_path(const struct nj_txn *t);

/* For request_admission.c: completes the access-log record, t->access. */
void nj__txn_log(struct nj_txn *t, bool complete, nj_ns ttfb, nj_ns total);
/* The stream has closed. `complete`: the response was sent to its last byte. A transaction with
 * on_end counts for its client until nj_txn_release(): its handler may still run. */
void nj_txn_end(struct nj_txn *t, bool complete);
void nj_txn_release(struct nj_txn *t);

/* Sends the response, once: up to NJ_RESP_HEAD_SENT_MAX fields, copied. `stamp` as in h2.h. `body`
 * may be NULL; the stream owns it from here on, also on failure (-1: the connection ends). The body
 * is paced. */
int nj_txn_respond(struct nj_txn *t, uint16_t status, const struct nj_field *fields,
                   uint32_t n_fields, uint64_t stamp, struct nj_body *body);
/* Sends a response whose head was encoded before, identified by its stamp. False: the caller must
 * build the head. */
bool nj_txn_respond_cached(struct nj_txn *t, uint16_t status, uint64_t stamp, struct nj_body *body);

/* The client of a key, with one reference. If the client table is full: the shared client for all
 * others. */
struct nj_client *nj_txns_get_client(struct nj_txns *set, uint64_t key, const struct nj_addr *addr);
void nj_txns_put_client(struct nj_txns *set, struct nj_client *client);
