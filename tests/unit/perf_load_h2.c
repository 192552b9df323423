/* SPDX-License-Identifier: BSD-3-Clause */
/* The load generator's HTTP/2 against nghttp2 as the server, and against malformed input. */
#include "h2.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"

#define OUT_MAX 65536u

/* ---- a server ---- */

struct served {
    int32_t id;
    char fields[1024]; /* "name=value\n" of each */
    uint64_t n_upload, left;
    bool ended;
};

struct pair {
    struct load_plan plan;
    struct h2_conn c;
    struct load_out out;
    nghttp2_session *server;
    struct served *seen;
    uint32_t n_seen;
    /* How the server answers. */
    const char *status;
    uint64_t n_body;
    size_t n_pad, n_big; /* padding of each frame; bytes of one large field */
    bool interim, trailers, refuse, mute;
    /* Results. */
    uint32_t n_ended[LOAD_N_ENDS];
    uint64_t n_got, n_came; /* n_got: of ended streams; n_came: on arrival */
    uint16_t last_status;
    nj_ns first_at, last_due;
    struct nj_prng prng;
    uint64_t seed; /* how bytes are cut; 0: not at all */
};

static struct served *served(struct pair *p, int32_t id)
{
    for (uint32_t i = p->n_seen; i-- > 0;)
        if (p->seen[i].id == id)
            return &p->seen[i];
    cr_assert_fail("stream %d", id);
    return NULL;
}

static int on_begin(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct pair *p = user;

    p->seen = realloc(p->seen, (p->n_seen + 1) * sizeof *p->seen);
    p->seen[p->n_seen++] = (struct served){.id = f->hd.stream_id, .left = p->n_body};
    return 0;
}

static int on_field(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n_name,
                    const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct served *v = served(user, f->hd.stream_id);
    size_t n = strlen(v->fields);

    snprintf(v->fields + n, sizeof v->fields - n, "%.*s=%.*s\n", (int)n_name, name, (int)n_value,
             value);
    return 0;
}

static ssize_t read_body(nghttp2_session *s, int32_t id, uint8_t *buf, size_t n, uint32_t *flags,
                         nghttp2_data_source *source, void *user)
{
    struct pair *p = user;
    struct served *v = served(p, id);

    n = n < v->left ? n : v->left;
    memset(buf, 'x', n);
    v->left -= n;
    if (v->left == 0) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (p->trailers) {
            nghttp2_nv nv = {(uint8_t *)"sum", (uint8_t *)"1", 3, 1, 0};
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_trailer(s, id, &nv, 1);
        }
    }
    return (ssize_t)n;
}

static void answer(struct pair *p, int32_t id)
{
    static char big[20000];
    nghttp2_data_provider body = {.read_callback = read_body};
    nghttp2_nv nv[] = {
        {(uint8_t *)":status", (uint8_t *)p->status, 7, 3, 0},
        {(uint8_t *)"server", (uint8_t *)"test", 6, 4, 0},
        {(uint8_t *)"big", (uint8_t *)big, 3, p->n_big, 0},
    };
    nghttp2_nv early = {(uint8_t *)":status", (uint8_t *)"103", 7, 3, 0};

    memset(big, '~', sizeof big);
    if (p->refuse) {
        nghttp2_submit_rst_stream(p->server, 0, id, NGHTTP2_REFUSED_STREAM);
        return;
    }
    if (p->interim)
        nghttp2_submit_headers(p->server, 0, id, NULL, &early, 1, NULL);
    nghttp2_submit_response(p->server, id, nv, p->n_big ? 3 : 2, p->n_body ? &body : NULL);
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct pair *p = user;

    if ((f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA) &&
        (f->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        served(p, f->hd.stream_id)->ended = true;
        if (!p->mute)
            answer(p, f->hd.stream_id);
    }
    return 0;
}

static int on_upload(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
                     void *user)
{
    served(user, id)->n_upload += n;
    return 0;
}

static ssize_t pad(nghttp2_session *s, const nghttp2_frame *f, size_t most, void *user)
{
    struct pair *p = user;
    size_t n = f->hd.length + p->n_pad;
    return (ssize_t)(n < most ? n : most);
}

/* ---- the two ---- */

static void ended(void *user, const struct load_request *r, enum load_end end, nj_ns now)
{
    struct pair *p = user;

    p->n_ended[end]++;
    p->n_got += r->n_body;
    p->last_status = r->status;
    p->first_at = r->first_at;
    p->last_due = r->due;
}

static void came(void *user, uint32_t n_bytes)
{
    struct pair *p = user;
    p->n_came += n_bytes;
}

static struct pair *pair_new(const char *const *paths, uint32_t n_paths, uint32_t streams,
                             uint64_t upload)
{
    struct pair *p = calloc(1, sizeof *p);
    static const char *const fields[] = {"user-agent: load", "accept: */*"};

    p->status = "200";
    p->plan.streams = streams;
    p->plan.window = 1 << 20;
    p->plan.upload_bytes = upload;
    p->plan.ended = ended;
    p->plan.came = came;
    for (; p->plan.n_paths < n_paths; p->plan.n_paths++) {
        p->plan.path[p->plan.n_paths].text = paths[p->plan.n_paths];
        p->plan.path[p->plan.n_paths].n_bytes = (uint32_t)strlen(paths[p->plan.n_paths]);
    }
    cr_assert(h2_framing.make(&p->plan, "host:80", fields, 2));
    p->out.data = malloc(OUT_MAX);
    p->out.n_max = OUT_MAX;
    return p;
}

static void begin_with(struct pair *p, const nghttp2_settings_entry *settings, size_t n)
{
    nghttp2_session_callbacks *cb;

    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_field);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_upload);
    nghttp2_session_callbacks_set_select_padding_callback(cb, pad);
    cr_assert_eq(nghttp2_session_server_new(&p->server, cb, p), 0);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(p->server, 0, settings, n);
    nj_prng_init(&p->prng, p->seed);
    cr_assert(h2_framing.open(&p->c.conn, &p->plan, p, &p->out));
}

