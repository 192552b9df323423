/* SPDX-License-Identifier: BSD-3-Clause */
#include "shard/ask.h"

#include "http/date.h"
#include "shard/abuse.h"
#include "shard/conn.h"
#include "shard/shard_internal.h"

#define RFC9113_REFUSED_STREAM 7u

/* --- the access log ------------------------------------------------------------------------ */

/* Append what fits. Returns how much that was. */
static uint16_t add(struct nj_access *r, uint32_t *at, struct nj_str s)
{
    uint32_t room = NJ_ACCESS_TEXT_BYTES - *at, n = s.n_bytes < room ? s.n_bytes : room;

    if (n > 0)
        memcpy(r->text + *at, s.p, n);
    *at += n;
    r->cut |= n < s.n_bytes;
    return (uint16_t)n;
}

static int64_t wall_ns(const struct nj_shard *s, nj_ns at)
{
    return s->cfg.wall_s_at_zero * (int64_t)NJ_SEC + (int64_t)at;
}

/* The head lives no longer than the call that showed it: what is told of it is copied now. What is
 * behind a long path is left away, and the record says so. */
static struct nj_access *note_head(const struct nj_conn *c, uint32_t stream_id,
                                   const struct nj_request_head *req)
{
    struct nj_shard *s = c->shard;
    struct nj_access *r = s->cfg.access.take ? s->cfg.access.take(s->cfg.access.ctx) : NULL;
    uint32_t at = 0;

    if (!r)
        return NULL;
    r->wall_ns = wall_ns(s, s->now);
    r->remote = c->tcb->flow.tuple.remote;
    r->rport = c->tcb->flow.tuple.rport;
    r->status = 0;
    r->stream_id = stream_id;
    r->shard = s->cfg.number;
    r->conn = c->talk->number;
    r->class_of[0] = '\0';
    r->cut = false;
    r->n_method = add(r, &at, req->method);
    r->n_path = add(r, &at, req->path);
    r->n_authority = add(r, &at, req->authority);
    r->n_referer = add(r, &at, nj_header_value(req, NJ_HEADER_REFERER));
    r->n_agent = add(r, &at, nj_header_value(req, NJ_HEADER_USER_AGENT));
    return r;
}

/* A request that is answered as it comes, and not remembered. */
static void note_answered(const struct nj_conn *c, uint32_t stream_id,
                          const struct nj_request_head *req, uint16_t status)
{
    struct nj_access *r = note_head(c, stream_id, req);

    if (!r)
        return;
    r->status = status;
    r->n_bytes = r->ttfb = r->total = r->throttled = 0;
    r->complete = true;
    c->shard->cfg.access.put(c->shard->cfg.access.ctx, r);
}

static void note_end(struct nj_ask *a, bool complete, nj_ns ttfb, nj_ns total)
{
    struct nj_shard *s = a->conn->shard;
    struct nj_access *r = a->access;

    if (!r)
        return;
    r->status = a->status;
    r->n_bytes = a->admitted ? a->paced.n_bytes : 0;
    r->throttled = a->admitted ? a->paced.throttled_ns : 0;
    r->ttfb = ttfb;
    r->total = total;
    r->complete = complete;
    s->cfg.access.put(s->cfg.access.ctx, r);
}

/* --- refusals ------------------------------------------------------------------------------ */

static struct nj_str date_now(struct nj_shard *s)
{
    return nj_date_of_now(&s->date, s->cfg.wall_s_at_zero + (int64_t)(s->now / NJ_SEC));
}

/* A status and nothing more but when to come again, unless that is 0. */
static uint32_t fields_of(struct nj_shard *s, uint32_t retry_after_s, char buf[NJ_DIGITS_MAX],
                          struct nj_field out[4])
{
    out[0] = (struct nj_field){NJ_STR("server"), NJ_STR("nightjar")};
    out[1] = (struct nj_field){NJ_STR("date"), date_now(s)};
    out[2] = (struct nj_field){NJ_STR("content-length"), NJ_STR("0")};
    if (retry_after_s == 0)
        return 3;
    char *end = buf + NJ_DIGITS_MAX;
    const char *p = nj_put_digits(end, retry_after_s);
    out[3] = (struct nj_field){NJ_STR("retry-after"), {p, (uint32_t)(end - p)}};
    return 4;
}

