/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches parsed request targets in a direct-mapped table with a keyed hash. Parsing itself is
 * nj_path_parse() (RFC 3986 3.3). */
#include "http/proto/path_cache.h"

#include <string.h>

#include "base/compiler.h"

void nj_path_cache_init(struct nj_path_cache *t, struct nj_str index,
                        const struct nj_dotfiles *dotfiles, const struct nj_hash_key *key)
{
    t->index = index;
    t->dotfiles = dotfiles;
    t->key = *key;
    t->slot_key = nj_mix_key_derive(key, "targets");
}

static struct nj_path_cache_entry *slot_of(struct nj_path_cache *t, struct nj_str target)
{
    return &t->entries[nj_mix_bytes(&t->slot_key, 0, target.p, target.n_bytes) %
                       NJ_PATH_CACHE_ENTRIES];
}

static bool is_hit(const struct nj_path_cache_entry *k, struct nj_str target)
{
    return k->n_target == target.n_bytes && memcmp(k->target, target.p, target.n_bytes) == 0;
}

static void store_entry(struct nj_path_cache_entry *k, struct nj_str target,
                        const struct nj_target *what)
{
    if (what->name.n_bytes >= NJ_PATH_CACHE_KEY_MAX)
        return;
    k->hash = what->name.hash;
    k->n_target = (uint8_t)target.n_bytes;
    k->n_path = (uint8_t)what->path.n_bytes;
    k->n_name = (uint8_t)what->name.n_bytes;
    k->n_query = (uint8_t)what->query.n_bytes;
    k->had_slash = what->had_slash;
    memcpy(k->target, target.p, target.n_bytes);
    memcpy(k->plain, what->path.p, 1 + what->name.n_bytes + 1);
}

/* Parses a target that is not cached. Not inlined: the compiler probes the stack for the functions
 * it calls, and cached targets need no such probe. */
static __attribute__((noinline)) enum nj_path_result
parse_uncached(struct nj_path_cache *t, struct nj_str target, struct nj_target *out)
{
    struct nj_path *p = &t->path;
    enum nj_path_result r = nj_path_parse(target, t->index, t->dotfiles, p);

    *out = (struct nj_target){.result = r};
    if (r != NJ_PATH_OK && r != NJ_PATH_HIDDEN)
        return r;
    out->path = (struct nj_str){p->plain, p->n_path};
    out->query = p->query;
    out->had_slash = p->had_slash;
    if (r == NJ_PATH_OK)
        out->name =
            (struct nj_file_name){p->name, p->n_bytes, nj_hash(&t->key, p->name, p->n_bytes)};
    return r;
}

enum nj_path_result nj_path_cache_parse(struct nj_path_cache *t, struct nj_str target,
                                        struct nj_target *out)
{
    if (nj_unlikely(target.n_bytes > NJ_PATH_CACHE_KEY_MAX || target.n_bytes == 0))
        return parse_uncached(t, target, out);
    struct nj_path_cache_entry *k = slot_of(t, target);
    if (nj_likely(is_hit(k, target))) {
        out->result = NJ_PATH_OK;
        out->path = (struct nj_str){k->plain, k->n_path};
        out->query = (struct nj_str){target.p + target.n_bytes - k->n_query, k->n_query};
        out->had_slash = k->had_slash;
        out->name = (struct nj_file_name){k->plain + 1, k->n_name, k->hash};
        return NJ_PATH_OK;
    }
    enum nj_path_result r = parse_uncached(t, target, out);
    if (r == NJ_PATH_OK)
        store_entry(k, target, out);
    return r;
}
