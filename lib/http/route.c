/* SPDX-License-Identifier: BSD-3-Clause */
#include "http/route.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"

/* All routes of one path pattern. */
struct place {
    const char *path;
    uint32_t n_path; /* bytes to compare: of a prefix, up to and with its last '/' */
    bool is_prefix;
    uint32_t first, n; /* in order[] */
    uint32_t n_allow;
    char allow[NJ_ROUTE_ALLOW_MAX];
};

struct nj_routes {
    const struct nj_route *list;
    uint32_t n;
    uint32_t n_exact, n_places;    /* exact ones by path; then prefixes, longest first */
    uint32_t order[NJ_ROUTES_MAX]; /* indexes into list, by place, in the order they were given */
    struct place place[NJ_ROUTES_MAX];
    char *name[NJ_ROUTES_MAX];
};

/* --- what a route may look like --- */

/* tchar of RFC 9110 5.6.2, in the case in which methods come. */
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

/* What can stand in a path (RFC 3986 3.3), and no '*' but at the end. */
static bool is_pattern(const char *path)
{
    size_t n = strlen(path), keep = is_prefix(path) ? n - 1 : n;
    return path[0] == '/' && n <= NJ_ROUTE_PATH_MAX &&
           strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                        "-._~%!$&'()+,;=:@/") == keep;
}

static int check_one(const struct nj_route *r, uint32_t i, char *why, size_t n)
{
    if (!r->path)
        return nj_fail(why, n, "route %u: it has no path", i);
    if (!is_pattern(r->path))
        return nj_fail(
            why, n,
            "route %u, %.64s: expected a path such as /status, or /files/* for all below "
            "it, percent-encoded as it comes, at most %u bytes",
            i, r->path, NJ_ROUTE_PATH_MAX);
    if (r->method && !is_method(r->method))
        return nj_fail(why, n, "route %u, %s: expected a method such as GET, at most %u bytes", i,
                       r->path, NJ_ROUTE_METHOD_MAX);
    if (!r->handle)
        return nj_fail(why, n, "route %u, %s: it has no handler", i, r->path);
    if ((unsigned)r->type >= NJ_N_TASK_TYPES)
        return nj_fail(why, n, "route %u, %s: %d is no task type", i, r->path, (int)r->type);
    return 0;
}

static bool same_method(const struct nj_route *a, const struct nj_route *b)
{
    return !a->method || !b->method ? a->method == b->method : !strcmp(a->method, b->method);
}

static int check_pairs(const struct nj_route *list, uint32_t n_list, char *why, size_t n)
{
    for (uint32_t i = 0; i < n_list; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(list[i].path, list[k].path) && same_method(&list[i], &list[k]))
                return nj_fail(why, n, "routes %u and %u are both for %s %s", k, i,
                               list[i].method ? list[i].method : "any method of", list[i].path);
    return 0;
}

static int check(const struct nj_route *list, uint32_t n_list, char *why, size_t n)
{
    if (n_list > NJ_ROUTES_MAX)
        return nj_fail(why, n, "%u routes: at most %u are possible", n_list, NJ_ROUTES_MAX);
    for (uint32_t i = 0; i < n_list; i++)
        if (check_one(&list[i], i, why, n) != 0)
            return -1;
    return check_pairs(list, n_list, why, n);
}

/* --- the table --- */

static int by_order(struct nj_str a, struct nj_str b)
{
    uint32_t n = a.n_bytes < b.n_bytes ? a.n_bytes : b.n_bytes;
    int c = memcmp(a.p, b.p, n);
    return c ? c : a.n_bytes < b.n_bytes ? -1 : a.n_bytes > b.n_bytes;
}

static int by_place(const void *x, const void *y)
{
    const struct place *a = x, *b = y;

    if (a->is_prefix != b->is_prefix)
        return a->is_prefix ? 1 : -1;
    if (a->is_prefix && a->n_path != b->n_path)
        return a->n_path > b->n_path ? -1 : 1;
    return by_order((struct nj_str){a->path, a->n_path}, (struct nj_str){b->path, b->n_path});
}