static void refuse(struct nj_ask *a, uint16_t status, uint32_t retry_after_s)
{
    struct nj_field f[4];
    char buf[NJ_DIGITS_MAX];

    nj__ask_respond(a, status, f, fields_of(a->conn->shard, retry_after_s, buf, f), 0, NULL);
}

void nj__ask_refuse(struct nj_ask *a, uint16_t status)
{
    refuse(a, status, 0);
}

void nj__ask_busy(struct nj_ask *a)
{
    refuse(a, 503, 1);
}

static void refuse_unrecorded(struct nj_conn *c, struct nj_h2_stream *st,
                              const struct nj_request_head *req, uint16_t status,
                              uint32_t retry_after_s)
{
    struct nj_field f[4];
    char buf[NJ_DIGITS_MAX];

    note_answered(c, nj_h2_stream_id(st), req, status);
    nj_h2_respond(st, status, f, fields_of(c->shard, retry_after_s, buf, f), NULL);
}

void nj__ask_refused(struct nj_conn *c, struct nj_h2_stream *st, const struct nj_request_head *req,
                     uint16_t status)
{
    refuse_unrecorded(c, st, req, status, 0);
}

/* What the policy wants, in place of a response. False: to be served. */
static bool refused(struct nj_ask *a, const struct nj_class *class_of, enum nj_action action,
                    uint32_t retry_after_s)
{
    struct nj_shard *s = a->conn->shard;

    switch (action) {
    case NJ_ACTION_SERVE:
        return false;
    case NJ_ACTION_FORBID:
        refuse(a, 403, 0);
        break;
    case NJ_ACTION_LATER:
        refuse(a, 429, retry_after_s > 0 ? retry_after_s : 1);
        break;
    case NJ_ACTION_DROP: /* a stream can't be left without a word: it would stay open */
    case NJ_ACTION_RESET:
        nj_h2_reset(a->stream, RFC9113_REFUSED_STREAM);
        break;
    }
    nj_count(&s->counters, NJ_C_ask_refused);
    nj_shape_refused(s->shape, class_of);
    return true;
}

/* --- life ---------------------------------------------------------------------------------- */

static void decide(const struct nj_conn *c, const struct nj_request_head *req, struct nj_str path,
                   struct nj_policy_verdict *v)
{
    struct nj_shard *s = c->shard;
    const struct nj_policy_request q = {
        .addr = &c->tcb->flow.tuple.remote,
        .path = path,
        .head = req,
        .memo = &s->client_memo,
    };
    nj_policy_decide(nj_shape_policy(s->shape), &s->cfg.client_key, &q, v);
}

/* It counts for its client, if that may have one more. */
static bool admit(struct nj_ask *a, const struct nj_policy_verdict *v)
{
    struct nj_shard *s = a->conn->shard;
    uint32_t retry_after_s = 0;

    a->client = nj__policy_client(s, v->client_key, &v->client);
    enum nj_action action =
        nj_client_request_begin(a->client, &v->class_of->caps, s->now, &retry_after_s);
    if (refused(a, v->class_of, action, retry_after_s)) { /* it has or asks for too much */
        nj__abuse_of(s, NJ_C_ask_refused, &v->client);
        return false;
    }
    if (nj_paced_begin(s->shape, &a->paced, v->class_of, a->client, s->now)) {
        a->admitted = true;
        return true;
    }
    nj_client_request_end(a->client);
    nj_count(&s->counters, NJ_C_ask_full);
    nj__ask_busy(a);
    return false;
}

/* A client may have so many open that as many places are left for others as NJ_CLIENT_PART says.
 * Who has none is never too greedy. */