/* Deliver the client's output to the server. Returns whether there was any. */
static bool to_server(struct pair *p)
{
    uint32_t n = p->out.n_bytes;

    p->out.n_bytes = 0;
    cr_assert(!p->out.full);
    ssize_t took = nghttp2_session_mem_recv(p->server, p->out.data, n);
    cr_assert_eq(took, (ssize_t)n, "seed %" PRIu64 ": %zd of %u: %s", p->seed, took, n,
                 nghttp2_strerror((int)took));
    return n > 0;
}

static bool to_client(struct pair *p, nj_ns now)
{
    const uint8_t *data;
    ssize_t n = nghttp2_session_mem_send(p->server, &data);

    for (ssize_t at = 0; at < n;) {
        uint32_t left = (uint32_t)(n - at);
        uint32_t part = p->seed ? 1 + nj_prng_below(&p->prng, left < 40 ? left : 40) : left;
        part = part < left ? part : left;
        cr_assert(h2_framing.input(&p->c.conn, data + at, part, now, &p->out),
                  "seed %" PRIu64 ": %s", p->seed, p->c.conn.fault);
        at += part;
    }
    return n > 0;
}

static void talk(struct pair *p, nj_ns now)
{
    bool more = true;

    while (more) {
        h2_framing.upload(&p->c.conn, &p->out);
        more = to_server(p);
        while (to_client(p, now))
            more = true;
    }
}

static void pair_free(struct pair *p)
{
    h2_framing.close(&p->c.conn, 0);
    nghttp2_session_del(p->server);
    free(p->seen);
    free(p->out.data);
    free(p);
}

static const char *const paths[] = {"/", "/index.html", "/a/rather/long/path?with=query"};

/* One path; each side has got the other's SETTINGS. */
static struct pair *pair_met(uint32_t streams)
{
    struct pair *p = pair_new(paths, 1, streams, 0);

    begin_with(p, NULL, 0);
    talk(p, 1);
    return p;
}

/* ---- requests ---- */

static void check_fields(struct pair *p, uint32_t i, const char *path)
{
    char wanted[512];

    snprintf(
        wanted, sizeof wanted,
        ":method=GET\n:scheme=http\n:path=%s\n:authority=host:80\nuser-agent=load\naccept=*/*\n",
        path);
    cr_expect_str_eq(p->seen[i].fields, wanted, "seed %" PRIu64 ", request %u", p->seed, i);
}

/* Each way a request is encoded: the first, a path's second, any later, in any order. */
static void ask_many(struct pair *p, uint32_t n_paths, uint32_t n)
{
    uint32_t asked[200];
    struct nj_prng order;

    nj_prng_init(&order, 99);
    for (uint32_t i = 0; i < n; i++) {
        asked[i] = nj_prng_below(&order, n_paths);
        cr_assert_gt(h2_framing.room(&p->c.conn), 0);
        h2_framing.ask(&p->c.conn, asked[i], 5, &p->out);
        talk(p, 7);
    }
    cr_expect_eq(p->n_seen, n);
    cr_expect_eq(p->n_ended[LOAD_DONE], n);
    for (uint32_t i = 0; i < n; i++)
        check_fields(p, i, paths[asked[i]]);
}

