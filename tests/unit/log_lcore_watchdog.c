/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog's lines about an lcore, and how often it writes them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "log/lcore_watchdog.h"

static struct nj_watchdog w;
static struct nj_watchdog_sample sample;
static char line[256];

static void begin(void)
{
    memset(&w, 0, sizeof w);
    sample = (struct nj_watchdog_sample){.lcore = 3};
}

/* The line of this check, "" for none. */
static const char *at(nj_ns now)
{
    return nj_watchdog_check_sample(&w, &sample, now, line, sizeof line) ? line : "";
}

/* EWYK 5.55: a task that has its core for too long is named. */
Test(log_lcore_watchdog, names_who_holds)
{
    begin();
    sample.route = "/slow";
    sample.since = 10 * NJ_SEC;
    cr_expect_str_eq(at(10 * NJ_SEC - 1), "", "it began after the clock was read");
    cr_expect_str_eq(at(10 * NJ_SEC + NJ_MS), "");
    cr_expect_str_eq(at(10 * NJ_SEC + 2500 * NJ_US),
                     "the handler of /slow has had lcore 3 for 2.5 ms");
    cr_expect_str_eq(at(10 * NJ_SEC + 10 * NJ_MS), "", "told of");
    cr_expect_str_eq(at(12 * NJ_SEC), "the handler of /slow has had lcore 3 for 2000.0 ms",
                     "it still has it");
}

/* EWYK 5.55: a long hold that ended between two checks is reported, too; once, and not if it was
 * named before. */
Test(log_lcore_watchdog, names_who_held)
{
    begin();
    cr_expect_str_eq(at(NJ_SEC), "");
    sample.ended = "/short";
    sample.ended_since = NJ_SEC + NJ_MS;
    sample.ended_ns = 3 * NJ_MS;
    cr_expect_str_eq(at(NJ_SEC + 20 * NJ_MS), "the handler of /short had lcore 3 for 3.0 ms");
    sample.ended_since = NJ_SEC + 25 * NJ_MS;
    cr_expect_str_eq(at(NJ_SEC + 40 * NJ_MS), "", "counted");
    sample.ended = NULL;
    sample.route = "/slow";
    sample.since = NJ_SEC + 50 * NJ_MS;
    cr_expect_str_eq(at(sample.since + 2 * NJ_MS),
                     "the handler of /slow has had lcore 3 for 2.0 ms "
                     "(and 1 others since the last such line)");
    sample.route = NULL;
    sample.ended = "/slow";
    sample.ended_since = sample.since;
    sample.loops++;
    cr_expect_str_eq(at(5 * NJ_SEC), "", "it was named while it lasted");
}

/* Of many holds in a second one line is written, with the number of those before it; each is
 * counted once. */
Test(log_lcore_watchdog, is_rate_limited)
{
    nj_ns now = NJ_SEC;

    begin();
    sample.route = "/a";
    for (int i = 0; i < 100; i++, now += 3 * NJ_MS) {
        sample.loops++;
        sample.since = now;
        cr_expect_str_eq(at(now + 2 * NJ_MS),
                         i == 0 ? "the handler of /a has had lcore 3 for 2.0 ms" : "");
        cr_expect_str_eq(at(now + 2 * NJ_MS + 1), "");
    }
    sample.route = "/b";
    sample.since = now = 3 * NJ_SEC;
    cr_expect_str_eq(at(now + 2 * NJ_MS), "the handler of /b has had lcore 3 for 2.0 ms (and 99 "
                                          "others since the last such line)");
    sample.since = now = 5 * NJ_SEC;
    cr_expect_str_eq(at(now + 2 * NJ_MS), "the handler of /b has had lcore 3 for 2.0 ms");
}

/* EWYK 5.19: an lcore whose loop does not return is detected, for any cause. */
Test(log_lcore_watchdog, sees_an_lcore_that_stands)
{
    begin();
    for (nj_ns now = NJ_SEC; now < 5 * NJ_SEC; now += 20 * NJ_MS) {
        sample.loops++;
        cr_expect_str_eq(at(now), "");
    }
    cr_expect_str_eq(at(5 * NJ_SEC), "");
    cr_expect_str_eq(at(5980 * NJ_MS), "");
    cr_expect_str_eq(at(6000 * NJ_MS), "lcore 3 has not polled for 1020 ms");
    cr_expect_str_eq(at(6500 * NJ_MS), "");
    cr_expect_str_eq(at(7000 * NJ_MS), "lcore 3 has not polled for 2020 ms");
    sample.loops++;
    cr_expect_str_eq(at(9000 * NJ_MS), "");
}

/* The first check has no previous state. */
Test(log_lcore_watchdog, first_look)
{
    begin();
    cr_expect_str_eq(at(100 * NJ_SEC), "");
    cr_expect_str_eq(at(101 * NJ_SEC), "");
    cr_expect_str_eq(at(102 * NJ_SEC), "lcore 3 has not polled for 2000 ms");
}

Test(log_lcore_watchdog, has_stalled)
{
    begin();
    cr_expect_not(nj_watchdog_has_stalled(&w, 100 * NJ_SEC), "no check yet");
    at(10 * NJ_SEC);
    cr_expect_not(nj_watchdog_has_stalled(&w, 11 * NJ_SEC));
    cr_expect(nj_watchdog_has_stalled(&w, 11 * NJ_SEC + 1));
    at(12 * NJ_SEC);
    cr_expect(nj_watchdog_has_stalled(&w, 12 * NJ_SEC), "without progress");
    sample.loops++;
    at(13 * NJ_SEC);
    cr_expect_not(nj_watchdog_has_stalled(&w, 13 * NJ_SEC));
    cr_expect_not(nj_watchdog_has_stalled(&w, 12 * NJ_SEC), "a clock that was read before");
}
