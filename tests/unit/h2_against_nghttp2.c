/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Differential test of lib/h2 and a server session of nghttp2. Both receive the same random frames,
 * most of them valid. Observable results must be equal: requests and their fields, the end and the
 * error code of each stream and of the connection. The seed is printed; NJ_SEED replays one.
 *
 * Known differences, which are excluded from the input or counted as agreement:
 *   - An error of a stream may be one of the connection (RFC 9113 5.4.1): same code, end of run.
 *   - Frames other than WINDOW_UPDATE, RST_STREAM and PRIORITY for streams that are closed, and ids
 *     that were skipped: RFC 9113 5.1 leaves the choice; h2_rfc9113_states.c tests them.
 *   - Too many streams: a stream error in lib/h2, a connection error in nghttp2.
 *   - Glitches: the budget is practically unlimited here.
 *   - A request that continues after its response may be reset (RFC 9113 8.1).
 *   - Errors on a stream whose response is complete, such as of its window.
 *   - A request without the name of a host: 400 in lib/h2, malformed for nghttp2. A flipped bit may
 *     take the name away.
 *   - PRIORITY_UPDATE: nghttp2 ignores it here, so only valid ones are sent.
 *   - PRIORITY of a stream that depends on itself: nghttp2 ignores it if one side has disabled the
 *     priorities of RFC 7540; lib/h2 does not, nor does nghttp2 in HEADERS.
 *   - PRIORITY on stream 0, a setting that occurs twice in a frame, INITIAL_WINDOW_SIZE that lifts
 *     a stream's window over 2^31-1, the client's GOAWAY with an odd id: nghttp2 1.52 violates the
 *     RFC.
 *   - The shares of streams in a window too small for all: windows are opened before the end.
 */
#include "h2_against_rig.h"

/* ---- input ---- */

static void say(struct pair *t, uint8_t type, uint8_t flags, uint32_t id, const void *p, size_t n)
{
    note(t, " %s%x.%x.%u:%zu", type == RFC_HEADERS ? "\n" : "", type, flags, id, n);
    rfc_say(t->ours, type, flags, id, p, n);
    rfc_say(t->theirs, type, flags, id, p, n);
}

static void say32(struct pair *t, uint8_t type, uint32_t id, uint32_t v)
{
    uint8_t p[4];
    rfc_put32(p, v);
    say(t, type, 0, id, p, 4);
}

/* A header block in one to many frames, with or without padding and priority. */
static void say_block(struct pair *t, uint32_t id, uint8_t flags, const uint8_t *block, size_t n)
{
    uint8_t p[8192];
    size_t at = 0, pad = below(t, 4) == 0 ? 1 + below(t, 100) : 0, first = n;
    if (below(t, 3) == 0)
        first = below(t, (uint32_t)n + 1);
    if (pad) {
        p[at++] = (uint8_t)pad;
        flags |= RFC_PADDED;
    }
    if (below(t, 5) == 0) {
        rfc_put32(p + at, 2 * below(t, 20)); /* not on itself */
        p[at + 4] = 7;
        at += 5;
        flags |= RFC_PRI;
    }
    memcpy(p + at, block, first);
    memset(p + at + first, 0, pad);
    bool more = first < n || below(t, 10) == 0;
    say(t, RFC_HEADERS, (uint8_t)(flags | (more ? 0 : RFC_END_HEADERS)), id, p, at + first + pad);
    while (more) {
        size_t k = 1 + below(t, (uint32_t)(n - first) + 1);
        k = k < n - first ? k : n - first;
        more = first + k < n;
        say(t, RFC_CONTINUATION, more ? 0 : RFC_END_HEADERS, id, block + first, k);
        first += k;
    }
}

#define PAIR(n, v)                                                                                 \
    {                                                                                              \
        (uint8_t *)(n), (uint8_t *)(v), strlen(n), strlen(v), NGHTTP2_NV_FLAG_NONE                 \
    }

