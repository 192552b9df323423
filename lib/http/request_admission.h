/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission of requests: begins transactions, and refuses those that the policy or a client's share
 * does not allow. Called on the shard's lcore, in its root context. */
#pragma once

#include "http/transaction.h"

/* Begins the transaction of a request. `path` is its plain path (http/proto/path.h), or empty. The
 * policy selects its class and action. True: the caller serves the request. False: it was answered
 * or reset. *out is the transaction in both cases and ends by nj_txn_end(); NULL with false: the
 * pool or the client's share is used up. */
bool nj_txn_begin(struct nj_txns *set, const struct nj_txn_origin *from,
                  const struct nj_request_head *head, struct nj_str path, struct nj_txn **out);
/* Answers a request with an error and logs it, without a transaction from the pool. For requests
 * that the framing refuses because of their head. They do not count for a client. */
void nj_txns_refuse_and_log(struct nj_txns *set, const struct nj_txn_origin *from,
                            const struct nj_request_head *head, uint16_t status);

/* Moves the transaction to another class before it is answered, also in its client's counts. False:
 * the class's action or its limits for a client refused the request, which was answered. */
bool nj_txn_set_class(struct nj_txn *t, const struct nj_class *class_of);
/* A class of the active policy by name, or NULL. */
const struct nj_class *nj_txns_find_class_by_name(const struct nj_txns *set, const char *name);

/* `n_left` slots of a shared resource are free. True: the client has too many open requests for one
 * of them, and the request was answered with 503. */
bool nj_txn_deny_if_over_share(struct nj_txn *t, uint32_t n_left);
/* Counts `why` and reports the client of a transaction for exceeding that limit. */
void nj_txn_report_abuse(struct nj_txn *t, nj_counter why);
