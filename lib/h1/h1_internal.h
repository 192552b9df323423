/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types and functions shared by the files of lib/h1. Only these files and their tests include it.
 *
 *   h1_context.c     state shared by all connections of a shard
 *   outbox.c         output that waits for room in the sink
 *   request_line.c   the request line
 *   request_head.c   lines of a head or of trailers, and what they say about the message
 *   chunk_syntax.c   sizes and extensions of chunks
 *   request_end.c    the end of the open request, and of all requests
 *   response_head.c  encoding of heads, and the cache of encoded heads
 *   response.c       responses: framing, 100 (Continue), trailers
 *   refusal.c        requests that the engine answers with an error
 *   output.c         output: the outbox, and bodies of responses
 *   input.c          input: heads and bodies of requests
 *   conn.c           start and end of a connection, and queries
 *
 * Each file calls only files that stand above it in this list.
 */
#pragma once

#include "base/byte_buffer.h"
#include "base/response_head.h"
#include "h1/h1.h"

/* With less room in the sink nothing is written. */
#define NJ__H1_SINK_ROOM_MIN      4096u
/* Size of the outbox's first buffer. */
#define NJ__H1_OUTBOX_BYTES_FIRST 4096u
/* Body pieces below this are copied into the outbox: cheaper than a reference. */
#define NJ__H1_COPY_BELOW_BYTES   512u
/* The size of a chunk and the line ends around its data. */
#define NJ__H1_CHUNK_BYTES        16u
/* With more bytes in the outbox the sink is called, and no input is read. */
#define NJ__H1_BATCH_BYTES                                                                         \
    (NJ__H1_OUTBOX_BYTES_FIRST - NJ__H1_COPY_BELOW_BYTES - NJ__H1_CHUNK_BYTES)
/* So many requests begin between two outputs: a pipeline delays other connections by no more. */
#define NJ__H1_BATCH_REQUESTS  4u
/* A connection goes on after a response that precedes the end of the request if at most this many
 * bytes of the request are still to come. */
#define NJ__H1_SKIP_BYTES_MAX  (64u * 1024u)
/* Extensions of all chunks of a request. */
#define NJ__H1_EXT_BYTES_MAX   1024u
/* A head that is remembered (request_head.c). */
#define NJ__H1_LAST_HEAD_MAX   1024u
/* The direct-mapped cache of encoded heads (response_head.c): 128 KiB. */
#define NJ__H1_CACHED_HEADS    256u
#define NJ__H1_CACHED_HEAD_MAX 488u

/* ---- h1_context.c ---- */

/* Fields that are allowed once. */
enum { NJ__H1_HOST, NJ__H1_LENGTH, NJ__H1_CODING, NJ__H1_N_ONCE };

/* A parsed head. Its strings are valid until the next head of any connection is parsed. */
struct nj__h1_head {
    uint16_t refuse_status; /* 0: the request is not refused */
    nj_counter refuse_why;
    uint32_t n_used;            /* bytes of the lines that were parsed */
    uint32_t n_bytes, n_fields; /* as in struct nj_h1_limits */
    uint32_t n_scratch;         /* bytes of nj_h1_context.scratch in use */
    bool is_trailer_section, over_limit, is_connect, is_chunked;
    bool is_origin_form;                  /* the target has neither scheme nor authority */
    bool says_close, says_keep_alive;     /* options of Connection */
    bool expects_continue, expects_other; /* RFC 9110 10.1.1: 100-continue; anything else */
    struct nj_str once[NJ__H1_N_ONCE];    /* the first value of each */
    uint32_t n_once[NJ__H1_N_ONCE];       /* how often they occur */
    struct nj_request_head req;           /* last: its `header` is not cleared */
};

struct nj__h1_cached_head {
    uint64_t stamp;  /* 0: none */
    uint64_t length; /* the value of Content-Length, or NJ_BODY_LEN_UNKNOWN */
    uint16_t n_bytes;
    uint8_t bytes[NJ__H1_CACHED_HEAD_MAX];
};

