/* SPDX-License-Identifier: BSD-3-Clause */
/* * nj-explore: explores worlds of threads, all of them or those of one kind. A world is one
 * configuration: the calls of each thread, their tasks, and the properties of the pool.
 *
 * Exit status 0 when no order of any world fails. With a mutant of tests/mutants it has to fail. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"

#define STATES_MAX         100000000u /* a world that has more is a mistake in the model */
#define CHECKED_STATES_MAX 20000u     /* a smaller one is explored by stacks, too */

static struct {
    uint64_t n_worlds, n_states, n_ends;
} sum;
static unsigned n_reports;

static void add(struct explore_result r)
{
    sum.n_worlds++;
    sum.n_states += r.n_states;
    sum.n_ends += r.n_ends;
}

NJ_PRINTF(1, 2) static void report(const char *format, ...)
{
    char name[80];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    printf("%-50s %4lu worlds %9lu states %7lu ends\n", name, (unsigned long)sum.n_worlds,
           (unsigned long)sum.n_states, (unsigned long)sum.n_ends);
    fflush(stdout);
    n_reports++;
    memset(&sum, 0, sizeof sum);
}

/* The models declare the places and the local knowledge of threads by hand. If no knowledge was
 * omitted, a comparison by whole stacks finds the same number of states. */
static void add_strategy(struct model_strategy *m)
{
    m->by_stack = m->kind == NJ_STRATEGY_DUAL; /* its recruits have much local knowledge */
    struct explore_result r = model_strategy(m, STATES_MAX);

    add(r);
    if (m->by_stack || m->must_fail || r.n_states > CHECKED_STATES_MAX)
        return;
    m->by_stack = true;
    if (model_strategy(m, STATES_MAX).n_states != r.n_states) {
        fprintf(stderr, "explore: a thread has knowledge that its model does not declare\n");
        exit(1);
    }
    m->by_stack = false;
}

/* Every selection of n of the events, the same one more than once, too. */
static void select_events(struct model_strategy *m, const struct model_event *events,
                          unsigned n_events, unsigned n, unsigned from)
{
    if (m->n_events == n) {
        add_strategy(m);
        return;
    }
    for (unsigned i = m->n_each > 1 ? 0 : from; i < n_events; i++) { /* one after the other */
        m->events[m->n_events++] = events[i];
        select_events(m, events, n_events, n, i);
        m->n_events--;
    }
}

static const char *const kinds[NJ_N_STRATEGIES] = {
    [NJ_STRATEGY_PC] = "pc",     [NJ_STRATEGY_PEC] = "pec",
    [NJ_STRATEGY_EPC] = "epc",   [NJ_STRATEGY_ADAPTIVE] = "adaptive",
    [NJ_STRATEGY_DUAL] = "dual",
};

static const struct model_event of_all_types[] = {
    {MODEL_DISPATCH, NJ_NON_BLOCKING, false},   {MODEL_PRODUCE, NJ_NON_BLOCKING, false},
    {MODEL_PRODUCE, NJ_EITHER, false},          {MODEL_PRODUCE_TAGGED, NJ_EITHER, false},
    {MODEL_DISPATCH, NJ_BLOCKING, false},       {MODEL_PRODUCE, NJ_BLOCKING, false},
    {MODEL_PRODUCE_TAGGED, NJ_BLOCKING, false}, {MODEL_PRODUCE, NJ_BLOCKING, true},
};

/* n at the same time, each by its own caller; or four, by two callers. */
static void blocking_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false}};

    for (uint8_t n_rejects = 0; n_rejects <= 2; n_rejects += 2)
        for (uint8_t n_reserved = 1; n_reserved <= 2; n_reserved++)
            for (unsigned n = 1; n <= n_max; n++) {
                struct model_strategy m = {.kind = NJ_STRATEGY_ADAPTIVE,
                                           .n_each = n == 4 ? 2 : 1,
                                           .n_reserved = n_reserved,
                                           .n_rejects = n_rejects,
                                           .may_block = true};

                select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
                report("adaptive, %u BLOCKING by %u, %u reserved, %u refusals", n, n / m.n_each,
                       n_reserved, n_rejects);
            }
}

/* A producer with has_more(), or with one task at a time. */
static void telling_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_EITHER, false}},
                                    produced[] = {{MODEL_PRODUCE, NJ_BLOCKING, false}};

    for (unsigned n = 2; n <= n_max; n++) {
        struct model_strategy m = {.kind = NJ_STRATEGY_ADAPTIVE,
                                   .n_each = 1,
                                   .n_reserved = 1,
                                   .tells_more = true,
                                   .may_block = true};

        select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
        report("adaptive, %u, with has_more()", n);
        m.may_block = false;
        m.one_at_a_time = true;
        m.must_fail = "tasks are left without a thread";
        select_events(&m, produced, NJ_ARRAY_LEN(produced), n, 0);
        report("adaptive, %u, one at a time: starves", n);
        m.must_fail = NULL;
        m.asks_after_run = true;
        select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
        report("adaptive, %u, one at a time, asks again", n);
    }
}

