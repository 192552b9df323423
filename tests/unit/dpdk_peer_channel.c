/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between two processes that share a port. */
#include <criterion/criterion.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk/peer_channel.h"
#include "shard/shard_env_ops.h"
#include "support/mbuf_env.h"

#define MANY 100000u /* small frames, more than a channel holds */

static void close_both(const int fd[2])
{
    close(fd[0]);
    close(fd[1]);
}

Test(dpdk_peer_channel, frames_arrive_whole_and_in_order)
{
    nj_test_eal();
    struct rte_mempool *mp = nj_test_pool(64);
    struct rte_mbuf *m[8];
    uint8_t bytes[1514];
    int fd[2];

    cr_assert(nj_peer_channel_open(fd));
    for (uint32_t i = 0; i < 5; i++) {
        memset(bytes, (int)i, sizeof bytes);
        struct rte_mbuf *out = nj_test_mbuf(mp, bytes, 60 + i * 300);
        cr_expect(nj_peer_channel_send(fd[0], out));
        rte_pktmbuf_free(out);
    }
    cr_assert_eq(nj_peer_channel_receive(fd[1], mp, m, 3), 3);
    cr_assert_eq(nj_peer_channel_receive(fd[1], mp, m + 3, 5), 2);
    for (uint32_t i = 0; i < 5; i++) {
        memset(bytes, (int)i, sizeof bytes);
        cr_expect_eq(m[i]->pkt_len, 60 + i * 300);
        cr_expect_eq(m[i]->data_len, m[i]->pkt_len);
        cr_expect_arr_eq(rte_pktmbuf_mtod(m[i], uint8_t *), bytes, m[i]->data_len);
        cr_expect(nj_is_from_peer_process(m[i]));
        rte_pktmbuf_free(m[i]);
    }
    cr_expect(nj_test_pool_full(mp));
    close_both(fd);
}

Test(dpdk_peer_channel, segments_are_joined_and_long_frames_dropped)
{
    nj_test_eal();
    struct rte_mempool *mp = nj_test_pool(64);
    struct rte_mbuf *m[2], *out = nj_test_mbuf(mp, "first ", 6),
                           *tail = nj_test_mbuf(mp, "second", 6);
    int fd[2];

    cr_assert(nj_peer_channel_open(fd));
    cr_assert_eq(rte_pktmbuf_chain(out, tail), 0);
    cr_expect(nj_peer_channel_send(fd[0], out));
    cr_assert_eq(nj_peer_channel_receive(fd[1], mp, m, 2), 1);
    cr_expect_arr_eq(rte_pktmbuf_mtod(m[0], char *), "first second", 12);
    rte_pktmbuf_free(m[0]);
    rte_pktmbuf_free(out);

    uint8_t message[16384] = {1};
    cr_assert_eq(send(fd[0], message, sizeof message, 0), sizeof message);
    cr_assert_eq(send(fd[0], message, 4, 0), 4, "without a frame");
    cr_assert_eq(send(fd[0], "\xff\0\0\0xyz", 7, 0), 7, "an impossible number");
    cr_expect_eq(nj_peer_channel_receive(fd[1], mp, m, 2), 0);
    cr_expect(nj_test_pool_full(mp));
    close_both(fd);
}

Test(dpdk_peer_channel, a_stripped_tag_is_kept)
{
    nj_test_eal();
    struct rte_mempool *mp = nj_test_pool(64);
    struct rte_mbuf *m = nj_test_mbuf(mp, "frame", 5), *got[1];
    int fd[2];

    cr_assert(nj_peer_channel_open(fd));
    for (int stripped = 0; stripped < 2; stripped++) {
        m->vlan_tci = stripped ? 77 : 0;
        m->ol_flags = stripped ? RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED : 0;
        cr_expect(nj_peer_channel_send(fd[0], m));
        cr_assert_eq(nj_peer_channel_receive(fd[1], mp, got, 1), 1);
        cr_expect_eq(got[0]->vlan_tci, m->vlan_tci);
        cr_expect_eq(got[0]->ol_flags, m->ol_flags);
        rte_pktmbuf_free(got[0]);
    }
    rte_pktmbuf_free(m);
    close_both(fd);
}

