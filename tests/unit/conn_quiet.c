/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections whose output is complete get no ACK events. The shard still knows when they became
 * idle, and which have ACKs outstanding. */
#include <criterion/criterion.h>

#include "conn/conn.h"
#include "support/shard_rig.h"
#include "telem/counters.h"

#define IDLE (75 * NJ_SEC) /* the default idle timeout */
#define PING 6u

static struct nj_tcb *tcb_of(const struct rig *r, const struct rig_peer *p)
{
    struct nj_tuple t = {.remote = p->tuple.local,
                         .local = p->tuple.remote,
                         .rport = p->tuple.lport,
                         .lport = p->tuple.rport};
    struct nj_flow *f = nj_flow_find(&r->s->tcp.flows, nj_flow_hash(&r->s->tcp.flows, &t), &t);
    return nj_flow_tcb(f);
}

/* A peer with a response that it has not acknowledged. */
static struct rig_peer *answered(struct rig *r, uint16_t port)
{
    struct rig_peer *p = rig_connect_h2(r, port);
    rig_get(r, p, 1, "/index.html");
    rig_settle(r);
    rig_get(r, p, 3, "/index.html");
    p->manual = true;
    rig_settle(r);
    cr_assert_eq(rig_count(r, NJ_C_responses) % 2, 0);
    cr_assert_gt(nj_tcp_send_queue_mbufs(tcb_of(r, p)), 0);
    return p;
}

static void acknowledge(struct rig *r, struct rig_peer *p)
{
    rig_ack(r, p);
    rig_settle(r);
    cr_assert_eq(nj_tcp_send_queue_mbufs(tcb_of(r, p)), 0);
}

static bool hears(const struct rig *r, const struct rig_peer *p)
{
    return !tcb_of(r, p)->ack_events_off;
}

Test(conn_quiet, when_all_is_said)
{
    struct rig *r = rig_new();
    struct rig_peer *p = answered(r, 1000);

    cr_expect(!hears(r, p));
    acknowledge(r, p);
    cr_expect(!hears(r, p));
    r->files_slow = true;
    rig_get(r, p, 5, "/whole");
    rig_settle(r);
    cr_expect(hears(r, p), "a stream waits for its file");
    r->files_slow = false; /* the response exceeds the congestion window */
    rig_settle(r);
    cr_expect(hears(r, p), "a stream waits for room");
    p->manual = false;
    rig_run(r, NJ_SEC);
    cr_expect_gt(p->n_got, RIG_WHOLE);
    for (uint32_t i = 7; i <= 9; i += 2) { /* the first stream's file has left the cache */
        rig_get(r, p, i, "/index.html");
        rig_settle(r);
    }
    cr_expect(!hears(r, p));
    p->rcv_wnd = 0;
    rig_ack(r, p);
    rig_get(r, p, 11, "/index.html");
    rig_settle(r);
    cr_expect(hears(r, p), "the peer's window blocks the output");
    rig_free(r);
}

static nj_ns until(struct rig *r, const bool *happened)
{
    nj_ns from = r->now;
    while (!*happened && r->now < from + 3 * IDLE)
        rig_run(r, 50 * NJ_MS);
    return r->now - from;
}

static void expect_between(struct rig *r, const bool *happened, nj_ns from, nj_ns to)
{
    nj_ns took = until(r, happened);
    cr_expect(took >= from && took <= to, "%lu ms", took / NJ_MS);
    rig_free(r);
}

/* Responses count as progress whether or not their ACKs are reported; so do responses from the
 * cache, sent in the step of the request. */
Test(conn_quiet, idle_since_the_last_answer)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect_h2(r, 1000);

    for (uint32_t i = 0; i < 40; i++) {
        rig_get(r, p, 1 + 2 * i, "/index.html");
        rig_settle(r);
        nj_ns wait = i < 3 ? IDLE - 5 * NJ_SEC : 250 * NJ_MS;
        rig_run(r, i < 39 ? wait : 0);
        cr_assert(!p->got_fin, "after %u answers", i + 1);
    }
    expect_between(r, &p->got_fin, IDLE, IDLE + NJ_SEC - 1);
}

/* A timeout shorter than the second for which an ACK is expected without being reported. */
Test(conn_quiet, idle_for_less_than_the_trust)
{
    struct rig *r = rig_new();
    r->s->cfg.conns.idle_timeout = 300 * NJ_MS;
    struct rig_peer *p = answered(r, 1000);

    cr_assert(!hears(r, p));
    acknowledge(r, p);
    p->manual = false;
    expect_between(r, &p->got_fin, 300 * NJ_MS, 500 * NJ_MS);
}

