/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that ignore errors, and clients that exploit them. */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"

static uint8_t piece[100000];

/* ---- HEAD where the body has no end ---- */

static int last;

static void endless(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint64_t n = 0;

    do
        last = nj_response_write(resp, piece, 1000);
    while (last == 0 && (n += 1000) < 64u * 1024 * 1024);
}

static const struct nj_route endless_ones[] = {
    {.method = "GET", .path = "/fiber", .type = NJ_BLOCKING, .handle = endless},
    {.method = "GET", .path = "/worker", .type = NJ_OS_BLOCKING, .handle = endless},
    {.method = "GET", .path = "/inline", .type = NJ_NON_BLOCKING, .handle = endless},
};

Test(conn_handler_tasks_adverse, head_of_a_body_without_end)
{
    static const int ends[] = {NJ_ERR_CANCELLED, NJ_ERR_TOO_LARGE, NJ_ERR_WOULD_BLOCK};
    struct hr *h = hr_start(hr_new(endless_ones, 3));
    struct hr_client *c = hr_connect(h);

    for (int i = 0; i < 3; i++) {
        struct hr_reply *a = hr_reply_of(c, hr_ask(c, "HEAD", endless_ones[i].path, 0, 0, 0, 0));
        last = 0;
        hr_settle(h);
        cr_expect_eq(last, ends[i], "%s: %d", endless_ones[i].path, last);
        cr_expect(a->closed && a->n_got == 0, "%s", endless_ones[i].path);
    }
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
}

/* ---- routes that were moved to the workers ---- */

static nj_ns hold_ns;
static unsigned n_heavy, n_pieces;

/* Like many handlers it only checks whether a write succeeded. */
static void heavy(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_heavy++;
    hr_here->clock += 50 * hold_ns;
    for (unsigned i = 0; i < n_pieces; i++) {
        if (nj_response_write(resp, piece, sizeof piece) != 0)
            return;
    }
}

static void compute(struct nj_request *req, struct nj_response *resp, void *arg)
{
    n_heavy++;
    hr_here->clock += hold_ns;
}

static const struct nj_route heavies[] = {
    {.path = "/heavy", .type = NJ_BLOCKING, .handle = heavy},
    {.path = "/compute", .type = NJ_NON_BLOCKING, .handle = compute},
    {.path = "/too-much", .type = NJ_OS_BLOCKING, .handle = heavy},
};

/* Bytes that a worker refused must not be missing in the middle of a 200. */
Test(conn_handler_tasks_adverse, more_than_a_worker_takes)
{
    struct hr *h = hr_start(hr_new(heavies, 3));
    struct hr_client *c = hr_connect(h);
    const struct nj_task_class *class_of = hr_class(h, 0);

    hold_ns = 300 * NJ_US;
    n_pieces = 50; /* 5 MB */
    struct hr_reply *os = hr_reply_of(c, hr_get(c, "/too-much"));
    hr_settle(h);
    cr_expect(os->error == NGHTTP2_INTERNAL_ERROR && !os->ended, "%d", os->status);

    n_pieces = 1; /* a route with short responses so far */
    for (int i = 0; i < 20 && class_of->type == NJ_BLOCKING; i++) {
        struct hr_reply *a = hr_reply_of(c, hr_get(c, "/heavy"));
        hr_settle(h);
        cr_expect_eq(a->n_got, 100000);
    }
    cr_assert_eq(class_of->type, NJ_OS_BLOCKING, "moved");
    n_pieces = 50;
    struct hr_reply *b = hr_reply_of(c, hr_get(c, "/heavy"));
    hr_settle(h);
    cr_expect(b->error == NGHTTP2_INTERNAL_ERROR && !b->ended, "%lu", (unsigned long)b->n_got);
    cr_expect_eq(class_of->type, NJ_BLOCKING, "and back");
    struct hr_reply *d = hr_reply_of(c, hr_get(c, "/heavy"));
    hr_settle(h);
    cr_expect(d->status == 200 && d->n_got == 5000000);
    cr_expect_eq(class_of->type, NJ_BLOCKING, "it stays");
    cr_expect(class_of->pinned);
    cr_expect_eq(hr_class(h, 2)->type, NJ_OS_BLOCKING);
    hr_free(h);
}

/* Requests that never reach a worker do not affect their route's expected response length. */
Test(conn_handler_tasks_adverse, peers_do_not_move_routes)
{
    struct hr *h = hr_start(hr_new(heavies, 3));
    struct hr_client *c = hr_connect(h);
    const struct nj_task_class *class_of = hr_class(h, 1);

    hold_ns = 300 * NJ_US;
    for (int i = 0; i < 20 && class_of->type == NJ_NON_BLOCKING; i++) {
        hr_get(c, "/compute");
        hr_settle(h);
    }
    cr_assert_eq(class_of->type, NJ_OS_BLOCKING);
    unsigned n_before = n_heavy;
    for (int i = 0; i < 30; i++) {
        int32_t id = hr_ask(c, "POST", "/compute", 1000, 500, NULL, NULL);
        hr_settle(h);
        hr_reset(c, id);
        hr_settle(h);
    }
    cr_expect_eq(n_heavy, n_before);
    cr_expect_eq(class_of->type, NJ_OS_BLOCKING);
    hr_free(h);
}

