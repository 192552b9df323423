/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/h2: request bodies. Both windows return exactly the bytes consumed, for each way in which the
 * streams end. */
#include "h2_rig.h"

#include "base/limits.h"
#include "telem/counters.h"

#define STREAM_WINDOW NJ_H2_STREAM_WINDOW_BYTES
#define CONN_WINDOW   NJ_H2_CONN_WINDOW_BYTES
#define FIRST_GIFT    (CONN_WINDOW - NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE)

static struct rig *open_reader(void)
{
    struct rig *r = rig_new_with(NULL, &rig_reader_events);
    rig_client_new(r, 0, false);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_assert_eq(r->n_given, FIRST_GIFT);
    return r;
}

/* The oracle: all received bytes that are not held were consumed, and of those less than half a
 * window may wait for its WINDOW_UPDATE. To be called when no frame is under way. */
static void check_windows(struct rig *r, const char *when)
{
    uint64_t held = 0;
    for (unsigned i = 0; i < r->n_req; i++) {
        const struct rig_stream *q = &r->req[i];
        if (q->closed)
            continue;
        cr_assert_leq(q->n_held, STREAM_WINDOW, "%s", when);
        cr_assert_eq(q->n_held, q->st->n_held, "%s", when);
        held += q->n_held;
        const struct rig_reply *a = rig_reply(r, q->st->id);
        int64_t waits = (int64_t)(a->n_sent - q->n_held - a->n_given);
        if (!q->st->end_received && !q->st->reset)
            cr_assert(waits >= 0 && waits < STREAM_WINDOW / 2, "%s: stream %d: %lld waits", when,
                      q->st->id, (long long)waits);
    }
    cr_assert_leq(held, CONN_WINDOW, "%s", when);
    int64_t waits = (int64_t)(r->n_sent - held - (r->n_given - FIRST_GIFT));
    cr_assert(waits >= 0 && waits < CONN_WINDOW / 2, "%s: %lld waits", when, (long long)waits);
    cr_assert_eq(nghttp2_session_get_remote_window_size(r->client),
                 (int64_t)(CONN_WINDOW - r->n_sent + (r->n_given - FIRST_GIFT)), "%s", when);
}

Test(h2_data_input, sizes)
{
    static const uint32_t sizes[] = {0, 1, 15, 16384, 65535, 65536, 3000000};
    for (int trailers = 0; trailers < 2; trailers++) {
        struct rig *r = open_reader();
        r->pad_max = trailers ? 256 : 0;
        for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
            int32_t id = rig_upload(r, "/700lca", sizes[i], trailers);
            cr_assert_eq(rig_run(r, i % 2 ? 5000 : 0), 0);
            cr_expect_eq(r->req[i].n_got, sizes[i]);
            cr_expect(!r->req[i].ends && r->req[i].n_ends == 1 && r->req[i].complete);
            cr_expect(rig_reply(r, id)->ended && rig_reply(r, id)->n_bytes == 700);
            check_windows(r, "sizes");
        }
        cr_expect_eq(r->h->glitches, 0);
        cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 0);
        rig_free(r);
    }
}

/* A request that ends with its head has no on_end. */
Test(h2_data_input, no_body)
{
    struct rig *r = open_reader();
    rig_ask(r, "/700");
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(r->req[0].ends && r->req[0].complete && r->req[0].n_ends == 0);
    rig_free(r);
}

/* A stream stops at its window, the connection at its own, and GETs are served all the time. */
Test(h2_data_input, windows_are_kept)
{
    struct rig *r = open_reader();
    for (int i = 0; i < 3; i++)
        rig_upload(r, "/10l", 2000000, false);
    cr_assert_eq(rig_run(r, 0), 0);
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        cr_expect_leq(r->req[i].n_got, STREAM_WINDOW);
        sum += r->req[i].n_got;
    }
    cr_expect_eq(sum, CONN_WINDOW);
    int32_t get = rig_ask(r, "/5000");
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, get)->n_bytes, 5000);
    check_windows(r, "stalled");
    for (unsigned turn = 0; turn < 100000; turn++) {
        bool left = false;
        for (int i = 0; i < 3; i++) {
            struct rig_stream *q = &r->req[i];
            left |= q->n_held > 0;
            if (q->n_held > 0)
                rig_consume(q, 1 + nj_prng_below(&r->prng, (uint32_t)q->n_held));
        }
        if (!left)
            break;
        cr_assert_eq(rig_run(r, 0), 0);
        check_windows(r, "flowing");
    }
    for (int i = 0; i < 3; i++) {
        cr_expect(r->req[i].n_got == 2000000 && r->req[i].n_ends == 1);
        rig_answer(r, &r->req[i]);
    }
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(nj_h2_n_streams(r->h), 0);
    cr_expect_eq(r->h->glitches, 0);
    rig_free(r);
}

