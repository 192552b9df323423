/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/h2: the fields of a request, and their lookup by enum nj_header. */
#include "h2_rig.h"

static char shown[200 * 1024];
static uint32_t n_shown;
static struct nj_request_head seen;
static char kept[NJ_N_HEADERS][32];

static void on_request(void *user, struct nj_h2_stream *st, const struct nj_request_head *req)
{
    size_t at = 0;

    seen = *req;
    for (uint32_t i = 0; i < NJ_N_HEADERS; i++) {
        struct nj_str value = nj_header_first_value(req, i);
        snprintf(kept[i], sizeof kept[i], "%.*s", (int)value.n_bytes, value.p ? value.p : "");
    }
    n_shown = req->n_fields;
    for (uint32_t i = 0; i < req->n_fields; i++) {
        const struct nj_field *f = &req->fields[i];
        at += (size_t)snprintf(shown + at, sizeof shown - at, "%.*s=%.*s;", (int)f->name.n_bytes,
                               f->name.p, (int)f->value.n_bytes, f->value.p);
        cr_assert_lt(at, sizeof shown);
    }
    rig_on_request(user, st, req);
}

static const struct nj_h2_events events = {.on_request = on_request,
                                           .on_stream_close = rig_on_close};

static struct rig *open_rig(void)
{
    struct rig *r = rig_new_with(&nj_h2_limits_default, &events);
    rig_client_new(r, 0, false);
    shown[0] = '\0';
    return r;
}

static int32_t ask(struct rig *r, const nghttp2_nv *more, size_t n)
{
    nghttp2_nv nv[160] = {RIG_NV(":method", "GET"), RIG_NV(":scheme", "http"),
                          RIG_NV(":path", "/10"), RIG_NV(":authority", "host.example")};
    for (size_t i = 0; i < n; i++)
        nv[4 + i] = more[i];
    int32_t id = nghttp2_submit_request(r->client, NULL, nv, 4 + n, NULL, NULL);
    *rig_reply(r, id) = (struct rig_reply){.want = 10};
    return id;
}

static const nghttp2_nv some[] = {
    RIG_NV("accept", "*/*"),        RIG_NV("cookie", "a=1"),
    RIG_NV("x-empty", ""),          RIG_NV("cookie", "b=22"),
    RIG_NV("host", "HOST.example"), RIG_NV("x-long-name-that-is-new", "v")};

/* In order, with no pseudo fields; the second time most of them come out of the HPACK table. */
Test(h2_request_head, all_fields_in_order)
{
    for (uint32_t chunk = 0; chunk < 3; chunk++) {
        struct rig *r = open_rig();
        for (int i = 0; i < 3; i++) {
            ask(r, some, NJ_ARRAY_LEN(some));
            cr_assert_eq(rig_run(r, chunk), 0);
            cr_expect_eq(n_shown, NJ_ARRAY_LEN(some));
            cr_expect_str_eq(shown, "accept=*/*;cookie=a=1;x-empty=;cookie=b=22;host=HOST.example;"
                                    "x-long-name-that-is-new=v;");
            cr_expect_str_eq(r->req[i].authority, "host.example");
        }
        ask(r, NULL, 0);
        cr_assert_eq(rig_run(r, chunk), 0);
        cr_expect_eq(n_shown, 0);
        rig_free(r);
    }
}

static const nghttp2_nv known[] = {
    RIG_NV("if-match", "\"m\""),      RIG_NV("if-unmodified-since", ""),
    RIG_NV("if-none-match", "\"n\""), RIG_NV("if-modified-since", "yesterday"),
    RIG_NV("if-range", "\"r\""),      RIG_NV("range", "bytes=0-1"),
    RIG_NV("accept-encoding", "br"),  RIG_NV("accept", "text/html"),
    RIG_NV("referer", "http://a/"),   RIG_NV("user-agent", "rig"),
};
_Static_assert(NJ_ARRAY_LEN(known) == NJ_N_HEADERS, "all of them, in the order of the enum");

/* A field name may arrive as any index or literal: each field is kept under its number, and is in
 * the list, too; of several the first is kept. */
