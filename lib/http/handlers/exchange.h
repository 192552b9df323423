/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exchange: one request to a route and its response, from the head to the last byte. Implements
 * nightjar/handler.h.
 *
 * Handlers run as tasks of a strategy (sched/): on a fiber, inline, or on a worker. API calls only
 * record what the handler wants. The root context carries it out in nj_exchanges_process_dirty(),
 * after the handler parked or returned: handlers never call into a framing.
 *
 * An exchange lives until its stream has closed and its handler has finished, in either order. All
 * calls belong to the shard's lcore, in its root context.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/list.h"
#include "base/request_head.h"
#include "base/types.h"
#include "http/handlers/route_table.h"
#include "http/transaction.h"
#include "sched/task.h"
#include "sched/worker_ops.h"

struct nj_file_server;
struct nj_exchanges; /* all exchanges of a shard */

struct nj_exchanges_config {
    struct nj_txns *txns;        /* transactions of the same shard */
    struct nj_file_server *site; /* sends the files that handlers name */
    const struct nj_routes *routes;
    struct nj_task_class *classes; /* one per route; the strategy keeps counts in them */
    const struct nj_worker_ops *workers;
    /* Withdraws a submitted task that has not started. NULL: tasks never queue. */
    void (*withdraw)(void *ctx, struct nj_task *task);
    /* Calls fn(arg) on behalf of a route, in a context that must not block. NULL: called directly,
     * and no route is ever moved to the workers. */
    void (*call)(void *ctx, struct nj_task_class *route, void (*fn)(void *arg), void *arg);
    void *strategy;        /* context of withdraw and call */
    uint32_t n_max;        /* limit of open exchanges; 0: NJ_EXCHANGES_MAX */
    uint32_t blocks_share; /* divides NJ_BLOCKS_* and NJ_WORKER_HELD_BYTES; 0: by 1 */
};

/* NULL when memory is refused. */
struct nj_exchanges *nj_exchanges_new(const struct nj_exchanges_config *config, nj_ns now);
/* Before: every stream has closed and every handler has finished. */
void nj_exchanges_free(struct nj_exchanges *set);
/* Number of open exchanges. */
uint32_t nj_exchanges_n_open(const struct nj_exchanges *set);
/* Number of calls of nj_call_on_worker() that are with the workers. */
uint32_t nj_exchanges_n_calls(const struct nj_exchanges *set);
/* Number of further exchanges that can begin. */
uint32_t nj_exchanges_slots_left(const struct nj_exchanges *set);

/*
 * Begins an exchange for the route that was found; `plain_path` as in http/proto/path.h. Returns
 * the exchange, whose task the caller submits to the strategy. NULL: no memory, or content-length
 * exceeds the limit; the request was answered.
 */
struct nj_exchange *nj_exchange_begin(struct nj_exchanges *set, const struct nj_route_match *route,
                                      const struct nj_request_head *head, struct nj_str plain_path,
                                      struct nj_txn *txn);
const struct nj_routes *nj_exchanges_routes(const struct nj_exchanges *set);
struct nj_task *nj_exchange_task(struct nj_exchange *x);
/* To be called when the task is submitted: the strategy owns it from here on, and it counts for its
 * client. */
void nj_exchange_note_scheduled(struct nj_exchange *x);
struct nj_txn *nj_exchange_txn(const struct nj_exchange *x);
/* A connection's exchanges. */
struct nj_conn_exchanges {
    struct nj_list exchanges;
    uint32_t n; /* length of the list */
};
/* Appends the exchange to its connection's list. It stays there until its stream has closed and its
 * handler has finished. */
void nj_exchange_attach_to_conn(struct nj_exchange *x, struct nj_conn_exchanges *conn);
/* The connection ends, after all of its streams: detaches exchanges whose handlers still run. */
void nj_conn_exchanges_detach(struct nj_conn_exchanges *conn);
struct nj_list *nj_exchange_node(struct nj_exchange *x);
struct nj_exchange *nj_exchange_of_node(struct nj_list *node);

/* Request body bytes from the stream; also called within the callbacks of a framing. */
void nj_exchange_receive_body(struct nj_exchange *x, const uint8_t *data, size_t n_bytes);
void nj_exchange_on_body_end(struct nj_exchange *x);
/* True while the handler runs or is parked, on a fiber or a worker. */
bool nj_exchange_is_running(const struct nj_exchange *x);
/* The rest of the request body will not arrive: cancels the handler and resets the stream at the
 * next settle. No effect if the body is complete. */
void nj_exchange_cancel_if_body_partial(struct nj_exchange *x);

/* The request body timed out: responds 408 if the handler has not begun, else as
 * nj_exchange_cancel_if_body_partial(). False: the body is complete, or the stream is being reset.
 */
bool nj_exchange_on_body_timeout(struct nj_exchange *x);

/* Called while no handler runs: has the handler a stack, and its stream not ended? */
bool nj_exchange_is_suspended(const struct nj_exchange *x);
/* True if the handler holds a stack and waits for the client: for request bytes, or for room in the
 * response buffer. */
bool nj_exchange_waits_for_client(const struct nj_exchange *x);
/* Cancels a stuck handler and resets its stream. It no longer counts in n_need_stack. */
void nj_exchange_cancel_and_reset(struct nj_exchange *x, enum nj_reset why);
/* Request body bytes received. */
uint64_t nj_exchange_body_bytes_received(const struct nj_exchange *x);
struct nj_exchange *nj_exchange_of_task(struct nj_task *task);

/* The path of its request as sent, without the query. Valid as long as the exchange. */
struct nj_str nj_exchange_request_path(const struct nj_exchange *x);
/* True while a worker has the exchange. */
bool nj_exchange_is_on_worker(const struct nj_exchange *x);
/* True if the file server has taken over the response. */
bool nj_exchange_sends_file(const struct nj_exchange *x);
/* True if it waits for the handler rather than for the client. */
bool nj_exchange_waits_for_handler(const struct nj_exchange *x);

/*
 * The workers' task port, wrapped: a request is sent to a worker when its body is complete. A
 * strategy uses this in place of the workers' own port, with the set as context.
 */
struct nj_worker_ops nj_exchanges_full_body_worker_ops(struct nj_exchanges *set);

/* Carries out the recorded actions of handlers. Returns the number of exchanges handled. */
uint32_t nj_exchanges_process_dirty(struct nj_exchanges *set, nj_ns now);
/* Runs expired timers, and grants blocks to exchanges that wait for memory. */
void nj_exchanges_tick(struct nj_exchanges *set, nj_ns now);
/* Time of the next timer; 0: settle now. */
nj_ns nj_exchanges_next_at(const struct nj_exchanges *set);
