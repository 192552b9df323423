/* SPDX-License-Identifier: BSD-3-Clause */
/* Validates routes and searches them: exact patterns by binary search, prefixes longest first.
 * Paths follow RFC 3986 3.3, methods RFC 9110 9.1. */
#include "http/handlers/route_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/set_error.h"
#include "http/proto/path.h"

/* A parsed pattern: a plain path, or a prefix of plain paths. */
struct pattern {
    struct nj_str path; /* a prefix includes its last '/' */
    bool is_prefix;
};

/* All routes with the same pattern. */
struct group {
    struct pattern pattern;
    uint32_t first, n; /* in order[] */
    uint32_t n_allow;
    char allow[NJ_ROUTE_ALLOW_MAX];
};

struct nj_routes {
    const struct nj_route *list;
    uint32_t n;
    uint32_t n_exact, n_groups;    /* exact patterns by path; then prefixes, longest first */
    uint32_t order[NJ_ROUTES_MAX]; /* indexes into list, by pattern, then in the order given */
    struct group group[NJ_ROUTES_MAX];
    struct pattern pattern[NJ_ROUTES_MAX]; /* of list; paths are owned */
    char *name[NJ_ROUTES_MAX];
    uint32_t group_of[NJ_ROUTES_MAX]; /* by index in list */
};

/* --- validation --- */

/* tchar of RFC 9110 5.6.2, upper case only. */
static bool is_method(const char *m)
{
    size_t n = strlen(m);
    return n > 0 && n <= NJ_ROUTE_METHOD_MAX &&
           strspn(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == n;
}

static bool is_prefix(const char *path)
{
    size_t n = strlen(path);
    return n >= 2 && strcmp(path + n - 2, "/*") == 0;
}

/* Length of a pattern without the '*' at its end. */
static uint32_t literal_bytes(const char *path)
{
    size_t n = strlen(path);
    return (uint32_t)(is_prefix(path) ? n - 1 : n);
}

static enum nj_path_result parse_plain(const char *path, struct nj_path *out)
{
    return nj_path_parse((struct nj_str){path, literal_bytes(path)}, NJ_STR(""), NULL, out);
}

/* A name, by which the file of the configuration mounts the route. */
static bool is_name(const char *path)
{
    size_t n = strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= NJ_ROUTE_NAME_MAX && path[n] == '\0' && strcmp(path, "none") != 0;
}

/* True if the pattern has only path characters (RFC 3986 3.3), '*' only at its end, and matches
 * some request target: a pattern that matches none is a mistake. */
static bool is_pattern(const char *path)
{
    struct nj_path plain;
    size_t n = strlen(path);

    if (n > NJ_ROUTE_PATH_MAX || strstr(path, "//") ||
        strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                     "-._~%!$&'()+,;=:@/") != literal_bytes(path))
        return false;
    enum nj_path_result r = parse_plain(path, &plain);
    return r == NJ_PATH_OK || r == NJ_PATH_HIDDEN;
}

static int check_one(const struct nj_route *r, uint32_t i, char *why, size_t n)
{
    if (!r->path)
        return nj_set_error(why, n, "route %u: path is missing", i);
    if (r->path[0] != '/' && !is_name(r->path))
        return nj_set_error(why, n,
                            "route %u, %.64s: expected a path that begins with /, or a name of up "
                            "to %u letters, digits and _ other than none",
                            i, r->path, NJ_ROUTE_NAME_MAX);
    if (r->path[0] == '/' && !is_pattern(r->path))
        return nj_set_error(
            why, n,
            "route %u, %.64s: expected a path such as /status, or /files/* for all below "
            "it, percent-encoded, without //, . and .. and an encoded /, at most %u bytes",
            i, r->path, NJ_ROUTE_PATH_MAX);
    if (r->method && !is_method(r->method))
        return nj_set_error(why, n, "route %u, %s: expected a method such as GET, at most %u bytes",
                            i, r->path, NJ_ROUTE_METHOD_MAX);
    if (!r->handle)
        return nj_set_error(why, n, "route %u, %s: handler is missing", i, r->path);
    if ((unsigned)r->type >= NJ_N_TASK_TYPES)
        return nj_set_error(why, n, "route %u, %s: unknown task type %d", i, r->path, (int)r->type);
    return 0;
}

static bool same_method(const struct nj_route *a, const struct nj_route *b)
{
    return !a->method || !b->method ? a->method == b->method : !strcmp(a->method, b->method);
}

