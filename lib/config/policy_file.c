/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the file of the configuration: classifies its sections, then reads their keys. */
#include "config/policy_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/field_syntax.h"
#include "base/text.h"
#include "base/units.h"
#include "config/config_by_name.h"
#include "config/settings_validate.h"
#include "config/site_sections.h"

/* CONFIG: a section of options alone. HOURS: of a class or the server, in some hours. */
enum kind { SERVER, CLIENT, LIST, CLASS, LISTEN, SITE, SITE_PATH, CONFIG, HOURS, INVALID };

/* Their first word, all words, and the section of the option table that has the keys. */
static const struct form {
    const char *word, *form, *table;
} forms[] = {
    [SERVER] = {"server", "server", "server"},
    [CLIENT] = {"client", "client", "client"},
    [LIST] = {"list", "list NAME", "list NAME"},
    [CLASS] = {"class", "class NAME", "class NAME"},
    [LISTEN] = {"listen", "listen NAME", "listen NAME"},
    [SITE] = {"site", "site NAME", "site NAME"},
    [SITE_PATH] = {"path", "path SITE PATH", "site NAME"},
};

/* A section of the file and its kind. */
struct section {
    const struct nj_ini_section *ini;
    enum kind kind;
    uint32_t index;    /* of the list, class, override, listener, site or path */
    const char *table; /* as in struct form */
};

/* --- diagnostics ---------------------------------------------------------------------------- */

/* [server], or [server HOURS]. */
static bool is_server(const struct section *s)
{
    return strcmp(s->table, "server") == 0;
}

/* Has such a section the key of the option? */
static bool has_key(const struct section *s, const struct nj_option *o)
{
    bool of_path = s->kind == SITE_PATH && o->section && strcmp(o->section, "path NAME PATH") == 0;

    if (!o->section || (strcmp(o->section, s->table) != 0 && !of_path))
        return false;
    return s->kind == HOURS       ? nj_class_key_find(o->key) >= 0
           : s->kind == SITE_PATH ? !nj__site_key_is_of_site(o->key)
                                  : true;
}

static const struct nj_option *find_key(const struct section *s, const char *key)
{
    char name[NJ_OPTION_KEY_BYTES];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        if (has_key(s, o) && strcmp(nj_option_key(o, name), key) == 0)
            return o;
    return NULL;
}

/* The i-th key of such a section. */
static const char *key_name(void *section, uint32_t i)
{
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        if (has_key(section, o) && i-- == 0)
            return o->key ? o->key : o->name;
    return NULL;
}

/* The first word of the i-th section. Those of options come last. */
static const char *section_name(void *unused, uint32_t i)
{
    const char *before = "";

    (void)unused;
    if (i < CONFIG)
        return forms[i].word;
    i -= CONFIG;
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        bool is_next = o->section && !o->in_policy && !strchr(o->section, ' ') &&
                       strcmp(o->section, before) != 0 && strcmp(o->section, "server") != 0 &&
                       strcmp(o->section, "client") != 0;
        if (is_next && i-- == 0)
            return o->section;
        before = is_next ? o->section : before;
    }
    return NULL;
}

/* Where a key stands that is none of its section: "[network] or [tls]", or in the section itself
 * under another name than that of its option. */
static bool find_elsewhere(const struct section *s, const char *word, char *where, size_t n)
{
    char key[NJ_OPTION_KEY_BYTES], name[NJ_OPTION_KEY_BYTES];
    size_t at = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options && at < n; o++) {
        if (!o->section || (o->in_policy && strcmp(o->section, "class default") == 0 &&
                            strcmp(nj_option_key(o, key), word) == 0))
            continue;
        nj_option_key(&(struct nj_option){.name = o->name}, name);
        bool is_key = strcmp(nj_option_key(o, key), word) == 0;
        if (!is_key && strcmp(name, word) != 0)
            continue;
        if (strcmp(o->section, s->table) == 0 && !is_key) {
            snprintf(where, n, "did you mean %s?", key);
            return true;
        }
        at += (size_t)snprintf(where + at, n - at, "%s[%s]%s%s", at ? " or " : "it belongs in ",
                               o->section, is_key ? "" : " as ", is_key ? "" : key);
    }
    return at > 0;
}