struct nj_h1_context {
    const struct nj_h1_events *events;
    struct nj_counters *counters;
    struct nj_alloc *alloc;
    struct nj_h1_limits limits;
    uint32_t n_conns, n_last_head; /* n_last_head: if not 0, of the bytes that `head` is from */
    struct nj_field *fields;       /* of the current head: limits.header_fields_max */
    char *scratch;                 /* its names in lower case: limits.header_bytes_max + 1 */
    struct nj__h1_head head;
    uint8_t last_head[NJ__H1_LAST_HEAD_MAX];
    struct nj__h1_cached_head cached[NJ__H1_CACHED_HEADS];
};

/* ---- a connection ---- */

/* The part of a request that is read next. DONE: none, since its response is not complete. */
enum nj__h1_read {
    NJ__H1_READ_HEAD,
    NJ__H1_READ_CONTENT, /* the rest of a body of known length */
    NJ__H1_READ_CHUNK,   /* chunk syntax */
    NJ__H1_READ_CHUNK_DATA,
    NJ__H1_READ_TRAILERS,
    NJ__H1_READ_DONE
};

/* How the end of a response's body is known (RFC 9112 6.3). */
enum nj__h1_framing { NJ__H1_NO_BODY, NJ__H1_BY_LENGTH, NJ__H1_CHUNKED, NJ__H1_BY_CLOSE };

struct nj__h1_chunk_line {
    uint64_t n_bytes; /* of the chunk's data */
    uint16_t n_ext;   /* bytes of extensions so far */
    uint8_t state, n_digits;
};

/* Fields are in order of use. */
struct nj_h1 {
    struct nj_h1_context *ctx;
    void *user, *request_user;
    uint8_t read, framing; /* enum nj__h1_read; enum nj__h1_framing, once the response is given */
    bool is_tls, is_secured, busy; /* busy: nj_h1_input() or nj_h1_output() is running */
    bool open, refusing;           /* a request was passed to on_request; to on_refused just now */
    bool has_response, is_sent;    /* of it; is_sent: it is in the outbox completely */
    bool deferred;                 /* its body had no bytes; until nj_h1_resume() */
    bool reset;                    /* nj_h1_reset() was called, or the response has failed */
    bool last, ended;              /* no request follows the current one; no request will be read */
    bool write_closed;             /* no more output is possible: out of memory, or closed */
    bool must_reset;               /* nj_h1_must_reset() */
    bool rest_may_come;            /* nj_h1_rest_may_come(), if the last request has a rest */
    bool is_1_0, is_head;          /* of the request */
    bool keeps_alive, has_on_end;  /* it permits another one (RFC 9112 9.3); it has a body */
    bool awaits_continue;          /* it expects 100 (Continue), and no body has come */
    bool empty_line_seen;          /* before the request line */
    struct nj_body *body;
    struct nj_buf out; /* the outbox: unsent bytes begin at out_at; freed when there are none */
    uint32_t out_at;
    uint32_t number;        /* of requests */
    uint32_t n_batch;       /* requests since the last output */
    struct nj_buf trailers; /* encoded, of the response */
    uint64_t out_left;      /* bytes of the response's body to be sent, or NJ_BODY_LEN_UNKNOWN */
    uint64_t in_left;       /* bytes of the request's body, or of its chunk, to be received */
    uint32_t n_held;        /* bytes passed to on_data that are not consumed */
    struct nj__h1_chunk_line chunk;
    /* An incomplete head or trailer section, of which n_seen bytes were parsed in vain and the line
     * at line_at is not complete. Behind it, or alone: bytes of nj_h1_keep(). */
    struct nj_buf in; /* unread bytes begin at in_at */
    uint32_t in_at, n_seen, line_at;
    nj_ns unfinished_since;          /* nj_h1_unfinished_since() */
    const struct nj_byte_sink *sink; /* during nj_h1_output(), else NULL */
    void *sink_ctx;
};
_Static_assert(sizeof(struct nj_h1) <= 256, "the memory of an idle connection");

/* ---- outbox.c ---- */

/* False: nothing more can be read or sent, since memory is exhausted. Returns `ok`. */
bool nj__h1_check_memory(struct nj_h1 *h, bool ok);
/* Ensure room for `n_bytes` in the outbox. Returns where they begin, or NULL. The caller adds the
 * bytes that it has written to out.n. */
