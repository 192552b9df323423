/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission to fibers: shares of clients, peers that keep handlers waiting, and requests that need
 * no fiber. All tests use the default number of fibers. */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"

#define STACKS   NJ_FIBERS_DEFAULT
#define OTHER(i) (RIG_PEER_IP + 20 + (i))

static const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};
static const struct hr_options shut = {.window = 1000, .no_auto = true};

static void read_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[1000];

    while (nj_request_read(req, buf, sizeof buf) > 0)
        ;
    nj_response_write(resp, "heard", 5);
}

static void write_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static uint8_t piece[16384];

    for (int i = 0; i < 64; i++)
        if (nj_response_write(resp, piece, sizeof piece) != 0)
            return;
}

/* At 1,000 bytes per second. */
static void trickle(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_rate(resp, 1000);
    write_body(req, resp, arg);
}

static void read_and_write(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello", 5);
    nj_response_flush(resp);
    read_body(req, resp, arg);
}

static void wait_long(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(1000 * NJ_SEC);
}

static void quick(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "quick", 5);
}

static const struct nj_route routes[] = {
    {.path = "/read_body", .type = NJ_BLOCKING, .handle = read_body},
    {.path = "/write_body", .type = NJ_BLOCKING, .handle = write_body},
    {.path = "/wait", .type = NJ_BLOCKING, .handle = wait_long},
    {.path = "/brief", .type = NJ_BLOCKING, .handle = quick},
    {.path = "/non", .type = NJ_NON_BLOCKING, .handle = quick},
    {.path = "/either", .type = NJ_EITHER, .handle = quick},
    {.path = "/os", .type = NJ_OS_BLOCKING, .handle = quick},
    {.path = "/read_and_write", .type = NJ_BLOCKING, .handle = read_and_write},
    {.path = "/trickle", .type = NJ_BLOCKING, .handle = trickle},
};

static struct hr *start(void)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));

    h->r->http.min_upload_rate = NJ_MIN_UPLOAD_RATE;
    h->r->http.body_deadline = NJ_BODY_DEADLINE_S * (nj_ns)NJ_SEC;
    return hr_start(h);
}

static struct hr_client *connect_from(struct hr *h, uint32_t ip, const struct hr_options *o)
{
    struct hr_client *c = hr_connect_from(h, ip, o);
    hr_settle(h);
    return c;
}

static uint32_t n_in_use(const struct hr *h)
{
    return nj_ewyk_gauges(h->r->s->conns.handlers.ewyk).n_fibers_in_use;
}

/* Time until the response; at most `most`. */
static nj_ns until_ended(struct hr *h, const struct hr_reply *a, nj_ns most)
{
    nj_ns begun = h->r->now;

    while (!a->ended && !a->closed && h->r->now - begun < most)
        hr_run(h, 5 * NJ_MS);
    return h->r->now - begun;
}

/* This many requests of a client, one after the other, each within a second. */
static void answered_at_once(struct hr *h, struct hr_client *c, int n)
{
    for (int i = 0; i < n; i++) {
        const struct hr_reply *a = hr_reply_of(c, hr_get(c, "/brief"));
        nj_ns took = until_ended(h, a, 15 * NJ_SEC);
        cr_expect(a->status == 200 && took <= NJ_SEC, "request %d: %d after %lu ms, %lu evicted", i,
                  a->status, took / NJ_MS, rig_count(h->r, NJ_C_stack_evicted));
    }
}

/* ---- slow bodies ---- */

struct slow {
    struct hr_client *c;
    uint32_t n; /* streams to keep open */
    int32_t first, id[HR_STREAMS];
};

static void slow_ask(struct slow *s, uint32_t i)
{
    if (nghttp2_session_get_next_stream_id(s->c->s) / 2 < HR_STREAMS)
        s->id[i] = hr_ask(s->c, "POST", "/read_body", 100000, 1, NULL, NULL);
}

