/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings_validate.h"

#define VALUE_BYTES 512 /* longer ones are told in part */

/* --- files ----------------------------------------------------------------------------------- */

/* The entry of that key after `e` (NULL: the first one), or NULL. `s` NULL: no section. */
static const struct nj_ini_entry *next_entry(const struct nj_ini *ini,
                                             const struct nj_ini_section *s, const char *key,
                                             const struct nj_ini_entry *e)
{
    if (!s)
        return NULL;
    const struct nj_ini_entry *end = ini->entry + s->first + s->n;
    for (e = e ? e + 1 : ini->entry + s->first; e < end; e++)
        if (strcmp(e->key, key) == 0)
            return e;
    return NULL;
}

static bool are_same(const struct nj_ini *a, const struct nj_ini_section *in_a,
                     const struct nj_ini *b, const struct nj_ini_section *in_b, const char *key)
{
    const struct nj_ini_entry *x = NULL, *y = NULL;

    do {
        x = next_entry(a, in_a, key, x);
        y = next_entry(b, in_b, key, y);
    } while (x && y && strcmp(x->value, y->value) == 0);
    return !x && !y;
}

/* The values of the key. NULL: it has none. */
static const char *join(const struct nj_ini *ini, const struct nj_ini_section *s, const char *key,
                        char text[VALUE_BYTES])
{
    const struct nj_ini_entry *e = NULL;
    size_t n = 0;

    while ((e = next_entry(ini, s, key, e)) && n < VALUE_BYTES)
        n += (size_t)snprintf(text + n, VALUE_BYTES - n, "%s%s", n > 0 ? ", " : "",
                              strcmp(key, "rss_key") == 0 ? "(secret)" : e->value);
    return n > 0 ? text : NULL;
}

struct files {
    const struct nj_policy_file *running, *next;
    nj_config_change_fn *see;
    void *of;
};

static void compare_key(const struct files *f, const struct nj_ini_section *was,
                        const struct nj_ini_section *is, const char *key)
{
    char running[VALUE_BYTES], next[VALUE_BYTES];
    const struct nj_ini_entry *at = next_entry(f->next->ini, is, key, NULL);

    if (are_same(f->running->ini, was, f->next->ini, is, key))
        return;
    f->see(f->of, &(struct nj_config_change){.section = is ? is->name : was->name,
                                             .key = key,
                                             .running = join(f->running->ini, was, key, running),
                                             .file_has = join(f->next->ini, is, key, next),
                                             .file = at ? at->file : NULL,
                                             .line = at ? at->line : 0});
}

/* The keys of a section of one file; `unless_in`: but those that this section of the other has. */
static void compare_keys(const struct files *f, const struct nj_ini *ini,
                         const struct nj_ini_section *s, const struct nj_ini_section *was,
                         const struct nj_ini_section *is, const struct nj_ini_section *unless_in)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct nj_ini_entry *e = &ini->entry[s->first + i];
        bool is_first = next_entry(ini, s, e->key, NULL) == e;
        if (is_first && !next_entry(f->next->ini, unless_in, e->key, NULL))
            compare_key(f, was, is, e->key);
    }
}

void nj_config_diff_files(const struct nj_policy_file *running, const struct nj_policy_file *next,
                          nj_config_change_fn *see, void *of)
{
    const struct files f = {running, next, see, of};

    for (uint32_t i = 0; i < next->ini->n_sections; i++) {
        const struct nj_ini_section *is = &next->ini->section[i],
                                    *was = nj__policy_find_section(running, is->name);
        compare_keys(&f, next->ini, is, was, is, NULL);
    }
    for (uint32_t i = 0; i < running->ini->n_sections; i++) {
        const struct nj_ini_section *was = &running->ini->section[i],
                                    *is = nj__policy_find_section(next, was->name);
        compare_keys(&f, running->ini, was, was, is, is);
    }
}

/* --- limits ---------------------------------------------------------------------------------- */

struct limits {
    const struct nj_policy *of_file;
    nj_config_change_fn *see;
    void *of;
};

static void compare_class(const struct limits *l, const char *name, const struct nj_class *running,
                          const struct nj_class *of_file)
{
    char was[64], is[64];

    for (uint32_t i = 0; nj_class_key_name(i); i++) {
        const char *x = nj_class_key_format(running, i, was, sizeof was);
        const char *y = nj_class_key_format(of_file, i, is, sizeof is);
        if ((x || y) && (!x || !y || strcmp(x, y) != 0))
            l->see(l->of, &(struct nj_config_change){.is_limit = true,
                                                     .section = name,
                                                     .key = nj_class_key_name(i),
                                                     .running = x,
                                                     .file_has = y});
    }
}

static void compare_limits(void *limits, const struct nj_policy *running)
{
    const struct limits *l = limits;
    const struct nj_class server = {.total = running->total},
                          of_file = {.total = l->of_file->total};

    compare_class(l, "", &server, &of_file);
    for (uint32_t i = 0; i < running->n_classes; i++) {
        struct nj_class copy;
        const struct nj_class *c = nj_limits_of(l->of_file, running->classes[i].name, &copy);
        if (c) /* the hours of the day may differ */
            compare_class(l, running->classes[i].name, &running->classes[i], c);
    }
}

bool nj_config_diff_limits(struct nj_policies *p, uint32_t minute, nj_config_change_fn *see,
                           void *of)
{
    const struct nj_settings *s = nj_policies_settings(p);
    struct nj_policy *of_file = calloc(1, sizeof *of_file);
    struct limits l = {of_file, see, of};

    if (!of_file)
        return false;
    nj_policy_compile(s->policy, s->given, NULL, nj_policy_active_hours_mask(s->policy, minute),
                      of_file);
    nj_policies_call_with_current(p, compare_limits, &l);
    free(of_file);
    return true;
}
