/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP of a client, as simple as the link allows, which keeps the order and loses nothing: bytes are
 * acknowledged before the shard's next step. All hosts are behind the gateway of the link. */
#include <arpa/inet.h>

#include "base/assert.h"
#include "testing/testing_internal.h"
#include "wire/emit.h"

#define MSS        1460u
#define WINDOW     65535u
#define FIRST_SEQ  1000u
#define QUEUED_MAX 256u /* frames to the shard, before it takes some */

const struct rte_ether_addr nj__test_server_mac = {{2, 0, 0, 0, 0, 1}};
const struct rte_ether_addr nj__test_link_mac = {{2, 0, 0, 0, 0, 9}};

/* --- the link --------------------------------------------------------------------------------- */

static bool send_segment(const struct nj_test_client *c, uint32_t seq, uint8_t flags,
                         const void *data, uint32_t n)
{
    struct nj_test *t = c->t;
    struct rte_mbuf *m = rte_pktmbuf_alloc(t->rx_pool);

    if (!m)
        return false;
    char *to = rte_pktmbuf_append(m, (uint16_t)n);
    if (n > 0)
        memcpy(to, data, n);
    struct nj_tcp_emit e = {.tuple = c->tuple,
                            .seq = seq,
                            .ack = flags & NJ_TCP_ACK ? c->rcv_nxt : 0,
                            .wnd = WINDOW,
                            .flags = flags,
                            .opts = {.has_mss = flags & NJ_TCP_SYN, .mss = MSS}};
    nj_tcp_prepend(m, &e, &(struct nj_tx_offload){.tcp_csum = false});
    nj_ip_prepend(m, &(struct nj_ip_meta){.src = c->tuple.local, .dst = c->tuple.remote},
                  IPPROTO_TCP, 1);
    nj_eth_prepend(m, &nj__test_server_mac, &nj__test_link_mac, RTE_ETHER_TYPE_IPV4);
    if (t->n_in == t->in_max) {
        t->in_max = t->in_max ? 2 * t->in_max : QUEUED_MAX;
        t->in = nj__test_resize(t->in, t->in_max * sizeof t->in[0]);
    }
    t->in[t->n_in++] = m;
    return true;
}

uint32_t nj__test_link_rx(void *test, struct rte_mbuf **m, uint32_t n)
{
    struct nj_test *t = test;

    n = t->n_in < n ? (uint32_t)t->n_in : n;
    if (n == 0)
        return 0;
    memcpy(m, t->in, n * sizeof *m);
    t->n_in -= n;
    memmove(t->in, t->in + n, t->n_in * sizeof *m);
    return n;
}

/* There are no other shards. */
uint32_t nj__test_no_rx(void *test, struct rte_mbuf **m, uint32_t n)
{
    (void)test, (void)m, (void)n;
    return 0;
}

static void receive_data(struct nj_test_client *c, const struct nj_seg *seg, const uint8_t *frame)
{
    uint32_t old = c->rcv_nxt - seg->seq, n = seg->payload_bytes;

    c->ack_due |= n > 0 || (seg->flags & NJ_TCP_FIN);
    if ((int32_t)old < 0 || old > n)
        return; /* of a probe */
    nj__test_append(&c->in, frame + seg->payload_off + old, n - old);
    c->rcv_nxt += n - old;
    if (seg->flags & NJ_TCP_FIN) {
        c->rcv_nxt++;
        c->has_fin = true;
    }
}

static void receive(struct nj_test_client *c, const struct nj_seg *seg, const uint8_t *frame)
{
    if (seg->flags & NJ_TCP_RST) {
        c->is_dead = true;
        return;
    }
    c->peer_window = seg->wnd;
    c->snd_una = seg->ack;
    if (seg->flags & NJ_TCP_SYN) {
        c->is_connected = true;
        c->rcv_nxt = seg->seq + 1;
        c->ack_due = true;
    } else if (c->is_connected) {
        receive_data(c, seg, frame);
    }
}

static void deliver(struct nj_test *t, struct rte_mbuf *m)
{
    struct nj_packet p;
    const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

    NJ_ASSERT(m->nb_segs == 1);
    if (m->pkt_len < sizeof(struct rte_ether_hdr) + 20)
        return;
    memcpy(&t->link.addr[0].ip.b[12], frame + sizeof(struct rte_ether_hdr) + 16, 4);
    nj_packet_parse(&t->link, m, &p);
    if (p.kind != NJ_PACKET_TCP)
        return;
    for (struct nj_test_client *c = t->clients; c; c = c->next)
        if (c->tuple.lport == p.tcp.tuple.lport && !c->is_dead) {
            receive(c, &p.tcp, frame);
            return;
        }
}

uint32_t nj__test_link_tx(void *test, struct rte_mbuf **m, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        deliver(test, m[i]);
        rte_pktmbuf_free(m[i]);
    }
    return n;
}

/* --- a connection ----------------------------------------------------------------------------- */

void nj__test_tcp_open(struct nj_test_client *c)
{
    c->snd_nxt = c->snd_una = FIRST_SEQ;
    if (send_segment(c, c->snd_nxt, NJ_TCP_SYN, NULL, 0))
        c->snd_nxt++;
}

bool nj__test_tcp_flush(struct nj_test_client *c)
{
    bool any = false;

    if (c->is_dead || !c->is_connected)
        return false;
    while (c->out.n > 0 && c->t->n_in < QUEUED_MAX) {
        uint32_t flying = c->snd_nxt - c->snd_una;
        uint32_t room = flying < c->peer_window ? c->peer_window - flying : 0;
        uint32_t n = c->out.n < MSS ? (uint32_t)c->out.n : MSS;
        if (n > room || !send_segment(c, c->snd_nxt, NJ_TCP_ACK | NJ_TCP_PSH, c->out.p, n))
            break;
        c->snd_nxt += n;
        nj__test_consume(&c->out, n);
        c->ack_due = false;
        any = true;
    }
    if (c->ack_due && send_segment(c, c->snd_nxt, NJ_TCP_ACK, NULL, 0)) {
        c->ack_due = false;
        any = true;
    }
    if (c->has_fin && !c->ack_due) { /* the server has closed, and so does the client */
        send_segment(c, c->snd_nxt, NJ_TCP_ACK | NJ_TCP_FIN, NULL, 0);
        c->is_dead = any = true;
    }
    return any;
}

void nj__test_tcp_reset(struct nj_test_client *c)
{
    if (!c->is_dead)
        send_segment(c, c->snd_nxt, NJ_TCP_RST | NJ_TCP_ACK, NULL, 0);
    c->is_dead = true;
}
