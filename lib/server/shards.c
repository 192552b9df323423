/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/shards.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/set_error.h"

void nj__shards_close_lcores(struct nj_shards *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        nj_fd_waits_close(&s->fd_waits[i]);
        nj_wakeup_close(&s->wakeup[i]);
    }
}

int nj__shards_open_lcores(struct nj_shards *s, char *why, size_t why_bytes)
{
    for (uint32_t i = 0; i < NJ_SHARDS_MAX; i++)
        s->wakeup[i].fd = s->fd_waits[i].epoll_fd = -1;
    s->n = nj_lcores_list(s->lcore, NJ_SHARDS_MAX);
    if (s->n > NJ_SHARDS_MAX)
        return nj_set_error(why, why_bytes,
                            "%u lcores: at most %u are supported; choose them with -l", s->n,
                            NJ_SHARDS_MAX);
    for (uint32_t i = 0; i < s->n; i++)
        if (!nj_wakeup_open(&s->wakeup[i]) || !nj_fd_waits_open(&s->fd_waits[i], &s->wakeup[i])) {
            nj_set_error(why, why_bytes, "cannot open a descriptor to wake an lcore: %s",
                         strerror(errno));
            nj__shards_close_lcores(s);
            return -1;
        }
    nj_tsc_clock_init(&s->clock);
    s->wall_s_at_zero = (int64_t)time(NULL) - (int64_t)(nj_tsc_clock_now(&s->clock) / NJ_SEC);
    return 0;
}

struct nj_mgmt_transfers *nj__shards_open_transfers(struct nj_shards *s)
{
    struct nj_mgmt_lcore lcore[NJ_SHARDS_MAX];

    for (uint32_t i = 0; i < s->n; i++)
        lcore[i] = (struct nj_mgmt_lcore){&s->shard[i]->conns.commands, &s->wakeup[i]};
    return nj_mgmt_transfers_new(lcore, s->n);
}

void nj__shards_wake(struct nj_shards *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        nj_wakeup_signal(&s->wakeup[i]);
}

void nj__shards_set_phase(struct nj_shards *s, enum nj_run_phase phase)
{
    for (uint32_t i = 0; i < s->n && phase <= NJ_PHASE_DRAIN; i++)
        atomic_store_explicit(&s->lcore[i].drained, false, memory_order_relaxed);
    atomic_store_explicit(&s->control.phase, phase, memory_order_release);
    nj__shards_wake(s);
}

bool nj__shards_are_drained(const struct nj_shards *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (!atomic_load_explicit(&s->lcore[i].drained, memory_order_acquire))
            return false;
    return true;
}
