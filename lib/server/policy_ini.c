/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/policy_ini.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cfgfile.h>

#define COMMENT    '#'
#define FILE_SHOWN 400 /* bytes of its name */

/* Its buffer for a line is a little longer than name, value and what is between them. */
_Static_assert(CFG_NAME_LEN >= 64 && CFG_VALUE_LEN >= 256, "what docs/policy.md says");

/* --- faults --------------------------------------------------------------------------------- */

/* The number behind "FILE:"; 0 where there is none. */
static unsigned long number_of(const char *told, const char *file)
{
    size_t n = strnlen(file, FILE_SHOWN);
    return strncmp(told, file, n) == 0 && told[n] == ':' ? strtoul(told + n + 1, NULL, 10) : 0;
}

/* In front of what is told of later lines of the file. */
static void insert(struct nj_faults *f, const char *file, uint32_t line, const char *text, size_t n)
{
    char *more = realloc(f->text, f->n_bytes + n + 1);
    size_t at = f->n_bytes;

    if (!more)
        return;
    f->text = more;
    f->text[f->n_bytes] = '\0';
    for (size_t k = 0; line > 0 && k < at; k += strcspn(f->text + k, "\n") + 1)
        if (number_of(f->text + k, file) > line)
            at = k;
    memmove(f->text + at + n, f->text + at, f->n_bytes - at + 1);
    memcpy(f->text + at, text, n);
    f->n_bytes += n;
}

void nj_fault(struct nj_faults *f, const char *file, uint32_t line, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    int n = line ? snprintf(text, sizeof text, "%.*s:%u: ", FILE_SHOWN, file, line)
                 : snprintf(text, sizeof text, "%.*s: ", FILE_SHOWN, file);

    if (f->n++ >= NJ_FAULTS_TOLD)
        return;
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '?'; /* a line is a line, and a terminal's escapes stay in the file */
    text[len++] = '\n';
    insert(f, file, line, text, len);
}

void nj_faults_free(struct nj_faults *f)
{
    free(f->text);
    *f = (struct nj_faults){0};
}

/* --- reading -------------------------------------------------------------------------------- */

/* A regular one: others may keep us waiting. */
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

