/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer, the wire, the user and the clock of a TCP script. */
#include <stdio.h>
#include <stdlib.h>

#include <netinet/in.h>

#include "telem/counters.h"
#include "wire/emit.h"

#include "support/cutter.h"
#include "support/tcp_dsl.h"

#define RX_MBUFS 1024u

static const struct rte_ether_addr our_mac = {{2, 0, 0, 0, 0, 0xaa}};
static const struct nj_iface peer_iface = {
    .mac = {{2, 0, 0, 0, 0, 0xbb}},
    .mtu = 9000,
    .ip6 = true,
    .n_addrs = 2,
    .addr = {{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}}, 24, 0},
             {{{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}}, 64, 0}},
};

/* A second run of each test is about IPv6: see tests/meson.build. */
static bool family_is_6(void)
{
    const char *family = getenv("NJ_TEST_FAMILY");
    return family && strcmp(family, "6") == 0;
}

uint8_t nj_dsl_byte(uint32_t position, bool from_peer)
{
    return (uint8_t)(position * 31 + (position >> 8) * 7 + (position >> 16) + from_peer * 0x55u);
}

uint16_t nj_dsl_default_mss(void)
{
    return family_is_6() ? 1220 : 536;
}

/* --- the wire -------------------------------------------------------------------------------- */