/* Two processes that both pass a frame on end after some turns. */
Test(dpdk_peer_channel, frames_are_passed_on_a_few_times)
{
    nj_test_eal();
    struct rte_mempool *mp = nj_test_pool(64);
    struct rte_mbuf *m = nj_test_mbuf(mp, "frame", 5), *next;
    uint32_t n = 0;
    int fd[2];

    cr_assert(nj_peer_channel_open(fd));
    while (nj_peer_channel_send(fd[n % 2], m)) {
        cr_assert_eq(nj_peer_channel_receive(fd[1 - n % 2], mp, &next, 1), 1);
        rte_pktmbuf_free(m);
        m = next;
        cr_assert_leq(++n, NJ_PEER_HOPS_MAX);
    }
    cr_expect_eq(n, NJ_PEER_HOPS_MAX);
    rte_pktmbuf_free(m);
    close_both(fd);
}

Test(dpdk_peer_channel, full_or_closed)
{
    nj_test_eal();
    struct rte_mempool *mp = nj_test_pool(64);
    struct rte_mbuf *m = nj_test_mbuf(mp, "frame", 5), *got[1];
    uint32_t n = 0;
    int fd[2];

    cr_assert(nj_peer_channel_open(fd));
    while (n < MANY && nj_peer_channel_send(fd[0], m))
        n++;
    cr_expect_lt(n, MANY);
    cr_expect_gt(n, 100);
    cr_expect_eq(nj_peer_channel_receive(fd[0], mp, got, 1), 0);
    close(fd[1]);
    cr_expect_not(nj_peer_channel_send(fd[0], m)); /* and no SIGPIPE */
    cr_expect_eq(nj_peer_channel_receive(fd[0], mp, got, 1), 0);
    cr_expect_not(nj_peer_channel_send(-1, m));
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(mp));
    close(fd[0]);
}

static bool is_neighbour_frame(struct rte_mempool *mp, uint16_t type, uint8_t next, uint8_t icmp,
                               bool tagged, size_t n)
{
    uint8_t f[14 + 4 + 40 + 8] = {0};
    size_t at = 12;

    if (tagged) {
        f[at] = 0x81;
        at += 4;
    }
    f[at] = (uint8_t)(type >> 8);
    f[at + 1] = (uint8_t)type;
    f[at + 2 + 6] = next;
    f[at + 2 + 40] = icmp;
    struct rte_mbuf *m = nj_test_mbuf(mp, f, n);
    bool is = nj_peer_channel_is_neighbour_frame(m);
    rte_pktmbuf_free(m);
    return is;
}

Test(dpdk_peer_channel, frames_of_neighbours)
{
    nj_test_eal();
    struct rte_mempool *mp = nj_test_pool(64);

    cr_expect(is_neighbour_frame(mp, 0x0806, 0, 0, false, 60));
    cr_expect(is_neighbour_frame(mp, 0x0806, 0, 0, true, 60));
    for (int type = 0; type < 256; type++)
        cr_expect_eq(is_neighbour_frame(mp, 0x86dd, 58, (uint8_t)type, type & 1, 66),
                     type >= 133 && type <= 137);
    cr_expect_not(is_neighbour_frame(mp, 0x86dd, 6, 135, false, 66));
    cr_expect_not(is_neighbour_frame(mp, 0x0800, 58, 135, false, 66));
    for (size_t n = 1; n < 14; n++)
        cr_expect_not(is_neighbour_frame(mp, 0x0806, 0, 0, false, n));
    cr_expect_not(is_neighbour_frame(mp, 0x86dd, 58, 135, false, 14 + 40), "cut");
}
