/* SPDX-License-Identifier: BSD-3-Clause */
/* A site over a fake file port: prompt, late, refusing or broken. Every test ends with a count of
 * what was made and not freed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "http/site.h"
#include "telem/counters.h"

#define EXCHANGES 8
#define JOBS      64
#define SEC       NJ_SEC
#define BIG_BYTES (3 * NJ_CHUNK_BYTES + 12345u)

static int live; /* objects and chunks */

struct fake_object {
    struct nj_object object;
    uint8_t *memory;
};

struct fake_chunk {
    struct nj_chunk chunk;
    uint8_t bytes[NJ_CHUNK_BYTES];
};

/* What the test sees and steers. */
struct bench {
    struct nj_site *site;
    struct nj_counters counters;
    nj_ns now;

    bool prompt;                 /* jobs complete inside submit */
    uint32_t room;               /* jobs that submit takes before it refuses */
    enum nj_file_result failure; /* of OPEN, unless OK */
    enum nj_file_result read_failure;
    uint64_t read_fails_at; /* offset from which READs fail */
    bool short_read;        /* chunks end before the byte that was asked for */
    bool odd_chunks;        /* chunks begin earlier and end elsewhere */
    uint32_t read_bytes;    /* the last READ's wish */
    struct nj_file_job *out[JOBS];
    uint32_t n_out;

    uint32_t n_replies, n_wakes;
    uint16_t status;
    uint32_t n_fields;
    char fields[NJ_REPLY_FIELDS_MAX][2][256];
    struct nj_body *body;
    void *stream;
    struct nj_body *bodies[64]; /* by order of reply */

    struct nj_site_wait *cancel_in_reply; /* cancelled inside the next on_reply */
    bool close_in_wake;
};

