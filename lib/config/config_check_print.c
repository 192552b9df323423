/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements --check: reads and validates the configuration, the policy file and the files of TLS,
 * and prints the resulting policy. Starts nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <grp.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config/config_abi_copy.h"
#include "config/config_by_name.h"
#include "config/config_explain.h"
#include "config/eal_args.h"
#include "config/policy_warn.h"
#include "config/site_sections.h"
#include "config/time_zone.h"
#include "log/access_file.h"
#include "log/address_text.h"
#include "log/log.h"
#include "privilege/run_user.h"
#include "tls/cert_dates.h"

#define NETWORKS_SHOWN 8u /* of a list */

static void add_limits(struct nj__report *r, const struct nj_class *c, uint32_t keys)
{
    char text[64];
    uint32_t n = r->n_keys;

    for (uint32_t i = 0; nj_class_key_name(i); i++) {
        const char *value = nj_class_key_format(c, i, text, sizeof text);
        if (keys >> i & 1 || value)
            nj__report_value(r, nj_class_key_name(i), "%s", value ? value : "none");
    }
    if (r->n_keys == n)
        nj__report_value(r, "limits", "none");
}

static void add_strings(struct nj__report *r, const char *key, const struct nj_str *str, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        nj__report_listed(r, key, "%.*s", (int)str[i].n_bytes, str[i].p);
}

static void add_lists(struct nj__report *r, const struct nj_policy_file *f, const char *key,
                      uint32_t lists)
{
    for (uint32_t i = 0; i < f->n_lists; i++)
        if (lists >> i & 1)
            nj__report_listed(r, key, "%s", f->list[i]);
}

/* The conditions that a request of the class meets, all of them. */
static void add_match(struct nj__report *r, const struct nj_policy_file *f,
                      const struct nj_class_def *c)
{
    if (!c->has_match)
        nj__report_value(r, "matches",
                         c == &f->class_at[0] ? "everything else"
                                              : "responses that handlers assign to it");
    add_strings(r, "path", c->path, c->n_paths);
    add_strings(r, "host", c->host, c->n_hosts);
    add_lists(r, f, "list", c->lists);
    add_strings(r, "tls_subject", &c->subject, c->subject.n_bytes > 0);
    if (c->header.n_bytes > 0)
        nj__report_value(r, "header", "%.*s%s%.*s", (int)c->header.n_bytes, c->header.p,
                         c->value.n_bytes ? ": " : "", (int)c->value.n_bytes, c->value.p);
}

static void report_client(struct nj__report *r, const struct nj_policy_file *f)
{
    char text[NJ_NETWORK_TEXT_BYTES];

    nj__report_item(r, "client", NULL, NULL, 0);
    if (f->client_by == NJ_CLIENT_BY_ADDRESS)
        nj__report_value(r, "by", "address");
    else
        nj__report_value(r, "by", "%s %.*s, else address",
                         f->client_by == NJ_CLIENT_BY_HEADER ? "header" : "cookie",
                         (int)f->client_field.n_bytes, f->client_field.p);
    nj__report_value(r, "prefix4", "%u", f->client_bits4);
    nj__report_value(r, "prefix6", "%u", f->client_bits6);
    for (uint32_t i = 0; i < f->n_networks; i++)
        if (f->network[i].lists & f->trusted)
            nj__report_value(r, "trusted_proxy", "%s",
                             nj_network_text(&f->network[i].addr, f->network[i].bits, text));
}

static void report_list(struct nj__report *r, const struct nj_policy_file *f, uint32_t list)
{
    char text[NJ_NETWORK_TEXT_BYTES];
    uint32_t n = 0;

    nj__report_item(r, "list", f->list[list], NULL, 0);
    for (uint32_t k = 0; k < f->n_networks; k++) {
        const struct nj_network *net = &f->network[k];
        if (net->lists >> list & 1 && n++ < NETWORKS_SHOWN)
            nj__report_listed(r, "networks", "%s", nj_network_text(&net->addr, net->bits, text));
    }
    if (n > NETWORKS_SHOWN)
        nj__report_add(r, " and %u more", n - NETWORKS_SHOWN);
    if (n == 0)
        nj__report_value(r, "networks", "none");
    if (!(f->list_used >> list & 1))
        nj__report_value(r, "used", "no");
}

