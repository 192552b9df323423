/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments of a script: sends them to the stack, and compares those of the stack. */
#include <stdarg.h>
#include <string.h>

#include "wire/packet.h"

#include "script/script.h"

/* --- in ----------------------------------------------------------------------------------------
 */

/* Converts script sequence numbers to live ones. Timestamps of the peer are unchanged; its echoes
 * are our timestamps, counted from the last known pair. */
static void to_live(const struct peer *peer, struct pkt *p)
{
    p->seq += p->is_icmp ? peer->local_off : peer->remote_off;
    if (p->flags & NJ_TCP_ACK)
        p->ack += peer->local_off;
    for (uint32_t i = 0; i < p->n_opts; i++) {
        struct opt *o = &p->opt[i];
        if (o->kind == OPT_TS && peer->ts_known)
            o->b = o->b - peer->ts_script + peer->ts_live;
        for (unsigned k = 0; k < o->n_sack; k++) {
            o->sack[k][0] += peer->local_off;
            o->sack[k][1] += peer->local_off;
        }
    }
}

void run_inbound(struct run *r, const struct event *e)
{
    uint8_t packet[SCRIPT_PACKET_MAX], payload[SCRIPT_PACKET_MAX];
    struct peer *peer = r->cur;
    struct pkt p = e->pkt;

    if (!p.is_icmp && (p.flags & NJ_TCP_SYN)) {
        if (!peer->remote_known) {
            peer->remote_off = r->s->remote_isn - p.seq;
            peer->remote_known = true;
        }
        if (!(p.flags & NJ_TCP_ACK) && (!peer->local_known || peer->last_syn != p.seq))
            peer->new_isn = true;
        peer->last_syn = p.seq;
    }
    uint32_t first = p.seq + !!(p.flags & NJ_TCP_SYN);
    for (uint32_t i = 0; i < p.n_bytes && !p.is_icmp; i++)
        payload[i] = run_byte(first + i, true);
    to_live(peer, &p);
    struct wire_ends ends = {run_addr(r->s, true), run_addr(r->s, false), peer->remote_port,
                             peer->local_port};
    size_t n = wire_build(packet, &p, &ends, payload);
    if (r->call.netdev_send(r->call.userdata, packet, n) != 0)
        script_fail(r->s, e->line, "the stack refused the packet");
}

/* --- out ---------------------------------------------------------------------------------------
 */

/* Converts live numbers to script numbers. */
static void to_script(const struct peer *peer, struct pkt *p)
{
    p->seq -= peer->local_off;
    if (p->flags & NJ_TCP_ACK)
        p->ack -= peer->remote_off;
    for (uint32_t i = 0; i < p->n_opts; i++) {
        for (unsigned k = 0; k < p->opt[i].n_sack; k++) {
            p->opt[i].sack[k][0] -= peer->remote_off;
            p->opt[i].sack[k][1] -= peer->remote_off;
        }
    }
}

static bool same_option(const struct script *s, const struct opt *a, const struct opt *b)
{
    if (a->kind != b->kind || a->n_bytes != b->n_bytes || a->n_sack != b->n_sack)
        return false;
    if (a->kind == OPT_WSCALE && s->foreign)
        return true;
    if (a->kind == OPT_TS) /* the value is up to the sender */
        return a->b == b->b;
    return a->a == b->a && memcmp(a->sack, b->sack, sizeof a->sack) == 0;
}

static bool is_padding(const struct opt *o)
{
    return o->kind == OPT_NOP || o->kind == OPT_EOL;
}

static uint32_t count_real(const struct pkt *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_opts; i++)
        n += !is_padding(&p->opt[i]);
    return n;
}

/* Without --strict_options only the set is compared: RFC 9293 leaves the order to the sender. */
static bool same_options(const struct script *s, const struct pkt *want, const struct pkt *got)
{
    bool strict = s->strict_options;

    if (want->any_opts)
        return true;
    if (strict ? want->n_opts != got->n_opts : count_real(want) != count_real(got))
        return false;
    for (uint32_t i = 0; i < want->n_opts; i++) {
        bool found =
            strict ? same_option(s, &want->opt[i], &got->opt[i]) : is_padding(&want->opt[i]);
        for (uint32_t k = 0; !strict && k < got->n_opts; k++)
            found |= same_option(s, &want->opt[i], &got->opt[k]);
        if (!found)
            return false;
    }
    return true;
}

static const char *difference(const struct script *s, const struct pkt *want, const struct pkt *got)
{
    uint8_t compared = s->foreign ? (uint8_t)~NJ_TCP_PSH : UINT8_MAX;

    if ((want->flags & compared) != (got->flags & compared))
        return "other flags";
    if (want->seq != got->seq || want->n_bytes != got->n_bytes)
        return "another place or length";
    if ((want->flags & NJ_TCP_ACK) && want->ack != got->ack)
        return "another ack";
    if (want->has_win && !s->foreign && want->win != got->win)
        return "another window";
    if (want->ecn >= 0 && want->ecn != got->ecn)
        return "another ECN field";
    if (want->urg != got->urg)
        return "another urgent pointer";
    if (!same_options(s, want, got))
        return "other options";
    return NULL;
}

