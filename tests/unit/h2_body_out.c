/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/h2: responses of unknown length, trailers, and resets by the server. */
#include "h2_rig.h"

#include "telem/counters.h"

/* For each way to signal the end of a body, every byte arrives, and none after it. */
Test(h2_body_out, unknown_length)
{
    static const uint32_t sizes[] = {0, 1, 511, 16384, 65535, 65536, 300000};
    static const char *const ways[] = {"u", "ue", "ut", "uet", "t"};
    for (size_t w = 0; w < NJ_ARRAY_LEN(ways); w++) {
        struct rig *r = rig_new(NULL);
        rig_client_new(r, 0, false);
        for (size_t i = 0; i < NJ_ARRAY_LEN(sizes); i++) {
            char path[32], sum[16];
            snprintf(path, sizeof path, "/%u%s", sizes[i], ways[w]);
            snprintf(sum, sizeof sum, "%u", sizes[i]);
            struct rig_reply *a = rig_reply(r, rig_ask(r, path));
            cr_assert_eq(rig_run(r, 0), 0, "%s", path);
            cr_expect(a->closed && a->ended && a->error == 0 && a->status == 200, "%s", path);
            cr_expect_eq(a->n_bytes, sizes[i], "%s", path);
            bool trailers = strchr(path, 't');
            bool late = strchr(path, 'u') && (sizes[i] == 0 || !strchr(path, 'e'));
            cr_expect_eq(a->n_empty, late && !trailers, "%s", path);
            cr_expect_eq(a->n_trailers, trailers, "%s", path);
            cr_expect_str_eq(a->trailer, trailers ? sum : "", "%s", path);
            cr_expect(r->req[i].complete);
        }
        cr_expect_eq(r->h->glitches, 0);
        cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 0);
        cr_expect_eq(rig_count(r, NJ_C_responses), NJ_ARRAY_LEN(sizes));
        rig_free(r);
    }
}

/* Bytes that are available in parts; the end is signalled late, after all bytes have arrived. */
static void told_late(const char *path, unsigned n_trailers)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1 << 20, false);
    struct rig_reply *a = rig_reply(r, rig_ask(r, path));
    cr_assert_eq(rig_run(r, 0), 0);
    for (uint64_t at = 0; at < a->want;) {
        uint64_t n = 1 + nj_prng_below(&r->prng, 5000);
        at = at + n < a->want ? at + n : a->want;
        rig_release(r->req[0].body, n);
        cr_assert_eq(rig_run(r, 0), 0);
        cr_assert_eq(a->n_bytes, at);
    }
    nj_h2_resume(r->req[0].st); /* without effect */
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(!a->ended && !a->closed && a->n_trailers == 0);
    rig_finish(r->req[0].body);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(a->ended && a->closed && a->n_bytes == a->want);
    cr_expect_eq(a->n_trailers, n_trailers);
    cr_expect(r->req[0].complete);
    rig_free(r);
}

Test(h2_body_out, end_told_late)
{
    told_late("/40000duh", 0);
    told_late("/40000duht", 1);
    told_late("/0duh", 0);
    told_late("/0duht", 1);
}

/* A body that fails before its end was known sends no trailers. */
Test(h2_body_out, broken)
{
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 1 << 20, false);
    struct rig_reply *a = rig_reply(r, rig_ask(r, "/100000uft"));
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(a->closed && !a->ended && a->n_trailers == 0);
    cr_expect_eq(a->error, NGHTTP2_INTERNAL_ERROR);
    cr_expect(!r->req[0].complete);
    rig_free(r);
}

