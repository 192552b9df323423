/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Tests of handlers without a server: routes run in virtual time, in a plain process. No EAL is
 * initialised; no root, device or hugepages are needed.
 *
 *     struct nj_test *t = nj_test_new(routes, 1, NULL);
 *     const struct nj_test_response *resp = nj_test_call(t, "GET", "/hello", NULL, 0);
 *     assert(resp->status == 200 && strcmp(resp->body, "hello\n") == 0);
 *     nj_test_free(t);
 *
 * The responses are those of a real server: a struct nj_test has the whole lcore of one, from
 * TCP/IP to the handlers, with its limits, time-outs and errors (400, 404, 405, 413, 503...), and
 * clients in memory, which speak HTTP/2 without TLS. These functions are in libnightjar itself,
 * because they run its code on the caller's thread; a server never executes them.
 *
 * Time is virtual: it begins at 2023-11-14 22:13:20 UTC and advances only in nj_test_advance(),
 * nj_test_wait() and nj_test_call(), at once from each event to the next. Before one of the
 * functions below returns, everything has happened that needs no further time. A test that does the
 * same has the same result, and routes are never moved to workers.
 *
 * Handlers run on the caller's thread: NJ_NON_BLOCKING inline, NJ_BLOCKING on stacks of their own.
 * NJ_OS_BLOCKING handlers run on other threads, one at a time, while the caller waits; there are
 * four, or as many as the configuration has workers. Their waits end in virtual time, too, but what
 * blocks them in the kernel takes real time.
 *
 * One thread makes all calls for a struct nj_test and what belongs to it, and no handler does. A
 * process may have several. Functions that return no error end the process with a message on stderr
 * if memory is refused.
 */
#ifndef NIGHTJAR_TEST_H
#define NIGHTJAR_TEST_H

#include <nightjar/handler.h>
#include <nightjar/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An lcore of a server in virtual time, and its clients. */
struct nj_test;
/** A client: one connection. */
struct nj_test_client;
/** A request of a client, and its response. */
struct nj_test_request;

/** A field of a response. */
struct nj_test_field {
    const char *name;  /**< in lower case */
    const char *value; /**< its value */
};

/** A response, as far as the client has received it. */
struct nj_test_response {
    unsigned status;               /**< 0: the head has not arrived */
    const char *body;              /**< bytes of the body so far, and a NUL */
    size_t n_bytes;                /**< number of bytes without the NUL */
    bool is_ended;                 /**< the response is complete */
    bool is_reset;                 /**< the server has reset the stream, or the connection ended */
    uint32_t reset_code;           /**< error code of RST_STREAM (RFC 9113 7); 0: none came */
    bool is_continued;             /**< 100 (Continue) has arrived */
    uint32_t n_fields;             /**< number of fields, without :status */
    uint32_t n_trailers;           /**< number of fields behind the body */
    struct nj_test_field *field;   /**< the fields of the head, in their order */
    struct nj_test_field *trailer; /**< the fields behind the body */
};

/**
 * Begin a test of these routes.
 *
 * `config` has everything else that a server would have: limits, time-outs, the file of the
 * configuration, the root of the files, lcore hooks (called with lcore 0). NULL: the defaults.
 * Without routes here, its routes are used. Ports, addresses, TLS, workers, the access log and
 * management have no effect.
 *
 * Context:   any thread, to which the test then belongs.
 * Ownership: routes and configuration as for nj_server_new().
 * Errors:    a line on stderr.
 * Returns:   the test, or NULL.
 */
NJ_API struct nj_test *nj_test_new(const struct nj_route *routes, uint32_t n_routes,
                                   const struct nj_server_config *config);

/**
 * End the test: connections end, and handlers that still wait get NJ_ERR_CANCELLED. All clients,
 * requests and responses become invalid. NULL is valid.
 *
 * Context: the test's thread.
 * Returns: the number of handlers that did not return; their memory is not freed.
 */
NJ_API uint32_t nj_test_free(struct nj_test *t);

/**
 * Send a request, and wait until its response has ended, at most one hour. A body gets a
 * content-length.
 *
 * Context:   the test's thread.
 * Ownership: the bytes are copied.
 * Returns:   the response, valid until nj_test_free().
 */
NJ_API const struct nj_test_response *nj_test_call(struct nj_test *t, const char *method,
                                                   const char *path, const void *body,
                                                   size_t n_bytes);

