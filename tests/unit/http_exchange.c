/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges without a shard: out of memory, and orders of events that are rare with HTTP/2. The
 * streams are fakes that record calls. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "http/handlers/exchange_state.h"
#include "http/http_options.h"
#include "sched/ewyk_fiber_scheduler.h"
#include "telem/counters.h"

#define SHARE   1024u /* 64 small blocks, 16 medium, 16 large, 1 huge */
#define STREAMS 200

struct stream {
    uint16_t status;
    struct nj_body *body;
    enum nj_reset reset;
    uint64_t n_consumed;
    unsigned n_again;
    bool retry_after;
};

static struct world {
    struct nj_counters counters;
    struct nj_routes *routes;
    struct nj_task_class classes[7];
    struct nj_ewyk *ewyk;
    struct nj_exchanges *set;
    nj_ns now;
    struct stream stream[STREAMS];
    struct nj_exchange *x[STREAMS];
    struct nj_task *job;
    bool worker_full;
    /* requester[0] owns the first half of the streams, requester[1] the rest. */
    struct nj_txns txns;
    struct nj_txn *txn[STREAMS];
} w;

static int respond(void *stream, uint16_t status, const struct nj_field *f, uint32_t n,
                   uint64_t stamp, struct nj_body *body)
{
    struct stream *st = stream;

    cr_assert_eq(st->status, 0, "answered once");
    st->status = status;
    st->body = body;
    for (size_t i = 0; i < n; i++)
        st->retry_after |= f[i].name.n_bytes == 11 && !memcmp(f[i].name.p, "retry-after", 11);
    return 0;
}

static int trailers(void *stream, const struct nj_field *f, size_t n)
{
    return 0;
}

static void resume(void *stream)
{
}

static void consume(void *stream, size_t n_bytes)
{
    ((struct stream *)stream)->n_consumed += n_bytes;
}

static void reset(void *stream, enum nj_reset why)
{
    ((struct stream *)stream)->reset = why;
}

static void send_continue(void *stream)
{
    cr_assert_fail("no request of these waits for it");
}

static void requeue(struct nj_txn *t)
{
    ((struct stream *)t->stream)->n_again++;
}

static void abuse(void *ctx, nj_counter why, const struct nj_addr *client)
{
}

static void call(void *strategy, struct nj_task_class *route, void (*fn)(void *arg), void *arg)
{
    (void)strategy, (void)route;
    fn(arg);
}

static const struct nj_framing framing = {
    .respond = respond,
    .trailers = trailers,
    .resume = resume,
    .consume = consume,
    .reset = reset,
    .send_continue = send_continue,
};

static const struct nj_txn_events events = {.requeue = requeue, .abuse = abuse};

/* Writes endlessly and counts completed writes. */
static unsigned n_written;

static void writer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static uint8_t piece[30000];

    while (nj_response_write(resp, piece, sizeof piece) == 0)
        n_written++;
}

static void never(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_assert(false, "the room was not offered");
}

/* Reads the whole body. */
static int64_t how_it_ended;
static unsigned n_readers;

static void reader(struct nj_request *req, struct nj_response *resp, void *arg)
{
    uint8_t buf[1000];

    n_readers++;
    while ((how_it_ended = nj_request_read(req, buf, sizeof buf)) > 0)
        ;
}

#define LARGE 60000u

static uint32_t n_large;

static void large(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static uint8_t bytes[LARGE];
    cr_expect_eq(nj_response_write(resp, bytes, n_large), 0);
}

static void small(struct nj_request *req, struct nj_response *resp, void *arg)
{
    cr_expect_eq(nj_response_write(resp, "small", 5), 0);
}

/* Writes endlessly without a stack: requests a callback each time the buffer is full. */
static unsigned n_rooms;

static void on_room(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static uint8_t piece[30000];

    n_rooms++;
    while (nj_response_try_write(resp, piece, sizeof piece) > 0)
        ;
    nj_response_on_writable(resp, on_room, NULL);
}

static void roomer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_defer(resp);
    on_room(req, resp, arg);
}