/* Trailers alone, and trailers that come too late. */
Test(h2_body_out, trailers_without_body)
{
    const struct nj_field field = {NJ_STR_INIT("x-sum"), NJ_STR_INIT("")};
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, false);
    struct rig_reply *a = rig_reply(r, rig_ask(r, "/0l")), *b = rig_reply(r, rig_ask(r, "/0l"));
    cr_assert_eq(rig_run(r, 0), 0);
    struct nj_h2_stream *st = r->req[0].st;
    cr_expect_eq(nj_h2_set_trailers(st, &field, 1), 0);
    cr_expect_eq(nj_h2_respond(st, 200, NULL, 0, 0, NULL), 0);
    st = r->req[1].st;
    cr_expect_eq(nj_h2_respond(st, 200, NULL, 0, 0, NULL), 0);
    cr_expect_eq(nj_h2_set_trailers(st, &field, 1), -1);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(a->ended && a->closed && a->n_trailers == 1);
    cr_expect(b->ended && b->closed && b->n_trailers == 0);
    cr_expect(r->req[0].complete && r->req[1].complete);
    rig_free(r);
}

/* Room that is small and changes, slices that are cut anywhere, input that comes in crumbs. */
Test(h2_body_out, tiny_room)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct rig *r = rig_new(NULL);
        nj_prng_init(&r->prng, seed);
        rig_client_new(r, 0, false);
        r->peek_max = seed % 3 == 0 ? 0 : 1 + nj_prng_below(&r->prng, 20000);
        int32_t id[20];
        for (int i = 0; i < 20; i++) {
            static const char *const ways[] = {"", "u", "ue", "t", "ut", "uet"};
            char path[32];
            snprintf(path, sizeof path, "/%u%s", nj_prng_below(&r->prng, 60000),
                     ways[nj_prng_below(&r->prng, NJ_ARRAY_LEN(ways))]);
            id[i] = rig_ask(r, path);
        }
        int rv = 0;
        bool moved = true;
        for (int turn = 0; turn < 100000 && moved && rv == 0; turn++) {
            r->room = 4096 + nj_prng_below(&r->prng, turn % 2 ? 100 : 20000);
            moved = rig_turn(r, 1 + nj_prng_below(&r->prng, 64), &rv);
        }
        cr_assert_eq(rv, 0, "seed %d", (int)seed);
        for (int i = 0; i < 20; i++) {
            struct rig_reply *a = rig_reply(r, id[i]);
            cr_expect(a->closed && a->ended, "seed %d stream %d", (int)seed, id[i]);
            cr_expect_eq(a->n_bytes, a->want);
        }
        cr_expect_eq(r->n_over, 0, "seed %d: %u beyond the room", (int)seed, r->n_over);
        rig_free(r);
    }
}

/* The longest DATA frame of a response; a large one is its head and a reference. */
static uint32_t longest_of(struct rig *r, const char *path)
{
    uint32_t longest = 0;
    int rv = 0;

    int32_t id = rig_ask(r, path);
    while (!rig_reply(r, id)->closed) {
        rig_upstream(r, 0, &rv);
        cr_assert_eq(rv + nj_h2_output(r->h, &rig_sink, r), 0);
        for (uint32_t i = 0; i < r->n_pieces; i++)
            if (r->piece[i].ref && r->piece[i].n_bytes > longest)
                longest = r->piece[i].n_bytes;
        rig_drain(r, true);
    }
    cr_expect_eq(rig_reply(r, id)->n_bytes, rig_reply(r, id)->want);
    return longest;
}

/* RFC 9113 4.2: the peer's SETTINGS_MAX_FRAME_SIZE, from its SETTINGS frame on. */
Test(h2_body_out, as_long_as_the_peer_allows)
{
    static const struct {
        uint32_t allows, longest;
    } rows[] = {{0, 16384},     {16384, 16384},    {20000, 20000}, {32768, 32768},
                {65536, 32768}, {0xffffff, 32768}, {16384, 16384}};
    struct rig *r = rig_new(NULL);

    rig_client_new(r, 1u << 30, false);
    nghttp2_submit_window_update(r->client, 0, 0, 1 << 30);
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        nghttp2_settings_entry e = {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, rows[i].allows};
        if (rows[i].allows)
            nghttp2_submit_settings(r->client, 0, &e, 1);
        cr_assert_eq(rig_run(r, 0), 0);
        cr_expect_eq(longest_of(r, "/1000000"), rows[i].longest, "%zu", i);
        cr_expect_eq(longest_of(r, "/1000000u"), rows[i].longest, "%zu", i);
    }
    rig_free(r);
}