/* Deflated by nghttp2, with its table and its Huffman code; now and then a byte of it is broken. */
static void say_fields(struct pair *t, uint32_t id, uint8_t flags, const nghttp2_nv *nv, size_t n)
{
    uint8_t block[4096];
    ssize_t n_block = nghttp2_hd_deflate_hd(t->deflater, block, sizeof block, nv, n);
    cr_assert_gt(n_block, 0);
    if (below(t, 150) == 0 && id) {
        uint32_t at = below(t, (uint32_t)n_block);
        block[at] ^= (uint8_t)(1u << below(t, 8));
        t->flipped = true;
        note(t, " flip");
    }
    say_block(t, id, flags, block, (size_t)n_block);
}

static struct model *new_stream(struct pair *t)
{
    if (t->n_streams == STREAMS)
        return NULL;
    struct model *m = &t->stream[t->n_streams++];
    *m = (struct model){.id = t->id_next};
    t->id_next += below(t, 8) == 0 ? 2 + 2 * below(t, 50) : 2;
    return m;
}

static struct model *some_stream(struct pair *t, bool open)
{
    for (uint32_t i = 0; i < 8 && t->n_streams > 0; i++) {
        struct model *m = &t->stream[below(t, t->n_streams)];
        if (!open || (m->open && !m->gone))
            return m;
    }
    return NULL;
}

static void say_request(struct pair *t)
{
    static const char *const methods[] = {"GET", "GET", "POST", "HEAD", "PUT", "x-own"};
    static const nghttp2_nv more[] = {PAIR("accept", "*/*"),
                                      PAIR("cookie", "a=b"),
                                      PAIR("cookie", "c=d"),
                                      PAIR("te", "trailers"),
                                      PAIR("user-agent", "nightjar-test/1.0 (against)"),
                                      PAIR("x-empty", ""),
                                      PAIR("priority", "u=3, i"),
                                      PAIR("x-utf", "\xc3\xa4")};
    struct model *m = new_stream(t);
    if (!m)
        return;
    char path[40];
    snprintf(path, sizeof path, "/%u%s", below(t, 4) ? below(t, 3000) : below(t, 60000),
             below(t, 3) ? "" : "h");
    const char *method = methods[below(t, NJ_ARRAY_LEN(methods))];
    const char *scheme = below(t, 2) ? "http" : "https";
    const char *authority = below(t, 3) ? "a.example" : "b.example:8080";
    nghttp2_nv nv[10] = {PAIR(":method", method), PAIR(":scheme", scheme), PAIR(":path", path),
                         PAIR(":authority", authority)};
    size_t n = 4;
    for (uint32_t i = below(t, 6); i > 0; i--)
        nv[n++] = more[below(t, NJ_ARRAY_LEN(more))];
    m->open = below(t, 2);
    say_fields(t, m->id, m->open ? 0 : RFC_END_STREAM, nv, n);
}

static void say_data(struct pair *t)
{
    struct model *m = some_stream(t, true);
    uint8_t p[1400] = {0};
    uint32_t n = below(t, 3) ? below(t, 1000) : 0;
    if (!m || t->data_left < sizeof p)
        return;
    uint8_t flags = below(t, 4) == 0 ? RFC_END_STREAM : 0;
    if (below(t, 4) == 0) {
        p[0] = (uint8_t)below(t, 256);
        flags |= RFC_PADDED;
        n += 1u + p[0];
    }
    m->open = !flags || flags == RFC_PADDED;
    t->data_left -= n;
    say(t, RFC_DATA, flags, m->id, p, n);
}

static void say_trailers(struct pair *t)
{
    struct model *m = some_stream(t, true);
    const nghttp2_nv nv[] = {PAIR("x-sum", "123"), PAIR("x-more", "")};
    if (!m)
        return;
    m->open = false;
    say_fields(t, m->id, RFC_END_STREAM, nv, 1 + below(t, 2));
}

static void say_reset(struct pair *t)
{
    struct model *m = some_stream(t, false);
    if (!m)
        return;
    m->gone = true;
    say32(t, RFC_RST_STREAM, m->id, below(t, 14));
}

