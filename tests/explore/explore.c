/* SPDX-License-Identifier: BSD-3-Clause */
#include "explore.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/context.h"
#include "sched/fiber.h"
#include "sched/step.h"
#include "sched/switch.h"

#define THREADS_MAX 16u
#define STACK_BYTES (64u * 1024u)
#define CHOICES_MAX 4096u
#define NOTES_MAX   512u

struct thread {
    void *at; /* its context while it does not run */
    struct nj__lane lane;
    void (*fn)(void *arg);
    void *arg;
    uint64_t role, place, seen, knows, returns;
    bool (*until)(void *arg);
    void *until_arg;
    bool done, waits;
    bool tag;                /* what a thread of its own would keep in ... */
    struct nj__frame *frame; /* ... thread-local memory */
};

struct choice {
    uint32_t chosen, n;
};

static struct {
    const struct explore_world *world;
    struct thread threads[THREADS_MAX];
    uint32_t n_threads;
    struct thread *self; /* NULL: the explorer itself */
    void *root;
    struct nj__lane root_lane;
    struct choice choices[CHOICES_MAX];
    uint32_t n_choices, at_choice;
    char notes[NOTES_MAX][80];
    uint32_t n_notes;
    uint64_t *seen; /* open addressing; 0: free */
    uint64_t n_room;
    struct explore_result result;
    bool failed; /* as it must */
    jmp_buf failed_in_root;
} x;

/* --- states that were seen -------------------------------------------------------------------- */

static bool put(uint64_t *table, uint64_t n_room, uint64_t hash)
{
    for (uint64_t i = hash & (n_room - 1);; i = (i + 1) & (n_room - 1)) {
        if (table[i] == hash)
            return false;
        if (!table[i]) {
            table[i] = hash;
            return true;
        }
    }
}

static bool is_new(uint64_t hash)
{
    hash |= !hash;
    if (x.result.n_states * 2 >= x.n_room) {
        uint64_t n_room = x.n_room ? 4 * x.n_room : 1024;
        uint64_t *table = calloc(n_room, sizeof *table);
        for (uint64_t i = 0; i < x.n_room; i++)
            if (x.seen[i])
                put(table, n_room, x.seen[i]);
        free(x.seen);
        x.seen = table;
        x.n_room = n_room;
    }
    bool is = put(x.seen, x.n_room, hash);
    x.result.n_states += is;
    return is;
}

static uint64_t hash_of_thread(const struct thread *t)
{
    uint64_t h = explore_mix(t->role, t->place << 1 | t->tag);
    return explore_mix(explore_mix(explore_mix(h, t->returns), t->seen), t->knows);
}

/* Threads in any order: a sum of their hashes. */
static uint64_t hash_of_state(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < x.n_threads; i++)
        if (!x.threads[i].done)
            sum += hash_of_thread(&x.threads[i]) * 0xff51afd7ed558ccdu;
    return explore_mix(sum, x.world->hash(x.world->ctx));
}

/* --- failures --------------------------------------------------------------------------------- */

void explore_note(const char *format, ...)
{
    va_list args;

    if (x.n_notes == NOTES_MAX)
        return;
    char *note = x.notes[x.n_notes++];
    int n = snprintf(note, sizeof x.notes[0],
                     "  thread %ld: ", x.self ? (long)(x.self - x.threads) : -1L);
    va_start(args, format);
    vsnprintf(note + n, sizeof x.notes[0] - (size_t)n, format, args);
    va_end(args);
}

static void show_notes(void)
{
    for (uint32_t i = 0; i < x.n_notes; i++)
        fprintf(stderr, "%s\n", x.notes[i]);
}

static void to_root(void);

void explore_fail(const char *format, ...)
{
    char what[160];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (x.world->must_fail && strcmp(what, x.world->must_fail) == 0) {
        x.failed = true;
        if (x.self)
            to_root();
        longjmp(x.failed_in_root, 1);
    }
    fprintf(stderr, "explore: %s\nafter:\n", what);
    show_notes();
    exit(1);
}

