/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses: how the body is framed (RFC 9112 6, 7), whether the connection goes on (9.3, 9.6), 100
 * (Continue), and trailers. A head is encoded into the outbox at once.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "telem/counters_http.h"

/* What is appended to a head: its framing, Connection, and the empty line. */
#define HEAD_END_MAX 128u

/* Trailers, stored until the end of the body. */
struct nj__h1_trailers {
    uint32_t n_bytes;
    uint8_t bytes[];
};

/* ---- framing ---- */

static bool has_body(const struct nj_h1 *h, uint16_t status)
{
    return !h->is_head && status != 204 && status != 304;
}

/* `length`: the value of Content-Length among the fields of the caller. */
static enum nj__h1_framing choose_framing(struct nj_h1 *h, uint16_t status, uint64_t length)
{
    uint64_t n_bytes = h->body ? h->body->ops->remaining(h->body) : 0;

    if (n_bytes == 0 || !has_body(h, status))
        nj__h1_body_close(h);
    if (!has_body(h, status))
        return NJ__H1_NO_BODY;
    h->out_left = UINT64_MAX;
    if (length == NJ__H1_LENGTH_UNKNOWN && n_bytes == NJ_BODY_LEN_UNKNOWN)
        return h->is_1_0 ? NJ__H1_BY_CLOSE : NJ__H1_CHUNKED;
    h->out_left = length != NJ__H1_LENGTH_UNKNOWN ? length : n_bytes;
    if (nj_unlikely(h->out_left != n_bytes && n_bytes != NJ_BODY_LEN_UNKNOWN))
        h->last = true; /* it is cut, or incomplete */
    return NJ__H1_BY_LENGTH;
}

/* The response precedes the end of the request, and the rest of the request is not worth reading:
 * the client may not even send it, while it waits for 100 (Continue) (RFC 9110 10.1.1). */
static bool gives_up_request(const struct nj_h1 *h)
{
    if (nj_likely(h->read == NJ__H1_READ_DONE) || h->refusing)
        return false;
    return h->awaits_continue || h->read != NJ__H1_READ_CONTENT ||
           h->in_left > NJ__H1_SKIP_BYTES_MAX;
}

static uint8_t *put_length(uint8_t *to, uint64_t length)
{
    char digits[NJ_U64_DIGITS_MAX];

    to = nj__h1_put_str(to, NJ_STR("Content-Length: "));
    to = nj__h1_put_str(to, nj_str_of_u64(digits, length));
    return nj__h1_put_str(to, NJ_STR("\r\n"));
}

/* Complete the head in the outbox, which has room for HEAD_END_MAX bytes. */
static void put_head_end(struct nj_h1 *h, uint64_t length)
{
    uint8_t *begin = h->out.p + h->out.n, *to = begin;

    if (h->framing == NJ__H1_BY_LENGTH && length == NJ__H1_LENGTH_UNKNOWN)
        to = put_length(to, h->out_left);
    else if (h->framing == NJ__H1_CHUNKED)
        to = nj__h1_put_str(to, NJ_STR("Transfer-Encoding: chunked\r\n"));
    if (nj_unlikely(h->last))
        to = nj__h1_put_str(to, NJ_STR("Connection: close\r\n"));
    else if (h->is_1_0)
        to = nj__h1_put_str(to, NJ_STR("Connection: keep-alive\r\n"));
    to = nj__h1_put_str(to, NJ_STR("\r\n"));
    h->out.n += (uint32_t)(to - begin);
}

/* ---- responses ---- */

/* The response is given. False: nothing more may be sent. */
static bool begin_response(struct nj_h1 *h, struct nj_body *body)
{
    NJ_ASSERT((h->open || h->refusing) && !h->has_response);
    h->has_response = true;
    h->framing = NJ__H1_NO_BODY;
    h->body = body;
    if (nj_likely(!h->write_closed && !h->reset))
        return true;
    nj__h1_body_close(h);
    return false;
}

