/* SPDX-License-Identifier: BSD-3-Clause */
#include "explore.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/interleaving_points.h"
#include "sched/fiber.h"
#include "sched/stack_switch.h"
#include "reference/frames.h"

#define THREADS_MAX 16u
#define STACK_BYTES (32u * 1024u)
#define WIPED_BYTES 2048u /* below the live part of a stack, see resume_thread() */
#define ARENA_BYTES (16u * 1024u)
#define CHOICES_MAX 4096u
#define NOTES_MAX   512u

_Static_assert(NJ__N_PLACES <= 64, "a bit for each in `unseen`");

struct thread {
    void *at; /* its context, on its stack, while it does not run */
    void (*fn)(void *arg);
    void *arg;
    uint64_t role, place, seen, knows;
    bool (*until)(void *arg);
    void *until_arg;
    void *frame_pointer;
    uint32_t n_asked, answer;    /* explore_choose() */
    uint64_t by_place, by_stack; /* hashes, when is_hashed: it has not run since */
    bool done, waits, is_hashed;
    bool tag;                /* state that a real thread would keep in ... */
    struct nj__frame *frame; /* ... thread-local memory */
};

/* A point with several possible steps, and the saved state before it. */
struct choice {
    uint32_t chosen, n;
    char *saved;
    size_t n_bytes;
};

struct table {
    uint64_t *hashes; /* open addressing; 0: free */
    uint64_t n, n_room;
};

static char stacks[THREADS_MAX][STACK_BYTES] __attribute__((aligned(NJ_CACHE_LINE)));

static struct {
    const struct explore_world *world;
    struct thread threads[THREADS_MAX];
    uint32_t n_threads;
    struct thread *self; /* NULL: the explorer itself */
    void *root;
    char arena[ARENA_BYTES] NJ_CACHE_ALIGNED;
    size_t n_arena;
    struct choice choices[CHOICES_MAX];
    uint32_t n_choices, at_choice;
    char notes[NOTES_MAX][80];
    uint32_t n_notes;
    struct table places, stacks; /* seen states: by place and knowledge, and by stack */
    struct explore_result result;
    jmp_buf failed;
    char why[160];
    bool telling; /* repeats the run up to the failure, to record its steps */
} x;

/* --- states that were seen -------------------------------------------------------------------- */

/* True: it was not there. */
static bool put(struct table *table, uint64_t hash)
{
    hash |= !hash;
    if (table->n * 2 >= table->n_room) {
        struct table larger = {.n_room = table->n_room ? 2 * table->n_room : 1024};
        larger.hashes = calloc(larger.n_room, sizeof *larger.hashes);
        for (uint64_t i = 0; i < table->n_room; i++)
            if (table->hashes[i])
                put(&larger, table->hashes[i]);
        free(table->hashes);
        *table = larger;
    }
    uint64_t i = hash & (table->n_room - 1);
    while (table->hashes[i] && table->hashes[i] != hash)
        i = (i + 1) & (table->n_room - 1);
    bool is = !table->hashes[i];
    table->hashes[i] = hash;
    table->n += is;
    return is;
}

static void empty(struct table *table)
{
    if (table->n)
        memset(table->hashes, 0, table->n_room * sizeof *table->hashes);
    table->n = 0;
}

static char *bottom_of(const struct thread *t)
{
    return stacks[t - x.threads];
}

static size_t n_live(const struct thread *t)
{
    return t->done ? 0 : (size_t)(bottom_of(t) + STACK_BYTES - (char *)t->at);
}

/* Hash of the return addresses of all frames, up to the bottom of the stack. */
static uint64_t returns_of(const struct thread *t)
{
    uintptr_t bottom = (uintptr_t)bottom_of(t), at = (uintptr_t)t->frame_pointer;
    uint64_t h = 0;

    while (at - bottom < STACK_BYTES - 2 * sizeof(void *)) {
        const uintptr_t *frame = (const uintptr_t *)at;
        h = explore_mix(h, frame[1]);
        if (frame[0] <= at)
            break;
        at = frame[0];
    }
    return h;
}

