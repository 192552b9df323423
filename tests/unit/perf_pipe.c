/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated link of ./dev bench, in virtual time: the fate and the delay of each frame, to the
 * nanosecond. */
#include <criterion/criterion.h>

#include "pipe.h"

#define HEAD_BYTES 54u
#define DATA_BYTES 1446u /* a frame of 1500 bytes */
#define N_MANY     20000u

static struct nj_pipe pipe_;
static uint8_t frame[NJ_PIPE_FRAME_MAX];

static void start(const char *text)
{
    struct nj_pipe_spec spec;
    const char *wrong = nj_pipe_parse(&spec, text);

    cr_assert_null(wrong, "not understood: %s", wrong);
    cr_assert(nj_pipe_init(&pipe_, &spec, 7));
}

/* A TCP segment of IPv4 that carries `n_data` bytes from `seq` on. Returns the frame's length. */
static uint32_t segment(uint32_t seq, uint32_t n_data)
{
    memset(frame, 0, HEAD_BYTES);
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[16] = (uint8_t)((40 + n_data) >> 8);
    frame[17] = (uint8_t)(40 + n_data);
    frame[23] = 6;
    for (int i = 0; i < 4; i++)
        frame[38 + i] = (uint8_t)(seq >> (24 - 8 * i));
    frame[46] = 5 << 4;
    return HEAD_BYTES + n_data;
}

static void offer(uint32_t seq, uint32_t n_data, nj_ns at)
{
    uint32_t n_bytes = segment(seq, n_data);

    nj_pipe_offer(&pipe_, frame, n_bytes, at);
}

/* The sequence number of the next frame, which must leave at `at`, or -1 when none does. */
static int64_t take(nj_ns at)
{
    struct nj_pipe_frame *f = nj_pipe_take(&pipe_, at - 1);

    cr_expect_null(f, "left before %lu", (unsigned long)at);
    f = nj_pipe_take(&pipe_, at);
    if (!f)
        return -1;
    int64_t seq = f->bytes[38] << 24 | f->bytes[39] << 16 | f->bytes[40] << 8 | f->bytes[41];
    nj_pipe_done(&pipe_, f);
    return seq;
}

Test(perf_pipe, frames_wait_for_those_before_them)
{
    start("rate=12M,delay=5ms,queue=1M"); /* 1500 bytes take a millisecond */
    offer(1, DATA_BYTES, 0);
    offer(2, DATA_BYTES, 0);
    offer(3, DATA_BYTES, 10 * NJ_MS);
    cr_expect_eq(nj_pipe_due(&pipe_), 6 * NJ_MS);
    cr_expect_eq(take(6 * NJ_MS), 1);
    cr_expect_eq(take(7 * NJ_MS), 2);
    cr_expect_eq(take(16 * NJ_MS), 3);
    cr_expect_eq(nj_pipe_due(&pipe_), NJ_NEVER);
    nj_pipe_fini(&pipe_);
}

Test(perf_pipe, a_full_queue_drops_what_comes)
{
    start("rate=12M,queue=3000");
    for (uint32_t i = 0; i < 10; i++) /* one on the wire, two wait, and that is 3,000 */
        offer(i, DATA_BYTES, 1);
    cr_expect_eq(pipe_.stats.drop_queue, 7);
    cr_expect_eq(pipe_.stats.queue_bytes_max, 3000);
    offer(10, DATA_BYTES, 2 * NJ_MS + 1);
    cr_expect_eq(pipe_.stats.drop_queue, 7, "two have left");
    nj_pipe_fini(&pipe_);
}

Test(perf_pipe, picked_data_packets_are_dropped)
{
    start("delay=1us,drop=2+3");
    offer(1, 0, 0); /* an ACK is no data packet */
    for (uint32_t i = 1; i <= 4; i++)
        offer(i * 1000, 1000, 0);
    cr_expect_eq(take(NJ_US), 1);
    cr_expect_eq(take(NJ_US), 1000);
    cr_expect_eq(take(NJ_US), 4000);
    cr_expect_eq(take(NJ_US), -1);
    cr_expect_eq(pipe_.stats.drop_picked, 2);
    nj_pipe_fini(&pipe_);
}

