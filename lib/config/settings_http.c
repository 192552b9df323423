/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes HTTP's options from a configuration. Validates those that the table of config_by_name.c
 * cannot check: index, error pages, MIME types, dotfiles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/set_error.h"
#include "base/limits.h"
#include "base/text.h"
#include "config/settings_validate.h"
#include "http/files/mime_type.h"
#include "http/proto/field_value.h"
#include "http/proto/path.h"

#define MIME_BYTES_MAX (1u << 20)

_Static_assert((unsigned)NJ_SERVER_ERROR_PAGES_MAX == NJ_ERROR_PAGES_MAX, "one for each");

static bool is_file_below(const char *root, const char *path)
{
    char name[2 * NJ_PATH_MAX];
    struct stat st;

    int n = snprintf(name, sizeof name, "%s/%s", root, path);
    return n > 0 && (size_t)n < sizeof name && stat(name, &st) == 0 && S_ISREG(st.st_mode);
}

static int read_error_page(struct nj_settings *s, const char *text, char *why, size_t n)
{
    struct nj_file_server_options *files = &s->http.files;
    char *end;
    unsigned long status = strtoul(text, &end, 10);

    const char *path = end + strspn(end, "= \t");

    if (end != text + 3 || status < 400 || status > 599 || path == end ||
        !nj_path_is_valid_file_path(nj_str_of(path)))
        return nj_set_error(
            why, n,
            "--error-page %s: expected a status from 400 to 599 and a file below the "
            "root, e.g. 404=/404.html or 404 /404.html",
            text);
    for (uint32_t i = 0; i < files->n_error_pages; i++)
        if (files->error_page[i].status == status)
            return nj_set_error(why, n, "--error-page %s: there is another one for %lu", text,
                                status);
    if (s->config->root && !is_file_below(s->config->root, path + 1))
        return nj_set_error(why, n, "--error-page %s: there is no such file below %s", text,
                            s->config->root);
    files->error_page[files->n_error_pages].status = (uint16_t)status;
    files->error_page[files->n_error_pages++].path = path + 1;
    return 0;
}

static int read_default_type(struct nj_settings *s, char *why, size_t n)
{
    const char *type = s->config->default_type;
    const char *wrong = type ? nj_mime_type_error(nj_str_of(type)) : NULL;

    s->http.files.mime.default_type = type;
    return wrong ? nj_set_error(why, n, "--default-type %s: %s", type, wrong) : 0;
}

static int read_dotfiles(struct nj_settings *s, char *why, size_t n)
{
    const char *names = s->config->dotfiles;

    if (!names)
        return 0;
    if (!nj_dotfiles_parse(names, &s->dotfiles))
        return nj_set_error(why, n,
                            "--dotfiles %s: expected up to %u names that begin with a dot, "
                            "separated by commas, e.g. .well-known,.treeinfo, or none",
                            names, NJ_DOTFILES_MAX);
    s->http.files.dotfiles = &s->dotfiles;
    return 0;
}

/* Times and limits of `c` in place of the defaults. 0: not set. */
static void set_time(nj_ns *to, double seconds)
{
    if (seconds > 0)
        *to = (nj_ns)(seconds * (double)NJ_SEC);
}

static void set_limit(uint64_t *to, uint64_t value)
{
    if (value > 0)
        *to = value == NJ_NONE ? 0 : value;
}

static void read_limits(struct nj_http_options *o, const struct nj_server_config *c)
{
    if (c->max_header_size > 0)
        o->header_bytes_max = c->max_header_size;
    if (c->max_headers > 0)
        o->header_fields_max = c->max_headers;
    set_time(&o->preface_timeout, c->preface_timeout_s);
    set_time(&o->idle_timeout, c->idle_timeout_s);
    set_time(&o->header_timeout, c->header_timeout_s);
    set_time(&o->body_timeout, c->body_timeout_s);
    set_time(&o->send_timeout, c->send_timeout_s);
    set_time(&o->body_deadline, c->body_deadline_s);
    set_limit(&o->min_rate, c->min_rate);
    set_limit(&o->min_upload_rate, c->min_upload_rate);
    set_limit(&o->body_max, c->max_body);
}

int nj__settings_read_http(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;

    s->http = nj_http_options_default;
    s->http.no_files = !c->root;
    s->http.no_http1 = c->no_http1;
    read_limits(&s->http, c);
    s->http.files.mime.is_utf8 = c->charset == NJ_CHARSET_UTF_8;
    s->http.files.index = c->index;
    s->http.files.listing = c->listing;
    s->http.files.no_precompressed = c->no_precompressed;
    s->http.files.cache_control = c->cache_control;
    if (c->index && (!*c->index || *c->index == '.' || strpbrk(c->index, "/, \t") ||
                     strlen(c->index) >= NJ_PATH_MAX))
        return nj_set_error(why, n,
                            "--index %s: expected the name of one file, e.g. index.html; index in "
                            "[site NAME] takes several",
                            c->index);
    if (c->cache_control && (!*c->cache_control || !nj_field_value_is_valid(c->cache_control)))
        return nj_set_error(why, n,
                            "--cache-control: expected a valid header field value, e.g. "
                            "max-age=3600");
    if (c->mime_types && access(c->mime_types, R_OK) != 0)
        return nj_set_error(why, n, "--mime-types %s: %s", c->mime_types, strerror(errno));
    if (c->access_log && !*c->access_log)
        return nj_set_error(why, n, "--access-log: expected a file, or - for standard output");
    for (uint32_t i = 0; i < NJ_SERVER_ERROR_PAGES_MAX && c->error_page[i]; i++)
        if (read_error_page(s, c->error_page[i], why, n) != 0)
            return -1;
    return read_default_type(s, why, n) != 0 ? -1 : read_dotfiles(s, why, n);
}

void nj__settings_keep_http(struct nj_http_options *http, const struct nj_http_options *start)
{
    http->header_bytes_max = start->header_bytes_max;
    http->header_fields_max = start->header_fields_max;
    http->no_files = start->no_files;
    http->no_http1 = start->no_http1;
    http->files = start->files;
}

int nj__settings_load_mime_types(struct nj_settings *s, char *why, size_t n)
{
    const char *path = s->config->mime_types, *wrong = NULL;
    struct nj_diags faults = {0};
    uint32_t line = 0;
    size_t n_bytes;

    if (!path)
        return 0;
    char *text = nj_read_text_file(path, MIME_BYTES_MAX, &n_bytes, &faults);
    nj_diags_free(&faults);
    s->mime = text ? nj_mime_table_parse(text, n_bytes, &line, &wrong) : NULL;
    free(text);
    s->http.files.mime.own = s->mime;
    if (s->mime)
        return 0;
    if (line > 0)
        return nj_set_error(why, n, "%s:%u: %s", path, line, wrong);
    return nj_set_error(why, n, "--mime-types %s: cannot read it, or out of memory", path);
}
