/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses [site NAME] and [path NAME PATH]. Reference: docs/sites.md. */
#include "config/site_sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "http/proto/field_value.h"
#include "http/proto/path.h"

#define NAME_WANTS                                                                                 \
    "names of hosts without port, e.g. www.example.org, or *.example.org for any name below it"
#define REDIRECT_WANTS                                                                             \
    "301, 302, 307 or 308 and a URL or a path of at most 255 bytes, in which $host and one of "    \
    "$path and $rest may occur once; https; https:PORT; or none"
#define HEADER_WANTS  "set NAME: VALUE, add NAME: VALUE or remove NAME"
#define METHODS_WANTS "methods such as GET, POST, or any"
#define TRY_WANTS     "$path, /FILE or $path, $path/, /FILE with a file below the root; or none"
#define MISSING_WANTS                                                                              \
    "redirect and a URL of at most 255 bytes, in which $path or $rest may occur once; or none"
#define CORS_WANTS "*, an origin such as https://www.example.org, or none"
#define HSTS_WANTS "a time such as 365d, then subdomains or preload after commas, or none"

static const char token[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                            "!#$%&'*+-.^_`|~";

static struct nj_str str_of(const char *s)
{
    return (struct nj_str){s, (uint32_t)strlen(s)};
}

/* --- declarations --------------------------------------------------------------------------- */

/* A name that a host can have; with "*." before it, a wildcard. */
static bool is_name(struct nj_str h)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";

    if (nj_str_starts_with(h, NJ_STR("*.")))
        nj_str_skip(&h, 2);
    for (uint32_t i = 0; i < h.n_bytes; i++)
        if (!memchr(letters, h.p[i], sizeof letters - 1))
            return false;
    return h.n_bytes > 0 && h.n_bytes <= NJ_SITE_HOST_MAX && h.p[0] != '.' &&
           h.p[h.n_bytes - 1] != '.';
}

static bool add_name(struct nj__policy_reader *r, struct nj_site_def *d, struct nj_str name)
{
    if (!nj__site_grow(r, (void **)&d->names, d->n_names, sizeof *d->names))
        return false;
    d->names[d->n_names++] = name;
    return true;
}

/* The word of a section's name, which outlives the call, in lower case. */
static struct nj_str kept_word(struct nj__policy_reader *r, const char *word)
{
    const char *copy = nj__site_own(r, strdup(word));
    struct nj_str s = {copy, copy ? (uint32_t)strlen(copy) : 0};

    return s;
}

/* The site that a section names first; n_sites: there is none. */
static uint32_t find_site(const struct nj_site_sections *s, struct nj_str name)
{
    uint32_t i = 0;

    while (i < s->n_sites && !(s->sites[i].n_names > 0 ? nj_str_eq(s->sites[i].names[0], name)
                                                       : nj_str_eq(name, NJ_STR("default"))))
        i++;
    return i;
}

int nj__site_declare(struct nj__policy_reader *r, const struct nj_ini_section *ini,
                     const char *name)
{
    struct nj_site_sections *s = r->f->sites;
    uint32_t i = s->n_sites;

    if (i == NJ_SITES_MAX) {
        nj_diag_add(r->faults, ini->file, ini->line, "[%s]: expected at most %u sites", ini->name,
                    NJ_SITES_MAX);
        return -1;
    }
    struct nj_str kept = kept_word(r, name);
    nj__policy_to_lower(kept);
    if (!kept.p || !nj__site_grow(r, (void **)&s->sites, i, sizeof *s->sites) ||
        !nj__site_grow(r, (void **)&s->site_at, i, sizeof *s->site_at))
        return -1;
    bool is_default = nj_str_eq(kept, NJ_STR("default"));
    if (!is_default && !is_name(kept)) {
        nj_diag_add(r->faults, ini->file, ini->line,
                    "[%s]: expected the name of a host, e.g. www.example.org or *.example.org, or "
                    "default",
                    ini->name);
        return -1;
    }
    if (is_default && find_site(s, kept) < s->n_sites) {
        nj_diag_add(r->faults, ini->file, ini->line,
                    "[%s]: duplicate; [site default] is on line %u", ini->name,
                    s->site_at[find_site(s, kept)]->line);
        return -1;
    }
    s->sites[i] = (struct nj_site_def){0};
    s->site_at[i] = ini;
    s->n_sites++;
    return is_default || add_name(r, &s->sites[i], kept) ? (int)i : -1;
}

