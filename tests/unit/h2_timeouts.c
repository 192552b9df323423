/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/h2: the queries on which the owner's timeouts are based: the reason why a response makes no
 * progress, and the time since when a frame is incomplete. */
#include "h2_rig.h"

#include "telem/counters.h"

#define T0 (1000 * NJ_SEC)

static enum nj_blocked_by hold_of(const struct rig *r, unsigned i)
{
    return nj_h2_stream_blocked_by(r->req[i].st);
}

/* Which window is closed, and which is not. The server itself is the reason if a body provides no
 * bytes. */
Test(h2_timeouts, who_holds_a_response_back)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1000, true);
    rig_ask(r, "/5000");
    rig_ask(r, "/5000d");
    rig_ask(r, "/1l");
    rig_run(r, 0);
    cr_assert_eq(r->n_req, 3);
    cr_expect_eq(hold_of(r, 0), NJ_BLOCKED_BY_STREAM_WINDOW);
    cr_expect_eq(hold_of(r, 1), NJ_BLOCKED_BY_BODY);
    cr_expect_eq(hold_of(r, 2), NJ_BLOCKED_BY_NOTHING, "it has no body yet");
    rig_release(r->req[1].body, 5000);
    cr_expect_neq(hold_of(r, 1), NJ_BLOCKED_BY_BODY);
    rig_run(r, 0);
    cr_expect_eq(hold_of(r, 1), NJ_BLOCKED_BY_STREAM_WINDOW);
    rig_free(r);
}

Test(h2_timeouts, the_window_of_the_connection)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1000000, true);
    rig_ask(r, "/100000");
    rig_run(r, 0);
    cr_expect_eq(hold_of(r, 0), NJ_BLOCKED_BY_CONN_WINDOW, "65,535 bytes");
    rig_free(r);
}

Test(h2_timeouts, streams_one_by_one)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1000, true);
    cr_expect_null(nj_h2_first_stream(r->h));
    for (int i = 0; i < 5; i++)
        rig_ask(r, "/5000");
    rig_run(r, 0);
    unsigned n = 0;
    for (struct nj_h2_stream *st = nj_h2_first_stream(r->h); st; st = nj_h2_next_stream(st), n++) {
        cr_expect_eq(st, r->req[n].st);
        cr_expect_eq(nj_h2_stream_id(st), 1 + 2 * n);
    }
    cr_expect_eq(n, 5);
    rig_free(r);
}

/* ---- by hand ---- */

static struct rig *open_raw(void)
{
    return rig_new(NULL);
}

static nj_ns feed(struct rig *r, const void *bytes, size_t n, nj_ns now)
{
    cr_assert_eq(nj_h2_input(r->h, bytes, n), 0);
    return nj_h2_unfinished_frame_since(r->h, now);
}

static const uint8_t settings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
static const uint8_t ping[17] = {0, 0, 8, 6};

Test(h2_timeouts, the_preface)
{
    struct rig *r = open_raw();
    for (unsigned i = 0; i < 23; i++)
        cr_expect_eq(feed(r, NGHTTP2_CLIENT_MAGIC + i, 1, T0 + i), T0, "byte %u", i);
    cr_expect_eq(feed(r, "\n", 1, T0 + 30), NJ_NEVER);
    rig_free(r);
}

static struct rig *open_greeted(void)
{
    struct rig *r = open_raw();
    feed(r, NGHTTP2_CLIENT_MAGIC, 24, T0);
    cr_assert_eq(feed(r, settings, sizeof settings, T0), NJ_NEVER);
    return r;
}

/* Each byte of a frame belongs to the same; the next frame is another. */
Test(h2_timeouts, a_frame)
{
    struct rig *r = open_greeted();
    for (unsigned k = 0; k < 3; k++) {
        for (unsigned i = 0; i < 16; i++)
            cr_expect_eq(feed(r, ping + i, 1, T0 + 100 * k + i), T0 + 100 * k, "%u", i);
        cr_expect_eq(feed(r, ping + 16, 1, T0 + 100 * k + 20), NJ_NEVER);
    }
    uint8_t both[33]; /* the end of one and the begin of the next, in one piece */
    memcpy(both, ping, 17);
    memcpy(both + 17, ping, 16);
    cr_expect_eq(feed(r, both, 33, T0 + 1000), T0 + 1000);
    cr_expect_eq(feed(r, ping + 16, 1, T0 + 1001), NJ_NEVER);
    rig_free(r);
}

/* HEADERS without END_HEADERS and its CONTINUATIONs are one frame; between them it is incomplete.
 */
Test(h2_timeouts, a_header_block)
{
    static const uint8_t head[] = {0, 0, 1, 1, 1, 0, 0, 0, 1, 0x82};
    static const uint8_t more[] = {0, 0, 2, 9, 0, 0, 0, 0, 1, 0x86, 0x84};
    static const uint8_t last[] = {0, 0, 3, 9, 4, 0, 0, 0, 1, 0x41, 1, 'a'};
    struct rig *r = open_greeted();
    cr_expect_eq(feed(r, head, 5, T0), T0);
    cr_expect_eq(feed(r, head + 5, sizeof head - 5, T0 + 1), T0);
    for (unsigned i = 0; i < sizeof more; i++)
        cr_expect_eq(feed(r, more + i, 1, T0 + 2 + i), T0);
    cr_expect_eq(feed(r, last, sizeof last - 1, T0 + 50), T0);
    cr_expect_eq(feed(r, "a", 1, T0 + 60), NJ_NEVER);
    cr_expect_eq(r->n_req, 1);
    rig_free(r);
}

/* The DATA of a stream may arrive slowly. Without an open stream DATA is a frame like others. */
Test(h2_timeouts, data)
{
    static const uint8_t post[] = {0,    0,    9,    1, 4,   0,   0,    0, 1,
                                   0x83, 0x86, 0x04, 2, '/', 'l', 0x41, 1, 'a'};
    static const uint8_t data[9] = {0, 0, 100, 0, 0, 0, 0, 0, 1};
    struct rig *r = open_greeted();
    cr_expect_eq(feed(r, post, sizeof post, T0), NJ_NEVER);
    cr_assert_eq(r->n_req, 1);
    cr_expect_eq(feed(r, data, 8, T0 + 5), T0 + 5, "the type of the frame is not known yet");
    cr_expect_eq(feed(r, data + 8, 1, T0 + 6), NJ_NEVER);
    cr_expect_eq(feed(r, "x", 1, T0 + 7), NJ_NEVER);
    nj_h2_reset_stream(r->req[0].st, NGHTTP2_CANCEL);
    nj_h2_output(r->h, &rig_sink, r);
    cr_assert_eq(nj_h2_n_streams(r->h), 0);
    cr_expect_eq(feed(r, "x", 1, T0 + 9), T0 + 9);
    rig_free(r);
}

Test(h2_timeouts, calm)
{
    struct rig *r = open_greeted();
    feed(r, ping, 3, T0);
    nj_h2_end_for_abuse(r->h, NJ_H2_ABUSE_SLOW);
    cr_expect_eq(nj_h2_output(r->h, &rig_sink, r), -1);
    cr_expect_eq(rig_count(r, NJ_C_h2_abuse), 1);
    cr_expect_eq(nj_h2_unfinished_frame_since(r->h, T0 + 1), NJ_NEVER);
    nj_h2_output(r->h, &rig_sink, r);
    rig_free(r);
}