static int check(const struct nj_route *list, uint32_t n_list, char *why, size_t n)
{
    if (n_list > NJ_ROUTES_MAX)
        return nj_set_error(why, n, "%u routes: at most %u are allowed", n_list, NJ_ROUTES_MAX);
    for (uint32_t i = 0; i < n_list; i++)
        if (check_one(&list[i], i, why, n) != 0)
            return -1;
    return 0;
}

static bool same_pattern(const struct pattern *a, const struct pattern *b)
{
    return a->is_prefix == b->is_prefix && nj_str_eq(a->path, b->path);
}

static int check_pairs(const struct nj_routes *r, char *why, size_t n)
{
    const struct nj_route *list = r->list;

    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (same_pattern(&r->pattern[i], &r->pattern[k]) && same_method(&list[i], &list[k]))
                return nj_set_error(why, n, "routes %u and %u are both for %s %s", k, i,
                                    list[i].method ? list[i].method : "any method of",
                                    list[i].path);
    return 0;
}

/* --- the table --- */

static int compare(struct nj_str a, struct nj_str b)
{
    uint32_t n = a.n_bytes < b.n_bytes ? a.n_bytes : b.n_bytes;
    int c = memcmp(a.p, b.p, n);
    return c ? c : a.n_bytes < b.n_bytes ? -1 : a.n_bytes > b.n_bytes;
}

static int by_group(const void *x, const void *y)
{
    const struct pattern *a = &((const struct group *)x)->pattern;
    const struct pattern *b = &((const struct group *)y)->pattern;

    if (a->is_prefix != b->is_prefix)
        return a->is_prefix ? 1 : -1;
    if (a->is_prefix && a->path.n_bytes != b->path.n_bytes)
        return a->path.n_bytes > b->path.n_bytes ? -1 : 1;
    return compare(a->path, b->path);
}

static bool read_patterns(struct nj_routes *r)
{
    struct nj_path plain;

    for (uint32_t i = 0; i < r->n; i++) {
        const char *from = r->list[i].path;
        uint32_t n = (uint32_t)strlen(from);
        if (from[0] == '/') {
            (void)parse_plain(from, &plain);
            from = plain.plain;
            n = plain.n_path;
        }
        char *path = malloc(n);
        if (!path)
            return false;
        memcpy(path, from, n);
        r->pattern[i] = (struct pattern){{path, n}, is_prefix(r->list[i].path)};
    }
    return true;
}

static void add_group(struct nj_routes *r, const struct pattern *pattern)
{
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (same_pattern(&r->group[i].pattern, pattern))
            return;
    r->group[r->n_groups++].pattern = *pattern;
    r->n_exact += !pattern->is_prefix;
}

static void add_allowed(struct group *p, const char *method)
{
    size_t n = strlen(method);

    if (p->n_allow + n + 2 > sizeof p->allow)
        return;
    if (p->n_allow > 0) {
        memcpy(p->allow + p->n_allow, ", ", 2);
        p->n_allow += 2;
    }
    memcpy(p->allow + p->n_allow, method, n);
    p->n_allow += (uint32_t)n;
}

static void fill_groups(struct nj_routes *r)
{
    uint32_t at = 0;

    for (uint32_t k = 0; k < r->n_groups; k++) {
        struct group *p = &r->group[k];
        bool get = false, head = false;
        p->first = at;
        for (uint32_t i = 0; i < r->n; i++) {
            const struct nj_route *one = &r->list[i];
            if (!same_pattern(&r->pattern[i], &p->pattern))
                continue;
            r->order[at++] = i;
            r->group_of[i] = k;
            p->n++;
            if (!one->method)
                continue;
            get |= !strcmp(one->method, "GET");
            head |= !strcmp(one->method, "HEAD");
            add_allowed(p, one->method);
        }
        if (get && !head)
            add_allowed(p, "HEAD");
    }
}

static bool make_names(struct nj_routes *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const char *method = r->list[i].method ? r->list[i].method : "*";
        size_t n_method = strlen(method), n_path = strlen(r->list[i].path);
        char *name = malloc(n_method + n_path + 2);
        if (!name)
            return false;
        memcpy(name, method, n_method);
        name[n_method] = ' ';
        memcpy(name + n_method + 1, r->list[i].path, n_path + 1);
        r->name[i] = name;
    }
    return true;
}

