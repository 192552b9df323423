/* SPDX-License-Identifier: BSD-3-Clause */
/* What the configuration says of requests and files. The command line has been checked already;
 * this is for programs that fill in the structure, and for what a table can't check. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fail.h"
#include "base/limits.h"
#include "http/mime.h"
#include "http/scan.h"
#include "server/settings.h"
#include "server/values.h"

#define MIME_BYTES_MAX (1u << 20)

_Static_assert((unsigned)NJ_SERVER_ERROR_PAGES_MAX == NJ_ERROR_PAGES_MAX, "one for each");

static int check_rates(const struct nj_server_config *c, char *why, size_t n)
{
    const struct {
        const char *name;
        uint64_t rate;
    } rates[] = {{"rate", c->rate},
                 {"rate-per-client", c->rate_per_client},
                 {"rate-per-request", c->rate_per_request},
                 {"min-rate", c->min_rate},
                 {"min-upload-rate", c->min_upload_rate}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(rates); i++)
        if (rates[i].rate > NJ_RATE_MAX && rates[i].rate != NJ_NONE)
            return nj_fail(why, n, "--%s: expected " NJ_RATE_WANTS, rates[i].name);
    return 0;
}

static int check_timeouts(const struct nj_server_config *c, char *why, size_t n)
{
    const struct {
        const char *name;
        double seconds;
    } times[] = {{"header-timeout", c->header_timeout_s},
                 {"body-timeout", c->body_timeout_s},
                 {"body-deadline", c->body_deadline_s},
                 {"send-timeout", c->send_timeout_s}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(times); i++)
        if (times[i].seconds != 0 && !(times[i].seconds >= 0.1 && times[i].seconds <= 86400))
            return nj_fail(why, n, "--%s: expected 0.1 to 86400 seconds", times[i].name);
    return 0;
}

int nj__settings_read_requests(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;

    if (check_rates(c, why, n) != 0 || check_timeouts(c, why, n) != 0)
        return -1;
    if (c->max_header_size > 32 * 1024 || (c->max_header_size && c->max_header_size < 1024))
        return nj_fail(why, n, "--max-header-size: expected 1024 to 32768 bytes");
    if (c->max_headers > 128 || (c->max_headers && c->max_headers < 8))
        return nj_fail(why, n, "--max-headers: expected 8 to 128");
    if ((unsigned)c->file_reads > NJ_FILE_READS_THREADS)
        return nj_fail(why, n, "--file-reads: expected auto, direct, buffered or threads");
    if ((unsigned)c->symlinks > NJ_SYMLINKS_BENEATH)
        return nj_fail(why, n, "--symlinks: expected none, owner or beneath");
    if ((unsigned)c->log_format > NJ_LOG_JSON)
        return nj_fail(why, n, "--log-format: expected combined or json");
    return 0;
}

/* Names a file below a folder without leaving it: no segment is empty, . or .. */
static bool is_below(const char *path)
{
    if (strlen(path) >= NJ_PATH_MAX)
        return false;
    for (const char *seg = path; seg; seg = *seg ? seg + 1 : NULL) {
        size_t n = strcspn(seg, "/");
        if (n == 0 || (n <= 2 && strspn(seg, ".") >= n))
            return false;
        seg += n;
    }
    return true;
}

static bool is_file_below(const char *root, const char *path)
{
    char name[2 * NJ_PATH_MAX];
    struct stat st;

    int n = snprintf(name, sizeof name, "%s/%s", root, path);
    return n > 0 && (size_t)n < sizeof name && stat(name, &st) == 0 && S_ISREG(st.st_mode);
}

static int read_error_page(struct nj_settings *s, const char *text, char *why, size_t n)
{
    struct nj_site_options *site = &s->site;
    char *end;
    unsigned long status = strtoul(text, &end, 10);

    if (end != text + 3 || status < 400 || status > 599 || end[0] != '=' || end[1] != '/' ||
        !is_below(end + 2))
        return nj_fail(why, n,
                       "--error-page %s: expected a status from 400 to 599 and a file below the "
                       "root, e.g. 404=/404.html",
                       text);
    for (uint32_t i = 0; i < site->n_error_pages; i++)
        if (site->error_page[i].status == status)
            return nj_fail(why, n, "--error-page %s: there is another one for %lu", text, status);
    if (s->config->root && !is_file_below(s->config->root, end + 2))
        return nj_fail(why, n, "--error-page %s: there is no such file below %s", text,
                       s->config->root);
    site->error_page[site->n_error_pages].status = (uint16_t)status;
    site->error_page[site->n_error_pages++].path = end + 2;
    return 0;
}

int nj__settings_read_files(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;

    if (c->index && (!is_below(c->index) || *c->index == '.' || strchr(c->index, '/')))
        return nj_fail(why, n, "--index %s: expected the name of a file, e.g. index.html",
                       c->index);
    if (c->cache_control && (!*c->cache_control || !nj_field_value_is_good(c->cache_control)))
        return nj_fail(why, n,
                       "--cache-control: expected what can stand in a header field, e.g. "
                       "max-age=3600");
    if (c->mime_types && access(c->mime_types, R_OK) != 0)
        return nj_fail(why, n, "--mime-types %s: %s", c->mime_types, strerror(errno));
    if (c->access_log && !*c->access_log)
        return nj_fail(why, n, "--access-log: expected a file, or - for standard output");
    for (uint32_t i = 0; i < NJ_SERVER_ERROR_PAGES_MAX && c->error_page[i]; i++)
        if (read_error_page(s, c->error_page[i], why, n) != 0)
            return -1;
    s->site.index = c->index;
    s->site.listing = c->listing;
    s->site.no_precompressed = c->no_precompressed;
    s->site.cache_control = c->cache_control;
    return 0;
}

int nj__settings_read_mime(struct nj_settings *s, char *why, size_t n)
{
    const char *path = s->config->mime_types, *wrong = NULL;
    struct nj_faults faults = {0};
    uint32_t line = 0;
    size_t n_bytes;

    if (!path)
        return 0;
    char *text = nj_ini_slurp(path, MIME_BYTES_MAX, &n_bytes, &faults);
    nj_faults_free(&faults);
    s->mime = text ? nj_mime_table_read(text, n_bytes, &line, &wrong) : NULL;
    free(text);
    s->site.mime = s->mime;
    if (s->mime)
        return 0;
    if (line > 0)
        return nj_fail(why, n, "%s:%u: %s", path, line, wrong);
    return nj_fail(why, n, "--mime-types %s: it cannot be read, or there is no memory for it",
                   path);
}