static struct place *place_of(struct nj_routes *r, const char *path)
{
    for (uint32_t i = 0; i < r->n_places; i++)
        if (strcmp(r->place[i].path, path) == 0)
            return &r->place[i];
    struct place *p = &r->place[r->n_places++];
    p->path = path;
    p->is_prefix = is_prefix(path);
    p->n_path = (uint32_t)strlen(path) - (p->is_prefix ? 1 : 0);
    r->n_exact += !p->is_prefix;
    return p;
}

static void allow(struct place *p, const char *method)
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

static void gather(struct nj_routes *r)
{
    uint32_t at = 0;

    for (uint32_t k = 0; k < r->n_places; k++) {
        struct place *p = &r->place[k];
        bool get = false, head = false;
        p->first = at;
        for (uint32_t i = 0; i < r->n; i++) {
            const struct nj_route *one = &r->list[i];
            if (strcmp(one->path, p->path) != 0)
                continue;
            r->order[at++] = i;
            p->n++;
            if (!one->method)
                continue;
            get |= !strcmp(one->method, "GET");
            head |= !strcmp(one->method, "HEAD");
            allow(p, one->method);
        }
        if (get && !head)
            allow(p, "HEAD");
    }
}

static bool name_all(struct nj_routes *r)
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
        nj_fail(why, n_why, "not enough memory for the routes");
        return NULL;
    }
    r->list = list;
    r->n = n;
    for (uint32_t i = 0; i < n; i++)
        place_of(r, list[i].path);
    qsort(r->place, r->n_places, sizeof r->place[0], by_place);
    gather(r);
    if (name_all(r))
        return r;
    nj_fail(why, n_why, "not enough memory for the routes");
    nj_routes_free(r);
    return NULL;
}

void nj_routes_free(struct nj_routes *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n; i++)
        free(r->name[i]);
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

static const struct place *find_exact(const struct nj_routes *r, struct nj_str path)
{
    uint32_t low = 0, high = r->n_exact;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        const struct place *p = &r->place[mid];
        int c = by_order(path, (struct nj_str){p->path, p->n_path});
        if (c == 0)
            return p;
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static const struct place *find_prefix(const struct nj_routes *r, struct nj_str path)
{
    for (uint32_t i = r->n_exact; i < r->n_places; i++) {
        const struct place *p = &r->place[i];
        if (p->n_path <= path.n_bytes && memcmp(p->path, path.p, p->n_path) == 0)
            return p;
    }
    return NULL;
}

static bool str_is(struct nj_str s, const char *text)
{
    return strlen(text) == s.n_bytes && memcmp(s.p, text, s.n_bytes) == 0;
}

/* How well a route's method fits: its own, GET for HEAD, any, not at all. */
static unsigned fits(const struct nj_route *route, struct nj_str method)
{
    if (!route->method)
        return 1;
    if (str_is(method, route->method))
        return 3;
    return str_is(method, "HEAD") && strcmp(route->method, "GET") == 0 ? 2 : 0;
}

enum nj_route_result nj_routes_find(const struct nj_routes *r, struct nj_str method,
                                    struct nj_str path, struct nj_route_match *out)
{
    const char *mark = r && r->n ? memchr(path.p, '?', path.n_bytes) : NULL;
    unsigned best = 0;

    if (!r || r->n == 0)
        return NJ_ROUTE_NONE;
    if (mark)
        path.n_bytes = (uint32_t)(mark - path.p);
    const struct place *p = find_exact(r, path);
    if (!p)
        p = find_prefix(r, path);
    if (!p)
        return NJ_ROUTE_NONE;
    for (uint32_t i = p->first; i < p->first + p->n; i++) {
        unsigned fit = fits(&r->list[r->order[i]], method);
        if (fit <= best)
            continue;
        best = fit;
        out->index = r->order[i];
    }
    out->allow = (struct nj_str){p->allow, p->n_allow};
    return best > 0 ? NJ_ROUTE_FOUND : NJ_ROUTE_METHOD;
}