static bool is_greedy(const struct nj_stacks_client *who, uint32_t n_left)
{
    return who->n_asks > 0 && who->n_asks / NJ_CLIENT_PART >= n_left;
}

bool nj__ask_hoards(struct nj_ask *a, uint32_t n_left)
{
    if (nj_likely(a->who->n_asks / NJ_CLIENT_PART < n_left) || a->who->n_asks == 1) /* itself */
        return false;
    nj__abuse(a->conn->shard, NJ_C_client_hoard, &a->conn->tcb->flow.tuple.remote);
    nj__ask_busy(a);
    return true;
}

/* A record for a request of this client. NULL: there is none for it. */
static struct nj_ask *take(struct nj_shard *s, struct nj_stacks_client *who,
                           const struct nj_policy_verdict *v)
{
    if (nj_unlikely(is_greedy(who, s->ask_pool.n_max - s->ask_pool.n_used))) {
        nj__abuse(s, NJ_C_client_hoard, &v->client);
        return NULL;
    }
    struct nj_ask *a = nj_pool_take(&s->ask_pool);
    if (!a) {
        nj_count(&s->counters, NJ_C_ask_full);
        return NULL;
    }
    a->who = who;
    who->n_asks++;
    return a;
}

struct nj_ask *nj__ask_begin(struct nj_conn *c, struct nj_h2_stream *st,
                             const struct nj_request_head *req, struct nj_str path)
{
    struct nj_shard *s = c->shard;
    struct nj_policy_verdict v;

    decide(c, req, path, &v);
    struct nj_ask *a = take(s, nj__stacks_client(s, v.asker, v.unnamed ? c->talk->number : 0), &v);
    if (!a) {
        refuse_unrecorded(c, st, req, 503, 1);
        return NULL;
    }
    a->conn = c;
    a->stream = st;
    a->came = a->fine_at = s->now;
    a->fine_una = c->tcb->snd_una;
    a->whole = req->ends;
    nj_list_init(&a->node);
    nj_h2_stream_set_user(st, a);
    a->access = note_head(c, nj_h2_stream_id(st), req);
    a->unnamed = v.unnamed;
    if (a->access)
        memcpy(a->access->class_of, v.class_of->name, sizeof v.class_of->name);
    if (refused(a, v.class_of, v.action, v.class_of->retry_after_s) || !admit(a, &v))
        return NULL;
    nj__ask_watch(a, s->now);
    return a;
}

int nj__ask_respond(struct nj_ask *a, uint16_t status, const struct nj_field *fields,
                    uint32_t n_fields, uint64_t stamp, struct nj_body *body)
{
    a->status = status;
    a->head_at = a->conn->shard->now;
    a->wait = NULL;
    if (body && a->admitted)
        body = nj_paced_wrap(&a->paced, body);
    return nj_h2_respond_stamped(a->stream, status, fields, n_fields, stamp, body);
}

void nj__ask_home(struct nj_shard *s, struct nj_ask *a)
{
    if (a->admitted)
        nj_client_request_end(a->client);
    if (a->client)
        nj__policy_client_put(s, a->client);
    a->who->n_asks--;
    nj_pool_put(&s->ask_pool, a);
}

void nj__ask_end(struct nj_ask *a, bool complete, bool runs)
{
    struct nj_shard *s = a->conn->shard;
    nj_ns first = a->admitted && a->paced.first_byte_at ? a->paced.first_byte_at : a->head_at;
    nj_ns ttfb = first ? first - a->came : 0, total = s->now - a->came;

    if (first)
        nj_histogram_add(&s->ttfb, ttfb);
    if (complete)
        nj_histogram_add(&s->total, total);
    if (a->admitted) {
        nj_paced_end(&a->paced);
        if (a->paced.throttled_ns > 0)
            nj_histogram_add(&s->throttled, a->paced.throttled_ns);
    }
    note_end(a, complete, ttfb, total);
    if (a->held)
        nj__stacks_forget(s, a);
    nj_list_del(&a->node);
    if (!runs)
        nj__ask_home(s, a);
}
