/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/check_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_escape_utf8.h"

#define PIECE_BYTES 4096

static void put_escaped(const char *text)
{
    char out[NJ_JSON_ESCAPED_MAX(PIECE_BYTES)];
    struct nj_str s = {text, (uint32_t)strlen(text)};

    fwrite(out, 1, nj_json_escape(out, sizeof out, s, NJ_JSON_REPLACE), stdout);
}

static void put_member(const char *before, const char *key, const char *value)
{
    printf("%s\"%s\": \"", before, key);
    put_escaped(value);
    putchar('"');
}

static void put_place(const struct nj__report *r, const char *file, uint32_t line)
{
    if (!file)
        return;
    if (r->json) {
        put_member(", ", "file", file);
        printf(", \"line\": %u", line);
    } else if (r->shows_places) {
        printf(" (%s:%u)", file, line);
    }
}

void nj__report_end_key(struct nj__report *r)
{
    if (!r->key)
        return;
    r->key = NULL;
    if (r->json)
        putchar('"');
    if (r->at)
        put_place(r, r->at->file, r->at->line);
    putchar(r->json ? '}' : '\n');
}

static void end_item(struct nj__report *r)
{
    nj__report_end_key(r);
    if (r->json)
        fputs(r->n_items > 0 ? "]}" : "[", stdout);
}

void nj__report_item(struct nj__report *r, const char *kind, const char *name, const char *file,
                     uint32_t line)
{
    end_item(r);
    if (r->json) {
        put_member(r->n_items > 0 ? ",\n{" : "\n{", "kind", kind);
        if (name)
            put_member(", ", "name", name);
        put_place(r, file, line);
        fputs(", \"keys\": [", stdout);
    } else {
        printf("%s%s%s", kind, name ? " " : "", name ? name : "");
        put_place(r, file, line);
        putchar('\n');
    }
    r->n_items++;
    r->n_keys = 0;
}

void nj__report_section(struct nj__report *r, const struct nj_ini_section *s)
{
    char kind[NJ_INI_SECTION_BYTES];
    const char *name = s->name + strcspn(s->name, " \t");

    snprintf(kind, sizeof kind, "%.*s", (int)(name - s->name), s->name);
    nj__report_item(r, kind, *name ? name + strspn(name, " \t") : NULL, s->file, s->line);
}

void nj__report_key(struct nj__report *r, const char *key, const struct nj_ini_entry *at)
{
    nj__report_end_key(r);
    if (r->json) {
        put_member(r->n_keys > 0 ? ", {" : "{", "key", key);
        fputs(", \"value\": \"", stdout);
    } else {
        printf("    %s = ", key);
    }
    r->n_keys++;
    r->key = key;
    r->at = at;
}

void nj__report_entry(struct nj__report *r, const struct nj_ini_entry *e)
{
    nj__report_key(r, e->key, e);
    nj__report_add(r, "%s", e->value);
}

void nj__report_next(struct nj__report *r, const char *key)
{
    if (r->key && strcmp(r->key, key) == 0)
        nj__report_add(r, ", ");
    else
        nj__report_key(r, key, NULL);
}

void nj__report_add(struct nj__report *r, const char *fmt, ...)
{
    char text[PIECE_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->json)
        put_escaped(text);
    else
        fputs(text, stdout);
}

void nj__report_end(struct nj__report *r)
{
    end_item(r);
    if (r->json)
        puts("\n]");
}
