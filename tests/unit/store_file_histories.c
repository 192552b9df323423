/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories of a file, and a client that keeps, resumes and revalidates what it got, through
 * the file servers of two shards over one store. The client never gets bytes of two versions, or a
 * 304 for other contents than the file has, but by a date that is weak.
 *
 * NJ_SEED sets the seed of the first history, NJ_HISTORIES their number.
 */
#include <stdarg.h>

#include "http/files/file_server.h"
#include "http/http_options.h"
#include "telem/counters.h"
#include "history_rig.h"

TestSuite(store_file_histories, .init = start_stuck, .fini = scratch_remove, .timeout = 280);

#define HISTORIES    1000u
#define STEPS        60u
#define SHARDS       2u
#define KEPT         4u
/* Virtual time from one history to the next: HISTORIES meet each day of the week. */
#define HISTORY_S    1000
#define WEDNESDAY_S  INT64_C(1900195200) /* 2030-03-20 */
#define WEEK_S       (7 * 86400)
/* A shard looks at a file once in a second, and that takes a moment. */
#define STALE_MAX_NS (NS_PER_S + 200 * INT64_C(1000000))
#define READ_MAX     65536u

/* A response that the client keeps. */
struct kept {
    bool is_used, is_coded;
    uint32_t content;
    uint64_t n_bytes; /* of these, from its start */
    char etag[64], modified[40], date[40];
};

/* The response to the last request. */
struct got {
    bool is_there, is_coded, is_broken;
    uint16_t status;
    uint64_t first, total, n_bytes;
    uint32_t content;
    char etag[64], modified[40], date[40];
    struct nj_body *body;
};

enum outcome {
    WHOLE,
    CODED,
    NOT_BY_TAG,
    NOT_BY_DATE,
    NOT_BY_DATE_OF_RESPONSE,
    RESUMED_BY_TAG,
    RESUMED_BY_DATE,
    RESUMED_UNMODIFIED,
    MATCHED,
    FAILED_412,
    N_OUTCOMES
};
static const char *const outcome_name[N_OUTCOMES] = {
    "whole",           "coded",      "304 by tag",  "304 by date",
    "304 by Date",     "206 by tag", "206 by date", "206 by If-Unmodified-Since",
    "If-Match passed", "412"};

struct shard {
    struct nj_file_server *site;
    struct nj_file_ops port;
    uint32_t number;
};

static struct world {
    struct bench b;
    struct shard shard[SHARDS];
    struct nj_txns txns;
    struct nj_counters counters;
    struct nj_txn txn;
    uint32_t step;
    int64_t asked_ns;
    struct kept kept[KEPT];
    struct got got;
    uint64_t n_outcomes[N_OUTCOMES], n_wrong;
} world;

__attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
    struct world *w = &world;
    va_list args;

    if (w->n_wrong++ >= 12)
        return;
    printf("NJ_SEED=%lu NJ_HISTORIES=1, step %u: ", (unsigned long)history.seed, w->step);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

static void let_time_pass(void)
{
    static const int64_t most_ns[] = {1, 1000000, 30000000, 700000000, 3 * NS_PER_S};

    pass_time(
        below((uint32_t)nj_min_u64((uint64_t)most_ns[below(NJ_ARRAY_LEN(most_ns))], UINT32_MAX)) +
        (below(4) == 0 ? NS_PER_S : 0));
}

/* --- requests --------------------------------------------------------------------------------- */

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct shard *sh = ctx;

    nj_file_store_do_job(world.b.store, job);
    nj_file_server_job_done(sh->site, job, history.now);
    return true;
}

static void set_text(char *out, size_t n_out, struct nj_str s)
{
    cr_assert_lt(s.n_bytes, n_out);
    memcpy(out, s.p, s.n_bytes);
    out[s.n_bytes] = '\0';
}