static const struct nj_route list[] = {
    {.path = "/writer", .type = NJ_BLOCKING, .handle = writer},
    {.path = "/never", .type = NJ_BLOCKING, .handle = never},
    {.path = "/reader", .type = NJ_BLOCKING, .handle = reader},
    {.path = "/errand", .type = NJ_OS_BLOCKING, .handle = reader},
    {.path = "/large", .type = NJ_OS_BLOCKING, .handle = large},
    {.path = "/small", .type = NJ_NON_BLOCKING, .handle = small},
    {.path = "/roomer", .type = NJ_NON_BLOCKING, .handle = roomer},
};

static void withdraw(void *ctx, struct nj_task *task)
{
    nj_ewyk_withdraw(w.ewyk, task);
}

/* A worker that runs one task when it is polled. */
static bool worker_submit(void *ctx, struct nj_task *task)
{
    if (w.job || w.worker_full)
        return false;
    w.job = task;
    return true;
}

static uint32_t worker_poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    if (!w.job)
        return 0;
    w.job->ops->run(w.job);
    tasks[0] = w.job;
    w.job = NULL;
    return 1;
}

static const struct nj_worker_ops workers = {.submit = worker_submit, .poll = worker_poll};

static bool submit(void *ctx, struct nj_task *task)
{
    struct nj_worker_ops port = nj_exchanges_full_body_worker_ops(w.set);
    return port.submit(port.ctx, task);
}

static void begin_world(uint32_t n_max)
{
    char why[100];

    memset(&w, 0, sizeof w);
    w.now = NJ_SEC;
    w.routes = nj_routes_new(list, NJ_ARRAY_LEN(list), why, sizeof why);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(list); i++)
        nj_task_class_init(&w.classes[i], nj_routes_name(w.routes, i), list[i].type);
    struct nj_ewyk_config e = {
        .n_fibers_max = 32, .n_queue_max = 8, .now = w.now, .submit = submit};
    w.ewyk = nj_ewyk_new(&e);
    w.txns.events = &events;
    w.txns.now = &w.now;
    w.txns.counters = &w.counters;
    w.txns.options = &nj_http_options_default;
    cr_assert(nj_txns_init(&w.txns, 2 * STREAMS));
    struct nj_exchanges_config c = {
        .txns = &w.txns,
        .routes = w.routes,
        .classes = w.classes,
        .workers = &workers,
        .withdraw = withdraw,
        .call = call,
        .n_max = n_max,
        .blocks_share = SHARE,
    };
    w.set = nj_exchanges_new(&c, w.now);
    cr_assert(w.set && w.ewyk);
}

static struct nj_exchange *ask(int i, uint32_t route, uint32_t n_value)
{
    static char value[40000];
    struct nj_field field = {NJ_STR("x"), {value, n_value}};
    struct nj_request_head head = {.method = NJ_STR("POST"),
                                   .scheme = NJ_STR("http"),
                                   .authority = NJ_STR("a"),
                                   .path = {list[route].path, (uint32_t)strlen(list[route].path)},
                                   .fields = &field,
                                   .n_fields = 1};
    struct nj_txn *t = nj_pool_take(&w.txns.pool);
    cr_assert(t && !w.txn[i]);
    w.txn[i] = t;
    t->set = &w.txns;
    t->framing = &framing;
    t->stream = &w.stream[i];
    t->requester = &w.txns.requester[i >= STREAMS / 2];
    t->requester->n_open++;
    nj_list_init(&t->node);
    return w.x[i] = nj_exchange_begin(w.set, &(struct nj_route_match){.index = route}, &head,
                                      head.path, t);
}

static void offer(int i)
{
    nj_exchange_note_scheduled(w.x[i]);
    nj_ewyk_offer(w.ewyk, nj_exchange_task(w.x[i]));
    nj_exchanges_process_dirty(w.set, w.now);
}

/* Closes the stream. */
static void close_stream(int i)
{
    struct nj_body *body = w.stream[i].body;

    w.stream[i].body = NULL;
    if (body)
        body->ops->close(body);
    if (!w.txn[i])
        return;
    nj_txn_end(w.txn[i], false);
    w.x[i] = NULL;
    w.txn[i] = NULL;
}