static void say_window(struct pair *t)
{
    struct model *m = below(t, 3) ? some_stream(t, false) : NULL;
    say32(t, RFC_WINDOW_UPDATE, m ? m->id : 0, 1 + below(t, 20000));
}

static void say_settings(struct pair *t)
{
    static const struct {
        uint16_t id;
        uint32_t low, span;
    } kinds[] = {{RFC_HEADER_TABLE_SIZE, 0, 8192},
                 {RFC_ENABLE_PUSH, 0, 2},
                 {RFC_MAX_CONCURRENT_STREAMS, 0, 99},
                 {RFC_INITIAL_WINDOW_SIZE, 0, 100000},
                 {RFC_MAX_FRAME_SIZE, 16384, 99999},
                 {RFC_MAX_HEADER_LIST_SIZE, 9999, 9999},
                 {0x4a4a, 0, 9999}};
    uint8_t p[6 * 3];
    uint32_t n = below(t, 4), first = below(t, NJ_ARRAY_LEN(kinds));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (first + i) % NJ_ARRAY_LEN(kinds); /* none twice */
        p[6 * i] = (uint8_t)(kinds[k].id >> 8);
        p[6 * i + 1] = (uint8_t)kinds[k].id;
        rfc_put32(p + 6 * i + 2, kinds[k].low + below(t, kinds[k].span));
    }
    say(t, RFC_SETTINGS, 0, 0, p, 6ul * n);
}

static void say_small(struct pair *t)
{
    uint8_t p[40] = {0};
    struct model *m = some_stream(t, false);
    uint32_t id = m ? m->id : t->id_next;
    rfc_put32(p, below(t, 4) ? id : t->id_next);
    p[4] = 'u';
    p[5] = '=';
    p[6] = (uint8_t)('0' + below(t, 10));
    switch (below(t, 5)) {
    case 0:
        say(t, RFC_PING, below(t, 4) ? 0 : RFC_ACK, 0, p, 8);
        break;
    case 1:
        rfc_put32(p, 0);
        say(t, RFC_PRIORITY, (uint8_t)below(t, 256), id, p, 5);
        break;
    case 2:
        say(t, RFC_PRIORITY_UPDATE, 0, 0, p, 7);
        break;
    case 3:
        say(t, (uint8_t)(0x20 + below(t, 200)), (uint8_t)below(t, 256), below(t, 3) * id, p,
            below(t, 40));
        break;
    default:
        say(t, RFC_SETTINGS, 0, 0, NULL, 0);
        break;
    }
}

/* ---- malformed input ---- */

static const nghttp2_nv good_head[] = {PAIR(":method", "POST"), PAIR(":scheme", "http"),
                                       PAIR(":path", "/100h"), PAIR(":authority", "a.example")};

/* A request that is malformed for one reason; its stream is gone, or was never there. */
static void say_malformed(struct pair *t)
{
    static const nghttp2_nv wrong[] = {
        PAIR(":path", "/"),
        PAIR(":status", "200"),
        PAIR(":other", ""),
        PAIR("X-Upper", "a"),
        PAIR("connection", "close"),
        PAIR("te", "gzip"),
        PAIR("x-feed", "a\nb"),
        PAIR("upgrade", "h2c"),
        PAIR("content-length", "1x"),
        PAIR("keep-alive", "1"),
        PAIR("x y", "a"),
        PAIR("", "a"),
        PAIR("x-space", "a "),
        PAIR("x-space", "\ta"),
        PAIR("transfer-encoding", "chunked"),
        PAIR(":method", "GET"),
        PAIR("content-length", ""),
        PAIR("proxy-connection", "a"),
    };
    struct model *m = new_stream(t);
    if (!m)
        return;
    nghttp2_nv nv[6];
    memcpy(nv, good_head, sizeof good_head);
    size_t n = 4;
    if (below(t, 4) == 0)
        nv[below(t, 3)] = nv[--n]; /* one is missing */
    else
        nv[n++] = wrong[below(t, NJ_ARRAY_LEN(wrong))];
    m->gone = true;
    say_fields(t, m->id, below(t, 2) ? RFC_END_STREAM : 0, nv, n);
}

