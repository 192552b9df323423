/* SPDX-License-Identifier: BSD-3-Clause */
/* What nightjar/test.h promises, in a program outside of the tree: test_without_server.py builds it
 * plainly and with sanitizers. Its argument is a folder with a file "name" that has 5 bytes. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nightjar/test.h>

#define SECOND ((uint64_t)1000000000)
#define BIG    300000u

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* --- handlers --------------------------------------------------------------------------------- */

static int last_error;     /* that a handler got when it was cancelled */
static unsigned lcore = 9; /* of the last handler */

static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)arg;
    lcore = nj_lcore_id();
    nj_response_header(resp, "content-type", "text/plain");
    nj_response_write(resp, "hello\n", 6);
}

/* The heap block is known to nothing but the stack of the handler. */
static void echo(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char *bytes = malloc(1000);
    int64_t n;

    (void)arg;
    while ((n = nj_request_read(req, bytes, 1000)) > 0)
        nj_response_write(resp, bytes, (size_t)n);
    last_error = (int)n;
    nj_response_trailer(resp, "x-end", "yes");
    free(bytes);
}

static void sleeper(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char *text = strdup("slept");

    (void)req, (void)arg;
    last_error = nj_sleep(2 * SECOND);
    nj_response_write(resp, text, strlen(text));
    free(text);
}

static void big(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char bytes[1000];

    (void)req, (void)arg;
    memset(bytes, 'b', sizeof bytes);
    for (unsigned i = 0; i < BIG / sizeof bytes; i++)
        if ((last_error = nj_response_write(resp, bytes, sizeof bytes)) != 0)
            return;
}

static void upper(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char bytes[100];
    int64_t n = nj_request_read(req, bytes, sizeof bytes);

    (void)arg;
    lcore = nj_lcore_id();
    for (int64_t i = 0; i < n; i++)
        bytes[i] = (char)(bytes[i] - 'a' + 'A');
    nj_response_write(resp, bytes, n < 0 ? 0 : (size_t)n);
}

static void file(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)arg;
    nj_response_header(resp, "x-from", "handler");
    nj_response_file(resp, "/name");
}

static struct nj_event event;

static void await_event(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)arg;
    last_error = nj_await(&event, 5 * SECOND);
    nj_response_status(resp, last_error == 0 ? 200 : 504);
}

static void set_event(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)resp, (void)arg;
    nj_event_set(&event);
}

/* --- waits for others: on a stack, and on a worker --- */

static int pipe_ends[2];
static char shared[10]; /* what another thread has set the event for */

static void await_fd(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char bytes[10];

    (void)req, (void)arg;
    last_error = nj_await_fd(pipe_ends[0], POLLIN, 5 * SECOND);
    if (last_error > 0)
        nj_response_write(resp, bytes, (size_t)read(pipe_ends[0], bytes, sizeof bytes));
    else
        nj_response_status(resp, 504);
}

static void await_thread(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)arg;
    last_error = nj_await(&event, 0);
    nj_response_write(resp, shared, strlen(shared));
}

static void *write_to_pipe(void *arg)
{
    CHECK(write(pipe_ends[1], "xyz", 3) == 3);
    return arg;
}

static void *set_from_thread(void *arg)
{
    strcpy(shared, "thread");
    nj_event_set(&event);
    return arg;
}

/* Three ticks of one second, without a stack. */
static unsigned n_cancelled;

static void tick(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned *left = arg;

    (void)req;
    nj_response_write(resp, "tick ", 5);
    if (--*left == 0)
        nj_response_end(resp);
    else
        nj_response_on_timer(resp, SECOND, tick, arg);
}

static void cancelled(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req, (void)resp, (void)arg;
    n_cancelled++;
}

static void ticks(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    *(unsigned *)arg = 3;
    nj_response_defer(resp);
    nj_response_flush(resp);
    nj_response_on_cancelled(resp, cancelled, NULL);
    nj_response_on_timer(resp, SECOND, tick, arg);
}

static unsigned n_left;

