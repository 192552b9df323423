/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the keys of sites and paths that say which files are served, and which are those of TLS.
 * Reference: docs/sites.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "config/config_by_name.h"
#include "config/site_sections.h"
#include "http/files/mime_type.h"
#include "http/proto/path.h"

#define FOLDER_BYTES_MAX 255u
#define INDEX_NAMES_MAX  8u

#define FOLDER_WANTS                                                                               \
    "a folder, absolute or below [files] root, of at most 255 bytes, without . and .., or none"
#define REWRITE_WANTS                                                                              \
    "a path, decoded, with / at its end if the section's path has one, and only then; or none"
#define INDEX_WANTS "up to 8 names of files, e.g. index.html index.htm, or none"
#define ERROR_PAGE_WANTS                                                                           \
    "a status from 400 to 599 and a file below the root, or none, e.g. 404 /404.html"
#define MIME_WANTS "an extension and a media type, or none, e.g. .wasm application/wasm"

#define ACME_PATH "/.well-known/acme-challenge/"

/* "/FOLDER//" (store/file_root.h), or empty for none. False, with a diagnostic: no such value. */
static bool parse_folder(struct nj__policy_reader *r, const struct nj_ini_entry *e,
                         struct nj_str *to)
{
    size_t n = strlen(e->value);
    char *slashed, *text = NULL;

    *to = (struct nj_str){0};
    if (strcmp(e->value, "none") == 0)
        return true;
    while (n > 1 && e->value[n - 1] == '/')
        n--;
    bool made = asprintf(&slashed, "/%.*s//", (int)n, e->value) >= 0;
    struct nj_str path = {made ? slashed + (e->value[0] == '/') : "/", (uint32_t)n + 1};
    path.n_bytes -= e->value[0] == '/';
    if (n > FOLDER_BYTES_MAX || (made && !nj_path_is_valid_file_path(path)))
        nj__policy_report_bad_value(r, e, FOLDER_WANTS);
    else
        text = made ? slashed : NULL;
    if (made && !text)
        free(slashed);
    else if (nj__site_own(r, text))
        *to = (struct nj_str){text, (uint32_t)strlen(text)};
    return to->n_bytes > 0;
}

/* Remembers the folder, to be checked, and to be opened after privileges were dropped. */
static void add_folder(struct nj__policy_reader *r, const struct nj_ini_entry *e,
                       struct nj_str folder)
{
    struct nj_site_sections *s = r->f->sites;

    if (folder.n_bytes == 0)
        return;
    for (uint32_t i = 0; i < s->n_folders; i++)
        if (nj_str_eq(s->folders[i].name, folder))
            return;
    if (s->n_folders == NJ_SITE_FOLDERS_MAX)
        nj__policy_report_bad_value(r, e, "at most 1024 folders of sites and paths");
    else if (nj__site_grow(r, (void **)&s->folders, s->n_folders, sizeof *s->folders))
        s->folders[s->n_folders++] = (struct nj_site_folder){folder, e};
}

static void parse_rewrite(struct nj__policy_reader *r, struct nj_site_rules *to,
                          struct nj_str section, const struct nj_ini_entry *e)
{
    struct nj_str path = {e->value, (uint32_t)strlen(e->value)};
    bool is_folder = section.p[section.n_bytes - 1] == '/';

    if (to->keys & NJ_SITE_ALIAS)
        nj_diag_add(r->faults, e->file, e->line, "%s: the section has an alias, too", e->key);
    to->keys |= NJ_SITE_REWRITE;
    if (strcmp(e->value, "none") == 0)
        return;
    if (!nj_path_is_plain(path) || path.n_bytes > FOLDER_BYTES_MAX || section.p[0] == '*' ||
        (path.p[path.n_bytes - 1] == '/') != is_folder)
        nj__policy_report_bad_value(r, e, REWRITE_WANTS);
    else
        to->put = path;
}

static void parse_alias(struct nj__policy_reader *r, struct nj_site_rules *to,
                        struct nj_str section, const struct nj_ini_entry *e)
{
    if (to->keys & NJ_SITE_REWRITE)
        nj_diag_add(r->faults, e->file, e->line, "%s: the section has a rewrite, too", e->key);
    to->keys |= NJ_SITE_ALIAS;
    if (section.p[section.n_bytes - 1] != '/')
        nj_diag_add(r->faults, e->file, e->line,
                    "%s: expected in a section whose path ends with /; a rewrite names one file",
                    e->key);
    else if (parse_folder(r, e, &to->files))
        add_folder(r, e, to->files);
}

