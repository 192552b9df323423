/* SPDX-License-Identifier: BSD-3-Clause */
/* The request line (RFC 9112 2.1, 3): method (3.1), the four forms of a target, and version. */
#include "base/field_syntax.h"
#include "h1/h1_internal.h"
#include "telem/counters_http.h"

/* absolute-form (RFC 9112 3.2.2, 3.2.4): an empty path is "/" (RFC 9110 4.2.3), and "*" for
 * OPTIONS. The host is not empty, and there is no userinfo (RFC 9110 4.2.1, 4.2.4). */
static bool take_absolute(struct nj__h1_head *head, char *scratch, struct nj_str target)
{
    struct nj_request_head *req = &head->req;

    if (!nj_syntax_split_uri(target, &req->scheme, &req->authority, &req->path))
        return false;
    if (req->path.n_bytes == 0 && nj_str_eq(req->method, NJ_STR("OPTIONS"))) {
        req->path = NJ_STR("*");
    } else if (req->path.n_bytes == 0 || req->path.p[0] == '?') {
        scratch[0] = '/';
        memcpy(scratch + 1, req->path.p, req->path.n_bytes);
        head->n_scratch = req->path.n_bytes + 1;
        req->path = (struct nj_str){scratch, head->n_scratch};
    }
    return true;
}

/* RFC 9112 3.2, 3.2.1. A fragment is no part of a target (RFC 9110 7.1). */
static bool take_target(struct nj__h1_head *head, char *scratch, struct nj_str target)
{
    struct nj_request_head *req = &head->req;

    if (!nj_syntax_allows_fast(target, '!', NJ_IN_PATH) || memchr(target.p, '#', target.n_bytes))
        return false;
    if (nj_unlikely(head->is_connect)) { /* authority-form (RFC 9112 3.2.3), RFC 9110 9.3.6 */
        req->authority = target;
        req->path = NJ_STR("");
        return nj_syntax_is_authority(target) && nj_syntax_has_port(target);
    }
    bool is_asterisk = nj_str_eq(target, NJ_STR("*"));
    if (nj_unlikely(target.p[0] != '/' && !is_asterisk))
        return take_absolute(head, scratch, target);
    head->is_origin_form = true;
    req->path = target;
    return !is_asterisk || nj_str_eq(req->method, NJ_STR("OPTIONS"));
}

/* RFC 9112 2.3. A higher minor version is processed as 1.1 (RFC 9110 6.2). */
static bool take_version(struct nj__h1_head *head, struct nj_str v)
{
    if (v.n_bytes != 8 || !nj_str_starts_with(v, NJ_STR("HTTP/")) || v.p[5] < '0' || v.p[5] > '9' ||
        v.p[6] != '.' || v.p[7] < '0' || v.p[7] > '9')
        return nj__h1_refuse_head(head, 400, NJ_C_h1_request_line);
    head->req.version = v.p[5] == '1' && v.p[7] == '0' ? NJ_HTTP_1_0 : NJ_HTTP_1_1;
    return v.p[5] == '1' || nj__h1_refuse_head(head, 505, NJ_C_h1_version);
}

/* The case of a method matters (RFC 9112 3.1, RFC 9110 9.1). */
bool nj__h1_parse_request_line(struct nj__h1_head *head, char *scratch, struct nj_str line)
{
    struct nj_str method, target;

    if (!nj_str_cut(&line, ' ', &method) || method.n_bytes == 0 ||
        !nj_syntax_allows(method, NJ_IN_METHOD) || !nj_str_cut(&line, ' ', &target) ||
        target.n_bytes == 0) /* as in HTTP/0.9 */
        return nj__h1_refuse_head(head, 400, NJ_C_h1_request_line);
    head->req.method = method;
    head->is_connect = nj_str_eq(method, NJ_STR("CONNECT"));
    return take_version(head, line) &&
           (take_target(head, scratch, target) || nj__h1_refuse_head(head, 400, NJ_C_h1_target));
}
