/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of packets: filter, bytes that are kept, tags. dpdk_shard_rings.c has what a device takes.
 */
#include <criterion/criterion.h>

#include <rte_mbuf.h>

#include "dpdk/packet_capture.h"
#include "support/addr.h"
#include "support/mbuf_env.h"

#define HEADERS 54u /* Ethernet, IPv4, TCP */

static struct nj_record_ring ring;
static struct nj_capture capture;
static struct rte_mempool *mp;

static void open_capture(const char *net, unsigned bits, uint32_t snaplen, uint64_t n_ring)
{
    mp = nj_test_pool(256);
    cr_assert(nj_record_ring_open(&ring, n_ring));
    capture = (struct nj_capture){.ring = &ring, .snaplen = snaplen};
    if (net)
        capture.of = (struct nj_net){addr(net), (uint8_t)bits};
}

static void close_capture(void)
{
    nj_record_ring_close(&ring);
    cr_expect(nj_test_pool_full(mp), "no mbuf is held");
}

/* A segment of TCP from 198.18.0.x to 198.18.0.1 with `n` bytes, numbered. */
static struct rte_mbuf *segment(uint8_t x, uint32_t n)
{
    uint8_t frame[1514] = {[12] = 8, 0,   0x45, [23] = 6, [26] = 198, 18,         0,
                           x,        198, 18,   0,        1,          [46] = 0x50};

    for (uint32_t i = 0; i < n; i++)
        frame[HEADERS + i] = (uint8_t)(i + 1);
    struct rte_mbuf *m = nj_test_mbuf(mp, frame, HEADERS + n);
    cr_assert(m);
    return m;
}

static const struct nj_captured *next(void)
{
    uint32_t n;
    const struct nj_captured *p = nj_record_ring_peek(&ring, &n);

    cr_assert(p);
    cr_assert_eq(n, offsetof(struct nj_captured, data) + p->n_kept);
    return p;
}

static void expect_none(void)
{
    uint32_t n;

    cr_expect_null(nj_record_ring_peek(&ring, &n));
}

static void receive(struct rte_mbuf *m)
{
    nj__capture_received(&capture, &m, 1);
    rte_pktmbuf_free(m);
}

Test(dpdk_packet_capture, headers_only)
{
    open_capture(NULL, 0, NJ_CAPTURE_HEADERS, 4096);
    receive(segment(2, 500));
    const struct nj_captured *p = next();
    cr_expect(p->n_kept == HEADERS && p->n_bytes == HEADERS + 500 && !p->is_sent && p->tsc > 0);
    nj_record_ring_take(&ring);
    expect_none();
    close_capture();
}

Test(dpdk_packet_capture, snaplen)
{
    static const uint32_t snaplens[] = {14, 60, 300, 400, 2000};

    for (uint32_t i = 0; i < 5; i++) {
        open_capture(NULL, 0, snaplens[i], 4096);
        receive(segment(2, 340));
        const struct nj_captured *p = next();
        cr_expect_eq(p->n_kept, nj_min_u32(snaplens[i], HEADERS + 340));
        for (uint32_t k = HEADERS; k < p->n_kept; k++)
            cr_expect_eq(p->data[k], (uint8_t)(k - HEADERS + 1));
        close_capture();
    }
}

Test(dpdk_packet_capture, segments_of_an_mbuf)
{
    open_capture(NULL, 0, 2000, 65536);
    for (uint32_t cut = 1; cut < 400; cut += 7) {
        struct rte_mbuf *m = segment(2, 340), *second = rte_pktmbuf_alloc(mp);
        uint32_t n = m->data_len - nj_min_u32(cut, m->data_len);
        if (n > 0)
            memcpy(rte_pktmbuf_append(second, (uint16_t)n),
                   rte_pktmbuf_mtod_offset(m, uint8_t *, cut), n);
        rte_pktmbuf_trim(m, (uint16_t)n);
        cr_assert_eq(rte_pktmbuf_chain(m, second), 0);
        receive(m);
        const struct nj_captured *p = next();
        cr_assert(p->n_kept == HEADERS + 340 && p->data[12] == 8 && p->data[29] == 2);
        for (uint32_t k = HEADERS; k < p->n_kept; k++)
            cr_assert_eq(p->data[k], (uint8_t)(k - HEADERS + 1));
        nj_record_ring_take(&ring);
    }
    close_capture();
}

Test(dpdk_packet_capture, filter)
{
    open_capture("198.18.0.0", 96 + 30, NJ_CAPTURE_HEADERS, 4096);
    receive(segment(2, 1));
    cr_expect_eq(next()->data[29], 2);
    nj_record_ring_take(&ring);
    capture.of = (struct nj_net){addr("198.18.0.8"), 128};
    receive(segment(2, 1));
    expect_none();
    receive(segment(8, 1));
    nj_record_ring_take(&ring);
    capture.of = (struct nj_net){addr("198.18.0.1"), 128}; /* the destination */
    receive(segment(8, 1));
    cr_expect_eq(next()->data[29], 8);
    receive(nj_test_mbuf(mp, "short", 5)); /* of nobody */
    nj_record_ring_take(&ring);
    expect_none();
    close_capture();
}

Test(dpdk_packet_capture, tag_that_the_device_handles)
{
    open_capture(NULL, 0, 2000, 4096);
    struct rte_mbuf *m = segment(2, 10);
    m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    m->vlan_tci = 0x0123;
    receive(m);
    const struct nj_captured *p = next();
    cr_expect(p->n_kept == HEADERS + 14 && p->n_bytes == HEADERS + 14);
    cr_expect(p->data[12] == 0x81 && p->data[13] == 0 && p->data[14] == 1 && p->data[15] == 0x23);
    cr_expect(p->data[16] == 8 && p->data[18] == 0x45 && p->data[HEADERS + 13] == 10);
    nj_record_ring_take(&ring);
    for (uint32_t n = 14; n < 20; n++) { /* cut in the tag */
        capture.snaplen = n;
        m = segment(2, 10);
        m->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
        receive(m);
        cr_expect(next()->n_kept == n && next()->data[12] == 0x81);
        nj_record_ring_take(&ring);
    }
    close_capture();
}

Test(dpdk_packet_capture, full_ring)
{
    open_capture(NULL, 0, 2000, 1024);
    for (uint32_t i = 0; i < 4; i++)
        receive(segment(2, 300)); /* each takes 400 bytes */
    cr_expect_eq(ring.n_lost, 2);
    nj_record_ring_take(&ring);
    nj_record_ring_take(&ring);
    expect_none();
    close_capture();
}
