/* SPDX-License-Identifier: BSD-3-Clause */
/* Warns of keys of sites and paths that are valid and contradict each other. One function per kind
 * of warning; a key that is new in the table needs none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/units.h"
#include "config/config_by_name.h"
#include "config/policy_warn.h"
#include "config/site_sections.h"
#include "http/proto/path.h"
#include "http/site/site_location.h"

#define HOPS_MAX    8        /* of redirects that are followed */
#define LOOKUPS_MAX 1000000u /* of warn_of_open_hosts() */

struct ctx {
    const struct nj_policy_file *f;
    const struct nj_site_sections *s;
    const struct nj_sites *table;
    struct nj_diags *out;
    bool has_tls;
    const char *tls_port, *root, *dotfiles; /* NULL: not set */
    bool *has_exception;                    /* of each site: a path takes its redirect away */
};

/* A section of a site or a path, and a request that it has. */
struct section {
    const struct nj_ini_section *at;
    const struct nj_site_rules *rules;
    uint32_t site;
    bool is_site;
    char host[NJ_SITE_HOST_MAX + 8], path[NJ_PATH_MAX];
};

static const struct nj_ini_entry *entry_in(const struct ctx *w, const struct nj_ini_section *s,
                                           const char *key)
{
    return nj__policy_entry_in(w->f, s, key, NULL);
}

/* --- redirects -------------------------------------------------------------------------------- */

static bool redirects_all(const struct nj_site_rules *r)
{
    return r->redirect_status != 0 && !r->redirect_cleartext_only;
}

/* Keys that apply to responses which are redirects, too, or before them. */
static bool applies_to_redirects(const char *key)
{
    return nj_config_word_index(
               "redirect|name|header|allow|deny|cors|hsts|class|rate|client_cert|log|"
               "cert|key|client_ca|client_optional",
               key) >= 0;
}

static void warn_of_hidden_keys(const struct ctx *w, const struct section *x)
{
    const struct nj_ini_entry *by = entry_in(w, x->at, "redirect"), *e = NULL;

    if (redirects_all(x->rules) && !w->has_exception[x->site])
        for (uint32_t k = x->at->first; k < x->at->first + x->at->n; k++) {
            e = &w->f->ini->entry[k];
            if (!applies_to_redirects(e->key))
                nj__warn(
                    w, e,
                    "%s: without effect: redirect on line %u answers first: remove one of them",
                    e->key, by->line);
        }
    if (x->rules->try_file.n_bytes > 0 && x->rules->missing_to.n_bytes > 0) {
        e = entry_in(w, x->at, "missing");
        nj__warn(w, e, "missing: without effect: try on line %u sends its file: remove one of them",
                 entry_in(w, x->at, "try")->line);
    }
}

/* Splits "https://HOST/PATH" into x->host and x->path. False: another server has it. */
static bool follow(const struct ctx *w, struct section *x, const struct nj_site_location *l,
                   bool *is_tls)
{
    char url[sizeof l->text + 1], old[sizeof x->host];
    char *p = url;

    snprintf(old, sizeof old, "%s", x->host);
    snprintf(url, sizeof url, "%.*s", (int)l->n_bytes, l->text);
    if (*p != '/') {
        *is_tls = strncmp(url, "https:", 6) == 0;
        p = strstr(url, "://") + 3;
        size_t n = strcspn(p, "/?#");
        snprintf(x->host, sizeof x->host, "%.*s", (int)n, p);
        p += n;
    }
    p[strcspn(p, "?#")] = '\0';
    if (strlen(p) >= sizeof x->path || strchr(x->host, ':') || (*is_tls && !w->has_tls))
        return false;
    snprintf(x->path, sizeof x->path, "%s", *p ? p : "/");
    uint32_t site = nj_sites_index(w->table, nj_str_of(x->host));
    return strcmp(old, x->host) == 0 ||
           (site != UINT32_MAX && w->s->sites[site].n_names > 0); /* no host that only ends here */
}