static void step(void)
{
    w.now += 2 * NJ_MS;
    nj_exchanges_tick(w.set, w.now);
    nj_ewyk_run(w.ewyk, w.now, 100);
    struct nj_worker_ops port = nj_exchanges_full_body_worker_ops(w.set);
    struct nj_task *home[8];
    port.poll(port.ctx, home, 8);
    nj_exchanges_process_dirty(w.set, w.now);
}

static void end_world(void)
{
    for (int i = 0; i < STREAMS; i++)
        close_stream(i);
    for (int i = 0; i < 10; i++)
        step();
    cr_expect_eq(nj_exchanges_n_open(w.set), 0);
    cr_expect_eq(nj_block_pool_in_use(w.set->blocks), 0);
    cr_expect_eq(nj_block_pool_in_use(w.set->bodies), 0);
    cr_expect_eq(w.set->n_held, 0);
    cr_expect(nj_ewyk_is_idle(w.ewyk));
    nj_exchanges_free(w.set);
    nj_ewyk_free(w.ewyk);
    nj_routes_free(w.routes);
    cr_expect_eq(w.txns.pool.n_used, 0);
    cr_expect(w.txns.requester[0].n_open == 0 && w.txns.requester[1].n_open == 0);
    nj_txns_fini(&w.txns);
}

Test(http_exchange, no_more_exchanges)
{
    begin_world(3);
    for (int i = 0; i < 5; i++)
        cr_expect_eq(ask(i, 1, 10) != NULL, i < 3);
    cr_expect(w.stream[3].status == 503 && w.stream[3].retry_after && !w.stream[3].body);
    cr_expect_eq(nj_counter_read(&w.counters, NJ_C_exchange_full), 2);
    close_stream(0);
    nj_exchanges_process_dirty(w.set, w.now);
    cr_expect(ask(5, 1, 10), "there is room again");
    end_world();
}

/* A head of 32 KiB needs the only huge block. */
Test(http_exchange, no_block_for_the_head)
{
    begin_world(0);
    cr_expect(ask(0, 1, 32000));
    cr_expect_null(ask(1, 1, 32000));
    cr_expect_eq(w.stream[1].status, 503);
    cr_expect(ask(2, 1, 100), "small ones still fit");
    cr_expect_eq(nj_request_header(&w.x[0]->req, "x").n_bytes, 32000);
    end_world();
}

/* Unread bodies fill the pool: a request that was not begun is refused and may be repeated.
 * Responses have blocks of their own. */
Test(http_exchange, no_block_for_the_body)
{
    static uint8_t data[16384];
    int refused = -1;

    begin_world(0);
    for (int i = 0; i < 4; i++)
        ask(i, 1, 10);
    for (int k = 0; k < 200 && refused < 0; k++) {
        nj_exchange_receive_body(w.x[k % 4], data, sizeof data);
        nj_exchanges_process_dirty(w.set, w.now);
        if (w.stream[k % 4].reset)
            refused = k % 4;
    }
    cr_assert_geq(refused, 0);
    cr_expect_eq(w.stream[refused].reset, NJ_RESET_REFUSED);
    cr_expect_gt(nj_counter_read(&w.counters, NJ_C_exchange_full), 0);
    nj_exchange_receive_body(w.x[refused], data, sizeof data); /* being handled already */
    nj_exchanges_process_dirty(w.set, w.now);
    cr_expect_geq(w.stream[refused].n_consumed, sizeof data, "a discarded body no longer counts");
    cr_expect(ask(10, 0, 10));
    offer(10);
    cr_expect_eq(w.stream[10].status, 200);
    end_world();
}

static uint64_t take_all(int i)
{
    struct nj_body *body = w.stream[i].body;
    struct nj_slice slice;
    uint64_t n = 0;
    int got;

    while (body && (got = body->ops->peek(body, 1u << 20, &slice)) > 0) {
        body->ops->advance(body, (uint32_t)got);
        n += (uint64_t)got;
    }
    return n;
}

/* More handlers write than there are blocks. None fails; those without a block continue when others
 * have sent. */
