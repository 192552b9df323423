/* SPDX-License-Identifier: BSD-3-Clause */
#include "sched/word.h"

#include "base/assert.h"
#include "sched/step.h"

static uint32_t look(nj__word *w)
{
    NJ__STEP(NJ__AT_WORD_READ, 0);
    return atomic_load_explicit(w, memory_order_relaxed);
}

/* A failure means that another thread got on; so it may be tried again without end. */
static bool swap(nj__word *w, uint32_t *now, enum nj__word_state state, int pending)
{
    NJ_CHECK(pending >= -1 && pending <= 1);
    return atomic_compare_exchange_strong_explicit(w, now, nj__word_of(state, pending),
                                                   memory_order_acq_rel, memory_order_relaxed);
}

bool nj__word_dispatch(nj__word *w)
{
    uint32_t now = look(w);

    for (;;) {
        enum nj__word_state state = nj__state_of(now);
        int pending = nj__pending_of(now);
        bool send = state == NJ__IDLE && pending <= 0;

        if (state == NJ__PRODUCING && NJ_MUTANT != 5)
            state = NJ__REPRODUCING;
        NJ__STEP(NJ__AT_DISPATCH, now);
        if (swap(w, &now, state, pending + send))
            return send;
    }
}

void nj__word_undo(nj__word *w)
{
    uint32_t now = look(w);

    if (NJ_MUTANT == 8)
        return;
    do
        NJ__STEP(NJ__AT_DISPATCH_UNDO, now);
    while (!swap(w, &now, nj__state_of(now), nj__pending_of(now) - 1));
}

bool nj__word_arrive(nj__word *w, bool recruit)
{
    uint32_t now = look(w);

    if (NJ_MUTANT == 4)
        recruit = false;
    for (;;) {
        bool idle = nj__state_of(now) == NJ__IDLE;

        NJ__STEP(NJ__AT_ARRIVAL, now);
        if (swap(w, &now, idle ? NJ__PRODUCING : NJ__REPRODUCING, nj__pending_of(now) - recruit))
            return idle;
    }
}

bool nj__word_rest(nj__word *w)
{
    uint32_t now = look(w);

    for (;;) {
        bool again = nj__state_of(now) == NJ__REPRODUCING && NJ_MUTANT != 3;

        NJ_CHECK(nj__state_of(now) != NJ__IDLE); /* we are the producer */
        NJ__STEP(NJ__AT_REST, now);
        if (swap(w, &now, again ? NJ__PRODUCING : NJ__IDLE, nj__pending_of(now)))
            return !again;
    }
}

bool nj__word_leave(nj__word *w, bool (*send)(void *ctx), void *ctx)
{
    uint32_t now = look(w);
    bool asked = false, sent = false;

    for (;;) {
        if (!asked && nj__pending_of(now) <= 0) {
            asked = true;
            NJ__STEP(NJ__AT_TRY_EXECUTE, now);
            sent = send(ctx);
        }
        /* 0 when it was sent and has arrived already: it found a producer, and left. */
        int pending = nj__pending_of(now) + sent;
        bool leave = pending > 0 || (NJ_MUTANT == 2 && sent);

        NJ__STEP(NJ__AT_RECRUIT, now << 2 | (uint32_t)asked << 1 | sent);
        if (swap(w, &now, leave ? NJ__IDLE : nj__state_of(now), pending))
            return leave;
    }
}

bool nj__word_leave_first(nj__word *w)
{
    uint32_t now = look(w);

    for (;;) {
        bool send = nj__pending_of(now) <= 0;

        NJ__STEP(NJ__AT_RECRUIT, now);
        if (swap(w, &now, NJ__IDLE, nj__pending_of(now) + send))
            return send;
    }
}

bool nj__word_resume(nj__word *w)
{
    uint32_t now = look(w);

    if (NJ_MUTANT == 1)
        return true;
    while (nj__state_of(now) == NJ__IDLE) {
        NJ__STEP(NJ__AT_RESUME, now);
        if (swap(w, &now, NJ__PRODUCING, nj__pending_of(now)))
            return true;
    }
    return false;
}
