/* SPDX-License-Identifier: BSD-3-Clause */
/* Timeouts of peers: with a frame, with a body, with reading a response. Each ends in time; a peer
 * that is merely slow does not time out. */
#include <criterion/criterion.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"

static void wait_long(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(1000 * NJ_SEC);
}

static void read_body(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[1000];

    while (nj_request_read(req, buf, sizeof buf) > 0)
        ;
    nj_response_write(resp, "heard", 5);
}

/* Responds first, then waits for more of the request. */
static void read_and_write(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello", 5);
    nj_response_flush(resp);
    read_body(req, resp, arg);
}

static const struct nj_route routes[] = {
    {.path = "/wait", .type = NJ_BLOCKING, .handle = wait_long},
    {.path = "/read_body", .type = NJ_BLOCKING, .handle = read_body},
    {.path = "/pack", .type = NJ_OS_BLOCKING, .handle = read_body},
    {.path = "/read_and_write", .type = NJ_BLOCKING, .handle = read_and_write},
};

static struct hr *start(uint64_t min_rate)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->r->http.min_rate = min_rate;
    return hr_start(h);
}

/* ---- frames that do not end ---- */

static uint32_t goaway_code(const struct rig_peer *p)
{
    const uint8_t *f = NULL;
    return rig_h2_frames(p, NGHTTP2_GOAWAY, &f) ? f[7] : UINT32_MAX;
}

/* The peer sends these bytes, one per `every`, until it gets FIN. Returns the time it took. */
static nj_ns dribble(struct rig *r, struct rig_peer *p, const uint8_t *b, uint32_t n, nj_ns every)
{
    nj_ns begun = r->now;

    for (uint32_t i = 0; i < 1000 && !p->got_fin && !p->got_rst; i++) {
        if (i < n)
            rig_send(r, p, b + i, 1);
        rig_run(r, every);
    }
    return r->now - begun;
}

/* A frame header of this type, then an endless payload. */
static uint32_t endless(uint8_t *b, uint32_t n_max, uint8_t type, uint32_t stream, uint32_t len)
{
    uint8_t payload[256];

    for (unsigned i = 0; i < sizeof payload; i++) /* fields of a header block, a: b */
        payload[i] = (uint8_t) "\x00\x01"
                               "a\x01"
                               "b"[i % 5];
    uint32_t n = rig_h2(b, type, 0, stream, payload, n_max - 9);
    b[1] = (uint8_t)(len >> 8);
    b[2] = (uint8_t)len;
    return n;
}

static void expect_calm(struct rig *r, const struct rig_peer *p, nj_ns took, nj_ns from, nj_ns to)
{
    cr_expect(took >= from && took <= to, "%lu ms", took / NJ_MS);
    cr_expect_eq(goaway_code(p), NGHTTP2_ENHANCE_YOUR_CALM);
    cr_expect_eq(rig_count(r, NJ_C_h2_abuse), 1);
}

Test(conn_request_timeouts, frames_that_dribble)
{
    static const uint8_t types[] = {NGHTTP2_HEADERS, NGHTTP2_PING, NGHTTP2_SETTINGS, 0x77};

    for (size_t i = 0; i < NJ_ARRAY_LEN(types); i++) {
        struct rig *r = rig_new();
        struct rig_peer *p = rig_connect_h2(r, 1000);
        uint8_t b[200];
        uint32_t len = types[i] == NGHTTP2_PING ? 8 : types[i] == NGHTTP2_SETTINGS ? 120 : 5000;
        uint32_t n = endless(b, 200, types[i], types[i] == NGHTTP2_HEADERS, len);
        nj_ns took = dribble(r, p, b, types[i] == NGHTTP2_PING ? 16 : n, 500 * NJ_MS);
        expect_calm(r, p, took, 10 * NJ_SEC, 10600 * NJ_MS);
        rig_free(r);
    }
}

/* CONTINUATION frames sent one by one belong to the same header block. */
Test(conn_request_timeouts, header_blocks_that_dribble)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    uint8_t b[40];
    nj_ns begun = r->now;

    rig_send(r, p, b, rig_h2(b, NGHTTP2_HEADERS, 1, 1, "\x82", 1));
    for (int i = 0; i < 100 && !p->got_fin; i++) {
        rig_run(r, NJ_SEC);
        rig_send(r, p, b,
                 rig_h2(b, NGHTTP2_CONTINUATION, 0, 1,
                        "\x00\x01"
                        "a\x01"
                        "b",
                        5));
    }
    expect_calm(r, p, r->now - begun, 10 * NJ_SEC, 11 * NJ_SEC);
    rig_free(r);
}

