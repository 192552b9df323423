/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handler's author does by mistake is an error, on an lcore and on a worker: NULL, and calls
 * on a thread that is not the handler's. */
#include <criterion/criterion.h>
#include <pthread.h>

#include <nightjar/handler.h>

#include "log/log.h"
#include "server/lcore_watch.h"
#include "support/handlers_rig.h"

#define INVALID(call) cr_expect_eq((call), NJ_ERR_INVALID, "%s", #call)

static void never(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect(false, "a callback that was not set");
}

static void gives_null(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char byte;

    INVALID(nj_response_header(resp, NULL, NULL));
    INVALID(nj_response_header(resp, "x", NULL));
    INVALID(nj_response_header(resp, NULL, "x"));
    INVALID(nj_response_trailer(resp, "x", NULL));
    INVALID(nj_response_trailer(resp, NULL, "x"));
    INVALID(nj_response_class(resp, NULL));
    INVALID(nj_response_file(resp, NULL));
    INVALID(nj_response_write(resp, NULL, 1));
    INVALID(nj_response_try_write(resp, NULL, 1));
    INVALID(nj_response_send(resp, NULL, 1, NULL, NULL));
    INVALID(nj_request_read(req, NULL, 1));
    cr_expect_eq(nj_request_header(req, NULL).n_bytes, 0);
    cr_expect(!nj_request_field(req, 1000, NULL, NULL));
    nj_request_peer(req, NULL);
    nj_response_on_timer(resp, 1, NULL, NULL);
    nj_response_on_writable(resp, NULL, NULL);
    nj_response_on_cancelled(resp, NULL, NULL);
    nj_request_on_body(req, NULL, NULL);
    cr_expect_eq(nj_request_read(req, &byte, 1), 0);
    cr_expect_eq(nj_response_write(resp, NULL, 0), 0);
    cr_expect_eq(nj_response_write(resp, "ok", 2), 0);
}

static uint64_t n_calls;

struct both {
    struct nj_request *req;
    struct nj_response *resp;
};

static void *call_all(void *arg)
{
    struct both *b = arg;
    char byte;

    INVALID(nj_response_status(b->resp, 404));
    INVALID(nj_response_header(b->resp, "x", "foreign"));
    INVALID(nj_response_trailer(b->resp, "x", "foreign"));
    INVALID(nj_response_write(b->resp, "x", 1));
    INVALID(nj_response_try_write(b->resp, "x", 1));
    INVALID(nj_response_send(b->resp, "x", 1, NULL, NULL));
    INVALID(nj_response_file(b->resp, "/x"));
    INVALID(nj_response_class(b->resp, "default"));
    INVALID(nj_response_rate(b->resp, 1));
    INVALID(nj_response_priority(b->resp, 1, false));
    INVALID(nj_response_flush(b->resp));
    INVALID(nj_request_read(b->req, &byte, 1));
    nj_response_reset(b->resp);
    nj_response_defer(b->resp);
    nj_response_end(b->resp);
    nj_response_on_writable(b->resp, never, NULL);
    nj_response_on_cancelled(b->resp, never, NULL);
    nj_response_on_timer(b->resp, 1, never, NULL);
    nj_request_on_body(b->req, never, NULL);
    n_calls = 19;
    cr_expect_eq(nj_request_method(b->req).n_bytes, 3, "the head may be read");
    return NULL;
}

static void lends(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct both b = {req, resp};
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, call_all, &b), 0);
    pthread_join(thread, NULL);
    cr_expect_eq(nj_response_header(resp, "x", "own"), 0);
    cr_expect_eq(nj_response_write(resp, "ok", 2), 0);
}

/* As a callback of a deferred response: it still belongs to the lcore. */
static void answer_later(struct nj_request *req, struct nj_response *resp, void *arg)
{
    lends(req, resp, arg);
    nj_response_end(resp);
}

static void defers(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_on_timer(resp, NJ_MS, answer_later, NULL);
}

static const struct nj_route routes[] = {
    {.method = "GET", .path = "/null", .type = NJ_NON_BLOCKING, .handle = gives_null},
    {.method = "GET", .path = "/null-on-stack", .type = NJ_BLOCKING, .handle = gives_null},
    {.method = "GET", .path = "/null-on-worker", .type = NJ_OS_BLOCKING, .handle = gives_null},
    {.method = "GET", .path = "/lent", .type = NJ_NON_BLOCKING, .handle = lends},
    {.method = "GET", .path = "/lent-on-stack", .type = NJ_BLOCKING, .handle = lends},
    {.method = "GET", .path = "/lent-on-worker", .type = NJ_OS_BLOCKING, .handle = lends},
    {.method = "GET", .path = "/lent-later", .type = NJ_NON_BLOCKING, .handle = defers},
};

Test(conn_handler_misuse, each_is_an_error)
{
    struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
    struct hr_client *c = hr_connect(h);

    for (uint32_t i = 0; i < NJ_ARRAY_LEN(routes); i++) {
        struct hr_reply *a = hr_reply_of(c, hr_get(c, routes[i].path));
        hr_run(h, 10 * NJ_MS);
        cr_expect(a->ended && a->status == 200, "%s: %d", routes[i].path, a->status);
        cr_expect_str_eq(a->body, "ok", "%s", routes[i].path);
        cr_expect_str_eq(a->x, i < 3 ? "" : "own", "%s", routes[i].path);
        cr_expect_eq(hr_class(h, i)->n_foreign_calls, i < 3 ? 0 : n_calls, "%s", routes[i].path);
    }
    hr_free(h);
}

static char lines[1000];

static void keep(void *ctx, enum nj_log_level level, const char *line)
{
    strcat(strcat(lines, line), "\n");
}

/* One line for each route, and no other for a minute. */
Test(conn_handler_misuse, the_log_names_the_route_of_foreign_calls)
{
    static struct nj_lcore_watch watch;
    static struct nj_shards shards;
    struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
    struct hr_client *c = hr_connect(h);

    shards.n = 1;
    shards.shard[0] = h->r->s;
    nj_log_set_sink((struct nj_log_sink){keep, NULL});
    nj__lcore_watch_tick(&watch, &shards);
    cr_expect_str_eq(lines, "");
    for (int i = 0; i < 3; i++) {
        hr_get(c, "/lent");
        hr_settle(h);
        nj__lcore_watch_tick(&watch, &shards);
    }
    cr_expect_str_eq(lines, "the handler of GET /lent: 19 calls with its request or response came "
                            "from another thread than the handler's; they did nothing "
                            "(NJ_ERR_INVALID)\n");
    nj_log_set_sink((struct nj_log_sink){NULL, NULL});
    hr_free(h);
}
