/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the table of sites and finds the rules of requests. Hosts are compared without case (RFC
 * 9110 4.2.3), paths as they are. */
#include "site/site_table.h"

#include <ctype.h>
#include <endian.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/request_host.h"
#include "base/text.h"
#include "base/types.h"

/* A section of a path that is no suffix. */
struct path_entry {
    struct nj_str path;
    uint64_t key;    /* key_of() */
    uint32_t parent; /* the longest prefix that has this path, as an index plus 1; 0: none */
    uint32_t rules;  /* of a prefix: followed by those with each suffix of the site */
    bool is_exact;
};

struct site {
    uint32_t rules; /* followed by those with each suffix */
    uint32_t first_path, n_paths;
    uint32_t first_suffix, n_suffixes; /* the longest first */
};

struct host_slot {
    struct nj_str name; /* in lower case; of a wildcard without its '*'; empty: a free slot */
    bool is_wildcard;
    uint32_t site;
};

struct nj_sites {
    struct nj_first_site first; /* nj_sites_first_rules() expects it here */
    struct site *sites;
    uint32_t n_sites;
    uint32_t default_site; /* n_sites: none */
    struct host_slot *hosts;
    char *names; /* their text */
    uint32_t host_mask;
    uint32_t wildcard_bytes_max; /* of their names without the '*'; 0: there are none */
    struct path_entry *paths;    /* by site, then by path */
    struct nj_str *suffixes;     /* without '*' */
    struct nj_site_rules *rules;
    uint32_t n_rules;
    bool denies_any;
    struct nj_site_rules others;       /* of hosts without a site, if it has a key */
    struct nj_site_field **own_fields; /* combined fields, n_own_fields */
    uint32_t n_own_fields;
    struct {
        _Alignas(NJ_CACHE_LINE) _Atomic uint64_t n_held;
    } shard[NJ_SHARDS_MAX];
};

_Static_assert(offsetof(struct nj_sites, first) == 0, "nj_sites_first_rules() casts");

/* --- hosts ---------------------------------------------------------------------------------- */

static inline uint32_t load4(const char *p)
{
    uint32_t word;

    memcpy(&word, p, 4);
    return le32toh(word);
}

/* The first 8 of n bytes, with zeros behind fewer ones, in little endian; without a call. */
static inline uint64_t load(const char *p, uint32_t n)
{
    const uint8_t *u = (const uint8_t *)p;
    uint64_t word;

    if (n >= 8) {
        memcpy(&word, p, 8);
        return le64toh(word);
    }
    if (n >= 4)
        return load4(p) | (uint64_t)load4(p + n - 4) << 8 * (n - 4);
    return n == 0 ? 0
                  : u[0] | (uint32_t)u[n / 2] << 8 * (n / 2) | (uint32_t)u[n - 1] << 8 * (n - 1);
}

static inline bool same_bytes(const char *a, const char *b, uint32_t n)
{
    return n < 8 ? load(a, n) == load(b, n) : nj_site_same_words(a, b, n);
}

static inline bool same_text(struct nj_str a, struct nj_str b)
{
    return a.n_bytes == b.n_bytes && same_bytes(a.p, b.p, a.n_bytes);
}

/* Names are entered by the operator alone, so the hash needs no key. */
static uint32_t hash_name(struct nj_str name)
{
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t h = name.n_bytes;
    uint32_t i = 0;

    for (; i + 8 <= name.n_bytes; i += 8)
        h = (h ^ load(name.p + i, 8)) * k;
    if (i < name.n_bytes)
        h = (h ^ (i > 0 ? load(name.p + name.n_bytes - 8, 8) : load(name.p, name.n_bytes))) * k;
    return (uint32_t)(h >> 32);
}

/* The slot that has the name, or the free one where it would be entered. */
static struct host_slot *find_slot(const struct nj_sites *s, struct nj_str name, bool is_wildcard)
{
    for (uint32_t i = hash_name(name);; i++) {
        struct host_slot *slot = &s->hosts[i & s->host_mask];
        if (slot->name.n_bytes == 0 ||
            (same_text(slot->name, name) && slot->is_wildcard == is_wildcard))
            return slot;
    }
}