/* A peer may neither stop within the preface nor send it slowly. */
Test(conn_request_timeouts, frames_that_stop)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000), *q = rig_connect(r, 1001);
    uint8_t b[200];

    endless(b, 200, NGHTTP2_HEADERS, 1, 5000);
    rig_send(r, p, b, 100);
    rig_send(r, q, RIG_PREFACE, 20);
    rig_run(r, 9900 * NJ_MS);
    cr_expect(!p->got_fin && !q->got_fin);
    rig_run(r, 200 * NJ_MS);
    cr_expect(p->got_fin && q->got_fin);
    cr_expect_eq(goaway_code(p), NGHTTP2_ENHANCE_YOUR_CALM);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 2);
    rig_free(r);
}

/* An open stream does not extend the time, whether bytes arrive or not. */
Test(conn_request_timeouts, frames_beside_streams)
{
    for (int more = 0; more < 2; more++) {
        struct hr *h = start(0);
        struct rig *r = h->r;
        struct rig_peer *p = rig_connect_h2(r, 1000);
        uint8_t b[200];

        rig_get(r, p, 1, "/wait");
        rig_settle(r);
        endless(b, 200, NGHTTP2_HEADERS, 3, 5000);
        rig_send(r, p, b, 10);
        nj_ns took = dribble(r, p, b + 10, more ? 190 : 0, 500 * NJ_MS);
        expect_calm(r, p, took, 10 * NJ_SEC, more ? 10600 * NJ_MS : 18 * NJ_SEC);
        hr_free(h);
    }
}

/* Frames that end in time may be slow, and continue for ever. */
Test(conn_request_timeouts, slow_frames_are_fine)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    uint8_t b[17];

    for (int i = 0; i < 20; i++) {
        rig_h2(b, NGHTTP2_PING, 0, 0, "01234567", 8);
        for (int k = 0; k < 17; k++) {
            rig_send(r, p, b + k, 1);
            rig_run(r, 500 * NJ_MS);
        }
    }
    cr_expect(!p->got_fin && !p->got_rst);
    cr_expect_eq(rig_h2_frames(p, NGHTTP2_PING, NULL), 20);
    rig_free(r);
}

/* ---- bodies that do not come ---- */

/* 60 s, late by an eighth at most. */
static bool in_time(nj_ns took)
{
    return took >= 60 * NJ_SEC && took <= 68 * NJ_SEC;
}

Test(conn_request_timeouts, bodies_that_stop)
{
    struct hr *h = start(0);
    struct hr_client *c = hr_connect(h);
    int32_t packed = hr_ask(c, "POST", "/pack", 5000, 100, NULL, NULL);
    int32_t read = hr_ask(c, "POST", "/read_body", 5000, 100, NULL, NULL);
    int32_t talk = hr_ask(c, "POST", "/read_and_write", 5000, 100, NULL, NULL);
    int32_t slow = hr_ask(c, "POST", "/read_body", 5000, 100, NULL, NULL);
    nj_ns begun = h->r->now, at[3] = {0};
    const int32_t id[3] = {packed, read, talk};

    while (h->r->now - begun < 200 * NJ_SEC) {
        hr_run(h, 500 * NJ_MS);
        if ((h->r->now - begun) / NJ_MS % 20000 < 500)
            hr_send_more(c, slow, 10);
        for (int i = 0; i < 3; i++)
            if (!at[i] && (hr_reply_of(c, id[i])->closed || hr_reply_of(c, id[i])->ended))
                at[i] = h->r->now - begun;
    }
    for (int i = 0; i < 3; i++)
        cr_expect(in_time(at[i]), "%d: %lu ms", i, at[i] / NJ_MS);
    cr_expect_eq(hr_reply_of(c, packed)->status, 408, "no handler has started");
    cr_expect_eq(hr_reply_of(c, read)->error, NGHTTP2_CANCEL);
    cr_expect_eq(hr_reply_of(c, talk)->error, NGHTTP2_CANCEL);
    cr_expect(!hr_reply_of(c, slow)->closed, "some of it comes");
    cr_expect_eq(rig_count(h->r, NJ_C_body_timeout), 3);
    hr_free(h);
}

