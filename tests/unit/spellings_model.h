/* SPDX-License-Identifier: BSD-3-Clause */
/* The meaning of a request target, and the expected response of a server with a table of routes and
 * classes. Shares no code with lib: percent-decoding (RFC 3986 2.1), remove_dot_segments (5.2.4),
 * and the guarantees of http/proto/path.h for the result. */
#pragma once

#include "spellings_rig.h"

/* --- the model ------------------------------------------------------------------------------ */

enum verdict { PLAIN, HIDDEN, BAD, LONG };

/* The meaning of a target. */
struct meaning {
    enum verdict verdict;
    struct bytes path; /* PLAIN, HIDDEN */
    struct bytes rfc;  /* decoded, without dot segments and "//"; none if it can't be decoded */
    const char *query; /* with its '?' */
    uint32_t n_query;
};

static inline bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == '\x7f';
}

static inline int hex(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, c);
    return c && at ? (int)(at - digits) % 16 : -1;
}

/* Percent-decode once. False: the path cannot exist on this server, for reasons other than dot
 * segments. */
static inline bool decode(const char *p, uint32_t n, struct bytes *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '#')
            return false;
        if (c == '%') {
            if (i + 2 >= n || hex(p[i + 1]) < 0 || hex(p[i + 2]) < 0)
                return false;
            c = (char)(hex(p[i + 1]) * 16 + hex(p[i + 2]));
            i += 2;
            if (c == '/')
                return false;
        }
        if (is_control(c) || c == '\\')
            return false;
        put_byte(out, c);
    }
    return true;
}

static inline bool begins(const char *p, const char *end, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(end - p) >= n && memcmp(p, with, n) == 0;
}

static inline bool equals(const char *p, const char *end, const char *with)
{
    return (size_t)(end - p) == strlen(with) && begins(p, end, with);
}

static inline void drop_last_segment(struct bytes *out)
{
    while (out->n > 0 && out->p[--out->n] != '/')
        ;
}

/* RFC 3986 5.2.4, step by step. */
static inline void remove_dot_segments(const struct bytes *path, struct bytes *out)
{
    static struct bytes input;
    char *p = input.p, *end;

    set(&input, path->p, path->n);
    end = p + input.n;
    out->n = 0;
    while (p < end) {
        if (begins(p, end, "../")) { /* A */
            p += 3;
        } else if (begins(p, end, "./")) {
            p += 2;
        } else if (begins(p, end, "/./")) { /* B */
            p += 2;
        } else if (equals(p, end, "/.")) {
            *++p = '/';
        } else if (begins(p, end, "/../")) { /* C */
            p += 3;
            drop_last_segment(out);
        } else if (equals(p, end, "/..")) {
            p += 2;
            *p = '/';
            drop_last_segment(out);
        } else if (equals(p, end, ".") || equals(p, end, "..")) { /* D */
            p = end;
        } else { /* E */
            do
                put_byte(out, *p++);
            while (p < end && *p != '/');
        }
    }
}

static inline void merge_slashes(struct bytes *b)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < b->n; i++)
        if (n == 0 || b->p[i] != '/' || b->p[n - 1] != '/')
            b->p[n++] = b->p[i];
    b->n = n;
}

/* A segment begins with '.', and is not ".well-known". */
static inline bool is_hidden(const struct bytes *path)
{
    const char *end = path->p + path->n;

    for (const char *p = path->p; p < end; p++)
        if (begins(p, end, "/.") && !begins(p, end, "/.well-known/") &&
            !equals(p, end, "/.well-known"))
            return true;
    return false;
}

static inline bool ends_in_slash(const struct bytes *path)
{
    return path->p[path->n - 1] == '/';
}

static inline void mean(const struct table *t, const char *p, uint32_t n, struct meaning *m)
{
    static struct bytes decoded;
    const char *mark = memchr(p, '?', n);
    uint32_t n_path = mark ? (uint32_t)(mark - p) : n;

    m->query = p + n_path;
    m->n_query = n - n_path;
    m->verdict = BAD;
    m->path.n = m->rfc.n = 0;
    if (n == 0 || p[0] != '/')
        return;
    for (uint32_t i = n_path; i < n; i++)
        if (is_control(p[i]))
            return;
    if (n_path >= NJ_PATH_MAX) {
        m->verdict = LONG;
        return;
    }
    if (!decode(p, n_path, &decoded))
        return;
    remove_dot_segments(&decoded, &m->rfc);
    bool has_dots = !same_bytes(&decoded, &m->rfc);
    merge_slashes(&m->rfc);
    if (has_dots)
        return;
    uint32_t n_index = ends_in_slash(&m->rfc) ? (uint32_t)strlen(t->index) : 0;
    if (m->rfc.n - 1 + n_index >= NJ_PATH_MAX) {
        m->verdict = LONG;
        return;
    }
    set(&m->path, m->rfc.p, m->rfc.n);
    m->verdict = is_hidden(&m->path) ? HIDDEN : PLAIN;
}