/* One reader that stalls stops its own stream only. */
Test(h2_data_input, stalled_beside_flowing)
{
    struct rig *r = open_reader();
    rig_upload(r, "/10l", 2000000, false);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(r->req[0].n_got, STREAM_WINDOW);
    rig_upload(r, "/10lca", 5000000, false);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(r->req[1].n_got, 5000000);
    cr_expect(r->req[1].complete);
    cr_expect_eq(r->req[0].n_got, STREAM_WINDOW);
    rig_free(r);
}

/* For each end of a stream, unconsumed bytes return to the connection's window (jetty issue 1719).
 */
Test(h2_data_input, abandoned)
{
    struct rig *r = open_reader();
    r->pad_max = 50;
    for (unsigned i = 0; i < 60; i++) {
        int32_t id = rig_upload(r, "/700l", 400000 + i * 4000, false);
        cr_assert_eq(rig_run(r, i % 2 ? 3000 : 0), 0);
        struct rig_stream *q = &r->req[i];
        cr_expect_gt(q->n_held, 300000, "%u", i);
        if (i % 4 == 1)
            rig_consume(q, 1 + nj_prng_below(&r->prng, (uint32_t)q->n_held));
        if (i % 3 == 0)
            nghttp2_submit_rst_stream(r->client, 0, id, NGHTTP2_CANCEL);
        else if (i % 3 == 1)
            nj_h2_reset_stream(q->st, NGHTTP2_CANCEL);
        else
            rig_answer(r, q); /* without waiting for the rest */
        cr_assert_eq(rig_run(r, 0), 0);
        cr_expect(q->closed);
        cr_expect_eq(q->complete, i % 3 == 2);
        check_windows(r, "abandoned");
    }
    rig_upload(r, "/700lca", 4000000, false);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(r->req[60].complete && r->req[60].n_got == 4000000);
    rig_free(r);
}

/* Bytes consumed after a reset, or after the request's end, count for the connection alone. */
Test(h2_data_input, consumed_late)
{
    struct rig *r = open_reader();
    int32_t a = rig_upload(r, "/10l", 400000, false);
    rig_upload(r, "/10l", 2000000, false);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(r->req[0].n_ends, 1);
    nj_h2_reset_stream(r->req[1].st, NGHTTP2_CANCEL);
    rig_consume(&r->req[1], 100000);
    rig_consume(&r->req[0], r->req[0].n_held);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(rig_reply(r, a)->n_given, 0);
    cr_expect(r->req[1].closed);
    check_windows(r, "late");
    rig_free(r);
}

static int32_t promise(struct rig *r, const char *length, uint64_t size)
{
    nghttp2_nv nv[] = {RIG_NV(":method", "POST"), RIG_NV(":scheme", "http"),
                       RIG_NV(":path", "/10lca"), RIG_NV(":authority", "a"),
                       RIG_NV("content-length", length)};
    const nghttp2_data_provider up = {.read_callback = rig_up_read};
    int32_t id = nghttp2_submit_request(r->client, NULL, nv, 5, &up, NULL);
    *rig_reply(r, id) = (struct rig_reply){.up_size = size, .want = 10};
    return id;
}

/* RFC 9113 8.1.1: a body of another length than was promised makes the request malformed. */
Test(h2_data_input, content_length)
{
    struct rig *r = open_reader();
    promise(r, "100000", 100000);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(r->req[0].complete && r->req[0].n_ends == 1);
    static const uint32_t wrong[] = {99999, 100001, 300000, 0};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(wrong); i++) {
        int32_t id = promise(r, "100000", wrong[i]);
        cr_assert_eq(rig_run(r, 0), 0);
        struct rig_stream *q = &r->req[1 + i];
        cr_expect(q->closed && !q->complete && q->n_ends == 0, "%u", wrong[i]);
        cr_expect_leq(q->n_got, 100000);
        cr_expect_eq(rig_reply(r, id)->error, NGHTTP2_PROTOCOL_ERROR);
        check_windows(r, "content-length");
    }
    rig_free(r);
}

