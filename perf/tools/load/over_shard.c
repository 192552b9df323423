/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of a crowd over nightjar's TCP. */
#include "active.h"
#include "base/compiler.h"
#include "transport.h"
#include "wire/ip6.h"

static void on_events(struct nj_conns *conns, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    (void)conns;
    crowd_on_event(tcb->user, events, now); /* `user` is the first member of a client */
}

/* Of the same family, and link-local only toward a link-local address. */
static bool suits(const struct nj_addr *to, const struct nj_iface_addr *from)
{
    bool v4 = nj_addr_is_v4(to);

    return from->state == NJ_ADDR_READY && nj_addr_is_v4(&from->ip) == v4 &&
           (v4 || nj_ip6_is_link_local(&from->ip) == nj_ip6_is_link_local(to));
}

static bool connect_one(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;
    const struct nj_iface *iface = &c->shard->cfg.iface;
    const struct nj_addr *to = &c->o->to[c->to_next];
    uint32_t n = (uint32_t)(k - c->clients);

    k->user.on_events = on_events;
    k->tcb = NULL;
    for (uint32_t i = 0; !k->tcb && i < iface->n_addrs; i++) {
        const struct nj_iface_addr *from = &iface->addr[(n + i) % iface->n_addrs];
        if (suits(to, from))
            k->tcb = active_open(c->shard, &c->ports, &from->ip, to, c->o->port, &k->user, now);
    }
    return k->tcb;
}

static uint32_t room(const struct client *k)
{
    return nj_tcp_send_room(k->tcb);
}

static uint32_t send_some(struct client *k, const uint8_t *data, uint32_t n)
{
    n = nj_min_u32(n, room(k));
    return n > 0 && nj_tcp_send_copy(&k->crowd->shard->tcp, k->tcb, data, n) ? n : 0;
}

static uint32_t next(const struct client *k, const uint8_t **data)
{
    return nj_tcp_recv_peek(k->tcb, data);
}

static uint32_t peek(const struct client *k, uint32_t n, struct nj_tls_src *out, uint32_t n_max)
{
    struct nj_tcp_piece piece[NJ_RECV_MBUFS_MAX];
    uint32_t n_pieces =
        nj_tcp_recv_pieces(k->tcb, n, piece, nj_min_u32(n_max, NJ_ARRAY_LEN(piece)));

    for (uint32_t i = 0; i < n_pieces; i++)
        out[i] = (struct nj_tls_src){piece[i].p, piece[i].n_bytes};
    return n_pieces;
}

static void take(struct client *k, uint32_t n)
{
    nj_tcp_recv_discard(&k->crowd->shard->tcp, k->tcb, n);
}

static void close_one(struct client *k, nj_ns now)
{
    nj_tcp_close(&k->crowd->shard->tcp, k->tcb, now);
}

static void abort_one(struct client *k, nj_ns now)
{
    nj_tcp_abort(&k->crowd->shard->tcp, k->tcb, now);
}

static void release(struct client *k, nj_ns now)
{
    nj_tcp_release(&k->crowd->shard->tcp, k->tcb, now);
    k->tcb = NULL;
}

static uint32_t step(struct crowd *c, nj_ns now, bool idle)
{
    (void)idle;
    return nj_shard_step(c->shard, now);
}

static void end(struct crowd *c, nj_ns now)
{
    nj_tcp_abort_all(&c->shard->tcp, now); /* peers of open connections receive a reset */
    nj_shard_step(c->shard, now);
    nj_conns_end(&c->shard->conns);
}

const struct load_transport load_over_shard = {
    .connect = connect_one,
    .room = room,
    .send = send_some,
    .next = next,
    .peek = peek,
    .take = take,
    .close = close_one,
    .abort = abort_one,
    .release = release,
    .step = step,
    .end = end,
};