/* --- the expected response of a server with this table
 * ------------------------------------------------------- */

static inline uint32_t class_for(const struct table *t, const struct bytes *path)
{
    for (uint32_t i = 0; i < t->n_rules; i++) {
        const struct rule *r = &t->rule[i];
        if (r->n_prefix <= path->n && memcmp(r->prefix, path->p, r->n_prefix) == 0)
            return r->class_index;
    }
    return 0;
}

static inline bool takes(const struct route *r, const struct bytes *path)
{
    if (r->is_prefix)
        return r->n_plain <= path->n && memcmp(r->plain, path->p, r->n_plain) == 0;
    return r->n_plain == path->n && memcmp(r->plain, path->p, r->n_plain) == 0;
}

/* The higher, the better the pattern: an exact one, then the longest. */
static inline uint32_t rank_of(const struct route *r)
{
    return r->is_prefix ? r->n_plain : BYTES_MAX;
}

static inline int takes_method(const struct route *r, const char *method)
{
    if (!r->method)
        return 1;
    if (strcmp(r->method, method) == 0)
        return 3;
    return strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0 ? 2 : 0;
}

/* -1: no route has the path. ROUTES: one has, but not with this method. */
static inline int route_for(const struct table *t, const struct bytes *path, const char *method)
{
    uint32_t rank = 0;
    int best = 0, found = -1;

    if (path->n == 0)
        return -1;
    for (uint32_t i = 0; i < t->n_routes; i++)
        if (takes(&t->route[i], path) && rank_of(&t->route[i]) > rank)
            rank = rank_of(&t->route[i]);
    for (uint32_t i = 0; i < t->n_routes; i++) {
        if (!takes(&t->route[i], path) || rank_of(&t->route[i]) != rank)
            continue;
        if (found < 0)
            found = ROUTES;
        if (takes_method(&t->route[i], method) > best) {
            best = takes_method(&t->route[i], method);
            found = (int)i;
        }
    }
    return found;
}

/* A file that is there, or a list. */
static inline void found(struct seen *want, const char *method)
{
    want->status = 200;
    want->length = want->file.n;
    if (strcmp(method, "HEAD") == 0)
        want->file.n = 0;
}

static inline void want_file(const struct table *t, const struct meaning *m, const char *method,
                             struct seen *want)
{
    const struct bytes *path = &m->path;
    bool slash = path->n > 0 && ends_in_slash(path);

    set(&want->file, path->p + 1, path->n - 1);
    if (slash)
        put(&want->file, t->index, (uint32_t)strlen(t->index));
    enum kind kind = kind_of(want->file.p, want->file.n);
    if (kind == THERE) {
        found(want, method);
    } else if (slash && t->listing) {
        set(&want->file, LIST_OF, sizeof LIST_OF - 1);
        if (path->n > 1)
            put(&want->file, path->p + 1, path->n - 2);
        found(want, method);
    } else if (kind == FOLDER && !slash) {
        want->status = 301;
        set(&want->file, path->p, path->n);
        put_byte(&want->file, '/');
    } else {
        want->status = 404;
        want->file.n = 0;
    }
}

static inline void want_of(const struct table *t, const struct meaning *m, uint32_t n_target,
                           const char *method, struct seen *want)
{
    uint32_t class_of = class_for(t, &m->path);
    int route = route_for(t, &m->path, method);

    class_name(class_of, want->class_of);
    want->route = -1;
    want->length = 0;
    want->path.n = want->query.n = want->file.n = 0;
    if (class_of == CLASS_403) {
        want->status = 403;
    } else if (route == (int)ROUTES) {
        want->status = 405;
    } else if (route >= 0) {
        want->status = 204;
        want->route = route;
        set(&want->path, m->path.p, m->path.n);
        if (m->n_query > 0)
            set(&want->query, m->query + 1, m->n_query - 1);
    } else if (m->verdict == BAD) {
        want->status = 400;
    } else if (m->verdict == LONG || n_target >= NJ_PATH_MAX) {
        want->status = 414;
    } else if (strcmp(method, "OPTIONS") == 0) {
        want->status = 204;
    } else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        want->status = 405;
    } else if (m->verdict == HIDDEN) {
        want->status = 404;
    } else {
        want_file(t, m, method, want);
    }
}