/* A pool without a free thread, or with one, which a task may block endlessly. */
static void bounded_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_EITHER, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, true}};
    static const struct {
        enum nj_strategy_kind kind;
        uint8_t n_reserved;
    } of[] = {{NJ_STRATEGY_PEC, 0}, {NJ_STRATEGY_ADAPTIVE, 0}, {NJ_STRATEGY_ADAPTIVE, 1}};

    for (size_t i = 0; i < NJ_ARRAY_LEN(of); i++)
        for (uint8_t n_pool = 0; n_pool <= 1; n_pool++)
            for (unsigned n = 2; n <= n_max; n++) {
                struct model_strategy m = {.kind = of[i].kind,
                                           .n_each = 1,
                                           .n_reserved = of[i].n_reserved,
                                           .may_block = true,
                                           .is_bounded = true,
                                           .n_pool = n_pool};

                select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
                report("%s, %u, a pool of %u, %u reserved", kinds[m.kind], n, n_pool, m.n_reserved);
            }
}

/* Strategies that leave tasks without a thread: the reason for the adaptive one. */
static void starving_events(unsigned n_max)
{
    static const struct model_event dispatched[] = {{MODEL_DISPATCH, NJ_BLOCKING, false}},
                                    all[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                             {MODEL_PRODUCE, NJ_BLOCKING, false},
                                             {MODEL_PRODUCE, NJ_EITHER, false}};
    static const char left[] = "tasks are left without a thread";

    for (unsigned n = 2; n <= n_max; n++) {
        struct model_strategy pc = {
            .kind = NJ_STRATEGY_PC, .n_each = 1, .may_block = true, .must_fail = left};
        select_events(&pc, dispatched, NJ_ARRAY_LEN(dispatched), n, 0);
        report("pc, %u, and one blocks: starves", n);

        struct model_strategy epc = {
            .kind = NJ_STRATEGY_EPC, .n_each = 1, .may_block = true, .is_bounded = true};
        for (epc.n_pool = 0; epc.n_pool < n; epc.n_pool++) {
            epc.must_fail = left;
            select_events(&epc, dispatched, NJ_ARRAY_LEN(dispatched), n, 0);
            report("epc, %u, a pool of %u: starves", n, epc.n_pool);
        }
        epc.must_fail = NULL;
        select_events(&epc, all, NJ_ARRAY_LEN(all), n, 0);
        report("epc, %u, a pool of %u", n, epc.n_pool);
    }
}

/* Every kind but the dual one. PC must not have a consumer that blocks endlessly. */
static void mixed_events(unsigned n_max)
{
    for (int kind = 0; kind < NJ_STRATEGY_DUAL; kind++)
        for (unsigned n = 1; n <= n_max; n++) {
            struct model_strategy m = {.kind = (enum nj_strategy_kind)kind,
                                       .n_each = 1,
                                       .n_reserved = 1,
                                       .may_block = kind != NJ_STRATEGY_PC};

            select_events(&m, of_all_types, NJ_ARRAY_LEN(of_all_types), n, 0);
            report("%s, %u of all types, 1 reserved", kinds[kind], n);
        }
}

/* Its owner stops it at any time, and perhaps begins anew. */
static void stopped_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, true}};

    for (int kind = 0; kind < NJ_STRATEGY_DUAL; kind++)
        for (unsigned n = 2; n <= n_max; n++) {
            struct model_strategy m = {.kind = (enum nj_strategy_kind)kind,
                                       .n_each = 1,
                                       .n_reserved = 1,
                                       .n_rejects = 1,
                                       .n_late_rejects = 1,
                                       .may_block = true};

            m.events[m.n_events++] = (struct model_event){MODEL_STOP, NJ_BLOCKING, false};
            select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
            report("%s, %u and a stop, 1 refusal", kinds[kind], n - 1);
            m.n_rejects = m.n_late_rejects = n > 2;
            m.may_block = n > 2;
            m.events[0].how = MODEL_RESTART;
            select_events(&m, events, n > 2 ? NJ_ARRAY_LEN(events) : 2, n, 0);
            report("%s, %u and a restart, %u refusals", kinds[kind], n - 1, m.n_rejects);
        }
}

/* Its threads sleep inside, so there are many more states: of all types one task, else BLOCKING
 * ones. A pool without a bound, with no thread for it, with one; a stop. */
