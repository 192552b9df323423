/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends an exchange's response to its stream: head, body, trailers, errors. A response that ended
 * before its head was sent gets a content-length, and its last DATA frame ends the stream.
 */
#include "base/limits.h"
#include "http/files/file_server.h"
#include "http/handlers/exchange_state.h"
#include "http/http_options.h"
#include "http/request_admission.h"
#include "http/response_head.h"

/* --- the head --- */

/* True if the head has a content-length. RFC 9110 8.6: none in a 204; in a 304 it would be that of
 * the 200. */
static bool has_length(const struct nj_exchange *x)
{
    const struct nj_response *resp = &x->resp;

    if (resp->status == 204)
        return false;
    if (resp->declared_length != NJ_BODY_LEN_UNKNOWN)
        return true;
    return (resp->ended || resp->is_final) && resp->trailers.n == 0 && resp->status != 304;
}

static void send_head(struct nj_exchange *x)
{
    const struct nj_response *resp = &x->resp;
    bool whole = resp->ended && (resp->trailers.n == 0 || x->req.is_head);
    bool empty = x->req.is_head || resp->status == 204 || resp->status == 304 ||
                 (whole && resp->out.n_bytes == 0 && resp->borrowed.n_bytes == 0);
    struct nj_resp_head r;
    char digits[NJ_U64_DIGITS_MAX];

    x->head_sent = true;
    x->has_new_bytes = false;
    x->end_sent = whole;
    x->body_open = !empty;
    r.n_given = r.n_fields = nj__resp_fields_views(&resp->fields, r.fields + NJ_RESP_HEAD_OWN);
    if (has_length(x))
        nj_resp_head_add(&r, NJ_STR("content-length"),
                         nj_str_of_u64(digits, resp->declared_length != NJ_BODY_LEN_UNKNOWN
                                                   ? resp->declared_length
                                                   : resp->n_written));
    nj_resp_head_send(&r, x->txn, resp->status ? resp->status : 200, 0, empty ? NULL : &x->body);
}

/* The transaction was answered without the handler. Its file and further bytes are dropped; it is
 * cancelled when the stream closes. */
static void mark_responded(struct nj_exchange *x)
{
    x->head_sent = x->end_sent = true;
    if (x->resp.file)
        nj_ref_put(&x->resp.file->ref);
    x->resp.file = NULL;
    nj_byte_queue_clear(&x->resp.out);
    nj__borrowed_release(&x->resp.borrowed);
}

static void send_error(struct nj_exchange *x)
{
    mark_responded(x);
    nj_respond_error(x->txn, x->error, (struct nj_field){0});
}

/* --- trailers and end --- */

static void send_end(struct nj_exchange *x)
{
    struct nj_field f[NJ_RESPONSE_FIELDS_MAX];
    uint32_t n = nj__resp_fields_views(&x->resp.trailers, f);
    struct nj_txn *t = x->txn;

    if (n > 0 && x->body_open)
        t->framing->trailers(t->stream, f, n);
    x->end_sent = true;
    if (x->body_open)
        t->framing->resume(t->stream);
}

/* True if the handler wrote fewer bytes than it declared_length. For a file the file server sets
 * the length. */
static bool is_short(const struct nj_response *resp)
{
    return resp->ended && !resp->file && resp->declared_length != NJ_BODY_LEN_UNKNOWN &&
           resp->n_written != resp->declared_length;
}

static void check_response(struct nj_exchange *x)
{
    struct nj_response *resp = &x->resp;

    if (x->error)
        return;
    if (resp->ended && x->req.too_large && !x->head_sent && !resp->committed && !resp->file &&
        resp->status == 0)
        nj__exchange_fail(x, 413);
    if (is_short(resp) && !x->req.is_head && resp->status != 304)
        resp->broken = true;
    if (resp->broken && !x->reset)
        x->reset = NJ_RESET_INTERNAL;
}

/* --- class, rate and priority --- */

/* The class refused the request: responds with 429. */
static void fail_with_429(struct nj_exchange *x)
{
    nj__exchange_fail(x, 429);
    mark_responded(x);
    x->resp.send_options = (struct nj__send_options){0};
}

/* Applies class, rate and priority. A class set on a worker was not validated: an unknown one gives
 * 500. A class that has been removed since it was validated is ignored. */
