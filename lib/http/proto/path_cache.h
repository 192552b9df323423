/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What request targets name: parsed once for each request, for whoever wants to know its path.
 * Those that were asked for lately are remembered with what came of them, which depends on nothing
 * else: most targets come again, from whomever. One lcore only.
 */
#ifndef NJ_HTTP_PROTO_PATH_CACHE_H
#define NJ_HTTP_PROTO_PATH_CACHE_H

#include "base/hash.h"
#include "http/proto/path.h"

/* Remembered, each in the one place that its octets and the key
 * choose: who wants two of them to push each other out has to find them by trying. */
#define NJ_TARGETS          512u
/* Longer ones, and longer names, are looked into each time. */
#define NJ_TARGET_BYTES_MAX 88u

struct nj_target_known {
    uint64_t hash;
    uint8_t n_target; /* 0: none is here */
    uint8_t n_path, n_name, n_query;
    bool had_slash;
    char target[NJ_TARGET_BYTES_MAX];
    char plain[1 + NJ_TARGET_BYTES_MAX]; /* '/' and the name, terminated */
};

struct nj_targets {
    struct nj_str index; /* what a folder's name is completed with */
    struct nj_hash_key key;
    struct nj_mix_key place_key;
    struct nj_path path; /* of the last that was looked into; too big for the stack */
    struct nj_target_known known[NJ_TARGETS];
};

/* What is zeroed, and touched only as far as it is used. */
void nj_targets_init(struct nj_targets *t, struct nj_str index, const struct nj_hash_key *key);

/* Strings live until the next call, and no longer than the target. */
struct nj_target {
    enum nj_path_result result;
    struct nj_str path;  /* plain (http/path.h). Empty: it has none, as it is BAD or TOO_LONG */
    struct nj_str query; /* in the target, with its '?' */
    bool had_slash;      /* it ended in '/': the name ends in that of the index */
    struct nj_object_name name; /* terminated; not of HIDDEN */
};

/* As nj_path_parse(), with the keyed hash of the name. Its result is that of `out`, too. */
enum nj_path_result nj_target_parse(struct nj_targets *t, struct nj_str target,
                                    struct nj_target *out);

#endif
