/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types and functions shared by the files of lib/h2. Only these files and their tests include it.
 *
 *   frame.h                  wire format of frames
 *   frame_types.def          table of the types of frames
 *   hpack/hpack.h            header compression
 *   priority_field.c         parser of the priority field (RFC 9218)
 *   h2_context.c             state shared by all connections of a shard
 *   conn_error.c             errors of a connection are recorded
 *   outbox.c                 frames that wait for room in the sink
 *   glitch_budget.c          budget for abuse by the peer
 *   stream_table.c           open streams by id, and what is remembered of closed ones
 *   receive_window.c         our windows
 *   stream.c                 begin and end of a stream, resets
 *   half_closed.c            the request ends, the response ends
 *   send_scheduler.c         order of DATA between streams (RFC 9218)
 *   send_window.c            the peer's windows
 *   response.c               responses: heads and trailers
 *   settings.c               SETTINGS, sent and received
 *   request_head.c           decoding and validation of a header block's fields
 *   header_block_dispatch.c  header blocks: requests, trailers, blocks to be ignored
 *   data_input.c             received DATA
 *   goaway.c                 GOAWAY: graceful shutdown, and the last frame after an error
 *   conn.c                   start and end of a connection
 *   input.c                  input: preface and frames
 *   output.c                 output: the outbox, and DATA
 *
 * Each file calls only files that stand above it in this list.
 *
 * One lcore makes all calls on an nj_h2_context and its connections. Lengths are bytes.
 */
#pragma once

#include "base/body_source.h"
#include "base/byte_buffer.h"
#include "base/header_field.h"
#include "base/list.h"
#include "base/response_head.h"
#include "base/size_class_alloc.h"
#include "h2/frame.h"
#include "h2/h2.h"
#include "h2/hpack/hpack.h"
#include "telem/count.h"

/* With less room in the sink nothing is written, which avoids tiny DATA frames. */
#define NJ__H2_SINK_ROOM_MIN     4096u
/* The hard limit of header size, as a multiple of the soft limit. Beyond it the connection ends. */
#define NJ__H2_HARD_LIMIT_FACTOR 4u
/* Number of most recent stream ids whose final state is remembered. */
#define NJ__H2_IDS_TRACKED       64u
/* PRIORITY_UPDATEs remembered for streams that are not open yet. */
#define NJ__H2_EARLY_PRIORITIES  2u

/* ---- priority_field.c ---- */

/* A priority is an urgency, of which 0 is the highest, and whether the response is incremental. */
#define NJ__H2_URGENCY(u)       ((uint8_t)((u) << 4))
#define NJ__H2_INCREMENTAL      0x01u
#define NJ__H2_PRIORITY_DEFAULT NJ__H2_URGENCY(3) /* RFC 9218 4: not incremental */

/* Parse a priority field value. Parameters that are absent keep their value in `was`. */
uint8_t nj__h2_priority_parse(struct nj_str value, uint8_t was);

/* ---- h2_context.c ---- */

/* A decoded header block. Its strings are valid until the next block of any connection is decoded.
 */
struct nj__h2_head {
    struct nj_str host;
    int64_t length;             /* content-length, or NJ__H2_NO_LENGTH */
    uint32_t n_bytes, n_fields; /* RFC 9113 6.5.2 accounting */
    bool trailers;
    bool over_limit; /* a soft limit is exceeded */
    bool bad;        /* RFC 9113 8.1.1 */
    /* Status of a request that its head alone disqualifies: 431 beyond a soft limit, 400 without
     * the name of a host or for contradictory fields (RFC 9113 8.3.1), 417 for an unknown
     * expectation. 0: none. */
    uint16_t refuse_status;
    nj_counter refuse_why;                /* if there is a status */
    bool regular_seen;                    /* a field other than a pseudo-header was decoded */
    bool expects_continue, expects_other; /* RFC 9110 10.1.1: 100-continue; anything else */
    uint8_t priority;
    bool has_priority;          /* the client sent a priority */
    struct nj_request_head req; /* last: its `header` is not cleared */
};

