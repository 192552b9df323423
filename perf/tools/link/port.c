/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* 16 MiB: one second of a 100 Mbit/s link, which has 8,000 packets per second. So the process may
 * be off its CPU for a second. */
#define SLOT_BYTES  2048u
#define SLOTS       8192u
#define BLOCK_BYTES (64u * 1024)
#define RING_BYTES  ((size_t)SLOT_BYTES * SLOTS)

static bool make_ring(struct nj_port *p)
{
    int version = TPACKET_V2, yes = 1;
    struct tpacket_req req = {.tp_block_size = BLOCK_BYTES,
                              .tp_block_nr = RING_BYTES / BLOCK_BYTES,
                              .tp_frame_size = SLOT_BYTES,
                              .tp_frame_nr = SLOTS};

    if (setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(p->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) ||
        setsockopt(p->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof yes) ||
        setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req))
        return false;
    p->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, p->fd, 0);
    return p->ring != MAP_FAILED;
}

bool nj_port_open(struct nj_port *p, const char *name)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

    *p = (struct nj_port){.name = name};
    to.sll_ifindex = (int)if_nametoindex(name);
    p->fd = to.sll_ifindex ? socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) : -1;
    /* bind() is last: before it no frame arrives. */
    return p->fd >= 0 && make_ring(p) && bind(p->fd, (struct sockaddr *)&to, sizeof to) == 0;
}

void nj_port_close(struct nj_port *p)
{
    munmap(p->ring, RING_BYTES);
    close(p->fd);
}

static struct tpacket2_hdr *slot(const struct nj_port *p)
{
    return (struct tpacket2_hdr *)(p->ring + (size_t)p->next * SLOT_BYTES);
}

bool nj_port_peek(struct nj_port *p, struct nj_port_frame *frame)
{
    struct tpacket2_hdr *h = slot(p);

    if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
        return false;
    frame->bytes = (const uint8_t *)h + h->tp_mac;
    frame->n_bytes = h->tp_len;
    frame->n_held = h->tp_snaplen;
    frame->stamp = h->tp_sec * NJ_SEC + h->tp_nsec;
    return true;
}

void nj_port_release(struct nj_port *p)
{
    __atomic_store_n(&slot(p)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    p->next = (p->next + 1) % SLOTS;
}

void nj_port_send(struct nj_port *p, const void *bytes, uint32_t n_bytes)
{
    if (send(p->fd, bytes, n_bytes, 0) != (ssize_t)n_bytes)
        p->send_failed++;
}

uint32_t nj_port_overruns(struct nj_port *p)
{
    struct tpacket_stats s = {0};
    socklen_t n = sizeof s;

    getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &s, &n);
    return s.tp_drops;
}
