/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request of a route and its response, from the head to the last byte: what nightjar/handler.h
 * shows to handlers, and what the shard does for it.
 *
 * Handlers run as tasks of a strategy (sched/), on a fiber, inline or on a worker. Whatever they
 * ask for is only noted here; the root context carries it out in nj_exchanges_settle(), after they
 * parked or returned: no handler ever calls into HTTP/2, and so none becomes a producer.
 *
 * An exchange lives until its stream is closed and its handler has left, in whatever order. All
 * calls belong to one lcore, and to its root context.
 */
#ifndef NJ_HTTP_HANDLERS_EXCHANGE_H
#define NJ_HTTP_HANDLERS_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/field.h"
#include "base/list.h"
#include "base/request_head.h"
#include "base/types.h"
#include "http/handlers/route_table.h"
#include "http/transaction.h"
#include "sched/task.h"
#include "sched/task_port.h"

struct nj_exchanges; /* all of a shard */
struct nj_exchange;

struct nj_exchanges_config {
    struct nj_txns *txns; /* to which all exchanges belong */
    const struct nj_routes *routes;
    struct nj_task_class *classes; /* one per route; the strategy counts in them */
    const struct nj_task_port *workers;
    /* Take a task back that was offered and waits for its turn. NULL: none waits. */
    void (*withdraw)(void *ctx, struct nj_task *task);
    /* Call fn(arg) on behalf of a route, where it must not block. NULL: just call it; and no route
     * is ever moved to the workers. */
    void (*call)(void *ctx, struct nj_task_class *route, void (*fn)(void *arg), void *arg);
    void *strategy;        /* context of these two */
    uint32_t n_max;        /* open at once; 0: NJ_EXCHANGES_MAX */
    uint32_t blocks_share; /* so small a part of NJ_BLOCKS_* and NJ_WORKER_HELD_BYTES; 0: all */
};

/* NULL when memory is refused. */
struct nj_exchanges *nj_exchanges_new(const struct nj_exchanges_config *config, nj_ns now);
/* Every stream is closed, and every handler has left. */
void nj_exchanges_free(struct nj_exchanges *set);
/* Exchanges that live. */
uint32_t nj_exchanges_open(const struct nj_exchanges *set);
/* So many more can be begun. */
uint32_t nj_exchanges_left(const struct nj_exchanges *set);
/* Those of them that are with a worker. */
uint32_t nj_exchanges_away(const struct nj_exchanges *set);

/*
 * A request for route `index`; `plain_path` as in http/path.h. Returns the exchange: its task is to
 * be offered to the strategy. NULL: there is no room, or the body is too large by its own words,
 * and it was answered at once.
 */
struct nj_exchange *nj_exchange_begin(struct nj_exchanges *set, uint32_t index,
                                      const struct nj_request_head *head, struct nj_str plain_path,
                                      struct nj_txn *txn);
const struct nj_routes *nj_exchanges_routes(const struct nj_exchanges *set);
struct nj_task *nj_exchange_task(struct nj_exchange *x);
/* It is being offered: from here on the task is the strategy's, and counts for its client. */
void nj_exchange_offered(struct nj_exchange *x);
struct nj_txn *nj_exchange_txn(const struct nj_exchange *x);
/* A connection, as its exchanges see it. */
struct nj_exchange_peer {
    struct nj_list exchanges;
    struct nj_list holder; /* of the set's, while bytes are held */
    uint32_t
        n_body_bytes; /* that they hold of bodies; nj_exchanges_settle() brings it up to date */
    uint32_t n;       /* of the list */
};
/* It is one of this connection's, the last of the list, until both its stream is over and its
 * handler has come home. */
void nj_exchange_join(struct nj_exchange *x, struct nj_exchange_peer *peer);
/* The connection ends, after all of its streams: handlers that are not home belong to nobody. */
void nj_exchange_peer_gone(struct nj_exchange_peer *peer);
struct nj_list *nj_exchange_node(struct nj_exchange *x);
struct nj_exchange *nj_exchange_of_node(struct nj_list *node);

/* From the stream, also within HTTP/2's callbacks. */
void nj_exchange_data(struct nj_exchange *x, const uint8_t *data, size_t n_bytes);
void nj_exchange_body_end(struct nj_exchange *x);
/* Its stream is over, for nj_txn_end(). What waits for a stack or for a worker is withdrawn. When
 * its handler has left, the exchange is freed and its transaction released. If it runs somewhere,
 * the exchange stays in its connection's list until then, before all that were not offered. */
void nj_exchange_gone(struct nj_exchange *x);
/* It is over, and its handler runs or waits. */
bool nj_exchange_runs_on(const struct nj_exchange *x);
/* If its body is not whole it never will be: its handler is told that its stream is over, which is
 * reset when it settles. */
void nj_exchange_cut(struct nj_exchange *x);

/* More of its body does not come in time: 408 if its handler has not begun, else as if it was cut.
 * False: nothing is missing, or it is over already. */
bool nj_exchange_late(struct nj_exchange *x);

/* Is its handler on a stack and waits for more of the request, or for room in the response? */
bool nj_exchange_is_stuck(const struct nj_exchange *x);
/* ... then it is told that its stream is over, which is reset. It is no longer one of those at
 * work. */
void nj_exchange_evict(struct nj_exchange *x, enum nj_reset why);
/* Bytes of the request's body that came. */
uint64_t nj_exchange_came(const struct nj_exchange *x);
struct nj_exchange *nj_exchange_of_task(struct nj_task *task);

/* Is it with a worker? */
bool nj_exchange_is_away(const struct nj_exchange *x);
/* Is its response a file, for which it may wait? */
bool nj_exchange_sends_file(const struct nj_exchange *x);
/* Does it wait for its handler, and not for the peer? */
bool nj_exchange_is_ours(const struct nj_exchange *x);

/*
 * The workers' port with what exchanges need around it: a request goes to a worker when its body is
 * complete. A strategy is given this in place of the port, with the set as context.
 */
struct nj_task_port nj_exchanges_port(struct nj_exchanges *set);

/* Carry out what handlers asked for since. Returns how many exchanges had something. */
uint32_t nj_exchanges_settle(struct nj_exchanges *set, nj_ns now);
/* Timers, and those that wait for memory. */
void nj_exchanges_tick(struct nj_exchanges *set, nj_ns now);
/* Nothing to settle and no timer before this; 0: settle now. */
nj_ns nj_exchanges_next(const struct nj_exchanges *set);

#endif
