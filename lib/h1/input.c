/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: heads and bodies of requests (RFC 9112 2.2, 6, 7).
 *
 * A head that is complete in one input is parsed there. An incomplete one is collected in a buffer
 * that is freed when the head is complete. Bodies are passed on as they arrive.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "telem/counters_http.h"

/* Bytes that are appended to an incomplete head at once: those behind its end are copied in vain.
 */
#define COLLECT_BYTES 1024u

/* ---- the request ends ---- */

/* The last byte of the request was read. */
static void request_ends(struct nj_h1 *h)
{
    const struct nj_h1_events *ev = h->ctx->events;

    h->read = h->open ? NJ__H1_READ_DONE : NJ__H1_READ_HEAD;
    if (h->open && h->has_on_end && !h->reset && ev->on_end)
        ev->on_end(h->user, h);
}

/* ---- heads ---- */

/* RFC 9112 9.3 */
static bool keeps_alive(const struct nj__h1_head *head)
{
    if (head->says_close || head->is_connect)
        return false;
    return !head->is_1_0 || head->says_keep_alive;
}

static void begin_body(struct nj_h1 *h, const struct nj__h1_head *head)
{
    h->in_left = head->req.content_length;
    h->chunk = (struct nj__h1_chunk){0};
    h->read = head->is_chunked ? NJ__H1_READ_CHUNK
              : head->req.ends ? NJ__H1_READ_DONE
                               : NJ__H1_READ_CONTENT;
    h->has_on_end = !head->req.ends;
    h->awaits_continue = head->req.expects_continue;
}

static void begin_request(struct nj_h1 *h, struct nj__h1_head *head)
{
    struct nj_request_head *req = &head->req;

    h->number++;
    h->head_since = NJ_NEVER;
    h->empty_line_seen = false;
    h->is_1_0 = head->is_1_0;
    h->is_head = nj_str_eq(req->method, NJ_STR("HEAD"));
    h->keeps_alive = keeps_alive(head);
    if (head->is_origin_form)
        req->scheme = h->is_tls ? NJ_STR("https") : NJ_STR("http");
    nj_count(h->ctx->counters, NJ_C_requests);
    if (nj_unlikely(head->refuse_status)) {
        nj__h1_refuse(h, req, head->refuse_status, head->refuse_why);
        return;
    }
    begin_body(h, head);
    h->open = true;
    h->ctx->events->on_request(h->user, h, req);
    nj__h1_send_small_body(h);
}

/* The head is complete, or refused. */
static void head_parsed(struct nj_h1 *h, enum nj__h1_lines lines)
{
    struct nj__h1_head *head = &h->ctx->head;

    if (nj_likely(lines == NJ__H1_LINES_DONE))
        begin_request(h, head);
    else
        nj__h1_refuse(h, &head->req, head->refuse_status, head->refuse_why);
}

/* One empty line before a request is ignored (RFC 9112 2.2). */
static bool skips_empty_line(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    if (nj_likely(data[0] != '\r') || n < 2 || data[1] != '\n' || h->empty_line_seen)
        return false;
    h->empty_line_seen = true;
    return true;
}

/* The buffer has the begin of a head. Append bytes to it; returns how many belong to the head. */
static uint32_t collect_head(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    struct nj_h1_context *ctx = h->ctx;
    struct nj__h1_buf *b = &h->partial;
    uint32_t n_before = b->n;

    n = nj_min_u32(n, COLLECT_BYTES);
    if (!nj__h1_buf_append(h, b, data, n))
        return n;
    if (skips_empty_line(h, b->p, b->n)) {
        nj__h1_buf_free(h, b);
        return 2 - n_before;
    }
    enum nj__h1_lines rv = nj__h1_parse_lines(ctx, b->p, b->n, h->line_at, n_before, false);
    if (rv == NJ__H1_LINES_MORE) {
        h->line_at = ctx->head.n_used;
        return n;
    }
    rv = nj__h1_parse_head(ctx, b->p, b->n); /* as a whole */
    struct nj__h1_buf head = *b;
    *b = (struct nj__h1_buf){0};
    uint32_t n_used = rv == NJ__H1_LINES_DONE ? ctx->head.n_used - n_before : n;
    head_parsed(h, rv);
    nj__h1_buf_free(h, &head);
    return n_used;
}

static uint32_t take_head(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    if (h->partial.n > 0)
        return collect_head(h, data, n);
    if (skips_empty_line(h, data, n))
        return 2;
    enum nj__h1_lines rv = nj__h1_parse_head(h->ctx, data, n);
    if (nj_likely(rv != NJ__H1_LINES_MORE)) {
        uint32_t n_used = rv == NJ__H1_LINES_DONE ? h->ctx->head.n_used : n;
        head_parsed(h, rv);
        return n_used;
    }
    h->line_at = h->ctx->head.n_used;
    (void)nj__h1_buf_append(h, &h->partial, data, n);
    return n;
}

/* ---- bodies ---- */

/* Errors of the framing. */
static void refuse_body(struct nj_h1 *h, uint16_t status, nj_counter why)
{
    static const struct nj_request_head none;

    nj__h1_refuse(h, &none, status, why);
}

static uint32_t take_content(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    n = (uint32_t)nj_min_u64(n, h->in_left);
    h->awaits_continue = false;
    bool has_reader = h->open && h->ctx->events->on_data;
    if (has_reader) {
        n = nj_min_u32(n, NJ_H1_BODY_WINDOW_BYTES - h->n_held);
        h->n_held += n;
    }
    h->in_left -= n;
    if (has_reader)
        h->ctx->events->on_data(h->user, h, data, n);
    if (h->in_left > 0)
        return n;
    if (h->read == NJ__H1_READ_CONTENT)
        request_ends(h);
    else
        h->read = NJ__H1_READ_CHUNK;
    return n;
}

