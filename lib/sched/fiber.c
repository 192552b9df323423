/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stackful coroutines (fibers) on Boost.Context's jump_fcontext(): stacks with guard pages,
 * switches, waits and time-outs. A fiber never migrates between threads.
 */
#include "sched/fiber.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(from, to) 0
#define VALGRIND_STACK_DEREGISTER(id)     (void)(id)
#endif

#include "base/assert.h"
#include "base/compiler.h"
#include "sched/fiber_internal.h"
#include "sched/fpu_control.h"

#define SANITIZED_FACTOR 4u                  /* stacks with a sanitizer, for its larger frames */
#define FILL             0x6e6a666962657273u /* value of unused stack words in checked builds */

_Thread_local struct nj__current nj__current;

/* --- stacks ----------------------------------------------------------------------------------- */

/*
 * A slot: guard, stack, and one page in which the top is moved (cache colouring). Tops at equal
 * page offsets would share the same sets of the L1 cache (64 lines of a page), which have few ways.
 * The tops of neighbours are 17 lines apart; 17 is prime to 64, so every set is used.
 */
static size_t stagger(uint32_t i)
{
    return (size_t)(i * 17u % 64u) * NJ_CACHE_LINE;
}

static bool map_stacks(struct nj_fibers *fs)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    fs->slot_bytes = NJ_FIBER_GUARD_BYTES + fs->stack_bytes + page;
    if (fs->n_max == 0)
        return true;
    fs->stacks = mmap(NULL, fs->n_max * fs->slot_bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fs->stacks == MAP_FAILED)
        return false;
    for (uint32_t i = 0; i < fs->n_max; i++) {
        uint8_t *slot = fs->stacks + i * fs->slot_bytes;
        if (mprotect(slot + NJ_FIBER_GUARD_BYTES, fs->slot_bytes - NJ_FIBER_GUARD_BYTES,
                     PROT_READ | PROT_WRITE)) {
            munmap(fs->stacks, fs->n_max * fs->slot_bytes);
            return false;
        }
    }
    return true;
}

static void init_fiber(struct nj_fibers *fs, uint32_t i)
{
    uint8_t *slot = fs->stacks + i * fs->slot_bytes;
    struct nj_fiber *f = &fs->fiber[i];

    f->all = fs;
    f->top = slot + fs->slot_bytes - stagger(i);
    f->stack.bottom = slot + NJ_FIBER_GUARD_BYTES;
    f->stack.n_bytes = (size_t)((uint8_t *)f->top - (slot + NJ_FIBER_GUARD_BYTES));
    nj_list_init(&f->node);
    nj_timer_init(&f->timer);
    f->valgrind_id = VALGRIND_STACK_REGISTER(f->stack.bottom, f->top);
}

struct nj_fibers *nj_fibers_new(const struct nj_fibers_config *config)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t want = config->stack_bytes ? config->stack_bytes : NJ_FIBER_STACK_BYTES;
    size_t n_bytes = sizeof(struct nj_fibers) + config->n_max * sizeof(struct nj_fiber);
    struct nj_fibers *fs;

    n_bytes = (n_bytes + NJ_CACHE_LINE - 1) / NJ_CACHE_LINE * NJ_CACHE_LINE;
    if (config->n_max > NJ_FIBERS_MAX || !(fs = aligned_alloc(NJ_CACHE_LINE, n_bytes)))
        return NULL;
    memset(fs, 0, n_bytes);
    fs->n_max = config->n_max;
    fs->has_sanitizer = nj__sanitizer_is_there();
    if (fs->has_sanitizer)
        want *= SANITIZED_FACTOR;
    fs->stack_bytes = (want + page - 1) / page * page;
    fs->now = config->now;
    fs->would_block = config->would_block;
    fs->ctx = config->ctx;
    fs->waits = config->waits;
    nj_list_init(&fs->runnable);
    nj_list_init(&fs->soon);
    nj_wheel_init(&fs->wheel, config->now);
    if (!map_stacks(fs)) {
        free(fs);
        return NULL;
    }
    for (uint32_t i = fs->n_max; i-- > 0;) { /* reverse order: the first fiber is used first */
        init_fiber(fs, i);
        fs->fiber[i].next_free = fs->free;
        fs->free = &fs->fiber[i];
    }
    return fs;
}