static const char *site_name(void *sections, uint32_t i)
{
    const struct nj_site_sections *s = sections;

    if (i >= s->n_sites)
        return NULL;
    return s->sites[i].n_names > 0 ? s->sites[i].names[0].p : "default";
}

static bool is_path(struct nj_str p)
{
    if (p.p[0] == '*') /* *.iso */
        return p.n_bytes > 2 && p.p[1] == '.' && !memchr(p.p, '/', p.n_bytes) &&
               !strpbrk(p.p + 1, "*%?\\");
    return p.n_bytes < NJ_PATH_PREFIX_MAX && nj_path_is_plain(p);
}

int nj__site_declare_path(struct nj__policy_reader *r, const struct nj_ini_section *ini,
                          const char *site, const char *path)
{
    struct nj_site_sections *s = r->f->sites;
    uint32_t i = s->n_paths;

    if (i == NJ_SITE_PATHS_MAX) {
        nj_diag_add(r->faults, ini->file, ini->line, "[%s]: expected at most %u paths", ini->name,
                    NJ_SITE_PATHS_MAX);
        return -1;
    }
    struct nj_str name = kept_word(r, site), kept = kept_word(r, path);
    nj__policy_to_lower(name);
    if (!name.p || !kept.p || !nj__site_grow(r, (void **)&s->paths, i, sizeof *s->paths) ||
        !nj__site_grow(r, (void **)&s->path_at, i, sizeof *s->path_at))
        return -1;
    uint32_t of = find_site(s, name);
    if (of == s->n_sites) {
        const char *near = r->faults->n < NJ_DIAGS_MAX
                               ? nj__policy_closest_name(name.p, site_name, s)
                               : NULL; /* it is not shown */
        nj_diag_add(r->faults, ini->file, ini->line, "[%s]: there is no [site %s]%s%s%s", ini->name,
                    name.p, near ? ": did you mean " : ": expected the first name of a site",
                    near ? near : "", near ? "?" : "");
        return -1;
    }
    if (!is_path(kept)) {
        nj_diag_add(r->faults, ini->file, ini->line,
                    "[%s]: expected a prefix such as /iso/, a path such as /robots.txt, or a "
                    "suffix such as *.iso; decoded, without . and .., at most 255 bytes",
                    ini->name);
        return -1;
    }
    s->paths[i] = (struct nj_path_def){.site = of, .path = kept};
    s->path_at[i] = ini;
    s->n_paths++;
    return (int)i;
}

/* --- keys ----------------------------------------------------------------------------------- */

static void parse_names(struct nj__policy_reader *r, struct nj_site_def *d,
                        const struct nj_ini_entry *e)
{
    const char *at = e->value;
    struct nj_str word;

    while (at) {
        bool any = nj__policy_next_list_item(&at, &word);
        if (any)
            nj__policy_to_lower(word);
        if (!any || !is_name(word)) {
            nj__policy_report_bad_value(r, e, NAME_WANTS);
            return;
        }
        if (d->n_names == 0) {
            nj_diag_add(r->faults, e->file, e->line,
                        "%s: [site default] has all names that no other site has", e->key);
            return;
        }
        if (!add_name(r, d, word))
            return;
    }
}

/* The bytes of an authority at the front: a host, which may be or have $host, and a port. 0: there
 * is none, or what follows could continue it: a client could then choose another host by $rest. */
