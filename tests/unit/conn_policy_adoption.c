/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies applied to peers and to requests, and changes of policy. */
#include <criterion/criterion.h>

#include "support/handlers_rig.h"
#include "telem/counters.h"

#define FRIEND RIG_PEER_IP
#define FOE    0xc6120005u /* 198.18.0.5 */

/* List 0 holds the foe's address. */
static uint32_t lists(const void *ctx, const struct nj_addr *addr)
{
    return nj_addr_to_v4(addr) == htonl(FOE) ? 1 : 0;
}

static struct nj_policy base(uint64_t version)
{
    return (struct nj_policy){
        .version = version,
        .n_classes = 1,
        .classes = {{.name = "default"}},
        .client_bits4 = 32,
        .client_bits6 = 64,
        .lists = lists,
    };
}

static struct nj_policy deny(uint64_t version, enum nj_action action)
{
    struct nj_policy p = base(version);
    p.deny = 1;
    p.deny_action = action;
    return p;
}

/* Adds a class for a path prefix. */
static struct nj_class *add_class(struct nj_policy *p, const char *name, const char *prefix)
{
    struct nj_class *c = &p->classes[p->n_classes];

    snprintf(c->name, sizeof c->name, "%s", name);
    c->slot = (uint8_t)p->n_classes;
    p->rules[p->n_rules++] = (struct nj_class_rule){
        .class_index = (uint8_t)p->n_classes++,
        .path_prefix = {prefix, (uint32_t)strlen(prefix)},
    };
    return c;
}

static struct rig *start(const struct nj_policy *p)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(r);
    c.conns.policy = p;
    return rig_new_with(r, &c);
}

static struct rig_peer *connect_from(struct rig *r, uint32_t ip, uint16_t port)
{
    struct rig_peer *p = rig_syn_from(r, ip, port);
    rig_settle(r);
    return p;
}

/* --- connections --- */

Test(conn_policy_adoption, silence_at_the_door)
{
    struct nj_policy p = deny(1, NJ_ACTION_DROP);
    struct rig *r = start(&p);
    struct rig_peer *foe = connect_from(r, FOE, 1000), *friend = connect_from(r, FRIEND, 1001);

    cr_expect(!foe->got_synack && !foe->got_rst);
    cr_expect(friend->got_synack);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_denied), 1);
    cr_expect_eq(r->s->tcp.syns.n_touched, 1, "nothing was spent on it");
    rig_free(r);
}

static uint64_t n_recorded(const struct rig *r, nj_counter reason, uint32_t ip)
{
    struct nj_abuse_view v = {0};
    struct nj_addr addr = rig_addr(ip);

    nj_abuse_get_count_and_client(&r->s->conns.abuse, reason, &v);
    return v.n > 0 && nj_addr_eq(&v.client, &addr) ? v.n : 0;
}

/* SYNs, and connections that a later policy denies. */
Test(conn_policy_adoption, the_denied_client_is_recorded)
{
    struct nj_policy before = base(1), after = deny(2, NJ_ACTION_DROP);
    struct rig *r = start(&before);

    connect_from(r, FOE, 1000);
    nj_conns_set_policy(&r->s->conns, &after);
    rig_settle(r);
    cr_expect_eq(n_recorded(r, NJ_C_conn_denied, FOE), 1);
    cr_expect_eq(n_recorded(r, NJ_C_drop_tcp_denied, FOE), 0);
    for (uint16_t i = 1; i <= 3; i++) {
        connect_from(r, FOE, 1000 + i);
        cr_expect_eq(n_recorded(r, NJ_C_drop_tcp_denied, FOE), i);
    }
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_denied), 3);
    rig_free(r);
}

Test(conn_policy_adoption, a_reset_at_the_door)
{
    struct nj_policy p = deny(1, NJ_ACTION_RESET);
    struct rig *r = start(&p);
    struct rig_peer *foe = connect_from(r, FOE, 1000);

    cr_expect(!foe->got_synack && foe->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_denied), 1);
    rig_free(r);
}

/* A leading class with a list as its only condition filters connections too; a class with a path
 * does not. */
