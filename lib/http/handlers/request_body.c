/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers request bodies as they arrive and bounds the memory per client. When memory is scarce the
 * client that holds most loses its longest body. */
#include "base/assert.h"
#include "base/limits.h"
#include "http/handlers/exchange_state.h"
#include "telem/counters_http.h"

/* Bodies compared for each piece that arrives above a client's share. */
#define BODIES_SCAN_MAX 64u
/* Unit of the account. Smaller bodies, which most handlers read at once, are not accounted for. */
#define UNIT            4096u

static void notify_body(struct nj_exchange *x)
{
    x->req.body_notified = false;
    if (x->waiting == NJ__WAIT_BODY)
        nj_fiber_wake(x->waiter, NJ_WAKE_OK);
    if (x->state == NJ__EXCHANGE_DEFERRED && x->req.on_body.fn)
        x->due |= NJ__DUE_BODY;
    nj__mark_dirty(x);
}

/* Key of its client in the account. */
static uint64_t client_of(const struct nj_exchange *x)
{
    const struct nj_txn *t = x->txn;
    return t->client_unknown ? t->client_hash + (uintptr_t)t->conn / NJ_CACHE_LINE : t->client_hash;
}

static void charge_client(struct nj_exchange *x, uint32_t n_bytes)
{
    uint32_t n_units = n_bytes / UNIT;

    if (n_units != x->held_body.n)
        nj_held_set(&x->set->held_bodies, &x->held_body, client_of(x), n_units);
}

void nj__charge_body_to_client(struct nj_exchange *x)
{
    if (!nj__stream_is_open(x))
        charge_client(x, 0);
    else if (x->state !=
             NJ__EXCHANGE_ON_WORKER) /* while a worker has it, the previous value counts */
        charge_client(x, x->req.body.n_held);
}

static void drop_body(struct nj_exchange *x)
{
    if (!x->body_buffered) /* else it was returned on arrival */
        x->n_window_credit += x->req.body.n_bytes;
    nj_byte_queue_clear(&x->req.body);
    nj__charge_body_to_client(x);
}

/* No memory for the body: resets the stream, and lets the client repeat a request that was not
 * begun. */
static void give_up_body(struct nj_exchange *x)
{
    bool begun = x->state != NJ__EXCHANGE_CREATED && x->state != NJ__EXCHANGE_SUBMITTED;

    x->reset = begun ? NJ_RESET_INTERNAL : NJ_RESET_REFUSED;
    notify_body(x);
}

static bool accepts_body(const struct nj_exchange *x)
{
    return x->state != NJ__EXCHANGE_FINISHED && !x->req.too_large && !x->reset;
}

static bool is_above_share(const struct nj_exchange *x)
{
    uint64_t share = nj_block_pool_bytes_left(x->set->bodies) / NJ_BODY_SHARE_DIVISOR;

    return (uint64_t)nj_held_of(&x->set->held_bodies, client_of(x)) * UNIT > share;
}

/* Of this body and BODIES_SCAN_MAX others, the longest one of the client that holds most. This body
 * if that one is with a worker. */
static struct nj_exchange *worst_body(struct nj_exchange *x)
{
    struct nj_held_shares *a = &x->set->held_bodies;
    struct nj_holder *h = nj_held_worst(a, 0, BODIES_SCAN_MAX, 0);

    if (!h || a->of_client[h->entry] < nj_held_of(a, client_of(x)))
        return x;
    struct nj_exchange *worst = nj_container_of(h, struct nj_exchange, held_body);
    return worst->state != NJ__EXCHANGE_ON_WORKER && accepts_body(worst) ? worst : x;
}

/* Held: bodies of requests that handlers have not read | client, in units of 4 KiB | half as much
 * as is free, of 425 MiB for each lcore | `--body-timeout`, `--min-upload-rate`,
 * `--body-deadline` | body_limit, body_timeout, body_slow */

/* Bytes arrive for a client above its share: drops one body per piece, of the client that holds
 * most. Bodies that are read on arrival are short and survive. */
static void enforce_share(struct nj_exchange *x)
{
    if (!x->conn || !is_above_share(x))
        return;
    struct nj_exchange *worst = worst_body(x);
    give_up_body(worst);
    nj__report_over_limit(worst, NJ_C_body_limit);
    drop_body(worst);
}

void nj_exchange_receive_body(struct nj_exchange *x, const uint8_t *data, size_t n_bytes)
{
    NJ_ASSERT(nj__stream_is_open(x) && x->state != NJ__EXCHANGE_ON_WORKER);
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
    nj__charge_body_to_client(x);
    x->n_window_credit += x->body_buffered ? n_bytes : n_bytes - n;
    notify_body(x);
}

void nj_exchange_on_body_end(struct nj_exchange *x)
{
    NJ_ASSERT(nj__stream_is_open(x) && x->state != NJ__EXCHANGE_ON_WORKER);
    x->req.complete = true;
    notify_body(x);
}
