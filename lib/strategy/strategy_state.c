/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transitions of the state word of a strategy, each one compare-and-swap of a lock-free state
 * machine. The states and transitions are described in strategy_state.h.
 */
#include "strategy/strategy_state.h"

#include "base/assert.h"
#include "base/interleaving_points.h"

static uint32_t look(nj__state_word *w)
{
    NJ__SCHED_POINT(NJ__AT_WORD_READ, 0);
    return atomic_load_explicit(w, memory_order_relaxed);
}

/* Releases this thread's writes to the next producer, and acquires those of the previous one. A
 * failure means that another thread made progress (lock-free), so callers may retry forever. */
static bool swap(nj__state_word *w, uint32_t *now, enum nj__production state, uint32_t recruits)
{
    return atomic_compare_exchange_strong_explicit(w, now, nj__state_pack(state, recruits),
                                                   memory_order_acq_rel, memory_order_relaxed);
}

bool nj__state_request_production(nj__state_word *w)
{
    uint32_t now = look(w);

    for (;;) {
        enum nj__production state = nj__state_production(now);
        uint32_t recruits = nj__state_recruit_mask(now);
        bool send = state == NJ__STATE_IDLE && recruits == NJ__RECRUIT_NONE;

        if (state == NJ__STATE_PRODUCING)
            state = NJ__STATE_REPRODUCING;
        NJ__SCHED_POINT(NJ__AT_DISPATCH, now);
        if (swap(w, &now, state, send ? (uint32_t)NJ__RECRUIT_QUEUED : recruits))
            return send;
    }
}

void nj__state_undo_queued_recruit(nj__state_word *w)
{
    uint32_t now = look(w);

    do
        NJ__SCHED_POINT(NJ__AT_UNDO_QUEUED, now);
    while (!swap(w, &now, nj__state_production(now),
                 nj__state_recruit_mask(now) & ~(uint32_t)NJ__RECRUIT_QUEUED));
}

bool nj__state_try_become_producer(nj__state_word *w, enum nj__recruit recruit)
{
    uint32_t now = look(w);

    for (;;) {
        bool idle = nj__state_production(now) == NJ__STATE_IDLE;

        NJ__SCHED_POINT(NJ__AT_ARRIVAL, now);
        if (swap(w, &now, idle ? NJ__STATE_PRODUCING : NJ__STATE_REPRODUCING,
                 nj__state_recruit_mask(now) & ~(uint32_t)recruit))
            return idle;
    }
}

bool nj__state_try_idle(nj__state_word *w)
{
    uint32_t now = look(w);

    for (;;) {
        bool again = nj__state_production(now) == NJ__STATE_REPRODUCING;

        NJ_CHECK(nj__state_production(now) != NJ__STATE_IDLE); /* we are the producer */
        NJ__SCHED_POINT(NJ__AT_TRY_IDLE, now);
        if (swap(w, &now, again ? NJ__STATE_PRODUCING : NJ__STATE_IDLE,
                 nj__state_recruit_mask(now)))
            return !again;
    }
}

bool nj__state_leave_and_recruit(nj__state_word *w, enum nj__recruit recruit)
{
    uint32_t now = look(w);

    for (;;) {
        uint32_t recruits = nj__state_recruit_mask(now);
        bool send = !(recruits & (uint32_t)recruit);

        NJ_CHECK(nj__state_production(now) != NJ__STATE_IDLE);
        NJ__SCHED_POINT(NJ__AT_RECRUIT, now);
        if (swap(w, &now, NJ__STATE_IDLE, send ? recruits | recruit : recruits))
            return send;
    }
}

bool nj__state_try_leave(nj__state_word *w)
{
    uint32_t now = look(w);

    while (nj__state_production(now) == NJ__STATE_PRODUCING) {
        NJ__SCHED_POINT(NJ__AT_PAUSE, now);
        if (swap(w, &now, NJ__STATE_IDLE, nj__state_recruit_mask(now)))
            return true;
    }
    return false;
}

bool nj__state_undo_recruit_and_resume(nj__state_word *w)
{
    uint32_t now = look(w);

    for (;;) {
        bool idle = nj__state_production(now) == NJ__STATE_IDLE;

        NJ__SCHED_POINT(NJ__AT_RETAKE, now);
        if (swap(w, &now, idle ? NJ__STATE_PRODUCING : nj__state_production(now),
                 nj__state_recruit_mask(now) & ~(uint32_t)NJ__RECRUIT_SURE))
            return idle;
    }
}

bool nj__state_try_resume(nj__state_word *w, bool asks)
{
    uint32_t now = look(w);

    for (;;) {
        bool idle = nj__state_production(now) == NJ__STATE_IDLE;

        if (!idle && !asks)
            return false;
        NJ__SCHED_POINT(NJ__AT_RESUME, now);
        if (swap(w, &now, idle ? NJ__STATE_PRODUCING : NJ__STATE_REPRODUCING,
                 nj__state_recruit_mask(now)))
            return idle;
    }
}
