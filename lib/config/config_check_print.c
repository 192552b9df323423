/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements --check: reads and validates the configuration, the policy file and the files of TLS,
 * and prints the resulting policy. Starts nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/config_abi_copy.h"
#include "config/config_by_name.h"
#include "config/eal_args.h"
#include "config/policy_warn.h"
#include "config/settings_validate.h"
#include "config/time_zone.h"
#include "log/access_file.h"
#include "log/address_text.h"
#include "log/log.h"
#include "privilege/run_user.h"

#define NETWORKS_SHOWN 8u /* of a list */

static void show_limits(const struct nj_class *c, uint32_t keys)
{
    char text[64];
    bool any = false;

    for (uint32_t i = 0; i < nj_class_keys_count(); i++) {
        const char *value = nj_class_key_format(c, i, text, sizeof text);
        if (!(keys >> i & 1) && !value)
            continue;
        printf("%s %s = %s", any ? "," : ":", nj_class_key_name(i), value ? value : "none");
        any = true;
    }
    printf(any ? "\n" : ": no limits\n");
}

static void show_hours(struct nj_hours h)
{
    if (h.from != h.to)
        printf(" %02u:%02u-%02u:%02u", h.from / 60, h.from % 60, h.to / 60, h.to % 60);
}

static void print_strings(const char *key, const struct nj_str *str, uint32_t n, bool *any)
{
    if (n > 0)
        printf("%s%s = ", *any ? "; " : "", key);
    for (uint32_t i = 0; i < n; i++)
        printf("%s%.*s", i ? ", " : "", (int)str[i].n_bytes, str[i].p);
    *any |= n > 0;
}

static void show_lists(const struct nj_policy_file *f, const char *key, uint32_t lists, bool *any)
{
    const char *between = *any ? "; " : "";

    if (lists == 0)
        return;
    printf("%s%s = ", between, key);
    for (uint32_t i = 0, n = 0; i < f->n_lists; i++)
        if (lists >> i & 1)
            printf("%s%s", n++ ? ", " : "", f->list[i]);
    *any = true;
}

/* The conditions that a request of the class meets, all of them. */
static void show_match(const struct nj_policy_file *f, const struct nj_class_def *c)
{
    bool any = false;

    printf("    matches: ");
    print_strings("path", c->path, c->n_paths, &any);
    print_strings("host", c->host, c->n_hosts, &any);
    show_lists(f, "list", c->lists, &any);
    if (c->subject.n_bytes > 0) {
        printf("%stls_subject = %.*s", any ? "; " : "", (int)c->subject.n_bytes, c->subject.p);
        any = true;
    }
    if (c->header.n_bytes > 0)
        printf("%sheader = %.*s%s%.*s", any ? "; " : "", (int)c->header.n_bytes, c->header.p,
               c->value.n_bytes ? ": " : "", (int)c->value.n_bytes, c->value.p);
    if (c->has_match)
        puts("");
    else
        puts(c == &f->class_at[0] ? "everything else" : "responses that handlers assign to it");
}

static void show_client(const struct nj_policy_file *f)
{
    if (f->client_by == NJ_CLIENT_BY_ADDRESS)
        printf("client: by address");
    else
        printf("client: by %s %.*s, else by address",
               f->client_by == NJ_CLIENT_BY_HEADER ? "header" : "cookie",
               (int)f->client_field.n_bytes, f->client_field.p);
    printf(": /%u of IPv4, /%u of IPv6\n", f->client_bits4, f->client_bits6);
}

static void print_allow_deny(const struct nj_policy_file *f)
{
    static const char *const actions[] = {
        [NJ_ACTION_DROP] = "drop", [NJ_ACTION_RESET] = "reset", [NJ_ACTION_FORBID] = "forbid"};
    bool any = false;

    if (f->allow == 0 && f->deny == 0)
        return;
    printf("    ");
    show_lists(f, "allow", f->allow, &any);
    show_lists(f, "deny", f->deny, &any);
    printf("; deny_action = %s\n", actions[f->deny_action]);
}