/* A body whose length differs from its content-length. */
static void say_wrong_length(struct pair *t)
{
    static const uint8_t zeros[100];
    struct model *m = new_stream(t);
    nghttp2_nv nv[5];
    if (!m)
        return;
    memcpy(nv, good_head, sizeof good_head);
    nv[4] = (nghttp2_nv)PAIR("content-length", "50");
    m->gone = true;
    uint32_t how = below(t, 4);
    say_fields(t, m->id, how == 0 ? RFC_END_STREAM : 0, nv, 5);
    if (how == 0)
        return;
    say(t, RFC_DATA, how == 1 ? RFC_END_STREAM : 0, m->id, zeros, how == 2 ? 51 : 30);
    if (how == 3)
        say(t, RFC_DATA, RFC_END_STREAM, m->id, zeros, 21);
}

/* One that is complete and not answered, so that more of it is an error (RFC 9113 5.1). */
static struct model *half_closed(struct pair *t)
{
    for (uint32_t i = 0; i < t->n_streams; i++) {
        struct model *m = &t->stream[i];
        const struct rfc_stream *s = rfc_stream(t->ours, m->id);
        if (!m->open && !m->gone && s->st && s->status == 0 && !m->answered)
            return m;
    }
    return NULL;
}

static void say_wrong_for_stream(struct pair *t)
{
    static const uint8_t p[200] = {250};
    const nghttp2_nv path = PAIR(":path", "/"), sum = PAIR("x-sum", "1");
    struct model *m = below(t, 3) == 0 ? half_closed(t) : some_stream(t, true);
    if (!m || rfc_stream(t->ours, m->id)->ended)
        return;
    bool open = m->open;
    m->gone = true;
    m->open = false;
    switch (below(t, open ? 7 : 2)) {
    case 0:
        if (open)
            say32(t, RFC_WINDOW_UPDATE, m->id, 0);
        else
            say(t, RFC_DATA, 0, m->id, p, 30);
        break;
    case 1:
        say_fields(t, m->id, 0, &sum, 1); /* neither END_STREAM nor the first */
        break;
    case 2:
        say_fields(t, m->id, RFC_END_STREAM, &path, 1);
        break;
    case 3:
        say(t, RFC_DATA, RFC_PADDED, m->id, p, 1 + below(t, 200));
        break;
    case 4:
        say32(t, RFC_WINDOW_UPDATE, m->id, RFC_ID_MAX);
        say32(t, RFC_WINDOW_UPDATE, m->id, RFC_ID_MAX);
        break;
    case 5:
        say(t, RFC_PRIORITY, 0, m->id, p, below(t, 2) ? 4 : 6);
        break;
    default:
        say(t, RFC_RST_STREAM, 0, m->id, p, below(t, 2) ? 3 : 5);
        break;
    }
}

