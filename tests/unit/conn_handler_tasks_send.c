/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that send buffers by reference, files, classes, rates and priorities; and the peer's
 * address. */
#include <criterion/criterion.h>

#include "http/files/file_server_internal.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

#define LENT (3u << 20)
#define RATE (1u << 20)

static uint8_t lent[LENT];
static unsigned n_released;
static int rc[4];
static struct nj_peer peer;
static int64_t arrival;

static void release(void *arg)
{
    cr_expect_eq(arg, lent);
    n_released++;
}

static void send_lent(struct nj_request *req, struct nj_response *resp, void *arg)
{
    rc[0] = nj_response_send(resp, lent, LENT, release, lent);
    rc[1] = nj_response_write(resp, "x", 1);
    rc[2] = nj_response_send(resp, lent, 1, release, lent);
    nj_request_peer(req, &peer);
    arrival = nj_request_arrival_ns(req);
}

static void send_behind(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect_eq(nj_response_write(resp, lent, 1000), 0);
    cr_expect_eq(nj_response_send(resp, lent + 1000, LENT - 1000, release, lent), 0);
}

static void send_file(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_header(resp, "x", "mine");
    rc[0] = nj_response_file(resp, arg);
    rc[1] = nj_response_write(resp, "x", 1);
    rc[2] = nj_response_flush(resp);
}

static void bad_files(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static const char *const bad[] = {"", "/", "whole", "/a//b", "/a/../b", "/..", "/./a", "/a/"};

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect_eq(nj_response_file(resp, bad[i]), NJ_ERR_INVALID, "%s", bad[i]);
}

static void in_class(struct nj_request *req, struct nj_response *resp, void *arg)
{
    rc[0] = nj_response_class(resp, "none");
    rc[1] = nj_response_class(resp, HR_CLASS);
    nj_response_send(resp, lent, LENT, release, lent);
}

static void file_in_class(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(NJ_SEC);
    rc[0] = nj_response_class(resp, HR_CLASS);
    rc[1] = nj_response_file(resp, arg);
}

static void unknown_class(struct nj_request *req, struct nj_response *resp, void *arg)
{
    rc[0] = nj_response_class(resp, "none");
    nj_response_write(resp, "x", 1);
}

static struct nj_response *slow;

static void at_rate(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char length[24];

    snprintf(length, sizeof length, "%u", LENT);
    slow = resp;
    nj_response_defer(resp);
    nj_response_header(resp, "content-length", length);
    rc[0] = nj_response_rate(resp, RATE);
    rc[1] = nj_response_send(resp, lent, LENT, release, lent);
}

static void at_priority(struct nj_request *req, struct nj_response *resp, void *arg)
{
    rc[0] = nj_response_priority(resp, 8, false);
    rc[1] = nj_response_priority(resp, arg ? 0 : 7, false);
    nj_response_send(resp, lent, LENT, NULL, NULL);
}

static const struct nj_route routes[] = {
    {.path = "/lent", .type = NJ_NON_BLOCKING, .handle = send_lent},
    {.path = "/behind", .type = NJ_BLOCKING, .handle = send_behind},
    {.path = "/worker", .type = NJ_OS_BLOCKING, .handle = send_behind},
    {.path = "/file", .type = NJ_NON_BLOCKING, .handle = send_file, .arg = (void *)"/whole"},
    {.path = "/file/big", .type = NJ_NON_BLOCKING, .handle = send_file, .arg = (void *)"/big"},
    {.path = "/file/none", .type = NJ_NON_BLOCKING, .handle = send_file, .arg = (void *)"/none"},
    {.path = "/file/folder", .type = NJ_NON_BLOCKING, .handle = send_file, .arg = (void *)"/dir"},
    {.path = "/file/worker", .type = NJ_OS_BLOCKING, .handle = send_file, .arg = (void *)"/whole"},
    {.path = "/bad", .type = NJ_NON_BLOCKING, .handle = bad_files},
    {.path = "/class", .type = NJ_NON_BLOCKING, .handle = in_class},
    {.path = "/class/file", .type = NJ_BLOCKING, .handle = file_in_class, .arg = (void *)"/big"},
    {.path = "/class/worker", .type = NJ_OS_BLOCKING, .handle = unknown_class},
    {.path = "/rate", .type = NJ_NON_BLOCKING, .handle = at_rate},
    {.path = "/first", .type = NJ_NON_BLOCKING, .handle = at_priority, .arg = lent},
    {.path = "/last", .type = NJ_NON_BLOCKING, .handle = at_priority},
};