/* A body timeout longer than the send timeout, and a slow handler. */
Test(conn_request_timeouts, bodies_have_their_own_time)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->r->http.body_timeout = 200 * NJ_SEC;
    h->r->http.send_timeout = 10 * NJ_SEC;
    hr_start(h);
    struct hr_client *c = hr_connect(h), *d = hr_connect(h);
    int32_t id = hr_ask(c, "POST", "/read_body", 5000, 100, NULL, NULL), wait = hr_get(d, "/wait");

    hr_run(h, 190 * NJ_SEC);
    cr_expect(!hr_reply_of(c, id)->closed && !hr_reply_of(d, wait)->closed);
    hr_run(h, 20 * NJ_SEC);
    cr_expect(hr_reply_of(c, id)->closed && !hr_reply_of(d, wait)->closed);
    hr_free(h);
}

/* ---- responses that are not taken ---- */

/* The peer opens both windows by this many bytes per second. Returns when the stream or the
 * connection ended; 0: not within 300 s. */
static nj_ns take_at(struct hr *h, struct hr_client *c, int32_t id, int32_t n)
{
    nj_ns begun = h->r->now;

    while (h->r->now - begun < 300 * NJ_SEC) {
        hr_run(h, NJ_SEC);
        if (c->p->got_rst || hr_reply_of(c, id)->closed)
            return h->r->now - begun;
        if (n > 0) {
            nghttp2_submit_window_update(c->s, 0, id, n);
            nghttp2_submit_window_update(c->s, 0, 0, n);
        }
    }
    return 0;
}

static const struct hr_options narrow = {.window = 1000, .no_auto = true};

Test(conn_request_timeouts, who_takes_nothing)
{
    struct hr *h = start(0);
    struct hr_client *c = hr_connect_with(h, &narrow);
    int32_t id = hr_get(c, "/whole");

    hr_settle(h);
    nj_ns took = take_at(h, c, id, 0);
    cr_expect(in_time(took), "%lu ms", took / NJ_MS);
    cr_expect(c->p->got_rst, "it was all that it asked for");
    cr_expect_eq(rig_count(h->r, NJ_C_send_timeout), 1);
    hr_free(h);
}

/* With other streams on the connection, only the slow one is reset. */
Test(conn_request_timeouts, one_of_many_streams)
{
    struct hr *h = start(0);
    struct hr_client *c = hr_connect_with(h, &narrow);
    int32_t id = hr_get(c, "/whole"), wait = hr_get(c, "/wait");

    hr_settle(h);
    nj_ns took = take_at(h, c, id, 0);
    cr_expect(in_time(took), "%lu ms", took / NJ_MS);
    cr_expect_eq(hr_reply_of(c, id)->error, NGHTTP2_CANCEL);
    cr_expect(!c->p->got_rst && !hr_reply_of(c, wait)->closed);
    hr_free(h);
}

/* At half and at twice the minimum rate. */
Test(conn_request_timeouts, the_lowest_rate)
{
    struct hr *h = start(1000);
    struct hr_client *c = hr_connect_with(h, &narrow), *d = hr_connect_with(h, &narrow);
    int32_t slow = hr_get(c, "/big"), fast = hr_get(d, "/big");

    hr_settle(h);
    nj_ns took = take_at(h, c, slow, 500);
    cr_expect(took >= 59 * NJ_SEC && took <= 76 * NJ_SEC, "%lu ms", took / NJ_MS);
    hr_free(h);
    h = start(1000);
    d = hr_connect_with(h, &narrow);
    fast = hr_get(d, "/big");
    hr_settle(h);
    cr_expect_eq(take_at(h, d, fast, 2000), 0);
    hr_free(h);
}