static void report_unknown_key(struct nj__policy_reader *r, struct section *s,
                               const struct nj_ini_entry *e)
{
    char meant[NJ_OPTION_KEY_BYTES], where[160];

    const char *ours = nj__policy_our_word(e->key);
    if (ours)
        snprintf(where, sizeof where, "%s%s", ours[0] == 'n' ? "" : "here it is ", ours);
    else if (!find_elsewhere(s, e->key, where, sizeof where)) {
        const char *near = nj__policy_closest_name(e->key, key_name, s);
        nj_option_key(&(struct nj_option){.name = near ? near : ""}, meant);
        snprintf(where, sizeof where,
                 near ? "did you mean %s?" : "expected a key that nightjar.conf(5) lists for it",
                 meant);
    }
    nj_diag_at(r->faults, e, "%s: unknown in [%s]: %s", e->key, s->ini->name, where);
}

/* --- sections ------------------------------------------------------------------------------- */

/* Splits "class NAME HOURS" into at most four words; a fourth means too many. */
static uint32_t split(const char *name, char word[4][NJ_INI_SECTION_BYTES])
{
    _Static_assert(NJ_INI_SECTION_BYTES == 512, "as the format says");
    return (uint32_t)sscanf(name, "%511s %511s %511s %511s", word[0], word[1], word[2], word[3]);
}

static enum kind section_error(struct nj__policy_reader *r, const struct section *s,
                               const char *expected)
{
    nj_diag_at(r->faults, s->ini, "[%s]: expected %s", s->ini->name, expected);
    return INVALID;
}

static enum kind declare_list(struct nj__policy_reader *r, struct section *s, const char *name)
{
    struct nj_policy_file *f = r->f;

    if (f->n_lists == NJ_LISTS_MAX)
        return section_error(r, s, "at most 16 lists");
    s->index = f->n_lists;
    strcpy(f->list[f->n_lists++], name); /* which is valid, so it fits */
    return LIST;
}

static enum kind declare_class(struct nj__policy_reader *r, struct section *s, const char *name)
{
    struct nj_policy_file *f = r->f;
    bool is_default = strcmp(name, "default") == 0;

    if (!is_default && f->n_classes == NJ_CLASSES_MAX)
        return section_error(r, s, "at most 31 classes besides the default one");
    s->index = is_default ? 0 : f->n_classes++;
    strcpy(f->class_at[s->index].name, name); /* which is valid, so it fits */
    f->class_at[s->index].at = s->ini;
    return CLASS;
}

static enum kind declare_listener(struct nj__policy_reader *r, struct section *s)
{
    struct nj_policy_file *f = r->f;

    if (f->listeners.n == NJ_LISTENERS_MAX)
        return section_error(r, s, "at most 8 sections of listeners");
    s->index = f->listeners.n++;
    f->listener_at[s->index] = s->ini;
    return LISTEN;
}

/* After all classes are known. */
static void declare_override(struct nj__policy_reader *r, struct section *s)
{
    struct nj_policy_file *f = r->f;
    char word[4][NJ_INI_SECTION_BYTES];
    uint16_t minutes[2];
    uint32_t n = split(s->ini->name, word);
    int of = strcmp(word[0], "server") == 0 ? NJ_POLICY_WHOLE_SERVER
                                            : nj_policy_file_find_class(f, word[1]);

    if (!nj_parse_time_range(word[n - 1], minutes)) {
        s->kind = section_error(r, s, "hours such as 22:00-06:00 after the name, or nothing");
    } else if (of < 0) {
        s->kind = section_error(r, s, "a class that also has a section without hours");
    } else if (f->n_overrides == NJ_POLICY_HOURS_MAX) {
        s->kind = section_error(r, s, "at most 32 sections with hours");
    } else {
        s->index = (uint8_t)f->n_overrides;
        f->override[f->n_overrides++] =
            (struct nj_limit_override){(uint8_t)of, {minutes[0], minutes[1]}, {0}};
    }
}