static size_t authority_in(const char *text)
{
    size_t n = 0, n_port;

    for (;;) {
        size_t more = strspn(text + n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-._[]");
        if (more == 0 && strncmp(text + n, "$host", 5) == 0)
            more = 5;
        if (more == 0)
            break;
        n += more;
    }
    if (n > 0 && text[n] == ':' && (n_port = strspn(text + n + 1, "0123456789")) > 0)
        n += 1 + n_port;
    bool ends = text[n] == '\0' || text[n] == '/' || text[n] == '?' || text[n] == '#' ||
                strncmp(text + n, "$path", 5) == 0;
    return ends ? n : 0;
}

/* Is it a URL or a path, with $host at most once, and $path or $rest at most once? */
static bool is_template(const char *text)
{
    static const char *const variables[] = {"$host", "$path", "$rest"};
    uint32_t seen = 0;
    size_t n_scheme = strncmp(text, "https://", 8) == 0  ? 8
                      : strncmp(text, "http://", 7) == 0 ? 7
                                                         : 0;

    if (strlen(text) > NJ_SITE_TEMPLATE_MAX)
        return false;
    if (n_scheme > 0 ? authority_in(text + n_scheme) == 0
                     : text[0] != '/' || text[1] == '/' || strncmp(text, "/$path", 6) == 0)
        return false;
    for (const char *p = text; *p; p++) {
        if (*p <= ' ' || *p >= 0x7f || strchr("\"<>\\^`{|}", *p))
            return false;
        if (*p != '$')
            continue;
        uint32_t i = 0;
        while (i < 3 && strncmp(p, variables[i], 5) != 0)
            i++;
        if (i == 3 || (seen & 1u << (i > 0)))
            return false;
        seen |= 1u << (i > 0);
    }
    return true;
}

static void parse_redirect(struct nj__policy_reader *r, struct nj_site_rules *to,
                           const struct nj_ini_entry *e)
{
    const char *v = e->value;
    uint64_t port = 443;
    unsigned status = 0;
    int n = 0;

    to->keys |= NJ_SITE_REDIRECT;
    if (strcmp(v, "none") == 0)
        return;
    if (strcmp(v, "https") == 0 ||
        (strncmp(v, "https:", 6) == 0 && nj_parse_decimal(v + 6, &port))) {
        char *url = NULL;
        if (port < 1 || port > 65535)
            nj__policy_report_bad_value(r, e, "https:PORT with a port from 1 to 65535");
        else if (port == 443)
            to->redirect_to = NJ_STR("https://$host$path");
        else if (nj__site_own(r, asprintf(&url, "https://$host:%u$path", (unsigned)port) < 0 ? NULL
                                                                                             : url))
            to->redirect_to = str_of(url);
        to->redirect_status = 301;
        to->redirect_cleartext_only = true;
        return;
    }
    sscanf(v, "%3u%n", &status, &n);
    if ((status != 301 && status != 302 && status != 307 && status != 308) || n != 3 ||
        (v[3] != ' ' && v[3] != '\t') || !is_template(v + 3 + strspn(v + 3, " \t"))) {
        nj__policy_report_bad_value(r, e, REDIRECT_WANTS);
        return;
    }
    to->redirect_status = (uint16_t)status;
    to->redirect_to = str_of(v + 3 + strspn(v + 3, " \t"));
}

/* Fields that describe the message or its connection: only the server can know them. */
static bool is_of_message(struct nj_str name)
{
    static const char *const names[] = {"connection",    "content-encoding",  "content-length",
                                        "content-range", "content-type",      "date",
                                        "etag",          "keep-alive",        "last-modified",
                                        "location",      "proxy-connection",  "te",
                                        "trailer",       "transfer-encoding", "upgrade"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (nj_str_eq(name, str_of(names[i])))
            return true;
    return false;
}

static void parse_header(struct nj__policy_reader *r, struct nj_site_rules *to,
                         const struct nj_ini_entry *e)
{
    static const char *const words[] = {
        [NJ_FIELD_ADD] = "add", [NJ_FIELD_SET] = "set", [NJ_FIELD_REMOVE] = "remove"};
    const char *v = e->value;
    struct nj_site_field f = {0};
    uint32_t how = 0, n = (uint32_t)strcspn(v, " \t");

    while (how < 3 && (strlen(words[how]) != n || strncmp(v, words[how], n) != 0))
        how++;
    v += n + strspn(v + n, " \t");
    f.name = (struct nj_str){v, (uint32_t)strspn(v, token)};
    v += f.name.n_bytes;
    bool has_value = *v == ':';
    v += has_value;
    v += strspn(v, " \t");
    f.value = str_of(v);
    f.change = (enum nj_field_change)how;
    if (how == 3 || f.name.n_bytes == 0 || has_value == (how == NJ_FIELD_REMOVE) ||
        (how == NJ_FIELD_REMOVE ? *v != '\0' : *v == '\0') || !nj_field_value_is_valid(v)) {
        nj__policy_report_bad_value(r, e, HEADER_WANTS);
        return;
    }
    nj__policy_to_lower(f.name);
    if (is_of_message(f.name) || (f.change != NJ_FIELD_ADD && nj_str_eq(f.name, NJ_STR("vary")))) {
        nj_diag_add(r->faults, e->file, e->line,
                    "%s = %.80s: only the server can set or remove this field%s", e->key, e->value,
                    nj_str_eq(f.name, NJ_STR("vary")) ? "; it can be added" : "");
        return;
    }
    for (uint32_t i = 0; i < to->n_fields; i++) {
        if (!nj_str_eq(to->fields[i].name, f.name) ||
            (f.change == NJ_FIELD_ADD && to->fields[i].change == NJ_FIELD_ADD))
            continue;
        nj_diag_add(r->faults, e->file, e->line, "%s = %.80s: a line above changes the same field",
                    e->key, e->value);
        return;
    }
    if (to->n_fields == NJ_SITE_FIELDS_MAX) {
        nj__policy_report_bad_value(r, e, "at most 16 changes of fields");
        return;
    }
    void *fields = (void *)(uintptr_t)to->fields;
    if (!nj__site_grow(r, &fields, to->n_fields, sizeof f))
        return;
    ((struct nj_site_field *)fields)[to->n_fields++] = f;
    to->fields = fields;
}

static void parse_disposition(struct nj__policy_reader *r, struct nj_site_rules *to,
                              const struct nj_ini_entry *e)
{
    struct nj_ini_entry header = *e;

    header.value = strcmp(e->value, "attachment") == 0 ? "set content-disposition: attachment"
                   : strcmp(e->value, "inline") == 0   ? "set content-disposition: inline"
                   : strcmp(e->value, "none") == 0     ? "remove content-disposition"
                                                       : NULL;
    char *text = header.value ? strdup(header.value) : NULL; /* which parse_header() may change */
    if (!header.value)
        nj__policy_report_bad_value(r, e, "attachment, inline or none; header sets other values");
    else if ((header.value = nj__site_own(r, text)))
        parse_header(r, to, &header);
}

static bool has_lower_case(struct nj_str s)
{
    for (uint32_t i = 0; i < s.n_bytes; i++)
        if (s.p[i] >= 'a' && s.p[i] <= 'z')
            return true;
    return false;
}

/* Methods are case-sensitive (RFC 9110 9.1), and none in use has lower case. GET includes HEAD
 * (9.3.2). */
static void parse_methods(struct nj__policy_reader *r, struct nj_site_rules *to,
                          const struct nj_ini_entry *e)
{
    char text[256] = "";
    size_t n = 0;
    const char *at = e->value;
    struct nj_str word;
    bool has_get = false, has_head = false;

    to->keys |= NJ_SITE_METHODS;
    if (strcmp(e->value, "any") == 0)
        return;
    while (at) {
        if (!nj__policy_next_list_item(&at, &word) || word.n_bytes > 32 ||
            strspn(word.p, token) < word.n_bytes || has_lower_case(word) ||
            n + word.n_bytes + 16 > sizeof text) {
            nj__policy_report_bad_value(r, e, METHODS_WANTS);
            return;
        }
        has_get |= nj_str_eq(word, NJ_STR("GET"));
        has_head |= nj_str_eq(word, NJ_STR("HEAD"));
        n += (size_t)sprintf(text + n, "%s%.*s", n > 0 ? ", " : "", (int)word.n_bytes, word.p);
    }
    if (has_get && !has_head)
        n += (size_t)sprintf(text + n, ", HEAD");
    const char *kept = nj__site_own(r, strdup(text));
    if (kept)
        to->methods = str_of(kept);
}

/* Whether a folder has an index file is always tried, so "$path/" makes no difference. */
static void parse_try(struct nj__policy_reader *r, struct nj_site_rules *to,
                      const struct nj_ini_entry *e)
{
    const char *at = e->value;
    struct nj_str word = {0};

    to->keys |= NJ_SITE_TRY;
    if (strcmp(at, "none") == 0)
        return;
    bool ok = nj__policy_next_list_item(&at, &word) && nj_str_eq(word, NJ_STR("$path")) && at;
    ok = ok && nj__policy_next_list_item(&at, &word);
    if (ok && at && nj_str_eq(word, NJ_STR("$path/")))
        ok = nj__policy_next_list_item(&at, &word);
    if (!ok || at || !nj_path_is_valid_file_path(word)) {
        nj__policy_report_bad_value(r, e, TRY_WANTS);
        return;
    }
    nj_str_skip(&word, 1);
    to->try_file = word;
}

static void parse_missing(struct nj__policy_reader *r, struct nj_site_rules *to,
                          const struct nj_ini_entry *e)
{
    const char *v = e->value;

    to->keys |= NJ_SITE_MISSING;
    if (strcmp(v, "none") == 0)
        return;
    bool ok = strncmp(v, "redirect", 8) == 0 && (v[8] == ' ' || v[8] == '\t');
    if (ok)
        v += 8 + strspn(v + 8, " \t");
    if (!ok || v[0] == '/' || !is_template(v) || strstr(v, "$host"))
        nj__policy_report_bad_value(r, e, MISSING_WANTS);
    else
        to->missing_to = str_of(v);
}

/* The i-th name of the program's handlers. */
static const char *handler_name(void *config, uint32_t i)
{
    const struct nj_server_config *c = config;

    for (uint32_t k = 0; k < c->n_routes; k++)
        if (c->routes[k].path && c->routes[k].path[0] != '/' && i-- == 0)
            return c->routes[k].path;
    return NULL;
}

static void parse_handler(struct nj__policy_reader *r, struct nj_site_rules *to,
                          const struct nj_ini_entry *e)
{
    struct nj_server_config *c = r->config;

    to->keys |= NJ_SITE_HANDLER;
    for (uint32_t i = 0; i < c->n_routes && e->value[0] != '/' && to->handler == 0; i++)
        if (c->routes[i].path && strcmp(c->routes[i].path, e->value) == 0)
            to->handler = i + 1;
    if (to->handler != 0 || strcmp(e->value, "none") == 0) /* which no route may have as its name */
        return;
    const char *near = nj__policy_closest_name(e->value, handler_name, c);
    char wants[160];
    snprintf(wants, sizeof wants, "none, or the name of a handler of the program%s%s%s",
             near                 ? ": did you mean "
             : handler_name(c, 0) ? ""
                                  : ", which has none",
             near ? near : "", near ? "?" : "");
    nj__policy_report_bad_value(r, e, wants);
}

/* `none` stands for no list, and has to be the only value. */
static void parse_lists(struct nj__policy_reader *r, struct nj_site_rules *rules,
                        enum nj_site_key which, uint32_t *to, const char *none,
                        const struct nj_ini_entry *e)
{
    bool is_first = !(rules->keys & which), is_none = strcmp(e->value, none) == 0;

    if (is_none ? !is_first : !is_first && *to == 0)
        nj_diag_add(r->faults, e->file, e->line, "%s = %.80s: %s must be the only value", e->key,
                    e->value, none);
    else if (!is_none)
        *to |= nj__policy_parse_list_names(r, e);
    rules->keys |= which;
}

static void parse_cors(struct nj__policy_reader *r, struct nj_site_rules *to,
                       const struct nj_ini_entry *e)
{
    const char *v = e->value, *host = strncmp(v, "https://", 8) == 0  ? v + 8
                                      : strncmp(v, "http://", 7) == 0 ? v + 7
                                                                      : NULL;

    to->keys |= NJ_SITE_CORS;
    if (strcmp(v, "none") == 0)
        return;
    if (strcmp(v, "*") != 0 &&
        (!host || !*host || host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._:[]")])) {
        nj__policy_report_bad_value(r, e, CORS_WANTS);
        return;
    }
    to->cors_origin = str_of(v);
}

static void parse_hsts(struct nj__policy_reader *r, struct nj_site_rules *to,
                       const struct nj_ini_entry *e)
{
    char time[32], *text = NULL;
    const char *at = e->value;
    struct nj_str word;
    bool subdomains = false, preload = false;
    double seconds;

    to->keys |= NJ_SITE_HSTS;
    if (strcmp(at, "none") == 0)
        return;
    bool ok = nj__policy_next_list_item(&at, &word) && word.n_bytes < sizeof time;
    if (ok)
        snprintf(time, sizeof time, "%.*s", (int)word.n_bytes, word.p);
    ok = ok && !nj_lacks_unit(time) && nj_parse_seconds(time, &seconds) &&
         (seconds == 0 || seconds >= 1) && seconds < 1e10;
    while (ok && at) {
        ok = nj__policy_next_list_item(&at, &word);
        bool is_sub = ok && nj_str_eq(word, NJ_STR("subdomains"));
        bool is_preload = ok && nj_str_eq(word, NJ_STR("preload"));
        subdomains |= is_sub;
        preload |= is_preload;
        ok = is_sub || is_preload;
    }
    if (!ok) {
        nj__policy_report_bad_value(r, e, HSTS_WANTS);
        return;
    }
    int n = asprintf(&text, "max-age=%.0f%s%s", seconds, subdomains ? "; includeSubDomains" : "",
                     preload ? "; preload" : "");
    if (nj__site_own(r, n < 0 ? NULL : text))
        to->hsts = str_of(text);
}

static void parse_cache_control(struct nj__policy_reader *r, struct nj_site_rules *to,
                                const struct nj_ini_entry *e)
{
    to->keys |= NJ_SITE_CACHE_CONTROL;
    if (!nj_field_value_is_valid(e->value))
        nj__policy_report_bad_value(r, e, "a value such as max-age=3600, or none");
    else if (strcmp(e->value, "none") != 0)
        to->cache_control = str_of(e->value);
}

bool nj__site_parse_key(struct nj__policy_reader *r, bool is_site, uint32_t index, const char *key,
                        const struct nj_ini_entry *e)
{
    struct nj_site_sections *s = r->f->sites;
    struct nj_site_rules *to = is_site ? &s->sites[index].rules : &s->paths[index].rules;

    if (is_site && strcmp(key, "name") == 0) {
        parse_names(r, &s->sites[index], e);
    } else if (strcmp(key, "redirect") == 0) {
        parse_redirect(r, to, e);
    } else if (strcmp(key, "header") == 0) {
        parse_header(r, to, e);
    } else if (strcmp(key, "handler") == 0) {
        parse_handler(r, to, e);
    } else if (strcmp(key, "methods") == 0) {
        parse_methods(r, to, e);
    } else if (strcmp(key, "allow") == 0) {
        parse_lists(r, to, NJ_SITE_ALLOW, &to->allow, "all", e);
    } else if (strcmp(key, "deny") == 0) {
        parse_lists(r, to, NJ_SITE_DENY, &to->deny, "none", e);
    } else if (strcmp(key, "cache_control") == 0) {
        parse_cache_control(r, to, e);
    } else if (strcmp(key, "cors") == 0) {
        parse_cors(r, to, e);
    } else if (strcmp(key, "hsts") == 0) {
        parse_hsts(r, to, e);
    } else if (strcmp(key, "try") == 0) {
        parse_try(r, to, e);
    } else if (strcmp(key, "missing") == 0) {
        parse_missing(r, to, e);
    } else if (strcmp(key, "content_disposition") == 0) {
        parse_disposition(r, to, e);
    } else {
        return nj__site_parse_file_key(r, is_site, index, key, e);
    }
    return true;
}

/* --- checks --------------------------------------------------------------------------------- */

/* A name of a site, or a path of one, with its section. */
struct entry {
    uint32_t site;
    const struct nj_ini_section *at;
    struct nj_str text;
};

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    uint32_t n = nj_min_u32(a->text.n_bytes, b->text.n_bytes);
    int order = memcmp(a->text.p, b->text.p, n);

    if (order == 0)
        order = (a->text.n_bytes > b->text.n_bytes) - (a->text.n_bytes < b->text.n_bytes);
    if (order == 0)
        order = (a->site > b->site) - (a->site < b->site);
    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

static void report_second(struct nj__policy_reader *r, const struct entry *e,
                          const struct nj_ini_section *first, const struct nj_ini_section *second)
{
    bool same_file = first->file == second->file;

    nj_diag_add(r->faults, second->file, second->line,
                "%.*s: duplicate; the section %s%s line %u has it, too", (int)e->text.n_bytes,
                e->text.p, same_file ? "on" : "in ", same_file ? "" : first->file, first->line);
}

/* Reports entries with equal texts, and with equal sites if `of_site`. */
static void report_equal(struct nj__policy_reader *r, struct entry *list, uint32_t n, bool of_site)
{
    qsort(list, n, sizeof *list, compare_entries);
    for (uint32_t i = 1; i < n; i++)
        if (nj_str_eq(list[i].text, list[i - 1].text) &&
            (!of_site || list[i].site == list[i - 1].site))
            report_second(r, &list[i], list[i].at > list[i - 1].at ? list[i - 1].at : list[i].at,
                          list[i].at > list[i - 1].at ? list[i].at : list[i - 1].at);
}

static void check_names(struct nj__policy_reader *r)
{
    const struct nj_site_sections *s = r->f->sites;
    uint32_t n_names = 0, n = 0;

    for (uint32_t i = 0; i < s->n_sites; i++)
        n_names += s->sites[i].n_names;
    struct entry *list = calloc((size_t)n_names + s->n_paths + 1, sizeof *list);
    if (!list) {
        nj_diag_add(r->faults, r->path, 0, "out of memory");
        return;
    }
    for (uint32_t i = 0; i < s->n_sites; i++)
        for (uint32_t k = 0; k < s->sites[i].n_names; k++)
            list[n++] = (struct entry){i, s->site_at[i], s->sites[i].names[k]};
    report_equal(r, list, n, false);
    for (n = 0; n < s->n_paths; n++)
        list[n] = (struct entry){s->paths[n].site, s->path_at[n], s->paths[n].path};
    report_equal(r, list, n, true);
    free(list);
}

void nj__site_check(struct nj__policy_reader *r)
{
    const struct nj_site_sections *s = r->f->sites;
    uint32_t n_before = r->faults->n;
    const char *why;

    check_names(r);
    nj__site_check_folders(r);
    if (s->n_sites == 0 || r->faults->n > n_before)
        return;
    struct nj_sites *table = nj_sites_new(s->sites, s->n_sites, s->paths, s->n_paths, 1, &why);
    if (!table)
        nj_diag_add(r->faults, r->path, 0, "%s", why);
    nj_sites_free(table);
}
