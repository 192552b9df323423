/* SPDX-License-Identifier: BSD-3-Clause */
/* Running transfers: what a snapshot says of them, why each is not faster, and their end. */
#include <criterion/criterion.h>

#include "conn/transfers.h"
#include "conn_http1_rig.h"
#include "support/handlers_rig.h"

#define FOE  0xc6120005u /* 198.18.0.5 */
#define MOST 512u

static struct nj_transfers_command asked;
static struct nj_transfer found[MOST];

static void handle_wait(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(1000 * NJ_SEC);
}

static void handle_read(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char buf[1000];

    while (nj_request_read(req, buf, sizeof buf) > 0)
        ;
}

static const struct nj_route routes[] = {
    {.path = "/wait", .type = NJ_BLOCKING, .handle = handle_wait},
    {.path = "/long/*", .type = NJ_BLOCKING, .handle = handle_wait},
    {.path = "/read", .type = NJ_BLOCKING, .handle = handle_read},
    {.path = "/work", .type = NJ_OS_BLOCKING, .handle = handle_read},
};

static struct hr *start(const struct nj_policy *p)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->config.conns.policy = p;
    h->config.conns.number = 7;
    return hr_start(h);
}

static struct nj_policy base(void)
{
    return (struct nj_policy){.version = 1,
                              .n_classes = 1,
                              .classes = {{.name = "default"}},
                              .client_bits4 = 32,
                              .client_bits6 = 64};
}

static void give(struct hr *h, struct nj_command *c)
{
    cr_assert(nj_command_ring_put(&h->r->s->conns.commands, c));
    cr_expect_eq(nj_shard_next_at(h->r->s), 0, "it does not sleep");
}

static void run(struct hr *h, struct nj_command *c)
{
    give(h, c);
    for (uint32_t i = 0; i < 100 && !nj_command_is_done(c); i++)
        rig_step(h->r);
    cr_assert(nj_command_is_done(c));
}

/* The transfers, in found[]. */
static uint32_t snapshot(struct hr *h)
{
    asked = (struct nj_transfers_command){.out = found, .n_max = MOST};
    nj_transfers_begin(&asked);
    run(h, &asked.command);
    return asked.n;
}

/* The only one. */
static const struct nj_transfer *only(struct hr *h)
{
    cr_assert_eq(snapshot(h), 1);
    return &found[0];
}

static void expect_why(struct hr *h, enum nj_why why)
{
    const struct nj_transfer *t = only(h);

    cr_expect_eq(t->why, why, "%s instead of %s", nj_why_name((enum nj_why)t->why),
                 nj_why_name(why));
}

static void expect_path(const struct nj_transfer *t, const char *path)
{
    cr_expect(t->n_path == strlen(path) && memcmp(t->path, path, t->n_path) == 0, "%.*s", t->n_path,
              t->path);
}

/* --- reasons --- */

/* The response waits for credit whenever it is looked at. */
static void expect_rate(const struct nj_policy *p, enum nj_why why)
{
    struct hr *h = start(p);
    struct hr_client *c = hr_connect(h);

    hr_get(c, "/big");
    for (uint32_t i = 0; i < 40; i++) {
        hr_run(h, 3 * NJ_MS);
        expect_why(h, why);
    }
    expect_path(&found[0], "/big");
    cr_expect_gt(found[0].n_done, 0);
    cr_expect_eq(found[0].n_done + found[0].n_left, RIG_BIG);
    cr_expect_gt(found[0].throttled, 0);
    hr_free(h);
}

Test(conn_transfers, rate_of_a_class)
{
    struct nj_policy p = base();

    p.classes[0].total.ceiling = 1000000;
    expect_rate(&p, NJ_WHY_CLASS);
}

Test(conn_transfers, rate_of_a_response)
{
    struct nj_policy p = base();

    p.classes[0].request.ceiling = 1000000;
    expect_rate(&p, NJ_WHY_CLASS);
}

