/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes, normalises and encodes the paths of request targets. Follows RFC 3986 2.1 and 3.3;
 * stricter where a target is ambiguous. */
#include "http/proto/path.h"

#include <string.h>

#include "base/assert.h"
#include "base/field_list.h"
#include "http/proto/field_value.h"

static bool is_control(uint8_t c)
{
    return c < 0x20 || c == 0x7f;
}

/* Decodes one byte at `at` and advances. -1: invalid percent-encoding, or a byte that names must
 * not have: controls, backslashes, and encoded slashes. */
static int decode(struct nj_str path, uint32_t *at)
{
    uint8_t c = (uint8_t)path.p[(*at)++];
    if (c == '%') {
        int escaped = nj__percent_decode_byte(path.p + *at - 1, path.n_bytes - *at + 1);
        if (escaped < 0)
            return -1;
        *at += 2;
        c = (uint8_t)escaped;
        if (c == '/')
            return -1;
    } else if (c == '#') {
        return -1; /* a fragment is never sent (RFC 9110 7.1) */
    }
    return is_control(c) || c == '\\' ? -1 : c;
}

/* RFC 8615 3, and files by which installers of Fedora and openSUSE find an installation tree. */
static const struct nj_dotfiles default_dotfiles = {
    3, {NJ_STR_INIT(".well-known"), NJ_STR_INIT(".treeinfo"), NJ_STR_INIT(".discinfo")}};

static bool is_dot_segment(const char *seg, uint32_t n)
{
    return (n == 1 && seg[0] == '.') || (n == 2 && seg[0] == '.' && seg[1] == '.');
}

/* Classifies a decoded segment of `n` bytes. */
static enum nj_path_result check_segment(const char *seg, uint32_t n,
                                         const struct nj_dotfiles *dotfiles)
{
    if (n == 0 || seg[0] != '.')
        return NJ_PATH_OK;
    if (is_dot_segment(seg, n))
        return NJ_PATH_BAD;
    for (uint32_t i = 0; i < dotfiles->n; i++)
        if (nj_str_eq(dotfiles->name[i], (struct nj_str){seg, n}))
            return NJ_PATH_OK;
    return NJ_PATH_HIDDEN;
}

static bool is_valid_dotfile(struct nj_str name)
{
    if (name.n_bytes == 0 || name.p[0] != '.' || is_dot_segment(name.p, name.n_bytes))
        return false;
    for (uint32_t i = 0; i < name.n_bytes; i++)
        if (is_control((uint8_t)name.p[i]) || strchr("/\\", name.p[i]))
            return false;
    return name.n_bytes < NJ_PATH_MAX;
}

bool nj_dotfiles_parse(const char *text, struct nj_dotfiles *out)
{
    struct nj_str rest = {text, (uint32_t)strnlen(text, UINT16_MAX)}, name;

    out->n = 0;
    if (nj_str_eq(rest, NJ_STR("none")))
        return true;
    while (nj_list_next(&rest, &name)) {
        if (out->n == NJ_DOTFILES_MAX || !is_valid_dotfile(name))
            return false;
        out->name[out->n++] = name;
    }
    return out->n > 0;
}

/* Decodes the path without its query. BAD in a later segment overrides HIDDEN in an earlier one, so
 * that a traversal attempt gets 400 wherever it is. */
static enum nj_path_result parse_segments(struct nj_str path, const struct nj_dotfiles *dotfiles,
                                          struct nj_path *out)
{
    enum nj_path_result result = NJ_PATH_OK;
    uint32_t n = 0, seg = 0; /* bytes written; where the current segment began */

    out->slash = '/';
    for (uint32_t at = 1; at <= path.n_bytes;) {
        bool end = at == path.n_bytes;
        if (!end && path.p[at] != '/') {
            int c = decode(path, &at);
            if (c < 0)
                return NJ_PATH_BAD;
            out->name[n++] = (char)c;
            continue;
        }
        at++;
        enum nj_path_result r = check_segment(out->name + seg, n - seg, dotfiles);
        if (r == NJ_PATH_BAD)
            return r;
        if (r != NJ_PATH_OK)
            result = r;
        if (!end && n > seg) /* an empty segment is a doubled slash: collapsed */
            out->name[n++] = '/';
        seg = end ? seg : n;
    }
    out->n_bytes = n;
    out->n_path = 1 + n;
    out->had_slash = n == seg;
    return result;
}

