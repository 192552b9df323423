/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transitions of the state word in the dual strategy, each one compare-and-swap. The states and
 * transitions are described in seats.h.
 */
#include "reference/seats.h"

#include "base/assert.h"
#include "base/interleaving_points.h"

/* Releases this thread's writes to the next producer, and acquires those of the previous one. A
 * failure means that another thread made progress (lock-free), so callers may retry forever. */
static bool swap(nj__state_word *w, uint32_t *now, enum nj__production state, uint32_t recruits)
{
    return atomic_compare_exchange_strong_explicit(w, now, nj__state_pack(state, recruits),
                                                   memory_order_acq_rel, memory_order_relaxed);
}

/* No scheduling point: the next one passes the value that was read. */
static uint32_t read_once(nj__state_word *w)
{
    return atomic_load_explicit(w, memory_order_relaxed);
}

#define ALL_SEATS ((1u << NJ__N_SEATS) - 1)

static uint32_t seats_of(uint32_t word)
{
    return nj__state_recruit_mask(word) / NJ__SEAT_BIT;
}

static int lowest(uint32_t seats)
{
    return seats ? __builtin_ctz(seats) : -1;
}

/* `kept`: the recruits and seats without this thread's own; the thread may take `seat`. */
static bool join(nj__state_word *w, uint32_t *now, uint32_t kept, int seat, int *where)
{
    enum nj__production state = nj__state_production(*now);

    if (state == NJ__STATE_IDLE) {
        state = NJ__STATE_PRODUCING;
        *where = NJ__SEAT_PRODUCE;
    } else if (kept < NJ__SEAT_BIT) {
        kept |= (uint32_t)NJ__SEAT_BIT << seat;
        *where = seat;
    } else {
        state = NJ__STATE_REPRODUCING;
        *where = NJ__SEAT_LEAVE;
    }
    return swap(w, now, state, kept);
}

int nj__state_join(nj__state_word *w, enum nj__recruit recruit)
{
    uint32_t now = read_once(w);
    int where;

    do
        NJ__SCHED_POINT(NJ__AT_JOIN, now | (uint64_t)recruit << 32);
    while (!join(w, &now, nj__state_recruit_mask(now) & ~(uint32_t)recruit, 0, &where));
    return where;
}

int nj__state_leave_seat(nj__state_word *w, int seat)
{
    uint32_t now = read_once(w), mine = NJ__RECRUIT_SURE | (uint32_t)NJ__SEAT_BIT << seat;
    int where;

    do {
        if (!(nj__state_recruit_mask(now) & NJ__RECRUIT_SURE))
            return seat;
        NJ__SCHED_POINT(NJ__AT_LEAVE_SEAT, now | (uint64_t)(uint32_t)seat << 32);
    } while (!join(w, &now, nj__state_recruit_mask(now) & ~mine, seat, &where));
    return where;
}

bool nj__state_take_seat(nj__state_word *w, int *where)
{
    uint32_t now = read_once(w);

    for (;;) {
        bool again = nj__state_production(now) == NJ__STATE_REPRODUCING;
        uint32_t recruits = nj__state_recruit_mask(now);
        int seat = again || seats_of(now) == ALL_SEATS ? NJ__SEAT_LEAVE : lowest(~seats_of(now));

        NJ_CHECK(nj__state_production(now) != NJ__STATE_IDLE);
        NJ__SCHED_POINT(NJ__AT_TRY_IDLE, now);
        if (swap(w, &now, again ? NJ__STATE_PRODUCING : NJ__STATE_IDLE,
                 seat >= 0 ? recruits | (uint32_t)NJ__SEAT_BIT << seat : recruits)) {
            *where = seat;
            return !again;
        }
    }
}

bool nj__state_leave_seated(nj__state_word *w, bool *send)
{
    uint32_t now = read_once(w);

    for (;;) {
        uint32_t recruits = nj__state_recruit_mask(now);
        bool leaves = seats_of(now);

        NJ_CHECK(nj__state_production(now) != NJ__STATE_IDLE);
        NJ__SCHED_POINT(NJ__AT_LEAVE_TO_SEATED, now);
        if (swap(w, &now, leaves ? NJ__STATE_IDLE : nj__state_production(now),
                 recruits | NJ__RECRUIT_QUEUED)) {
            *send = !(recruits & NJ__RECRUIT_QUEUED);
            return leaves;
        }
    }
}

int nj__state_wake_seated(nj__state_word *w)
{
    uint32_t now = read_once(w);

    for (;;) {
        uint32_t recruits = nj__state_recruit_mask(now);
        bool calls = nj__state_production(now) == NJ__STATE_IDLE && seats_of(now) &&
                     !(recruits & NJ__RECRUIT_SURE);

        NJ__SCHED_POINT(NJ__AT_WAKE_SEATED, now);
        if (swap(w, &now, nj__state_production(now),
                 calls ? recruits | NJ__RECRUIT_SURE : recruits))
            return calls ? lowest(seats_of(nj__state_pack(NJ__STATE_IDLE, recruits))) : -1;
    }
}
