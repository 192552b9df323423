/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the head of a response and sends it, and builds error responses. Status codes and their
 * required fields follow RFC 9110 15. */
#include "http/response_head.h"

#include "base/compiler.h"
#include "base/status_reason.h"
#include "http/site/site_fields.h"

/* Each response has a date (RFC 9110 6.6.1). */
int nj_resp_head_send(struct nj_resp_head *r, struct nj_txn *t, uint16_t status, uint64_t stamp,
                      struct nj_body *body)
{
    const struct nj_field *given = r->fields + NJ_RESP_HEAD_OWN;
    uint32_t first = NJ_RESP_HEAD_OWN;
    bool is_anonymous = false;

    NJ_ASSERT(r->n_fields <= NJ_RESP_HEAD_FIELDS_MAX);
    if (nj_unlikely(t->rules)) {
        nj_site_change_fields(t, r);
        is_anonymous = nj_site_removes(t->rules, NJ_STR("server"));
    }
    if (!nj_field_find(given, r->n_given, NJ_STR("date")))
        r->fields[--first] = (struct nj_field){NJ_STR("date"), nj_txns_date_value(t->set)};
    if (!is_anonymous && !nj_field_find(given, r->n_given, NJ_STR("server")))
        r->fields[--first] = (struct nj_field){NJ_STR("server"), NJ_STR("nightjar")};
    return nj_txn_respond(t, status, r->fields + first, NJ_RESP_HEAD_OWN - first + r->n_fields,
                          stamp, body);
}

void nj_resp_head_add_by_status(struct nj_resp_head *r, uint16_t status, struct nj_field extra)
{
    if (extra.name.n_bytes > 0)
        nj_resp_head_add(r, extra.name, extra.value);
    else if (status == 503)
        nj_resp_head_add(r, NJ_STR("retry-after"), NJ_STR("1"));
}

/* --- errors -------------------------------------------------------------------------------- */

static struct nj_text_body *text_body_of(const struct nj_body *body)
{
    return (struct nj_text_body *)(uintptr_t)body; /* body is its first member */
}

static int text_peek(struct nj_body *body, uint32_t n_max, struct nj_slice *out)
{
    const struct nj_str *rest = &text_body_of(body)->rest;

    *out = (struct nj_slice){(const uint8_t *)rest->p,
                             rest->n_bytes < n_max ? rest->n_bytes : n_max, NULL};
    return (int)out->n_bytes;
}

static void text_advance(struct nj_body *body, uint32_t n_bytes)
{
    text_body_of(body)->rest.p += n_bytes;
    text_body_of(body)->rest.n_bytes -= n_bytes;
}

static uint64_t text_remaining(const struct nj_body *body)
{
    return text_body_of(body)->rest.n_bytes;
}

static void text_close(struct nj_body *body)
{
    (void)body; /* the transaction owns it */
}

static const struct nj_body_ops text_ops = {text_peek, text_advance, text_remaining, text_close,
                                            NULL};

static void error(struct nj_txn *t, uint16_t status, struct nj_str text, struct nj_field extra)
{
    bool has_body = text.n_bytes > 0 && t->method != NJ_METHOD_HEAD;
    struct nj_resp_head r;
    char digits[NJ_U64_DIGITS_MAX];

    r.n_given = r.n_fields = 0;
    if (text.n_bytes > 0)
        nj_resp_head_add_type(&r, NJ_STR("text/plain; charset=utf-8"));
    nj_resp_head_add(&r, NJ_STR("content-length"), nj_str_of_u64(digits, text.n_bytes));
    nj_resp_head_add_by_status(&r, status, extra);
    t->text = (struct nj_text_body){.body.ops = &text_ops, .rest = text};
    nj_resp_head_send(&r, t, status, 0, has_body ? &t->text.body : NULL);
}

void nj_respond_error(struct nj_txn *t, uint16_t status, struct nj_field extra)
{
    error(t, status, NJ_STR(""), extra);
}

void nj_respond_error_text(struct nj_txn *t, uint16_t status, struct nj_field extra)
{
    error(t, status, nj_status_text(status), extra);
}
