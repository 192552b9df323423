/* SPDX-License-Identifier: BSD-3-Clause */
/* The SACK option of our ACKs: out-of-order segments (RFC 2018) and duplicates (RFC 2883). */
#include "base/prng.h"
#include "tcp/seq.h"

#include "support/tcp_dsl.h"

static void open_sack(struct world *w, bool ts)
{
    nj_dsl_init(w, NULL);
    nj_dsl_open_with(w, &(struct dsl_seg){.mss = 1460, .ts = ts, .sack_ok = true});
}

/* Sentence 38; RFC 2018 2: SACK-Permitted is in the SYN-ACK if the peer's SYN has it, and in no
 * other segment. */
Test(tcp_sack_option, permitted_in_syn_only)
{
    for (unsigned ok = 0; ok < 2; ok++) {
        struct world w;
        nj_dsl_init(&w, NULL);
        SEND(&w, .flags = S, .mss = 1460, .sack_ok = ok);
        cr_expect_eq(EXPECT(&w, .flags = SA, .ack = 1)->seg.opts.sack_permitted, ok);
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .sack_ok = !ok);
        SEND(&w, .flags = A, .seq = 101, .ack = 1, .len = 10);
        cr_expect_eq(EXPECT(&w, .flags = A, .seq = 1, .ack = 1)->seg.opts.n_sack, ok);
        nj_dsl_fini(&w);
    }
}

/* RFC 2018 4, example 1's mirror: a block grows with the data that follows it, and disappears with
 * the hole. */
Test(tcp_sack_option, one_hole)
{
    struct world w;
    open_sack(&w, false);
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{501, 1001}});
    SEND(&w, .flags = A, .seq = 1001, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{501, 1501}});
    SEND(&w, .flags = A, .seq = 401, .ack = 1, .len = 100);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{401, 1501}});
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 400);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1501);
    NOTHING(&w);
    nj_dsl_fini(&w);
}

/* Sentence 51; RFC 2018 4: the block that changed last is first, and the others follow by time of
 * change. There are at most four, or three with timestamps. Blocks that touch are merged. */
Test(tcp_sack_option, most_recent_first)
{
    for (unsigned ts = 0; ts < 2; ts++) {
        struct world w;
        open_sack(&w, ts);
        SEND(&w, .flags = A, .seq = 201, .ack = 1, .len = 100);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{201, 301}});
        SEND(&w, .flags = A, .seq = 601, .ack = 1, .len = 100);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{601, 701}, {201, 301}});
        SEND(&w, .flags = A, .seq = 401, .ack = 1, .len = 100);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{401, 501}, {601, 701}, {201, 301}});
        SEND(&w, .flags = A, .seq = 801, .ack = 1, .len = 100);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1,
               .sack = {{801, 901}, {401, 501}, {601, 701}, {ts ? 0 : 201, ts ? 0 : 301}});
        SEND(&w, .flags = A, .seq = 1001, .ack = 1, .len = 100);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1,
               .sack = {{1001, 1101}, {801, 901}, {401, 501}, {ts ? 0 : 601, ts ? 0 : 701}});
        SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 100); /* joins two */
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1,
               .sack = {{401, 701}, {1001, 1101}, {801, 901}, {ts ? 0 : 201, ts ? 0 : 301}});
        SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 200);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 301,
               .sack = {{401, 701}, {1001, 1101}, {801, 901}});
        SEND(&w, .flags = A, .seq = 301, .ack = 1, .len = 800);
        EXPECT(&w, .flags = A, .seq = 1, .ack = 1101, .sack = {{401, 701}});
        nj_dsl_fini(&w);
    }
}

/* Sentence 52; RFC 2883 4.1.1: a full duplicate below the cumulative ACK, reported once. */
Test(tcp_sack_option, duplicate_below_the_ack)
{
    struct world w;
    open_sack(&w, false);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1000);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001);
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001, .sack = {{501, 1001}});
    SEND(&w, .flags = A, .seq = 1501, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001, .sack = {{1501, 2001}});
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 500); /* RFC 2883 4.1.2 */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001, .sack = {{1, 501}, {1501, 2001}});
    SEND(&w, .flags = A, .seq = 2501, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001, .sack = {{2501, 3001}, {1501, 2001}});
    nj_dsl_fini(&w);
}

