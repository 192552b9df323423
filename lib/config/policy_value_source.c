/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the line of the file that an error of a value is about, or the change of a key that a
 * reload does not take. */
#include <stdio.h>
#include <string.h>

#include "config/config_by_name.h"
#include "config/policy_file.h"

/* The option that "--NAME" at `at` names, if it has a key; `n`: length of "--NAME". */
static const struct nj_option *option_at(const char *at, size_t *n)
{
    *n = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        if (o->section && !o->in_policy && strlen(o->name) == *n - 2 &&
            memcmp(o->name, at + 2, *n - 2) == 0)
            return o;
    return NULL;
}

const struct nj_ini_section *nj__policy_find_section(const struct nj_policy_file *f,
                                                     const char *name)
{
    for (uint32_t i = 0; i < f->ini->n_sections; i++)
        if (nj_ini_compare_names(f->ini->section[i].name, name) == 0)
            return &f->ini->section[i];
    return NULL;
}

const struct nj_ini_entry *nj__policy_entry_in(const struct nj_policy_file *f,
                                               const struct nj_ini_section *s, const char *key,
                                               const char *value)
{
    const struct nj_ini_entry *found = NULL;

    for (uint32_t k = s ? s->first : 0; s && k < s->first + s->n; k++) {
        const struct nj_ini_entry *e = &f->ini->entry[k];
        if (strcmp(e->key, key) != 0)
            continue;
        if (!value || strncmp(value, e->value, strlen(e->value)) == 0)
            return e;
        found = e;
    }
    return found;
}

const struct nj_ini_entry *nj__policy_find_entry(const struct nj_policy_file *f,
                                                 const char *section, const char *key)
{
    return nj__policy_entry_in(f, nj__policy_find_section(f, section), key, NULL);
}

const struct nj_ini_entry *nj__policy_option_entry(const struct nj_policy_file *f,
                                                   const struct nj_option *o, const char *value)
{
    char key[NJ_OPTION_KEY_BYTES];

    return nj__policy_entry_in(f, nj__policy_find_section(f, o->section), nj_option_key(o, key),
                               value);
}

void nj_policy_file_name_source(const struct nj_policy_file *f,
                                const struct nj_server_config *given, char *why, size_t n)
{
    const char *told = strstr(why, "--");
    const struct nj_option *o, *first;
    char key[NJ_OPTION_KEY_BYTES], text[1024];
    size_t n_name, at;

    if (!told || !(first = option_at(told, &n_name)) ||
        (nj_option_has_field(first) && nj_config_is_set(given, first->name)))
        return;
    const char *value = told[n_name] == ' ' ? told + n_name + 1 : "";
    const struct nj_ini_entry *e = nj__policy_option_entry(f, first, value);
    if (!e)
        return;
    at = (size_t)snprintf(text, sizeof text, "%s:%u: ", e->file, e->line);
    for (const char *p = why; *p && at < sizeof text; p += n_name) {
        n_name = 1;
        o = p[0] == '-' && p[1] == '-' ? option_at(p, &n_name) : NULL;
        bool same = o && strcmp(o->section, first->section) == 0;
        at += (size_t)(o ? snprintf(text + at, sizeof text - at, "%s%s%s%s", same ? "" : "[",
                                    same ? "" : o->section, same ? "" : "] ", nj_option_key(o, key))
                         : snprintf(text + at, sizeof text - at, "%.*s", (int)n_name, p));
    }
    snprintf(why, n, "%s", text);
}

/* --- a reload -------------------------------------------------------------------------------- */

#define RESTART_HOW                                                                                \
    "needs a restart; \"Upgrade\" in docs/deploy.md says how to restart without refusing a "       \
    "connection"

static void note_restart(const struct nj_policy_file *f, const struct nj_option *o,
                         const struct nj_server_config *from, const struct nj_server_config *to,
                         struct nj_diags *notes)
{
    char key[NJ_OPTION_KEY_BYTES], was[128], is[128];
    const struct nj_ini_entry *e = nj__policy_option_entry(f, o, NULL);

    if (!nj_config_format_option(from, o->name, was, sizeof was))
        snprintf(was, sizeof was, "not set");
    if (!nj_config_format_option(to, o->name, is, sizeof is))
        snprintf(is, sizeof is, "not set");
    if (strcmp(o->name, "rss-key") == 0) /* whoever knows it can overload one lcore */
        snprintf(is, sizeof is, "%s", strcpy(was, "(secret)"));
    nj_diag_add(notes, e ? e->file : to->policy_file, e ? e->line : 0,
                "[%s] %s: %s -> %s: " RESTART_HOW, o->section, nj_option_key(o, key), was, is);
}

static bool same_eal(const struct nj_policy_file *a, const struct nj_policy_file *b)
{
    bool same = a->n_eal == b->n_eal;

    for (uint32_t i = 0; same && i < a->n_eal; i++)
        same = strcmp(a->eal[i]->key, b->eal[i]->key) == 0 &&
               strcmp(a->eal[i]->value, b->eal[i]->value) == 0;
    return same;
}

/* What the listener of that section is, or "not set". */
static const char *describe_listener(const struct nj_policy_file *f, const char *section,
                                     char *text, size_t n)
{
    char at[NJ_LISTENER_TEXT_BYTES];

    snprintf(text, n, "not set");
    for (uint32_t i = 0; i < f->listeners.n; i++) {
        const struct nj_listener *l = &f->listeners.at[i];
        if (nj_ini_compare_names(f->listener_at[i]->name, section) == 0)
            snprintf(text, n, "%s%s%s", nj__listener_format(l, at), l->is_tls ? " with TLS" : "",
                     l->has_proxy ? " behind a PROXY header" : "");
    }
    return text;
}

/* Names the sections of `in`, one of both files, that have changed, or are not in `to`. */
static void note_listeners(const struct nj_policy_file *from, const struct nj_policy_file *to,
                           const struct nj_policy_file *in, struct nj_diags *notes)
{
    char was[128], is[128];

    for (uint32_t i = 0; i < in->listeners.n; i++) {
        const struct nj_ini_section *s = in->listener_at[i];
        describe_listener(from, s->name, was, sizeof was);
        describe_listener(to, s->name, is, sizeof is);
        if (strcmp(was, is) != 0 && (in == to || strcmp(is, "not set") == 0))
            nj_diag_add(notes, s->file, in == to ? s->line : 0, "[%s]: %s -> %s: " RESTART_HOW,
                        s->name, was, is);
    }
}

void nj_policy_file_keep_restart_keys(const struct nj_policy_file *f,
                                      const struct nj_policy_file *first,
                                      const struct nj_server_config *from,
                                      struct nj_server_config *config, struct nj_diags *notes)
{
    const struct nj_option *o;

    if (!same_eal(f, first))
        nj_diag_add(notes, config->policy_file, f->n_eal ? f->eal[0]->line : 0,
                    "[eal] changed: " RESTART_HOW);
    note_listeners(first, f, f, notes);
    note_listeners(first, f, first, notes);
    for (uint32_t i = 0; (o = nj_config_file_option_at(i)); i++) {
        if (!nj_config_needs_restart(o, from, config))
            continue;
        note_restart(f, o, from, config, notes);
        if (o->reload == NJ_RELOAD_NEVER)
            memcpy((char *)config + o->offset, (const char *)from + o->offset, o->width);
    }
}
