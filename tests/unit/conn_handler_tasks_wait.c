/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that wait for windows, bodies, time and events, and are cancelled. */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"

#define BODY 100000u

static uint8_t pattern[4 * BODY];

static void fill_pattern(void)
{
    for (uint32_t i = 0; i < sizeof pattern; i++)
        pattern[i] = rig_byte(i);
}

/* ---- handlers ---- */

static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello\n", 6);
}

static void big(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect_eq(nj_response_write(resp, pattern, BODY), 0);
}

/* Reads to the end and responds with the error found. */
static void sink(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t buf[3000];
    uint64_t at = 0;
    int64_t n;
    bool wrong = false;

    while ((n = nj_request_read(req, buf, sizeof buf)) > 0)
        for (int64_t i = 0; i < n; i++)
            wrong |= buf[i] != rig_byte(at++);
    cr_expect_eq(n, 0);
    cr_expect_eq(at, BODY);
    nj_response_write(resp, wrong ? "wrong" : "right", 5);
}

static const struct nj_route stuck[] = {
    {.method = "GET", .path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
    {.method = "GET", .path = "/big", .type = NJ_BLOCKING, .handle = big},
    {.method = "POST", .path = "/sink", .type = NJ_BLOCKING, .handle = sink},
    {.method = "GET", .path = "/either", .type = NJ_EITHER, .handle = hello},
};

static struct hr *start(uint32_t n_fibers)
{
    struct hr *h = hr_new(stuck, NJ_ARRAY_LEN(stuck));
    fill_pattern();
    h->config.conns.fibers_max = n_fibers;
    return hr_start(h);
}

/* While every stack is in use: control frames, NON_BLOCKING and EITHER continue, on this connection
 * and on others, at a fixed time. EWYK 5.13, EWYK 5.16, EWYK 5.56 */
static void others_go_on(struct hr *h, struct hr_client *stuck_one)
{
    struct hr_client *other = hr_connect(h);
    struct hr_reply *a = hr_reply_of(other, hr_get(other, "/hello"));
    struct hr_reply *b = hr_reply_of(other, hr_get(other, "/either"));
    unsigned pings = stuck_one->n_pings;

    nghttp2_submit_ping(stuck_one->s, 0, NULL);
    hr_step(h);
    cr_expect_eq(stuck_one->n_pings, pings + 1, "in one step");
    hr_settle(h);
    cr_expect(a->status == 200 && a->ended);
    cr_expect(b->status == 200 && b->ended);
    cr_expect_eq(nj_ewyk_gauges(h->r->s->conns.handlers.ewyk).n_fibers_in_use,
                 h->config.conns.fibers_max, "all are stuck");
}

static void all_came(struct hr_client *c, const int32_t *id, uint32_t n, uint64_t n_bytes)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct hr_reply *a = hr_reply_of(c, id[i]);
        cr_expect(a->status == 200 && a->ended && a->n_got == n_bytes, "stream %d: %d, %lu", id[i],
                  a->status, (unsigned long)a->n_got);
    }
}

/* More handlers than stacks, all blocked by a window of 0; one WINDOW_UPDATE lets all continue.
 * EWYK 5.12, EWYK 5.14 */
static void stuck_on_windows(uint32_t n_fibers, bool session)
{
    enum { MORE = 50 };
    struct hr *h = start(n_fibers);
    struct hr_options o = {
        .window = session ? 1u << 30 : 1, .no_auto = true, .session_add = session ? 0 : 1u << 30};
    struct hr_client *c = hr_connect_with(h, &o);
    uint32_t n = n_fibers + MORE;
    int32_t id[128];

    hr_settle(h);
    for (uint32_t i = 0; i < n; i++)
        id[i] = hr_get(c, "/big");
    hr_settle(h);
    others_go_on(h, c);
    for (uint32_t i = 0; i < n; i++)
        cr_expect(!hr_reply_of(c, id[i])->ended);
    if (session) {
        nghttp2_submit_window_update(c->s, 0, 0, 1 << 30);
    } else { /* RFC 9113 6.9.2: a new initial window counts for all streams */
        nghttp2_settings_entry e = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
        nghttp2_submit_settings(c->s, 0, &e, 1);
    }
    hr_settle(h);
    all_came(c, id, n, BODY);
    for (uint32_t i = 0; i < n; i++)
        cr_expect(!hr_reply_of(c, id[i])->wrong);
    const struct nj_task_class *k = hr_class(h, 1);
    cr_expect_eq(k->n[NJ_MODE_EPC_PARKED], n_fibers);
    cr_expect_eq(k->n[NJ_MODE_PEC_QUEUE], MORE);
    hr_free(h);
}

