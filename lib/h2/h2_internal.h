/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the files of lib/h2 and by its tests; nobody else includes this.
 *
 *   frame.h     frames on the wire
 *   conn_alloc.c     memory, counted
 *   h2_context.c      what all connections of a shard share
 *   session.c   one connection: how it begins and ends
 *   input.c     bytes in: preface and frames, one function for each type
 *   settings.c  SETTINGS of either side
 *   window.c    flow control of either direction
 *   request.c   header blocks: requests, trailers, and what is neither
 *   request_head.c      the fields of a header block
 *   data_input.c   DATA in
 *   response.c  answers: heads, trailers, resets
 *   output.c    bytes out, and DATA among them
 *   send_scheduler.c     who sends DATA next (RFC 9218)
 *   stream.c    one request: its life, and the table of those that are open
 *   half_closed_local.c      requests that go on although their response is complete
 *   glitch.c    what a peer may waste of our time
 *   hpack.h     header compression
 */
#ifndef NJ_H2_H2_INTERNAL_H
#define NJ_H2_H2_INTERNAL_H

#include "base/attr.h"
#include "base/field.h"
#include "base/list.h"
#include "h2/frame.h"
#include "h2/h2.h"
#include "h2/hpack/hpack.h"
#include "telem/counters.h"

/* Below this much room in the sink nothing is written: it keeps DATA frames from being cut into
 * crumbs. */
#define NJ__H2_ROOM_MIN       4096u
/* Response fields of one answer, without :status. */
#define NJ__H2_FIELDS_OUT_MAX 64u
/* How far beyond a soft limit of header size we go on decoding before the connection ends. */
#define NJ__H2_HEADER_HARD    4u
/* The last ids of which we know what became of them. */
#define NJ__H2_IDS_KNOWN      64u
/* PRIORITY_UPDATEs kept for streams to come. */
#define NJ__H2_EARLY          2u

/* ---- conn_alloc.c ---- */

#define NJ__H2_CLASSES     18u
#define NJ__H2_SMALL_STEPS 65u /* lookup by 16 bytes, up to 1024 */

struct nj__h2_alloc {
    void *free_head[NJ__H2_CLASSES];
    uint8_t *bump[NJ__H2_CLASSES], *bump_end[NJ__H2_CLASSES]; /* part of a run not yet cut */
    uint8_t *slabs; /* runs are cut from the first; linked through their first word */
    size_t slab_used;
    size_t bytes_used;
    uint64_t fail_in; /* tests: this many allocations from now one fails; 0 never */
    uint8_t small_class[NJ__H2_SMALL_STEPS];
};

void nj__h2_alloc_init(struct nj__h2_alloc *a);
/* Every block must have been freed. */
void nj__h2_alloc_fini(struct nj__h2_alloc *a);
/* As malloc, realloc and free of C; blocks are aligned to 16 bytes. */
void *nj__h2_alloc(struct nj__h2_alloc *a, size_t n_bytes);
void *nj__h2_alloc_zero(struct nj__h2_alloc *a, size_t n_bytes);
void *nj__h2_alloc_resize(struct nj__h2_alloc *a, void *p, size_t n_bytes);
void nj__h2_alloc_free(struct nj__h2_alloc *a, void *p);

/* ---- h2_context.c ---- */

/* A header block. Its strings live until the core reads another one. */
struct nj__h2_head {
    struct nj_str host;
    int64_t length;             /* content-length, or NJ__H2_NO_LENGTH */
    uint32_t n_bytes, n_fields; /* RFC 9113 6.5.2 accounting */
    bool trailers;
    bool over; /* beyond a soft limit */
    bool bad;  /* malformed, RFC 9113 8.1.1 */
    /* Of a request that is not bad, but refused for its head alone: 431 beyond a soft limit, 400
     * when it contradicts itself (RFC 9113 8.3.1), 417 when it expects what we do not know. 0: it
     * is to be shown. */
    uint16_t refused;
    bool regular;                         /* a field that is not a pseudo one was seen */
    bool expects_continue, expects_other; /* RFC 9110 10.1.1: 100-continue; anything else */
    uint8_t priority;
    bool signalled;             /* the client said something of its priority */
    struct nj_request_head req; /* last: its `header` is not cleared */
};

