/* SPDX-License-Identifier: BSD-3-Clause */
/* Policy, routes and files read the path of a request alike. */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "base/prng.h"
#include "support/handlers_rig.h"

static uint32_t n_handled;
static char handled[256], opened[NJ_PATH_MAX];

/* ---- a shard, whose files and handlers tell what they were asked for ---- */

static void note(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view v = nj_request_plain_path(req);

    n_handled++;
    snprintf(handled, sizeof handled, "%.*s", (int)v.n_bytes, v.p);
}

static const struct nj_route routes[] = {
    {.path = "/c/*", .type = NJ_NON_BLOCKING, .handle = note},
    {.method = "GET", .path = "/caf%c3%a9", .type = NJ_NON_BLOCKING, .handle = note},
    {.method = "GET", .path = "/.hidden", .type = NJ_NON_BLOCKING, .handle = note},
};
static const struct nj_route no_match = {
    .method = "GET", .path = "/never", .type = NJ_NON_BLOCKING, .handle = note};

static bool submit(void *ctx, struct nj_file_job *job)
{
    if (job->op == NJ_FILE_OPEN && !opened[0])
        snprintf(opened, sizeof opened, "%s", job->path);
    return rig_submit(ctx, job);
}

static struct nj_policy closed(void)
{
    struct nj_policy p = nj_policy_none;

    p.n_classes = 2;
    p.classes[1] = (struct nj_class){.name = "closed", .slot = 1, .action = NJ_ACTION_FORBID};
    p.n_rules = 1;
    p.rules[0] = (struct nj_class_rule){.class_index = 1, .path_prefix = NJ_STR("/c/")};
    return p;
}

static struct hr *start(const struct nj_route *list, uint32_t n, const struct nj_policy *p)
{
    struct hr *h = hr_new(list, n);

    h->config.conns.policy = p;
    h->config.conns.ops.files.submit = submit;
    return hr_start(h);
}

/* Returns the status. Requests are a second apart, so the cache of open files has expired. */
static int ask(struct hr *h, struct hr_client *c, const char *method, const char *target)
{
    opened[0] = handled[0] = '\0';
    h->r->now += 1100 * NJ_MS;
    struct hr_reply *a = hr_reply_of(c, hr_ask(c, method, target, 0, 0, NULL, NULL));
    hr_settle(h);
    cr_assert(a->closed, "%s", target);
    return a->status;
}

/* ---- rows ---- */

static const struct {
    const char *target;
    int status;       /* when there is no such file */
    const char *is;   /* normalized path; NULL: none */
    const char *file; /* name of the file looked up */
} rows[] = {
    {"/c/x", 404, "/c/x", "c/x"},
    {"/c/", 404, "/c/", "c/index.html"},
    {"/c", 404, "/c", "c"},
    {"//c///x", 404, "/c/x", "c/x"},
    {"/%63/x", 404, "/c/x", "c/x"},
    {"/%63%2fx", 400, NULL, ""},
    {"/%63%2Fx", 400, NULL, ""},
    {"/c/../x", 400, NULL, ""},
    {"/x/../c/x", 400, NULL, ""},
    {"/x/%2e%2e/c/x", 400, NULL, ""},
    {"/x/.%2E/c/x", 400, NULL, ""},
    {"/./c/x", 400, NULL, ""},
    {"/%2e/c/x", 400, NULL, ""},
    {"/c/x/..", 400, NULL, ""},
    {"/c/%00", 400, NULL, ""},
    {"/c/%0a", 400, NULL, ""},
    {"/c/%zz", 400, NULL, ""},
    {"/c/%2", 400, NULL, ""},
    {"/c\\x", 400, NULL, ""},
    {"/c%5cx", 400, NULL, ""},
    {"/c/x#y", 400, NULL, ""},
    {"/c/x?a=/../b", 404, "/c/x", "c/x"},
    {"/c/x%3fa", 404, "/c/x?a", "c/x?a"},
    {"/c/%2563", 404, "/c/%63", "c/%63"},
    {"/C/x", 404, "/C/x", "C/x"},
    {"/c/.x", 404, "/c/.x", ""},
    {"/caf%C3%A9", 404, "/caf\xc3\xa9", "caf\xc3\xa9"},
    {"/caf\xc3\xa9", 404, "/caf\xc3\xa9", "caf\xc3\xa9"},
    {"/.hidden", 404, "/.hidden", ""},
};

