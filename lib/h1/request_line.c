/* SPDX-License-Identifier: BSD-3-Clause */
/* The request line (RFC 9112 3): method, the four forms of a target, and version. */
#include "base/compiler.h"
#include "base/field_syntax.h"
#include "h1/h1_internal.h"
#include "telem/counters_http.h"

#define VERSION_BYTES 8u /* HTTP/1.1 */

/* The scheme at the begin of a target, with "://". Returns its bytes, or 0. */
static uint32_t scheme_of(struct nj_str target, struct nj_str *scheme)
{
    static const struct nj_str schemes[] = {NJ_STR_INIT("http"), NJ_STR_INIT("https")};

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(schemes); i++) {
        uint32_t n = schemes[i].n_bytes;
        if (target.n_bytes > n + 3 && memcmp(target.p + n, "://", 3) == 0 &&
            nj_str_eq_nocase((struct nj_str){target.p, n}, schemes[i])) {
            *scheme = schemes[i];
            return n + 3;
        }
    }
    return 0;
}

/* absolute-form (RFC 9112 3.2.2). An empty path is "/", and "*" for OPTIONS (3.2.4). */
static bool take_absolute(struct nj__h1_head *head, char *scratch, struct nj_str target)
{
    struct nj_request_head *req = &head->req;
    uint32_t n = 0;

    nj_str_skip(&target, scheme_of(target, &req->scheme));
    if (!req->scheme.p)
        return false;
    while (n < target.n_bytes && target.p[n] != '/' && target.p[n] != '?')
        n++;
    req->authority = (struct nj_str){target.p, n};
    nj_str_skip(&target, n);
    if (target.n_bytes > 0 && target.p[0] == '/') {
        req->path = target;
    } else if (target.n_bytes == 0 && nj_str_eq(req->method, NJ_STR("OPTIONS"))) {
        req->path = NJ_STR("*");
    } else {
        scratch[0] = '/';
        memcpy(scratch + 1, target.p, target.n_bytes);
        req->path = (struct nj_str){scratch, head->n_scratch = target.n_bytes + 1};
    }
    return nj__h1_is_authority(req->authority);
}

/* authority-form (RFC 9112 3.2.3): the port is required (RFC 9110 9.3.6). */
static bool take_authority(struct nj__h1_head *head, struct nj_str target)
{
    head->req.authority = target;
    head->req.path = NJ_STR("");
    return nj__h1_is_authority(target) && target.p[target.n_bytes - 1] != ']' &&
           target.p[target.n_bytes - 1] != ':' && memchr(target.p, ':', target.n_bytes);
}

static bool take_target(struct nj__h1_head *head, char *scratch, struct nj_str target)
{
    struct nj_request_head *req = &head->req;

    if (!nj_syntax_allows_fast(target, '!', NJ_IN_PATH) || memchr(target.p, '#', target.n_bytes))
        return false;
    if (nj_unlikely(head->is_connect))
        return take_authority(head, target);
    if (nj_likely(target.p[0] == '/')) {
        head->is_origin_form = true;
        req->path = target;
        return true;
    }
    if (!nj_str_eq(target, NJ_STR("*")))
        return take_absolute(head, scratch, target);
    head->is_origin_form = true;
    req->path = target;
    return nj_str_eq(req->method, NJ_STR("OPTIONS"));
}

/* RFC 9112 2.3. A higher minor version is processed as 1.1 (RFC 9110 2.5). */
static bool take_version(struct nj__h1_head *head, struct nj_str version)
{
    const char *p = version.p;
    bool has_form = version.n_bytes == VERSION_BYTES && memcmp(p, "HTTP/", 5) == 0 && p[5] >= '0' &&
                    p[5] <= '9' && p[6] == '.' && p[7] >= '0' && p[7] <= '9';

    if (!has_form)
        return nj__h1_refuse_head(head, 400, NJ_C_h1_request_line);
    if (p[5] != '1')
        return nj__h1_refuse_head(head, 505, NJ_C_h1_version);
    head->is_1_0 = p[7] == '0';
    return true;
}

/* The part of the line before the next SP. False: there is none, or it is empty. */
static bool next_part(struct nj_str *line, struct nj_str *part)
{
    const char *space = memchr(line->p, ' ', line->n_bytes);

    if (!space || space == line->p)
        return false;
    *part = (struct nj_str){line->p, (uint32_t)(space - line->p)};
    nj_str_skip(line, part->n_bytes + 1);
    return true;
}

bool nj__h1_parse_request_line(struct nj__h1_head *head, char *scratch, struct nj_str line)
{
    struct nj_str method, target;

    if (!next_part(&line, &method) || !nj_syntax_allows(method, NJ_IN_METHOD))
        return nj__h1_refuse_head(head, 400, NJ_C_h1_request_line);
    head->req.method = method;
    head->is_connect = nj_str_eq(method, NJ_STR("CONNECT"));
    if (!next_part(&line, &target)) /* also HTTP/0.9 */
        return nj__h1_refuse_head(head, 400, NJ_C_h1_request_line);
    if (!take_version(head, line))
        return false;
    return take_target(head, scratch, target) || nj__h1_refuse_head(head, 400, NJ_C_h1_target);
}