Test(conn_transfers, rate_of_a_client)
{
    struct nj_policy p = base();

    p.classes[0].client.ceiling = 1000000;
    p.classes[0].total.ceiling = 3000000;
    p.total.ceiling = 9000000;
    expect_rate(&p, NJ_WHY_CLIENT);
}

Test(conn_transfers, rate_of_the_server)
{
    struct nj_policy p = base();

    p.total.ceiling = 1000000;
    p.classes[0].client.ceiling = 9000000;
    expect_rate(&p, NJ_WHY_SERVER);
}

/* Ten clients compete for the class; none of them reaches its own limit. */
Test(conn_transfers, rate_of_a_class_with_several_clients)
{
    struct nj_policy p = base();
    uint32_t n = 0, n_class = 0;

    p.classes[0].client.ceiling = 1000000;
    p.classes[0].total.ceiling = 2000000;
    struct hr *h = start(&p);
    const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};
    for (uint32_t i = 0; i < 10; i++)
        hr_get(hr_connect_from(h, RIG_PEER_IP + 10 + i, &wide), "/big");
    hr_run(h, 100 * NJ_MS);
    for (uint32_t i = 0; i < 100; i++) {
        hr_run(h, 3 * NJ_MS);
        cr_assert_eq(snapshot(h), 10);
        for (uint32_t k = 0; k < 10; k++, n++)
            n_class += found[k].why == NJ_WHY_CLASS;
    }
    cr_expect_gt(n_class, n * 9 / 10, "%u of %u", n_class, n);
    hr_free(h);
}

Test(conn_transfers, congestion_window)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    c->p->manual = true; /* it acknowledges nothing any more */
    hr_get(c, "/whole");
    hr_settle(h);
    expect_why(h, NJ_WHY_CWND);
    hr_free(h);
}

Test(conn_transfers, receiver)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    c->p->manual = true;
    c->p->rcv_wnd = 2000;
    hr_get(c, "/big");
    hr_settle(h);
    expect_why(h, NJ_WHY_RECEIVER);
    c->p->rcv_wnd = 0;
    rig_ack(h->r, c->p);
    hr_settle(h);
    expect_why(h, NJ_WHY_RECEIVER);
    hr_free(h);
}

Test(conn_transfers, window_of_http2)
{
    const struct hr_options narrow = {.window = 1000, .no_auto = true};
    const struct hr_options small_session = {.window = 1u << 30, .no_auto = true};
    struct hr *h = start(NULL);

    hr_get(hr_connect_with(h, &narrow), "/big");
    hr_settle(h);
    expect_why(h, NJ_WHY_H2_WINDOW);
    cr_expect_eq(found[0].n_done, 1000);
    hr_get(hr_connect_with(h, &small_session), "/big"); /* 65535, of the connection */
    hr_settle(h);
    cr_assert_eq(snapshot(h), 2);
    cr_expect(found[1].why == NJ_WHY_H2_WINDOW && found[1].n_done == 65535);
    hr_free(h);
}

/* A file is opened; then a part of it is read. */
Test(conn_transfers, disk)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    h->r->files_slow = true;
    hr_get(c, "/big");
    hr_settle(h);
    expect_why(h, NJ_WHY_DISK);
    expect_path(&found[0], "/big");
    cr_expect(found[0].status == 0 && found[0].n_left == NJ_BODY_LEN_UNKNOWN);
    h->r->files_slow = false;
    hr_step(h); /* it is open, and the step asks for its first bytes */
    h->r->files_slow = true;
    hr_settle(h);
    cr_assert(h->r->n_jobs == 1 && h->r->job[0]->op == NJ_FILE_READ);
    expect_why(h, NJ_WHY_DISK);
    expect_path(&found[0], "/big");
    cr_expect(found[0].status == 200 && found[0].n_left == RIG_BIG);
    hr_free(h);
}

Test(conn_transfers, worker)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    h->workers_slow = true;
    hr_get(c, "/work?x=1");
    hr_settle(h);
    expect_why(h, NJ_WHY_WORKER);
    expect_path(&found[0], "/work"); /* without the query */
    hr_free(h);
}

