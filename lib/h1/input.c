/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: heads and bodies of requests (RFC 9112 2.2, 6, 7).
 *
 * A head that is complete in one input is parsed there. An incomplete one is collected in a buffer
 * that is freed when the head is complete. Bodies are passed on as they arrive.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "telem/counters_http.h"

/* Bytes that are appended at once to what was collected: those behind a head are copied in vain. */
#define COLLECT_BYTES 1024u

/* ---- heads ---- */

/* Pass a head on, or refuse it. A target without a scheme has that of the connection (RFC 9112
 * 3.3); the scheme https needs a connection that is secured (RFC 9110 7.4). */
static void begin_request(struct nj_h1 *h, struct nj__h1_head *head)
{
    struct nj_request_head *req = &head->req;

    h->is_1_0 = req->version == NJ_HTTP_1_0;
    h->is_head = nj_str_eq(req->method, NJ_STR("HEAD"));
    h->keeps_alive = !head->says_close && !head->is_connect &&
                     (!h->is_1_0 || head->says_keep_alive); /* RFC 9112 9.3 */
    if (head->is_origin_form)
        req->scheme = h->is_tls ? NJ_STR("https") : NJ_STR("http");
    if (nj_unlikely(head->refuse_status > 0)) {
        nj__h1_refuse(h, req, head->refuse_status, head->refuse_why);
        return;
    }
    if (nj_unlikely(!h->is_secured && nj_str_eq(req->scheme, NJ_STR("https")))) {
        nj__h1_refuse(h, req, 421, NJ_C_h1_target);
        return;
    }
    nj_count(h->ctx->counters, NJ_C_requests);
    h->number++;
    h->n_batch++;
    h->in_left = req->content_length;
    h->chunk = (struct nj__h1_chunk_line){0};
    h->read = head->is_chunked ? NJ__H1_READ_CHUNK
              : req->ends      ? NJ__H1_READ_DONE
                               : NJ__H1_READ_CONTENT;
    h->has_on_end = !req->ends;
    h->awaits_continue = head->expects_continue && !req->ends;
    h->open = true;
    h->ctx->events->on_request(h->user, h, req);
    nj__h1_send_small_body(h);
}

/* The head or trailer section is not complete. */
static uint32_t await_more(struct nj_h1 *h, uint32_t n)
{
    h->line_at = h->ctx->head.n_used;
    h->n_seen = n;
    return 0;
}

/* The lines that were awaited are complete, or one of them is refused. */
static void end_lines(struct nj_h1 *h)
{
    h->line_at = h->n_seen = 0;
    h->unfinished_since = NJ_NEVER;
}

/* One empty line before a request is ignored (RFC 9112 2.2). */
static uint32_t take_head(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    struct nj_h1_context *ctx = h->ctx;
    struct nj__h1_head *head = &ctx->head;

    if (nj_unlikely(data[0] == '\r') && n >= 2 && data[1] == '\n' && !h->empty_line_seen) {
        h->empty_line_seen = true;
        end_lines(h);
        return 2;
    }
    if (nj_unlikely(h->n_seen > 0) &&
        nj__h1_parse_lines(ctx, data, n, h->line_at, h->n_seen, false) == NJ__H1_LINES_MORE)
        return await_more(h, n);
    enum nj__h1_lines rv = nj__h1_parse_head(ctx, data, n);
    if (nj_unlikely(rv == NJ__H1_LINES_MORE))
        return await_more(h, n);
    end_lines(h);
    h->empty_line_seen = false;
    begin_request(h, head);
    return h->ended ? n : head->n_used;
}

/* ---- bodies ---- */

/* The last byte of the request was read. */
static void end_request(struct nj_h1 *h)
{
    const struct nj_h1_events *ev = h->ctx->events;

    h->read = h->open ? NJ__H1_READ_DONE : NJ__H1_READ_HEAD;
    h->unfinished_since = NJ_NEVER;
    if (h->open && h->has_on_end && !h->reset && ev->on_end)
        ev->on_end(h->user, h);
    nj__h1_send_small_body(h);
}

static uint32_t take_content(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    bool has_reader = h->open && h->ctx->events->on_data;

    n = (uint32_t)nj_min_u64(n, h->in_left);
    n = nj_min_u32(n, has_reader ? NJ_H1_BODY_WINDOW_BYTES - h->n_held : n);
    h->in_left -= n;
    if (has_reader) {
        h->n_held += n;
        h->ctx->events->on_data(h->user, h, data, n);
    }
    if (h->in_left == 0 && h->read == NJ__H1_READ_CHUNK_DATA)
        h->read = NJ__H1_READ_CHUNK;
    else if (h->in_left == 0)
        end_request(h);
    return n;
}

/* RFC 9112 7.1.3 */
static uint32_t take_chunk_syntax(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    const uint8_t *at = data;
    enum nj__h1_chunk rv = nj__h1_chunk_parse(&h->chunk, &at, data + n);

    h->in_left = h->chunk.n_bytes;
    if (rv == NJ__CHUNK_DATA)
        h->read = h->in_left > 0 ? NJ__H1_READ_CHUNK_DATA : NJ__H1_READ_TRAILERS;
    else if (rv != NJ__CHUNK_MORE)
        nj__h1_refuse(h, NULL, 400, rv == NJ__CHUNK_BAD ? NJ_C_h1_chunk : NJ_C_h1_line_end);
    return (uint32_t)(at - data);
}

