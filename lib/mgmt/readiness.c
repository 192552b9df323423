/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/readiness.h"

#include <time.h>

#include "dpdk/wakeup.h"
#include "log/address_text.h"
#include "telem/counters_packet.h"
#include "threads/os_clock.h"

#define SUPERVISOR_STALL (2 * NJ_SEC) /* it runs every 20 ms */
#define POLL             (1 * NJ_MS)  /* between two looks at lcores that were woken */

/* --- lcores ----------------------------------------------------------------------------------- */

static uint64_t loops_of(const struct nj_mgmt_view *v, uint32_t i)
{
    const struct nj_counters *c = &v->shard[i]->counters;

    return nj_counter_read(c, NJ_C_loops_busy) + nj_counter_read(c, NJ_C_loops_idle);
}

/* An lcore that sleeps has nothing to do, and polls when it is woken. */
static void ask_to_poll(const struct nj_mgmt_view *v, struct nj_mgmt_polls *polls, nj_ns now)
{
    for (uint32_t i = 0; i < v->n_shards; i++) {
        uint64_t loops = loops_of(v, i);
        if (polls->of[i].asked_at == 0 || polls->of[i].loops != loops)
            polls->of[i].asked_at = now;
        polls->of[i].loops = loops;
        nj_wakeup_signal(v->lcore[i].waker);
    }
}

/* Has each lcore polled, or no time left? */
static bool is_answered(const struct nj_mgmt_view *v, struct nj_mgmt_polls *polls, nj_ns stall,
                        nj_ns now)
{
    bool all = true;

    for (uint32_t i = 0; i < v->n_shards; i++) {
        if (loops_of(v, i) != polls->of[i].loops)
            polls->of[i].asked_at = 0;
        all = all && (polls->of[i].asked_at == 0 || now - polls->of[i].asked_at > stall);
    }
    return all;
}

static uint32_t write_lcores(const struct nj_mgmt_view *v, struct nj_mgmt_polls *polls, nj_ns stall,
                             FILE *out)
{
    const struct timespec pause = {.tv_nsec = (long)POLL};
    nj_ns now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    uint32_t n = 0;

    ask_to_poll(v, polls, now);
    while (!is_answered(v, polls, stall, now)) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
    }
    for (uint32_t i = 0; i < v->n_shards; i++) {
        if (polls->of[i].asked_at == 0)
            continue;
        fprintf(out, "lcore %u has not polled for %lu ms\n", v->lcore[i].id,
                (unsigned long)((now - polls->of[i].asked_at) / NJ_MS));
        n++;
    }
    return n;
}

/* --- ports and addresses ---------------------------------------------------------------------- */

/* As the first shard of the port sees them: it runs their duplicate address detection. */
static uint32_t write_addresses(const struct nj_iface *iface, FILE *out)
{
    unsigned n_addrs = __atomic_load_n(&iface->n_addrs, __ATOMIC_ACQUIRE);
    uint32_t n = 0;

    for (unsigned i = 0; i < n_addrs; i++) {
        struct nj_iface_addr a;
        char text[NJ_ADDRESS_TEXT_BYTES];
        nj_iface_addr_read_published(&iface->addr[i], &a);
        if (a.state != NJ_ADDR_TENTATIVE)
            continue;
        fprintf(out, "address %s is tentative\n", nj_address_text(&a.ip, text));
        n++;
    }
    return n;
}

static uint32_t write_ports(const struct nj_mgmt_view *v, FILE *out)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < v->n_ports; k++) {
        const struct nj_mgmt_port *p = &v->port[k];
        if (!nj_mgmt_read_port_stats(v, p).link_up) {
            fprintf(out, "port %u (%s) has no link\n", p->dev->id, p->dev->name);
            n++;
        }
        n += write_addresses(&v->shard[p->first]->cfg.iface, out);
    }
    return n;
}

/* --- the server ------------------------------------------------------------------------------- */

bool nj__mgmt_is_healthy(const struct nj_mgmt_view *v)
{
    nj_ns at = atomic_load(v->supervised_at), now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    return at == 0 || now < at + SUPERVISOR_STALL;
}

static uint32_t write_state(const struct nj_mgmt_view *v, FILE *out)
{
    if (!nj__mgmt_is_healthy(v))
        fputs("the supervisor does not run\n", out);
    else if (atomic_load(v->supervised_at) == 0)
        fputs("the server starts\n", out);
    else if (atomic_load(v->is_stopping))
        fputs("the server stops\n", out);
    else if (atomic_load(v->is_yielding))
        fputs("another process takes new connections\n", out);
    else
        return 0;
    return 1;
}

uint32_t nj__mgmt_write_reasons(const struct nj_mgmt_view *v, struct nj_mgmt_polls *polls,
                                nj_ns stall, FILE *out)
{
    return write_state(v, out) + write_ports(v, out) + write_lcores(v, polls, stall, out);
}
