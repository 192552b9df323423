/* SPDX-License-Identifier: BSD-3-Clause */
/* Admits requests: the policy's class and action, the client's limits and its share of what is
 * scarce. Follows RFC 6585 4 for 429. */
#include "http/request_admission.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "http/response_head.h"
#include "telem/counters_http.h"

/* --- clients ------------------------------------------------------------------------------- */

/* `client_hash` is a keyed hash. `conn` is the connection's number if a trusted proxy sent the
 * request without naming its client, else 0. */
static struct nj_requester *requester_of(struct nj_txns *set, uint64_t client_hash, uint64_t conn)
{
    uint64_t place = client_hash + conn * 0x9e3779b97f4a7c15u;
    return &set->requester[place >> 32 & (NJ_REQUESTERS - 1)];
}

static void respond_429(struct nj_txn *t, uint32_t retry_after_s)
{
    char digits[NJ_U64_DIGITS_MAX];

    nj_respond_error(
        t, 429, (struct nj_field){NJ_STR("retry-after"), nj_str_of_u64(digits, retry_after_s)});
}

/* Carries out the policy's action other than SERVE. */
static void refuse(struct nj_txn *t, const struct nj_class *class_of, enum nj_action action,
                   uint32_t retry_after_s)
{
    switch (action) {
    case NJ_ACTION_SERVE:
        return;
    case NJ_ACTION_FORBID:
        nj_respond_error(t, 403, (struct nj_field){0});
        break;
    case NJ_ACTION_TOO_MANY:
        respond_429(t, retry_after_s > 0 ? retry_after_s : 1);
        break;
    case NJ_ACTION_DROP: /* dropping would leave the stream open */
    case NJ_ACTION_RESET:
        t->framing->reset(t->stream, NJ_RESET_SILENT);
        break;
    }
    nj_count(t->set->counters, NJ_C_request_refused);
    nj_shape_count_refused(t->set->shape, class_of);
}

void nj_txn_report_abuse(struct nj_txn *t, nj_counter why)
{
    nj_count(t->set->counters, why);
    t->set->events->abuse(t->set->ctx, why, &t->remote);
}

/* The client exceeds a limit of that class. */
static void refuse_client(struct nj_txn *t, const struct nj_class *class_of,
                          const struct nj_addr *addr, enum nj_action action, uint32_t retry_after_s)
{
    refuse(t, class_of, action, retry_after_s);
    t->set->events->abuse(t->set->ctx, NJ_C_request_refused, addr);
}

/* The shaper is full. The request no longer counts for the client. */
static void shaper_is_full(struct nj_txn *t, struct nj_client *client)
{
    nj_client_request_end(client);
    nj_count(t->set->counters, NJ_C_request_no_memory);
    nj_respond_error(t, 503, (struct nj_field){0});
}

/* Counts the request for its client, if the client's limits allow it. */
static bool admit(struct nj_txn *t, const struct nj_policy_verdict *v)
{
    struct nj_txns *set = t->set;
    uint32_t retry_after_s;

    t->client = nj_txns_get_client(set, v->client_key, &v->client);
    enum nj_action action =
        nj_client_request_begin(t->client, &v->class_of->caps, *set->now, &retry_after_s);
    if (nj_unlikely(action != NJ_ACTION_SERVE)) {
        refuse_client(t, v->class_of, &v->client, action, retry_after_s);
        return false;
    }
    t->admitted = nj_paced_begin(set->shape, &t->paced, v->class_of, t->client, *set->now);
    if (nj_unlikely(!t->admitted))
        shaper_is_full(t, t->client);
    return t->admitted;
}

/* Held: open requests | client, in requests | 8 times the number of free places; an lcore has
 * 131,072 | `--send-timeout` | client_share_limit, send_timeout */

/* A client's share of the free places is bounded by NJ_CLIENT_SHARE_FACTOR. A client without
 * requests may always open one. */