static void take_field(struct got *g, const struct nj_field *f)
{
    char text[128];

    if (nj_str_eq(f->name, NJ_STR("etag")))
        set_text(g->etag, sizeof g->etag, f->value);
    else if (nj_str_eq(f->name, NJ_STR("last-modified")))
        set_text(g->modified, sizeof g->modified, f->value);
    else if (nj_str_eq(f->name, NJ_STR("date")))
        set_text(g->date, sizeof g->date, f->value);
    else if (nj_str_eq(f->name, NJ_STR("content-encoding")))
        g->is_coded = true;
    if (f->value.n_bytes >= sizeof text)
        return;
    set_text(text, sizeof text, f->value);
    if (nj_str_eq(f->name, NJ_STR("content-length")) && g->status == 200)
        g->total = strtoull(text, NULL, 10);
    else if (nj_str_eq(f->name, NJ_STR("content-range")) && g->status == 206)
        cr_assert_eq(sscanf(text, "bytes %lu-%*u/%lu", &g->first, &g->total), 2, "%s", text);
}

static int respond(void *stream, uint16_t status, const struct nj_field *fields, uint32_t n_fields,
                   uint64_t stamp_of_head, struct nj_body *body)
{
    struct got *g = &world.got;

    (void)stream, (void)stamp_of_head;
    *g = (struct got){.is_there = true, .status = status, .body = body, .content = CONTENTS};
    for (uint32_t i = 0; i < n_fields; i++)
        take_field(g, &fields[i]);
    return 0;
}

static bool respond_cached(void *stream, uint16_t status, uint64_t stamp_of_head,
                           struct nj_body *body)
{
    (void)stream, (void)status, (void)stamp_of_head, (void)body;
    return false;
}

static const struct nj_framing framing = {.respond = respond, .respond_cached = respond_cached};

static void wake(void *waiter)
{
    (void)waiter;
}

/* Read at most READ_MAX bytes of the body, as a client does whose connection breaks. */
static const uint8_t *read_body(struct got *g)
{
    static uint8_t bytes[READ_MAX];
    struct nj_body *body = g->body;

    body->waiter = body;
    while (body->ops->remaining(body) > 0 && g->n_bytes < sizeof bytes) {
        struct nj_slice s;
        int n = body->ops->peek(body, (uint32_t)(sizeof bytes - g->n_bytes), &s);
        cr_assert_neq(n, 0, "jobs complete at once");
        if (n < 0) {
            g->is_broken = true;
            break;
        }
        memcpy(bytes + g->n_bytes, s.data, (size_t)n);
        g->n_bytes += (uint64_t)n;
        body->ops->advance(body, (uint32_t)n);
    }
    body->ops->close(body);
    g->body = NULL;
    return bytes;
}

static bool is_filled(uint64_t at)
{
    return at % LARGE_SKIP < LARGE_FILLED;
}

static bool has_bytes(const struct content *c, const struct got *g, const uint8_t *bytes)
{
    if (c->n_bytes != g->total)
        return false;
    for (uint64_t n = 0; n < g->n_bytes; n++) {
        uint64_t at = g->first + n;
        uint64_t word = is_filled(at) ? word_at(c->words, at / 8 * 8) : 0;
        if (bytes[n] != (uint8_t)(word >> 8 * (at % 8)))
            return false;
    }
    return true;
}

/* Which contents the bytes are of: one byte may be of several. */
static uint32_t identify(const struct got *g, const uint8_t *bytes, uint32_t expected)
{
    if (expected != CONTENTS && has_bytes(&history.content[expected], g, bytes))
        return expected;
    for (uint32_t i = history.n_contents; i-- > 0;)
        if (has_bytes(&history.content[i], g, bytes))
            return i;
    return CONTENTS;
}

/* Was this the file's contents as a shard may know it? */
static bool is_current(uint32_t plain)
{
    for (uint32_t i = history.n_eras; i-- > 0;) {
        if (history.era[i].content == plain)
            return true;
        if (history.era[i].since_ns < world.asked_ns - STALE_MAX_NS)
            return false;
    }
    return false;
}