Test(conn_handler_tasks_wait, stuck_on_the_session_window)
{
    stuck_on_windows(1, true);
    stuck_on_windows(2, true);
    stuck_on_windows(5, true);
}

Test(conn_handler_tasks_wait, stuck_on_windows_of_streams)
{
    stuck_on_windows(1, false);
    stuck_on_windows(5, false);
}

/* The same for request bodies: they come in an unfavourable order, and all arrive. EWYK 5.15 */
static void stuck_on_bodies(uint32_t n_fibers)
{
    enum { MORE = 50, PIECE = 20000 };
    struct hr *h = start(n_fibers);
    struct hr_client *c = hr_connect(h);
    uint32_t n = n_fibers + MORE;
    int32_t id[128];

    for (uint32_t i = 0; i < n; i++)
        id[i] = hr_ask(c, "POST", "/sink", BODY, 0, NULL, NULL);
    hr_settle(h);
    others_go_on(h, c);
    for (uint32_t at = 0; at < BODY; at += PIECE) /* those without a stack first */
        for (uint32_t i = n; i-- > 0;) {
            hr_send_more(c, id[i], PIECE);
            hr_settle(h);
        }
    all_came(c, id, n, 5);
    for (uint32_t i = 0; i < n; i++)
        cr_expect_str_eq(hr_reply_of(c, id[i])->body, "right");
    hr_free(h);
}

Test(conn_handler_tasks_wait, stuck_on_bodies)
{
    stuck_on_bodies(1);
    stuck_on_bodies(2);
    stuck_on_bodies(5);
}

/* Each request that waits for a stack has sent more than its share of any small window; those with
 * a stack still get theirs. */
Test(conn_handler_tasks_wait, bodies_of_those_who_wait_leave_room)
{
    enum { N = 120 };
    struct hr *h = start(2);
    struct hr_client *c = hr_connect(h);
    int32_t id[N];

    for (uint32_t i = 0; i < N; i++)
        id[i] = hr_ask(c, "POST", "/sink", BODY, 0, NULL, NULL);
    hr_settle(h);
    for (uint32_t i = N; i-- > 2;) {
        hr_send_more(c, id[i], BODY);
        hr_settle(h);
    }
    cr_expect_eq(hr_reply_of(c, id[2])->n_sent, BODY);
    hr_send_more(c, id[0], BODY);
    hr_send_more(c, id[1], BODY);
    hr_settle(h);
    all_came(c, id, N, 5);
    hr_free(h);
}

/* ---- too many ---- */

/* EWYK 5.3, EWYK 5.49: refused with retry-after, and the connection continues. */
Test(conn_handler_tasks_wait, too_many_are_refused)
{
    struct hr *h = hr_new(stuck, NJ_ARRAY_LEN(stuck));
    fill_pattern();
    h->config.conns.fibers_max = 1;
    h->config.conns.handlers_queue_max = 3;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    int32_t id[7];

    for (uint32_t i = 0; i < 6; i++)
        id[i] = hr_ask(c, "POST", "/sink", BODY, i < 4 ? 0 : BODY, NULL, NULL);
    hr_settle(h);
    for (uint32_t i = 0; i < 6; i++) {
        const struct hr_reply *a = hr_reply_of(c, id[i]);
        cr_expect_eq(a->status, i < 4 ? 0 : 503, "request %u", i);
        if (i >= 4)
            cr_expect(a->ended && !strcmp(a->retry_after, "1") && !strcmp(a->length, "0"));
    }
    cr_expect_eq(hr_class(h, 2)->n[NJ_MODE_REJECTED], 2);
    cr_expect_eq(rig_count(h->r, NJ_C_exchange_rejected), 2);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 4,
                 "nothing is left of them");
    for (uint32_t i = 0; i < 4; i++)
        hr_send_more(c, id[i], BODY);
    hr_settle(h);
    all_came(c, id, 4, 5);
    cr_expect_gt(nghttp2_session_get_remote_window_size(c->s),
                 (int32_t)(NJ_H2_ROUTES_WINDOW_BYTES / 2 - 6 * BODY));
    hr_free(h);
}