static const struct site *site_of(const struct nj_sites *s, const struct host_slot *slot)
{
    return slot->name.n_bytes > 0 ? &s->sites[slot->site] : NULL;
}

/* The site with the longest wildcard that has the host, or NULL. */
static const struct site *find_wildcard(const struct nj_sites *s, struct nj_str host)
{
    const struct site *found = NULL;
    uint32_t i = host.n_bytes > s->wildcard_bytes_max ? host.n_bytes - s->wildcard_bytes_max : 1;

    for (; i < host.n_bytes && !found; i++)
        if (host.p[i] == '.')
            found = site_of(s, find_slot(s, (struct nj_str){host.p + i, host.n_bytes - i}, true));
    return found;
}

/* As find_site(), for an authority with upper case or a port, and for one that no site names. */
__attribute__((noinline)) static const struct site *find_site_slowly(const struct nj_sites *s,
                                                                     struct nj_str authority)
{
    struct nj_str host = nj_host_of_authority(authority);
    char lower[NJ_SITE_HOST_MAX];
    const struct site *site = NULL;

    if (host.n_bytes > 0 && host.n_bytes <= NJ_SITE_HOST_MAX) {
        for (uint32_t i = 0; i < host.n_bytes; i++)
            lower[i] = nj_lower(host.p[i]);
        host.p = lower;
        site = site_of(s, find_slot(s, host, false));
        if (!site && s->wildcard_bytes_max > 0)
            site = find_wildcard(s, host);
    }
    return !site && s->default_site < s->n_sites ? &s->sites[s->default_site] : site;
}

/* Most clients send an authority as its site has it in the table. */
static inline const struct site *find_site(const struct nj_sites *s, struct nj_str authority)
{
    const struct site *site;

    site = authority.n_bytes > 0 ? site_of(s, find_slot(s, authority, false)) : NULL;
    return nj_likely(site != NULL) ? site : find_site_slowly(s, authority);
}

/* --- paths ---------------------------------------------------------------------------------- */

/* The 8 bytes after the first '/', with zeros behind a shorter path, as a number in big endian: it
 * sorts as the path does, but that paths with the same 8 bytes have the same number. */
static uint64_t key_of(struct nj_str path)
{
    return htobe64(htole64(load(path.p + 1, path.n_bytes - 1)));
}

static bool matches(const struct path_entry *e, struct nj_str path)
{
    return (e->is_exact ? path.n_bytes == e->path.n_bytes : path.n_bytes >= e->path.n_bytes) &&
           same_bytes(e->path.p, path.p, e->path.n_bytes);
}

/* The entry with the exact path, else with the longest prefix of it, or NULL. That prefix sorts
 * before the path, and whatever sorts between the two begins with the prefix, too: so it is the
 * last entry that does not sort behind the path, or one of its parents. */
static const struct path_entry *find_path(const struct nj_sites *s, const struct site *site,
                                          struct nj_str path)
{
    const struct path_entry *first = s->paths + site->first_path;
    uint32_t low = 0, high = site->n_paths;
    uint64_t key = key_of(path);

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        const struct path_entry *e = &first[mid];
        if (e->key < key || (e->key == key && nj_str_compare(e->path, path) <= 0))
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return NULL;
    const struct path_entry *e = &first[low - 1];
    while (!matches(e, path)) {
        if (e->parent == 0)
            return NULL;
        e = &s->paths[e->parent - 1];
    }
    return e;
}

/* The number of the longest suffix of the site that the path has, from 1; 0: none. */
static uint32_t find_suffix(const struct nj_sites *s, const struct site *site, struct nj_str path)
{
    for (uint32_t i = 0; i < site->n_suffixes; i++) {
        struct nj_str end = s->suffixes[site->first_suffix + i];
        if (path.n_bytes >= end.n_bytes &&
            memcmp(path.p + path.n_bytes - end.n_bytes, end.p, end.n_bytes) == 0)
            return i + 1;
    }
    return 0;
}

