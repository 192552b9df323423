/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/h2 against a well-behaved client: every byte arrives once, every body is closed once. */
#include "base/limits.h"
#include "telem/counters.h"
#include "h2_rig.h"

Test(h2_conn, sizes)
{
    static const uint32_t sizes[] = {0,     1,     511,    512,     16383,
                                     16384, 16385, 204800, 1 << 20, 5 * 1024 * 1024};
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1 << 20, false);
    uint64_t sum = 0;
    for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
        char path[32];
        snprintf(path, sizeof path, "/%u", sizes[i]);
        int32_t id = rig_ask(r, path);
        cr_assert_eq(rig_run(r, 0), 0);
        struct rig_reply *a = rig_reply(r, id);
        cr_expect(a->closed && a->ended && a->error == 0 && a->status == 200);
        cr_expect_eq(a->n_bytes, sizes[i], "%u", sizes[i]);
        cr_expect(r->req[i].complete && r->req[i].ends);
        cr_expect_str_eq(r->req[i].path, path);
        cr_expect_str_eq(r->req[i].method, "GET");
        cr_expect_str_eq(r->req[i].authority, "host.example");
        sum += sizes[i];
    }
    cr_expect_eq(rig_count(r, NJ_C_body_bytes), sum);
    cr_expect_eq(rig_count(r, NJ_C_requests), NJ_ARRAY_LEN(sizes));
    cr_expect_eq(rig_count(r, NJ_C_responses), NJ_ARRAY_LEN(sizes));
    cr_expect_eq(rig_count(r, NJ_C_status_2xx), NJ_ARRAY_LEN(sizes));
    cr_expect_eq(rig_count(r, NJ_C_h2_error) + rig_count(r, NJ_C_h2_abuse), 0);
    rig_free(r);
}

Test(h2_conn, head_and_connect)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    int32_t id = rig_ask_body(r, "HEAD", "/12345", NULL);
    nghttp2_nv nv[] = {RIG_NV(":method", "CONNECT"), RIG_NV(":authority", "a:1")};
    int32_t id2 = nghttp2_submit_request(r->client, NULL, nv, 2, NULL, NULL);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(rig_reply(r, id)->ended);
    cr_expect_eq(rig_reply(r, id)->n_bytes, 0);
    cr_expect_str_eq(r->req[1].method, "CONNECT");
    cr_expect_str_eq(r->req[1].path, "");
    cr_expect(rig_reply(r, id2)->ended);
    rig_free(r);
}

/* RFC 9113 8.3.1: host replaces a missing :authority. */
Test(h2_conn, host_field)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    nghttp2_nv nv[] = {RIG_NV(":method", "GET"), RIG_NV(":scheme", "http"), RIG_NV(":path", "/5"),
                       RIG_NV("host", "other.example")};
    int32_t id = nghttp2_submit_request(r->client, NULL, nv, 4, NULL, NULL);
    rig_reply(r, id)->want = 5;
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_str_eq(r->req[0].authority, "other.example");
    rig_free(r);
}

/* Without room no byte is written. With some room some are. */
Test(h2_conn, room_rules)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    rig_ask(r, "/60000");
    int rv = 0;
    rig_upstream(r, 0, &rv);
    r->room = 4095;
    cr_assert_eq(nj_h2_output(r->h, &rig_sink, r), 0);
    cr_expect_eq(r->n_queued, 0);
    for (int i = 0; i < 8; i++) {
        r->room = 4096;
        cr_assert_eq(nj_h2_output(r->h, &rig_sink, r), 0);
        cr_expect_gt(r->n_queued, 0);
        cr_expect_leq(r->n_queued, 4096);
        rig_drain(r, true);
    }
    r->room = 0;
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, 1)->n_bytes, 60000);
    rig_free(r);
}

Test(h2_conn, deferred)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1 << 20, false);
    int32_t id[10];
    for (int i = 0; i < 10; i++)
        id[i] = rig_ask(r, "/50000d");
    cr_assert_eq(rig_run(r, 0), 0);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(rig_reply(r, id[i])->n_bytes, 0);
    for (bool left = true; left;) {
        left = false;
        for (int i = 0; i < 10; i++) {
            if (r->req[i].closed)
                continue;
            left = true;
            nj_h2_resume(r->req[i].st); /* a wake-up without reason is harmless */
            nj_h2_resume(r->req[i].st);
            if (nj_prng_below(&r->prng, 3))
                rig_release(r->req[i].body, 1 + nj_prng_below(&r->prng, 9000));
        }
        cr_assert_eq(rig_run(r, 0), 0);
    }
    for (int i = 0; i < 10; i++)
        cr_expect(rig_reply(r, id[i])->ended && rig_reply(r, id[i])->n_bytes == 50000);
    rig_free(r);
}

