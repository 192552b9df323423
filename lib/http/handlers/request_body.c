/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers request bodies as they arrive and bounds the memory per connection. When memory is scarce
 * the connection that holds most loses its longest body. */
#include "base/assert.h"
#include "base/limits.h"
#include "http/handlers/exchange_internal.h"
#include "telem/counters.h"

/* Connections compared for each piece that arrives above a connection's share. */
#define HOLDERS_SCAN_MAX 64u

static void notify_body(struct nj_exchange *x)
{
    x->req.body_notified = false;
    if (x->waiting == NJ__WAIT_BODY)
        nj_fiber_wake(x->waiter, NJ_WAKE_OK);
    if (x->state == NJ__DEFERRED && x->req.on_body.fn)
        x->due |= NJ__DUE_BODY;
    nj__mark_dirty(x);
}

static void charge(struct nj_exchange *x, uint32_t n_bytes)
{
    struct nj_conn_exchanges *conn = x->conn;

    conn->n_body_bytes += n_bytes - x->n_charged; /* modulo 2^32: the pool of bodies is smaller */
    x->n_charged = n_bytes;
    if (conn->n_body_bytes == 0)
        nj_list_del(&conn->holder);
    else if (!nj_list_linked(&conn->holder))
        nj_list_push_back(&x->set->holders, &conn->holder);
}

void nj__charge_body_to_conn(struct nj_exchange *x)
{
    if (!x->conn)
        return;
    if (!nj__stream_is_open(x))
        charge(x, 0);
    else if (x->state != NJ__ON_WORKER) /* while a worker has it, the previous value counts */
        charge(x, x->req.body.n_held);
}

static void drop_body(struct nj_exchange *x)
{
    if (!x->body_buffered) /* else it was returned on arrival */
        x->n_window_credit += x->req.body.n_bytes;
    nj_byte_queue_clear(&x->req.body);
    nj__charge_body_to_conn(x);
}

/* No memory for the body: resets the stream, and lets the client repeat a request that was not
 * begun. */
static void give_up_body(struct nj_exchange *x)
{
    bool begun = x->state != NJ__CREATED && x->state != NJ__SUBMITTED;

    x->reset = begun ? NJ_RESET_INTERNAL : NJ_RESET_REFUSED;
    notify_body(x);
}

static bool accepts_body(const struct nj_exchange *x)
{
    return x->state != NJ__FINISHED && !x->req.too_large && !x->reset;
}

/* The exchange of a connection with the longest body that can be dropped. */
static struct nj_exchange *longest_body(const struct nj_conn_exchanges *conn)
{
    const struct nj_list *all = &conn->exchanges;
    struct nj_exchange *longest = NULL;
    uint32_t most = 0;

    for (struct nj_list *n = all->next; n != all;
         n = n->next) { /* bounded by the number of streams */
        struct nj_exchange *x = nj_exchange_of_node(n);
        if (!nj__stream_is_open(x) || x->state == NJ__ON_WORKER || !accepts_body(x) ||
            x->req.body.n_held <= most)
            continue;
        longest = x;
        most = x->req.body.n_held;
    }
    return longest;
}

/* Of HOLDERS_SCAN_MAX connections and this one, the one that holds most. The list rotates. */
static struct nj_conn_exchanges *worst_holder(struct nj_exchange *x)
{
    struct nj_conn_exchanges *worst = x->conn;

    for (uint32_t i = 0; i < HOLDERS_SCAN_MAX; i++) {
        struct nj_list *n = nj_list_pop(&x->set->holders); /* not empty: x's connection is in it */
        struct nj_conn_exchanges *conn = nj_container_of(n, struct nj_conn_exchanges, holder);
        nj_list_push_back(&x->set->holders, n);
        if (conn->n_body_bytes > worst->n_body_bytes)
            worst = conn;
    }
    return worst;
}

/* Held: bodies of requests that handlers have not read | connection, in bytes | half as much as
 * is free, of 425 MiB for each lcore | `--body-timeout`, `--min-upload-rate`, `--body-deadline`
 * | body_limit, body_timeout, body_slow */

/* Bytes arrive for a connection above its share: drops one body per piece, of the connection that
 * holds most. Bodies that are read on arrival are short and survive. */
static void enforce_share(struct nj_exchange *x)
{
    if (!x->conn ||
        x->conn->n_body_bytes <= nj_block_pool_bytes_left(x->set->bodies) / NJ_BODY_SHARE_DIVISOR)
        return;
    struct nj_exchange *longest = longest_body(worst_holder(x));
    longest = longest ? longest : x;
    give_up_body(longest);
    nj__report_over_limit(longest, NJ_C_body_limit);
    drop_body(longest);
}

void nj_exchange_receive_body(struct nj_exchange *x, const uint8_t *data, size_t n_bytes)
{
    NJ_ASSERT(nj__stream_is_open(x) && x->state != NJ__ON_WORKER);
    struct nj_request *req = &x->req;

    x->wants_continue = false; /* the client did not wait for 100 (Continue) */
    req->n_received += n_bytes;
    if (req->n_received > req->n_max && !req->too_large) {
        req->too_large = true;
        drop_body(x);
    }
    if (accepts_body(x))
        enforce_share(x);
    uint32_t n = 0;
    if (accepts_body(x)) {
        n = nj_byte_queue_put(&req->body, x->set->bodies, data, (uint32_t)n_bytes, 0);
        if (n < n_bytes) {
            give_up_body(x);
            nj_count(nj__counters(x->set), NJ_C_exchange_full);
        }
    }
    nj__charge_body_to_conn(x);
    x->n_window_credit += x->body_buffered ? n_bytes : n_bytes - n;
    notify_body(x);
}

void nj_exchange_on_body_end(struct nj_exchange *x)
{
    NJ_ASSERT(nj__stream_is_open(x) && x->state != NJ__ON_WORKER);
    x->req.complete = true;
    notify_body(x);
}
