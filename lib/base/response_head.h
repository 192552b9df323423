/* SPDX-License-Identifier: BSD-3-Clause */
/* A response head under construction. Names and values are borrowed until it is sent, which copies
 * them. */
#pragma once

#include "base/assert.h"
#include "base/header_field.h"
#include "base/limits.h"

/* The fields of a handler, those of a file, and those of the rules of a site together. */
#define NJ_RESP_HEAD_FIELDS_MAX (NJ_RESPONSE_FIELDS_MAX + 16u + 18u)
/* Room before them for the fields of every response, which come first (RFC 9110 5.3): server and
 * date today. */
#define NJ_RESP_HEAD_OWN        4u

/* The most fields of a response, and the most trailer fields. */
#define NJ_RESP_HEAD_SENT_MAX (NJ_RESP_HEAD_OWN + NJ_RESP_HEAD_FIELDS_MAX)

/* The caller's storage; usually on the stack. To begin one, set n_given and n_fields. */
struct nj_resp_head {
    uint32_t n_given;  /* fields of a handler, the first behind the room for those of every
                          response; they may have server and date */
    uint32_t n_fields; /* these and those that were added; without those of every response */
    struct nj_field fields[NJ_RESP_HEAD_OWN + NJ_RESP_HEAD_FIELDS_MAX];
};

static inline void nj_resp_head_add(struct nj_resp_head *r, struct nj_str name, struct nj_str value)
{
    NJ_ASSERT(r->n_fields < NJ_RESP_HEAD_FIELDS_MAX);
    r->fields[NJ_RESP_HEAD_OWN + r->n_fields++] = (struct nj_field){name, value};
}

static inline void nj_resp_head_add_type(struct nj_resp_head *r, struct nj_str type)
{
    nj_resp_head_add(r, NJ_STR("content-type"), type);
    nj_resp_head_add(r, NJ_STR("x-content-type-options"), NJ_STR("nosniff"));
}
