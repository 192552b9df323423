/* SPDX-License-Identifier: BSD-3-Clause */
/* Who answers a request: the handler of a route, the file server, or an error. The top of lib/http.
 * Called on the shard's lcore, in its root context. */
#pragma once

#include "http/files/file_server.h"
#include "http/handlers/exchange.h"
#include "http/proto/path_cache.h"
#include "http/transaction.h"

/* Dispatches a request to the handler of a route, or to the file server, which is mounted at "/"
 * and may respond at once. `exchanges` NULL: no routes are configured. `n_conn_tasks` is the number
 * of running handlers of the connection. Returns the exchange of a handler, which the caller
 * submits to the strategy; else NULL. */
struct nj_exchange *nj_http_dispatch(struct nj_file_server *site, struct nj_exchanges *exchanges,
                                     struct nj_txn *t, const struct nj_request_head *head,
                                     const struct nj_target *target, uint32_t n_conn_tasks);
