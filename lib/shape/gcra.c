/* SPDX-License-Identifier: BSD-3-Clause */
/* The generic cell rate algorithm (ITU-T I.371) on one atomic word, the theoretical arrival time.
 * Leases advance it with compare-and-swap, so lcores need no lock and no refill timer. */
#include "shape/gcra.h"

#include "base/relaxed_atomics.h"

#define UNITS_PER_S ((uint64_t)NJ_GCRA_UNITS * NJ_SEC)
/* 9 years: the sum of two of these does not overflow. */
#define UNITS_MAX   (UINT64_MAX / 4)

uint64_t nj_gcra_cost_down(uint64_t bytes_per_s, uint64_t n_bytes)
{
    if (n_bytes <=
        UINT32_MAX / 4) /* 2^30 * 1.6e10 < 2^64: avoids a long division in the usual case */
        return n_bytes * UNITS_PER_S / bytes_per_s;
    unsigned __int128 units = (unsigned __int128)n_bytes * UNITS_PER_S / bytes_per_s;
    return units < UNITS_MAX ? (uint64_t)units : UNITS_MAX;
}

uint64_t nj_gcra_cost_up(uint64_t bytes_per_s, uint64_t n_bytes)
{
    if (n_bytes <= UINT32_MAX / 4) {
        uint64_t units = n_bytes * UNITS_PER_S;
        return units / bytes_per_s + (units % bytes_per_s != 0);
    }
    unsigned __int128 units =
        ((unsigned __int128)n_bytes * UNITS_PER_S + bytes_per_s - 1) / bytes_per_s;
    return units < UNITS_MAX ? (uint64_t)units : UNITS_MAX;
}

nj_ns nj_gcra_reserve_bytes(struct nj_gcra *g, uint64_t bytes_per_s, uint64_t burst,
                            uint64_t n_bytes, nj_ns now)
{
    if (bytes_per_s == 0)
        return now;
    uint64_t at = now * NJ_GCRA_UNITS;
    uint64_t cost = nj_gcra_cost_up(bytes_per_s, n_bytes);
    uint64_t spare = nj_gcra_cost_down(bytes_per_s, burst);
    uint64_t old = nj_load_relaxed(&g->tat);
    uint64_t tat;
    do {
        uint64_t from = old > at ? old : at; /* unused credit beyond the burst is lost */
        tat = from + cost;
        if (tat - at > UNITS_MAX)
            tat = at + UNITS_MAX;
    } while (!atomic_compare_exchange_weak_explicit(&g->tat, &old, tat, memory_order_relaxed,
                                                    memory_order_relaxed));
    if (tat - at <= spare)
        return now;
    return now + (tat - at - spare + NJ_GCRA_UNITS - 1) / NJ_GCRA_UNITS;
}

void nj_gcra_return(struct nj_gcra *g, uint64_t bytes_per_s, uint64_t n_bytes)
{
    if (bytes_per_s == 0)
        return;
    uint64_t worth = nj_gcra_cost_down(bytes_per_s, n_bytes);
    uint64_t old = nj_load_relaxed(&g->tat);
    while (!atomic_compare_exchange_weak_explicit(&g->tat, &old, old > worth ? old - worth : 0,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void nj_gcra_clamp(struct nj_gcra *g, uint64_t bytes_per_s, uint64_t burst, nj_ns now)
{
    if (bytes_per_s == 0)
        return;
    uint64_t most = now * NJ_GCRA_UNITS + nj_gcra_cost_down(bytes_per_s, burst);
    uint64_t old = nj_load_relaxed(&g->tat);
    while (old > most && !atomic_compare_exchange_weak_explicit(
                             &g->tat, &old, most, memory_order_relaxed, memory_order_relaxed))
        ;
}
