/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run leaves behind: a line per event, a pcap file, and a hash of every packet. */
#include <inttypes.h>
#include <stdarg.h>

#include "sim.h"

static void mix_in(struct sim *sim, uint64_t word)
{
    struct nj_prng p = {.state = sim->log.hash ^ word};
    sim->log.hash = nj_prng_next(&p);
}

static void print_time(const struct sim *sim)
{
    nj_ns t = sim->now - sim->mix.start_at;
    printf("%4" PRIu64 ".%09" PRIu64 " ", t / NJ_SEC, t % NJ_SEC);
}

static void print_tcp(const struct nj_seg *s)
{
    static const char letters[] = "FSRPAU";

    printf(" %u > %u ", s->tuple.rport, s->tuple.lport);
    for (unsigned i = 0; letters[i]; i++)
        if (s->flags & 1u << i)
            putchar(letters[i]);
    printf(" seq %u ack %u wnd %u, %u bytes", s->seq, s->ack, s->wnd, s->payload_bytes);
}

static void print_frame(struct sim *sim, enum sim_side from, const struct rte_mbuf *m,
                        const char *fate)
{
    struct nj_packet p;

    print_time(sim);
    printf("%s", from == SIM_CLIENT ? "->" : "<-");
    nj_packet_parse(&nj_sim_iface[!from], m, &p);
    if (p.kind == NJ_PACKET_TCP)
        print_tcp(&p.tcp);
    else if (p.kind == NJ_PACKET_ARP)
        printf(" ARP %s", p.arp.request ? "request" : "reply");
    else
        printf(" other, %u bytes", m->pkt_len);
    printf(" %s\n", fate);
}

/* Classic pcap with nanoseconds. */
static void record(struct sim *sim, const uint8_t *bytes, uint32_t n_bytes)
{
    uint32_t head[4] = {(uint32_t)(sim->now / NJ_SEC), (uint32_t)(sim->now % NJ_SEC), n_bytes,
                        n_bytes};

    fwrite(head, sizeof head, 1, sim->log.pcap);
    fwrite(bytes, n_bytes, 1, sim->log.pcap);
}

FILE *nj_sim_pcap_open(const char *path)
{
    const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
    FILE *f = fopen(path, "wb");

    if (f)
        fwrite(head, sizeof head, 1, f);
    return f;
}

void nj_sim_log_frame(struct sim *sim, enum sim_side from, const struct rte_mbuf *m,
                      const uint8_t *bytes, const char *fate)
{
    mix_in(sim, sim->now << 1 | from);
    mix_in(sim, (uint64_t)m->pkt_len << 8 | (uint8_t)fate[0]);
    for (uint32_t i = 0; i < m->pkt_len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, m->pkt_len - i < 8 ? m->pkt_len - i : 8);
        mix_in(sim, word);
    }
    if (sim->log.trace)
        print_frame(sim, from, m, fate);
    if (sim->log.pcap)
        record(sim, bytes, m->pkt_len);
}

void nj_sim_log(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (!sim->log.trace)
        return;
    print_time(sim);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}
