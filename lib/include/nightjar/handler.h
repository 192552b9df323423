/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Handlers: application code that answers requests.
 *
 *     static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
 *     {
 *         nj_response_header(resp, "content-type", "text/plain");
 *         nj_response_write(resp, "hello\n", 6);
 *     }
 *
 *     static const struct nj_route routes[] = {
 *         {.method = "GET", .path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
 *     };
 *     config.routes = routes;
 *     config.n_routes = 1;
 *
 * The type of a route states what its handler may do. It decides where the handler runs, unless
 * the route was moved to workers (see below):
 *
 * - NJ_NON_BLOCKING: inline, on the lcore that received the request. The handler must be quick and
 *   must not wait. It reacts to later events in callbacks.
 * - NJ_EITHER: on a stack of its own if one is free, like NJ_BLOCKING. Otherwise inline, like
 *   NJ_NON_BLOCKING; nj_must_not_block() then returns true.
 * - NJ_BLOCKING: straight-line code on a stack of its own (64 KiB), on the same lcore. It may wait,
 *   by calls that may yield the core. NJ_UNTYPED handlers run like this. A guard of 64 KiB below
 *   the stack ends the process on access. Compile handlers with -fstack-clash-protection, as
 *   the flags of pkg-config and CMake do: a frame larger than the guard could otherwise skip it and
 *   write into the stack of another request.
 * - NJ_OS_BLOCKING: on a worker thread. It may block in the kernel, take locks, or compute. It gets
 *   the whole request (up to 1 MiB of body unless the route sets another limit). Its whole response
 *   (at most 4 MiB) is sent when it returns. Callbacks and nj_response_flush() are not available.
 *   The waits of nightjar/wait.h are: they block the thread, and end when the stream has ended.
 *
 * A call that "may yield the core" waits if necessary: the lcore does other work until the awaited
 * event, and then the handler continues on the same lcore. It waits only in a handler on a stack of
 * its own. Elsewhere it returns NJ_ERR_WOULD_BLOCK.
 *
 * A route of another type whose handler keeps the core longer than 100 us on average is moved to
 * workers until its handler is quick again. Three kinds of routes are never moved: routes whose
 * handler has used nj_response_defer(), nj_response_flush() or nj_call_on_worker(), routes whose
 * responses exceeded the limit of workers, and routes with pin_to_lcore. Set pin_to_lcore if a
 * handler shares data with other handlers of its lcore, or if it defers or flushes only
 * occasionally.
 *
 * A request belongs to its handler and to the callbacks that it set: no other code may call
 * functions with its `req` or `resp`, and no two threads may do so at once. On a thread that is
 * neither the request's lcore nor the worker that runs its handler, those that change something or
 * read the body do nothing; they return NJ_ERR_INVALID if they return errors, and the log names the
 * route. Their lifetime is defined at nj_handler_fn: later calls are undefined. A string or buffer
 * that is NULL gives NJ_ERR_INVALID too, and NULL for a result that is not wanted is valid, unless
 * a function says otherwise. Calls return 0 or a count, or a negative enum nj_error. After
 * nj_response_end() or nj_response_reset(), the calls that set the head or add to it return
 * NJ_ERR_INVALID.
 */
#ifndef NIGHTJAR_HANDLER_H
#define NIGHTJAR_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef NJ_API
#define NJ_API __attribute__((visibility("default")))
#endif

/** What a handler may do; see above. */
enum nj_task_type {
    NJ_UNTYPED,      /**< treated as NJ_BLOCKING */
    NJ_NON_BLOCKING, /**< inline */
    NJ_EITHER,       /**< on a stack of its own if one is free, else inline */
    NJ_BLOCKING,     /**< on a stack of its own */
    NJ_OS_BLOCKING,  /**< on a worker thread */
    NJ_N_TASK_TYPES  /**< the number of types */
};

/** Where handlers run. */
enum nj_run {
    NJ_RUN_EWYK, /**< according to their type: inline, on stacks of their own, on workers */
    NJ_RUN_PC,  /**< for comparison: all inline. A handler that blocks stops its lcore. Of the calls
                   that may yield the core only nj_sleep() waits, and it stops the lcore as well */
    NJ_RUN_PEC, /**< for comparison: all on workers */
};

/** Errors of calls that otherwise return 0 or a count. */
enum nj_error {
    NJ_ERR_WOULD_BLOCK = -1, /**< the call would have to wait, and must not wait here */
    NJ_ERR_CANCELLED = -2, /**< the stream or its connection has ended: the handler should return */
    NJ_ERR_TIMEOUT = -3,   /**< the timeout has expired */
    NJ_ERR_MEMORY = -4,    /**< no memory or no buffer is left */
    NJ_ERR_INVALID = -5,   /**< invalid arguments, or called too late, as a header after the body */
    NJ_ERR_TOO_LARGE = -6, /**< a limit is exceeded */
};

/**
 * Describe an error in English.
 *
 * Context: any thread.
 * Returns: a constant string, also for numbers outside enum nj_error.
 */
NJ_API const char *nj_strerror(int error);

/** The ids of lcores are below this number. */
#define NJ_LCORES_MAX 1024

/**
 * The lcore that the caller runs on, by its number in the EAL arguments; the hooks of struct
 * nj_server_config get the same number. DPDK's rte_lcore_id() differs on the main lcore, whose
 * shard has a thread of its own.
 *
 * Context: any thread.
 * Returns: the number, or UINT_MAX on other threads: workers, and threads of the program.
 */
NJ_API unsigned nj_lcore_id(void);

struct nj_request;
struct nj_response;

/**
 * Answer one request.
 *
 * The response ends when the handler returns. After nj_response_defer() it ends with
 * nj_response_end(), called from a callback. A response without written bytes has an empty body.
 * The status is 200 if none was set.
 *
 * Context:   a thread according to the type of the route. The same handler runs for several
 *            requests at once: on other lcores, on other stacks of its lcore, and on workers.
 * Ownership: `req` and `resp` belong to the library. They are valid until the handler returns;
 *            after nj_response_defer() until nj_response_end(), or until the stream has ended and
 *            the callback of nj_response_on_cancelled() has returned. `arg` is that of the route.
 */
typedef void nj_handler_fn(struct nj_request *req, struct nj_response *resp, void *arg);

#define NJ_ROUTE_METHOD_MAX 16  /**< maximum bytes of a method of struct nj_route */
#define NJ_ROUTE_NAME_MAX   31  /**< maximum bytes of a name of struct nj_route */
#define NJ_ROUTES_MAX       256 /**< maximum number of routes of a server */

/** A route. Strings and `arg` belong to the caller and must live as long as the server runs. */
struct nj_route {
    /** NULL: any. A GET route also answers HEAD; the body is then not sent. */
    const char *method;
    /** "/exact", or "/prefix" followed by a '/' and a '*', which matches all paths below it.
     * Percent-encoded; compared in decoded form with nj_request_plain_path(). Or a name without a
     * '/', such as "lookup" (up to 31 letters, digits and _): `handler = lookup` in [site NAME] or
     * [path SITE PATH] of the file says which requests the route has. Routes with one name and
     * several methods are mounted together. */
    const char *path;
    enum nj_task_type type; /**< what the handler may do */
    nj_handler_fn *handle;  /**< the handler */
    void *arg;              /**< argument of the handler */
    /** Maximum bytes of a request body; a longer one gets 413. 0: 16 MiB, for NJ_OS_BLOCKING 1
     * MiB. */
    uint32_t body_max_bytes;
    bool pin_to_lcore; /**< never move the route to workers, however long the handler takes */
};

/* --- the request -------------------------------------------------------------------------- */

/** Text without a terminating NUL. Views of a request are valid as long as the request. An absent
 * value is empty: n_bytes is 0. */
struct nj_view {
    const char *p;    /**< the first byte */
    uint32_t n_bytes; /**< number of bytes */
};

/**
 * The method as received (RFC 9110 9.1).
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_method(const struct nj_request *req);

/**
 * The normalised path, which policy, routes and files use, and which a handler should use:
 * percent-decoded, with "//" replaced by "/".
 *
 * No segment is "." or "..", and no byte is a backslash or a control character. Requests with
 * those, escaped or not, or with an escaped '/', an invalid escape or a '#', get 400 and reach no
 * handler.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_plain_path(const struct nj_request *req);

/**
 * What follows the path where the handler is mounted: in nj_request_plain_path(), the bytes behind
 * "/prefix/" of the route, or of [path SITE /prefix/] that has the handler. Behind the first '/' if
 * a site or a suffix has it. Empty for an exact path.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_path_rest(const struct nj_request *req);

/**
 * The path as received: percent-encoded, without the query. It identifies the same resource as
 * nj_request_plain_path(). For handlers that forward the request.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_path(const struct nj_request *req);

/**
 * The query: the bytes after the first '?' of the target, as received (RFC 3986 3.4).
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request; empty without a '?'.
 */
NJ_API struct nj_view nj_request_query(const struct nj_request *req);

/**
 * The scheme: "http" or "https". It is the one that a trusted proxy names in X-Forwarded-Proto, or
 * in Forwarded (docs/policy.md); else that of the request: ":scheme" (RFC 9113 8.3.1), the scheme
 * of the target, or that of the connection.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_scheme(const struct nj_request *req);

/**
 * The authority: ":authority" or, if absent, the field "host" (RFC 9113 8.3.1).
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_authority(const struct nj_request *req);

/**
 * The value of the first field with that name. The name is in lower case.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request. It is empty if the field is absent, its value is empty or the
 *          name is NULL; nj_request_field() distinguishes the first two.
 */
NJ_API struct nj_view nj_request_header(const struct nj_request *req, const char *name);

/**
 * Field `i` of the head, from 0, in the order received, without pseudo-header fields.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: true; or false if there are fewer fields, and then `name` and `value` are unchanged.
 */
NJ_API bool nj_request_field(const struct nj_request *req, uint32_t i, struct nj_view *name,
                             struct nj_view *value);

/** The peer of a connection: the client, or a proxy in front of it. */
struct nj_peer {
    /** IPv6 address, or IPv4 address as "::ffff:a.b.c.d" (RFC 4291 2.5.5.2). */
    uint8_t address[16];
    uint16_t port; /**< TCP port, in host byte order */
};

/**
 * The peer of the connection that carries the request.
 *
 * Context: the handler or its callbacks; also on a worker.
 */
NJ_API void nj_request_peer(const struct nj_request *req, struct nj_peer *out);

/**
 * The subject of the client's certificate (RFC 4514, such as "CN=alice,O=Example"), which an
 * authority of --tls-client-ca has signed.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request; empty if the client has shown no certificate.
 */
NJ_API struct nj_view nj_request_client_subject(const struct nj_request *req);

/**
 * The time at which the head of the request was complete, in nanoseconds since 1970-01-01 UTC. It
 * differs from the system clock by up to a second, since the server reads that clock once, at
 * start, with a resolution of one second.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  none.
 * Returns: the time.
 */
NJ_API int64_t nj_request_arrival_ns(const struct nj_request *req);

/**
 * Read the next bytes of the body, at most `n_bytes`. May yield the core until bytes arrive.
 *
 * A client that expects 100 (Continue) before it sends the body (RFC 9110 10.1.1) gets it from the
 * first call that waits, or from nj_request_on_body(); with NJ_OS_BLOCKING before the handler runs.
 * If the handler responds without reading, the client gets only the final status.
 *
 * Context: the handler or its callbacks; also on a worker, where the body is complete.
 * Errors:  NJ_ERR_CANCELLED, also if the server had no memory for the body; NJ_ERR_WOULD_BLOCK if
 *          no byte has arrived and the call must not wait; NJ_ERR_TOO_LARGE: the body exceeds the
 *          limit of the route or the server, and a response without status, body and file becomes
 *          413; NJ_ERR_INVALID: n_bytes is 0, or `out` NULL.
 * Returns: 1..n_bytes, or 0 at the end of the body.
 */
NJ_API int64_t nj_request_read(struct nj_request *req, void *out, size_t n_bytes);

/* --- the response ------------------------------------------------------------------------- */

/**
 * Set the status, 200 to 599, before the first byte of the body. The last call wins.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID: another number, or the head is fixed.
 * Returns: 0.
 */
NJ_API int nj_response_status(struct nj_response *resp, unsigned status);

/**
 * Add a field to the head, before the first byte of the body. Names must be in lower case; those of
 * RFC 9113 8.2.2 are refused. At most 48 fields, with at most 8 KiB of names and values.
 *
 * "content-length" may be given once. A response that ends with fewer bytes is reset, as by
 * nj_response_reset(); calls that would write more bytes fail.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: name and value are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: invalid name or value, or the head is fixed;
 *            NJ_ERR_TOO_LARGE: too many fields or bytes; NJ_ERR_MEMORY.
 * Returns:   0.
 */
NJ_API int nj_response_header(struct nj_response *resp, const char *name, const char *value);

/**
 * Write bytes of the body. May yield the core until the flow-control window and the response's
 * buffer (64 KiB; on a worker 4 MiB) have room.
 *
 * The bytes are sent when the handler yields the core or returns. The first successful call fixes
 * the head, also with 0 bytes. If the response has ended before its head is sent, it gets a
 * content-length. With HEAD the bytes are counted and not sent. After NJ_ERR_WOULD_BLOCK the
 * callback of nj_response_on_writable() runs when all bytes of the failed call fit.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the bytes are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_WOULD_BLOCK if it must not wait: no byte was taken. More than
 *            64 KiB at once never fit then: use nj_response_send() or nj_response_try_write();
 *            NJ_ERR_INVALID: more than content-length, a status without content, or the end of the
 *            body was already given; NJ_ERR_TOO_LARGE on a worker; NJ_ERR_MEMORY on a worker and
 *            where it must not wait. The last two reset the response, as nj_response_reset() does.
 * Returns:   0 if all bytes were taken.
 */
NJ_API int nj_response_write(struct nj_response *resp, const void *data, size_t n_bytes);

/**
 * Write as many of these bytes as fit, without waiting. Fixes the head, even if no byte fits.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the bytes are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID as for nj_response_write().
 * Returns:   the number of bytes taken, possibly 0. If it is less than n_bytes, the callback of
 *            nj_response_on_writable() runs when there is room.
 */
NJ_API int64_t nj_response_try_write(struct nj_response *resp, const void *data, size_t n_bytes);

/**
 * Send bytes without copying them, as the end of the body: nothing can be written afterwards. If
 * the head was not sent yet, it gets a content-length.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the bytes remain the caller's and must not change until `release` (NULL: none) is
 *            called with `arg`. It is called once, on any thread including lcores, when the peer
 *            has acknowledged the bytes or they will no longer be sent; with HEAD before this
 *            returns. It must not block. It is not called if this fails.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: more than content-length, a status without content,
 *            or the end of the body was already given; NJ_ERR_MEMORY.
 * Returns:   0, without waiting, for any number of bytes.
 */
NJ_API int nj_response_send(struct nj_response *resp, const void *data, size_t n_bytes,
                            void (*release)(void *arg), void *arg);

/**
 * Respond with a file below the server's root. The path is "/dir/name", a plain path (see
 * nj_request_plain_path()); its segments may begin with a dot. The file server sets status,
 * validators, length and type; handles conditions, ranges and codings of a GET or HEAD request; and
 * responds with an error if there is no such file. A folder, or a server without a root, gives 404.
 * Fields that were added are sent with the file, not with an error; content-type and cache-control
 * replace the file's. A status that was set has no effect. The response ends with the handler, or
 * nj_response_end(); the file is sent from then on.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the path is copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: invalid path, or the head is fixed; NJ_ERR_MEMORY.
 * Returns:   0.
 */
NJ_API int nj_response_file(struct nj_response *resp, const char *path);

/**
 * Assign the response to a class of the policy (docs/policy.md), with its rates and its limits for
 * a client, in place of the class that the rules select. Call before the first byte of the body. If
 * the class's limits refuse the client, the response becomes 429 with Retry-After; if the class has
 * another `action` than `serve`, that action applies.
 *
 * Context:   the handler or its callbacks; also on a worker, where an unknown class gives 500
 *            later.
 * Ownership: the name is copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: the class does not exist or not at this hour, or the
 *            head is fixed.
 * Returns:   0.
 */
NJ_API int nj_response_class(struct nj_response *resp, const char *name);

/**
 * Limit the rate of the response's body, in bytes per second, in place of the class's limit per
 * response; 0: no such limit. The limits of its client, class and the server still apply. May be
 * called until the response has ended, also while it is sent.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED.
 * Returns: 0.
 */
NJ_API int nj_response_rate(struct nj_response *resp, uint64_t bytes_per_s);

/**
 * Set the priority of the response within its connection (RFC 9218 4), in place of the client's:
 * urgency 0 (first) to 7; incremental responses of one urgency take turns.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID: the urgency is above 7.
 * Returns: 0.
 */
NJ_API int nj_response_priority(struct nj_response *resp, unsigned urgency, bool incremental);

/**
 * Fix the head, and send it when the handler yields the core or returns, even without a byte of the
 * body. On a worker it is sent with the rest.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID after nj_response_file().
 * Returns: 0.
 */
NJ_API int nj_response_flush(struct nj_response *resp);

/**
 * Add a trailer field, which is sent after the last byte of the body (RFC 9113 8.1). May be called
 * until the response has ended, with the rules and limits of nj_response_header(), but without
 * content-length (RFC 9110 6.5.1). A response that has trailers when its head is sent gets no
 * automatic content-length. HEAD, 204, 304 and nj_response_file() have no trailers.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: name and value are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: invalid name or value; NJ_ERR_TOO_LARGE: too many
 *            fields or bytes; NJ_ERR_MEMORY.
 * Returns:   0.
 */
NJ_API int nj_response_trailer(struct nj_response *resp, const char *name, const char *value);

/**
 * Abort the response: RST_STREAM with INTERNAL_ERROR (RFC 9113 7), so that the peer does not take a
 * part of it for the whole. The handler continues. No effect after the response has ended. A
 * deferred response still needs nj_response_end(); without it the callback of
 * nj_response_on_cancelled() is called.
 *
 * Context: the handler or its callbacks; also on a worker.
 */
NJ_API void nj_response_reset(struct nj_response *resp);

/* --- callbacks, for handlers that must not wait -------------------------------------------- */

/**
 * Keep the response open after the handler has returned, until nj_response_end(). In between,
 * callbacks run inline on the request's lcore, one at a time, and must not wait. Code that keeps
 * `resp` elsewhere needs nj_response_on_cancelled() to learn when `resp` is no longer valid.
 *
 * Context: a handler that must not wait (nj_must_not_block()). No effect in other handlers: the
 *          response ends when the handler returns. If a worker runs an NJ_NON_BLOCKING handler, no
 *          callback is called: a response that is not ended when the handler returns is reset, and
 *          later requests of the route run on their lcores, except with NJ_RUN_PEC.
 */
NJ_API void nj_response_defer(struct nj_response *resp);

/**
 * End a deferred response: there are no more callbacks, and `req` and `resp` are no longer valid.
 * Before the handler has returned: nothing can be added any more, and the response is sent when the
 * handler yields the core or returns. Calls that wait fail with NJ_ERR_CANCELLED once it was sent.
 *
 * Context: the handler or its callbacks. No effect on a worker.
 */
NJ_API void nj_response_end(struct nj_response *resp);

/**
 * Set the callback for the request body: `fn` is called when bytes of the body or its end have
 * arrived, and when the stream has ended. Bytes that arrived before this call count unless `fn` was
 * called for them already. Another call replaces `fn`; NULL: none.
 *
 * Context:   the handler or its callbacks. `fn` is called only after nj_response_defer() and after
 *            the handler has returned; never on a worker.
 * Ownership: `arg` belongs to the caller and must exist as long as the request, see nj_handler_fn.
 */
NJ_API void nj_request_on_body(struct nj_request *req,
                               void (*fn)(struct nj_request *, struct nj_response *, void *arg),
                               void *arg);

/**
 * Set the callback for room: `fn` is called when there is room again, after nj_response_try_write()
 * took less than it was given or nj_response_write() failed with NJ_ERR_WOULD_BLOCK. Another call
 * replaces `fn`; NULL: none.
 *
 * Context:   as for nj_request_on_body().
 * Ownership: as for nj_request_on_body().
 */
NJ_API void nj_response_on_writable(struct nj_response *resp,
                                    void (*fn)(struct nj_request *, struct nj_response *,
                                               void *arg),
                                    void *arg);

/**
 * Call `fn` once, in `in_ns` nanoseconds, counted as for nj_sleep(). There is one timer per
 * response: another call restarts it, and 0 or NULL cancels it. No effect after nj_response_end().
 *
 * Context:   as for nj_request_on_body().
 * Ownership: as for nj_request_on_body().
 */
NJ_API void nj_response_on_timer(struct nj_response *resp, uint64_t in_ns,
                                 void (*fn)(struct nj_request *, struct nj_response *, void *arg),
                                 void *arg);

/**
 * Call `fn` if the stream or its connection ends before nj_response_end() was called: the client
 * has reset it or disconnected, the response was reset here, or the request was HEAD and its
 * response is complete. `fn` is called once, as the last callback of this request, after that of
 * nj_request_on_body(). After nj_response_end() it is never called. Therefore `arg` is freed either
 * by the code that calls nj_response_end(), or by `fn`. Another call replaces `fn`; NULL: none.
 *
 * Context:   as for nj_request_on_body().
 * Ownership: as for nj_request_on_body().
 */
NJ_API void nj_response_on_cancelled(struct nj_response *resp,
                                     void (*fn)(struct nj_request *, struct nj_response *,
                                                void *arg),
                                     void *arg);

#ifdef __cplusplus
}
#endif

#include <nightjar/wait.h>

#endif
