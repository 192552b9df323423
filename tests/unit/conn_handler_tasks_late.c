/* SPDX-License-Identifier: BSD-3-Clause */
/* Class, rate and file set too late or unavailable: full classes after the response has begun,
 * rates before classes, files with fields, and bodies that contradict them. */
#include <criterion/criterion.h>

#include "h2/h2_internal.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

#define LENT (1u << 20)
#define RATE (1u << 20)

static uint8_t lent[LENT];
static unsigned n_released;
static unsigned n_gone;
static int rc[4];
static struct nj_response *kept;

static void release(void *arg)
{
    cr_expect_eq(arg, lent);
    n_released++;
}

static void gone(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_gone++;
}

/* It occupies the only place of its class until the client has read it. */
static void occupy(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_class(resp, HR_CLASS);
    nj_response_send(resp, lent, LENT, release, lent);
}

static void flush_and_wait(struct nj_request *req, struct nj_response *resp, void *arg)
{
    rc[0] = nj_response_class(resp, HR_CLASS);
    rc[1] = nj_response_flush(resp);
    rc[2] = nj_sleep(10 * NJ_SEC);
    rc[3] = nj_response_write(resp, lent, 1000);
}

static void write_and_defer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_on_cancelled(resp, gone, NULL);
    rc[0] = nj_response_class(resp, HR_CLASS);
    rc[1] = nj_response_write(resp, lent, 1000);
}

static void write_later(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, lent, 1000);
    nj_response_end(resp);
}

static void class_then_timer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_on_cancelled(resp, gone, NULL);
    rc[0] = nj_response_class(resp, HR_CLASS);
    nj_response_on_timer(resp, 10 * NJ_MS, write_later, NULL);
}

static void class_twice(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_class(resp, HR_CLASS);
    rc[0] = nj_sleep(10 * NJ_MS);
    nj_response_class(resp, HR_CLASS);
    rc[1] = nj_sleep(10 * NJ_MS);
    nj_response_class(resp, "default");
    rc[2] = nj_sleep(10 * NJ_MS);
    nj_response_class(resp, "default");
    nj_response_write(resp, lent, 1000);
}

static void rate_then_class(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_rate(resp, RATE / 4);
    nj_sleep(10 * NJ_MS);
    nj_response_class(resp, HR_CLASS);
    nj_sleep(10 * NJ_MS);
    nj_response_send(resp, lent, LENT, release, lent);
}

static void typed_file(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_header(resp, "content-type", "text/x-mine");
    nj_response_file(resp, arg);
}

static void sized_file(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_header(resp, "content-length", "200000");
    rc[0] = nj_response_file(resp, "/whole");
}

static void plain_file(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_file(resp, "/big");
}

static void keep_plain_file(struct nj_request *req, struct nj_response *resp, void *arg)
{
    kept = resp;
    nj_response_defer(resp);
    nj_response_file(resp, "/whole");
}

static void sleep_long(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(3600 * NJ_SEC);
}

static void class_then_wait(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static struct nj_event event;

    rc[0] = nj_response_class(resp, HR_CLASS);
    rc[1] = nj_await(&event, 30 * NJ_SEC);
}

static const struct nj_route routes[] = {
    {.path = "/class", .type = NJ_BLOCKING, .handle = class_then_wait},
    {.path = "/occupy", .type = NJ_NON_BLOCKING, .handle = occupy},
    {.path = "/flush", .type = NJ_BLOCKING, .handle = flush_and_wait},
    {.path = "/defer", .type = NJ_NON_BLOCKING, .handle = write_and_defer},
    {.path = "/timer", .type = NJ_NON_BLOCKING, .handle = class_then_timer},
    {.path = "/twice", .type = NJ_BLOCKING, .handle = class_twice},
    {.path = "/rate", .type = NJ_BLOCKING, .handle = rate_then_class},
    {.path = "/typed", .type = NJ_NON_BLOCKING, .handle = typed_file, .arg = (void *)"/big"},
    {.path = "/typed/none", .type = NJ_NON_BLOCKING, .handle = typed_file, .arg = (void *)"/none"},
    {.path = "/sized", .type = NJ_NON_BLOCKING, .handle = sized_file},
    {.path = "/file", .type = NJ_NON_BLOCKING, .handle = plain_file, .body_max_bytes = 1000},
    {.path = "/kept", .type = NJ_NON_BLOCKING, .handle = keep_plain_file},
    {.path = "/sleep", .type = NJ_BLOCKING, .handle = sleep_long},
    {.path = "/worker", .type = NJ_OS_BLOCKING, .handle = occupy},
};