Test(h2_request_head, known_fields_are_kept)
{
    struct rig *r = open_rig();

    for (int i = 0; i < 3; i++) {
        ask(r, known, NJ_N_HEADERS);
        cr_assert_eq(rig_run(r, 7), 0);
        cr_expect_eq(n_shown, NJ_N_HEADERS);
        cr_expect_eq(seen.header_set, (1u << NJ_N_HEADERS) - 1);
        cr_expect_eq(seen.header_repeated, 0);
        for (uint32_t k = 0; k < NJ_N_HEADERS; k++) {
            cr_expect_str_eq(kept[k], (const char *)known[k].value);
            cr_expect_eq(nj_header_id_of_name(nj_header_name_of_id(k)), k);
        }
        ask(r, NULL, 0);
        cr_assert_eq(rig_run(r, 0), 0);
        cr_expect_eq(seen.header_set, 0);
    }
    const nghttp2_nv twice[] = {RIG_NV("range", "a"), RIG_NV("x", "y"), RIG_NV("range", "b")};
    ask(r, twice, NJ_ARRAY_LEN(twice));
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(seen.header_set, 1u << NJ_HEADER_RANGE);
    cr_expect_eq(seen.header_repeated, 1u << NJ_HEADER_RANGE);
    cr_expect_str_eq(kept[NJ_HEADER_RANGE], "a");
    cr_expect_eq(nj_header_id_of_name(NJ_STR("ranges")), NJ_N_HEADERS);
    rig_free(r);
}

/* A length is a number once; without one it is 0. */
Test(h2_request_head, content_length)
{
    const nghttp2_nv length = RIG_NV("content-length", "0");
    struct rig *r = open_rig();

    ask(r, &length, 1);
    cr_assert_eq(rig_run(r, 0), 0);
    cr_expect_eq(seen.content_length, 0);
    rig_free(r);
}

/* As many fields as the limit allows, and one more. Returns the bytes held at rest. */
static size_t many_fields(void)
{
    struct rig *r = open_rig();
    nghttp2_nv nv[125];
    for (size_t i = 0; i < NJ_ARRAY_LEN(nv); i++)
        nv[i] = (nghttp2_nv){(uint8_t *)"x", (uint8_t *)"0123456789" + i % 10, 1, 1,
                             NGHTTP2_NV_FLAG_NO_INDEX};
    ask(r, nv, 124);
    cr_assert_eq(rig_run(r, 5), 0);
    cr_expect_eq(n_shown, 124);
    cr_expect_eq(strlen(shown), n_shown * strlen("x=0;"));
    for (size_t i = 0; i < n_shown; i++)
        cr_assert_eq(shown[4 * i + 2], "0123456789"[i % 10]);
    int32_t over = ask(r, nv, 125);
    cr_assert_eq(rig_run(r, 5), 0);
    cr_expect_eq(rig_reply(r, over)->status, 431);
    cr_expect_eq(r->n_req, 1);
    size_t at_rest = nj_h2_context_bytes_used(r->core);
    rig_free(r);
    return at_rest;
}

Test(h2_request_head, many_fields)
{
    cr_expect_gt(many_fields(), 0);
}

/* A block that is never complete, one that turns out malformed, and a connection that ends. */
Test(h2_request_head, blocks_that_come_to_nothing)
{
    static const uint8_t head[] = {0x82, 0x86, 0x84, 0x41, 1, 'a', 0, 1, 'x', 1, 'y'};
    static const uint8_t bad[] = {0x82, 0x86, 0x84, 0, 1, 'x', 1, 'y', 0, 1, 'X', 1, 'y'};
    for (size_t cut = 1; cut <= sizeof head; cut++) {
        struct rig *r = rig_new_with(&nj_h2_limits_default, &events);
        uint8_t in[256];
        size_t n = NGHTTP2_CLIENT_MAGIC_LEN;
        memcpy(in, NGHTTP2_CLIENT_MAGIC, n);
        memcpy(in + n, (uint8_t[9]){0, 0, 0, NGHTTP2_SETTINGS}, 9);
        memcpy(in + n + 9, (uint8_t[9]){0, 0, sizeof bad, NGHTTP2_HEADERS, 5, 0, 0, 0, 1}, 9);
        memcpy(in + n + 18, bad, sizeof bad);
        n += 18 + sizeof bad;
        memcpy(in + n, (uint8_t[9]){0, 0, sizeof head, NGHTTP2_HEADERS, 1, 0, 0, 0, 3}, 9);
        memcpy(in + n + 9, head, cut);
        cr_assert_eq(nj_h2_input(r->h, in, n + 9 + cut), 0);
        cr_expect_eq(r->n_req, 0);
        rig_free(r);
    }
}