static enum kind unknown_section(struct nj__policy_reader *r, const struct section *s,
                                 const char *word)
{
    const char *near = nj__policy_closest_name(word, section_name, NULL),
               *ours = nj__policy_our_word(word);

    if (ours && ours[0] != 'n')
        return section_error(r, s, ours);
    if (!near)
        return section_error(
            r, s,
            "eal, network, tls, files, storage, limits, log, user, process, "
            "management, server, client, listen NAME, list NAME, class NAME, site NAME or "
            "path SITE PATH");
    for (uint32_t i = 0; i < CONFIG; i++)
        near = near == forms[i].word ? forms[i].form : near;
    nj_diag_at(r->faults, s->ini, "[%s]: unknown section: did you mean [%s]?", s->ini->name, near);
    return INVALID;
}

static void declare_site_path(struct nj__policy_reader *r, struct section *s)
{
    char word[4][NJ_INI_SECTION_BYTES];

    split(s->ini->name, word);
    s->index = (uint32_t)nj__site_declare_path(r, s->ini, word[1], word[2]);
    s->kind = s->index == UINT32_MAX ? INVALID : SITE_PATH;
}

/* Classifies a section, and declares what it names. Hours and paths are declared later, when all
 * classes and sites are known. */
static enum kind classify_section(struct nj__policy_reader *r, struct section *s)
{
    char word[4][NJ_INI_SECTION_BYTES];
    uint32_t n = split(s->ini->name, word), kind = 0;
    const char *name;

    while ((name = section_name(NULL, kind)) && strcmp(name, word[0]) != 0)
        kind++;
    s->table = kind < CONFIG ? forms[kind].table : name;
    if ((kind == SERVER && n == 2) || (kind == CLASS && n == 3))
        return HOURS;
    if (kind == LIST || kind == CLASS || kind == LISTEN) {
        if (n != 2)
            return section_error(r, s,
                                 kind != CLASS ? "one name after it"
                                 : n == 1      ? "a name after it"
                                               : "one name, or a name and hours");
        if (!nj__policy_is_valid_name(word[1]))
            return section_error(r, s, "a name of up to 31 letters, digits and _");
        return kind == LIST    ? declare_list(r, s, word[1])
               : kind == CLASS ? declare_class(r, s, word[1])
                               : declare_listener(r, s);
    }
    if (kind == SITE_PATH)
        return n == 3 ? SITE_PATH
                      : section_error(r, s, "the first name of a site and a path after it");
    if (kind == SITE) {
        if (n != 2)
            return section_error(r, s, "one name after it; further names are keys: name = NAME");
        s->index = (uint32_t)nj__site_declare(r, s->ini, word[1]);
        return s->index == UINT32_MAX ? INVALID : SITE;
    }
    if (!name || n != 1)
        return unknown_section(r, s, word[0]);
    return kind < CONFIG ? (enum kind)kind : CONFIG;
}

static void classify_sections(struct nj__policy_reader *r, struct section *sections)
{
    const struct nj_ini *ini = r->f->ini;

    for (uint32_t i = 0; i < ini->n_sections; i++) {
        sections[i].ini = &ini->section[i];
        sections[i].kind =
            ini->section[i].is_duplicate ? INVALID : classify_section(r, &sections[i]);
    }
    for (uint32_t i = 0; i < ini->n_sections; i++)
        if (sections[i].kind == HOURS)
            declare_override(r, &sections[i]);
        else if (sections[i].kind == SITE_PATH)
            declare_site_path(r, &sections[i]);
}

/* --- keys ----------------------------------------------------------------------------------- */

/* The limits that a section sets, or NULL. */
static struct nj_class_keys *limits_of(struct nj_policy_file *f, const struct section *s)
{
    return s->kind == SERVER  ? &f->server
           : s->kind == HOURS ? &f->override[s->index].keys
           : s->kind == CLASS ? &f->class_at[s->index].keys
                              : NULL;
}

