/* SPDX-License-Identifier: BSD-3-Clause */
#include "telem/stage_cycles.h"

#include <criterion/criterion.h>

static uint64_t tsc;

static uint64_t cycles(void)
{
    return tsc;
}

static uint64_t spent(const struct nj_stages *s, enum nj_stage stage)
{
    return s->spent[stage];
}

/* A step in which each stage takes another time, and one runs within another. */
static void step(struct nj_stages *s, bool busy)
{
    nj_stages_begin_step(s);
    tsc += 1;
    nj_stage(s, NJ_STAGE_TCP);
    tsc += 10;
    enum nj_stage was = nj_stage(s, NJ_STAGE_H2);
    tsc += 100;
    nj_stage(s, was);
    tsc += 20;
    nj_stage(s, NJ_STAGE_TX);
    tsc += 1000;
    nj_stages_end_step(s, busy);
    tsc += 100000; /* between two steps */
}

Test(stages, one_step_in_so_many)
{
    struct nj_stages s = {.cycles = cycles};

    for (unsigned i = 0; i < 3 * NJ_STAGES_PERIOD; i++)
        step(&s, true);
    cr_expect_eq(s.n_measured, 3);
    cr_expect_eq(spent(&s, NJ_STAGE_RX), 3);
    cr_expect_eq(spent(&s, NJ_STAGE_TCP), 90);
    cr_expect_eq(spent(&s, NJ_STAGE_H2), 300);
    cr_expect_eq(spent(&s, NJ_STAGE_HANDLER), 0);
    cr_expect_eq(spent(&s, NJ_STAGE_TX), 3000);
}

Test(stages, idle_steps_do_not_count)
{
    struct nj_stages s = {.cycles = cycles};

    for (unsigned i = 0; i < 4 * NJ_STAGES_PERIOD; i++)
        step(&s, i >= 2 * NJ_STAGES_PERIOD);
    cr_expect_eq(s.n_measured, 2);
    cr_expect_eq(spent(&s, NJ_STAGE_H2), 200);
}

Test(stages, without_a_counter_nothing_is_measured)
{
    struct nj_stages s = {0};

    for (unsigned i = 0; i < 2 * NJ_STAGES_PERIOD; i++)
        step(&s, true);
    cr_expect_eq(s.n_measured, 0);
    cr_expect_eq(spent(&s, NJ_STAGE_TX), 0);
}
