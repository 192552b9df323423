/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces of requests: their times by reason, their bounds, and what runs when they begin and end.
 */
#include <criterion/criterion.h>

#include "conn/request_trace.h"
#include "conn_http1_rig.h"
#include "support/handlers_rig.h"

#define FOE 0xc6120005u /* 198.18.0.5 */

static struct nj_record_ring ring;
static struct nj_trace *trace;

static void handle_wait(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(100 * NJ_MS);
    nj_response_status(resp, 204);
}

static void handle_read(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[1000];

    while (nj_request_read(req, buf, sizeof buf) > 0)
        ;
}

static const struct nj_route routes[] = {
    {.path = "/wait", .type = NJ_BLOCKING, .handle = handle_wait},
    {.path = "/read", .type = NJ_BLOCKING, .handle = handle_read},
    {.path = "/work", .type = NJ_OS_BLOCKING, .handle = handle_read},
};

static struct nj_policy base(void)
{
    return (struct nj_policy){.version = 1,
                              .n_classes = 1,
                              .classes = {{.name = "default"}},
                              .client_bits4 = 32,
                              .client_bits6 = 64};
}

static struct hr *start(const struct nj_policy *p)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->config.conns.policy = p;
    h->config.conns.number = 7;
    return hr_start(h);
}

static struct nj_trace_command begun;

static void run(struct hr *h, bool ends)
{
    struct nj_trace_command c = {.trace = trace, .ends = ends ? &begun : NULL};

    nj_trace_begin(&c);
    cr_assert(nj_command_ring_put(&h->r->s->conns.commands, &c.command));
    for (uint32_t i = 0; i < 200 && !nj_command_is_done(&c.command); i++)
        rig_step(h->r);
    cr_assert(nj_command_is_done(&c.command));
    atomic_store(&begun.command.is_done, true);
}

static void begin_of(struct hr *h, const struct nj_net *of, uint64_t n_ring)
{
    cr_assert(nj_record_ring_open(&ring, n_ring));
    trace = nj_trace_new(&ring, of);
    cr_assert(trace);
    run(h, false);
}

static void begin(struct hr *h)
{
    begin_of(h, &(struct nj_net){.bits = 0}, 1 << 20);
}

static void end(struct hr *h)
{
    run(h, true);
    nj_trace_free(trace);
    nj_record_ring_close(&ring);
    hr_free(h);
}

/* The next record; its `status` is UINT16_MAX if there is none. */
static struct nj_traced_request next(void)
{
    struct nj_traced_request r = {.status = UINT16_MAX};
    uint32_t n;
    const void *at = nj_record_ring_peek(&ring, &n);

    if (!at)
        return r;
    cr_assert_eq(n, sizeof r);
    memcpy(&r, at, sizeof r);
    nj_record_ring_take(&ring);
    return r;
}

static void expect_none(void)
{
    cr_expect_eq(next().status, UINT16_MAX);
}

static void expect_path(const struct nj_traced_request *r, const char *path)
{
    cr_expect(r->n_path == strlen(path) && memcmp(r->path, path, r->n_path) == 0, "%.*s", r->n_path,
              r->path);
}

/* Ends the trace and expects that its only request, which still runs, has waited nearly all the
 * time for one reason. */
static void expect_waited(struct hr *h, enum nj_why why)
{
    hr_run(h, 200 * NJ_MS);
    run(h, true);
    struct nj_traced_request r = next();
    cr_assert(r.is_running && !r.is_complete);
    nj_ns age = r.ended_at - r.arrived_at, sum = 0;
    for (uint32_t i = 0; i < NJ_N_WHYS; i++)
        sum += r.waited[i];
    cr_expect_geq(age, 200 * NJ_MS);
    cr_expect_eq(sum, age, "all of the time has a reason");
    cr_expect_geq(r.waited[why], age - age / 10, "%s: %lu of %lu us", nj_why_name(why),
                  r.waited[why] / NJ_US, age / NJ_US);
    expect_none();
    nj_trace_free(trace);
    nj_record_ring_close(&ring);
    hr_free(h);
}

/* --- reasons --- */

static void expect_rate(const struct nj_policy *p, enum nj_why why)
{
    struct hr *h = start(p);
    struct hr_client *c = hr_connect(h);

    begin(h);
    hr_get(c, "/big");
    expect_waited(h, why);
}