static void slow_open(struct hr *h, struct slow *s, uint32_t ip, uint32_t n)
{
    *s = (struct slow){.c = connect_from(h, ip, &wide), .n = n};
    for (uint32_t i = 0; i < n; i++)
        slow_ask(s, i);
    hr_settle(h);
}

/* Sends one byte of each body, and replaces ended requests. */
static void slow_go_on(struct slow *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (hr_reply_of(s->c, s->id[i])->closed)
            slow_ask(s, i);
        else
            hr_send_more(s->c, s->id[i], 1);
    }
}

/* Honest requests, one after the other, while all others send a byte per 0.8 s. */
static void honest_are_answered(struct hr *h, struct slow *s, uint32_t n_slow)
{
    struct hr_client *c = connect_from(h, OTHER(50), &wide);
    nj_ns worst = 0;

    for (int i = 0; i < 12; i++) {
        const struct hr_reply *a =
            hr_reply_of(c, i % 2 ? hr_get(c, "/brief") : hr_post(c, "/read_body", 5000));
        nj_ns took = until_ended(h, a, 10 * NJ_SEC);
        cr_expect_eq(a->status, 200, "request %d: %d after %lu ms", i, a->status, took / NJ_MS);
        cr_expect_leq(took, NJ_SEC, "request %d: %lu ms", i, took / NJ_MS);
        worst = took > worst ? took : worst;
        for (uint32_t k = 0; k < n_slow; k++)
            slow_go_on(&s[k]);
        hr_run(h, 800 * NJ_MS);
    }
    printf("worst %lu ms, %lu evicted\n", worst / NJ_MS, rig_count(h->r, NJ_C_stack_evicted));
}

/* Three addresses: one with as many fibers as it may use beside others, and two with the remainder.
 */
Test(conn_fiber_admission, slow_bodies_of_three_addresses)
{
    struct hr *h = start();
    struct slow s[4];

    slow_open(h, &s[0], OTHER(0), 128);
    slow_open(h, &s[1], OTHER(0), 64);
    slow_open(h, &s[2], OTHER(2), 32);
    slow_open(h, &s[3], OTHER(3), 32);
    cr_assert_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    honest_are_answered(h, s, 4);
    cr_expect_gt(rig_count(h->r, NJ_C_stack_evicted), 0);
    cr_expect(!hr_reply_of(s[3].c, s[3].id[0])->closed, "it has no more than its share");
    hr_free(h);
}

/* One address, alone, uses all fibers. */
Test(conn_fiber_admission, slow_bodies_of_one_address)
{
    struct hr *h = start();
    struct slow s[2];

    slow_open(h, &s[0], OTHER(0), 128);
    slow_open(h, &s[1], OTHER(0), 128);
    cr_assert_eq(n_in_use(h), STACKS, "%u: no other client needs a fiber", n_in_use(h));
    hr_run(h, 5 * NJ_SEC);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_evicted), 0);
    honest_are_answered(h, s, 2);
    hr_free(h);
}

/* Every slow body ends after the body timeout. A fast enough body does not, nor one with a response
 * under way. */
