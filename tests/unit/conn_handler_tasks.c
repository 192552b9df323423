/* SPDX-License-Identifier: BSD-3-Clause */
/* Route handlers in a complete shard, with real HTTP/2 clients: their input, output and context. */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"

/* Handler behaviours, named by the end of the path. */
static bool path_is(const struct nj_request *req, const char *path)
{
    struct nj_view v = nj_request_path(req);
    return v.n_bytes == strlen(path) && memcmp(v.p, path, v.n_bytes) == 0;
}

static bool view_is(struct nj_view v, const char *text)
{
    return v.n_bytes == strlen(text) && memcmp(v.p, text, v.n_bytes) == 0;
}

/* ---- simple ones ---- */

static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect_eq(nj_response_header(resp, "content-type", "text/plain"), 0);
    cr_expect_eq(nj_response_write(resp, "hello\n", 6), 0);
}

static void slow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect(!nj_must_not_block());
    cr_expect_eq(nj_sleep(200 * NJ_MS), 0);
    cr_expect_eq(nj_response_write(resp, "slow\n", 5), 0);
}

static void see(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view name, value;
    char line[200];
    uint32_t n = 0;

    while (nj_request_field(req, n, &name, &value))
        n++;
    cr_expect(view_is(nj_request_method(req), "GET"));
    cr_expect(view_is(nj_request_scheme(req), "http"));
    cr_expect(view_is(nj_request_authority(req), "198.18.0.2"));
    cr_expect(view_is(nj_request_path(req), "/see/a%20b"));
    cr_expect(view_is(nj_request_query(req), "q=1?2"));
    cr_expect(view_is(nj_request_header(req, "x-y"), "zett"));
    cr_expect(view_is(nj_request_header(req, "absent"), ""));
    snprintf(line, sizeof line, "%u fields, arg %s", n, (const char *)arg);
    nj_response_write(resp, line, strlen(line));
}

static const struct nj_route few[] = {
    {.method = "GET", .path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
    {.method = "GET", .path = "/slow", .type = NJ_BLOCKING, .handle = slow},
    {.method = "GET", .path = "/see/*", .type = NJ_BLOCKING, .handle = see, .arg = "five"},
};

Test(conn_handler_tasks, hello_goes_out_in_two_frames)
{
    struct hr *h = hr_start(hr_new(few, 3));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/hello"));

    hr_settle(h);
    cr_expect_eq(a->status, 200);
    cr_expect_str_eq(a->body, "hello\n");
    cr_expect_str_eq(a->length, "6");
    cr_expect(a->ended && a->closed && a->n_heads == 1 && a->n_datas == 1);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_PC], 1);
    hr_free(h);
}

/* A request that was parsed in a step is answered in it, and its packet is the answer's. EWYK 5.35
 */
Test(conn_handler_tasks, answered_in_the_step_that_brought_it)
{
    struct hr *h = hr_start(hr_new(few, 3));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/hello"));
    struct hr_reply *b = hr_reply_of(c, hr_ask(c, "GET", "/see/a%20b?q=1?2", 0, 0, "x-y", "zett"));

    hr_step(h);
    cr_expect(a->ended && b->ended);
    cr_expect_str_eq(b->body, "1 fields, arg five");
    cr_expect_eq(hr_class(h, 2)->n[NJ_MODE_EPC_INLINE], 1);
    hr_free(h);
}

Test(conn_handler_tasks, a_blocking_one_sleeps_and_others_do_not)
{
    struct hr *h = hr_start(hr_new(few, 3));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *s = hr_reply_of(c, hr_get(c, "/slow"));
    struct hr_reply *a[99];

    for (int i = 0; i < 99; i++)
        a[i] = hr_reply_of(c, hr_get(c, "/hello"));
    hr_settle(h);
    for (int i = 0; i < 99; i++)
        cr_expect(a[i]->ended, "time stood still");
    hr_run(h, 199 * NJ_MS);
    cr_expect_eq(s->status, 0);
    hr_run(h, 3 * NJ_MS);
    cr_expect_eq(s->status, 200);
    cr_expect_str_eq(s->body, "slow\n");
    cr_expect_eq(hr_class(h, 1)->n[NJ_MODE_EPC_PARKED], 1);
    hr_free(h);
}

