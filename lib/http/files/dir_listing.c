/* SPDX-License-Identifier: BSD-3-Clause */
/* Renders directory listings. Escapes file names as HTML text, as JSON strings (RFC 8259 7) and as
 * URL segments (RFC 3986 2.3). */
#include "http/files/dir_listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json_escape_utf8.h"
#include "http/proto/date.h"

/* The output buffer. Bytes beyond n_max are counted only. */
struct sink {
    char *out;
    size_t n, n_max;
};

static void put_bytes(struct sink *s, const char *p, size_t n)
{
    if (s->n < s->n_max)
        memcpy(s->out + s->n, p, n < s->n_max - s->n ? n : s->n_max - s->n);
    s->n += n;
}

static void put(struct sink *s, const char *text)
{
    put_bytes(s, text, strlen(text));
}

static void put_number(struct sink *s, uint64_t v)
{
    char digits[NJ_U64_DIGITS_MAX], *end = digits + sizeof digits;
    const char *p = nj_put_digits_backward(end, v);

    put_bytes(s, p, (size_t)(end - p));
}

/* A character escaped for HTML; NULL: it needs no escape. */
static const char *html_of(uint32_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&#34;";
    case '\'':
        return "&#39;";
    default:
        return c < 0x20 || c == 0x7f ? "\xef\xbf\xbd" : NULL;
    }
}

static void put_html(struct sink *s, struct nj_str text)
{
    while (text.n_bytes > 0) {
        const char *p = text.p;
        uint32_t c = nj_utf8_next(&text);
        const char *html = c == NJ_UTF8_INVALID ? "\xef\xbf\xbd" /* U+FFFD */ : html_of(c);
        if (html)
            put(s, html);
        else
            put_bytes(s, p, (size_t)(text.p - p));
    }
}

static void put_text(struct sink *s, const char *p, bool json)
{
    struct nj_str text = {p, (uint32_t)strlen(p)};
    size_t room = s->n < s->n_max ? s->n_max - s->n : 0;

    if (json)
        s->n += nj_json_escape(room > 0 ? s->out + s->n : NULL, room, text, NJ_JSON_REPLACE);
    else
        put_html(s, text);
}

/* Writes a name as one segment of a relative URL. All but unreserved bytes are encoded (RFC 3986
 * 2.3), so that no name is read as a scheme, a query or markup. */
static void put_href(struct sink *s, const struct nj_listing_entry *e)
{
    static const char digits[] = "0123456789ABCDEF";

    for (const uint8_t *p = (const uint8_t *)e->name; *p; p++) {
        uint8_t c = *p;
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain)
            put_bytes(s, (const char *)&c, 1);
        else
            put_bytes(s, (char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
    }
    if (e->is_folder)
        put(s, "/");
}

/* RFC 3339, with a resolution of one second. */
static void iso_time(int64_t unix_s, char out[20])
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char http[NJ_DATE_BYTES]; /* "Sun, 06 Nov 1994 08:49:37 GMT" */
    uint32_t month = 1;

    nj_date_format(unix_s, http);
    while (memcmp(names + 3 * (month - 1), http + 8, 3) != 0)
        month++;
    memcpy(out, http + 12, 4);
    out[4] = out[7] = '-';
    out[5] = (char)('0' + month / 10);
    out[6] = (char)('0' + month % 10);
    memcpy(out + 8, http + 5, 2);
    out[10] = 'T';
    memcpy(out + 11, http + 17, 8);
    out[19] = 'Z';
}

static void put_json_entry(struct sink *s, const struct nj_listing_entry *e)
{
    char time[20];

    iso_time(e->mtime_s, time);
    put(s, "{\"name\":\"");
    put_text(s, e->name, true);
    put(s, e->is_folder ? "\",\"type\":\"folder\",\"size\":" : "\",\"type\":\"file\",\"size\":");
    if (e->is_folder)
        put(s, "null");
    else
        put_number(s, e->size_bytes);
    put(s, ",\"mtime\":\"");
    put_bytes(s, time, sizeof time);
    put(s, "\",\"href\":\"");
    put_href(s, e);
    put(s, "\"}");
}

static void put_folder(struct sink *s, const struct nj_listing *l, bool json)
{
    put(s, "/");
    put_text(s, l->path, json);
    if (l->path[0])
        put(s, "/");
}

