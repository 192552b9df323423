/* SPDX-License-Identifier: BSD-3-Clause */
/* Warns about settings of a policy file that are valid and probably not intended. One function per
 * kind of warning. */
#include "config/policy_warn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "config/config_by_name.h"
#include "config/site_sections.h"

struct warn_ctx {
    const struct nj_policy_file *f;
    const char *path;
    const struct nj_server_config *given;
    struct nj_diags *out;
};

static bool is_always(struct nj_hours h)
{
    return h.from == h.to;
}

/* --- values ----------------------------------------------------------------------------------- */

/* What a value has around it, or at its end, and is probably not meant as a part of it; or NULL. */
static const char *looks_like_syntax(const char *v)
{
    const char *end = v + strlen(v) - (*v != '\0');

    for (const char *p = v; (p = strchr(p, ';')); p++)
        if (p > v && (p[-1] == ' ' || p[-1] == '\t'))
            return "what begins with ; is part of the value: start a comment with #";
    if (*end == ';')
        return "the ; is part of the value: remove it";
    return end > v && *v == *end && (*v == '"' || *v == '\'')
               ? "the quotes are part of the value: remove them"
               : NULL;
}

static void warn_of_text(const struct warn_ctx *w)
{
    const struct nj_ini_section *network = nj__policy_find_section(w->f, "network");

    for (uint32_t i = 0; i < w->f->ini->n_entries; i++) {
        const struct nj_ini_entry *e = &w->f->ini->entry[i];
        const char *value = strcmp(e->key, "header") == 0 ? strchr(e->value, ':') : NULL;
        const char *what = looks_like_syntax(value ? value + strspn(value, ": \t") : e->value);
        if (what)
            nj__warn(w, e, "%s = %.80s: %s", e->key, e->value, what);
        if (e->is_cut)
            nj__warn(w, e,
                     "%s = %.80s: the value ends before #, which begins a comment; write \\# for a "
                     "# of the value",
                     e->key, e->value);
        if (strcmp(e->key, "path") == 0 && strchr(e->value, '*'))
            nj__warn(w, e,
                     "path = %.80s: * is taken literally; a path matches everything with that "
                     "prefix, e.g. /iso/",
                     e->value);
        if (strcmp(e->key, "port") == 0 && strtoul(e->value, NULL, 10) > 31 &&
            e == nj__policy_entry_in(w->f, network, "port", e->value))
            nj__warn(w, e,
                     "port = %.80s: this is DPDK's number of a port, 0, 1, ...; the port of TCP is "
                     "listen = %.80s",
                     e->value, e->value);
    }
}

/* --- unreachable classes ---------------------------------------------------------------------- */

/* Apart from path and host, does `x` match all requests of `c`? */
static bool covers_clients_of(const struct nj_class_def *x, const struct nj_class_def *c)
{
    bool lists = x->lists == 0 || (c->lists != 0 && (c->lists & ~x->lists) == 0);
    bool header =
        x->header.n_bytes == 0 || (nj_str_eq(x->header, c->header) &&
                                   (x->value.n_bytes == 0 || nj_str_eq(x->value, c->value)));
    bool hours =
        is_always(x->hours) || (x->hours.from == c->hours.from && x->hours.to == c->hours.to);
    return lists && header && hours;
}

/* Is an item of the list equal to the text, or a prefix of it, as `match` says? An empty list has
 * all texts. */
static bool covers(const struct nj_str *list, uint32_t n, struct nj_str text,
                   bool (*match)(struct nj_str text, struct nj_str item))
{
    for (uint32_t i = 0; i < n; i++)
        if (match(text, list[i]))
            return true;
    return n == 0;
}