void nj_fibers_free(struct nj_fibers *fs)
{
    if (!fs)
        return;
    NJ_ASSERT(fs->n_in_use == 0);
    if (nj__current.home == fs) {
        nj__current.home = NULL;
        nj__current.tagged = false;
    }
    for (uint32_t i = 0; i < fs->n_max; i++) {
        nj__sanitizer_forget_stack(&fs->fiber[i].stack);
        VALGRIND_STACK_DEREGISTER(fs->fiber[i].valgrind_id);
    }
    if (fs->n_max)
        munmap(fs->stacks, fs->n_max * fs->slot_bytes);
    free(fs);
}

#ifdef NJ_CHECKED
/* Excludes the page of the top, which the first frames always use. */
static void fill(struct nj_fiber *f)
{
    uint64_t *word = (uint64_t *)f->stack.bottom;
    for (size_t i = 0; i < f->all->stack_bytes / sizeof *word; i++)
        word[i] = FILL;
}

/* The stack may be in use, with frames that ASan has poisoned. */
__attribute__((no_sanitize("address", "thread"))) static size_t depth(const struct nj_fiber *f)
{
    const uint64_t *word = f->stack.bottom;
    size_t i = 0;

    while (i < f->all->stack_bytes / sizeof *word && word[i] == FILL)
        i++;
    return f->stack.n_bytes - i * sizeof *word;
}
#endif

size_t nj_fibers_stack_high_water(const struct nj_fibers *fs)
{
    size_t most = 0;
#ifdef NJ_CHECKED
    for (uint32_t i = 0; i < fs->n_max; i++) {
        size_t used = fs->fiber[i].context ? depth(&fs->fiber[i]) : 0;
        most = used > most ? used : most;
    }
#endif
    return most;
}

uint32_t nj_fibers_trim(struct nj_fibers *fs, uint32_t n_keep, uint32_t n_max)
{
    uint32_t n = 0;

    for (struct nj_fiber *f = fs->free; f && n < n_max; f = f->next_free) {
        if (!f->context) /* never used, or already trimmed */
            continue;
        if (n_keep > 0) {
            n_keep--;
            continue;
        }
        madvise((void *)f->stack.bottom, fs->slot_bytes - NJ_FIBER_GUARD_BYTES, MADV_DONTNEED);
        f->context = NULL;
        n++;
    }
    return n;
}

/* --- the switch ------------------------------------------------------------------------------- */

void nj__fibers_bind(struct nj_fibers *fs)
{
    if (nj_unlikely(!fs->owner))
        fs->owner = &nj__current;
    NJ_ASSERT(fs->owner == &nj__current); /* fibers never change threads */
    nj__current.home = fs;
    nj__current.tagged = true;
}

/* Switches from the root to `f`. Returns when `f` parks or ends. */
static void enter(struct nj_fibers *fs, struct nj_fiber *f)
{
    int root_errno = errno;

    NJ_ASSERT(!nj__current.fiber);
    f->state = NJ__FIBER_RUNNING;
    nj__current.fiber = f;
    nj__current.tagged = false; /* a task starts untagged, and a tagged fiber never parks */
    errno = f->saved_errno;
    nj__sanitizer_register_current(fs->has_sanitizer, &fs->root_stack);
    nj__sanitizer_start_switch(fs->has_sanitizer, &fs->root_stack, &f->stack);
    struct nj__transfer t = jump_fcontext(f->context, f);
    nj__sanitizer_finish_switch(fs->has_sanitizer, &fs->root_stack, &f->stack);
    f->context = t.from;
    f->saved_errno = errno;
    errno = root_errno;
    nj__current.fiber = NULL;
    nj__current.tagged = true;
}