Test(conn_policy_adoption, a_class_at_the_door)
{
    struct nj_policy p = base(1), after = base(2);
    add_class(&p, "foes", "")->action = NJ_ACTION_DROP;
    p.rules[0].lists = 1;
    add_class(&after, "files", "/files")->action = NJ_ACTION_DROP;
    add_class(&after, "foes", "")->action = NJ_ACTION_RESET;
    after.rules[1].lists = 1;
    struct rig *r = start(&p);

    cr_expect(!connect_from(r, FOE, 1000)->got_synack);
    cr_expect(connect_from(r, FRIEND, 1001)->got_synack);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_denied), 1);
    nj_conns_set_policy(&r->s->conns, &after);
    rig_settle(r);
    cr_expect(connect_from(r, FOE, 1002)->got_synack);
    nj_conns_set_policy(&r->s->conns, &p);
    p.version = 3;
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_conn_denied), 1);
    rig_free(r);
}

/* conns_max per address; closing one connection allows another. */
Test(conn_policy_adoption, connections_of_a_client)
{
    struct nj_policy p = base(1);
    p.classes[0].caps.conns_max = 2;
    struct rig *r = start(&p);
    struct rig_peer *a = connect_from(r, FRIEND, 1000), *b = connect_from(r, FRIEND, 1001);
    struct rig_peer *c = connect_from(r, FRIEND, 1002), *other = connect_from(r, FOE, 1000);

    cr_expect(!a->got_rst && !b->got_rst && c->got_rst && !other->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_client_full), 1);
    cr_expect_eq(r->s->conns.pool.n_used, 3);
    rig_fin(r, a);
    rig_settle(r);
    cr_expect(!connect_from(r, FRIEND, 1003)->got_rst);
    cr_expect(connect_from(r, FRIEND, 1004)->got_rst);
    rig_free(r);
}

/* A new policy is adopted in the next step, and ends connections that it denies. */
Test(conn_policy_adoption, change_ends_what_is_denied)
{
    struct nj_policy before = base(1), after = deny(2, NJ_ACTION_DROP), open = base(3);
    struct rig *r = start(&before);
    struct rig_peer *foe = connect_from(r, FOE, 1000), *friend = connect_from(r, FRIEND, 1001);
    struct rig_peer *foes[100];
    uint8_t buf[128];

    memcpy(buf, RIG_PREFACE,
           RIG_PREFACE_BYTES); /* with the initial windows of RFC 9113, so the download stalls */
    rig_send(r, foe, buf, RIG_PREFACE_BYTES + rig_h2(buf + RIG_PREFACE_BYTES, 4, 0, 0, NULL, 0));
    rig_get(r, foe, 1, "/big");
    for (uint16_t i = 0; i < 100; i++)
        foes[i] = connect_from(r, FOE, 1002 + i);
    rig_settle(r);
    cr_assert_eq(rig_h2_frames(foe, 1, NULL), 1);
    nj_conns_set_policy(&r->s->conns, &after);
    cr_expect_eq(nj_conns_policy_version(&r->s->conns), 1);
    cr_expect_eq(nj_shard_next_at(r->s), 0);
    rig_step(r);
    cr_expect_eq(nj_conns_policy_version(&r->s->conns), 2);
    rig_settle(r);
    cr_expect(foe->got_rst && !friend->got_rst);
    for (unsigned i = 0; i < 100; i++)
        cr_expect(foes[i]->got_rst, "%u", i);
    cr_expect_eq(rig_count(r, NJ_C_conn_denied), 101);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    cr_expect_not(connect_from(r, FOE, 3000)->got_synack);
    nj_conns_set_policy(&r->s->conns, &open);
    rig_settle(r);
    cr_expect(connect_from(r, FOE, 3001)->got_synack);
    cr_expect_gt(nj_shard_next_at(r->s), r->now, "nothing more to do");
    rig_free(r);
}

