/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Handlers: code of yours that answers requests, on the core that received them.
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
 * The type says what a handler may do, and so where it runs:
 *
 * - NJ_NON_BLOCKING: inline, on the lcore that received the request. It must be quick and must not
 *   wait. What comes later reaches it by callbacks.
 * - NJ_EITHER: on a stack of its own if one is free, then as NJ_BLOCKING. Else inline, then as
 *   NJ_NON_BLOCKING, and nj_must_not_block() is true.
 * - NJ_BLOCKING: straight-line code on a stack of its own (64 KiB), on the same lcore. It may wait,
 *   with the calls that may yield the core. An untyped handler is taken for this. Below the stack
 *   are 64 KiB that end the process when they are touched. Compile handlers with
 *   -fstack-clash-protection: else a frame larger than that may skip them and write into the stack
 *   of another request.
 * - NJ_OS_BLOCKING: on a worker thread. It may block in the kernel, take locks, or compute. It gets
 *   the whole request (1 MiB of body unless its route says more), and its whole response (4 MiB at
 *   most) leaves when it returns. Callbacks, nj_await() and nj_response_flush() are not for it.
 *
 * A call that "may yield the core" waits if it has to: other work of the lcore runs until what it
 * waits for has come, and then the handler continues on the same lcore. It does so only in a
 * handler on a stack of its own. Elsewhere it returns NJ_ERR_WOULD_BLOCK instead of waiting.
 *
 * A route of another type whose handler keeps the core longer than 100 us on the average is moved
 * to workers until its handler is quick again. Three kinds of routes are never moved: those whose
 * handler has used nj_response_defer() or nj_response_flush(), those that wrote more than workers
 * may, and those with pin_to_lcore. Set pin_to_lcore if a handler shares data, such as struct
 * nj_event, with other handlers of its lcore, or if it defers or flushes only now and then.
 *
 * A request belongs to its handler and to the callbacks that it set: no other code calls functions
 * with its `req` or `resp`, and no two threads do so at once. nj_handler_fn says how long they are
 * valid. Calls return 0 or a count, or a negative enum nj_error. After nj_response_end() or
 * nj_response_reset() the calls that set its head or add to it return NJ_ERR_INVALID.
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
    NJ_UNTYPED,      /**< taken for NJ_BLOCKING */
    NJ_NON_BLOCKING, /**< inline */
    NJ_EITHER,       /**< on a stack of its own if one is free, else inline */
    NJ_BLOCKING,     /**< on a stack of its own */
    NJ_OS_BLOCKING,  /**< on a worker thread */
    NJ_N_TASK_TYPES  /**< the number of types */
};

/** Where handlers run. */
enum nj_run {
    NJ_RUN_EWYK, /**< as their type says: inline, on stacks of their own, on workers */
    NJ_RUN_PC,  /**< for comparison: all inline. A handler that blocks stops its lcore. Of the calls
                 * that may yield the core only nj_sleep() waits, and stops the lcore, too */
    NJ_RUN_PEC, /**< for comparison: all on workers */
};

/** What calls return instead of 0 or a count. */
enum nj_error {
    NJ_ERR_WOULD_BLOCK = -1, /**< it would have to wait, and must not here */
    NJ_ERR_CANCELLED = -2, /**< the stream or its connection has ended: the handler should return */
    NJ_ERR_TIMEOUT = -3,   /**< the time has passed */
    NJ_ERR_MEMORY = -4,    /**< no memory, or no buffer, is left */
    NJ_ERR_INVALID = -5,   /**< the arguments, or the moment: a header after the body began, ... */
    NJ_ERR_TOO_LARGE = -6, /**< beyond a limit */
};

/**
 * What an error means, in English.
 *
 * Context: any thread.
 * Returns: a constant string, for numbers that are no enum nj_error, too.
 */
NJ_API const char *nj_strerror(int error);

/** The ids of lcores are below this number. */
#define NJ_LCORES_MAX 1024

/**
 * The lcore that the caller runs on, by its number in the EAL's arguments: that of the hooks in
 * struct nj_server_config. DPDK's rte_lcore_id() is not the same on the main lcore, whose shard has
 * a thread of its own.
 *
 * Context: any thread.
 * Returns: its number, or UINT_MAX on a thread that is no lcore of a server: of a worker, or the
 *          program's.
 */
NJ_API unsigned nj_lcore_id(void);

struct nj_request;
struct nj_response;

