/* SPDX-License-Identifier: BSD-3-Clause */
/* The client that a proxy names. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "shape/forwarded_header.h"
#include "shape/request_policy.h"
#include "support/addr.h"

#define HEAD(...) (&(struct nj_request_head){__VA_ARGS__})

static const struct nj_hash_key key = {{1, 2, 3}};
static struct nj_policy p;

/* List 3: 10.0.0.0/8 and 2001:db8:1::/48 are proxies. */
static uint32_t lists(const void *ctx, const struct nj_addr *a)
{
    static const uint8_t net6[] = {0x20, 1, 0xd, 0xb8, 0, 1};
    bool v4 = nj_addr_is_v4(a) && a->b[12] == 10;
    return v4 || memcmp(a->b, net6, sizeof net6) == 0 ? 1u << 3 : 0;
}

static void init(void)
{
    p = nj_policy_none;
    p.client_by = NJ_CLIENT_BY_HEADER;
    p.client_field = NJ_STR("x-forwarded-for");
    p.trusted = 1u << 3;
    p.lists = lists;
}

TestSuite(shape_forwarded_header, .init = init);

static struct nj_str str(const char *text)
{
    return (struct nj_str){text, (uint32_t)strlen(text)};
}

/* The verdict on a request of `peer` with up to two lines of that field. */
static struct nj_policy_verdict ask(const char *peer, const char *first, const char *second)
{
    struct nj_addr from = addr(peer);
    struct nj_field f[3] = {{NJ_STR("accept"), NJ_STR("*/*")}};
    uint32_t n = 1;
    struct nj_policy_verdict v;

    if (first)
        f[n++] = (struct nj_field){p.client_field, str(first)};
    if (second)
        f[n++] = (struct nj_field){p.client_field, str(second)};
    nj_policy_decide_request(&p, &key,
                             &(struct nj_policy_request){.addr = &from,
                                                         .path = NJ_STR("/"),
                                                         .head = HEAD(.fields = f, .n_fields = n)},
                             &v);
    return v;
}

static void expect(const char *peer, const char *first, const char *second, const char *client)
{
    struct nj_policy_verdict v = ask(peer, first, second), direct = ask(client, NULL, NULL);
    struct nj_addr want = addr(client);

    cr_expect(nj_addr_eq(&v.client, &want), "%s; %s: not %s", first, second, client);
    cr_expect_eq(v.client_key, direct.client_key, "%s", first);
}

/* The rightmost address that is not a trusted proxy; elements written by the client are to its
 * left. */
Test(shape_forwarded_header, x_forwarded_for)
{
    expect("10.0.0.1", "192.0.2.1", NULL, "192.0.2.1");
    expect("10.0.0.1", "203.0.113.9, 192.0.2.1", NULL, "192.0.2.1");
    expect("10.0.0.1", "203.0.113.9 ,192.0.2.1,\t10.0.0.2 , 10.0.0.3", NULL, "192.0.2.1");
    expect("10.0.0.1", "203.0.113.9", "192.0.2.1, 10.0.0.2", "192.0.2.1");
    expect("10.0.0.1", "192.0.2.1", "10.0.0.2", "192.0.2.1");
    expect("10.0.0.1", "192.0.2.1:4711", NULL, "192.0.2.1");
    expect("10.0.0.1", "192.0.2.1, , ,", NULL, "192.0.2.1");
    expect("2001:db8:1::1", "2001:db8:9::7", NULL, "2001:db8:9::7");
    expect("2001:db8:1::1", "[2001:db8:9::7]:80, 2001:db8:1::2", NULL, "2001:db8:9::7");
    expect("10.0.0.1", "10.0.0.3, 10.0.0.2", NULL, "10.0.0.3");
}

/* An element that is not an address ends the search. */
Test(shape_forwarded_header, garbage)
{
    static const char *const bad[] = {"",           "unknown",     "1.2.3",       "192.0.2.1.5",
                                      "[::1",       "192.0.2.1 1", "2001:db8::g", ":",
                                      "\"192.0.2.1"};
    char text[128];

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        expect("10.0.0.1", bad[i], NULL, "10.0.0.1");
        snprintf(text, sizeof text, "192.0.2.1, %s", bad[i]);
        if (bad[i][0])
            expect("10.0.0.1", text, NULL, "10.0.0.1");
        snprintf(text, sizeof text, "%s, 192.0.2.1, 10.0.0.2", bad[i]);
        expect("10.0.0.1", text, NULL, "192.0.2.1");
        snprintf(text, sizeof text, "%s, 10.0.0.2", bad[i]);
        expect("10.0.0.1", text, NULL, "10.0.0.2");
    }
    memset(text, '1', sizeof text);
    text[sizeof text - 1] = '\0';
    expect("10.0.0.1", text, NULL, "10.0.0.1");
}

