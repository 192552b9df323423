/* SPDX-License-Identifier: BSD-3-Clause */
/* Acts of protection, and refusals before a transaction, are recorded with the client that caused
 * them. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"
#include "telem/counters.h"

#define FLOODER 0xc6120009u /* 198.18.0.9 */

static struct nj_abuse_view view_of(const struct rig *r, nj_counter reason)
{
    struct nj_abuse_view v = {0};
    nj_abuse_get_count_and_client(&r->s->conns.abuse, reason, &v);
    return v;
}

static bool is_against(const struct nj_abuse_view *v, uint32_t ip)
{
    struct nj_addr a = rig_addr(ip);
    return nj_addr_eq(&v->client, &a);
}

/* Requests reset at once, until the connection ends, on three connections. */
Test(conn_abuse_reason_counts, rapid_reset)
{
    struct rig *r = rig_new();
    const uint8_t *goaway = NULL;

    for (uint16_t i = 0; i < 3; i++) {
        struct rig_peer *p = rig_syn_from(r, FLOODER, 1000 + i);
        rig_begin_h2(r, p);
        for (uint32_t k = 0; k < 1200 && !p->got_fin; k++) {
            uint8_t buf[256];
            uint32_t n = rig_h2_get(buf, 1 + 2 * k, "/index.html");
            n += rig_h2(buf + n, 3, 0, 1 + 2 * k, "\0\0\0\10", 4);
            rig_send(r, p, buf, n);
            rig_settle(r);
        }
        cr_expect_eq(rig_h2_frames(p, 7, &goaway), 1);
        cr_expect_eq(memcmp(goaway + 8, "too many streams reset", 22), 0);
    }
    struct nj_abuse_view v = view_of(r, NJ_C_h2_abuse_resets);
    cr_expect_eq(v.n, 3);
    cr_expect(is_against(&v, FLOODER) && !v.others);
    cr_expect_eq(rig_count(r, NJ_C_h2_abuse_resets), 3);
    cr_expect_eq(rig_count(r, NJ_C_h2_abuse), 3);
    rig_free(r);
}

/* An incomplete frame and an unread response count as abuse; an idle connection does not. */
Test(conn_abuse_reason_counts, slowness)
{
    struct rig *r = rig_new();
    struct rig_peer *slow = rig_connect_h2(r, 1000), *idle = rig_connect_h2(r, 1001);
    struct rig_peer *deaf = rig_syn_from(r, FLOODER, 1002);

    rig_begin_h2(r, deaf);
    rig_send(r, slow, "\0\0\10\6", 4);
    deaf->manual = true;
    rig_get(r, deaf, 1, "/whole");
    rig_run(r, 100 * NJ_SEC);
    struct nj_abuse_view v = view_of(r, NJ_C_h2_abuse_slow);
    cr_expect(v.n == 1 && is_against(&v, RIG_PEER_IP));
    v = view_of(r, NJ_C_conn_timeout);
    cr_expect(v.n == 1 && is_against(&v, FLOODER), "%u", (unsigned)v.n);
    cr_expect(idle->got_fin);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 3);
    rig_free(r);
}

/* More than the policy lets a client have. */
Test(conn_abuse_reason_counts, caps)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(r);
    struct nj_policy p = nj_policy_none;

    p.classes[0].caps.conns_max = 1;
    p.classes[0].caps.requests_per_s = 2;
    c.conns.policy = &p;
    rig_new_with(r, &c);
    struct rig_peer *a = rig_syn_from(r, FLOODER, 1000);
    rig_begin_h2(r, a);
    rig_syn_from(r, FLOODER, 1001);
    for (uint32_t i = 0; i < 5; i++)
        rig_get(r, a, 1 + 2 * i, "/index.html");
    rig_settle(r);
    struct nj_abuse_view v = view_of(r, NJ_C_conn_client_full);
    cr_expect(v.n == 1 && is_against(&v, FLOODER));
    v = view_of(r, NJ_C_request_refused);
    cr_expect(v.n == 3 && is_against(&v, FLOODER), "%u", (unsigned)v.n);
    rig_free(r);
}