/* The values of keys that are not the default, from the file and the command line. */
static void report_config(struct nj__report *r, const struct nj_server_config *config)
{
    const struct nj_option *c;
    const char *section = "";
    char text[1024], key[NJ_OPTION_KEY_BYTES];

    for (uint32_t i = 0; (c = nj_config_file_option_at(i)); i++) {
        if (!nj_config_differs(config, c) ||
            !nj_config_format_option(config, c->name, text, sizeof text))
            continue;
        if (strcmp(section, c->section) != 0)
            nj__report_item(r, section = c->section, NULL, NULL, 0);
        nj__report_value(r, nj_option_key(c, key), "%s", text);
    }
}

/* The EAL arguments of the file, with presets expanded. */
static void report_eal(struct nj__report *r, const struct nj_presets *p)
{
    if (p->argc < 2)
        return;
    nj__report_item(r, "eal", NULL, NULL, 0);
    nj__report_key(r, "arguments", NULL);
    for (int i = 1; i < p->argc; i++)
        nj__report_add(r, "%s%s", i > 1 ? " " : "", p->argv[i]);
}

static void report_section(struct nj__report *r, const struct nj_policy_file *f,
                           const struct nj_ini_section *s)
{
    nj__report_section(r, s);
    for (uint32_t k = s->first; k < s->first + s->n; k++)
        nj__report_entry(r, &f->ini->entry[k]);
}

static void report_sites(struct nj__report *r, const struct nj_policy_file *f)
{
    const struct nj_site_sections *s = f->sites;

    for (uint32_t i = 0; i < s->n_sites; i++) {
        report_section(r, f, s->site_at[i]);
        add_strings(r, "matches", s->sites[i].names, s->sites[i].n_names);
        if (s->sites[i].n_names == 0)
            nj__report_value(r, "matches", "all other hosts");
    }
    for (uint32_t i = 0; i < s->n_paths; i++) {
        struct nj_str p = s->paths[i].path;
        if (nj_site_is_of_acme(&s->paths[i].rules))
            continue; /* a key of its site */
        report_section(r, f, s->path_at[i]);
        if (p.p[0] == '*')
            nj__report_value(r, "matches", "paths that end in %s", p.p + 1);
        else if (p.n_bytes == 1)
            nj__report_value(r, "matches", "all paths");
        else if (p.p[p.n_bytes - 1] == '/')
            nj__report_value(r, "matches", "%.*s and all paths below it", (int)p.n_bytes - 1, p.p);
        else
            nj__report_value(r, "matches", "this path only");
    }
}

static void report_hours(struct nj__report *r, struct nj_hours h)
{
    if (h.from != h.to)
        nj__report_value(r, "hours", "%02u:%02u-%02u:%02u", h.from / 60, h.from % 60, h.to / 60,
                         h.to % 60);
}

static void report_policy(struct nj__report *r, const struct nj_policy_file *f,
                          const struct nj_server_config *config)
{
    static const char *const actions[] = {
        [NJ_ACTION_DROP] = "drop", [NJ_ACTION_RESET] = "reset", [NJ_ACTION_FORBID] = "forbid"};
    struct nj_policy p;
    struct nj_class server = {0};
    char name[NJ_TIME_ZONE_NAME_BYTES], zone[NJ_TIME_ZONE_TEXT_BYTES];

    /* All classes count as active, and no section with hours does. */
    nj_policy_compile(f, config, NULL, UINT64_MAX << NJ_POLICY_HOURS_MAX, &p);
    server.total = p.total;
    nj__report_item(r, "server", NULL, NULL, 0);
    add_limits(r, &server, 0);
    add_lists(r, f, "allow", f->allow);
    add_lists(r, f, "deny", f->deny);
    if (f->allow | f->deny)
        nj__report_value(r, "deny_action", "%s", actions[f->deny_action]);
    report_client(r, f);
    for (uint32_t i = 0; i < p.n_classes; i++) {
        const struct nj_class_def *c =
            &f->class_at[nj_policy_file_find_class(f, p.classes[i].name)];
        nj__report_item(r, "class", c->name, c->at ? c->at->file : NULL, c->at ? c->at->line : 0);
        report_hours(r, c->hours);
        add_limits(r, &p.classes[i], 0);
        add_match(r, f, c);
    }
    for (uint32_t i = 0; i < f->n_overrides; i++) {
        const struct nj_limit_override *o = &f->override[i];
        bool is_server = o->class_index == NJ_POLICY_WHOLE_SERVER;
        nj__report_item(r, is_server ? "server" : "class",
                        is_server ? NULL : f->class_at[o->class_index].name, NULL, 0);
        report_hours(r, o->hours);
        add_limits(r, &o->keys.value, o->keys.set);
    }
    for (uint32_t i = 0; i < f->n_lists; i++)
        report_list(r, f, i);
    report_sites(r, f);
    if (nj_policy_file_has_hours(f)) {
        nj_time_zone_name(name);
        nj_time_zone_format(name, time(NULL), zone);
        nj__report_item(r, "time zone", NULL, NULL, 0);
        nj__report_value(r, "hours", "%s", zone);
    }
    report_config(r, config);
}