/* Parse emitted packets by our own parser, with checksums. */
static void arrive(struct world *w, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct nj_iface iface = peer_iface;
    struct nj_packet p;

    iface.addr[0].ip = ip->dst; /* for any address of the script */
    cr_assert_lt(w->n_out, DSL_OUT_MAX, "more segments than a test may emit");
    cr_assert_leq(m->pkt_len, w->tcp.cfg.mtu, "segment of %u bytes", m->pkt_len);
    nj_eth_prepend(m, &iface.mac, &our_mac,
                   nj_addr_is_v4(&ip->dst) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
    nj_packet_parse(&iface, m, &p);
    cr_assert_eq(p.kind, NJ_PACKET_TCP, "an emitted segment does not parse: %s",
                 p.kind == NJ_PACKET_DROP ? nj_counter_info[p.drop].name : "not TCP");

    struct dsl_out *o = &w->out[w->n_out++];
    o->seg = p.tcp;
    o->at = now;
    memcpy(o->data, rte_pktmbuf_mtod_offset(m, uint8_t *, p.tcp.payload_off), p.tcp.payload_bytes);
    if ((p.tcp.flags & NJ_TCP_SYN) && p.tcp.tuple.lport == w->tuple.rport &&
        nj_addr_eq(&ip->dst, &w->tuple.remote)) /* the one that the script plays now */
        w->iss = p.tcp.seq;
    o->rel_seq = p.tcp.seq - w->iss;
    o->rel_ack = p.tcp.ack - w->irs;
    for (uint32_t i = 0; i < p.tcp.payload_bytes; i++)
        cr_assert_eq(o->data[i], nj_dsl_byte(o->rel_seq - 1 + i, false),
                     "byte %u of our stream is wrong", o->rel_seq - 1 + i);
    if (p.tcp.opts.has_ts)
        w->last_tsval = p.tcp.opts.ts_val;
    rte_pktmbuf_free(m);
}

static void emit(void *ctx, struct rte_mbuf *m, const struct nj_ip_meta *ip, nj_ns now)
{
    struct world *w = ctx;
    struct rte_mbuf *piece;
    struct nj_cutter c;

    nj_ip_prepend(m, ip, IPPROTO_TCP, 0);
    if (!w->tcp.cfg.tx.tcp_csum) {
        arrive(w, m, ip, now);
        return;
    }
    cr_assert_leq(m->nb_segs, w->tcp.cfg.tx.tso_mbufs_max);
    w->n_cut += !!(m->ol_flags & RTE_MBUF_F_TX_TCP_SEG);
    for (const struct rte_mbuf *s = m; s; s = s->next)
        w->n_referred += !!RTE_MBUF_CLONED(s);
    nj_cutter_init(&c, m);
    while ((piece = nj_cutter_next(&c, w->rx_pool)))
        arrive(w, piece, ip, now);
    rte_pktmbuf_free(m);
}

static uint32_t room(void *ctx)
{
    return ((struct world *)ctx)->room;
}

/* --- life ------------------------------------------------------------------------------------ */

void nj_dsl_init(struct world *w, const struct dsl_options *options)
{
    static const struct dsl_options none;
    const struct dsl_options *o = options ? options : &none;
    struct nj_tx_offload tx = {.tso = false};

    memset(w, 0, sizeof *w);
    w->v6 = family_is_6();
    w->pool = nj_test_pool(o->pool_mbufs ? o->pool_mbufs : 512);
    w->rx_pool = nj_test_pool(RX_MBUFS);
    w->out = calloc(DSL_OUT_MAX, sizeof *w->out);
    w->room = 1000;
    w->now = 1000 * NJ_SEC;
    w->irs = o->irs ? o->irs : 5000;
    w->wnd = 65535;
    w->tuple = (struct nj_tuple){.rport = 40000, .lport = DSL_PORT};
    w->tuple.remote = w->tuple.local = peer_iface.addr[w->v6].ip;
    w->tuple.local.b[15] = 1;

    if (getenv("NJ_TEST_TSO") || o->tso_bytes_max)
        tx = (struct nj_tx_offload){.tcp_csum = true,
                                    .ip_csum = true,
                                    .tso = true,
                                    .tso_bytes_max = o->tso_bytes_max ? o->tso_bytes_max : 65415,
                                    .tso_mbufs_max =
                                        o->tso_mbufs_max ? o->tso_mbufs_max : NJ_TSO_MBUFS_MAX};

    struct nj_tcp_config c = {
        .tx = tx,
        .mp = w->pool,
        .counters = &w->counters,
        .flow_key = {{1}},
        .isn_key = {{2}},
        .seed = 3,
        .conns_max = o->conns_max ? o->conns_max : 8,
        .half_open_max = o->half_open_max ? o->half_open_max : 4,
        .time_wait_max = o->time_wait_max,
        .ecn = o->ecn,
        .mtu = (uint16_t)((o->mtu ? o->mtu : 1500) + (w->v6 ? DSL_V6_MORE : 0)),
        .time_wait = 60 * NJ_SEC,
        .cc = o->cc,
        .emit = emit,
        .room = room,
        .ctx = w,
    };
    cr_assert(nj_tcp_init(&w->tcp, &c, w->now));
    cr_assert(nj_tcp_listen(&w->tcp, &(struct nj_listener){.port = DSL_PORT}));
    if (o->has_iss) { /* it ticks every 4 us: some hour within five is the right one */
        uint32_t ahead = o->iss - nj__tcp_isn(&w->tcp, &w->tuple, w->now);
        w->now += ahead * (4 * NJ_US);
        nj_tcp_tick(&w->tcp, w->now);
    }
}

bool nj_dsl_mbufs_back(struct world *w)
{
    nj__mbuf_cache_drain(&w->tcp);
    return nj_test_pool_full(w->pool) && nj_test_pool_full(w->rx_pool);
}

static void check_accounts(struct world *w)
{
    uint64_t known =
        nj_dsl_count(w, NJ_C_rx_tcp) + nj_counters_sum_of_kind(&w->counters, NJ_KIND_RX_DROP);
    cr_assert_eq(known, w->n_fed, "%lu of %lu segments are accounted for", (unsigned long)known,
                 (unsigned long)w->n_fed);
    cr_assert_eq(w->tcp.tcbs.n_used, 0, "%u blocks leaked", w->tcp.tcbs.n_used);
    cr_assert_eq(w->tcp.syns.n_used, 0, "%u half-open ones leaked", w->tcp.syns.n_used);
    cr_assert_eq(w->tcp.time_waits.n_used, 0, "%u in TIME_WAIT", w->tcp.time_waits.n_used);
    cr_assert_eq(w->tcp.n_half_open, 0);
    cr_assert_eq(w->tcp.n_time_wait, 0);
    cr_assert_eq(w->tcp.wheel.n_timers, 0);
    cr_assert(nj_dsl_mbufs_back(w), "mbufs leaked");
}

/* A control block of the table, to go through all of them. */
static struct nj_tcb *any_block(struct world *w)
{
    for (uint32_t i = 0; i <= w->tcp.flows.mask; i++) {
        struct nj_tcb *t = nj_flow_tcb(nj_flow_at(&w->tcp.flows, i));
        if (t)
            return t;
    }
    return NULL;
}

void nj_dsl_fini(struct world *w)
{
    struct nj_tcb *t;

    nj_dsl_step(w);
    w->n_out = 0;
    nj_tcp_abort_all(&w->tcp, w->now);
    nj_dsl_step(w);
    while ((t = any_block(w))) { /* in TIME_WAIT, with a user */
        nj_tcp_abort(&w->tcp, t, w->now);
        nj_dsl_step(w);
    }
    nj_dsl_run(w, 2 * w->tcp.cfg.time_wait);
    check_accounts(w);
    nj_tcp_fini(&w->tcp);
    nj_test_pool_free(w->pool);
    nj_test_pool_free(w->rx_pool);
    free(w->out);
}

uint64_t nj_dsl_count(const struct world *w, nj_counter which)
{
    return nj_counter_read(&w->counters, which);
}

static struct nj_flow *find(struct world *w, const struct nj_tuple *tuple)
{
    return nj_flow_find(&w->tcp.flows, nj_flow_hash(&w->tcp.flows, tuple), tuple);
}

struct nj_flow *nj_dsl_flow(struct world *w)
{
    return find(w, &w->tuple);
}

struct nj_tcb *nj_dsl_find(struct world *w)
{
    return nj_flow_tcb(nj_dsl_flow(w));
}

enum nj_tcp_state nj_dsl_state(struct world *w)
{
    struct nj_flow *f = nj_dsl_flow(w);

    if (!f)
        return NJ_TCP_CLOSED;
    if (f->kind == NJ_FLOW_SYN)
        return NJ_TCP_SYN_RECEIVED;
    return f->kind == NJ_FLOW_TIME_WAIT ? NJ_TCP_TIME_WAIT
                                        : (enum nj_tcp_state)nj_flow_tcb(f)->state;
}

/* --- the peer -------------------------------------------------------------------------------- */

static uint8_t n_blocks(const struct dsl_seg *s)
{
    uint8_t n = 0;
    while (n < NJ_SACK_BLOCKS_MAX && s->sack[n].first != s->sack[n].end)
        n++;
    return n;
}

void nj_dsl_feed(struct world *w, const struct dsl_seg *s)
{
    uint8_t data[DSL_DATA];
    struct nj_seg seg = {
        .tuple = w->tuple,
        .seq = w->irs + s->seq,
        .ack = s->flags & NJ_TCP_ACK ? w->iss + s->ack : 0,
        .wnd = s->no_wnd ? 0
               : s->wnd  ? s->wnd
                         : w->wnd,
        .flags = s->flags | (s->ecn_syn ? NJ_TCP_ECE | NJ_TCP_CWR : 0),
        .payload_bytes = s->len,
        .ecn = s->ecn,
        .opts = {.has_mss = s->mss != 0,
                 .mss = s->mss,
                 .has_wscale = s->wscale_p1 != 0,
                 .wscale = (uint8_t)(s->wscale_p1 ? s->wscale_p1 - 1 : 0),
                 .has_ts = (w->ts || s->ts) && !s->no_ts,
                 .sack_permitted = s->sack_ok},
    };
    for (uint8_t i = 0; i < n_blocks(s); i++)
        seg.opts.sack[seg.opts.n_sack++] =
            (struct nj_sack_block){w->iss + s->sack[i].first, w->iss + s->sack[i].end};
    if (s->port)
        seg.tuple.lport = s->port;
    if (seg.opts.has_ts) {
        seg.opts.ts_val = s->tsval ? s->tsval : (uint32_t)(w->now / NJ_MS);
        seg.opts.ts_ecr = s->tsecr ? s->tsecr : w->last_tsval;
    }
    uint32_t first = s->seq + !!(s->flags & NJ_TCP_SYN) - 1;
    cr_assert_leq(s->len, DSL_DATA);
    for (uint32_t i = 0; i < s->len; i++)
        data[i] = nj_dsl_byte(first + i, true) ^ s->flip;

    struct rte_mbuf *m = nj_test_mbuf(w->rx_pool, data, s->len);
    cr_assert_not_null(m);
    w->n_fed++;
    nj_tcp_input(&w->tcp, find(w, &seg.tuple), m, &seg, w->now);
}

struct dsl_out *nj_dsl_take(struct world *w)
{
    return w->next_out < w->n_out ? &w->out[w->next_out++] : NULL;
}

static void say(const char *what, uint8_t flags, uint32_t seq, uint32_t ack, uint32_t len)
{
    fprintf(stderr, "%s %s%s%s%s%s%s seq %u ack %u len %u\n", what, flags & S ? "S" : "",
            flags & F ? "F" : "", flags & R ? "R" : "", flags & P ? "P" : "", flags & A ? "A" : "",
            flags & NJ_TCP_ECE ? "E" : "", seq, ack, len);
}

static void expect_blocks(const struct world *w, const struct nj_tcp_opts *o,
                          const struct dsl_seg *s, int line)
{
    bool same = o->n_sack == n_blocks(s);

    for (uint8_t i = 0; same && i < o->n_sack; i++)
        same = o->sack[i].first - w->irs == s->sack[i].first &&
               o->sack[i].end - w->irs == s->sack[i].end;
    if (same)
        return;
    for (uint8_t i = 0; i < o->n_sack; i++)
        fprintf(stderr, "block %u - %u\n", o->sack[i].first - w->irs, o->sack[i].end - w->irs);
    cr_assert(false, "line %d: other SACK blocks were sent", line);
}

struct dsl_out *nj_dsl_expect(struct world *w, const struct dsl_seg *s, int line)
{
    struct dsl_out *o = nj_dsl_take(w);

    if (!o) {
        say("wanted", s->flags, s->seq, s->ack, s->len);
        cr_assert(false, "line %d: nothing was sent", line);
    }
    const struct nj_seg *g = &o->seg;
    uint8_t ignored = NJ_TCP_PSH | (s->ecn_syn ? NJ_TCP_ECE : 0);
    bool same = (g->flags & ~ignored) == s->flags && o->rel_seq == s->seq &&
                g->payload_bytes == s->len && (!(s->flags & A) || o->rel_ack == s->ack);
    if (!same) {
        say("wanted", s->flags, s->seq, s->ack, s->len);
        say("was   ", g->flags, o->rel_seq, o->rel_ack, g->payload_bytes);
        cr_assert(false, "line %d: another segment was sent", line);
    }
    if (w->sack)
        expect_blocks(w, &g->opts, s, line);
    if (s->wnd)
        cr_assert_eq(g->wnd, s->wnd, "line %d: window %u, wanted %u", line, g->wnd, s->wnd);
    return o;
}

void nj_dsl_nothing(struct world *w, int line)
{
    struct dsl_out *o = nj_dsl_take(w);
    if (!o)
        return;
    say("was   ", o->seg.flags, o->rel_seq, o->rel_ack, o->seg.payload_bytes);
    cr_assert(false, "line %d: a segment was sent", line);
}

/* --- the user -------------------------------------------------------------------------------- */

void nj_dsl_read(struct world *w, uint32_t n_bytes)
{
    const uint8_t *data;
    uint32_t n;

    while (n_bytes > 0 && (n = nj_tcp_recv_peek(w->tcb, &data)) > 0) {
        if (n > n_bytes)
            n = n_bytes;
        for (uint32_t i = 0; i < n; i++)
            cr_assert_eq(data[i], nj_dsl_byte(w->n_read + i, true),
                         "byte %u of the peer's stream is wrong", w->n_read + i);
        nj_tcp_recv_take(&w->tcp, w->tcb, n);
        w->n_read += n;
        n_bytes -= n;
    }
}

static void user_turn(struct world *w)
{
    struct nj_tcb *t;
    uint8_t events;

    while ((t = nj_tcp_next_ready(&w->tcp.ready, &events))) {
        t->user = w;
        if (events & NJ_TCP_EV_DEAD) {
            if (t == w->tcb) {
                w->tcb = NULL;
                w->dead = true;
                w->events |= events;
            }
            nj_tcp_release(&w->tcp, t, w->now);
            continue;
        }
        if ((events & NJ_TCP_EV_OPENED) && t != w->tcb) {
            w->tcb = t;
            w->events = 0;
            w->dead = false;
            w->n_read = w->n_written = 0;
        }
        w->events |= events;
        if ((events & NJ_TCP_EV_READABLE) && !w->no_read)
            nj_dsl_read(w, UINT32_MAX);
    }
}

void nj_dsl_step(struct world *w)
{
    nj_tcp_tick(&w->tcp, w->now);
    user_turn(w);
    nj_tcp_output_pending(&w->tcp, w->now);
}

void nj_dsl_run(struct world *w, nj_ns duration)
{
    nj_ns end = w->now + duration;

    for (;;) {
        nj_ns next = nj_tcp_next_deadline(&w->tcp);
        if (next <= w->now)
            next = w->now + NJ_MS; /* something waits for mbufs or room */
        if (next >= end)
            break;
        w->now = next;
        nj_dsl_step(w);
    }
    w->now = end;
    nj_dsl_step(w);
}

void nj_dsl_write(struct world *w, uint32_t n_bytes)
{
    uint8_t data[4096];

    cr_assert_leq(n_bytes, nj_tcp_send_room(w->tcb));
    while (n_bytes > 0) {
        uint32_t n = n_bytes < sizeof data ? n_bytes : (uint32_t)sizeof data;
        for (uint32_t i = 0; i < n; i++)
            data[i] = nj_dsl_byte(w->n_written + i, false);
        cr_assert(nj_tcp_send_copy(&w->tcp, w->tcb, data, n));
        w->n_written += n;
        n_bytes -= n;
    }
}

void nj_dsl_close(struct world *w)
{
    nj_tcp_close(&w->tcp, w->tcb, w->now);
}

void nj_dsl_abort(struct world *w)
{
    nj_tcp_abort(&w->tcp, w->tcb, w->now);
}

void nj_dsl_release(struct world *w)
{
    struct nj_tcb *t = w->tcb;
    w->tcb = NULL;
    nj_tcp_release(&w->tcp, t, w->now);
}

/* --- openings -------------------------------------------------------------------------------- */

void nj_dsl_open_with(struct world *w, const struct dsl_seg *syn)
{
    struct dsl_seg s = *syn;
    s.flags = S;
    nj_dsl_feed(w, &s);
    nj_dsl_step(w);
    EXPECT(w, .flags = SA, .seq = 0, .ack = 1);
    w->ts = s.ts;
    w->sack = s.sack_ok;
    SEND(w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(w);
    STATE(w, ESTABLISHED);
    cr_assert_not_null(w->tcb);
}

void nj_dsl_open(struct world *w)
{
    nj_dsl_open_with(w, &(struct dsl_seg){.mss = 1460});
}

void nj_dsl_open_to(struct world *w, enum nj_tcp_state state)
{
    bool we_first = state == NJ_TCP_FIN_WAIT_1 || state == NJ_TCP_FIN_WAIT_2 ||
                    state == NJ_TCP_CLOSING || state == NJ_TCP_TIME_WAIT;

    nj_dsl_open(w);
    if (we_first) {
        CLOSE(w);
        EXPECT(w, .flags = FA, .seq = 1, .ack = 1);
        if (state == NJ_TCP_FIN_WAIT_2 || state == NJ_TCP_TIME_WAIT)
            SEND(w, .flags = A, .seq = 1, .ack = 2);
        if (state == NJ_TCP_CLOSING || state == NJ_TCP_TIME_WAIT) {
            SEND(w, .flags = FA, .seq = 1, .ack = state == NJ_TCP_CLOSING ? 1 : 2);
            EXPECT(w, .flags = A, .seq = 2, .ack = 2);
        }
    } else if (state != NJ_TCP_ESTABLISHED) {
        SEND(w, .flags = FA, .seq = 1, .ack = 1);
        EXPECT(w, .flags = A, .seq = 1, .ack = 2);
        if (state == NJ_TCP_LAST_ACK) {
            CLOSE(w);
            EXPECT(w, .flags = FA, .seq = 1, .ack = 2);
        }
    }
    NOTHING(w);
    cr_assert_eq(nj_dsl_state(w), state);
}