/* One frame that must end the connection. */
static void say_fatal(struct pair *t)
{
    static uint8_t p[20000] = {0, 0, 0, 1};
    static const struct {
        uint8_t type, flags;
        uint32_t id; /* 1: an id that is idle, 2: one of the server's */
        uint32_t n;
    } frames[] = {
        {RFC_PING, 0, 0, 7},          {RFC_PING, RFC_ACK, 0, 9},     {RFC_PING, 0, 1, 8},
        {RFC_SETTINGS, 0, 0, 5},      {RFC_SETTINGS, RFC_ACK, 0, 6}, {RFC_SETTINGS, 0, 1, 0},
        {RFC_RST_STREAM, 0, 0, 4},    {RFC_RST_STREAM, 0, 1, 4},     {RFC_RST_STREAM, 0, 2, 4},
        {RFC_WINDOW_UPDATE, 0, 0, 3}, {RFC_WINDOW_UPDATE, 0, 1, 4},  {RFC_WINDOW_UPDATE, 0, 2, 4},
        {RFC_DATA, 0, 0, 10},         {RFC_DATA, 0, 1, 10},          {RFC_DATA, 0, 2, 10},
        {RFC_DATA, RFC_PADDED, 0, 0}, {RFC_HEADERS, RFC_ENDS, 0, 1}, {RFC_HEADERS, RFC_ENDS, 2, 1},
        {RFC_CONTINUATION, 4, 0, 1},  {RFC_CONTINUATION, 4, 1, 1},   {RFC_PUSH_PROMISE, 4, 1, 10},
        {RFC_GOAWAY, 0, 1, 8},        {RFC_GOAWAY, 0, 0, 7},         {RFC_PING, 0, 0, 16385},
        {RFC_UNKNOWN, 0, 0, 16385},   {RFC_SETTINGS, 0, 0, 16386},   {RFC_HEADERS, 4, 1, 16385},
    };
    static const struct {
        uint16_t id;
        uint32_t v;
    } settings[] = {{RFC_ENABLE_PUSH, 2},
                    {RFC_INITIAL_WINDOW_SIZE, 1u << 31},
                    {RFC_MAX_FRAME_SIZE, 16383},
                    {RFC_MAX_FRAME_SIZE, 1 << 24},
                    {RFC_NO_PRIORITIES, 2}};
    uint32_t i = below(t, NJ_ARRAY_LEN(frames) + NJ_ARRAY_LEN(settings) + 4);
    if (i < NJ_ARRAY_LEN(frames)) {
        uint32_t id = frames[i].id;
        say(t, frames[i].type, frames[i].flags, id == 1 ? t->id_next + 100 : 2 * id, p,
            frames[i].n);
        return;
    }
    i -= NJ_ARRAY_LEN(frames);
    if (i < NJ_ARRAY_LEN(settings)) {
        uint8_t entry[6] = {0, (uint8_t)settings[i].id};
        rfc_put32(entry + 2, settings[i].v);
        say(t, RFC_SETTINGS, 0, 0, entry, 6);
        return;
    }
    i -= NJ_ARRAY_LEN(settings);
    if (i == 0) {
        say32(t, RFC_WINDOW_UPDATE, 0, 0);
    } else if (i == 1) {
        say32(t, RFC_WINDOW_UPDATE, 0, RFC_ID_MAX);
        say32(t, RFC_WINDOW_UPDATE, 0, RFC_ID_MAX);
    } else if (i == 2) {
        uint8_t on_itself[11] = {0, 0, 0, 0, 7, 0x82, 0x84, 0x86, 0x41, 1, 'x'}; /* GET / */
        rfc_put32(on_itself, t->id_next | (below(t, 2) ? 0 : 1u << 31));
        say(t, RFC_HEADERS, RFC_ENDS | RFC_PRI, t->id_next, on_itself, sizeof on_itself);
    } else {
        say(t, RFC_HEADERS, 0, t->id_next, "\x82", 1);
        say(t, (uint8_t)below(t, 20), 4, below(t, 2) ? t->id_next + 2 : 0, p, below(t, 10));
    }
}

static void say_something(struct pair *t)
{
    static void (*const kinds[])(struct pair *) = {
        say_request,  say_request, say_request,  say_request,   say_data,        say_data,
        say_data,     say_data,    say_trailers, say_reset,     say_window,      say_window,
        say_settings, say_small,   say_small,    say_malformed, say_wrong_length};
    uint32_t i = below(t, 200);
    t->wrong = i < 4;
    if (i == 0)
        say_fatal(t);
    else if (i < 4)
        say_wrong_for_stream(t);
    else
        kinds[below(t, NJ_ARRAY_LEN(kinds) - (i < 150 ? 2 : 0))](t);
}

/* ---- the output as a client sees it ---- */

#define EXPECT(t, condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            char why_[400];                                                                        \
            snprintf(why_, sizeof why_, __VA_ARGS__);                                              \
            cr_assert_fail("NJ_SEED=%llu, step %u: %s. Said:%s", (unsigned long long)(t)->seed,    \
                           (t)->step, why_, (t)->said);                                            \
        }                                                                                          \
    } while (0)