static void parse_index(struct nj__policy_reader *r, struct nj_site_rules *to,
                        const struct nj_ini_entry *e)
{
    char text[512] = "";
    const char *at = e->value;
    uint32_t n_names = 0;
    size_t n = 0, len;

    to->keys |= NJ_SITE_INDEX;
    if (strcmp(at, "none") == 0)
        return;
    for (at += strspn(at, ", \t"); *at; at += len + strspn(at + len, ", \t")) {
        len = strcspn(at, ", \t");
        if (*at == '.' || memchr(at, '/', len) || n + len + 2 > sizeof text ||
            n_names++ == INDEX_NAMES_MAX) {
            n_names = 0;
            break;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", n > 0 ? " " : "", (int)len, at);
    }
    const char *kept = n_names > 0 ? nj__site_own(r, strdup(text)) : NULL;
    if (kept)
        to->index = (struct nj_str){kept, (uint32_t)n};
    else if (n_names == 0)
        nj__policy_report_bad_value(r, e, INDEX_WANTS);
}

static void add_named(struct nj__policy_reader *r, struct nj_site_rules *to,
                      const struct nj_ini_entry *e, struct nj_str name, struct nj_str value)
{
    void *named = (void *)(uintptr_t)to->named;

    to->keys |= NJ_SITE_NAMED;
    for (uint32_t i = 0; i < to->n_named; i++) {
        if (!nj_str_eq(to->named[i].name, name))
            continue;
        nj_diag_add(r->faults, e->file, e->line, "%s = %.80s: a line above has the same %s", e->key,
                    e->value, name.p[0] == '.' ? "extension" : "status");
        return;
    }
    if (to->n_named == NJ_SITE_NAMED_MAX)
        nj__policy_report_bad_value(r, e, "at most 64 error pages and types of a section");
    else if (nj__site_grow(r, &named, to->n_named, sizeof *to->named)) {
        ((struct nj_site_field *)named)[to->n_named++] =
            (struct nj_site_field){NJ_FIELD_SET, name, value};
        to->named = named;
    }
}

/* Splits a value into a word and the rest; `none` as the rest is empty. */
static void split(const char *value, const char *separators, struct nj_str *word,
                  struct nj_str *rest)
{
    size_t n = strcspn(value, separators);
    const char *after = value + n + strspn(value + n, separators);

    *word = (struct nj_str){value, (uint32_t)n};
    *rest = (struct nj_str){after, strcmp(after, "none") == 0 ? 0 : (uint32_t)strlen(after)};
}

static void parse_error_page(struct nj__policy_reader *r, struct nj_site_rules *to,
                             const struct nj_ini_entry *e)
{
    struct nj_str status, page;

    split(e->value, "= \t", &status, &page); /* 404=/404.html as in [files], too */
    bool ok = status.n_bytes == 3 && (status.p[0] == '4' || status.p[0] == '5') &&
              strspn(status.p + 1, "0123456789") == 2 && page.p[0] != '\0';
    if (!ok || (page.n_bytes > 0 && !nj_path_is_valid_file_path(page))) {
        nj__policy_report_bad_value(r, e, ERROR_PAGE_WANTS);
        return;
    }
    nj_str_skip(&page, page.n_bytes > 0);
    add_named(r, to, e, status, page);
}

static void parse_mime(struct nj__policy_reader *r, struct nj_site_rules *to,
                       const struct nj_ini_entry *e)
{
    struct nj_str ext, type;

    split(e->value, " \t", &ext, &type);
    if (ext.n_bytes < 2 || ext.p[0] != '.' || ext.n_bytes > NJ_MIME_NAME_MAX ||
        memchr(ext.p, '/', ext.n_bytes) || type.p[0] == '\0' ||
        (type.n_bytes > 0 && nj_mime_type_error(type))) {
        nj__policy_report_bad_value(r, e, MIME_WANTS);
        return;
    }
    nj__policy_to_lower(ext);
    add_named(r, to, e, ext, type);
}

static void parse_default_type(struct nj__policy_reader *r, struct nj_site_rules *to,
                               const struct nj_ini_entry *e)
{
    to->keys |= NJ_SITE_DEFAULT_TYPE;
    if (strcmp(e->value, "none") == 0)
        return;
    if (nj_mime_type_error((struct nj_str){e->value, (uint32_t)strlen(e->value)}))
        nj__policy_report_bad_value(r, e, "a media type such as text/plain, or none");
    else
        to->default_type = e->value;
}

static bool parse_switch(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    bool is_on = strcmp(e->value, "on") == 0 || strcmp(e->value, "yes") == 0;

    if (!is_on && strcmp(e->value, "off") != 0 && strcmp(e->value, "no") != 0)
        nj__policy_report_bad_value(r, e, "on or off");
    return is_on;
}

/* A path of the site (RFC 8555 8.3) with the files of dehydrated, FOLDER/TOKEN, or else those of
 * certbot's webroot, FOLDER/.well-known/acme-challenge/TOKEN; nothing else of either. */
static void parse_acme(struct nj__policy_reader *r, uint32_t site, const struct nj_ini_entry *e)
{
    struct nj_site_sections *s = r->f->sites;
    struct nj_path_def d = {
        .site = site,
        .path = NJ_STR(ACME_PATH),
        .rules = {.keys = NJ_SITE_REDIRECT | NJ_SITE_ALLOW | NJ_SITE_DENY | NJ_SITE_CLIENT_CERT |
                          NJ_SITE_HANDLER | NJ_SITE_METHODS | NJ_SITE_MISSING | NJ_SITE_TRY |
                          NJ_SITE_ALIAS | NJ_SITE_LISTING | NJ_SITE_DEFAULT_TYPE,
                  .try_file = NJ_SITE_TRY_WHOLE,
                  .default_type = "text/plain"}};

    if (s->n_paths == NJ_SITE_PATHS_MAX)
        nj__policy_report_bad_value(r, e, "at most 65536 paths");
    else if (strcmp(e->value, "none") == 0 || !parse_folder(r, e, &d.rules.files))
        nj__policy_report_bad_value(r, e, "a folder");
    else if (nj__site_grow(r, (void **)&s->paths, s->n_paths, sizeof *s->paths) &&
             nj__site_grow(r, (void **)&s->path_at, s->n_paths, sizeof *s->path_at)) {
        add_folder(r, e, d.rules.files);
        s->paths[s->n_paths] = d;
        s->path_at[s->n_paths++] = s->site_at[site];
    }
}

bool nj__site_key_is_of_site(const char *key)
{
    return nj_config_word_index("name|acme|cert|key|client_ca|client_optional", key) >= 0;
}

/* Remembers the file, to be opened after privileges were dropped. What it is for is found when all
 * sections and the command line were read (settings_check_tls.c). */
static void add_tls_file(struct nj__policy_reader *r, const struct nj_ini_entry *e)
{
    struct nj_site_sections *s = r->f->sites;

    s->has_cert |= strcmp(e->key, "cert") == 0;
    for (uint32_t i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i]->value, e->value) == 0)
            return;
    if (s->n_files == NJ_SITE_FILES_MAX)
        nj__policy_report_bad_value(r, e, "at most 2048 files of TLS in all sites");
    else if (nj__site_grow(r, (void **)&s->files, s->n_files, sizeof *s->files))
        s->files[s->n_files++] = e;
}