Test(load_h2, requests_say_what_they_should)
{
    struct pair *p = pair_new(paths, 3, 4, 0);
    begin_with(p, NULL, 0);
    ask_many(p, 3, 200);
    pair_free(p);
}

Test(load_h2, a_repeated_request_takes_fifteen_octets)
{
    struct pair *p = pair_new(paths, 1, 4, 0);
    begin_with(p, NULL, 0);
    ask_many(p, 1, 3);
    h2_framing.ask(&p->c.conn, 0, 5, &p->out);
    cr_expect_eq(p->out.n_bytes, 9 + 6, "%u", p->out.n_bytes);
    pair_free(p);
}

Test(load_h2, a_peer_without_a_table)
{
    nghttp2_settings_entry none = {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0};
    struct pair *p = pair_new(paths, 3, 4, 0);
    begin_with(p, &none, 1);
    ask_many(p, 3, 50);
    pair_free(p);
    /* The server sends its limit after the first requests. */
    p = pair_new(paths, 3, 4, 0);
    begin_with(p, NULL, 0);
    ask_many(p, 3, 20);
    nghttp2_submit_settings(p->server, 0, &none, 1);
    talk(p, 8);
    h2_framing.ask(&p->c.conn, 2, 5, &p->out);
    talk(p, 9);
    check_fields(p, 20, paths[2]);
    pair_free(p);
}

Test(load_h2, paths_beyond_the_table_are_written_out)
{
    static char text[LOAD_PATHS_MAX][400];
    const char *many[LOAD_PATHS_MAX];
    for (uint32_t i = 0; i < LOAD_PATHS_MAX; i++) {
        memset(text[i], 'a', 300);
        snprintf(text[i], 8, "/%05u", i);
        text[i][6] = '-';
        many[i] = text[i];
    }
    struct pair *p = pair_new(many, LOAD_PATHS_MAX, 4, 0);
    begin_with(p, NULL, 0);
    for (uint32_t i = 0; i < 3 * LOAD_PATHS_MAX; i++) {
        h2_framing.ask(&p->c.conn, i % LOAD_PATHS_MAX, 5, &p->out);
        talk(p, 7);
        check_fields(p, i, many[i % LOAD_PATHS_MAX]);
    }
    pair_free(p);
}

/* ---- answers ---- */

Test(load_h2, answers_cut_anywhere)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct pair *p = pair_new(paths, 2, 8, 0);
        p->seed = seed;
        p->status = seed % 3 ? "404" : "200";
        p->n_body = seed * 131;
        p->n_pad = seed % 5 == 1 ? 200 : 0;
        p->n_big = seed % 7 == 2 ? 20000 : 0; /* continues in CONTINUATION */
        p->interim = seed % 4 == 3;
        p->trailers = seed % 6 == 5;
        begin_with(p, NULL, 0);
        talk(p, 1);
        for (uint32_t i = 0; i < 24; i++) {
            if (h2_framing.room(&p->c.conn) == 0 || i % 5 == 0)
                talk(p, 7);
            h2_framing.ask(&p->c.conn, i % 2, 5, &p->out);
        }
        talk(p, 9);
        cr_expect_eq(p->n_ended[LOAD_DONE], 24, "seed %" PRIu64, seed);
        cr_expect_eq(p->n_got, 24 * p->n_body, "seed %" PRIu64, seed);
        cr_expect_eq(p->n_came, p->n_got);
        cr_expect_eq(p->last_status, seed % 3 ? 404 : 200);
        cr_expect_eq(p->first_at, 9);
        cr_expect_eq(p->last_due, 5);
        cr_expect_eq(p->c.conn.n_open, 0);
        pair_free(p);
    }
}

/* More bytes than any window: consumed bytes are returned. */
Test(load_h2, windows_open_again)
{
    for (size_t n_pad = 0; n_pad <= 250; n_pad += 250) {
        struct pair *p = pair_new(paths, 1, 2, 0);
        p->plan.window = 1000;
        p->n_body = 1000000;
        p->n_pad = n_pad;
        begin_with(p, NULL, 0);
        h2_framing.ask(&p->c.conn, 0, 5, &p->out);
        h2_framing.ask(&p->c.conn, 0, 5, &p->out);
        talk(p, 7);
        cr_expect_eq(p->n_ended[LOAD_DONE], 2, "padding %zu: %" PRIu64 " came", n_pad, p->n_got);
        cr_expect_eq(p->n_got, 2000000);
        pair_free(p);
    }
}