static uint8_t big_byte(uint64_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

static void last_object(struct nj_ref *ref)
{
    struct fake_object *o = (struct fake_object *)ref;
    free(o->memory);
    free(o);
    live--;
}

static void last_chunk(struct nj_ref *ref)
{
    free(ref);
    live--;
}

static struct nj_object *new_object(const char *text, uint64_t n_bytes)
{
    struct fake_object *o = calloc(1, sizeof *o);
    nj_ref_init(&o->object.ref, last_object);
    o->object.size_bytes = n_bytes;
    if (text) {
        o->memory = malloc(n_bytes + 1);
        memcpy(o->memory, text, n_bytes);
        o->object.bytes = o->memory;
    }
    live++;
    return &o->object;
}

static void run_open(struct bench *b, struct nj_file_job *job)
{
    job->result = b->failure;
    job->object = NULL;
    if (b->failure != NJ_FILE_OK)
        return;
    if (strncmp(job->path, "big", 3) == 0)
        job->object = new_object(NULL, BIG_BYTES);
    else if (strcmp(job->path, "empty") == 0)
        job->object = new_object("", 0);
    else if (strncmp(job->path, "dir", 3) == 0 && !strchr(job->path, '.'))
        job->result = NJ_FILE_IS_DIR;
    else if (strncmp(job->path, "none", 4) == 0)
        job->result = NJ_FILE_ABSENT;
    else
        job->object = new_object(job->path, strlen(job->path));
}

static void run_read(struct bench *b, struct nj_file_job *job)
{
    cr_assert(job->n_bytes > 0 && job->n_bytes <= NJ_CHUNK_BYTES);
    cr_assert_leq(job->offset + job->n_bytes, job->object->size_bytes);
    job->chunk = NULL;
    job->result = NJ_FILE_OK;
    if (b->read_failure != NJ_FILE_OK && job->offset >= b->read_fails_at) {
        job->result = b->read_failure;
        return;
    }
    struct fake_chunk *c = malloc(sizeof *c);
    nj_ref_init(&c->chunk.ref, last_chunk);
    /* Something else than what was asked for, as far as that is allowed. */
    uint64_t first = job->offset, end = first + job->n_bytes;
    if (b->odd_chunks) {
        first -= first % 3000;
        end = first + 9000 < job->object->size_bytes ? first + 9000 : job->object->size_bytes;
    }
    if (b->short_read && job->offset >= b->read_fails_at)
        end = job->offset;
    c->chunk.offset = first;
    c->chunk.n_bytes = (uint32_t)(end - first);
    c->chunk.bytes = c->bytes;
    for (uint32_t i = 0; i < c->chunk.n_bytes; i++)
        c->bytes[i] = big_byte(first + i);
    b->read_bytes = job->n_bytes;
    job->chunk = &c->chunk;
    live++;
}

static void run_job(struct bench *b, struct nj_file_job *job)
{
    if (job->op == NJ_FILE_OPEN)
        run_open(b, job);
    else
        run_read(b, job);
    nj_site_file_done(b->site, job, b->now);
}

static bool submit(void *ctx, struct nj_file_job *job)
{
    struct bench *b = ctx;

    if (b->n_out >= b->room)
        return false;
    if (b->prompt) {
        run_job(b, job);
        return true;
    }
    b->out[b->n_out++] = job;
    return true;
}

/* Complete the oldest job. */
static bool step(struct bench *b)
{
    if (b->n_out == 0)
        return false;
    struct nj_file_job *job = b->out[0];
    memmove(b->out, b->out + 1, --b->n_out * sizeof b->out[0]);
    run_job(b, job);
    return true;
}

static void on_reply(void *ctx, void *stream, const struct nj_http_reply *reply)
{
    struct bench *b = ctx;

    if (b->cancel_in_reply) {
        struct nj_site_wait *x = b->cancel_in_reply;
        b->cancel_in_reply = NULL;
        nj_site_cancel(x);
    }
    b->stream = stream;
    b->status = reply->status;
    b->n_fields = reply->n_fields;
    for (uint32_t i = 0; i < reply->n_fields; i++) {
        const struct nj_field *f = &reply->fields[i];
        snprintf(b->fields[i][0], 256, "%.*s", (int)f->name.n_bytes, f->name.p);
        snprintf(b->fields[i][1], 256, "%.*s", (int)f->value.n_bytes, f->value.p);
    }
    b->body = reply->body;
    if (b->n_replies < 64)
        b->bodies[b->n_replies] = reply->body;
    b->n_replies++;
}

static void on_wake(void *ctx, void *waiter)
{
    struct bench *b = ctx;
    struct nj_body *body = waiter;

    b->n_wakes++;
    if (b->close_in_wake)
        body->ops->close(body);
}

static const struct nj_site_events events = {.on_reply = on_reply, .on_wake = on_wake};

static struct nj_file_port port;
static struct bench the_bench;

static struct bench *begin(void)
{
    struct bench *b = &the_bench;
    memset(b, 0, sizeof *b);
    live = 0;
    b->room = JOBS;
    port = (struct nj_file_port){.ctx = b, .submit = submit};
    struct nj_site_config config = {
        .events = &events,
        .events_ctx = b,
        .files = &port,
        .counters = &b->counters,
        .wall_s_at_zero = 784111777,
        .exchanges_max = EXCHANGES,
    };
    b->site = nj_site_new(&config);
    cr_assert(b->site);
    return b;
}

static void end(struct bench *b)
{
    cr_expect_eq(nj_site_jobs_out(b->site), 0);
    cr_expect_eq(b->n_out, 0);
    nj_site_free(b->site);
    cr_expect_eq(live, 0, "%d objects or chunks leaked", live);
}

static struct nj_site_wait *ask(struct bench *b, const char *method, const char *path)
{
    struct nj_http_request req = {
        {method, (uint32_t)strlen(method)}, {path, (uint32_t)strlen(path)}, NULL, 0};
    return nj_site_request(b->site, &req, (void *)path, b->now);
}

static const char *field(struct bench *b, const char *name)
{
    for (uint32_t i = 0; i < b->n_fields; i++)
        if (strcmp(b->fields[i][0], name) == 0)
            return b->fields[i][1];
    return "(none)";
}

static void close_body(struct nj_body *body)
{
    if (body)
        body->ops->close(body);
}

/* Read a body of bytes to its end, in pieces of `n_max`, completing jobs when it has none. Returns
 * the bytes read; *result is 0 at the end and < 0 when it broke. */
static uint64_t drain(struct bench *b, struct nj_body *body, uint32_t n_max, int *result)
{
    uint64_t n = 0, size = body->ops->remaining(body);

    *result = 0;
    body->waiter = body;
    while (body->ops->remaining(body) > 0) {
        struct nj_slice s;
        int r = body->ops->peek(body, n_max, &s);
        if (r < 0) {
            *result = r;
            break;
        }
        if (r == 0) {
            uint32_t n_wakes = b->n_wakes;
            cr_assert(step(b), "the body waits and no job is out");
            cr_assert_eq(b->n_wakes, n_wakes + 1);
            continue;
        }
        cr_assert(s.n_bytes == (uint32_t)r && s.n_bytes <= n_max && s.ref);
        for (uint32_t i = 0; i < s.n_bytes; i++)
            cr_assert_eq(s.data[i], big_byte(n + i), "at %lu", (unsigned long)(n + i));
        /* Take less than was shown, now and then. */
        uint32_t take = s.n_bytes > 1 && n % 3 == 0 ? s.n_bytes - 1 : s.n_bytes;
        body->ops->advance(body, take);
        n += take;
        cr_assert_eq(body->ops->remaining(body), size - n);
    }
    return n;
}

static void expect_text(struct nj_body *body, const char *want)
{
    struct nj_slice s;
    cr_assert(body);
    cr_assert_eq(body->ops->peek(body, 1000, &s), (int)strlen(want));
    cr_expect_eq(memcmp(s.data, want, s.n_bytes), 0);
    body->ops->advance(body, s.n_bytes);
    cr_expect_eq(body->ops->remaining(body), 0);
}

Test(http_site, get)
{
    struct bench *b = begin();
    cr_expect(ask(b, "GET", "/a/x.html") != NULL);
    cr_expect_eq(b->n_replies, 0);
    step(b);
    cr_expect_eq(b->status, 200);
    cr_expect_str_eq(b->stream, "/a/x.html");
    cr_expect_str_eq(field(b, "content-type"), "text/html; charset=utf-8");
    cr_expect_str_eq(field(b, "content-length"), "8");
    cr_expect_str_eq(field(b, "server"), "nightjar");
    cr_expect_str_eq(field(b, "date"), "Sun, 06 Nov 1994 08:49:37 GMT");
    cr_expect_str_eq(field(b, "x-content-type-options"), "nosniff");
    expect_text(b->body, "a/x.html");
    close_body(b->body);

    /* Again within the second: from the table, and the date moves on by whole seconds. */
    b->now = SEC - 1;
    cr_expect_null(ask(b, "GET", "//a/x.html?q"));
    cr_expect_str_eq(field(b, "date"), "Sun, 06 Nov 1994 08:49:37 GMT");
    close_body(b->body);
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_hits), 1);
    b->now = SEC;
    cr_expect(ask(b, "GET", "/a/x.html") != NULL, "a second later the file is looked at again");
    step(b);
    cr_expect_str_eq(field(b, "date"), "Sun, 06 Nov 1994 08:49:38 GMT");
    close_body(b->body);
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_opens), 2);
    end(b);
}