static struct nj_policy policy;

static struct hr *start(void)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    for (uint32_t i = 0; i < LENT; i++)
        lent[i] = rig_byte(i);
    n_released = 0;
    memset(rc, 0x55, sizeof rc);
    hr_two_classes(h, &policy);
    return h;
}

static void expect_all(const struct hr_reply *a)
{
    cr_expect(a->status == 200 && a->ended && !a->wrong && a->n_got == LENT, "%d: %lu bytes",
              a->status, (unsigned long)a->n_got);
    cr_expect_eq(strtoull(a->length, NULL, 10), LENT);
}

Test(conn_handler_tasks_send, bytes_by_reference)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);
    int32_t get = hr_get(c, "/lent");

    hr_settle(h);
    expect_all(hr_reply_of(c, get));
    cr_expect(rc[0] == 0 && rc[1] == NJ_ERR_INVALID && rc[2] == NJ_ERR_INVALID);
    cr_expect_eq(n_released, 1);
    cr_expect_eq(peer.port, 2000);
    cr_expect_eq(memcmp(peer.address + 12, &(uint32_t){htonl(RIG_PEER_IP)}, 4), 0);
    cr_expect(peer.address[10] == 0xff && peer.address[11] == 0xff && peer.address[0] == 0);
    cr_expect_eq(arrival, (1700000000 + 1000) * (int64_t)NJ_SEC);

    int32_t head = hr_ask(c, "HEAD", "/lent", 0, 0, NULL, NULL);
    hr_settle(h);
    cr_expect_eq(n_released, 2);
    cr_expect_eq(strtoull(hr_reply_of(c, head)->length, NULL, 10), LENT);
    cr_expect_eq(hr_reply_of(c, head)->n_got, 0);
    hr_free(h);
    cr_expect_eq(n_released, 2);
}

Test(conn_handler_tasks_send, bytes_behind_others)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);
    int32_t here = hr_get(c, "/behind"), worker = hr_get(c, "/worker");

    hr_settle(h);
    expect_all(hr_reply_of(c, here));
    expect_all(hr_reply_of(c, worker));
    cr_expect_eq(n_released, 2);
    hr_free(h);
}

/* A client that disconnects, and one that reads nothing until the shard ends. */
Test(conn_handler_tasks_send, bytes_that_nobody_takes)
{
    struct hr *h = hr_start(start());
    struct hr_client *c =
        hr_connect_with(h, &(struct hr_options){.window = 100000, .no_auto = true});
    int32_t first = hr_get(c, "/lent");

    hr_get(c, "/lent");
    hr_settle(h);
    cr_expect_eq(n_released, 0);
    hr_reset(c, first);
    hr_settle(h);
    cr_expect_eq(n_released, 1);
    hr_free(h);
    cr_expect_eq(n_released, 2);
}

Test(conn_handler_tasks_send, files)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);
    int32_t all = hr_get(c, "/file"), none = hr_get(c, "/file/none");
    int32_t part = hr_ask(c, "GET", "/file/big", 0, 0, "range", "bytes=0-99");
    int32_t post = hr_ask(c, "POST", "/file", 10, 10, "range", "bytes=0-99");
    int32_t worker = hr_get(c, "/file/worker");

    hr_settle(h);
    const struct hr_reply *a = hr_reply_of(c, all);
    cr_expect(a->status == 200 && a->ended && !a->wrong && a->n_got == RIG_WHOLE);
    cr_expect_str_eq(a->x, "mine");
    cr_expect(rc[0] == 0 && rc[1] == NJ_ERR_INVALID && rc[2] == NJ_ERR_INVALID);
    cr_expect_eq(hr_reply_of(c, none)->status, 404);
    cr_expect(hr_reply_of(c, part)->status == 206 && hr_reply_of(c, part)->n_got == 100);
    cr_expect(hr_reply_of(c, post)->status == 200 && hr_reply_of(c, post)->n_got == RIG_WHOLE);
    cr_expect(hr_reply_of(c, worker)->status == 200 && hr_reply_of(c, worker)->n_got == RIG_WHOLE);
    int32_t bad = hr_get(c, "/bad"), folder = hr_get(c, "/file/folder");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, folder)->status, 404, "not a redirect to the file server's path");
    cr_expect(hr_reply_of(c, bad)->status == 200 && hr_reply_of(c, bad)->n_got == 0);
    hr_free(h);
}