#define NJ__H2_LAST_BLOCK_MAX                                                                      \
    32u /* octets, and therefore fields, of a block that is remembered                             \
         */

/* The last request's header block, if an equal block decodes to the same request
 * (request_head.c). */
struct nj__h2_last_block {
    const struct nj_h2 *h; /* the connection that sent it; NULL: none is remembered */
    uint32_t n;
    uint8_t block[NJ__H2_LAST_BLOCK_MAX];
};

struct nj_h2_context {
    const struct nj_h2_events *events;
    struct nj_counters *counters;
    struct nj__hpack_shared *hpack;
    struct nj_field *fields; /* of the current header block: limits.header_fields_max + 1 */
    struct nj__h2_last_block last_block;
    struct nj__h2_head head; /* of the last request */
    uint32_t n_conns;
    struct nj_h2_limits limits;
    struct nj_alloc *alloc; /* the caller's */
};

/* ---- a connection ---- */

/* Why the server ends a connection. */
enum nj__h2_end {
    NJ__H2_END_NONE,
    NJ__H2_END_PROTOCOL, /* the peer broke RFC 9113 */
    NJ__H2_END_ABUSE,    /* the peer exceeded its glitch budget */
    NJ__H2_END_MEMORY,   /* an allocation failed, or the sink failed */
    NJ__H2_END_CLOSED,   /* nj_h2_close() is running */
};

/* How the payload of the current frame is processed. */
enum nj__h2_payload_mode {
    NJ__H2_PAYLOAD_SKIP,
    NJ__H2_PAYLOAD_WHOLE,    /* processed when complete */
    NJ__H2_PAYLOAD_BLOCK,    /* CONTINUATION: appended to the buffered header block */
    NJ__H2_PAYLOAD_STREAMED, /* DATA: processed as it arrives */
};

/* The peer's SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218 2.1). */
enum nj__h2_rfc7540 {
    NJ__H2_RFC7540_UNKNOWN, /* not received */
    NJ__H2_RFC7540_ON,      /* 0: it may send priorities of RFC 7540 */
    NJ__H2_RFC7540_OFF,     /* 1: it sends none */
};

struct nj__h2_frame {
    uint32_t n_bytes, id;
    uint8_t type, flags;
};

/* Fields are in order of use: a request and its response touch the first five cache lines. */
struct nj_h2 {
    struct nj_h2_context *core;
    void *user;
    struct nj__hpack_decoder *hpack_decoder; /* NULL before the first header block */
    struct nj__hpack_encoder *hpack_encoder; /* NULL before the first response */
    uint32_t payload_left;                   /* bytes of the current payload still to come */
    uint8_t n_hdr_buf;    /* bytes received of a partial frame header or preface */
    uint8_t payload_mode; /* enum nj__h2_payload_mode of the current frame */
    uint8_t end;          /* enum nj__h2_end */
    uint8_t goaways;      /* calls of nj_h2_goaway(), up to 2 */
    bool preface_seen;    /* the preface was received */
    bool settings_seen;   /* the peer's first SETTINGS was received */
    bool block_open;      /* a header block lacks END_HEADERS */
    bool goaway_queued;   /* the final GOAWAY is queued, or can't be */
    bool write_closed;    /* no more output is possible */
    bool busy;            /* nj_h2_input() or nj_h2_output() is running */
    bool peer_goaway;
    bool settings_acked; /* the peer acknowledged our SETTINGS */
    bool ping_open;      /* a PING of half_closed.c is unanswered */
    struct nj__h2_frame frame;
    uint32_t n_frames; /* frames received; a header block counts once */