#define NJ__H2_AGAIN_MAX 32u /* octets of a block that may come again: as many fields */

/* The last request that was read, if one after it may be the same (request_head.c). */
struct nj__h2_again {
    const struct nj_h2 *h; /* whose; NULL: none */
    uint32_t n;
    uint8_t block[NJ__H2_AGAIN_MAX];
};

struct nj_h2_core {
    const struct nj_h2_events *events;
    struct nj_counters *counters;
    struct nj__hpack_shared *hpack;
    struct nj_field *fields; /* of the header block at hand: limits.header_fields_max, and one */
    struct nj__h2_again again;
    struct nj__h2_head head; /* of the last request */
    uint32_t n_conns;
    struct nj_h2_limits limits;
    struct nj__h2_alloc alloc;
};

/* Tests: let the `n`-th allocation from now fail, once; 0 lets all succeed. */
void nj__h2_core_fail_after(struct nj_h2_core *core, uint64_t n);

/* ---- a connection ---- */

/* Why a connection ends at our wish. */
enum nj__h2_end {
    NJ__H2_ALIVE,
    NJ__H2_END_PROTOCOL, /* the peer broke RFC 9113 */
    NJ__H2_END_ABUSE,    /* the peer wasted our time */
    NJ__H2_END_MEMORY,   /* no memory, or the sink took no more */
    NJ__H2_END_CLOSED,   /* nj_h2_close() is at work */
};

/* What becomes of a frame's payload. */
enum nj__h2_how {
    NJ__H2_SKIP,
    NJ__H2_WHOLE, /* seen when it is complete */
    NJ__H2_BLOCK, /* of CONTINUATION: it gets behind what is gathered */
    NJ__H2_BODY,  /* DATA: as it comes */
};

struct nj__h2_frame {
    uint32_t n_bytes, id;
    uint8_t type, flags;
};

struct nj__h2_buf {
    uint8_t *p;
    uint32_t n, room;
};

struct nj_h2_stream;

/* In the order of use: a request and its answer touch the first five lines. */
struct nj_h2 {
    struct nj_h2_core *core;
    void *user;
    struct nj__hpack_in *hpack_in;   /* NULL before the first header block */
    struct nj__hpack_out *hpack_out; /* NULL before the first answer */
    uint32_t left;                   /* of the payload at hand */
    uint8_t n_walk;                  /* of the frame head, or of the preface, that came in pieces */
    uint8_t how;                     /* enum nj__h2_how, of the frame at hand */
    uint8_t end;                     /* enum nj__h2_end */
    uint8_t goaways;                 /* calls of nj_h2_goaway(), up to 2 */
    bool greeted;                    /* the preface came */
    bool settled;                    /* ... and the SETTINGS behind it */
    bool block_open;                 /* END_HEADERS is to come */
    bool told;                       /* the end was put into a GOAWAY, or can't be */
    bool mute;                       /* nothing can be written any more */
    bool busy;                       /* input or output is at work */
    bool peer_goaway;
    bool acked;      /* our SETTINGS */
    bool late_asked; /* a PING of half_closed_local.c is out */
    struct nj__h2_frame frame;
    uint32_t n_begun; /* frames and header blocks, one counted once */