/* Sentence 52; RFC 2883 4.1.3, 4.2.2: a duplicate of bytes that are held is followed by the block
 * it is in. */
Test(tcp_sack_option, duplicate_in_a_held_block)
{
    struct world w;
    open_sack(&w, false);
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 500);
    SEND(&w, .flags = A, .seq = 1001, .ack = 1, .len = 500);
    SEND(&w, .flags = A, .seq = 2001, .ack = 1, .len = 500);
    w.next_out = w.n_out;
    SEND(&w, .flags = A, .seq = 1001, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{1001, 1501}, {501, 1501}, {2001, 2501}});
    SEND(&w, .flags = A, .seq = 901, .ack = 1, .len = 200); /* over the border of two mbufs */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{901, 1101}, {501, 1501}, {2001, 2501}});
    SEND(&w, .flags = A, .seq = 1401, .ack = 1, .len = 200); /* half of it is new */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{1401, 1501}, {501, 1601}, {2001, 2501}});
    SEND(&w, .flags = A, .seq = 1601, .ack = 1, .len = 500); /* and here the last fifth is not */
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{2001, 2101}, {501, 2501}});
    nj_dsl_fini(&w);
}

/* RFC 2883 4.2: the part of a segment that is old, or that the queue has already. */
Test(tcp_sack_option, partial_duplicate_in_order)
{
    struct world w;
    open_sack(&w, false);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1000);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1001);
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 1000);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1501, .sack = {{501, 1001}});
    SEND(&w, .flags = A, .seq = 2001, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1501, .sack = {{2001, 2501}});
    SEND(&w, .flags = A, .seq = 1501, .ack = 1, .len = 700);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 2501, .sack = {{2001, 2201}});
    cr_expect_eq(w.n_read, 2500);
    nj_dsl_fini(&w);
}

/* Sentence 53; RFC 2018 8: dropped data is no longer reported. */
Test(tcp_sack_option, reneging)
{
    struct world w;
    open_sack(&w, false);
    SEND(&w, .flags = A, .seq = 1001, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{1001, 1501}});
    SEND(&w, .flags = A, .seq = 3001, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{3001, 3501}, {1001, 1501}});
    cr_assert(nj__reasm_drop_last(&w.tcp, w.tcb));
    SEND(&w, .flags = A, .seq = 2001, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1, .sack = {{2001, 2501}, {1001, 1501}});
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 1000);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1501, .sack = {{2001, 2501}});
    SEND(&w, .flags = A, .seq = 1501, .ack = 1, .len = 1500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 3001, .sack = {{2001, 2501}});
    SEND(&w, .flags = A, .seq = 3001, .ack = 1, .len = 500);
    cr_expect_eq(w.n_read, 3500);
    nj_dsl_fini(&w);
}

/* Sentence 26; RFC 6691 2: with SACK blocks, too, a segment is not longer than the peer's MSS
 * allows. struct world checks each one against the MTU. A full segment is sent without blocks, a
 * short one with them. */
Test(tcp_sack_option, data_segments_leave_room)
{
    for (unsigned ts = 0; ts < 2; ts++) {
        struct world w;
        open_sack(&w, ts);
        for (uint32_t i = 1; i <= 4; i++)
            SEND(&w, .flags = A, .seq = 1 + i * 1000, .ack = 1, .len = 100);
        w.next_out = w.n_out;
        for (uint32_t short_by = 0; short_by < 40; short_by++) {
            uint32_t n = w.tcb->snd_mss - short_by, first = w.n_written + 1;
            uint32_t most = ts ? 3 : 4, want = short_by < 4 ? 0 : (short_by - 4) / 8;
            WRITE(&w, n);
            struct dsl_out *o = nj_dsl_take(&w);
            cr_assert(o && o->seg.payload_bytes == n);
            cr_expect_eq(o->seg.opts.n_sack, want < most ? want : most);
            NOTHING(&w);
            SEND(&w, .flags = A, .seq = 1, .ack = first + n);
        }
        nj_dsl_fini(&w);
    }
}

