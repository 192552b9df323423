/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the life of an HTTP transaction, from its request to its access-log record. Follows
 * RFC 9110 3.4. */
#include "http/transaction.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "telem/counters_conn.h"

bool nj_txns_init(struct nj_txns *set, uint32_t n_max)
{
    for (uint32_t i = 0; i < NJ_REQUESTERS; i++) {
        nj_list_init(&set->requester[i].waiting);
        nj_list_init(&set->requester[i].turn);
    }
    return nj_pool_init(&set->pool, sizeof(struct nj_txn), n_max);
}

void nj_txns_fini(struct nj_txns *set)
{
    nj_pool_fini(&set->pool);
}

int64_t nj_txns_now_s(const struct nj_txns *set)
{
    return set->wall_s_at_zero + (int64_t)(*set->now / NJ_SEC);
}

struct nj_str nj_txns_date_value(struct nj_txns *set)
{
    return nj_date_cached(&set->date, nj_txns_now_s(set));
}

/* --- the access log ------------------------------------------------------------------------ */

/* Appends as much as fits and returns that number of bytes. */
static uint16_t append_text(struct nj_access_record *r, uint32_t *at, struct nj_str s)
{
    uint32_t room = NJ_ACCESS_TEXT_BYTES - *at, n = s.n_bytes < room ? s.n_bytes : room;

    if (n > 0)
        memcpy(r->text + *at, s.p, n);
    *at += n;
    r->cut |= n < s.n_bytes;
    return (uint16_t)n;
}

const struct nj_str *nj__txn_client_subject(const struct nj_txn_origin *from)
{
    const struct nj_framing *f = from->framing;
    const struct nj_client_cert *cert = f->client_cert ? f->client_cert(from->conn) : NULL;
    return cert ? &cert->subject : NULL;
}

/* The request head is only valid during this call, so the logged strings are copied here. Strings
 * behind a long path are cut, which sets r->cut. */
static struct nj_access_record *open_record(struct nj_txns *set, const struct nj_txn_origin *from,
                                            const struct nj_request_head *head)
{
    struct nj_access_record *r = set->access.take ? set->access.take(set->access.ctx) : NULL;
    uint32_t at = 0;

    if (!r)
        return NULL;
    r->wall_ns = set->wall_s_at_zero * (int64_t)NJ_SEC + (int64_t)*set->now;
    r->remote = *from->remote;
    r->rport = from->rport;
    r->status = 0;
    r->stream_id = from->stream_id;
    r->shard = set->shard_number;
    r->conn = from->conn_number;
    r->class_of[0] = '\0';
    r->cut = false;
    const struct nj_str referer = nj_header_first_value(head, NJ_HEADER_REFERER);
    const struct nj_str agent = nj_header_first_value(head, NJ_HEADER_USER_AGENT);
    r->n_method = append_text(r, &at, head->method);
    r->n_path = append_text(r, &at, head->path);
    r->n_authority = append_text(r, &at, head->authority);
    r->n_referer = append_text(r, &at, referer);
    r->n_agent = append_text(r, &at, agent);
    const struct nj_str *subject = nj__txn_client_subject(from);
    r->n_subject = subject ? append_text(r, &at, *subject) : 0;
    r->tls_suite = from->framing->tls_suite ? from->framing->tls_suite(from->conn) : NULL;
    return r;
}

void nj__txn_log(struct nj_txn *t, bool complete, nj_ns ttfb, nj_ns total)
{
    struct nj_access_record *r = t->access;

    if (!r)
        return;
    r->status = t->status;
    r->n_bytes = t->admitted ? t->paced.n_bytes : 0;
    r->throttled = t->admitted ? t->paced.throttled_ns : 0;
    r->ttfb = ttfb;
    r->total = total;
    r->complete = complete;
    t->set->access.put(t->set->access.ctx, r);
}

/* --- clients ------------------------------------------------------------------------------- */

struct nj_client *nj_txns_get_client(struct nj_txns *set, uint64_t key, const struct nj_addr *addr)
{
    struct nj_client *client = nj_client_take(set->clients, key, addr, *set->now);

    if (nj_likely(client))
        return client;
    nj_count(set->counters, NJ_C_clients_full);
    return nj_clients_overflow_client(set->clients);
}

void nj_txns_put_client(struct nj_txns *set, struct nj_client *client)
{
    if (client != nj_clients_overflow_client(set->clients))
        nj_client_put(client, *set->now);
}

/* --- life ---------------------------------------------------------------------------------- */

void nj__txn_init(struct nj_txn *t, struct nj_txns *set, const struct nj_txn_origin *from,
                  const struct nj_request_head *head)
{
    memset(t, 0, offsetof(struct nj_txn, text));
    t->set = set;
    t->framing = from->framing;
    t->stream = from->stream;
    t->conn = from->conn;
    t->remote = *from->remote;
    t->rport = from->rport;
    t->arrived_at = t->progressed_at = *set->now;
    t->method = (uint8_t)nj_method_parse(head->method);
    t->request_whole = head->ends;
    nj_list_init(&t->node);
    t->access = open_record(set, from, head);
}

static struct nj_body *begin_response(struct nj_txn *t, uint16_t status, struct nj_body *body)
{
    t->status = status;
    t->head_sent_at = *t->set->now;
    return body && t->admitted ? nj_paced_wrap(&t->paced, body) : body;
}

int nj_txn_respond(struct nj_txn *t, uint16_t status, const struct nj_field *fields,
                   uint32_t n_fields, uint64_t stamp, struct nj_body *body)
{
    body = begin_response(t, status, body);
    return t->framing->respond(t->stream, status, fields, n_fields, stamp, body);
}

bool nj_txn_respond_cached(struct nj_txn *t, uint16_t status, uint64_t stamp, struct nj_body *body)
{
    body = begin_response(t, status, body);
    return t->framing->respond_cached(t->stream, status, stamp, body);
}

void nj_txn_release(struct nj_txn *t)
{
    struct nj_txns *set = t->set;

    if (t->admitted)
        nj_client_request_end(t->client);
    if (t->client)
        nj_txns_put_client(set, t->client);
    t->requester->n_open--;
    nj_pool_put(&set->pool, t);
}

void nj_txn_end(struct nj_txn *t, bool complete)
{
    struct nj_txns *set = t->set;
    nj_ns first = t->admitted && t->paced.first_byte_at ? t->paced.first_byte_at : t->head_sent_at;
    nj_ns ttfb = first ? first - t->arrived_at : 0, total = *set->now - t->arrived_at;

    t->stream = NULL;
    if (first)
        nj_histogram_add(&set->ttfb, ttfb);
    if (complete)
        nj_histogram_add(&set->total, total);
    if (t->admitted) {
        nj_paced_end(&t->paced);
        if (t->paced.throttled_ns > 0)
            nj_histogram_add(&set->throttled, t->paced.throttled_ns);
    }
    nj__txn_log(t, complete, ttfb, total);
    if (t->awaits_stack)
        set->events->leave_stack_queue(t);
    nj_list_del(&t->node);
    if (t->on_end)
        t->on_end(t);
    else
        nj_txn_release(t);
}