Test(http_site, head_empty_and_prompt)
{
    struct bench *b = begin();
    b->prompt = true;
    cr_expect_null(ask(b, "HEAD", "/x.txt"));
    cr_expect(b->status == 200 && !b->body);
    cr_expect_str_eq(field(b, "content-length"), "5");
    cr_expect_null(ask(b, "HEAD", "/big"));
    cr_expect(b->status == 200 && !b->body);
    cr_expect_null(ask(b, "GET", "/empty"));
    cr_expect(b->status == 200 && !b->body);
    cr_expect_str_eq(field(b, "content-length"), "0");
    cr_expect_null(ask(b, "HEAD", "/none"));
    cr_expect(b->status == 404 && !b->body);
    cr_expect_str_eq(field(b, "content-length"), "14");
    cr_expect_eq(b->n_replies, 4);
    end(b);
}

Test(http_site, statuses)
{
    static const struct {
        const char *method, *path;
        enum nj_file_result failure;
        uint16_t status;
        const char *name, *value, *text;
    } rows[] = {
        {"POST", "/x", 0, 405, "allow", "GET, HEAD", "405 Method Not Allowed\n"},
        {"get", "/x", 0, 405, "allow", "GET, HEAD", "405 Method Not Allowed\n"},
        {"OPTIONS", "*", 0, 405, "allow", "GET, HEAD", "405 Method Not Allowed\n"},
        {"GET", "*", 0, 400, "content-length", "16", "400 Bad Request\n"},
        {"GET", "", 0, 400, "content-length", "16", "400 Bad Request\n"},
        {"GET", "/../x", 0, 400, "content-length", "16", "400 Bad Request\n"},
        {"GET", "/.git", 0, 404, "content-length", "14", "404 Not Found\n"},
        {"GET", "/none", 0, 404, "content-type", "text/plain; charset=utf-8", "404 Not Found\n"},
        {"GET", "/d", NJ_FILE_DENIED, 403, "server", "nightjar", "403 Forbidden\n"},
        {"GET", "/m", NJ_FILE_NO_MEMORY, 503, "retry-after", "1", "503 Service Unavailable\n"},
        {"GET", "/b", NJ_FILE_BROKEN, 500, "server", "nightjar", "500 Internal Server Error\n"},
        {"GET", "/dir/sub%0?", 0, 400, "server", "nightjar", "400 Bad Request\n"},
        {"GET", "/dir/a b?x=%20", 0, 301, "location", "/dir/a%20b/?x=%20",
         "301 Moved Permanently\n"},
        {"GET", "//dir", 0, 301, "location", "/dir/", "301 Moved Permanently\n"},
    };
    struct bench *b = begin();
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        b->failure = rows[i].failure;
        ask(b, rows[i].method, rows[i].path);
        step(b);
        cr_expect_eq(b->n_replies, i + 1);
        cr_expect_eq(b->status, rows[i].status, "%s: %u", rows[i].path, b->status);
        cr_expect_str_eq(field(b, rows[i].name), rows[i].value, "%s", rows[i].path);
        expect_text(b->body, rows[i].text);
        close_body(b->body);
    }
    end(b);
}

