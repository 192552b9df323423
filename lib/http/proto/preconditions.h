/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditional requests (RFC 9110 13) for GET and HEAD: validators, preconditions and If-Range.
 * Pure. */
#pragma once

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
    bool has_date;      /* the two times below are known */
    bool is_date_sent;  /* as last-modified: the last change was so long before the OPEN that every
                           shard knows it, and that a later one has a later changed_s */
    int64_t modified_s; /* UNIX time: the mtime, which programs can set */
    int64_t changed_s;  /* UNIX time: the later one of mtime and ctime. There was no change since */
};

/* The validators of an object that an OPEN with this nj_file_job.current_at_ns found. A racy object
 * has none, nor has a listing, nor a file with a time that is not known exactly. An mtime in the
 * seconds 0 and 1, to which package managers set all files, is no date, and makes the tag weak. */
void nj_validators_of_object(const struct nj_file_object *object, int64_t current_at_ns,
                             struct nj_validators *out);
/* Adds the coding's name `mark` to the entity tag: another coding is another representation and
 * needs another tag (RFC 9110 8.8.3.3). */
void nj_validators_add_coding(struct nj_validators *v, struct nj_str mark);

enum nj_precond_result {
    NJ_PRECOND_PASSED,
    NJ_PRECOND_NOT_MODIFIED,
    NJ_PRECOND_FAILED, /* 412 */
    NJ_PRECOND_RANGE,  /* passed, and the Range field applies */
};

/* Evaluates RFC 9110 13.2.2. Only for requests that would get 200. The Range field applies if the
 * range continues what the client has. A tag names one coding of one version. A date is that of the
 * file and of its siblings alike: it does not tell which of them a client has that accepts codings.
 * If-Modified-Since compares a date weakly, the others strongly (RFC 9110 8.8.2.2).
 */
enum nj_precond_result nj_preconditions_eval(const struct nj_preconditions *c,
                                             const struct nj_validators *v, int64_t now_s,
                                             bool accepts_codings);
