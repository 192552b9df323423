/* SPDX-License-Identifier: BSD-3-Clause */
/*
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
 * - NJ_NON_BLOCKING: inline, where its request was found. It must be quick and may not wait: calls
 *   marked "may park" fail there with NJ_ERR_WOULD_BLOCK. What comes later reaches it by callbacks.
 * - NJ_EITHER: may wait when it can: on a stack of its own if there is one, else inline. Then
 *   nj_must_not_block() is true and it has to do as a NON_BLOCKING one.
 * - NJ_BLOCKING: straight-line code on a stack of its own (64 KiB), on the same core. Calls marked
 *   "may park" give the core back until what they wait for is there. This is what an untyped
 *   handler is taken for. Below the stack are 64 KiB that end the process when they are touched.
 *   Compile handlers with -fstack-clash-protection: else a frame larger than that may skip them
 *   and write into the stack of another request.
 * - NJ_OS_BLOCKING: on a worker thread: may block in the kernel, take locks, or compute. It gets
 *   the whole request (1 MiB of body unless its route says more) and its whole response (4 MiB at
 *   most) leaves when it returns. Callbacks, nj_await() and flushing are not for it.
 *
 * A route of another type whose handler keeps the core longer than 100 us on the average is run by
 * workers, too, until it calms down; not when it used nj_response_defer() or nj_response_flush(),
 * wrote more than workers may, or has pin_to_lcore: a handler needs that if it shares data with
 * other handlers of its lcore, struct nj_event among them.
 *
 * All calls are for the handler (or its callbacks) of that very request, until nj_handler_fn's
 * rules say it is over. Calls return 0 or a count, or a negative enum nj_error.
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

enum nj_task_type {
    NJ_UNTYPED, /* taken for NJ_BLOCKING */
    NJ_NON_BLOCKING,
    NJ_EITHER,
    NJ_BLOCKING,
    NJ_OS_BLOCKING,
    NJ_N_TASK_TYPES
};

/* Where handlers run. */
enum nj_run {
    NJ_RUN_EWYK, /* as their type says: inline, on stacks of their own, on workers */
    NJ_RUN_PC,   /* to compare: all inline; who blocks, blocks the core */
    NJ_RUN_PEC,  /* to compare: all on workers */
};

enum nj_error {
    NJ_ERR_WOULD_BLOCK = -1, /* it would have to wait, and must not here */
    NJ_ERR_CANCELLED = -2,   /* the stream or its connection ended: the handler should return. If it
                              * goes on, later calls that return this may yield the core */
    NJ_ERR_TIMEOUT = -3,
    NJ_ERR_MEMORY = -4,
    NJ_ERR_INVALID = -5, /* the arguments, or the moment: a header after the body began, ... */
    NJ_ERR_TOO_LARGE = -6,
};

/**
 * What an error means, in English.
 *
 * Context: any thread.
 * Returns: a constant string, for numbers that are no enum nj_error, too.
 */
NJ_API const char *nj_strerror(int error);

/**
 * The lcore that the caller runs on, by the EAL's number: that of the hooks in struct
 * nj_server_config.
 *
 * Context: any thread.
 * Returns: its number, or UINT_MAX on a thread that is no lcore of a server: of a worker, or the
 *          program's.
 */
NJ_API unsigned nj_lcore_id(void);

struct nj_request;
struct nj_response;

/*
 * Answer one request. NJ_BLOCKING, NJ_EITHER and NJ_OS_BLOCKING: the response ends when this
 * returns. NJ_NON_BLOCKING (and NJ_EITHER inline): also, unless nj_response_defer() was called:
 * then it ends with nj_response_end(), from a callback. A response to which nothing was written has
 * an empty body, and status 200 if none was set.
 */
typedef void nj_handler_fn(struct nj_request *req, struct nj_response *resp, void *arg);

#define NJ_ROUTE_METHOD_MAX 16 /* bytes */
#define NJ_ROUTES_MAX       256

/* Strings and `arg` are the caller's and must live as long as the server runs. */
struct nj_route {
    const char *method; /* NULL: any. A GET route answers HEAD, too: its body is not sent */
    /* "/exact", or "/prefix" followed by a '/' and a '*': all below it. Percent-encoded, and
     * compared with nj_request_plain_path() when it is decoded */
    const char *path;
    enum nj_task_type type;
    nj_handler_fn *handle;
    void *arg;
    uint32_t body_max_bytes; /* a longer request body: 413; 0: 16 MiB */
    bool pin_to_lcore;       /* never run by a worker instead, however long it takes */
};

