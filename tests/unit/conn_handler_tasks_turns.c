/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduling order: fairness between connections, long-running routes, other strategies. */
#include <criterion/criterion.h>
#include <errno.h>

#include <nightjar/handler.h>

#include "conn/conn.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

static pthread_t lcore;

/* ---- fair between connections ---- */

static nj_ns burn_ns;
static int order[400], n_order;

static bool is_of_b(const struct nj_request *req)
{
    struct nj_view query = nj_request_query(req);
    return query.n_bytes == 1 && query.p[0] == 'b';
}

static void burn(struct nj_request *req, struct nj_response *resp, void *arg)
{
    hr_here->clock += burn_ns;
    order[n_order++] = is_of_b(req) ? 'b' : 'a';
}

static const struct nj_route burns[] = {
    {.path = "/burn", .type = NJ_NON_BLOCKING, .handle = burn},
    {.path = "/stay", .type = NJ_NON_BLOCKING, .handle = burn, .pin_to_lcore = true},
};

/* Positions of the second connection's requests in the order served. */
static int place_of_b(nj_ns each)
{
    struct hr *h = hr_start(hr_new(burns, 1));
    struct hr_client *a = hr_connect(h), *b = hr_connect(h);

    burn_ns = each;
    n_order = 0;
    for (int i = 0; i < 100; i++)
        hr_get(a, "/burn?a");
    hr_get(b, "/burn?b");
    hr_settle(h);
    cr_expect_eq(n_order, 101);
    int at = 0;
    while (order[at] != 'b')
        at++;
    hr_free(h);
    return at;
}

Test(conn_handler_tasks, connections_take_turns)
{
    int by_number = place_of_b(0), by_time = place_of_b(30 * NJ_US);
    cr_expect_eq(by_number, NJ_ROUND_TASKS, "by number: %d", by_number);
    cr_expect_eq(by_time, 4, "by time: %d", by_time);
    cr_expect_eq(place_of_b(1 * NJ_MS), 1);
}

/* A benchmark sets this in place of NJ_ROUND_TASKS. */
Test(conn_handler_tasks, turns_as_configured)
{
    struct hr *h = hr_new(burns, 1);

    h->config.conns.round_tasks = 3;
    struct hr_client *c = hr_connect(hr_start(h));
    burn_ns = 0;
    n_order = 0;
    for (int i = 0; i < 8; i++)
        hr_get(c, "/burn?a");
    for (int n = 3; n < 12; n += 3) {
        hr_step(h);
        cr_expect_eq(n_order, n < 8 ? n : 8);
    }
    hr_free(h);
}

static uint64_t n_parsed[2 * NJ_ROUND_TASKS]; /* when the i-th handler ran */

static void count(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_parsed[n_order++] = nj_counter_read(&hr_here->r->s->counters, NJ_C_requests);
}

static const struct nj_route counts[] = {
    {.path = "/count", .type = NJ_NON_BLOCKING, .handle = count},
};

/* EWYK 5.16. The whole input of a connection is parsed before its first request runs, so control
 * frames after the requests are handled in the same step. Requests left over are run in the
 * next. */
Test(conn_handler_tasks, input_is_parsed_before_requests_are_consumed)
{
    struct hr *h = hr_start(hr_new(counts, 1));
    struct hr_client *c = hr_connect(h);
    const int n = NJ_ROUND_TASKS + 5;

    n_order = 0;
    for (int i = 0; i < n; i++)
        hr_get(c, "/count");
    hr_gather(c);
    nghttp2_submit_ping(c->s, 0, NULL);
    hr_step(h);
    cr_expect_eq(n_order, NJ_ROUND_TASKS);
    cr_expect_eq(c->n_pings, 1);
    hr_step(h);
    cr_assert_eq(n_order, n);
    for (int i = 0; i < n; i++)
        cr_expect_eq(n_parsed[i], n, "%d: %lu", i, (unsigned long)n_parsed[i]);
    hr_free(h);
}