/* ---- calls from within the events ---- */

static unsigned where; /* 0: on_request, 1: on_data, 2: on_end */

static void act(struct rig *r, struct nj_h2_stream *st, unsigned at)
{
    struct rig_stream *q = nj_h2_stream_user(st);
    if (at != where || q->body)
        return;
    if (strchr(q->path, 'R'))
        nj_h2_reset_stream(st, NGHTTP2_CANCEL);
    else
        rig_answer(r, q);
}

static void act_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *req)
{
    rig_on_request(user, st, req);
    act(user, st, 0);
}

static void act_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n)
{
    rig_on_data(user, st, data, n);
    act(user, st, 1);
}

static void act_end(void *user, struct nj_h2_stream *st)
{
    rig_on_end(user, st);
    act(user, st, 2);
}

static const struct nj_h2_events act_events = {.on_request = act_request,
                                               .on_stream_close = rig_on_close,
                                               .on_data = act_data,
                                               .on_end = act_end};

Test(h2_data_input, calls_within_events)
{
    static const char *const paths[] = {"/9000l",   "/9000lc", "/9000luc", "/9000lut", "/0lut",
                                        "/9000luh", "/9000lR", "/9000lRc", "/0lt",     "/0l"};
    for (unsigned i = 0; i < 3 * NJ_ARRAY_LEN(paths); i++) {
        const char *path = paths[i / 3];
        where = i % 3;
        struct rig *r = rig_new_with(NULL, &act_events);
        rig_client_new(r, 0, false);
        for (int k = 0; k < 4; k++)
            rig_upload(r, path, 200000, k % 2);
        cr_assert_eq(rig_run(r, 1000), 0);
        for (int k = 0; k < 4; k++) {
            struct rig_stream *q = &r->req[k];
            if (strchr(path, 'h') && !q->body->closes)
                rig_finish(q->body);
            cr_assert_eq(rig_run(r, 0), 0);
            cr_expect(q->closed, "%s at %u", path, where);
            cr_expect_eq(q->complete, !strchr(path, 'R'), "%s at %u", path, where);
            if (strchr(path, 'R') && where < 2)
                cr_expect_eq(q->n_ends, 0);
            if (where == 2)
                cr_expect_eq(q->n_ends, 1);
        }
        check_windows(r, path);
        rig_free(r);
    }
}

/* ---- an echo: the response makes room for the request ---- */

static void echo_advance(struct nj_body *b, uint32_t n)
{
    struct rig *r = ((struct rig_body *)b)->rig;
    rig_advance(b, n);
    for (unsigned i = 0; i < r->n_req; i++) {
        if (r->req[i].body == (struct rig_body *)b)
            rig_consume(&r->req[i], n); /* inside nj_h2_output() */
    }
}

static const struct nj_body_ops echo_ops = {rig_peek, echo_advance, rig_remaining, rig_close_body,
                                            NULL};

static void echo_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *req)
{
    rig_on_request(user, st, req);
    ((struct rig_stream *)nj_h2_stream_user(st))->body->body.ops = &echo_ops;
}

static void echo_data(void *user, struct nj_h2_stream *st, const uint8_t *data, size_t n)
{
    rig_on_data(user, st, data, n);
    rig_release(((struct rig_stream *)nj_h2_stream_user(st))->body, n);
}

static void echo_end(void *user, struct nj_h2_stream *st)
{
    rig_on_end(user, st);
    rig_finish(((struct rig_stream *)nj_h2_stream_user(st))->body);
}

static const struct nj_h2_events echo_events = {.on_request = echo_request,
                                                .on_stream_close = rig_on_close,
                                                .on_data = echo_data,
                                                .on_end = echo_end};

