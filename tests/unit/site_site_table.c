/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of sites against a model that applies each section in turn: random configurations,
 * hosts and paths, from a seed (NJ_SEED replays one). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "site/site_table.h"

#define SITES   12u
#define NAMES   3u
#define PATHS   60u
#define QUERIES 25000u

static const char *const labels[] = {"a", "b", "www", "example", "org"};
static const char *const segments[] = {"a", "b", "iso", "iso2", "x.iso", "y.gz", "i"};
static const char *const suffixes[] = {"*.iso", "*.gz", "*.tar.gz", "*.b.iso"};

struct world {
    struct nj_prng r;
    char text[4096][96];
    uint32_t n_texts;
    struct nj_str names[SITES][NAMES];
    struct nj_site_def sites[SITES];
    uint32_t n_sites;
    struct nj_path_def paths[PATHS];
    uint32_t n_paths;
    struct nj_site_field fields[SITES + PATHS][2], named[SITES + PATHS][2];
};

static uint32_t below(struct world *w, uint32_t n)
{
    return (uint32_t)(nj_prng_next(&w->r) % n);
}

static struct nj_str kept(struct world *w, const char *text)
{
    char *to = w->text[w->n_texts++ % 4096];
    snprintf(to, 96, "%s", text);
    return (struct nj_str){to, (uint32_t)strlen(to)};
}

static struct nj_str random_host(struct world *w, bool may_be_wildcard)
{
    char text[96] = "";
    uint32_t n = 1 + below(w, 3);

    if (may_be_wildcard && below(w, 3) == 0)
        strcat(text, "*.");
    for (uint32_t i = 0; i < n; i++) {
        strcat(text, labels[below(w, 5)]);
        if (i + 1 < n)
            strcat(text, ".");
    }
    return kept(w, text);
}

static struct nj_str random_path(struct world *w, bool is_section)
{
    char text[96] = "/";
    uint32_t n = below(w, 4);

    if (is_section && below(w, 4) == 0)
        return kept(w, suffixes[below(w, 4)]);
    for (uint32_t i = 0; i < n; i++) {
        strcat(text, segments[below(w, 7)]);
        if (i + 1 < n || below(w, 2))
            strcat(text, "/");
    }
    return kept(w, text);
}

static struct nj_str text_of(struct world *w, const char *format, uint32_t number)
{
    char text[96];

    snprintf(text, sizeof text, format, number);
    return kept(w, text);
}

/* Where files are, and how they are named. `path`: of the section; NULL: of a site. */
static void add_file_rules(struct world *w, struct nj_site_rules *rules, uint32_t number,
                           const struct nj_str *path)
{
    bool is_suffix = path && path->p[0] == '*';
    bool is_prefix = path && path->p[path->n_bytes - 1] == '/';
    uint32_t kind = below(w, 6); /* 1: an alias; 2: a rewrite; else neither */

    rules->keys |= below(w, 4) ? 0 : NJ_SITE_ROOT;
    rules->keys |= below(w, 3) * NJ_SITE_INDEX & (NJ_SITE_INDEX | NJ_SITE_LISTING);
    if (rules->keys & NJ_SITE_ROOT && below(w, 4))
        rules->root = text_of(w, "/r%u//", number);
    if (rules->keys & NJ_SITE_INDEX)
        rules->index = text_of(w, "index%u", number);
    rules->listing = rules->keys & NJ_SITE_LISTING && below(w, 2);
    rules->keys |= below(w, 2) * NJ_SITE_LOG;
    rules->is_unlogged = rules->keys & NJ_SITE_LOG && below(w, 2);
    rules->n_named = below(w, 3);
    rules->named = w->named[number];
    for (uint32_t i = 0; i < rules->n_named; i++)
        w->named[number][i] = (struct nj_site_field){
            NJ_FIELD_SET, i == 0 ? NJ_STR("404") : NJ_STR(".x"), text_of(w, "%u", number)};
    if (kind == 1 && is_prefix) {
        rules->keys |= NJ_SITE_ALIAS;
        rules->files = below(w, 4) ? text_of(w, "/a%u//", number) : (struct nj_str){0};
    } else if (kind == 2 && path && !is_suffix) {
        rules->keys |= NJ_SITE_REWRITE;
        rules->put = !below(w, 4)                ? (struct nj_str){0}
                     : is_prefix && !below(w, 4) ? NJ_STR("/")
                                                 : text_of(w, is_prefix ? "/w%u/" : "/w%u", number);
    }
}

