/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server side of HTTP/2 (RFC 9113) as a protocol engine without I/O: it takes bytes from the
 * peer, reports requests by callbacks, and writes bytes into a sink.
 *
 * The engine has no clock, no socket and no thread. One lcore makes all calls on an nj_h2_context
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
#include "base/keyed_hash.h"
#include "base/request_head.h"
#include "base/size_class_alloc.h"
#include "base/types.h"
#include "telem/count.h"

/* Error codes (RFC 9113 7) */
enum nj_h2_error_code {
    NJ_H2_NO_ERROR = 0,
    NJ_H2_PROTOCOL_ERROR = 1,
    NJ_H2_INTERNAL_ERROR = 2,
    NJ_H2_FLOW_CONTROL_ERROR = 3,
    NJ_H2_STREAM_CLOSED = 5,
    NJ_H2_FRAME_SIZE_ERROR = 6,
    NJ_H2_REFUSED_STREAM = 7,
    NJ_H2_CANCEL = 8,
    NJ_H2_COMPRESSION_ERROR = 9,
    NJ_H2_ENHANCE_YOUR_CALM = 11,
};

struct nj_h2_context; /* shared by the connections of a shard: callbacks, limits, allocator */
struct nj_h2;         /* one connection */
struct nj_h2_stream;  /* one request and its response */

/* A callback may call nj_h2_respond(), _trailers(), _consume(), _resume() and _reset() for any
 * stream of the connection. The next nj_h2_output() writes the frames that these calls queue. */
struct nj_h2_events {
    /* A request head is complete and valid by RFC 9113 8.3. The owner calls nj_h2_respond() once,
     * now or later. `user` is the pointer passed to nj_h2_open(). */
    void (*on_request)(void *user, struct nj_h2_stream *st, const struct nj_request_head *req);
    /* The stream has ended: its response is sent, it was reset, or the connection ended. The handle
     * is invalid after this call; the response body is closed before it. `complete`: the last byte
     * of the response was sent. Called once for each stream passed to on_request, and for no other.
     * It may precede on_end, when the peer resets the stream or when the response is complete
     * before the request is (RFC 9113 8.1). */
    void (*on_stream_close)(void *user, struct nj_h2_stream *st, bool complete);
    /* Bytes of a request body, valid until this returns. They count against the windows of stream
     * and connection (NJ_H2_STREAM_WINDOW_BYTES, NJ_H2_CONN_WINDOW_BYTES) until nj_h2_consume().
     * Not called after nj_h2_reset_stream() or after the last byte of the response. NULL: request
     * bodies are discarded. */
    void (*on_data)(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n_bytes);
    /* The request is complete, and its body matches content-length if that was present. Called at
     * most once, after the last on_data, and only if req->ends was false. May be NULL. */
    void (*on_end)(void *user, struct nj_h2_stream *st);
    /* A request is refused because of its head: too large (431; `req` has the fields that fit),
     * without the name of a host or contradictory (400), or with an unknown expectation (417). The
     * callback must respond with
     * `status` and no body before it returns. on_stream_close is not called for the stream.
     * NULL: the engine responds with `status` and no fields. */
    void (*on_refused)(void *user, struct nj_h2_stream *st, const struct nj_request_head *req,
                       uint16_t status);
    /* A request is refused, and `why` has counted it. on_refused follows if there is a response. No
     * other callback follows for a request that is reset: malformed (RFC 9113 8.1.1), or above the
     * limit of streams. May be NULL. */
    void (*on_refusal_counted)(void *user, nj_counter why);
};

struct nj_h2_limits {
    uint32_t concurrent_streams_max; /* SETTINGS_MAX_CONCURRENT_STREAMS */
    uint32_t header_bytes_max;       /* decoded, RFC 9113 6.5.2 accounting; beyond: 431 */
    uint32_t header_fields_max;      /* cookie crumbs and trailers count; beyond: 431 */
    uint32_t glitches_max;           /* see nj_h2_input() */
    uint32_t window_bytes;           /* receive window per connection; 0: NJ_H2_CONN_WINDOW_BYTES */
    struct nj_hash_key hash_key;     /* secret; for hash tables whose keys are chosen by peers */
};

/* Defaults: 128 streams, 32 KiB and 128 fields of header, 1000 glitches. */
extern const struct nj_h2_limits nj_h2_limits_default;

/* Returns NULL when out of memory. `events`, `alloc`, which has the memory of connections, and
 * `counters` must outlive the context. `limits` are copied; NULL: the defaults. */
struct nj_h2_context *nj_h2_context_new(const struct nj_h2_events *events,
                                        const struct nj_h2_limits *limits, struct nj_alloc *alloc,
                                        struct nj_counters *counters);
