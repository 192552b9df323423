/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server side of HTTP/1.1 and HTTP/1.0 (RFC 9112) as a protocol engine without I/O: it takes
 * bytes from the peer, reports requests by callbacks, and writes bytes into a sink.
 *
 * A connection has at most one open request. While its response is incomplete, bytes behind the
 * request are not read: a pipelined request waits where the owner holds its bytes.
 *
 * The engine has no clock, no socket and no thread. One lcore makes all calls on an nj_h1_context
 * and on everything created from it. Unless a comment says otherwise, sizes are bytes, times are
 * nanoseconds, and strings passed in are copied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/body_source.h"
#include "base/byte_sink.h"
#include "base/header_field.h"
#include "base/request_head.h"
#include "base/size_class_alloc.h"
#include "base/types.h"
#include "telem/count.h"

struct nj_h1_context; /* shared by the connections of a shard: callbacks, limits, encoded heads */
struct nj_h1;         /* one connection, and its open request */

/* A callback may call nj_h1_respond(), _respond_cached(), _set_trailers(), _consume(), _resume(),
 * _send_continue() and _reset() for its connection. `user` is the pointer passed to nj_h1_open().
 */
struct nj_h1_events {
    /* A request head is complete and valid. The owner responds once, now or later. */
    void (*on_request)(void *user, struct nj_h1 *h, const struct nj_request_head *req);
    /* The request has ended: its response is sent, it was reset, or the connection ended. The
     * response body is closed before it. `complete`: the last byte of the response was passed to
     * the sink, or it is in the outbox and another request follows. Called once for each request
     * passed to on_request, and for no other. It may precede on_end. */
    void (*on_close)(void *user, struct nj_h1 *h, bool complete);
    /* Bytes of a request body, without chunk syntax, valid until this returns. The engine reads no
     * more of the body than NJ_H1_BODY_WINDOW_BYTES ahead of nj_h1_consume(). Not called after the
     * request has ended. NULL: request bodies are discarded. */
    void (*on_data)(void *user, struct nj_h1 *h, const uint8_t *data, size_t n_bytes);
    /* The request is complete. Called at most once, after the last on_data, and only if req->ends
     * was false. May be NULL. */
    void (*on_end)(void *user, struct nj_h1 *h);
    /* A request is refused because of its head, or of the framing of its body before a response
     * began. `req` has what could be read of its head; it may lack a method. If the request was
     * passed to on_request, `req` is empty, the user pointer of the request is set, and on_close
     * follows; else there is no such pointer, and on_close is not called. The callback must respond
     * with `status` and no body before it returns. The connection ends after the response. NULL:
     * the engine responds with `status`. */
    void (*on_refused)(void *user, struct nj_h1 *h, const struct nj_request_head *req,
                       uint16_t status);
    /* A request is refused, or the peer was too slow, and `why` has counted it. on_refused follows
     * if a response can be sent. May be NULL. */
    void (*on_refusal_counted)(void *user, nj_counter why);
};

struct nj_h1_limits {
    uint32_t header_bytes_max;  /* names, values and 32 for each field, as in HTTP/2; beyond: 431 */
    uint32_t header_fields_max; /* beyond: 431 */
};

/* Bytes of a request body that were passed to on_data and not consumed, at most. Then input is not
 * read (nj_h1_may_read()). */
#define NJ_H1_BODY_WINDOW_BYTES (256u * 1024u)

/* Returns NULL when out of memory. `events`, `alloc` and `counters` must outlive the context.
 * `limits` are copied. */
struct nj_h1_context *nj_h1_context_new(const struct nj_h1_events *events,
                                        const struct nj_h1_limits *limits, struct nj_alloc *alloc,
                                        struct nj_counters *counters);
/* All connections must have been closed. */
void nj_h1_context_free(struct nj_h1_context *ctx);
uint32_t nj_h1_context_n_conns(const struct nj_h1_context *ctx);

/* A new server-side connection. `is_tls`: requests in origin-form have the scheme https.
 * `is_trusted`: the peer is a gateway that may ask for https without TLS (RFC 9110 7.4). NULL: out
 * of memory, or the bound of `alloc` is reached. */
struct nj_h1 *nj_h1_open(struct nj_h1_context *ctx, void *user, bool is_tls, bool is_trusted);
/* Prefetch the connection's state into the CPU cache, before nj_h1_input(). */
void nj_h1_prefetch(const struct nj_h1 *h);
/* Close the connection: on_close is called for the open request, then all memory is freed. */
void nj_h1_close(struct nj_h1 *h);

/* May nj_h1_input() be called? False while a request waits for its response, while too many bytes
 * of its body are not consumed, and while the outbox is full. True once the connection is to end:
 * then input is discarded. */
bool nj_h1_may_read(const struct nj_h1 *h);
/*
 * Process bytes from the peer. Returns how many were used; nj_h1_may_read() is false if that is
 * fewer than `n_bytes`. A head that is complete in `data` is parsed there; an incomplete one is
 * copied. Several requests are processed in one call if their responses are complete at once and
 * fit into the outbox. `data` is not NULL, even if n_bytes is 0.
 *
 * An error of the peer is answered with a status of 400, 408, 414, 417, 421, 431, 501 or 505 and
 * `Connection: close`, or ends the connection if a response has begun (RFC 9112 2.2, 3, 5.1, 6.3).
 */
uint32_t nj_h1_input(struct nj_h1 *h, const uint8_t *data, uint32_t n_bytes);
/* For an owner that cannot hold bytes that nj_h1_input() has not used: copies them. nj_h1_input()
 * with n_bytes 0 processes them, once nj_h1_may_read() is true. Out of memory for input: no more of
 * it is read. The connection ends after the responses to the requests that were read completely. */