/* Addresses to the left of such an element, or of the last one examined, are not returned by later
 * calls either. */
Test(shape_forwarded_header, end_is_final)
{
    static char commas[64];
    struct nj_field f = {p.client_field, NJ_STR("192.0.2.1, 192.0.2.2, unknown, 192.0.2.3")};
    struct nj_forwarded walk = {
        .head = HEAD(.fields = &f, .n_fields = 1), .name = p.client_field, .n_lines_left = 1};
    struct nj_addr a, want = addr("192.0.2.3");

    cr_expect(nj_forwarded_next(&walk, &a) && nj_addr_eq(&a, &want));
    for (unsigned i = 0; i < 3; i++)
        cr_expect_not(nj_forwarded_next(&walk, &a), "call %u", i);
    snprintf(commas, sizeof commas, "192.0.2.1,192.0.2.2%.*s", (int)NJ_FORWARDED_HOPS_MAX,
             ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,");
    f.value = str(commas);
    walk = (struct nj_forwarded){.head = walk.head, .name = p.client_field, .n_lines_left = 1};
    for (unsigned i = 0; i < 3; i++)
        cr_expect_not(nj_forwarded_next(&walk, &a), "call %u after many elements", i);
}

/* RFC 7239. */
Test(shape_forwarded_header, forwarded)
{
    p.client_field = NJ_STR("forwarded");
    expect("10.0.0.1", "for=192.0.2.1", NULL, "192.0.2.1");
    expect("10.0.0.1", "For=\"192.0.2.1:80\";proto=http;by=10.0.0.1", NULL, "192.0.2.1");
    expect("10.0.0.1", "for=203.0.113.9, proto=https; FOR=\"[2001:db8:9::7]:4711\", for=10.0.0.3",
           NULL, "2001:db8:9::7");
    expect("10.0.0.1", "for=192.0.2.1, for=unknown", NULL, "10.0.0.1");
    expect("10.0.0.1", "for=_hidden, for=10.0.0.2", NULL, "10.0.0.2");
    expect("10.0.0.1", "by=203.0.113.9", NULL, "10.0.0.1");
    expect("10.0.0.1", "for=\"203.0.113.9, for=192.0.2.1", NULL, "192.0.2.1"); /* unclosed quotes */
    expect("10.0.0.1", "for=192.0.2.1;host=\"a;for=203.0.113.9;b\"", NULL, "192.0.2.1");
    expect("10.0.0.1", "for=192.0.2.1;for=203.0.113.9", NULL, "10.0.0.1");
}

/* A client chooses its Host, and a proxy may pass it on as host="...": what looks like an element
 * in it is none. */
Test(shape_forwarded_header, hosts_with_marks)
{
    static const char *const lines[] = {
        "for=192.0.2.1;host=\"a,for=203.0.113.9;proto=https;b\"",
        "host=\"a,proto=https;b\";for=192.0.2.1",
        "host=\"a,x=\\\";for=203.0.113.9;proto=https;y=\";for=192.0.2.1",
        "for=192.0.2.1;host=\"a,x=\\\";for=203.0.113.9;proto=https;y=\"",
    };

    p.client_field = NJ_STR("forwarded");
    for (size_t i = 0; i < NJ_ARRAY_LEN(lines); i++) {
        struct nj_policy_verdict v = ask("10.0.0.1", lines[i], NULL);
        struct nj_addr proxy = addr("10.0.0.1");
        cr_expect(nj_addr_eq(&v.client, &proxy), "%s", lines[i]);
        cr_expect_eq(v.scheme, NJ_SCHEME_NONE, "%s", lines[i]);
    }
}

/* An untrusted peer may write anything: its own address counts. */
Test(shape_forwarded_header, strangers_are_not_believed)
{
    expect("192.0.2.50", "192.0.2.1", NULL, "192.0.2.50");
    p.client_field = NJ_STR("x-customer");
    struct nj_policy_verdict a = ask("192.0.2.50", "gold", NULL),
                             b = ask("192.0.2.50", "silver", NULL);
    cr_expect_eq(a.client_key, b.client_key);
    a = ask("10.0.0.1", "gold", NULL);
    b = ask("10.0.0.1", "silver", NULL);
    cr_expect_neq(a.client_key, b.client_key, "a proxy is");
    p.trusted = 0; /* no proxies are listed: any peer may name its client, see docs/policy.md */
    a = ask("192.0.2.50", "gold", NULL);
    b = ask("192.0.2.50", "silver", NULL);
    cr_expect_neq(a.client_key, b.client_key);
}

/* A trusted proxy that names its client, and one that does not. */
Test(shape_forwarded_header, client_unknown)
{
    cr_expect(!ask("10.0.0.1", "192.0.2.1", NULL).client_unknown);
    cr_expect(ask("10.0.0.1", NULL, NULL).client_unknown);
    cr_expect(ask("10.0.0.1", "unknown", NULL).client_unknown);
    cr_expect(!ask("192.0.2.50", NULL, NULL).client_unknown, "no proxy");
    p.client_field = NJ_STR("x-customer");
    cr_expect(!ask("10.0.0.1", "gold", NULL).client_unknown);
    cr_expect(ask("10.0.0.1", NULL, NULL).client_unknown);
    p.client_by = NJ_CLIENT_BY_ADDRESS;
    cr_expect(ask("10.0.0.1", "gold", NULL).client_unknown);
    cr_expect(!ask("192.0.2.50", NULL, NULL).client_unknown);
}

/* The client's key without a class is the same in all classes; the key in a class is not. */
Test(shape_forwarded_header, one_client_of_two_classes)
{
    struct nj_policy_verdict a = ask("10.0.0.1", "192.0.2.1", NULL), b, c;

    p.n_classes = 2;
    p.classes[1] = (struct nj_class){.name = "all", .slot = 1, .slot_gen = 1};
    p.n_rules = 1;
    p.rules[0] = (struct nj_class_rule){.class_index = 1, .path_prefix = NJ_STR("/")};
    b = ask("10.0.0.1", "192.0.2.1", NULL);
    c = ask("10.0.0.1", "192.0.2.2", NULL);
    cr_expect(a.client_hash == b.client_hash && a.client_key != b.client_key);
    cr_expect(c.client_hash != b.client_hash && c.client_key != b.client_key);
}

/* The prefix lengths apply to addresses named by a proxy too. */
Test(shape_forwarded_header, networks)
{
    struct nj_policy_verdict a = ask("10.0.0.1", "2001:db8:9::7", NULL);
    struct nj_policy_verdict b = ask("10.0.0.1", "2001:db8:9::8", NULL);
    cr_expect_eq(a.client_key, b.client_key);
    b = ask("10.0.0.1", "2001:db8:9:1::8", NULL);
    cr_expect_neq(a.client_key, b.client_key);
}

/* However long the list is, a bounded number of elements is examined. */
Test(shape_forwarded_header, long_lists)
{
    static char text[32 * 1024];
    size_t n = 0;

    n += (size_t)snprintf(text, sizeof text, "192.0.2.1");
    for (unsigned i = 0; i < NJ_FORWARDED_HOPS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",10.0.0.%u", i + 2);
    expect("10.0.0.1", text, NULL, "10.0.0.2");
    expect("10.0.0.1", strchr(text, ',') + 1, "", "10.0.0.3");
    memset(text, ',', sizeof text - 1);
    expect("10.0.0.1", text, NULL, "10.0.0.1");
}

/* A cookie may have the name of a header. */
Test(shape_forwarded_header, cookies_of_that_name)
{
    const char *names[] = {"x-forwarded-for", "forwarded"};
    struct nj_addr from = addr("198.51.100.7");

    p.client_by = NJ_CLIENT_BY_COOKIE;
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++) {
        struct nj_policy_verdict v[2];
        char line[64];
        p.client_field = str(names[i]);
        snprintf(line, sizeof line, "%s=a", names[i]);
        for (uint32_t k = 0; k < 2; k++) {
            struct nj_field f[] = {{NJ_STR("cookie"), str(line)},
                                   {p.client_field, str(k ? "192.0.2.1" : "192.0.2.2")}};
            nj_policy_decide_request(
                &p, &key,
                &(struct nj_policy_request){
                    .addr = &from, .path = NJ_STR("/"), .head = HEAD(.fields = f, .n_fields = 2)},
                &v[k]);
            cr_expect(nj_addr_eq(&v[k].client, &from), "%s", names[i]);
        }
        cr_expect_eq(v[0].client_key, v[1].client_key, "%s", names[i]);
    }
}