static inline const struct nj_site_rules *rules_of(const struct nj_sites *s,
                                                   const struct site *site, struct nj_str path)
{
    const struct path_entry *e =
        site->n_paths > 0 && path.n_bytes > 0 ? find_path(s, site, path) : NULL;
    if (e && e->is_exact) /* its suffix was considered when the table was made */
        return &s->rules[e->rules];
    return &s->rules[(e ? e->rules : site->rules) + find_suffix(s, site, path)];
}

const struct nj_site_rules *nj_sites_find(const struct nj_sites *s, struct nj_str authority,
                                          struct nj_str path)
{
    const struct site *site = find_site(s, authority);
    return site ? rules_of(s, site, path) : s->others.keys != 0 ? &s->others : NULL;
}

const struct nj_site_rules *nj_sites_find_again(const struct nj_sites *s, uint64_t site,
                                                struct nj_str path, struct nj_site_search *at)
{
    for (uint32_t n = s->denies_any ? s->n_sites : 0; n > 0;
         n--, at->n_looks++, at->site = (at->site + 1) % s->n_sites)
        if (s->rules[s->sites[at->site].rules].identity.site == site)
            return rules_of(s, &s->sites[at->site], path);
    return NULL;
}

uint32_t nj_sites_index(const struct nj_sites *s, struct nj_str authority)
{
    const struct site *site = find_site(s, authority);
    return site ? (uint32_t)(site - s->sites) : UINT32_MAX;
}

/* --- making the table ----------------------------------------------------------------------- */

struct builder {
    struct nj_sites *s;
    const struct nj_site_def *site_defs;
    const struct nj_path_def **sorted; /* definitions of paths, by site and path */
    uint32_t n_paths;                  /* entries of the table */
    uint32_t n_name_bytes;             /* of all hosts, in s->names */
    uint64_t fields_id;
    const char *why;
};

static const char no_memory[] = "out of memory";

static bool is_suffix(const struct nj_path_def *d)
{
    return d->path.p[0] == '*';
}

static bool is_prefix(const struct nj_path_def *d)
{
    return d->path.p[d->path.n_bytes - 1] == '/';
}

/* Suffixes stand behind the paths of their site, the longest first. */
static int compare_defs(const void *x, const void *y)
{
    const struct nj_path_def *a = *(const struct nj_path_def *const *)x,
                             *b = *(const struct nj_path_def *const *)y;

    if (a->site != b->site)
        return a->site < b->site ? -1 : 1;
    if (is_suffix(a) != is_suffix(b))
        return is_suffix(a) ? 1 : -1;
    if (is_suffix(a) && a->path.n_bytes != b->path.n_bytes)
        return a->path.n_bytes > b->path.n_bytes ? -1 : 1;
    return nj_str_compare(a->path, b->path);
}

static int compare_entries(const void *x, const void *y)
{
    const struct path_entry *a = x, *b = y;

    return nj_str_compare(a->path, b->path);
}

static bool has_field(const struct nj_site_field *fields, uint32_t n, struct nj_str name)
{
    uint32_t i = 0;

    while (i < n && !nj_str_eq(fields[i].name, name))
        i++;
    return i < n;
}

/* To *list, with *n of `outer`: those that `inner` does not name, and those of `inner`. */
static bool combine_fields(struct builder *b, const struct nj_site_field **list, uint32_t *n_list,
                           const struct nj_site_field *inner, uint32_t n_inner)
{
    struct nj_sites *s = b->s;
    uint32_t n = 0;

    if (n_inner == 0)
        return true;
    struct nj_site_field **more =
        realloc(s->own_fields, (s->n_own_fields + 1) * sizeof *s->own_fields);
    struct nj_site_field *fields = malloc((*n_list + n_inner) * sizeof *fields);
    if (more)
        s->own_fields = more;
    if (!more || !fields) {
        free(fields);
        b->why = no_memory;
        return false;
    }
    s->own_fields[s->n_own_fields++] = fields;
    for (uint32_t i = 0; i < *n_list; i++)
        if (!has_field(inner, n_inner, (*list)[i].name))
            fields[n++] = (*list)[i];
    for (uint32_t i = 0; i < n_inner; i++)
        fields[n++] = inner[i];
    *list = fields;
    *n_list = n;
    return true;
}