/**
 * Answer one request.
 *
 * The response ends when this returns, unless nj_response_defer() kept it: then it ends with
 * nj_response_end(), from a callback. A response to which nothing was written has an empty body,
 * and status 200 if none was set.
 *
 * Context:   a thread that the type of the route says. The same handler runs for several requests
 *            at once: on other lcores, on other stacks of its lcore, and on workers.
 * Ownership: `req` and `resp` are the library's. They are valid until this returns; after
 *            nj_response_defer() until nj_response_end(), or until the stream has ended and the
 *            callback of nj_response_on_cancelled() has returned. `arg` is that of the route.
 */
typedef void nj_handler_fn(struct nj_request *req, struct nj_response *resp, void *arg);

#define NJ_ROUTE_METHOD_MAX 16  /**< bytes of a method of struct nj_route */
#define NJ_ROUTES_MAX       256 /**< routes of a server */

/** Strings and `arg` are the caller's and must live as long as the server runs. */
struct nj_route {
    /** NULL: any. A GET route answers HEAD, too: its body is not sent. */
    const char *method;
    /** "/exact", or "/prefix" followed by a '/' and a '*': all below it. Percent-encoded, and
     * compared with nj_request_plain_path() when it is decoded. */
    const char *path;
    enum nj_task_type type; /**< what the handler may do */
    nj_handler_fn *handle;  /**< the handler */
    void *arg;              /**< for it */
    /** A longer request body: 413. 0: 16 MiB, of NJ_OS_BLOCKING 1 MiB. */
    uint32_t body_max_bytes;
    bool pin_to_lcore; /**< never run by a worker instead, however long it takes */
};

/* --- the request -------------------------------------------------------------------------- */

/** Text that is not terminated. Views of a request are valid as long as the request. What is absent
 * is empty, of n_bytes 0. */
struct nj_view {
    const char *p;    /**< the first byte */
    uint32_t n_bytes; /**< their number */
};

/**
 * The method, as it was sent (RFC 9110 9.1).
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_method(const struct nj_request *req);

/**
 * The path that policy, routes and files go by, and that a handler should look at:
 * percent-decoded, and "//" is "/".
 *
 * No segment is "." or "..", and no byte is a backslash or a control character. A request with
 * those, escaped or not, with an escaped '/', a broken escape or a '#', was answered with 400 and
 * comes to no handler.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_plain_path(const struct nj_request *req);

/**
 * The path as it was sent: percent-encoded, without the query. It is another spelling of
 * nj_request_plain_path(), for a handler that forwards the request.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_path(const struct nj_request *req);

/**
 * The query: the bytes behind the first '?' of the target, as they were sent (RFC 3986 3.4).
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request; empty without a '?'.
 */
NJ_API struct nj_view nj_request_query(const struct nj_request *req);

/**
 * The scheme, of ":scheme" (RFC 9113 8.3.1).
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_scheme(const struct nj_request *req);

/**
 * The authority, of ":authority" or, where that is absent, of the field "host" (RFC 9113 8.3.1).
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request.
 */
NJ_API struct nj_view nj_request_authority(const struct nj_request *req);

/**
 * The value of the first field of that name. The name is in lower case.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: a view of the request. It is empty when there is no such field, as it is when the value
 *          is empty: nj_request_field() tells them apart.
 */
NJ_API struct nj_view nj_request_header(const struct nj_request *req, const char *name);

/**
 * Field `i` of the head, from 0, in the order in which they came, without pseudo-header fields.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Returns: true; or false when there are not so many, and then `name` and `value` are unchanged.
 */
NJ_API bool nj_request_field(const struct nj_request *req, uint32_t i, struct nj_view *name,
                             struct nj_view *value);

/** The peer of a connection: the client, or a proxy that is between. */
struct nj_peer {
    uint8_t address[16]; /**< of IPv6; of IPv4 as "::ffff:a.b.c.d" (RFC 4291 2.5.5.2) */
    uint16_t port;       /**< TCP port, in host byte order */
};

/**
 * The peer of the connection on which the request came.
 *
 * Context: the handler or its callbacks; also on a worker.
 */
NJ_API void nj_request_peer(const struct nj_request *req, struct nj_peer *out);

/**
 * The time at which the head of the request was complete, in nanoseconds since 1970-01-01 UTC. It
 * is up to a second off the system's clock, which is read to the second, once, when the server
 * starts.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  none.
 * Returns: the time.
 */
NJ_API int64_t nj_request_arrival_ns(const struct nj_request *req);