/* All connections must have been closed. */
void nj_h2_context_free(struct nj_h2_context *core);
/* Number of open connections. */
uint32_t nj_h2_context_n_conns(const struct nj_h2_context *core);
/* Bytes of `alloc` in use, without those of the context itself. */
size_t nj_h2_context_bytes_used(const struct nj_h2_context *core);

/* A new server-side connection. `user` is passed to all callbacks. NULL: out of memory, or the
 * bound of `alloc` is reached. */
struct nj_h2 *nj_h2_open(struct nj_h2_context *core, void *user);
/* Prefetch the connection's state into the CPU cache, before nj_h2_input(). */
void nj_h2_prefetch(const struct nj_h2 *h);
/* Close the connection: on_stream_close is called for every stream, then all memory is freed. */
void nj_h2_close(struct nj_h2 *h);

/*
 * Process bytes from the peer, beginning with the connection preface. All bytes are consumed.
 *
 * Returns 0, or -1 when the connection must end: a connection error (RFC 9113 5.4.1), abuse, or no
 * memory. A GOAWAY with the error code is then queued; the caller calls nj_h2_output() once more
 * and closes the connection.
 *
 * Abuse is counted in glitches. Resets, refused or malformed streams, empty DATA, PING, SETTINGS,
 * PRIORITY and unknown frames add glitches. A complete response and a large DATA frame sent each
 * remove one, and glitches decay with time (nj_h2_decay_glitches). A reset adds two, so one
 * response does not pay for it. Beyond limits.glitches_max the connection ends with
 * ENHANCE_YOUR_CALM.
 */
int nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes);

/*
 * Write queued frames and DATA into the sink until none remain or the sink has room for less than
 * 4096 bytes. Once the connection must end, queued frames are written regardless of room, and no
 * further DATA. Returns 0, or -1 as nj_h2_input() does; then one more call flushes the GOAWAY. Some
 * errors of the peer are detected only here, so call it after each input. After an allocation
 * failure no GOAWAY is sent.
 */
int nj_h2_output(struct nj_h2 *h, const struct nj_byte_sink *sink, void *sink_ctx);

/* Nothing remains to be sent or received: the connection may be closed. */
bool nj_h2_is_finished(const struct nj_h2 *h);
/* Number of open streams. */
uint32_t nj_h2_n_streams(const struct nj_h2 *h);
/* No stream is open and no output is queued. */
bool nj_h2_is_idle(const struct nj_h2 *h);

/* Graceful shutdown (RFC 9113 6.8). The first call queues GOAWAY with the highest stream id, so
 * requests in flight are still served. The second call queues GOAWAY with the last stream id seen;
 * from then on new streams are ignored, and nj_h2_is_finished() is true once all streams have
 * ended.
 */
void nj_h2_goaway(struct nj_h2 *h);
/* nj_h2_goaway() was called once or twice. */
bool nj_h2_has_sent_goaway(const struct nj_h2 *h);

/* Queue a PING (RFC 9113 6.7) as a liveness check: a live peer acknowledges it. */
void nj_h2_ping(struct nj_h2 *h);
/* The peer has not acknowledged all PINGs yet. If none is open, whatever it sent before it read the
 * last one has been processed. */
bool nj_h2_is_ping_unanswered(const struct nj_h2 *h);

/*
 * Respond to a request: status (200 to 599), up to 86 fields (copied) and a body, or NULL for none.
 * The stream takes ownership of the body, also on failure. For a HEAD request the caller passes no
 * body and the fields of the response to GET. After nj_h2_reset_stream() nothing is sent.
 * Returns 0, or -1 when out of memory; then the next input or output ends the connection, as
 * after every failed allocation.
 *
 * `stamp` is a cache key for the encoded head. Equal stamps promise equal status and fields, byte
 * for byte and in the same order, on all connections of the context. The head is then encoded once
 * and reused. 0: do not cache.
 */
int nj_h2_respond(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                  size_t n_fields, uint64_t stamp, struct nj_body *body);
/* Send 100 (Continue) (RFC 9110 10.1.1, 15.2.1). No effect once the response was given or the
 * request is complete. */
void nj_h2_send_continue(struct nj_h2_stream *st);

/* Respond with the cached head of `stamp`. False: the head is not cached, or this connection needs
 * another encoding. Then nothing was done, the caller still owns the body and calls
 * nj_h2_respond(). */
bool nj_h2_respond_cached(struct nj_h2_stream *st, uint16_t status, uint64_t stamp,
                          struct nj_body *body);

