/* SPDX-License-Identifier: BSD-3-Clause */
/* The file server: waiting requests, limits, and bodies of large files. */
#include "site_rig.h"

#include "telem/counters.h"

/* Sentence 326. */
Test(http_file_server, get)
{
    struct bench *b = begin();
    cr_expect(ask(b, "GET", "/a/x.html") != NULL);
    cr_expect_eq(b->n_replies, 0);
    step(b);
    cr_expect_eq(b->status, 200);
    cr_expect_str_eq(b->stream, "/a/x.html");
    cr_expect_str_eq(field(b, "content-type"), "text/html");
    cr_expect_str_eq(field(b, "content-length"), "8");
    cr_expect_str_eq(field(b, "server"), "nightjar");
    cr_expect_str_eq(field(b, "date"), "Sun, 06 Nov 1994 08:49:37 GMT");
    cr_expect_str_eq(field(b, "x-content-type-options"), "nosniff");
    expect_text(b->body, "a/x.html");
    close_body(b->body);

    /* Repeated within the second: served from the cache; the date advances in whole seconds. */
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

Test(http_file_server, head_empty_and_prompt)
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

/* Sentences 221, 223 - 225. */
Test(http_file_server, statuses)
{
    static const struct {
        const char *method, *path;
        enum nj_file_result failure;
        uint16_t status;
        const char *name, *value, *text;
    } rows[] = {
        {"POST", "/x", 0, 405, "allow", "GET, HEAD, OPTIONS", "405 Method Not Allowed\n"},
        {"get", "/x", 0, 501, "content-length", "20", "501 Not Implemented\n"},
        {"PURGE", "/x", 0, 501, "content-length", "20", "501 Not Implemented\n"},
        {"TRACE", "/x", 0, 405, "allow", "GET, HEAD, OPTIONS", "405 Method Not Allowed\n"},
        {"OPTIONS", "/../x", 0, 400, "content-length", "16", "400 Bad Request\n"},
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

Test(http_file_server, directory_that_is_an_index)
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

Test(http_file_server, path_too_long)
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

Test(http_file_server, redirect_after_wait_keeps_query)
{
    struct bench *b = begin();
    char path[] = "/dir?a=b";
    cr_expect(ask(b, "HEAD", path) != NULL);
    memset(path, 'X', sizeof path - 1); /* the request's strings are no longer valid */
    step(b);
    cr_expect_str_eq(field(b, "location"), "/dir/?a=b");
    end(b);
}

Test(http_file_server, refused)
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

Test(http_file_server, coalesces)
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

Test(http_file_server, index_and_folder_share_an_open)
{
    struct bench *b = begin();
    ask(b, "HEAD", "/d/");
    ask(b, "HEAD", "/d/index.html");
    cr_expect_eq(b->n_out, 1);
    step(b);
    cr_expect_eq(b->n_replies, 2);
    end(b);
}

Test(http_file_server, cancel)
{
    struct bench *b = begin();
    struct nj_txn *x = ask(b, "GET", "/x");
    x->on_end(x);
    cr_expect_eq(nj_file_server_jobs_in_flight(b->site), 1, "the job outlives its asker");
    step(b);
    cr_expect_eq(b->n_replies, 0);
    cr_expect_null(ask(b, "HEAD", "/x"), "the learned value is kept");

    /* One of three requests is cancelled; then, during the first response, another, and that one
     * itself. */
    struct nj_txn *a = ask(b, "HEAD", "/y");
    struct nj_txn *c = ask(b, "HEAD", "/y");
    struct nj_txn *d = ask(b, "HEAD", "/y");
    c->on_end(c);
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

/* Cancelled requests leave jobs behind; those are bounded, too. */
Test(http_file_server, abandoned_jobs_are_bounded)
{
    struct bench *b = begin();
    char path[16];
    uint32_t n = 0;
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "/%d", i);
        struct nj_txn *x = ask(b, "HEAD", path);
        if (x) {
            x->on_end(x);
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

Test(http_file_server, chunks)
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

Test(http_file_server, chunks_that_begin_and_end_elsewhere)
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

/* Takes up to `n_bytes`, then pauses, as a paced response does. */
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

Test(http_file_server, slow_body_holds_little)
{
    struct bench *b = begin();
    int before = live;
    fetch_big(b);
    turn(b, 2 * NJ_CHUNK_BYTES + 1000); /* fast: the current chunk is large */
    while (step(b))
        ;
    cr_expect_gt(b->read_bytes, NJ_CHUNK_SMALL_BYTES);
    turn(b, 3000);
    cr_expect_eq(b->n_out, 1, "a small chunk is requested instead of the large one");
    while (step(b))
        ;
    cr_expect_eq(b->read_bytes, NJ_CHUNK_SMALL_BYTES);
    cr_expect_eq(live, before + 2, "the object and one chunk");

    uint64_t n_reads = nj_counter_read(&b->counters, NJ_C_file_reads);
    for (uint32_t i = 0; i < 7; i++)
        turn(b, 3000);
    cr_expect_eq(nj_counter_read(&b->counters, NJ_C_file_reads), n_reads, "pauses read nothing");
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
    cr_expect_eq(b->n_wakes, n_wakes, "no turn had to wait");
    close_body(b->body);
    end(b);
}

static void turn_and_read(struct bench *b, uint32_t n_bytes)
{
    turn(b, n_bytes);
    while (step(b))
        ;
}

Test(http_file_server, one_late_turn_makes_no_fast_body)
{
    struct bench *b = begin();
    ask(b, "GET", "/huge");
    step(b);
    for (uint32_t i = 0; i < 100; i++)
        turn_and_read(b, 3000);
    for (uint32_t i = 0; i < 100; i++) { /* at all offsets within a chunk */
        turn_and_read(b, i % 7 == 0 ? 12000 : 3000);
        cr_assert_eq(b->read_bytes, NJ_CHUNK_SMALL_BYTES);
    }
    turn_and_read(b, 3 * NJ_CHUNK_SMALL_BYTES);
    cr_expect_gt(b->read_bytes, NJ_CHUNK_SMALL_BYTES, "a fast one does");
    close_body(b->body);
    end(b);
}

Test(http_file_server, reads_ahead)
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
    cr_expect_eq(b->n_wakes, 1, "no body waits for a chunk that is read ahead");
    body->ops->advance(body, 16 * 1024);
    cr_expect_gt(body->ops->peek(body, 100, &s), 0);
    close_body(body);
    while (step(b))
        ;
    end(b);
}

/* Takes `n` chunks, which arrive when requested, or only when the body waits. */
static void take_pieces(struct bench *b, uint32_t n, bool in_time)
{
    const struct nj_body_ops *ops = b->body->ops;
    uint64_t end = ops->remaining(b->body) - (uint64_t)n * NJ_CHUNK_BYTES;
    struct nj_slice s;

    b->body->waiter = b->body;
    while (ops->remaining(b->body) > end) {
        int r = ops->peek(b->body, NJ_CHUNK_BYTES / 2, &s);
        cr_assert_geq(r, 0);
        if (r > 0)
            ops->advance(b->body, (uint32_t)r);
        if (r == 0 || in_time)
            step(b);
    }
}

/* Read-ahead grows until the body does not wait. */
Test(http_file_server, reads_further_ahead_when_the_disk_is_late)
{
    struct bench *b = begin();
    ask(b, "GET", "/huge");
    step(b);
    take_pieces(b, 40, false);
    cr_expect_eq(b->read_ahead, 0, "chunks in memory are not read ahead");
    b->is_cold = true;
    take_pieces(b, 40, true);
    cr_expect_eq(b->read_ahead, 0, "it never waited");
    for (uint32_t i = 1; i < 20; i++) {
        take_pieces(b, 1, false);
        cr_expect_leq(b->read_ahead, i);
    }
    uint32_t most = b->read_ahead;
    cr_expect_eq(most, 8);
    take_pieces(b, 40, true);
    cr_expect_eq(b->read_ahead, most);
    take_pieces(b, 80, true);
    cr_expect(b->read_ahead < most && b->read_ahead >= most - 2, "%u", b->read_ahead);
    take_pieces(b, 600, true);
    cr_expect_eq(b->read_ahead, 0, "and no longer than that");
    close_body(b->body);
    while (step(b))
        ;
    end(b);
}

Test(http_file_server, chunk_that_fails)
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
Test(http_file_server, close_at_each_point)
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

Test(http_file_server, close_in_wake)
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

/* With withdraw(): jobs that are no longer needed are withdrawn, and no others. */
Test(http_file_server, withdrawn_jobs)
{
    struct bench *b = begin();
    port.withdraw = withdraw;
    struct nj_txn *x = ask(b, "GET", "/x");
    x->on_end(x);
    cr_expect_eq(b->n_out, 0);

    ask(b, "GET", "/x");
    struct nj_txn *other = ask(b, "GET", "/x");
    b->cancel_in_reply = other;
    cr_expect(step(b), "the job has completed, and its last waiter is cancelled");
    cr_expect_eq(b->n_replies, 1);
    close_body(b->body);

    struct nj_slice s;
    fetch_big(b);
    cr_expect_eq(b->body->ops->peek(b->body, 1, &s), 0);
    cr_expect_eq(b->n_out, 1);
    close_body(b->body);
    cr_expect_eq(b->n_out, 0);
    end(b);
}

/* The queue holds one job and two bodies need one each: both finish. */
Test(http_file_server, starved_bodies_take_turns)
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

/* A READ is refused while no job is in flight: no job would wake the body, so it fails. */
Test(http_file_server, refused_read_without_hope_breaks)
{
    struct bench *b = begin();
    struct nj_slice s;
    fetch_big(b);
    b->room = 0;
    cr_expect_lt(b->body->ops->peek(b->body, 1, &s), 0);
    close_body(b->body);

    /* A job was in flight: its completion fails the body and wakes it. */
    b->room = JOBS;
    fetch_big(b);
    struct nj_txn *x = ask(b, "HEAD", "/x");
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

Test(http_file_server, chunked_bodies_are_bounded)
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

/* Many short-lived files: the cache stays within its bounds and drops old entries. */
Test(http_file_server, table_is_bounded)
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

    /* Large objects are open files: fewer are cached. */
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof path, "/big%d", i);
        ask(b, "HEAD", path);
    }
    cr_expect_leq(live, 64);
    end(b);
}

/* Sentences 252, 326. */
Test(http_file_server, options_have_a_date)
{
    struct bench *b = begin();

    cr_expect_null(ask(b, "OPTIONS", "*"));
    cr_expect_eq(b->status, 204);
    cr_expect(has(b, "date") && has(b, "server") && has(b, "allow"));
    end(b);
}