/* A request that the section has is redirected again and again. */
static void warn_of_loop(const struct ctx *w, const struct section *x)
{
    const struct nj_ini_entry *e = entry_in(w, x->at, "redirect");
    struct section at = *x;
    struct nj_site_location l;
    bool is_tls = false;

    if (x->rules->redirect_status == 0)
        return;
    for (uint32_t n = 0; n < HOPS_MAX; n++) {
        const struct nj_site_rules *r =
            nj_sites_find(w->table, nj_str_of(at.host), nj_str_of(at.path));
        bool is_ours = r && (n > 0 || r->redirect_to.p == x->rules->redirect_to.p);
        if (!is_ours || r->redirect_status == 0 || (r->redirect_cleartext_only && is_tls))
            return;
        const struct nj_site_variables v = {
            nj_str_of(at.host), nj_str_of(at.path), {"", 0}, r->prefix};
        if (!nj_site_write_location(&l, r->redirect_to, &v) || !follow(w, &at, &l, &is_tls))
            return;
    }
    nj__warn(w, e,
             "redirect = %.80s: a loop: a request for %.80s comes back to this section: set "
             "redirect = none for the target, in a [path] section",
             e->value, x->path);
}

static bool is_https_port(const struct ctx *w, const char *port)
{
    const struct nj_listeners *l = &w->f->listeners;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].is_tls && l->at[i].port == strtoul(port, NULL, 10))
            return true;
    return strcmp(port, w->tls_port) == 0;
}

/* The file has sections of listeners: the first of them with TLS. */
static void find_https_listener(struct ctx *w, char *port, size_t n)
{
    const struct nj_listeners *l = &w->f->listeners;
    uint32_t i = 0;

    while (i < l->n && !l->at[i].is_tls)
        i++;
    w->has_tls &= i < l->n;
    w->tls_port = port;
    if (i < l->n)
        snprintf(port, n, "%u", l->at[i].port);
}

/* Https, where no port has TLS, or another one. A trusted proxy may have it. */
static void warn_of_https(const struct ctx *w, const struct section *x)
{
    const struct nj_ini_entry *hsts = x->rules->hsts.n_bytes ? entry_in(w, x->at, "hsts") : NULL,
                              *to = x->rules->redirect_cleartext_only
                                        ? entry_in(w, x->at, "redirect")
                                        : NULL;

    for (const struct nj_ini_entry *e = to ? to : hsts; e && !w->has_tls && !w->f->trusted;
         e = e == to ? hsts : NULL)
        nj__warn(w, e, "%s = %s: no port of this server speaks https: set %s", e->key, e->value,
                 w->f->listeners.n > 0 ? "tls = yes in [listen NAME]"
                                       : "cert and key in [site NAME] or [tls]");
    if (to && w->has_tls && !w->f->trusted &&
        !is_https_port(w, to->value[5] == ':' ? to->value + 6 : "443"))
        nj__warn(w, to,
                 "redirect = %s: https is at port %s of this server: expected redirect = https:%s",
                 to->value, w->tls_port, w->tls_port);
}

/* --- fields ----------------------------------------------------------------------------------- */

static void warn_of_fields(const struct ctx *w, const struct section *x)
{
    static const char *const presets[][2] = {{"cache_control", "cache-control"},
                                             {"cors", "access-control-allow-origin"},
                                             {"hsts", "strict-transport-security"}};
    const struct nj_ini_entry *e;

    for (size_t i = 0; i < NJ_ARRAY_LEN(presets); i++) {
        bool both = false;
        for (uint32_t k = 0; k < x->rules->n_fields; k++)
            both |= nj_str_eq(x->rules->fields[k].name, nj_str_of(presets[i][1]));
        if (both && (e = entry_in(w, x->at, presets[i][0])))
            nj__warn(w, e,
                     "%s: a line header = ... %s of this section changes the same field: remove "
                     "one of them",
                     e->key, presets[i][1]);
    }
    e = entry_in(w, x->at, "hsts");
    if (x->rules->hsts.n_bytes > 0 && strstr(x->rules->hsts.p, "preload") &&
        (!strstr(x->rules->hsts.p, "includeSubDomains") ||
         strtod(x->rules->hsts.p + 8, NULL) < 31536000))
        nj__warn(w, e,
                 "hsts = %s: browsers preload only with subdomains and a year at least: expected "
                 "365d, subdomains, preload",
                 e->value);
}

/* --- lists, names and files ------------------------------------------------------------------- */

static void warn_of_lists(const struct ctx *w, const struct section *x)
{
    const struct nj_ini_entry *e = entry_in(w, x->at, "allow");
    uint32_t both = x->rules->allow & x->rules->deny;

    for (uint32_t i = 0; i < w->f->n_lists; i++)
        if (both >> i & 1)
            nj__warn(
                w, e,
                "allow: [list %s] without effect: deny on line %u has it, too: remove one of them",
                w->f->list[i], entry_in(w, x->at, "deny")->line);
}