Test(conn_transfers, handler_and_request)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);
    int32_t wait = hr_get(c, "/wait");

    hr_settle(h);
    expect_why(h, NJ_WHY_HANDLER);
    hr_reset(c, wait);
    hr_settle(h);
    hr_ask(c, "POST", "/read", 1000, 10, NULL, NULL);
    hr_settle(h);
    expect_why(h, NJ_WHY_REQUEST);
    cr_expect_eq(found[0].method, NJ_METHOD_OTHER);
    hr_free(h);
}

Test(conn_transfers, reasons_have_names)
{
    for (uint32_t i = 0; i < NJ_N_WHYS; i++) {
        cr_expect(nj_why_name(i)[0] && nj_why_meaning(i)[0]);
        for (uint32_t k = 0; k < i; k++)
            cr_expect_str_neq(nj_why_name(i), nj_why_name(k));
    }
}

/* --- what else is said --- */

Test(conn_transfers, of_both_protocols)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);
    struct rig_peer *p = rig_connect(h->r, 999);

    hr_get(c, "/wait");
    hr_settle(h);
    http1_get(h->r, p, "/wait?some=thing");
    hr_settle(h);
    hr_run(h, 3 * NJ_SEC);
    cr_assert_eq(snapshot(h), 2);
    const struct nj_addr peer = rig_addr(RIG_PEER_IP);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect(nj_addr_eq(&found[i].client, &peer) && nj_addr_eq(&found[i].remote, &peer));
        cr_expect(found[i].method == NJ_METHOD_GET && !found[i].is_tls);
        cr_expect_str_eq(found[i].class_of, "default");
        cr_expect_geq(found[i].age, 3 * NJ_SEC);
        cr_expect(found[i].id.shard == 7 && found[i].id.place == i);
    }
    cr_expect(found[0].is_h2 && found[0].rport == 2000);
    cr_expect(!found[1].is_h2 && found[1].rport == 999);
    expect_path(&found[0], "/wait");
    expect_path(&found[1], "/wait");
    hr_free(h);
}

Test(conn_transfers, a_long_path_is_cut)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);
    char path[400] = "/long/";

    memset(path + 6, 'x', sizeof path - 7);
    hr_get(c, path);
    hr_settle(h);
    const struct nj_transfer *t = only(h);
    cr_expect(t->is_path_cut && t->n_path == NJ_TRANSFER_PATH_BYTES);
    cr_expect_arr_eq(t->path, path, NJ_TRANSFER_PATH_BYTES);
    hr_free(h);
}

/* A path that was kept for a request is not that of a later one in the same place. */
Test(conn_transfers, a_short_response_has_no_path)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    hr_get(c, "/index.html");
    hr_settle(h);
    hr_get(c, "/whole");
    hr_settle(h);
    c->p->manual = true;
    c->p->rcv_wnd = 1;
    rig_ack(h->r, c->p);
    hr_get(c, "/index.html");
    hr_settle(h);
    for (uint32_t n = snapshot(h), i = 0; i < n; i++)
        cr_expect_eq(found[i].n_path, 0);
    hr_free(h);
}

Test(conn_transfers, filters)
{
    const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};
    struct nj_policy p = base();
    struct nj_net foes = {rig_addr(FOE & 0xffffff00u), 96 + 24}, foe = {rig_addr(FOE), 128};

    p.n_classes = 2;
    p.classes[1] = (struct nj_class){.name = "other", .slot = 1};
    p.rules[p.n_rules++] = (struct nj_class_rule){.class_index = 1, .path_prefix = NJ_STR("/read")};
    struct hr *h = start(&p);
    hr_get(hr_connect(h), "/wait");
    struct hr_client *c = hr_connect_from(h, FOE, &wide);
    hr_get(c, "/wait");
    hr_ask(c, "POST", "/read", 1000, 10, NULL, NULL);
    hr_settle(h);
    cr_expect_eq(snapshot(h), 3);
    asked.of = foe;
    nj_transfers_begin(&asked);
    run(h, &asked.command);
    cr_expect(asked.n == 2 && asked.n_found == 2);
    asked.of = foes; /* all of them */
    asked.n_max = 1;
    nj_transfers_begin(&asked);
    run(h, &asked.command);
    cr_expect(asked.n == 1 && asked.n_found == 3, "it says that there are more");
    asked.n_max = MOST;
    snprintf(asked.class_of, sizeof asked.class_of, "other");
    nj_transfers_begin(&asked);
    run(h, &asked.command);
    cr_expect(asked.n == 1 && found[0].method == NJ_METHOD_OTHER);
    cr_expect_str_eq(found[0].class_of, "other");
    hr_free(h);
}