/* Each key has the number of its section as its value. */
static struct nj_site_rules random_rules(struct world *w, uint32_t number,
                                         const struct nj_str *path)
{
    struct nj_site_rules rules = {.keys = below(w, 2 * NJ_SITE_HANDLER)};

    add_file_rules(w, &rules, number, path);

    if (rules.keys & NJ_SITE_REDIRECT)
        rules.redirect_status = (uint16_t)(1 + number);
    if (rules.keys & NJ_SITE_ALLOW)
        rules.allow = 1 + number;
    if (rules.keys & NJ_SITE_DENY)
        rules.deny = 1 + number;
    if (rules.keys & NJ_SITE_HANDLER)
        rules.handler = 1 + number;
    rules.n_fields = below(w, 3);
    rules.fields = w->fields[number];
    for (uint32_t i = 0; i < rules.n_fields; i++)
        w->fields[number][i] = (struct nj_site_field){
            below(w, 3),
            i == 0 ? NJ_STR("x") : NJ_STR("y"),
            {w->text[0], number}}; /* the length of the value is the number */
    return rules;
}

static bool name_is_taken(const struct world *w, struct nj_str name)
{
    for (uint32_t i = 0; i < w->n_sites; i++)
        for (uint32_t k = 0; k < w->sites[i].n_names; k++)
            if (nj_str_eq(w->names[i][k], name))
                return true;
    return false;
}

static void make_world(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    nj_prng_init(&w->r, seed);
    uint32_t n_sites = 1 + below(w, SITES), n_paths = below(w, PATHS);
    bool has_default = below(w, 2);

    for (uint32_t i = 0; i < n_sites; i++) {
        struct nj_site_def *d = &w->sites[i];
        d->rules = random_rules(w, i, NULL);
        d->names = w->names[i];
        w->n_sites = i + 1;
        for (uint32_t k = 0; !(has_default && i == 0) && k < 1 + below(w, NAMES); k++) {
            struct nj_str name = random_host(w, true);
            if (d->n_names < NAMES && !name_is_taken(w, name))
                w->names[i][d->n_names++] = name;
        }
        if (d->n_names == 0 && !(has_default && i == 0)) { /* another default: not this one */
            char text[32];
            snprintf(text, sizeof text, "site%u", i);
            w->names[i][d->n_names++] = kept(w, text);
        }
    }
    for (uint32_t i = 0; i < n_paths; i++) {
        struct nj_path_def d = {.site = below(w, n_sites), .path = random_path(w, true)};
        bool is_taken = false;
        for (uint32_t k = 0; k < w->n_paths; k++)
            is_taken |= w->paths[k].site == d.site && nj_str_eq(w->paths[k].path, d.path);
        if (is_taken)
            continue;
        d.rules = random_rules(w, SITES + w->n_paths, &d.path);
        w->paths[w->n_paths++] = d;
    }
}

/* --- the model -------------------------------------------------------------------------------- */

static bool ends_with(struct nj_str s, struct nj_str end)
{
    return s.n_bytes >= end.n_bytes &&
           memcmp(s.p + s.n_bytes - end.n_bytes, end.p, end.n_bytes) == 0;
}