/* Hash of the thread's place and local knowledge. */
static uint64_t hash_by_place(const struct thread *t)
{
    uint64_t h = explore_mix(t->role, t->place << 2 | (uint64_t)t->waits << 1 | t->tag);

    return explore_mix(explore_mix(explore_mix(h, returns_of(t)), t->seen), t->knows);
}

/* Hash of words, in four lanes, so that the processor need not wait for each product. A pointer
 * into the `n_own` bytes at `own` counts as its offset, so that the hash does not depend on `own`.
 */
static uint64_t hash_words(const uint64_t *word, size_t n, uint64_t own, uint64_t n_own)
{
    uint64_t h[4] = {n};

    for (size_t i = 0; i < n; i++)
        h[i & 3] = explore_mix(h[i & 3], word[i] - own < n_own ? word[i] - own : word[i]);
    return explore_mix(explore_mix(h[0], h[1]), explore_mix(h[2], h[3]));
}

static uint64_t hash_by_stack(const struct thread *t)
{
    return hash_words(t->at, n_live(t) / 8, (uintptr_t)bottom_of(t), STACK_BYTES);
}

/* The sum of the threads' hashes, so that the order of threads does not matter. Only hashes of
 * threads that ran since are computed again. */
static bool is_new(void)
{
    uint64_t places = 0, all_stacks = 0, shared = x.world->hash(x.world->ctx);

    for (uint32_t i = 0; i < x.n_threads; i++) {
        struct thread *t = &x.threads[i];
        if (t->done)
            continue;
        if (!t->is_hashed) {
            t->is_hashed = true;
            t->by_place = explore_mix(hash_by_place(t), 0);
            if (x.world->by_stack)
                t->by_stack = explore_mix(t->by_place, hash_by_stack(t));
        }
        places += t->by_place;
        all_stacks += t->by_stack;
    }
    bool is = put(&x.places, explore_mix(places, shared));
    return x.world->by_stack ? put(&x.stacks, explore_mix(all_stacks, shared)) : is;
}

/* --- choices ---------------------------------------------------------------------------------- */

static char *copy(char *to, const void *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
    return to + n_bytes;
}

static void save(struct choice *c)
{
    const struct explore_world *w = x.world;
    size_t n_bytes = x.n_threads * sizeof x.threads[0] + w->n_memory + x.n_arena;

    for (uint32_t i = 0; i < x.n_threads; i++)
        n_bytes += n_live(&x.threads[i]);
    n_bytes += sizeof x.n_threads + sizeof x.n_arena;
    if (n_bytes > c->n_bytes) {
        free(c->saved);
        c->n_bytes = 2 * n_bytes;
        c->saved = malloc(c->n_bytes);
    }
    char *at = copy(c->saved, &x.n_threads, sizeof x.n_threads);
    at = copy(at, &x.n_arena, sizeof x.n_arena);
    at = copy(at, x.threads, x.n_threads * sizeof x.threads[0]);
    at = copy(at, w->memory, w->n_memory);
    at = copy(at, x.arena, x.n_arena);
    for (uint32_t i = 0; i < x.n_threads; i++)
        if (!x.threads[i].done)
            at = copy(at, x.threads[i].at, n_live(&x.threads[i]));
}

static const char *copy_back(void *to, const char *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
    return from + n_bytes;
}

static void restore(const struct choice *c)
{
    const struct explore_world *w = x.world;
    const char *at = copy_back(&x.n_threads, c->saved, sizeof x.n_threads);

    at = copy_back(&x.n_arena, at, sizeof x.n_arena);
    at = copy_back(x.threads, at, x.n_threads * sizeof x.threads[0]);
    at = copy_back(w->memory, at, w->n_memory);
    at = copy_back(x.arena, at, x.n_arena);
    for (uint32_t i = 0; i < x.n_threads; i++)
        if (!x.threads[i].done)
            at = copy_back(x.threads[i].at, at, n_live(&x.threads[i]));
}

