/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/limit_changes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/set_error.h"
#include "base/units.h"

/* --- the list ------------------------------------------------------------------------------- */

static void remove_at(struct nj_limit_changes *c, uint32_t i)
{
    memmove(&c->at[i], &c->at[i + 1], (--c->n - i) * sizeof c->at[0]);
}

/* A later change without an end hides for ever what earlier ones set of the same keys. A rate sets
 * its ceiling and drops its burst, too. */
static uint32_t hidden_by(const struct nj_class_keys *later)
{
    uint32_t hidden = later->set;

    for (uint32_t i = 0; nj_class_key_name(i); i++)
        if (later->set >> i & 1 && i % 3 == 0)
            hidden |= nj_class_key_limit(i);
    return hidden;
}

static void remove_hidden(struct nj_limit_changes *c, uint32_t n_before, const char *of,
                          uint32_t hidden)
{
    for (uint32_t i = n_before; i-- > 0;) {
        struct nj_limit_change *one = &c->at[i];
        if (strcmp(one->of, of) != 0)
            continue;
        one->keys.set &= ~hidden;
        one->then.set &= ~hidden;
        if (one->keys.set == 0)
            remove_at(c, i);
    }
}

static bool is_same_limit(const struct nj_limit_change *a, const struct nj_limit_change *b)
{
    uint32_t bit_a = (uint32_t)__builtin_ctz(a->keys.set),
             bit_b = (uint32_t)__builtin_ctz(b->keys.set);

    return strcmp(a->of, b->of) == 0 && nj_class_key_limit(bit_a) == nj_class_key_limit(bit_b);
}

/* Changes without an end of one limit, one directly over the other, are one. */
static void join_lasting(struct nj_limit_changes *c, const struct nj_limit_change *limit)
{
    struct nj_limit_change *below = NULL;

    for (uint32_t i = 0; i < c->n; i++) {
        struct nj_limit_change *one = &c->at[i];
        if (!is_same_limit(one, limit))
            continue;
        if (one->until != NJ_NEVER) {
            below = NULL;
        } else if (!below) {
            below = one;
        } else {
            nj_class_keys_merge(&below->keys, &one->keys);
            remove_at(c, i--);
        }
    }
}

static bool append(struct nj_limit_changes *c, const struct nj_limit_change *one)
{
    const struct nj_limit_change copy = *one;

    if (one->until == NJ_NEVER)
        remove_hidden(c, c->n, one->of, hidden_by(&one->keys));
    if (c->n == NJ_LIMIT_CHANGES_MAX)
        return false;
    c->at[c->n++] = copy;
    join_lasting(c, &copy);
    return true;
}

bool nj_limit_changes_are_due(const struct nj_limit_changes *c, nj_ns now)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].until <= now)
            return true;
    return false;
}

void nj_limit_changes_end_one(struct nj_limit_changes *c, uint32_t i)
{
    const struct nj_limit_change ended = c->at[i];

    if (ended.then.set == 0) {
        remove_at(c, i);
        return;
    }
    c->at[i].keys = ended.then;
    c->at[i].then.set = 0;
    c->at[i].until = NJ_NEVER;
    remove_hidden(c, i, ended.of, hidden_by(&ended.then));
}

uint32_t nj_limit_changes_end(struct nj_limit_changes *c, nj_ns now)
{
    uint32_t n = 0, i = 0;

    while (i < c->n) {
        if (c->at[i].until > now) {
            i++;
            continue;
        }
        nj_limit_changes_end_one(c, i);
        n++;
        i = 0; /* others may have gone */
    }
    for (i = 0; n > 0 && i < c->n; i++) {
        const struct nj_limit_change one = c->at[i];
        join_lasting(c, &one);
    }
    return n;
}

static int find_class(const struct nj_policy_file *f, const char *of)
{
    return of[0] ? nj_policy_file_find_class(f, of) : -1;
}