enum nj_path_result nj_path_parse(struct nj_str target, struct nj_str index,
                                  const struct nj_dotfiles *dotfiles, struct nj_path *out)
{
    if (target.n_bytes == 1 && target.p[0] == '*')
        return NJ_PATH_ASTERISK;
    if (target.n_bytes == 0 || target.p[0] != '/')
        return NJ_PATH_BAD;

    struct nj_str path = target;
    const char *mark = memchr(target.p, '?', target.n_bytes);
    out->query = (struct nj_str){"", 0};
    if (mark) {
        path.n_bytes = (uint32_t)(mark - target.p);
        out->query = (struct nj_str){mark, target.n_bytes - path.n_bytes};
        for (uint32_t i = 0; i < out->query.n_bytes; i++)
            if (is_control((uint8_t)mark[i]))
                return NJ_PATH_BAD;
    }

    /* Decoding never makes a path longer, so this bounds every write below. */
    if (path.n_bytes >= NJ_PATH_MAX)
        return NJ_PATH_TOO_LONG;
    enum nj_path_result r = parse_segments(path, dotfiles ? dotfiles : &default_dotfiles, out);
    if (r == NJ_PATH_BAD)
        return r;
    if (out->had_slash) {
        if (out->n_bytes + index.n_bytes >= NJ_PATH_MAX)
            return NJ_PATH_TOO_LONG;
        memcpy(out->name + out->n_bytes, index.p, index.n_bytes);
        out->n_bytes += index.n_bytes;
    }
    out->name[out->n_bytes] = '\0';
    return r;
}

bool nj_path_is_plain(struct nj_str path)
{
    if (path.n_bytes == 0 || path.p[0] != '/')
        return false;
    for (uint32_t i = 1, seg = 1; i <= path.n_bytes; i++) {
        bool end = i == path.n_bytes;
        if (end || path.p[i] == '/') {
            if ((i == seg && !end) || is_dot_segment(path.p + seg, i - seg))
                return false;
            seg = i + 1;
            continue;
        }
        char c = path.p[i];
        if (nj__percent_decode_byte(path.p + i, path.n_bytes - i) >= 0 || is_control((uint8_t)c) ||
            strchr("?#\\", c))
            return false;
    }
    return true;
}

bool nj_path_is_valid_file_path(struct nj_str path)
{
    if (path.n_bytes < 2 || path.n_bytes > NJ_PATH_MAX || path.p[0] != '/')
        return false;
    for (uint32_t i = 1, seg = 1; i <= path.n_bytes; i++) {
        if (i < path.n_bytes && path.p[i] != '/')
            continue;
        if (i == seg || is_dot_segment(path.p + seg, i - seg))
            return false;
        seg = i + 1;
    }
    return true;
}

/* Bytes that need no encoding in a path: unreserved, sub-delims, ':' and '@' (RFC 3986 3.3). In a
 * query also '/' and '?', and '%' because a query is passed on as it was sent. */
static bool is_plain(uint8_t c, bool in_query)
{
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
        return true;
    if (c == '\0')
        return false;
    return strchr("-._~!$&'()*+,;=:@/", c) || (in_query && strchr("?%", c));
}

static size_t escape(char *out, const char *p, size_t n_bytes, bool in_query)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < n_bytes; i++) {
        uint8_t c = (uint8_t)p[i];
        if (is_plain(c, in_query)) {
            out[n++] = (char)c;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    return n;
}

size_t nj_path_encode(struct nj_str path, struct nj_str query, char *out)
{
    size_t n = escape(out, path.p, path.n_bytes, false);
    return n + escape(out + n, query.p, query.n_bytes, true);
}

size_t nj_path_dir_location(struct nj_str name, struct nj_str query, char *out)
{
    size_t n = 0;
    NJ_ASSERT(name.n_bytes + query.n_bytes < NJ_PATH_MAX);
    out[n++] = '/';
    n += escape(out + n, name.p, name.n_bytes, false);
    out[n++] = '/';
    return n + escape(out + n, query.p, query.n_bytes, true);
}