/**
 * Read the next bytes of the body, at most `n_bytes`. May yield the core until there are some.
 *
 * A client that waits for 100 (Continue) before it sends the body (RFC 9110 10.1.1) gets it by the
 * first call that waits, or by nj_request_on_body(); with NJ_OS_BLOCKING before the handler runs.
 * It gets the final status instead from a handler that answers without reading.
 *
 * Context: the handler or its callbacks; also on a worker, where all of the body is there.
 * Errors:  NJ_ERR_CANCELLED, also when the server had no memory for the body; NJ_ERR_WOULD_BLOCK
 *          where it must not wait and nothing has come yet; NJ_ERR_TOO_LARGE: the body is longer
 *          than the route or the server allows, and a response without status, body and file
 *          becomes 413; NJ_ERR_INVALID: n_bytes is 0.
 * Returns: 1..n_bytes, or 0 at the end of the body.
 */
NJ_API int64_t nj_request_read(struct nj_request *req, void *out, size_t n_bytes);

/* --- the response ------------------------------------------------------------------------- */

/**
 * Set the status, 200 to 599, before the first byte of the body. The last call counts.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID: another number, or the head is fixed.
 * Returns: 0.
 */
NJ_API int nj_response_status(struct nj_response *resp, unsigned status);

/**
 * Add a field to the head, before the first byte of the body. Names are in lower case, and those
 * of RFC 9113 8.2.2 are refused. At most 48 fields, whose names and values have at most 8 KiB.
 *
 * "content-length" may be given once. A response that ends with fewer bytes is reset, as by
 * nj_response_reset(); more are refused by the calls that write.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: name and value are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: no such name or value can be, or the head is fixed;
 *            NJ_ERR_TOO_LARGE: too many fields or bytes; NJ_ERR_MEMORY.
 * Returns:   0.
 */
NJ_API int nj_response_header(struct nj_response *resp, const char *name, const char *value);

/**
 * Write bytes of the body. May yield the core while the peer's windows and the response's buffer
 * (64 KiB; on a worker 4 MiB) have no room.
 *
 * The bytes leave when the handler yields the core or returns. The first call that does not fail
 * fixes the head, also with 0 bytes. A response that has ended by the time its head leaves gets a
 * content-length. With HEAD the bytes count, and are not sent. When there is room for all bytes of
 * a call that failed with NJ_ERR_WOULD_BLOCK, nj_response_on_writable() calls back.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the bytes are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_WOULD_BLOCK where it must not wait: nothing was taken. There
 *            more than 64 KiB at once are never taken: use nj_response_send() or
 *            nj_response_try_write(); NJ_ERR_INVALID: more than content-length says, a status
 *            without content, or the last of the body was given; NJ_ERR_TOO_LARGE on a worker;
 *            NJ_ERR_MEMORY there and where it must not wait. These two reset the response, as
 *            nj_response_reset() does.
 * Returns:   0 when all bytes were taken.
 */
NJ_API int nj_response_write(struct nj_response *resp, const void *data, size_t n_bytes);

/**
 * Write as many of these bytes as there is room for, without waiting. Fixes the head, also when it
 * takes none.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the bytes are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID as of nj_response_write().
 * Returns:   the number of bytes that were taken, 0 for none. After fewer than n_bytes the callback
 *            of nj_response_on_writable() is called when there is room.
 */
NJ_API int64_t nj_response_try_write(struct nj_response *resp, const void *data, size_t n_bytes);

/**
 * Send bytes without copying them, as the last of the body: nothing can be written afterwards. If
 * the head has not left yet, it gets a content-length.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the bytes stay the caller's and must not change until `release` (NULL: none) is called
 *            with `arg`. That happens once, on any thread, lcores among them, when the peer has
 *            acknowledged the bytes or they will not be sent any more; with HEAD before this
 *            returns. It must not block. It is not called when this fails.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: more than content-length says, a status without
 *            content, or something was given as the last already; NJ_ERR_MEMORY.
 * Returns:   0, without waiting, however many bytes there are.
 */
NJ_API int nj_response_send(struct nj_response *resp, const void *data, size_t n_bytes,
                            void (*release)(void *arg), void *arg);

/**
 * The response is a file below the server's root: "/dir/name", a plain path (see
 * nj_request_plain_path()), whose segments may begin with a dot. Status, validators, length and
 * type are those that the file server gives, as are conditions, ranges and codings of a GET or HEAD
 * request, and the error if there is no such file. A folder is none, and without a root there is
 * none: 404. Fields that were added go with the file, not with an error; content-type and
 * cache-control replace the file's. A status that was set has no effect. The response ends with the
 * handler, or nj_response_end(), and the file is sent from then on.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the path is copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: no such path can be, or the head is fixed;
 *            NJ_ERR_MEMORY.
 * Returns:   0.
 */