/* Routes precede the file server; 405 lists the allowed methods of a path. */
Test(conn_handler_tasks, beside_the_site)
{
    struct hr *h = hr_start(hr_new(few, 3));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *site = hr_reply_of(c, hr_get(c, "/index.html"));
    struct hr_reply *none = hr_reply_of(c, hr_get(c, "/absent"));
    struct hr_reply *post = hr_reply_of(c, hr_post(c, "/hello", 70000));
    struct hr_reply *post_site = hr_reply_of(c, hr_post(c, "/whole", 70000));
    struct hr_reply *head = hr_reply_of(c, hr_ask(c, "HEAD", "/hello", 0, 0, NULL, NULL));

    hr_settle(h);
    cr_expect(site->status == 200 && site->n_got == 100 && !site->wrong);
    cr_expect_eq(none->status, 404);
    cr_expect(post->status == 405 && !strcmp(post->allow, "GET, HEAD"));
    cr_expect(post_site->status == 405 && post_site->closed);
    cr_expect(head->status == 200 && head->ended && head->n_got == 0 && head->n_datas == 0);
    cr_expect_str_eq(head->length, "6", "what a GET would get");
    hr_free(h);
}

/* ---- possible responses ---- */

static void says(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static char long_value[NJ_RESPONSE_HEAD_BYTES];

    if (path_is(req, "/says/nothing"))
        return;
    if (path_is(req, "/says/204")) {
        cr_expect_eq(nj_response_status(resp, 204), 0);
        cr_expect_eq(nj_response_write(resp, "x", 1), NJ_ERR_INVALID);
    } else if (path_is(req, "/says/fields")) {
        cr_expect_eq(nj_response_header(resp, "X", "1"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_header(resp, ":status", "1"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_header(resp, "", "1"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_header(resp, "x", "1\r\ny: 2"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_header(resp, "x", " 1"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_header(resp, "connection", "close"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_header(resp, "transfer-encoding", "gzip"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_header(resp, "content-length", "1a"), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_status(resp, 199), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_status(resp, 600), NJ_ERR_INVALID);
        memset(long_value, 'v', sizeof long_value - 1);
        cr_expect_eq(nj_response_header(resp, "x", long_value), 0);
        cr_expect_eq(nj_response_header(resp, "y", "1"), NJ_ERR_TOO_LARGE);
        cr_expect_eq(nj_response_status(resp, 418), 0);
        cr_expect_eq(nj_response_write(resp, "", 0), 0);
        cr_expect_eq(nj_response_status(resp, 200), NJ_ERR_INVALID, "the head is complete");
        cr_expect_eq(nj_response_header(resp, "x", "2"), NJ_ERR_INVALID);
    } else if (path_is(req, "/says/many")) {
        for (int i = 0; i < 48; i++)
            cr_expect_eq(nj_response_header(resp, "x", i == 47 ? "last" : "v"), 0);
        cr_expect_eq(nj_response_header(resp, "x", "v"), NJ_ERR_TOO_LARGE);
    } else if (path_is(req, "/says/trailers")) {
        nj_response_write(resp, "body", 4);
        cr_expect_eq(nj_response_trailer(resp, "trailer-x", "behind"), 0);
        cr_expect_eq(nj_response_trailer(resp, "content-length", "4"), NJ_ERR_INVALID);
    } else if (path_is(req, "/says/only-trailers")) {
        cr_expect_eq(nj_response_trailer(resp, "trailer-x", "behind"), 0);
    } else if (path_is(req, "/says/true")) {
        cr_expect_eq(nj_response_header(resp, "content-length", "4"), 0);
        cr_expect_eq(nj_response_write(resp, "12345", 5), NJ_ERR_INVALID);
        cr_expect_eq(nj_response_write(resp, "1234", 4), 0);
    } else if (path_is(req, "/says/short")) {
        nj_response_header(resp, "content-length", "4");
        nj_response_write(resp, "123", 3);
    } else if (path_is(req, "/says/half")) {
        nj_response_write(resp, "123", 3);
        nj_sleep(NJ_MS);
        nj_response_reset(resp);
        cr_expect_eq(nj_response_write(resp, "4", 1), NJ_ERR_INVALID);
    } else if (path_is(req, "/says/early")) {
        nj_response_header(resp, "x", "early");
        nj_response_flush(resp);
        nj_sleep(NJ_SEC);
        nj_response_write(resp, "late", 4);
    }
}

static const struct nj_route says_routes[] = {
    {.path = "/says/*", .type = NJ_BLOCKING, .handle = says},
};

/* Sentences 262, 281, 307, 330. */
Test(conn_handler_tasks, responses)
{
    struct hr *h = hr_start(hr_new(says_routes, 1));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *nothing = hr_reply_of(c, hr_get(c, "/says/nothing"));
    struct hr_reply *no_content = hr_reply_of(c, hr_get(c, "/says/204"));
    struct hr_reply *fields = hr_reply_of(c, hr_get(c, "/says/fields"));
    struct hr_reply *many = hr_reply_of(c, hr_get(c, "/says/many"));
    struct hr_reply *trailers = hr_reply_of(c, hr_get(c, "/says/trailers"));
    struct hr_reply *only = hr_reply_of(c, hr_get(c, "/says/only-trailers"));
    struct hr_reply *exact = hr_reply_of(c, hr_get(c, "/says/true"));
    struct hr_reply *too_short = hr_reply_of(c, hr_get(c, "/says/short"));
    struct hr_reply *half = hr_reply_of(c, hr_get(c, "/says/half"));
    struct hr_reply *early = hr_reply_of(c, hr_get(c, "/says/early"));

    hr_settle(h);
    cr_expect(early->status == 200 && !strcmp(early->x, "early") && !early->ended);
    hr_run(h, 2 * NJ_SEC);
    cr_expect(nothing->status == 200 && !strcmp(nothing->length, "0") && nothing->ended);
    cr_expect(no_content->status == 204 && !*no_content->length && no_content->ended);
    cr_expect(fields->status == 418 && strlen(fields->x) > 60 && fields->ended);
    cr_expect(many->status == 200 && !strcmp(many->x, "last"));
    cr_expect_str_eq(trailers->body, "body");
    cr_expect_str_eq(trailers->trailer, "behind");
    cr_expect(trailers->ended && trailers->n_heads == 2 && !*trailers->length);
    cr_expect(only->ended && only->n_heads == 2 && !strcmp(only->trailer, "behind"));
    cr_expect(exact->ended && !strcmp(exact->length, "4") && !strcmp(exact->body, "1234"));
    cr_expect(!too_short->ended && too_short->error == NGHTTP2_INTERNAL_ERROR);
    cr_expect(!half->ended && half->n_got == 3 && half->error == NGHTTP2_INTERNAL_ERROR);
    cr_expect_str_eq(early->body, "late");
    cr_expect(early->ended && !*early->length);
    hr_free(h);
}

/* ---- bodies that are too large ---- */

static int64_t last_read;

static void reads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[5000];

    while ((last_read = nj_request_read(req, buf, sizeof buf)) > 0)
        ;
    if (arg && last_read < 0)
        nj_response_status(resp, 400);
}

static const struct nj_route small_bodies[] = {
    {.path = "/reads", .type = NJ_BLOCKING, .handle = reads, .body_max_bytes = 20000},
    {.path = "/own", .type = NJ_BLOCKING, .handle = reads, .body_max_bytes = 20000, .arg = "own"},
};

Test(conn_handler_tasks, bodies_too_large)
{
    struct hr *h = hr_start(hr_new(small_bodies, 2));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *fits = hr_reply_of(c, hr_post(c, "/reads", 20000));

    hr_settle(h);
    cr_expect(fits->status == 200 && last_read == 0);
    struct hr_reply *told =
        hr_reply_of(c, hr_ask(c, "POST", "/reads", 20001, 20001, "content-length", "20001"));
    hr_settle(h);
    cr_expect(told->status == 413 && last_read == 0, "no handler saw it");
    struct hr_reply *longer = hr_reply_of(c, hr_post(c, "/reads", 300000));
    hr_settle(h);
    cr_expect(longer->status == 413 && last_read == NJ_ERR_TOO_LARGE && longer->closed);
    struct hr_reply *own = hr_reply_of(c, hr_post(c, "/own", 30000));
    hr_settle(h);
    cr_expect_eq(own->status, 400, "a handler may say it its own way");
    hr_free(h);
}

/* ---- handlers that must not wait ---- */

static int refused[4];

/* EWYK 5.31, EWYK 5.33 */
static void must_not(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static char much[NJ_RESPONSE_BUFFER_BYTES + 1];
    struct nj_event event = {0};
    char c;

    cr_expect(nj_must_not_block());
    refused[0] = nj_sleep(1);
    refused[1] = nj_await(&event, 1);
    refused[2] = (int)nj_request_read(req, &c, 1);
    refused[3] = nj_response_write(resp, much, sizeof much);
    cr_expect_eq(nj_response_write(resp, much, 1), 0);
}

static void which(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, nj_must_not_block() ? "tagged" : "free", nj_must_not_block() ? 6 : 4);
}

static void parks(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(NJ_SEC);
    cr_expect(!nj_must_not_block(), "the tag is the fiber's own: EWYK 5.32");
}

static const struct nj_route tags[] = {
    {.path = "/must-not", .type = NJ_NON_BLOCKING, .handle = must_not},
    {.path = "/either", .type = NJ_EITHER, .handle = which},
    {.path = "/parks", .type = NJ_BLOCKING, .handle = parks},
};

Test(conn_handler_tasks, must_not_block)
{
    struct hr *h = hr_new(tags, 3);
    h->config.conns.fibers_max = 1;
    hr_start(h);
    struct hr_client *c = hr_connect(h);

    struct hr_reply *a = hr_reply_of(c, hr_ask(c, "POST", "/must-not", 10, 0, NULL, NULL));
    hr_settle(h);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(refused[i], NJ_ERR_WOULD_BLOCK, "call %d: %d", i, refused[i]);
    cr_expect(a->status == 200 && a->n_got == 1 && rig_byte(0) == a->body[0]);
    nj_shard_publish(h->r->s);
    nj_shard_publish(h->r->s); /* nothing is counted twice */
    cr_expect_eq(rig_count(h->r, NJ_C_handler_would_block), 4);
    cr_expect_eq(hr_class(h, 0)->n_would_block, 4);
    struct hr_reply *free_one = hr_reply_of(c, hr_get(c, "/either"));
    hr_settle(h);
    hr_get(c, "/parks");
    hr_settle(h);
    struct hr_reply *tagged = hr_reply_of(c, hr_get(c, "/either"));
    hr_settle(h);
    hr_run(h, 2 * NJ_SEC);
    cr_expect_str_eq(free_one->body, "free");
    cr_expect_str_eq(tagged->body, "tagged");
    cr_expect_eq(hr_class(h, 1)->n[NJ_MODE_PIC], 1);
    cr_expect_eq(hr_class(h, 1)->n[NJ_MODE_EPC_INLINE], 1);
    hr_free(h);
}

/* ---- callbacks ---- */

/* Echo without a stack: bytes that were read but not yet written are stored here. */
static struct echo {
    uint8_t held[4096];
    uint32_t n_held, at;
    bool eof;
    int gone, rooms;
} echoed;

static void echo_on(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct echo *e = arg;

    for (;;) {
        if (e->at < e->n_held) {
            int64_t n = nj_response_try_write(resp, e->held + e->at, e->n_held - e->at);
            if (n <= 0)
                return;
            e->at += (uint32_t)n;
            continue;
        }
        int64_t n = nj_request_read(req, e->held, sizeof e->held);
        if (n == 0)
            nj_response_end(resp);
        if (n <= 0)
            return;
        e->n_held = (uint32_t)n;
        e->at = 0;
    }
}

static void echo_room(struct nj_request *req, struct nj_response *resp, void *arg)
{
    echoed.rooms++;
    echo_on(req, resp, arg);
}

static void echo_gone(struct nj_request *req, struct nj_response *resp, void *arg)
{
    echoed.gone++;
    cr_expect_eq(nj_response_try_write(resp, "x", 1), NJ_ERR_CANCELLED);
}

static void echo(struct nj_request *req, struct nj_response *resp, void *arg)
{
    memset(&echoed, 0, sizeof echoed);
    nj_response_defer(resp);
    nj_request_on_body(req, echo_on, &echoed);
    nj_response_on_writable(resp, echo_room, &echoed);
    nj_response_on_cancelled(resp, echo_gone, &echoed);
}

static void tick(struct nj_request *req, struct nj_response *resp, void *arg)
{
    int *n = arg;

    nj_response_try_write(resp, "tick\n", 5);
    if (++*n == 3)
        nj_response_end(resp);
    else
        nj_response_on_timer(resp, 100 * NJ_MS, tick, arg);
}

static int n_ticks;

static void ticks(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_ticks = 0;
    nj_response_defer(resp);
    nj_response_on_timer(resp, 100 * NJ_MS, tick, &n_ticks);
}

static const struct nj_route kept[] = {
    {.method = "POST", .path = "/echo", .type = NJ_NON_BLOCKING, .handle = echo},
    {.path = "/ticks", .type = NJ_NON_BLOCKING, .handle = ticks},
};

Test(conn_handler_tasks, callbacks_echo)
{
    struct hr *h = hr_start(hr_new(kept, 2));
    struct hr_options narrow = {.window = 1u << 20};
    struct hr_client *c = hr_connect_with(h, &narrow);
    struct hr_reply *a = hr_reply_of(c, hr_post(c, "/echo", 3000000));

    hr_settle(h);
    cr_expect(a->status == 200 && a->n_got == 3000000 && a->ended && !a->wrong, "%d: %lu, %lu",
              a->status, a->n_sent, a->n_got);
    cr_expect_gt(echoed.rooms, 0);
    cr_expect_eq(echoed.gone, 0, "it ended first");
    cr_expect_eq(hr_class(h, 0)->n_would_block, 0, "it is called when there is more to read");
    hr_free(h);
}

Test(conn_handler_tasks, callbacks_time_and_the_end)
{
    struct hr *h = hr_start(hr_new(kept, 2));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/ticks"));

    hr_run(h, 230 * NJ_MS);
    cr_expect(a->n_got == 10 && !a->ended);
    hr_run(h, 100 * NJ_MS);
    cr_expect_str_eq(a->body, "tick\ntick\ntick\n");
    cr_expect(a->ended);
    int32_t id = hr_ask(c, "POST", "/echo", 10, 5, NULL, NULL);
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, id)->n_got, 5);
    hr_reset(c, id);
    hr_settle(h);
    cr_expect_eq(echoed.gone, 1);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_get(c, "/ticks"); /* the shard ends with an armed timer */
    hr_settle(h);
    hr_free(h);
}

/* ---- workers ---- */

static int on_lcore;
static pthread_t lcore;
static int too_much;

static void errand(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static uint8_t buf[NJ_WORKER_RESPONSE_BYTES];
    int64_t n;

    on_lcore += pthread_equal(pthread_self(), lcore) != 0;
    cr_expect(!nj_must_not_block());
    cr_expect_eq(nj_sleep(1), 0);
    nj_response_header(resp, "x", "worker");
    while ((n = nj_request_read(req, buf, 1000)) > 0)
        cr_expect_eq(nj_response_write(resp, buf, (size_t)n), 0);
    if (arg) {
        too_much = nj_response_write(resp, buf, sizeof buf);
        too_much += nj_response_write(resp, buf, 1);
        nj_response_reset(resp);
    }
}

static const struct nj_route errands[] = {
    {.path = "/errand", .type = NJ_OS_BLOCKING, .handle = errand},
    {.path = "/too-much", .type = NJ_OS_BLOCKING, .handle = errand, .arg = "much"},
    {.path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
};

/* EWYK 5.59: the complete request goes to a worker, the complete response comes back; meanwhile the
 * lcore continues. */
Test(conn_handler_tasks, workers)
{
    struct hr *h = hr_start(hr_new(errands, 3));
    struct hr_client *c = hr_connect(h);
    lcore = pthread_self();

    struct hr_reply *get = hr_reply_of(c, hr_get(c, "/errand"));
    int32_t id = hr_ask(c, "POST", "/errand", 900000, 400000, NULL, NULL);
    struct hr_reply *post = hr_reply_of(c, id);
    hr_settle(h);
    cr_expect(get->status == 200 && !strcmp(get->length, "0") && !strcmp(get->x, "worker"));
    cr_expect(post->status == 0 && h->r->s->conns.handlers.exchanges->n_on_worker == 0,
              "it goes when it is whole");
    hr_send_more(c, id, 500000);
    hr_settle(h);
    cr_expect(post->status == 200 && post->n_got == 900000 && !post->wrong && post->ended);
    cr_expect_str_eq(post->length, "900000");
    struct hr_reply *large = hr_reply_of(c, hr_post(c, "/errand", NJ_WORKER_REQUEST_BYTES + 1));
    struct hr_reply *much = hr_reply_of(c, hr_get(c, "/too-much"));
    hr_settle(h);
    cr_expect_eq(large->status, 413);
    cr_expect(much->error == NGHTTP2_INTERNAL_ERROR && too_much == NJ_ERR_TOO_LARGE);
    cr_expect_eq(on_lcore, 0);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_PEC_WORKER], 3);
    hr_free(h);
}

Test(conn_handler_tasks, workers_are_full_or_late)
{
    struct hr *h = hr_new(errands, 3);
    h->jobs_max = 3;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    int32_t id[5];

    h->workers_slow = true;
    for (int i = 0; i < 4; i++)
        id[i] = hr_get(c, "/errand");
    id[4] = hr_ask(c, "POST", "/errand", 10, 0, NULL, NULL);
    hr_settle(h);
    hr_send_more(c, id[4], 10); /* only now it may be sent */
    hr_settle(h);
    for (int i = 3; i < 5; i++)
        cr_expect(hr_reply_of(c, id[i])->status == 503 &&
                      !strcmp(hr_reply_of(c, id[i])->retry_after, "1"),
                  "request %d", i);
    cr_expect_eq(rig_count(h->r, NJ_C_exchange_rejected), 2);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_REJECTED], 2);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_PEC_WORKER], 0, "they are not home");
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/hello"));
    hr_settle(h);
    cr_expect_eq(a->status, 200);
    cr_expect_eq(h->r->s->conns.handlers.exchanges->n_on_worker, 3);
    hr_reset(c, id[0]); /* its stream closes meanwhile */
    hr_settle(h);
    cr_expect_eq(h->r->s->conns.handlers.exchanges->n_on_worker, 3);
    hr_run(h, 100 * NJ_SEC); /* slow workers do not count against the client */
    cr_expect(!c->p->got_rst);
    h->workers_slow = false;
    hr_settle(h);
    cr_expect(hr_reply_of(c, id[0])->status == 0, "thrown away");
    cr_expect(hr_reply_of(c, id[1])->status == 200 && hr_reply_of(c, id[2])->status == 200);
    cr_expect_eq(hr_class(h, 0)->n[NJ_MODE_PEC_WORKER], 3);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    h->workers_slow = true; /* the shard ends with one exchange on a worker */
    hr_get(c, "/errand");
    hr_get(c, "/errand");
    hr_settle(h);
    hr_free(h);
}

/* A request that waits for its body before it goes to a worker may end at any time. */
Test(conn_handler_tasks, over_before_it_went)
{
    struct hr *h = hr_start(hr_new(errands, 3));
    struct hr_client *c = hr_connect(h), *d = hr_connect(h);
    int32_t id = hr_ask(c, "POST", "/errand", 1000, 500, NULL, NULL);

    hr_ask(d, "POST", "/errand", 1000, 500, NULL, NULL);
    hr_settle(h);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 2);
    hr_reset(c, id);
    hr_settle(h);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 1);
    hr_free(h); /* with the other one */
}

/* The workers stop before the shard does. */
Test(conn_handler_tasks, workers_stop)
{
    struct hr *h = hr_start(hr_new(errands, 3));
    struct hr_client *c = hr_connect(h);

    h->workers_slow = true;
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/errand"));
    int32_t id = hr_get(c, "/errand");
    hr_settle(h);
    hr_reset(c, id);
    hr_settle(h);
    h->workers_stopped = true;
    hr_settle(h);
    cr_expect_eq(a->status, 503);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
}