/* While responses have not been moved to the new policy, the former one may not be freed. */
Test(conn_policy_adoption, change_is_told_when_all_have_followed)
{
    struct nj_policy before = base(1), after = base(2), later = base(3);
    struct rig *r = start(&before);
    uint32_t n_open = 0, n_steps = 0;

    for (uint16_t i = 0; n_open <= 3 * NJ_SHAPE_MIGRATE_MAX; i++) {
        struct rig_peer *p = connect_from(r, FRIEND, 1000 + i);
        uint8_t buf[128];

        memcpy(buf, RIG_PREFACE, RIG_PREFACE_BYTES);
        rig_send(r, p, buf, RIG_PREFACE_BYTES + rig_h2(buf + RIG_PREFACE_BYTES, 4, 0, 0, NULL, 0));
        for (uint32_t k = 0; k < 100; k++, n_open++)
            rig_get(r, p, 1 + 2 * k, "/big");
        rig_settle(r);
    }
    nj_shard_publish(r->s);
    cr_assert_eq(nj_counter_read(&r->s->counters, NJ_C_shape_responses), n_open);
    nj_conns_set_policy(&r->s->conns, &after);
    rig_step(r);
    cr_expect_eq(nj_conns_policy_version(&r->s->conns), 1, "some are behind");
    cr_expect_leq(nj_shard_next_at(r->s), r->now);
    nj_conns_set_policy(&r->s->conns, &later);
    while (nj_conns_policy_version(&r->s->conns) == 1 && n_steps++ < 100)
        rig_step(r);
    cr_expect_eq(nj_conns_policy_version(&r->s->conns), 3);
    cr_expect_eq(n_steps, (n_open + NJ_SHAPE_MIGRATE_MAX - 1) / NJ_SHAPE_MIGRATE_MAX);
    rig_free(r);
}

/* A handshake begins under one policy and ends under another. */
Test(conn_policy_adoption, change_within_a_handshake)
{
    struct nj_policy before = base(1), after = deny(2, NJ_ACTION_DROP);
    struct rig *r = start(&before);
    struct rig_peer *foe = rig_syn_from(r, FOE, 1000);

    foe->manual = true;
    rig_settle(r);
    cr_assert(foe->got_synack);
    nj_conns_set_policy(&r->s->conns, &after);
    rig_settle(r);
    rig_ack(r, foe);
    rig_settle(r);
    cr_expect(foe->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_denied), 1);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    rig_free(r);
}

/* --- requests --- */

static void wait_long(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(100 * NJ_SEC);
}

static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_response_write(resp, "hello", 5);
}

static const struct nj_route routes[] = {
    {.path = "/wait", .type = NJ_BLOCKING, .handle = wait_long},
    {.path = "/shut/hello", .handle = hello},
    {.path = "/shut/wait", .type = NJ_BLOCKING, .handle = wait_long},
};

static struct hr *start_hr(const struct nj_policy *p)
{
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->config.conns.policy = p;
    return hr_start(h);
}

/* For files and routes alike. */
Test(conn_policy_adoption, actions)
{
    struct nj_policy p = base(1);
    struct nj_class *later = add_class(&p, "later", "/dirlater");
    add_class(&p, "shut", "/shut")->action = NJ_ACTION_FORBID;
    add_class(&p, "reset", "/reset")->action = NJ_ACTION_RESET;
    add_class(&p, "drop", "/drop")->action = NJ_ACTION_DROP;
    later->action = NJ_ACTION_TOO_MANY;
    later->retry_after_s = 77;
    struct hr *h = start_hr(&p);
    struct hr_client *c = hr_connect(h);
    int32_t shut = hr_get(c, "/shut/x"), route = hr_get(c, "/shut/hello");
    int32_t reset = hr_get(c, "/reset"), drop = hr_get(c, "/drop");
    int32_t busy = hr_get(c, "/dirlater"), fine = hr_get(c, "/index.html");

    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, shut)->status, 403);
    cr_expect(hr_reply_of(c, shut)->ended);
    cr_expect_str_eq(hr_reply_of(c, shut)->length, "0");
    cr_expect_eq(hr_reply_of(c, route)->status, 403);
    cr_expect_eq(hr_reply_of(c, reset)->error, NGHTTP2_REFUSED_STREAM);
    cr_expect_eq(hr_reply_of(c, drop)->error, NGHTTP2_REFUSED_STREAM);
    cr_expect_eq(hr_reply_of(c, busy)->status, 429);
    cr_expect_str_eq(hr_reply_of(c, busy)->retry_after, "77");
    cr_expect_eq(hr_reply_of(c, fine)->status, 200);
    cr_expect_eq(hr_reply_of(c, fine)->n_got, 100);
    cr_expect_eq(rig_count(h->r, NJ_C_request_refused), 5);
    const struct nj_shape *shape = h->r->s->conns.txns.shape;
    cr_expect_eq(nj_shape_class_stats(shape, 0)->n_refused, 0);
    cr_expect_eq(nj_shape_class_stats(shape, 2)->n_refused, 2);
    hr_free(h);
}