/* False: no such key. */
static bool parse_tls_key(struct nj__policy_reader *r, struct nj_site_rules *to, const char *key,
                          const struct nj_ini_entry *e)
{
    if (strcmp(key, "client_cert") == 0) {
        int word = nj_config_word_index("none|required", e->value);
        if (word < 0)
            nj__policy_report_bad_value(r, e, "required or none");
        to->keys |= NJ_SITE_CLIENT_CERT;
        to->needs_client_cert = word == 1;
    } else if (strcmp(key, "client_optional") == 0) {
        if (nj_config_word_index("yes|no", e->value) < 0)
            nj__policy_report_bad_value(r, e, "yes or no");
    } else if (strcmp(key, "client_ca") == 0 && strcmp(e->value, "none") == 0) {
        return true;
    } else if (strcmp(key, "cert") == 0 || strcmp(key, "key") == 0 ||
               strcmp(key, "client_ca") == 0) {
        add_tls_file(r, e);
    } else {
        return false;
    }
    return true;
}

bool nj__site_parse_file_key(struct nj__policy_reader *r, bool is_site, uint32_t index,
                             const char *key, const struct nj_ini_entry *e)
{
    struct nj_site_sections *s = r->f->sites;
    struct nj_site_rules *to = is_site ? &s->sites[index].rules : &s->paths[index].rules;

    if ((is_site || !nj__site_key_is_of_site(key)) && parse_tls_key(r, to, key, e))
        return true;
    if (strcmp(key, "root") == 0) {
        to->keys |= NJ_SITE_ROOT;
        if (parse_folder(r, e, &to->root))
            add_folder(r, e, to->root);
    } else if (strcmp(key, "index") == 0) {
        parse_index(r, to, e);
    } else if (strcmp(key, "error_page") == 0) {
        parse_error_page(r, to, e);
    } else if (strcmp(key, "mime") == 0) {
        parse_mime(r, to, e);
    } else if (strcmp(key, "default_type") == 0) {
        parse_default_type(r, to, e);
    } else if (strcmp(key, "listing") == 0) {
        to->keys |= NJ_SITE_LISTING;
        to->listing = parse_switch(r, e);
    } else if (strcmp(key, "log") == 0) {
        to->keys |= NJ_SITE_LOG;
        to->is_unlogged = !parse_switch(r, e);
    } else if (is_site && strcmp(key, "acme") == 0) {
        parse_acme(r, index, e);
    } else if (!is_site && strcmp(key, "alias") == 0) {
        parse_alias(r, to, s->paths[index].path, e);
    } else if (!is_site && strcmp(key, "rewrite") == 0) {
        parse_rewrite(r, to, s->paths[index].path, e);
    } else {
        return false;
    }
    return true;
}

