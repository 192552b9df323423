/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nj-explore: the worlds of threads that are explored, all of them or those of one kind.
 *
 * Exit status 0 when nothing is wrong in any order of any world. Built with a mutant, it has to
 * fail: see mutants.py.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "models.h"

#define STATES_MAX 20000000u /* a world that has more is a mistake in the model */

static struct {
    uint64_t n_worlds, n_states, n_ends;
} sum;

static void add(struct explore_result r)
{
    sum.n_worlds++;
    sum.n_states += r.n_states;
    sum.n_ends += r.n_ends;
}

static void report(const char *name)
{
    printf("%-44s %6lu worlds %10lu states %9lu ends\n", name, (unsigned long)sum.n_worlds,
           (unsigned long)sum.n_states, (unsigned long)sum.n_ends);
    fflush(stdout);
    memset(&sum, 0, sizeof sum);
}

/* Every selection of n of the events, the same one more than once, too. */
static void select_events(struct model_strategy *m, const struct model_event *events,
                          unsigned n_events, unsigned n, unsigned from)
{
    if (m->n_events == n) {
        add(model_strategy(m, STATES_MAX));
        return;
    }
    for (unsigned i = m->n_each > 1 ? 0 : from; i < n_events; i++) { /* one after the other */
        m->events[m->n_events++] = events[i];
        select_events(m, events, n_events, n, i);
        m->n_events--;
    }
}

/* n at the same time, each by its own caller; or four, by two callers. */
static void blocking_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false}};

    for (uint8_t n_rejects = 0; n_rejects <= 2; n_rejects += 2)
        for (uint8_t n_reserved = 1; n_reserved <= 2; n_reserved++)
            for (unsigned n = 1; n <= n_max; n++) {
                struct model_strategy m = {.n_each = n == 4 ? 2 : 1,
                                           .n_reserved = n_reserved,
                                           .n_rejects = n_rejects,
                                           .may_block = true};
                char name[80];

                select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
                snprintf(name, sizeof name, "%u BLOCKING by %u, %u reserved, %u refusals", n,
                         n / m.n_each, n_reserved, n_rejects);
                report(name);
            }
}

/* A pool without a free thread, or with one, which a task may keep for ever. */
static void bounded_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_EITHER, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, true}};

    for (uint8_t n_pool = 0; n_pool <= 1; n_pool++)
        for (uint8_t n_reserved = 0; n_reserved <= 1; n_reserved++)
            for (unsigned n = 2; n <= n_max; n++) {
                struct model_strategy m = {.n_each = 1,
                                           .n_reserved = n_reserved,
                                           .may_block = true,
                                           .is_bounded = true,
                                           .n_pool = n_pool};
                char name[80];

                select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
                snprintf(name, sizeof name, "%u, a pool of %u, %u reserved", n, n_pool, n_reserved);
                report(name);
            }
}

static void mixed_events(unsigned n_max)
{
    static const struct model_event events[] = {
        {MODEL_DISPATCH, NJ_NON_BLOCKING, false},   {MODEL_PRODUCE, NJ_NON_BLOCKING, false},
        {MODEL_PRODUCE, NJ_EITHER, false},          {MODEL_PRODUCE_TAGGED, NJ_EITHER, false},
        {MODEL_DISPATCH, NJ_BLOCKING, false},       {MODEL_PRODUCE, NJ_BLOCKING, false},
        {MODEL_PRODUCE_TAGGED, NJ_BLOCKING, false}, {MODEL_PRODUCE, NJ_BLOCKING, true},
    };

    for (unsigned n = 1; n <= n_max; n++) {
        struct model_strategy m = {.n_each = 1, .n_reserved = 1, .may_block = true};
        char name[80];

        select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
        snprintf(name, sizeof name, "%u of all types, 1 reserved", n);
        report(name);
    }
}

static void stopped_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, true}};

    for (unsigned n = 2; n <= n_max; n++) {
        struct model_strategy m = {
            .n_each = 1, .n_reserved = 1, .n_rejects = 1, .may_block = true, .may_stop = true};
        char name[80];

        m.events[m.n_events++] = (struct model_event){MODEL_STOP, NJ_BLOCKING, false};
        select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
        snprintf(name, sizeof name, "%u and a stop, 1 reserved, 1 refusal", n - 1);
        report(name);
    }
}

static void reserved_threads(unsigned n_max)
{
    for (uint8_t capacity = 1; capacity <= 2; capacity++)
        for (uint8_t n_min = 0; n_min <= 1; n_min++)
            for (uint8_t stops = 0; stops <= 1; stops++) {
                struct model_reserved m = {.n_threads = (uint8_t)(capacity + (n_max > 3)),
                                           .capacity = capacity,
                                           .n_min = n_min,
                                           .n_tasks = (uint8_t)n_max,
                                           .n_timeouts = 2,
                                           .stops = stops};
                char name[80];

                add(model_reserved(&m, STATES_MAX));
                snprintf(name, sizeof name, "%u seats, %u stay%s", capacity, n_min,
                         stops ? ", stopped" : "");
                report(name);
            }
}

/* quick: what a test run can wait for, a few seconds. Else: some minutes. */
int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    bool quick = argc > 2 && strcmp(argv[2], "quick") == 0;

    if (strstr("reserved", only))
        reserved_threads(quick ? 3 : 4);
    if (strstr("mixed", only))
        mixed_events(quick ? 2 : 3);
    if (strstr("blocking", only))
        blocking_events(quick ? 2 : 4);
    if (strstr("bounded", only))
        bounded_events(quick ? 2 : 3);
    if (strstr("stop", only))
        stopped_events(quick ? 2 : 3);
    return 0;
}