Test(h2_conn, late_answer)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    int32_t id = rig_ask(r, "/5000l");
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(nj_h2_n_streams(r->h), 1);
    cr_expect(!nj_h2_is_finished(r->h));
    nj_h2_resume(r->req[0].st); /* not even answered */
    cr_assert_eq(rig_answer(r, &r->req[0]), 0);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, id)->n_bytes, 5000);
    cr_expect_eq(nj_h2_n_streams(r->h), 0);
    rig_free(r);
}

Test(h2_conn, hundred_streams)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct rig *r = rig_new(NULL);
        nj_prng_init(&r->prng, seed);
        rig_client_new(r, 0, false);
        int32_t id[100];
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 100; i++) {
                char path[32];
                snprintf(path, sizeof path, "/%u", nj_prng_below(&r->prng, 40000));
                id[i] = rig_ask(r, path);
            }
            r->room = 20000;
            cr_assert_eq(rig_run(r, 0), 0, "seed %d", (int)seed);
            for (int i = 0; i < 100; i++) {
                struct rig_reply *a = rig_reply(r, id[i]);
                cr_expect(a->ended && a->n_bytes == a->want, "seed %d", (int)seed);
            }
        }
        rig_free(r);
    }
}

Test(h2_conn, bytewise_input)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    int32_t id = rig_ask(r, "/3000");
    cr_assert_eq(rig_run(r, 1), 0);
    cr_expect(rig_reply(r, id)->ended);
    cr_expect_eq(rig_reply(r, id)->n_bytes, 3000);
    rig_free(r);
}

/* The client resets in the middle: the body is closed at once, the others continue. */
Test(h2_conn, reset_by_peer)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 65535, false);
    int32_t a = rig_ask(r, "/1000000d"), b = rig_ask(r, "/30000d");
    cr_assert_eq(rig_run(r, 0), 0);
    rig_release(r->req[0].body, 5000);
    cr_assert_eq(rig_run(r, 0), 0);
    nghttp2_submit_rst_stream(r->client, 0, a, NGHTTP2_CANCEL);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(r->req[0].closed && !r->req[0].complete);
    cr_expect_eq(r->req[0].body->closes, 1);
    cr_expect_eq(rig_count(r, NJ_C_h2_reset_in), 1);
    rig_release(r->req[1].body, 30000);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, b)->n_bytes, 30000);
    rig_free(r);
}

/* Reset while the response head, with a body behind it, is still queued. */
Test(h2_conn, reset_before_output)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    int rv = rig_run(r, 0);
    for (int i = 0; i < 50; i++) {
        int32_t id = rig_ask(r, "/10000");
        rig_upstream(r, 0, &rv);
        nghttp2_submit_rst_stream(r->client, 0, id, NGHTTP2_CANCEL);
        rig_upstream(r, 0, &rv);
    }
    cr_assert_eq(rv, 0);
    cr_expect_eq(r->n_closed, 50);
    cr_expect_eq(r->n_body_closes, 50);
    cr_assert_eq(rig_run(r, 0), 0);
    rig_free(r);
}

Test(h2_conn, close_mid_body)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 65535, false);
    for (int i = 0; i < 20; i++)
        rig_ask(r, i % 3 ? "/300000" : i % 2 ? "/300000d" : "/300000l");
    r->room = 30000;
    int rv = 0;
    for (int i = 0; i < 5; i++)
        rig_turn(r, 0, &rv);
    cr_expect_gt(nj_h2_n_streams(r->h), 10);
    nj_h2_output(r->h, &rig_sink, r); /* slices stay in the sink when the connection is freed */
    nj_h2_close(r->h);
    r->h = NULL;
    cr_expect_eq(r->n_closed, r->n_req);
    cr_expect_gt(r->n_datas, 0);
    rig_free(r);
}

Test(h2_conn, broken_body)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1 << 20, false);
    int32_t a = rig_ask(r, "/100000f"), b = rig_ask(r, "/100000"), c = rig_ask(r, "/1f");
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, a)->error, NGHTTP2_INTERNAL_ERROR);
    cr_expect_eq(rig_reply(r, c)->error, NGHTTP2_INTERNAL_ERROR);
    cr_expect_eq(rig_reply(r, b)->n_bytes, 100000);
    cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 2);
    cr_expect_leq(r->h->glitches, 2, "our own fault");
    rig_free(r);
}

