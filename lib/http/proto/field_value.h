/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces that the values of many fields are made of (RFC 9110 5.6). For lib/http only. */
#ifndef NJ_HTTP_PROTO_FIELD_VALUE_H
#define NJ_HTTP_PROTO_FIELD_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"

static inline void nj__skip(struct nj_str *s, uint32_t n)
{
    s->p += n;
    s->n_bytes -= n;
}

/* Take digits from the front. What does not fit is the largest number there is. False: there are
 * none. */
bool nj__number(struct nj_str *s, uint64_t *out);

/* The next element of a comma-separated list that is not empty (RFC 9110 5.6.1.2), trimmed; commas
 * within quotes belong to the element. False: there is none. */
bool nj__list_next(struct nj_str *rest, struct nj_str *element);

/* Take an element of Accept and its like apart: what stands before the first ';', and its weight in
 * thousandths (RFC 9110 12.4.2), 1000 when there is none. False: the weight is not one. */
bool nj__weighted(struct nj_str element, struct nj_str *name, uint16_t *q);

/* Something that may be sent as a value: nothing that ends a line, no other control (clients reset
 * the stream for one), no blank at either end (RFC 9110 5.5, RFC 9113 8.2.1). Not for lib/http
 * only. */
bool nj_field_value_is_good(const char *value);

/* The byte that the "%41" at the front of `n` bytes stands for (RFC 3986 2.1), or -1: there is no
 * such escape. */
int nj__unescaped(const char *p, size_t n);

#endif