/* --- the request -------------------------------------------------------------------------- */

/* Strings of a request are not terminated, and live as long as the request. An absent one is empty,
 * of n_bytes 0. */
struct nj_view {
    const char *p;
    uint32_t n_bytes;
};

NJ_API struct nj_view nj_request_method(const struct nj_request *req);
/* What policy, routes and files go by, and what a handler should look at: percent-decoded, "//" as
 * "/". No segment of it is "." or "..", and no byte of it is a backslash or a control character: a
 * request with those, escaped or not, with an escaped '/', a broken escape or a '#' was answered
 * with 400 and comes to no handler. */
NJ_API struct nj_view nj_request_plain_path(const struct nj_request *req);
/* As sent, percent-encoded, without its query: another spelling of the plain path, for who passes
 * it on. And what is behind the '?', as sent. */
NJ_API struct nj_view nj_request_path(const struct nj_request *req);
NJ_API struct nj_view nj_request_query(const struct nj_request *req);
NJ_API struct nj_view nj_request_scheme(const struct nj_request *req);
NJ_API struct nj_view nj_request_authority(const struct nj_request *req);
/* The first field of that name (lower case). */
NJ_API struct nj_view nj_request_header(const struct nj_request *req, const char *name);
/* Field i of n, in the order they came, without pseudo fields. False when there are not so many. */
NJ_API bool nj_request_field(const struct nj_request *req, uint32_t i, struct nj_view *name,
                             struct nj_view *value);

/* Where a request came from: 16 bytes of an IPv6 address, ::ffff:a.b.c.d of IPv4 (RFC 4291
 * 2.5.5.2), and the TCP port. It is the peer of the connection: a proxy, if one is between. */
struct nj_peer {
    uint8_t address[16];
    uint16_t port;
};

/** The peer. Context: any thread that has the request. */
NJ_API void nj_request_peer(const struct nj_request *req, struct nj_peer *out);
/** When its head came: nanoseconds of UNIX time. Context: any thread that has the request. */
NJ_API int64_t nj_request_arrival_ns(const struct nj_request *req);

/*
 * Read the body. A client that waits for 100 (Continue) before it sends one (RFC 9110 10.1.1) is
 * told to go on by the first call that waits, or by nj_request_on_body(); with NJ_OS_BLOCKING
 * before the handler runs. A handler that answers without reading says with that that it wants
 * none. Returns 1..n_bytes, 0 at its end. May park. Errors: NJ_ERR_CANCELLED; NJ_ERR_WOULD_BLOCK
 * where it must not wait and nothing has come yet; NJ_ERR_TOO_LARGE beyond body_max_bytes.
 */
NJ_API int64_t nj_request_read(struct nj_request *req, void *out, size_t n_bytes);

/* --- the response ------------------------------------------------------------------------- */

/* 200 to 599. Before the first byte of the body. */
NJ_API int nj_response_status(struct nj_response *resp, unsigned status);
/* Add a field, copied; the name in lower case, no connection fields (RFC 9113 8.2). At most 48
 * fields and 8 KiB. content-length: as you like, then it has to be true. */
NJ_API int nj_response_header(struct nj_response *resp, const char *name, const char *value);
/*
 * Write body bytes, copied. From the first on the head stands. They leave when the handler waits or
 * returns; a response that is whole by then gets a content-length. Parks while the peer's windows
 * and the response's buffer (64 KiB) have no room; returns 0 when all is taken.
 * Errors: NJ_ERR_CANCELLED; NJ_ERR_WOULD_BLOCK where it must not wait: nothing was taken then;
 *         NJ_ERR_TOO_LARGE on a worker: the response is broken off, see nj_response_reset().
 */
NJ_API int nj_response_write(struct nj_response *resp, const void *data, size_t n_bytes);
/* As much as there is room for, without waiting. Returns how much, 0 for none. */
NJ_API int64_t nj_response_try_write(struct nj_response *resp, const void *data, size_t n_bytes);
/**
 * Send bytes without copying them, as the last of the body: nothing can be written afterwards. With
 * nothing written before, the response has a content-length.
 *
 * Context:   the handler or its callbacks; also on a worker.
 * Ownership: the bytes stay the caller's and must not change until `release` (NULL: none) is called
 *            with `arg`: once, on any thread, when the peer has acknowledged them or nobody will
 *            send them any more; with HEAD before this returns. Not when this fails.
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
 * request, and the error if there is no such file. Fields that were added go with it; content-type
 * and cache-control replace the file's. The response ends with the handler, or nj_response_end().
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID: no such path can be, or something was written;
 *          NJ_ERR_MEMORY.
 * Returns: 0.
 */