/* The D-SACK waits for a segment with room for it. */
Test(tcp_sack_option, duplicate_waits_for_room)
{
    struct world w;
    open_sack(&w, false);
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 100);
    nj_dsl_run(&w, 50 * MS);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 101);
    FEED(&w, .flags = A, .seq = 1, .ack = 1, .len = 200);
    WRITE(&w, 1460);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 201, .len = 1460);
    WRITE(&w, 100);
    EXPECT(&w, .flags = A, .seq = 1461, .ack = 201, .len = 100, .sack = {{1, 101}});
    nj_dsl_fini(&w);
}

/* Without SACK-permitted no blocks are sent. */
Test(tcp_sack_option, not_negotiated)
{
    struct world w;
    nj_dsl_init(&w, NULL);
    nj_dsl_open(&w);
    w.sack = true; /* check the blocks all the same */
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    SEND(&w, .flags = A, .seq = 501, .ack = 1, .len = 500);
    EXPECT(&w, .flags = A, .seq = 1, .ack = 1);
    nj_dsl_fini(&w);
}

/* --- random arrival -----------------------------------------------------------------------------
 */

#define SPAN 6000u

/* Blocks of the last segment that was sent: true, distinct, whole, the changed one first. */
static void check_report(struct world *w, const struct dsl_out *o, const uint8_t *held,
                         uint32_t seq, bool new_bytes)
{
    const struct nj_tcp_opts *opts = &o->seg.opts;
    uint32_t ack = o->rel_ack;

    for (uint32_t i = 0; i < opts->n_sack; i++) {
        uint32_t first = opts->sack[i].first - w->irs, end = opts->sack[i].end - w->irs;
        bool dup =
            i == 0 && (first < ack || (opts->n_sack > 1 && opts->sack[1].first - w->irs <= first &&
                                       opts->sack[1].end - w->irs >= end));
        cr_assert_lt(first, end);
        for (uint32_t b = first; b < end; b++)
            cr_assert(held[b], "byte %u was never received", b);
        if (dup)
            continue;
        cr_assert_gt(first, ack);
        cr_assert(!held[first - 1] && !held[end], "block %u - %u is not whole", first, end);
        for (uint32_t j = i + 1; j < opts->n_sack; j++)
            cr_assert_neq(opts->sack[i].first, opts->sack[j].first, "twice the same");
        if (i == 0 && new_bytes)
            cr_assert(first <= seq && seq < end, "the latest is not the first");
    }
}

/* Sentences 51 - 54, across the wrap of the sequence space, against an array of bytes. */
Test(tcp_sack_option, random_arrivals)
{
    const uint64_t seed = 0x5ac4;
    struct nj_prng r;
    static uint8_t held[SPAN + 2000];
    uint32_t n_reports = 0;

    nj_prng_init(&r, seed);
    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    for (unsigned run = 0; run < 60; run++) {
        struct world w;
        nj_dsl_init(&w, &(struct dsl_options){.irs = UINT32_MAX - nj_prng_below(&r, SPAN)});
        nj_dsl_open_with(&w, &(struct dsl_seg){.mss = 1460, .ts = run % 2, .sack_ok = true});
        memset(held, 0, sizeof held);
        while (w.n_read < SPAN - 700) {
            uint32_t next = w.n_read + 1, off = nj_prng_below(&r, 700);
            uint32_t seq = next + off > 100 ? next + off - 100 : next;
            uint32_t len = 1 + nj_prng_below(&r, 80);
            if (nj_prng_below(&r, 10) == 0)
                seq = next;
            bool spans = false, new_bytes = false, gap = false;
            for (uint32_t b = seq; b < seq + len; b++) {
                if (b >= next && !held[b]) {
                    spans |= gap; /* a second gap: the queue keeps the first piece only */
                    new_bytes = true;
                } else {
                    gap = new_bytes;
                }
            }
            if (spans)
                continue;
            for (uint32_t b = seq; b < seq + len; b++)
                held[b] = 1;
            SEND(&w, .flags = A, .seq = seq, .ack = 1, .len = len);
            struct dsl_out *o, *last = NULL;
            while ((o = nj_dsl_take(&w)))
                last = o;
            if (last)
                check_report(&w, last, held, seq, new_bytes && seq > w.n_read);
            n_reports += last && last->seg.opts.n_sack > 0;
            w.n_out = w.next_out = 0;
        }
        nj_dsl_fini(&w);
    }
    cr_expect_gt(n_reports, 1000);
}