/* --- parts --- */

/* Requests begin and end while a snapshot of several parts is taken. */
Test(conn_transfers, changes_between_the_parts)
{
    struct hr *h = start(NULL);
    struct hr_client *c[4];
    uint32_t n_open = 0;

    h->r->http.idle_timeout = 0;
    for (uint32_t i = 0; i < 4; i++) {
        c[i] = hr_connect(h);
        for (uint32_t k = 0; k < 60; k++, n_open++)
            hr_get(c[i], "/wait");
        hr_settle(h);
    }
    cr_assert_eq(h->r->s->conns.txns.pool.n_used, n_open);
    asked = (struct nj_transfers_command){.out = found, .n_max = MOST};
    nj_transfers_begin(&asked);
    give(h, &asked.command);
    rig_step(h->r);
    cr_expect(asked.n == NJ_TRANSFERS_SLICE && !nj_command_is_done(&asked.command));
    rig_fin(h->r, c[2]->p); /* a whole connection, which was not looked at */
    rig_seg(h->r, c[0]->p, c[0]->p->snd_nxt, NJ_TCP_RST, NULL, 0); /* and one that was */
    rig_step(h->r);
    cr_expect_not(nj_command_is_done(&asked.command));
    for (uint32_t i = 0; i < 10 && !nj_command_is_done(&asked.command); i++)
        rig_step(h->r);
    cr_assert(nj_command_is_done(&asked.command));
    cr_expect_leq(asked.n, n_open);
    for (uint32_t i = 0; i < asked.n; i++)
        for (uint32_t k = 0; k < i; k++)
            cr_assert_neq(found[i].id.txn, found[k].id.txn);
    hr_free(h);
}

/* --- the end --- */

static bool end(struct hr *h, const struct nj_transfer_id *id)
{
    struct nj_transfer_end_command c = {.id = *id};

    nj_transfer_end_begin(&c);
    run(h, &c.command);
    hr_settle(h);
    return c.was_running;
}

Test(conn_transfers, one_stream_ends)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);
    int32_t a = hr_get(c, "/wait"), b = hr_get(c, "/wait");

    hr_settle(h);
    cr_assert_eq(snapshot(h), 2);
    struct nj_transfer_id first = found[0].id, no_place = first, other_shard = first;
    no_place.place = 100000;
    other_shard.shard = 3;
    cr_expect_not(end(h, &no_place) || end(h, &other_shard));
    cr_expect(end(h, &first));
    cr_expect_eq(hr_reply_of(c, a)->error, NGHTTP2_CANCEL);
    cr_expect_not(hr_reply_of(c, b)->closed);
    cr_expect_not(end(h, &first), "it has ended");
    hr_get(c, "/wait"); /* in the same place */
    hr_settle(h);
    cr_expect_eq(snapshot(h), 2);
    cr_expect_not(end(h, &first), "another request has its place");
    cr_expect_eq(snapshot(h), 2);
    hr_free(h);
}

Test(conn_transfers, a_connection_of_http1_ends)
{
    struct hr *h = start(NULL);
    struct rig_peer *p = rig_connect(h->r, 999), *other = rig_connect(h->r, 998);

    p->manual = true; /* it reads no more */
    http1_get(h->r, p, "/big");
    hr_settle(h);
    struct nj_transfer_id id = only(h)->id;
    cr_expect_not(found[0].is_h2);
    cr_expect(end(h, &id));
    cr_expect(p->got_rst && !other->got_rst);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 0);
    hr_free(h);
}