/* A connection whose ACK was not reported is due before the first one of the list of idle ones.
 * When that one goes on, the other is the first, and overdue: the lcore has no timer in the past
 * meanwhile, and the connection ends when the first one would have. */
Test(conn_quiet, overdue_behind_one_that_goes_on)
{
    struct rig *r = rig_new();
    struct rig_peer *late = answered(r, 1000);

    acknowledge(r, late);
    cr_assert(!hears(r, late));
    rig_run(r, 500 * NJ_MS);
    struct rig_peer *first = rig_connect_h2(r, 1001);
    rig_get(r, first, 1, "/whole"); /* its ACKs are reported: it is idle at once */
    rig_settle(r);
    cr_assert(hears(r, first));
    nj_ns idle_since = r->now;
    rig_run(r, IDLE - 250 * NJ_MS);
    cr_assert(!late->got_fin && !first->got_fin);
    rig_get(r, first, 3, "/index.html");
    rig_settle(r);
    cr_expect_gt(nj_shard_next_at(r->s), r->now);
    rig_run(r, idle_since + IDLE + 100 * NJ_MS - r->now);
    cr_expect(late->got_fin);
    cr_expect(!first->got_fin);
    rig_free(r);
}

/* Bytes acknowledged during that second were not counted: measuring starts at zero. */
Test(conn_quiet, who_takes_its_answers_is_not_late)
{
    struct rig *r = rig_new();
    r->http.send_timeout = 300 * NJ_MS;
    struct rig_peer *p = answered(r, 1000);
    uint32_t una = p->rcv_nxt;

    for (uint32_t i = 0; i < 60; i++)
        rig_get(r, p, 5 + 2 * i, "/index.html");
    rig_settle(r);
    uint32_t end = p->rcv_nxt;
    cr_assert_gt(end - una, 8000);
    cr_assert(!hears(r, p));
    while (una != end && !p->got_rst) {
        rig_run(r, 100 * NJ_MS);
        una += end - una < 1600 ? end - una : 1600;
        p->rcv_nxt = una;
        rig_ack(r, p);
        rig_step(r);
    }
    cr_expect(!p->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 0);
    rig_free(r);
}

/* After the second, the connection is watched for the whole timeout. */
Test(conn_quiet, stalled_for_less_than_the_trust)
{
    struct rig *r = rig_new();
    r->http.send_timeout = 300 * NJ_MS;
    struct rig_peer *p = answered(r, 1000);

    expect_between(r, &p->got_rst, 600 * NJ_MS, 800 * NJ_MS);
}

/* A frame begins in the packet of the request. */
Test(conn_quiet, begun_for_less_than_the_trust)
{
    struct rig *r = rig_new();
    r->http.header_timeout = 300 * NJ_MS;
    struct rig_peer *p = answered(r, 1000);
    uint8_t b[512], ping[32];
    uint32_t n = rig_h2_get(b, 5, "/index.html");

    rig_h2(ping, PING, 0, 0, "12345678", 8);
    memcpy(b + n, ping, 12);
    rig_send(r, p, b, n + 12);
    rig_settle(r);
    cr_assert(!hears(r, p));
    p->manual = false;
    expect_between(r, &p->got_fin, 300 * NJ_MS, 500 * NJ_MS);
}

/* The connection timed out: when its last bytes are acknowledged, two seconds remain. */
Test(conn_quiet, the_end_is_heard_of)
{
    struct rig *r = rig_new();
    struct rig_peer *p = answered(r, 1000);

    acknowledge(r, p);
    p->manual = false;
    until(r, &p->got_fin);
    cr_assert(p->got_fin);
    cr_expect_eq(r->s->conns.pool.n_used, 1);
    rig_run(r, 3 * NJ_SEC);
    cr_expect_eq(r->s->conns.pool.n_used, 0);
    rig_free(r);
}

/* ---- peers that do not acknowledge responses ---- */

/* The peer acknowledges all but ten bytes, and answers zero-window probes. If `busy`, it sends
 * something each second that needs no reply. Returns when the connection has ended. */
static nj_ns until_reset(struct rig *r, struct rig_peer *p, bool busy, bool opens)
{
    nj_ns from = r->now;
    uint32_t una = p->rcv_nxt - 10;
    uint8_t ping[32];

    while (!p->got_rst && !p->got_fin && r->now < from + 1000 * NJ_SEC) {
        p->rcv_nxt = una;
        if (busy) {
            p->rcv_wnd = opens ? 65535 : 0;
            rig_send(r, p, ping, rig_h2(ping, PING, 1, 0, "12345678", 8));
            rig_step(r);
        }
        p->rcv_nxt = una;
        p->rcv_wnd = 0;
        rig_ack(r, p);
        rig_run(r, NJ_SEC);
    }
    cr_expect_eq(rig_count(r, NJ_C_conn_timeout), 1);
    return r->now - from;
}