static void dual_events(unsigned n_max)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false}};

    for (unsigned keeps_two = 0; keeps_two <= 1; keeps_two++) {
        struct model_strategy m = {
            .kind = NJ_STRATEGY_DUAL, .keeps_two = keeps_two, .n_each = 1, .may_block = true};
        const char *keeps = keeps_two ? ", keeps two" : "";

        m.n_rejects = 1;
        select_events(&m, of_all_types, NJ_ARRAY_LEN(of_all_types) - (n_max < 3), 1, 0);
        report("dual%s, 1 of all types, 1 refusal", keeps);
        for (unsigned n = 2; n <= n_max; n++) {
            m.n_rejects = n_max > 2;
            m.is_bounded = true;
            for (m.n_pool = 0; m.n_pool <= (n == 2); m.n_pool++) {
                select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
                report("dual%s, %u, a pool of %u", keeps, n, m.n_pool);
            }
        }
        m.is_bounded = false;
        if (n_max > 2) {
            select_events(&m, events, NJ_ARRAY_LEN(events), 2, 0);
            report("dual%s, 2 BLOCKING", keeps);
        }
        m.events[m.n_events++] = (struct model_event){MODEL_STOP, NJ_BLOCKING, false};
        select_events(&m, events, NJ_ARRAY_LEN(events), 2, 0);
        report("dual%s, 1 and a stop", keeps);
        m.may_block = false;
        select_events(&m, events, NJ_ARRAY_LEN(events), 2, 0);
        report("dual%s, 1 that ends and a stop", keeps);
    }
}

static void sleepers(void)
{
    for (uint8_t n = 1; n <= 3; n++) {
        struct model_park m = {.n_wakers = n, .n_timeouts = 1, .n_early = 1};

        add(model_park(&m, STATES_MAX));
        report("a thread sleeps, %u wake it", n);
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

                add(model_reserved(&m, STATES_MAX));
                report("%u seats, %u stay%s", capacity, n_min, stops ? ", stopped" : "");
                m.rouses = true;
                m.n_tasks--;
                m.n_timeouts = 0;
                m.n_early = 1;
                add(model_reserved(&m, STATES_MAX));
                report("%u seats, %u stay, 1 early, roused%s", capacity, n_min,
                       stops ? ", stopped" : "");
            }
}

/* Every selection of n calls, at most one of them a stop. */
static void select_calls(struct model_pool *m, unsigned n, unsigned from)
{
    if (m->n_calls == n) {
        add(model_pool(m, STATES_MAX));
        return;
    }
    for (unsigned call = from; call <= MODEL_STOP_POOL; call++) {
        m->calls[m->n_calls++] = (enum model_call)call;
        select_calls(m, n, call + (call == MODEL_STOP_POOL));
        m->n_calls--;
    }
}

static const struct {
    const char *name;
    struct model_threads is;
    bool is_slow;
} pools[] = {
    {"of 1", {.n_max = 1}, false},
    {"of 1 that stays", {.n_min = 1, .n_max = 1}, false},
    {"of 2", {.n_max = 2}, false},
    {"of 2, 1 seat", {.n_max = 2, .n_seats = 1}, false},
    {"of 2, 1 reserved", {.n_min = 1, .n_max = 2, .n_seats = 1, .is_warm = true}, false},
    {"of 2, 1 idle too long", {.n_max = 2, .n_timeouts = 1}, false},
    {"of 2, 1 reserved, 1 idle too long",
     {.n_min = 1, .n_max = 2, .n_seats = 1, .is_warm = true, .n_timeouts = 1},
     false},
    {"of 2, 1 reserved, 1 wakes early",
     {.n_min = 1, .n_max = 2, .n_seats = 1, .is_warm = true, .n_early = 1},
     false},
    {"of 2, 2 cannot be had", {.n_max = 2, .n_no_threads = 2}, false},
    {"of 2, 1 reserved, 1 cannot be had",
     {.n_min = 1, .n_max = 2, .n_seats = 1, .is_warm = true, .n_no_threads = 1},
     true},
    {"of 3, 1 reserved", {.n_min = 1, .n_max = 3, .n_seats = 1, .is_warm = true}, false},
};

/* More than two calls, but these only. */
static const struct {
    const char *name;
    struct model_pool is;
} calls[] = {
    {"pool of 1, posts in turn",
     {.threads = {.n_max = 1}, .calls = {MODEL_POST, MODEL_POST}, .n_calls = 2, .n_each = 2}},
    {"pool of 1, posts in turn, beside one",
     {.threads = {.n_max = 1},
      .calls = {MODEL_POST, MODEL_POST, MODEL_EXECUTE, MODEL_TRY},
      .n_calls = 4,
      .n_each = 2}},
    {"pool of 2, 1 reserved, no other to be had, a try beside one",
     {.threads = {.n_min = 1, .n_max = 2, .n_seats = 1, .is_warm = true, .n_no_threads = 1},
      .calls = {MODEL_EXECUTE, MODEL_TRY},
      .n_calls = 2,
      .n_each = 1}},
};