static bool begins(const char *s, const char *with)
{
    return s && strncmp(s, with, strlen(with)) == 0;
}

Test(conn_paths, files_read_them_so)
{
    struct hr *h = start(&no_match, 1, NULL);
    struct hr_client *c = hr_connect(h);

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        cr_expect_eq(ask(h, c, "GET", rows[i].target), rows[i].status, "%s", rows[i].target);
        cr_expect_str_eq(opened, rows[i].file, "%s", rows[i].target);
    }
    hr_free(h);
}

Test(conn_paths, routes_read_them_so)
{
    struct hr *h = start(routes, 3, NULL);
    struct hr_client *c = hr_connect(h);

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        bool is_route = begins(rows[i].is, "/c/") || begins(rows[i].is, "/caf\xc3\xa9") ||
                        begins(rows[i].is, "/.hidden");
        int got = ask(h, c, "GET", rows[i].target);
        cr_expect_eq(got, is_route ? 200 : rows[i].status, "%s: %d", rows[i].target, got);
        cr_expect_str_eq(handled, is_route ? rows[i].is : "", "%s: %s", rows[i].target, handled);
    }
    hr_free(h);
}

/* An invalid path gets 400 with any method, whether or not a route has that method. */
Test(conn_paths, bad_ones_are_bad_for_all_methods)
{
    struct hr *h = start(routes, 3, NULL);
    struct hr_client *c = hr_connect(h);

    cr_expect_eq(ask(h, c, "PUT", "/x/../c/x"), 400);
    cr_expect_eq(ask(h, c, "POST", "/.."), 400);
    cr_expect_eq(ask(h, c, "OPTIONS", "/.."), 400);
    cr_expect_eq(ask(h, c, "POST", "/x"), 405);
    cr_expect_eq(n_handled, 0);
    hr_free(h);
}

Test(conn_paths, without_a_site)
{
    struct hr *h = hr_new(routes, 3);
    static char longer[NJ_PATH_MAX + 2];

    memset(longer, 'a', sizeof longer - 1);
    memcpy(longer, "/c/", 3);
    h->r->http.no_files = true;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    cr_expect_eq(ask(h, c, "GET", "/x/../c/x"), 400);
    cr_expect_eq(ask(h, c, "GET", "/x"), 404);
    cr_expect_eq(ask(h, c, "GET", longer), 414);
    cr_expect_eq(ask(h, c, "OPTIONS", "*"), 404);
    cr_expect_eq(ask(h, c, "POST", "/x"), 404);
    cr_expect_eq(ask(h, c, "BREW", "/x"), 501, "RFC 9110 9.1");
    cr_expect_eq(n_handled, 0);
    hr_free(h);
}

/* Queries are not part of the path and may contain any bytes. */
Test(conn_paths, a_long_query_is_no_long_path)
{
    struct hr *h = start(routes, 3, NULL);
    struct hr_client *c = hr_connect(h);
    static char longer[NJ_PATH_MAX + 100];

    memset(longer, 'a', sizeof longer - 1);
    memcpy(longer, "/c/x?", 5);
    cr_expect_eq(ask(h, c, "GET", longer), 200);
    cr_expect_str_eq(handled, "/c/x");
    memcpy(longer, "/d/x?", 5);
    cr_expect_eq(ask(h, c, "GET", longer), 414);
    hr_free(h);
}