/* The scheme of a request of `peer` with these fields. */
static enum nj_scheme scheme_of(const char *peer, const struct nj_field *fields, uint32_t n)
{
    struct nj_addr from = addr(peer);
    struct nj_policy_verdict v;

    nj_policy_decide_request(
        &p, &key,
        &(struct nj_policy_request){
            .addr = &from,
            .path = NJ_STR("/"),
            .head = HEAD(.scheme = NJ_STR("http"), .fields = fields, .n_fields = n)},
        &v);
    return (enum nj_scheme)v.scheme;
}

static enum nj_scheme x_proto(const char *peer, const char *value)
{
    const struct nj_field f[] = {{NJ_STR("accept"), NJ_STR("*/*")},
                                 {NJ_STR("x-forwarded-proto"), str(value)}};
    return scheme_of(peer, f, 2);
}

/* One line with one scheme, from a trusted proxy. */
Test(shape_forwarded_header, x_forwarded_proto)
{
    static const char *const other[] = {"", "ftp", "https,http", "https, https", "httpss", "on"};
    const struct nj_field twice[] = {{NJ_STR("x-forwarded-proto"), NJ_STR("https")},
                                     {NJ_STR("accept"), NJ_STR("*/*")},
                                     {NJ_STR("x-forwarded-proto"), NJ_STR("https")}};

    for (int by = 0; by < 3; by++) {
        p.client_by = by == 0   ? NJ_CLIENT_BY_ADDRESS
                      : by == 1 ? NJ_CLIENT_BY_HEADER
                                : NJ_CLIENT_BY_COOKIE;
        cr_expect_eq(x_proto("10.0.0.1", "https"), NJ_SCHEME_HTTPS);
        cr_expect_eq(x_proto("10.0.0.1", "HTTP"), NJ_SCHEME_HTTP);
        cr_expect_eq(x_proto("192.0.2.1", "https"), NJ_SCHEME_NONE);
        for (size_t i = 0; i < NJ_ARRAY_LEN(other); i++)
            cr_expect_eq(x_proto("10.0.0.1", other[i]), NJ_SCHEME_NONE, "%s", other[i]);
        cr_expect_eq(scheme_of("10.0.0.1", twice, 3), NJ_SCHEME_NONE);
        cr_expect_eq(scheme_of("10.0.0.1", twice, 2), NJ_SCHEME_HTTPS);
        cr_expect_eq(scheme_of("10.0.0.1", twice + 1, 1), NJ_SCHEME_NONE);
        cr_expect_eq(scheme_of("10.0.0.1", NULL, 0), NJ_SCHEME_NONE);
    }
    p = nj_policy_none;
    cr_expect_eq(x_proto("10.0.0.1", "https"), NJ_SCHEME_NONE, "nobody is trusted");
}