/* A client that may connect and is denied gets 403 for each request. */
Test(conn_policy_adoption, forbidden_peers)
{
    struct nj_policy p = deny(1, NJ_ACTION_FORBID);
    p.deny = 0;
    p.allow_only = true; /* that list is empty */
    struct hr *h = start_hr(&p);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/index.html");

    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, id)->status, 403);
    hr_free(h);
}

Test(conn_policy_adoption, streams_of_a_client)
{
    struct nj_policy p = base(1);
    p.classes[0].caps.streams_max = 3;
    struct hr *h = start_hr(&p);
    struct hr_client *c = hr_connect(h), *d = hr_connect(h);
    int32_t id[4];

    for (int i = 0; i < 4; i++)
        id[i] = hr_get(i % 2 ? c : d, "/wait");
    hr_settle(h);
    unsigned n_refused = 0;
    for (int i = 0; i < 4; i++)
        n_refused += hr_reply_of(i % 2 ? c : d, id[i])->status == 429;
    cr_expect_eq(n_refused, 1, "however many connections it has");
    hr_reset(d, id[0]);
    hr_settle(h);
    int32_t next = hr_get(c, "/index.html");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, next)->status, 200, "one went");
    hr_free(h);
}

/* Above the burst: 429 with retry-after, and a retry at that time succeeds. */
Test(conn_policy_adoption, requests_per_second)
{
    struct nj_policy p = base(1);
    p.classes[0].caps.requests_per_s = 1;
    p.classes[0].caps.requests_burst = 5;
    struct hr *h = start_hr(&p);
    struct hr_client *c = hr_connect(h);
    int32_t id[8];

    for (int i = 0; i < 8; i++) {
        id[i] = hr_get(c, "/index.html");
        hr_settle(h);
    }
    for (int i = 0; i < 8; i++)
        cr_expect_eq(hr_reply_of(c, id[i])->status, i < 5 ? 200 : 429, "%d", i);
    cr_expect_str_eq(hr_reply_of(c, id[7])->retry_after, "1");
    hr_run(h, 990 * NJ_MS);
    int32_t early = hr_get(c, "/index.html");
    hr_settle(h);
    hr_run(h, 20 * NJ_MS);
    int32_t right = hr_get(c, "/index.html");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, early)->status, 429);
    cr_expect_eq(hr_reply_of(c, right)->status, 200);
    hr_free(h);
}

/* A new cap counts requests that are open already; they are not ended. */
Test(conn_policy_adoption, change_of_caps)
{
    struct nj_policy before = base(1), after = base(2);
    after.classes[0].caps.streams_max = 1;
    struct hr *h = start_hr(&before);
    struct hr_client *c = hr_connect(h);
    int32_t a = hr_get(c, "/wait"), b = hr_get(c, "/wait");

    hr_settle(h);
    nj_conns_set_policy(&h->r->s->conns, &after);
    hr_settle(h);
    int32_t more = hr_get(c, "/index.html");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, more)->status, 429);
    cr_expect(!hr_reply_of(c, a)->closed && !hr_reply_of(c, b)->closed);
    nj_conns_set_policy(&h->r->s->conns, NULL);
    more = hr_get(c, "/index.html");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, more)->status, 200);
    hr_free(h);
}