/* Trailers are checked and dropped (RFC 9112 7.1.2, RFC 9110 6.5.1). */
static uint32_t take_trailers(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    struct nj__h1_head *head = &h->ctx->head;

    if (nj__h1_parse_lines(h->ctx, data, n, h->line_at, h->n_seen, true) == NJ__H1_LINES_MORE)
        return await_more(h, n);
    if (nj_unlikely(h->line_at > 0)) /* as a whole, for the limits */
        (void)nj__h1_parse_lines(h->ctx, data, n, 0, 0, true);
    end_lines(h);
    n = head->n_used;
    if (head->refuse_status)
        nj__h1_refuse(h, NULL, head->refuse_status, head->refuse_why);
    else
        end_request(h);
    return n;
}

/* ---- input ---- */

/* Returns how many bytes were used. 0: more are needed. */
static uint32_t take(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    h->awaits_continue = false; /* some of the body has come */
    if (h->read == NJ__H1_READ_CONTENT || h->read == NJ__H1_READ_CHUNK_DATA)
        return take_content(h, data, n);
    if (h->read == NJ__H1_READ_CHUNK)
        return take_chunk_syntax(h, data, n);
    return h->read == NJ__H1_READ_TRAILERS ? take_trailers(h, data, n) : take_head(h, data, n);
}

static uint32_t process(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    uint32_t at = 0, n_used = 1;

    while (at < n && n_used > 0 && nj_h1_may_read(h)) {
        if (h->is_sent)
            nj__h1_request_close(h, true); /* it is in the outbox: the next request can begin */
        if (h->ended || h->reset)
            return n;
        n_used = take(h, data + at, n - at);
        at += n_used;
    }
    return at;
}

/* Process what was collected with `n` more bytes. Returns how many of these were used. */
static uint32_t process_collected(struct nj_h1 *h, const uint8_t *data, uint32_t n)
{
    nj_h1_keep(h, data, n);
    struct nj_buf b = h->in; /* the connection may end meanwhile */
    uint32_t at = h->in_at;
    h->in = (struct nj_buf){0};
    at += process(h, b.p + at, b.n - at);
    uint32_t n_back = nj_h1_may_read(h) ? 0 : nj_min_u32(n, b.n - at); /* the owner holds them */
    b.n -= n_back;
    h->in = b;
    h->in_at = at;
    if (at == b.n || h->ended)
        nj__h1_drop_input(h);
    return n - n_back;
}

uint32_t nj_h1_input(struct nj_h1 *h, const uint8_t *data, uint32_t n_bytes)
{
    uint32_t at = 0;

    NJ_ASSERT(!h->busy);
    h->busy = true;
    while (h->in.n > 0 && (at < n_bytes || nj_h1_has_kept(h)) && nj_h1_may_read(h))
        at += process_collected(h, data + at, nj_min_u32(n_bytes - at, COLLECT_BYTES));
    if (h->in.n == 0)
        at += process(h, data + at, n_bytes - at);
    if (at < n_bytes && nj_h1_may_read(h)) {
        nj_h1_keep(h, data + at, n_bytes - at);
        at = n_bytes;
    }
    h->busy = false;
    return at;
}

/* A pipelined request is not read before the response to the one before it is complete, so that
 * responses are in order (RFC 9112 9.2, 9.3.2). */
bool nj_h1_may_read(const struct nj_h1 *h)
{
    if (nj_unlikely(h->ended || h->reset))
        return true;
    if (nj__h1_n_unsent(h) >= NJ__H1_BATCH_BYTES)
        return false;
    if (h->read == NJ__H1_READ_HEAD || h->read == NJ__H1_READ_DONE)
        return h->n_batch < NJ__H1_BATCH_REQUESTS && (!h->open || h->is_sent);
    return h->n_held < NJ_H1_BODY_WINDOW_BYTES;
}

void nj_h1_keep(struct nj_h1 *h, const uint8_t *data, uint32_t n_bytes)
{
    if (n_bytes > 0 && h->in_at > 0) {
        h->in.n -= h->in_at;
        memmove(h->in.p, h->in.p + h->in_at, h->in.n);
        h->in_at = 0;
    }
    if (h->ended || nj_buf_append(h->ctx->alloc, &h->in, data, n_bytes, 0, true))
        return;
    if (h->read != NJ__H1_READ_DONE)
        nj_h1_reset(h);
    h->last = h->ended = true; /* nj_h1_input() frees what was collected */
}

bool nj_h1_has_kept(const struct nj_h1 *h)
{
    return h->in.n - h->in_at > h->n_seen;
}

void nj_h1_consume(struct nj_h1 *h, size_t n_bytes)
{
    h->n_held -= (uint32_t)nj_min_u64(h->n_held, n_bytes);
}

nj_ns nj_h1_unfinished_since(struct nj_h1 *h, nj_ns now)
{
    bool skips = !h->open && !h->ended && h->read == NJ__H1_READ_CONTENT;

    h->unfinished_since = h->n_seen > 0 || skips ? nj_min_u64(h->unfinished_since, now) : NJ_NEVER;
    return h->unfinished_since;
}

/* RFC 9112 8, 9.5 */
void nj_h1_end_for_timeout(struct nj_h1 *h)
{
    if (h->n_seen > 0)
        nj__h1_refuse(h, NULL, 408, NJ_C_h1_head_timeout);
    else if (!h->ended && !h->reset)
        nj__h1_count_refusal(h, NJ_C_h1_slow);
    h->rest_may_come = false;
    nj_h1_reset(h);
    nj_h1_drain(h, false);
}
