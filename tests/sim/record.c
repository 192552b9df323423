/* SPDX-License-Identifier: BSD-3-Clause */
#include "record.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/prng.h"

static void mix_in(struct sim_record *r, uint64_t word)
{
    struct nj_prng p = {.state = r->hash ^ word};
    r->hash = nj_prng_next(&p);
}

static void print_time(const struct sim_record *r, nj_ns now)
{
    nj_ns t = now - r->zero;
    printf("%4" PRIu64 ".%09" PRIu64 " ", t / NJ_SEC, t % NJ_SEC);
}

static void print_opts(const uint8_t *bytes, const struct sim_raw *s)
{
    struct sim_raw_opts o;

    nj_sim_raw_opts(bytes, s, &o);
    if (o.mss_at)
        printf(" mss %u", o.mss);
    if (o.wscale_at)
        printf(" wscale %u", o.wscale);
    if (o.sack_ok_at)
        printf(" sackOK");
    if (o.ts_at)
        printf(" ts %u ecr %u", o.ts_val, o.ts_ecr);
    for (uint32_t i = 0; i < o.n_sack; i++)
        printf(" sack %u-%u", nj_sim_get32(bytes + o.sack_at + 2 + 8 * i),
               nj_sim_get32(bytes + o.sack_at + 6 + 8 * i));
}

static void print_tcp(const uint8_t *bytes, const struct sim_raw *s)
{
    static const char letters[] = "FSRPAUEC";

    printf(" %u > %u ", s->sport, s->dport);
    for (unsigned i = 0; letters[i]; i++)
        if (s->flags & 1u << i)
            putchar(letters[i]);
    printf(" seq %u ack %u wnd %u, %u bytes", s->seq, s->ack, s->wnd, s->n_data);
    print_opts(bytes, s);
}

static void print_frame(const struct sim_record *r, nj_ns now, unsigned from, const uint8_t *bytes,
                        uint32_t n_bytes, const char *fate)
{
    struct sim_raw s;

    print_time(r, now);
    printf("%s", from ? "->" : "<-");
    if (nj_sim_raw_parse(bytes, n_bytes, &s))
        print_tcp(bytes, &s);
    else if (n_bytes >= 22 && nj_sim_get16(bytes + 12) == 0x0806)
        printf(" ARP %s", nj_sim_get16(bytes + 20) == 1 ? "request" : "reply");
    else
        printf(" other, %u bytes", n_bytes);
    printf(" %s\n", fate);
}

/* Classic pcap format with nanoseconds. */
static void keep(const struct sim_record *r, nj_ns now, const uint8_t *bytes, uint32_t n_bytes)
{
    uint32_t head[4] = {(uint32_t)(now / NJ_SEC), (uint32_t)(now % NJ_SEC), n_bytes, n_bytes};

    fwrite(head, sizeof head, 1, r->pcap);
    fwrite(bytes, n_bytes, 1, r->pcap);
}

FILE *nj_sim_pcap_open(const char *path)
{
    const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
    FILE *f = fopen(path, "wb");

    if (f)
        fwrite(head, sizeof head, 1, f);
    return f;
}

void nj_sim_record_frame(struct sim_record *r, nj_ns now, unsigned from, const uint8_t *bytes,
                         uint32_t n_bytes, const char *fate)
{
    mix_in(r, now << 1 | from);
    mix_in(r, (uint64_t)n_bytes << 8 | (uint8_t)fate[0]);
    for (uint32_t i = 0; i < n_bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, n_bytes - i < 8 ? n_bytes - i : 8);
        mix_in(r, word);
    }
    if (r->trace)
        print_frame(r, now, from, bytes, n_bytes, fate);
    if (r->pcap)
        keep(r, now, bytes, n_bytes);
}

void nj_sim_record_begin(struct sim_record *r, uint64_t seed, nj_ns zero)
{
    r->hash = seed;
    r->zero = zero;
    r->failed = false;
}

static void print_line(const struct sim_record *r, nj_ns now, const char *format, va_list args)
{
    if (!r->trace)
        return;
    print_time(r, now);
    vprintf(format, args);
    putchar('\n');
}

void nj_sim_record_line(const struct sim_record *r, nj_ns now, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(r, now, format, args);
    va_end(args);
}

void nj_sim_record_fail(struct sim_record *r, nj_ns now, const char *format, ...)
{
    va_list args;

    if (r->failed)
        return;
    r->failed = true;
    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
    nj_sim_record_line(r, now, "FAILED: %s", r->why);
}
