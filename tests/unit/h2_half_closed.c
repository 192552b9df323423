/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/h2: streams whose response is complete before the request (RFC 9113 8.1). The client gets the
 * whole response, then RST_STREAM(NO_ERROR), and no window for discarded DATA.
 */
#include "base/limits.h"
#include "telem/counters.h"
#include "h2_rig.h"

/* ---- frames by hand ---- */

static uint8_t wire[1 << 20];
static size_t n_wire;
static const uint8_t zeros[16384];

static void frame(uint8_t type, uint8_t flags, uint32_t id, const void *payload, size_t n)
{
    uint8_t head[9] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags, 0, 0, 0,
                       (uint8_t)id};

    memcpy(wire + n_wire, head, 9);
    if (n > 0)
        memcpy(wire + n_wire + 9, payload, n);
    n_wire += 9 + n;
}

/* POST / without END_STREAM, to which the rig responds at once with an empty body. */
static void post(uint32_t id)
{
    static const uint8_t head[] = {0x83, 0x86, 0x84, 0x41, 1, 'a'};
    frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id, head, sizeof head);
}

/* The server's output: a word for each frame, with the error code of RST_STREAM if there is one,
 * and the payload of the last PING. */
static char said[4096];
static uint8_t pinged[8];

static void note(const uint8_t *f)
{
    static const char *const names[] = {"DATA", "HEADERS", "?", "RST",   "SETTINGS",
                                        "?",    "PING",    "?", "WINDOW"};
    char one[40], code[8] = "";

    if (f[3] == NGHTTP2_RST_STREAM && f[12] != NGHTTP2_NO_ERROR)
        snprintf(code, sizeof code, ":%u", f[12]);
    snprintf(one, sizeof one, "%s%u%s%s ", f[3] < 9 ? names[f[3]] : "?", f[8],
             f[3] < 2 && f[4] & NGHTTP2_FLAG_END_STREAM ? "." : "", code);
    strncat(said, one, sizeof said - strlen(said) - 1);
    if (f[3] == NGHTTP2_PING)
        memcpy(pinged, f + 9, 8);
}

/* Deliver all of `wire` to the server. Returns its output. */
static const char *tell(struct rig *r)
{
    static uint8_t buf[1 << 16];
    size_t n = 0, len;

    said[0] = '\0';
    cr_assert_eq(nj_h2_input(r->h, wire, n_wire), 0);
    n_wire = 0;
    cr_assert_eq(nj_h2_output(r->h, &rig_sink, r), 0);
    for (uint32_t i = 0; i < r->n_pieces; i++) {
        cr_assert_leq(n + r->piece[i].n_bytes, sizeof buf);
        memcpy(buf + n, r->piece[i].data, r->piece[i].n_bytes);
        n += r->piece[i].n_bytes;
    }
    for (size_t at = 0; at + 9 <= n; at += 9 + len) {
        len = (size_t)buf[at] << 16 | (size_t)buf[at + 1] << 8 | buf[at + 2];
        note(buf + at);
    }
    rig_drain(r, false);
    return said;
}

static struct rig *open_raw(void)
{
    struct rig *r = rig_new(NULL);

    memcpy(wire, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    n_wire = NGHTTP2_CLIENT_MAGIC_LEN;
    frame(NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
    tell(r);
    return r;
}

/* A client that receives the reset together with the response may drop both. So it has to have read
 * the response before: its answer to a PING behind the response shows that. */
Test(h2_half_closed, reset_when_the_response_was_read)
{
    struct rig *r = open_raw();

    post(1);
    cr_expect_str_eq(tell(r), "HEADERS1. PING0 ");
    frame(NGHTTP2_DATA, 0, 1, zeros, 10000);
    cr_expect_str_eq(tell(r), "");
    frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "others..", 8); /* acknowledges no PING that we sent */
    cr_expect_str_eq(tell(r), "");
    frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, pinged, 8);
    cr_expect_str_eq(tell(r), "RST1 ");
    cr_expect_eq(r->h->n_half_closed + r->h->n_open, 0);
    frame(NGHTTP2_DATA, 0, 1, zeros, 100); /* was under way */
    cr_expect_str_eq(tell(r), "");
    rig_free(r);
}

/* A request that the client ends or resets gets no RST_STREAM. */
Test(h2_half_closed, no_reset_for_who_ends)
{
    struct rig *r = open_raw();

    post(1);
    post(3);
    cr_expect_str_eq(tell(r), "HEADERS1. HEADERS3. PING0 ");
    frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, zeros, 100);
    frame(NGHTTP2_RST_STREAM, 0, 3, "\0\0\0\x08", 4);
    frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, pinged, 8);
    cr_expect_str_eq(tell(r), "");
    cr_expect_eq(r->h->n_half_closed + r->h->n_open, 0);
    rig_free(r);
}

