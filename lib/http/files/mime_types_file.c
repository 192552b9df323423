/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a mime.types file into a table sorted by extension. All strings are in one allocation.
 * Tokens follow RFC 9110 5.6.2, names RFC 6838 4.2. */
#include "http/files/mime_types_file.h"

#include <stdlib.h>
#include <string.h>

struct reader {
    struct nj_mime_table *t;
    uint32_t n_max, line;
    const char *why;
    char *names; /* next free byte of `t->names` */
};

/* tchar of RFC 9110 5.6.2 */
static bool is_tchar(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static uint32_t token(struct nj_str s, uint32_t at)
{
    uint32_t n = 0;
    while (at + n < s.n_bytes && is_tchar(s.p[at + n]))
        n++;
    return n;
}

/* type "/" subtype, and parameters without blanks. */
const char *nj_mime_type_error(struct nj_str s)
{
    uint32_t n = token(s, 0), m;

    if (n == 0 || n == s.n_bytes || s.p[n] != '/' || (m = token(s, n + 1)) == 0)
        return "expected a media type such as text/html";
    if (n > NJ_MIME_NAME_MAX || m > NJ_MIME_NAME_MAX || s.n_bytes > NJ_MIME_TYPE_MAX)
        return "the media type is too long";
    if (n + 1 + m < s.n_bytes && s.p[n + 1 + m] != ';')
        return "expected a parameter after the media type";
    for (uint32_t i = n + 1 + m; i < s.n_bytes; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f)
            return "invalid character in a parameter";
    return NULL;
}

static const char *check_extension(struct nj_str s)
{
    if (s.n_bytes > NJ_MIME_NAME_MAX)
        return "the extension is too long";
    for (uint32_t i = 0; i < s.n_bytes; i++)
        if ((uint8_t)s.p[i] <= ' ' || s.p[i] == 0x7f || s.p[i] == '/')
            return "invalid character in an extension";
    return NULL;
}

static struct nj_str store_str(struct reader *r, struct nj_str s)
{
    struct nj_str stored = {r->names, s.n_bytes};

    r->names = mempcpy(r->names, s.p, s.n_bytes);
    return stored;
}

/* Takes the next word of a line. False at its end. */
static bool next_word(struct nj_str *line, struct nj_str *word)
{
    return nj_str_next_word(line, word) && *word->p != '#';
}

static bool read_line(struct reader *r, struct nj_str line)
{
    struct nj_str word, type;

    if (!next_word(&line, &word))
        return true;
    r->why = nj_mime_type_error(word);
    if (r->why)
        return false;
    bool is_text = word.n_bytes > 5 && nj_strncasecmp(word.p, "text/", 5) == 0 &&
                   !memchr(word.p, ';', word.n_bytes);
    type = store_str(r, word);
    if (is_text)
        store_str(r, NJ_STR(NJ__MIME_CHARSET));
    while (next_word(&line, &word)) {
        r->why = check_extension(word);
        if (!r->why && r->t->n == r->n_max)
            r->why = "too many extensions";
        if (r->why)
            return false;
        r->t->rows[r->t->n++] = (struct nj__mime_row){store_str(r, word), type, is_text, r->line};
    }
    return true;
}

static int order_of(struct nj_str a, struct nj_str b)
{
    uint32_t n = a.n_bytes < b.n_bytes ? a.n_bytes : b.n_bytes;
    int order = nj_strncasecmp(a.p, b.p, n);
    return order ? order : (a.n_bytes > b.n_bytes) - (a.n_bytes < b.n_bytes);
}

static int by_extension(const void *x, const void *y)
{
    const struct nj__mime_row *a = x, *b = y;
    int order = order_of(a->ext, b->ext);
    return order ? order : (a->line < b->line) - (a->line > b->line);
}

/* Sorts the rows and keeps the first of each extension, which is from the last line. */
static void sort_and_dedup(struct nj_mime_table *t)
{
    uint32_t n = 0;

    qsort(t->rows, t->n, sizeof t->rows[0], by_extension);
    for (uint32_t i = 0; i < t->n; i++)
        if (n == 0 || order_of(t->rows[n - 1].ext, t->rows[i].ext) != 0)
            t->rows[n++] = t->rows[i];
    t->n = n;
}

/* Allocates for the worst case: an extension takes two bytes at least; a line takes four ("a/b" and
 * its end) and may get a charset. */
static struct nj_mime_table *new_table(size_t n_bytes, uint32_t *n_max)
{
    *n_max =
        n_bytes / 2 < NJ_MIME_EXTENSIONS_MAX ? (uint32_t)(n_bytes / 2) : NJ_MIME_EXTENSIONS_MAX;
    struct nj_mime_table *t = calloc(1, sizeof *t + *n_max * sizeof t->rows[0]);
    if (!t)
        return NULL;
    t->names = malloc(n_bytes + (n_bytes / 4 + 1) * (sizeof NJ__MIME_CHARSET - 1) + 1);
    if (t->names)
        return t;
    free(t);
    return NULL;
}

struct nj_mime_table *nj_mime_table_parse(const char *text, size_t n_bytes, uint32_t *line,
                                          const char **why)
{
    struct reader r = {0};

    *line = 0;
    *why = "not enough memory";
    r.t = n_bytes <= UINT32_MAX / 8 ? new_table(n_bytes, &r.n_max) : NULL;
    if (!r.t)
        return NULL;
    r.names = r.t->names;
    for (const char *end = text + n_bytes; text < end;) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            stop = end;
        r.line++;
        if (!read_line(&r, (struct nj_str){text, (uint32_t)(stop - text)})) {
            *line = r.line;
            *why = r.why;
            nj_mime_table_free(r.t);
            return NULL;
        }
        text = stop + 1;
    }
    sort_and_dedup(r.t);
    return r.t;
}

void nj_mime_table_free(struct nj_mime_table *t)
{
    if (!t)
        return;
    free(t->names);
    free(t);
}

const struct nj__mime_row *nj__mime_find(const struct nj__mime_row *rows, uint32_t n_rows,
                                         struct nj_str ext)
{
    for (uint32_t lo = 0, hi = n_rows; lo < hi;) {
        uint32_t mid = lo + (hi - lo) / 2;
        int order = order_of(ext, rows[mid].ext);
        if (order == 0)
            return &rows[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