Test(conn_fiber_admission, slow_bodies_end)
{
    struct hr *h = start();
    struct hr_client *c = connect_from(h, OTHER(0), &wide);
    int32_t slow = hr_ask(c, "POST", "/read_body", 100000, 1, NULL, NULL);
    int32_t packed = hr_ask(c, "POST", "/os", 100000, 1, NULL, NULL);
    int32_t fast = hr_ask(c, "POST", "/read_body", 1000000, 1, NULL, NULL);
    int32_t chat = hr_ask(c, "POST", "/read_and_write", 100000, 1, NULL, NULL);
    nj_ns begun = h->r->now, at[2] = {0};

    while (h->r->now - begun < 200 * NJ_SEC) {
        hr_run(h, 800 * NJ_MS);
        hr_send_more(c, slow, 1);
        hr_send_more(c, packed, 1);
        hr_send_more(c, fast, NJ_MIN_UPLOAD_RATE * 8 / 10 + 40);
        hr_send_more(c, chat, 1);
        for (int i = 0; i < 2; i++)
            if (!at[i] && (hr_reply_of(c, i ? packed : slow)->closed ||
                           hr_reply_of(c, i ? packed : slow)->ended))
                at[i] = h->r->now - begun;
    }
    for (int i = 0; i < 2; i++)
        cr_expect(at[i] >= 60 * NJ_SEC && at[i] <= 69 * NJ_SEC, "%d: %lu ms", i, at[i] / NJ_MS);
    cr_expect_eq(hr_reply_of(c, packed)->status, 408);
    cr_expect(!hr_reply_of(c, fast)->closed && !hr_reply_of(c, chat)->closed);
    cr_expect_eq(rig_count(h->r, NJ_C_body_slow), 2);
    cr_expect_eq(rig_count(h->r, NJ_C_body_timeout), 0);
    hr_free(h);
}

Test(conn_fiber_admission, bodies_have_a_deadline)
{
    struct hr *h = start();
    struct hr_client *c = connect_from(h, OTHER(0), &wide);
    int32_t id = hr_ask(c, "POST", "/read_body", 10000000, 1, NULL, NULL);
    nj_ns begun = h->r->now;

    while (!hr_reply_of(c, id)->closed && h->r->now - begun < 2 * 3600 * NJ_SEC) {
        hr_send_more(c, id, 10 * NJ_MIN_UPLOAD_RATE / 8);
        hr_run(h, NJ_SEC);
    }
    nj_ns took = h->r->now - begun;
    cr_expect(took >= 3600 * NJ_SEC && took <= 3610 * NJ_SEC, "%lu s", took / NJ_SEC);
    hr_free(h);
}

/* ---- slow readers ---- */

Test(conn_fiber_admission, slow_readers)
{
    struct hr *h = start();
    struct hr_client *a = connect_from(h, OTHER(0), &shut), *b = connect_from(h, OTHER(0), &shut);

    for (int i = 0; i < 128; i++) {
        hr_get(a, "/write_body");
        hr_get(b, "/write_body");
    }
    hr_settle(h);
    cr_assert_eq(n_in_use(h), STACKS);
    hr_run(h, 2 * NJ_SEC);
    answered_at_once(h, connect_from(h, OTHER(1), &wide), 5);
    cr_expect_gt(rig_count(h->r, NJ_C_stack_evicted), 0);
    hr_free(h);
}

/* ... and peers that acknowledge nothing: RST_STREAM cannot be sent. */
Test(conn_fiber_admission, readers_whose_tcp_is_blocked)
{
    struct hr *h = start();
    struct hr_client *a = connect_from(h, OTHER(0), &wide), *b = connect_from(h, OTHER(0), &wide);

    a->p->manual = b->p->manual = true;
    for (int i = 0; i < 128; i++) {
        hr_get(a, "/write_body");
        hr_get(b, "/write_body");
    }
    hr_settle(h);
    cr_assert_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    hr_run(h, 2 * NJ_SEC);
    answered_at_once(h, connect_from(h, OTHER(1), &wide), 5);
    cr_expect_gt(rig_count(h->r, NJ_C_stack_evicted), 0);
    hr_free(h);
}

