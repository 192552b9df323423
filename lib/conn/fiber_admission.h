/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who gets a stack: handlers of BLOCKING routes of one shard, fair between clients.
 *
 * While a stack is free, whoever asks gets it; a client that is alone may have all of them. When
 * other clients were there lately, the last quarter is for those that have less than an eighth.
 * Requests that find none wait, and stacks that become free go to the client that has the fewest.
 *
 * A client that waited for NJ_STACKS_GRACE and has less than its share (all stacks divided by the
 * clients that have or want some) is given stacks of the client that has the most above its
 * share: handlers that wait for their own peer, to send more of a request or to take more of a
 * response, are ended, the slowest peers first. Handlers that wait for anything else go on.
 *
 * A client is who asks, whatever the class of the request. What a trusted proxy asks for without
 * saying for whom is for many: each of its connections is a client, which the last quarter is for,
 * too, and which makes room only when nobody else has to.
 */
#ifndef NJ_CONN_FIBER_ADMISSION_H
#define NJ_CONN_FIBER_ADMISSION_H

#include "base/list.h"
#include "base/types.h"
#include "http/handlers/exchange.h"

struct nj_shard;

/* The last so small a part of the stacks is for clients that have less than that share of all. */
#define NJ_STACKS_RESERVE    4u
#define NJ_STACKS_SHARE      8u
/* ... while a request of another client came in this time. */
#define NJ_STACKS_ALONE      (10 * NJ_SEC)
/* While requests wait it is looked so often at who has to make room and who has waited too long: in
 * one look so many handlers are ended, and so many requests refused. All clients of which requests
 * wait are looked at, or claims of those behind them would not count: a few us for 1,024. With the
 * grace, a request that has a claim to a stack has it after 300 ms. */
#define NJ_STACKS_LOOK_EVERY (50 * NJ_MS)
#define NJ_STACKS_EVICT_MAX  16u
#define NJ_STACKS_REFUSE_MAX 64u
/* A request waits for so long before it costs others their stacks, and a handler has had one for as
 * long before it is ended: round trips of a slow path. */
#define NJ_STACKS_GRACE      (250 * NJ_MS)
/* A request that waited for a stack for so long is answered with 503 and retry-after. */
#define NJ_STACKS_WAIT_MAX   (10 * NJ_SEC)

struct nj_stacks {
    struct nj_list turns; /* clients of which requests wait */
    uint32_t n_clients;   /* of `turns` */
    uint32_t n_waiting;
    const struct nj_requester *last; /* whose request came last */
    nj_ns other_at;                  /* when one came of another client than the one before */
    nj_ns look_at;
};

void nj__stacks_init(struct nj_stacks *st);
/* May this request have a stack now? A request of its client was seen, whatever the answer. */
bool nj__stacks_may(struct nj_shard *s, const struct nj_txn *t);
/* It waits until nj__stacks_run() offers it. When as many wait as may, the client of which most
 * wait loses the last that came, with 503. False: so many of this one's client wait that it would
 * lose this one. */
bool nj__stacks_wait(struct nj_shard *s, struct nj_txn *t);
/* It does not wait any more. */
void nj__stacks_forget(struct nj_shard *s, struct nj_txn *t);
/* Offer those that may begin, end those that have to make room, refuse those that waited too long.
 * Returns how many. */
uint32_t nj__stacks_run(struct nj_shard *s, nj_ns now);
nj_ns nj__stacks_next(const struct nj_shard *s);

#endif
