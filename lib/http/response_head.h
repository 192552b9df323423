/* SPDX-License-Identifier: BSD-3-Clause */
/* A response head under construction, for files, handlers and errors; and complete error responses.
 * Root context of the shard only. Names and values are borrowed until nj_resp_head_send(), which
 * copies them. */
#pragma once

#include "base/limits.h"
#include "http/transaction.h"

/* The fields of a handler and those of a file together. */
#define NJ_RESP_HEAD_FIELDS_MAX (NJ_RESPONSE_FIELDS_MAX + 16u)
/* Room before them for server and date, which come first (RFC 9110 5.3). */
#define NJ_RESP_HEAD_OWN        2u

/* The caller's storage; usually on the stack. It begins with n_given and n_fields. */
struct nj_resp_head {
    uint32_t n_given;  /* fields of a handler, which come first; they may have server and date */
    uint32_t n_fields; /* these and those that were added */
    struct nj_field fields[NJ_RESP_HEAD_OWN + NJ_RESP_HEAD_FIELDS_MAX];
};

static inline void nj_resp_head_add(struct nj_resp_head *r, struct nj_str name, struct nj_str value)
{
    r->fields[NJ_RESP_HEAD_OWN + r->n_fields++] = (struct nj_field){name, value};
}

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