/* The class before `c` that alone matches all its requests below `path`, or NULL. */
static const struct nj_class_def *
find_shadowing_class(const struct warn_ctx *w, const struct nj_class_def *c, struct nj_str path)
{
    for (const struct nj_class_def *x = &w->f->class_at[1]; x < c; x++) {
        bool all = covers_clients_of(x, c) && covers(x->path, x->n_paths, path, nj_str_starts_with);
        for (uint32_t i = 0; i < c->n_hosts; i++)
            all &= covers(x->host, x->n_hosts, c->host[i], nj_str_eq);
        if (all && (c->n_hosts > 0 || x->n_hosts == 0))
            return x;
    }
    return NULL;
}

static void warn_of_shadows(const struct warn_ctx *w)
{
    const struct nj_str any = {"", 0};

    for (uint32_t i = 1; i < w->f->n_classes; i++) {
        const struct nj_class_def *c = &w->f->class_at[i], *x = NULL;
        uint32_t n = 0, n_paths = c->n_paths ? c->n_paths : 1;
        for (uint32_t k = 0; k < n_paths; k++) {
            const struct nj_class_def *other =
                find_shadowing_class(w, c, c->n_paths ? c->path[k] : any);
            n += other != NULL;
            x = other ? other : x;
        }
        if (n == n_paths) {
            nj__warn(w, c->at,
                     "[class %s]: never matches: [class %s] on line %u comes first and matches all "
                     "its requests",
                     c->name, x->name, x->at->line);
            continue;
        }
        const struct nj_ini_entry *e = nj__policy_entry_in(w->f, c->at, "path", NULL);
        for (uint32_t k = 0; k < c->n_paths; k++)
            if ((x = find_shadowing_class(w, c, c->path[k])))
                nj__warn(w, e,
                         "[class %s]: never matches below %.*s: [class %s] on line %u comes first",
                         c->name, (int)c->path[k].n_bytes, c->path[k].p, x->name, x->at->line);
    }
}

/* --- rates ------------------------------------------------------------------------------------ */

static void warn_of_rates_at(const struct warn_ctx *w, const struct nj_policy *p, const char *when)
{
    uint64_t sum = 0, most = p->total.ceiling ? p->total.ceiling : p->total.rate;
    char all[32], server[32];

    for (uint32_t i = 0; i < p->n_classes; i++)
        sum += p->classes[i].total.rate;
    if (most == 0 || sum <= most)
        return;
    nj_format_rate(sum, all, sizeof all);
    nj_format_rate(most, server, sizeof server);
    const struct nj_ini_entry *e = nj__policy_find_entry(w->f, "server", "rate");
    nj_diag_add(w->out, e ? e->file : w->path, e ? e->line : 0,
                "warning: the class rates add up to %s%s, more than the server's %s: no class is "
                "guaranteed its rate; use ceiling for an upper bound",
                all, when, server);
}

/* Warns once, for the first minute of the day at which the sum is too high. */
static void warn_of_rates(const struct warn_ctx *w)
{
    uint64_t before = UINT64_MAX;
    uint32_t n_before = w->out->n;
    struct nj_policy p;
    char when[32] = ""; /* at midnight */

    for (uint32_t minute = 0; minute < 24 * 60 && w->out->n == n_before; minute++) {
        uint64_t hours = nj_policy_active_hours_mask(w->f, minute);
        if (hours == before)
            continue;
        nj_policy_compile(w->f, w->given, NULL, hours, &p);
        if (minute > 0)
            snprintf(when, sizeof when, " from %02u:%02u on", minute / 60, minute % 60);
        warn_of_rates_at(w, &p, when);
        before = hours;
    }
}

/* --- keys without effect ---------------------------------------------------------------------- */

static void NJ_PRINTF(4, 5) warn_no_effect(const struct warn_ctx *w, const struct nj_ini_section *s,
                                           const char *key, const char *why, ...)
{
    const struct nj_ini_entry *e = nj__policy_entry_in(w->f, s, key, NULL);
    char text[160];
    va_list ap;

    va_start(ap, why);
    vsnprintf(text, sizeof text, why, ap);
    va_end(ap);
    if (e)
        nj__warn(w, e, "%s: without effect: %s", key, text);
}