/* A new policy ends the requests that it forbids: of a class, or of an address. */
Test(conn_policy_adoption, forbidden_requests_end)
{
    struct nj_policy before = base(1), after = base(2), later = base(3);
    add_class(&before, "shut", "/shut");
    add_class(&after, "shut", "/shut")->action = NJ_ACTION_FORBID;
    later.allow_only = true; /* that list is empty */
    later.deny_action = NJ_ACTION_FORBID;
    struct hr *h = start_hr(&before);
    struct hr_client *c = hr_connect(h);
    int32_t open = hr_get(c, "/wait"), shut = hr_get(c, "/shut/wait"), other = hr_get(c, "/wait");

    hr_settle(h);
    nj_conns_set_policy(&h->r->s->conns, &after);
    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, shut)->error, NGHTTP2_CANCEL);
    cr_expect(!hr_reply_of(c, open)->closed && !hr_reply_of(c, other)->closed);
    cr_expect_eq(rig_count(h->r, NJ_C_request_refused), 1);
    nj_conns_set_policy(&h->r->s->conns, &later);
    hr_settle(h);
    cr_expect_eq(rig_count(h->r, NJ_C_request_refused), 3);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 0);
    hr_free(h);
}

/* --- blocks --- */

static void block(struct nj_policy *p, struct nj_blocked_nets *b, uint32_t ip, unsigned bits)
{
    const struct nj_addr addr = rig_addr(ip);
    const struct nj_net net = {nj_addr_network(&addr, bits), (uint8_t)bits};

    nj_blocked_nets_add(b, &net);
    p->blocked = b;
}

/* A block ends the transfers of a network, refuses its connections, and ends. */
Test(conn_policy_adoption, a_blocked_network)
{
    static const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};
    struct nj_policy before = base(1), blocks = base(2), after = base(3);
    struct nj_blocked_nets blocked = {0};
    block(&blocks, &blocked, 0xc0000201u, 128); /* 192.0.2.1 */
    block(&blocks, &blocked, FOE, 128);
    struct hr *h = start_hr(&before);
    struct hr_client *friend = hr_connect(h), *foe = hr_connect_from(h, FOE, &wide);
    int32_t good = hr_get(friend, "/wait");
    hr_get(foe, "/wait");
    foe->p->manual = true;
    foe->p->rcv_wnd = 2000;
    hr_get(foe, "/big");
    hr_settle(h);

    nj_conns_set_policy(&h->r->s->conns, &blocks);
    hr_settle(h);
    cr_expect(foe->p->got_rst && !hr_reply_of(friend, good)->closed);
    cr_expect_eq(h->r->s->conns.txns.pool.n_used, 1);
    cr_expect_eq(rig_count(h->r, NJ_C_conn_denied), 1);
    cr_expect(connect_from(h->r, FOE, 3000)->got_rst);
    cr_expect(connect_from(h->r, FRIEND, 3000)->got_synack);
    blocks.deny_action = NJ_ACTION_DROP;
    struct rig_peer *again = connect_from(h->r, FOE, 3001);
    cr_expect(!again->got_rst && !again->got_synack);
    cr_expect_eq(rig_count(h->r, NJ_C_drop_tcp_denied), 2);
    nj_conns_set_policy(&h->r->s->conns, &after);
    hr_settle(h);
    cr_expect(connect_from(h->r, FOE, 3002)->got_synack);
    hr_free(h);
}

static uint32_t trusts_all(const void *ctx, const struct nj_addr *addr)
{
    return 1;
}