static const struct nj_route routes[] = {
    {.method = "GET", .path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
    {.method = "POST", .path = "/echo", .handle = echo, .body_max_bytes = 5000},
    {.method = "GET", .path = "/sleep", .type = NJ_BLOCKING, .handle = sleeper},
    {.method = "GET", .path = "/big", .type = NJ_EITHER, .handle = big},
    {.method = "POST", .path = "/upper", .type = NJ_OS_BLOCKING, .handle = upper},
    {.method = "GET", .path = "/file", .type = NJ_BLOCKING, .handle = file},
    {.method = "GET", .path = "/await", .type = NJ_BLOCKING, .handle = await_event},
    {.method = "GET", .path = "/set", .type = NJ_NON_BLOCKING, .handle = set_event},
    {.method = "GET", .path = "/fd", .handle = await_fd},
    {.method = "GET", .path = "/worker/fd", .type = NJ_OS_BLOCKING, .handle = await_fd},
    {.method = "GET", .path = "/thread", .handle = await_thread},
    {.method = "GET", .path = "/worker/thread", .type = NJ_OS_BLOCKING, .handle = await_thread},
    {.method = "GET", .path = "/worker/sleep", .type = NJ_OS_BLOCKING, .handle = sleeper},
    {.method = "GET", .path = "/ticks", .type = NJ_NON_BLOCKING, .handle = ticks, .arg = &n_left},
};
#define N_ROUTES (sizeof routes / sizeof routes[0])

/* --- tests ------------------------------------------------------------------------------------ */

static struct nj_test_request *get(struct nj_test *t, const char *path)
{
    struct nj_test_request *r = nj_test_request(t, NULL, "GET", path);

    nj_test_request_end(r);
    return r;
}

static void test_calls(struct nj_test *t)
{
    const struct nj_test_response *resp = nj_test_call(t, "GET", "/hello", NULL, 0);

    CHECK(resp->status == 200 && resp->is_ended && !resp->is_reset);
    CHECK(resp->n_bytes == 6 && strcmp(resp->body, "hello\n") == 0);
    CHECK(strcmp(nj_test_response_header(resp, "content-type"), "text/plain") == 0);
    CHECK(strcmp(nj_test_response_header(resp, "date"), "Tue, 14 Nov 2023 22:13:20 GMT") == 0);
    CHECK(!nj_test_response_header(resp, "x-none"));
    CHECK(lcore == 0 && nj_lcore_id() != 0);
    resp = nj_test_call(t, "POST", "/upper", "abc", 3);
    CHECK(resp->status == 200 && strcmp(resp->body, "ABC") == 0 && lcore != 0);
    CHECK(nj_test_call(t, "HEAD", "/hello", NULL, 0)->n_bytes == 0);
    CHECK(nj_test_now(t) == 0);
}

static void test_what_the_library_answers(struct nj_test *t)
{
    char many[6000] = {0};

    CHECK(nj_test_call(t, "GET", "/none", NULL, 0)->status == 404);
    const struct nj_test_response *resp = nj_test_call(t, "DELETE", "/hello", NULL, 0);
    CHECK(resp->status == 405);
    CHECK(strcmp(nj_test_response_header(resp, "allow"), "GET, HEAD") == 0);
    CHECK(nj_test_call(t, "POST", "/echo", many, sizeof many)->status == 413);
    CHECK(nj_test_call(t, "GET", "/%zz", NULL, 0)->status == 400);
}

static void test_bodies_in_pieces(struct nj_test *t)
{
    struct nj_test_request *r = nj_test_request(t, NULL, "POST", "/echo");
    const struct nj_test_response *resp = nj_test_response(r);

    nj_test_request_header(r, "expect", "100-continue");
    nj_test_request_body(r, NULL, 0);
    CHECK(resp->is_continued && resp->status == 0);
    nj_test_request_body(r, "one ", 4);
    CHECK(resp->status == 200 && strcmp(resp->body, "one ") == 0 && !resp->is_ended);
    nj_test_advance(t, 10 * SECOND);
    nj_test_request_body(r, "two", 3);
    nj_test_request_end(r);
    CHECK(strcmp(resp->body, "one two") == 0 && resp->is_ended && last_error == 0);
    CHECK(resp->n_trailers == 1 && strcmp(resp->trailer[0].name, "x-end") == 0 &&
          strcmp(resp->trailer[0].value, "yes") == 0);
}

static void test_time(struct nj_test *t)
{
    uint64_t began = nj_test_now(t);

    CHECK(strcmp(nj_test_call(t, "GET", "/sleep", NULL, 0)->body, "slept") == 0);
    CHECK(nj_test_now(t) - began >= 2 * SECOND && nj_test_now(t) - began < 2 * SECOND + 5000000);

    struct nj_test_request *r = get(t, "/ticks");
    CHECK(nj_test_response(r)->status == 200);
    nj_test_advance(t, 2 * SECOND + SECOND / 2);
    CHECK(strcmp(nj_test_response(r)->body, "tick tick ") == 0);
    CHECK(!nj_test_wait(r, SECOND / 4) && nj_test_wait(r, SECOND));
    CHECK(strcmp(nj_test_response(r)->body, "tick tick tick ") == 0 && n_cancelled == 0);
    r = get(t, "/ticks");
    nj_test_request_reset(r);
    CHECK(n_cancelled == 1 && nj_test_response(r)->is_reset);
}

static void test_events(struct nj_test *t)
{
    struct nj_test_request *first = get(t, "/await"), *second;

    CHECK(nj_test_response(first)->status == 0);
    get(t, "/set");
    CHECK(nj_test_response(first)->status == 200);
    memset(&event, 0, sizeof event);
    first = get(t, "/await");
    second = get(t, "/sleep");
    nj_test_advance(t, 6 * SECOND);
    CHECK(nj_test_response(first)->status == 504 && nj_test_response(second)->status == 200);
}

static void test_descriptors(struct nj_test *t, const char *path)
{
    pthread_t other;

    CHECK(pthread_create(&other, NULL, write_to_pipe, NULL) == 0);
    CHECK(strcmp(nj_test_call(t, "GET", path, NULL, 0)->body, "xyz") == 0);
    CHECK(pthread_join(other, NULL) == 0);
    struct nj_test_request *r = get(t, path);
    nj_test_advance(t, 4 * SECOND);
    CHECK(nj_test_response(r)->status == 0);
    nj_test_advance(t, 2 * SECOND);
    CHECK(nj_test_response(r)->status == 504 && last_error == NJ_ERR_TIMEOUT);
    r = get(t, path);
    nj_test_request_reset(r);
    CHECK(last_error == NJ_ERR_CANCELLED);
    r = get(t, path);
    write_to_pipe(NULL);
    nj_test_advance(t, 0);
    CHECK(nj_test_response(r)->n_bytes == 3);
}

static void test_other_threads(struct nj_test *t, const char *path)
{
    pthread_t other;

    memset(&event, 0, sizeof event);
    struct nj_test_request *r = get(t, path);
    CHECK(pthread_create(&other, NULL, set_from_thread, NULL) == 0);
    while (nj_test_response(r)->status == 0)
        nj_test_wait_outside(t, 1000);
    CHECK(strcmp(nj_test_response(r)->body, "thread") == 0);
    CHECK(pthread_join(other, NULL) == 0);
}

static void test_workers(struct nj_test *t)
{
    struct nj_test_request *r = NULL;

    for (unsigned i = 0; i < 5; i++) /* one more than there are threads */
        r = get(t, "/worker/sleep");
    nj_test_advance(t, 2 * SECOND);
    CHECK(nj_test_response(r)->status == 0);
    CHECK(nj_test_wait(r, 3 * SECOND) && nj_test_response(r)->status == 200);
}

static void test_slow_clients(struct nj_test *t)
{
    struct nj_test_request *r = nj_test_request(t, NULL, "GET", "/big");
    const struct nj_test_response *resp = nj_test_response(r);

    nj_test_request_room(r, 100);
    nj_test_request_end(r);
    CHECK(resp->status == 200 && resp->n_bytes == 100);
    nj_test_request_room(r, 99900);
    CHECK(resp->n_bytes == 100000 && !resp->is_ended);
    nj_test_request_room(r, BIG);
    CHECK(resp->n_bytes == BIG && resp->is_ended && last_error == 0);
    r = nj_test_request(t, NULL, "GET", "/big"); /* send_timeout_s: 60 */
    nj_test_request_room(r, 0);
    nj_test_request_end(r);
    CHECK(nj_test_wait(r, 200 * SECOND) && nj_test_response(r)->is_reset);
    CHECK(last_error == NJ_ERR_CANCELLED);
}

static void test_clients_that_leave(struct nj_test *t)
{
    struct nj_test_client *client = nj_test_connect(t, "198.51.100.7");
    struct nj_test_request *r = nj_test_request(t, client, "GET", "/sleep");

    nj_test_request_end(r);
    nj_test_advance(t, SECOND);
    last_error = 0;
    nj_test_request_reset(r);
    CHECK(last_error == NJ_ERR_CANCELLED);
    r = nj_test_request(t, client, "POST", "/echo");
    nj_test_request_body(r, "half", 4);
    last_error = 0;
    nj_test_disconnect(client);
    CHECK(last_error == NJ_ERR_CANCELLED && nj_test_response(r)->is_reset);
    CHECK(strcmp(nj_test_response(r)->body, "half") == 0);
    CHECK(!nj_test_connect(t, "nowhere"));
    CHECK(nj_test_call(t, "GET", "/hello", NULL, 0)->status == 200);
}

static void test_files(const char *folder)
{
    struct nj_server_config config;

    nj_server_config_init(&config);
    config.root = folder;
    struct nj_test *t = nj_test_new(routes, N_ROUTES, &config);
    if (!t)
        exit(77); /* valgrind before 3.20 lacks openat2(2) */
    const struct nj_test_response *resp = nj_test_call(t, "GET", "/file", NULL, 0);
    CHECK(resp->status == 200 && strcmp(resp->body, "12345") == 0);
    CHECK(strcmp(nj_test_response_header(resp, "x-from"), "handler") == 0);
    CHECK(nj_test_response_header(resp, "etag"));
    CHECK(nj_test_call(t, "GET", "/name", NULL, 0)->n_bytes == 5);
    CHECK(nj_test_free(t) == 0);
}

static unsigned n_begun, n_ended;

static void begin_lcore(unsigned id, void *ctx)
{
    CHECK(id == 0 && nj_lcore_id() == 0 && ctx == &n_begun);
    n_begun++;
}

static void end_lcore(unsigned id, void *ctx)
{
    CHECK(id == 0 && ctx == &n_begun);
    n_ended++;
}

static void test_configurations(struct nj_test *other)
{
    struct nj_server_config config;

    nj_server_config_init(&config);
    config.routes = routes;
    config.n_routes = N_ROUTES;
    config.lcore_init = begin_lcore;
    config.lcore_fini = end_lcore;
    config.lcore_ctx = &n_begun;
    config.body_timeout_s = 5;
    config.fibers_max = 1;
    struct nj_test *t = nj_test_new(NULL, 0, &config);
    CHECK(t && n_begun == 1);
    struct nj_test_request *slow = nj_test_request(t, NULL, "POST", "/upper");
    nj_test_request_body(slow, "a", 1);
    CHECK(nj_test_wait(slow, 10 * SECOND) && nj_test_response(slow)->status == 408);
    get(t, "/sleep");
    slow = get(t, "/sleep"); /* waits for the stack */
    CHECK(nj_test_call(other, "GET", "/hello", NULL, 0)->status == 200);
    nj_test_advance(t, 2 * SECOND + SECOND / 2);
    last_error = 0;
    CHECK(nj_test_free(t) == 0); /* while a handler waits */
    CHECK(n_ended == 1 && last_error == NJ_ERR_CANCELLED);
    config.rss_key = "bad";
    CHECK(!nj_test_new(NULL, 0, &config));
}

int main(int argc, char **argv)
{
    struct nj_test *t = nj_test_new(routes, N_ROUTES, NULL);

    CHECK(t);
    test_calls(t);
    test_what_the_library_answers(t);
    test_bodies_in_pieces(t);
    test_time(t);
    test_events(t);
    CHECK(pipe(pipe_ends) == 0);
    test_descriptors(t, "/fd");
    test_descriptors(t, "/worker/fd");
    test_other_threads(t, "/thread");
    test_other_threads(t, "/worker/thread");
    test_workers(t);
    test_slow_clients(t);
    test_clients_that_leave(t);
    test_configurations(t);
    CHECK(nj_test_free(t) == 0 && nj_test_free(NULL) == 0);
    if (argc > 1)
        test_files(argv[1]);
    puts("all passed");
    return 0;
}
