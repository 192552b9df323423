/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines from an lcore to the supervisor. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "log/lcore_log.h"

static struct nj_lcore_log ring;
static char line[64];

static const char *take(void)
{
    return nj_lcore_log_take(&ring, line, sizeof line) ? line : "";
}

Test(log_lcore_log, in_order_and_bounded)
{
    char text[16];

    memset(&ring, 0, sizeof ring);
    cr_expect_str_eq(take(), "");
    for (uint32_t i = 0; i < NJ_LCORE_LOG_LINES + 3; i++) {
        snprintf(text, sizeof text, "line %u", i);
        nj_lcore_log_put(&ring, text);
    }
    for (uint32_t i = 0; i < NJ_LCORE_LOG_LINES; i++) {
        snprintf(text, sizeof text, "line %u", i);
        cr_expect_str_eq(take(), text);
    }
    cr_expect_str_eq(take(), "3 more lines were dropped");
    cr_expect_str_eq(take(), "");
    nj_lcore_log_put(&ring, "again");
    cr_expect_str_eq(take(), "again");
    cr_expect_str_eq(take(), "");
}

Test(log_lcore_log, long_ones_are_cut)
{
    char much[2 * NJ_LCORE_LOG_BYTES], out[2 * NJ_LCORE_LOG_BYTES];

    memset(&ring, 0, sizeof ring);
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    nj_lcore_log_put(&ring, much);
    cr_assert(nj_lcore_log_take(&ring, out, sizeof out));
    cr_expect_eq(strlen(out), NJ_LCORE_LOG_BYTES - 1);
}

enum { N = 100000 };

static void *write_all(void *arg)
{
    char text[32];

    for (unsigned i = 1; i <= N; i++) {
        snprintf(text, sizeof text, "%u %u", i, i);
        nj_lcore_log_put(&ring, text);
    }
    return NULL;
}

/* A reader on another thread gets whole lines in order, and the number of missing ones. */
Test(log_lcore_log, two_threads)
{
    pthread_t writer;
    unsigned last = 0, n = 0;

    memset(&ring, 0, sizeof ring);
    cr_assert_eq(pthread_create(&writer, NULL, write_all, NULL), 0);
    while (n < N) {
        unsigned a, b, lost;
        if (!*take())
            continue;
        if (sscanf(line, "%u more", &lost) == 1 && strstr(line, "more")) {
            n += lost;
            continue;
        }
        cr_assert_eq(sscanf(line, "%u %u", &a, &b), 2, "%s", line);
        cr_assert(a == b && a > last, "%s after %u", line, last);
        last = a;
        n++;
    }
    pthread_join(writer, NULL);
    cr_expect_eq(n, N);
}
