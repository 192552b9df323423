/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits that were changed at run time, in the order of the changes: each applies over those before
 * it and over the file (nj_policy_compile()). One with an end is taken away when that has come, so
 * that what is below it follows, or becomes the value that was given to follow. A reload keeps the
 * changes of limits that the next file has as the former one.
 *
 * A change concerns one limit: rate, ceiling and burst are one, as are those of client_ and of
 * request_; each other key is one. Pure, except that memory is the caller's.
 */
#pragma once

#include "base/types.h"
#include "config/policy_file.h"

#define NJ_LIMIT_CHANGES_MAX        128u
#define NJ_LIMIT_CHANGE_SECONDS_MAX (366u * 24u * 3600u)

struct nj_limit_change {
    char of[NJ_CLASS_NAME_MAX]; /* a class; "": the whole server */
    struct nj_class_keys keys;
    nj_ns until;               /* of CLOCK_MONOTONIC; NJ_NEVER: it has no end */
    struct nj_class_keys then; /* what follows its end; none set: what is below */
};

struct nj_limit_changes {
    uint32_t n;
    struct nj_limit_change at[NJ_LIMIT_CHANGES_MAX];
};

/* Add a change, "class=NAME,KEY=VALUE,KEY=VALUE,for=TIME,then=VALUE": without class it is of the
 * whole server, without `for` it has no end, and `then`, with one KEY and `for`, is the value of
 * that key from the end on. *added gets it, with its limits together. False, with the reason:
 * nothing has changed. Values that contradict each other are refused, but not those of a text of
 * nj_limit_change_format(), which may join changes that were made one after the other. */
bool nj_limit_changes_add(struct nj_limit_changes *c, const struct nj_policy_file *f,
                          const char *text, nj_ns now, struct nj_limit_change *added, char *why,
                          size_t why_bytes);
bool nj_limit_changes_add_formatted(struct nj_limit_changes *c, const struct nj_policy_file *f,
                                    const char *text, nj_ns now, struct nj_limit_change *added);
/* Has the end of one come? */
bool nj_limit_changes_are_due(const struct nj_limit_changes *c, nj_ns now);
/* Take away those whose end has come. Returns how many. */
uint32_t nj_limit_changes_end(struct nj_limit_changes *c, nj_ns now);
/* Take away one, as if its end had come. */
void nj_limit_changes_end_one(struct nj_limit_changes *c, uint32_t i);
/* As nj_policy_compile() takes them. Those of classes that the file does not have are left out. */
void nj_limit_changes_merge(const struct nj_limit_changes *c, const struct nj_policy_file *f,
                            struct nj_policy_changes *out);

/* What the file says of the limit of a change, without the command line, as a hash of the values
 * and their hours, the same in each version of nightjar that writes values in the same way. */
uint64_t nj_limit_change_file_hash(const struct nj_limit_change *c, const struct nj_policy_file *f);
/* Take away the changes of limits that the next file has otherwise, or whose class it does not
 * have. Returns how many. */
uint32_t nj_limit_changes_keep(struct nj_limit_changes *c, const struct nj_policy_file *now,
                               const struct nj_policy_file *next);

/* "class=NAME,KEY=VALUE,...,for=SECONDSs,then=VALUE", as nj_limit_changes_add() takes it. False: it
 * does not fit. The time is rounded up. */
bool nj_limit_change_format(const struct nj_limit_change *c, nj_ns now, char *text, size_t n);
/* What a change has done: "class video: rate none -> 5MiB/s, for 7200 s". */
void nj_limit_change_describe(const struct nj_limit_change *c, const struct nj_policy *before,
                              const struct nj_policy *after, nj_ns now, char *text, size_t n);
/* The class of a name in a policy, of "" the server, with its limits in *server. NULL: it is not
 * in force now. */
const struct nj_class *nj_limits_of(const struct nj_policy *p, const char *of,
                                    struct nj_class *server);
/* What is left of it, rounded up, at least 1; 0: it has no end. */
uint32_t nj_limit_change_seconds_left(const struct nj_limit_change *c, nj_ns now);
/* The value of key `i` of a set, as the file has it, "none" if it is unlimited. NULL: not set. */
const char *nj_class_keys_format(const struct nj_class_keys *keys, uint32_t i, char *text,
                                 size_t n);