Test(load_h2, bodies_go_as_windows_allow)
{
    for (uint32_t window = 1; window < 100000; window *= 7) {
        nghttp2_settings_entry s = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
        uint32_t n_bytes = window < 1000 ? 2000 : 200000;
        char length[40];
        struct pair *p = pair_new(paths, 1, 3, n_bytes);
        begin_with(p, &s, 1);
        talk(p, 1);
        for (uint32_t i = 0; i < 3; i++)
            h2_framing.ask(&p->c.conn, 0, 5, &p->out);
        talk(p, 7);
        snprintf(length, sizeof length, "content-length=%u\n", n_bytes);
        for (uint32_t i = 0; i < 3; i++) {
            cr_expect_eq(p->seen[i].n_upload, n_bytes, "window %u: %" PRIu64, window,
                         p->seen[i].n_upload);
            cr_expect(p->seen[i].ended);
            cr_expect(strstr(p->seen[i].fields, length));
            cr_expect(strstr(p->seen[i].fields, ":method=POST\n"));
        }
        cr_expect_eq(p->n_ended[LOAD_DONE], 3);
        pair_free(p);
    }
}

/* No request is longer than the computed maximum, for any table of the peer. */
Test(load_h2, the_longest_request)
{
    static char text[4001];
    memset(text, '/', 4000);
    const char *two[] = {"/", text};
    nghttp2_settings_entry none = {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0};
    for (int plain = 0; plain < 2; plain++) {
        struct pair *p = pair_new(two, 2, 100, 0);
        begin_with(p, &none, (size_t)plain);
        talk(p, 1);
        uint32_t longest = 0;
        for (uint32_t i = 0; i < 10; i++) {
            h2_framing.ask(&p->c.conn, i % 2, 5, &p->out);
            longest = p->out.n_bytes > longest ? p->out.n_bytes : longest;
            talk(p, 7);
        }
        cr_expect_leq(longest, p->plan.request_max);
        cr_expect_geq(longest + 100, p->plan.request_max);
        pair_free(p);
    }
}

Test(load_h2, streams_that_are_refused_or_left)
{
    struct pair *p = pair_met(8);
    p->refuse = true;
    for (uint32_t i = 0; i < 3; i++)
        h2_framing.ask(&p->c.conn, 0, 5, &p->out);
    talk(p, 7);
    cr_expect_eq(p->n_ended[LOAD_RESET], 3);
    p->refuse = false;
    p->mute = true;
    for (uint32_t i = 0; i < 4; i++)
        h2_framing.ask(&p->c.conn, 0, 5 + i, &p->out);
    talk(p, 7);
    h2_framing.give_up(&p->c.conn, 7, 8, &p->out); /* two of them */
    talk(p, 8);
    cr_expect_eq(p->n_ended[LOAD_TIMEOUT], 2);
    cr_expect_eq(p->c.conn.n_open, 2);
    nghttp2_submit_goaway(p->server, 0, p->seen[5].id, 0, NULL, 0); /* not the last one */
    talk(p, 9);
    cr_expect_eq(p->n_ended[LOAD_RESET], 4);
    cr_expect(p->c.conn.leaving);
    cr_expect_eq(h2_framing.room(&p->c.conn), 0);
    h2_framing.close(&p->c.conn, 9);
    cr_expect_eq(p->n_ended[LOAD_LOST], 1);
    pair_free(p);
}

/* A stream that does not end stays open, and the others continue. */
Test(load_h2, a_slow_stream_is_in_nobodys_way)
{
    struct pair *p = pair_met(4);
    p->mute = true;
    h2_framing.ask(&p->c.conn, 0, 5, &p->out);
    talk(p, 2);
    p->mute = false;
    for (uint32_t i = 0; i < 100; i++) {
        while (h2_framing.room(&p->c.conn) > 0)
            h2_framing.ask(&p->c.conn, 0, 6, &p->out);
        talk(p, 7);
    }
    cr_expect_eq(p->n_ended[LOAD_DONE], 300);
    answer(p, 1);
    talk(p, 8);
    cr_expect_eq(p->n_ended[LOAD_DONE], 301);
    cr_expect_eq(p->last_due, 5);
    pair_free(p);
}

Test(load_h2, the_peer_says_how_many_streams)
{
    nghttp2_settings_entry s = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 3};
    struct pair *p = pair_new(paths, 1, 8, 0);
    begin_with(p, &s, 1);
    talk(p, 1);
    cr_expect_eq(h2_framing.room(&p->c.conn), 3);
    pair_free(p);
}