Test(perf_pipe, the_tail_of_a_transfer_is_dropped_once)
{
    start("delay=10ms,tail=2:3500");
    for (uint32_t i = 0; i < 5; i++) /* 0, 1000, ... 3000, 4000: the last one is short */
        offer(i * 1000, i < 4 ? 1000 : 9, i);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_eq(take(10 * NJ_MS + i), i * 1000);
    cr_expect_null(nj_pipe_take(&pipe_, NJ_SEC));
    cr_expect_eq(pipe_.stats.drop_tail, 2);
    cr_expect_eq(pipe_.stats.tail_first, 4);
    cr_expect_eq(pipe_.stats.tail_last, pipe_.stats.new_data);
    offer(4000, 9, NJ_SEC); /* the probe passes, and so does the repair */
    offer(3000, 1000, NJ_SEC + 1);
    cr_expect_eq(take(NJ_SEC + 10 * NJ_MS), 4000);
    cr_expect_eq(take(NJ_SEC + 10 * NJ_MS + 1), 3000);
    nj_pipe_fini(&pipe_);
}

/* Which of many packets are lost, and how many. */
static uint32_t losses(const char *spec, bool with_acks, uint8_t lost[N_MANY])
{
    uint32_t n = 0;

    start(spec);
    for (uint32_t i = 0; i < N_MANY; i++) {
        uint64_t before = pipe_.stats.drop_loss;
        offer(i, 10, i);
        lost[i] = pipe_.stats.drop_loss != before;
        n += lost[i];
        if (with_acks)
            offer(i, 0, i);
        for (struct nj_pipe_frame *f; (f = nj_pipe_take(&pipe_, i));)
            nj_pipe_done(&pipe_, f);
    }
    nj_pipe_fini(&pipe_);
    return n;
}

Test(perf_pipe, loss_is_of_the_kth_packet_and_as_frequent_as_said)
{
    static uint8_t a[N_MANY], b[N_MANY];
    uint32_t n = losses("loss=0.03", false, a);

    cr_expect(n > 500 && n < 700, "%u of 20,000 is not 3 %%", n);
    cr_expect_eq(losses("loss=0.03,rate=1G,queue=16M", true, b), n);
    cr_expect_eq(memcmp(a, b, sizeof a), 0, "other parameters do not change the fates");
    cr_expect_gt(losses("loss=0.03,of=all", true, b), n - 1);
    cr_expect_eq(losses("loss=0", false, a), 0);
    cr_expect_eq(losses("loss=1", false, a), N_MANY);
}

Test(perf_pipe, bursts_have_their_mean_length)
{
    static uint8_t lost[N_MANY];
    uint32_t n = losses("burst=0.002:5", false, lost), bursts = 0;

    for (uint32_t i = 1; i < N_MANY; i++)
        bursts += lost[i] && !lost[i - 1];
    cr_expect(bursts > 20 && bursts < 60, "%u bursts", bursts);
    cr_expect(n > 3 * bursts && n < 7 * bursts, "%u losses in %u bursts", n, bursts);
}

Test(perf_pipe, reordered_and_duplicated)
{
    start("delay=1ms,reorder=1:2ms");
    offer(1, 10, 0);
    pipe_.spec.reorder = 0;
    pipe_.spec.duplicate = NJ_PIPE_ALWAYS;
    offer(2, 10, 5);
    cr_expect_eq(take(NJ_MS + 5), 2);
    cr_expect_eq(nj_pipe_due(&pipe_), NJ_MS + 5);
    struct nj_pipe_frame *again = nj_pipe_take(&pipe_, NJ_MS + 5);
    cr_assert_not_null(again);
    cr_expect_eq(again->bytes[41], 2);
    nj_pipe_done(&pipe_, again);
    cr_expect_eq(take(3 * NJ_MS), 1);
    nj_pipe_fini(&pipe_);
}

Test(perf_pipe, what_is_no_spec_is_said)
{
    struct nj_pipe_spec spec;
    static const char *const WRONG[] = {"rate",       "rate=",     "rate=5x", "loss=1.1",
                                        "loss=-1",    "burst=0.1", "drop=",   "drop=1+x",
                                        "tail=0:1",   "tail=65:1", "of=none", "delay=10",
                                        "delay=1e30s"};

    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        cr_expect_not_null(nj_pipe_parse(&spec, WRONG[i]), "%s", WRONG[i]);
    cr_expect_null(nj_pipe_parse(&spec, "rate=2.5M,queue=64K,delay=1.5ms,loss=0.5"));
    cr_expect_eq(spec.rate_bps, 2500000);
    cr_expect_eq(spec.queue_bytes, 65536);
    cr_expect_eq(spec.delay, 1500 * NJ_US);
    cr_expect_eq(spec.loss, NJ_PIPE_ALWAYS / 2);
}