static void leave(struct nj_fiber *f)
{
    struct nj_fibers *fs = f->all;

    nj__sanitizer_start_switch(fs->has_sanitizer, &f->stack, &fs->root_stack);
    struct nj__transfer t = jump_fcontext(fs->root, NULL);
    nj__sanitizer_finish_switch(fs->has_sanitizer, &f->stack, &fs->root_stack);
    fs->root = t.from;
}

/*
 * The main function of every fiber: runs one task after the other. To start a task is to resume the
 * fiber where the last task ended, so the stack is never rebuilt.
 */
static void body(struct nj__transfer t)
{
    struct nj_fiber *f = t.data;
    uint64_t fp_mode = nj__fpu_get_control(); /* the root's, when this stack was first used */

    nj__sanitizer_finish_switch(f->all->has_sanitizer, &f->stack, &f->all->root_stack);
    f->all->root = t.from;
    for (;;) {
        f->fn(f->arg);
        if (nj_unlikely(nj__fpu_get_control() != fp_mode))
            nj__fpu_set_control(fp_mode);
        f->state = NJ__FIBER_FREE;
        leave(f);
    }
}

/* For a stack that was never used, or whose memory was released. */
static void make_context(struct nj_fiber *f)
{
    nj__sanitizer_prepare_stack(&f->stack);
#ifdef NJ_CHECKED
    fill(f);
#endif
    f->context = make_fcontext(f->top, f->stack.n_bytes, body);
}

static void free_fiber(struct nj_fibers *fs, struct nj_fiber *f)
{
    f->next_free = fs->free;
    fs->free = f;
    fs->n_in_use--;
}

enum nj_fiber_started nj__fiber_start_for_class(struct nj_fibers *fs, void (*fn)(void *arg),
                                                void *arg, struct nj_task_class *class_of)
{
    struct nj_fiber *f = fs->free;

    if (!f)
        return NJ_FIBER_NONE_FREE;
    fs->free = f->next_free;
    if (++fs->n_in_use > fs->n_high_water)
        fs->n_high_water = fs->n_in_use;
    f->fn = fn;
    f->arg = arg;
    f->class_of = class_of;
    f->saved_errno = 0;
    f->cancelled = false;
    f->n_ignored_cancels = 0;
    if (nj_unlikely(!f->context))
        make_context(f);
    enter(fs, f);
    if (f->state != NJ__FIBER_FREE)
        return NJ_FIBER_PARKED;
    free_fiber(fs, f);
    return NJ_FIBER_ENDED;
}

struct nj_fiber *nj_fiber_self(void)
{
    return nj__current.fiber;
}

bool nj_fiber_guard_hit(const void *addr)
{
    const struct nj_fiber *f = nj__current.fiber;

    if (!f)
        return false;
    uintptr_t end = (uintptr_t)f->stack.bottom, at = (uintptr_t)addr;
    return at < end && at >= end - NJ_FIBER_GUARD_BYTES;
}

nj_ns nj_fiber_now(void)
{
    NJ_ASSERT(nj__current.fiber);
    return nj__current.fiber->all->now;
}

/* --- waits ------------------------------------------------------------------------------------ */

static void insert_due_soon(struct nj_fibers *fs, struct nj_fiber *f)
{
    struct nj_list *at = fs->soon.prev;

    while (at != &fs->soon &&
           nj_container_of(at, struct nj_fiber, node)->timer.deadline > f->timer.deadline)
        at = at->prev;
    nj_list_push_back(at->next, &f->node); /* before the one after it */
    fs->n_soon++;
}

static void arm(struct nj_fibers *fs, struct nj_fiber *f, nj_ns deadline)
{
    if (deadline == NJ_NEVER)
        return;
    if (deadline >= fs->now + ((nj_ns)1 << NJ_WHEEL_TICK_BITS) || fs->n_soon >= NJ__DUE_SOON_MAX) {
        nj_timer_arm(&fs->wheel, &f->timer, deadline);
        return;
    }
    f->timer.deadline = deadline;
    insert_due_soon(fs, f);
}