static ssize_t upload_read(nghttp2_session *s, int32_t id, uint8_t *buf, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    memset(buf, 'x', length);
    uint64_t *left = source->ptr;
    size_t n = *left < length ? (size_t)*left : length;
    *left -= n;
    if (*left == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* An upload to a server that has answered: RST_STREAM(NO_ERROR), RFC 9113 8.1. */
Test(h2_conn, upload_answered_early)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    uint64_t left = UINT64_MAX;
    nghttp2_data_provider up = {.source.ptr = &left, .read_callback = upload_read};
    int32_t id = rig_ask_body(r, "POST", "/700", &up);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(!r->req[0].ends);
    cr_expect(r->req[0].complete);
    cr_expect(rig_reply(r, id)->closed && rig_reply(r, id)->ended);
    cr_expect_eq(rig_reply(r, id)->error, NGHTTP2_NO_ERROR);
    cr_expect_eq(rig_reply(r, id)->n_bytes, 700);
    cr_expect_leq(UINT64_MAX - left, NJ_H2_STREAM_WINDOW_BYTES, "no window for discarded DATA");
    cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 1);
    cr_expect_lt(r->h->glitches, 10);
    rig_free(r);
}

/* The same with an END_STREAM, which the client may send before it gets the RST_STREAM. */
Test(h2_conn, upload_answered_early_that_ends)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    uint64_t left = 300000;
    nghttp2_data_provider up = {.source.ptr = &left, .read_callback = upload_read};
    int32_t id = rig_ask_body(r, "POST", "/700", &up);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(r->req[0].complete);
    cr_expect(rig_reply(r, id)->closed && rig_reply(r, id)->ended);
    cr_expect_eq(rig_reply(r, id)->error, NGHTTP2_NO_ERROR);
    cr_expect_eq(rig_reply(r, id)->n_bytes, 700);
    cr_expect_leq(rig_count(r, NJ_C_h2_reset_out), 1);
    cr_expect_eq(r->h->n_half_closed, 0);
    rig_free(r);
}

/* A discarded upload flows until its end, with window updates. */
Test(h2_conn, upload_swallowed)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    uint64_t left = 3 * 1000 * 1000;
    nghttp2_data_provider up = {.source.ptr = &left, .read_callback = upload_read};
    int32_t id = rig_ask_body(r, "POST", "/700l", &up);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(left, 0);
    cr_assert_eq(rig_answer(r, &r->req[0]), 0);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(rig_reply(r, id)->ended);
    cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 0);
    rig_free(r);
}

Test(h2_conn, goaway_graceful)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1 << 20, false);
    int32_t a = rig_ask(r, "/40000d");
    cr_assert_eq(rig_run(r, 0), 0);
    int32_t b = rig_ask(r, "/100"); /* on its way while the notice is */
    int rv = 0;
    nj_h2_goaway(r->h);
    cr_assert_eq(nj_h2_output(r->h, &rig_sink, r), 0);
    rig_upstream(r, 0, &rv);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(r->client_goaway && r->client_goaway_code == 0);
    cr_expect_eq(rig_reply(r, b)->n_bytes, 100);
    cr_expect(!nj_h2_is_finished(r->h));
    nj_h2_goaway(r->h);
    nj_h2_goaway(r->h);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(!nj_h2_is_finished(r->h), "a stream is open");
    rig_release(r->req[0].body, 40000);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, a)->n_bytes, 40000);
    cr_expect(nj_h2_is_finished(r->h));
    cr_expect_eq(rig_count(r, NJ_C_h2_error), 0);
    rig_free(r);
}

Test(h2_conn, goaway_idle)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(!nj_h2_is_finished(r->h));
    nj_h2_goaway(r->h);
    nj_h2_goaway(r->h);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(nj_h2_is_finished(r->h));
    rig_free(r);
}

/* RFC 9113 6.8: "Endpoints MAY append opaque data to the payload of any GOAWAY frame", as a client
 * sees it: nghttp2. */
Test(h2_conn, goaway_says_why)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    cr_assert_eq(rig_run(r, 0), 0);
    for (unsigned i = 0; i < 1100 && !r->client_goaway; i++) {
        nghttp2_submit_ping(r->client, 0, NULL);
        rig_run(r, 0);
    }
    cr_expect_eq(r->client_goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    cr_expect_str_eq(r->client_goaway_text, "too many PING frames");
    rig_free(r);
}