static void check_body(uint32_t expected)
{
    struct world *w = &world;
    struct got *g = &w->got;

    if (!g->body)
        return;
    const uint8_t *bytes = read_body(g);
    if ((g->status != 200 && g->status != 206) || g->n_bytes == 0)
        return;
    g->content = identify(g, bytes, expected);
    if (g->content == CONTENTS)
        wrong("%u with bytes of two versions, from %lu of %lu", g->status, g->first, g->total);
    else if (history.content[g->content].is_sibling != g->is_coded)
        wrong("%u with a wrong coding", g->status);
    else if (!is_current(history.content[g->content].plain))
        wrong("%u with %s of a former version", g->status, g->is_coded ? "a sibling" : "bytes");
}

/* The fields have text of these lengths at most. */
struct request {
    struct nj_request_head head;
    struct nj_field fields[6];
    char value[6][128];
};

static void add(struct request *r, const char *name, const char *value)
{
    uint32_t n = r->head.n_fields++;
    struct nj_field *f = &r->fields[n];

    snprintf(r->value[n], sizeof r->value[n], "%s", value);
    *f = (struct nj_field){{name, (uint32_t)strlen(name)},
                           {r->value[n], (uint32_t)strlen(r->value[n])}};
    nj_header_add(&r->head, nj_header_id_of_name(f->name), f->value);
}

static struct request new_request(bool is_coded)
{
    struct request r = {.head = {.method = NJ_STR("GET")}};

    if (is_coded)
        add(&r, "accept-encoding", "br, zstd, gzip");
    return r;
}

/* Few responses have a date: it is used more often than the tag. */
static bool is_by_tag(const struct kept *k)
{
    return k->etag[0] && (!k->modified[0] || below(4) == 0);
}

/* A request about a response that the client has. It may accept other codings than before. But who
 * resumes a coded response by its date alone, and no longer accepts the coding, asks for the rest
 * of another representation: Vary and the tag said so. */
static struct request request_for(const struct kept *k, bool by_tag)
{
    bool may_refuse = !k->is_coded || by_tag;

    return new_request(below(2) && may_refuse ? !k->is_coded : k->is_coded);
}

/* `k` is what the client has, or NULL. */
static void ask_shard(struct shard *sh, struct request *r, const struct kept *k)
{
    struct world *w = &world;
    struct nj_target target;
    char path[32];

    snprintf(path, sizeof path, "/f%lu", (unsigned long)history.seed);
    r->head.path = (struct nj_str){path, (uint32_t)strlen(path)};
    for (uint32_t i = 0; i < r->head.n_fields; i++)
        r->fields[i].value.p = r->value[i];
    r->head.fields = r->fields;
    for (uint32_t i = 0; i < r->head.n_fields; i++)
        r->head.header[nj_header_id_of_name(r->fields[i].name)] = r->fields[i].value;
    nj_file_server_parse_target(sh->site, r->head.path, &target);
    w->got = (struct got){0};
    w->asked_ns = history.clock_ns;
    w->txn = (struct nj_txn){.set = &w->txns,
                             .framing = &framing,
                             .stream = w,
                             .requester = &w->txns.requester[0],
                             .method = NJ_METHOD_GET};
    nj_file_server_serve(sh->site, &w->txn, &r->head, &target, history.now);
    cr_assert(w->got.is_there, "jobs complete at once");
    check_body(k ? k->content : CONTENTS);
}

static void ask(struct request *r, const struct kept *k)
{
    ask_shard(&world.shard[below(SHARDS)], r, k);
}

static void keep(void)
{
    struct world *w = &world;
    const struct got *g = &w->got;

    if (g->status != 200 || g->content == CONTENTS)
        return;
    struct kept *k = &w->kept[below(KEPT)];
    *k = (struct kept){.is_used = true,
                       .is_coded = g->is_coded,
                       .content = g->content,
                       .n_bytes = 1 + below((uint32_t)g->n_bytes)};
    strcpy(k->etag, g->etag);
    strcpy(k->modified, g->modified);
    strcpy(k->date, g->date);
}