Test(http_site, directory_that_is_an_index)
{
    struct bench *b = begin();
    b->prompt = true;
    b->failure = NJ_FILE_IS_DIR;
    ask(b, "HEAD", "/dir/");
    cr_expect_eq(b->status, 404);
    ask(b, "HEAD", "/dir/index.html");
    cr_expect_eq(b->status, 301);
    cr_expect_str_eq(field(b, "location"), "/dir/index.html/");
    end(b);
}

Test(http_site, path_too_long)
{
    static char path[NJ_PATH_MAX + 2];
    struct bench *b = begin();
    memset(path, 'a', NJ_PATH_MAX);
    path[0] = '/';
    ask(b, "HEAD", path);
    cr_expect_eq(b->status, 414);
    path[NJ_PATH_MAX - 1] = '\0';
    cr_expect(ask(b, "HEAD", path) != NULL);
    step(b);
    cr_expect_eq(b->status, 200);
    end(b);
}

Test(http_site, redirect_after_wait_keeps_query)
{
    struct bench *b = begin();
    char path[] = "/dir?a=b";
    cr_expect(ask(b, "HEAD", path) != NULL);
    memset(path, 'X', sizeof path - 1); /* the request's strings are gone by now */
    step(b);
    cr_expect_str_eq(field(b, "location"), "/dir/?a=b");
    end(b);
}

Test(http_site, refused)
{
    struct bench *b = begin();
    b->room = 0;
    cr_expect_null(ask(b, "GET", "/x"));
    cr_expect_eq(b->status, 503);
    cr_expect_str_eq(field(b, "retry-after"), "1");
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_busy), 1);
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_opens), 0);
    close_body(b->body);
    b->room = 1;
    cr_expect(ask(b, "GET", "/x") != NULL, "a refusal is not remembered");
    step(b);
    cr_expect_eq(b->status, 200);
    close_body(b->body);
    end(b);
}

