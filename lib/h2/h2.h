/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP/2 as a machine: bytes in, bytes out, stream events (RFC 9113).
 *
 * The machine has no clock, no socket and no thread. All calls on one nj_h2_core and on everything
 * made from it belong to one lcore.
 */
#ifndef NJ_H2_H2_H
#define NJ_H2_H2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/hash.h"
#include "base/request_head.h"
#include "base/types.h"

struct nj_counters;

struct nj_h2_core;   /* one per shard: callbacks, options, allocator */
struct nj_h2;        /* one connection */
struct nj_h2_stream; /* one request and its response */

/* nj_h2_respond(), _trailers(), _consume(), _resume() and _reset() may be called from within these,
 * for this stream and any other; what they queue goes out with the next nj_h2_output(). */
struct nj_h2_events {
    /* A request head is complete, and checked by RFC 9113 8.3. Answer it now or later, once, with
     * nj_h2_respond(). `user` is what nj_h2_open() was given. */
    void (*on_request)(void *user, struct nj_h2_stream *st, const struct nj_request_head *req);
    /* The stream is over (answered, reset, or its connection ended) and the handle is dead after
     * this call. A response body it held has been closed already. `complete` tells whether the
     * response left to its last byte. Called for each stream that on_request showed, no other. It
     * may come before on_end: the peer reset, or the whole response was out and nobody waits for
     * the rest of the request (RFC 9113 8.1). */
    void (*on_stream_close)(void *user, struct nj_h2_stream *st, bool complete);
    /* Bytes of a request body; they live until this returns, and count against the stream's and the
     * connection's window (NJ_H2_STREAM_WINDOW_BYTES, NJ_H2_CONN_WINDOW_BYTES) until
     * nj_h2_consume(). None come after nj_h2_reset() or the last byte of the response. NULL: bodies
     * are thrown away. */
    void (*on_data)(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n_bytes);
    /* The request is complete, with the content-length it promised if it did; only when the head
     * did not say `ends`. At most once, after the last on_data. May be NULL. */
    void (*on_end)(void *user, struct nj_h2_stream *st);
    /* A request is refused for its head alone, which is too large (431; then its fields are those
     * that fit), contradicts itself (400) or expects what we do not know (417). To be answered with
     * that status and without a body before this returns; on_stream_close does not come for it.
     * NULL: it is answered without fields. */
    void (*on_refused)(void *user, struct nj_h2_stream *st, const struct nj_request_head *req,
                       uint16_t status);
};

/* Where output goes. Bytes offered are taken whole. */
struct nj_h2_sink {
    /* Bytes that fit now. Frames are cut to it; only what is left to say at the end of a connection
     * goes out whatever fits. */
    uint32_t (*room)(void *ctx);
    /* Append a copy of `n_bytes`. False when memory ran out: the connection will be closed. */
    bool (*copy)(void *ctx, const uint8_t *data, uint32_t n_bytes);
    /* Append a reference to body bytes; the sink takes its own reference on slice->ref. */
    bool (*refer)(void *ctx, const struct nj_slice *slice);
};

struct nj_h2_limits {
    uint32_t concurrent_streams_max; /* SETTINGS_MAX_CONCURRENT_STREAMS */
    uint32_t header_bytes_max;       /* decoded, RFC 9113 6.5.2 accounting; beyond: 431 */
    uint32_t header_fields_max;      /* cookie crumbs and trailers count; beyond: 431 */
    uint32_t glitches_max;           /* see nj_h2_input() */
    size_t bytes_max;                /* of all connections of a core; then no more are opened */
    uint32_t window_bytes;           /* of a connection; 0: NJ_H2_CONN_WINDOW_BYTES */
    struct nj_hash_key hash_key;     /* secret, for tables whose content peers choose */
};

/* Defaults: 128 streams, 32 KiB and 128 fields of header, 1000 glitches, 2 GiB. */
extern const struct nj_h2_limits nj_h2_limits_default;

/* NULL when memory ran out. `events`, `counters` must outlive the core. */
struct nj_h2_core *nj_h2_core_new(const struct nj_h2_events *events,
                                  const struct nj_h2_limits *limits, struct nj_counters *counters);