    uint32_t id_high; /* highest stream id of a HEADERS frame; 0 before the first */
    uint32_t id_last; /* highest id of an opened stream, for GOAWAY */
    /* The current count; the time of its last decay, in 1/NJ_H2_GLITCH_DECAY_PER_S s, modulo 2^32.
     */
    uint32_t glitches, decayed_at;
    uint32_t window_credit; /* WINDOW_UPDATE frames accepted without a glitch */
    /* Streams whose response is not complete; half-closed ones (half_closed.c); all in the table.
     */
    uint32_t n_streams, n_half_closed, n_open;
    uint32_t table_mask;
    struct nj_h2_stream **table;
    struct nj_h2_stream *inline_table[4]; /* the table, while it is small */
    struct nj_list streams;               /* oldest first */
    struct nj_list ready;                 /* streams with DATA to send, in sending order */
    /* Streams that end once the outbox is written up to nj_h2_stream.flush_mark. */
    struct nj_list flushing;
    struct nj_buf out; /* the outbox: unsent bytes begin at out_at; freed when there are none */
    uint32_t out_at;
    uint32_t out_passed;    /* bytes of the outbox written to the sink so far, modulo 2^32 */
    int32_t send_window;    /* the peer's window of the connection */
    int32_t initial_window; /* the peer's window of new streams */
    uint32_t data_max;      /* largest payload of a DATA frame to this peer */
    /* Bit i is for stream id_high - 2*i: it was used; the peer sent END_STREAM; it sent RST_STREAM.
     */
    uint64_t id_seen, id_ended, id_reset;
    /* Bytes of response heads in the outbox whose stream the peer has reset. */
    uint32_t n_reset_bytes;
    uint32_t n_acks;           /* acknowledgments in the outbox */
    uint32_t unfinished_frame; /* number of the frame incomplete since unfinished_since; 0: none */
    uint32_t block_frames, block_bytes; /* of the header block: CONTINUATION frames, bytes */
    uint32_t block_id;
    uint8_t block_flags;
    uint8_t ping_credit;     /* PINGs accepted without a glitch */
    uint8_t n_pings;         /* our unanswered PINGs */
    uint8_t rfc7540;         /* enum nj__h2_rfc7540 */
    uint8_t n_early;         /* entries of early_id and early_priority in use */
    uint8_t pad;             /* padding bytes of the current DATA frame */
    uint8_t abuse;           /* enum nj_h2_abuse if `end` is NJ__H2_END_ABUSE */
    uint8_t last_charged;    /* type of the last frame that added a permanent glitch */
    bool headers_refundable; /* a later HEADERS frame added a glitch that a valid request returns */
    /* Valid during nj_h2_output(). */
    const struct nj_byte_sink *sink;
    void *sink_ctx;

    uint32_t window;       /* our receive window of the connection */
    uint32_t n_received;   /* bytes received that no WINDOW_UPDATE has returned */
    uint32_t n_consumed;   /* of these, bytes consumed */
    uint32_t end_code;     /* enum nj_h2_error_code */
    struct nj_buf partial; /* the received part of an incomplete frame or header block */
    struct nj_list half_closed;
    nj_ns unfinished_since;
    uint32_t early_id[NJ__H2_EARLY_PRIORITIES];
    uint8_t early_priority[NJ__H2_EARLY_PRIORITIES];
    bool pad_length_due;
    uint8_t hdr_buf[NJ__H2_FRAME_HEAD];
};

/* ---- a stream ---- */

struct nj__h2_trailers;

struct nj_h2_stream {
    struct nj_list link;  /* in nj_h2.streams or nj_h2.half_closed */
    struct nj_list queue; /* in nj_h2.ready, nj_h2.flushing or no list */
    struct nj_h2 *h;
    struct nj_h2_stream *hash_next; /* next in the bucket of the table */
    void *user;
    struct nj_body *body;
    struct nj__h2_trailers *trailers;
    int64_t length_left; /* bytes of content-length still to come, or NJ__H2_NO_LENGTH */
    int32_t id;
    int32_t window;                   /* the peer's window of the stream */
    uint32_t n_received, n_consumed;  /* of our window: received and not returned; consumed */
    uint32_t n_held;                  /* bytes passed to on_data and not consumed */
    uint32_t head_bytes, head_fields; /* size of the request head, to which trailers add */
    uint32_t n_head_out;              /* bytes of the response head */
    uint32_t flush_mark;              /* in nj_h2.flushing: value of out_passed at which it ends */
    uint8_t priority;                 /* of priority_field.c */
    bool has_priority;                /* the priority was set by the client */
    bool shown_to_user;               /* on_request was called, on_stream_close was not */
    bool responded;
    bool deferred; /* the body waits for nj_h2_resume() */
    bool complete;
    bool reset;          /* reset by us, or ended: no more callbacks and no more output */
    bool half_closed;    /* response complete, request not; on_stream_close was called */
    bool pinged;         /* a PING was sent after the response */
    bool end_received;   /* END_STREAM was received */
    bool reset_received; /* RST_STREAM was received */
    bool end_queued;     /* the end of the response body is queued */
};