NJ_API int nj_response_file(struct nj_response *resp, const char *path);

/**
 * Make the response one of this class of the policy (docs/policy.md), with its rates and its limits
 * for a client, whatever the rules say, before the first byte of the body. If the class's
 * limits do not let the client in, the response becomes 429 with Retry-After; if the class has
 * another `action` than `serve`, that is done instead.
 *
 * Context:   the handler or its callbacks; also on a worker, where an unknown class is answered
 *            with 500 later.
 * Ownership: the name is copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: there is no such class, or not at this hour, or the
 *            head is fixed.
 * Returns:   0.
 */
NJ_API int nj_response_class(struct nj_response *resp, const char *name);

/**
 * Limit the rate of the response's body, in bytes per second, in place of what its class says of
 * one response; 0: no such limit. Limits of its client, class and the server hold as ever. At any
 * time until the response has ended, also while it is sent.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED.
 * Returns: 0.
 */
NJ_API int nj_response_rate(struct nj_response *resp, uint64_t bytes_per_s);

/**
 * Set the priority of the response among those of its connection (RFC 9218 4), in place of what the
 * client says: urgency 0 (first) to 7; incremental ones of one urgency take turns.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID: the urgency is beyond 7.
 * Returns: 0.
 */
NJ_API int nj_response_priority(struct nj_response *resp, unsigned urgency, bool incremental);

/**
 * Fix the head, and let it leave when the handler yields the core or returns, also when no byte of
 * the body was written. On a worker it leaves with the rest.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID after nj_response_file().
 * Returns: 0.
 */
NJ_API int nj_response_flush(struct nj_response *resp);

/**
 * Add a trailer field, which is sent after the last byte of the body (RFC 9113 8.1). At any time
 * before the response has ended, with the rules and limits of nj_response_header(), but no
 * content-length (RFC 9110 6.5.1). A response that has trailers when its head
 * leaves gets no content-length by itself.
 * HEAD, 204, 304 and nj_response_file() have no trailers.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: name and value are copied.
 * Errors:    NJ_ERR_CANCELLED; NJ_ERR_INVALID: no such name or value can be; NJ_ERR_TOO_LARGE: too
 *            many fields or bytes; NJ_ERR_MEMORY.
 * Returns:   0.
 */
NJ_API int nj_response_trailer(struct nj_response *resp, const char *name, const char *value);

/**
 * Break the response off: RST_STREAM with INTERNAL_ERROR (RFC 9113 7), so that a part of it is not
 * taken for the whole. The handler runs on. Nothing happens when the response has ended. A deferred
 * response still needs nj_response_end(); without it the callback of nj_response_on_cancelled() is
 * called.
 *
 * Context: the handler or its callbacks; also on a worker.
 */
NJ_API void nj_response_reset(struct nj_response *resp);

/* --- waiting ------------------------------------------------------------------------------ */

/**
 * Wait for `ns` nanoseconds. May yield the core. On a worker the thread sleeps.
 *
 * On an lcore the time counts from the lcore's last look at its clock, before the handler began or
 * continued, and the wait may last a millisecond longer.
 *
 * Context: a handler; also on a worker. Not for callbacks, which must not wait.
 * Errors:  NJ_ERR_CANCELLED as soon as the stream is over, not on a worker; NJ_ERR_WOULD_BLOCK
 *          where it must not wait.
 * Returns: 0 when the time has passed.
 */
NJ_API int nj_sleep(uint64_t ns);

/**
 * Look whether the caller must not wait: in an NJ_NON_BLOCKING handler, in an NJ_EITHER handler
 * that runs inline, and in callbacks.
 *
 * Context: any thread.
 * Returns: true when each call that may yield the core would return NJ_ERR_WOULD_BLOCK instead. On
 *          a worker false, although nj_await() does so there, too.
 */
NJ_API bool nj_must_not_block(void);

/** Something that happens once. All members are 0 at first. It belongs to one lcore: it is set and
 * awaited there. */
struct nj_event {
    void *waiter; /**< of the library */
    bool set;     /**< it has happened */
};