    uint32_t id_high;                /* highest stream id a HEADERS frame had; 0 before the first */
    uint32_t id_last;                /* highest that was opened: for GOAWAY */
    uint32_t glitches, recovered_at; /* ... in so many parts of a second, modulo 2^32 */
    uint32_t window_credit;          /* WINDOW_UPDATE frames that cost nothing */
    /* Streams that are shown and not over; late ones (half_closed_local.c); all that are in the
     * table. */
    uint32_t n_streams, n_late, n_open;
    uint32_t table_mask;
    struct nj_h2_stream **table;
    struct nj_h2_stream *few[4]; /* the table, while it is small */
    struct nj_list streams;      /* in the order in which they came */
    struct nj_list ready;        /* those with DATA to send, in that order */
    struct nj_list passing; /* those that are over when the sink has taken all up to their mark */
    struct nj__h2_buf out;  /* bytes for the sink, from out_at on; no memory when there are none */
    uint32_t out_at;
    uint32_t out_passed;    /* bytes of the outbox that the sink took so far, modulo 2^32 */
    int32_t send_window;    /* the peer's, of the connection */
    int32_t initial_window; /* the peer's, of streams to come */
    uint32_t data_max;      /* payload of a DATA frame that the peer takes and we send */
    /* Bit i: of the id 2*i below id_high. It was used; the peer ended it; it reset it. */
    uint64_t id_seen, id_ended, id_reset;
    uint32_t n_dead;     /* bytes of the outbox that belong to streams that the peer has reset */
    uint32_t n_acks;     /* acknowledgments in the outbox */
    uint32_t unfinished; /* the frame that the peer is at since unfinished_at; 0: none */
    uint32_t block_n, block_bytes; /* of the header block: CONTINUATION frames, bytes */
    uint32_t block_id;
    uint8_t block_flags;
    uint8_t ping_credit; /* PINGs that cost nothing */
    uint8_t n_pings;     /* ours that are not answered */
    uint8_t plain;       /* SETTINGS_NO_RFC7540_PRIORITIES: 1 + what the peer said; 0: nothing */
    uint8_t n_early;     /* PRIORITY_UPDATEs for streams to come */
    uint8_t pad;         /* of the DATA frame at hand */
    uint8_t waste;       /* enum nj_h2_waste, when `end` is ABUSE */
    uint8_t charged;     /* type of the last frame that cost something for good */
    bool head_owed;      /* ... behind it, HEADERS cost a point that was not given back yet */
    /* Only during nj_h2_output(). */
    const struct nj_h2_sink *sink;
    void *sink_ctx;

    uint32_t window;       /* ours, of the connection: all of it; */
    uint32_t n_came;       /* what came since it was opened; */
    uint32_t n_done;       /* and is done with */
    uint32_t end_code;     /* enum nj__h2_code */
    struct nj__h2_buf got; /* a frame or a header block that comes in pieces */
    struct nj_list late;
    nj_ns unfinished_at;
    uint32_t early_id[NJ__H2_EARLY];
    uint8_t early_priority[NJ__H2_EARLY];
    bool pad_wanted;
    uint8_t walk[NJ__H2_FRAME_HEAD];
};

/* ---- session.c ---- */

/* Remember why the connection must end; the first reason stays. */
void nj__h2_end(struct nj_h2 *h, enum nj__h2_end why, enum nj__h2_code code);
/* The peer broke the protocol. */
void nj__h2_broken(struct nj_h2 *h, enum nj__h2_code code);
void nj__h2_no_memory(struct nj_h2 *h);
/* Put an end that came up into a GOAWAY. What input and output return. */
int nj__h2_settle(struct nj_h2 *h);

/* ---- settings.c ---- */

/* The first frames of ours. */
void nj__h2_greet(struct nj_h2 *h);
void nj__h2_settings(struct nj_h2 *h, const uint8_t *p, uint32_t n_bytes);
void nj__h2_settings_acked(struct nj_h2 *h);

/* ---- window.c ---- */

/* A DATA frame of so many bytes comes. False: that breaks the connection's window. */
bool nj__h2_window_came(struct nj_h2 *h, uint32_t n_bytes);
/* Bytes that are done with: of the connection's window, and of a stream's. */
void nj__h2_window_done(struct nj_h2 *h, uint32_t n_bytes);
void nj__h2_stream_window_done(struct nj_h2_stream *st, uint32_t n_bytes);
void nj__h2_window_update(struct nj_h2 *h, uint32_t id, uint32_t more);
/* The peer's SETTINGS_INITIAL_WINDOW_SIZE. */
void nj__h2_window_initial(struct nj_h2 *h, uint32_t n_bytes);

/* ---- request_head.c ---- */

enum { NJ__H2_NO_LENGTH = -1 };
#define NJ__H2_PRIORITY_PLAIN 0x30u /* RFC 9218 4: urgency 3, not incremental */

/* Decode a whole block into `head`, which says whether it is trailers and what counts already.
 * False when the connection ends of it. */
bool nj__h2_head_read(struct nj_h2 *h, struct nj__h2_head *head, const uint8_t *block, size_t n);
/* The head of a request; it is bad, too, when something is missing (RFC 9113 8.3.1). NULL when the
 * connection ends of it. */