/* The RST_STREAM waits for room, since the client does not read, and has another request. */
Test(conn_transfers, one_that_was_reset_already)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    hr_get(c, "/wait");
    hr_settle(h);
    c->p->manual = true;
    c->p->rcv_wnd = 2000;
    hr_get(c, "/big");
    hr_settle(h);
    cr_assert_eq(snapshot(h), 2);
    struct nj_transfer_id id = found[found[0].n_done == 0].id;
    struct nj_transfer_end_command e = {.id = id};
    for (uint32_t i = 0; i < 2; i++) {
        nj_transfer_end_begin(&e);
        run(h, &e.command);
        cr_expect_eq(e.was_running, i == 0);
    }
    cr_expect(snapshot(h) == 1 && h->r->s->conns.txns.pool.n_used == 2);
    hr_free(h);
}

/* Its RST_STREAM would never leave. */
Test(conn_transfers, a_client_that_reads_nothing)
{
    struct hr *h = start(NULL);
    struct hr_client *c = hr_connect(h);

    c->p->manual = true;
    c->p->rcv_wnd = 2000;
    hr_get(c, "/big");
    hr_settle(h);
    struct nj_transfer_id id = only(h)->id;
    cr_expect(end(h, &id));
    cr_expect(c->p->got_rst);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 0);
    hr_free(h);
}

Test(conn_transfers, those_of_a_network_end)
{
    const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};
    struct nj_network_end_command e = {.of = {rig_addr(FOE), 128}};
    struct hr *h = start(NULL);
    struct hr_client *friend = hr_connect(h), *foe = hr_connect_from(h, FOE, &wide);
    struct rig_peer *old_foe = rig_syn_from(h->r, FOE, 999);
    int32_t good = hr_get(friend, "/wait");

    rig_settle(h->r);
    for (uint32_t i = 0; i < 100; i++)
        hr_get(foe, "/wait");
    http1_get(h->r, old_foe, "/wait");
    hr_settle(h);
    cr_assert_eq(snapshot(h), 102);
    nj_network_end_begin(&e);
    run(h, &e.command);
    hr_settle(h);
    cr_expect_eq(e.n_ended, 101);
    cr_expect(old_foe->got_rst && !hr_reply_of(friend, good)->closed);
    cr_expect_eq(hr_reply_of(foe, 1)->error, NGHTTP2_CANCEL);
    cr_expect_eq(snapshot(h), 1);
    hr_free(h);
}

/* --- ids --- */

Test(conn_transfers, text_of_an_id)
{
    const struct nj_transfer_id id = {63, 131071, nj_txn_id_of(UINT32_MAX, 0x7fffffff)};
    static const char *const bad[] = {"",
                                      "1",
                                      "1-2-3",
                                      "1-2-3-4-",
                                      "1-2-3-4-5",
                                      "-1-2-3-4",
                                      "1--3-4",
                                      "1-2-3-4 ",
                                      " 1-2-3-4",
                                      "1-2-3-x",
                                      "1-2-+3-4",
                                      "1-2-3-",
                                      "0x1-2-3-4",
                                      "1-2-3-4294967296",
                                      "1-2-3-99999999999999999999999999999999999999999999"};
    char text[NJ_TRANSFER_ID_TEXT_BYTES];
    struct nj_transfer_id out;

    nj_transfer_id_format(&id, text);
    cr_expect_str_eq(text, "63-131071-4294967295-2147483647");
    cr_assert(nj_transfer_id_parse(text, strlen(text), &out));
    cr_expect(out.shard == id.shard && out.place == id.place && out.txn == id.txn);
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect_not(nj_transfer_id_parse(bad[i], strlen(bad[i]), &out), "%s", bad[i]);
}