static void show_networks(const struct nj_policy_file *f, uint32_t list)
{
    char text[NJ_NETWORK_TEXT_BYTES];
    uint32_t n = 0;

    for (uint32_t k = 0; k < f->n_networks; k++) {
        const struct nj_network *net = &f->network[k];
        if (!(net->lists >> list & 1) || n++ >= NETWORKS_SHOWN)
            continue;
        printf("%s%s", n > 1 ? ", " : ": ", nj_network_text(&net->addr, net->bits, text));
    }
    if (n > NETWORKS_SHOWN)
        printf(" and %u more", n - NETWORKS_SHOWN);
    printf("%s%s\n", n ? "" : ": empty", f->list_used >> list & 1 ? "" : ", unused");
}

/* The values of keys that are not the default, from the file and the command line. */
static void show_config(const struct nj_server_config *config)
{
    const struct nj_option *c;
    const char *section = "";
    char text[1024], key[NJ_OPTION_KEY_BYTES];

    for (uint32_t i = 0; (c = nj_config_file_option_at(i)); i++) {
        if (!nj_config_differs(config, c) ||
            !nj_config_format_option(config, c->name, text, sizeof text))
            continue;
        bool more = strcmp(section, c->section) == 0;
        printf("%s%s%s",
               more       ? ""
               : *section ? "\n"
                          : "",
               more ? "" : c->section, more ? ", " : ": ");
        printf("%s = %s", nj_option_key(c, key), text);
        section = c->section;
    }
    if (*section)
        putchar('\n');
}

static void show_trusted(const struct nj_policy_file *f)
{
    char text[NJ_NETWORK_TEXT_BYTES];

    for (uint32_t i = 0; i < f->n_networks; i++) {
        const struct nj_network *n = &f->network[i];
        if (n->lists & f->trusted)
            printf("trusted proxy: %s\n", nj_network_text(&n->addr, n->bits, text));
    }
}

/* Does each connection to the port begin with a PROXY header? */
static const char *proxy_text(const struct nj_server_config *config, uint16_t port)
{
    for (uint32_t i = 0; i < NJ_SERVER_PROXY_MAX && config->proxy_protocol[i]; i++)
        if (strtoul(config->proxy_protocol[i], NULL, 10) == port)
            return ", behind a PROXY header";
    return "";
}

/* The EAL arguments of the file, with presets expanded. */
static void show_eal(const struct nj_presets *p)
{
    for (int i = 1; i < p->argc; i++)
        printf("%s%s%s", i == 1 ? "eal: " : " ", p->argv[i], i + 1 < p->argc ? "" : "\n");
}

/* The protocols of each port. */
static void show_protocols(const struct nj_server_config *config)
{
    const char *protocols = config->no_http1 ? "HTTP/2" : "HTTP/2, HTTP/1.1";

    printf("port %u: %s%s\n", config->listen_port, protocols,
           proxy_text(config, config->listen_port));
    if (nj_config_count_values(config->tls_cert, NJ_SERVER_TLS_CERTS_MAX) > 0)
        printf("port %u: TLS 1.3 with %s%s\n", config->tls_port, protocols,
               proxy_text(config, config->tls_port));
}

/* Sections of sites and paths, in the order of the file. */
static void show_sites(const struct nj_policy_file *f)
{
    for (uint32_t i = 0; f->ini && i < f->ini->n_sections; i++) {
        const struct nj_ini_section *s = &f->ini->section[i];
        if (strncmp(s->name, "site", 4) != 0 && strncmp(s->name, "path", 4) != 0)
            continue;
        fputs(s->name, stdout);
        for (uint32_t k = 0; k < s->n; k++)
            printf("%s%s = %s", k == 0 ? ": " : "; ", f->ini->entry[s->first + k].key,
                   f->ini->entry[s->first + k].value);
        putchar('\n');
    }
}