/* Set the priority (RFC 9218 4), `urgency` 0 to 7, overriding the client's. Allowed before and
 * after nj_h2_respond(). */
void nj_h2_prioritize(struct nj_h2_stream *st, uint8_t urgency, bool incremental);

/* The response body of this stream has bytes again, or has failed or ended. */
void nj_h2_resume(struct nj_h2_stream *st);

/* Set trailer fields (up to 86, copied), sent after the body, which may be empty. Called once,
 * before or after nj_h2_respond(). Returns -1 without effect once the end of the body was sent;
 * otherwise as nj_h2_respond(). */
int nj_h2_set_trailers(struct nj_h2_stream *st, const struct nj_field *fields, size_t n_fields);

/* The owner has processed `n_bytes` of the request body: the peer may send as many more. The sum
 * must not exceed the bytes passed to on_data. When a stream ends, its remaining bytes return to
 * the connection's window automatically. */
void nj_h2_consume(struct nj_h2_stream *st, size_t n_bytes);

/* Queue RST_STREAM with an error code of RFC 9113 7. on_stream_close() follows once it is written.
 */
void nj_h2_reset_stream(struct nj_h2_stream *st, uint32_t error);

/* Why the response body of a stream makes no progress. */
enum nj_blocked_by nj_h2_stream_blocked_by(const struct nj_h2_stream *st);
uint32_t nj_h2_stream_id(const struct nj_h2_stream *st);
/* It was reset by either side, or its connection ends: nothing more is sent. */
bool nj_h2_stream_is_reset(const struct nj_h2_stream *st);

/* Iterate over the streams passed to on_request that have neither ended nor been reset, oldest
 * first; NULL after the last. During the iteration only nj_h2_reset_stream() may be called on them.
 */
struct nj_h2_stream *nj_h2_first_stream(const struct nj_h2 *h);
struct nj_h2_stream *nj_h2_next_stream(const struct nj_h2_stream *st);

/*
 * When the peer began the preface, frame or header block that is still incomplete; NJ_NEVER if
 * there is none. `now` is the result for one that began with the last input, so call this after
 * each input. DATA of an open stream is excluded; it has its own timeout.
 */
nj_ns nj_h2_unfinished_frame_since(struct nj_h2 *h, nj_ns now);
/* Memory of the incomplete frame or header block, and of frames other than DATA that wait for room
 * in the sink. */
uint32_t nj_h2_buffered_bytes(const struct nj_h2 *h);

/* Kinds of abuse. */
enum nj_h2_abuse {
    NJ_H2_ABUSE_NONE,
#define NJ_H2_ABUSE(NAME, name, text) NJ_H2_ABUSE_##NAME,
#include "h2/abuse_kinds.def"
#undef NJ_H2_ABUSE
    NJ_H2_N_ABUSES
};
#define NJ_H2_ABUSE_TEXT_MAX 56u
/* End the connection with ENHANCE_YOUR_CALM at the next input or output. The GOAWAY carries the
 * text of `why` as debug data. */
void nj_h2_end_for_abuse(struct nj_h2 *h, enum nj_h2_abuse why);
/* The abuse for which the connection ends; NONE when it does not end, or for another reason. */
enum nj_h2_abuse nj_h2_abuse_reason(const struct nj_h2 *h);
/* The connection ends because of an error of the peer (RFC 9113 5.4.1) that is no abuse. */
bool nj_h2_has_protocol_error(const struct nj_h2 *h);
/* Glitches removed per second, since honest clients cause some for as long as they are connected.
 * A proxy sends 200 requests per second, and its clients cancel a fifth while a worker runs them:
 * that adds 40 times 6 glitches a second, and 160 responses remove one each, which leaves 80. The
 * rate permits an abuser 16 such resets a second. */
#define NJ_H2_GLITCH_DECAY_PER_S 100u
/* Remove glitches for the time since the last call. Call before input, with monotonic `now`. */
void nj_h2_decay_glitches(struct nj_h2 *h, nj_ns now);
/* Add glitches, also for abuse that only the owner can observe. False: the connection ends. */
bool nj_h2_add_glitches(struct nj_h2 *h, uint32_t n_glitches);
/* The peer's RST_STREAM ended the stream. Valid within on_stream_close(). */
bool nj_h2_was_reset_by_peer(const struct nj_h2_stream *st);

/* The user pointers of connection and stream, and the connection of a stream. */
void *nj_h2_user(const struct nj_h2 *h);
struct nj_h2 *nj_h2_stream_conn(const struct nj_h2_stream *st);
void nj_h2_stream_set_user(struct nj_h2_stream *st, void *user);
void *nj_h2_stream_user(const struct nj_h2_stream *st);