static uint32_t take_chunk_syntax(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    const uint8_t *at = data;

    h->awaits_continue = false;
    switch (nj__h1_chunk_parse(&h->chunk, &at, data + n)) {
    case NJ__H1_CHUNK_MORE:
        break;
    case NJ__H1_CHUNK_DATA:
        h->in_left = h->chunk.n_bytes;
        h->read = NJ__H1_READ_CHUNK_DATA;
        break;
    case NJ__H1_CHUNK_LAST:
        h->read = NJ__H1_READ_TRAILERS;
        break;
    case NJ__H1_CHUNK_LINE_END:
        refuse_body(h, 400, NJ_C_h1_line_end);
        break;
    case NJ__H1_CHUNK_BAD:
        refuse_body(h, 400, NJ_C_h1_chunk);
        break;
    }
    return (uint32_t)(at - data);
}

/* Trailers are checked and dropped (RFC 9112 7.1.2). */
static uint32_t take_trailers(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    struct nj_h1_context *ctx = h->ctx;
    struct nj__h1_buf *b = &h->partial;
    uint32_t n_before = b->n, line_at = n_before > 0 ? h->line_at : 0;

    n = nj_min_u32(n, COLLECT_BYTES);
    if (n_before > 0 && !nj__h1_buf_append(h, b, data, n))
        return n;
    enum nj__h1_lines rv =
        nj__h1_parse_lines(ctx, n_before > 0 ? b->p : data, n_before + n, line_at, n_before, true);
    if (rv == NJ__H1_LINES_MORE) {
        h->line_at = ctx->head.n_used;
        if (n_before == 0)
            (void)nj__h1_buf_append(h, b, data, n);
        return n;
    }
    nj__h1_buf_free(h, b);
    if (rv == NJ__H1_LINES_DONE) {
        n = ctx->head.n_used - n_before;
        request_ends(h);
    } else {
        refuse_body(h, ctx->head.refuse_status, ctx->head.refuse_why);
    }
    return n;
}

/* ---- input ---- */

static uint32_t take(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    switch ((enum nj__h1_read)h->read) {
    case NJ__H1_READ_CONTENT:
    case NJ__H1_READ_CHUNK_DATA:
        return take_content(h, data, n);
    case NJ__H1_READ_CHUNK:
        return take_chunk_syntax(h, data, n);
    case NJ__H1_READ_TRAILERS:
        return take_trailers(h, data, n);
    case NJ__H1_READ_DONE:
    case NJ__H1_READ_HEAD:
        break;
    }
    return take_head(h, data, n);
}

static uint32_t process(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    uint32_t at = 0;

    while (at < n && nj_h1_may_read(h)) {
        if (h->is_sent)
            nj__h1_response_sent(h); /* it is in the outbox: the next request can begin */
        if (h->ended || h->reset)
            return n;
        at += take(h, data + at, n - at);
    }
    return at;
}

static void process_kept(struct nj_h1 *h)
{
    struct nj__h1_buf *kept = &h->kept;

    /* A callback may end the connection, which frees the buffer. */
    struct nj__h1_buf b = *kept;
    *kept = (struct nj__h1_buf){0};
    h->kept_at += process(h, b.p + h->kept_at, b.n - h->kept_at);
    *kept = b;
    if (h->kept_at == kept->n || h->ended) {
        h->kept_at = 0;
        nj__h1_buf_free(h, kept);
    }
}

bool nj_h1_may_read(const struct nj_h1 *h)
{
    if (nj_unlikely(h->ended || h->reset))
        return true;
    if (nj__h1_n_unsent(h) >= NJ__H1_BATCH_BYTES)
        return false;
    if (h->read == NJ__H1_READ_DONE)
        return h->is_sent;
    return h->n_held < NJ_H1_BODY_WINDOW_BYTES;
}

uint32_t nj_h1_input(struct nj_h1 *h, const uint8_t *data, uint32_t n_bytes)
{
    uint32_t n_used = 0;

    NJ_ASSERT(!h->busy);
    h->busy = true;
    if (nj_unlikely(h->kept.n > 0))
        process_kept(h);
    if (h->kept.n == 0)
        n_used = process(h, data, n_bytes);
    h->busy = false;
    return n_used;
}

bool nj_h1_keep(struct nj_h1 *h, const uint8_t *data, uint32_t n_bytes)
{
    struct nj__h1_buf *kept = &h->kept;

    if (h->ended)
        return !h->write_closed;
    if (h->kept_at > 0) {
        memmove(kept->p, kept->p + h->kept_at, kept->n - h->kept_at);
        kept->n -= h->kept_at;
        h->kept_at = 0;
    }
    return nj__h1_buf_append(h, kept, data, n_bytes);
}

bool nj_h1_has_kept(const struct nj_h1 *h)
{
    return h->kept.n > 0;
}

void nj_h1_consume(struct nj_h1 *h, size_t n_bytes)
{
    h->n_held -= (uint32_t)nj_min_u64(h->n_held, n_bytes);
}

nj_ns nj_h1_unfinished_head_since(struct nj_h1 *h, nj_ns now)
{
    if (h->read != NJ__H1_READ_HEAD || h->partial.n == 0 || h->ended)
        h->head_since = NJ_NEVER;
    else if (h->head_since == NJ_NEVER)
        h->head_since = now;
    return h->head_since;
}

void nj_h1_end_for_timeout(struct nj_h1 *h)
{
    if (h->read == NJ__H1_READ_HEAD && !h->open && !h->ended && h->partial.n > 0)
        refuse_body(h, 408, NJ_C_h1_head_timeout);
    else
        nj_h1_drain(h);
}