Test(h2_data_input, echo)
{
    static const uint32_t sizes[] = {0, 1, 70000, 3000000};
    struct rig *r = rig_new_with(NULL, &echo_events);
    rig_client_new(r, 0, false);
    for (unsigned i = 0; i < 2 * NJ_ARRAY_LEN(sizes); i++) {
        char path[32];
        snprintf(path, sizeof path, "/%uduh%s", sizes[i / 2], i % 2 ? "t" : "");
        rig_upload(r, path, sizes[i / 2], i % 2);
    }
    int rv = 0;
    for (unsigned turn = 0; turn < 100000 && rv == 0 && nj_h2_n_streams(r->h) + !turn > 0; turn++) {
        r->room = 4096 + nj_prng_below(&r->prng, 30000);
        rig_turn(r, 3000, &rv);
    }
    cr_assert_eq(rv, 0);
    for (unsigned i = 0; i < 2 * NJ_ARRAY_LEN(sizes); i++) {
        const struct rig_reply *a = rig_reply(r, 1 + 2 * (int32_t)i);
        cr_expect(a->ended && a->n_bytes == sizes[i / 2], "%u", i);
        cr_expect_eq(a->n_trailers, i % 2);
    }
    cr_expect_eq(r->n_closed, 2 * NJ_ARRAY_LEN(sizes));
    check_windows(r, "echo");
    rig_free(r);
}

/* ---- frames by hand: discarded bytes ---- */

static void data_frame(uint8_t *to, uint32_t n, uint8_t flags)
{
    memcpy(to, (uint8_t[9]){0, 0, (uint8_t)n, NGHTTP2_DATA, flags, 0, 0, 0, 1}, 9);
}

static struct rig *open_by_hand(const char *path)
{
    struct rig *r = rig_new_with(NULL, &rig_reader_events);
    uint8_t in[128];
    size_t at = NGHTTP2_CLIENT_MAGIC_LEN, len = strlen(path);
    memcpy(in, NGHTTP2_CLIENT_MAGIC, at);
    memcpy(in + at, (uint8_t[9]){0, 0, 0, NGHTTP2_SETTINGS}, 9);
    at += 9;
    memcpy(in + at, (uint8_t[9]){0, 0, (uint8_t)(7 + len), NGHTTP2_HEADERS, 4, 0, 0, 0, 1}, 9);
    memcpy(in + at + 9, (uint8_t[4]){0x82, 0x86, 0x04, (uint8_t)len}, 4);
    memcpy(in + at + 13, path, len);
    memcpy(in + at + 13 + len, "\x41\1a", 3);
    cr_assert_eq(nj_h2_input(r->h, in, at + 16 + len), 0);
    return r;
}

/* A reset that falls between the bytes of a trailer block: there is no end any more. */
Test(h2_data_input, reset_within_trailers)
{
    static const uint8_t trailers[] = {0, 0, 4, NGHTTP2_HEADERS, 5, 0, 0, 0, 1, 0x40, 1, 'x', 0};
    for (size_t cut = 1; cut < sizeof trailers; cut++) {
        struct rig *r = open_by_hand("/0l");
        cr_assert_eq(nj_h2_input(r->h, trailers, cut), 0);
        nj_h2_reset_stream(r->req[0].st, NGHTTP2_CANCEL);
        cr_assert_eq(nj_h2_input(r->h, trailers + cut, sizeof trailers - cut), 0);
        cr_expect_eq(r->req[0].n_ends, 0);
        rig_free(r);
    }
    struct rig *r = open_by_hand("/0l");
    cr_assert_eq(nj_h2_input(r->h, trailers, sizeof trailers), 0);
    cr_expect_eq(r->req[0].n_ends, 1);
    rig_free(r);
}

/* Opens stream 1 and sends `frame` until the connection ends; how often that worked, up to
 * `n_max`. */
static unsigned repeat(const char *path, const uint8_t *frame, size_t n, unsigned n_max, bool reset)
{
    struct rig *r = open_by_hand(path);
    if (reset)
        nj_h2_reset_stream(r->req[0].st, NGHTTP2_CANCEL);
    unsigned i = 0;
    while (i < n_max && nj_h2_input(r->h, frame, n) == 0) {
        i++;
        r->req[0].n_got = 0;
        cr_assert_eq(nj_h2_output(r->h, &rig_sink, r), 0);
        rig_drain(r, false);
    }
    rig_free(r);
    return i;
}

