/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of requests, and keys of clients. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prng.h"
#include "shape/request_policy.h"
#include "support/addr.h"

#define HEAD(...) (&(struct nj_request_head){__VA_ARGS__})

static const struct nj_hash_key key = {{1, 2, 3}};
static struct nj_policy p;

static struct nj_str str(const char *text)
{
    return (struct nj_str){text, (uint32_t)strlen(text)};
}

/* Lists by the last byte of the address. */
static uint32_t lists_by_last_byte(const void *ctx, const struct nj_addr *a)
{
    return a->b[15] < 32 ? *(const uint32_t *)ctx & 1u << a->b[15] : 0;
}

static const uint32_t every_list = UINT32_MAX;

static void init(void)
{
    p = nj_policy_none;
}

TestSuite(shape_request_policy, .init = init);

static struct nj_class_rule *add(const char *name, struct nj_class_rule rule)
{
    struct nj_class *c = &p.classes[p.n_classes];

    snprintf(c->name, sizeof c->name, "%s", name);
    c->slot = (uint8_t)p.n_classes;
    rule.class_index = (uint8_t)p.n_classes++;
    p.rules[p.n_rules] = rule;
    return &p.rules[p.n_rules++];
}

/* The memo of the previous key does not change results. */
static struct nj_policy_verdict ask(struct nj_policy_request req)
{
    static struct nj_addr any;
    static struct nj_policy_memo memo;
    static const struct nj_request_head none;
    struct nj_policy_verdict v, again;

    any = addr("192.0.2.99");
    if (!req.addr)
        req.addr = &any;
    if (!req.head)
        req.head = &none;
    if (!req.path.p)
        req.path = str("/");
    nj_policy_decide_request(&p, &key, &req, &v);
    req.memo = &memo;
    nj_policy_decide_request(&p, &key, &req, &again);
    cr_assert_eq(again.client_key, v.client_key);
    return v;
}

static const char *class_of_path(const char *path)
{
    return ask((struct nj_policy_request){.path = str(path)}).class_of->name;
}

Test(shape_request_policy, the_first_rule_wins)
{
    add("iso", (struct nj_class_rule){.path_prefix = str("/iso/")});
    add("all", (struct nj_class_rule){.path_prefix = str("/")});
    add("never", (struct nj_class_rule){0});
    cr_expect_str_eq(class_of_path("/iso/x"), "iso");
    cr_expect_str_eq(class_of_path("/iso"), "all");
    cr_expect_str_eq(class_of_path(""), "never");
    p.n_rules = 1;
    cr_expect_str_eq(class_of_path("/x"), "default");
}

Test(shape_request_policy, hosts)
{
    static const char *const yes[] = {"files.example.org", "FILES.example.org:80",
                                      "files.example.org.", "me@files.example.org",
                                      "a@b@files.example.org.:443"};
    static const char *const no[] = {"",
                                     "x.files.example.org",
                                     "files.example.org.evil",
                                     "files.example.org@evil",
                                     "[files.example.org]",
                                     "files"};

    add("files", (struct nj_class_rule){.host = str("files.example.org")});
    add("six", (struct nj_class_rule){.host = str("[2001:db8::1]")});
    for (size_t i = 0; i < NJ_ARRAY_LEN(yes); i++)
        cr_expect_str_eq(
            ask((struct nj_policy_request){.head = HEAD(.authority = str(yes[i]))}).class_of->name,
            "files", "%s", yes[i]);
    for (size_t i = 0; i < NJ_ARRAY_LEN(no); i++)
        cr_expect_str_eq(
            ask((struct nj_policy_request){.head = HEAD(.authority = str(no[i]))}).class_of->name,
            "default", "%s", no[i]);
    cr_expect_str_eq(
        ask((struct nj_policy_request){.head = HEAD(.authority = str("[2001:DB8::1]:80"))})
            .class_of->name,
        "six");
}