uint8_t *nj__h1_out_room(struct nj_h1 *h, uint32_t n_bytes);
bool nj__h1_out_append(struct nj_h1 *h, const void *from, uint32_t n);

/* Bytes of the outbox that the sink has not got yet. */
static inline uint32_t nj__h1_n_unsent(const struct nj_h1 *h)
{
    return h->out.n - h->out_at;
}

/* ---- request_line.c ---- */

/* Record why a head is refused. Returns false. */
static inline bool nj__h1_refuse_head(struct nj__h1_head *head, uint16_t status, nj_counter why)
{
    head->refuse_status = status;
    head->refuse_why = why;
    return false;
}

/* Parse a request line without its CRLF (RFC 9112 3). `scratch` has room for its target and one
 * byte. False: it is refused. */
bool nj__h1_parse_request_line(struct nj__h1_head *head, char *scratch, struct nj_str line);

/* ---- request_head.c ---- */

enum nj__h1_lines { NJ__H1_LINES_MORE, NJ__H1_LINES_DONE, NJ__H1_LINES_BAD };

/* Parse a request head into ctx->head. The result does not depend on how its bytes were divided
 * into inputs. MORE: it is not complete, and head.n_used is the next line_at. */
enum nj__h1_lines nj__h1_parse_head(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n);
/* Parse the lines of an incomplete head or trailer section, of which all before `at` are complete
 * and valid, and the first `n_seen` bytes have no line end behind `at`. If the result is not MORE,
 * it must be parsed as a whole. */
enum nj__h1_lines nj__h1_parse_lines(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n,
                                     uint32_t at, uint32_t n_seen, bool is_trailer_section);

/* ---- chunk_syntax.c ---- */

/* MORE: all bytes are used. DATA: n_bytes of data follow, or the trailer section if there are none.
 * LINE_END: a bare CR or LF, or no CRLF behind data. BAD: any other error. */
enum nj__h1_chunk { NJ__CHUNK_MORE, NJ__CHUNK_DATA, NJ__CHUNK_LINE_END, NJ__CHUNK_BAD };

/* Parse chunk syntax (RFC 9112 7.1) up to the data of the chunk, from *data on. Begins with zeros;
 * called again when the data was used. */
enum nj__h1_chunk nj__h1_chunk_parse(struct nj__h1_chunk_line *c, const uint8_t **data,
                                     const uint8_t *end);

/* ---- request_end.c ---- */

void nj__h1_body_close(struct nj_h1 *h);
/* The open or refused request ends. Unless the response is complete, and another request may
 * follow, the connection ends, too. */
void nj__h1_request_close(struct nj_h1 *h, bool complete);
/* Free what was collected of the input. */
void nj__h1_drop_input(struct nj_h1 *h);
/* No request will be read. */
void nj__h1_end(struct nj_h1 *h);

/* ---- response_head.c ---- */

/* Append the status line and the fields of a head to the outbox, with room for `n_more` bytes
 * behind them. *length: the value of Content-Length, or NJ_BODY_LEN_UNKNOWN. */
bool nj__h1_put_head(struct nj_h1 *h, uint16_t status, const struct nj_field *fields,
                     uint32_t n_fields, uint64_t stamp, uint32_t n_more, uint64_t *length);
/* The same for a cached head. False: it is not cached, or memory is exhausted. */
bool nj__h1_put_cached_head(struct nj_h1 *h, uint64_t stamp, uint32_t n_more, uint64_t *length);

/* ---- refusal.c ---- */

/* Count `why`, and report that it was the client. */
void nj__h1_count_refusal(struct nj_h1 *h, nj_counter why);
/* Count the refusal, respond with `status` unless a response has begun, and end the connection.
 * `req` is NULL if nothing of the head can be shown. */
void nj__h1_refuse(struct nj_h1 *h, const struct nj_request_head *req, uint16_t status,
                   nj_counter why);

/* ---- output.c ---- */

/* Move a small response body into the outbox, so that the next request can be processed. */
void nj__h1_send_small_body(struct nj_h1 *h);
