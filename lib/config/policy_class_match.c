/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the keys that select the requests of a class: path, host, list, header, tls_subject
 * and hours. Reference: docs/policy.md. */
#include <stdio.h>
#include <string.h>

#include "base/field_syntax.h"
#include "base/text.h"
#include "base/units.h"
#include "config/policy_file.h"
#include "http/proto/path.h"
#include "log/address_text.h"

#define PATH_WANTS                                                                                 \
    "paths as they are after decoding, from the root and without . and .., e.g. /iso/, at most "   \
    "255 bytes"
#define HOST_WANTS   "hosts without port, e.g. files.example.org or [2001:db8::1]"
#define HEADER_WANTS "NAME, or NAME: VALUE"

static bool is_path(struct nj_str p)
{
    return p.n_bytes < NJ_PATH_PREFIX_MAX && nj_path_is_plain(p);
}

static bool is_host(struct nj_str h)
{
    bool six = h.p[0] == '[';

    const char *letters = six ? "0123456789abcdef:.[]" : "abcdefghijklmnopqrstuvwxyz0123456789-._";
    return strspn(h.p, letters) >= h.n_bytes && h.p[h.n_bytes - 1] != '.' &&
           (!six || h.p[h.n_bytes - 1] == ']');
}

static void read_values(struct nj__policy_reader *r, const struct nj_ini_entry *e,
                        struct nj_str *list, uint32_t *n, bool (*ok)(struct nj_str),
                        const char *expected)
{
    const char *at = e->value;
    struct nj_str word;

    while (at) {
        bool any = nj__policy_next_list_item(&at, &word);
        if (any && ok == is_host)
            nj__policy_to_lower(word);
        if (!any || !ok(word)) {
            nj__policy_report_bad_value(r, e, expected);
            return;
        }
        if (*n == NJ_POLICY_VALUES_MAX) {
            nj__policy_report_bad_value(r, e, "at most 32 of them in a class");
            return;
        }
        list[(*n)++] = word;
    }
}

static const char *list_at(void *file, uint32_t i)
{
    struct nj_policy_file *f = file;
    return i < f->n_lists ? f->list[i] : NULL;
}

/* A name that no list has; or what is none, such as a network. */
static void report_list(struct nj__policy_reader *r, const struct nj_ini_entry *e,
                        struct nj_str word)
{
    char name[NJ_INI_NAME_BYTES];
    struct nj_addr addr;
    unsigned bits;

    snprintf(name, sizeof name, "%.*s", (int)word.n_bytes, word.p);
    const char *near = nj__policy_closest_name(name, list_at, r->f);
    if (nj_prefix_parse(word.p, word.n_bytes, &addr, &bits))
        nj_diag_at(r->faults, e,
                   "%s = %.80s: expected names of [list NAME] sections: make a section [list NAME] "
                   "with networks = %s",
                   e->key, e->value, name);
    else
        nj_diag_at(r->faults, e, "%s = %.80s: there is no [list %s]%s%s%s", e->key, e->value, name,
                   near ? ": did you mean " : ": expected names of [list NAME] sections",
                   near ? near : "", near ? "?" : "");
}

uint32_t nj__policy_parse_list_names(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    const char *at = e->value;
    uint32_t lists = 0;
    struct nj_str word;

    while (at) {
        bool any = nj__policy_next_list_item(&at, &word);
        uint32_t i = 0;
        while (any && i < r->f->n_lists && !nj_str_eq(nj_str_of(r->f->list[i]), word))
            i++;
        if (!any || i == r->f->n_lists) {
            report_list(r, e, word);
            return 0;
        }
        lists |= 1u << i;
    }
    r->f->list_used |= lists;
    return lists;
}

static void read_header(struct nj__policy_reader *r, struct nj_class_def *c,
                        const struct nj_ini_entry *e)
{
    const char *colon = strchrnul(e->value, ':'), *value = *colon ? colon + 1 : colon;

    c->header = (struct nj_str){e->value, (uint32_t)(colon - e->value)};
    nj__policy_to_lower(c->header);
    value += strspn(value, " \t");
    c->value = nj_str_of(value);
    if (c->header.n_bytes == 0 || !nj_syntax_allows(c->header, NJ_IN_NAME) ||
        (*colon && c->value.n_bytes == 0))
        nj__policy_report_bad_value(r, e, HEADER_WANTS);
}

void nj__policy_parse_match_key(struct nj__policy_reader *r, struct nj_class_def *c,
                                const struct nj_ini_entry *e)
{
    uint16_t minutes[2];
    const char *key = e->key;

    if (strcmp(key, "path") == 0)
        read_values(r, e, c->path, &c->n_paths, is_path, PATH_WANTS);
    else if (strcmp(key, "host") == 0)
        read_values(r, e, c->host, &c->n_hosts, is_host, HOST_WANTS);
    else if (strcmp(key, "list") == 0)
        c->lists |= nj__policy_parse_list_names(r, e);
    else if (strcmp(key, "header") == 0)
        read_header(r, c, e);
    else if (strcmp(key, "tls_subject") == 0)
        c->subject = nj_str_of(e->value);
    else if (nj_parse_time_range(e->value, minutes))
        c->hours = (struct nj_hours){minutes[0], minutes[1]};
    else
        nj__policy_report_bad_value(r, e, "hours such as 22:00-06:00");
    c->has_match |= strcmp(key, "hours") != 0;
}