Test(http_exchange, no_block_for_the_response)
{
    enum { N = 20 };
    uint64_t sum[N] = {0};

    begin_world(0);
    n_written = 0;
    for (int i = 0; i < N; i++) {
        cr_assert(ask(i, 0, 10));
        offer(i);
    }
    cr_expect(!nj_list_empty(&w.set->waiting_for_buf));
    cr_expect_leq(nj_exchanges_next_at(w.set), w.now + NJ_MS, "it is looked after");
    for (int k = 0; k < 200; k++) {
        for (int i = 0; i < N; i++)
            sum[i] += take_all(i);
        step();
    }
    for (int i = 0; i < N; i++)
        cr_expect_gt(sum[i], 100000, "stream %d: %lu", i, (unsigned long)sum[i]);
    end_world();
}

/* Without free blocks no on_room callback comes, for any room in the response's own buffer. */
Test(http_exchange, no_block_for_a_callback)
{
    uint64_t sum = 0, others = 0;

    begin_world(0);
    for (int i = 0; i < 20; i++) {
        ask(i, 0, 10);
        offer(i);
    }
    n_rooms = 0;
    cr_assert(ask(20, 6, 10));
    offer(20);
    for (int i = 0; i < 10; i++)
        nj_exchanges_process_dirty(w.set, w.now);
    cr_expect_eq(n_rooms, 1);
    for (int k = 0; k < 200; k++) {
        for (int i = 0; i < 21; i++)
            *(i == 20 ? &sum : &others) += take_all(i);
        step();
    }
    cr_expect_gt(sum, 100000);
    cr_expect_gt(others, 1000000);
    cr_expect_lt(n_rooms, 1000);
    end_world();
}

/* Response bytes referenced by TCP outlive the exchange and the shard. */
Test(http_exchange, bytes_that_are_referred_to)
{
    struct nj_slice slice;

    begin_world(0);
    ask(0, 0, 10);
    offer(0);
    cr_assert_gt(w.stream[0].body->ops->peek(w.stream[0].body, 1000, &slice), 0);
    nj_ref_take(slice.ref);
    close_stream(0);
    step();
    step();
    cr_expect_eq(nj_exchanges_n_open(w.set), 0);
    cr_expect_eq(nj_block_pool_in_use(w.set->blocks), 1);
    nj_exchanges_free(w.set);
    cr_expect_eq(slice.data[999], 0, "still there");
    nj_ref_put(slice.ref); /* now the pools are freed */
    nj_ewyk_free(w.ewyk);
    nj_routes_free(w.routes);
}

/* Request bodies of which a part was dropped: no handler may take the rest for the whole. */
Test(http_exchange, a_body_that_is_cut)
{
    static const uint8_t data[600000];
    enum { PARKED, ASKED, ERRAND, LATE };

    begin_world(0);
    how_it_ended = n_readers = 0;
    ask(PARKED, 2, 10);
    offer(PARKED);
    ask(ASKED, 2, 10);
    ask(ERRAND, 3, 10);
    offer(ERRAND);
    ask(LATE, 3, 10);
    for (int i = PARKED; i <= LATE; i++) {
        nj_exchange_receive_body(w.x[i], data, i == PARKED ? sizeof data : 1000);
        nj_exchange_on_body_end(w.x[i]);
    }
    step();
    offer(ASKED);
    offer(LATE);
    step();
    cr_expect_eq(n_readers, 1, "the refused request was not examined");
    cr_expect_eq(how_it_ended, NJ_ERR_CANCELLED);
    for (int i = PARKED; i <= LATE; i++)
        cr_expect(w.stream[i].reset != 0 && w.stream[i].status == 0, "stream %d", i);
    cr_expect_eq(w.stream[ASKED].reset, NJ_RESET_REFUSED);
    end_world();
}

/* A single long response does not inflate the reservation of its route permanently. */
Test(http_exchange, the_longest_is_forgotten)
{
    begin_world(0);
    for (int i = 0; i <= 100; i++) {
        n_large = i == 0 ? LARGE : 100;
        w.stream[0] = (struct stream){0};
        ask(0, 4, 10);
        nj_exchange_on_body_end(w.x[0]);
        offer(0);
        step();
        cr_expect_eq(take_all(0), n_large);
        close_stream(0);
        step();
        if (i == 0)
            cr_expect_eq(w.set->longest_response[4], LARGE);
    }
    cr_expect_lt(w.set->longest_response[4], LARGE / 256, "%u", w.set->longest_response[4]);
    cr_expect_geq(w.set->longest_response[4], 100);
    end_world();
}