/* The connection window serves all of its streams together. */
Test(conn_request_timeouts, streams_share_a_window)
{
    static const struct hr_options wide = {.window = 1u << 30, .no_auto = true};
    struct hr *h = start(1000);
    struct hr_client *c = hr_connect_with(h, &wide);

    for (int i = 0; i < 10; i++)
        hr_get(c, "/big");
    hr_settle(h);
    for (int i = 0; i < 200; i++) {
        nghttp2_submit_window_update(c->s, 0, 0, 1500);
        hr_run(h, NJ_SEC);
    }
    cr_expect_eq(rig_count(h->r, NJ_C_send_timeout), 0);
    hr_free(h);
}

/* TCP is read byte by byte, while the windows of HTTP/2 are wide open. */
Test(conn_request_timeouts, acknowledged_by_bytes)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    nj_ns begun = r->now;

    p->manual = true;
    p->rcv_wnd = 0;
    rig_get(r, p, 1, "/whole");
    while (!p->got_rst && r->now - begun < 1000 * NJ_SEC) {
        rig_run(r, NJ_SEC);
        p->rcv_wnd = 1; /* and one more byte per probe */
        rig_ack(r, p);
    }
    nj_ns took = r->now - begun;
    cr_expect(took >= 60 * NJ_SEC && took <= 80 * NJ_SEC, "%lu ms", took / NJ_MS);
    cr_expect_gt(p->n_got, 3);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    rig_free(r);
}

/* Small requests do not keep a connection alive whose responses are not read. */
Test(conn_request_timeouts, asking_is_not_taking)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);
    nj_ns begun = r->now;

    p->rcv_wnd = 0;
    for (uint32_t i = 0; !p->got_rst && i < 100; i++) {
        rig_get(r, p, 1 + 2 * i, "/index.html");
        rig_run(r, 5 * NJ_SEC);
    }
    nj_ns took = r->now - begun;
    cr_expect(took >= 60 * NJ_SEC && took <= 70 * NJ_SEC, "%lu ms", took / NJ_MS);
    rig_free(r);
}

enum { BOTS = 60, STREAMS = 128 };

/* Preface, and SETTINGS with a window of 0 bytes. */
static uint32_t hello_without_windows(uint8_t *out)
{
    static const uint8_t settings[] = {0, 4, 0, 0, 0, 0};
    memcpy(out, RIG_PREFACE, RIG_PREFACE_BYTES);
    return RIG_PREFACE_BYTES + rig_h2(out + RIG_PREFACE_BYTES, 4, 0, 0, settings, sizeof settings);
}

static void ask_for_much(struct rig *r, struct rig_peer *p)
{
    for (uint32_t k = 0; k < STREAMS; k++)
        rig_get(r, p, 1 + 2 * k, k % 2 ? "/big" : "/whole");
    rig_settle(r);
}

/* Meanwhile another peer is served, and after the timeout everything is freed. */
static void outlive(struct rig *r, struct rig_peer **bot, nj_ns most)
{
    struct rig_peer *p = rig_connect_h2(r, 3000);

    rig_get(r, p, 1, "/index.html");
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(p, NGHTTP2_DATA, NULL), 1);
    rig_run(r, most);
    for (unsigned i = 0; i < BOTS; i++)
        cr_expect(bot[i]->got_rst, "%u", i);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    cr_expect_eq(r->s->conns.txns.pool.n_used, 0);
    cr_expect_leq(nj_h2_context_bytes_used(r->s->conns.h2), 32 * 1024u);
    cr_expect_leq(r->sndq_max, NJ_SENDQ_BYTES_MIN);
}

/* Bots send as many requests as allowed and read nothing from TCP: soon their input is not read
 * either. */
Test(conn_request_timeouts, a_crowd_that_reads_nothing)
{
    struct rig *r = rig_new();
    struct rig_peer *bot[BOTS];

    for (uint16_t i = 0; i < BOTS; i++) {
        bot[i] = rig_connect_h2(r, 1000 + i);
        bot[i]->rcv_wnd = 0;
        ask_for_much(r, bot[i]);
    }
    rig_run(r, 30 * NJ_SEC);
    cr_expect_gt(r->s->conns.txns.pool.n_used, BOTS);
    cr_expect_leq(r->s->conns.txns.pool.n_used, BOTS * STREAMS);
    outlive(r, bot, 31 * NJ_SEC);
    rig_free(r);
}