static _Noreturn void NJ_PRINTF(6, 7)
    fail_segment(struct run *r, int line, const struct pkt *want, struct pkt *got, int64_t at_us,
                 const char *format, ...)
{
    char why[256], a[512] = "nothing", b[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    if (want)
        segment_print(want, a, sizeof a);
    if (want && !want->has_win)
        got->has_win = false; /* not compared */
    segment_print(got, b, sizeof b);
    script_fail(r->s, line, "%s\n    wanted: %s\n    got:    %s  at %.6f", why, a, b,
                (double)at_us / 1e6);
}

/* Waits for the next packet. False: none will follow. */
static bool receive(struct run *r, uint8_t *packet, size_t *n, int64_t *at_us)
{
    long long live_us = 0;

    *n = SCRIPT_PACKET_MAX;
    if (r->call.netdev_receive(r->call.userdata, packet, n, &live_us) != 0)
        *n = 0;
    *at_us = live_us - r->start_us;
    return *n > 0;
}

static void check_payload(struct run *r, int line, const struct pkt *got, const uint8_t *payload)
{
    uint32_t first = got->seq + !!(got->flags & NJ_TCP_SYN);

    for (uint32_t i = 0; i < got->n_bytes; i++)
        if (payload[i] != run_byte(first + i, false))
            script_fail(r->s, line, "byte %u of the stream is wrong: 0x%02x, not 0x%02x", first + i,
                        payload[i], run_byte(first + i, false));
}

static void learn_timestamp(struct peer *peer, const struct pkt *want, const struct pkt *got)
{
    for (uint32_t i = 0; i < want->n_opts; i++) {
        for (uint32_t k = 0; k < got->n_opts; k++) {
            if (want->opt[i].kind == OPT_TS && got->opt[k].kind == OPT_TS) {
                peer->ts_known = true;
                peer->ts_script = want->opt[i].a;
                peer->ts_live = got->opt[k].a;
            }
        }
    }
}

/* The next sent packet, in script numbers. */
static void next_segment(struct run *r, const struct event *e, struct pkt *got, int64_t *at_us)
{
    uint8_t packet[SCRIPT_PACKET_MAX];
    struct peer *peer = r->cur;
    const struct pkt *want = &e->pkt;
    char text[512];
    size_t n;

    if (!receive(r, packet, &n, at_us)) {
        segment_print(want, text, sizeof text);
        script_fail(r->s, e->line, "nothing was sent, and nothing will be\n    wanted: %s", text);
    }
    const char *wrong = wire_parse(packet, n, got);
    if (wrong)
        script_fail(r->s, e->line, "the sent packet is invalid: %s", wrong);
    if (peer->local_port == 0)
        peer->local_port = got->sport; /* active open: our side chose the port */
    if (peer->new_isn && (got->flags & NJ_TCP_SYN)) {
        peer->local_off = got->seq - want->seq;
        peer->local_known = true;
        peer->new_isn = false;
    }
    to_script(peer, got);
    if (got->sport != peer->local_port || got->dport != peer->remote_port)
        fail_segment(r, e->line, want, got, *at_us, "a segment of another connection (%u > %u)",
                     got->sport, got->dport);
    check_payload(r, e->line, got, packet + got->payload_off);
}

/* May `next` follow `all` in one segment of the script? As in packetdrill, all parts but the last
 * have the length of the first. */
static bool continues(const struct pkt *all, const struct pkt *next, uint32_t n_piece,
                      uint32_t n_wanted)
{
    const uint8_t ends = NJ_TCP_PSH | NJ_TCP_FIN;

    return next->seq == all->seq + all->n_bytes && next->n_bytes > 0 && next->ack == all->ack &&
           !(all->flags & ends) && (next->flags & ~ends) == all->flags && next->ecn == all->ecn &&
           (next->n_bytes == n_piece ||
            (next->n_bytes < n_piece && all->n_bytes + next->n_bytes == n_wanted));
}

/* Joins segments sent at the same time until they have the length in the script: scripts for
 * stacks with segmentation offload describe them as one. */
static void join(struct run *r, const struct event *e, struct pkt *all, int64_t at_us)
{
    uint32_t n_piece = all->n_bytes, n_wanted = e->pkt.n_bytes;
    struct pkt next;
    int64_t next_us;

    if (r->s->strict_segments || e->pkt.seq != all->seq)
        return;
    while (all->n_bytes > 0 && all->n_bytes < n_wanted) {
        next_segment(r, e, &next, &next_us);
        if (next_us != at_us || !continues(all, &next, n_piece, n_wanted))
            fail_segment(r, e->line, &e->pkt, &next, next_us,
                         "another segment was sent: another place or length, behind the first %u "
                         "bytes",
                         all->n_bytes);
        all->n_bytes += next.n_bytes;
        all->flags |= next.flags;
    }
}

void run_outbound(struct run *r, const struct event *e)
{
    const struct pkt *want = &e->pkt;
    struct pkt got;
    int64_t at_us;

    next_segment(r, e, &got, &at_us);
    join(r, e, &got, at_us);
    const char *wrong = difference(r->s, want, &got);
    if (wrong)
        fail_segment(r, e->line, want, &got, at_us, "another segment was sent: %s", wrong);
    run_check_time(r, e, at_us, "this segment");
    learn_timestamp(r->cur, want, &got);
}

/* At the end of the script: fails on sent packets that no line expects. Called last, because the
 * clock advances. */
void run_nothing_left(struct run *r)
{
    uint8_t packet[SCRIPT_PACKET_MAX];
    struct pkt got;
    size_t n;
    int64_t now_us = run_clock(r), at_us;

    if (r->s->open_end || !receive(r, packet, &n, &at_us) || at_us > now_us)
        return;
    const char *wrong = wire_parse(packet, n, &got);
    if (wrong)
        script_fail(r->s, r->s->line, "the last sent packet is invalid: %s", wrong);
    to_script(r->cur, &got);
    fail_segment(r, r->s->line, NULL, &got, at_us, "a segment that no line expects");
}
