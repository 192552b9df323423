/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "mgmt/slow_route.h"

static sem_t answered, may_end;
static uint32_t n_run;

static void on_answer(void *ctx)
{
    sem_post(&answered);
}

/* Each waits until the test lets it end. */
static unsigned slow(struct nj__mgmt_request *r, FILE *out)
{
    sem_wait(&may_end);
    fprintf(out, "%s %u\n", r->query, ++n_run);
    return 200;
}

static const struct nj__mgmt_route reads = {"/read", "GET", NJ__MGMT_READ, slow},
                                   changes = {"/change", "POST", NJ__MGMT_WRITE, slow};

static struct nj__mgmt_slow *start(void)
{
    cpu_set_t cpus;

    sem_init(&answered, 0, 0);
    sem_init(&may_end, 0, 0);
    cr_assert_eq(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    struct nj__mgmt_slow *s = nj__mgmt_slow_start(&cpus, on_answer, NULL);
    cr_assert(s);
    return s;
}

static bool ask(struct nj__mgmt_slow *s, const char *owner, const struct nj__mgmt_route *route,
                struct nj__mgmt_answer *answer)
{
    struct nj__mgmt_request r = {.query = owner};

    return nj__mgmt_slow_ask(s, owner, route, &r, answer);
}

static void expect_answer(struct nj__mgmt_slow *s, const char *owner, const char *text)
{
    struct nj__mgmt_answer a;

    sem_post(&may_end);
    sem_wait(&answered);
    cr_assert(ask(s, owner, &changes, &a));
    cr_expect_eq(a.status, 200);
    cr_expect_str_eq(a.text, text);
    free(a.text);
}

Test(mgmt_slow_route, first_come_first_served)
{
    struct nj__mgmt_slow *s = start();
    struct nj__mgmt_answer a;
    static const char *const b = "b", *const c = "c", *const d = "d";

    cr_expect_not(ask(s, b, &changes, &a));
    cr_expect(nj__mgmt_slow_has(s, b));
    cr_expect_not(ask(s, c, &changes, &a));
    cr_expect_not(ask(s, d, &changes, &a));
    sem_post(&may_end);
    sem_wait(&answered);
    cr_expect_not(ask(s, d, &changes, &a)); /* later than c */
    cr_assert(ask(s, b, &changes, &a));
    free(a.text);
    cr_expect_not(ask(s, d, &changes, &a));
    cr_expect_not(nj__mgmt_slow_has(s, d));
    nj__mgmt_slow_forget(s, c); /* its client has gone */
    cr_expect_not(ask(s, d, &changes, &a));
    expect_answer(s, d, "d 2\n");
    nj__mgmt_slow_stop(s);
    nj__mgmt_slow_free(s);
}

Test(mgmt_slow_route, readers_leave_places_for_changes)
{
    struct nj__mgmt_slow *s = start();
    static const char owner[NJ__MGMT_SLOW_MAX + 1][2] = {"a", "b", "c", "d", "e",
                                                         "f", "g", "h", "i"};
    struct nj__mgmt_answer a;
    uint32_t n = 0;

    for (; n < NJ__MGMT_SLOW_MAX / 2; n++)
        cr_expect_not(ask(s, owner[n], &reads, &a));
    cr_assert(ask(s, owner[n], &reads, &a));
    cr_expect_eq(a.status, 503);
    cr_expect_eq(strlen(a.text), a.n);
    free(a.text);
    for (; n < NJ__MGMT_SLOW_MAX; n++)
        cr_expect_not(ask(s, owner[n], &changes, &a));
    cr_assert(ask(s, owner[n], &changes, &a));
    cr_expect_eq(a.status, 503);
    free(a.text);
    expect_answer(s, owner[0], "a 1\n");
    cr_expect_not(ask(s, owner[1], &reads, &a));
    expect_answer(s, owner[1], "b 2\n");
    nj__mgmt_slow_stop(s);
    nj__mgmt_slow_free(s);
}

/* libmicrohttpd may not end while a request waits for the thread. */
Test(mgmt_slow_route, what_was_not_begun_does_not_run_after_the_stop)
{
    struct nj__mgmt_answer a;

    for (uint32_t i = 0; i < 200; i++) {
        struct nj__mgmt_slow *s = start();
        sem_post(&may_end);
        cr_expect_not(ask(s, "b", &changes, &a));
        nj__mgmt_slow_stop(s);
        cr_expect_not(nj__mgmt_slow_has(s, "b"));
        nj__mgmt_slow_free(s);
    }
}
