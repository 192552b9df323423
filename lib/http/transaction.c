/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the life of an HTTP transaction, from its request to its access-log record. Follows
 * RFC 9110 3.4. */
#include "http/transaction.h"

#include "base/compiler.h"
#include "base/page_alloc.h"
#include "http/site/site_fields.h"
#include "telem/counters_conn.h"

bool nj_txns_init(struct nj_txns *set, uint32_t n_max)
{
    for (uint32_t i = 0; i < NJ_REQUESTERS; i++) {
        nj_list_init(&set->requester[i].waiting);
        nj_list_init(&set->requester[i].turn);
    }
    if (!nj_pool_init(&set->pool, sizeof(struct nj_txn), n_max))
        return false;
    set->paths = nj_pages_map(n_max * sizeof *set->paths, 0); /* touched as they are used */
    set->sites = nj_pages_map(NJ_SITE_COUNTS_MAX * sizeof *set->sites, 0);
    return set->paths && set->sites;
}

void nj_txns_fini(struct nj_txns *set)
{
    if (set->paths)
        nj_pages_unmap(set->paths, set->pool.n_max * sizeof *set->paths);
    set->paths = NULL;
    if (set->sites)
        nj_pages_unmap(set->sites, NJ_SITE_COUNTS_MAX * sizeof *set->sites);
    set->sites = NULL;
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

void nj__txn_log(struct nj_txn *t, bool complete, nj_ns ttfb, nj_ns total)
{
    struct nj_access_record *r = t->access;

    r->status = t->status;
    r->n_bytes = t->admitted ? t->paced.n_bytes : 0;
    r->throttled = t->admitted ? t->paced.throttled_ns : 0;
    r->ttfb = ttfb;
    r->total = total;
    r->complete = complete;
    t->set->access.put(t->set->access.ctx, r);
}

/* --- paths --------------------------------------------------------------------------------- */

const struct nj_txn_path *nj_txn_kept_path(const struct nj_txn *t)
{
    const struct nj_txn_path *path = &t->set->paths[nj_pool_index(&t->set->pool, t)];

    return path->n_bytes > 0 && path->id == nj_txn_id(t) ? path : NULL;
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

static struct nj_body *begin_response(struct nj_txn *t, uint16_t status, struct nj_body *body)
{
    t->status = status;
    t->head_sent_at = *t->set->now;
    if (body && t->admitted)
        body = nj_paced_wrap(&t->paced, body);
    if (body)
        body->waiter = t;
    return body;
}

int nj_txn_respond(struct nj_txn *t, uint16_t status, const struct nj_field *fields,
                   uint32_t n_fields, uint64_t stamp, struct nj_body *body)
{
    body = begin_response(t, status, body);
    int rc = t->framing->respond(t->stream, status, fields, n_fields, stamp, body);
    if (nj_unlikely(t->rules)) /* `fields` may have been theirs */
        nj_site_drop_rules(t);
    return rc;
}

bool nj_txn_respond_cached(struct nj_txn *t, uint16_t status, uint64_t stamp, struct nj_body *body)
{
    body = begin_response(t, status, body);
    if (!t->framing->respond_cached(t->stream, status, stamp, body))
        return false;
    if (nj_unlikely(t->rules))
        nj_site_drop_rules(t);
    return true;
}

void nj_txn_release(struct nj_txn *t)
{
    struct nj_txns *set = t->set;

    if (nj_unlikely(t->rules)) /* no response has begun */
        nj_site_drop_rules(t);
    if (t->admitted)
        nj_client_request_end(t->client);
    if (t->client)
        nj_txns_put_client(set, t->client);
    t->requester->n_open--;
    nj_pool_put(&set->pool, t);
}

/* A status has three digits. */
static void count_for_site(const struct nj_txn *t)
{
    nj_site_count(t->site, t->status / 100, 1);
    nj_site_count(t->site, NJ_SITE_N_BYTES, t->paced.n_bytes);
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
    if (t->site)
        count_for_site(t);
    if (t->access)
        nj__txn_log(t, complete, ttfb, total);
    if (t->awaits_stack)
        set->events->leave_stack_queue(t);
    nj_list_del(&t->node);
    if (t->on_end)
        t->on_end(t);
    else
        nj_txn_release(t);
}