/* A connection that overran its quantum is in debt: meanwhile the others are served. */
Test(conn_handler_tasks, debts_are_paid)
{
    struct hr *h = hr_start(hr_new(burns, 1));
    struct hr_client *a = hr_connect(h), *b = hr_connect(h);

    burn_ns = 500 * NJ_US;
    n_order = 0;
    for (int i = 0; i < 3; i++)
        hr_get(a, "/burn?a");
    hr_step(h);
    burn_ns = 0;
    cr_expect_eq(n_order, 1);
    for (int i = 0; i < 3; i++) {
        hr_get(b, "/burn?b");
        hr_step(h);
        cr_expect(order[n_order - 1] == 'b' && n_order == i + 2, "step %d", i);
    }
    hr_settle(h);
    cr_expect_eq(n_order, 6);
    hr_free(h);
}

/* The connection that is next in order closes before. */
Test(conn_handler_tasks, the_next_is_gone)
{
    struct hr *h = hr_start(hr_new(burns, 1));
    struct hr_client *c = hr_connect(h);
    int32_t id[4];

    burn_ns = 500 * NJ_US;
    n_order = 0;
    for (int i = 0; i < 4; i++)
        id[i] = hr_get(c, "/burn?a");
    hr_step(h);
    cr_assert_eq(n_order, 1);
    hr_reset(c, id[1]);
    hr_reset(c, id[3]);
    hr_settle(h);
    cr_expect_eq(n_order, 2);
    cr_expect(hr_reply_of(c, id[0])->status == 200 && hr_reply_of(c, id[2])->status == 200);
    hr_free(h);
}

/* A route that occupies the core too long is moved to the workers, and that is logged. */
Test(conn_handler_tasks, long_ones_are_moved)
{
    struct hr *h = hr_start(hr_new(burns, 2));
    struct hr_client *c = hr_connect(h);

    burn_ns = 300 * NJ_US;
    n_order = 0;
    for (int i = 0; i < 20; i++) {
        hr_get(c, "/burn?a");
        hr_get(c, "/stay?a");
        hr_settle(h);
    }
    cr_expect_eq(n_order, 40);
    cr_expect_eq(hr_class(h, 1)->n[NJ_MODE_PC], 20, "it stays");
    cr_expect_gt(hr_class(h, 0)->n[NJ_MODE_PEC_WORKER], 0);
    cr_expect_geq(hr_class(h, 0)->n_moves, 2, "it is quick there, and was tried again");
    cr_expect(strstr(h->log, "/burn: "), "%s", h->log);
    hr_free(h);
}

/* A streaming handler stays on the core: on a worker the response is sent at the end, and is
 * bounded. */
static void stream(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static uint8_t piece[NJ_RESPONSE_BUFFER_BYTES];

    hr_here->clock += 300 * NJ_US;
    if (!arg) {
        nj_response_flush(resp);
        return;
    }
    for (uint32_t n = 0; n <= NJ_WORKER_RESPONSE_BYTES; n += sizeof piece) {
        hr_here->clock += 300 * NJ_US;
        cr_expect_eq(nj_response_write(resp, piece, sizeof piece), 0);
    }
}

static const struct nj_route streams[] = {
    {.method = "GET", .path = "/flush", .type = NJ_BLOCKING, .handle = stream},
    {.method = "GET", .path = "/much", .type = NJ_BLOCKING, .handle = stream, .arg = "much"},
};

Test(conn_handler_tasks, who_streams_is_not_moved)
{
    struct hr *h = hr_start(hr_new(streams, 2));
    struct hr_client *c = hr_connect(h);

    for (int i = 0; i < 10; i++) {
        hr_get(c, "/flush");
        hr_settle(h);
    }
    cr_expect_eq(hr_class(h, 0)->n_moves, 0);
    for (int i = 0; i < 3; i++) {
        struct hr_reply *a = hr_reply_of(c, hr_get(c, "/much"));
        hr_settle(h);
        cr_expect_eq(a->n_got,
                     NJ_WORKER_RESPONSE_BYTES + sizeof(uint8_t[NJ_RESPONSE_BUFFER_BYTES]));
    }
    hr_free(h);
}