/* The stream ends while the file is being opened, and while it is sent. */
Test(conn_handler_tasks_send, files_that_nobody_takes)
{
    struct hr *h = hr_start(start());
    struct hr_client *c =
        hr_connect_with(h, &(struct hr_options){.window = 100000, .no_auto = true});

    h->r->files_slow = true;
    int32_t opening = hr_get(c, "/file/big");
    hr_settle(h);
    hr_reset(c, opening);
    hr_settle(h);
    h->r->files_slow = false;
    int32_t sent = hr_get(c, "/file/big");
    hr_settle(h);
    cr_expect_gt(hr_reply_of(c, sent)->n_got, 0);
    hr_reset(c, sent);
    hr_settle(h);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 0);
    hr_free(h);
}

/* A file that is not opened in time: 503, as from the file server, also when the client withholds
 * the rest of the request body. */
Test(conn_handler_tasks_send, file_that_does_not_come)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);

    h->r->files_slow = true;
    int32_t get = hr_get(c, "/file");
    int32_t post = hr_ask(c, "POST", "/file", 5000, 100, NULL, NULL);
    hr_run(h, 80 * NJ_SEC);
    cr_expect_eq(hr_reply_of(c, get)->status, 503);
    cr_expect_eq(hr_reply_of(c, post)->status, 503);
    cr_expect_eq(rig_count(h->r, NJ_C_file_timeout), 2);
    cr_expect_eq(rig_count(h->r, NJ_C_body_timeout), 0, "the server waits for the file");
    h->r->files_slow = false;
    hr_free(h);
}

/* A class whose requests are reset, while the client acknowledges nothing, so that RST_STREAM is
 * not sent: the request does not wait for the file that the handler named. */
Test(conn_handler_tasks_send, file_in_a_class_that_resets)
{
    struct hr *h = start();
    policy.classes[1].action = NJ_ACTION_RESET;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    const struct nj_list *watched = &h->r->s->conns.txns_watched;
    uint32_t n = 0;

    c->p->manual = true;
    hr_get(c, "/lent");
    hr_get(c, "/class/file");
    hr_run(h, 2 * NJ_SEC);
    cr_expect(rc[0] == 0 && rc[1] == 0);
    cr_expect_eq(rig_count(h->r, NJ_C_request_refused), 1);
    for (const struct nj_list *l = watched->next; l != watched; l = l->next) {
        const struct nj_txn *t = nj_container_of(l, struct nj_txn, node);
        n += t->head_sent_at == 0;
        cr_expect_not(nj_exchange_sends_file(t->exchange));
    }
    cr_expect_eq(n, 1, "the request is there");
    hr_free(h);
}

Test(conn_handler_tasks_send, no_file_server)
{
    struct hr *h = start();
    h->r->http.no_files = true;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/file");

    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, id)->status, 404);
    hr_free(h);
}

/* One client has 8 of the file server's 9 places. The files are not opened meanwhile. */
Test(conn_handler_tasks_send, files_left_to_others)
{
    struct hr *h = hr_start(start());
    struct nj_pool *pool = &h->r->s->conns.site->wait_pool;
    uint32_t n_max = pool->n_max;
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *last = NULL;

    pool->n_max = 9;
    h->r->files_slow = true;
    for (int i = 0; i < 9; i++)
        last = hr_reply_of(c, hr_get(c, "/file"));
    hr_settle(h);
    cr_expect_eq(pool->n_used, 8, "%u", pool->n_used);
    cr_expect(last->status == 503 && !strcmp(last->retry_after, "1"), "%d", last->status);
    cr_expect_eq(rig_count(h->r, NJ_C_client_share_limit), 1);
    h->r->files_slow = false;
    hr_settle(h);
    cr_expect_eq(pool->n_used, 0);
    pool->n_max = n_max;
    hr_free(h);
}