/* In Forwarded the scheme is that of the element that ends the search. */
Test(shape_forwarded_header, forwarded_proto)
{
    static const struct {
        const char *value;
        enum nj_scheme scheme;
    } rows[] = {
        {"for=192.0.2.1;proto=https", NJ_SCHEME_HTTPS},
        {"for=192.0.2.1; Proto=\"HTTP\"", NJ_SCHEME_HTTP},
        {"for=192.0.2.1", NJ_SCHEME_NONE},
        {"for=192.0.2.1;proto=https, for=10.0.0.2;proto=http", NJ_SCHEME_HTTPS},
        {"for=203.0.113.9;proto=http, for=192.0.2.1;proto=https", NJ_SCHEME_HTTPS},
        {"for=203.0.113.9;proto=https, for=192.0.2.1", NJ_SCHEME_NONE},
        {"for=unknown;proto=https", NJ_SCHEME_HTTPS},
        {", for=10.0.0.2;proto=https", NJ_SCHEME_HTTPS},
        {"proto=https", NJ_SCHEME_HTTPS},
        {"", NJ_SCHEME_NONE},
    };

    p.client_field = NJ_STR("forwarded");
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        cr_expect_eq(ask("10.0.0.1", rows[i].value, NULL).scheme, rows[i].scheme, "%s",
                     rows[i].value);
        cr_expect_eq(ask("192.0.2.9", rows[i].value, NULL).scheme, NJ_SCHEME_NONE);
    }
    cr_expect_eq(x_proto("10.0.0.1", "https"), NJ_SCHEME_NONE, "the other field does not count");
}
