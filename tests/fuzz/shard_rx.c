/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: a whole shard on arrays, with frames, time and a device that is full at times.
 *
 * The input is a list of operations, each one byte and its arguments; missing bytes at the end are
 * zero. Peers complete handshakes and acknowledge automatically, so that few bytes reach far:
 *   0 raw frame       u16 n, n bytes (u8 before: 1 = checksums verified by the device, 2 = from a
 *                     shard)
 *   1 connect         u8 peer (high bit: with the HTTP/2 preface)
 *   2 bytes in order  u8 peer, u8 n, n bytes
 *   3 segment         u8 peer, u8 flags, i8 offset from snd_nxt, i8 ack offset, u8 n, n bytes
 *   4 h2 frame        u8 peer, u8 type, u8 flags, u8 stream, u8 n, n bytes
 *   5 GET             u8 peer, u8 stream, u8 index of the path
 *   6 time            u8 n: n * n * 150 us
 *   7 device          u8 n: takes n more frames; 255 = unlimited
 *   8 window of peer  u8 peer, u8 n: n * 257 bytes
 *   9 switches        u8: 1 = slow files, 2 = no ARP replies, 4 = peer acknowledges nothing,
 *                         8 = drain, 16 = abort, 32 = rings full; u8 peer
 *  10 ARP             u8: 1 = request, u8 sender's last octet, u8 target's
 *  11 many steps      u8 n
 * The first byte of the input: 1 = one of two shards, 2 = steers only flow table misses, 4 = a
 * gateway, 8 = abort at the end, 16 = IPv6, 32 = routes, whose handlers read and write. The shard
 * steps after each operation, and the rig checks counters and bounds. At the end everything must be
 * released.
 */
#include <nightjar/handler.h>

#include "support/shard_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *p;
    size_t n;
};