Test(conn_handler_tasks_send, class_of_a_response)
{
    struct hr *h = start();
    policy.classes[1].request = (struct nj_limit){.rate = RATE, .ceiling = RATE};
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/class");

    hr_run(h, NJ_SEC);
    const struct nj_shape *shape = h->r->s->conns.txns.shape;
    cr_expect(rc[0] == NJ_ERR_INVALID && rc[1] == 0);
    cr_expect_eq(nj_shape_class_stats(shape, 1)->n_open, 1);
    cr_expect_eq(nj_shape_class_stats(shape, 0)->n_open, 0);
    uint64_t got = hr_reply_of(c, id)->n_got;
    cr_expect(got > RATE * 9 / 10 && got < RATE * 12 / 10, "%lu", (unsigned long)got);
    hr_run(h, 3 * NJ_SEC);
    expect_all(hr_reply_of(c, id));
    int32_t worker = hr_get(c, "/class/worker");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, worker)->status, 500);
    hr_free(h);
}

/* The class allows a client one response. */
Test(conn_handler_tasks_send, class_that_is_full)
{
    struct hr *h = start();
    policy.classes[1].caps.streams_max = 1;
    policy.classes[1].request = (struct nj_limit){.rate = RATE, .ceiling = RATE};
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    int32_t first = hr_get(c, "/class"), second = hr_get(c, "/class");

    hr_run(h, 4 * NJ_SEC);
    expect_all(hr_reply_of(c, first));
    cr_expect_eq(hr_reply_of(c, second)->status, 429);
    cr_expect_str_eq(hr_reply_of(c, second)->retry_after, "1");
    cr_expect_eq(n_released, 2);
    cr_expect_eq(rig_count(h->r, NJ_C_request_refused), 1);
    cr_expect_eq(nj_shape_class_stats(h->r->s->conns.txns.shape, 1)->n_refused, 1);
    struct nj_abuse_view v = {0};
    nj_abuse_get_count_and_client(&h->r->s->conns.abuse, NJ_C_request_refused, &v);
    cr_expect_eq(v.n, 1);
    hr_free(h);
}

Test(conn_handler_tasks_send, rate_that_changes)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/rate");
    const struct hr_reply *a = hr_reply_of(c, id);

    hr_run(h, NJ_SEC);
    cr_expect(rc[0] == 0 && rc[1] == 0);
    cr_expect(a->n_got > RATE * 9 / 10 && a->n_got < RATE * 12 / 10, "%lu", a->n_got);
    uint64_t before = a->n_got;
    cr_expect_eq(nj_response_rate(slow, RATE / 4), 0);
    hr_run(h, NJ_SEC);
    uint64_t more = a->n_got - before;
    cr_expect(more > RATE / 4 * 8 / 10 && more < RATE / 4 * 14 / 10, "%lu", more);
    cr_expect_eq(nj_response_rate(slow, 0), 0);
    hr_run(h, 100 * NJ_MS);
    cr_expect_eq(a->n_got, LENT);
    nj_response_end(slow);
    hr_settle(h);
    expect_all(a);
    cr_expect_eq(n_released, 1);
    hr_free(h);
}

/* Both have as much to send as the connection's window: the first uses all of it. */
Test(conn_handler_tasks_send, priority_of_a_response)
{
    struct hr *h = hr_start(start());
    struct hr_client *c = hr_connect_with(
        h, &(struct hr_options){.window = 1u << 30, .session_add = LENT - 65535, .no_auto = true});
    int32_t last = hr_get(c, "/last"), first = hr_get(c, "/first");

    hr_settle(h);
    cr_expect(rc[0] == NJ_ERR_INVALID && rc[1] == 0);
    cr_expect_gt(hr_reply_of(c, first)->n_got, LENT - 200000, "%lu", hr_reply_of(c, first)->n_got);
    cr_expect_lt(hr_reply_of(c, last)->n_got, 200000);
    hr_free(h);
}