Test(shape_request_policy, headers_and_lists)
{
    const struct nj_field f[] = {{str("x-tier"), str("silver")}, {str("x-tier"), str("gold")}};
    struct nj_addr friend = addr("192.0.2.3"), other = addr("2001:db8::5");

    p.lists = lists_by_last_byte;
    p.lists_ctx = &every_list;
    add("gold", (struct nj_class_rule){.header = str("x-tier"), .value = str("gold")});
    add("any", (struct nj_class_rule){.header = str("x-tier"), .lists = 1u << 3 | 1u << 4});
    cr_expect_str_eq(
        ask((struct nj_policy_request){.head = HEAD(.fields = f, .n_fields = 2)}).class_of->name,
        "gold");
    cr_expect_str_eq(
        ask((struct nj_policy_request){.head = HEAD(.fields = f, .n_fields = 1)}).class_of->name,
        "default");
    struct nj_policy_request req = {.addr = &friend, .head = HEAD(.fields = f, .n_fields = 1)};
    cr_expect_str_eq(ask(req).class_of->name, "any");
    req.addr = &other;
    cr_expect_str_eq(ask(req).class_of->name, "default");
    req.addr = &friend;
    req.head = HEAD(.n_fields = 0);
    cr_expect_str_eq(ask(req).class_of->name, "default");
}

static uint64_t client(const char *a, const struct nj_field *f, uint32_t n)
{
    struct nj_addr from = addr(a);
    return ask((struct nj_policy_request){.addr = &from, .head = HEAD(.fields = f, .n_fields = n)})
        .client_key;
}

/* The next class of a slot starts with clients of its own, whatever former ones have open. */
Test(shape_request_policy, clients_are_of_a_class)
{
    uint64_t a = client("192.0.2.1", NULL, 0), slot_gen = p.classes[0].slot_gen;

    p.classes[0].slot_gen++;
    cr_expect_neq(client("192.0.2.1", NULL, 0), a);
    p.classes[0].slot_gen = (uint32_t)slot_gen;
    cr_expect_eq(client("192.0.2.1", NULL, 0), a);
    p.classes[0].slot++;
    cr_expect_neq(client("192.0.2.1", NULL, 0), a);
}

Test(shape_request_policy, clients_by_address)
{
    uint64_t a = client("192.0.2.1", NULL, 0), six = client("2001:db8::1", NULL, 0);

    cr_expect(a != 0 && six != 0 && a != six);
    cr_expect_neq(a, client("192.0.2.2", NULL, 0));
    cr_expect_eq(six, client("2001:db8::ffff:0:0:1", NULL, 0), "one /64");
    cr_expect_neq(six, client("2001:db8:0:1::1", NULL, 0));
    p.client_bits4 = 24;
    p.client_bits6 = 48;
    cr_expect_eq(client("192.0.2.1", NULL, 0), client("192.0.2.255", NULL, 0));
    cr_expect_neq(client("192.0.2.1", NULL, 0), client("192.0.3.1", NULL, 0));
    cr_expect_eq(client("2001:db8::1", NULL, 0), client("2001:db8:0:ffff::1", NULL, 0));
    p.client_bits4 = 20;
    cr_expect_eq(client("192.0.16.1", NULL, 0), client("192.0.31.255", NULL, 0));
    cr_expect_neq(client("192.0.16.1", NULL, 0), client("192.0.32.1", NULL, 0));
    p.client_bits4 = 0;
    cr_expect_eq(client("192.0.2.1", NULL, 0), client("10.0.0.1", NULL, 0));
    cr_expect_neq(client("192.0.2.1", NULL, 0), client("::1", NULL, 0), "still another family");
}

/* A client has one key per class, and one for its connections. */
Test(shape_request_policy, clients_within_classes)
{
    struct nj_addr a = addr("192.0.2.1");
    uint64_t plain_key = client("192.0.2.1", NULL, 0);

    cr_expect_eq(nj_policy_conn_key(&p, &key, &a), nj_policy_conn_key(&p, &key, &a));
    cr_expect_neq(nj_policy_conn_key(&p, &key, &a), plain_key);
    add("all", (struct nj_class_rule){0});
    cr_expect_neq(plain_key, client("192.0.2.1", NULL, 0));
    struct nj_hash_key other = {{9}};
    cr_expect_neq(nj_policy_conn_key(&p, &key, &a), nj_policy_conn_key(&p, &other, &a));
}

Test(shape_request_policy, clients_by_header)
{
    const struct nj_field mine[] = {{str("accept"), str("x")}, {str("x-token"), str("me")}};
    const struct nj_field yours = {str("x-token"), str("you")}, none = {str("x-token"), str("")};

    p.client_by = NJ_CLIENT_BY_HEADER;
    p.client_field = str("x-token");
    cr_expect_eq(client("192.0.2.1", mine, 2), client("2001:db8::1", mine, 2));
    cr_expect_neq(client("192.0.2.1", mine, 2), client("192.0.2.1", &yours, 1));
    cr_expect_neq(client("192.0.2.1", NULL, 0), client("192.0.2.2", NULL, 0), "by address");
    cr_expect_eq(client("192.0.2.1", NULL, 0), client("192.0.2.1", &none, 1));
    cr_expect_neq(client("192.0.2.1", NULL, 0), client("192.0.2.1", mine, 2));
}