/* The same with windows of HTTP/2 that are never opened: all their streams stay open. */
Test(conn_request_timeouts, a_crowd_that_opens_no_window)
{
    struct rig *r = rig_new();
    struct rig_peer *bot[BOTS];
    uint8_t buf[64];

    for (uint16_t i = 0; i < BOTS; i++) {
        bot[i] = rig_connect(r, 1000 + i);
        rig_send(r, bot[i], buf, hello_without_windows(buf));
        ask_for_much(r, bot[i]);
    }
    rig_run(r, 30 * NJ_SEC);
    cr_expect_eq(r->s->conns.txns.pool.n_used, BOTS * STREAMS);
    size_t h2 = nj_h2_context_bytes_used(r->s->conns.h2) / BOTS;
    cr_expect_leq(h2, 32 * 1024 + STREAMS * 1024u, "%zu bytes of HTTP/2 for each", h2);
    outlive(r, bot, 38 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_send_timeout), BOTS * STREAMS);
    rig_free(r);
}

/* Time paced by our limits does not count against the peer, however low the limits are. */
Test(conn_request_timeouts, who_is_paced_is_not_slow)
{
    struct nj_policy policy = nj_policy_none;
    policy.classes[0].request = (struct nj_limit){.rate = 1000, .ceiling = 1000};
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->config.conns.policy = &policy;
    h->r->http.min_rate = 1000000;
    hr_start(h);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/whole");

    struct hr_reply *a = hr_reply_of(c, id);
    hr_run(h, 150 * NJ_SEC);
    cr_expect(!a->closed && a->n_got >= 145000 && a->n_got <= 160000, "%lu bytes", a->n_got);
    hr_run(h, 60 * NJ_SEC);
    cr_expect(a->ended && a->n_got == RIG_WHOLE && !a->wrong);
    cr_expect_eq(rig_count(h->r, NJ_C_shape_bytes), rig_count(h->r, NJ_C_body_bytes));
    hr_free(h);
}

/* ---- files that do not come ---- */

static const struct hr_options some = {.window = 100000, .no_auto = true};

/* A large file of which the peer has `n_got` bytes or more; then the worker stalls with a job that
 * this request waits for. */
static int32_t get_stuck(struct hr *h, struct hr_client *c, enum nj_file_op op, uint64_t n_got)
{
    struct rig *r = h->r;

    r->files_slow = false;
    hr_settle(h);
    int32_t id = hr_get(c, "/big");
    const struct hr_reply *a = hr_reply_of(c, id);
    for (int i = 0; r->n_jobs == 0 || r->job[0]->op != op || a->n_got < n_got; i++) {
        cr_assert_lt(i, 1000);
        hr_step(h);
    }
    r->files_slow = true;
    return id;
}

/* No memory for a chunk, or a stalled worker: the incomplete response is reset, and the peer may
 * request it again on the same connection. */
Test(conn_request_timeouts, files_that_do_not_come)
{
    static const struct {
        enum nj_file_op op;
        uint64_t n_got;
        int status;
    } cases[] = {{NJ_FILE_READ, 1, 200}, {NJ_FILE_READ, 0, 200}, {NJ_FILE_OPEN, 0, 503}};
    struct hr *h = start(0);
    struct hr_client *c = hr_connect_with(h, &some);

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        int32_t id = get_stuck(h, c, cases[i].op, cases[i].n_got);
        const struct hr_reply *a = hr_reply_of(c, id);
        nj_ns took = take_at(h, c, id, 0);
        cr_expect(in_time(took), "%zu: %lu ms", i, took / NJ_MS);
        cr_expect_eq(a->status, cases[i].status, "%zu: %d", i, a->status);
        cr_expect_eq(a->n_got > 0, cases[i].n_got > 0);
        cr_expect_eq(a->error, a->status == 200 ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_NO_ERROR);
        cr_expect_str_eq(a->retry_after, a->status == 200 ? "" : "1");
        cr_expect_eq(rig_count(h->r, NJ_C_file_timeout), i + 1);
    }
    cr_expect_eq(rig_count(h->r, NJ_C_send_timeout), 0);
    cr_expect(!c->p->got_rst && !c->p->got_fin && !c->goaway);
    hr_free(h);
}