/* The owner reads the request body of this stream. NULL: false. */
static inline bool nj__h2_has_body_reader(const struct nj_h2_stream *st)
{
    return st && st->shown_to_user && !st->reset && st->h->core->events->on_data;
}

/* ---- conn_error.c ---- */

/* Record why the connection must end. Only the first call has an effect. */
void nj__h2_record_end(struct nj_h2 *h, enum nj__h2_end why, enum nj_h2_error_code code);
/* Connection error (RFC 9113 5.4.1). */
void nj__h2_conn_error(struct nj_h2 *h, enum nj_h2_error_code code);
void nj__h2_out_of_memory(struct nj_h2 *h);

/* ---- outbox.c ---- */

/* Size of the outbox's first buffer, from which output.c derives how much it collects. */
#define NJ__H2_OUTBOX_BYTES_FIRST 4096u

/* Bytes of the outbox that the sink has not got yet. */
static inline uint32_t nj__h2_n_unflushed(const struct nj_h2 *h)
{
    return h->out.n - h->out_at;
}

/* Append `n_bytes` to the outbox and return their address, valid until the next call. NULL: out of
 * memory, or output has ended. */
uint8_t *nj__h2_out_extend(struct nj_h2 *h, uint32_t n_bytes);
/* As nj__h2_out_extend(), for an acknowledgment. Too many of them unsent end the connection. */
uint8_t *nj__h2_out_extend_for_ack(struct nj_h2 *h, uint32_t n_bytes);
/* Queue a frame with a payload of four bytes. */
void nj__h2_put_u32_frame(struct nj_h2 *h, enum nj__h2_frame_type type, uint32_t id,
                          uint32_t value);
/* Queue a PING, and count it in h->n_pings: its acknowledgment adds no glitch. */
void nj__h2_put_ping(struct nj_h2 *h, const uint8_t data[static NJ__H2_PING_BYTES]);
/* End the stream once the current content of the outbox is written. */
void nj__h2_stream_end_when_flushed(struct nj_h2_stream *st);
/* The peer reset a stream whose response head, of `n_bytes`, may still be in the outbox. */
void nj__h2_cap_unsent_reset_responses(struct nj_h2 *h, uint32_t n_bytes);
/* Ensure room for `n_bytes` more in the outbox or in h->partial. False: out of memory, which ends
 * the connection. */
bool nj__h2_buf_reserve(struct nj_h2 *h, struct nj_buf *b, uint32_t n_bytes);
void nj__h2_buf_free(struct nj_h2 *h, struct nj_buf *b);

/* ---- glitch_budget.c ---- */

/* Glitches per event; limits.glitches_max is the budget. */
enum {
    NJ__H2_GLITCH = 1, /* a frame without effect */
    /* A reset. It exceeds the refund for a response; otherwise one response per reset would permit
     * any number of resets (CVE-2023-44487). */
    NJ__H2_GLITCH_RESET = 2,
    NJ__H2_GLITCH_ERROR = 10, /* an error that no working client makes */
};
/* Ignored frames and DATA below this size count as glitches. */
#define NJ__H2_TINY_BYTES 16u