Test(conn_request_trace, rate_of_a_class)
{
    struct nj_policy p = base();

    p.classes[0].total.ceiling = 1000000;
    expect_rate(&p, NJ_WHY_CLASS);
}

Test(conn_request_trace, rate_of_a_client)
{
    struct nj_policy p = base();

    p.classes[0].client.ceiling = 1000000;
    expect_rate(&p, NJ_WHY_CLIENT);
}

Test(conn_request_trace, rate_of_the_server)
{
    struct nj_policy p = base();

    p.total.ceiling = 1000000;
    expect_rate(&p, NJ_WHY_SERVER);
}

Test(conn_request_trace, congestion_window)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    c->p->manual = true;
    hr_get(c, "/whole");
    expect_waited(h, NJ_WHY_CWND);
}

Test(conn_request_trace, receiver)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    c->p->manual = true;
    c->p->rcv_wnd = 2000;
    hr_get(c, "/big");
    hr_settle(h);
    c->p->rcv_wnd = 0;
    rig_ack(h->r, c->p);
    expect_waited(h, NJ_WHY_RECEIVER);
}

Test(conn_request_trace, window_of_http2)
{
    const struct hr_options narrow = {.window = 1000, .no_auto = true};
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect_with(h, &narrow);

    begin(h);
    hr_get(c, "/big");
    expect_waited(h, NJ_WHY_H2_WINDOW);
}

Test(conn_request_trace, disk)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    h->r->files_slow = true;
    hr_get(c, "/big");
    expect_waited(h, NJ_WHY_DISK);
}

Test(conn_request_trace, worker)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    h->workers_slow = true;
    hr_get(c, "/work");
    expect_waited(h, NJ_WHY_WORKER);
}

Test(conn_request_trace, request_of_the_client)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    hr_ask(c, "POST", "/read", 1000, 10, NULL, NULL);
    expect_waited(h, NJ_WHY_REQUEST);
}

/* --- requests --- */

Test(conn_request_trace, a_request_that_ends)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    hr_get(c, "/wait?secret=1");
    hr_run(h, 200 * NJ_MS);
    struct nj_traced_request r = next();
    const struct nj_addr peer = rig_addr(RIG_PEER_IP);
    cr_assert(r.is_complete && !r.is_running && r.status == 204 && r.is_h2 && !r.is_tls);
    cr_expect(nj_addr_eq(&r.client, &peer) && r.shard == 7 && r.n_bytes == 0);
    cr_expect(r.n_method == 3 && memcmp(r.method, "GET", 3) == 0);
    cr_expect_str_eq(r.class_of, "default");
    expect_path(&r, "/wait");
    cr_expect(r.first_byte_at >= r.arrived_at + 100 * NJ_MS && r.ended_at >= r.first_byte_at);
    cr_expect_geq(r.waited[NJ_WHY_HANDLER], 95 * NJ_MS);
    expect_none();
    end(h);
}

/* One that takes less than a period has times, and no reasons. */
Test(conn_request_trace, a_short_request)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    hr_get(c, "/index.html");
    hr_settle(h);
    struct nj_traced_request r = next();
    cr_assert(r.is_complete && r.status == 200 && r.n_bytes > 0 && r.first_byte_at > 0);
    expect_path(&r, "/index.html");
    hr_get(c, "/nothing-there");
    hr_settle(h);
    r = next();
    cr_expect_eq(r.status, 404);
    expect_path(&r, "/nothing-there");
    end(h);
}

Test(conn_request_trace, of_http1)
{
    struct hr *h = start(NULL);
    struct rig_peer *p = rig_connect(h->r, 999);

    begin(h);
    http1_get(h->r, p, "/wait?x");
    hr_settle(h);
    hr_run(h, 200 * NJ_MS);
    struct nj_traced_request r = next();
    cr_assert(r.is_complete && !r.is_h2);
    expect_path(&r, "/wait");
    end(h);
}

/* What runs when the trace begins is in it, with its arrival. */
Test(conn_request_trace, running_at_the_beginning)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    for (uint32_t i = 0; i < 100; i++)
        hr_get(c, "/wait");
    hr_run(h, 50 * NJ_MS);
    begin(h);
    hr_run(h, 20 * NJ_SEC);
    for (uint32_t i = 0; i < 100; i++) {
        struct nj_traced_request r = next();
        cr_assert(r.is_complete && r.status == 204);
        expect_path(&r, "/wait");
        cr_expect_geq(r.ended_at - r.arrived_at, 100 * NJ_MS);
    }
    expect_none();
    end(h);
}