void nj_limit_changes_merge(const struct nj_limit_changes *c, const struct nj_policy_file *f,
                            struct nj_policy_changes *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < c->n; i++) {
        int of = find_class(f, c->at[i].of);
        if (of >= 0)
            nj_class_keys_merge(&out->of[of], &c->at[i].keys);
        else if (!c->at[i].of[0])
            nj_class_keys_merge(&out->server, &c->at[i].keys);
    }
}

/* --- the text of a change ------------------------------------------------------------------- */

struct parsed {
    struct nj_limit_change change; /* keys: of all limits */
    const char *then;              /* NULL: none */
    double seconds;                /* 0: no end */
    bool is_formatted;             /* nj_limit_changes_add_formatted() */
};

static bool parse_value(struct nj_class_keys *keys, const char *of, const char *name,
                        const char *value, char *why, size_t n)
{
    int key = nj_class_key_find(name);
    char expected[160];

    if (key < 0 || (!of[0] && !nj_class_key_allowed_for_server((uint32_t)key)))
        return nj_set_error(why, n,
                            "%.60s: expected a limit that [%s] of the configuration file has", name,
                            of[0] ? "class NAME" : "server") == 0;
    if (of[0] && strcmp(of, "default") != 0 && strcmp(name, "connections") == 0)
        return nj_set_error(why, n, "connections: only the class default may set it") == 0;
    if (!nj_class_key_parse(keys, (uint32_t)key, value, expected, sizeof expected))
        return nj_set_error(why, n, "%.60s = %.60s: expected %s", name, value, expected) == 0;
    return true;
}

/* "KEY=VALUE" */
static bool parse_pair(struct parsed *p, char *pair, char *why, size_t n)
{
    char *is = strchr(pair, '=');

    if (!is)
        return nj_set_error(why, n, "%.60s: expected KEY=VALUE", pair) == 0;
    *is = '\0';
    if (strcmp(pair, "then") == 0) {
        p->then = is + 1;
        return true;
    }
    if (strcmp(pair, "for") != 0)
        return parse_value(&p->change.keys, p->change.of, pair, is + 1, why, n);
    if (!nj_parse_seconds(is + 1, &p->seconds) || p->seconds < 1 ||
        p->seconds > NJ_LIMIT_CHANGE_SECONDS_MAX)
        return nj_set_error(why, n, "for = %.60s: expected a time from 1s to 366d, such as 2h",
                            is + 1) == 0;
    return true;
}

static bool parse_then(struct parsed *p, char *why, size_t n)
{
    const struct nj_limit_change *c = &p->change;

    if (!p->then)
        return true;
    if (p->seconds == 0 || (c->keys.set & (c->keys.set - 1)) != 0)
        return nj_set_error(why, n,
                            "then: expected one KEY=VALUE, and for=TIME, after which it follows") ==
               0;
    return parse_value(&p->change.then, c->of,
                       nj_class_key_name((uint32_t)__builtin_ctz(c->keys.set)), p->then, why, n);
}

static bool parse(struct parsed *p, const struct nj_policy_file *f, char *text, char *why, size_t n)
{
    char *save = NULL, *pair = strtok_r(text, ", ", &save);

    if (pair && strncmp(pair, "class=", 6) == 0) {
        if (nj_policy_file_find_class(f, pair + 6) < 0)
            return nj_set_error(why, n, "%.60s: there is no such class", pair) == 0;
        snprintf(p->change.of, sizeof p->change.of, "%s", pair + 6);
        pair = strtok_r(NULL, ", ", &save);
    }
    for (; pair; pair = strtok_r(NULL, ", ", &save))
        if (!parse_pair(p, pair, why, n))
            return false;
    if (p->change.keys.set == 0)
        return nj_set_error(why, n, "nothing to change: expected KEY=VALUE, e.g. rate=5MiB/s") == 0;
    const char *wrong = p->is_formatted ? NULL : nj_class_keys_error(&p->change.keys);
    if (wrong)
        return nj_set_error(why, n, "%s", wrong) == 0;
    return parse_then(p, why, n);
}