static struct nj_policy policy;

static struct hr *start(void)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    for (uint32_t i = 0; i < LENT; i++)
        lent[i] = rig_byte(i);
    n_released = n_gone = 0;
    memset(rc, 0x55, sizeof rc);
    hr_two_classes(h, &policy);
    return h;
}

/* The only place is taken. */
static struct hr *start_full(struct hr_client **c)
{
    struct hr *h = start();

    policy.classes[1].caps.streams_max = 1;
    policy.classes[1].request = (struct nj_limit){.rate = RATE / 64, .ceiling = RATE / 64};
    hr_start(h);
    *c = hr_connect(h);
    hr_get(*c, "/occupy");
    hr_settle(h);
    return h;
}

static void expect_busy(const struct hr_reply *a)
{
    cr_expect(a->status == 429 && a->ended && a->closed && a->n_got == 0, "%d, %lu bytes",
              a->status, (unsigned long)a->n_got);
}

Test(conn_handler_tasks_late, class_that_is_full_after_flush)
{
    struct hr_client *c;
    struct hr *h = start_full(&c);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/flush"));

    hr_settle(h);
    expect_busy(a);
    cr_expect(rc[0] == 0 && rc[1] == 0);
    cr_expect(rc[2] == NJ_ERR_CANCELLED && rc[3] == NJ_ERR_CANCELLED, "%d %d", rc[2], rc[3]);
    hr_free(h);
}

Test(conn_handler_tasks_late, class_that_is_full_after_write)
{
    struct hr_client *c;
    struct hr *h = start_full(&c);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/defer"));

    hr_settle(h);
    expect_busy(a);
    cr_expect_eq(n_gone, 1);
    hr_free(h);
}

Test(conn_handler_tasks_late, class_that_is_full_before_write)
{
    struct hr_client *c;
    struct hr *h = start_full(&c);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/timer"));

    hr_run(h, 100 * NJ_MS);
    expect_busy(a);
    hr_free(h);
}

/* The client already occupies the only place of the class: with this request. */
Test(conn_handler_tasks_late, class_that_it_is_of)
{
    struct hr *h = start();

    policy.classes[0].caps.streams_max = 1;
    policy.classes[1].caps.streams_max = 1;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/twice"));
    hr_run(h, 100 * NJ_MS);
    cr_expect(a->status == 200 && a->n_got == 1000, "%d", a->status);
    cr_expect_eq(nj_shape_class_stats(h->r->s->conns.txns.shape, 1)->n_open, 0);
    hr_free(h);
}

Test(conn_handler_tasks_late, rate_before_class)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/rate"));

    hr_run(h, NJ_SEC);
    cr_expect(a->n_got > RATE / 4 * 9 / 10 && a->n_got < RATE / 4 * 12 / 10, "%lu", a->n_got);
    hr_run(h, 4 * NJ_SEC);
    cr_expect_eq(a->n_got, LENT);
    hr_free(h);
}

Test(conn_handler_tasks_late, type_of_a_file)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);
    int32_t one = hr_ask(c, "GET", "/typed", 0, 0, "range", "bytes=0-99");
    int32_t two = hr_ask(c, "GET", "/typed", 0, 0, "range", "bytes=0-99,1000-1099");

    hr_settle(h);
    const struct hr_reply *a = hr_reply_of(c, one), *b = hr_reply_of(c, two);
    cr_expect(a->status == 206 && a->n_types == 1);
    cr_expect_str_eq(a->type, "text/x-mine");
    cr_expect(b->status == 206 && b->n_types == 1, "%u types", b->n_types);
    cr_expect_eq(strncmp(b->type, "multipart/byteranges; ", 22), 0, "%s", b->type);
    cr_expect(strstr(b->body, "text/x-mine"), "%s", b->body);
    hr_free(h);
}

Test(conn_handler_tasks_late, type_of_an_error_page)
{
    struct nj_file_server_options site = {.n_error_pages = 1, .error_page = {{404, "index.html"}}};
    struct hr *h = start();

    h->r->http.files = site;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/typed/none"));
    hr_settle(h);
    cr_expect(a->status == 404 && a->n_got == 100);
    cr_expect_str_eq(a->type, "text/html");
    cr_expect_eq(a->n_types, 1);
    hr_free(h);
}