static bool is_greedy(const struct nj_requester *r, uint32_t n_left)
{
    return r->n_open > 0 && r->n_open / NJ_CLIENT_SHARE_FACTOR >= n_left;
}

bool nj_txn_deny_if_over_share(struct nj_txn *t, uint32_t n_left)
{
    const struct nj_requester *r = t->requester;

    if (nj_likely(r->n_open / NJ_CLIENT_SHARE_FACTOR < n_left) || r->n_open == 1) /* this request */
        return false;
    nj_txn_report_abuse(t, NJ_C_client_share_limit);
    nj_respond_error(t, 503, (struct nj_field){0});
    return true;
}

/* --- requests ------------------------------------------------------------------------------ */

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

/* The subject of the client's certificate (RFC 4514); NULL: no certificate. */
static const struct nj_str *client_subject(const struct nj_txn_origin *from)
{
    const struct nj_framing *f = from->framing;
    const struct nj_client_cert *cert = f->client_cert ? f->client_cert(from->conn) : NULL;
    return cert ? &cert->subject : NULL;
}

/* The request head is only valid during this call, so the logged strings are copied here. Strings
 * behind a long path are cut, which sets r->cut. */
static struct nj_access_record *open_record(struct nj_txns *set, const struct nj_txn_origin *from,
                                            const struct nj_request_head *head,
                                            const struct nj_policy_verdict *v)
{
    struct nj_access_record *r = set->access.take ? set->access.take(set->access.ctx) : NULL;
    uint32_t at = 0;

    if (!r)
        return NULL;
    r->wall_ns = set->wall_s_at_zero * (int64_t)NJ_SEC + (int64_t)*set->now;
    r->remote = *from->remote;
    r->peer = *from->peer;
    r->client = v ? v->client : *from->remote;
    r->scheme =
        v && v->scheme != NJ_SCHEME_NONE ? v->scheme : (uint8_t)nj_scheme_parse(head->scheme);
    r->rport = from->rport;
    r->status = 0;
    r->stream_id = from->stream_id;
    r->shard = set->shard_number;
    r->conn = from->conn_number;
    r->version = head->version;
    r->class_of[0] = '\0';
    r->cut = false;
    const struct nj_str referer = nj_header_first_value(head, NJ_HEADER_REFERER);
    const struct nj_str agent = nj_header_first_value(head, NJ_HEADER_USER_AGENT);
    r->n_method = append_text(r, &at, head->method);
    r->n_path = append_text(r, &at, head->path);
    r->n_authority = append_text(r, &at, head->authority);
    r->n_referer = append_text(r, &at, referer);
    r->n_agent = append_text(r, &at, agent);
    const struct nj_str *subject = client_subject(from);
    r->n_subject = subject ? append_text(r, &at, *subject) : 0;
    r->tls_suite = from->framing->tls_suite ? from->framing->tls_suite(from->conn) : NULL;
    return r;
}

/* Begins a transaction with its access-log record. `v` NULL: the policy was not asked. */
static inline void begin(struct nj_txn *t, struct nj_txns *set, const struct nj_txn_origin *from,
                         const struct nj_request_head *head, const struct nj_policy_verdict *v)
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
    t->access = open_record(set, from, head, v);
}

static void refuse_and_log(struct nj_txns *set, const struct nj_txn_origin *from,
                           const struct nj_request_head *head, const struct nj_policy_verdict *v,
                           uint16_t status)
{
    struct nj_txn t; /* it ends with this call */

    begin(&t, set, from, head, v);
    nj_respond_error(&t, status, (struct nj_field){0});
    if (t.access)
        nj__txn_log(&t, true, 0, 0);
}

void nj_txns_refuse_and_log(struct nj_txns *set, const struct nj_txn_origin *from,
                            const struct nj_request_head *head, uint16_t status)
{
    refuse_and_log(set, from, head, NULL, status);
}

