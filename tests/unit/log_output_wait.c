/* SPDX-License-Identifier: BSD-3-Clause */
/* The waits for outputs at the end of a process, when all of them are blocked. */
#include "log/output_wait.h"

#include <criterion/criterion.h>

#include "log/access_log.h"

Test(log_output_wait, all_waits_together)
{
    struct nj_output_wait w = {0};

    nj_ns access = nj_min_u32(nj_output_wait_left_ms(&w), NJ_ACCESS_STOP_MS) * NJ_MS;
    cr_expect_lt(access, 2 * NJ_SEC, "standard error has time left for its lines");
    nj_output_wait_add(&w, access);
    nj_ns log = nj_output_wait_left_ms(&w) * NJ_MS;
    cr_expect_eq(access + log, 2 * NJ_SEC);
    nj_output_wait_add(&w, log + NJ_MS); /* it was woken late */
    cr_expect_eq(nj_output_wait_left_ms(&w), 0);
}

Test(log_output_wait, an_output_that_is_not_blocked)
{
    struct nj_output_wait w = {0};

    cr_expect_eq(nj_output_wait_left_ms(&w), 2000);
    nj_output_wait_add(&w, 3 * NJ_MS);
    cr_expect_eq(nj_output_wait_left_ms(&w), 1997);
}
