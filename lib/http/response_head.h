/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a response while it is built, whoever answers; and the answers that are errors. */
#ifndef NJ_HTTP_RESPONSE_HEAD_H
#define NJ_HTTP_RESPONSE_HEAD_H

#include "base/limits.h"
#include "http/transaction.h"

/* Those that a handler may add, and those of a file. */
#define NJ_REPLY_FIELDS_MAX (NJ_RESPONSE_FIELDS_MAX + 16u)

/* Strings of fields live until it is sent. */
struct nj_reply {
    struct nj_txn *txn;
    uint16_t status;
    uint32_t n_fields;
    struct nj_field fields[NJ_REPLY_FIELDS_MAX];
    char length[NJ_DIGITS_MAX];
};

void nj_reply_begin(struct nj_reply *r, struct nj_txn *t, uint16_t status);
void nj_reply_add(struct nj_reply *r, struct nj_str name, struct nj_str value);
/* "server" and "date", unless there are such fields already. */
void nj_reply_add_own(struct nj_reply *r);
void nj_reply_add_length(struct nj_reply *r, uint64_t n_bytes);
/* content-type, and that it is to be believed. */
void nj_reply_add_type(struct nj_reply *r, struct nj_str type);

/* What the status has to come with: `extra`, unless its name is empty, as allow with 405 and
 * content-range with 416 (RFC 9110 15.5.6, 15.5.17); else retry-after: 1 with 503 (15.6.4). */
void nj_reply_add_extra(struct nj_reply *r, struct nj_field extra);

/* The response; see nj_txn_respond(). */
int nj_reply_send(const struct nj_reply *r, uint64_t stamp, struct nj_body *body);

/* Answer a transaction with an error, or another status without content of its own; `extra` as
 * above. */
void nj_reply_error(struct nj_txn *t, uint16_t status, struct nj_field extra);
/* The same with a line of text for people. */
void nj_reply_error_text(struct nj_txn *t, uint16_t status, struct nj_field extra);

#endif
