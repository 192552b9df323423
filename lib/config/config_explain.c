/* SPDX-License-Identifier: BSD-3-Clause */
/* --explain: what answers a request, by the same functions as in a server. The lines of keys are
 * found in the order of site_table.h. */
#include "config/config_explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/set_error.h"
#include "base/request_host.h"
#include "base/text.h"
#include "config/config_by_name.h"
#include "config/policy_snapshots.h"
#include "config/site_sections.h"
#include "http/site/site_location.h"
#include "log/address_text.h"

#define SECTIONS_MAX 256 /* a prefix has at most NJ_PATH_PREFIX_MAX bytes */

struct explain {
    const struct nj_settings *s;
    const struct nj_policy_file *f;
    const struct nj_tls_server_context *tls; /* NULL: none */
    struct nj__report *r;
    bool is_tls;
    uint16_t port;
    struct nj_str authority, target;
    enum nj_path_result path_result;
    struct nj_path path;
    struct nj_str plain; /* its path */
    bool has_client;
    struct nj_addr client;
    uint32_t lists; /* that have the client */
    struct nj_policy policy;
    /* Sections of the site that apply; a later one overrides. */
    uint32_t n_sections;
    struct applied {
        const struct nj_ini_section *at;
        uint32_t rank;
    } section[SECTIONS_MAX];
};

/* --- the request ------------------------------------------------------------------------------ */

static int read_url(struct explain *x, const char *url, char *why, size_t n)
{
    uint64_t port = 0;
    const char *p = strncmp(url, "https://", 8) == 0  ? url + 8
                    : strncmp(url, "http://", 7) == 0 ? url + 7
                                                      : NULL;
    size_t n_authority = p ? strcspn(p, "/?#") : 0;

    if (n_authority > 0) {
        x->is_tls = url[4] == 's';
        x->authority = (struct nj_str){p, (uint32_t)n_authority};
        x->target = (struct nj_str){p + n_authority, (uint32_t)strcspn(p + n_authority, "#")};
        struct nj_str host = nj_host_of_authority(x->authority),
                      rest = {host.p + host.n_bytes,
                              (uint32_t)(p + n_authority - host.p - host.n_bytes)};
        if (rest.n_bytes > 0 && rest.p[0] == '.')
            nj_str_skip(&rest, 1);
        if (rest.n_bytes > 0)
            nj_str_skip(&rest, 1);
        bool ok = rest.n_bytes == 0 || (nj_str_parse_u64(rest, &port) && port > 0 && port < 65536);
        x->port = (uint16_t)port;
        if (x->target.n_bytes == 0)
            x->target = NJ_STR("/");
        if (ok && host.n_bytes > 0 && x->target.p[0] == '/')
            return 0;
    }
    return nj_set_error(
        why, n, "--explain %s: expected a URL such as https://www.example.org/downloads/", url);
}

static uint32_t lists_of(const void *file, const struct nj_addr *addr)
{
    const struct nj_policy_file *f = file;
    uint32_t lists = 0;

    for (uint32_t i = 0; i < f->n_networks; i++) {
        struct nj_addr net = nj_addr_network(addr, f->network[i].bits);
        if (nj_addr_eq(&net, &f->network[i].addr))
            lists |= f->network[i].lists;
    }
    return lists;
}

static void report_request(const struct explain *x)
{
    char text[NJ_ADDRESS_TEXT_BYTES];

    nj__report_item(x->r, "request", x->s->config->explain, NULL, 0);
    if (x->path_result == NJ_PATH_OK || x->path_result == NJ_PATH_HIDDEN)
        nj__report_value(x->r, "path", "%.*s", (int)x->plain.n_bytes, x->plain.p);
    nj__report_value(x->r, "client", "%s",
                     x->has_client ? nj_address_text(&x->client, text)
                                   : "on no list; see --explain-from");
    for (uint32_t i = 0; i < x->f->n_lists; i++)
        if (x->lists >> i & 1)
            nj__report_listed(x->r, "lists", "%s", x->f->list[i]);
}

/* --- sections --------------------------------------------------------------------------------- */

/* Has a section of the site exactly this path? */
static bool has_section(const struct explain *x, uint32_t site, struct nj_str path)
{
    const struct nj_site_sections *s = x->f->sites;

    for (uint32_t i = 0; i < s->n_paths; i++)
        if (s->paths[i].site == site && nj_str_eq(s->paths[i].path, path))
            return true;
    return false;
}