/* A request that ended before it reached a worker does not affect its route's duration. */
Test(conn_handler_tasks, what_never_ran_moves_nothing)
{
    struct hr *h = hr_start(hr_new(burns, 1));
    struct hr_client *c = hr_connect(h);

    burn_ns = 300 * NJ_US;
    n_order = 0;
    while (hr_class(h, 0)->type != NJ_OS_BLOCKING && n_order < 20) {
        hr_get(c, "/burn?a");
        hr_settle(h);
    }
    cr_assert_eq(hr_class(h, 0)->type, NJ_OS_BLOCKING);
    for (int i = 0; i < 50; i++) {
        int32_t id = hr_ask(c, "POST", "/burn", 100, 50, NULL, NULL);
        hr_settle(h);
        hr_reset(c, id);
        hr_settle(h);
    }
    cr_expect_eq(hr_class(h, 0)->type, NJ_OS_BLOCKING);
    cr_expect_eq(hr_class(h, 0)->n_moves, 1);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
}

/* Callbacks occupy the core like handlers: they are measured, the watchdog names their route
 * (EWYK 5.55), and they leave no state behind (EWYK 5.48). */
static char seen_holder[32];

static void burn_late(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_ewyk_hold hold;

    hr_here->clock += 3 * NJ_MS;
    if (nj_ewyk_current_core_holder(hr_here->r->s->conns.handlers.ewyk, &hold))
        snprintf(seen_holder, sizeof seen_holder, "%s", hold.class_of->name);
    errno = EDOM;
    nj_response_end(resp);
}

static void keep_and_burn(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_on_timer(resp, NJ_MS, burn_late, NULL);
}

static const struct nj_route late[] = {
    {.method = "GET", .path = "/late", .type = NJ_NON_BLOCKING, .handle = keep_and_burn},
};

Test(conn_handler_tasks, callbacks_are_measured)
{
    struct hr *h = hr_start(hr_new(late, 1));
    struct hr_reply *a;
    struct hr_client *c = hr_connect(h);

    seen_holder[0] = '\0';
    a = hr_reply_of(c, hr_get(c, "/late"));
    errno = 0;
    hr_run(h, 10 * NJ_MS);
    cr_expect(a->status == 200 && a->ended);
    cr_expect_eq(errno, 0);
    cr_expect_str_eq(seen_holder, "GET /late");
    cr_expect_eq(hr_class(h, 0)->longest_ns, 3 * NJ_MS);
    cr_expect_eq(hr_class(h, 0)->n_overruns, 1);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_PC], 1, "it is one task");
    hr_free(h);
}

/* ---- the other strategies ---- */

static void any_type(struct nj_request *req, struct nj_response *resp, void *arg)
{
    bool lcore_runs = pthread_equal(pthread_self(), lcore) != 0;
    int slept = nj_sleep(1000);
    char line[40];

    snprintf(line, sizeof line, "%s %d", lcore_runs ? "lcore" : "worker", slept);
    nj_response_write(resp, line, strlen(line));
}

static const struct nj_route any_types[] = {
    {.path = "/non", .type = NJ_NON_BLOCKING, .handle = any_type},
    {.path = "/blocking", .type = NJ_BLOCKING, .handle = any_type},
    {.path = "/os", .type = NJ_OS_BLOCKING, .handle = any_type},
};

static void strategy(enum nj_run which_one, const char *non, const char *blocking, const char *os,
                     enum nj_run_mode mode)
{
    struct hr *h = hr_new(any_types, 3);
    h->config.conns.strategy = which_one;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/non"));
    struct hr_reply *b = hr_reply_of(c, hr_get(c, "/blocking"));
    struct hr_reply *o = hr_reply_of(c, hr_get(c, "/os"));

    lcore = pthread_self();
    hr_settle(h);
    cr_expect_str_eq(a->body, non);
    cr_expect_str_eq(b->body, blocking);
    cr_expect_str_eq(o->body, os);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_eq(hr_class(h, i)->n[mode], 1);
    hr_free(h);
}

Test(conn_handler_tasks, all_inline)
{
    strategy(NJ_RUN_PC, "lcore -1", "lcore 0", "lcore 0", NJ_MODE_PC);
}

Test(conn_handler_tasks, all_on_workers)
{
    strategy(NJ_RUN_PEC, "worker 0", "worker 0", "worker 0", NJ_MODE_PEC_WORKER);
}