/* The slowest are evicted first: faster peers keep their fibers. */
Test(conn_fiber_admission, the_slowest_first)
{
    struct hr *h = start();
    struct hr_client *a = connect_from(h, OTHER(0), &wide), *b = connect_from(h, OTHER(0), &wide);
    int32_t id[128];

    for (int i = 0; i < 128; i++) {
        id[i] = hr_ask(a, "POST", "/read_body", 100000, i < 120 ? 500 : 1, NULL, NULL);
        hr_ask(b, "POST", "/read_body", 100000, 500, NULL, NULL);
    }
    hr_run(h, NJ_SEC);
    cr_assert_eq(n_in_use(h), STACKS);
    struct hr_client *c = connect_from(h, OTHER(1), &wide);
    for (int i = 0; i < 8; i++)
        hr_get(c, "/wait");
    hr_run(h, NJ_SEC);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_evicted), 8);
    for (int i = 0; i < 128; i++) {
        cr_expect_eq(hr_reply_of(a, id[i])->closed, i >= 120, "%d", i);
        if (i >= 120)
            cr_expect_eq(hr_reply_of(a, id[i])->error, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    hr_free(h);
}

/* ---- what waits for something else ---- */

/* Handlers that do not wait for their peer keep their fibers. A queued request gets 503 after a
 * time, and the last quarter is reserved once other clients exist. */
Test(conn_fiber_admission, handlers_that_are_busy_stay)
{
    struct hr *h = start();
    struct hr_client *a = connect_from(h, OTHER(0), &wide), *b = connect_from(h, OTHER(0), &wide);
    struct hr_client *c = connect_from(h, OTHER(1), &wide);

    for (int i = 0; i < 128; i++)
        hr_get(a, "/wait");
    hr_settle(h);
    const struct hr_reply *r = hr_reply_of(c, hr_get(c, "/brief"));
    hr_settle(h);
    cr_expect_eq(r->status, 200);
    for (int i = 0; i < 120; i++)
        hr_get(b, "/wait");
    hr_settle(h);
    cr_expect_eq(n_in_use(h), STACKS - STACKS / NJ_FIBERS_RESERVE_PART, "others are there");
    r = hr_reply_of(c, hr_get(c, "/brief"));
    hr_settle(h);
    cr_expect_eq(r->status, 200);
    hr_run(h, NJ_FIBERS_WAIT_MAX - 200 * NJ_MS);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_timeout), 0);
    hr_run(h, 500 * NJ_MS);
    unsigned n_refused = 0;
    for (int i = 0; i < 120; i++)
        n_refused += b->reply[i].status == 503 && !strcmp(b->reply[i].retry_after, "1");
    cr_expect_eq(n_refused + n_in_use(h), 128 + 120, "%u refused", n_refused);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_timeout), n_refused);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_evicted), 0);
    hr_free(h);
}

/* Eight addresses hold all fibers with handlers that wait for a timer. Another client gets one when
 * these have had theirs for a while; each of the eight keeps its share. */
Test(conn_fiber_admission, handlers_that_wait_for_timers)
{
    enum { ADDRESSES = 8 };
    struct hr *h = start();
    struct hr_client *a[ADDRESSES];

    for (int i = 0; i < ADDRESSES; i++) {
        a[i] = connect_from(h, OTHER(i), &wide);
        for (uint32_t k = 0; k < STACKS / ADDRESSES; k++)
            hr_get(a[i], "/wait");
    }
    hr_settle(h);
    cr_assert_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    struct hr_client *c = connect_from(h, OTHER(ADDRESSES), &wide);
    const struct hr_reply *r = hr_reply_of(c, hr_get(c, "/brief"));
    hr_settle(h);
    cr_expect_eq(r->status, 0, "no fiber is free");
    hr_run(h, NJ_FIBERS_OWN_GRACE + NJ_FIBERS_GRACE + 2 * NJ_FIBERS_SCAN_EVERY);
    cr_expect_eq(r->status, 200, "%d", r->status);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_evicted), 1);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_timeout), 0);
    hr_free(h);
}

static uint32_t n_closed(const struct hr_client *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < HR_STREAMS; i++)
        n += c->reply[i].closed && c->reply[i].error == NGHTTP2_ENHANCE_YOUR_CALM;
    return n;
}

/* The limit of a response's rate keeps handlers waiting: they come last, even if their client is
 * furthest above its share. */