/* Where files are. An alias is a root without the path of its section; the path of a root below it
 * counts as a whole again. */
static void combine_files(struct nj_site_rules *to, const struct nj_site_rules *inner,
                          struct nj_str prefix)
{
    if (inner->keys & NJ_SITE_ROOT)
        to->root = inner->root;
    if (inner->keys & (NJ_SITE_ALIAS | NJ_SITE_REWRITE) ||
        (to->is_alias && (inner->keys & NJ_SITE_ROOT))) {
        bool is_mapped = inner->files.n_bytes > 0 || inner->put.n_bytes > 0;
        to->is_alias = inner->files.n_bytes > 0;
        to->n_strip = is_mapped ? prefix.n_bytes - 1 : 0;
        to->files = inner->files;
        to->put = inner->put;
        if (to->put.n_bytes > 0)
            nj_str_skip(&to->put, 1); /* its '/' */
    }
    if (!to->is_alias)
        to->files =
            to->root.n_bytes > 0 || to->n_strip + to->put.n_bytes == 0 ? to->root : NJ_STR("/.//");
    if (inner->keys & NJ_SITE_INDEX)
        to->index = inner->index;
    if (inner->keys & NJ_SITE_LISTING)
        to->listing = inner->listing;
    if (inner->keys & NJ_SITE_DEFAULT_TYPE)
        to->default_type = inner->default_type;
    if (inner->keys & NJ_SITE_LOG)
        to->is_unlogged = inner->is_unlogged;
}

/* Appends the rules of `outer`, overridden by those of a section, which has `prefix`. */
static bool append_rules(struct builder *b, const struct nj_site_rules *outer,
                         const struct nj_site_rules *inner, struct nj_str prefix)
{
    const uint32_t of_fields =
        NJ_SITE_CACHE_CONTROL | NJ_SITE_CORS | NJ_SITE_HSTS | NJ_SITE_DEFAULT_TYPE | NJ_SITE_NAMED;
    struct nj_sites *s = b->s;

    if (s->n_rules == NJ_SITE_RULES_MAX) {
        b->why = "too many combinations of paths and suffixes";
        return false;
    }
    struct nj_site_rules *to = &s->rules[s->n_rules++];
    *to = outer
              ? *outer
              : (struct nj_site_rules){.identity = inner->identity, .counts_at = inner->counts_at};
    to->keys |= inner->keys | s->others.keys;
    if (inner->keys & NJ_SITE_REDIRECT) {
        to->redirect_status = inner->redirect_status;
        to->redirect_cleartext_only = inner->redirect_cleartext_only;
        to->redirect_to = inner->redirect_to;
        to->prefix = prefix;
    }
    if (inner->keys & NJ_SITE_TRY)
        to->try_file = inner->try_file;
    if (inner->keys & NJ_SITE_MISSING) {
        to->missing_to = inner->missing_to;
        to->missing_prefix = prefix;
    }
    if (inner->keys & NJ_SITE_HANDLER) {
        to->handler = inner->handler;
        to->handler_prefix = prefix;
    }
    if (inner->keys & NJ_SITE_METHODS)
        to->methods = inner->methods;
    if (inner->keys & NJ_SITE_ALLOW)
        to->allow = inner->allow;
    if (inner->keys & NJ_SITE_DENY)
        to->deny = inner->deny;
    s->denies_any |= (to->allow | to->deny) != 0;
    if (inner->keys & NJ_SITE_CLIENT_CERT)
        to->needs_client_cert = inner->needs_client_cert;
    if (inner->keys & NJ_SITE_CACHE_CONTROL)
        to->cache_control = inner->cache_control;
    if (inner->keys & NJ_SITE_CORS)
        to->cors_origin = inner->cors_origin;
    if (inner->keys & NJ_SITE_HSTS)
        to->hsts = inner->hsts;
    if (inner->n_fields > 0 || (inner->keys & of_fields))
        to->fields_id = b->fields_id++;
    if (to->keys != 0 || to->n_fields > 0 || inner->n_fields > 0)
        to->sites = s;
    combine_files(to, inner, prefix);
    if (!combine_fields(b, &to->fields, &to->n_fields, inner->fields, inner->n_fields) ||
        !combine_fields(b, &to->named, &to->n_named, inner->named, inner->n_named))
        return false;
    if (to->n_fields > NJ_SITE_FIELDS_MAX)
        b->why = "the rules of one path change more than 16 fields";
    else if (to->n_named > NJ_SITE_NAMED_MAX)
        b->why = "the rules of one path have more than 64 error pages and types";
    else
        return true;
    return false;
}

