/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the files of lib/h2 and by its tests; nobody else includes this, and nghttp2 is named
 * nowhere outside this folder.
 *
 *   alloc.c    memory for nghttp2 and for our own objects, counted
 *   core.c     what all connections of a shard share: callbacks, options, allocator
 *   session.c  one connection: bytes in, bytes out, how it ends
 *   head.c     a header block while it comes
 *   stream.c   one request: its head, its answer, the body of the response on its way out
 *   body_in.c  the body of the request on its way in
 *   late.c     requests that go on although their response is complete
 *   glitch.c   what a peer may waste of our time
 */
#ifndef NJ_H2_INTERNAL_H
#define NJ_H2_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "base/attr.h"
#include "base/field.h"
#include "base/list.h"
#include "h2/h2.h"
#include "telem/counters.h"

/* Below this much room in the sink nothing is written: it holds any control frame and any response
 * head of ordinary size, and keeps DATA frames from being cut into crumbs. */
#define NJ__H2_ROOM_MIN       4096u
#define NJ__H2_FRAME_HEAD     9u
/* Response fields of one answer, without :status. */
#define NJ__H2_FIELDS_OUT_MAX 64u
/* How far beyond a soft limit of header size we go on decoding before the connection ends. */
#define NJ__H2_HEADER_HARD    4u

/* ---- alloc.c ---- */

#define NJ__H2_CLASSES     18u
#define NJ__H2_SMALL_STEPS 65u /* lookup by 16 bytes, up to 1024 */

struct nj__h2_alloc {
    void *free_head[NJ__H2_CLASSES];
    uint8_t *bump[NJ__H2_CLASSES], *bump_end[NJ__H2_CLASSES]; /* part of a slab not yet cut */
    void *slabs;                                              /* linked through their first word */
    size_t bytes_used;
    void *held;       /* freed since a failure */
    bool failed;      /* an allocation failed; whoever finds this set clears it */
    bool hold;        /* since then freed blocks are held */
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
/* Nothing that met a failure is left: held blocks are free for use. */
void nj__h2_alloc_release(struct nj__h2_alloc *a);

/* ---- core.c ---- */

struct nj_h2_core {
    const struct nj_h2_events *events;
    struct nj_h2_limits limits;
    struct nj_counters *counters;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_mem mem;
    struct nj__h2_alloc alloc;
    uint32_t n_conns;
    uint32_t n_starved; /* connections that met a failed allocation */
};

/* Tests: let the `n`-th allocation from now fail, once; 0 lets all succeed. */
void nj__h2_core_fail_after(struct nj_h2_core *core, uint64_t n);

/* ---- session.c ---- */

/* Why a connection ends at our wish. */
enum nj__h2_end {
    NJ__H2_ALIVE,
    NJ__H2_END_PROTOCOL, /* the peer broke RFC 9113 */
    NJ__H2_END_ABUSE,    /* the peer wasted our time */
    NJ__H2_END_MEMORY,   /* no memory, or the sink took no more */
    NJ__H2_END_CLOSED,   /* nj_h2_close() is at work */
};

/* The header block being received: one at a time, since nothing may come between HEADERS and its
 * CONTINUATIONs (RFC 9113 4.3). */
struct nj__h2_head {
    nghttp2_rcbuf *method, *scheme, *authority, *path, *host;
    size_t n_bytes, n_fields; /* decoded so far, RFC 9113 6.5.2 accounting */
    bool over;                /* beyond a soft limit: 431 */
    /* With limits.keep_fields: all fields but the pseudo ones, and what keeps them alive (name and
     * value by turns, in the same block of memory). */
    struct nj__h2_alloc *alloc;
    struct nj_field *kept;
    nghttp2_rcbuf **kept_refs;
    uint32_t n_kept, kept_room;
};

struct nj_h2 {
    struct nj_h2_core *core;
    void *user;
    nghttp2_session *session;
    struct nj_list streams;
    uint32_t n_streams;
    struct nj_list late; /* see late.c */
    uint32_t n_late;
    enum nj__h2_end end;
    bool told;       /* the end was put into a GOAWAY, or can't be */
    bool mute;       /* the session is not fit to write any more */
    bool busy;       /* inside nghttp2 */
    bool starved;    /* an allocation failed while it was at work */
    uint8_t goaways; /* calls of nj_h2_goaway(), up to 2 */

    struct nj__h2_head head;

    uint32_t glitches;
    uint32_t window_credit; /* WINDOW_UPDATE frames that cost nothing */
    uint32_t id_high;       /* highest stream id a HEADERS frame had; 0 before the first */
    uint64_t id_seen;       /* bit i: the id 2*i below id_high was used */

    /* The frame heads of the input, followed beside nghttp2. */
    uint8_t walk[NJ__H2_FRAME_HEAD];
    uint32_t walk_n, walk_skip;
    uint32_t block_bytes, block_n; /* of the header block: bytes, CONTINUATION frames */
    bool block_open;               /* END_HEADERS is to come */
    bool walk_data;                /* what walk_skip counts is of a DATA frame */
    uint32_t n_begun;              /* frames and header blocks, one counted once */
    uint32_t unfinished;           /* the one that the peer is at since unfinished_at; 0: none */
    nj_ns unfinished_at;
    uint32_t n_small_came, n_small_seen; /* tiny frames; those that nghttp2 told us about */