/* ---- malformed input ---- */

#define SETTINGS_FRAME 0, 0, 0, 4, 0, 0, 0, 0, 0

static const struct {
    const char *what;
    uint8_t bytes[40];
    uint32_t n;
} bad[] = {
    {"HTTP/1.1", "HTTP/1.1 400 Bad Request\r\n", 24},
    {"a frame of 16 KiB and one", {SETTINGS_FRAME, 0, 0x40, 1, 0, 0, 0, 0, 0, 1}, 18},
    {"SETTINGS of five", {0, 0, 5, 4, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5}, 14},
    {"DATA of nobody", {SETTINGS_FRAME, 0, 0, 1, 0, 0, 0, 0, 0, 9, 1}, 19},
    {"DATA of a pushed stream", {SETTINGS_FRAME, 0, 0, 1, 0, 0, 0, 0, 0, 2, 1}, 19},
    {"DATA before HEADERS", {SETTINGS_FRAME, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1}, 19},
    {"HEADERS of nobody", {SETTINGS_FRAME, 0, 0, 1, 1, 5, 0, 0, 0, 9, 0x88}, 19},
    {"no field section", {SETTINGS_FRAME, 0, 0, 1, 1, 5, 0, 0, 0, 1, 0xff}, 19},
    {"no status", {SETTINGS_FRAME, 0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82}, 19},
    {"padding", {SETTINGS_FRAME, 0, 0, 2, 1, 0xd, 0, 0, 0, 1, 9, 0x88}, 20},
    {"CONTINUATION of nothing", {SETTINGS_FRAME, 0, 0, 1, 9, 4, 0, 0, 0, 1, 0x88}, 19},
    {"no CONTINUATION", {SETTINGS_FRAME, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0x88, SETTINGS_FRAME}, 28},
    {"PUSH_PROMISE", {SETTINGS_FRAME, 0, 0, 4, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2}, 22},
    {"PING of one", {SETTINGS_FRAME, 0, 0, 1, 6, 0, 0, 0, 0, 0, 1}, 19},
    {"RST_STREAM of one", {SETTINGS_FRAME, 0, 0, 1, 3, 0, 0, 0, 0, 1, 1}, 19},
    {"GOAWAY of one", {SETTINGS_FRAME, 0, 0, 1, 7, 0, 0, 0, 0, 0, 1}, 19},
    {"WINDOW_UPDATE of one", {SETTINGS_FRAME, 0, 0, 1, 8, 0, 0, 0, 0, 0, 1}, 19},
    {"less than content-length",
     {SETTINGS_FRAME, 0, 0, 5, 1, 5, 0, 0, 0, 1, 0x88, 0x0f, 13, 1, '9'},
     23},
    {"the end of an interim response",
     {SETTINGS_FRAME, 0, 0, 5, 1, 5, 0, 0, 0, 1, 8, 3, '1', '0', '3'},
     23},
};

Test(load_h2, a_peer_that_breaks_the_protocol)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (uint32_t step = 1; step <= 40; step += 39) {
            struct pair *p = pair_new(paths, 1, 4, 0);
            begin_with(p, NULL, 0);
            h2_framing.ask(&p->c.conn, 0, 5, &p->out);
            bool good = true;
            for (uint32_t at = 0; good && at < bad[i].n; at += step) {
                uint32_t left = bad[i].n - at;
                good = h2_framing.input(&p->c.conn, bad[i].bytes + at, left < step ? left : step, 7,
                                        &p->out);
            }
            cr_expect(!good && p->c.conn.fault, "%s, %u at a time", bad[i].what, step);
            pair_free(p);
        }
}

/* Questions without end are not answered without end. */
Test(load_h2, a_flood_of_pings)
{
    static const uint8_t settings[] = {SETTINGS_FRAME}, ping[17] = {0, 0, 8, 6};
    struct pair *p = pair_new(paths, 1, 4, 0);
    begin_with(p, NULL, 0);
    cr_assert(h2_framing.input(&p->c.conn, settings, sizeof settings, 7, &p->out));
    bool good = true;
    uint32_t n = 0;
    for (; good && n < 10000; n++)
        good = h2_framing.input(&p->c.conn, ping, sizeof ping, 7, &p->out);
    cr_expect(!good);
    cr_expect_leq(p->out.n_bytes, OUT_MAX);
    cr_expect_gt(n, 1000);
    pair_free(p);
}