struct nj_routes *nj_routes_new(const struct nj_route *list, uint32_t n, char *why, size_t n_why)
{
    if (check(list, n, why, n_why) != 0)
        return NULL;
    struct nj_routes *r = calloc(1, sizeof *r);
    if (!r) {
        nj_set_error(why, n_why, "not enough memory for the routes");
        return NULL;
    }
    r->list = list;
    r->n = n;
    if (!read_patterns(r) || !make_names(r)) {
        nj_set_error(why, n_why, "not enough memory for the routes");
    } else if (check_pairs(r, why, n_why) == 0) {
        for (uint32_t i = 0; i < n; i++)
            add_group(r, &r->pattern[i]);
        qsort(r->group, r->n_groups, sizeof r->group[0], by_group);
        fill_groups(r);
        return r;
    }
    nj_routes_free(r);
    return NULL;
}

void nj_routes_free(struct nj_routes *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n; i++) {
        free(r->name[i]);
        free((char *)(uintptr_t)r->pattern[i].path.p);
    }
    free(r);
}

uint32_t nj_routes_count(const struct nj_routes *r)
{
    return r ? r->n : 0;
}

const struct nj_route *nj_routes_at(const struct nj_routes *r, uint32_t index)
{
    NJ_ASSERT(index < r->n);
    return &r->list[index];
}

const char *nj_routes_name(const struct nj_routes *r, uint32_t index)
{
    NJ_ASSERT(index < r->n);
    return r->name[index];
}

/* --- looking up --- */

static const struct group *find_exact(const struct nj_routes *r, struct nj_str path)
{
    uint32_t low = 0, high = r->n_exact;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        const struct group *p = &r->group[mid];
        int c = compare(path, p->pattern.path);
        if (c == 0)
            return p;
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static const struct group *find_prefix(const struct nj_routes *r, struct nj_str path)
{
    for (uint32_t i = r->n_exact; i < r->n_groups; i++) {
        struct nj_str begin = r->group[i].pattern.path;
        if (begin.n_bytes <= path.n_bytes && memcmp(begin.p, path.p, begin.n_bytes) == 0)
            return &r->group[i];
    }
    return NULL;
}

static bool is_str(struct nj_str s, const char *text)
{
    return strlen(text) == s.n_bytes && memcmp(s.p, text, s.n_bytes) == 0;
}

/* Rank of a route's method for a request: 3 equal, 2 GET for HEAD, 1 any, 0 none. */
static unsigned method_rank(const struct nj_route *route, struct nj_str method)
{
    if (!route->method)
        return 1;
    if (is_str(method, route->method))
        return 3;
    return is_str(method, "HEAD") && strcmp(route->method, "GET") == 0 ? 2 : 0;
}

bool nj_routes_have_method(const struct nj_routes *r, struct nj_str method)
{
    for (uint32_t i = 0; r && i < r->n; i++)
        if (r->list[i].method && is_str(method, r->list[i].method))
            return true;
    return false;
}

static enum nj_route_result find_method(const struct nj_routes *r, const struct group *p,
                                        struct nj_str method, struct nj_route_match *out)
{
    unsigned best = 0;

    for (uint32_t i = p->first; i < p->first + p->n; i++) {
        unsigned fit = method_rank(&r->list[r->order[i]], method);
        if (fit <= best)
            continue;
        best = fit;
        out->index = r->order[i];
    }
    out->allow = (struct nj_str){p->allow, p->n_allow};
    return best > 0 ? NJ_ROUTE_FOUND : NJ_ROUTE_BAD_METHOD;
}

enum nj_route_result nj_routes_find(const struct nj_routes *r, struct nj_str method,
                                    struct nj_str path, struct nj_route_match *out)
{
    if (!r || r->n == 0 || path.n_bytes == 0)
        return NJ_ROUTE_NONE;
    const struct group *p = find_exact(r, path);
    if (!p)
        p = find_prefix(r, path);
    if (!p)
        return NJ_ROUTE_NONE;
    out->n_mount = p->pattern.path.n_bytes;
    return find_method(r, p, method, out);
}

enum nj_route_result nj_routes_find_named(const struct nj_routes *r, uint32_t index,
                                          struct nj_str method, struct nj_route_match *out)
{
    NJ_ASSERT(index < r->n);
    return find_method(r, &r->group[r->group_of[index]], method, out);
}