/* ---- the stream ends while they wait ---- */

enum { AT_SLEEP, AT_READ, AT_AWAIT, AT_WRITE, N_AT };

static struct {
    int at;     /* the place to wait at */
    int parked; /* it was reached */
    int over;   /* and passed */
    int rc[8];  /* results then, and afterwards */
    struct nj_event never;
} life;

static void waiter(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char c;
    int i = 0;

    life.parked++;
    if (life.at == AT_SLEEP)
        life.rc[i++] = nj_sleep(1000 * NJ_SEC);
    if (life.at == AT_READ)
        life.rc[i++] = (int)nj_request_read(req, &c, 1);
    if (life.at == AT_AWAIT)
        life.rc[i++] = nj_await(&life.never, 0);
    if (life.at == AT_WRITE)
        life.rc[i++] = nj_response_write(resp, pattern, sizeof pattern);
    life.rc[i++] = nj_sleep(1);
    life.rc[i++] = (int)nj_request_read(req, &c, 1);
    life.rc[i++] = nj_await(&life.never, 1);
    life.rc[i++] = nj_response_write(resp, "x", 1);
    life.rc[i++] = nj_response_flush(resp);
    life.rc[i++] = (int)nj_response_try_write(resp, "x", 1);
    life.rc[i++] = nj_response_header(resp, "a", "b");
    cr_expect(nj_request_path(req).n_bytes == 7, "the request is still there");
    life.over++;
}

static const struct nj_route waiters[] = {
    {.path = "/waiter", .type = NJ_BLOCKING, .handle = waiter},
};

enum { BY_RST_STREAM, BY_TCP_RESET, BY_ABORT, BY_FIN_OF_SHARD, BY_GARBAGE, N_BY };

