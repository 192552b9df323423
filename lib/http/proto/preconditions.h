/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditional requests (RFC 9110 13) for GET and HEAD. Pure. */
#ifndef NJ_HTTP_PROTO_PRECONDITIONS_H
#define NJ_HTTP_PROTO_PRECONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "http/files/file_ops.h"

/* The values of these fields, several lines joined with commas; p NULL: there is none. */
struct nj_conditions {
    struct nj_str if_match, if_none_match, if_modified_since, if_unmodified_since, if_range, range;
};

#define NJ_ETAG_MAX 48u /* W/"", two numbers of 16 hex digits, and what tells codings apart */

/* What tells one version of a file from another. */
struct nj_validators {
    uint32_t n_etag; /* 0: none */
    char etag[NJ_ETAG_MAX];
    bool has_date;
    int64_t modified_s; /* UNIX time */
};

/* Those of an object: a strong entity tag, or a weak one when it is racy; of a listing, none. */
void nj_validators_of(const struct nj_object *object, struct nj_validators *out);
/* The same file in another coding is another representation: its entity tag is another, too, with
 * `mark` in it (RFC 9110 8.8.3.3). */
void nj_validators_mark(struct nj_validators *v, struct nj_str mark);

enum nj_verdict { NJ_VERDICT_SEND, NJ_VERDICT_NOT_MODIFIED, NJ_VERDICT_FAILED /* 412 */ };

/* In the order of RFC 9110 13.2.2, steps 1 to 4. Only for what would be answered with 200. */
enum nj_verdict nj_conditions_check(const struct nj_conditions *c, const struct nj_validators *v,
                                    int64_t now_s);
/* Step 5: does If-Range, if there is one, let the Range field count? */
bool nj_conditions_range_counts(const struct nj_conditions *c, const struct nj_validators *v,
                                int64_t now_s);

#endif