static void get(void)
{
    struct request r = new_request(below(2));

    ask(&r, NULL);
    world.n_outcomes[world.got.is_coded ? CODED : WHOLE] += world.got.status == 200;
    keep();
}

static bool is_new(const struct kept *k)
{
    return is_current(history.content[k->content].plain);
}

/* A date that is the last-modified of the file as it is can't be told from that one: such a client
 * gets 304 (docs/files.md). */
static bool has_last_modified(struct shard *sh, bool is_coded, const char *date)
{
    struct request r = new_request(is_coded);

    history.may_interrupt = false;
    ask_shard(sh, &r, NULL);
    return strcmp(world.got.modified, date) == 0;
}

/* Does the date alone tell which version a client has (RFC 9110 8.8.2.2)? Then a range goes by it.
 * Else a former version may have had the same mtime, and gets 304 (ADR 26). */
static bool is_strong(struct shard *sh, const char *date)
{
    struct request r = new_request(false);

    history.may_interrupt = false;
    add(&r, "if-range", date);
    add(&r, "range", "bytes=0-0");
    ask_shard(sh, &r, NULL);
    return world.got.status == 206 || world.got.status == 416;
}

static void revalidate(const struct kept *k)
{
    struct world *w = &world;
    struct shard *sh = &w->shard[below(SHARDS)];
    bool by_tag = is_by_tag(k) && below(2), by_date = k->modified[0];
    struct request r = request_for(k, by_tag);
    bool is_coded = r.head.n_fields > 0;
    const char *value = by_tag ? k->etag : by_date ? k->modified : k->date;
    enum outcome outcome = by_tag ? NOT_BY_TAG : by_date ? NOT_BY_DATE : NOT_BY_DATE_OF_RESPONSE;

    add(&r, by_tag ? "if-none-match" : "if-modified-since", value);
    ask_shard(sh, &r, k);
    w->n_outcomes[outcome] += w->got.status == 304;
    keep();
    if (w->got.status != 304 || is_new(k))
        return;
    if (outcome == NOT_BY_TAG || !has_last_modified(sh, is_coded, value) ||
        (outcome == NOT_BY_DATE && !is_coded && is_strong(sh, value)))
        wrong("304 for changed contents by %s", value);
}

static void add_range(struct request *r, const struct kept *k)
{
    uint64_t first = k->n_bytes, end;
    char text[64];

    if (history.is_large && !k->is_coded)
        first = LARGE_SKIP + below(LARGE_FILLED - 100);
    end = first + 99;
    snprintf(text, sizeof text, "bytes=%lu-%lu", first, end);
    add(r, "range", text);
}

/* The rest of a response, if it is still of the same version. */
static void resume(const struct kept *k)
{
    struct world *w = &world;
    bool by_tag = is_by_tag(k), is_unmodified = below(2);
    struct request r = request_for(k, by_tag);
    enum outcome outcome = by_tag          ? RESUMED_BY_TAG
                           : is_unmodified ? RESUMED_UNMODIFIED
                                           : RESUMED_BY_DATE;

    if (!by_tag && !k->modified[0])
        return;
    add(&r,
        !by_tag && is_unmodified  ? "if-unmodified-since"
        : by_tag && is_unmodified ? "if-match"
                                  : "if-range",
        by_tag ? k->etag : k->modified);
    add_range(&r, k);
    ask(&r, k);
    w->n_outcomes[outcome] += w->got.status == 206;
    w->n_outcomes[FAILED_412] += w->got.status == 412;
    if (w->got.status == 206 && w->got.n_bytes > 0 && w->got.content != k->content)
        wrong("206 with another version's bytes by %s %s", r.fields[r.head.n_fields - 2].name.p,
              by_tag ? k->etag : k->modified);
    keep();
}