Test(conn_fiber_admission, handlers_that_wait_for_the_server)
{
    struct hr *h = start();
    struct hr_client *a = connect_from(h, OTHER(0), &wide), *b = connect_from(h, OTHER(1), &wide);

    for (int i = 0; i < 100; i++)
        hr_get(a, "/trickle");
    hr_settle(h);
    for (int i = 0; i < 92; i++)
        hr_get(b, "/wait");
    hr_settle(h);
    for (uint32_t i = 192; i < STACKS; i++) /* the reserved ones */
        hr_get(i % 32 ? h->client[h->n_clients - 1] : connect_from(h, OTHER(i), &wide), "/wait");
    hr_run(h, 4 * NJ_SEC);
    cr_assert_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    struct hr_client *c = connect_from(h, OTHER(2), &wide);
    for (int i = 0; i < 8; i++)
        hr_get(c, "/wait");
    hr_run(h, NJ_SEC);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_evicted), 8);
    cr_expect_eq(n_closed(a), 0, "%u", n_closed(a));
    cr_expect_eq(n_closed(b), 8, "%u", n_closed(b));
    hr_free(h);
}

/* EWYK 5.13, EWYK 5.20, EWYK 5.21, EWYK 5.56: requests that need no fiber do not wait behind those
 * that do, on the same connection, whatever their client uses. */
Test(conn_fiber_admission, others_of_a_connection_do_not_wait)
{
    struct hr *h = start();
    struct hr_client *a = connect_from(h, OTHER(0), &wide), *b = connect_from(h, OTHER(0), &wide);
    struct hr_client *c = connect_from(h, OTHER(1), &wide);

    hr_get(c, "/wait"); /* another client exists */
    for (int i = 0; i < 128; i++)
        hr_get(a, "/wait");
    for (int i = 0; i < 100; i++)
        hr_get(b, "/wait");
    hr_settle(h);
    cr_assert_eq(n_in_use(h), STACKS - STACKS / NJ_FIBERS_RESERVE_PART, "%u", n_in_use(h));
    const struct hr_reply *non = hr_reply_of(b, hr_get(b, "/non"));
    const struct hr_reply *either = hr_reply_of(b, hr_get(b, "/either"));
    const struct hr_reply *os = hr_reply_of(b, hr_get(b, "/os"));
    const struct hr_reply *site = hr_reply_of(b, hr_get(b, "/index.html"));
    hr_settle(h);
    cr_expect_eq(non->status, 200);
    cr_expect_eq(either->status, 200);
    cr_expect_eq(os->status, 200);
    cr_expect_eq(site->status, 200);
    cr_expect_eq(hr_class(h, 5)->n[NJ_MODE_PIC], 1, "not on a stack that is for others");
    hr_free(h);
}

/* Queued requests end: by a reset, with their connection, with the server. */
Test(conn_fiber_admission, gone_while_they_wait)
{
    struct hr *h = start();
    struct hr_client *a = connect_from(h, OTHER(0), &wide), *b = connect_from(h, OTHER(0), &wide),
                     *c = connect_from(h, OTHER(0), &wide), *d = connect_from(h, OTHER(1), &wide);
    const struct nj_admission *st = &h->r->s->conns.admission;
    int32_t id[10];

    for (int i = 0; i < 128; i++) {
        hr_get(a, "/wait");
        hr_get(b, "/wait");
    }
    hr_settle(h);
    for (int i = 0; i < 10; i++)
        id[i] = hr_get(c, "/wait");
    for (int i = 0; i < 10; i++)
        hr_get(d, "/wait");
    hr_settle(h);
    cr_assert_eq(st->n_waiting, 20, "%u", st->n_waiting);
    hr_reset(c, id[0]);
    hr_reset(c, id[5]);
    hr_settle(h);
    cr_expect_eq(st->n_waiting, 18);
    rig_seg(h->r, c->p, c->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    hr_settle(h);
    cr_expect_eq(st->n_waiting, 10);
    hr_reset(a, 1); /* frees an entry for one of d's */
    hr_settle(h);
    cr_expect_eq(st->n_waiting, 9);
    cr_expect_eq(n_in_use(h), STACKS);
    hr_free(h);
}

/* ---- many clients, many requests ---- */

static void slow_go_on_all(struct hr *h, struct slow *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < s[i].n; j++) {
            const struct hr_reply *a = hr_reply_of(s[i].c, s[i].id[j]);
            if (a->closed || a->ended)
                slow_ask(&s[i], j);
            else
                hr_send_more(s[i].c, s[i].id[j], 1);
        }
}