Test(conn_handler_tasks_late, length_of_a_file)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/sized"));

    hr_settle(h);
    cr_expect_eq(rc[0], 0);
    cr_expect(a->status == 200 && a->ended && a->n_got == RIG_WHOLE, "%d", a->status);
    cr_expect_str_eq(a->length, "200000");
    hr_free(h);
}

/* More of the request body arrives than the route accepts, while the file is opened and sent. */
Test(conn_handler_tasks_late, too_long_a_body_beside_a_file)
{
    struct hr *h = hr_start(start());
    struct hr_client *c =
        hr_connect_with(h, &(struct hr_options){.window = 20000, .no_auto = true});

    for (int slow = 0; slow < 2; slow++) {
        h->r->files_slow = slow;
        int32_t id = hr_ask(c, "POST", "/file", 5000, 500, NULL, NULL);
        const struct hr_reply *a = hr_reply_of(c, id);
        for (int i = 0; i < 12; i++)
            hr_step(h);
        hr_send_more(c, id, 4500);
        for (int i = 0; i < 12; i++)
            hr_step(h);
        h->r->files_slow = false;
        hr_settle(h);
        cr_expect(a->status == 200 && !a->closed && a->n_got == 20000, "%d: %lu bytes, error %u",
                  a->status, a->n_got, a->error);
    }
    hr_free(h);
}

/* A request is reset because its connection has the maximum of handlers; the RST_STREAM is queued
 * behind more than the send queue holds, for a slow client. */
Test(conn_handler_tasks_late, a_reset_that_cannot_leave)
{
    struct hr *h = start();
    char path[1200] = "/dir";

    memset(path + 4, '"', 1000);
    h->workers_slow = true;
    hr_start(h);
    h->r->s->conns.h2->limits.glitches_max = 1u << 30;
    struct hr_client *c = hr_connect(h);
    int32_t id[HR_JOBS_MAX];
    for (uint32_t i = 0; i < HR_JOBS_MAX; i++)
        id[i] = hr_get(c, "/worker");
    const struct hr_reply *redirect = hr_reply_of(c, hr_get(c, path));
    hr_settle(h);
    cr_expect_eq(redirect->status, 301);
    for (uint32_t i = 0; i < HR_JOBS_MAX; i++)
        hr_reset(c, id[i]);
    for (uint32_t i = HR_JOBS_MAX; i < NJ_CONN_TASKS_MAX; i++)
        hr_get(c, "/sleep");
    hr_settle(h);
    c->p->manual = true;
    for (uint32_t i = 0; i < 40; i++)
        hr_get(c, path);
    const struct hr_reply *refused = hr_reply_of(c, hr_get(c, "/sleep"));
    hr_settle(h);
    cr_expect_eq(rig_count(h->r, NJ_C_conn_tasks_full), 1);
    for (uint32_t i = 0; i < 20; i++) {
        c->p->rcv_wnd = 600;
        rig_ack(h->r, c->p);
        hr_run(h, 20 * NJ_MS);
        c->p->rcv_wnd = 0;
        rig_ack(h->r, c->p);
        hr_run(h, 5 * NJ_SEC);
    }
    cr_expect(!c->p->got_rst && !refused->closed);
    cr_expect_eq(rig_count(h->r, NJ_C_file_timeout), 0);
    c->p->manual = false;
    c->p->rcv_wnd = 65535;
    rig_ack(h->r, c->p);
    hr_run(h, 10 * NJ_SEC);
    cr_expect_eq(refused->error, NGHTTP2_REFUSED_STREAM);
    h->workers_slow = false;
    hr_free(h);
}

/* Its class changes while it waits, and then refuses it. */
Test(conn_handler_tasks_late, class_while_it_waits)
{
    struct hr_client *c;
    struct hr *h = start_full(&c);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/class"));

    hr_run(h, NJ_SEC);
    expect_busy(a);
    cr_expect_eq(rc[1], NJ_ERR_CANCELLED);
    hr_free(h);
}

/* A closed class refuses handlers' responses, too. */
Test(conn_handler_tasks_late, class_that_is_closed)
{
    struct hr *h = start();

    policy.classes[1].action = NJ_ACTION_TOO_MANY;
    policy.classes[1].retry_after_s = 3600;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/class"));
    hr_run(h, NJ_SEC);
    expect_busy(a);
    cr_expect_str_eq(a->retry_after, "3600");
    hr_free(h);
}