    /* Only during nj_h2_output(). */
    const struct nj_h2_sink *sink;
    void *sink_ctx;
    struct nj_slice slice; /* what the DATA frame being made will carry */
    bool slice_cut;        /* its length was the peer's wish */
};

/* Remember why the connection must end; the first reason stays. */
void nj__h2_end(struct nj_h2 *h, enum nj__h2_end why);
/* To be called after nghttp2 did something for this connection: if it got no memory for it, the
 * session is only good for being deleted. */
void nj__h2_check_memory(struct nj_h2 *h);

/* ---- head.c ---- */

void nj__h2_head_clear(struct nj__h2_head *head);
int nj__h2_on_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *user);
int nj__h2_on_header(nghttp2_session *s, const nghttp2_frame *f, nghttp2_rcbuf *name,
                     nghttp2_rcbuf *value, uint8_t flags, void *user);
int nj__h2_on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, nghttp2_rcbuf *name,
                             nghttp2_rcbuf *value, uint8_t flags, void *user);
/* What on_request shows; it lives until nj__h2_head_clear(). */
void nj__h2_head_show(const struct nj__h2_head *head, bool ends, struct nj_h2_request *req);

/* ---- stream.c ---- */

struct nj__h2_trailers;

struct nj_h2_stream {
    struct nj_list link; /* on nj_h2.streams, or nj_h2.late */
    struct nj_h2 *h;
    void *user;
    struct nj_body *body;
    struct nj__h2_trailers *trailers;
    int32_t id;
    uint32_t n_held;                  /* bytes of the request's body shown and not consumed */
    uint32_t head_bytes, head_fields; /* trailers go on counting from here */
    uint32_t n_late_bytes;            /* of the request, behind the end of the response */
    bool announced;                   /* on_request showed it, so on_stream_close must */
    bool answered;
    bool deferred; /* nghttp2 waits for nj_h2_resume() */
    bool complete;
    bool own_fault; /* the RST_STREAM to come is not the peer's doing */
    bool reset;     /* we reset it, or it is over: nothing is shown or sent any more */
    bool late;      /* the response is complete, the request is not; the owner knows it no more */
    bool got_end;   /* the peer's END_STREAM came */
    bool end_shown; /* nghttp2 knows the end of the response's body */
};

/* Close the body, tell the owner. */
void nj__h2_stream_leave(struct nj_h2_stream *st);
/* The same unless it was done, and free it. */
void nj__h2_stream_drop(struct nj_h2_stream *st);
/* The last byte of a response went out. */
void nj__h2_stream_sent(struct nj_h2_stream *st);
/* Reset a stream for a reason of ours. */
void nj__h2_stream_reset(struct nj_h2 *h, int32_t id, uint32_t error);

int nj__h2_on_frame_recv(nghttp2_session *s, const nghttp2_frame *f, void *user);
int nj__h2_on_send_data(nghttp2_session *s, nghttp2_frame *f, const uint8_t *framehd, size_t length,
                        nghttp2_data_source *source, void *user);
int nj__h2_on_stream_close(nghttp2_session *s, int32_t id, uint32_t error, void *user);
int nj__h2_on_frame_send(nghttp2_session *s, const nghttp2_frame *f, void *user);
int nj__h2_on_frame_not_send(nghttp2_session *s, const nghttp2_frame *f, int error, void *user);

/* ---- body_in.c ---- */

/* Somebody reads the body of this stream. */
bool nj__h2_body_wanted(const struct nj_h2_stream *st);
/* Bytes that nobody will consume: back to the connection's window with them. */
void nj__h2_body_give_back(struct nj_h2 *h, uint32_t n_bytes);
/* DATA or trailers came in good order: the end of the request, if they bear END_STREAM. */
void nj__h2_body_end(struct nj_h2 *h, const nghttp2_frame *f);
int nj__h2_on_data_chunk(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t n_bytes, void *user);

/* ---- late.c ---- */

/* The response is complete and the request is not. */
void nj__h2_late_begin(struct nj_h2_stream *st);
/* A DATA frame came: of a late stream? */
void nj__h2_late_came(struct nj_h2 *h, const nghttp2_frame *f);
/* No more patience: the connection is to end. */
void nj__h2_late_stop(struct nj_h2 *h);

/* ---- glitch.c ---- */

/* What one incident costs; limits.glitches_max is the budget. */
enum {
    NJ__H2_GLITCH = 1,      /* a frame that moved nothing */
    NJ__H2_GLITCH_BAD = 10, /* an error no working client makes */
};

/* Charge the peer. 0, or NGHTTP2_ERR_CALLBACK_FAILURE when the budget is used up. */
int nj__h2_glitch(struct nj_h2 *h, uint32_t cost);
/* The peer did something useful. */
void nj__h2_glitch_refund(struct nj_h2 *h);
/* A request head turned out good: give back what its HEADERS frame cost. */
void nj__h2_glitch_request(struct nj_h2 *h);
/* A DATA frame of `n_bytes` went out; `cut` when a window of the peer cut it short. */
void nj__h2_glitch_data_sent(struct nj_h2 *h, size_t n_bytes, bool cut);
/*
 * Follow the frame heads of the input before nghttp2 gets it. nghttp2 tells nothing about frames
 * that it ignores (unknown types, streams that are gone, the rest of a bad header block), and these
 * cost time too. -1 when the connection must end.
 */
int nj__h2_glitch_walk(struct nj_h2 *h, const uint8_t *data, size_t n_bytes);
/* nghttp2 took that input: charge the tiny frames it ignored. */
void nj__h2_glitch_ignored(struct nj_h2 *h);
/* A DATA frame of an open stream came to its end: charge it when it was nothing but padding. */
int nj__h2_glitch_data_came(struct nj_h2 *h, const nghttp2_frame *f);
int nj__h2_on_begin_frame(nghttp2_session *s, const nghttp2_frame_hd *hd, void *user);
int nj__h2_on_invalid_frame(nghttp2_session *s, const nghttp2_frame *f, int error, void *user);

#endif
