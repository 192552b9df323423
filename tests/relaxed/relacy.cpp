// SPDX-License-Identifier: BSD-3-Clause
//
// Implements stdatomic.h, relaxed.h and the kernel's futex with relacy. Objects are identified by
// address: relacy's own atomics, of 64 bits for any object, are in a table that is empty at the
// start of each run.

#include <errno.h>

#pragma push_macro("errno")
#define RL_DO_ASSERT 1 // relacy's own invariants
#include <relacy/relacy.hpp>
#pragma pop_macro("errno")

#undef new // relacy's macros are for the tested code, not for this file
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>

extern "C" {
#include "relaxed.h"
}

namespace
{

const unsigned objects_max = 128, plain_max = 64, steps_max = 5000;

using word = rl::atomic<uint64_t>;
using plain = rl::var<unsigned>;
using sleepers = rl::waitset<RELAXED_THREADS_MAX>;

struct object {
    const void *address;
    word *value;
    sleepers asleep; // in the kernel, on this futex
    alignas(word) char room[sizeof(word)];
};

struct plain_object {
    const void *address;
    plain *value;
    alignas(plain) char room[sizeof(plain)];
};

struct {
    const relaxed_world *world;
    const char *why; // reason of the failure, or NULL if relacy reports it
    bool setting_up;
    unsigned n_objects, n_plain;
    object objects[objects_max];
    plain_object plains[plain_max];
    sleepers waiting; // in relaxed_wait()
} now;

rl::debug_info info_of(const relaxed_place &at)
{
    return rl::debug_info(at.function, at.file, at.line);
}

[[noreturn]] void fail(const char *what, const rl::debug_info &info)
{
    now.why = what;
    rl::ctx().fail_test(what, rl::test_result_user_assert_failed, info);
    abort(); // relacy never resumes this context
}

rl::memory_order order_of(memory_order order)
{
    return static_cast<rl::memory_order>(order); // the same names in the same order
}

uint64_t value_in_memory(const void *address, size_t n_bytes)
{
    uint64_t value = 0;

    memcpy(&value, address, n_bytes); // little endian
    return value;
}

object &object_at(const void *address, size_t n_bytes, const rl::debug_info &info)
{
    for (unsigned i = 0; i < now.n_objects; i++)
        if (now.objects[i].address == address)
            return now.objects[i];
    if (!now.setting_up)
        fail("an atomic object that the setup of the world did not touch", info);
    if (now.n_objects == objects_max)
        fail("more atomic objects than there is room for", info);
    object &o = now.objects[now.n_objects++];
    o.address = address;
    o.value = ::new (static_cast<void *>(o.room)) word(value_in_memory(address, n_bytes));
    o.asleep = sleepers();
    return o;
}

plain &plain_at(const void *address, const rl::debug_info &info)
{
    for (unsigned i = 0; i < now.n_plain; i++)
        if (now.plains[i].address == address)
            return *now.plains[i].value;
    if (now.n_plain == plain_max)
        fail("more plain objects than there is room for", info);
    plain_object &p = now.plains[now.n_plain++];
    p.address = address;
    p.value = ::new (static_cast<void *>(p.room)) plain();
    return *p.value;
}

struct suite : rl::test_suite<suite, RELAXED_THREADS_MAX> {
    void before()
    {
        now.n_objects = now.n_plain = 0;
        now.waiting = sleepers();
        relaxed_reset_noblock();
        now.setting_up = true;
        now.world->begin(now.world);
        now.setting_up = false;
    }
    void thread(unsigned i)
    {
        if (i < now.world->n_threads)
            now.world->thread(i);
    }
    void after()
    {
        now.world->end();
        for (unsigned i = 0; i < now.n_objects; i++)
            now.objects[i].value->~word();
        for (unsigned i = 0; i < now.n_plain; i++)
            now.plains[i].value->~plain();
    }
};

// Stores relacy's output, which is printed after a failure. Does not allocate, since relacy counts
// allocations of a run.
class text : public std::streambuf
{
  public:
    char kept[1 << 20];
    size_t n_kept = 0;

  private:
    int overflow(int c) override
    {
        if (n_kept + 1 < sizeof kept)
            kept[n_kept++] = static_cast<char>(c);
        return c;
    }
};

} // namespace