/* Claims are found whatever the number of queued clients, including clients at their share. */
Test(conn_fiber_admission, slow_bodies_of_80_addresses)
{
    enum { N = 80 };
    struct hr *h = start();
    static struct slow s[N];

    for (uint32_t i = 0; i < N; i++)
        slow_open(h, &s[i], OTHER(100) + i, i < 16 ? 4 : 3);
    cr_assert_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    for (int k = 0; k < 3; k++) { /* ... and some that are queued */
        for (uint32_t i = 0; i < N; i++)
            slow_ask(&s[i], s[i].n++);
        hr_run(h, 3 * NJ_SEC);
    }
    cr_assert_geq(h->r->s->conns.admission.n_waiting, N);
    struct hr_client *c = connect_from(h, OTHER(50), &wide);
    for (int k = 0; k < 4; k++) {
        slow_go_on_all(h, s, N);
        answered_at_once(h, c, 1);
    }
    hr_free(h);
}

/* Requests of one client fill the queue, but not for others. */
Test(conn_fiber_admission, a_queue_that_one_client_fills)
{
    enum { N = 35 };
    struct hr *h = start();
    static struct slow s[N];

    for (uint32_t i = 0; i < N; i++)
        slow_open(h, &s[i], OTHER(0), 126);
    cr_assert_eq(h->r->s->conns.admission.n_waiting, NJ_HANDLERS_QUEUE_MAX);
    uint64_t n_rejected = rig_count(h->r, NJ_C_exchange_rejected);
    cr_expect_eq(n_rejected, N * 126 - STACKS - NJ_HANDLERS_QUEUE_MAX, "%lu", n_rejected);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_displaced), 0, "no other client needs an entry");
    answered_at_once(h, connect_from(h, OTHER(50), &wide), 5);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_displaced), 1);
    hr_free(h);
}

/* Two clients end up with half of the queue each. */
Test(conn_fiber_admission, a_queue_is_divided)
{
    enum { QUEUE = 100 };
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    struct slow s[5];
    unsigned n_refused = 0;

    h->config.conns.fibers_max = 4;
    h->config.conns.handlers_queue_max = QUEUE;
    hr_start(h);
    slow_open(h, &s[0], OTHER(0), 4 + QUEUE);
    cr_assert_eq(h->r->s->conns.admission.n_waiting, QUEUE);
    slow_open(h, &s[1], OTHER(1), 70);
    cr_expect_eq(h->r->s->conns.admission.n_waiting, QUEUE);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_displaced), QUEUE / 2);
    cr_expect_eq(rig_count(h->r, NJ_C_exchange_rejected), QUEUE / 2 + 20);
    for (uint32_t i = 0; i < s[0].n; i++) {
        const struct hr_reply *a = hr_reply_of(s[0].c, s[0].id[i]);
        n_refused += a->status == 503;
        cr_expect_eq(a->status == 503, i >= 4 + QUEUE / 2, "%u: the last that came go first", i);
        cr_expect(a->status != 503 || !strcmp(a->retry_after, "1"));
    }
    cr_expect_eq(n_refused, QUEUE / 2);
    hr_free(h);
}

/* ---- identity of a client ---- */

static struct nj_policy policy;

static uint32_t proxies(const void *ctx, const struct nj_addr *a)
{
    struct nj_addr proxy = nj_addr_from_v4(htonl(OTHER(0)));
    return nj_addr_eq(a, &proxy);
}

static struct hr *start_with_policy(void)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->config.conns.policy = &policy;
    return hr_start(h);
}