char *nj_ini_slurp(const char *path, size_t max_bytes, size_t *n_bytes, struct nj_faults *faults)
{
    FILE *f = open_file(path);
    char *text = f ? malloc(max_bytes + 2) : NULL;

    *n_bytes = text ? fread(text, 1, max_bytes + 1, f) : 0;
    if (!text || ferror(f)) {
        nj_fault(faults, path, 0, "cannot be read: %s", strerror(errno));
    } else if (*n_bytes > max_bytes) {
        nj_fault(faults, path, 0, "too long: expected at most %zu bytes", max_bytes);
    } else {
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
    struct nj_faults *faults;
    struct nj_ini *ini;
    uint32_t line;
    bool in_section; /* of which something is known: what stands in a broken one is passed over */
    bool passed_over;
    char *clean; /* what rte_cfgfile is given */
    size_t n_clean;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

void nj_ini_strip(const char **from, const char **to)
{
    while (*from < *to && is_space(**from))
        (*from)++;
    while (*from < *to && is_space((*to)[-1]))
        (*to)--;
}

static void take_section(struct scan *s, const char *p, const char *end)
{
    const char *close = memchr(p, ']', (size_t)(end - p)), *rest = close ? close + 1 : end;

    s->in_section = false;
    s->passed_over = true;
    nj_ini_strip(&rest, &end);
    if (!close || (rest < end && *rest != COMMENT)) {
        nj_fault(s->faults, s->file, s->line, "a section that does not end in ]: expected [NAME]");
        return;
    }
    p++;
    nj_ini_strip(&p, &close);
    if (p == close || close - p >= CFG_NAME_LEN || memchr(p, '[', (size_t)(close - p)) ||
        memchr(p, COMMENT, (size_t)(close - p))) {
        nj_fault(s->faults, s->file, s->line,
                 "the name of a section: expected 1 to %d characters without [ and #",
                 CFG_NAME_LEN - 1);
        return;
    }
    if (s->ini->n_sections == NJ_INI_SECTIONS_MAX) {
        nj_fault(s->faults, s->file, s->line, "too many sections: expected at most %u",
                 NJ_INI_SECTIONS_MAX);
        return;
    }
    s->ini->section[s->ini->n_sections++] =
        (struct nj_ini_section){NULL, s->line, s->ini->n_entries, 0, false};
    s->n_clean += (size_t)sprintf(s->clean + s->n_clean, "[%.*s]\n", (int)(close - p), p);
    s->in_section = true;
}

/* The end of what is no comment. */
static const char *comment(const char *p, const char *end)
{
    for (const char *c = p; c < end; c++)
        if (*c == COMMENT && (c == p || c[-1] != '\\'))
            return c;
    return end;
}

static void take_entry(struct scan *s, const char *p, const char *end)
{
    const char *is = memchr(p, '=', (size_t)(end - p)), *key_end = is, *value = is ? is + 1 : NULL;

    if (!is) {
        nj_fault(s->faults, s->file, s->line, "%.*s: expected KEY = VALUE or [SECTION]",
                 (int)(end - p < 60 ? end - p : 60), p);
        return;
    }
    nj_ini_strip(&p, &key_end);
    nj_ini_strip(&value, &end);
    int n_key = (int)(key_end - p), n_value = (int)(end - value);
    if (n_key == 0 || n_key >= CFG_NAME_LEN)
        nj_fault(s->faults, s->file, s->line, "the key before =: expected 1 to %d characters",
                 CFG_NAME_LEN - 1);
    else if (n_value == 0 || n_value >= CFG_VALUE_LEN)
        nj_fault(s->faults, s->file, s->line, "%.*s: expected a value of 1 to %d characters", n_key,
                 p, CFG_VALUE_LEN - 1);
    else if (!s->in_section && !s->passed_over)
        nj_fault(s->faults, s->file, s->line, "%.*s: expected a [SECTION] before it", n_key, p);
    else if (s->ini->n_entries == NJ_INI_ENTRIES_MAX)
        nj_fault(s->faults, s->file, s->line, "too many keys: expected at most %u",
                 NJ_INI_ENTRIES_MAX);
    else if (s->in_section) {
        s->ini->entry[s->ini->n_entries++].line = s->line;
        s->ini->section[s->ini->n_sections - 1].n++;
        s->n_clean +=
            (size_t)sprintf(s->clean + s->n_clean, "%.*s=%.*s\n", n_key, p, n_value, value);
    }
}

static void take_line(struct scan *s, const char *p, const char *end)
{
    s->line++;
    if (memchr(p, '\0', (size_t)(end - p))) {
        nj_fault(s->faults, s->file, s->line, "a zero byte: expected text");
        return;
    }
    nj_ini_strip(&p, &end);
    if (p == end || *p == COMMENT || *p == ';')
        return;
    if (*p == '[') {
        take_section(s, p, end);
        return;
    }
    end = comment(p, end);
    nj_ini_strip(&p, &end);
    uint32_t n_before = s->faults->n;
    take_entry(s, p, end);
    if (s->faults->n > n_before && s->in_section)
        s->ini->section[s->ini->n_sections - 1].lacks = true;
}

/* --- rte_cfgfile ---------------------------------------------------------------------------- */

/* It reads files by name: this one has no other than its number. */
static struct rte_cfgfile *load(const char *clean, size_t n_clean)
{
    const struct rte_cfgfile_parameters how = {.comment_character = COMMENT};
    struct rte_cfgfile *cfg = NULL;
    char name[32];
    int fd = memfd_create("nj-policy", MFD_CLOEXEC);

    if (fd >= 0 && write(fd, clean, n_clean) == (ssize_t)n_clean) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        cfg = rte_cfgfile_load_with_params(name, CFG_FLAG_EMPTY_VALUES, &how);
    }
    if (fd >= 0)
        close(fd);
    return cfg;
}

/* Give every line what it says. The two have seen the same lines, so they agree on how many. */
static bool fill(struct nj_ini *ini, struct rte_cfgfile *cfg)
{
    struct rte_cfgfile_entry *entries = calloc(ini->n_entries + 1u, sizeof *entries);
    char(*names)[CFG_NAME_LEN] = calloc(ini->n_sections + 1u, sizeof *names);
    char *store = NULL;
    bool ok = entries && names && rte_cfgfile_num_sections(cfg, NULL, 0) == (int)ini->n_sections;

    if (ok)
        store = malloc((ini->n_entries + 1u) * sizeof *entries +
                       (ini->n_sections + 1u) * sizeof *names);
    char *at = store;
    for (uint32_t i = 0; ok && store && i < ini->n_sections; i++) {
        struct nj_ini_section *sec = &ini->section[i];
        ok = rte_cfgfile_section_entries_by_index(cfg, (int)i, names[i], &entries[sec->first],
                                                  (int)sec->n + 1) == (int)sec->n;
        sec->name = at;
        at = stpcpy(at, names[i]) + 1;
        for (uint32_t k = sec->first; ok && k < sec->first + sec->n; k++) {
            ini->entry[k].key = at;
            at = stpcpy(at, entries[k].name) + 1;
            ini->entry[k].value = at;
            at = stpcpy(at, entries[k].value) + 1;
        }
    }
    ini->store = store;
    free(entries);
    free(names);
    return ok && store;
}

struct nj_ini *nj_ini_parse(const char *file, const char *text, size_t n_bytes,
                            struct nj_faults *faults)
{
    struct nj_ini *ini = calloc(1, sizeof *ini);
    struct scan s = {.file = file, .faults = faults, .ini = ini};
    const char *end = text + n_bytes;

    if (ini)
        ini->entry = calloc(NJ_INI_ENTRIES_MAX, sizeof *ini->entry);
    /* A line never grows by more than the end it may lack. */
    s.clean = malloc(n_bytes + 2);
    if (!ini || !ini->entry || !s.clean) {
        free(s.clean);
        nj_ini_free(ini);
        return NULL;
    }
    if (n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3; /* a byte order mark, which some editors leave */
    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        take_line(&s, text, eol ? eol : end);
        text = eol ? eol + 1 : end;
    }
    struct rte_cfgfile *cfg = load(s.clean, s.n_clean);
    if (!cfg || !fill(ini, cfg)) {
        nj_fault(faults, file, 0, "rte_cfgfile cannot read it: %s", strerror(errno));
        ini->n_sections = ini->n_entries = 0;
    }
    if (cfg)
        rte_cfgfile_close(cfg);
    free(s.clean);
    return ini;
}

void nj_ini_free(struct nj_ini *ini)
{
    if (!ini)
        return;
    free(ini->entry);
    free(ini->store);
    free(ini);
}