/* One PING is outstanding at a time; its answer covers the responses before it, and no others. */
Test(h2_half_closed, one_ping_at_a_time)
{
    struct rig *r = open_raw();

    post(1);
    cr_expect_str_eq(tell(r), "HEADERS1. PING0 ");
    post(3);
    post(5);
    cr_expect_str_eq(tell(r), "HEADERS3. HEADERS5. ");
    frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, pinged, 8);
    cr_expect_str_eq(tell(r), "RST1 PING0 ");
    frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, pinged, 8);
    cr_expect_str_eq(tell(r), "RST3 RST5 ");
    cr_expect_eq(r->h->n_half_closed + r->h->n_open, 0);
    rig_free(r);
}

/* A client may send only its initial window of a discarded body. The connection's window is shared
 * with other streams, and is returned. */
Test(h2_half_closed, no_windows)
{
    struct rig *r = open_raw();
    uint32_t n_sent = 0;

    post(1);
    tell(r);
    for (; n_sent < NJ_H2_STREAM_WINDOW_BYTES; n_sent += 16384)
        frame(NGHTTP2_DATA, 0, 1, zeros, 16384);
    cr_expect_str_eq(tell(r), "WINDOW0 ");
    frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, pinged, 8);
    cr_expect_str_eq(tell(r), "RST1 ");
    rig_free(r);
}

static void window_update(uint32_t id, uint32_t more)
{
    frame(NGHTTP2_WINDOW_UPDATE, 0, id,
          (uint8_t[4]){(uint8_t)(more >> 24), (uint8_t)(more >> 16), (uint8_t)(more >> 8),
                       (uint8_t)more},
          4);
}

/* RFC 9113 6.9: an increment of 0 is a stream error PROTOCOL_ERROR, also on a stream whose response
 * is complete: it is not closed. */
Test(h2_half_closed, zero_window_update)
{
    struct rig *r = open_raw();

    post(1);
    cr_expect_str_eq(tell(r), "HEADERS1. PING0 ");
    window_update(1, 0);
    cr_expect_str_eq(tell(r), "RST1:1 ");
    cr_expect_eq(r->h->n_half_closed + r->h->n_open, 0);
    window_update(1, 0); /* the stream is closed */
    frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, pinged, 8);
    cr_expect_str_eq(tell(r), "");
    rig_free(r);
}

/* RFC 9113 6.9.1: a window above 2^31 - 1 is a stream error FLOW_CONTROL_ERROR. */
Test(h2_half_closed, window_overflow)
{
    struct rig *r = open_raw();

    post(1);
    cr_expect_str_eq(tell(r), "HEADERS1. PING0 ");
    window_update(1, 0x7fffffff - 65535);
    cr_expect_str_eq(tell(r), "");
    window_update(1, 1);
    cr_expect_str_eq(tell(r), "RST1:3 ");
    cr_expect_eq(r->h->n_half_closed + r->h->n_open, 0);
    rig_free(r);
}

/* RFC 9113 6.9.2: SETTINGS_INITIAL_WINDOW_SIZE changes the windows of all streams that are not
 * closed. One above 2^31 - 1 is a connection error FLOW_CONTROL_ERROR. */
Test(h2_half_closed, window_overflow_by_settings)
{
    static const uint8_t initial_65536[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 1, 0, 0};
    struct rig *r = open_raw();

    post(1);
    window_update(1, 0x7fffffff - 65535);
    cr_expect_str_eq(tell(r), "HEADERS1. PING0 ");
    frame(NGHTTP2_SETTINGS, 0, 0, initial_65536, sizeof initial_65536);
    cr_expect_eq(nj_h2_input(r->h, wire, n_wire), -1);
    n_wire = 0;
    cr_expect_eq(r->h->end_code, NJ_H2_FLOW_CONTROL_ERROR);
    rig_free(r);
}

/* Clients that neither end the stream nor answer PINGs: a bounded number of streams waits, and none
 * is left when the connection ends. */
Test(h2_half_closed, no_answer)
{
    struct rig *r = open_raw();

    for (uint32_t id = 1; id <= 39; id += 2)
        post(id);
    tell(r);
    cr_expect_eq(nj_h2_n_streams(r->h), 0);
    cr_expect_eq(r->h->n_half_closed, 16);
    cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 4);
    nj_h2_goaway(r->h);
    nj_h2_goaway(r->h);
    tell(r);
    cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 20);
    cr_expect_eq(r->h->n_half_closed, 0);
    cr_expect(nj_h2_is_finished(r->h));
    rig_free(r);
}
