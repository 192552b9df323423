/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every spelling of a path gets the class, route and file of its plain form, or is refused: with
 * 400, or with 414 if it is too long. Random tables of routes and classes, random paths and random
 * spellings are compared with their plain form and with a model.
 *
 * A seed is one table. NJ_SEED=n runs this table only.
 */
#include "spellings_model.h"

#include "base/prng.h"

#define TABLES    500u
#define PATHS     500u /* of a table */
#define SPELLINGS 4u   /* of a path: 10^6 in all */
#define POOL      14u  /* segments of a table */
#define SEGMENT   16u

/* --- random tables and paths ------------------------------------------------------------------ */

struct walk {
    uint64_t seed;
    struct nj_prng r;
    struct table table;
    char pool[POOL][SEGMENT];
    struct rig *rig;
    struct bytes path, target; /* a plain path; a spelling of it */
    struct seen plain, seen, want;
    struct meaning meaning;
    uint32_t n_asked, n_same, n_refused; /* spellings */
    uint32_t n_status[600];              /* responses to these */
};

static uint32_t below(struct walk *w, uint32_t n)
{
    return nj_prng_below(&w->r, n);
}

static bool one_in(struct walk *w, uint32_t n)
{
    return below(w, n) == 0;
}

static const char *pick(struct walk *w, const char *const *from, uint32_t n)
{
    return from[below(w, n)];
}

/* Includes segments that double decoding, or no decoding, would change. */
static void any_segment(struct walk *w, char out[SEGMENT])
{
    static const char *const special[] = {
        ".well-known", ".git", "...",  "..a", "a..", "%2e%2e", "%2E",        "%2f",
        "%5c",         "%00",  "%61b", "a%",  "a?b", "a#b",    "index.html", "i",
        ".well-knowN", "a b",  "%25",  "*",   "~",   "%",      "\xc3\xa4",   "%c3%a4"};
    static const char bytes[] = "aabbcd.%2eE5?#+ ~*:;=\xc3\xa4\xff";

    if (one_in(w, 2)) {
        strcpy(out, pick(w, special, NJ_ARRAY_LEN(special)));
        return;
    }
    do {
        uint32_t n = 1 + below(w, 6);
        for (uint32_t i = 0; i < n; i++)
            out[i] = bytes[below(w, sizeof bytes - 1)];
        out[n] = '\0';
    } while (strcmp(out, ".") == 0 || strcmp(out, "..") == 0);
}

/* Makes up to `n_max` segments, with or without a trailing slash. */
static void any_path(struct walk *w, uint32_t n_max, struct bytes *out)
{
    set(out, "/", 1);
    for (uint32_t n = below(w, n_max + 1); n > 0; n--) {
        const char *segment = w->pool[below(w, POOL)];
        put(out, segment, (uint32_t)strlen(segment));
        if (n > 1 || one_in(w, 4))
            put_byte(out, '/');
    }
}

static void put_escape(struct walk *w, char c, struct bytes *out)
{
    char text[4];

    snprintf(text, sizeof text, one_in(w, 2) ? "%%%02x" : "%%%02X", (unsigned char)c);
    put(out, text, 3);
}

static bool is_unreserved(char c)
{
    return strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", c) != NULL;
}

static bool is_new(const struct table *t, const struct route *r)
{
    for (uint32_t i = 0; i < t->n_routes; i++) {
        const struct route *o = &t->route[i];
        bool same_method =
            o->method && r->method ? strcmp(o->method, r->method) == 0 : o->method == r->method;
        if (same_method && o->is_prefix == r->is_prefix && o->n_plain == r->n_plain &&
            memcmp(o->plain, r->plain, r->n_plain) == 0)
            return false;
    }
    return true;
}

static void any_route(struct walk *w)
{
    static const char *const methods[] = {"GET", "GET", "POST", "HEAD", "OPTIONS", NULL, NULL};
    static struct bytes path, pattern;
    struct table *t = &w->table;
    struct route *r = &t->route[t->n_routes];

    any_path(w, 3, &path);
    r->is_prefix = one_in(w, 2);
    if (r->is_prefix && !ends_in_slash(&path))
        put_byte(&path, '/');
    if (r->is_prefix && path.n == 1 && !one_in(w, 8)) /* else it often matches everything */
        return;
    r->method = pick(w, methods, NJ_ARRAY_LEN(methods));
    pattern.n = 0;
    for (uint32_t i = 0; i < path.n; i++)
        if (path.p[i] == '/' || (is_unreserved(path.p[i]) && !one_in(w, 8)))
            put_byte(&pattern, path.p[i]);
        else
            put_escape(w, path.p[i], &pattern);
    if (r->is_prefix)
        put_byte(&pattern, '*');
    put_byte(&pattern, '\0');
    cr_assert_leq(pattern.n, PATTERN_MAX);
    memcpy(r->pattern, pattern.p, pattern.n);
    memcpy(r->plain, path.p, path.n);
    r->n_plain = path.n;
    t->n_routes += is_new(t, r);
}