static bool has_limit(const struct nj_limit *l)
{
    return l->rate != 0 || l->ceiling != 0;
}

static uint64_t ceiling_of(const struct nj_limit *l)
{
    return l->ceiling ? l->ceiling : l->rate;
}

/* `c`: the compiled class, with inherited limits; `s`: its section. */
static void warn_of_class(const struct warn_ctx *w, const struct nj_policy *p,
                          const struct nj_class *c, const struct nj_ini_section *s)
{
    const struct {
        const char *key, *of;
        const struct nj_limit *l;
    } bursts[] = {{"burst", "rate nor ceiling", &c->total},
                  {"client_burst", "client_rate nor client_ceiling", &c->client},
                  {"request_burst", "request_rate nor request_ceiling", &c->request},
                  {"rate_after", "request_rate nor request_ceiling", &c->request}};
    const struct {
        const char *key, *by;
        const struct nj_limit *inner, *outer;
    } pairs[] = {{"ceiling", "the server", &c->total, &p->total},
                 {"client_rate", "the class", &c->client, &c->total},
                 {"request_rate", "a client", &c->request, &c->client}};
    const char *key;

    for (size_t i = 0; i < NJ_ARRAY_LEN(bursts); i++)
        if (!has_limit(bursts[i].l))
            warn_no_effect(w, s, bursts[i].key, "neither %s is set", bursts[i].of);
    for (size_t i = 0; i < NJ_ARRAY_LEN(pairs); i++)
        if (has_limit(pairs[i].inner) && has_limit(pairs[i].outer) &&
            ceiling_of(pairs[i].inner) > ceiling_of(pairs[i].outer))
            warn_no_effect(w, s, pairs[i].key, "%s has a lower limit", pairs[i].by);
    if (c->caps.requests_per_s == 0)
        warn_no_effect(w, s, "requests_burst", "requests is not set");
    if (c->action != NJ_ACTION_TOO_MANY)
        warn_no_effect(w, s, "retry_after", "the action is not 429");
    for (uint32_t i = 0; c->action != NJ_ACTION_SERVE && (key = nj_class_key_name(i)); i++)
        if (nj_config_word_index("action|retry_after|connections", key) < 0)
            warn_no_effect(w, s, key, "no request of this class is served");
}

/* All classes count as active, and no section with hours does. */
static void warn_of_classes(const struct warn_ctx *w)
{
    struct nj_policy p;

    nj_policy_compile(w->f, w->given, NULL, UINT64_MAX << NJ_POLICY_HOURS_MAX, &p);
    for (uint32_t i = 0; i < p.n_classes; i++) {
        int of = nj_policy_file_find_class(w->f, p.classes[i].name);
        bool others = false; /* a section with hours has limits of the class, too */
        for (uint32_t k = 0; k < w->f->n_overrides; k++)
            others |= w->f->override[k].class_index == of;
        if (!others)
            warn_of_class(w, &p, &p.classes[i], w->f->class_at[of].at);
    }
    if (w->f->deny == 0 && !w->f->allow_only)
        warn_no_effect(w, nj__policy_find_section(w->f, "server"), "deny_action",
                       "neither allow nor deny is set");
}

/* Only handlers can use a class that matches nothing. */
static void warn_of_no_match(const struct warn_ctx *w)
{
    for (uint32_t i = 1; i < w->f->n_classes && w->given->n_routes == 0; i++) {
        const struct nj_class_def *c = &w->f->class_at[i];
        if (!c->has_match && !c->at->is_incomplete)
            nj__warn(w, c->at, "[class %s]: matches nothing: add path, host, list or header",
                     c->name);
    }
}

static void warn_of_lists(const struct warn_ctx *w)
{
    char name[NJ_CLASS_NAME_MAX + 8];

    for (uint32_t i = 0; i < w->f->n_lists; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < w->f->n_networks; k++)
            n += w->f->network[k].lists >> i & 1;
        snprintf(name, sizeof name, "list %s", w->f->list[i]);
        const struct nj_ini_section *s = nj__policy_find_section(w->f, name);
        if (n == 0)
            nj__warn(w, s, "[%s]: the list is empty", name);
        if (!(w->f->list_used >> i & 1))
            nj__warn(w, s, "[%s]: without effect: no class, site, allow or deny names it", name);
    }
}

