/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cache of parsed request targets: each request's target is parsed once, for policy, routes and
 * files. A result depends on the target alone, so it never becomes stale. Direct-mapped, 512
 * slots; the slot is a keyed hash of the target, so clients cannot choose targets that
 * collide. One lcore only; results are borrowed until the next call.
 */
#pragma once

#include "base/keyed_hash.h"
#include "http/proto/path.h"

/* Number of slots. A target has exactly one. */
#define NJ_PATH_CACHE_ENTRIES 512u
/* Longer targets and longer names are parsed each time. */
#define NJ_PATH_CACHE_KEY_MAX 88u

struct nj_path_cache_entry {
    uint64_t hash;
    uint8_t n_target; /* 0: the entry is empty */
    uint8_t n_path, n_name, n_query;
    bool had_slash;
    char target[NJ_PATH_CACHE_KEY_MAX];
    char plain[1 + NJ_PATH_CACHE_KEY_MAX]; /* '/' and the file name, terminated */
};

struct nj_path_cache {
    struct nj_str index; /* appended to the name of a folder */
    const struct nj_dotfiles *dotfiles;
    struct nj_hash_key key;
    struct nj_mix_key slot_key;
    struct nj_path path; /* result of the last parse; too big for the stack */
    struct nj_path_cache_entry entries[NJ_PATH_CACHE_ENTRIES];
};

/* `t` must be zeroed; its pages are only touched as slots are used. `index` and `dotfiles` (as of
 * nj_path_parse()) live as long as `t`. */
void nj_path_cache_init(struct nj_path_cache *t, struct nj_str index,
                        const struct nj_dotfiles *dotfiles, const struct nj_hash_key *key);

/* A parsed target. Strings are valid until the next call, and no longer than the target. */
struct nj_target {
    enum nj_path_result result;
    struct nj_str path;       /* plain (http/proto/path.h); empty if BAD or TOO_LONG */
    struct nj_str query;      /* within the target, with its '?' */
    bool had_slash;           /* the target ended in '/': the name ends in the index file's */
    struct nj_file_name name; /* terminated; empty if HIDDEN */
};

/* As nj_path_parse(), with the keyed hash of the name. Returns out->result. */
enum nj_path_result nj_path_cache_parse(struct nj_path_cache *t, struct nj_str target,
                                        struct nj_target *out);