/* Makes a prefix of some path, or a whole path. */
static void any_rule(struct walk *w)
{
    static struct bytes path;
    struct rule *r = &w->table.rule[w->table.n_rules++];

    do
        any_path(w, 3, &path);
    while (path.n == 1);
    r->n_prefix = one_in(w, 2) ? path.n : 2 + below(w, path.n - 1);
    memcpy(r->prefix, path.p, r->n_prefix);
    r->class_index = 1 + below(w, CLASSES - 1);
}

static void any_table(struct walk *w)
{
    for (uint32_t i = 0; i < POOL; i++)
        any_segment(w, w->pool[i]);
    while (w->table.n_routes < ROUTES)
        any_route(w);
    while (w->table.n_rules < RULES)
        any_rule(w);
    w->table.index = one_in(w, 2) ? "index.html" : "i";
    w->table.listing = one_in(w, 2);
}

/* --- random spellings ------------------------------------------------------------------------- */

enum trick { NONE, SLASH, BROKEN, BACKSLASH, CONTROL, FRAGMENT, RELATIVE, N_TRICKS };

struct spelling {
    enum trick trick;
    uint32_t at;         /* offset in the path */
    bool dots;           /* has "." and ".." segments, at least before slash number dots_at */
    uint32_t dots_at;    /* counted from 0 */
    bool doubles;        /* has "//" */
    bool stretched;      /* has very many of them */
    uint32_t escapes;    /* 0: as few as possible; 1: all; n: one in n */
    bool query, control; /* control: the query has one */
};

static void put_raw_or_escape(struct walk *w, char c, struct bytes *out)
{
    if (one_in(w, 2))
        put_byte(out, c);
    else
        put_escape(w, c, out);
}

static void put_text(const char *text, struct bytes *out)
{
    put(out, text, (uint32_t)strlen(text));
}

static void put_trick(struct walk *w, const struct spelling *s, struct bytes *out)
{
    static const char *const broken[] = {"%%41", "%g1", "%1g", "%-1", "% 1", "%.", "%1", "%"};
    static const char *const relative[] = {"a", "*", "http://a", "%2f", ".", ".."};
    uint32_t n_broken = NJ_ARRAY_LEN(broken) - (s->at == w->path.n ? 0 : 2);

    switch (s->trick) {
    case SLASH:
        put_text(one_in(w, 2) ? "%2f" : "%2F", out);
        break;
    case BROKEN:
        put_text(pick(w, broken, n_broken), out);
        break;
    case BACKSLASH:
        put_raw_or_escape(w, '\\', out);
        break;
    case CONTROL:
        put_raw_or_escape(w, one_in(w, 8) ? '\x7f' : (char)below(w, ' '), out);
        break;
    case FRAGMENT:
        put_byte(out, '#');
        break;
    case RELATIVE:
        put_text(pick(w, relative, NJ_ARRAY_LEN(relative)), out);
        break;
    case NONE:
    case N_TRICKS:
        break;
    }
}

static void put_dots(struct walk *w, uint32_t n, struct bytes *out)
{
    while (n-- > 0)
        put_raw_or_escape(w, '.', out);
}

/* After a slash: segments that RFC 3986 5.2.4 removes, with their slash. The last may have none
 * where the path ends. */
static void put_dot_segments(struct walk *w, bool first, bool last, struct bytes *out)
{
    uint32_t kind = below(w, first ? 3 : 2);

    if (kind == 0) {
        put_dots(w, 1, out);
    } else {
        if (kind == 1) {
            const char *segment = w->pool[below(w, POOL)];
            for (; *segment; segment++)
                put_escape(w, *segment, out);
            put_byte(out, '/');
        }
        put_dots(w, 2, out);
    }
    if (!last || one_in(w, 2))
        put_byte(out, '/');
}