static void disarm(struct nj_fibers *fs, struct nj_fiber *f)
{
    nj_timer_disarm(&fs->wheel, &f->timer);
    if (nj_list_linked(&f->node)) {
        nj_list_del(&f->node);
        fs->n_soon--;
    }
}

/* The wait of a parked fiber is over. */
static void make_runnable(struct nj_fiber *f, enum nj_wake_reason why)
{
    struct nj_fibers *fs = f->all;

    disarm(fs, f);
    f->state = NJ__FIBER_WOKEN;
    f->why = why;
    nj_list_push_back(&fs->runnable, &f->node);
    fs->n_runnable++;
}

static enum nj_wake_reason report_would_block(void)
{
    struct nj_fibers *fs = nj__current.home;

    NJ_ASSERT(fs && fs->would_block); /* nj_fiber_park() in a context that must not block */
    if (fs && fs->would_block)
        fs->would_block(fs->ctx);
    return NJ_WAKE_WOULD_BLOCK;
}

void nj_fiber_report_would_block(void)
{
    if (nj__current.home)
        report_would_block();
}

/* A cancelled fiber may make this many waits, and calls that report the cancellation, without
 * yielding. After that each one yields, so that a fiber that ignores the cancellation does not hold
 * the core forever. */
#define IGNORED_CANCELS_MAX 64u

static void yield_if_ignoring(struct nj_fiber *f)
{
    if (f->n_ignored_cancels++ < IGNORED_CANCELS_MAX)
        return;
    make_runnable(f, NJ_WAKE_CANCELLED);
    leave(f);
}

void nj_fiber_yield_if_ignoring_cancel(void)
{
    if (nj__current.fiber && !nj__current.tagged)
        yield_if_ignoring(nj__current.fiber);
}

enum nj_wake_reason nj_fiber_park(struct nj_waiter *w, nj_ns deadline)
{
    struct nj_fiber *f = nj__current.fiber;

    if (!f || nj__current.tagged)
        return report_would_block();
    f->generation++;
    if (w)
        *w = (struct nj_waiter){f, f->generation};
    if (f->cancelled) {
        yield_if_ignoring(f);
        return NJ_WAKE_CANCELLED;
    }
    arm(f->all, f, deadline);
    f->state = NJ__FIBER_PARKED;
    leave(f);
    return f->why;
}

enum nj_wake_reason nj_fiber_park_uncancelled(struct nj_waiter *w)
{
    struct nj_fiber *f = nj__current.fiber;

    if (!f || nj__current.tagged)
        return report_would_block();
    f->generation++;
    *w = (struct nj_waiter){f, f->generation};
    f->is_uncancelled = true;
    f->state = NJ__FIBER_PARKED;
    leave(f);
    f->is_uncancelled = false;
    return f->why;
}

enum nj_wake_reason nj_fiber_park_for_signal(enum nj_await what, nj_ns deadline)
{
    struct nj_fiber *f = nj__current.fiber;

    NJ_ASSERT(f && !nj__current.tagged);
    struct nj_await_count *count = &f->all->awaits[what];
    count->n++;
    count->n_now++;
    f->takes_signals = true;
    enum nj_wake_reason why = nj_fiber_park(NULL, deadline);
    f->takes_signals = false;
    count->n_now--;
    return why;
}

static void deliver_signal(struct nj_fiber *f)
{
    if (f->state == NJ__FIBER_PARKED && f->takes_signals)
        make_runnable(f, NJ_WAKE_OK);
}

/* Several signals of a fiber become one while its thread has not taken them: the thread clears
 * is_signalled before the fiber runs, so the fiber sees what the caller that found it set has
 * stored. */
void nj_fiber_signal(struct nj_fiber *f)
{
    struct nj_fibers *fs = f->all;

    if (fs->owner == &nj__current) {
        deliver_signal(f);
        return;
    }
    if (atomic_exchange_explicit(&f->is_signalled, true, memory_order_acq_rel))
        return;
    f->next_signalled = atomic_load_explicit(&fs->signalled, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&fs->signalled, &f->next_signalled, f,
                                                  memory_order_release, memory_order_relaxed))
        ;
    if (fs->waits.wake)
        fs->waits.wake(fs->waits.ctx);
}

