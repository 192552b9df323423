/* SPDX-License-Identifier: BSD-3-Clause */
/* Assigns lcores to ports: first the lcores that a port lists, then the rest evenly, preferring the
 * NUMA node of the device. */
#include "topo/port_lcores.h"

#include <stdbool.h>
#include <string.h>

#include "base/set_error.h"

#define UNASSIGNED UINT8_MAX

_Static_assert(NJ_SHARDS_MAX < UNASSIGNED, "a port has a number of its own");

static bool has_explicit_lcores(const struct nj_port_request *p)
{
    return CPU_COUNT(&p->lcores) > 0;
}

static uint32_t count_of(const uint8_t *port_of, uint32_t n_lcores, uint8_t port)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_lcores; i++)
        n += port_of[i] == port;
    return n;
}

/* Assign the lcores that the port lists. Returns the id of an unknown one, or -1. */
static int assign_named(const struct nj_lcore_node *lcore, uint32_t n_lcores,
                        const struct nj_port_request *port, uint8_t k, uint8_t *port_of)
{
    cpu_set_t left = port->lcores;

    for (uint32_t i = 0; i < n_lcores; i++) {
        if (lcore[i].id >= CPU_SETSIZE || !CPU_ISSET(lcore[i].id, &left))
            continue;
        port_of[i] = k;
        CPU_CLR(lcore[i].id, &left);
    }
    for (int id = 0; id < CPU_SETSIZE; id++)
        if (CPU_ISSET(id, &left))
            return id;
    return -1;
}

/* Assign up to `n` free lcores of this node (-1: any) to port `k`. Returns their number. */
static uint32_t assign_free(const struct nj_lcore_node *lcore, uint32_t n_lcores, uint32_t n,
                            int node, uint8_t k, uint8_t *port_of)
{
    uint32_t n_taken = 0;

    for (uint32_t i = 0; i < n_lcores && n_taken < n; i++) {
        if (port_of[i] != UNASSIGNED || (node >= 0 && lcore[i].node != node))
            continue;
        port_of[i] = k;
        n_taken++;
    }
    return n_taken;
}

/* Share the free lcores among the ports that list none. */
static void assign_rest(const struct nj_lcore_node *lcore, uint32_t n_lcores,
                        const struct nj_port_request *port, uint32_t n_ports, uint32_t n_sharing,
                        uint8_t *port_of)
{
    uint32_t n_free = count_of(port_of, n_lcores, UNASSIGNED);
    uint32_t quota[NJ_SHARDS_MAX] = {0}, turn = 0;

    for (uint32_t k = 0; k < n_ports; k++)
        if (!has_explicit_lcores(&port[k]))
            quota[k] = n_free / n_sharing + (turn++ < n_free % n_sharing);
    for (uint32_t n_taken = 1; n_taken > 0;) { /* round robin: ports of one node share its lcores */
        n_taken = 0;
        for (uint32_t k = 0; k < n_ports; k++) {
            bool looks = quota[k] > 0 && port[k].node >= 0;
            uint32_t one =
                looks ? assign_free(lcore, n_lcores, 1, port[k].node, (uint8_t)k, port_of) : 0;
            quota[k] -= one;
            n_taken += one;
        }
    }
    for (uint32_t k = 0; k < n_ports; k++)
        assign_free(lcore, n_lcores, quota[k], -1, (uint8_t)k, port_of);
}

int nj_port_lcores_assign(const struct nj_lcore_node *lcore, uint32_t n_lcores,
                          const struct nj_port_request *port, uint32_t n_ports,
                          uint8_t port_of[NJ_SHARDS_MAX], char *why, size_t n)
{
    uint32_t n_sharing = 0;

    memset(port_of, UNASSIGNED, NJ_SHARDS_MAX);
    for (uint32_t k = 0; k < n_ports; k++) {
        int missing = assign_named(lcore, n_lcores, &port[k], (uint8_t)k, port_of);
        if (missing >= 0)
            return nj_set_error(why, n,
                                "--port %d: there is no lcore %d: EAL's -l or --lcores names it",
                                port[k].id, missing);
        n_sharing += !has_explicit_lcores(&port[k]);
    }
    uint32_t n_free = count_of(port_of, n_lcores, UNASSIGNED);
    if (n_free < n_sharing)
        return nj_set_error(
            why, n,
            "%u ports and %u lcores: each port needs an lcore of its own; give EAL more "
            "with -l, or name fewer ports with --port",
            n_ports, n_lcores);
    if (n_sharing > 0)
        assign_rest(lcore, n_lcores, port, n_ports, n_sharing, port_of);
    for (uint32_t i = 0; i < n_lcores; i++)
        if (port_of[i] == UNASSIGNED)
            return nj_set_error(
                why, n,
                "lcore %u has no port: add it to one with --port N=LCORES, or leave it "
                "out of EAL's -l",
                lcore[i].id);
    return 0;
}
