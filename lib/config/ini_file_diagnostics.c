/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses INI files into sections, keys and values, and collects diagnostics by file and line.
 * Syntax: see docs/policy.md. */
#include "config/ini_file_diagnostics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/open_error.h"
#include "base/types.h"

#define COMMENT    '#'
#define FILE_SHOWN 400 /* bytes of the file's name */

/* --- diagnostics ---------------------------------------------------------------------------- */

/* The line number after "FILE:", or 0. */
static unsigned long diag_line_number(const char *told, const char *file)
{
    size_t n = strnlen(file, FILE_SHOWN);
    return strncmp(told, file, n) == 0 && told[n] == ':' ? strtoul(told + n + 1, NULL, 10) : 0;
}

/* Insert before the diagnostics of later lines of the file. */
static void insert_diag(struct nj_diags *f, const char *file, uint32_t line, const char *text,
                        size_t n)
{
    char *more = realloc(f->text, f->n_bytes + n + 1);
    size_t at = f->n_bytes;

    if (!more)
        return;
    f->text = more;
    f->text[f->n_bytes] = '\0';
    for (size_t k = 0; line > 0 && k < at; k += strcspn(f->text + k, "\n") + 1)
        if (diag_line_number(f->text + k, file) > line)
            at = k;
    memmove(f->text + at + n, f->text + at, f->n_bytes - at + 1);
    memcpy(f->text + at, text, n);
    f->n_bytes += n;
}

void nj_diag_add(struct nj_diags *f, const char *file, uint32_t line, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    int n = line ? snprintf(text, sizeof text, "%.*s:%u: ", FILE_SHOWN, file, line)
                 : snprintf(text, sizeof text, "%.*s: ", FILE_SHOWN, file);

    if (f->n++ >= NJ_DIAGS_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '?'; /* no line breaks, and no terminal escapes */
    text[len++] = '\n';
    insert_diag(f, file, line, text, len);
}

void nj_diag_add_line(struct nj_diags *f, const char *text)
{
    if (f->n++ < NJ_DIAGS_MAX) {
        insert_diag(f, "", 0, text, strlen(text));
        insert_diag(f, "", 0, "\n", 1);
    }
}

void nj_diags_free(struct nj_diags *f)
{
    free(f->text);
    *f = (struct nj_diags){0};
}

/* --- reading -------------------------------------------------------------------------------- */

/* Only regular files: opening or reading others may block. */
static FILE *open_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fdopen(fd, "r");
    errno = S_ISDIR(st.st_mode) ? EISDIR : ENOTSUP;
    close(fd);
    return NULL;
}