/* A client behind a trusted proxy: its requests end and get 403, those of others go on. */
Test(conn_policy_adoption, a_blocked_client_of_a_proxy)
{
    struct nj_policy before = base(1), blocks;
    struct nj_blocked_nets blocked = {0};
    before.lists = trusts_all;
    before.trusted = 1;
    before.client_by = NJ_CLIENT_BY_HEADER;
    before.client_field = NJ_STR("x-forwarded-for");
    blocks = before;
    blocks.version = 2;
    block(&blocks, &blocked, 0xc0000200u, 96 + 24); /* 192.0.2.0/24 */
    struct hr *h = start_hr(&before);
    struct hr_client *proxy = hr_connect(h);
    int32_t bad = hr_ask(proxy, "GET", "/wait", 0, 0, "x-forwarded-for", "192.0.2.7");
    int32_t good = hr_ask(proxy, "GET", "/wait", 0, 0, "x-forwarded-for", "198.51.100.7");
    hr_settle(h);

    nj_conns_set_policy(&h->r->s->conns, &blocks);
    hr_settle(h);
    cr_expect_eq(hr_reply_of(proxy, bad)->error, NGHTTP2_CANCEL);
    cr_expect_not(hr_reply_of(proxy, good)->closed);
    bad = hr_ask(proxy, "GET", "/index.html", 0, 0, "x-forwarded-for", "192.0.2.8");
    good = hr_ask(proxy, "GET", "/index.html", 0, 0, "x-forwarded-for", "198.51.100.8");
    hr_settle(h);
    cr_expect_eq(hr_reply_of(proxy, bad)->status, 403);
    cr_expect_eq(hr_reply_of(proxy, good)->status, 200);
    hr_free(h);
}

/* Timeouts and limits come with the policy. */
Test(conn_policy_adoption, options_of_http)
{
    struct nj_http_options http = nj_http_options_default;
    struct nj_policy before = base(1), after = base(2);
    http.idle_timeout = 100 * NJ_MS;
    after.http = &http;
    struct hr *h = start_hr(&before);
    struct hr_client *c = hr_connect(h);
    int32_t id = hr_get(c, "/index.html");

    hr_settle(h);
    cr_expect_eq(hr_reply_of(c, id)->status, 200);
    hr_run(h, 200 * NJ_MS);
    cr_expect_eq(rig_count(h->r, NJ_C_conn_timeout), 0);
    nj_conns_set_policy(&h->r->s->conns, &after);
    hr_run(h, 200 * NJ_MS);
    cr_expect_eq(rig_count(h->r, NJ_C_conn_timeout), 1, "it was idle for longer");
    hr_free(h);
}

/* --- stacks --- */

static uint32_t stacks_in_use(const struct hr *h)
{
    return nj_ewyk_gauges(h->r->s->conns.handlers.ewyk).n_fibers_in_use;
}

static void ask_as(struct hr_client *c, const char *who, int n)
{
    for (int i = 0; i < n; i++)
        hr_ask(c, "GET", "/wait", 0, 0, "x-client", who);
}

/* Beside other clients, one client may use most fibers, over any number of connections, but not the
 * last quarter. Its further requests are queued, and get 503 after NJ_FIBERS_WAIT_MAX. */
Test(conn_policy_adoption, stacks_of_a_client)
{
    struct nj_policy p = base(1);
    p.client_by = NJ_CLIENT_BY_HEADER;
    p.client_field = NJ_STR("x-client");
    struct hr *h = hr_new(routes, NJ_ARRAY_LEN(routes));
    h->config.conns.policy = &p;
    h->config.conns.fibers_max = 32;
    hr_start(h);
    struct hr_client *a = hr_connect(h), *b = hr_connect(h), *c = hr_connect(h);

    ask_as(c, "modest", 1);
    hr_settle(h);
    ask_as(a, "greedy", 30);
    ask_as(b, "greedy", 30);
    hr_settle(h);
    cr_expect_eq(stacks_in_use(h), 24);
    ask_as(c, "modest", 6);
    hr_settle(h);
    cr_expect_eq(stacks_in_use(h), 27, "its share");
    hr_reset(c, 1);
    hr_settle(h);
    cr_expect_eq(stacks_in_use(h), 27, "one went, and the next of the same client came");
    hr_run(h, 330 * NJ_SEC);
    cr_expect_eq(stacks_in_use(h), 0);
    cr_expect_eq(rig_count(h->r, NJ_C_status_2xx), 23 + 4);
    cr_expect_eq(rig_count(h->r, NJ_C_status_5xx), 60 - 23 + 2);
    cr_expect_eq(rig_count(h->r, NJ_C_stack_timeout), 60 - 23 + 2);
    for (uint32_t i = 0; i < NJ_REQUESTERS; i++)
        cr_assert_eq(h->r->s->conns.txns.requester[i].n_need_stack, 0);
    cr_expect_eq(h->r->s->conns.admission.n_waiting, 0);
    hr_free(h);
}