Test(h2_data_input, glitches)
{
    uint8_t f[17 + 9 + 4096] = {0};
    data_frame(f, 0, 0);
    cr_expect_leq(repeat("/0lc", f, 9, 5000, false), 1000, "empty DATA");
    data_frame(f, 1, 0);
    f[9] = rig_byte(RIG_UP, 0);
    cr_expect_eq(repeat("/0lc", f, 10, 5000, false), 5000, "a byte that is read");
    cr_expect_eq(repeat("/0l", f, 10, 5000, false), 5000, "a byte that will be read");
    cr_expect_leq(repeat("/0l", f, 10, 5000, true), 1000, "a byte that is not read");
    data_frame(f, 40, NGHTTP2_FLAG_PADDED);
    f[9] = 39;
    cr_expect_leq(repeat("/0lc", f, 49, 5000, false), 1000, "padding");
    f[9] = 38;
    f[10] = rig_byte(RIG_UP, 0);
    cr_expect_eq(repeat("/0lc", f, 49, 5000, false), 5000, "a byte in padding");
    data_frame(f, 5, NGHTTP2_FLAG_PADDED);
    f[9] = 4;
    f[10] = 0;
    cr_expect_leq(repeat("/0lc", f, 14, 5000, false), 1000, "little padding");
    /* A PING for each frame, as clients send them that measure the path. */
    memcpy(f, (uint8_t[17]){0, 0, 8, NGHTTP2_PING}, 17);
    data_frame(f + 17, 0, 0);
    f[18] = 4096 >> 8;
    for (size_t i = 0; i < 4096; i++)
        f[26 + i] = rig_byte(RIG_UP, i);
    cr_expect_eq(repeat("/0lc", f, sizeof f, 5000, false), 5000, "PINGs beside an upload");
    cr_expect_leq(repeat("/0lc", f, 17, 5000, false), 1000, "PINGs alone");
}

/* ---- everything at once ---- */

static void start(struct rig *r)
{
    static const char *const ways[] = {"",   "l",  "la",    "lac", "c",
                                       "lc", "lu", "lacut", "dl",  "duhlt"};
    char path[32];
    snprintf(path, sizeof path, "/%u%s", nj_prng_below(&r->prng, 30000),
             ways[nj_prng_below(&r->prng, NJ_ARRAY_LEN(ways))]);
    uint32_t size = nj_prng_below(&r->prng, 4) ? 700000 : 3000;
    rig_upload(r, path, nj_prng_below(&r->prng, size), nj_prng_below(&r->prng, 3) == 0);
}

static void poke(struct rig *r, struct rig_stream *q)
{
    switch (nj_prng_below(&r->prng, 12)) {
    case 0:
        nghttp2_submit_rst_stream(r->client, 0, q->st->id, NGHTTP2_CANCEL);
        break;
    case 1:
        nj_h2_reset_stream(q->st, NGHTTP2_CANCEL);
        break;
    case 2:
        if (!q->st->responded)
            rig_answer(r, q);
        break;
    case 3:
        if (q->body && !q->body->closes)
            rig_release(q->body, 1 + nj_prng_below(&r->prng, 30000));
        break;
    case 4:
        if (q->body && !q->body->closes && q->body->late_end && q->body->avail == q->body->size)
            rig_finish(q->body);
        break;
    default:
        if (q->n_held > 0)
            rig_consume(q, 1 + nj_prng_below(&r->prng, (uint32_t)q->n_held));
        break;
    }
}

/* Run every stream to its end. */
static void finish(struct rig *r)
{
    for (int round = 0; round < 1000 && nj_h2_n_streams(r->h) > 0; round++) {
        for (unsigned i = 0; i < r->n_req; i++) {
            struct rig_stream *q = &r->req[i];
            if (q->closed)
                continue;
            if (q->n_held > 0)
                rig_consume(q, q->n_held);
            if (!q->st->responded)
                rig_answer(r, q);
            if (q->body && !q->body->closes)
                rig_release(q->body, UINT32_MAX);
            if (q->body && !q->body->closes && q->body->late_end)
                rig_finish(q->body);
        }
        cr_assert_eq(rig_run(r, 0), 0);
    }
}