/* RFC 9113 6.9: END_STREAM needs no window. A peer that has used up its windows gets the end, or
 * the trailers, without a WINDOW_UPDATE. */
Test(h2_body_out, end_needs_no_window)
{
    static const char *const paths[] = {"/65535uh", "/65535uht"};
    for (unsigned i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        struct rig *r = rig_new(NULL);
        rig_client_new(r, 0, true);
        struct rig_reply *a = rig_reply(r, rig_ask(r, paths[i]));
        cr_assert_eq(rig_run(r, 0), 0);
        cr_expect(a->n_bytes == 65535 && !a->ended);
        cr_expect_eq(nj_h2_stream_blocked_by(r->req[0].st), NJ_BLOCKED_BY_STREAM_WINDOW);
        rig_finish(r->req[0].body);
        cr_expect_eq(nj_h2_stream_blocked_by(r->req[0].st), NJ_BLOCKED_BY_NOTHING);
        cr_assert_eq(rig_run(r, 0), 0);
        cr_expect(a->ended && a->closed && r->req[0].complete, "%s", paths[i]);
        cr_expect_eq(a->n_trailers, i);
        rig_free(r);
    }
}

/* A queued end stays at its place, in spite of a PRIORITY_UPDATE for its stream. */
Test(h2_body_out, end_keeps_its_place)
{
    static const uint8_t update[] = {0, 0, 7, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'u', '=', '0'};
    struct rig *r = rig_new(NULL);
    rig_client_new(r, 0, true);
    struct rig_reply *a = rig_reply(r, rig_ask(r, "/65535uh"));
    cr_assert_eq(rig_run(r, 0), 0);
    rig_finish(r->req[0].body);
    cr_assert_eq(nj_h2_input(r->h, update, sizeof update), 0);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect(a->ended && a->closed && a->n_empty == 1);
    cr_expect(r->req[0].closed && r->req[0].complete);
    rig_free(r);
}

/* Trailers behind the last frame of a body, for each size of the room. */
Test(h2_body_out, trailers_at_the_end_of_the_room)
{
    for (uint32_t more = 0; more < 400; more++) {
        struct rig *r = rig_new(NULL);
        rig_client_new(r, 0, false);
        cr_assert_eq(rig_run(r, 0), 0);
        r->room = 16384 + NJ__H2_FRAME_HEAD + more;
        struct rig_reply *a = rig_reply(r, rig_ask(r, "/16384t"));
        cr_assert_eq(rig_run(r, 0), 0, "%u", more);
        cr_expect(a->ended && a->closed && a->n_trailers == 1, "%u", more);
        cr_expect_eq(r->n_over, 0, "%u", more);
        rig_free(r);
    }
}

/* RST_STREAM from outside: at any time of a response, once, and the event does not come at once. */
Test(h2_body_out, reset)
{
    static const char *const paths[] = {"/0l", "/90000d", "/90000duh", "/90000", "/90000t"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        struct rig *r = rig_new(NULL);
        rig_client_new(r, 0, true); /* 90,000 bytes stay without WINDOW_UPDATEs */
        struct rig_reply *a = rig_reply(r, rig_ask(r, paths[i]));
        cr_assert_eq(rig_run(r, 0), 0);
        nj_h2_reset_stream(r->req[0].st, NGHTTP2_ENHANCE_YOUR_CALM);
        nj_h2_reset_stream(r->req[0].st, NGHTTP2_CANCEL);
        cr_expect(!r->req[0].closed);
        if (i == 0) /* a response now is discarded */
            cr_expect_eq(rig_answer(r, &r->req[0]), 0);
        else
            nj_h2_resume(r->req[0].st);
        cr_assert_eq(rig_run(r, 0), 0);
        cr_expect(r->req[0].closed && !r->req[0].complete, "%s", paths[i]);
        cr_expect(a->closed && !a->ended);
        cr_expect_eq(a->error, NGHTTP2_ENHANCE_YOUR_CALM);
        cr_expect_eq(rig_count(r, NJ_C_h2_reset_out), 1);
        cr_expect_leq(r->h->glitches, 2, "our own doing");
        rig_free(r);
    }
}