/* One change for each limit. */
static bool append_parsed(struct nj_limit_changes *c, const struct nj_limit_change *all)
{
    uint32_t left = all->keys.set;

    while (left) {
        struct nj_limit_change one = *all;
        one.keys.set &= nj_class_key_limit((uint32_t)__builtin_ctz(left));
        if (!append(c, &one))
            return false;
        left &= ~one.keys.set;
    }
    return true;
}

static bool add_text(struct nj_limit_changes *c, const struct nj_policy_file *f, const char *text,
                     nj_ns now, bool is_formatted, struct nj_limit_change *added, char *why,
                     size_t why_bytes)
{
    struct parsed p = {.change.until = NJ_NEVER, .is_formatted = is_formatted};
    char *copy = strdup(text);
    struct nj_limit_changes *next = copy ? malloc(sizeof *next) : NULL;
    bool ok = false;

    if (!next) {
        nj_set_error(why, why_bytes, "no memory");
    } else if (parse(&p, f, copy, why, why_bytes)) {
        *next = *c;
        if (p.seconds > 0)
            p.change.until = now + (nj_ns)(p.seconds * (double)NJ_SEC);
        ok = append_parsed(next, &p.change);
        if (ok)
            *c = *next;
        else
            nj_set_error(why, why_bytes, "%u limits are changed, which is the most",
                         NJ_LIMIT_CHANGES_MAX);
        *added = p.change;
    }
    free(next);
    free(copy);
    return ok;
}

bool nj_limit_changes_add(struct nj_limit_changes *c, const struct nj_policy_file *f,
                          const char *text, nj_ns now, struct nj_limit_change *added, char *why,
                          size_t why_bytes)
{
    return add_text(c, f, text, now, false, added, why, why_bytes);
}

bool nj_limit_changes_add_formatted(struct nj_limit_changes *c, const struct nj_policy_file *f,
                                    const char *text, nj_ns now, struct nj_limit_change *added)
{
    char why[160];

    return add_text(c, f, text, now, true, added, why, sizeof why);
}

/* --- what follows a reload ------------------------------------------------------------------ */

static void add(char *text, size_t size, const char *fmt, ...) NJ_PRINTF(3, 4);
static void add(char *text, size_t size, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, size - n, fmt, ap);
    va_end(ap);
}

const char *nj_class_keys_format(const struct nj_class_keys *keys, uint32_t i, char *text, size_t n)
{
    struct nj_class values = keys->value;

    if (!(keys->set >> i & 1))
        return NULL;
    const char *value = nj_class_key_format(&values, i, text, n);
    return value ? value : strcmp(nj_class_key_name(i), "action") == 0 ? "serve" : "none";
}

static void add_keys(const struct nj_class_keys *keys, uint32_t which, char *text, size_t size)
{
    char value[64];

    for (uint32_t i = 0; nj_class_key_name(i); i++)
        if (which & keys->set & 1u << i)
            add(text, size, ",%s=%s", nj_class_key_name(i),
                nj_class_keys_format(keys, i, value, sizeof value));
}

/* FNV-1a */
static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static uint64_t hash_keys(uint64_t h, const struct nj_class_keys *keys, uint32_t which)
{
    char text[256] = "";

    add_keys(keys, which, text, sizeof text);
    return hash_text(h, text);
}

uint64_t nj_limit_change_file_hash(const struct nj_limit_change *c, const struct nj_policy_file *f)
{
    uint32_t which = nj_class_key_limit((uint32_t)__builtin_ctz(c->keys.set));
    int of = find_class(f, c->of);
    uint64_t h = 0xcbf29ce484222325u;
    char hours[32];

    if (of < 0 && c->of[0])
        return hash_text(h, "no class");
    h = hash_keys(h, of < 0 ? &f->server : &f->class_at[of].keys, which);
    for (uint32_t i = 0; i < f->n_overrides; i++) {
        const struct nj_limit_override *o = &f->override[i];
        if (o->class_index != (of < 0 ? NJ_POLICY_WHOLE_SERVER : of) || !(o->keys.set & which))
            continue;
        snprintf(hours, sizeof hours, "@%u-%u", o->hours.from, o->hours.to);
        h = hash_keys(hash_text(h, hours), &o->keys, which);
    }
    return h;
}