static void end_it(struct hr *h, struct hr_client *c, int32_t id, int by)
{
    uint8_t bad[16];

    switch (by) {
    case BY_RST_STREAM:
        hr_reset(c, id);
        break;
    case BY_TCP_RESET:
        rig_seg(h->r, c->p, c->p->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
        break;
    case BY_ABORT:
        nj_tcp_abort_all(&h->r->s->tcp, h->r->now);
        break;
    case BY_GARBAGE: /* DATA on stream 0 */
        rig_send(h->r, c->p, bad, rig_h2(bad, 0, 0, 0, "abc", 3));
        break;
    default:
        break;
    }
}

/* EWYK 5.51, EWYK 5.58: at every place where a handler can wait, with every way in which its stream
 * can end. The debug build poisons freed memory, so a stale pointer is detected. */
Test(conn_handler_tasks_wait, told_that_it_is_over)
{
    fill_pattern();
    for (int at = 0; at < N_AT; at++)
        for (int by = 0; by < N_BY; by++) {
            struct hr *h = hr_new(waiters, 1);
            h->config.conns.fibers_max = 2;
            hr_start(h);
            struct hr_options narrow = {.no_auto = true};
            struct hr_client *c = hr_connect_with(h, &narrow);
            memset(&life, 0, sizeof life);
            life.at = at;
            int32_t id = hr_ask(c, "POST", "/waiter", 10, 0, NULL, NULL);
            hr_settle(h);
            cr_assert(life.parked == 1 && life.over == 0, "at %d", at);
            end_it(h, c, id, by);
            if (by == BY_FIN_OF_SHARD) {
                hr_free(h);
                cr_expect_eq(life.over, 1, "at %d by %d", at, by);
            } else {
                hr_settle(h);
                cr_expect_eq(life.over, 1, "at %d by %d", at, by);
                cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
                cr_expect(nj_ewyk_is_idle(h->r->s->conns.handlers.ewyk));
                hr_free(h);
            }
            for (int i = 0; i < 8; i++)
                cr_expect_eq(life.rc[i], NJ_ERR_CANCELLED, "at %d by %d, call %d: %d", at, by, i,
                             life.rc[i]);
        }
}

/* Waits for everything possible, in turn. */
static void mixed(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t buf[10000];
    int64_t n;
    int turn = 0, rc = 0;

    life.parked++;
    while (rc == 0 && (n = nj_request_read(req, buf, sizeof buf)) > 0) {
        struct nj_event event = {0};
        rc = nj_response_write(resp, buf, (size_t)n);
        if (rc == 0 && ++turn % 2 == 0)
            rc = nj_sleep(NJ_MS);
        if (rc == 0 && turn % 5 == 0)
            rc = nj_await(&event, NJ_MS) == NJ_ERR_TIMEOUT ? 0 : NJ_ERR_CANCELLED;
    }
    if (rc == 0 && n == 0)
        nj_response_trailer(resp, "trailer-x", "all");
    life.over++;
}

static const struct nj_route mixes[] = {
    {.path = "/mixed", .type = NJ_BLOCKING, .handle = mixed},
};

/* Two streams at once; one ends after `n_steps`. Returns whether both had ended before. */
static bool end_mixed(int by, unsigned n_steps)
{
    struct hr *h = hr_new(mixes, 1);
    h->config.conns.fibers_max = 2;
    hr_start(h);
    struct hr_options narrow = {.window = 40000};
    struct hr_client *c = hr_connect_with(h, &narrow), *d = hr_connect_with(h, &narrow);

    memset(&life, 0, sizeof life);
    int32_t id = hr_post(c, "/mixed", BODY), other = hr_post(d, "/mixed", BODY);
    for (unsigned i = 0; i < n_steps; i++) {
        hr_step(h);
        h->r->now += 300 * NJ_US;
    }
    bool over = hr_reply_of(c, id)->ended && hr_reply_of(d, other)->ended;
    end_it(h, c, id, by);
    hr_run(h, NJ_SEC);
    const struct hr_reply *b = hr_reply_of(d, other);
    if (by != BY_ABORT)
        cr_expect(b->ended && b->n_got == BODY && !b->wrong && !strcmp(b->trailer, "all"),
                  "the other one, at step %u by %d: %lu", n_steps, by, (unsigned long)b->n_got);
    cr_expect_eq(life.parked, life.over, "step %u by %d", n_steps, by);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
    return over;
}

/* EWYK 5.58: at any moment. EWYK 5.61: the rig checks that all pools are full afterwards. */
Test(conn_handler_tasks_wait, over_at_any_moment)
{
    static const int ways[] = {BY_RST_STREAM, BY_TCP_RESET, BY_ABORT, BY_GARBAGE};
#if defined(__SANITIZE_THREAD__) /* all moments take 19 s */
    enum { EACH = 4 };
#else
    enum { EACH = 1 };
#endif

    for (size_t w = 0; w < NJ_ARRAY_LEN(ways); w++) {
        unsigned n = 1 + (unsigned)w % EACH;
        while (n < 400 && !end_mixed(ways[w], n))
            n += EACH;
        cr_expect(n > 20 && n < 400, "ended at moment %u", n);
    }
}

/* A request that waits for a stack when its stream ends never starts. */
Test(conn_handler_tasks_wait, over_before_it_began)
{
    struct hr *h = hr_new(waiters, 1);
    h->config.conns.fibers_max = 1;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    memset(&life, 0, sizeof life);
    int32_t a = hr_get(c, "/waiter"), b = hr_get(c, "/waiter");

    hr_settle(h);
    cr_assert_eq(life.parked, 1);
    hr_reset(c, b);
    hr_settle(h);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 1, "its place is free");
    hr_reset(c, a);
    hr_settle(h);
    cr_expect(life.parked == 1 && life.over == 1);
    cr_expect_eq(nj_exchanges_n_open(h->r->s->conns.handlers.exchanges), 0);
    hr_free(h);
}

/* ---- waiting for each other, and for long ---- */

static struct nj_event meeting;
static int met;

static void meet(struct nj_request *req, struct nj_response *resp, void *arg)
{
    met = nj_await(&meeting, 2 * NJ_SEC);
    nj_response_write(resp, met == 0 ? "met" : "alone", met == 0 ? 3 : 5);
}

static void ring(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_event_set(&meeting);
}

static void nap(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(300 * NJ_SEC);
    nj_response_write(resp, "nap", 3);
}

static const struct nj_route meetings[] = {
    {.path = "/meet", .handle = meet}, /* untyped: EWYK 5.24 */
    {.path = "/ring", .type = NJ_NON_BLOCKING, .handle = ring},
    {.path = "/nap", .type = NJ_BLOCKING, .handle = nap},
    {.path = "/big", .type = NJ_BLOCKING, .handle = big},
};

