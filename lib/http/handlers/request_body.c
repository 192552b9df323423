/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers request bodies as they arrive and bounds the memory per connection. When memory is scarce
 * the connection that holds most loses its longest body. */
#include "base/assert.h"
#include "base/limits.h"
#include "http/handlers/exchange_internal.h"
#include "telem/counters.h"

/* Connections compared for each piece that arrives above a connection's share. */
#define HOLDERS_LOOK 64u

static void tell_of_body(struct nj_exchange *x)
{
    x->req.was_told = false;
    if (x->waiting == NJ__WAIT_BODY)
        nj_fiber_wake(x->waiter, NJ_WAKE_OK);
    if (x->state == NJ__KEPT && x->req.on_body.fn)
        x->due |= NJ__DUE_BODY;
    nj__mark(x);
}

static void owe_as_much(struct nj_exchange *x, uint32_t n_bytes)
{
    struct nj_exchange_peer *peer = x->peer;

    peer->n_body_bytes += n_bytes - x->n_owed; /* modulo 2^32: the pool of bodies is smaller */
    x->n_owed = n_bytes;
    if (peer->n_body_bytes == 0)
        nj_list_del(&peer->holder);
    else if (!nj_list_linked(&peer->holder))
        nj_list_push_back(&x->set->holders, &peer->holder);
}

void nj__owe(struct nj_exchange *x)
{
    if (!x->peer)
        return;
    if (!nj__is_open(x))
        owe_as_much(x, 0);
    else if (x->state != NJ__AWAY) /* while a worker has it, the previous value counts */
        owe_as_much(x, x->req.body.n_held);
}

static void drop_body(struct nj_exchange *x)
{
    if (!x->packed) /* else it was returned on arrival */
        x->n_done += x->req.body.n_bytes;
    nj_bytes_clear(&x->req.body);
    nj__owe(x);
}

/* No memory for the body: resets the stream, and lets the client repeat a request that was not
 * begun. */
static void give_up_body(struct nj_exchange *x)
{
    bool begun = x->state != NJ__ASKED && x->state != NJ__OFFERED;

    x->reset = begun ? NJ_RESET_INTERNAL : NJ_RESET_REFUSED;
    tell_of_body(x);
}

static bool takes_body(const struct nj_exchange *x)
{
    return x->state != NJ__LEFT && !x->req.too_large && !x->reset;
}

/* The exchange of a connection with the longest body that can be dropped. */
static struct nj_exchange *longest_body(const struct nj_exchange_peer *peer)
{
    const struct nj_list *all = &peer->exchanges;
    struct nj_exchange *longest = NULL;
    uint32_t most = 0;

    for (struct nj_list *n = all->next; n != all;
         n = n->next) { /* bounded by the number of streams */
        struct nj_exchange *x = nj_exchange_of_node(n);
        if (!nj__is_open(x) || x->state == NJ__AWAY || !takes_body(x) || x->req.body.n_held <= most)
            continue;
        longest = x;
        most = x->req.body.n_held;
    }
    return longest;
}

/* Of HOLDERS_LOOK connections and this one, the one that holds most. The list rotates. */
static struct nj_exchange_peer *worst_holder(struct nj_exchange *x)
{
    struct nj_exchange_peer *worst = x->peer;

    for (uint32_t i = 0; i < HOLDERS_LOOK; i++) {
        struct nj_list *n = nj_list_pop(&x->set->holders); /* not empty: x's connection is in it */
        struct nj_exchange_peer *peer = nj_container_of(n, struct nj_exchange_peer, holder);
        nj_list_push_back(&x->set->holders, n);
        if (peer->n_body_bytes > worst->n_body_bytes)
            worst = peer;
    }
    return worst;
}

/* Bytes arrive for a connection above its share: drops one body per piece, of the connection that
 * holds most. Bodies that are read on arrival are short and survive. */
static void keep_to_share(struct nj_exchange *x)
{
    if (!x->peer || x->peer->n_body_bytes <= nj_blocks_left(x->set->bodies) / NJ_BODY_SHARES)
        return;
    struct nj_exchange *longest = longest_body(worst_holder(x));
    longest = longest ? longest : x;
    give_up_body(longest);
    nj__hoards(longest, NJ_C_body_hoard);
    drop_body(longest);
}

void nj_exchange_data(struct nj_exchange *x, const uint8_t *data, size_t n_bytes)
{
    NJ_ASSERT(nj__is_open(x) && x->state != NJ__AWAY);
    struct nj_request *req = &x->req;

    x->expects = false; /* the client did not wait for 100 (Continue) */
    req->n_came += n_bytes;
    if (req->n_came > req->n_max && !req->too_large) {
        req->too_large = true;
        drop_body(x);
    }
    if (takes_body(x))
        keep_to_share(x);
    uint32_t n = 0;
    if (takes_body(x)) {
        n = nj_bytes_put(&req->body, x->set->bodies, data, (uint32_t)n_bytes, 0);
        if (n < n_bytes) {
            give_up_body(x);
            nj_count(nj__counters(x->set), NJ_C_exchange_full);
        }
    }
    nj__owe(x);
    x->n_done += x->packed ? n_bytes : n_bytes - n;
    tell_of_body(x);
}

void nj_exchange_body_end(struct nj_exchange *x)
{
    NJ_ASSERT(nj__is_open(x) && x->state != NJ__AWAY);
    x->req.complete = true;
    tell_of_body(x);
}