/**
 * Let time pass.
 *
 * Context: the test's thread.
 */
NJ_API void nj_test_advance(struct nj_test *t, uint64_t ns);

/**
 * Let time pass until the response has ended or was reset, at most `ns` nanoseconds.
 *
 * Context: the test's thread.
 * Returns: true if it has; then less time may have passed.
 */
NJ_API bool nj_test_wait(struct nj_test_request *r, uint64_t ns);

/**
 * Wait in real time, at most `ms` milliseconds, until a descriptor that a handler awaits is ready,
 * or another thread has set an event that a handler awaits. Virtual time does not pass. While a
 * handler awaits a descriptor, nj_test_wait() and nj_test_call() do this by themselves before they
 * let time pass, until nothing comes for a second. While one awaits an event of another thread, the
 * test has to do it.
 *
 * Context: the test's thread.
 * Returns: true if something of this came.
 */
NJ_API bool nj_test_wait_outside(struct nj_test *t, unsigned ms);

/**
 * The time since nj_test_new().
 *
 * Context: the test's thread.
 * Returns: nanoseconds.
 */
NJ_API uint64_t nj_test_now(const struct nj_test *t);

/* --- clients ------------------------------------------------------------------------------- */

/**
 * Connect a client. Without this, requests are those of one client at 198.51.100.1, which connects
 * again when it has to.
 *
 * Context:   the test's thread.
 * Ownership: the client belongs to the test.
 * Returns:   the client, valid until nj_test_free(); or NULL: `address` is no IPv4 address such as
 *            "198.51.100.7", or the server has refused the connection.
 */
NJ_API struct nj_test_client *nj_test_connect(struct nj_test *t, const char *address);

/**
 * The client closes its connection, or is lost: its requests end without a response.
 *
 * Context: the test's thread.
 */
NJ_API void nj_test_disconnect(struct nj_test_client *client);

/* --- requests ------------------------------------------------------------------------------ */

/**
 * Prepare a request of `client`; NULL: the test's own client. `path` is the target, percent-encoded
 * and possibly with a query. Nothing is sent yet.
 *
 * Context:   the test's thread.
 * Ownership: strings are copied.
 * Returns:   the request, valid until nj_test_free().
 */
NJ_API struct nj_test_request *nj_test_request(struct nj_test *t, struct nj_test_client *client,
                                               const char *method, const char *path);

/**
 * Add a field to the head, before it is sent. ":authority" and ":scheme" replace those of the
 * request, which are "test" and "http".
 *
 * Context:   the test's thread.
 * Ownership: strings are copied.
 */
NJ_API void nj_test_request_header(struct nj_test_request *r, const char *name, const char *value);

/**
 * The client takes `n_bytes` more of the response's body (flow control, RFC 9113 5.2). Called first
 * before the head is sent, it makes the client a slow one: it takes only what these calls say.
 * Otherwise it takes up to 256 MiB.
 *
 * Context: the test's thread.
 */
NJ_API void nj_test_request_room(struct nj_test_request *r, uint32_t n_bytes);

/**
 * Send bytes of the body, and the head if it was not sent yet. What exceeds the server's
 * flow-control window is sent when there is room.
 *
 * Context:   the test's thread.
 * Ownership: the bytes are copied.
 */
NJ_API void nj_test_request_body(struct nj_test_request *r, const void *data, size_t n_bytes);

/**
 * End the request, and send the head if it was not sent yet.
 *
 * Context: the test's thread.
 */
NJ_API void nj_test_request_end(struct nj_test_request *r);

/**
 * The client resets the stream: RST_STREAM with CANCEL (RFC 9113 7).
 *
 * Context: the test's thread.
 */
NJ_API void nj_test_request_reset(struct nj_test_request *r);

/**
 * The response so far. It changes when time passes, and with each call above.
 *
 * Context: the test's thread.
 * Returns: the response, valid until nj_test_free(); its pointers until the next call above.
 */
NJ_API const struct nj_test_response *nj_test_response(const struct nj_test_request *r);

/**
 * The value of the first field of the head with this name, in lower case.
 *
 * Context: the test's thread.
 * Returns: the value, or NULL.
 */
NJ_API const char *nj_test_response_header(const struct nj_test_response *resp, const char *name);

#ifdef __cplusplus
}
#endif

#endif