Test(conn_request_trace, filter)
{
    const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};
    const struct nj_net foe = {rig_addr(FOE), 128};
    struct hr *h = start(NULL);

    begin_of(h, &foe, 1 << 20);
    hr_get(hr_connect(h), "/index.html");
    hr_get(hr_connect_from(h, FOE, &wide), "/whole");
    hr_run(h, 100 * NJ_MS);
    struct nj_traced_request r = next();
    cr_expect_eq(r.status, 200);
    cr_expect(nj_addr_eq(&r.client, &foe.addr));
    expect_none();
    end(h);
}

Test(conn_request_trace, a_full_ring_counts)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin_of(h, &(struct nj_net){.bits = 0}, 1024);
    const uint32_t n_fit = 1024 / (sizeof(struct nj_traced_request) + 8);
    for (uint32_t i = 0; i < 5; i++)
        hr_get(c, "/index.html");
    hr_settle(h);
    for (uint32_t i = 0; i < n_fit; i++)
        cr_expect_eq(next().status, 200);
    expect_none();
    cr_expect_eq(ring.n_lost, 5 - n_fit);
    end(h);
}

/* The trace ends while requests begin and end: each is in it once. */
Test(conn_request_trace, ends_in_parts)
{
    struct hr *h = start(NULL);
    struct hr_client *c[4];
    uint32_t n = 0, n_seen = 0;

    h->r->http.idle_timeout = 0;
    begin(h);
    for (uint32_t i = 0; i < 4; i++) {
        c[i] = hr_connect(h);
        for (uint32_t k = 0; k < 60; k++, n++)
            hr_get(c[i], "/wait");
        hr_settle(h);
    }
    struct nj_trace_command e = {.trace = trace, .ends = &begun};
    nj_trace_begin(&e);
    cr_assert(nj_command_ring_put(&h->r->s->conns.commands, &e.command));
    rig_step(h->r);
    cr_expect_not(nj_command_is_done(&e.command));
    rig_fin(h->r, c[2]->p);
    rig_seg(h->r, c[0]->p, c[0]->p->snd_nxt, NJ_TCP_RST, NULL, 0);
    for (uint32_t i = 0; i < 10 && !nj_command_is_done(&e.command); i++)
        rig_step(h->r);
    cr_assert(nj_command_is_done(&e.command));
    while (next().status != UINT16_MAX)
        n_seen++;
    cr_expect_eq(n_seen, n);
    hr_run(h, NJ_SEC); /* without a trace */
    nj_trace_free(trace);
    nj_record_ring_close(&ring);
    hr_free(h);
}

/* The ring runs a part of each command in a step. */
Test(conn_request_trace, its_end_waits_for_its_begin)
{
    struct hr *h = start(NULL);
    uint32_t n = 0, n_seen = 0;

    h->r->http.idle_timeout = 0;
    for (uint32_t i = 0; i < 4; i++) {
        struct hr_client *c = hr_connect(h);
        for (uint32_t k = 0; k < 60; k++, n++)
            hr_get(c, "/wait");
        hr_settle(h);
    }
    cr_assert(nj_record_ring_open(&ring, 1 << 20));
    trace = nj_trace_new(&ring, &(struct nj_net){.bits = 0});
    cr_assert(trace);
    struct nj_trace_command b = {.trace = trace}, e = {.trace = trace, .ends = &b};
    nj_trace_begin(&b);
    nj_trace_begin(&e);
    cr_assert(nj_command_ring_put(&h->r->s->conns.commands, &b.command));
    cr_assert(nj_command_ring_put(&h->r->s->conns.commands, &e.command));
    for (uint32_t i = 0; i < 20 && !nj_command_is_done(&e.command); i++)
        rig_step(h->r);
    cr_assert(nj_command_is_done(&b.command) && nj_command_is_done(&e.command));
    while (next().status != UINT16_MAX)
        n_seen++;
    cr_expect_eq(n_seen, n);
    nj_trace_free(trace);
    nj_record_ring_close(&ring);
    hr_run(h, NJ_SEC);
    hr_free(h);
}

Test(conn_request_trace, sleeps_between_looks)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    begin(h);
    hr_get(c, "/wait");
    hr_settle(h);
    nj_ns next_at = nj_shard_next_at(h->r->s);
    cr_expect(next_at > 0 && next_at <= h->r->now + NJ_TRACE_PERIOD, "an idle lcore wakes for it");
    end(h);
}