Test(http_site, coalesces)
{
    struct bench *b = begin();
    for (int i = 0; i < EXCHANGES; i++)
        cr_expect(ask(b, "GET", "/x") != NULL);
    cr_expect_eq(b->n_out, 1, "one OPEN for all");
    cr_expect_null(ask(b, "HEAD", "/x"));
    cr_expect_eq(b->status, 503, "exchanges are bounded");
    b->n_replies = 0;
    step(b);
    cr_expect_eq(b->n_replies, EXCHANGES);
    for (int i = 0; i < EXCHANGES; i++) {
        expect_text(b->bodies[i], "x");
        close_body(b->bodies[i]);
    }
    end(b);
}

Test(http_site, index_and_folder_share_an_open)
{
    struct bench *b = begin();
    ask(b, "HEAD", "/d/");
    ask(b, "HEAD", "/d/index.html");
    cr_expect_eq(b->n_out, 1);
    step(b);
    cr_expect_eq(b->n_replies, 2);
    end(b);
}

Test(http_site, cancel)
{
    struct bench *b = begin();
    struct nj_site_wait *x = ask(b, "GET", "/x");
    nj_site_cancel(x);
    cr_expect_eq(nj_site_jobs_out(b->site), 1, "the job outlives its asker");
    step(b);
    cr_expect_eq(b->n_replies, 0);
    cr_expect_null(ask(b, "HEAD", "/x"), "what it learned is kept");

    /* One of three goes; then, inside the first reply, another, and that one itself. */
    struct nj_site_wait *a = ask(b, "HEAD", "/y");
    struct nj_site_wait *c = ask(b, "HEAD", "/y");
    struct nj_site_wait *d = ask(b, "HEAD", "/y");
    nj_site_cancel(c);
    b->cancel_in_reply = d;
    b->n_replies = 0;
    step(b);
    cr_expect_eq(b->n_replies, 1);
    a = ask(b, "HEAD", "/z");
    b->cancel_in_reply = a;
    step(b);
    cr_expect_eq(b->n_replies, 2);
    end(b);
}

/* Cancelled askers leave jobs behind; those are bounded too. */
Test(http_site, abandoned_jobs_are_bounded)
{
    struct bench *b = begin();
    char path[16];
    uint32_t n = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "/%d", i);
        struct nj_site_wait *x = ask(b, "HEAD", path);
        if (x) {
            nj_site_cancel(x);
            n++;
        }
    }
    cr_expect_eq(n, 2 * EXCHANGES);
    cr_expect_eq(b->status, 503);
    while (step(b))
        ;
    end(b);
}

static void fetch_big(struct bench *b)
{
    ask(b, "GET", "/big");
    step(b);
    cr_assert_eq(b->status, 200);
    char want[16];
    snprintf(want, sizeof want, "%u", BIG_BYTES);
    cr_expect_str_eq(field(b, "content-length"), want);
    cr_assert_eq(b->body->ops->remaining(b->body), BIG_BYTES);
}

Test(http_site, chunks)
{
    static const uint32_t pieces[] = {1000, 16384, 65536, NJ_CHUNK_BYTES, UINT32_MAX};
    for (size_t i = 0; i < 2 * NJ_ARRAY_LEN(pieces); i++) {
        struct bench *b = begin();
        int r;
        b->prompt = i % 2;
        fetch_big(b);
        cr_expect_eq(drain(b, b->body, pieces[i / 2], &r), BIG_BYTES);
        cr_expect_eq(r, 0);
        close_body(b->body);
        cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_reads), 7); /* 32 32 32 32 256.. */
        end(b);
    }
}

Test(http_site, chunks_that_begin_and_end_elsewhere)
{
    struct bench *b = begin();
    int r;
    b->odd_chunks = true;
    fetch_big(b);
    cr_expect_eq(drain(b, b->body, 1700, &r), BIG_BYTES);
    cr_expect_eq(r, 0);
    close_body(b->body);
    end(b);
}