static void take_signals(struct nj_fibers *fs)
{
    struct nj_fiber *f = atomic_exchange_explicit(&fs->signalled, NULL, memory_order_acquire);

    while (f) {
        struct nj_fiber *next = f->next_signalled;
        atomic_exchange_explicit(&f->is_signalled, false, memory_order_acq_rel);
        deliver_signal(f);
        f = next;
    }
}

bool nj_fiber_report_cancelled(void)
{
    if (!nj__current.fiber->cancelled)
        return false;
    nj_fiber_yield_if_ignoring_cancel();
    return true;
}

const struct nj_wait_ops *nj_fiber_wait_ops(const struct nj_fiber *f)
{
    return &f->all->waits;
}

const struct nj_await_count *nj_fibers_await_counts(const struct nj_fibers *fs)
{
    return fs->awaits;
}

bool nj_fiber_wake(struct nj_waiter w, enum nj_wake_reason why)
{
    struct nj_fiber *f = w.fiber;

    if (!f || f->state != NJ__FIBER_PARKED || f->generation != w.generation)
        return false;
    NJ_ASSERT(f->all->owner == &nj__current);
    make_runnable(f, why);
    return true;
}

void nj_fiber_cancel(struct nj_fiber *f)
{
    NJ_ASSERT(f->all->owner == &nj__current);
    NJ_ASSERT(f->state != NJ__FIBER_FREE);
    f->cancelled = true;
    if (f->state == NJ__FIBER_PARKED && !f->is_uncancelled)
        make_runnable(f, NJ_WAKE_CANCELLED);
}

/* --- root ------------------------------------------------------------------------------------- */

static void fire(void *ctx, struct nj_timer *t)
{
    (void)ctx;
    make_runnable(nj_container_of(t, struct nj_fiber, timer), NJ_WAKE_TIMEOUT);
}

uint32_t nj__fibers_wake_due(struct nj_fibers *fs, nj_ns now)
{
    nj__fibers_bind(fs);
    fs->now = now;
    if (nj_unlikely(atomic_load_explicit(&fs->signalled, memory_order_relaxed)))
        take_signals(fs);
    while (!nj_list_empty(&fs->soon)) {
        struct nj_fiber *f = nj_container_of(fs->soon.next, struct nj_fiber, node);
        if (f->timer.deadline > now)
            break;
        make_runnable(f, NJ_WAKE_TIMEOUT);
    }
    nj_wheel_advance(&fs->wheel, now, fire, NULL);
    return fs->n_runnable;
}

struct nj_fiber *nj__fibers_pop_runnable(struct nj_fibers *fs)
{
    fs->n_runnable--;
    return nj_container_of(nj_list_pop(&fs->runnable), struct nj_fiber, node);
}

void nj__fiber_resume(struct nj_fiber *f)
{
    struct nj_fibers *fs = f->all;

    enter(fs, f);
    if (f->state == NJ__FIBER_FREE)
        free_fiber(fs, f);
}

nj_ns nj_fibers_next_due(const struct nj_fibers *fs)
{
    if (fs->n_runnable)
        return 0;
    nj_ns next = nj_wheel_next_due(&fs->wheel);
    if (nj_list_empty(&fs->soon))
        return next;
    nj_ns soon = nj_container_of(fs->soon.next, struct nj_fiber, node)->timer.deadline;
    return soon < next ? soon : next;
}

uint32_t nj_fibers_in_use(const struct nj_fibers *fs)
{
    return fs->n_in_use;
}

uint32_t nj_fibers_high_water(const struct nj_fibers *fs)
{
    return fs->n_high_water;
}

/* --- the tag ---------------------------------------------------------------------------------- */

bool nj_noblock_is_set(void)
{
    return nj__current.tagged;
}

bool nj_noblock_enter(void)
{
    bool before = nj__current.tagged;
    nj__current.tagged = true;
    return before;
}

void nj_noblock_leave(bool before)
{
    nj__current.tagged = before || (nj__current.home && !nj__current.fiber);
}