/* Requests of different classes belong to one client. */
Test(conn_fiber_admission, classes_of_one_client)
{
    policy = nj_policy_none;
    policy.n_classes = 2;
    policy.classes[1] = (struct nj_class){.name = "read_body", .slot = 1, .slot_gen = 1};
    policy.n_rules = 1;
    policy.rules[0] = (struct nj_class_rule){.class_index = 1, .path_prefix = NJ_STR("/read_body")};
    struct hr *h = start_with_policy();
    struct hr_client *a = connect_from(h, OTHER(0), &wide);
    struct slow s;

    for (int i = 0; i < 128; i++)
        hr_get(a, "/wait");
    hr_settle(h);
    slow_open(h, &s, OTHER(0), 128);
    cr_expect_eq(n_in_use(h), STACKS, "%u: it is alone", n_in_use(h));
    hr_free(h);
}

/* A trusted proxy that does not name its client counts as many clients. */
Test(conn_fiber_admission, a_proxy_is_not_bounded)
{
    policy = nj_policy_none;
    policy.lists = proxies;
    policy.trusted = 1;
    struct hr *h = start_with_policy();
    struct hr_client *c = connect_from(h, OTHER(1), &wide);
    struct slow s[2];

    hr_get(c, "/brief");
    hr_settle(h);
    slow_open(h, &s[0], OTHER(0), 128);
    slow_open(h, &s[1], OTHER(0), 128);
    cr_expect_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    answered_at_once(h, c, 5);
    hr_free(h);
}

/* ... and is evicted only if no other client can be. */
Test(conn_fiber_admission, a_proxy_is_ended_last)
{
    policy = nj_policy_none;
    policy.lists = proxies;
    policy.trusted = 1;
    struct hr *h = start_with_policy();
    struct slow s[3];

    slow_open(h, &s[0], OTHER(1), 100);
    slow_open(h, &s[1], OTHER(0), 78);
    slow_open(h, &s[2], OTHER(0), 78);
    cr_assert_eq(n_in_use(h), STACKS, "%u", n_in_use(h));
    hr_run(h, NJ_SEC);
    struct hr_client *c = connect_from(h, OTHER(2), &wide);
    for (int i = 0; i < 8; i++)
        hr_get(c, "/wait");
    hr_run(h, NJ_SEC);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_evicted), 8);
    for (int k = 0; k < 3; k++) {
        uint32_t n_ended = 0;
        for (uint32_t i = 0; i < s[k].n; i++)
            n_ended += hr_reply_of(s[k].c, s[k].id[i])->closed;
        cr_expect_eq(n_ended, k == 0 ? 8 : 0, "%d: %u", k, n_ended);
    }
    hr_free(h);
}

/* ---- other resources that one client must leave to others ---- */

/* Of 90 transactions one client has 80; another client gets one of the others. */
static void leaves_some(struct hr *h, struct nj_pool *pool)
{
    uint32_t n_max = pool->n_max;
    struct hr_client *c = connect_from(h, OTHER(1), &wide);
    struct slow s;

    pool->n_max = 90;
    slow_open(h, &s, OTHER(0), 100);
    cr_expect_eq(pool->n_used, 80, "%u", pool->n_used);
    cr_expect_eq(rig_count(h->r, NJ_C_client_share_limit), 20);
    const struct hr_reply *last = hr_reply_of(s.c, s.id[99]);
    cr_expect(last->status == 503 && !strcmp(last->retry_after, "1"), "%d", last->status);
    answered_at_once(h, c, 3);
    pool->n_max = n_max;
    hr_free(h);
}

Test(conn_fiber_admission, a_client_leaves_records)
{
    struct hr *h = start();
    leaves_some(h, &h->r->s->conns.txns.pool);
}

Test(conn_fiber_admission, a_client_leaves_exchanges)
{
    struct hr *h = start();
    leaves_some(h, &h->r->s->conns.handlers.exchanges->pool);
}
