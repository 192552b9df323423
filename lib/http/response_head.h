/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the heads of responses, for files, handlers and errors; and complete error responses. Root
 * context of the shard only. */
#pragma once

#include "base/response_head.h"
#include "http/transaction.h"

/* Adds the field that a status requires: `extra`, unless its name is empty, such as allow with 405
 * and content-range with 416 (RFC 9110 15.5.6, 15.5.17); else retry-after: 1 with 503 (15.6.4). */
void nj_resp_head_add_by_status(struct nj_resp_head *r, uint16_t status, struct nj_field extra);

/* Sends the response, with server and date unless they were given; see nj_txn_respond(). */
int nj_resp_head_send(struct nj_resp_head *r, struct nj_txn *t, uint16_t status, uint64_t stamp,
                      struct nj_body *body);

/* Sends an error, or another status without content. `extra` as above. */
void nj_respond_error(struct nj_txn *t, uint16_t status, struct nj_field extra);
/* The same with a body: one line of text. */
void nj_respond_error_text(struct nj_txn *t, uint16_t status, struct nj_field extra);