static void put_slash(struct walk *w, const struct spelling *s, uint32_t number, bool last,
                      struct bytes *out)
{
    put_byte(out, '/');
    if (s->doubles && one_in(w, 2))
        put(out, "///", 1 + below(w, 3));
    if (s->dots && (number == s->dots_at || one_in(w, 4)))
        put_dot_segments(w, number == 0, last, out);
}

static void put_query(struct walk *w, const struct spelling *s, struct bytes *out)
{
    static const char *const some[] = {"a", "=", "&", "?", "/", "/../", "%2e", "%", "#", "//", "."};
    uint32_t n = below(w, 6);

    put_byte(out, '?');
    if (one_in(w, 200)) /* of a target of maximum length, and longer */
        n = NJ_PATH_MAX - 8 + below(w, 16);
    for (uint32_t i = 0; i < n && out->n < NJ_PATH_MAX + 8; i++)
        put_text(pick(w, some, NJ_ARRAY_LEN(some)), out);
    if (s->control)
        put_byte(out, one_in(w, 8) ? '\x7f' : (char)below(w, ' '));
}

/* Adds slashes after the first, until the path has about the maximum length. */
static void stretch(struct walk *w, struct bytes *out)
{
    uint32_t n = NJ_PATH_MAX - 4 + below(w, 8);

    if (out->n >= n || out->p[0] != '/')
        return;
    n -= out->n;
    memmove(out->p + 1 + n, out->p + 1, out->n - 1);
    memset(out->p + 1, '/', n);
    out->n += n;
}

/* w->target is a spelling of w->path. */
static void spell(struct walk *w, const struct spelling *s)
{
    const struct bytes *path = &w->path;
    struct bytes *out = &w->target;
    uint32_t n_slashes = 0;

    out->n = 0;
    for (uint32_t i = 0; i <= path->n; i++) {
        if (i == s->at)
            put_trick(w, s, out);
        if (i == path->n)
            break;
        char c = path->p[i];
        if (c == '/')
            put_slash(w, s, n_slashes++, i == path->n - 1, out);
        else if (s->escapes == 1 || strchr("%?#", c) || (s->escapes && one_in(w, s->escapes)))
            put_escape(w, c, out);
        else
            put_byte(out, c);
    }
    if (s->stretched)
        stretch(w, out);
    if (s->query)
        put_query(w, s, out);
}

static uint32_t count_slashes(const struct bytes *path)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < path->n; i++)
        n += path->p[i] == '/';
    return n;
}

static struct spelling any_spelling(struct walk *w)
{
    struct spelling s = {
        .trick = one_in(w, 4) ? (enum trick)below(w, N_TRICKS) : NONE,
        .at = below(w, w->path.n + 1),
        .dots = one_in(w, 4),
        .dots_at = below(w, count_slashes(&w->path)),
        .doubles = one_in(w, 2),
        .stretched = one_in(w, 200),
        .escapes = below(w, 6),
        .query = one_in(w, 3),
    };
    s.control = s.query && one_in(w, 16);
    if (s.trick == RELATIVE)
        s.at = 0;
    return s;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Printable, for messages. */
static const char *shown(const struct bytes *b)
{
    static char text[5][512];
    static uint32_t at;
    char *out = text[at++ % 5];
    size_t n = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < b->n && n + 5 < sizeof text[0]; i++)
        n += (size_t)snprintf(out + n, sizeof text[0] - n,
                              b->p[i] > ' ' && b->p[i] != '\x7f' ? "%c" : "<%02x>",
                              (unsigned char)b->p[i]);
    return out;
}

static bool same(const struct seen *a, const struct seen *b)
{
    return a->status == b->status && a->route == b->route && a->length == b->length &&
           strcmp(a->class_of, b->class_of) == 0 && same_bytes(&a->path, &b->path) &&
           same_bytes(&a->file, &b->file);
}

static void check(struct walk *w, const char *method, const char *what, const struct seen *seen,
                  const struct seen *want)
{
    cr_assert(same(seen, want),
              "seed %lu: %s %s: %u, class %s, route %d, path %s, file %s, length %lu; %s: %u, "
              "class %s, route %d, path %s, file %s, length %lu",
              (unsigned long)w->seed, method, shown(&w->target), seen->status, seen->class_of,
              seen->route, shown(&seen->path), shown(&seen->file), (unsigned long)seen->length,
              what, want->status, want->class_of, want->route, shown(&want->path),
              shown(&want->file), (unsigned long)want->length);
}