/* The rules of a site or a prefix: without a suffix, and with each one. `outer`: the first rules of
 * its parent; NULL: it is a site. */
static bool append_rules_with_suffixes(struct builder *b, const struct site *site,
                                       const struct nj_path_def *const *suffixes,
                                       const struct nj_site_rules *inner, struct nj_str prefix,
                                       uint32_t outer)
{
    struct nj_sites *s = b->s;
    uint32_t own = s->n_rules;
    bool is_site = outer == UINT32_MAX;

    if (!append_rules(b, is_site ? NULL : &s->rules[outer], inner, prefix))
        return false;
    for (uint32_t i = 0; i < site->n_suffixes; i++) {
        bool ok = is_site ? append_rules(b, &s->rules[own], &suffixes[i]->rules, NJ_STR("/"))
                          : append_rules(b, &s->rules[outer + 1 + i], inner, prefix);
        if (!ok)
            return false;
    }
    return true;
}

/* Enters the paths of a site, sorted, with their parents. A prefix without its last '/' is an exact
 * path with the same rules, unless that has a section of its own. */
static void enter_paths(struct builder *b, struct site *site, const struct nj_path_def *const *defs,
                        uint32_t n)
{
    struct path_entry *first = b->s->paths + b->n_paths;
    uint32_t n_entries = 0;

    site->first_path = b->n_paths;
    for (uint32_t i = 0; i < n; i++) {
        struct nj_str path = defs[i]->path;
        first[n_entries++] = (struct path_entry){path, key_of(path), 0, i, !is_prefix(defs[i])};
        struct nj_str bare = {path.p, path.n_bytes - 1};
        const struct nj_path_def key = {.site = defs[i]->site, .path = bare}, *at = &key;
        if (is_prefix(defs[i]) && bare.n_bytes > 0 &&
            !bsearch(&at, defs, n, sizeof(*defs), compare_defs))
            first[n_entries++] = (struct path_entry){bare, key_of(bare), 0, i, true};
    }
    qsort(first, n_entries, sizeof *first, compare_entries);
    for (uint32_t i = 1; i < n_entries; i++) {
        uint32_t p = site->first_path + i; /* the entry before it, as an index plus 1 */
        while (p > 0 && (b->s->paths[p - 1].is_exact ||
                         !nj_str_starts_with(first[i].path, b->s->paths[p - 1].path)))
            p = b->s->paths[p - 1].parent;
        first[i].parent = p;
    }
    site->n_paths = n_entries;
    b->n_paths += n_entries;
}

/* Combines the rules of the entries, whose `rules` are indices of definitions before. Parents stand
 * before their children. */
static bool combine_paths(struct builder *b, const struct site *site,
                          const struct nj_path_def *const *defs,
                          const struct nj_path_def *const *suffixes)
{
    struct nj_sites *s = b->s;

    for (uint32_t i = 0; i < site->n_paths; i++) {
        struct path_entry *e = &s->paths[site->first_path + i];
        const struct nj_path_def *d = defs[e->rules];
        uint32_t outer = e->parent > 0 ? s->paths[e->parent - 1].rules : site->rules;
        e->rules = s->n_rules;
        if (!(e->is_exact
                  ? append_rules(b, &s->rules[outer + find_suffix(s, site, e->path)], &d->rules,
                                 d->path)
                  : append_rules_with_suffixes(b, site, suffixes, &d->rules, d->path, outer)))
            return false;
    }
    return true;
}