#define OVERRIDDEN "overridden by --%s on the command line"

/* Keys that the command line overrides. */
static void warn_of_overruled(const struct warn_ctx *w)
{
    char key[NJ_OPTION_KEY_BYTES];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        bool adds = o->in_policy && o->kind == NJ_OPTION_LIST;
        if (!o->section || !nj_option_has_field(o) || adds || !nj_config_is_set(w->given, o->name))
            continue;
        const struct nj_ini_section *s = nj__policy_find_section(w->f, o->section);
        warn_no_effect(w, s, nj_option_key(o, key), OVERRIDDEN, o->name);
        if (strcmp(o->name, "rate") == 0)
            warn_no_effect(w, s, "ceiling", OVERRIDDEN, o->name);
    }
}

static bool is_set(const struct warn_ctx *w, const struct nj_option *o)
{
    return (strcmp(o->name, "tls-cert") == 0 && w->f->sites->has_cert) ||
           nj_config_is_set(w->given, o->name) || nj__policy_option_entry(w->f, o, NULL);
}

/* Keys that need another one, or that another one hides, as the table says. */
static void warn_of_pairs(const struct warn_ctx *w)
{
    char key[NJ_OPTION_KEY_BYTES];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        const char *other = o->needs ? o->needs : o->hidden_by;
        const struct nj_option *x = nj_options;
        const struct nj_ini_entry *e = other ? nj__policy_option_entry(w->f, o, NULL) : NULL;
        while (e && strcmp(x->name, other) != 0)
            x++;
        if (!e || is_set(w, x) == (o->needs != NULL))
            continue;
        nj_option_key(x, key);
        nj__warn(w, e, "%s: without effect: [%s] %s is %sset%s", e->key, x->section, key,
                 o->needs ? "not " : "", o->needs ? "" : ": remove one of them");
    }
}

/* A trusted proxy has no limits as a client. */
static void warn_of_proxies(const struct warn_ctx *w)
{
    const struct nj_ini_entry *e = nj__policy_find_entry(w->f, "client", "trusted_proxy");

    for (uint32_t i = 0; i < w->f->n_networks; i++) {
        const struct nj_network *net = &w->f->network[i];
        bool v4 = nj_addr_is_v4(&net->addr);
        if (net->lists & w->f->trusted && net->bits == (v4 ? 96 : 0))
            nj_diag_add(w->out, e ? e->file : "--trusted-proxy", e ? e->line : 0,
                        "warning: %s: every host is a trusted proxy: connections are not limited, "
                        "and a header may name any client",
                        v4 ? "0.0.0.0/0" : "::/0");
    }
}

static void warn_of_listeners(const struct warn_ctx *w)
{
    const struct nj_listeners *l = &w->f->listeners;
    bool has_tls = l->n == 0;

    for (uint32_t i = 0; i < l->n; i++)
        has_tls |= l->at[i].is_tls;
    for (uint32_t i = 0; i < w->f->ini->n_sections && !has_tls; i++)
        warn_no_effect(w, &w->f->ini->section[i], "cert", "no section [listen NAME] has tls = yes");
}

void nj_policy_warn(const struct nj_policy_file *f, const char *path,
                    const struct nj_server_config *given, struct nj_diags *warnings)
{
    const struct warn_ctx w = {f, path, given, warnings};

    warn_of_proxies(&w);
    warn_of_listeners(&w);
    warn_of_text(&w);
    warn_of_shadows(&w);
    warn_of_rates(&w);
    warn_of_classes(&w);
    warn_of_no_match(&w);
    warn_of_lists(&w);
    nj__site_warn(f, given, warnings);
    warn_of_pairs(&w);
    warn_of_overruled(&w);
}