static const struct nj_site_def *model_site(const struct world *w, struct nj_str host)
{
    const struct nj_site_def *best = NULL;
    uint32_t n_best = 0;

    for (uint32_t i = 0; i < w->n_sites; i++)
        for (uint32_t k = 0; k < w->sites[i].n_names; k++)
            if (nj_str_eq_nocase(w->names[i][k], host))
                return &w->sites[i];
    for (uint32_t i = 0; i < w->n_sites; i++) {
        for (uint32_t k = 0; k < w->sites[i].n_names; k++) {
            struct nj_str name = w->names[i][k];
            if (name.p[0] != '*' || host.n_bytes < name.n_bytes)
                continue;
            struct nj_str end = {host.p + host.n_bytes - (name.n_bytes - 1), name.n_bytes - 1};
            if (nj_str_eq_nocase(end, (struct nj_str){name.p + 1, name.n_bytes - 1}) &&
                name.n_bytes > n_best) {
                best = &w->sites[i];
                n_best = name.n_bytes;
            }
        }
    }
    for (uint32_t i = 0; !best && i < w->n_sites; i++)
        if (w->sites[i].n_names == 0)
            best = &w->sites[i];
    return best;
}

struct expected {
    struct nj_site_rules rules;
    struct nj_site_field fields[16], named[16];
    /* The last section that says so: with an alias or a rewrite, and their section's path. */
    struct nj_str alias, rewrite, stripped;
};

static void apply_files(struct expected *e, const struct nj_site_rules *r, struct nj_str path)
{
    const struct nj_str none = {0};
    uint32_t n = 0;

    if (r->keys & NJ_SITE_ROOT) {
        e->rules.root = r->root;
        e->alias = none;
    }
    if (r->keys & (NJ_SITE_ALIAS | NJ_SITE_REWRITE)) {
        e->alias = r->keys & NJ_SITE_ALIAS ? r->files : none;
        e->rewrite = r->keys & NJ_SITE_ALIAS ? none : r->put;
        e->stripped = path;
    }
    if (r->keys & NJ_SITE_INDEX)
        e->rules.index = r->index;
    if (r->keys & NJ_SITE_LISTING)
        e->rules.listing = r->listing;
    if (r->keys & NJ_SITE_LOG)
        e->rules.is_unlogged = r->is_unlogged;
    for (uint32_t i = 0; i < e->rules.n_named; i++) {
        bool again = false;
        for (uint32_t k = 0; k < r->n_named; k++)
            again |= nj_str_eq(r->named[k].name, e->named[i].name);
        if (!again)
            e->named[n++] = e->named[i];
    }
    for (uint32_t k = 0; k < r->n_named; k++)
        e->named[n++] = r->named[k];
    e->rules.n_named = n;
}

/* The name of the file for a path, as docs/sites.md says it. */
static void model_name(const struct expected *e, struct nj_str path, char *out, size_t n)
{
    bool is_stripped = e->alias.n_bytes + e->rewrite.n_bytes > 0;
    uint32_t skip = is_stripped ? e->stripped.n_bytes : 1;
    struct nj_str rest = path, front = e->alias.n_bytes > 0 ? e->alias : e->rules.root;
    bool in_other_place = e->rewrite.n_bytes > 1 || (e->rewrite.n_bytes == 1 && skip > 1);

    nj_str_skip(&rest, skip < rest.n_bytes ? skip : rest.n_bytes);
    snprintf(out, n, "%.*s%.*s%.*s",
             front.n_bytes > 0 ? (int)front.n_bytes
             : in_other_place  ? 4
                               : 0,
             front.n_bytes > 0 ? front.p : "/.//",
             e->rewrite.n_bytes > 0 ? (int)e->rewrite.n_bytes - 1 : 0,
             e->rewrite.n_bytes > 0 ? e->rewrite.p + 1 : "", (int)rest.n_bytes, rest.p);
}

static bool same_files(const struct nj_site_rules *got, const struct expected *e,
                       struct nj_str path)
{
    char name[200], expected[200];
    struct nj_str rest = path;
    uint32_t skip = 1 + got->n_strip;
    bool same = got->n_named == e->rules.n_named && got->listing == e->rules.listing &&
                got->is_unlogged == e->rules.is_unlogged && nj_str_eq(got->index, e->rules.index) &&
                nj_str_eq(got->root, e->rules.root);

