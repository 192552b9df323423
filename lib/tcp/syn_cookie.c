/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SYN cookies (RFC 4987 3.6): when the backlog is full, the state of a SYN is encoded in our
 * initial sequence number, and the peer's ACK returns it.
 *
 *      31                             4   3   2     0
 *      |  28 bits of the keyed hash   | age | MSS   |
 *
 * The hash covers the tuple, the peer's initial number, the period of 64 s in which the cookie was
 * made, and the low bits. `age` is the period modulo 2: a cookie is valid in its own period and in
 * the next one, for 64 s to 128 s. A blind attacker succeeds with one segment in 2^28: with a
 * million guesses per second, after 268 s on average, and only while cookies are being sent. The
 * attacker does not learn which guess succeeded.
 *
 * MSS is an index in a table. Window scale, SACK and ECN are encoded in the low six bits of our
 * timestamp and return as its echo. They are not hashed, since a false value harms only the peer.
 * Without timestamps these options are off.
 *
 * The number of SYN-ACKs sent counts as one, since cookies are never retransmitted by time-out. So
 * the initial window is that of RFC 6928.
 */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters_tcp.h"

#define PERIOD    (64 * NJ_SEC)
#define MSS_BITS  3
#define AGE_BIT   (1u << MSS_BITS)
#define LOW_BITS  (2 * AGE_BIT - 1)
#define TS_BITS   6
#define TS_MASK   ((1u << TS_BITS) - 1)
#define TS_WSCALE 0x0fu
#define TS_NONE   0x0fu /* no window scale: 15 is not a valid shift */
#define TS_SACK   0x10u
#define TS_ECN    0x20u

/* The peer's MSS is rounded down to one of these: defaults of the RFCs, tunnels over Ethernet,
 * Ethernet with IPv6 and IPv4, jumbo frames. */
static const uint16_t mss_table[1 << MSS_BITS] = {
    NJ_TCP_MSS_MIN, 536, 1220, 1360, 1400, 1440, 1460, 8940,
};

static uint32_t mss_place(uint32_t mss)
{
    uint32_t i = NJ_ARRAY_LEN(mss_table) - 1;
    while (i > 0 && mss_table[i] > mss)
        i--;
    return i;
}

/* Uses the key of initial sequence numbers. Those hash only the tuple; SipHash includes the length
 * of its input, so the two never collide by construction. */
static uint32_t make_cookie(const struct nj_tcp *tcp, const struct nj_tuple *tuple, uint32_t irs,
                            uint32_t period, uint32_t mss_place)
{
    struct {
        struct nj_tuple tuple;
        uint32_t irs, period, mss_place;
    } in = {*tuple, irs, period, mss_place};
    uint32_t low = mss_place | (period & 1 ? AGE_BIT : 0);

    return ((uint32_t)nj_hash(&tcp->cfg.isn_key, &in, sizeof in) & ~LOW_BITS) | low;
}

/* The latest timestamp with `bits` at its low end that is not in the future. So later segments
 * never fail the peer's PAWS test (RFC 7323 5.3). */
static uint32_t timestamp_with(uint32_t ts_now, uint32_t bits)
{
    uint32_t ts = (ts_now & ~TS_MASK) | bits;
    return nj_seq_le(ts, ts_now) ? ts : ts - (TS_MASK + 1);
}

static uint32_t bits_of(const struct nj_minisock *b, uint8_t wscale)
{
    uint32_t shift = wscale < 14 ? wscale : 14; /* RFC 7323 2.3 */
    return (b->flow.flags & NJ_MINISOCK_WSCALE ? shift : TS_NONE) |
           (b->flow.flags & NJ_MINISOCK_SACK ? TS_SACK : 0) |
           (b->flow.flags & NJ_MINISOCK_ECN ? TS_ECN : 0);
}

bool nj__cookie_send(struct nj_tcp *tcp, const struct nj_seg *seg, nj_ns now)
{
    uint32_t mss = nj__tcp_peer_mss(tcp, &seg->tuple, &seg->opts);
    struct nj_minisock b = {.flow = {.tuple = seg->tuple}};

    if (tcp->cfg.room(tcp->cfg.ctx) <= NJ_TCP_COOKIE_TX_RESERVE)
        return false;
    nj__syn_parse(tcp, seg, &b);
    if (!(b.flow.flags & NJ_MINISOCK_TS)) /* the options cannot be encoded */
        b.flow.flags = 0;
    b.snd_nxt =
        make_cookie(tcp, &seg->tuple, seg->seq, (uint32_t)(now / PERIOD), mss_place(mss)) + 1;
    uint32_t ts_now = nj__tcp_ts_clock_ms(now) + nj__tcp_ts_offset_of_tuple(tcp, &seg->tuple);
    if (!nj__syn_send_synack(tcp, &b, timestamp_with(ts_now, bits_of(&b, seg->opts.wscale)), now))
        return false;
    tcp->cookie_at = now;
    nj_count(tcp->cfg.counters, NJ_C_tcp_cookie_sent);
    return true;
}

bool nj__cookie_is_expected(const struct nj_tcp *tcp, nj_ns now)
{
    return tcp->cookie_at != 0 && now / PERIOD - tcp->cookie_at / PERIOD < 2;
}

bool nj__cookie_is_valid(const struct nj_tcp *tcp, const struct nj_seg *seg, nj_ns now)
{
    uint32_t iss = seg->ack - 1, irs = seg->seq - 1, period = (uint32_t)(now / PERIOD);

    if ((period & 1) != !!(iss & AGE_BIT))
        period--;
    return iss == make_cookie(tcp, &seg->tuple, irs, period, iss & (AGE_BIT - 1));
}

/* Restore the options of the SYN from the ACK. */
static void restore_options(const struct nj_tcp *tcp, const struct nj_seg *seg, uint32_t iss,
                            struct nj_handshake *h)
{
    uint32_t bits = seg->opts.ts_ecr & TS_MASK;

    h->opts.has_mss = true;
    h->opts.mss = mss_table[iss & (AGE_BIT - 1)];
    if (!seg->opts.has_ts)
        return;
    h->opts.has_ts = true;
    h->opts.ts_val = seg->opts.ts_val;
    h->opts.has_wscale = (bits & TS_WSCALE) != TS_NONE;
    h->opts.wscale = bits & TS_WSCALE;
    h->opts.sack_permitted = bits & TS_SACK;
    h->ecn = tcp->cfg.ecn && (bits & TS_ECN);
}

enum nj_tcp_verdict nj__cookie_input(struct nj_tcp *tcp, struct nj_tcp_arrival *a,
                                     struct nj_tcb **t, nj_ns now)
{
    const struct nj_seg *seg = &a->seg;
    struct nj_handshake h = {.iss = seg->ack - 1, .irs = seg->seq - 1, .n_sent = 1};

    if (!nj__cookie_is_valid(tcp, seg, now))
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_cookie);
    if (tcp->draining)
        return nj__tcp_note_why(a, NJ_VERDICT_DROP_RST, NJ_C_drop_tcp_draining);
    restore_options(tcp, seg, h.iss, &h);
    nj__tcp_evict_if_nearly_full(tcp, a);
    *t = nj__tcb_new_syn_received(tcp, NULL, &seg->tuple, &h, now);
    if (!*t) /* the peer's next segment carries the cookie again */
        return nj__tcp_note_why(a, NJ_VERDICT_DROP, NJ_C_drop_tcp_full);
    nj_count(tcp->cfg.counters, NJ_C_tcp_cookie_ok);
    return NJ_VERDICT_PASS;
}
