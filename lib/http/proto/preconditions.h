/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditional requests (RFC 9110 13) for GET and HEAD: validators, preconditions and If-Range.
 * Pure. */
#ifndef NJ_HTTP_PROTO_PRECONDITIONS_H
#define NJ_HTTP_PROTO_PRECONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/files/file_ops.h"

/* Values of the precondition fields, several lines joined with commas. p NULL: absent. */
struct nj_preconditions {
    struct nj_str if_match, if_none_match, if_modified_since, if_unmodified_since, if_range, range;
};

#define NJ_ETAG_MAX 48u /* W/"", two numbers of 16 hex digits, and a coding's name */

/* The validators of one representation (RFC 9110 8.8). */
struct nj_validators {
    uint32_t n_etag; /* 0: no entity tag */
    char etag[NJ_ETAG_MAX];
    bool has_date;
    int64_t modified_s; /* UNIX time */
};

/* The validators of an object: a strong entity tag, or a weak one if the object is racy. Without
 * a time, as a listing, it has none. */
void nj_validators_of_object(const struct nj_file_object *object, struct nj_validators *out);
/* Adds the coding's name `mark` to the entity tag: another coding is another representation and
 * needs another tag (RFC 9110 8.8.3.3). */
void nj_validators_add_coding(struct nj_validators *v, struct nj_str mark);

enum nj_precond_result { NJ_PRECOND_PASSED, NJ_PRECOND_NOT_MODIFIED, NJ_PRECOND_FAILED /* 412 */ };

/* Evaluates steps 1 to 4 of RFC 9110 13.2.2. Only for requests that would get 200. */
enum nj_precond_result nj_preconditions_eval(const struct nj_preconditions *c,
                                             const struct nj_validators *v, int64_t now_s);
/* Step 5: true if If-Range is absent or matches, so that the Range field applies. */
bool nj_if_range_holds(const struct nj_preconditions *c, const struct nj_validators *v,
                       int64_t now_s);

#endif