/* Choose 0 to n - 1: the recorded choice of a repeated run, then 0. */
static uint32_t choose(uint32_t n)
{
    if (n < 2)
        return 0;
    if (x.at_choice == CHOICES_MAX)
        explore_fail("a run without end");
    struct choice *c = &x.choices[x.at_choice];
    if (x.at_choice == x.n_choices) {
        x.n_choices++;
        c->chosen = 0;
        c->n = n;
        save(c);
    }
    x.at_choice++;
    if (c->n != n)
        explore_fail("the world is not the same twice: %u choices, not %u", n, c->n);
    return c->chosen;
}

/* To the latest choice that has another way. */
static bool backtrack(void)
{
    while (x.n_choices) {
        struct choice *c = &x.choices[x.n_choices - 1];
        if (++c->chosen < c->n) {
            restore(c);
            x.at_choice = x.n_choices - 1;
            return true;
        }
        x.n_choices--;
    }
    return false;
}

/* --- failures --------------------------------------------------------------------------------- */

void explore_note(const char *format, ...)
{
    va_list args;

    if (!x.telling || x.n_notes == NOTES_MAX)
        return;
    char *note = x.notes[x.n_notes++];
    int n = snprintf(note, sizeof x.notes[0],
                     "  thread %ld: ", x.self ? (long)(x.self - x.threads) : -1L);
    va_start(args, format);
    vsnprintf(note + n, sizeof x.notes[0] - (size_t)n, format, args);
    va_end(args);
}

void explore_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(x.why, sizeof x.why, format, args);
    va_end(args);
    longjmp(x.failed, 1);
}

static void on_abort(int signal)
{
    (void)signal;
    snprintf(x.why, sizeof x.why, "an assertion failed");
    longjmp(x.failed, 1);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void to_root(void)
{
    struct thread *t = x.self;

    t->tag = nj_noblock_is_set();
    t->frame = nj__strategy_frame_top();
    t->frame_pointer = __builtin_frame_address(0);
    x.root = jump_fcontext(x.root, NULL).from;
}

static void entry(struct nj__transfer from)
{
    x.root = from.from;
    x.self->fn(x.self->arg);
    x.self->done = true;
    to_root();
}

/* The leftovers of finished calls on the stack are wiped, so that they are no part of later frames.
 */
static void resume_thread(struct thread *t)
{
    x.self = t;
    t->is_hashed = false;
    nj_noblock_leave(t->tag);
    nj__strategy_frame_set_top(t->frame);
    memset((char *)t->at - WIPED_BYTES, 0, WIPED_BYTES);
    t->at = jump_fcontext(t->at, NULL).from;
    x.self = NULL;
}

void explore_start(void (*fn)(void *arg), void *arg, uint64_t role)
{
    uint32_t i = 0;

    while (i < x.n_threads && !x.threads[i].done)
        i++;
    if (i == THREADS_MAX)
        explore_fail("too many threads");
    x.n_threads += i == x.n_threads;
    memset(stacks[i], 0, STACK_BYTES); /* its first registers are read from there */
    x.threads[i] = (struct thread){.fn = fn, .arg = arg, .role = role, .place = NJ__N_PLACES};
    x.threads[i].at = make_fcontext(stacks[i] + STACK_BYTES, STACK_BYTES, entry);
}

static bool can_go_on(const struct thread *t)
{
    return !t->done && (!t->waits || (t->until && t->until(t->until_arg)));
}

unsigned explore_choose(unsigned n)
{
    if (n < 2)
        return 0;
    x.self->n_asked = n;
    to_root();
    x.self->n_asked = 0;
    return x.self->answer;
}

void explore_step(uint64_t place, uint64_t seen)
{
    x.self->place = place;
    x.self->seen = seen;
    to_root();
}

void nj__sched_point(enum nj__place place, uint64_t seen)
{
    /* A switch at these places has the same effect as a switch one step before or after. A read of
     * the word is followed by a failing swap, production has a step inside, and a queued task has
     * no effect. */
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
    explore_step(place, 0);
    x.self->waits = false;
}

void explore_add_knowledge(uint64_t what)
{
    x.self->knows = what;
}

uint64_t explore_knowledge(void)
{
    return x.self ? x.self->knows : 0;
}

void explore_set_role(uint64_t role)
{
    x.self->role = role;
}

uint64_t explore_role(void)
{
    return x.self->role;
}

unsigned explore_n_stuck(void)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < x.n_threads; i++)
        n += !x.threads[i].done;
    return n;
}