static void pool_worlds(const char *only, bool quick)
{
    char name[80];

    for (size_t i = 0; i < NJ_ARRAY_LEN(pools); i++)
        for (unsigned n = 2; n <= (quick ? 2 : 3); n++) {
            struct model_pool m = {.threads = pools[i].is, .n_each = 1};

            snprintf(name, sizeof name, "pool %s, %u calls", pools[i].name, n);
            if (!strstr(name, only) || (quick && pools[i].is_slow))
                continue;
            select_calls(&m, n, 0);
            report("%s", name);
        }
    for (size_t i = 0; i < NJ_ARRAY_LEN(calls); i++)
        if (strstr(calls[i].name, only)) {
            add(model_pool(&calls[i].is, STATES_MAX));
            report("%s", calls[i].name);
        }
}

/* The adaptive strategy on the real pool. */
static void on_threads(bool quick)
{
    static const struct model_event events[] = {{MODEL_DISPATCH, NJ_BLOCKING, false},
                                                {MODEL_PRODUCE, NJ_BLOCKING, false}};
    static const struct {
        struct model_threads is;
        uint8_t n_quick, n_max;
    } of[] = {
        {{.n_max = 1}, 2, 3},
        {{.n_max = 2}, 2, 2},
        {{.n_min = 1, .n_max = 2, .n_seats = 1}, 1, 2},
        {{.n_min = 1, .n_max = 2, .n_seats = 1, .is_warm = true}, 1, 2},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(of); i++)
        for (unsigned n = 1; n <= (quick ? of[i].n_quick : of[i].n_max); n++) {
            struct model_strategy m = {
                .kind = NJ_STRATEGY_ADAPTIVE, .n_each = 1, .threads = of[i].is, .may_block = true};
            select_events(&m, events, NJ_ARRAY_LEN(events), n, 0);
            report("adaptive on %u threads, %u seats%s, %u BLOCKING", of[i].is.n_max,
                   of[i].is.n_seats, of[i].is.is_warm ? " taken" : "", n);
        }
}

static const char usage[] =
    "usage: nj-explore [KIND [quick]]\n"
    "\n"
    "Runs the code of lib/strategy in every order in which its threads can go on, and prints for "
    "each\n"
    "group of worlds how many worlds, states and ends there are. A world is one configuration of\n"
    "threads and tasks. With quick only small worlds: a few seconds, else some minutes.\n"
    "\n"
    "KIND, or a part of its name; \"\" is all:\n"
    "  park      one thread sleeps, others wake it\n"
    "  reserved  reserved threads and their seats\n"
    "  pool      the pool of threads; also by a part of the printed name, as \"pool of 2, 1 "
    "seat\"\n"
    "  threads   the adaptive strategy on the pool of threads\n"
    "  mixed     tasks of all types, each strategy but the dual one\n"
    "  blocking  BLOCKING tasks, adaptive strategy, an executor that refuses\n"
    "  telling   a producer with has_more(), or with one task at a time\n"
    "  bounded   a pool without a free thread, or with one\n"
    "  starve    strategies that leave tasks without a thread: a failure is expected\n"
    "  dual      the dual strategy\n"
    "  stop      the strategy is stopped, or stopped and begun anew\n";

static int refuse(const char *what)
{
    fprintf(stderr, "nj-explore: %s\n%s", what, usage);
    return 2;
}

static void explore_kind(const char *only, bool quick)
{
    if (strstr("park", only))
        sleepers();
    if (strstr("reserved", only))
        reserved_threads(quick ? 3 : 4);
    pool_worlds(only, quick);
    if (strstr("threads", only))
        on_threads(quick);
    if (strstr("mixed", only))
        mixed_events(quick ? 2 : 3);
    if (strstr("blocking", only))
        blocking_events(quick ? 2 : 4);
    if (strstr("telling", only))
        telling_events(quick ? 2 : 3);
    if (strstr("bounded", only))
        bounded_events(quick ? 2 : 3);
    if (strstr("starve", only))
        starving_events(quick ? 2 : 3);
    if (strstr("dual", only))
        dual_events(quick ? 2 : 3);
    if (strstr("stop", only))
        stopped_events(quick ? 2 : 3);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";

    if (strcmp(only, "--help") == 0 || strcmp(only, "-h") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc > 3 || (argc == 3 && strcmp(argv[2], "quick") != 0))
        return refuse("the second argument is quick, and there is no third one");
    explore_kind(only, argc == 3);
    return n_reports > 0 ? 0 : refuse("there is no such KIND");
}