static uint8_t u8(struct input *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

static const uint8_t *bytes(struct input *in, uint32_t *n)
{
    const uint8_t *p = in->p;
    *n = *n < in->n ? *n : (uint32_t)in->n;
    in->p += *n;
    in->n -= *n;
    return p;
}

static struct rig_peer *peer_of(struct rig *r, uint8_t k)
{
    return &r->peer[k % 8];
}

static void raw(struct rig *r, struct input *in)
{
    uint8_t how = u8(in);
    uint32_t n = (uint32_t)u8(in) << 8;
    n = (n | u8(in)) % 1515;
    const uint8_t *p = bytes(in, &n);
    struct rte_mbuf *m = nj_test_mbuf(r->rx_pool, p, n);
    if (!m)
        return;
    if (how & 1)
        m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    if ((how & 2) && r->s->cfg.n_shards > 1)
        r->steered[r->n_steered++] = m;
    else
        rig_queue(r, m);
}

static void connect_peer(struct rig *r, uint8_t k, uint16_t *port)
{
    struct rig_peer *p = peer_of(r, k);
    uint8_t *got = p->got, hello[128];

    *p = (struct rig_peer){.used = true, .got = got, .rcv_wnd = 65535};
    p->tuple = (struct nj_tuple){rig_addr(RIG_IP), rig_addr(RIG_PEER_IP), RIG_PORT, (*port)++};
    p->snd_nxt = 12345;
    rig_seg_mss(r, p, p->snd_nxt++, NJ_TCP_SYN, NULL, 0, 1460);
    for (int i = 0; i < 4; i++)
        rig_step(r);
    if (k & 0x80)
        rig_send(r, p, hello, rig_h2_hello(hello));
}

static void segment(struct rig *r, struct input *in)
{
    struct rig_peer p = *peer_of(r, u8(in));
    uint8_t flags = u8(in);
    uint32_t seq = p.snd_nxt + (uint32_t)(int8_t)u8(in);
    p.rcv_nxt += (uint32_t)(int8_t)u8(in);
    uint32_t n = u8(in);
    const uint8_t *payload = bytes(in, &n);
    if (p.used)
        rig_seg(r, &p, seq, flags, payload, n);
}

static void send_h2(struct rig *r, struct input *in)
{
    uint8_t buf[300], type, flags, stream;
    struct rig_peer *p = peer_of(r, u8(in));
    type = u8(in);
    flags = u8(in);
    stream = u8(in);
    uint32_t n = u8(in);
    const uint8_t *payload = bytes(in, &n);
    if (p->used)
        rig_send(r, p, buf, rig_h2(buf, type, flags, stream, payload, n));
}

/* ---- routes ---- */

static void echo(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view path = nj_request_plain_path(req);
    char some[100];
    int64_t n;

    NJ_CHECK(path.n_bytes > 0 && path.p[0] == '/');
    nj_response_write(resp, path.p, path.n_bytes);
    while ((n = nj_request_read(req, some, sizeof some)) > 0)
        nj_response_write(resp, some, (size_t)n);
}

static const struct nj_route all_routes[] = {
    {.path = "/r/*", .type = NJ_BLOCKING, .handle = echo},
    {.method = "GET", .path = "/r", .type = NJ_NON_BLOCKING, .handle = echo},
    {.path = "/", .type = NJ_EITHER, .handle = echo, .body_max_bytes = 50},
};

static const struct nj_routes *routes(void)
{
    static struct nj_routes *made;
    char why[128];

    if (!made)
        made = nj_routes_new(all_routes, NJ_ARRAY_LEN(all_routes), why, sizeof why);
    NJ_CHECK(made);
    return made;
}

/* ---- operations ---- */

static void get(struct rig *r, struct input *in)
{
    static const char *const paths[] = {"/", "/big", "/whole", "/dir",   "/absent", "/..",
                                        "x", "",     "/r",     "/%72/x", "//r//",   "/r/../x"};
    struct rig_peer *p = peer_of(r, u8(in));
    uint8_t stream = u8(in), which = u8(in);
    if (p->used)
        rig_get(r, p, stream, paths[which % NJ_ARRAY_LEN(paths)]);
}

static void switches(struct rig *r, struct input *in)
{
    uint8_t bits = u8(in);
    struct rig_peer *p = peer_of(r, u8(in));
    r->files_slow = bits & 1;
    r->no_arp = bits & 2;
    p->manual = bits & 4;
    r->forward_full = bits & 32;
    if (bits & 8)
        nj_conns_drain(&r->s->conns, r->now);
    if (bits & 16)
        nj_tcp_abort_all(&r->s->tcp, r->now);
}

static void arp(struct rig *r, struct input *in)
{
    uint8_t how = u8(in), from = u8(in), target = u8(in);
    struct rte_ether_addr mac = {{2, 0, 0, 0, 1, from}};
    if (rte_mempool_avail_count(r->rx_pool) > 0)
        rig_arp(r, how & 1, 0xc6120000 + from, how & 2 ? &mac : &rig_peer_mac, 0xc6120000 + target);
}

static void operate(struct rig *r, struct input *in, uint16_t *port)
{
    struct rig_peer *p;
    uint32_t n;

    switch (u8(in) % 12) {
    case 0:
        raw(r, in);
        break;
    case 1:
        connect_peer(r, u8(in), port);
        break;
    case 2:
        p = peer_of(r, u8(in));
        n = u8(in);
        const uint8_t *payload = bytes(in, &n);
        if (p->used)
            rig_send(r, p, payload, n);
        break;
    case 3:
        segment(r, in);
        break;
    case 4:
        send_h2(r, in);
        break;
    case 5:
        get(r, in);
        break;
    case 6:
        n = u8(in);
        r->now += n * n * 150 * NJ_US;
        break;
    case 7:
        n = u8(in);
        r->tx_room = n == 255 ? UINT32_MAX : n;
        break;
    case 8:
        p = peer_of(r, u8(in));
        p->rcv_wnd = u8(in) * 257u;
        p->ack_due = p->used;
        break;
    case 9:
        switches(r, in);
        break;
    case 10:
        arp(r, in);
        break;
    default:
        for (n = u8(in) % 32; n > 0; n--)
            rig_step(r);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rig *r; /* creating pools is slow */
    struct input in = {data, size};
    uint16_t port = 1000;

    if (!r)
        r = rig_alloc(2048, 2048);
    for (int i = 0; i < RIG_PEERS; i++) {
        uint8_t *got = r->peer[i].got;
        r->peer[i] = (struct rig_peer){.got = got || i >= 8 ? got : malloc(RIG_GOT_MAX)};
    }
    r->now = 1000 * NJ_SEC;
    r->tx_room = UINT32_MAX;
    r->n_out = 0;
    r->no_arp = r->forward_full = r->files_slow = false;
    struct nj_shard_config c = rig_config(r);
    c.conns_max = 6;
    c.half_open_max = 4;
    uint8_t how = u8(&in);
    if (how & 1) {
        c.n_shards = 2;
        c.steering = how & 2 ? NJ_STEER_ON_MISS : NJ_STEER_ALWAYS;
    }
    c.iface.has_gateway = how & 4;
    c.iface.gateway = rig_addr(RIG_PEER_IP);
    c.iface.ip6 = c.slaac = how & 16;
    if (how & 16)
        c.iface.addr[c.iface.n_addrs++] =
            (struct nj_iface_addr){{{0x20, 1, 0x0d, 0xb8, [15] = 2}}, 64, 0};
    if (how & 32)
        c.conns.routes = routes();
    rig_new_with(r, &c);
    for (uint32_t n_ops = 0; in.n > 0 && n_ops < 2000; n_ops++) {
        operate(r, &in, &port);
        rig_step(r);
        (void)nj_shard_next_at(r->s);
    }
    if (how & 8) {
        nj_tcp_abort_all(&r->s->tcp, r->now);
        r->files_slow = false;
        for (int i = 0; i < 200; i++)
            rig_step(r);
        NJ_CHECK(nj_tcp_conns(&r->s->tcp) == 0 || r->n_in > 0);
    }
    rig_end(r);
    return 0;
}