/* The server treats w->target as the model does. */
static void ask(struct walk *w, const char *method, struct seen *seen)
{
    mean(&w->table, w->target.p, w->target.n, &w->meaning);
    want_of(&w->table, &w->meaning, w->target.n, method, &w->want);
    rig_ask(w->rig, method, &w->target, seen);
    const struct bytes *to = &w->rig->location;
    const char *mark = memchr(to->p, '?', to->n);
    if (seen->status == 301)
        cr_assert(decode(to->p, mark ? (uint32_t)(mark - to->p) : to->n, &seen->file));
    check(w, method, "the model", seen, &w->want);
    cr_assert(same_bytes(&seen->query, &w->want.query), "seed %lu: query of %s",
              (unsigned long)w->seed, shown(&w->target));
}

/* The model finds the features that were put into a spelling. */
static void check_model(struct walk *w, const struct spelling *s)
{
    const struct meaning *m = &w->meaning;
    bool refused = s->trick != NONE || s->dots || s->control;

    if (m->verdict == LONG)
        return;
    cr_assert_eq(m->verdict == BAD, refused, "seed %lu: %s", (unsigned long)w->seed,
                 shown(&w->target));
    if (s->trick == NONE && !s->control)
        cr_assert(same_bytes(&m->rfc, &w->path), "seed %lu: %s is %s, not %s",
                  (unsigned long)w->seed, shown(&w->target), shown(&m->rfc), shown(&w->path));
}

static void any_spellings(struct walk *w)
{
    static const char *const methods[] = {"GET", "GET", "GET", "HEAD", "POST", "DELETE", "OPTIONS"};
    const char *method = pick(w, methods, NJ_ARRAY_LEN(methods));

    any_path(w, 4, &w->path);
    if (one_in(w, 200)) /* about the maximum length, with or without an index file's name */
        for (uint32_t n = NJ_PATH_MAX - 16 + below(w, 20); w->path.n < n;)
            put_byte(&w->path, w->path.n == n - 1 && one_in(w, 2) ? '/' : 'a');
    spell(w, &(struct spelling){.trick = NONE});
    ask(w, method, &w->plain);
    for (uint32_t i = 0; i < SPELLINGS; i++, w->n_asked++) {
        struct spelling s = any_spelling(w);
        spell(w, &s);
        ask(w, method, &w->seen);
        check_model(w, &s);
        w->n_status[w->seen.status]++;
        if (w->meaning.verdict == BAD || w->meaning.verdict == LONG || w->seen.status == 414) {
            w->n_refused++;
            cr_assert(w->seen.status >= 400);
        } else {
            w->n_same++;
            check(w, method, "its plain form", &w->seen, &w->plain);
        }
        if (one_in(w, 16)) /* may be cached */
            ask(w, method, &w->seen);
    }
}

static void walk(struct walk *w, uint64_t seed)
{
    w->seed = seed;
    w->table.n_routes = w->table.n_rules = 0;
    nj_prng_init(&w->r, seed);
    any_table(w);
    w->rig = rig_begin(&w->table);
    for (uint32_t i = 0; i < PATHS; i++)
        any_spellings(w);
    rig_end(w->rig);
}

Test(http_spellings, as_the_plain_form, .timeout = 100)
{
    static const uint16_t all[] = {200, 204, 301, 400, 403, 404, 405, 414};
    const char *replay = getenv("NJ_SEED");
    uint64_t first = replay ? strtoull(replay, NULL, 0) : 1, n = replay ? 1 : TABLES;
    struct walk *w = calloc(1, sizeof *w);

    fprintf(stderr, "seeds %lu to %lu\n", (unsigned long)first, (unsigned long)(first + n - 1));
    for (uint64_t seed = first; seed < first + n; seed++)
        walk(w, seed);
    fprintf(stderr, "%u spellings: %u as the plain form, %u refused\n", w->n_asked, w->n_same,
            w->n_refused);
    cr_assert_eq(w->n_asked, n * PATHS * SPELLINGS);
    cr_assert_gt(w->n_same, w->n_asked / 3);
    cr_assert_gt(w->n_refused, w->n_asked / 10);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(all); i++) {
        fprintf(stderr, "%u: %u\n", all[i], w->n_status[all[i]]);
        cr_assert(replay || w->n_status[all[i]] > w->n_asked / 1000, "%u is rare", all[i]);
    }
    free(w);
}