static void match(const struct kept *k)
{
    struct world *w = &world;
    struct request r = request_for(k, true);

    if (!k->etag[0])
        return;
    add(&r, "if-match", k->etag);
    ask(&r, k);
    w->n_outcomes[MATCHED] += w->got.status == 200;
    w->n_outcomes[FAILED_412] += w->got.status == 412;
    if (w->got.status == 200 && w->got.n_bytes > 0 && w->got.content != k->content)
        wrong("If-Match passes for another version: %s", k->etag);
}

static void request(void)
{
    const struct kept *k = &world.kept[below(KEPT)];
    uint32_t what = below(8);

    if (!k->is_used || what == 0)
        get();
    else if (what <= 2)
        revalidate(k);
    else if (what <= 6)
        resume(k);
    else
        match(k);
}

/* --- histories -------------------------------------------------------------------------------- */

static void begin_world(void)
{
    static const struct nj_txn_events events = {.wake = wake};
    struct world *w = &world;

    memset(w, 0, sizeof *w);
    begin(&w->b, 64 * MIB);
    w->txns.events = &events;
    w->txns.now = &history.now;
    w->txns.counters = &w->counters;
    w->txns.wall_s_at_zero = EPOCH_S;
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *sh = &w->shard[i];
        sh->port = (struct nj_file_ops){.ctx = sh, .submit = submit};
        struct nj_file_server_config config = {.txns = &w->txns,
                                               .files = &sh->port,
                                               .exchanges_max = 4,
                                               .options = &nj_http_options_default.files};
        sh->site = nj_file_server_new(&config);
        cr_assert_not_null(sh->site);
    }
}

static void end_world(void)
{
    struct world *w = &world;

    for (uint32_t i = 0; i < SHARDS; i++)
        nj_file_server_free(w->shard[i].site);
    end(&w->b);
}

/* The name of the day begins each date. Half of the histories are on a Wednesday: a weak tag begins
 * with the same letter. */
static int64_t begin_of(uint64_t seed)
{
    if (seed % 2)
        return WEDNESDAY_S + WEEK_S * (int64_t)(seed / 2 % 1000);
    return EPOCH_S + HISTORY_S * (int64_t)(seed % 1000000);
}

static void run_history(uint64_t seed)
{
    struct world *w = &world;

    memset(w->kept, 0, sizeof w->kept);
    begin_history(w->b.root, seed, begin_of(seed) * NS_PER_S);
    for (w->step = 0; w->step < STEPS; w->step++) {
        if (below(2))
            let_time_pass();
        if (below(3) == 0)
            change();
        history.may_interrupt = below(2);
        request();
        history.may_interrupt = false;
    }
    end_history();
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);
    return given ? strtoull(given, NULL, 0) : otherwise;
}

Test(store_file_histories, no_response_mixes_versions)
{
    struct world *w = &world;
    uint64_t seed = number_from("NJ_SEED", 20261128), n = number_from("NJ_HISTORIES", HISTORIES);

    printf("NJ_SEED=%lu\n", (unsigned long)seed);
    begin_world();
    for (uint64_t i = 0; i < n; i++) {
        run_history(seed + i);
        nj_file_store_run_housekeeping(w->b.store);
    }
    for (uint32_t i = 0; i < N_OUTCOMES; i++) {
        printf("%s: %lu\n", outcome_name[i], (unsigned long)w->n_outcomes[i]);
        cr_expect(n < HISTORIES || w->n_outcomes[i] >= n / 20, "%s", outcome_name[i]);
    }
    cr_expect_leq(longest_sleep_ns, 20000000, "a worker slept for %ld ns", (long)longest_sleep_ns);
    cr_expect_eq(w->n_wrong, 0, "%lu wrong responses", (unsigned long)w->n_wrong);
    end_world();
}