static void read_limit(struct nj__policy_reader *r, const struct section *s, uint32_t limit,
                       const struct nj_ini_entry *e)
{
    struct nj_policy_file *f = r->f;
    uint32_t of = s->kind == HOURS ? f->override[s->index].class_index : s->index;
    char expected[160];

    if (!is_server(s) && of != 0 && strcmp(e->key, "connections") == 0)
        nj_diag_at(r->faults, e,
                   "connections: only [class default] may set it: connections are counted before "
                   "the class of a request is known");
    if (!nj_class_key_parse(limits_of(f, s), limit, e->value, expected, sizeof expected))
        nj__policy_report_bad_value(r, e, expected);
}

static void read_server(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    struct nj_policy_file *f = r->f;

    if (strcmp(e->key, "allow") == 0) {
        f->allow |= nj__policy_parse_list_names(r, e);
        f->allow_only = true;
    } else if (strcmp(e->key, "deny") == 0) {
        f->deny |= nj__policy_parse_list_names(r, e);
    } else {
        int word = nj_config_word_index("drop|reset|forbid", e->value);
        if (word < 0)
            nj__policy_report_bad_value(r, e, "drop, reset or forbid");
        f->deny_action = NJ_ACTION_DROP + (word > 0 ? (unsigned)word : 0);
    }
}

/* The name after "header " or "cookie ", or NULL. */
static const char *name_after(const char *value, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(value, word, n) != 0 || (value[n] != ' ' && value[n] != '\t'))
        return NULL;
    value += n + strspn(value + n, " \t");
    return *value && nj_syntax_allows(nj_str_of(value), NJ_IN_METHOD) ? value : NULL;
}

static void read_client_by(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    struct nj_policy_file *f = r->f;
    const char *header = name_after(e->value, "header"), *cookie = name_after(e->value, "cookie");
    const char *name = header ? header : cookie;

    if (strcmp(e->value, "address") == 0) {
        f->client_by = NJ_CLIENT_BY_ADDRESS;
    } else if (!name) {
        nj__policy_report_bad_value(r, e, "address, header NAME or cookie NAME");
    } else {
        f->client_by = header ? NJ_CLIENT_BY_HEADER : NJ_CLIENT_BY_COOKIE;
        f->client_field = nj_str_of(name);
        if (header)
            nj__policy_to_lower(f->client_field); /* field names are lower case (RFC 9113 8.2) */
    }
}

static void read_bits(struct nj__policy_reader *r, const struct nj_ini_entry *e, uint8_t *to,
                      uint64_t min, uint64_t max)
{
    uint64_t bits;
    char expected[64];

    snprintf(expected, sizeof expected, "a number of bits from %u to %u", (unsigned)min,
             (unsigned)max);
    if (nj_parse_decimal(e->value, &bits) && bits >= min && bits <= max)
        *to = (uint8_t)bits;
    else
        nj__policy_report_bad_value(r, e, expected);
}

static void read_client(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    if (strcmp(e->key, "by") == 0)
        read_client_by(r, e);
    else if (strcmp(e->key, "prefix4") == 0)
        read_bits(r, e, &r->f->client_bits4, 8, 32);
    else if (strcmp(e->key, "prefix6") == 0)
        read_bits(r, e, &r->f->client_bits6, 16, 128);
    else
        nj__policy_add_trusted_proxies(r, e);
}

/* A section of options. A value with valid syntax may still be invalid, such as the name of an
 * index file: validation runs on all values read so far, without the folder. */
static void read_config(struct nj__policy_reader *r, const struct nj_option *o,
                        const struct nj_ini_entry *e)
{
    struct nj_server_config before = r->file_config, now;
    struct nj_settings settings = {.config = &now};
    char why[512];

    if (nj_config_set_file_option(&r->file_config, o->name, e->value, why, sizeof why) != 0) {
        nj__policy_report_bad_value(r, e, why);
        return;
    }
    now = r->file_config;
    now.root = NULL;
    if (nj__settings_read_http(&settings, why, sizeof why) != 0) {
        const char *rest = why + strcspn(why, " :"); /* behind the name of the option */
        nj_diag_at(r->faults, e, "%s%s%s", e->key, *rest == ' ' ? " =" : "", rest);
        r->file_config = before;
    }
}