/* Add the glitch of a HEADERS frame, which nj__h2_glitch_headers_ok() removes. */
bool nj__h2_glitch_headers(struct nj_h2 *h);
/* Remove one glitch for useful work. */
void nj__h2_glitch_refund(struct nj_h2 *h);
/* A request head is valid: remove the glitch of its HEADERS frame. */
void nj__h2_glitch_headers_ok(struct nj_h2 *h);
void nj__h2_glitch_window_update(struct nj_h2 *h);
/* A PING of the peer arrived, or (`ack`) its acknowledgment of a PING that we sent. */
bool nj__h2_glitch_ping(struct nj_h2 *h, bool ack);
/* A DATA frame of `n_bytes` was sent; `cut`: the peer's window limited its size. */
void nj__h2_glitch_data_sent(struct nj_h2 *h, uint32_t n_bytes, bool cut);
/* A DATA frame begins; it ends, with `n_bytes` of content. */
void nj__h2_glitch_data_begins(struct nj_h2 *h, const struct nj_h2_stream *st);
void nj__h2_glitch_data_frame_ends(struct nj_h2 *h, const struct nj_h2_stream *st,
                                   uint32_t n_bytes);
/* A CONTINUATION frame begins: end the connection if the header block has too many frames or bytes.
 * A frame that is empty and not the last adds glitches. */
void nj__h2_check_continuation_flood(struct nj_h2 *h);

/* ---- stream_table.c ---- */

/* The open stream with this id, or NULL. */
struct nj_h2_stream *nj__h2_find_stream(const struct nj_h2 *h, uint32_t id);
/* Put a stream into the table. False: out of memory. */
bool nj__h2_table_put(struct nj_h2 *h, struct nj_h2_stream *st);
/* Remove a stream, and remember for frames that arrive later how it ended. */
void nj__h2_table_remove(struct nj_h2 *h, struct nj_h2_stream *st);
/* Enter the stream id of a HEADERS frame. False: it is out of order (RFC 9113 5.1.1). */
bool nj__h2_enter_id(struct nj_h2 *h, uint32_t id);

/* The stream was neither opened, nor closed by the opening of a later one (RFC 9113 5.1.1). */
static inline bool nj__h2_is_id_idle(const struct nj_h2 *h, uint32_t id)
{
    return id > h->id_high || id % 2 == 0;
}

/* The bit of a stream that is not idle in h->id_seen, id_ended or id_reset. */
static inline bool nj__h2_id_bit(const struct nj_h2 *h, uint64_t bits, uint32_t id)
{
    uint32_t back = (h->id_high - id) / 2;
    return back < NJ__H2_IDS_TRACKED && (bits >> back & 1);
}

/* ---- receive_window.c ---- */

/* Count a DATA frame of `n_bytes`. False: it exceeds the connection's window. */
bool nj__h2_conn_window_charge_data(struct nj_h2 *h, uint32_t n_bytes);
/* Return consumed bytes to the window of the connection, and of a stream. */
void nj__h2_conn_window_return(struct nj_h2 *h, uint32_t n_bytes);
void nj__h2_stream_window_return(struct nj_h2_stream *st, uint32_t n_bytes);

/* ---- stream.c ---- */

/* NULL: out of memory, which ends the connection. */
struct nj_h2_stream *nj__h2_stream_new(struct nj_h2 *h, uint32_t id);
/* Close the body and call on_stream_close; the stream stays in the table. */
void nj__h2_stream_detach_user(struct nj_h2_stream *st);
/* Detach the stream, unless that was done, and free it. */
void nj__h2_stream_destroy(struct nj_h2_stream *st);
void nj__h2_body_close(struct nj_h2_stream *st);
/* Stream error (RFC 9113 5.4.2): adds glitches and queues RST_STREAM. The stream need not be open.
 */
void nj__h2_stream_error(struct nj_h2 *h, uint32_t id, enum nj_h2_error_code code);

/* ---- half_closed.c ---- */