    for (uint32_t i = 0; same && i < got->n_named; i++)
        same = nj_str_eq(got->named[i].name, e->named[i].name) &&
               nj_str_eq(got->named[i].value, e->named[i].value);
    nj_str_skip(&rest, skip < rest.n_bytes ? skip : rest.n_bytes);
    snprintf(name, sizeof name, "%.*s%.*s%.*s", (int)got->files.n_bytes,
             got->files.n_bytes > 0 ? got->files.p : "", (int)got->put.n_bytes,
             got->put.n_bytes > 0 ? got->put.p : "", (int)rest.n_bytes, rest.p);
    model_name(e, path, expected, sizeof expected);
    return same && strcmp(name, expected) == 0;
}

static void apply(struct expected *e, const struct nj_site_rules *r, struct nj_str path)
{
    struct nj_site_rules *to = &e->rules;
    uint32_t n = 0;

    apply_files(e, r, path);

    to->keys |= r->keys;
    if (r->keys & NJ_SITE_REDIRECT)
        to->redirect_status = r->redirect_status;
    if (r->keys & NJ_SITE_ALLOW)
        to->allow = r->allow;
    if (r->keys & NJ_SITE_DENY)
        to->deny = r->deny;
    if (r->keys & NJ_SITE_HANDLER) {
        to->handler = r->handler;
        to->handler_prefix = path;
    }
    for (uint32_t i = 0; i < to->n_fields; i++) {
        bool is_named = false;
        for (uint32_t k = 0; k < r->n_fields; k++)
            is_named |= nj_str_eq(r->fields[k].name, e->fields[i].name);
        if (!is_named)
            e->fields[n++] = e->fields[i];
    }
    for (uint32_t k = 0; k < r->n_fields; k++)
        e->fields[n++] = r->fields[k];
    to->n_fields = n;
}

static bool is_prefix_of(struct nj_str section, struct nj_str path)
{
    if (section.p[0] != '/' || section.p[section.n_bytes - 1] != '/')
        return false;
    struct nj_str bare = {section.p, section.n_bytes - 1};
    return nj_str_starts_with(path, section) || (bare.n_bytes > 0 && nj_str_eq(path, bare));
}

/* False: no rules. */
static bool model_find(const struct world *w, struct nj_str host, struct nj_str path,
                       struct expected *e)
{
    const struct nj_site_def *site = model_site(w, host);
    const struct nj_path_def *suffix = NULL, *exact = NULL;

    memset(e, 0, sizeof *e);
    if (!site)
        return false;
    uint32_t index = (uint32_t)(site - w->sites);
    apply(e, &site->rules, NJ_STR("/"));
    for (uint32_t i = 0; i < w->n_paths; i++) {
        const struct nj_path_def *d = &w->paths[i];
        if (d->site != index)
            continue;
        struct nj_str end = {d->path.p + 1, d->path.n_bytes - 1};
        if (d->path.p[0] == '*' && ends_with(path, end) &&
            (!suffix || suffix->path.n_bytes < d->path.n_bytes))
            suffix = d;
        if (d->path.p[d->path.n_bytes - 1] != '/' && nj_str_eq(d->path, path))
            exact = d;
    }
    if (suffix)
        apply(e, &suffix->rules, NJ_STR("/"));
    for (uint32_t n = 1; n < 96; n++)
        for (uint32_t i = 0; i < w->n_paths; i++)
            if (w->paths[i].site == index && w->paths[i].path.n_bytes == n &&
                is_prefix_of(w->paths[i].path, path) && !(exact && n == path.n_bytes + 1))
                apply(e, &w->paths[i].rules, w->paths[i].path);
    if (exact)
        apply(e, &exact->rules, exact->path);
    return true;
}

static bool same_fields(const struct nj_site_rules *got, const struct expected *e)
{
    bool same = got->n_fields == e->rules.n_fields;

    for (uint32_t i = 0; same && i < got->n_fields; i++)
        same = nj_str_eq(got->fields[i].name, e->fields[i].name) &&
               got->fields[i].value.n_bytes == e->fields[i].value.n_bytes &&
               got->fields[i].change == e->fields[i].change;
    return same;
}