/* Take up to `n_bytes` and rest, as a paced response does. */
static void turn(struct bench *b, uint32_t n_bytes)
{
    struct nj_slice s;
    const struct nj_body_ops *ops = b->body->ops;

    while (n_bytes > 0) {
        int r = ops->peek(b->body, n_bytes, &s);
        if (r == 0) {
            cr_assert(step(b));
            continue;
        }
        cr_assert_gt(r, 0);
        ops->advance(b->body, (uint32_t)r);
        n_bytes -= (uint32_t)r;
    }
    ops->rest(b->body);
}

Test(http_site, slow_body_holds_little)
{
    struct bench *b = begin();
    int before = live;
    fetch_big(b);
    turn(b, 2 * NJ_CHUNK_BYTES + 1000); /* fast: the chunk at hand is a large one */
    while (step(b))
        ;
    cr_expect_gt(b->read_bytes, NJ_CHUNK_SMALL_BYTES);
    turn(b, 3000);
    cr_expect_eq(b->n_out, 1, "a small one is asked for in place of the large one");
    while (step(b))
        ;
    cr_expect_eq(b->read_bytes, NJ_CHUNK_SMALL_BYTES);
    cr_expect_eq(live, before + 2, "the object and one chunk");

    uint64_t n_reads = nj_counter_read(&b->counters, NJ_C_file_reads);
    for (uint32_t i = 0; i < 7; i++)
        turn(b, 3000);
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_reads), n_reads, "rests read nothing");
    turn(b, 3000);
    cr_expect_eq(b->n_out, 1, "8 KiB are left: one is read ahead");
    step(b);
    uint32_t n_wakes = b->n_wakes;
    for (uint32_t i = 0; i < 33; i++) {
        turn(b, 3000);
        while (step(b))
            ;
        cr_assert_leq(live, before + 3);
    }
    cr_expect_eq(b->n_wakes, n_wakes, "no turn ever had to wait");
    close_body(b->body);
    end(b);
}

Test(http_site, reads_ahead)
{
    struct bench *b = begin();
    struct nj_slice s;
    fetch_big(b);
    struct nj_body *body = b->body;
    cr_expect_eq(body->ops->peek(body, 100, &s), 0);
    step(b);
    cr_expect_eq(body->ops->peek(body, NJ_CHUNK_BYTES, &s), 32 * 1024, "the first one is small");
    body->ops->advance(body, 16 * 1024 - 1);
    cr_expect_eq(b->n_out, 0, "a peer that stalls early pins one chunk");
    body->ops->advance(body, 1);
    cr_expect_eq(b->n_out, 1);
    step(b);
    cr_expect_eq(b->n_wakes, 1, "nobody waits for what is read ahead");
    body->ops->advance(body, 16 * 1024);
    cr_expect_gt(body->ops->peek(body, 100, &s), 0);
    close_body(body);
    while (step(b))
        ;
    end(b);
}

Test(http_site, chunk_that_fails)
{
    for (int i = 0; i < 4; i++) {
        struct bench *b = begin();
        int r;
        b->prompt = i & 1;
        if (i & 2)
            b->short_read = true;
        else
            b->read_failure = NJ_FILE_BROKEN;
        b->read_fails_at = 5 * NJ_CHUNK_BYTES / 2;
        fetch_big(b);
        cr_expect_eq(drain(b, b->body, 5000, &r), 5 * NJ_CHUNK_BYTES / 2, "the bytes before count");
        cr_expect_lt(r, 0);
        struct nj_slice s;
        cr_expect_lt(b->body->ops->peek(b->body, 1, &s), 0, "it stays broken");
        close_body(b->body);
        end(b);
    }
}

/* Close after each number of events: peeks, completions and advances. */
Test(http_site, close_at_each_point)
{
    for (int n_events = 0; n_events < 20; n_events++) {
        struct bench *b = begin();
        fetch_big(b);
        struct nj_body *body = b->body;
        body->waiter = body;
        for (int i = 0; i < n_events && body->ops->remaining(body) > 0; i++) {
            struct nj_slice s;
            int r = body->ops->peek(body, 100000, &s);
            if (r > 0)
                body->ops->advance(body, (uint32_t)r);
            else if (i % 2)
                step(b);
        }
        close_body(body);
        while (step(b))
            ;
        end(b);
    }
}