struct nj__h2_head *nj__h2_head_request(struct nj_h2 *h, const uint8_t *block, size_t n);
/* A connection goes. */
void nj__h2_head_forget(const struct nj_h2 *h);

/* ---- request.c ---- */

#define NJ__H2_NEW 0x80u /* beside the flags of HEADERS: the id was not seen before */

/* A header block is complete. */
void nj__h2_block(struct nj_h2 *h, uint32_t id, uint8_t flags, const uint8_t *block, size_t n);

/* ---- stream.c ---- */

struct nj__h2_trailers;

struct nj_h2_stream {
    struct nj_list link;  /* on nj_h2.streams, or nj_h2.late */
    struct nj_list queue; /* on nj_h2.ready, nj_h2.passing, or none */
    struct nj_h2 *h;
    struct nj_h2_stream *chain; /* in the table */
    void *user;
    struct nj_body *body;
    struct nj__h2_trailers *trailers;
    int64_t length_left; /* of the content-length that was promised, or NJ__H2_NO_LENGTH */
    int32_t id;
    int32_t window;                   /* the peer's */
    uint32_t n_came, n_done;          /* of our window: came since it was opened, done with */
    uint32_t n_held;                  /* bytes of the request's body shown and not consumed */
    uint32_t head_bytes, head_fields; /* trailers go on counting from here */
    uint32_t n_out;                   /* bytes of its answer's head */
    uint32_t mark;                    /* nj_h2.passing: it is over when so many bytes have passed */
    uint8_t priority;                 /* urgency << 4 | incremental */
    bool signalled;                   /* ... as the client has said */
    bool announced;                   /* on_request showed it, so on_stream_close must */
    bool answered;
    bool deferred; /* its body waits for nj_h2_resume() */
    bool complete;
    bool reset;      /* we reset it, or it is over: nothing is shown or sent any more */
    bool late;       /* the response is complete, the request is not; the owner knows it no more */
    bool late_asked; /* a PING went out behind the response */
    bool got_end;    /* the peer's END_STREAM came */
    bool got_reset;  /* ... its RST_STREAM */
    bool end_shown;  /* the end of the response's body is out */
};

/* The stream of that id, or NULL when it is not open. */
struct nj_h2_stream *nj__h2_find(const struct nj_h2 *h, uint32_t id);
/* NULL when memory ran out, which ends the connection. */
struct nj_h2_stream *nj__h2_stream_new(struct nj_h2 *h, uint32_t id);
/* Close the body, tell the owner. */
void nj__h2_stream_leave(struct nj_h2_stream *st);
/* The same unless it was done, and free it. */
void nj__h2_stream_drop(struct nj_h2_stream *st);
void nj__h2_body_close(struct nj_h2_stream *st);
/* The last byte of a response went out. */
void nj__h2_stream_sent(struct nj_h2_stream *st);
/* The request is complete. */
void nj__h2_stream_ended(struct nj_h2_stream *st);
/* Reset a stream for a reason of ours. It is dropped when the sink has the frame. */
void nj__h2_stream_reset(struct nj_h2_stream *st, enum nj__h2_code code);
/* ... or for an error of the peer's, who is charged; the stream needs not be open. */
void nj__h2_stream_error(struct nj_h2 *h, uint32_t id, enum nj__h2_code code);

/* ---- response.c ---- */

/* The head or trailers of a response (status 0) go to the outbox; `stamp` as in h2.h. False when
 * memory ran out. */
bool nj__h2_put_fields(struct nj_h2_stream *st, uint16_t status, const struct nj_field *fields,
                       size_t n_fields, uint64_t stamp, bool ends);
/* What shows that the body was all: trailers, or a frame with nothing in it. False likewise. */
bool nj__h2_put_end(struct nj_h2_stream *st);

/* ---- output.c ---- */

/* Room for a frame of so many bytes at the end of the outbox, taken. NULL when there is no memory
 * or nothing more is to go out. Only until the next call of anything. */