/* The last byte of the response was written. */
void nj__h2_response_sent(struct nj_h2_stream *st);
/* The request is complete. */
void nj__h2_request_ended(struct nj_h2_stream *st);
/* An acknowledgment of a PING was received, with these eight bytes. */
void nj__h2_half_closed_on_ping_ack(struct nj_h2 *h, const uint8_t *p);
/* Reset all half-closed streams, because the connection is being shut down. */
void nj__h2_half_closed_reset_all(struct nj_h2 *h);

/* ---- send_scheduler.c ---- */

/* Insert the stream into the ready list, if it has DATA to send and window. */
void nj__h2_schedule(struct nj_h2_stream *st);
/* The stream sent a frame and has more DATA: move it behind its equals if it is incremental. */
void nj__h2_reschedule(struct nj_h2_stream *st);
void nj__h2_priority_update(struct nj_h2 *h, const uint8_t *p, uint32_t n_bytes);
/* Set the priority of a new stream from its head and from earlier PRIORITY_UPDATEs. */
void nj__h2_priority_set_initial(struct nj_h2_stream *st, const struct nj__h2_head *head);
/* Adapt the default priority to a response body of `n_bytes`, or NJ_BODY_LEN_UNKNOWN. */
void nj__h2_priority_by_size(struct nj_h2_stream *st, uint64_t n_bytes);

/* ---- send_window.c ---- */

/* A WINDOW_UPDATE of `more` bytes; `id` 0: for the connection. */
void nj__h2_window_update(struct nj_h2 *h, uint32_t id, uint32_t more);
/* Apply the peer's SETTINGS_INITIAL_WINDOW_SIZE. */
void nj__h2_set_initial_window(struct nj_h2 *h, uint32_t n_bytes);

/* ---- settings.c ---- */

/* Queue the server's connection preface: SETTINGS and WINDOW_UPDATE. */
void nj__h2_send_settings(struct nj_h2 *h);
void nj__h2_apply_settings(struct nj_h2 *h, const uint8_t *p, uint32_t n_bytes);
void nj__h2_settings_acked(struct nj_h2 *h);

/* ---- response.c ---- */

/* False: out of memory, which ends the connection. */
bool nj__h2_ensure_encoder(struct nj_h2 *h);
/* Queue the head of a response, or its trailers (status 0); `stamp` as in h2.h. False: out of
 * memory. */
bool nj__h2_put_fields(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                       size_t n_fields, uint64_t stamp, bool ends);
/* Queue the end of the body: trailers, or an empty DATA frame. False: out of memory. */
bool nj__h2_put_body_end(struct nj_h2_stream *st);

/* ---- request_head.c ---- */

enum { NJ__H2_NO_LENGTH = -1 };

/* Decode a complete block into `head`. The caller sets `trailers`, and n_bytes and n_fields of the
 * message so far. False: the connection ends. */
bool nj__h2_head_decode(struct nj_h2 *h, struct nj__h2_head *head, const uint8_t *block, size_t n);
/* Decode the head of a request. It is malformed if a required pseudo-header is missing
 * (RFC 9113 8.3.1). The context owns the result. NULL: the connection ends. */
struct nj__h2_head *nj__h2_head_decode_request(struct nj_h2 *h, const uint8_t *block, size_t n);
/* Forget the remembered block of a connection that is being freed. */
void nj__h2_last_block_forget(const struct nj_h2 *h);

/* ---- header_block_dispatch.c ---- */

#define NJ__H2_FLAG_NEW_STREAM 0x80u /* added to the flags of HEADERS: the stream id is new */

/* Process a complete header block. */
void nj__h2_handle_block(struct nj_h2 *h, uint32_t id, uint8_t flags, const uint8_t *block,
                         size_t n);

/* ---- data_input.c ---- */

/* The header of a DATA frame was received; then, parts of its payload. */
void nj__h2_data_begin(struct nj_h2 *h);
void nj__h2_data_input(struct nj_h2 *h, const uint8_t *data, uint32_t n_bytes);

/* ---- goaway.c ---- */

/* Queue the GOAWAY of a recorded end. Returns -1 if the connection must end, else 0. */
int nj__h2_goaway_if_ended(struct nj_h2 *h);