/* Complete responses of workers are buffered; a client that does not read them gets no more than
 * its share. */
Test(http_exchange, responses_of_workers_that_nobody_takes)
{
    const int fit =
        NJ_WORKER_HELD_BYTES / SHARE / LARGE - 1; /* one place is reserved for other clients */

    begin_world(0);
    n_large = LARGE;
    for (int i = 0; i < fit + 10; i++) {
        ask(i, 4, 10);
        nj_exchange_on_body_end(w.x[i]);
        offer(i);
        step();
        cr_expect_eq(w.stream[i].status, i < fit ? 200 : 503, "stream %d", i);
        cr_expect_eq(w.stream[i].retry_after, i >= fit);
    }
    cr_expect_eq(w.set->n_held, fit * LARGE);
    close_stream(3); /* one ends, one is read completely: room is free */
    cr_expect_eq(take_all(4), LARGE);
    for (int i = fit + 10; i < fit + 14; i++) {
        ask(i, 4, 10);
        offer(i);
        nj_exchange_on_body_end(w.x[i]); /* later, in this test */
        step();
        step();
        cr_expect_eq(w.stream[i].status, i < fit + 12 ? 200 : 503, "stream %d", i);
    }
    cr_expect_eq(w.counters.n[NJ_C_exchange_rejected], 12);
    end_world();
}

/* Handlers that wait for memory while their clients read nothing do not block small, quick
 * responses. */
Test(http_exchange, small_ones_while_others_are_hungry)
{
    enum { WRITERS = 20 };

    begin_world(0);
    for (int i = 0; i < WRITERS; i++) {
        ask(i, 0, 10);
        offer(i);
    }
    cr_assert(!nj_list_empty(&w.set->waiting_for_buf));
    for (int i = WRITERS; i < WRITERS + 10; i++) {
        ask(i, 5, 10);
        offer(i);
        cr_expect(w.stream[i].status == 200 && w.stream[i].reset == 0, "%d", i);
        cr_expect_eq(take_all(i), 5);
        step();
    }
    end_world();
}

/* A reset stream closes when RST_STREAM has left, which the client can delay; the handler's stack
 * is released before. Cases: the body is cut off, times out, or the handler is evicted. */
Test(http_exchange, a_stack_does_not_wait_for_its_stream)
{
    begin_world(0);
    for (int i = 0; i < 3; i++) {
        how_it_ended = 0;
        cr_assert(ask(i, 2, 10));
        offer(i);
        cr_assert_eq(nj_ewyk_gauges(w.ewyk).n_fibers_in_use, 1);
        switch (i) {
        case 0:
            nj_exchange_cancel_if_body_partial(w.x[i]);
            break;
        case 1:
            cr_expect(nj_exchange_on_body_timeout(w.x[i]));
            break;
        case 2:
            nj_exchange_cancel_and_reset(w.x[i], NJ_RESET_ENHANCE_CALM);
            break;
        }
        step();
        cr_expect_eq(nj_ewyk_gauges(w.ewyk).n_fibers_in_use, 0, "%d: its stream is still open", i);
        cr_expect_eq(how_it_ended, NJ_ERR_CANCELLED, "%d: %ld", i, (long)how_it_ended);
        cr_expect_eq(w.stream[i].reset, i == 2 ? NJ_RESET_ENHANCE_CALM : NJ_RESET_CANCEL, "%d: %u",
                     i, w.stream[i].reset);
        cr_expect_eq(w.stream[i].status, 0, "%d", i);
        cr_expect_eq(nj_exchanges_n_open(w.set), (uint32_t)i + 1, "%d", i);
    }
    end_world();
}