uint8_t *nj__h2_put(struct nj_h2 *h, uint32_t n_bytes);
/* A frame with four bytes in it. */
void nj__h2_put_small(struct nj_h2 *h, enum nj__h2_type type, uint32_t id, uint32_t value);
/* The frames of acknowledgments, of which only so many may wait. */
uint8_t *nj__h2_put_ack(struct nj_h2 *h, uint32_t n_bytes);
/* The stream is over when all that is in the outbox now has passed. */
void nj__h2_pass(struct nj_h2_stream *st);
/* The peer has reset a stream with so many bytes of a head, which may be in the outbox yet. */
void nj__h2_dead(struct nj_h2 *h, uint32_t n_bytes);
/* Room for `n_bytes` in a buffer. */
bool nj__h2_buf_reserve(struct nj_h2 *h, struct nj__h2_buf *b, uint32_t n_bytes);
void nj__h2_buf_free(struct nj_h2 *h, struct nj__h2_buf *b);

/* ---- send_scheduler.c ---- */

/* It may have DATA to send: if so, it gets its place. */
void nj__h2_ready(struct nj_h2_stream *st);
/* It sent a frame and has more: its turn may be over. */
void nj__h2_ready_again(struct nj_h2_stream *st);
/* A value of the priority field; what it leaves open is as in `was`. */
uint8_t nj__h2_priority_of(struct nj_str value, uint8_t was);
void nj__h2_priority_update(struct nj_h2 *h, const uint8_t *p, uint32_t n_bytes);
/* The priority of a new stream with that head. */
void nj__h2_priority_first(struct nj_h2_stream *st, const struct nj__h2_head *head);
/* Its response has a body of `n_bytes`, or NJ_BODY_UNKNOWN. */
void nj__h2_priority_body(struct nj_h2_stream *st, uint64_t n_bytes);

/* ---- data_input.c ---- */

/* Somebody reads the body of this stream. */
bool nj__h2_body_wanted(const struct nj_h2_stream *st);
/* A DATA frame begins, and what comes of it. */
void nj__h2_data_begin(struct nj_h2 *h);
void nj__h2_data(struct nj_h2 *h, const uint8_t *data, uint32_t n_bytes);

/* ---- half_closed_local.c ---- */

/* The response is complete and the request is not. */
void nj__h2_late_begin(struct nj_h2_stream *st);
/* An answer to a PING came, with these eight bytes. */
void nj__h2_late_answered(struct nj_h2 *h, const uint8_t *p);
/* No more patience: the connection is to end. */
void nj__h2_late_stop(struct nj_h2 *h);

/* ---- glitch.c ---- */

/* What one incident costs; limits.glitches_max is the budget. */
enum {
    NJ__H2_GLITCH = 1, /* a frame that moved nothing */
    /* A reset. More than what a request that is answered gives back, or one beside each reset would
     * pay for any number of them (CVE-2023-44487). */
    NJ__H2_GLITCH_RESET = 2,
    NJ__H2_GLITCH_BAD = 10, /* an error no working client makes */
};
/* A frame below this that is ignored, and DATA that carries less, is nothing but work. */
#define NJ__H2_TINY_BYTES 16u

/* Charge the peer. False when the budget is used up, which ends the connection. */
bool nj__h2_glitch(struct nj_h2 *h, uint32_t cost);
/* The same for HEADERS, which nj__h2_glitch_request() gives back. */
bool nj__h2_glitch_head(struct nj_h2 *h);
/* The peer did something useful. */
void nj__h2_glitch_refund(struct nj_h2 *h);
/* A request head turned out good: give back what its HEADERS frame cost. */
void nj__h2_glitch_request(struct nj_h2 *h);
void nj__h2_glitch_window_update(struct nj_h2 *h);
/* A PING, or the answer to one of ours. */
bool nj__h2_glitch_ping(struct nj_h2 *h, bool ack);
/* A DATA frame of `n_bytes` went out; `cut` when a window of the peer cut it short. */
void nj__h2_glitch_data_sent(struct nj_h2 *h, uint32_t n_bytes, bool cut);
/* A DATA frame begins, and it ends, having carried `n_bytes`. */
void nj__h2_glitch_data_begins(struct nj_h2 *h, const struct nj_h2_stream *st);
void nj__h2_glitch_data_came(struct nj_h2 *h, const struct nj_h2_stream *st, uint32_t n_bytes);
/* A CONTINUATION frame of `n_bytes`. */
void nj__h2_glitch_continuation(struct nj_h2 *h);

#endif