static void expect_send_timeout(bool busy, bool opens)
{
    struct rig *r = rig_new();
    struct rig_peer *p = answered(r, 1000);
    nj_ns took = until_reset(r, p, busy, opens);

    cr_expect(took >= 60 * NJ_SEC && took <= 65 * NJ_SEC, "%lu ms", took / NJ_MS);
    rig_free(r);
}

Test(conn_quiet, a_window_that_shuts_behind_the_answer)
{
    expect_send_timeout(false, false);
}

Test(conn_quiet, saying_something_is_not_taking)
{
    expect_send_timeout(true, false);
}

Test(conn_quiet, nor_is_a_window_that_opens_now_and_then)
{
    expect_send_timeout(true, true);
}

/* Acknowledging byte by byte is below the minimum rate. */
Test(conn_quiet, acknowledged_by_bytes)
{
    struct rig *r = rig_new();
    struct rig_peer *p = answered(r, 1000);
    uint32_t end = p->rcv_nxt;
    nj_ns from = r->now;

    p->rcv_nxt = end - 150;
    while (!p->got_rst && p->rcv_nxt < end && r->now < from + 1000 * NJ_SEC) {
        uint32_t una = p->rcv_nxt;
        rig_ack(r, p);
        rig_run(r, 900 * NJ_MS);
        p->rcv_nxt = una + 1;
    }
    nj_ns took = r->now - from;
    cr_expect(took >= 60 * NJ_SEC && took <= 65 * NJ_SEC, "%lu ms", took / NJ_MS);
    rig_free(r);
}

static void shed_at(struct rig *r, nj_ns now)
{
    r->now = now;
    r->s->conns.n_tx_mbufs_left = 0;
    nj__pressure_reset_unacking(&r->s->conns, now);
}

Test(conn_quiet, who_has_acknowledged_all_is_not_shed)
{
    struct rig *r = rig_new();
    nj_ns then = r->now;

    for (uint16_t i = 0; i < 20; i++)
        acknowledge(r, answered(r, 1000 + i));
    for (uint32_t i = 1; i < 4; i++)
        shed_at(r, then + i * 6 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 0);
    cr_expect(nj_list_empty(&r->s->conns.unacked));
    rig_free(r);
}

Test(conn_quiet, who_acknowledges_nothing_is_shed)
{
    struct rig *r = rig_new();
    nj_ns then = r->now;

    answered(r, 1000);
    shed_at(r, then + 4 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 0);
    shed_at(r, then + 5 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 1);
    rig_free(r);
}

/* While mbufs are short, and not nearly used up, a peer has more time. */
Test(conn_quiet, who_acknowledges_nothing_for_15_s_is_shed)
{
    struct rig *r = rig_new();
    nj_ns then = r->now;

    answered(r, 1000);
    r->s->conns.n_tx_mbufs_left = r->s->conns.n_tx_reserve - 1;
    nj__pressure_reset_unacking(&r->s->conns, then + 14 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 0);
    nj__pressure_reset_unacking(&r->s->conns, then + 15 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 1);
    rig_free(r);
}

/* Is on the list since `then`, and acknowledged bytes since, unreported. */
static void expect_shed_late(struct rig *r, nj_ns then)
{
    shed_at(r, then + 6 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 0);
    shed_at(r, then + 12 * NJ_SEC);
    cr_expect_eq(rig_count(r, NJ_C_conn_shed), 1);
    rig_free(r);
}

Test(conn_quiet, an_ack_nobody_heard_of_counts)
{
    struct rig *r = rig_new();
    nj_ns then = r->now;
    struct rig_peer *p = answered(r, 1000);

    r->now = then + 3 * NJ_SEC;
    rig_ack(r, p);
    rig_get(r, p, 5, "/index.html"); /* an ACK is outstanding again */
    rig_settle(r);
    expect_shed_late(r, then);
}

Test(conn_quiet, part_of_an_answer_counts)
{
    struct rig *r = rig_new();
    nj_ns then = r->now;
    struct rig_peer *p = answered(r, 1000);

    p->rcv_nxt -= 10; /* except for the last bytes */
    rig_ack(r, p);
    rig_step(r);
    cr_assert_gt(nj_tcp_send_queue_mbufs(tcb_of(r, p)), 0);
    expect_shed_late(r, then);
}