static void check(struct world *w, const struct nj_sites *s, uint64_t seed)
{
    struct nj_str host = random_host(w, false), path = random_path(w, false);
    char *letter = (char *)host.p + below(w, host.n_bytes);
    struct expected e;

    if (*letter >= 'a' && *letter <= 'z' && below(w, 2))
        *letter -= 0x20;
    const struct nj_site_rules *got = nj_sites_find(s, host, path);
    bool found = model_find(w, host, path, &e);
    cr_assert_eq(got != NULL, found, "seed %lu: %s %s", (unsigned long)seed, host.p, path.p);
    if (got)
        cr_assert(
            got->keys == e.rules.keys && got->redirect_status == e.rules.redirect_status &&
                got->allow == e.rules.allow && got->deny == e.rules.deny && same_fields(got, &e) &&
                same_files(got, &e, path) && got->handler == e.rules.handler &&
                nj_str_eq(got->handler_prefix, e.rules.handler_prefix),
            "seed %lu: %s %s: %x %u %u %u %u, expected %x %u %u %u %u", (unsigned long)seed, host.p,
            path.p, got->keys, got->redirect_status, got->allow, got->deny, got->n_fields,
            e.rules.keys, e.rules.redirect_status, e.rules.allow, e.rules.deny, e.rules.n_fields);
}

/* 40 configurations of 25,000 requests: a million pairs. */
Test(site_site_table, a_million_requests)
{
    struct world *w = malloc(sizeof *w);
    const char *only = getenv("NJ_SEED"), *why;
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;

    cr_assert(w);
    for (uint64_t seed = first; seed < first + (only ? 1 : 40); seed++) {
        make_world(w, seed);
        struct nj_sites *s = nj_sites_new(w->sites, w->n_sites, w->paths, w->n_paths, 1, &why);
        cr_assert(s, "seed %lu: %s", (unsigned long)seed, why);
        uint32_t n_texts = w->n_texts;
        for (uint32_t i = 0; i < QUERIES; i++, w->n_texts = n_texts)
            check(w, s, seed);
        nj_sites_free(s);
    }
    free(w);
}

/* Heads are cached by fields_id: rules with equal ones must add the same fields. */
Test(site_site_table, identities_of_fields)
{
    static const struct nj_site_field x[] = {{NJ_FIELD_SET, NJ_STR_INIT("x"), NJ_STR_INIT("1")}};
    struct nj_str name = NJ_STR("a");
    const struct nj_site_def site = {.names = &name, .n_names = 1};
    const struct nj_path_def paths[] = {
        {0, NJ_STR_INIT("/r/"), {.keys = NJ_SITE_REDIRECT, .redirect_status = 301}},
        {0, NJ_STR_INIT("/x/"), {.n_fields = 1, .fields = x}},
        {0, NJ_STR_INIT("/x/deny/"), {.keys = NJ_SITE_DENY, .deny = 1}},
        {0, NJ_STR_INIT("/x/c/"), {.keys = NJ_SITE_CACHE_CONTROL}},
        {0, NJ_STR_INIT("*.iso"), {.n_fields = 1, .fields = x}},
    };
    const char *why;
    struct nj_sites *s = nj_sites_new(&site, 1, paths, 5, 7, &why);
    cr_assert(s);
#define ID(path) nj_sites_find(s, name, NJ_STR(path))->fields_id
    cr_expect_eq(ID("/r/"), 0);
    cr_expect_geq(ID("/x/"), 7);
    cr_expect_eq(ID("/x/deny/"), ID("/x/"));
    cr_expect_neq(ID("/x/c/"), ID("/x/"));
    cr_expect_neq(ID("/a.iso"), ID("/x/"));
    cr_expect_neq(ID("/a.iso"), 0);
    cr_expect_null(nj_sites_find(s, NJ_STR("b"), NJ_STR("/")));
    cr_expect_null(nj_sites_find(s, NJ_STR(""), NJ_STR("/")));
    cr_expect_null(nj_sites_find(s, name, NJ_STR(""))->sites, "a site without keys");
    nj_sites_free(s);
}