Test(conn_handler_tasks_wait, events)
{
    struct hr *h = hr_start(hr_new(meetings, NJ_ARRAY_LEN(meetings)));
    struct hr_client *c = hr_connect(h), *d = hr_connect(h);

    memset(&meeting, 0, sizeof meeting);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/meet"));
    hr_run(h, NJ_SEC);
    cr_expect_eq(a->status, 0);
    struct hr_reply *b = hr_reply_of(d, hr_get(d, "/ring"));
    hr_settle(h);
    cr_expect(b->status == 200 && !strcmp(b->length, "0"), "200 and empty");
    cr_expect_str_eq(a->body, "met");
    memset(&meeting, 0, sizeof meeting);
    a = hr_reply_of(c, hr_get(c, "/meet"));
    hr_run(h, 1990 * NJ_MS);
    cr_expect_eq(a->status, 0);
    hr_run(h, 20 * NJ_MS);
    cr_expect_eq(met, NJ_ERR_TIMEOUT);
    cr_expect_str_eq(a->body, "alone");
    hr_free(h);
}

/* A slow handler does not count as a stalled client; a handler that waits for the client does. */
Test(conn_handler_tasks_wait, who_stalls)
{
    struct hr *h = hr_start(hr_new(meetings, NJ_ARRAY_LEN(meetings)));
    struct hr_options narrow = {.no_auto = true};
    struct hr_client *c = hr_connect(h), *d = hr_connect_with(h, &narrow);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/nap"));

    hr_get(d, "/big");
    hr_run(h, 299 * NJ_SEC);
    cr_expect(!c->p->got_rst && !c->p->got_fin);
    cr_expect(d->p->got_rst, "it takes nothing");
    hr_run(h, 2 * NJ_SEC);
    cr_expect_str_eq(a->body, "nap");
    hr_free(h);
}

static int64_t left_with;

static void read_all(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[3000];

    while ((left_with = nj_request_read(req, buf, sizeof buf)) > 0)
        ;
}

static void talk_on(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, pattern, BODY);
}

static const struct nj_route slow_ones[] = {
    {.path = "/read_all", .type = NJ_BLOCKING, .handle = read_all},
    {.path = "/talk", .type = NJ_BLOCKING, .handle = talk_on},
};

/* A client that only sends PINGs, or reads a byte now and then, keeps its streams no longer than a
 * silent one; a client that reads NJ_SEND_BYTES_MIN of its response in each minute, or sends a
 * little of its body, may continue. */
Test(conn_handler_tasks_wait, what_counts_as_getting_on)
{
    struct hr *h = hr_start(hr_new(slow_ones, NJ_ARRAY_LEN(slow_ones)));
    struct hr_options narrow = {.window = 1000, .no_auto = true};
    struct hr_client *pings = hr_connect_with(h, &narrow), *takes = hr_connect_with(h, &narrow);
    struct hr_client *sends = hr_connect(h), *naps = hr_connect(h);
    struct hr_client *sips = hr_connect_with(h, &narrow);
    int32_t taken = hr_get(takes, "/talk"), sipped = hr_get(sips, "/talk");
    int32_t sent = hr_ask(sends, "POST", "/read_all", BODY, 1, NULL, NULL);

    hr_get(pings, "/talk");
    int32_t napped = hr_ask(naps, "POST", "/read_all", BODY, 1, NULL, NULL);
    hr_settle(h);
    for (int i = 0; i < 4; i++) {
        hr_run(h, 40 * NJ_SEC);
        if (!pings->p->got_rst)
            nghttp2_submit_ping(pings->s, 0, NULL);
        if (!naps->p->got_rst)
            nghttp2_submit_ping(naps->s, 0, NULL);
        nghttp2_submit_window_update(takes->s, 0, taken, NJ_SEND_BYTES_MIN);
        if (!sips->p->got_rst)
            nghttp2_submit_window_update(sips->s, 0, sipped, 1);
        hr_send_more(sends, sent, 1);
        hr_settle(h);
        cr_expect(!takes->p->got_rst && !sends->p->got_rst, "%d", i);
        cr_expect_eq(pings->p->got_rst, i > 0, "%d", i);
        cr_expect_eq(hr_reply_of(naps, napped)->error, i > 0 ? NGHTTP2_CANCEL : 0, "%d", i);
        cr_expect_eq(sips->p->got_rst, i > 0, "%d", i);
    }
    cr_expect_eq(hr_reply_of(takes, taken)->n_got, 1000 + 4 * NJ_SEND_BYTES_MIN);
    cr_expect_eq(rig_count(h->r, NJ_C_conn_timeout), 2);
    cr_expect_eq(rig_count(h->r, NJ_C_send_timeout), 2);
    cr_expect_eq(rig_count(h->r, NJ_C_body_timeout), 1);
    hr_free(h);
}