Test(http_site, close_in_wake)
{
    struct bench *b = begin();
    struct nj_slice s;
    fetch_big(b);
    b->body->waiter = b->body;
    cr_expect_eq(b->body->ops->peek(b->body, 1, &s), 0);
    b->close_in_wake = true;
    step(b);
    cr_expect_eq(b->n_wakes, 1);
    end(b);
}

/* The port has room for one job and two bodies want one each: both get through. */
Test(http_site, starved_bodies_take_turns)
{
    struct bench *b = begin();
    struct nj_body *bodies[3];
    uint64_t n[3] = {0};
    for (int i = 0; i < 3; i++) {
        fetch_big(b);
        bodies[i] = b->body;
        bodies[i]->waiter = bodies[i];
    }
    b->room = 1;
    for (int round = 0; round < 100000 && (bodies[0] || bodies[1] || bodies[2]); round++) {
        for (int i = 0; i < 3; i++) {
            struct nj_slice s;
            int r = bodies[i] ? bodies[i]->ops->peek(bodies[i], 50000, &s) : 0;
            cr_assert_geq(r, 0);
            for (int k = 0; k < r; k++)
                cr_assert_eq(s.data[k], big_byte(n[i] + (uint64_t)k));
            if (r > 0)
                bodies[i]->ops->advance(bodies[i], (uint32_t)r);
            n[i] += (uint64_t)r;
            if (n[i] == BIG_BYTES && bodies[i]) {
                close_body(bodies[i]);
                bodies[i] = NULL;
            }
        }
        step(b);
    }
    for (int i = 0; i < 3; i++)
        cr_expect_eq(n[i], BIG_BYTES);
    end(b);
}

/* Refused while nothing is out: nobody would wake it, so it must not wait. */
Test(http_site, refused_read_without_hope_breaks)
{
    struct bench *b = begin();
    struct nj_slice s;
    fetch_big(b);
    b->room = 0;
    cr_expect_lt(b->body->ops->peek(b->body, 1, &s), 0);
    close_body(b->body);

    /* Hope was there, and went: the last completion breaks it and says so. */
    b->room = JOBS;
    fetch_big(b);
    struct nj_site_wait *x = ask(b, "HEAD", "/x");
    b->room = 0;
    b->body->waiter = b->body;
    cr_expect_eq(b->body->ops->peek(b->body, 1, &s), 0);
    struct nj_body *body = b->body;
    cr_expect(x && step(b));
    cr_expect_eq(b->n_wakes, 1);
    cr_expect_lt(body->ops->peek(body, 1, &s), 0);
    close_body(body);
    end(b);
}

Test(http_site, chunked_bodies_are_bounded)
{
    struct bench *b = begin();
    struct nj_body *bodies[EXCHANGES];
    b->prompt = true;
    for (int i = 0; i < EXCHANGES; i++) {
        ask(b, "GET", "/big");
        cr_assert_eq(b->status, 200);
        bodies[i] = b->body;
    }
    ask(b, "GET", "/big");
    cr_expect_eq(b->status, 503);
    close_body(b->body);
    for (int i = 0; i < EXCHANGES; i++)
        close_body(bodies[i]);
    end(b);
}

/* Files that come and go: the table stays within its bounds and lets go of what is old. */
Test(http_site, table_is_bounded)
{
    struct bench *b = begin();
    char path[32];
    b->prompt = true;
    for (int i = 0; i < 5000; i++) {
        snprintf(path, sizeof path, "/f%d", i);
        ask(b, "HEAD", path);
        ask(b, "HEAD", "/hot");
        snprintf(path, sizeof path, "/none%d", i);
        ask(b, "HEAD", path);
        cr_assert_leq(live, 1024);
    }
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_opens), 10001, "hot was opened once");
    b->now = 2 * SEC;
    for (int i = 0; i < 600; i++)
        ask(b, "HEAD", "/hot");
    cr_expect_eq(live, 1, "%d", live);

    /* Large objects are open files: far fewer are kept. */
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof path, "/big%d", i);
        ask(b, "HEAD", path);
    }
    cr_expect_leq(live, 64);
    end(b);
}