/* One client does not read its workers' responses: another client still has room. */
Test(http_exchange, responses_that_one_client_holds)
{
    uint32_t n_held = 0;

    begin_world(0);
    n_large = LARGE;
    for (int i = 0; i < 12; i++) {
        cr_assert(ask(i, 4, 10));
        nj_exchange_on_body_end(w.x[i]);
        offer(i);
        step();
        n_held += w.stream[i].status == 200;
    }
    cr_expect(n_held * LARGE < w.set->n_held_max - LARGE, "%u of %u bytes", n_held, LARGE);
    cr_expect_eq(nj_counter_read(&w.counters, NJ_C_response_limit), 12 - n_held);
    cr_assert(ask(STREAMS - 1, 4, 10));
    nj_exchange_on_body_end(w.x[STREAMS - 1]);
    offer(STREAMS - 1);
    step();
    cr_expect_eq(w.stream[STREAMS - 1].status, 200, "%d", w.stream[STREAMS - 1].status);
    end_world();
}

/* A request to a moved route whose body is complete when the workers are full, and whose
 * flow-control credit was returned on arrival. */
static void pack(int i, uint32_t n_body, struct nj_conn_exchanges *peer)
{
    static const uint8_t data[100000];

    ask(i, 2, 10);
    nj_exchange_attach_to_conn(w.x[i], peer);
    offer(i);
    nj_exchange_receive_body(w.x[i], data, n_body);
    nj_exchange_on_body_end(w.x[i]);
    step();
    cr_expect_eq(w.stream[i].n_again, 1);
    cr_expect_eq(w.stream[i].n_consumed, n_body);
    cr_expect(!nj_exchange_is_on_worker(w.x[i]) && w.stream[i].status == 0);
    cr_expect_eq(w.txns.requester[0].n_need_stack, 0);
}

/* It finally runs on the core, or ends before; each byte of credit is returned once. */
Test(http_exchange, moved_where_there_is_no_room)
{
    static const uint8_t data[1000];
    enum { READ, CLOSED, DROPPED, MORE };
    struct nj_conn_exchanges peer = {0};

    begin_world(0);
    nj_list_init(&peer.exchanges);
    w.classes[2].type = NJ_OS_BLOCKING;
    w.worker_full = true;
    n_readers = 0;
    pack(READ, 20000, &peer);
    cr_expect_eq(n_readers, 0);
    offer(READ);
    step();
    cr_expect(n_readers == 1 && how_it_ended == 0 && w.stream[READ].status == 200);
    cr_expect_eq(w.stream[READ].n_consumed, 20000);
    pack(CLOSED, 20000, &peer);
    close_stream(CLOSED);
    step();
    cr_expect_eq(nj_exchanges_n_open(w.set), 1);
    pack(DROPPED, 100000, &peer);
    ask(MORE, 1, 10);
    nj_exchange_attach_to_conn(w.x[MORE], &peer);
    for (int i = 0; i < 90 && w.x[DROPPED]->reset == 0; i++)
        nj_exchange_receive_body(w.x[MORE], data,
                                 sizeof data); /* until its connection exceeds its share */
    step();
    cr_expect_eq(w.stream[DROPPED].reset, NJ_RESET_REFUSED);
    cr_expect_eq(w.stream[DROPPED].n_consumed, 100000);
    cr_expect_eq(w.counters.n[NJ_C_exchange_rejected], 0);
    cr_expect_eq(w.counters.n[NJ_C_task_inline], 3);
    end_world();
}

/* A client's buffered worker responses do not refuse work that needs no worker. */
Test(http_exchange, moved_where_responses_wait)
{
    int i = 0;

    begin_world(0);
    n_large = LARGE;
    for (; w.counters.n[NJ_C_response_limit] == 0; i++) {
        ask(i, 4, 10);
        nj_exchange_on_body_end(w.x[i]);
        offer(i);
        step();
    }
    w.classes[5].type = NJ_OS_BLOCKING;
    w.set->longest_response[5] = LARGE;
    ask(i, 5, 10);
    nj_exchange_on_body_end(w.x[i]);
    offer(i);
    cr_expect_eq(w.stream[i].n_again, 1);
    offer(i);
    cr_expect_eq(w.stream[i].status, 200);
    cr_expect_eq(w.counters.n[NJ_C_response_limit], 1);
    cr_expect_eq(w.counters.n[NJ_C_exchange_rejected], 1);
    end_world();
}
