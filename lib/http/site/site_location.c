/* SPDX-License-Identifier: BSD-3-Clause */
/* Location of redirects (RFC 9110 10.2.2). Hosts are those of RFC 3986 3.2.2 without
 * percent-encoding. */
#include "http/site/site_location.h"

static bool is_host(struct nj_str h)
{
    for (uint32_t i = 0; i < h.n_bytes; i++) {
        char c = nj_lower(h.p[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-._[]:", c))))
            return false;
    }
    return h.n_bytes > 0 && h.n_bytes <= NJ_SITE_HOST_MAX;
}

static void append(struct nj_site_location *l, struct nj_str s)
{
    l->n_bytes = (uint32_t)((char *)nj_str_put((uint8_t *)l->text + l->n_bytes, s) - l->text);
}

static void append_path(struct nj_site_location *l, struct nj_str path,
                        const struct nj_site_variables *v)
{
    l->n_bytes += (uint32_t)nj_path_encode(path, v->query, l->text + l->n_bytes);
}

bool nj_site_write_location(struct nj_site_location *l, struct nj_str text,
                            const struct nj_site_variables *v)
{
    struct nj_str rest = v->path;

    nj_str_skip(&rest, rest.n_bytes < v->prefix.n_bytes ? rest.n_bytes : v->prefix.n_bytes);
    l->n_bytes = 0;
    while (text.n_bytes > 0) {
        const char *dollar = memchr(text.p, '$', text.n_bytes);
        uint32_t n = dollar ? (uint32_t)(dollar - text.p) : text.n_bytes;
        append(l, (struct nj_str){text.p, n});
        nj_str_skip(&text, n);
        if (text.n_bytes == 0)
            break;
        if (nj_str_starts_with(text, NJ_STR("$host"))) {
            if (!is_host(v->host))
                return false;
            append(l, v->host);
        } else {
            append_path(l, nj_str_starts_with(text, NJ_STR("$rest")) ? rest : v->path, v);
        }
        nj_str_skip(&text, 5); /* each name has as many bytes */
    }
    return true;
}