static void enter_hosts(struct builder *b, uint32_t i)
{
    struct nj_sites *s = b->s;
    const struct nj_site_def *d = &b->site_defs[i];

    if (d->n_names == 0)
        s->default_site = i;
    for (uint32_t k = 0; k < d->n_names; k++) {
        struct nj_str name = {s->names + b->n_name_bytes, d->names[k].n_bytes};
        bool is_wildcard = d->names[k].p[0] == '*';
        memcpy(s->names + b->n_name_bytes, d->names[k].p, name.n_bytes);
        b->n_name_bytes += name.n_bytes;
        if (i + k == 0 && !is_wildcard && name.n_bytes >= 8 &&
            s->sites[0].n_paths + s->sites[0].n_suffixes == 0)
            s->first = (struct nj_first_site){name, s->rules};
        if (is_wildcard)
            nj_str_skip(&name, 1);
        if (is_wildcard && name.n_bytes > s->wildcard_bytes_max)
            s->wildcard_bytes_max = name.n_bytes;
        *find_slot(s, name, is_wildcard) = (struct host_slot){name, is_wildcard, i};
    }
}

static bool build(struct builder *b, uint32_t n_defs)
{
    struct nj_sites *s = b->s;
    uint32_t at = 0, n_suffixes = 0;

    for (uint32_t i = 0; i < s->n_sites; i++) {
        struct site *site = &s->sites[i];
        uint32_t first = at, n = 0;
        while (at < n_defs && b->sorted[at]->site == i && !is_suffix(b->sorted[at]))
            at++;
        n = at - first;
        const struct nj_path_def *const *suffixes = b->sorted + at;
        site->first_suffix = n_suffixes;
        for (; at < n_defs && b->sorted[at]->site == i; at++) {
            struct nj_str end = b->sorted[at]->path;
            nj_str_skip(&end, 1);
            s->suffixes[n_suffixes++] = end;
        }
        site->n_suffixes = n_suffixes - site->first_suffix;
        site->rules = s->n_rules;
        enter_paths(b, site, b->sorted + first, n);
        enter_hosts(b, i);
        if (!append_rules_with_suffixes(b, site, suffixes, &b->site_defs[i].rules, NJ_STR("/"),
                                        UINT32_MAX) ||
            !combine_paths(b, site, b->sorted + first, suffixes))
            return false;
    }
    return true;
}

/* An upper bound of the combinations: a site has 1 + suffixes for itself and for each prefix, and
 * one for each exact path and for each prefix without its last slash. */
static uint64_t count_rules(const struct nj_path_def *const *sorted, uint32_t n, uint32_t n_sites)
{
    uint64_t total = n_sites;

    for (uint32_t i = 0; i < n;) {
        uint64_t n_exact = 0, n_prefixes = 0, n_suffixes = 0;
        for (uint32_t site = sorted[i]->site; i < n && sorted[i]->site == site; i++) {
            n_suffixes += is_suffix(sorted[i]);
            n_prefixes += is_prefix(sorted[i]);
            n_exact += !is_prefix(sorted[i]) && !is_suffix(sorted[i]);
        }
        total += n_suffixes + n_exact + n_prefixes * (2 + n_suffixes);
    }
    return total;
}