/* NULL: the pool is empty or the client has its share. */
static struct nj_txn *take(struct nj_txns *set, struct nj_requester *r,
                           const struct nj_policy_verdict *v)
{
    if (nj_unlikely(is_greedy(r, set->pool.n_max - set->pool.n_used))) {
        nj_count(set->counters, NJ_C_client_share_limit);
        set->events->abuse(set->ctx, NJ_C_client_share_limit, &v->client);
        return NULL;
    }
    struct nj_txn *t = nj_pool_take_raw(&set->pool);
    if (!t)
        nj_count(set->counters, NJ_C_request_no_memory);
    return t;
}

bool nj_txn_begin(struct nj_txns *set, const struct nj_txn_origin *from,
                  const struct nj_request_head *head, struct nj_str path, struct nj_txn **out)
{
    struct nj_policy_request q = {
        .addr = from->remote, .path = path, .head = head, .memo = &set->memo};
    if (nj_unlikely(from->framing->client_cert))
        q.subject = client_subject(from);
    struct nj_policy_verdict v;

    nj_policy_decide_request(nj_shape_policy(set->shape), &set->client_key, &q, &v);
    struct nj_requester *r =
        requester_of(set, v.client_hash, v.client_unknown ? from->conn_number : 0);
    struct nj_txn *t = take(set, r, &v);
    *out = t;
    if (!t) {
        refuse_and_log(set, from, head, &v, 503);
        return false;
    }
    begin(t, set, from, head, &v);
    t->requester = r;
    r->n_open++;
    t->client_hash = v.client_hash;
    t->client_addr = v.client;
    t->client_unknown = v.client_unknown;
    t->named_scheme = v.scheme;
    if (t->access)
        memcpy(t->access->class_of, v.class_of->name, sizeof v.class_of->name);
    if (nj_unlikely(v.action != NJ_ACTION_SERVE)) {
        refuse(t, v.class_of, v.action, v.class_of->retry_after_s);
        return false;
    }
    if (!admit(t, &v))
        return false;
    set->events->watch_progress(t, *set->now);
    return true;
}

const struct nj_class *nj_txns_find_class_by_name(const struct nj_txns *set, const char *name)
{
    const struct nj_policy *p = nj_shape_policy(set->shape);

    for (uint32_t i = 0; i < p->n_classes; i++)
        if (strcmp(p->classes[i].name, name) == 0)
            return &p->classes[i];
    return NULL;
}

bool nj_txn_set_class(struct nj_txn *t, const struct nj_class *class_of)
{
    struct nj_txns *set = t->set;
    /* The shared client for those beyond the table's size has no address. */
    const struct nj_addr addr = t->client == nj_clients_overflow_client(set->clients)
                                    ? t->remote
                                    : nj_client_addr(t->client);
    uint32_t retry_after_s;

    NJ_ASSERT(t->admitted && !t->head_sent_at);
    if (nj_paced_is_of_class(&t->paced, class_of)) /* already counted in this class */
        return true;
    if (t->access)
        memcpy(t->access->class_of, class_of->name, sizeof class_of->name);
    if (class_of->action != NJ_ACTION_SERVE) {
        refuse(t, class_of, class_of->action, class_of->retry_after_s);
        return false;
    }
    struct nj_client *old = t->client;
    struct nj_client *client =
        nj_txns_get_client(set, nj_policy_client_key_in_class(t->client_hash, class_of), &addr);
    enum nj_action action =
        nj_client_request_begin(client, &class_of->caps, *set->now, &retry_after_s);
    bool moved = action == NJ_ACTION_SERVE && nj_paced_set_class(&t->paced, class_of, client);
    if (moved) {
        t->client = client;
        nj_client_request_end(old);
    } else if (action == NJ_ACTION_SERVE) {
        shaper_is_full(t, client);
    } else {
        refuse_client(t, class_of, &addr, action, retry_after_s);
    }
    nj_txns_put_client(set, moved ? old : client);
    return moved;
}