NJ_API int nj_response_file(struct nj_response *resp, const char *path);
/**
 * Make the response one of this class of the policy (docs/policy.md), with its rates and its limits
 * for a client, whatever the rules say. Before the first byte of the body.
 *
 * Context: the handler or its callbacks; also on a worker, where an unknown class is answered with
 *          500 later.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID: there is no such class. If the class's limits do not
 *          let the client in, the response becomes 429 with Retry-After.
 * Returns: 0.
 */
NJ_API int nj_response_class(struct nj_response *resp, const char *name);
/**
 * Limit the rate of this response, in place of what its class says of one response; 0: no such
 * limit. Limits of its client, class and the server hold as ever. At any time until it has ended,
 * also while it is sent.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED.
 * Returns: 0.
 */
NJ_API int nj_response_rate(struct nj_response *resp, uint64_t bytes_per_s);
/**
 * Its priority among the responses of its connection (RFC 9218 4), in place of what the client
 * says: urgency 0 (first) to 7; incremental ones of one urgency take turns.
 *
 * Context: the handler or its callbacks; also on a worker.
 * Errors:  NJ_ERR_CANCELLED; NJ_ERR_INVALID.
 * Returns: 0.
 */
NJ_API int nj_response_priority(struct nj_response *resp, unsigned urgency, bool incremental);
/* Let the head leave, too, when nothing was written yet. */
NJ_API int nj_response_flush(struct nj_response *resp);
/* Add a trailer field; they go out after the last byte of the body (RFC 9113 8.1). */
NJ_API int nj_response_trailer(struct nj_response *resp, const char *name, const char *value);
/* Break it off: RST_STREAM with INTERNAL_ERROR, so that nobody takes a half for the whole. */
NJ_API void nj_response_reset(struct nj_response *resp);

/* --- waiting ------------------------------------------------------------------------------ */

/* Wait so long. May park. NJ_ERR_CANCELLED as soon as the stream is. */
NJ_API int nj_sleep(uint64_t ns);
/* True where calls that may park fail with NJ_ERR_WOULD_BLOCK instead. */
NJ_API bool nj_must_not_block(void);

/* Something that happens once. Zero is a good beginning. One lcore's: set and awaited on the same.
 */
struct nj_event {
    void *waiter; /* of the library */
    bool set;
};
/* Wait for it, at most `timeout_ns` (0: for ever). May park. One waiter at a time.
 * Errors: NJ_ERR_TIMEOUT, NJ_ERR_CANCELLED, NJ_ERR_WOULD_BLOCK. */
NJ_API int nj_await(struct nj_event *event, uint64_t timeout_ns);
NJ_API void nj_event_set(struct nj_event *event);

/* --- callbacks, for handlers that must not wait -------------------------------------------- */

/* The response goes on after the handler returned, until nj_response_end(). */
NJ_API void nj_response_defer(struct nj_response *resp);
NJ_API void nj_response_end(struct nj_response *resp);
/* There is body to read, or its end, or the stream is gone. Called again for each batch. */
NJ_API void nj_request_on_body(struct nj_request *req,
                               void (*fn)(struct nj_request *, struct nj_response *, void *arg),
                               void *arg);
/* There is room to write again after nj_response_try_write() took less than it was given. */
NJ_API void nj_response_on_writable(struct nj_response *resp,
                                    void (*fn)(struct nj_request *, struct nj_response *,
                                               void *arg),
                                    void *arg);
/* The time is up. One timer per response; 0 takes it back. */
NJ_API void nj_response_on_timer(struct nj_response *resp, uint64_t in_ns,
                                 void (*fn)(struct nj_request *, struct nj_response *, void *arg),
                                 void *arg);
/* The stream or its connection ended before the response did; the last call for this request. */
NJ_API void nj_response_on_cancelled(struct nj_response *resp,
                                     void (*fn)(struct nj_request *, struct nj_response *,
                                                void *arg),
                                     void *arg);

#ifdef __cplusplus
}
#endif

#endif