Test(shape_request_policy, clients_by_cookie)
{
    static const struct {
        const char *line[2];
        const char *value; /* NULL: none */
    } rows[] = {
        {{"id=me", NULL}, "me"},
        {{"a=b; id=me; c=d", NULL}, "me"},
        {{"a=b", "id=me"}, "me"},
        {{"a=b;id=me ;", NULL}, "me"},
        {{"id=me=you", NULL}, "me=you"},
        {{"id=me; id=you", NULL}, "me"},
        {{"id=; id=you", NULL}, NULL},
        {{"xid=me; idx=me; ID=me; id", NULL}, NULL},
        {{"id", NULL}, NULL},
        {{"", ";;;"}, NULL},
    };
    p.client_by = NJ_CLIENT_BY_COOKIE;
    p.client_field = str("id");
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_field f[3] = {{str("accept"), str("id=x")}}, want = {str("cookie"), str("")};
        char line[64];
        uint32_t n = 1;
        for (unsigned k = 0; k < 2 && rows[i].line[k]; k++)
            f[n++] = (struct nj_field){str("cookie"), str(rows[i].line[k])};
        snprintf(line, sizeof line, "id=%s", rows[i].value ? rows[i].value : "");
        want.value = str(line);
        cr_expect_eq(client("192.0.2.1", f, n), client("192.0.2.1", &want, 1), "row %zu", i);
        cr_expect((client("192.0.2.1", f, n) == client("192.0.2.9", f, n)) == !!rows[i].value,
                  "row %zu", i);
    }
}

static enum nj_action admit(const char *a)
{
    struct nj_addr from = addr(a);
    return nj_policy_decide_conn(&p, &from);
}

static enum nj_action served(const char *a)
{
    struct nj_addr from = addr(a);
    return ask((struct nj_policy_request){.addr = &from}).action;
}

Test(shape_request_policy, allow_and_deny)
{
    cr_expect_eq(admit("192.0.2.1"), NJ_ACTION_SERVE);
    p.lists = lists_by_last_byte;
    p.lists_ctx = &every_list;
    p.deny = 1u << 1;
    p.deny_action = NJ_ACTION_DROP;
    cr_expect_eq(admit("192.0.2.1"), NJ_ACTION_DROP);
    cr_expect_eq(served("192.0.2.1"), NJ_ACTION_DROP);
    cr_expect_eq(admit("2001:db8::2"), NJ_ACTION_SERVE);
    cr_expect_eq(served("2001:db8::2"), NJ_ACTION_SERVE);
    p.deny_action = NJ_ACTION_FORBID;
    cr_expect_eq(admit("192.0.2.1"), NJ_ACTION_SERVE, "its requests get 403");
    cr_expect_eq(served("192.0.2.1"), NJ_ACTION_FORBID);
    p.allow_only = true;
    p.allow = 1u << 1 | 1u << 2;
    p.deny_action = NJ_ACTION_RESET;
    cr_expect_eq(admit("192.0.2.1"), NJ_ACTION_RESET, "deny wins");
    cr_expect_eq(admit("192.0.2.2"), NJ_ACTION_SERVE);
    cr_expect_eq(admit("192.0.2.3"), NJ_ACTION_RESET);
}

/* A class with only a list may be refused before a request arrives, unless an earlier class might
 * match the request. */
Test(shape_request_policy, classes_at_the_door)
{
    p.lists = lists_by_last_byte;
    p.lists_ctx = &every_list;
    add("bots", (struct nj_class_rule){.lists = 1u << 1});
    p.classes[1].action = NJ_ACTION_DROP;
    add("free", (struct nj_class_rule){.path_prefix = str("/free/")});
    add("others", (struct nj_class_rule){.lists = 1u << 2});
    p.classes[3].action = NJ_ACTION_RESET;
    cr_expect_eq(admit("192.0.2.1"), NJ_ACTION_DROP);
    cr_expect_eq(admit("192.0.2.2"), NJ_ACTION_SERVE, "/free/ is for everybody");
    cr_expect_eq(served("192.0.2.2"), NJ_ACTION_RESET);
    p.classes[1].action = NJ_ACTION_TOO_MANY;
    cr_expect_eq(admit("192.0.2.1"), NJ_ACTION_SERVE);
    cr_expect_eq(served("192.0.2.1"), NJ_ACTION_TOO_MANY);
}
