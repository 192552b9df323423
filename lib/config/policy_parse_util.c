/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports bad values, splits comma-separated lists, validates names, finds the closest known name
 * (Levenshtein distance), or ours for a word of another server, and formats listeners. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/policy_file.h"
#include "log/address_text.h"

void nj__policy_report_bad_value(struct nj__policy_reader *r, const struct nj_ini_entry *e,
                                 const char *expected)
{
    nj_diag_at(r->faults, e, "%s = %.80s: expected %s", e->key, e->value, expected);
}

bool nj__policy_next_list_item(const char **at, struct nj_str *word)
{
    const char *from = *at, *to = strchrnul(from, ',');

    *at = *to ? to + 1 : NULL;
    *word = nj_ini_trim((struct nj_str){from, (uint32_t)(to - from)});
    return word->n_bytes > 0;
}

bool nj__policy_is_valid_name(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return n > 0 && n < NJ_CLASS_NAME_MAX && text[n] == '\0';
}

void nj__policy_to_lower(struct nj_str s)
{
    char *p = (char *)s.p; /* inside the buffer of nj_ini, which is writable */

    for (uint32_t i = 0; i < s.n_bytes; i++)
        p[i] = nj_lower(p[i]);
}

/* Levenshtein distance: insertions, deletions and substitutions. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t row[NJ_INI_NAME_BYTES + 1], n = (uint32_t)strlen(b);

    if (n > NJ_INI_NAME_BYTES)
        return UINT32_MAX;
    for (uint32_t k = 0; k <= n; k++)
        row[k] = k;
    for (uint32_t i = 0; a[i]; i++) {
        uint32_t corner = row[0];
        row[0] = i + 1;
        for (uint32_t k = 1; k <= n; k++) {
            uint32_t change = corner + (a[i] != b[k - 1]);
            corner = row[k];
            row[k] = nj_min_u32(change, 1 + nj_min_u32(row[k], row[k - 1]));
        }
    }
    return row[n];
}

const char *nj__policy_closest_name(const char *word, const char *(*name)(void *ctx, uint32_t i),
                                    void *ctx)
{
    uint32_t best = (uint32_t)strlen(word) / 2 + 1; /* a larger distance is no similarity */
    const char *found = NULL, *candidate;

    for (uint32_t i = 0; (candidate = name(ctx, i)); i++) {
        uint32_t d = distance(word, candidate);
        if (d < best) {
            best = d;
            found = candidate;
        }
    }
    return found;
}

/* Words of other servers, and ours. */
static const char *const foreign[][2] = {
    {"auth_basic",
     "nightjar has no such thing: allow and deny take lists, client_cert certificates"},
    {"default_server", "a section [site default]"},
    {"fastcgi_pass", "nightjar has no such thing"},
    {"gzip",
     "nightjar has no such thing: it sends compressed siblings of files, see docs/files.md"},
    {"proxy_pass", "nightjar has no such thing"},
    {"add_header", "header = add NAME: VALUE in [site] or [path]"},
    {"autoindex", "listing in [files], [site] or [path]"},
    {"client_max_body_size", "max_body in [limits]"},
    {"expires", "cache_control = max-age=SECONDS"},
    {"keepalive_timeout", "idle_timeout in [limits]"},
    {"limit_conn", "connections in [class default]"},
    {"limit_rate", "request_rate in [class]"},
    {"limit_req", "requests in [class]"},
    {"location", "a section [path SITE PATH]"},
    {"return", "redirect = 301 URL in [site] or [path]"},
    {"server_name", "a section [site NAME]"},
    {"server_tokens", "header = remove Server in [site]"},
    {"ssl_certificate", "cert in [site NAME] or [tls]"},
    {"ssl_certificate_key", "key in [site NAME] or [tls]"},
    {"ssl_client_certificate", "client_ca in [site NAME] or [tls]"},
    {"try_files", "try = $path, /FILE in [site] or [path]"},
    {"virtualhost", "a section [site NAME]"},
    {"vhost", "a section [site NAME]"},
    {"worker_processes", "-l in arguments of [eal]"},
};

const char *nj__policy_our_word(const char *word)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(foreign); i++)
        if (strcasecmp(foreign[i][0], word) == 0)
            return foreign[i][1];
    return NULL;
}

const char *nj__listener_format(const struct nj_listener *l, char text[NJ_LISTENER_TEXT_BYTES])
{
    char addr[NJ_ADDRESS_TEXT_BYTES] = "";
    bool is_v6 = l->has_addr && !nj_addr_is_v4(&l->addr);

    if (l->has_addr)
        nj_address_text(&l->addr, addr);
    snprintf(text, NJ_LISTENER_TEXT_BYTES, "%s%s%s%s%u", is_v6 ? "[" : "", addr, is_v6 ? "]" : "",
             l->has_addr ? ":" : "", l->port);
    return text;
}