static void warn_of_path(const struct ctx *w, const struct section *x)
{
    const char *star = x->is_site ? NULL : strchr(x->path, '*');

    if (star)
        nj__warn(w, x->at,
                 "[%.120s]: * is taken literally: expected a prefix such as /iso/ or a suffix such "
                 "as *.iso; no section combines them",
                 x->at->name);
    if (!x->is_site && x->at->n == 0 && !x->at->is_incomplete)
        nj__warn(w, x->at, "[%.120s]: without effect: the section has no key", x->at->name);
}

/* `name`: the file below the root that `e` names; empty: none. */
static void warn_of_file(const struct ctx *w, const struct section *x, const struct nj_ini_entry *e,
                         struct nj_str name)
{
    const struct nj_site_rules *r = nj_sites_find(w->table, nj_str_of(x->host), nj_str_of(x->path));
    char path[NJ_INI_VALUE_BYTES + NJ_PATH_MAX];
    struct stat st;

    if (r && name.n_bytes > 0 && nj__site_name_file(path, sizeof path, w->root, r->root, name) &&
        stat(path, &st) != 0)
        nj__warn(w, e, "%s = %.80s: there is no file %.400s", e->key, e->value, path);
}

static void warn_of_files(const struct ctx *w, const struct section *x)
{
    for (uint32_t k = x->at->first; k < x->at->first + x->at->n; k++) {
        const struct nj_ini_entry *e = &w->f->ini->entry[k];
        if (strcmp(e->key, "try") == 0)
            warn_of_file(w, x, e, x->rules->try_file);
        for (uint32_t i = 0; strcmp(e->key, "error_page") == 0 && i < x->rules->n_named; i++)
            if (memcmp(x->rules->named[i].name.p, e->value, 3) == 0)
                warn_of_file(w, x, e, x->rules->named[i].value);
    }
}

/* Certificates of clients are asked for by TLS alone. */
static void warn_of_cleartext(const struct ctx *w, const struct section *x)
{
    const struct nj_ini_entry *ca = entry_in(w, x->at, "client_ca");
    const struct nj_listeners *l = &w->f->listeners;
    bool has_cleartext = l->n == 0;

    for (uint32_t i = 0; i < l->n; i++)
        has_cleartext |= !l->at[i].is_tls;
    if (ca && x->is_site && strcmp(ca->value, "none") != 0 && has_cleartext &&
        !x->rules->needs_client_cert && x->rules->redirect_status == 0)
        nj__warn(
            w, ca,
            "client_ca: http serves this site without certificates: set client_cert = required "
            "or redirect = https");
}

/* The folder .well-known must be visible. */
static void warn_of_acme(const struct ctx *w, const struct section *x)
{
    const struct nj_ini_entry *e = entry_in(w, x->at, "acme");
    struct nj_dotfiles visible;

    if (!e || !x->is_site || !w->dotfiles || !nj_dotfiles_parse(w->dotfiles, &visible))
        return;
    for (uint32_t i = 0; i < visible.n; i++)
        if (nj_str_eq(visible.name[i], NJ_STR(".well-known")))
            return;
    nj__warn(w, e, "acme: challenges get 404: [files] dotfiles = %.80s: add .well-known",
             w->dotfiles);
}

/* --- all sections ----------------------------------------------------------------------------- */

static void sample_host(const struct nj_site_def *d, char *host, size_t n)
{
    struct nj_str name = d->n_names > 0 ? d->names[0] : NJ_STR("host.invalid");

    if (name.p[0] == '*')
        snprintf(host, n, "x%.*s", (int)name.n_bytes - 1, name.p + 1);
    else
        snprintf(host, n, "%.*s", (int)name.n_bytes, name.p);
}

/* The i-th section. False: there is none. */
static bool section_at(const struct ctx *w, uint32_t i, struct section *x)
{
    const struct nj_site_sections *s = w->s;

    if (i >= s->n_sites + s->n_paths)
        return false;
    const struct nj_path_def *d = i < s->n_sites ? NULL : &s->paths[i - s->n_sites];
    x->is_site = !d;
    x->site = d ? d->site : i;
    x->at = d ? s->path_at[i - s->n_sites] : s->site_at[i];
    x->rules = d ? &d->rules : &s->sites[i].rules;
    sample_host(&s->sites[x->site], x->host, sizeof x->host);
    struct nj_str p = d ? d->path : NJ_STR("/");
    bool is_prefix = p.p[p.n_bytes - 1] == '/', is_suffix = p.p[0] == '*';
    snprintf(x->path, sizeof x->path, "%s%.*s%s", is_suffix ? "/x" : "", (int)p.n_bytes - is_suffix,
             p.p + is_suffix, is_prefix ? "x" : "");
    return true;
}