static void apply_options(struct nj_exchange *x)
{
    struct nj__send_options *w = &x->resp.send_options;
    struct nj_txn *t = x->txn;

    if (w->class_of && !t->head_sent_at) {
        const struct nj_class *c = nj_txns_find_class_by_name(t->set, w->class_name);
        if (!c && w->is_unchecked) {
            nj__exchange_fail(x, 500);
        } else if (c && !nj_txn_set_class(t, c)) {
            fail_with_429(x);
            return;
        }
    }
    if (w->rate && t->admitted) {
        const struct nj_limit limit = {.rate = w->bytes_per_s, .ceiling = w->bytes_per_s};
        nj_paced_set_limit(&t->paced, &limit);
    }
    if (w->priority)
        t->framing->prioritize(t->stream, w->urgency, w->incremental);
    *w = (struct nj__send_options){0};
}

/* The file server owns the transaction from here on. */
static void send_file(struct nj_exchange *x)
{
    const struct nj_block *name = x->resp.file;
    const struct nj_txns *set = x->txn->set;
    struct nj_request_head head;

    x->head_sent = x->end_sent = true;
    if (set->options->no_files) {
        nj_respond_error(x->txn, 404, (struct nj_field){0});
        return;
    }
    nj__stored_head_view(&x->req, &head);
    nj__resp_fields_views(&x->resp.fields, x->resp.file_fields);
    nj_file_server_send(x->set->config.site, x->txn, &head,
                        (struct nj_str){(const char *)name->bytes, name->n_bytes},
                        x->resp.file_fields, x->resp.fields.n, *set->now);
}

void nj__exchange_send_pending(struct nj_exchange *x)
{
    const struct nj_response *resp = &x->resp;

    check_response(x);
    if (nj_unlikely(resp->send_options.class_of || resp->send_options.rate ||
                    resp->send_options.priority) &&
        !x->reset)
        apply_options(x);
    if (x->reset) {
        if (!x->reset_sent)
            x->txn->framing->reset(x->txn->stream, (enum nj_reset)x->reset);
        x->reset_sent = true;
    } else if (x->error) {
        if (!x->head_sent)
            send_error(x);
    } else if (!x->head_sent && resp->file) {
        if (resp->ended)
            send_file(x);
    } else if (!x->head_sent) {
        if (resp->ended || resp->committed)
            send_head(x);
        if (x->head_sent && resp->ended && !x->end_sent)
            send_end(x);
    } else if (resp->ended && !x->end_sent) {
        send_end(x);
    } else if (x->has_new_bytes && x->body_open) {
        x->has_new_bytes = false;
        x->txn->framing->resume(x->txn->stream);
    }
}

/* --- the body, for the framing --- */

static struct nj_exchange *of_body(const struct nj_body *body)
{
    return (struct nj_exchange *)((char *)(uintptr_t)body - offsetof(struct nj_exchange, body));
}

static int peek_borrowed(const struct nj__borrowed *l, uint32_t n_max, struct nj_slice *out)
{
    *out = (struct nj_slice){l->p, l->n_bytes < n_max ? (uint32_t)l->n_bytes : n_max, l->ref};
    return (int)out->n_bytes;
}

static int body_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    const struct nj_byte_queue *q = &of_body(body)->resp.out;

    if (q->n_bytes == 0)
        return peek_borrowed(&of_body(body)->resp.borrowed, n_max, out);
    struct nj_block *block = q->head;
    uint32_t here = block->n_bytes - block->n_taken;
    *out =
        (struct nj_slice){block->bytes + block->n_taken, here < n_max ? here : n_max, &block->ref};
    return (int)out->n_bytes;
}

static void body_advance(struct nj_body *body, uint32_t n_bytes)
{
    struct nj_exchange *x = of_body(body);
    struct nj__borrowed *borrowed = &x->resp.borrowed;

    if (x->resp.out.n_bytes == 0) {
        borrowed->p += n_bytes;
        borrowed->n_bytes -= n_bytes;
        return;
    }
    nj_byte_queue_skip(&x->resp.out, n_bytes);
    if (x->n_held > 0)
        nj__set_held_response_bytes(x, x->resp.out.n_bytes);
    if (x->resp.out.n_bytes <= NJ_RESPONSE_BUFFER_BYTES / 2)
        nj__notify_writable(x);
}

static uint64_t body_remaining(const struct nj_body *body)
{
    const struct nj_exchange *x = of_body(body);
    return x->end_sent ? x->resp.out.n_bytes + x->resp.borrowed.n_bytes : NJ_BODY_LEN_UNKNOWN;
}

static void body_close(struct nj_body *body)
{
    struct nj_exchange *x = of_body(body);

    x->body_open = false;
    nj_byte_queue_clear(&x->resp.out);
    nj__borrowed_release(&x->resp.borrowed);
    nj__set_held_response_bytes(x, 0);
}

const struct nj_body_ops nj__exchange_body_ops = {body_peek, body_advance, body_remaining,
                                                  body_close, NULL};