extern "C" {

bool relaxed_run(const struct relaxed_world *world, uint64_t first, uint32_t n_runs)
{
    static text said;
    std::ostream out(&said), nowhere(nullptr);
    char start[32];
    rl::test_params params;

    said.n_kept = 0;
    now.world = world;
    now.why = nullptr;
    snprintf(start, sizeof start, "%llu", (unsigned long long)first);
    params.search_type = rl::random_scheduler_type;
    params.initial_state = start;
    params.iteration_count = first + n_runs - 1;
    params.execution_depth_limit = steps_max;
    params.output_stream = &out;
    params.progress_stream = &nowhere;
    bool good = rl::simulate<suite>(params);
    if (good)
        printf("%s: nothing in %u runs from %llu\n", world->name, n_runs,
               (unsigned long long)first);
    else
        printf("%.*s%s: run %llu: %s\n", (int)said.n_kept, said.kept, world->name,
               (unsigned long long)params.stop_iteration,
               now.why ? now.why : rl::test_result_str(params.test_result));
    fflush(stdout);
    return good;
}

unsigned relaxed_self(void)
{
    return rl::thread_index();
}

unsigned relaxed_choose(unsigned n)
{
    return rl::rand(n);
}

void relaxed_check(bool is, const char *what, struct relaxed_place at)
{
    if (!is)
        fail(what, info_of(at));
}

[[noreturn]] void nj__assert_failed(const char *what, const char *file, int line)
{
    fail(what, rl::debug_info("NJ_CHECK", file, static_cast<unsigned>(line)));
}

void relaxed_reads(const void *object, struct relaxed_place at)
{
    rl::debug_info info = info_of(at);

    (void)plain_at(object, info)(info).load();
}

void relaxed_writes(void *object, struct relaxed_place at)
{
    rl::debug_info info = info_of(at);

    plain_at(object, info)(info).store(0);
}

// The test and the sleep are atomic: relacy switches threads at atomic operations only.
void relaxed_wait(bool (*until)(void))
{
    while (!until())
        now.waiting.park_current(rl::ctx(), false, false, false, RL_INFO);
}

void relaxed_changed(void)
{
    now.waiting.unpark_all(rl::ctx(), RL_INFO);
}

// --- atomic objects ---------------------------------------------------------------------------

void relaxed_init(void *object, size_t n_bytes, uint64_t value, struct relaxed_place at)
{
    rl::debug_info info = info_of(at);
    unsigned n_known = now.n_objects;
    word &w = *object_at(object, n_bytes, info).value; // a new one gets the value in memory

    if (n_known == now.n_objects)
        w.store(value, rl::mo_relaxed, info);
}

uint64_t relaxed_load(const void *object, size_t n_bytes, memory_order order,
                      struct relaxed_place at)
{
    rl::debug_info info = info_of(at);

    return object_at(object, n_bytes, info).value->load(order_of(order), info);
}

void relaxed_store(void *object, size_t n_bytes, uint64_t value, memory_order order,
                   struct relaxed_place at)
{
    rl::debug_info info = info_of(at);

    object_at(object, n_bytes, info).value->store(value, order_of(order), info);
}

bool relaxed_swap(void *object, size_t n_bytes, uint64_t *expected, uint64_t value, bool weak,
                  memory_order order, memory_order failure_order, struct relaxed_place at)
{
    rl::debug_info info = info_of(at);
    word &w = *object_at(object, n_bytes, info).value;

    return weak ? w.compare_exchange_weak(*expected, value, order_of(order), info,
                                          order_of(failure_order), info)
                : w.compare_exchange_strong(*expected, value, order_of(order), info,
                                            order_of(failure_order), info);
}

uint64_t relaxed_change(void *object, size_t n_bytes, enum relaxed_rmw how, uint64_t operand,
                        memory_order order, struct relaxed_place at)
{
    rl::debug_info info = info_of(at);
    word &w = *object_at(object, n_bytes, info).value;

    switch (how) {
    case RELAXED_EXCHANGE:
        return w.exchange(operand, order_of(order), info);
    case RELAXED_ADD:
        return w.fetch_add(operand, order_of(order), info);
    case RELAXED_SUB:
        return w.fetch_sub(operand, order_of(order), info);
    case RELAXED_AND:
        return w.fetch_and(operand, order_of(order), info);
    case RELAXED_OR:
        return w.fetch_or(operand, order_of(order), info);
    }
    abort();
}

// --- the kernel -------------------------------------------------------------------------------

// Called by lib/base/futex_park.c, which is linked with --wrap=syscall. The kernel compares the
// last value of the word with the expected one and sleeps, atomically. It orders nothing for its
// callers, whose own memory orders must suffice.
long __wrap_syscall(long number, ...)
{
    rl::debug_info info = RL_INFO;
    va_list args;

    va_start(args, number);
    const void *address = va_arg(args, void *);
    int op = va_arg(args, int);
    uint32_t value = va_arg(args, uint32_t);
    bool timed = va_arg(args, void *) != nullptr;
    va_end(args);
    if (number != SYS_futex)
        fail("a system call other than futex", info);
    rl::ctx().sched();
    object &o = object_at(address, sizeof value, info);
    if (op == FUTEX_WAKE_PRIVATE) {
        long n = 0;
        for (; n < value && o.asleep.unpark_one(rl::ctx(), info); n++)
            ;
        return n;
    }
    if (op != FUTEX_WAIT_PRIVATE)
        fail("an operation of futex other than WAIT and WAKE", info);
    if (o.value->debug_value() != value) {
        rl::ctx().yield(1, info);
        errno = EAGAIN;
        return -1;
    }
    bool early = rl::rand(2);
    switch (o.asleep.park_current(rl::ctx(), timed, early, false, info)) {
    case rl::unpark_reason_normal:
        return 0;
    case rl::unpark_reason_timeout:
        errno = ETIMEDOUT;
        return -1;
    case rl::unpark_reason_spurious:
        errno = EINTR;
        return -1;
    }
    abort();
}
}
