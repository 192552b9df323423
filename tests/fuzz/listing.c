/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: names of any bytes in a listing. They add no markup to HTML, end no string in JSON,
 * both are UTF-8, and each link resolves to its name.
 *
 * Input: entries that end in a zero byte: a byte for the kind, and the name. The first is the
 * folder's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/files/dir_listing.h"
#include "http/proto/path.h"

#define ENTRIES_MAX 64u

static void require(int cond)
{
    if (!cond)
        abort();
}

static uint32_t count(const char *p, size_t n, char c)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += p[i] == c;
    return found;
}

/* By the table of RFC 3629 4, by code points: independent of the tested code. */
static void require_utf8(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t more = p[i] < 0x80 ? 0 : p[i] >= 0xf0 ? 3 : p[i] >= 0xe0 ? 2 : 1;
        static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
        require(p[i] < 0x80 || (p[i] >= 0xc0 && p[i] < 0xf8));
        uint32_t code = more == 0 ? p[i] : p[i] & (0x3fu >> more);
        for (uint32_t k = 1; k <= more; k++) {
            require(i + k < n && (p[i + k] & 0xc0) == 0x80);
            code = code << 6 | (p[i + k] & 0x3f);
        }
        require(code >= least[more] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff));
        i += 1 + more;
    }
}

/* Checks the strings and braces of JSON that names could break. Returns the number of objects. */
static uint32_t check_json(const char *p, size_t n)
{
    uint32_t depth = 0, objects = 0;
    int in_string = 0;

    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)p[i];
        if (in_string) {
            require(c >= 0x20);
            if (c == '\\')
                require(++i < n && (p[i] == '"' || p[i] == '\\' || p[i] == 'u'));
            else if (c == '"')
                in_string = 0;
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '{') {
            depth++;
            objects++;
        } else if (c == '}') {
            require(depth-- > 0);
        }
    }
    require(!in_string && depth == 0);
    return objects;
}

static char *render(const struct nj_listing *l, int json, size_t *n)
{
    *n = nj_listing_render(l, json, NULL, 0);
    char *page = malloc(*n);
    require(page && nj_listing_render(l, json, page, *n) == *n);
    require_utf8((const uint8_t *)page, *n);
    return page;
}

/* The link of each entry must resolve to it for a client. */
static void check_links(const struct nj_listing *l, const char *json, size_t n)
{
    static const char key[] = "\"href\":\"";
    static struct nj_path path;
    static char target[NJ_PATH_MAX];
    const char *p = json, *end = json + n;

    for (uint32_t i = 0; i < l->n_entries; i++) {
        const struct nj_listing_entry *e = &l->entries[i];
        p = memmem(p, (size_t)(end - p), key, sizeof key - 1);
        require(p != NULL);
        p += sizeof key - 1;
        size_t n_href = (size_t)((const char *)memchr(p, '"', (size_t)(end - p)) - p);
        if (!nj_listing_may_show(e->name) || n_href + 1 >= sizeof target)
            continue;
        target[0] = '/';
        memcpy(target + 1, p, n_href);
        struct nj_str s = {target, (uint32_t)(n_href + 1)};
        require(nj_path_parse(s, NJ_STR("i"), NULL, &path) == NJ_PATH_OK &&
                path.had_slash == e->is_folder);
        size_t n_name = strlen(e->name);
        require(strncmp(path.name, e->name, n_name) == 0);
        require(strcmp(path.name + n_name, e->is_folder ? "/i" : "") == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct nj_listing_entry entries[ENTRIES_MAX];
    struct nj_listing l = {.path = "", .entries = entries}, empty = {.path = ""};
    char *text = malloc(n_bytes + 1);

    require(text != NULL);
    memcpy(text, data, n_bytes);
    text[n_bytes] = '\0';
    for (char *p = text; p < text + n_bytes && l.n_entries < ENTRIES_MAX; p += strlen(p) + 1) {
        uint8_t kind = (uint8_t)*p++;
        if (p == text + 1)
            l.path = p;
        else if (p <= text + n_bytes && *p && !strchr(p, '/'))
            entries[l.n_entries++] = (struct nj_listing_entry){
                p, kind & 1, (uint64_t)kind << (kind % 57), ((int64_t)kind - 100) * 1000000007};
    }
    nj_listing_sort(&l);

    size_t n_html, n_json, n_empty;
    char *html = render(&l, 0, &n_html), *json = render(&l, 1, &n_json);
    char *none = render(&empty, 0, &n_empty);
    /* 14 tags per entry; those of the page vary by the parent's link and one paragraph. */
    uint32_t tags = count(html, n_html, '<') - 14 * l.n_entries;
    uint32_t base = count(none, n_empty, '<');
    require(tags >= base - 2 && tags <= base + 6 && tags % 2 == base % 2);
    require(count(html, n_html, '<') == count(html, n_html, '>'));
    require(check_json(json, n_json) == 1 + l.n_entries);
    check_links(&l, json, n_json);
    free(html);
    free(json);
    free(none);
    free(text);
    return 0;
}
