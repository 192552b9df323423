/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entries of all strategies, with what the server's has no use for: production on the thread
 * that announces tasks, and a restart.
 */
#include "reference/frames.h"
#include "reference/strategies.h"
#include "base/interleaving_points.h"
#include "strategy/thread_strategy_internal.h"

/* --- consumers that know which strategies are below them on the stack --------------------------
 */

static bool in_frame(bool (*consume)(struct nj_strategy *, struct nj_task *, bool),
                     struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    struct nj__frame frame;

    nj__frame_push(&frame, s);
    bool produces = consume(s, task, tagged);
    nj__frame_pop(&frame);
    return produces;
}

static bool consume_pc(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    return in_frame(nj_consume_pc, s, task, tagged);
}

static bool consume_pec(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    return in_frame(nj_consume_pec, s, task, tagged);
}

static bool consume_epc(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    return in_frame(nj_consume_epc, s, task, tagged);
}

static bool consume_adaptive(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    return in_frame(nj_strategy_consume_adaptive, s, task, tagged);
}

static bool consume_dual(struct nj_strategy *s, struct nj_task *task, bool tagged)
{
    return in_frame(nj_consume_dual, s, task, tagged);
}

const struct nj_reference_strategy nj_strategies[NJ_N_STRATEGIES] = {
    [NJ_STRATEGY_PC] = {"pc", consume_pc},
    [NJ_STRATEGY_PEC] = {"pec", consume_pec},
    [NJ_STRATEGY_EPC] = {"epc", consume_epc},
    [NJ_STRATEGY_ADAPTIVE] = {"adaptive", consume_adaptive},
    [NJ_STRATEGY_DUAL] = {"dual", consume_dual},
};

static bool is_dual(const struct nj_strategy *s)
{
    return s->config.consume == consume_dual;
}

/* --- entries ------------------------------------------------------------------------------------
 */

void nj_reference_init(struct nj_strategy *s, const struct nj_strategy_config *config)
{
    nj_strategy_init(s, config);
    if (is_dual(s))
        nj__dual_init(s);
}

bool nj_reference_produce(struct nj_strategy *s)
{
    if (nj__must_dispatch_production(s))
        return nj_reference_produce_elsewhere(s);
    if (!nj__strategy_enter(s))
        return false;
    bool alive = !nj__is_stopped(s), is_recruit = false;
    if (alive && nj__state_try_become_producer(&s->word, NJ__RECRUIT_NONE)) {
        if (is_dual(s))
            nj__dual_produce(s);
        else
            nj__produce_and_consume(s, &is_recruit);
    }
    nj__strategy_leave(s);
    return alive;
}

/* nj_strategy_produce_elsewhere(), and a sleeper is woken where no recruit is sent. */
static bool dual_produce_elsewhere(struct nj_strategy *s)
{
    if (!nj__strategy_enter(s))
        return false;
    bool sent = !nj__is_stopped(s);
    if (sent && nj__state_request_production(&s->word))
        sent = nj__queue_recruit(s);
    else if (sent)
        nj__dual_wake_seated(s);
    nj__strategy_leave(s);
    return sent;
}

bool nj_reference_produce_elsewhere(struct nj_strategy *s)
{
    return is_dual(s) ? dual_produce_elsewhere(s) : nj_strategy_produce_elsewhere(s);
}

void nj_reference_stop(struct nj_strategy *s)
{
    bool wakes = is_dual(s) && nj__strategy_enter(s);

    nj_strategy_stop(s);
    if (wakes) {
        nj__dual_wake_stopped(s);
        nj__strategy_leave(s);
    }
}

bool nj_reference_restart(struct nj_strategy *s)
{
    if (!nj__is_stopped(s) || atomic_load_explicit(&s->n_refs, memory_order_acquire))
        return false;
    NJ__SCHED_POINT(NJ__AT_RESTART, 0);
    atomic_store_explicit(&s->word, nj__state_pack(NJ__STATE_IDLE, NJ__RECRUIT_NONE),
                          memory_order_relaxed);
    NJ__SCHED_POINT(NJ__AT_RESTART, 1);
    atomic_store_explicit(&s->stopped, false, memory_order_relaxed);
    NJ__SCHED_POINT(NJ__AT_RESTART, 2);
    atomic_store_explicit(&s->n_refs, 1, memory_order_release);
    return true;
}