static bool allocate(struct builder *b, uint32_t n_names, size_t n_name_bytes, uint32_t n_defs)
{
    struct nj_sites *s = b->s;
    uint64_t n_rules = count_rules(b->sorted, n_defs, s->n_sites);
    uint32_t n_slots = 8;

    if (n_rules > NJ_SITE_RULES_MAX) {
        b->why = "too many combinations of paths and suffixes";
        return false;
    }
    while (n_slots < 2 * n_names)
        n_slots *= 2;
    s->host_mask = n_slots - 1;
    s->sites = calloc(s->n_sites, sizeof *s->sites);
    s->hosts = calloc(n_slots, sizeof *s->hosts);
    s->names = malloc(n_name_bytes + 1);
    s->paths = calloc(2 * (size_t)n_defs + 1, sizeof *s->paths);
    s->suffixes = calloc((size_t)n_defs + 1, sizeof *s->suffixes);
    s->rules = calloc((size_t)n_rules, sizeof *s->rules);
    if (s->sites && s->hosts && s->names && s->paths && s->suffixes && s->rules)
        return true;
    b->why = no_memory;
    return false;
}

struct nj_sites *nj_sites_new(const struct nj_site_def *sites, uint32_t n_sites,
                              const struct nj_path_def *paths, uint32_t n_paths, uint64_t fields_id,
                              const char **why)
{
    struct nj_sites *s = aligned_alloc(NJ_CACHE_LINE, sizeof *s);
    struct builder b = {.s = s, .site_defs = sites, .fields_id = fields_id, .why = no_memory};
    uint32_t n_names = 0;
    size_t n_name_bytes = 0;

    b.sorted = malloc((n_paths + 1) * sizeof *b.sorted);
    if (s)
        memset(s, 0, sizeof *s);
    bool ok = s && b.sorted;
    if (ok) {
        s->first.name.n_bytes = UINT32_MAX;
        s->n_sites = s->default_site = n_sites;
        for (uint32_t i = 0; i < n_sites; i++) {
            n_names += sites[i].n_names;
            for (uint32_t k = 0; k < sites[i].n_names; k++)
                n_name_bytes += sites[i].names[k].n_bytes;
            if (sites[i].rules.identity.files != 0 || sites[i].own_files != 0)
                s->others = (struct nj_site_rules){
                    .sites = s, .keys = NJ_SITE_IDENTITY, .identity.files = sites[i].own_files};
        }
        for (uint32_t i = 0; i < n_paths; i++)
            b.sorted[i] = &paths[i];
        qsort(b.sorted, n_paths, sizeof *b.sorted, compare_defs);
        ok = allocate(&b, n_names, n_name_bytes, n_paths) && build(&b, n_paths);
    }
    free(b.sorted);
    *why = ok ? NULL : b.why;
    if (ok)
        return s;
    nj_sites_free(s);
    return NULL;
}

void nj_sites_free(struct nj_sites *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_own_fields; i++)
        free(s->own_fields[i]);
    free(s->own_fields);
    free(s->sites);
    free(s->hosts);
    free(s->names);
    free(s->paths);
    free(s->suffixes);
    free(s->rules);
    free(s);
}

bool nj_site_hides(const struct nj_site_rules *r, struct nj_str path)
{
    if (!nj_site_is_of_acme(r))
        return false;
    if (path.n_bytes > 0)
        nj_str_skip(&path, nj_min_u32(1 + r->n_strip, path.n_bytes));
    for (uint32_t i = 0; i < path.n_bytes; i++)
        if (!isalnum((unsigned char)path.p[i]) && path.p[i] != '-' && path.p[i] != '_')
            return true;
    return path.n_bytes < NJ_SITE_TOKEN_MIN;
}

/* --- requests that use the rules ------------------------------------------------------------ */

/* Release: the reads of the rules come before. */
static void add_held(struct nj_sites *s, uint32_t shard, uint64_t n)
{
    _Atomic uint64_t *held = &s->shard[shard].n_held;

    atomic_store_explicit(held, atomic_load_explicit(held, memory_order_relaxed) + n,
                          memory_order_release);
}

void nj_sites_hold(struct nj_sites *s, uint32_t shard)
{
    add_held(s, shard, 1);
}

void nj_sites_drop(struct nj_sites *s, uint32_t shard)
{
    add_held(s, shard, UINT64_MAX);
}

uint64_t nj_sites_n_held(const struct nj_sites *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < NJ_SHARDS_MAX; i++)
        n += atomic_load_explicit(&s->shard[i].n_held, memory_order_acquire);
    return n;
}