/* The place of a section in the order of site_table.h, from 1; 0: it does not apply. */
static uint32_t rank_of(const struct explain *x, const struct nj_path_def *d)
{
    struct nj_str p = d->path, end = {p.p + 1, p.n_bytes - 1}, bare = {p.p, p.n_bytes - 1};

    if (p.p[0] == '*')
        return x->plain.n_bytes >= end.n_bytes &&
               memcmp(x->plain.p + x->plain.n_bytes - end.n_bytes, end.p, end.n_bytes) == 0;
    if (p.p[p.n_bytes - 1] != '/')
        return nj_str_eq(x->plain, p) ? UINT32_MAX : 0;
    bool is_bare = nj_str_eq(x->plain, bare) && !has_section(x, d->site, bare);
    return nj_str_starts_with(x->plain, p) || is_bare ? p.n_bytes + 1 : 0;
}

static int compare_ranks(const void *x, const void *y)
{
    const struct applied *a = x, *b = y;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Collects the sections of the site: itself, the longest suffix, prefixes, the exact path. */
static void find_sections(struct explain *x, uint32_t site)
{
    const struct nj_site_sections *s = x->f->sites;
    struct applied suffix = {NULL, 1};
    uint32_t n_suffix = 0;

    x->section[x->n_sections++] = (struct applied){s->site_at[site], 0};
    for (uint32_t i = 0; i < s->n_paths && x->n_sections < SECTIONS_MAX - 1; i++) {
        const struct nj_path_def *d = &s->paths[i];
        uint32_t rank = d->site == site ? rank_of(x, d) : 0;
        if (rank > 1) {
            x->section[x->n_sections++] = (struct applied){s->path_at[i], rank};
        } else if (rank == 1 && d->path.n_bytes > n_suffix) {
            n_suffix = d->path.n_bytes;
            suffix.at = s->path_at[i];
        }
    }
    if (suffix.at)
        x->section[x->n_sections++] = suffix;
    qsort(x->section, x->n_sections, sizeof *x->section, compare_ranks);
}

/* What a line sets besides its key: the field of `header`, the status or extension of others. */
static struct nj_str name_in(const struct nj_ini_entry *e)
{
    bool is_header = strcmp(e->key, "header") == 0;
    const char *p = e->value + (is_header ? strcspn(e->value, " \t") : 0);

    p += strspn(p, " \t");
    bool has_name = is_header || nj_config_word_index("error_page|mime", e->key) >= 0;
    return (struct nj_str){p, has_name ? (uint32_t)strcspn(p, is_header ? ": \t" : "= \t") : 0};
}

static bool set_the_same(const struct nj_ini_entry *a, const struct nj_ini_entry *b)
{
    return strcmp(a->key, b->key) == 0 && nj_str_eq(name_in(a), name_in(b));
}

/* The path of the key `acme` is collected as a second time its site. */
static bool is_of_acme(const struct explain *x, uint32_t i)
{
    return i > 0 && x->section[i].at == x->section[0].at;
}

/* Do the rules of `acme` say what this line says? */
static bool acme_overrides(const struct nj_ini_entry *e)
{
    return nj_config_word_index(
               "redirect|allow|deny|client_cert|methods|missing|try|handler|listing|"
               "root|default_type",
               e->key) >= 0;
}

/* Does a section from the i-th on have a line that sets the same? */
static bool is_overridden(const struct explain *x, const struct nj_ini_entry *e, uint32_t i)
{
    for (; i < x->n_sections; i++) {
        const struct nj_ini_section *s = x->section[i].at;
        if (is_of_acme(x, i) && acme_overrides(e))
            return true;
        for (uint32_t k = 0; k < s->n && !is_of_acme(x, i); k++)
            if (set_the_same(&x->f->ini->entry[s->first + k], e))
                return true;
    }
    return false;
}

/* The lines that no section from the i-th on overrides. */
static void report_section(const struct explain *x, const struct nj_ini_section *s, uint32_t i)
{
    nj__report_section(x->r, s);
    for (uint32_t k = s->first; k < s->first + s->n; k++)
        if (!is_overridden(x, &x->f->ini->entry[k], i))
            nj__report_entry(x->r, &x->f->ini->entry[k]);
}

/* The sections that apply, and [files]. */
static void report_sections(const struct explain *x)
{
    const struct nj_ini_section *files = nj__policy_find_section(x->f, "files");

    for (uint32_t i = 0; i < x->n_sections; i++)
        if (!is_of_acme(x, i))
            report_section(x, x->section[i].at, i + 1);
    if (files)
        report_section(x, files, 0);
}

/* Limits with hours count as at this time. A class has those of the default one, too. */
static void report_class(const struct explain *x, const struct nj_class *c)
{
    const struct nj_ini_section *s = x->f->class_at[nj_policy_file_find_class(x->f, c->name)].at;
    char text[64];
    const char *key;

    nj__report_item(x->r, "class", c->name, s ? s->file : NULL, s ? s->line : 0);
    for (uint32_t i = 0; (key = nj_class_key_name(i)); i++) {
        const char *v = nj_class_key_format(c, i, text, sizeof text);
        const struct nj_ini_entry *e = nj__policy_entry_in(x->f, s, key, NULL);
        if (!e)
            e = nj__policy_entry_in(x->f, x->f->class_at[0].at, key, NULL);
        if (!v)
            continue;
        nj__report_key(x->r, key, e);
        nj__report_add(x->r, "%s", v);
    }
}

/* --- the answer ------------------------------------------------------------------------------- */

static void report_location(const struct explain *x, unsigned status, struct nj_str text,
                            struct nj_str prefix)
{
    const struct nj_site_variables v = {nj_host_of_authority(x->authority), x->plain, x->path.query,
                                        prefix};
    struct nj_site_location l;

    if (nj_site_write_location(&l, text, &v))
        nj__report_value(x->r, "status", "%u to %.*s", status, (int)l.n_bytes, l.text);
    else
        nj__report_value(x->r, "status", "400: no URL has such a host");
}

/* Reports the file, or what a request for a folder gets. False: neither is there. `folder`:
 * "/FOLDER//" of the rules, or empty. */
static bool report_file(const struct explain *x, const struct nj_site_rules *rules,
                        struct nj_str folder, const char *name)
{
    char path[2 * NJ_PATH_MAX], to[NJ_PATH_LOCATION_MAX];
    bool is_listed = rules->keys & NJ_SITE_LISTING ? rules->listing : x->s->config->listing;
    struct stat st;

    if (!nj__site_name_file(path, sizeof path, x->s->config->root, folder, nj_str_of(name)) ||
        stat(path, &st) != 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        nj__report_value(x->r, "file", "%s", path);
    else if (!x->path.had_slash)
        nj__report_value(
            x->r, "status", "301 to %.*s",
            (int)nj_path_dir_location((struct nj_str){x->plain.p + 1, x->plain.n_bytes - 1},
                                      x->path.query, to),
            to);
    else if (is_listed)
        nj__report_value(x->r, "listing", "%s", path);
    else
        return false;
    return true;
}

/* The file of the path: of a folder, its first index file that exists, or its listing. */
static bool report_file_of_path(const struct explain *x, const struct nj_site_rules *r)
{
    const char *index = x->s->config->index ? x->s->config->index : "index.html";
    char name[2 * NJ_PATH_MAX];
    struct nj_str rest = x->plain;

    nj_str_skip(&rest, nj_min_u32(1 + r->n_strip, rest.n_bytes));
    int n = snprintf(name, sizeof name, "%.*s%.*s", (int)r->put.n_bytes,
                     r->put.n_bytes > 0 ? r->put.p : "", (int)rest.n_bytes, rest.p);
    if (!x->path.had_slash)
        return report_file(x, r, r->files, name);
    if (r->index.n_bytes > 0)
        index = r->index.p;
    for (; *index; index += strcspn(index, " "), index += strspn(index, " ")) {
        snprintf(name + n, sizeof name - (size_t)n, "%.*s", (int)strcspn(index, " "), index);
        if (report_file(x, r, r->files, name))
            return true;
    }
    name[n] = '\0';
    return report_file(x, r, r->files, name);
}

/* The file in place of an absent one. */
static bool report_other_file(const struct explain *x, const struct nj_site_rules *rules)
{
    bool is_whole = nj_site_is_of_acme(rules);

    return report_file(x, rules, is_whole ? rules->files : rules->root,
                       is_whole ? x->path.name : rules->try_file.p);
}

static void report_answer_of_files(const struct explain *x, const struct nj_site_rules *rules)
{
    const char *root = x->s->config->root;

    if (rules->handler > 0) {
        nj__report_value(x->r, "handler", "%s", x->s->config->routes[rules->handler - 1].path);
        return;
    }
    if (x->s->config->n_routes > 0)
        nj__report_value(x->r, "handler", "if one has the path");
    if (x->path_result == NJ_PATH_HIDDEN)
        nj__report_value(x->r, "status", "404: a name begins with a dot, see [files] dotfiles");
    else if (nj_site_hides(rules, x->plain))
        nj__report_value(x->r, "status", "404: no token of a challenge (RFC 8555 8.3)");
    else if (!root)
        nj__report_value(x->r, "status", "unknown: [files] root is not set");
    else if (report_file_of_path(x, rules) ||
             (rules->try_file.n_bytes > 0 && report_other_file(x, rules)))
        return;
    else if (rules->missing_to.n_bytes > 0)
        report_location(x, 302, rules->missing_to, rules->missing_prefix);
    else
        nj__report_value(x->r, "status", "404: there is no such file");
}

static void report_refusal(const struct explain *x, enum nj_action action, const char *by)
{
    static const char *const what[] = {[NJ_ACTION_DROP] = "none: SYNs are dropped, requests reset",
                                       [NJ_ACTION_RESET] = "none: RST or RST_STREAM",
                                       [NJ_ACTION_FORBID] = "403",
                                       [NJ_ACTION_TOO_MANY] = "429"};

    nj__report_value(x->r, "status", "%s, by %s", what[action], by);
}

static void report_answer(const struct explain *x, const struct nj_policy_verdict *v,
                          const struct nj_site_rules *rules)
{
    bool lists_refuse =
        (x->policy.deny & x->lists) || (x->policy.allow_only && !(x->policy.allow & x->lists));

    nj__report_item(x->r, "answer", NULL, NULL, 0);
    if (v->action != NJ_ACTION_SERVE)
        report_refusal(x, v->action, lists_refuse ? "allow or deny of [server]" : "its class");
    else if (x->path_result == NJ_PATH_BAD || x->path_result == NJ_PATH_ASTERISK)
        nj__report_value(x->r, "status", "400: the path is ambiguous or malformed");
    else if (x->path_result == NJ_PATH_TOO_LONG)
        nj__report_value(x->r, "status", "414");
    else if ((rules->deny & x->lists) || (rules->allow && !(rules->allow & x->lists)))
        report_refusal(x, NJ_ACTION_FORBID, "allow or deny of the site");
    else if (rules->needs_client_cert && !x->is_tls && !rules->redirect_cleartext_only)
        report_refusal(x, NJ_ACTION_FORBID, "client_cert of the site: http has no certificates");
    else if (rules->redirect_status != 0 && !(rules->redirect_cleartext_only && x->is_tls))
        report_location(x, rules->redirect_status, rules->redirect_to, rules->prefix);
    else
        report_answer_of_files(x, rules);
    if (rules && rules->needs_client_cert && x->is_tls)
        nj__report_value(x->r, "without a client certificate", "403");
}

void nj__report_listener(struct nj__report *r, const struct nj_settings *s, uint32_t i)
{
    const struct nj_listener *l = &s->listeners.at[i];
    const struct nj_ini_section *at = s->policy->listeners.n > 0 ? s->policy->listener_at[i] : NULL;
    const struct nj_ini_entry *e = nj__policy_find_entry(s->policy, l->is_tls ? "tls" : "network",
                                                         l->is_tls ? "port" : "listen");
    char text[NJ_LISTENER_TEXT_BYTES];

    nj__listener_format(l, text);
    if (at)
        nj__report_item(r, "listener", text, at->file, at->line);
    else
        nj__report_item(r, "listener", text, e ? e->file : NULL, e ? e->line : 0);
    if (at)
        nj__report_value(r, "section", "%s", at->name);
    nj__report_value(r, "protocols", "%s%s", l->is_tls ? "TLS 1.3 with " : "",
                     s->config->no_http1 ? "HTTP/2" : "HTTP/2, HTTP/1.1");
    if (l->has_proxy)
        nj__report_value(r, "proxy_protocol", "each connection begins with a PROXY header");
}

/* Those at the port of the URL, or if it names none and there are none, those at other ports.
 * Returns how many. */
static uint32_t report_listeners(const struct explain *x)
{
    const struct nj_listeners *all = &x->s->listeners;
    struct nj_str host = nj_host_of_authority(x->authority);
    uint16_t port = x->port ? x->port : x->is_tls ? 443 : 80;
    uint32_t n_brackets = host.p[0] == '[' ? 2 : 0, n = 0;
    struct nj_addr addr;
    bool has_addr = nj_address_parse(host.p + n_brackets / 2, host.n_bytes - n_brackets, &addr);

    for (int others = 0; others <= (x->port == 0) && n == 0; others++)
        for (uint32_t i = 0; i < all->n; i++) {
            const struct nj_listener *l = &all->at[i];
            if (l->is_tls != x->is_tls || (!others && l->port != port) ||
                (has_addr && nj_listener_find(all, &addr, l->port) != l))
                continue;
            n++;
            nj__report_listener(x->r, x->s, i);
            if (others)
                nj__report_value(x->r, "note", "the URL's port is %u", port);
        }
    if (n > 0)
        return n;
    nj__report_item(x->r, "listener", "none", NULL, 0);
    nj__report_value(x->r, "note", "no port speaks %s%s", x->is_tls ? "https" : "http",
                     x->port ? " at the port of the URL" : "");
    return 0;
}

void nj__report_certificate(struct nj__report *r, const struct nj_tls_cert_text *cert)
{
    nj__report_item(r, "certificate", cert->path, NULL, 0);
    nj__report_value(r, "names", "%s", cert->names);
    nj__report_value(r, "expires", "%s", cert->expires);
}

/* That of a handshake with the host as its server name. */
static void report_certificate_of_host(const struct explain *x)
{
    struct nj_str host = nj_host_of_authority(x->authority);
    struct nj_tls_cert_text text;
    char name[NJ_SITE_HOST_MAX + 1];

    snprintf(name, sizeof name, "%.*s", (int)host.n_bytes, host.p);
    nj_tls_cert_of_name(x->tls, name, &text);
    nj__report_certificate(x->r, &text);
}

static void explain_rules(struct explain *x, const struct nj_sites *sites)
{
    const struct nj_hash_key key = {0};
    const struct nj_request_head head = {.authority = x->authority, .path = x->target};
    const struct nj_policy_request request = {.addr = &x->client, .path = x->plain, .head = &head};
    struct nj_policy_verdict verdict;
    uint32_t site = sites ? nj_sites_index(sites, x->authority) : UINT32_MAX;
    const struct nj_site_rules none = {0},
                               *rules = sites ? nj_sites_find(sites, x->authority, x->plain) : NULL;

    nj_policy_compile(x->f, x->s->given, NULL,
                      nj_policy_active_hours_mask(x->f, nj_minute_of_day(time(NULL))), &x->policy);
    if (x->has_client) {
        x->policy.lists = lists_of;
        x->policy.lists_ctx = x->f;
        x->lists = lists_of(x->f, &x->client);
    }
    nj_policy_decide_request(&x->policy, &key, &request, &verdict);
    if (site != UINT32_MAX)
        find_sections(x, site);
    report_request(x);
    if (report_listeners(x) == 0 && !x->f->trusted) { /* which may end TLS at another port */
        nj__report_item(x->r, "answer", NULL, NULL, 0);
        nj__report_value(x->r, "status", "none: nothing listens there");
        return;
    }
    if (x->is_tls && x->tls)
        report_certificate_of_host(x);
    report_sections(x);
    report_class(x, verdict.class_of);
    report_answer(x, &verdict, rules ? rules : &none);
}

int nj__config_explain(const struct nj_settings *s, const struct nj_tls_server_context *tls,
                       struct nj__report *r, char *why, size_t n)
{
    struct explain *x = calloc(1, sizeof *x);
    const char *from = s->config->explain_from, *wrong = NULL;
    struct nj_sites *sites = NULL;
    int rc = x ? read_url(x, s->config->explain, why, n) : nj_set_error(why, n, "out of memory");

    if (rc == 0 && from && !nj_address_parse(from, strlen(from), &x->client))
        rc = nj_set_error(why, n, "--explain-from %s: expected an address, e.g. 192.0.2.1", from);
    const struct nj_site_sections *sections = rc == 0 ? s->policy->sites : NULL;
    if (sections && sections->n_sites > 0 &&
        !(sites = nj_sites_new(sections->sites, sections->n_sites, sections->paths,
                               sections->n_paths, 1, &wrong)))
        rc = nj_set_error(why, n, "%s", wrong);
    if (rc == 0) {
        x->s = s;
        x->f = s->policy;
        x->tls = tls;
        x->r = r;
        x->has_client = from != NULL;
        const char *name = s->http.files.index ? s->http.files.index : "index.html";
        x->path_result =
            nj_path_parse(x->target, nj_str_of(name), s->http.files.dotfiles, &x->path);
        if (x->path_result == NJ_PATH_OK || x->path_result == NJ_PATH_HIDDEN)
            x->plain = (struct nj_str){x->path.plain, x->path.n_path};
        explain_rules(x, sites);
    }
    nj_sites_free(sites);
    free(x);
    return rc;
}
