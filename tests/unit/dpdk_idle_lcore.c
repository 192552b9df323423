/* SPDX-License-Identifier: BSD-3-Clause */
/* When an lcore without work sleeps, and which events wake it. A pipe plays its receive queue. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "dpdk/idle_lcore.h"

#define NOW (10 * NJ_SEC)

struct bed {
    struct nj_wakeup waker;
    struct nj_idle_state idler;
    int ends[2];
    nj_ns now;
};

static void bed_make(struct bed *b, enum nj_idle mode, enum nj_rx_notify notify)
{
    cr_assert(nj_wakeup_open(&b->waker));
    cr_assert_eq(pipe(b->ends), 0);
    const struct nj_rx_source rx = {.notify = notify, .fd = b->ends[0]};
    nj_idle_init(&b->idler, mode, &b->waker, &rx, NULL);
    b->now = NOW;
}

static void bed_free(struct bed *b)
{
    nj_idle_fini(&b->idler);
    close(b->ends[0]);
    close(b->ends[1]);
    nj_wakeup_close(&b->waker);
}

/* Steps of 10 us without work until it is about to sleep: after 1 ms. */
static void arm_wakeup(struct bed *b)
{
    nj_ns began = b->now;

    while (!b->idler.armed && b->now < began + NJ_SEC) {
        nj_idle_wait(&b->idler, b->now, NJ_NEVER);
        b->now += 10 * NJ_US;
    }
    cr_assert(b->idler.armed);
    cr_expect(nj_wakeup_is_armed(&b->waker));
    cr_expect_geq(b->now - began, NJ_MS);
    cr_expect_leq(b->now - began, NJ_MS + 20 * NJ_US);
}

Test(dpdk_idle_lcore, it_polls_for_a_millisecond_however_long_a_step_takes)
{
    static const nj_ns steps[] = {200, 10 * NJ_US, 3 * NJ_MS};

    for (uint32_t k = 0; k < NJ_ARRAY_LEN(steps); k++) {
        struct bed b;
        uint32_t n = 1;
        bed_make(&b, NJ_IDLE_SLEEP, NJ_RX_FILE);
        nj_idle_wait(&b.idler, NOW, NJ_NEVER);
        for (; !b.idler.armed && n < 100000; n++)
            nj_idle_wait(&b.idler, NOW + n * steps[k], NJ_NEVER);
        uint32_t due = (uint32_t)(NJ_MS / steps[k]) + 1; /* the step in which 1 ms is over */
        cr_expect_eq(n, due > 16 ? due : 16, "%u steps", n);
        bed_free(&b);
    }
}

Test(dpdk_idle_lcore, a_packet_gets_it_up)
{
    struct bed b;

    bed_make(&b, NJ_IDLE_SLEEP, NJ_RX_FILE);
    arm_wakeup(&b);
    cr_assert_eq(write(b.ends[1], "p", 1), 1);
    nj_idle_wait(&b.idler, b.now, NJ_NEVER);
    cr_expect_not(b.idler.armed);
    cr_expect_not(nj_wakeup_is_armed(&b.waker));
    arm_wakeup(&b);
    bed_free(&b);
}

Test(dpdk_idle_lcore, others_get_it_up_and_it_looks_again_before_it_sleeps)
{
    static const enum nj_rx_notify all[] = {NJ_RX_NO_QUEUE, NJ_RX_POLLED, NJ_RX_FILE};

    for (uint32_t k = 0; k < NJ_ARRAY_LEN(all); k++) {
        struct bed b;
        bed_make(&b, NJ_IDLE_SLEEP, all[k]);
        arm_wakeup(&b);
        nj_wakeup_signal(&b.waker);
        cr_expect_not(nj_wakeup_is_armed(&b.waker));
        nj_idle_wait(&b.idler, b.now, NJ_NEVER);
        cr_expect(nj_wakeup_is_armed(&b.waker), "it returned at once, armed again");
        nj_idle_note_work(&b.idler);
        cr_expect_not(nj_wakeup_is_armed(&b.waker), "there was work");
        arm_wakeup(&b);
        bed_free(&b);
    }
}

Test(dpdk_idle_lcore, a_broken_file_is_polled_until_there_is_work)
{
    struct bed b;

    bed_make(&b, NJ_IDLE_SLEEP, NJ_RX_FILE);
    close(b.ends[1]); /* the end of the file: it is always readable */
    for (uint32_t k = 1; b.idler.n_spurious < k && k <= 8; k++) {
        arm_wakeup(&b);
        nj_idle_wait(&b.idler, b.now, NJ_NEVER);
        cr_expect_eq(b.idler.n_spurious, k);
    }
    arm_wakeup(&b);
    nj_idle_wait(&b.idler, b.now, NJ_NEVER);
    cr_expect(b.idler.armed, "it slept, and did not poll the file");
    nj_idle_note_work(&b.idler);
    arm_wakeup(&b);
    nj_idle_wait(&b.idler, b.now, NJ_NEVER);
    cr_expect_not(b.idler.armed, "it tries again");
    b.ends[1] = dup(b.ends[0]); /* for bed_free() */
    bed_free(&b);
}

Test(dpdk_idle_lcore, who_spins_never_lies_down)
{
    static const enum nj_idle modes[] = {NJ_IDLE_SPIN, NJ_IDLE_PAUSE};

    for (uint32_t k = 0; k < NJ_ARRAY_LEN(modes); k++) {
        struct bed b;
        bed_make(&b, modes[k], NJ_RX_FILE);
        for (uint32_t i = 0; i < 5000; i++)
            nj_idle_wait(&b.idler, NOW + i * 10 * NJ_US, NJ_NEVER);
        cr_expect_not(b.idler.armed);
        cr_expect_not(nj_wakeup_is_armed(&b.waker));
        bed_free(&b);
    }
}