static void render_json(struct sink *s, const struct nj_listing *l)
{
    put(s, "{\"path\":\"");
    put_folder(s, l, true);
    put(s, "\",\"entries\":[");
    for (uint32_t i = 0; i < l->n_entries; i++) {
        put(s, i > 0 ? ",\n" : "\n");
        put_json_entry(s, &l->entries[i]);
    }
    put(s, "\n]}\n");
}

/* Writes a size with a binary unit and one decimal, rounded to nearest. */
static void put_size(struct sink *s, uint64_t n_bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint64_t tenths = n_bytes;
    uint32_t unit = 0, shift = 10;

    if (n_bytes < 1024) {
        put_number(s, n_bytes);
        put(s, " B");
        return;
    }
    while (unit + 1 < NJ_ARRAY_LEN(units) && n_bytes >> shift >= 1024) {
        shift += 10;
        unit++;
    }
    uint64_t whole = n_bytes >> shift, part = n_bytes & ((UINT64_C(1) << shift) - 1);
    /* The upper 10 bits of the fraction suffice for one decimal and cannot overflow. */
    tenths = whole * 10 + ((part >> (shift - 10)) * 10 + 512) / 1024;
    put_number(s, tenths / 10);
    put(s, ".");
    put_number(s, tenths % 10);
    put(s, " ");
    put(s, units[unit]);
}

static void put_html_entry(struct sink *s, const struct nj_listing_entry *e)
{
    char time[20];

    iso_time(e->mtime_s, time);
    put(s, "<tr><td><a href=\"");
    put_href(s, e);
    put(s, "\"><bdi>");
    put_text(s, e->name, false);
    put(s, e->is_folder ? "/</bdi></a></td><td>" : "</bdi></a></td><td>");
    if (!e->is_folder)
        put_size(s, e->size_bytes);
    put(s, "</td><td><time datetime=\"");
    put_bytes(s, time, sizeof time);
    put(s, "\">");
    put_bytes(s, time, 10);
    put(s, " ");
    put_bytes(s, time + 11, 5);
    put(s, "</time></td></tr>\n");
}

static void render_html(struct sink *s, const struct nj_listing *l)
{
    put(s, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
           "<title>Index of ");
    put_folder(s, l, false);
    put(s, "</title>\n<style>\n"
           ":root{color-scheme:light dark}\n"
           "body{font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;"
           "padding:0 1rem}\n"
           "table{border-collapse:collapse;width:100%}\n"
           "th{text-align:left}\n"
           "td,th{padding:.2rem .5rem;border-bottom:1px solid #8884;overflow-wrap:anywhere}\n"
           "td+td,th+th{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
           "</style>\n</head>\n<body>\n<main>\n<h1>Index of <bdi>");
    put_folder(s, l, false);
    put(s, "</bdi></h1>\n");
    if (l->path[0])
        put(s, "<p><a href=\"../\">Parent folder</a></p>\n");
    put(s, "<table>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Size</th>"
           "<th scope=\"col\">Changed (UTC)</th></tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < l->n_entries; i++)
        put_html_entry(s, &l->entries[i]);
    put(s, "</tbody>\n</table>\n");
    if (l->n_entries == 0)
        put(s, "<p>This folder is empty.</p>\n");
    put(s, "</main>\n</body>\n</html>\n");
}

size_t nj_listing_render(const struct nj_listing *l, bool json, char *out, size_t n_out)
{
    struct sink s = {.out = out, .n_max = n_out};

    if (json)
        render_json(&s, l);
    else
        render_html(&s, l);
    return s.n;
}

bool nj_listing_may_show(const char *name)
{
    if (name[0] == '.' || name[0] == '\0')
        return false;
    for (const uint8_t *p = (const uint8_t *)name; *p; p++)
        if (*p < 0x20 || *p == 0x7f || *p == '\\')
            return false;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct nj_listing_entry *x = a, *y = b;

    if (x->is_folder != y->is_folder)
        return x->is_folder ? -1 : 1;
    return strcmp(x->name, y->name);
}

void nj_listing_sort(struct nj_listing *l)
{
    if (l->n_entries > 0)
        qsort(l->entries, l->n_entries, sizeof l->entries[0], compare);
}