static void report_certificates(struct nj__report *r, const struct nj_tls_server_context *tls,
                                struct nj_diags *warnings)
{
    struct nj_tls_cert_text text;
    struct nj_tls_date_note note;
    uint32_t at = 0;

    for (uint32_t i = 0; nj_tls_cert_describe(tls, i, &text); i++)
        nj__report_certificate(r, &text);
    while (nj_tls_dates_next(tls, &at, NJ_TLS_DATES_UNTOLD, (int64_t)time(NULL), &note))
        nj_diag_add(warnings, note.path, 0, "warning: %s", note.text);
}

/* --- files and their user --------------------------------------------------------------------- */

/* Becomes the user. For a process that ends soon. */
static bool become(const struct nj_run_user *u)
{
    return setgroups((size_t)u->n_groups, u->groups) == 0 &&
           setresgid(u->gid, u->gid, u->gid) == 0 && setresuid(u->uid, u->uid, u->uid) == 0;
}

/* The user that the server becomes, else the present one. */
static int find_user(const struct nj_server_config *c, bool drops, struct nj_run_user *u, char *why,
                     size_t n)
{
    bool is_root = geteuid() == 0;
    int rc = drops && (c->user || is_root) ? nj_run_user_find(c->user, u, why, n) : -1;

    if (rc == 0 && (is_root || u->uid == geteuid()))
        return 0;
    rc = drops && c->user && rc != 0 ? -1 : 0; /* unknown, or root alone can become it */
    *u = (struct nj_run_user){.uid = geteuid(), .gid = getegid()};
    snprintf(u->name, sizeof u->name, "%u", (unsigned)u->uid);
    snprintf(u->group, sizeof u->group, "%u", (unsigned)u->gid);
    return rc;
}

/* In a process that is the user. Returns how many it cannot use. */
static int report_files_as(struct nj__report *r, const struct nj_settings *s,
                           const struct nj_run_user *user)
{
    static const char *const may[] = {[NJ_NEED_READ] = "read",
                                      [NJ_NEED_FOLDER] = "read",
                                      [NJ_NEED_APPEND] = "append",
                                      [NJ_NEED_LOG] = "append",
                                      [NJ_NEED_SOCKET] = "listen"};
    struct nj_needed_file file[NJ_SETTINGS_FILES_MAX];
    uint32_t n = nj_settings_list_files(s, file);
    char why[1024];
    int n_bad = 0;

    for (uint32_t i = 0; i < n; i++) {
        bool ok = nj__needed_files_check(&file[i], 1, user, why, sizeof why) == 0;
        if (ok && s->config->explain)
            continue;
        nj__report_item(r, "file", file[i].path, NULL, 0);
        if (file[i].option)
            nj__report_value(r, "of", "%s", file[i].option);
        nj__report_value(r, "user", "%s", user->name);
        nj__report_value(r, "may", "%s", ok ? may[file[i].need] : "not use it");
        if (ok)
            continue;
        n_bad++;
        nj_policy_file_name_source(s->policy, s->given, why, sizeof why);
        if (r->json)
            nj__report_value(r, "error", "%s", why);
        else
            nj_log(NJ_LEVEL_ERROR, "%s", why);
    }
    return n_bad;
}