/* ... of a protocol error: the frame and the error, in fixed words, not in bytes of the peer. */
Test(h2_conn, goaway_says_what_is_wrong)
{
    static const uint8_t bad[] = {0, 0, 3, 3, 0, 0, 0, 0, 1, 'e', 'v', 'e'}; /* RST_STREAM */
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(nj_h2_input(r->h, bad, sizeof bad), -1);
    rig_run(r, 0);
    cr_expect_eq(r->client_goaway_code, NGHTTP2_FRAME_SIZE_ERROR);
    cr_expect_str_eq(r->client_goaway_text, "RST_STREAM: wrong length");
    rig_free(r);
}

Test(h2_conn, peer_goaway)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    int32_t a = rig_ask(r, "/4000d");
    cr_assert_eq(rig_run(r, 0), 0);
    nghttp2_submit_goaway(r->client, 0, 0, 0, NULL, 0);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(!nj_h2_is_finished(r->h));
    rig_release(r->req[0].body, 4000);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, a)->n_bytes, 4000);
    cr_expect(nj_h2_is_finished(r->h));
    rig_free(r);
}

/* A closed window stops the body, and an open one resumes it. */
Test(h2_conn, flow_control)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1000, true);
    int32_t id = rig_ask(r, "/60000");
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, id)->n_bytes, 1000);
    for (unsigned i = 0; i < 59; i++) {
        nghttp2_session_consume_stream(r->client, id, 1000);
        cr_assert_eq(rig_run(r, 0), 0);
        cr_expect_eq(rig_reply(r, id)->n_bytes, 2000 + 1000 * i);
    }
    cr_expect(rig_reply(r, id)->ended);
    rig_free(r);
}

/* The sink runs out of memory at its nth call: the connection ends, and no memory leaks. */
Test(h2_conn, sink_fails)
{
    for (uint32_t n = 1; n < 40; n++) {
        struct rig *r = rig_new(NULL);
        rig_client_new(r, 0, false);
        for (int i = 0; i < 6; i++)
            rig_ask(r, i % 2 ? "/300" : "/40000");
        r->out_fail = n;
        int rv = rig_run(r, 0);
        cr_expect(rv == -1 || r->out_fail > 0, "%u", n);
        cr_expect(rv == 0 || nj_h2_is_finished(r->h), "%u", n);
        rig_free(r);
    }
}

static int small_scenario(struct rig *r)
{
    rig_client_new(r, 0, false);
    for (int i = 0; i < 5; i++)
        rig_ask(r, i == 2 ? "/9000d" : i == 3 ? "/20l" : i % 2 ? "/0" : "/40000");
    if (rig_run(r, 0) != 0)
        return -1;
    for (unsigned i = 0; i < r->n_req; i++) {
        struct rig_stream *q = &r->req[i];
        if (!q->closed && strchr(q->path, 'l'))
            rig_answer(r, q);
        else if (!q->closed && q->body)
            rig_release(q->body, 10000);
    }
    nj_h2_goaway(r->h);
    if (rig_run(r, 0) != 0)
        return -1;
    nj_h2_goaway(r->h);
    return rig_run(r, 0);
}

/* Each allocation fails once; in each case no memory leaks and no body is closed twice. */
Test(h2_conn, allocation_fails)
{
    unsigned n_failed = 0;
    for (uint64_t n = 1; n < 400; n++) {
        struct rig *r = calloc(1, sizeof *r);
        nj_alloc_init(&r->alloc, SIZE_MAX);
        r->core = nj_h2_context_new(&rig_events, NULL, &r->alloc, &r->counters);
        r->alloc.fail_countdown = n;
        r->h = nj_h2_open(r->core, r);
        if (r->h) {
            int rv = small_scenario(r);
            cr_expect(rv == 0 || nj_h2_is_finished(r->h), "%u", (unsigned)n);
            n_failed += rv != 0;
        }
        bool over = r->alloc.fail_countdown > 0;
        rig_free(r);
        if (over)
            break;
        cr_assert_lt(n, 399, "the scenario allocates more than expected");
    }
    cr_expect_gt(n_failed, 0);
}

Test(h2_conn, many_connections_reuse_memory)
{
    struct rig *r = rig_new(NULL);
    struct nj_h2 *h[200];
    size_t one = nj_h2_context_bytes_used(r->core);
    cr_expect_lt(one, 40000);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++)
            cr_assert((h[i] = nj_h2_open(r->core, r)) != NULL);
        cr_expect_eq(nj_h2_context_n_conns(r->core), 201);
        cr_expect_eq(nj_h2_context_bytes_used(r->core), 201 * one);
        for (int i = 0; i < 200; i++)
            nj_h2_close(h[i]);
        cr_expect_eq(nj_h2_context_bytes_used(r->core), one);
    }
    rig_free(r);
}
