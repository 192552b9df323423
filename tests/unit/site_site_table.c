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
    struct nj_site_field fields[SITES + PATHS][2];
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

/* Each key has the number of its section as its value. */
static struct nj_site_rules random_rules(struct world *w, uint32_t number)
{
    struct nj_site_rules rules = {.keys = below(w, 2 * NJ_SITE_HANDLER)};

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
        d->rules = random_rules(w, i);
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
        d.rules = random_rules(w, SITES + w->n_paths);
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
    struct nj_site_field fields[16];
};

static void apply(struct expected *e, const struct nj_site_rules *r, struct nj_str path)
{
    struct nj_site_rules *to = &e->rules;
    uint32_t n = 0;

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
        cr_assert(got->keys == e.rules.keys && got->redirect_status == e.rules.redirect_status &&
                      got->allow == e.rules.allow && got->deny == e.rules.deny &&
                      same_fields(got, &e) && got->handler == e.rules.handler &&
                      nj_str_eq(got->handler_prefix, e.rules.handler_prefix),
                  "seed %lu: %s %s: %x %u %u %u %u, expected %x %u %u %u %u", (unsigned long)seed,
                  host.p, path.p, got->keys, got->redirect_status, got->allow, got->deny,
                  got->n_fields, e.rules.keys, e.rules.redirect_status, e.rules.allow, e.rules.deny,
                  e.rules.n_fields);
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
    const struct nj_site_def site = {&name, 1, {.n_fields = 10, .fields = many}};
    const struct nj_path_def path = {0, NJ_STR_INIT("/"), {.n_fields = 10, .fields = more}};
    cr_expect_null(nj_sites_new(&site, 1, &path, 1, 1, &why));
    cr_expect_str_eq(why, "the rules of one path change more than 16 fields");
}

/* Requests that use rules are counted by shard. */
Test(site_site_table, held)
{
    struct nj_str name = NJ_STR("a");
    const struct nj_site_def site = {&name, 1, {.keys = NJ_SITE_REDIRECT}};
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