/* ---- refusals ---- */

static void expect_refused(const struct rig *r, nj_counter reason, uint32_t n, uint32_t ip)
{
    const struct nj_abuse_view v = view_of(r, reason);

    cr_expect_eq(rig_count(r, reason), n, "%s: %u", nj_counter_info[reason].name,
                 (unsigned)rig_count(r, reason));
    cr_expect(v.n == n && is_against(&v, ip), "%s: recorded %u times", nj_counter_info[reason].name,
              (unsigned)v.n);
    cr_expect(nj_abuse_is_refusal(reason));
}

/* Connections whose first bytes are no preface of HTTP/2, or one that goes wrong later. */
Test(conn_abuse_reason_counts, refused_prefaces)
{
    static const char *const first[] = {"GET / HTTP/1.1\r\nhost: a\r\n\r\n", "\x16\x03\x01\x02\x01",
                                        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"};
    static const nj_counter reason[] = {NJ_C_conn_http1, NJ_C_conn_unknown, NJ_C_h2_error};
    struct rig *r = rig_new();

    r->http.no_http1 = true;
    for (uint16_t i = 0; i < NJ_ARRAY_LEN(first); i++) {
        struct rig_peer *p = rig_syn_from(r, FLOODER + i, 1000);
        rig_settle(r);
        rig_send(r, p, first[i], (uint32_t)strlen(first[i]));
        rig_settle(r);
        cr_expect(p->got_fin);
        expect_refused(r, reason[i], 1, FLOODER + i);
    }
    rig_free(r);
}

#define GET_HTTP "\x82\x86" /* GET, http */

/* Heads that are answered without a transaction, or reset. */
Test(conn_abuse_reason_counts, refused_heads)
{
    static const struct {
        const char *block;
        uint32_t n;
        nj_counter reason;
        uint8_t status; /* as HPACK's index; 0: reset */
    } heads[] = {
        {GET_HTTP "\x84", 3, NJ_C_request_no_host, 0x8c},
        {GET_HTTP "\x84\x01\x03:80", 8, NJ_C_request_no_host, 0x8c},     /* a port alone */
        {GET_HTTP "\x84\x0f\x17\x03:80", 9, NJ_C_request_no_host, 0x8c}, /* of `host` */
        {GET_HTTP "\x84\x01\x01"
                  "a\x0f\x17\x01"
                  "b",
         10, NJ_C_request_contradictory, 0x8c},
        {GET_HTTP "\x01\x01"
                  "a",
         5, NJ_C_request_malformed, 0}, /* no :path */
    };
    struct rig *r = rig_new();
    uint32_t n_no_host = 0, n_4xx = 0;

    for (uint16_t i = 0; i < NJ_ARRAY_LEN(heads); i++) {
        struct rig_peer *p = rig_syn_from(r, FLOODER + i, 1000);
        uint8_t buf[64];
        const uint8_t *answer = NULL;
        rig_begin_h2(r, p);
        rig_send(r, p, buf, rig_h2(buf, 1, 0x5, 1, heads[i].block, heads[i].n));
        rig_settle(r);
        n_no_host += heads[i].reason == NJ_C_request_no_host;
        n_4xx += heads[i].status != 0;
        expect_refused(r, heads[i].reason, heads[i].reason == NJ_C_request_no_host ? n_no_host : 1,
                       FLOODER + i);
        cr_expect_eq(rig_count(r, NJ_C_status_4xx), n_4xx, "%u", i);
        cr_expect_eq(rig_h2_frames(p, 1, &answer), heads[i].status != 0, "%u", i);
        cr_expect(heads[i].status == 0 || (answer && answer[0] == heads[i].status), "%u", i);
        cr_expect_eq(rig_h2_frames(p, 3, NULL), heads[i].status == 0, "%u", i);
        r->now += NJ_SEC; /* the client of the last second is recorded */
    }
    rig_free(r);
}
