/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet frames between two processes, by unix(7) sockets. They keep the order and the bounds of
 * frames, and the kernel bounds their memory. */
#include "dpdk/peer_channel.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "base/big_endian.h"
#include "shard/shard_env_ops.h"

/* Some 8,000 small frames or 3,000 full ones, with the kernel's overhead: the packets of several
 * milliseconds, while the other process is delayed. */
#define SNDBUF_BYTES (8 << 20)
#define PARTS_MAX    46u /* segments of the largest IP packet, reassembled from fragments */

/* Types of ICMPv6 messages (RFC 4861 4). */
#define ND_FIRST 133u
#define ND_LAST  137u

/* Before each frame, in host byte order: both processes are on the same host. */
struct head {
    uint8_t n_hops;
    uint8_t vlan_stripped; /* by the device: the frame has no tag, but vlan_tci */
    uint16_t vlan_tci;
};

static void grow_sndbuf(int fd)
{
    int room = SNDBUF_BYTES;

    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room); /* as large as allowed */
}

bool nj_peer_channel_open(int fd[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0)
        return false;
    grow_sndbuf(fd[0]);
    grow_sndbuf(fd[1]);
    return true;
}

bool nj_peer_channel_is_neighbour_frame(const struct rte_mbuf *m)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    uint32_t at = 2 * RTE_ETHER_ADDR_LEN, n = rte_pktmbuf_data_len(m);

    if (at + 2 <= n && nj_get_be16(p + at) == RTE_ETHER_TYPE_VLAN)
        at += sizeof(struct rte_vlan_hdr);
    if (at + 2 > n)
        return false;
    uint16_t type = nj_get_be16(p + at);
    const uint8_t *ip = p + at + 2;
    bool is_nd = type == RTE_ETHER_TYPE_IPV6 && at + 2 + sizeof(struct rte_ipv6_hdr) < n &&
                 ip[6] == IPPROTO_ICMPV6 && ip[sizeof(struct rte_ipv6_hdr)] >= ND_FIRST &&
                 ip[sizeof(struct rte_ipv6_hdr)] <= ND_LAST;
    return type == RTE_ETHER_TYPE_ARP || is_nd;
}

bool nj_peer_channel_send(int fd, const struct rte_mbuf *m)
{
    struct head head = {.n_hops = nj_is_from_peer_process(m) ? m->port & NJ_PEER_HOPS_MASK : 0,
                        .vlan_stripped = (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0,
                        .vlan_tci = m->vlan_tci};
    struct iovec part[1 + PARTS_MAX] = {{&head, sizeof head}};
    struct msghdr message = {.msg_iov = part, .msg_iovlen = 1};

    if (head.n_hops++ >= NJ_PEER_HOPS_MAX)
        return false;
    for (; m && message.msg_iovlen <= PARTS_MAX; m = m->next)
        part[message.msg_iovlen++] =
            (struct iovec){rte_pktmbuf_mtod(m, void *), rte_pktmbuf_data_len(m)};
    return !m && sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static void set_head(struct rte_mbuf *m, const struct head *head, uint32_t n_bytes)
{
    m->data_len = (uint16_t)n_bytes;
    m->pkt_len = n_bytes;
    m->port = (uint16_t)(NJ_PEER_PORT + head->n_hops);
    m->vlan_tci = head->vlan_tci;
    m->ol_flags = head->vlan_stripped ? RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED : 0;
}

uint32_t nj_peer_channel_receive(int fd, struct rte_mempool *pool, struct rte_mbuf **m, uint32_t n)
{
    uint32_t got = 0;

    while (got < n) {
        struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
        if (!frame)
            break; /* it waits in the channel */
        struct head head;
        struct iovec part[2] = {{&head, sizeof head},
                                {rte_pktmbuf_mtod(frame, void *), rte_pktmbuf_tailroom(frame)}};
        struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
        ssize_t n_bytes = recvmsg(fd, &message, MSG_DONTWAIT);
        if (n_bytes <= (ssize_t)sizeof head || message.msg_flags & MSG_TRUNC ||
            head.n_hops > NJ_PEER_HOPS_MAX) {
            rte_pktmbuf_free(frame);
            if (n_bytes <= 0)
                break; /* empty, or closed */
            continue;
        }
        set_head(frame, &head, (uint32_t)(n_bytes - (ssize_t)sizeof head));
        m[got++] = frame;
    }
    return got;
}