/* The status line and the fields of the caller are in the outbox. */
static void complete_head(struct nj_h1 *h, uint16_t status, uint64_t length)
{
    enum nj__h1_framing framing = choose_framing(h, status, length);

    h->framing = (uint8_t)framing;
    h->last |= !h->keeps_alive || framing == NJ__H1_BY_CLOSE || gives_up_request(h);
    put_head_end(h, length);
    nj_count_status(h->ctx->counters, status);
    h->is_sent = !h->body && (framing != NJ__H1_BY_LENGTH || h->out_left == 0);
}

int nj_h1_respond(struct nj_h1 *h, uint16_t status, const struct nj_field *fields,
                  uint32_t n_fields, uint64_t stamp, struct nj_body *body)
{
    uint64_t length;

    NJ_ASSERT(status >= 200 && status <= 599 && n_fields <= NJ__H1_RESPONSE_FIELDS_MAX);
    if (nj_unlikely(!begin_response(h, body)))
        return h->write_closed ? -1 : 0;
    if (!nj__h1_put_head(h, status, fields, n_fields, stamp, HEAD_END_MAX, &length)) {
        nj__h1_body_close(h);
        return -1;
    }
    complete_head(h, status, length);
    return 0;
}

bool nj_h1_respond_cached(struct nj_h1 *h, uint16_t status, uint64_t stamp, struct nj_body *body)
{
    uint64_t length;

    NJ_ASSERT(stamp > 0);
    if (nj_unlikely(h->write_closed || h->reset) ||
        !nj__h1_put_cached_head(h, stamp, HEAD_END_MAX, &length))
        return false;
    begin_response(h, body);
    complete_head(h, status, length);
    return true;
}

void nj_h1_send_continue(struct nj_h1 *h)
{
    static const struct nj_str text = NJ_STR_INIT("HTTP/1.1 100 Continue\r\n\r\n");

    if (!h->open || h->has_response || h->reset || !h->awaits_continue)
        return;
    h->awaits_continue = false;
    uint8_t *p = nj__h1_out_room(h, text.n_bytes);
    if (p)
        h->out.n += (uint32_t)(nj__h1_put_str(p, text) - p);
}

void nj_h1_resume(struct nj_h1 *h)
{
    h->deferred = false;
}

bool nj_h1_is_blocked_by_body(const struct nj_h1 *h)
{
    return h->deferred && !h->reset && !h->write_closed;
}

/* ---- trailers ---- */

int nj_h1_set_trailers(struct nj_h1 *h, const struct nj_field *fields, size_t n_fields)
{
    size_t n_max = 0;

    NJ_ASSERT(!h->trailers && n_fields <= NJ__H1_RESPONSE_FIELDS_MAX);
    if (!h->open || h->is_sent || h->reset || h->write_closed)
        return -1;
    for (size_t i = 0; i < n_fields; i++)
        n_max += (size_t)fields[i].name.n_bytes + fields[i].value.n_bytes + 4;
    h->trailers = nj_alloc_take(h->ctx->alloc, sizeof *h->trailers + n_max);
    if (!h->trailers) {
        nj__h1_out_of_memory(h);
        return -1;
    }
    uint8_t *to = h->trailers->bytes;
    for (size_t i = 0; i < n_fields; i++)
        to = nj__h1_put_field(to, &fields[i]);
    h->trailers->n_bytes = (uint32_t)(to - h->trailers->bytes);
    return 0;
}

bool nj__h1_put_last_chunk(struct nj_h1 *h)
{
    const struct nj__h1_trailers *t = h->trailers;
    uint8_t *p = nj__h1_out_room(h, (t ? t->n_bytes : 0) + 5);

    if (!p)
        return false;
    uint8_t *to = nj__h1_put_str(p, NJ_STR("0\r\n"));
    if (t)
        to = nj__h1_put_str(to, (struct nj_str){(const char *)t->bytes, t->n_bytes});
    to = nj__h1_put_str(to, NJ_STR("\r\n"));
    h->out.n += (uint32_t)(to - p);
    return true;
}