/* --- checks --------------------------------------------------------------------------------- */

bool nj__site_folder_is_absolute(const struct nj_site_folder *f)
{
    return f->name.p[1] == '/';
}

bool nj__site_name_file(char *to, size_t n_max, const char *root, struct nj_str folder,
                        struct nj_str name)
{
    if (folder.n_bytes > 0)
        folder = (struct nj_str){folder.p + 1, folder.n_bytes - 3}; /* without its slashes */
    bool is_absolute = folder.n_bytes > 0 && folder.p[0] == '/';
    if (!is_absolute && !root)
        return false;
    int n = snprintf(to, n_max, "%s%s%.*s/%.*s", is_absolute ? "" : root,
                     is_absolute || folder.n_bytes == 0 ? "" : "/", (int)folder.n_bytes,
                     folder.n_bytes > 0 ? folder.p : "", (int)name.n_bytes, name.p);
    return n > 0 && (size_t)n < n_max;
}

/* The folder of an ACME client may come later. */
static void check_folder(struct nj__policy_reader *r, const struct nj_site_folder *f)
{
    const struct nj_ini_entry *e = f->at;
    bool is_absolute = nj__site_folder_is_absolute(f);
    char name[2 * NJ_PATH_MAX];

    if (!is_absolute && !r->root)
        return; /* it is missing, which is said elsewhere */
    int n = snprintf(name, sizeof name, "%s%s%s", is_absolute ? "" : r->root,
                     is_absolute ? "" : "/", e->value);
    int fd = n > 0 && (size_t)n < sizeof name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0)
        close(fd);
    else if (errno == EACCES)
        nj_diag_add(r->faults, e->file, e->line,
                    "%s = %.80s: the server's user cannot read %s; or the server runs, and it is "
                    "outside of the folders that were declared at its start: then restart it, see "
                    "docs/deploy.md",
                    e->key, e->value, name);
    else if (errno != ENOENT || strcmp(e->key, "acme") != 0)
        nj_diag_add(r->faults, e->file, e->line, "%s = %.80s: %s: %s", e->key, e->value, name,
                    strerror(errno));
}

void nj__site_check_folders(struct nj__policy_reader *r)
{
    const struct nj_site_sections *s = r->f->sites;

    for (uint32_t i = 0; i < s->n_folders; i++)
        check_folder(r, &s->folders[i]);
}
