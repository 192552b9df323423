/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: reads files of this host, or of a directory tree in its place (--sysroot). */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"

#define PATH_BYTES 1024u

/* Formats a path. False: too long, so no such file exists. */
static NJ_PRINTF(3, 0) bool path_of(const struct nj_doctor *d, char path[PATH_BYTES],
                                    const char *fmt, va_list ap)
{
    size_t at = (size_t)snprintf(path, PATH_BYTES, "%s", d->root);

    if (at >= PATH_BYTES)
        return false;
    int put = vsnprintf(path + at, PATH_BYTES - at, fmt, ap);
    return put >= 0 && (size_t)put < PATH_BYTES - at;
}

/* Puts the path of the caller's format into `path`. */
#define PATH(ok)                                                                                   \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        (ok) = path_of(d, path, fmt, ap);                                                          \
        va_end(ap);                                                                                \
    } while (0)

bool nj__host_exists(const struct nj_doctor *d, const char *fmt, ...)
{
    char path[PATH_BYTES];
    bool ok;

    PATH(ok);
    return ok && access(path, F_OK) == 0;
}

static bool first_line(const char *path, char *text, size_t n)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(text, (int)n, f);

    if (f)
        fclose(f);
    if (!ok)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return ok;
}

bool nj__host_line(const struct nj_doctor *d, char *text, size_t n, const char *fmt, ...)
{
    char path[PATH_BYTES];
    bool ok;

    text[0] = '\0';
    PATH(ok);
    return ok && first_line(path, text, n);
}

bool nj__host_number(const struct nj_doctor *d, int64_t *out, const char *fmt, ...)
{
    char path[PATH_BYTES], text[64], *end;
    bool ok;

    PATH(ok);
    if (!ok || !first_line(path, text, sizeof text))
        return false;
    bool is_hex = strncmp(text, "0x", 2) == 0;
    errno = 0;
    long long n = strtoll(text, &end, is_hex ? 16 : 10);
    if (end == text || *end || errno)
        return false;
    *out = n;
    return true;
}

bool nj__host_link(const struct nj_doctor *d, char *name, size_t n, const char *fmt, ...)
{
    char path[PATH_BYTES], target[PATH_BYTES];
    bool ok;

    name[0] = '\0';
    PATH(ok);
    ssize_t len = ok ? readlink(path, target, sizeof target - 1) : -1;
    if (len <= 0)
        return false;
    target[len] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(name, n, "%s", slash ? slash + 1 : target);
    return true;
}

static int is_shown(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

uint32_t nj__host_names(const struct nj_doctor *d, struct dirent ***names, const char *fmt, ...)
{
    char path[PATH_BYTES];
    bool ok;

    *names = NULL;
    PATH(ok);
    int n = ok ? scandir(path, names, is_shown, versionsort) : -1;
    return n > 0 ? (uint32_t)n : 0;
}

void nj__host_names_free(struct dirent **names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static bool each_line(const struct nj_doctor *d, const char *path, nj_line_fn *take, void *ctx)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;

    if (!f)
        return false;
    while (getline(&line, &room, f) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        take(ctx, path + strlen(d->root), line);
    }
    free(line);
    fclose(f);
    return true;
}

bool nj__host_lines(const struct nj_doctor *d, nj_line_fn *take, void *ctx, const char *fmt, ...)
{
    char path[PATH_BYTES];
    bool ok;

    PATH(ok);
    return ok && each_line(d, path, take, ctx);
}

void nj__host_lines_below(const struct nj_doctor *d, nj_line_fn *take, void *ctx,
                          const char *folder, const char *end)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "%s", folder);

    for (uint32_t i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        if (strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0)
            nj__host_lines(d, take, ctx, "%s/%s", folder, name);
    }
    nj__host_names_free(names, n);
}

struct cmdline {
    const char *word;
    char *value;
    size_t n;
    bool found;
};

static void parse_cmdline(void *ctx, const char *path, char *line)
{
    struct cmdline *c = ctx;
    size_t n_word = strlen(c->word);
    char *save = NULL;

    for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (strncmp(w, c->word, n_word) != 0 || (w[n_word] && w[n_word] != '='))
            continue;
        c->found = true;
        snprintf(c->value, c->n, "%s", w[n_word] ? w + n_word + 1 : "");
    }
}

bool nj__host_cmdline(const struct nj_doctor *d, const char *word, char *value, size_t n)
{
    struct cmdline c = {word, value, n, false};

    value[0] = '\0';
    nj__host_lines(d, parse_cmdline, &c, "/proc/cmdline");
    return c.found;
}