static void compare_stream(struct pair *t, uint32_t id)
{
    const struct rfc_stream *a = rfc_stream(t->ours, id), *b = rfc_stream(t->theirs, id);
    EXPECT(t, a->shown == b->shown, "%u is shown: %d, %d", id, a->shown, b->shown);
    if (a->shown) {
        EXPECT(t, strcmp(a->method, b->method) == 0, "%u: %.80s, %.80s", id, a->method, b->method);
        EXPECT(t, strcmp(a->path, b->path) == 0, "%u: %.80s, %.80s", id, a->path, b->path);
        EXPECT(t, strcmp(a->scheme, b->scheme) == 0, "%u: %.80s, %.80s", id, a->scheme, b->scheme);
        EXPECT(t, strcmp(a->authority, b->authority) == 0, "%u: %.80s, %.80s", id, a->authority,
               b->authority);
        EXPECT(t, a->ends == b->ends, "%u ends: %d, %d", id, a->ends, b->ends);
    }
    if (t->flipped && !a->shown && a->status == 400 && b->reset && b->code == NJ_H2_PROTOCOL_ERROR)
        return;
    bool enough = a->ended && a->reset && a->code == 0;
    EXPECT(t, enough || (a->reset == b->reset && a->code == b->code),
           "%u is reset: %d with %u, %d with %u", id, a->reset, a->code, b->reset, b->code);
    EXPECT(t, a->status == b->status, "%u has status %d, %d", id, a->status, b->status);
    if (a->st) /* otherwise its owner has already released it */
        EXPECT(t, a->n_body == b->n_body && a->body_ended == b->body_ended,
               "%u: body of %d, %d, ended %d, %d", id, (int)a->n_body, (int)b->n_body,
               a->body_ended, b->body_ended);
}

/* The other side ended with the code of a stream error that this side has just sent. */
static bool stream_error(const struct rfc *over, struct rfc *other)
{
    for (uint32_t i = 0; i < other->n_streams; i++) {
        struct rfc_stream *s = &other->stream[i];
        if (s->reset && s->code == over->goaway_code)
            return true;
    }
    return false;
}

/* False when the comparison ends. */
static bool compare(struct pair *t)
{
    struct rfc *a = t->ours, *b = t->theirs;
    EXPECT(t, !a->failed, "see above");
    if (a->over != b->over) {
        EXPECT(t, stream_error(a->over ? a : b, a->over ? b : a), "over: %d with %u, %d with %u",
               a->over, a->goaway_code, b->over, b->goaway_code);
        return false;
    }
    if (a->over) {
        EXPECT(t, a->goaway_code == b->goaway_code, "GOAWAY with %u, %u", a->goaway_code,
               b->goaway_code);
        return false;
    }
    EXPECT(t, a->n_acks == b->n_acks && a->n_pings == b->n_pings, "ACKs: %u of %u, %u of %u",
           a->n_acks, b->n_acks, a->n_pings, b->n_pings);
    for (uint32_t i = 0; i < t->n_streams; i++)
        compare_stream(t, t->stream[i].id);
    return true;
}

/* Responses to paths that do not end in h at once, to the others some time later. */
static void answer(struct pair *t, bool all)
{
    for (uint32_t i = 0; i < t->n_streams; i++) {
        struct model *m = &t->stream[i];
        struct rfc_stream *s = rfc_stream(t->ours, m->id);
        if (!s->st || m->answered || (!all && strchr(s->path, 'h') && below(t, 4)))
            continue;
        m->answered = true;
        uint64_t n = s->path[0] ? strtoull(s->path + 1, NULL, 10) % 100000 : 0;
        n = strcmp(s->method, "HEAD") == 0 ? 0 : n;
        rfc_answer(t->ours, m->id, n);
        their_answer(t, m->id, n);
    }
}

static void go(struct pair *t)
{
    rfc_go(t->ours);
    their_go(t);
}

/* ---- a run ---- */

