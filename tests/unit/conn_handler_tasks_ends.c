/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that end their response early, repeatedly, or where it cannot end. */
#include <criterion/criterion.h>

#include "support/handlers_rig.h"

#define BIG (48u << 10)

static uint8_t bytes[BIG];
static int rc[4];
static unsigned n_called, n_writable;

static void again(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_called++;
}

static void end_then_timer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_called++;
    nj_response_end(resp);
    nj_response_on_timer(resp, NJ_SEC, again, NULL);
    rc[0] = nj_response_write(resp, "x", 1);
}

static void timer_after_end(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_on_timer(resp, NJ_MS, end_then_timer, NULL);
}

static void timer_after_end_at_once(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    end_then_timer(req, resp, arg);
}

static void end_then_sleep(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello", 5);
    nj_sleep(NJ_MS);
    nj_response_end(resp);
    rc[1] = nj_sleep(10 * NJ_SEC);
}

static void send_then_sleep(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_send(resp, bytes, BIG, NULL, NULL);
    nj_sleep(NJ_SEC);
}

static void defer_and_end(struct nj_request *req, struct nj_response *resp, void *arg)
{
    hr_here->clock += 300 * NJ_US;
    if (nj_request_query(req).n_bytes == 0)
        return;
    nj_response_defer(resp);
    nj_response_write(resp, "all", 3);
    nj_response_end(resp);
}

/* The request body is too large and the handler does not read it. */
static void file_instead(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t b[512];

    while (nj_request_read(req, b, sizeof b) > 0) {
    }
    rc[2] = nj_response_file(resp, "/whole");
}

static void defer_late(struct nj_request *req, struct nj_response *resp, void *arg)
{
    hr_here->clock += 300 * NJ_US;
    if (nj_request_query(req).n_bytes == 0)
        return;
    nj_response_write(resp, "a part", 6);
    nj_response_defer(resp);
    nj_response_on_timer(resp, NJ_MS, end_then_timer, NULL);
}

/* Pieces, each larger than half of the response buffer. */
static void write_big(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static int n_left;

    if (!arg) {
        nj_response_defer(resp);
        n_left = 20;
    } else {
        n_writable++;
    }
    while (n_left > 0) {
        int err = nj_response_write(resp, bytes, BIG);
        if (err == NJ_ERR_WOULD_BLOCK) {
            nj_response_on_writable(resp, write_big, bytes);
            return;
        }
        cr_assert_eq(err, 0);
        n_left--;
    }
    nj_response_end(resp);
}

static const struct nj_route routes[] = {
    {.path = "/timer", .type = NJ_NON_BLOCKING, .handle = timer_after_end},
    {.path = "/timer/now", .type = NJ_NON_BLOCKING, .handle = timer_after_end_at_once},
    {.path = "/sleep", .type = NJ_BLOCKING, .handle = end_then_sleep},
    {.path = "/send", .type = NJ_BLOCKING, .handle = send_then_sleep},
    {.path = "/moved", .type = NJ_NON_BLOCKING, .handle = defer_late},
    {.path = "/big", .type = NJ_NON_BLOCKING, .handle = write_big},
    {.path = "/moved/end", .type = NJ_NON_BLOCKING, .handle = defer_and_end},
    {.path = "/file", .type = NJ_BLOCKING, .handle = file_instead, .body_max_bytes = 1000},
};

static struct hr *start(void)
{
    n_called = n_writable = 0;
    memset(rc, 0x55, sizeof rc);
    return hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
}

/* A timer set after the end is ignored: no callback can follow. */
Test(conn_handler_tasks_ends, timer_after_the_end)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    int32_t one = hr_get(c, "/timer");

    hr_run(h, 3 * NJ_SEC);
    int32_t two = hr_get(c, "/timer/now");
    hr_run(h, 3 * NJ_SEC);
    cr_expect(hr_reply_of(c, one)->status == 200 && hr_reply_of(c, one)->ended);
    cr_expect(hr_reply_of(c, two)->status == 200 && hr_reply_of(c, two)->ended);
    cr_expect_eq(n_called, 2);
    cr_expect_eq(rc[0], NJ_ERR_INVALID);
    hr_free(h);
}

/* The response is sent when it ends, not when the handler returns. */
Test(conn_handler_tasks_ends, before_the_handler_returns)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/sleep"));

    hr_run(h, 100 * NJ_MS);
    cr_expect(a->status == 200 && a->ended && a->n_got == 5);
    cr_expect_eq(rc[1], NJ_ERR_CANCELLED);
    hr_free(h);
}

/* A buffer by reference ends the body, so its length is known before the response ends. */
Test(conn_handler_tasks_ends, length_of_what_is_sent)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/send"));

    hr_run(h, 3 * NJ_SEC);
    cr_expect(a->status == 200 && a->ended && a->n_got == BIG, "%lu bytes", a->n_got);
    cr_expect_str_eq(a->length, "49152");
    hr_free(h);
}

/* On a worker no callback can run: the response is reset, not truncated. */
Test(conn_handler_tasks_ends, deferred_on_a_worker)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    while (hr_class(h, 4)->n[NJ_MODE_PEC_WORKER] == 0) {
        hr_get(c, "/moved");
        hr_settle(h);
    }
    const struct hr_reply *first = hr_reply_of(c, hr_get(c, "/moved?defer"));
    hr_run(h, NJ_SEC);
    const struct hr_reply *second = hr_reply_of(c, hr_get(c, "/moved?defer"));
    hr_run(h, NJ_SEC);
    cr_expect(first->closed && first->error == NGHTTP2_INTERNAL_ERROR, "error %u, status %d",
              first->error, first->status);
    cr_expect(second->status == 200 && second->ended && second->n_got == 6, "on its lcore again");
    hr_free(h);
}

Test(conn_handler_tasks_ends, deferred_and_ended_on_a_worker)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);

    while (hr_class(h, 6)->n[NJ_MODE_PEC_WORKER] == 0) {
        hr_get(c, "/moved/end");
        hr_settle(h);
    }
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/moved/end?defer"));
    hr_run(h, NJ_SEC);
    cr_expect(a->status == 200 && a->ended && a->n_got == 3, "%d, error %u", a->status, a->error);
    hr_free(h);
}

Test(conn_handler_tasks_ends, file_instead_of_a_long_body)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_post(c, "/file", 5000));

    hr_run(h, 3 * NJ_SEC);
    cr_expect_eq(rc[2], 0);
    cr_expect(a->status == 200 && a->n_got == RIG_WHOLE, "%d", a->status);
    hr_free(h);
}

/* A write that did not fit is notified when it does. */
Test(conn_handler_tasks_ends, room_for_a_whole_write)
{
    struct hr *h = start();
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/big"));

    hr_run(h, 3 * NJ_SEC);
    cr_expect(a->status == 200 && a->ended && a->n_got == 20 * BIG, "%lu bytes", a->n_got);
    cr_expect_leq(n_writable, 20, "each call finds the room: %u calls", n_writable);
    hr_free(h);
}