/* One chunk per 40 s is slow, but it is progress. */
Test(conn_request_timeouts, files_that_come_slowly)
{
    struct hr *h = start(0);
    struct hr_client *c = hr_connect(h);
    const struct hr_reply *a = hr_reply_of(c, get_stuck(h, c, NJ_FILE_READ, 1));

    for (int i = 0; i < 10; i++) {
        hr_settle(h);
        uint64_t n_got = a->n_got;
        hr_run(h, 40 * NJ_SEC);
        cr_assert(!a->closed && a->n_got == n_got, "%d: %lu bytes", i, a->n_got);
        h->r->files_slow = false;
        for (int k = 0; k < 1000 && (a->n_got == n_got || h->r->n_jobs == 0); k++)
            hr_step(h);
        h->r->files_slow = true;
        cr_assert_gt(a->n_got, n_got);
    }
    cr_expect_eq(rig_count(h->r, NJ_C_file_timeout), 0);
    hr_free(h);
}

/* Time waited for the server is not charged to the peer afterwards. */
Test(conn_request_timeouts, files_that_come_late)
{
    struct hr *h = start(10000);
    struct hr_client *c = hr_connect_with(h, &some);
    int32_t id = get_stuck(h, c, NJ_FILE_READ, 1);

    hr_run(h, 50 * NJ_SEC);
    h->r->files_slow = false;
    nj_ns took = take_at(h, c, id, 0);
    cr_expect(in_time(took), "%lu ms", took / NJ_MS);
    cr_expect_eq(rig_count(h->r, NJ_C_send_timeout), 1);
    cr_expect_eq(rig_count(h->r, NJ_C_file_timeout), 0);
    hr_free(h);
}

/* ---- our last words ---- */

/* The peer reads up to `n` bytes per 20 s until it is reset. Returns the time it took. */
static nj_ns sip(struct rig *r, struct rig_peer *p, uint32_t n)
{
    nj_ns begun = r->now;

    p->manual = true;
    while (!p->got_rst && r->now - begun < 1000 * NJ_SEC) {
        uint64_t had = p->n_got;
        rig_run(r, 20 * NJ_SEC);
        p->rcv_wnd = n;
        rig_ack(r, p);
        for (int i = 0; i < 100 && p->n_got == had && !p->got_rst; i++)
            rig_run(r, 50 * NJ_MS);
        p->rcv_wnd = 0;
        rig_ack(r, p);
    }
    return r->now - begun;
}

/* Reading byte by byte after FIN, a peer has a minute. */
Test(conn_request_timeouts, last_words_are_not_taken_by_bytes)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    r->http.no_http1 = true;
    p->rcv_wnd = 0;
    rig_send(r, p, "GET / HTTP/1.1\r\n\r\n", 18);
    rig_settle(r);
    nj_ns took = sip(r, p, 1);
    cr_expect(took >= 60 * NJ_SEC && took < 90 * NJ_SEC, "%lu s", took / NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    rig_free(r);
}

/* Reading fast enough, it makes progress by any measure, but has five minutes. */
Test(conn_request_timeouts, last_words_have_their_time)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    p->rcv_wnd = 0;
    for (uint32_t i = 0; i < 200; i++)
        rig_get(r, p, 1 + 2 * i, "/index.html");
    rig_fin(r, p);
    rig_settle(r);
    cr_assert_gt(r->sndq_max, 20 * 1024, "%u", r->sndq_max);
    nj_ns took = sip(r, p, 1460);
    cr_expect(took > 240 * NJ_SEC && took < 330 * NJ_SEC, "%lu s", took / NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    cr_expect_gt(p->n_got, 10 * 1460);
    cr_expect_eq(r->s->tcp.tcbs.n_used, 0);
    rig_free(r);
}

/* ---- what it costs ---- */

/* The list of requests causes no needless wakeups, and is empty in the end. */
Test(conn_request_timeouts, requests_are_looked_at_now_and_then)
{
    struct hr *h = start(0);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/wait");

    hr_settle(h);
    cr_expect_geq(nj_conns_next_at(&h->r->s->conns), h->r->now + 7 * NJ_SEC);
    cr_expect(!nj_list_empty(&h->r->s->conns.txns_watched));
    hr_reset(c, id);
    hr_settle(h);
    cr_expect(nj_list_empty(&h->r->s->conns.txns_watched));
    cr_expect_geq(nj_conns_next_at(&h->r->s->conns), h->r->now + 60 * NJ_SEC);
    hr_free(h);
}