static void read_eal(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    bool is_preset = strcmp(e->key, "preset") == 0;

    if (is_preset ? strpbrk(e->value, " \t") != NULL : e->value[0] != '-' || !e->value[1])
        nj__policy_report_bad_value(r, e,
                                    is_preset ? "NAME,KEY=VALUE,... without spaces"
                                              : "arguments of the EAL, e.g. -l 2,3");
    else if (r->f->n_eal == NJ_POLICY_EAL_MAX)
        nj_diag_at(r->faults, e, "%s: expected at most %u lines in [eal]", e->key,
                   NJ_POLICY_EAL_MAX);
    else
        r->f->eal[r->f->n_eal++] = e;
}

/* Reports a second occurrence of a key. */
static bool report_duplicate_key(struct nj__policy_reader *r, const struct section *s,
                                 const struct nj_ini_entry *e)
{
    const struct nj_ini_entry *first = nj__policy_entry_in(r->f, s->ini, e->key, NULL);

    if (first < e)
        nj_diag_at(r->faults, e, "%s: duplicate in [%s]; first set on line %u", e->key,
                   s->ini->name, first->line);
    return first < e;
}

/* `o`: the key. */
static void read_entry(struct nj__policy_reader *r, struct section *s, const struct nj_option *o,
                       const struct nj_ini_entry *e)
{
    int limit = limits_of(r->f, s) ? nj_class_key_find(e->key) : -1;

    if (limit >= 0)
        read_limit(r, s, (uint32_t)limit, e);
    else if (s->kind == SERVER)
        read_server(r, e);
    else if (s->kind == CLIENT)
        read_client(r, e);
    else if (s->kind == LIST)
        (e->key[0] == 'n' ? nj__policy_add_networks : nj__policy_load_list)(r, s->index, e);
    else if (s->kind == CLASS)
        nj__policy_parse_match_key(r, &r->f->class_at[s->index], e);
    else if (s->kind == CONFIG && nj_option_has_field(o))
        read_config(r, o, e);
    else if (s->kind == CONFIG)
        read_eal(r, e);
    else if (s->kind == LISTEN)
        nj__listener_parse_key(r, s->index, e->key, e);
    else if (!nj__site_parse_key(r, s->kind == SITE, s->index, e->key, e))
        report_unknown_key(r, s, e);
}

static void read_section(struct nj__policy_reader *r, struct section *s)
{
    for (uint32_t k = s->ini->first; k < s->ini->first + s->ini->n; k++) {
        const struct nj_ini_entry *e = &r->f->ini->entry[k];
        const struct nj_option *o = find_key(s, e->key);
        if (!(o && nj_option_may_repeat(o)) && report_duplicate_key(r, s, e))
            continue;
        if (o)
            read_entry(r, s, o, e);
        else
            report_unknown_key(r, s, e);
    }
    const struct nj_class_keys *keys = limits_of(r->f, s);
    const char *wrong = keys ? nj_class_keys_error(keys) : NULL;
    if (wrong)
        nj_diag_at(r->faults, s->ini, "[%s]: %s", s->ini->name, wrong);
    if (s->kind == LIST && s->ini->n == 0 && !s->ini->is_incomplete)
        nj_diag_at(r->faults, s->ini, "[%s]: expected networks = or file =", s->ini->name);
}

/* --- the whole file ------------------------------------------------------------------------- */

static uint32_t count_rules(const struct nj_class_def *c)
{
    if (!c->has_match)
        return 0;
    return (c->n_paths ? c->n_paths : 1) * (c->n_hosts ? c->n_hosts : 1);
}

static void check_classes(struct nj__policy_reader *r)
{
    struct nj_policy_file *f = r->f;
    const struct nj_class_def *d = &f->class_at[0];
    uint32_t rules = 0;

    if (d->has_match || d->hours.from != d->hours.to)
        nj_diag_at(r->faults, d->at,
                   "[class default]: matches every other request: expected no path, host, list, "
                   "header or hours");
    for (uint32_t i = 1; i < f->n_classes; i++) {
        const struct nj_class_def *c = &f->class_at[i];
        if (rules <= NJ_CLASS_RULES_MAX && (rules += count_rules(c)) > NJ_CLASS_RULES_MAX)
            nj_diag_at(r->faults, c->at,
                       "[class %s]: expected at most %u combinations of path and host in all "
                       "classes",
                       c->name, NJ_CLASS_RULES_MAX);
    }
}

