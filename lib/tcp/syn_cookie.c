/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SYN cookies (RFC 4987 3.6): when the backlog is full, our initial sequence number is all that we
 * keep of a SYN, and the peer keeps it for us.
 *
 *      31                             4   3   2     0
 *      |  28 bits of the keyed hash   | age | MSS   |
 *
 * The hash is over the tuple, the peer's initial number, the period of 64 s in which the cookie was
 * made, and the low bits. `age` is the period modulo 2: a cookie is good in its own period and in
 * the next one, that is for 64 s to 128 s. So whoever has not seen our SYN-ACK and guesses opens a
 * connection with one segment in 2^28: with a million guesses per second after 268 s on the
 * average, as long as a flood goes on, and he does not learn which one it was.
 *
 * MSS is the place in a table. Window scale, SACK and ECN ride in the low six bits of the timestamp
 * that we send with it, and come back as its echo; they need no hash, for a peer that lies about
 * them lies about itself. Without timestamps there are none of them.
 *
 * How many SYN-ACKs were sent is not known either. It counts as one, as no time-out of ours repeats
 * a cookie: the initial window is that of RFC 6928.
 */
#include "tcp/seq.h"
#include "tcp/tcp_internal.h"
#include "telem/counters.h"

#define PERIOD    (64 * NJ_SEC)
#define MSS_BITS  3
#define AGE_BIT   (1u << MSS_BITS)
#define LOW_BITS  (2 * AGE_BIT - 1)
#define TS_BITS   6
#define TS_MASK   ((1u << TS_BITS) - 1)
#define TS_WSCALE 0x0fu
#define TS_NONE   0x0fu /* as the shift: 15 is none that can be */
#define TS_SACK   0x10u
#define TS_ECN    0x20u

/* Rounded down to one of these: what the standards fall back on, tunnels over Ethernet, Ethernet
 * with IPv6 and IPv4, jumbo frames. */
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

/* With the key of initial numbers; those hash the tuple alone, and SipHash tells inputs of another
 * length apart as it does other inputs. */
static uint32_t cookie(const struct nj_tcp *tcp, const struct nj_tuple *tuple, uint32_t irs,
                       uint32_t period, uint32_t mss_place)
{
    struct {
        struct nj_tuple tuple;
        uint32_t irs, period, mss_place;
    } in = {*tuple, irs, period, mss_place};
    uint32_t low = mss_place | (period & 1 ? AGE_BIT : 0);

    return ((uint32_t)nj_hash(&tcp->cfg.isn_key, &in, sizeof in) & ~LOW_BITS) | low;
}

/* Our timestamp, with `bits` in its low end: the last such one that is not in the future, so that
 * what we send later never looks old to the peer (RFC 7323 5.3). */
static uint32_t stamp(uint32_t ts_now, uint32_t bits)
{
    uint32_t ts = (ts_now & ~TS_MASK) | bits;
    return nj_seq_le(ts, ts_now) ? ts : ts - (TS_MASK + 1);
}

static uint32_t bits_of(const struct nj_bare *b, uint8_t wscale)
{
    uint32_t shift = wscale < 14 ? wscale : 14; /* RFC 7323 2.3 */
    return (b->flow.flags & NJ_BARE_WSCALE ? shift : TS_NONE) |
           (b->flow.flags & NJ_BARE_SACK ? TS_SACK : 0) |
           (b->flow.flags & NJ_BARE_ECN ? TS_ECN : 0);
}

bool nj__cookie_send(struct nj_tcp *tcp, const struct nj_seg *seg, nj_ns now)
{
    uint32_t mss = nj__tcp_peer_mss(tcp, &seg->tuple, &seg->opts);
    struct nj_bare b = {.flow = {.tuple = seg->tuple}};

    if (tcp->cfg.room(tcp->cfg.ctx) <= NJ_TCP_COOKIE_ROOM)
        return false;
    nj__syn_read(tcp, seg, &b);
    if (!(b.flow.flags & NJ_BARE_TS)) /* there is no place to remember them */
        b.flow.flags = 0;
    b.snd_nxt = cookie(tcp, &seg->tuple, seg->seq, (uint32_t)(now / PERIOD), mss_place(mss)) + 1;
    uint32_t ts_now = nj__tcp_clock_ms(now) + nj__tcp_ts_offset(tcp, &seg->tuple);
    if (!nj__syn_send_answer(tcp, &b, stamp(ts_now, bits_of(&b, seg->opts.wscale)), now))
        return false;
    tcp->cookie_at = now;
    nj_count(tcp->cfg.counters, NJ_C_tcp_cookie_sent);
    return true;
}

bool nj__cookie_expected(const struct nj_tcp *tcp, nj_ns now)
{
    return tcp->cookie_at != 0 && now / PERIOD - tcp->cookie_at / PERIOD < 2;
}

/* The options of the SYN, from what comes back. */
static void remember(const struct nj_tcp *tcp, const struct nj_seg *seg, uint32_t iss,
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
    uint32_t period = (uint32_t)(now / PERIOD);

    if ((period & 1) != !!(h.iss & AGE_BIT))
        period--;
    if (h.iss != cookie(tcp, &seg->tuple, h.irs, period, h.iss & (AGE_BIT - 1)))
        return nj__tcp_drop(a, DROP_RST, NJ_C_drop_tcp_cookie);
    if (tcp->draining)
        return nj__tcp_drop(a, DROP_RST, NJ_C_drop_tcp_draining);
    remember(tcp, seg, h.iss, &h);
    nj__tcp_ask_room(tcp, a);
    *t = nj__tcb_from_handshake(tcp, NULL, &seg->tuple, &h, now);
    if (!*t) /* what the peer sends next brings the cookie again */
        return nj__tcp_drop(a, DROP, NJ_C_drop_tcp_full);
    nj_count(tcp->cfg.counters, NJ_C_tcp_cookie_ok);
    return PASS;
}