Test(site_site_table, limits)
{
    static struct nj_site_field many[10], more[10];
    static char letters[10][2];
    struct nj_str name = NJ_STR("a");
    const char *why;

    for (uint32_t i = 0; i < 10; i++) {
        letters[i][0] = (char)('a' + i);
        letters[i][1] = (char)('A' + i);
        many[i].name = (struct nj_str){&letters[i][0], 1};
        more[i].name = (struct nj_str){&letters[i][1], 1};
    }
    const struct nj_site_def site = {
        .names = &name, .n_names = 1, .rules = {.n_fields = 10, .fields = many}};
    const struct nj_path_def path = {0, NJ_STR_INIT("/"), {.n_fields = 10, .fields = more}};
    cr_expect_null(nj_sites_new(&site, 1, &path, 1, 1, &why));
    cr_expect_str_eq(why, "the rules of one path change more than 16 fields");
}

/* TLS: if a site has an identity of its own, each host has one, and all rules tell it. */
Test(site_site_table, identities_of_sites)
{
    char text[] = "a*.b";
    struct nj_str names[] = {{text, 1}, {text + 1, 3}};
    struct nj_site_def sites[] = {{.names = &names[0], .n_names = 1, .rules.identity = {1, 0}},
                                  {.names = &names[1], .n_names = 1, .rules.identity = {2, 0}}};
    const struct nj_path_def paths[] = {
        {1, NJ_STR_INIT("/x/"), {.keys = NJ_SITE_CLIENT_CERT, .needs_client_cert = true}},
        {1, NJ_STR_INIT("*.iso"), {.keys = NJ_SITE_CLIENT_CERT}}};
    const char *why;

    for (uint64_t files = 0; files < 2; files++) {
        sites[1].rules.identity.files = files;
        struct nj_sites *s = nj_sites_new(sites, 2, paths, 2, 1, &why);
        cr_assert(s, "%s", why);
        memset(text, '?', sizeof text - 1); /* names are copied */
        const struct nj_site_rules *a = nj_sites_find(s, NJ_STR("a"), NJ_STR("/")),
                                   *b = nj_sites_find(s, NJ_STR("x.b:443"), NJ_STR("/x/y")),
                                   *iso = nj_sites_find(s, NJ_STR("x.b"), NJ_STR("/x/y.iso")),
                                   *none = nj_sites_find(s, NJ_STR("c"), NJ_STR("/"));
        cr_assert(a && b && iso);
        cr_expect(a->identity.site == 1 && a->identity.files == 0);
        cr_expect(b->identity.site == 2 && b->identity.files == files && b->needs_client_cert);
        cr_expect(iso->identity.files == files && iso->needs_client_cert);
        cr_expect_not(nj_sites_find(s, NJ_STR("x.b"), NJ_STR("/y.iso"))->needs_client_cert);
        if (files == 0) {
            cr_expect(!none && !a->sites);
        } else {
            cr_assert(none);
            cr_expect(none->sites == s && none->keys == NJ_SITE_IDENTITY && a->sites == s);
            cr_expect(none->identity.site == 0 && none->identity.files == 0);
        }
        nj_sites_free(s);
        memcpy(text, "a*.b", 4);
    }
}

/* Requests that use rules are counted by shard. */
Test(site_site_table, held)
{
    struct nj_str name = NJ_STR("a");
    const struct nj_site_def site = {.names = &name, .n_names = 1, .rules.keys = NJ_SITE_REDIRECT};
    const char *why;
    struct nj_sites *s = nj_sites_new(&site, 1, NULL, 0, 1, &why);

    cr_assert(s);
    nj_sites_hold(s, 0);
    nj_sites_hold(s, 3);
    cr_expect_eq(nj_sites_n_held(s), 2);
    nj_sites_drop(s, 3);
    nj_sites_drop(s, 0);
    cr_expect_eq(nj_sites_n_held(s), 0);
    nj_sites_free(s);
}