uint32_t nj_limit_changes_keep(struct nj_limit_changes *c, const struct nj_policy_file *now,
                               const struct nj_policy_file *next)
{
    uint32_t n = c->n;

    for (uint32_t i = c->n; i-- > 0;) {
        const struct nj_limit_change *one = &c->at[i];
        bool has_class = !one->of[0] || find_class(next, one->of) >= 0;
        if (!has_class ||
            nj_limit_change_file_hash(one, now) != nj_limit_change_file_hash(one, next))
            remove_at(c, i);
    }
    return n - c->n;
}

uint32_t nj_limit_change_seconds_left(const struct nj_limit_change *c, nj_ns now)
{
    if (c->until == NJ_NEVER)
        return 0;
    return c->until > now ? (uint32_t)((c->until - now + NJ_SEC - 1) / NJ_SEC) : 1;
}

bool nj_limit_change_format(const struct nj_limit_change *c, nj_ns now, char *text, size_t n)
{
    char value[64];

    text[0] = '\0';
    if (c->of[0])
        add(text, n, "class=%s", c->of);
    add_keys(&c->keys, c->keys.set, text, n);
    if (c->until != NJ_NEVER)
        add(text, n, ",for=%us", nj_limit_change_seconds_left(c, now));
    if (c->then.set)
        add(text, n, ",then=%s",
            nj_class_keys_format(&c->then, (uint32_t)__builtin_ctz(c->then.set), value,
                                 sizeof value));
    if (text[0] == ',')
        memmove(text, text + 1, strlen(text));
    return strlen(text) + 1 < n;
}

const struct nj_class *nj_limits_of(const struct nj_policy *p, const char *of,
                                    struct nj_class *server)
{
    *server = (struct nj_class){.total = p->total};
    if (!of[0])
        return server;
    for (uint32_t i = 0; i < p->n_classes; i++)
        if (strcmp(p->classes[i].name, of) == 0)
            return &p->classes[i];
    return NULL;
}

static const char *shown(const struct nj_class *c, uint32_t i, char *text, size_t n)
{
    const char *value = c ? nj_class_key_format(c, i, text, n) : "?";

    return value ? value : "none";
}

void nj_limit_change_describe(const struct nj_limit_change *c, const struct nj_policy *before,
                              const struct nj_policy *after, nj_ns now, char *text, size_t n)
{
    struct nj_class all_before, all_after;
    const struct nj_class *from = nj_limits_of(before, c->of, &all_before),
                          *to = nj_limits_of(after, c->of, &all_after);
    char was[64], is[64];
    const char *comma = "";

    text[0] = '\0';
    add(text, n, "%s%s: ", c->of[0] ? "class " : "server", c->of);
    for (uint32_t i = 0; nj_class_key_name(i); i++) {
        const char *before_text = shown(from, i, was, sizeof was),
                   *after_text = shown(to, i, is, sizeof is);
        if (!(c->keys.set >> i & 1) && strcmp(before_text, after_text) == 0)
            continue;
        add(text, n, "%s%s %s -> %s", comma, nj_class_key_name(i), before_text, after_text);
        comma = ", ";
    }
    if (c->until != NJ_NEVER)
        add(text, n, ", for %u s", nj_limit_change_seconds_left(c, now));
    if (c->then.set)
        add(text, n, ", then %s",
            nj_class_keys_format(&c->then, (uint32_t)__builtin_ctz(c->then.set), was, sizeof was));
}