/* Root asks in a child, which becomes the user. Returns -1 if a file cannot be used. */
static int report_files(struct nj__report *r, const struct nj_settings *s,
                        const struct nj_run_user *user)
{
    int status = 0;

    if (geteuid() != 0 || user->uid == 0)
        return report_files_as(r, s, user) > 0 ? -1 : 0;
    nj__report_end_key(r);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int n_bad = become(user) ? report_files_as(r, s, user) : 0;
        nj__report_end_key(r);
        fflush(stdout);
        _exit(n_bad > 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 0;
    return status == 0 ? 0 : -1;
}

/* What a start needs that is not here: EAL arguments of the command line are not looked at. */
static void report_missing(struct nj__report *r, const struct nj_settings *s)
{
    const struct nj_server_config *c = s->config;
    bool no_root = !c->root && c->n_routes == 0,
         no_eal = s->policy->ini->n_files > 0 && s->policy->n_eal == 0;

    if (c->addr[0] && !no_root && !no_eal)
        return;
    nj__report_item(r, "needed for a start", NULL, NULL, 0);
    if (!c->addr[0])
        nj__report_value(r, "addr", "the server's address: --addr, or addr in [network]");
    if (no_root)
        nj__report_value(r, "root", "the folder to serve: --root, or root in [files]");
    if (no_eal)
        nj__report_value(r, "arguments", "of the EAL: before --, or arguments or preset in [eal]");
}

/* Reports lines, which may begin with FILE:LINE: or FILE. */
static void report_lines(struct nj__report *r, const char *kind, const char *text)
{
    char file[NJ_INI_VALUE_BYTES];

    while (text && *text) {
        size_t n = strcspn(text, "\n"), n_file = 0;
        const char *colon = memmem(text, n, ": ", 2), *p = colon;
        while (p && p > text && p[-1] >= '0' && p[-1] <= '9')
            p--;
        if (p && p < colon && p > text && p[-1] == ':' && (size_t)(p - text) < sizeof file)
            n_file = (size_t)(p - text);
        snprintf(file, sizeof file, "%.*s", (int)n_file - (n_file > 0), text);
        nj__report_item(r, kind, NULL, n_file > 0 ? file : NULL,
                        n_file > 0 ? (uint32_t)strtoul(p, NULL, 10) : 0);
        const char *from = n_file > 0 ? colon + 2 : text;
        nj__report_value(r, "text", "%.*s", (int)(text + n - from), from);
        text += n + (text[n] == '\n');
    }
}

/* Warnings go to stderr and do not change the exit status. */
static void report_warnings(struct nj__report *r, const struct nj_diags *warnings)
{
    if (r->json)
        report_lines(r, "warning", warnings->text);
    else if (warnings->text)
        fputs(warnings->text, stderr);
    if (warnings->n > NJ_DIAGS_MAX && !r->json)
        nj_log(NJ_LEVEL_WARNING, "%u more warnings", warnings->n - NJ_DIAGS_MAX);
}

static void report_faults(struct nj__report *r, const struct nj_diags *faults, const char *why)
{
    if (r->json)
        report_lines(r, "error", faults->text ? faults->text : why);
    else if (faults->text)
        fputs(faults->text, stderr);
    else
        nj_log(NJ_LEVEL_ERROR, "%s", why);
}

int nj_server_check(const struct nj_server_config *config)
{
    struct nj_settings settings = {.n_ports = 0};
    struct nj_server_config copy;
    struct nj_diags warnings = {0};
    struct nj_presets presets = {.argc = 0};
    struct nj_tls_server_context *tls = NULL;
    struct nj_run_user user;
    char why[512] = "";
    int rc = nj_config_convert_version(&copy, config, why, sizeof why);
    struct nj__report r = {.json = rc == 0 && copy.check_json};

    if (rc != 0 || nj_settings_from_partial_config(&settings, &copy, why, sizeof why) != 0 ||
        nj_eal_args_expand(&presets, settings.policy, 0, NULL, why, sizeof why) != 0 ||
        nj_settings_read_tls(&settings, &(struct nj_tls_server_config){0}, &tls, why, sizeof why) !=
            0 ||
        find_user(settings.config, copy.drop_privileges, &user, why, sizeof why) != 0 ||
        (settings.config->access_log &&
         nj_access_file_check(settings.config->access_log, why, sizeof why) != 0))
        rc = -1;
    if (rc != 0 && settings.policy)
        nj_policy_file_name_source(settings.policy, &copy, why, sizeof why);
    bool reported = rc == 0;
    if (rc == 0 && copy.explain) {
        r.shows_places = true;
        rc = nj__config_explain(&settings, tls, &r, why, sizeof why);
        reported = rc == 0;
        rc = reported ? report_files(&r, &settings, &user) : rc;
    } else if (rc == 0) {
        for (uint32_t i = 0; i < settings.listeners.n; i++)
            nj__report_listener(&r, &settings, i);
        report_policy(&r, settings.policy, settings.config);
        report_eal(&r, &presets);
        if (why[0])
            report_lines(&r, "access log", why);
        if (tls)
            report_certificates(&r, tls, &warnings);
        report_missing(&r, &settings);
        rc = report_files(&r, &settings, &user);
        fflush(stdout);
        nj_time_zone_warn(&warnings);
        nj_policy_warn(settings.policy, copy.policy_file, &copy, &warnings);
        report_warnings(&r, &warnings);
    }
    if (rc != 0 && !reported)
        report_faults(&r, &settings.faults, why);
    nj__report_end(&r);
    if (tls)
        nj_tls_server_context_put(tls);
    nj_diags_free(&warnings);
    nj_presets_free(&presets);
    nj_settings_free(&settings);
    return rc == 0 ? 0 : NJ_EXIT_USAGE;
}
