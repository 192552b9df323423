/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses: how the body is framed (RFC 9112 6, 7), whether the connection goes on (9.3, 9.6), 100
 * (Continue), and trailers. A head is encoded into the outbox at once.
 */
#include "h1/h1_internal.h"

#include "base/assert.h"
#include "base/field_line.h"
#include "telem/counters_http.h"

/* What is appended to a head: its framing, Connection, and the empty line. */
#define HEAD_END_MAX 128u

/* ---- framing ---- */

/* RFC 9112 6.3, RFC 9110 6.4.1, 8.6, 9.3.2. `length`: the value of Content-Length among the fields
 * of the caller. */
static enum nj__h1_framing choose_framing(struct nj_h1 *h, uint16_t status, uint64_t length)
{
    uint64_t n_bytes = h->body ? h->body->ops->remaining(h->body) : 0;
    bool has_content = !h->is_head && status != 204 && status != 304;

    h->out_left = length != NJ_BODY_LEN_UNKNOWN ? length : n_bytes;
    if (n_bytes == 0 || !has_content)
        nj__h1_body_close(h);
    if (!has_content)
        return NJ__H1_NO_BODY;
    if (h->out_left == NJ_BODY_LEN_UNKNOWN)
        return h->is_1_0 ? NJ__H1_BY_CLOSE : NJ__H1_CHUNKED;
    h->last |= n_bytes != NJ_BODY_LEN_UNKNOWN && n_bytes != h->out_left; /* cut, or incomplete */
    return NJ__H1_BY_LENGTH;
}

/* The response precedes the end of the request, and the rest of the request is not worth reading:
 * the client may not even send it, while it waits for 100 (Continue), also in vain as in HTTP/1.0
 * (RFC 9110 10.1.1), or since it is too slow (408: 15.5.9). */
static bool gives_up_request(const struct nj_h1 *h, uint16_t status)
{
    return nj_unlikely(h->read != NJ__H1_READ_DONE) && !h->refusing &&
           (h->awaits_continue || status == 408 || h->read != NJ__H1_READ_CONTENT ||
            h->in_left > NJ__H1_SKIP_BYTES_MAX);
}

/* Complete the head in the outbox, which has room for HEAD_END_MAX bytes. It has Content-Length or
 * Transfer-Encoding, never both (RFC 9112 6.1, 6.2). */
static void put_head_end(struct nj_h1 *h, uint64_t length)
{
    char digits[NJ_U64_DIGITS_MAX];
    uint8_t *to = h->out.p + h->out.n;

    if (h->framing == NJ__H1_BY_LENGTH && length == NJ_BODY_LEN_UNKNOWN) {
        to = nj_str_put(to, NJ_STR("Content-Length: "));
        to = nj_str_put(to, nj_str_of_u64(digits, h->out_left));
        to = nj_str_put(to, NJ_STR("\r\n"));
    } else if (h->framing == NJ__H1_CHUNKED) {
        to = nj_str_put(to, NJ_STR("Transfer-Encoding: chunked\r\n"));
    }
    if (nj_unlikely(h->last))
        to = nj_str_put(to, NJ_STR("Connection: close\r\n"));
    else if (h->is_1_0)
        to = nj_str_put(to, NJ_STR("Connection: keep-alive\r\n"));
    to = nj_str_put(to, NJ_STR("\r\n"));
    h->out.n = (uint32_t)(to - h->out.p);
}

/* ---- responses ---- */

/* The status line and the fields of the caller are in the outbox. */
static void complete_head(struct nj_h1 *h, uint16_t status, uint64_t length, struct nj_body *body)
{
    h->has_response = true;
    h->rest_may_come = !h->refusing && status != 408;
    h->body = body;
    h->framing = (uint8_t)choose_framing(h, status, length);
    h->last |= !h->keeps_alive || h->framing == NJ__H1_BY_CLOSE || gives_up_request(h, status);
    put_head_end(h, length);
    nj_count_status(h->ctx->counters, status);
    h->is_sent = h->framing == NJ__H1_NO_BODY || (!h->body && h->out_left == 0);
}

int nj_h1_respond(struct nj_h1 *h, uint16_t status, const struct nj_field *fields,
                  uint32_t n_fields, uint64_t stamp, struct nj_body *body)
{
    uint64_t length;

    NJ_ASSERT((h->open || h->refusing) && !h->has_response);
    NJ_ASSERT(status >= 200 && status <= 599 && n_fields <= NJ_RESP_HEAD_SENT_MAX);
    if (nj_likely(!h->reset) &&
        nj__h1_put_head(h, status, fields, n_fields, stamp, HEAD_END_MAX, &length)) {
        complete_head(h, status, length, body);
        return 0;
    }
    h->has_response = true; /* but nothing will be sent */
    if (body)
        body->ops->close(body);
    return h->write_closed ? -1 : 0;
}

bool nj_h1_respond_cached(struct nj_h1 *h, uint16_t status, uint64_t stamp, struct nj_body *body)
{
    uint64_t length;

    NJ_ASSERT(h->open && !h->has_response && stamp > 0);
    if (nj_unlikely(h->reset) || !nj__h1_put_cached_head(h, stamp, HEAD_END_MAX, &length))
        return false;
    complete_head(h, status, length, body);
    return true;
}

void nj_h1_send_continue(struct nj_h1 *h)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (h->open && !h->has_response && !h->reset && h->awaits_continue && !h->is_1_0)
        h->awaits_continue = !nj__h1_out_append(h, text, sizeof text - 1);
}

void nj_h1_resume(struct nj_h1 *h)
{
    h->deferred = false;
}

int nj_h1_set_trailers(struct nj_h1 *h, const struct nj_field *fields, size_t n_fields)
{
    struct nj_buf *b = &h->trailers;

    NJ_ASSERT(b->n == 0 && n_fields <= NJ_RESP_HEAD_SENT_MAX);
    if (!h->open || h->is_sent || h->reset || h->write_closed)
        return -1;
    for (size_t i = 0; i < n_fields; i++) {
        uint32_t n = nj_field_line_bytes(&fields[i]);
        if (!nj__h1_check_memory(h, nj_buf_reserve(h->ctx->alloc, b, n, 0, false)))
            return -1;
        b->n = (uint32_t)(nj_field_line_put(b->p + b->n, &fields[i]) - b->p);
    }
    return 0;
}