/* All connections must be closed before. */
void nj_h2_core_free(struct nj_h2_core *core);
/* Connections open now, and bytes the allocator holds for them (0 when none is open). */
uint32_t nj_h2_core_conns(const struct nj_h2_core *core);
size_t nj_h2_core_bytes_used(const struct nj_h2_core *core);

/* A new server-side connection; `user` comes back in the events. NULL when memory ran out, or
 * limits.bytes_max is reached. */
struct nj_h2 *nj_h2_open(struct nj_h2_core *core, void *user);
/* Have it on its way into the cache, before it is given input. */
void nj_h2_prefetch(const struct nj_h2 *h);
/* End it: every stream is closed with an event, then the session is freed. */
void nj_h2_close(struct nj_h2 *h);

/*
 * Bytes from the peer, beginning with the connection preface. All are consumed.
 *
 * Returns 0, or -1 when the connection must end: the peer broke the protocol, ran out of patience
 * with us, or wasted our time. Then a GOAWAY with the reason is queued: call nj_h2_output() once
 * more, and close the connection.
 *
 * Wasted time is counted in glitches: resets, refused or malformed streams, empty DATA, PING,
 * SETTINGS, PRIORITY, unknown frames and the like add to the count, a response that ends in
 * order takes from it, and so does a big DATA frame that went out; but a reset adds twice what one
 * response takes. Time takes from it, too (nj_h2_recover). Beyond limits.glitches_max the
 * connection ends with ENHANCE_YOUR_CALM.
 */
int nj_h2_input(struct nj_h2 *h, const uint8_t *data, size_t n_bytes);

/*
 * Write what is due into the sink until nothing is left or less than 4096 bytes of room are. Once
 * the connection must end, what is queued goes out whatever the room, but no more of the bodies.
 * Returns 0, or -1 as nj_h2_input() does (then call it once more to flush the GOAWAY). Some errors
 * of the peer show only here, so call it after input. When memory ran out there is no GOAWAY.
 */
int nj_h2_output(struct nj_h2 *h, const struct nj_h2_sink *sink, void *sink_ctx);

/* Nothing more to send and nothing more to expect: the connection may be closed. */
bool nj_h2_finished(const struct nj_h2 *h);
/* Streams open now. */
uint32_t nj_h2_streams(const struct nj_h2 *h);
/* No stream is open, and nothing is to be written: it waits for nobody but the peer. */
bool nj_h2_is_idle(const struct nj_h2 *h);

/* Graceful end (RFC 9113 6.8). First call: GOAWAY with the highest stream id, so that requests on
 * their way are still served; second call: GOAWAY with the last stream seen, nothing new is
 * accepted, and nj_h2_finished() turns true when the open streams are done. */
void nj_h2_goaway(struct nj_h2 *h);

/* Have the peer answer (RFC 9113 6.7), or its TCP say that nobody is there. */
void nj_h2_ping(struct nj_h2 *h);

/*
 * Answer a request: status (200 to 599), up to 64 fields (copied) and a body, or NULL for none.
 * The body is the stream's from here on, also when this fails. A HEAD request gets no body here:
 * the caller passes NULL and the fields that a GET would get. After nj_h2_reset() nothing is sent.
 * Returns 0, or -1 when memory ran out; then the next input or output ends the connection, as
 * after any allocation that failed.
 */
int nj_h2_respond(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                  size_t n_fields, struct nj_body *body);
/* 100 (Continue): the body is wanted (RFC 9110 10.1.1, 15.2.1). Nothing happens when the response
 * or the end of the request is there already. */
void nj_h2_continue(struct nj_h2_stream *st);
/* nj_h2_respond() with a stamp: a number, not 0, by which the owner says that status and fields are
 * those of each answer of the core that had it before, byte for byte and in this order. Such a head
 * is encoded once for all connections. 0: it says nothing. */
int nj_h2_respond_stamped(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                          size_t n_fields, uint64_t stamp, struct nj_body *body);

/* Only with a stamp: the head is the one that had it before. False: its block is not at hand, or
 * this stream needs another one. Nothing was done then, and nj_h2_respond_stamped() is to be asked;
 * the body is the caller's. */
bool nj_h2_respond_again(struct nj_h2_stream *st, uint16_t status, uint64_t stamp,
                         struct nj_body *body);

/* Its priority (RFC 9218 4), `urgency` 0 to 7, in place of what the client said; before or after
 * the response. */