/* ---- peers that leave ---- */

static int told_gone;

static void on_gone(struct nj_request *req, struct nj_response *resp, void *arg)
{
    told_gone++;
}

static void keep(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    nj_response_on_cancelled(resp, on_gone, NULL);
}

static const struct nj_route keeps[] = {
    {.path = "/keep", .type = NJ_NON_BLOCKING, .handle = keep},
};

/* No bytes are sent to a client whose response never comes, so its disappearance would go
 * unnoticed. */
Test(conn_handler_tasks_adverse, who_has_left_is_asked)
{
    struct hr *h = hr_start(hr_new(keeps, 1));
    struct hr_client *c = hr_connect(h), *none = hr_connect(h);

    told_gone = 0;
    hr_get(c, "/keep");
    hr_settle(h);
    rig_fin(h->r, c->p);
    uint32_t seq = c->p->snd_nxt; /* nghttp2 would answer, which is not allowed after a FIN */
    rig_fin(h->r, none->p);
    hr_settle(h);
    cr_expect_eq(c->n_asked, 1);
    cr_expect_eq(none->n_asked, 0, "it is closed");
    cr_expect_eq(told_gone, 0, "it may read on");
    rig_seg(h->r, c->p, seq, NJ_TCP_RST, NULL, 0);
    hr_settle(h);
    cr_expect_eq(told_gone, 1);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
}

/* ---- heads ---- */

static void without_content(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static const char *const bad[] = {"a\r\nset-cookie: x", "\x01", "a\x7f",
                                      "a\x1b[0m",           " a",   "a\t"};

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect_eq(nj_response_header(resp, "x-bad", bad[i]), NJ_ERR_INVALID, "%zu", i);
    cr_expect_eq(nj_response_header(resp, "x", "a\tb \xc3\xa9"), 0);
    cr_expect_eq(nj_response_status(resp, arg ? 304 : 204), 0);
    cr_expect_eq(nj_response_header(resp, "content-length", "1234"), 0);
    cr_expect_eq(nj_response_write(resp, "a", 1), NJ_ERR_INVALID);
}

static const struct nj_route contentless[] = {
    {.path = "/204", .type = NJ_NON_BLOCKING, .handle = without_content},
    {.path = "/304", .type = NJ_NON_BLOCKING, .handle = without_content, .arg = "304"},
};

/* RFC 9110 8.6: a 304 may have the content-length of the 200, a 204 must have none. Sentences 262,
 * 291, 311. */
Test(conn_handler_tasks_adverse, no_content)
{
    struct hr *h = hr_start(hr_new(contentless, 2));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/204"));
    struct hr_reply *b = hr_reply_of(c, hr_get(c, "/304"));

    hr_settle(h);
    cr_expect(b->status == 304 && b->ended && !strcmp(b->length, "1234"), "%d", b->status);
    cr_expect(a->error == NGHTTP2_INTERNAL_ERROR, "it lied");
    hr_free(h);
}

/* ---- bodies that no handler reads ---- */

static void holds(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(3600 * NJ_SEC);
}

static void reads(struct nj_request *req, struct nj_response *resp, void *arg)
{
    int64_t n;

    while ((n = nj_request_read(req, piece, sizeof piece)) > 0)
        ;
    nj_response_write(resp, n == 0 ? "all" : "not", 3);
}

static const struct nj_route bodies[] = {
    {.path = "/holds", .type = NJ_BLOCKING, .handle = holds},
    {.path = "/reads", .type = NJ_BLOCKING, .handle = reads},
};

static unsigned n_open(struct hr_client *c, uint32_t n)
{
    unsigned n_left = 0;
    for (uint32_t i = 0; i < n; i++)
        n_left += !c->reply[i].closed;
    return n_left;
}

static void uploads(struct hr *h, struct hr_client *c, const char *who)
{
    struct hr_reply *a[3];

    for (int i = 0; i < 3; i++)
        a[i] = hr_reply_of(c, hr_post(c, "/reads", 2000000));
    hr_settle(h);
    for (int i = 0; i < 3; i++)
        cr_expect(a[i]->ended && !strcmp(a[i]->body, "all"), "%s: %d, error %u", who, a[i]->status,
                  a[i]->error);
}

/* Handlers of a few clients do not read their bodies. They hold at most their share, and other
 * bodies arrive, also of the same clients. */