static struct pair *pair_new(uint64_t seed)
{
    static const uint32_t cuts[] = {0, 1, 12, 70, 9000};
    struct pair *t = calloc(1, sizeof *t);
    t->seed = seed;
    nj_prng_init(&t->prng, seed);
    t->id_next = 1;
    t->data_left = RFC_FIRST_WINDOW;
    t->ours = rfc_new("ours", cuts[seed % NJ_ARRAY_LEN(cuts)], false, seed);
    t->theirs = rfc_new("theirs", 0, false, seed);
    t->theirs->lenient = true;
    t->ours->hold = true;
    t->ours->limits.glitches_max = 1u << 30;
    cr_assert_eq(nghttp2_hd_deflate_new(&t->deflater, 4096), 0);
    their_session(t);
    rfc_magic(t->ours);
    rfc_magic(t->theirs);
    say(t, RFC_SETTINGS, 0, 0, NULL, 0);
    go(t);
    say(t, RFC_SETTINGS, RFC_ACK, 0, NULL, 0);
    return t;
}

static void pair_free(struct pair *t)
{
    free(rfc_free(t->ours));
    struct rfc *o = t->theirs;
    nghttp2_session_del(t->session);
    nghttp2_hd_deflate_del(t->deflater);
    nghttp2_hd_inflate_del(o->inflater);
    free(o->in);
    free(o->out);
    free(o->log);
    free(o);
    free(t);
}

/* All windows open, all requests answered: every stream ends, in both. */
static void finish(struct pair *t)
{
    uint8_t p[8] = {0, RFC_INITIAL_WINDOW_SIZE, 0, 0x10};
    say(t, RFC_SETTINGS, 0, 0, p, 6);
    say32(t, RFC_WINDOW_UPDATE, 0, 1u << 24);
    go(t);
    answer(t, true);
    say(t, RFC_PING, 0, 0, p, 8);
    go(t);
    if (!compare(t))
        return;
    for (uint32_t i = 0; i < t->n_streams; i++) {
        const struct model *m = &t->stream[i];
        const struct rfc_stream *a = rfc_stream(t->ours, m->id), *b = rfc_stream(t->theirs, m->id);
        EXPECT(t, m->gone || b->reset || (a->ended == b->ended && a->n_data == b->n_data),
               "%u: %d bytes, ended %d, and %d, %d", m->id, (int)a->n_data, a->ended,
               (int)b->n_data, b->ended);
        EXPECT(t, !a->shown || m->gone || a->reset || a->ended, "%u does not end", m->id);
    }
}

/* Count how the runs ended, so that a generator without effect shows. */
static struct tally {
    uint32_t n_runs, n_over, n_shown, n_reset, n_flipped;
} tally;

static void run(uint64_t seed)
{
    struct pair *t = pair_new(seed);
    uint32_t n_steps = 1 + below(t, 60);
    bool same = true;
    for (t->step = 0; t->step < n_steps && same; t->step++) {
        note(t, "\n%u", t->step);
        t->wrong = false;
        for (uint32_t i = below(t, 4); i < 4 && !t->wrong; i++)
            say_something(t);
        go(t);
        same = compare(t);
        if (same) {
            answer(t, false);
            go(t);
            same = compare(t);
        }
    }
    if (same)
        finish(t);
    tally.n_runs++;
    tally.n_over += t->ours->over;
    tally.n_shown += t->ours->n_shown;
    tally.n_flipped += t->flipped;
    for (uint32_t i = 0; i < t->ours->n_streams; i++)
        tally.n_reset += t->ours->stream[i].reset;
    pair_free(t);
}

Test(h2_against_nghttp2, random)
{
    const char *seed = getenv("NJ_SEED"), *seeds = getenv("NJ_SEEDS");
    if (seed) {
        run(strtoull(seed, NULL, 0));
        return;
    }
    uint64_t n = seeds ? strtoull(seeds, NULL, 0) : 2000;
    for (uint64_t i = 1; i <= n; i++)
        run(i);
    fprintf(stderr, "seeds 1 to %llu: %u ended with an error, %u requests, %u resets, %u flipped\n",
            (unsigned long long)n, tally.n_over, tally.n_shown, tally.n_reset, tally.n_flipped);
    cr_expect(tally.n_over > n / 10 && tally.n_over < n && tally.n_shown > n &&
              tally.n_reset > n / 4);
}
