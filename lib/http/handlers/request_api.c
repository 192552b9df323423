/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements nj_request_*() of nightjar/handler.h. Strings are views into the stored head. */
#include <string.h>

#include "http/handlers/exchange_state.h"

static const struct nj__stored_head *head_of(const struct nj_request *req)
{
    return (const struct nj__stored_head *)req->block->bytes;
}

static struct nj_str str_of(struct nj_view v)
{
    return (struct nj_str){v.p, v.n_bytes};
}

struct nj_str nj_exchange_request_path(const struct nj_exchange *x)
{
    return str_of(head_of(&x->req)->path);
}

void nj__stored_head_view(const struct nj_request *req, struct nj_request_head *out)
{
    const struct nj__stored_head *head = head_of(req);

    *out = (struct nj_request_head){.method = str_of(head->method),
                                    .scheme = str_of(head->scheme),
                                    .authority = str_of(head->authority),
                                    .path = str_of(head->path),
                                    .fields = head->fields,
                                    .n_fields = head->n_fields};
    for (uint32_t i = 0; i < head->n_fields; i++) {
        enum nj_header which = nj_header_id_of_name(head->fields[i].name);
        if (which != NJ_N_HEADERS)
            nj_header_add(out, which, head->fields[i].value);
    }
}

void nj_request_peer(const struct nj_request *req, struct nj_peer *out)
{
    const struct nj_txn *t = nj__exchange_of_req(req)->txn;

    if (!out)
        return;
    memcpy(out->address, t->remote.b, sizeof out->address);
    out->port = t->rport;
}

struct nj_view nj_request_client_subject(const struct nj_request *req)
{
    struct nj_str s = nj_client_cert_subject(nj__exchange_of_req(req)->cert);
    return (struct nj_view){s.p, s.n_bytes};
}

int64_t nj_request_arrival_ns(const struct nj_request *req)
{
    const struct nj_txn *t = nj__exchange_of_req(req)->txn;
    return t->set->wall_s_at_zero * (int64_t)NJ_SEC + (int64_t)t->arrived_at;
}

struct nj_view nj_request_method(const struct nj_request *req)
{
    return head_of(req)->method;
}

struct nj_view nj_request_path(const struct nj_request *req)
{
    return head_of(req)->path;
}

struct nj_view nj_request_plain_path(const struct nj_request *req)
{
    return head_of(req)->plain_path;
}

struct nj_view nj_request_path_rest(const struct nj_request *req)
{
    struct nj_view path = head_of(req)->plain_path;
    uint32_t n = nj_min_u32(req->n_mount, path.n_bytes);

    return (struct nj_view){path.p + n, path.n_bytes - n};
}

struct nj_view nj_request_query(const struct nj_request *req)
{
    return head_of(req)->query;
}

struct nj_view nj_request_scheme(const struct nj_request *req)
{
    return head_of(req)->scheme;
}

struct nj_view nj_request_authority(const struct nj_request *req)
{
    return head_of(req)->authority;
}

struct nj_view nj_request_header(const struct nj_request *req, const char *name)
{
    const struct nj__stored_head *head = head_of(req);
    struct nj_str key = {name, name ? (uint32_t)strlen(name) : 0};
    const struct nj_field *f = nj_field_find(head->fields, head->n_fields, key);

    return f ? (struct nj_view){f->value.p, f->value.n_bytes} : (struct nj_view){"", 0};
}

bool nj_request_field(const struct nj_request *req, uint32_t i, struct nj_view *name,
                      struct nj_view *value)
{
    const struct nj__stored_head *head = head_of(req);

    if (i >= head->n_fields)
        return false;
    if (name)
        *name = (struct nj_view){head->fields[i].name.p, head->fields[i].name.n_bytes};
    if (value)
        *value = (struct nj_view){head->fields[i].value.p, head->fields[i].value.n_bytes};
    return true;
}

/* Reads without waiting. NJ_ERR_WOULD_BLOCK: no bytes yet. */
static int64_t read_now(struct nj_request *req, void *out, uint32_t n_bytes)
{
    bool on_worker = nj__exchange_of_req(req)->resp.on_worker;
    struct nj_exchange *x = nj__exchange_of_req(req);

    if (!on_worker && !nj__stream_is_open(x))
        return nj__report_cancelled(x);
    if (!on_worker && x->reset) /* a part of the body was dropped for lack of memory */
        return nj__report_cancelled(x);
    if (req->too_large)
        return NJ_ERR_TOO_LARGE;
    if (req->body.n_bytes == 0)
        return req->complete ? 0 : NJ_ERR_WOULD_BLOCK;
    uint32_t got = nj_byte_queue_get(&req->body, out, n_bytes, on_worker ? &req->used : NULL);
    if (!on_worker) {
        x->n_window_credit += x->body_buffered ? 0 : got;
        nj__mark_dirty(x);
    }
    return got;
}

int64_t nj_request_read(struct nj_request *req, void *out, size_t n_bytes)
{
    struct nj_exchange *x = nj__exchange_of_req(req);
    uint32_t most = n_bytes < INT32_MAX ? (uint32_t)n_bytes : INT32_MAX;

    if (nj__is_foreign(&x->resp))
        return nj__report_foreign_call(&x->resp);
    if (most == 0 || !out)
        return NJ_ERR_INVALID;
    for (;;) {
        int64_t n = read_now(req, out, most);
        if (n != NJ_ERR_WOULD_BLOCK)
            return n;
        int rc = nj__wait_for(x, NJ__WAIT_BODY);
        if (rc != 0)
            return rc;
    }
}

void nj_request_on_body(struct nj_request *req, nj__callback *fn, void *arg)
{
    struct nj_exchange *x = nj__exchange_of_req(req);

    if (nj__is_foreign(&x->resp)) {
        nj__report_foreign_call(&x->resp);
        return;
    }
    bool knows = req->body_notified && fn == req->on_body.fn && arg == req->on_body.arg;

    req->on_body = (struct nj__hook){fn, arg};
    if (x->resp.on_worker || !fn || knows)
        return;
    if (req->body.n_bytes > 0 || req->complete || req->too_large) {
        x->due |= NJ__DUE_BODY;
        nj__mark_dirty(x);
    }
    nj__schedule_due_continue(x);
}