Test(conn_handler_tasks_adverse, bodies_are_held)
{
    enum { HOARDERS = 6, STREAMS = 16 };
    struct hr *h = hr_start(hr_new(bodies, 2));
    struct nj_exchanges *set = h->r->s->conns.handlers.exchanges;
    struct hr_client *c[HOARDERS];

    nj_block_pool_close(set->bodies);
    set->bodies = nj_block_pool_new(16); /* 22 MiB; they want 8 MiB each */
    for (int i = 0; i < HOARDERS; i++) {
        c[i] = hr_connect_from(h, RIG_PEER_IP + 20 + (uint32_t)i, &(struct hr_options){0});
        hr_settle(h);
        for (int k = 0; k < STREAMS; k++)
            hr_post(c[i], "/holds", NJ_H2_STREAM_WINDOW_BYTES);
        hr_settle(h);
    }
    cr_expect_gt(rig_count(h->r, NJ_C_body_limit), 0);
    cr_expect_eq(rig_count(h->r, NJ_C_exchange_full), 0);
    for (int i = 0; i < HOARDERS; i++)
        cr_expect_gt(n_open(c[i], STREAMS), 2, "%d: %u", i, n_open(c[i], STREAMS));
    cr_expect_gt(nj_block_pool_bytes_left(set->bodies), 2u << 20);
    uploads(h, hr_connect(h), "one that reads");
    uploads(h, c[1], "one that holds");
    for (int i = 0; i < HOARDERS; i++)
        rig_seg(h->r, c[i]->p, c[i]->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    hr_step(h);
    hr_step(h);
    cr_expect_eq(nj_block_pool_in_use(set->bodies), 0);
    hr_free(h);
}

/* ---- handlers that do not listen ---- */

static unsigned n_heard;
static bool stop;

static void deaf(struct nj_request *req, struct nj_response *resp, void *arg)
{
    while (!stop && n_heard < 1000000) {
        nj_sleep(NJ_MS);
        nj_response_write(resp, "tick", 4);
        n_heard++;
    }
}

/* The same, without waiting once the buffer is full. */
static void stubborn(struct nj_request *req, struct nj_response *resp, void *arg)
{
    while (!stop && n_heard < 1000000) {
        nj_response_write(resp, piece, sizeof piece);
        n_heard++;
    }
}

/* The same while a body is expected. */
static void hopeful(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[100];

    while (!stop && n_heard < 1000000) {
        nj_request_read(req, buf, sizeof buf);
        n_heard++;
    }
}

static const struct nj_route deaf_ones[] = {
    {.path = "/deaf", .type = NJ_BLOCKING, .handle = deaf},
    {.path = "/stubborn", .type = NJ_BLOCKING, .handle = stubborn},
    {.path = "/hopeful", .type = NJ_BLOCKING, .handle = hopeful},
    {.path = "/keep", .type = NJ_NON_BLOCKING, .handle = keep},
};

/* Its stream is cancelled and it continues: it must not starve others. */
static void expect_deaf(const char *path)
{
    static const struct hr_options narrow = {.no_auto = true};
    struct hr *h = hr_start(hr_new(deaf_ones, NJ_ARRAY_LEN(deaf_ones)));
    struct hr_client *c = hr_connect_with(h, &narrow);
    int32_t id = hr_ask(c, "POST", path, 100, 0, NULL, NULL);

    n_heard = 0;
    stop = false;
    hr_settle(h);
    hr_reset(c, id);
    for (int i = 0; i < 50; i++)
        hr_step(h);
    unsigned n_before = n_heard;
    cr_expect(n_before > 0 && n_before < 1000, "%s: %u", path, n_before);
    hr_step(h);
    cr_expect(n_heard > n_before && n_heard <= n_before + 2, "%s: in turn", path);
    stop = true;
    hr_settle(h);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
}

Test(conn_handler_tasks_adverse, deaf_to_the_end_of_its_stream)
{
    expect_deaf("/deaf");
    expect_deaf("/stubborn");
    expect_deaf("/hopeful");
}

static struct nj_handlers left; /* for leak checkers */

/* Shutdown does not wait for them for ever: their stacks are left. */
Test(conn_handler_tasks_adverse, deaf_to_the_end_of_the_server)
{
    struct hr *h = hr_start(hr_new(deaf_ones, NJ_ARRAY_LEN(deaf_ones)));
    struct hr_client *c = hr_connect(h);
    struct nj_shard *s = h->r->s;
    const char *route = NULL;

    n_heard = 0;
    stop = false;
    for (uint32_t i = 0; i < 3; i++)
        hr_ask(c, "POST", deaf_ones[i].path, 100, 0, NULL, NULL);
    for (int i = 0; i < 50; i++)
        hr_step(h);
    nj_tcp_abort_all(&s->tcp, h->r->now);
    nj_conns_end(&s->conns);
    cr_expect_eq(nj_conns_stuck_fibers(&s->conns, &route), 3);
    cr_expect_str_eq(route, nj_routes_name(h->routes, 0));
    cr_expect_lt(n_heard, 10000);
    left = s->conns.handlers;
    hr_free(h);
}

/* A handler that ends after a few more calls gets them. */
Test(conn_handler_tasks_adverse, slow_to_leave)
{
    struct hr *h = hr_start(hr_new(deaf_ones, NJ_ARRAY_LEN(deaf_ones)));
    struct hr_client *c = hr_connect(h);
    const char *route = NULL;

    n_heard = 1000000 - 100;
    stop = false;
    hr_get(c, "/deaf");
    hr_settle(h);
    nj_conns_end(&h->r->s->conns);
    cr_expect_eq(nj_conns_stuck_fibers(&h->r->s->conns, &route), 0);
    cr_expect_eq(n_heard, 1000000);
    hr_free(h);
}