/**
 * Wait for an event, at most `timeout_ns` nanoseconds, which count as those of nj_sleep() do; 0:
 * without limit. May yield the core. One handler at a time waits for an event.
 *
 * Context:   a handler on the event's lcore, not on a worker. Callbacks may ask, and not wait.
 * Ownership: the event is the caller's, and has to stay until this returns.
 * Errors:    NJ_ERR_TIMEOUT; NJ_ERR_CANCELLED; NJ_ERR_WOULD_BLOCK where it must not wait, and on a
 *            worker; NJ_ERR_INVALID: another handler waits for it.
 * Returns:   0 when the event is set, at once if it was before.
 */
NJ_API int nj_await(struct nj_event *event, uint64_t timeout_ns);

/**
 * Set an event. It stays set. The handler that waits for it continues when the caller has yielded
 * the core or returned.
 *
 * Context: the event's lcore: a handler or a callback, not on a worker.
 */
NJ_API void nj_event_set(struct nj_event *event);

/* --- callbacks, for handlers that must not wait -------------------------------------------- */

/**
 * Let the response go on after the handler has returned, until nj_response_end(). Callbacks run
 * between, inline on the request's lcore, one at a time, and must not wait. Code that keeps `resp`
 * elsewhere needs nj_response_on_cancelled(), or it does not learn that `resp` is not valid any
 * more.
 *
 * Context: a handler that must not wait (nj_must_not_block()). Elsewhere nothing happens, and the
 *          response ends when the handler returns. If a worker runs an NJ_NON_BLOCKING handler, no
 *          callback is called: a response that is not ended when the handler returns is reset, and
 *          later requests of the route are handled on their lcores, but for NJ_RUN_PEC.
 */
NJ_API void nj_response_defer(struct nj_response *resp);

/**
 * End a response that was deferred: there are no more callbacks, and `req` and `resp` are not valid
 * any more. Before the handler has returned: nothing can be added any more, and the response leaves
 * when the handler yields the core or returns. Calls that wait fail with NJ_ERR_CANCELLED once it
 * has left.
 *
 * Context: the handler or its callbacks. On a worker nothing happens.
 */
NJ_API void nj_response_end(struct nj_response *resp);

/**
 * Have `fn` called when bytes of the body have come, when its end has come, and when the stream
 * is over. What came before this call counts, unless `fn` was called for it already. Another call
 * replaces it; NULL: none.
 *
 * Context:   the handler or its callbacks. `fn` is called only after nj_response_defer() and when
 *            the handler has returned; never on a worker.
 * Ownership: `arg` is the caller's, and has to stay as long as the request, see nj_handler_fn.
 */
NJ_API void nj_request_on_body(struct nj_request *req,
                               void (*fn)(struct nj_request *, struct nj_response *, void *arg),
                               void *arg);

/**
 * Have `fn` called when there is room again, after nj_response_try_write() took less than it was
 * given or nj_response_write() failed with NJ_ERR_WOULD_BLOCK. Another call replaces it; NULL:
 * none.
 *
 * Context:   as of nj_request_on_body().
 * Ownership: as of nj_request_on_body().
 */
NJ_API void nj_response_on_writable(struct nj_response *resp,
                                    void (*fn)(struct nj_request *, struct nj_response *,
                                               void *arg),
                                    void *arg);

/**
 * Have `fn` called once, in `in_ns` nanoseconds, which count as those of nj_sleep() do. There is
 * one timer per response: another call sets it anew, and 0 or NULL takes it back. After
 * nj_response_end() nothing happens.
 *
 * Context:   as of nj_request_on_body().
 * Ownership: as of nj_request_on_body().
 */
NJ_API void nj_response_on_timer(struct nj_response *resp, uint64_t in_ns,
                                 void (*fn)(struct nj_request *, struct nj_response *, void *arg),
                                 void *arg);

/**
 * Have `fn` called when the stream or its connection ends before nj_response_end() was called: the
 * client has reset it or has gone, the response was reset here, or the request was HEAD and its
 * response is complete. `fn` is called once, as the last callback of this request, after that of
 * nj_request_on_body(). After nj_response_end() it is never called. So either the code that calls
 * nj_response_end() frees `arg`, or `fn` does. Another call replaces it; NULL: none.
 *
 * Context:   as of nj_request_on_body().
 * Ownership: as of nj_request_on_body().
 */
NJ_API void nj_response_on_cancelled(struct nj_response *resp,
                                     void (*fn)(struct nj_request *, struct nj_response *,
                                                void *arg),
                                     void *arg);

#ifdef __cplusplus
}
#endif

#endif