static const struct nj_route farewell[] = {
    {.path = "/read_all", .type = NJ_BLOCKING, .handle = read_all},
    {.path = "/pack", .type = NJ_OS_BLOCKING, .handle = read_all},
    {.path = "/nap", .type = NJ_BLOCKING, .handle = nap},
    {.path = "/meet", .type = NJ_BLOCKING, .handle = meet},
};

/* A FIN ends incomplete requests; earlier requests are answered, but the server does not wait for
 * ever: the client may be gone, which shows only when something is sent. EWYK 5.58 */
Test(conn_handler_tasks_wait, the_peer_half_closes)
{
    struct hr *h = hr_start(hr_new(farewell, NJ_ARRAY_LEN(farewell)));
    struct hr_client *c = hr_connect(h), *d = hr_connect(h);
    const struct nj_exchanges *set = h->r->s->conns.handlers.exchanges;

    memset(&meeting, 0, sizeof meeting);
    left_with = 0;
    hr_ask(c, "POST", "/read_all", 20000, 10000, NULL, NULL);
    hr_ask(c, "POST", "/pack", 20000, 10000, NULL, NULL);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/meet"));
    struct hr_reply *b = hr_reply_of(d, hr_get(d, "/nap"));
    hr_settle(h);
    cr_expect_eq(nj_exchanges_n_open(set), 4);
    rig_fin(h->r, c->p);
    rig_fin(h->r, d->p);
    hr_settle(h);
    cr_expect_eq(nj_exchanges_n_open(set), 2);
    cr_expect_eq(left_with, NJ_ERR_CANCELLED);
    hr_run(h, 3 * NJ_SEC);
    cr_expect_str_eq(a->body, "alone");
    hr_run(h, 60 * NJ_SEC);
    cr_expect_eq(nj_exchanges_n_open(set), 0);
    cr_expect_eq(b->status, 0);
    hr_free(h);
}

/* Shutdown waits for handlers as for streams. */
Test(conn_handler_tasks_wait, drain)
{
    struct hr *h = hr_start(hr_new(meetings, NJ_ARRAY_LEN(meetings)));
    struct hr_client *c = hr_connect(h);
    struct hr_reply *a = hr_reply_of(c, hr_get(c, "/nap"));

    hr_settle(h);
    nj_conns_drain(&h->r->s->conns, h->r->now);
    hr_run(h, 100 * NJ_SEC);
    cr_expect(c->goaway && nj_shard_has_unfinished_work(h->r->s) && a->status == 0);
    hr_run(h, 201 * NJ_SEC);
    cr_expect_str_eq(a->body, "nap");
    cr_expect(c->p->got_fin && !c->p->got_rst);
    hr_free(h);
}

static void dozes(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect_eq(nj_sleep(10 * NJ_MS), 0);
}

/* EWYK 5.45: memory used by many handlers serves a few; the rest is returned when none waits. */
Test(conn_handler_tasks_wait, stacks_of_a_crowd_go_back)
{
    static const struct nj_route route = {.path = "/doze", .type = NJ_BLOCKING, .handle = dozes};
    struct hr *h = hr_start(hr_new(&route, 1));
    struct hr_client *c = hr_connect(h);
    struct nj_ewyk *ewyk = h->r->s->conns.handlers.ewyk;

    for (int i = 0; i < 60; i++)
        hr_get(c, "/doze");
    hr_settle(h);
    cr_assert_eq(nj_ewyk_gauges(ewyk).n_fibers_high_water, 60);
    for (int i = 0; i < 4; i++)
        hr_run(h, NJ_SEC);
    cr_assert_eq(nj_ewyk_gauges(ewyk).n_fibers_in_use, 0);
    cr_expect_eq(nj_ewyk_trim(ewyk, NJ_FIBERS_KEEP, UINT32_MAX), 0, "done already");
    cr_expect_eq(nj_ewyk_trim(ewyk, 0, UINT32_MAX), NJ_FIBERS_KEEP);
    hr_free(h);
}