static void on_abort(int signal)
{
    (void)signal;
    fprintf(stderr, "explore: an assertion failed, after:\n");
    show_notes();
    _exit(1);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Where this thread is: the functions that are called, up to the bottom of its stack. */
static uint64_t where(const struct thread *t)
{
    uintptr_t bottom = (uintptr_t)t->lane.bottom, top = bottom + STACK_BYTES - 2 * sizeof(void *);
    const uintptr_t *frame = __builtin_frame_address(0);
    uint64_t h = 0;

    while ((uintptr_t)frame >= bottom && (uintptr_t)frame <= top) {
        h = explore_mix(h, frame[1]);
        if (frame[0] <= (uintptr_t)frame)
            break;
        frame = (const uintptr_t *)frame[0];
    }
    return h;
}

static void to_root(void)
{
    struct thread *t = x.self;

    t->returns = where(t);
    t->tag = nj_tag_must_not_block();
    t->frame = nj__frame_top();
    nj__switch_begin(&t->lane, &x.root_lane);
    struct nj__transfer from = jump_fcontext(x.root, NULL);
    nj__switch_end(&t->lane, &x.root_lane);
    x.root = from.from;
}

static void entry(struct nj__transfer from)
{
    struct thread *t = x.self;

    nj__switch_end(&t->lane, &x.root_lane);
    x.root = from.from;
    t->fn(t->arg);
    t->done = true;
    to_root();
}

static void go_on(struct thread *t)
{
    x.self = t;
    nj_tag_restore(t->tag);
    nj__frame_set_top(t->frame);
    nj__switch_begin(&x.root_lane, &t->lane);
    struct nj__transfer from = jump_fcontext(t->at, NULL);
    nj__switch_end(&x.root_lane, &t->lane);
    t->at = from.from;
    x.self = NULL;
}

void explore_start(void (*fn)(void *arg), void *arg, uint64_t role)
{
    if (x.n_threads == THREADS_MAX)
        explore_fail("too many threads");
    struct thread *t = &x.threads[x.n_threads++];
    const void *bottom = t->lane.bottom ? t->lane.bottom : malloc(STACK_BYTES);

    *t = (struct thread){.fn = fn, .arg = arg, .role = role, .place = NJ__N_PLACES};
    t->lane.bottom = bottom;
    t->lane.n_bytes = STACK_BYTES;
    nj__lane_open(&t->lane); /* a run that turned back left its frames there */
    t->at = make_fcontext((char *)bottom + STACK_BYTES, STACK_BYTES, entry);
}

static bool can_go_on(const struct thread *t)
{
    return !t->done && (!t->waits || (t->until && t->until(t->until_arg)));
}

/* --- choices ---------------------------------------------------------------------------------- */

unsigned explore_choose(unsigned n)
{
    if (n < 2)
        return 0;
    if (x.at_choice == CHOICES_MAX)
        explore_fail("a run without end");
    if (x.at_choice == x.n_choices)
        x.choices[x.n_choices++] = (struct choice){0, n};
    struct choice *c = &x.choices[x.at_choice++];
    if (c->n != n)
        explore_fail("the world is not the same twice: %u choices, not %u", n, c->n);
    return c->chosen;
}

static bool next_run(void)
{
    while (x.n_choices) {
        struct choice *c = &x.choices[x.n_choices - 1];
        if (++c->chosen < c->n)
            return true;
        x.n_choices--;
    }
    return false;
}

void explore_step(uint64_t place, uint64_t seen)
{
    x.self->place = place;
    x.self->seen = seen;
    to_root();
}

void nj__step(enum nj__place place, uint64_t seen)
{
    /* Whoever comes in at these could as well come a step before or after: reading the word is
     * followed by a swap that fails, production has a step inside, a queued task has no effect. */
    const uint64_t unseen = UINT64_C(1) << NJ__AT_WORD_READ | UINT64_C(1) << NJ__AT_PRODUCE;

    if (!((unseen | x.world->unseen) >> place & 1) && !(place == NJ__AT_EXECUTE && seen))
        explore_step(place, seen);
    if (x.world->access)
        x.world->access(x.world->ctx, place);
}

void explore_wait(bool (*until)(void *arg), void *arg, uint64_t place)
{
    x.self->until = until;
    x.self->until_arg = arg;
    x.self->waits = true;
    x.self->place = place;
    x.self->seen = 0;
    to_root();
    x.self->waits = false;
}

void explore_know(uint64_t what)
{
    x.self->knows = what;
}

uint64_t explore_knows(void)
{
    return x.self ? x.self->knows : 0;
}

unsigned explore_n_stuck(void)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < x.n_threads; i++)
        n += !x.threads[i].done;
    return n;
}

/* One run, along the choices that are made already, then the first of each. */
static void run(void)
{
    x.n_threads = x.n_notes = 0;
    x.at_choice = 0;
    x.world->begin(x.world->ctx);
    for (;;) {
        struct thread *able[THREADS_MAX];
        uint32_t n = 0;

        if (x.failed || (x.at_choice == x.n_choices && !is_new(hash_of_state())))
            return;
        for (uint32_t i = 0; i < x.n_threads; i++)
            if (can_go_on(&x.threads[i]))
                able[n++] = &x.threads[i];
        if (!n) {
            x.result.n_ends++;
            x.world->end(x.world->ctx);
            return;
        }
        go_on(able[explore_choose(n)]);
    }
}

struct explore_result explore(const struct explore_world *world, uint64_t states_max)
{
    signal(SIGABRT, on_abort);
    x.world = world;
    x.result = (struct explore_result){0};
    x.n_choices = 0;
    if (x.seen)
        memset(x.seen, 0, x.n_room * sizeof *x.seen);
    x.failed = false;
    do {
        if (!setjmp(x.failed_in_root))
            run();
        x.result.n_runs++;
        if (x.result.n_states > states_max)
            explore_fail("more than %lu states", (unsigned long)states_max);
    } while (!x.failed && next_run());
    nj__frame_set_top(NULL);
    nj_tag_restore(false);
    if (world->must_fail && !x.failed)
        explore_fail("was not found: %s", world->must_fail);
    return x.result;
}