/* Editors of Windows write a byte order mark of UTF-8 at the beginning. */
static uint32_t n_bytes_of_mark(const char *text, size_t n_bytes)
{
    return n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

char *nj_read_text_file(const char *path, size_t max_bytes, size_t *n_bytes,
                        struct nj_diags *faults)
{
    FILE *f = open_file(path);
    char *text = f ? malloc(max_bytes + 2) : NULL;

    *n_bytes = text ? fread(text, 1, max_bytes + 1, f) : 0;
    if (!text || ferror(f)) {
        nj_diag_add(faults, path, 0, "cannot be read: %s", nj_open_error(path, errno));
    } else if (*n_bytes > max_bytes) {
        nj_diag_add(faults, path, 0, "too long: expected at most %zu bytes", max_bytes);
    } else {
        uint32_t n_mark = n_bytes_of_mark(text, *n_bytes);
        *n_bytes -= n_mark;
        memmove(text, text + n_mark, *n_bytes);
        text[*n_bytes] = '\0';
        fclose(f);
        return text;
    }
    free(text);
    if (f)
        fclose(f);
    return NULL;
}

/* --- lines ---------------------------------------------------------------------------------- */

struct scan {
    const char *file;
    struct stat id;            /* of the file; of which st_ino is 0: text, which includes nothing */
    const struct scan *parent; /* of the file that includes this one */
    struct nj_diags *faults;
    struct nj_ini *ini;
    uint32_t line, include_line; /* the latter of one that ended a section, or 0 */
    bool in_section;             /* a valid one; entries of an invalid section are skipped */
    bool saw_section;
    bool cuts;        /* a comment begins right behind the text of the line */
    char *free_space; /* unused part of ini->store */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

struct nj_str nj_ini_trim(struct nj_str s)
{
    while (s.n_bytes > 0 && is_space(s.p[0]))
        nj_str_skip(&s, 1);
    while (s.n_bytes > 0 && is_space(s.p[s.n_bytes - 1]))
        s.n_bytes--;
    return s;
}

static bool has_byte(struct nj_str s, char c)
{
    return memchr(s.p, c, s.n_bytes) != NULL;
}

/* A terminated copy. It fits: in the text, '=', ']' or a newline follows each string, in place of
 * the NUL. */
static char *copy_string(struct scan *s, struct nj_str text)
{
    char *copy = s->free_space;

    s->free_space = (char *)mempcpy(copy, text.p, text.n_bytes) + 1;
    s->free_space[-1] = '\0';
    return copy;
}

/* `rest`: what follows the '['. */
static void parse_section(struct scan *s, struct nj_str rest)
{
    struct nj_str name;
    bool is_closed = nj_str_cut(&rest, ']', &name);

    rest = nj_ini_trim(rest);
    name = nj_ini_trim(name);
    s->in_section = false;
    s->saw_section = true;
    if (!is_closed || (rest.n_bytes > 0 && rest.p[0] != COMMENT))
        nj_diag_at(s->faults, s, "unterminated section header: expected [NAME]");
    else if (name.n_bytes == 0 || name.n_bytes >= NJ_INI_SECTION_BYTES || has_byte(name, '[') ||
             has_byte(name, COMMENT))
        nj_diag_at(s->faults, s, "section name: expected 1 to %d characters without [ and #",
                   NJ_INI_SECTION_BYTES - 1);
    else if (s->ini->n_sections == NJ_INI_SECTIONS_MAX)
        nj_diag_at(s->faults, s, "too many sections: expected at most %u", NJ_INI_SECTIONS_MAX);
    else if (!nj_grow((void **)&s->ini->section, s->ini->n_sections, sizeof *s->ini->section))
        nj_diag_at(s->faults, s, "out of memory");
    else {
        s->ini->section[s->ini->n_sections++] = (struct nj_ini_section){
            copy_string(s, name), s->file, s->line, s->ini->n_entries, 0, false, false};
        s->in_section = true;
    }
}

static struct nj_str without_comment(struct nj_str line)
{
    for (uint32_t i = 0; i < line.n_bytes; i++)
        if (line.p[i] == COMMENT && (i == 0 || line.p[i - 1] != '\\'))
            line.n_bytes = i;
    return line;
}

/* Replaces "\#" by '#'. */
static char *unescape(char *value)
{
    char *to = value;

    for (const char *from = value; *from; from++)
        if (from[0] != '\\' || from[1] != COMMENT)
            *to++ = *from;
    *to = '\0';
    return value;
}

/* --- include -------------------------------------------------------------------------------- */

char *nj_ini_path_beside(const char *file, const char *name)
{
    const char *slash = name[0] == '/' ? NULL : strrchr(file, '/');
    char *path = NULL;

    return asprintf(&path, "%.*s%s", slash ? (int)(slash - file) + 1 : 0, file, name) < 0 ? NULL
                                                                                          : path;
}

/* NULL: too many, or there is no memory. */
static struct nj_ini_file *add_file(struct nj_ini *ini, const char *name)
{
    struct nj_ini_file *f = &ini->file[ini->n_files];

    if (ini->n_files == NJ_INI_FILES_MAX || !(f->name = strdup(name)))
        return NULL;
    ini->n_files++;
    return f;
}

static bool parse_text(struct scan *s, const char *text, size_t n_bytes);

static void include_file(struct scan *s, const char *path)
{
    struct scan inner = {.file = path, .faults = s->faults, .ini = s->ini, .parent = s};
    uint32_t depth = 1;
    size_t n_bytes;

    if (stat(path, &inner.id) != 0) {
        nj_diag_at(s->faults, s, "include = %s: %s", path, nj_open_error(path, errno));
        return;
    }
    for (const struct scan *up = s; up; up = up->parent, depth++) {
        if (up->id.st_ino == inner.id.st_ino && up->id.st_dev == inner.id.st_dev) {
            nj_diag_at(s->faults, s, "include = %s: a loop: %s includes this line", path, up->file);
            return;
        }
    }
    if (depth > NJ_INI_DEPTH_MAX || s->ini->n_files == NJ_INI_FILES_MAX) {
        nj_diag_at(s->faults, s, "include = %s: expected at most %u %s", path,
                   depth > NJ_INI_DEPTH_MAX ? NJ_INI_DEPTH_MAX : NJ_INI_FILES_MAX,
                   depth > NJ_INI_DEPTH_MAX ? "files that include each other" : "files");
        return;
    }
    char *text = nj_read_text_file(path, NJ_INI_BYTES_MAX, &n_bytes, s->faults);
    if (text && !parse_text(&inner, text, n_bytes))
        nj_diag_at(s->faults, s, "include = %s: out of memory", path);
    free(text);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The files of a folder that match; none is fine. The pattern's name is kept, since the folder is
 * read again. */
static void include_matches(struct scan *s, const char *path, const char *pattern)
{
    char *folder = nj_ini_path_beside(path, ".");
    struct dirent **found = NULL;
    int n = folder ? scandir(folder, &found, NULL, by_name) : -1;

    if (!folder || !add_file(s->ini, path))
        nj_diag_at(s->faults, s, "include = %s: expected at most %u files", path, NJ_INI_FILES_MAX);
    else if (n < 0 && errno != ENOENT)
        nj_diag_at(s->faults, s, "include = %s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        bool matches = fnmatch(pattern, found[i]->d_name, FNM_PERIOD) == 0;
        char *match = matches ? nj_ini_path_beside(path, found[i]->d_name) : NULL;
        if (match)
            include_file(s, match);
        free(match);
        free(found[i]);
    }
    free(found);
    free(folder);
}

static void include(struct scan *s, struct nj_str value)
{
    char name[NJ_INI_VALUE_BYTES];

    snprintf(name, sizeof name, "%.*s", (int)value.n_bytes, value.p);
    unescape(name);
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    const char *pattern = strpbrk(name, "*?[");
    char *path = nj_ini_path_beside(s->file, name);
    s->include_line = s->saw_section ? s->line : s->include_line;
    s->in_section = s->saw_section = false;
    if (s->id.st_ino == 0)
        nj_diag_at(s->faults, s, "include: expected in a file only");
    else if (!path)
        nj_diag_at(s->faults, s, "include = %s: out of memory", name);
    else if (pattern && pattern < last)
        nj_diag_at(s->faults, s, "include = %s: expected * and ? in the name of the file only",
                   name);
    else if (pattern)
        include_matches(s, path, last);
    else
        include_file(s, path);
    free(path);
}

static void add_entry(struct scan *s, struct nj_str key, struct nj_str value)
{
    char *kept = copy_string(s, key);

    for (char *dash = kept; (dash = strchr(dash, '-'));)
        *dash = '_';
    s->ini->entry[s->ini->n_entries++] =
        (struct nj_ini_entry){kept, unescape(copy_string(s, value)), s->file, s->line, s->cuts};
    s->ini->section[s->ini->n_sections - 1].n++;
}

static void parse_entry(struct scan *s, struct nj_str line)
{
    struct nj_str key, value = line;
    bool has_value = nj_str_cut(&value, '=', &key);

    key = nj_ini_trim(key);
    value = nj_ini_trim(value);
    if (!has_value)
        nj_diag_at(s->faults, s, "%.*s: expected KEY = VALUE or [SECTION]",
                   (int)nj_min_u32(line.n_bytes, 60), line.p);
    else if (key.n_bytes == 0 || key.n_bytes >= NJ_INI_NAME_BYTES)
        nj_diag_at(s->faults, s, "the key before =: expected 1 to %d characters",
                   NJ_INI_NAME_BYTES - 1);
    else if (value.n_bytes == 0 || value.n_bytes >= NJ_INI_VALUE_BYTES)
        nj_diag_at(s->faults, s, "%.*s: expected a value of 1 to %d characters", (int)key.n_bytes,
                   key.p, NJ_INI_VALUE_BYTES - 1);
    else if (nj_str_eq(key, NJ_STR("include")))
        include(s, value);
    else if (!s->saw_section && s->include_line > 0)
        nj_diag_at(s->faults, s,
                   "%.*s: expected a [SECTION] before it: the include on line %u ended the section",
                   (int)key.n_bytes, key.p, s->include_line);
    else if (!s->saw_section)
        nj_diag_at(s->faults, s, "%.*s: expected a [SECTION] before it", (int)key.n_bytes, key.p);
    else if (s->ini->n_entries == NJ_INI_ENTRIES_MAX)
        nj_diag_at(s->faults, s, "too many keys: expected at most %u", NJ_INI_ENTRIES_MAX);
    else if (!nj_grow((void **)&s->ini->entry, s->ini->n_entries, sizeof *s->ini->entry))
        nj_diag_at(s->faults, s, "out of memory");
    else if (s->in_section)
        add_entry(s, key, value);
}

static void parse_line(struct scan *s, struct nj_str line)
{
    uint32_t n_before = s->faults->n;

    s->line++;
    if (has_byte(line, '\0')) {
        nj_diag_at(s->faults, s, "NUL byte: expected text");
        return;
    }
    line = nj_ini_trim(line);
    if (line.n_bytes == 0 || line.p[0] == COMMENT || line.p[0] == ';')
        return;
    if (line.p[0] == '[') {
        nj_str_skip(&line, 1);
        parse_section(s, line);
        return;
    }
    struct nj_str text = without_comment(line);
    s->cuts = text.n_bytes < line.n_bytes && !is_space(text.p[text.n_bytes - 1]);
    parse_entry(s, nj_ini_trim(text));
    if (s->faults->n > n_before && s->in_section)
        s->ini->section[s->ini->n_sections - 1].is_incomplete = true;
}

/* Takes over `text`'s name and strings. */
static bool parse_text(struct scan *s, const char *text, size_t n_bytes)
{
    struct nj_ini_file *f = add_file(s->ini, s->file);
    struct nj_str rest = {text, (uint32_t)n_bytes}, line;

    if (!f || !(f->store = s->free_space = malloc(n_bytes + 1)))
        return false;
    s->file = f->name;
    nj_str_skip(&rest, n_bytes_of_mark(text, n_bytes));
    while (rest.n_bytes > 0) {
        nj_str_cut(&rest, '\n', &line);
        parse_line(s, line);
    }
    return true;
}

static struct nj_ini *parse_all(struct scan *s, const char *text, size_t n_bytes)
{
    s->ini = calloc(1, sizeof *s->ini);
    if (s->ini && parse_text(s, text, n_bytes))
        return s->ini;
    nj_ini_free(s->ini);
    return NULL;
}

struct nj_ini *nj_ini_parse(const char *file, const char *text, size_t n_bytes,
                            struct nj_diags *faults)
{
    struct scan s = {.file = file, .faults = faults};

    return parse_all(&s, text, n_bytes);
}

struct nj_ini *nj_ini_read(const char *file, struct nj_diags *faults)
{
    struct scan s = {.file = file, .faults = faults};
    size_t n_bytes;
    char *text = nj_read_text_file(file, NJ_INI_BYTES_MAX, &n_bytes, faults);

    if (!text || stat(file, &s.id) != 0) {
        free(text);
        return NULL;
    }
    struct nj_ini *ini = parse_all(&s, text, n_bytes);
    if (!ini)
        nj_diag_add(faults, file, 0, "out of memory");
    free(text);
    return ini;
}

int nj_ini_compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        size_t blank_a = strspn(a, " \t"), blank_b = strspn(b, " \t");
        if ((blank_a > 0) != (blank_b > 0))
            return blank_a > 0 ? -1 : 1;
        a += blank_a;
        b += blank_b;
        if (*a != *b) /* names have no blanks at their ends */
            return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
        a++;
        b++;
    }
    return (*a != '\0') - (*b != '\0');
}

static int compare_sections(const void *x, const void *y)
{
    const struct nj_ini_section *a = *(const struct nj_ini_section *const *)x,
                                *b = *(const struct nj_ini_section *const *)y;
    int order = nj_ini_compare_names(a->name, b->name);

    return order != 0 ? order : (a > b) - (a < b); /* that of the file */
}

static void report_duplicate(const struct nj_ini_section *s, const struct nj_ini_section *first,
                             struct nj_diags *faults)
{
    bool same_file = first->file == s->file;

    nj_diag_add(faults, s->file, s->line, "[%s]: duplicate; first set %s%s line %u", s->name,
                same_file ? "on" : "in ", same_file ? "" : first->file, first->line);
}

void nj_ini_mark_duplicates(struct nj_ini *ini, const char *file, struct nj_diags *faults)
{
    struct nj_ini_section **sorted = malloc((ini->n_sections + 1) * sizeof(*sorted));
    uint32_t first = 0;

    if (!sorted) {
        nj_diag_add(faults, file, 0, "out of memory");
        return;
    }
    for (uint32_t i = 0; i < ini->n_sections; i++)
        sorted[i] = &ini->section[i];
    qsort(sorted, ini->n_sections, sizeof(*sorted), compare_sections);
    for (uint32_t i = 1; i < ini->n_sections; i++) {
        sorted[i]->is_duplicate = nj_ini_compare_names(sorted[first]->name, sorted[i]->name) == 0;
        if (sorted[i]->is_duplicate)
            report_duplicate(sorted[i], sorted[first], faults);
        else
            first = i;
    }
    free(sorted);
}

void nj_ini_free(struct nj_ini *ini)
{
    if (!ini)
        return;
    for (uint32_t i = 0; i < ini->n_files; i++) {
        free(ini->file[i].name);
        free(ini->file[i].store);
    }
    free(ini->section);
    free(ini->entry);
    free(ini);
}