void nj_h2_prioritize(struct nj_h2_stream *st, uint8_t urgency, bool incremental);

/* The body of this stream has bytes again, or broke, or ended. */
void nj_h2_resume(struct nj_h2_stream *st);

/* Trailer fields (copied, up to 64) for after the last byte of the body, also of an empty one.
 * Once, before or after nj_h2_respond(), but before the body has shown its end: then it is too
 * late, which returns -1 and does nothing. Else returns as nj_h2_respond(). */
int nj_h2_trailers(struct nj_h2_stream *st, const struct nj_field *fields, size_t n_fields);

/* `n_bytes` of the request body are done with: the peer may send as many more. Never more than
 * on_data showed. Bytes that were not consumed when the stream ends are returned to the
 * connection's window by themselves. */
void nj_h2_consume(struct nj_h2_stream *st, size_t n_bytes);

/* RST_STREAM with an error code of RFC 9113 7; on_stream_close() follows, not within this call. */
void nj_h2_reset(struct nj_h2_stream *st, uint32_t error);

/* What keeps the response of this stream from getting on. */
enum nj_h2_hold {
    NJ_H2_HOLD_NONE,   /* nothing: it goes out as the sink takes it, or there is no body */
    NJ_H2_HOLD_OURS,   /* the body had nothing to show, and nobody called nj_h2_resume() since */
    NJ_H2_HOLD_STREAM, /* the peer's window of the stream is closed */
    NJ_H2_HOLD_CONN,   /* ... of the connection */
};
enum nj_h2_hold nj_h2_hold(const struct nj_h2_stream *st);
uint32_t nj_h2_stream_id(const struct nj_h2_stream *st);

/* The streams that on_request showed and that are neither over nor reset, in the order in which
 * they came; NULL behind the last. Nothing may be done to them on the way but nj_h2_reset(). */
struct nj_h2_stream *nj_h2_first(const struct nj_h2 *h);
struct nj_h2_stream *nj_h2_next(const struct nj_h2_stream *st);

/*
 * To be called after input: since when the peer has been at something that it has to finish before
 * anything else can be said, the preface, a frame or a header block; `now` when that is new, and
 * NJ_NEVER when there is none. DATA of an open stream is not meant: that has a time of its own.
 */
nj_ns nj_h2_unfinished_since(struct nj_h2 *h, nj_ns now);

/* What a peer wastes our time with. */
enum nj_h2_waste {
    NJ_H2_WASTE_NONE,
#define NJ_H2_WASTE(NAME, name, text) NJ_H2_WASTE_##NAME,
#include "h2/glitch.def"
#undef NJ_H2_WASTE
    NJ_H2_N_WASTES
};
#define NJ_H2_WASTE_TEXT_MAX 56u
/* That is enough: from the next input or output on the connection ends with ENHANCE_YOUR_CALM, and
 * a GOAWAY that says why in words. */
void nj_h2_calm(struct nj_h2 *h, enum nj_h2_waste why);
/* For which of these the connection ends; NONE while it does not, or ends for another reason. */
enum nj_h2_waste nj_h2_wasted(const struct nj_h2 *h);
/* So many glitches are forgiven per second: honest clients waste some time for as long as they are
 * here. A proxy with 200 requests per second, a fifth of which its clients cancel while a worker
 * runs them, is charged 40 times 6 points a second, and 160 answers give back one each: 80 are
 * left. Who wastes no more than that may: 16 such resets a second. */
#define NJ_H2_GLITCHES_PER_S 100u
/* To be called before input: it is `now`, which is never before that of another call. */
void nj_h2_recover(struct nj_h2 *h, nj_ns now);
/* So many glitches more: the peer wasted what this machine does not see. */
void nj_h2_charge(struct nj_h2 *h, uint32_t n_glitches);
/* In on_stream_close(): the peer's RST_STREAM ended it. */
bool nj_h2_stream_was_reset(const struct nj_h2_stream *st);

/* The connection's user pointer; and a place for the caller's own pointer on each stream. */
void *nj_h2_user(const struct nj_h2 *h);
struct nj_h2 *nj_h2_of(const struct nj_h2_stream *st);
void nj_h2_stream_set_user(struct nj_h2_stream *st, void *user);
void *nj_h2_stream_user(const struct nj_h2_stream *st);

#endif