static void random_uploads(uint64_t seed)
{
    struct rig *r = open_reader();
    nj_prng_init(&r->prng, seed);
    r->pad_max = seed % 3 ? 0 : 256;
    char when[32];
    for (unsigned step = 0; step < 1500; step++) {
        snprintf(when, sizeof when, "seed %u step %u", (unsigned)seed, step);
        if (r->n_req < 240 && nj_prng_below(&r->prng, 8) == 0 && nj_h2_n_streams(r->h) < 20)
            start(r);
        struct rig_stream *q = &r->req[nj_prng_below(&r->prng, r->n_req + 1)];
        if (q->st && !q->closed)
            poke(r, q);
        r->room = nj_prng_below(&r->prng, 2) ? 4096 + nj_prng_below(&r->prng, 9000) : 0;
        int rv = 0;
        rig_turn(r, 1 + nj_prng_below(&r->prng, 20000), &rv);
        cr_assert_eq(rv, 0, "%s", when);
        r->room = 0;
        if (nj_prng_below(&r->prng, 4) == 0) {
            cr_assert_eq(rig_run(r, 0), 0, "%s", when);
            check_windows(r, when);
        }
    }
    finish(r);
    cr_assert_eq(nj_h2_n_streams(r->h), 0, "%s", when);
    check_windows(r, when);
    for (unsigned i = 0; i < r->n_req; i++) {
        const struct rig_stream *q = &r->req[i];
        cr_expect_leq(q->n_ends, 1, "%s", when);
        const struct rig_reply *a = &r->reply[i % RIG_STREAMS];
        if (a->error != 0)
            continue; /* it was reset */
        cr_expect(q->complete && a->ended && a->n_bytes == a->want, "%s: %s", when, q->path);
        if (q->n_ends)
            cr_expect_eq(q->n_got, a->up_size, "%s: %s", when, q->path);
    }
    rig_free(r);
}

/* H2_BODY_SEED=n runs that one. */
Test(h2_data_input, random_uploads)
{
    const char *only = getenv("H2_BODY_SEED");
    for (uint64_t seed = only ? strtoull(only, NULL, 10) : 1; seed <= 12; seed++) {
        random_uploads(seed);
        if (only)
            break;
    }
}

/* ---- memory ---- */

static int scenario(struct rig *r)
{
    rig_client_new(r, 0, false);
    rig_upload(r, "/3000lacut", 400000, true);
    rig_upload(r, "/3000l", 600000, false);
    rig_upload(r, "/30000luhd", 300000, false);
    if (rig_run(r, 3000) != 0 || r->n_req < 3)
        return -1;
    rig_answer(r, &r->req[2]);
    rig_consume(&r->req[1], r->req[1].n_held);
    if (rig_run(r, 0) != 0 || r->req[2].closed)
        return -1;
    rig_release(r->req[2].body, 30000);
    nj_h2_reset_stream(r->req[1].st, NGHTTP2_CANCEL);
    if (rig_run(r, 0) != 0 || r->req[2].closed)
        return -1;
    rig_finish(r->req[2].body);
    return rig_run(r, 0);
}

/* Each allocation fails once; no memory leaks, no body is closed twice, no event occurs twice. */
Test(h2_data_input, allocation_fails)
{
    unsigned n_failed = 0;
    bool over = false;
    for (uint64_t n = 1; !over; n++) {
        struct rig *r = calloc(1, sizeof *r);
        nj_alloc_init(&r->alloc, SIZE_MAX);
        r->core =
            nj_h2_context_new(&rig_reader_events, &nj_h2_limits_default, &r->alloc, &r->counters);
        r->alloc.fail_countdown = n;
        r->h = nj_h2_open(r->core, r);
        int rv = -1;
        if (r->h) {
            rv = scenario(r);
            cr_expect(rv == 0 || nj_h2_is_finished(r->h), "%u", (unsigned)n);
            n_failed += rv != 0;
        }
        over = r->alloc.fail_countdown > 0;
        cr_expect(!over || rv == 0, "%u", (unsigned)n);
        rig_free(r);
        cr_assert_lt(n, 400, "the scenario allocates more than expected");
    }
    cr_expect_gt(n_failed, 8, "%u", n_failed);
}
