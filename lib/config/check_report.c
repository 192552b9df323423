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
    if (!r->in_key)
        return;
    r->in_key = false;
    if (r->json)
        putchar('"');
    put_place(r, r->file, r->line);
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

void nj__report_key(struct nj__report *r, const char *key, const char *file, uint32_t line)
{
    nj__report_end_key(r);
    if (r->json) {
        put_member(r->n_keys > 0 ? ", {" : "{", "key", key);
        fputs(", \"value\": \"", stdout);
    } else {
        printf("    %s = ", key);
    }
    r->n_keys++;
    r->in_key = true;
    r->file = file;
    r->line = line;
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