static struct nj_policy_file *new_policy_file(void)
{
    struct nj_policy_file *f = calloc(1, sizeof *f);

    if (f)
        f->sites = calloc(1, sizeof *f->sites);
    if (!f || !f->sites) {
        free(f);
        return NULL;
    }
    f->n_classes = 1;
    snprintf(f->class_at[0].name, NJ_CLASS_NAME_MAX, "default");
    f->client_bits4 = nj_policy_none.client_bits4;
    f->client_bits6 = nj_policy_none.client_bits6;
    f->deny_action = NJ_ACTION_DROP;
    return f;
}

static void read_sections(struct nj__policy_reader *r)
{
    struct section *sections = calloc(r->f->ini->n_sections + 1, sizeof *sections);

    if (!sections) {
        nj_diag_add(r->faults, r->path, 0, "out of memory");
        return;
    }
    nj_ini_mark_duplicates(r->f->ini, r->path, r->faults);
    classify_sections(r, sections);
    for (uint32_t i = 0; i < r->f->ini->n_sections; i++)
        if (sections[i].kind != INVALID)
            read_section(r, &sections[i]);
    check_classes(r);
    nj__listeners_check(r);
    r->root = r->root ? r->root : r->file_config.root;
    nj__site_check(r);
    free(sections);
}

/* Add the trusted proxies of the command line to those of the file. */
static void add_trusted_options(struct nj__policy_reader *r, const struct nj_server_config *config)
{
    for (uint32_t i = 0; i < NJ_SERVER_TRUSTED_MAX && config->trusted_proxy[i]; i++)
        nj__policy_add_trusted_proxies(r, &(struct nj_ini_entry){.value = config->trusted_proxy[i],
                                                                 .file = "--trusted-proxy"});
}

/* `n_before`: faults before the file was parsed. Takes over `ini`. */
static struct nj_policy_file *read_policy(struct nj__policy_reader *r, struct nj_ini *ini,
                                          struct nj_server_config *config, uint32_t n_before)
{
    r->f = new_policy_file();
    r->config = config;
    nj_server_config_init(&r->file_config);
    if (!r->f || !ini) {
        nj_ini_free(ini);
        nj_diag_add(r->faults, r->path, 0, "out of memory");
    } else {
        r->f->ini = ini;
        r->root = config->root;
        read_sections(r);
        add_trusted_options(r, config);
    }
    if (r->faults->n > n_before) {
        nj_policy_file_free(r->f);
        return NULL;
    }
    nj_config_fill_unset_from_file(config, &r->file_config);
    return r->f;
}

struct nj_policy_file *nj_policy_file_parse(const char *path, const char *text, size_t n_bytes,
                                            struct nj_server_config *config,
                                            struct nj_diags *faults)
{
    struct nj__policy_reader r = {.path = path, .faults = faults};
    uint32_t n_before = faults->n;

    return read_policy(&r, nj_ini_parse(path, text, n_bytes, faults), config, n_before);
}

struct nj_policy_file *nj_policy_file_read(const char *path, struct nj_server_config *config,
                                           struct nj_diags *faults)
{
    struct nj__policy_reader r = {.path = path ? path : "nightjar", .faults = faults};
    uint32_t n_before = faults->n;
    struct nj_ini *ini = path ? nj_ini_read(path, faults) : calloc(1, sizeof *ini);

    return ini || !path ? read_policy(&r, ini, config, n_before) : NULL;
}

int nj_policy_file_find_class(const struct nj_policy_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_classes; i++)
        if (strcmp(f->class_at[i].name, name) == 0)
            return (int)i;
    return -1;
}

void nj_policy_file_free(struct nj_policy_file *f)
{
    if (!f)
        return;
    nj__site_sections_free(f->sites);
    nj_ini_free(f->ini);
    free(f->network);
    for (uint32_t i = 0; i < f->n_list_files; i++)
        free(f->list_file[i]);
    free(f);
}
