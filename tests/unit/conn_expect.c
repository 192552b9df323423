/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that wait for 100 (Continue) before they send a body (RFC 9110 10.1.1). */
#include <criterion/criterion.h>

#include "support/body_handlers.h"
#include "support/handlers_rig.h"

#define BODY 5000u

static void refuses(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_status(resp, 403);
}

/* The response head is sent first. */
static void says_first(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_flush(resp);
    nj_sleep(NJ_SEC);
    body_reads(req, resp, arg);
}

static void on_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char some[1000];
    int64_t n;

    while ((n = nj_request_read(req, some, sizeof some)) > 0)
        nj_response_try_write(resp, "x", 1);
    if (n == 0)
        nj_response_end(resp);
}

static void keeps(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_request_on_body(req, on_body, NULL);
}

static void begins_later(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_request_on_body(req, on_body, NULL);
}

static void keeps_and_waits(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_on_timer(resp, NJ_SEC, begins_later, NULL);
}

static const struct nj_route routes[] = {
    {.path = "/reads", .type = NJ_BLOCKING, .handle = body_reads},
    {.path = "/sleeps", .type = NJ_BLOCKING, .handle = body_reads_late},
    {.path = "/refuses", .type = NJ_BLOCKING, .handle = refuses},
    {.path = "/keeps", .type = NJ_NON_BLOCKING, .handle = keeps},
    {.path = "/waits", .type = NJ_NON_BLOCKING, .handle = keeps_and_waits},
    {.path = "/worker", .type = NJ_OS_BLOCKING, .handle = body_reads},
    {.path = "/first", .type = NJ_BLOCKING, .handle = says_first},
    {.method = "GET", .path = "/get", .type = NJ_BLOCKING, .handle = body_reads},
    {.path = "/small", .type = NJ_BLOCKING, .handle = body_reads, .body_max_bytes = BODY - 1},
};

static struct hr *start(void)
{
    return hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
}

/* A request whose body is sent after its head. */
static int32_t ask(struct hr *h, struct hr_client *c, const char *path, const char *expect)
{
    int32_t id = hr_ask(c, "POST", path, BODY, 0, "expect", expect);
    hr_settle(h);
    return id;
}

/* 100 is sent, and nothing else; the body then gets the response. */
static void goes_on(struct hr *h, struct hr_client *c, int32_t id)
{
    struct hr_reply *a = hr_reply_of(c, id);

    cr_expect(a->status == 100 && a->n_heads == 1 && !a->ended && !a->date[0], "%d: %d", id,
              a->status);
    hr_send_more(c, id, BODY);
    hr_settle(h);
    cr_expect(a->status == 200 && a->n_heads == 2 && a->ended && a->closed, "%d: %d, %u", id,
              a->status, a->n_heads);
}

Test(conn_expect, when_its_handler_reads)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    int32_t id = ask(h, c, "/reads", "100-continue");

    goes_on(h, c, id);
    cr_expect_str_eq(hr_reply_of(c, id)->body, "5000");
    goes_on(h, c, ask(h, c, "/reads", "100-Continue")); /* RFC 9110 10.1.1: any case */
    goes_on(h, c, ask(h, c, "/keeps", "100-continue"));
    goes_on(h, c, ask(h, c, "/worker", "100-continue")); /* its body is read before it runs */
    hr_free(h);
}

Test(conn_expect, not_before)
{
    static const char *const paths[] = {"/sleeps", "/waits"};
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        int32_t id = ask(h, c, paths[i], "100-continue");
        cr_expect_eq(hr_reply_of(c, id)->n_heads, 0, "%s", paths[i]);
        hr_run(h, 1010 * NJ_MS);
        goes_on(h, c, id);
    }
    hr_free(h);
}

/* Each response shows that the body is not wanted; no 100 is sent. */
Test(conn_expect, the_final_status_instead)
{
    static const struct {
        const char *path;
        int status;
    } rows[] = {{"/refuses", 403}, {"/get", 405}, {"/whole", 405}, {"/../x", 400}};
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct hr_reply *a = hr_reply_of(c, ask(h, c, rows[i].path, "100-continue"));
        cr_expect(a->status == rows[i].status && a->n_heads == 1 && a->ended, "%s: %d",
                  rows[i].path, a->status);
        cr_expect(a->closed && a->error == NGHTTP2_NO_ERROR && a->n_sent == 0, "%s", rows[i].path);
    }
    hr_free(h);
}

/* 10.1.1: "A server MAY omit sending a 100 (Continue) response if it has already received some or
 * all of the content", or if there is none. */
Test(conn_expect, nobody_waits_for_it)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    int32_t come = hr_ask(c, "POST", "/reads", BODY, BODY, "expect", "100-continue");
    int32_t late = hr_ask(c, "POST", "/sleeps", BODY, BODY, "expect", "100-continue");
    int32_t none = hr_ask(c, "GET", "/reads", 0, 0, "expect", "100-continue");
    int32_t first = hr_ask(c, "POST", "/first", BODY, 0, "expect", "100-continue");

    hr_run(h, 2 * NJ_SEC);
    cr_expect(hr_reply_of(c, come)->status == 200 && hr_reply_of(c, come)->n_heads == 1);
    cr_expect(hr_reply_of(c, late)->status == 200 && hr_reply_of(c, late)->n_heads == 1);
    cr_expect(hr_reply_of(c, none)->status == 200 && hr_reply_of(c, none)->n_heads == 1);
    const struct hr_reply *a = hr_reply_of(c, first); /* RFC 9110 15: 1xx is before the final one */
    cr_expect(a->status == 200 && a->n_heads == 1 && !a->ended);
    hr_send_more(c, first, BODY);
    hr_settle(h);
    cr_expect(a->ended && a->n_heads == 1);
    hr_free(h);
}

/* 10.1.1: an unsupported expectation gets 417. */
Test(conn_expect, something_else)
{
    static const char *const values[] = {"200-ok", "100-continue, x", ",, x", "100-continue=1",
                                         "100"};
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    for (size_t i = 0; i < NJ_ARRAY_LEN(values); i++) {
        struct hr_reply *a = hr_reply_of(c, ask(h, c, "/reads", values[i]));
        cr_expect(a->status == 417 && a->ended && a->date[0], "%s: %d", values[i], a->status);
        a = hr_reply_of(c, hr_ask(c, "GET", "/whole", 0, 0, "expect", values[i]));
        hr_settle(h);
        cr_expect_eq(a->status, 417, "%s: %d", values[i], a->status);
    }
    goes_on(h, c, ask(h, c, "/reads", "100-continue"));
    goes_on(h, c, ask(h, c, "/reads", ", 100-Continue,,")); /* RFC 9110 5.6.1.2 */
    cr_expect(!c->goaway);
    hr_free(h);
}