Test(conn_paths, a_policy_reads_them_so)
{
    struct nj_policy p = closed();
    struct hr *h = start(routes, 3, &p);
    struct hr_client *c = hr_connect(h);

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        int got = ask(h, c, "GET", rows[i].target);
        cr_expect_eq(got == 403, begins(rows[i].is, "/c/"), "%s: %d", rows[i].target, got);
        cr_expect_eq(got == 400, rows[i].status == 400, "%s: %d", rows[i].target, got);
        cr_expect(!begins(handled, "/c/") && !begins(opened, "c/"), "%s", rows[i].target);
    }
    hr_free(h);
}

/* ---- any targets ---- */

#define N_CLIENTS 6
#define N_EACH    120
#define N_ANY     (N_CLIENTS * N_EACH)

static void make_target(struct nj_prng *r, char *out, size_t n)
{
    static const char *const pieces[] = {
        "/", "/c",  "/c/", "c",   "..",     ".",  "/../", "%2e", "%2E%2e", "%2f", "%63",
        "x", "%5c", "\\",  "%00", "/c/../", "//", "?",    "%",   "#",      "%25", "%63%"};
    unsigned n_pieces = 1 + nj_prng_below(r, 6);

    snprintf(out, n, "%s", nj_prng_below(r, 2) ? "/c/" : "/");
    for (unsigned i = 0; i < n_pieces; i++) {
        const char *piece = pieces[nj_prng_below(r, nj_prng_below(r, 2) ? 4 : 22)];
        strncat(out, piece, n - strlen(out) - 1);
    }
}

struct found {
    int status;
    char is[64];
};

/* Requests each target from every kind of shard; checks the status and the names looked up. */
static void ask_all(struct hr *h, uint64_t seed, const char *is, struct found *found)
{
    struct nj_prng r;

    nj_prng_init(&r, seed);
    for (int i = 0; i < N_CLIENTS; i++) {
        struct hr_client *c = hr_connect(h);
        for (int k = 0; k < N_EACH; k++, found++) {
            char target[64];
            make_target(&r, target, sizeof target);
            found->status = ask(h, c, "GET", target);
            snprintf(found->is, sizeof found->is, "%s", is);
        }
    }
    hr_free(h);
}

/* The path seen by the policy's class, by the route and by the file server is the same, or all
 * three see none. */
Test(conn_paths, any_target_is_one_path, .timeout = 120)
{
    static struct found forbidden[N_ANY], route[N_ANY], file[N_ANY];
    const char *given = getenv("NJ_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
    struct nj_policy p = closed();
    unsigned n_closed = 0, n_bad = 0, n_open = 0;
    struct nj_prng r;

    printf("seed %lu (NJ_TEST_SEED)\n", (unsigned long)seed);
    ask_all(start(&no_match, 1, &p), seed, opened, forbidden);
    ask_all(start(routes, 3, NULL), seed, handled, route);
    ask_all(start(&no_match, 1, NULL), seed, opened, file);
    nj_prng_init(&r, seed);
    for (unsigned i = 0; i < N_ANY; i++) {
        char target[64];
        make_target(&r, target, sizeof target);
        bool bad = file[i].status == 400, is_closed = route[i].is[0] != 0;
        cr_assert_eq(forbidden[i].status == 400, bad, "%s: %d", target, forbidden[i].status);
        cr_assert_eq(route[i].status == 400, bad, "%s: %d", target, route[i].status);
        cr_assert_eq(forbidden[i].status == 403, is_closed, "%s: %d", target, forbidden[i].status);
        if (!bad && file[i].is[0]) {
            cr_assert_eq(begins(file[i].is, "c/"), is_closed, "%s: %s", target, file[i].is);
            cr_assert(!is_closed || begins(file[i].is, route[i].is + 1), "%s: %s, %s", target,
                      file[i].is, route[i].is);
        }
        n_bad += bad;
        n_closed += is_closed;
        n_open += !bad && !is_closed;
    }
    cr_expect(n_bad > 50 && n_closed > 50 && n_open > 50, "%u %u %u", n_bad, n_closed, n_open);
}