void nj_h1_keep(struct nj_h1 *h, const uint8_t *data, uint32_t n_bytes);
/* Bytes of nj_h1_keep() are left to be processed. */
bool nj_h1_has_kept(const struct nj_h1 *h);

/* Write what is queued and the body of the response into the sink, until nothing is left or the
 * sink has room for less than 4096 bytes. The engine adds nothing between the pieces of a body,
 * unless the body is chunked. Returns 0, or -1 when out of memory: then the owner must reset the
 * connection. Call it after each input. */
int nj_h1_output(struct nj_h1 *h, const struct nj_byte_sink *sink, void *sink_ctx);

/* Nothing remains to be sent, and no request will be read: the owner sends FIN and discards what
 * still comes (RFC 9112 9.6). */
bool nj_h1_is_finished(const struct nj_h1 *h);
/* A response that ends with the connection is incomplete, or output was discarded: the owner must
 * send RST instead of FIN, since a FIN would make it look complete (RFC 9112 8). Ask when the
 * connection is to end, before nj_h1_close(). */
bool nj_h1_must_reset(const struct nj_h1 *h);
/* The last response is complete and came before the end of its request: the client may send the
 * rest before it reads the response (RFC 9112 9.6). False if the request was refused or too slow.
 * Ask when the connection is to end, before nj_h1_close(). */
bool nj_h1_rest_may_come(const struct nj_h1 *h);
/* 1 while a request is open, else 0. */
uint32_t nj_h1_n_requests(const struct nj_h1 *h);
/* No request is open and no output is queued. */
bool nj_h1_is_idle(const struct nj_h1 *h);

/* Graceful shutdown: the open request is the last one, and its response says `Connection: close` if
 * its head is not yet sent. So is a request whose head has begun to arrive, or, with `has_unread`,
 * is among bytes that the connection has received. Without one the connection is finished once the
 * outbox is empty. */
void nj_h1_drain(struct nj_h1 *h, bool has_unread);
/* The peer took too long for a head or a trailer section: 408, unless a response has begun, and the
 * end of the connection. For anything else, as a record of TLS: the end alone, also of an open
 * request, as by nj_h1_reset(). Either is counted, and reported by on_refusal_counted. */
void nj_h1_end_for_timeout(struct nj_h1 *h);

/* When the peer began the head or trailer section that is still incomplete, or since when the rest
 * of a body is skipped whose request has ended; NJ_NEVER if there is none. `now` is the result for
 * one that began with the last input, so call this after each input. */
nj_ns nj_h1_unfinished_since(struct nj_h1 *h, nj_ns now);
/* Memory of an incomplete head or trailer section, of kept bytes, and of output that waits for room
 * in the sink. */
uint32_t nj_h1_buffered_bytes(const struct nj_h1 *h);

/*
 * Respond to the open request: status (200 to 599), up to 86 fields (copied) and a body, or NULL
 * for none. The engine takes ownership of the body, also on failure. For a HEAD request the caller
 * passes no body and the fields of the response to GET. Names of fields are written with an upper
 * case letter at the beginning of each word.
 *
 * A body whose length is known gets Content-Length if the fields have none; another is chunked, or
 * ends with the connection for HTTP/1.0. `Connection` is added where RFC 9112 9.3 asks for it.
 *
 * `stamp`: equal stamps promise equal status and fields, byte for byte and in the same order, on
 * all connections of the context; nj_h1_respond_cached() then sends the same. 0: do not cache.
 * Returns 0, or -1 when out of memory.
 */
int nj_h1_respond(struct nj_h1 *h, uint16_t status, const struct nj_field *fields,
                  uint32_t n_fields, uint64_t stamp, struct nj_body *body);
/* Respond with the cached head of `stamp`. False: the head is not cached. Then nothing was done,
 * and the caller still owns the body and calls nj_h1_respond(). */
bool nj_h1_respond_cached(struct nj_h1 *h, uint16_t status, uint64_t stamp, struct nj_body *body);
/* Send 100 (Continue) (RFC 9110 10.1.1). No effect unless req->expects_continue was true, once the
 * response was given, and once bytes of the body have come. */
void nj_h1_send_continue(struct nj_h1 *h);
/* The response body has bytes again, or has failed or ended. */
void nj_h1_resume(struct nj_h1 *h);
/* Set trailer fields (up to 86, copied), sent after a chunked body and dropped for any other.
 * Called once, before or after nj_h1_respond(). Returns -1 without effect once the end of the body
 * was sent, or when out of memory. */
int nj_h1_set_trailers(struct nj_h1 *h, const struct nj_field *fields, size_t n_fields);
/* The owner has processed `n_bytes` of the request body. */
void nj_h1_consume(struct nj_h1 *h, size_t n_bytes);
/* Give up the open request: on_close() follows with the next output. HTTP/1 cannot reset a request
 * alone: the connection ends, without a response if none has begun. What that output could not
 * write, because the sink had no room, is discarded; then nj_h1_must_reset(). */
void nj_h1_reset(struct nj_h1 *h);
/* Was it called for the open request? */
bool nj_h1_is_reset(const struct nj_h1 *h);
/* The body had no bytes, and nj_h1_resume() was not called since. */
bool nj_h1_is_blocked_by_body(const struct nj_h1 *h);
/* Number of the open request in its connection, from 1. */
uint32_t nj_h1_request_number(const struct nj_h1 *h);

/* The user pointers of the connection and of the open request. */
void *nj_h1_user(const struct nj_h1 *h);
void nj_h1_set_request_user(struct nj_h1 *h, void *user);
void *nj_h1_request_user(const struct nj_h1 *h);