void *explore_alloc(size_t n_bytes)
{
    n_bytes = (n_bytes + NJ_CACHE_LINE - 1) / NJ_CACHE_LINE * NJ_CACHE_LINE;
    if (n_bytes > ARENA_BYTES - x.n_arena)
        return NULL;
    x.n_arena += n_bytes;
    return memset(x.arena + x.n_arena - n_bytes, 0, n_bytes);
}

uint64_t explore_hash_arena(void)
{
    return hash_words((const uint64_t *)(const void *)x.arena, x.n_arena / 8, 0, 0);
}

/* --- the search ------------------------------------------------------------------------------- */

static void begin(void)
{
    x.n_threads = x.n_notes = x.at_choice = 0;
    x.n_arena = 0;
    x.self = NULL;
    memset(x.world->memory, 0, x.world->n_memory);
    x.world->begin(x.world->ctx);
}

/* False: this run ends, because no thread can continue, or the state was seen before. */
static bool step(void)
{
    struct thread *able[THREADS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < x.n_threads; i++)
        if (x.threads[i].n_asked && !x.threads[i].done) {
            x.threads[i].answer = choose(x.threads[i].n_asked);
            resume_thread(&x.threads[i]);
            return true;
        }
    if (x.at_choice == x.n_choices && !is_new() && !x.telling)
        return false;
    for (uint32_t i = 0; i < x.n_threads; i++)
        if (can_go_on(&x.threads[i]))
            able[n++] = &x.threads[i];
    if (n) {
        resume_thread(able[choose(n)]);
    } else {
        x.result.n_ends++;
        x.world->end(x.world->ctx);
    }
    return n > 0;
}

static void search(uint64_t states_max)
{
    begin();
    do {
        while (step())
            ;
        if (x.places.n > states_max)
            explore_fail("more than %lu states", (unsigned long)states_max);
    } while (backtrack());
    if (x.world->must_fail)
        explore_fail("was not found: %s", x.world->must_fail);
}

static void tell(void)
{
    fprintf(stderr, "explore: %s\nafter:\n", x.why);
    for (uint32_t i = 0; i < x.n_notes; i++)
        fprintf(stderr, "%s\n", x.notes[i]);
    exit(1);
}

struct explore_result explore(const struct explore_world *world, uint64_t states_max)
{
    struct sigaction action = {.sa_handler = on_abort, .sa_flags = SA_NODEFER};

    sigaction(SIGABRT, &action, NULL);
    x.world = world;
    x.result = (struct explore_result){0};
    x.n_choices = 0;
    x.telling = false;
    empty(&x.places);
    empty(&x.stacks);
    if (!setjmp(x.failed)) {
        search(states_max);
    } else if (x.telling) {
        tell();
    } else if (!world->must_fail || strcmp(x.why, world->must_fail) != 0) {
        x.telling = true;
        begin();
        while (step())
            ;
        tell(); /* a failure that does not depend on the steps */
    }
    nj__strategy_frame_set_top(NULL);
    nj_noblock_leave(false);
    x.result.n_states = x.places.n;
    return x.result;
}