static void show_policy(const struct nj_policy_file *f, const struct nj_server_config *config)
{
    struct nj_policy p;
    struct nj_class server = {0};
    char name[NJ_TIME_ZONE_NAME_BYTES], zone[NJ_TIME_ZONE_TEXT_BYTES];

    /* All classes count as active, and no section with hours does. */
    nj_policy_compile(f, config, NULL, UINT64_MAX << NJ_POLICY_HOURS_MAX, &p);
    server.total = p.total;
    printf("server");
    show_limits(&server, 0);
    print_allow_deny(f);
    show_client(f);
    show_trusted(f);
    for (uint32_t i = 0; i < p.n_classes; i++) {
        const struct nj_class_def *c =
            &f->class_at[nj_policy_file_find_class(f, p.classes[i].name)];
        printf("class %s", c->name);
        show_hours(c->hours);
        show_limits(&p.classes[i], 0);
        show_match(f, c);
    }
    for (uint32_t i = 0; i < f->n_overrides; i++) {
        const struct nj_limit_override *o = &f->override[i];
        printf("%s%s", o->class_index == NJ_POLICY_WHOLE_SERVER ? "server" : "class ",
               o->class_index == NJ_POLICY_WHOLE_SERVER ? "" : f->class_at[o->class_index].name);
        show_hours(o->hours);
        show_limits(&o->keys.value, o->keys.set);
    }
    for (uint32_t i = 0; i < f->n_lists; i++) {
        printf("list %s", f->list[i]);
        show_networks(f, i);
    }
    show_sites(f);
    if (nj_policy_file_has_hours(f)) {
        nj_time_zone_name(name);
        nj_time_zone_format(name, time(NULL), zone);
        printf("time zone of hours: %s\n", zone);
    }
    show_config(config);
}

/* Warnings go to stderr and do not change the exit status. */
static void print_warnings(const struct nj_diags *warnings)
{
    if (warnings->text)
        fputs(warnings->text, stderr);
    if (warnings->n > NJ_DIAGS_MAX)
        nj_log(NJ_LEVEL_WARNING, "%u more warnings", warnings->n - NJ_DIAGS_MAX);
}

int nj_server_check(const struct nj_server_config *config)
{
    struct nj_settings settings = {.n_ports = 0};
    struct nj_server_config copy;
    struct nj_diags warnings = {0};
    struct nj_presets presets = {.argc = 0};
    struct nj_run_user user;
    char why[512] = "";
    int rc = nj_config_convert_version(&copy, config, why, sizeof why);

    if (rc == 0)
        rc = nj_settings_from_partial_config(&settings, &copy, why, sizeof why);
    if (rc == 0)
        rc = nj_eal_args_expand(&presets, settings.policy, 0, NULL, why, sizeof why);
    if (rc == 0)
        rc = nj_settings_check_tls_files(settings.config, (int64_t)time(NULL), &warnings, why,
                                         sizeof why);
    if (rc == 0 && copy.drop_privileges && settings.config->user)
        rc = nj_run_user_find(settings.config->user, &user, why, sizeof why);
    if (rc == 0 && settings.config->access_log)
        rc = nj_access_file_check(settings.config->access_log, why, sizeof why);
    if (rc != 0 && settings.policy)
        nj_policy_file_name_source(settings.policy, &copy, why, sizeof why);
    if (settings.faults.text)
        fputs(settings.faults.text, stderr);
    else if (rc != 0)
        nj_log(NJ_LEVEL_ERROR, "%s", why);
    else {
        show_protocols(settings.config);
        show_policy(settings.policy, settings.config);
        show_eal(&presets);
        fflush(stdout);
        nj_time_zone_warn(&warnings);
        nj_policy_warn(settings.policy, copy.policy_file, &copy, &warnings);
        print_warnings(&warnings);
    }
    nj_diags_free(&warnings);
    if (rc == 0 && why[0])
        puts(why);
    nj_presets_free(&presets);
    nj_settings_free(&settings);
    return rc == 0 ? 0 : NJ_EXIT_USAGE;
}