/* Other hosts have the same files, so a rule of some hosts alone hides nothing. Warns once. */
static void warn_of_open_hosts(const struct ctx *w)
{
    const uint32_t hides = NJ_SITE_ALLOW | NJ_SITE_DENY | NJ_SITE_METHODS | NJ_SITE_CLIENT_CERT;
    char host[NJ_SITE_HOST_MAX + 8], other[NJ_SITE_HOST_MAX + 40];
    struct section x;
    uint32_t n = 0;

    for (uint32_t i = 0; section_at(w, i, &x); i++) {
        const struct nj_site_def *of = &w->s->sites[x.site];
        bool is_absolute = of->rules.root.n_bytes > 1 && of->rules.root.p[1] == '/';
        bool hides_some = (x.rules->keys & hides) && !nj_site_is_of_acme(x.rules) &&
                          of->n_names > 0 && !is_absolute; /* other hosts do not have its files */
        for (uint32_t k = 0; hides_some && k <= w->s->n_sites; k++) {
            const struct nj_site_def none = {0}, *d = k < w->s->n_sites ? &w->s->sites[k] : &none;
            if (++n > LOOKUPS_MAX)
                return;
            sample_host(d, host, sizeof host);
            const struct nj_site_rules *r =
                nj_sites_find(w->table, nj_str_of(host), nj_str_of(x.path));
            if ((r && (redirects_all(r) || !(x.rules->keys & hides & ~r->keys))) || k == x.site)
                continue;
            snprintf(other, sizeof other, d->n_names > 0 ? "[site %.*s]" : "other hosts",
                     d->n_names > 0 ? (int)d->names[0].n_bytes : 0,
                     d->n_names > 0 ? d->names[0].p : "");
            nj__warn(w, x.at,
                     "%s: the same files without the rules of this section: repeat them in each "
                     "site, also in [site default], or use a class",
                     other);
            return;
        }
    }
}

/* The value of the command line, else of the file, else `none`. */
static const char *value_of(const struct ctx *w, const char *given, const char *section,
                            const char *key, const char *none)
{
    const struct nj_ini_entry *e = nj__policy_find_entry(w->f, section, key);

    return given ? given : e ? e->value : none;
}

void nj__site_warn(const struct nj_policy_file *f, const struct nj_server_config *given,
                   struct nj_diags *out)
{
    const struct nj_site_sections *s = f->sites;
    struct ctx w = {.f = f, .s = s, .out = out};
    char port[8];
    const char *why;
    struct section x;

    if (s->n_sites == 0)
        return;
    struct nj_sites *table = nj_sites_new(s->sites, s->n_sites, s->paths, s->n_paths, 1, &why);
    w.table = table;
    w.has_exception = calloc(s->n_sites, 1);
    snprintf(port, sizeof port, "%u", given->tls_port);
    w.has_tls = s->has_cert || value_of(&w, given->tls_cert[0], "tls", "cert", NULL);
    w.tls_port =
        value_of(&w, nj_config_is_set(given, "tls-port") ? port : NULL, "tls", "port", "443");
    if (f->listeners.n > 0)
        find_https_listener(&w, port, sizeof port);
    w.root = value_of(&w, given->root, "files", "root", NULL);
    w.dotfiles = value_of(&w, given->dotfiles, "files", "dotfiles", NULL);
    for (uint32_t i = 0; i < s->n_paths && w.has_exception; i++)
        w.has_exception[s->paths[i].site] |=
            (s->paths[i].rules.keys & NJ_SITE_REDIRECT) && s->paths[i].rules.redirect_status == 0;
    for (uint32_t i = 0; table && w.has_exception && section_at(&w, i, &x); i++) {
        warn_of_path(&w, &x);
        warn_of_hidden_keys(&w, &x);
        warn_of_loop(&w, &x);
        warn_of_https(&w, &x);
        warn_of_fields(&w, &x);
        warn_of_lists(&w, &x);
        warn_of_files(&w, &x);
        warn_of_acme(&w, &x);
        warn_of_cleartext(&w, &x);
    }
    if (table && w.has_exception)
        warn_of_open_hosts(&w);
    free(w.has_exception);
    nj_sites_free(table);
}
