/* SPDX-License-Identifier: BSD-3-Clause */
/* Lcores for ports: as named, near the device, and all of them. */
#include <criterion/criterion.h>
#include <string.h>

#include "topo/port_lcores.h"
#include "topo/cpus.h"

#define PORTS_MAX 4

struct row {
    const char *lcores;           /* ids; those below 8 are of node 0 */
    const char *named[PORTS_MAX]; /* NULL behind the last; "" names none */
    int node[PORTS_MAX];
    const char *port_of; /* a digit for each lcore, or the error */
};

static const struct row rows[] = {
    {"0-3", {""}, {-1}, "0000"},
    {"0-3", {"", ""}, {-1, -1}, "0011"},
    {"0-4", {"", ""}, {-1, -1}, "00011"},
    {"0-5", {"", "", "", ""}, {-1, -1, -1, -1}, "001123"},
    {"6-9", {"", ""}, {1, 0}, "1100"},
    {"6-9", {"", ""}, {1, 1}, "0101"},
    {"5-9", {"", ""}, {1, -1}, "01100"},
    {"0-5", {"4", ""}, {-1, -1}, "111101"},
    {"0-5", {"", "0-1", ""}, {-1, -1, -1}, "110022"},
    {"0-3", {"2-3", "0-1"}, {0, 0}, "1100"},
    {"0-3",
     {"2-3", "0,4"},
     {0, 0},
     "--port 11: there is no lcore 4: EAL's -l or --lcores names it"},
    {"0-3",
     {"2-3", "0"},
     {0, 0},
     "lcore 1 has no port: add it to one with --port N=LCORES, or "
     "leave it out of EAL's -l"},
    {"0",
     {"", ""},
     {0, 0},
     "2 ports and 1 lcores: each port needs an lcore of its own; give EAL "
     "more with -l, or name fewer ports with --port"},
    {"0-1",
     {"0-1", ""},
     {0, 0},
     "2 ports and 2 lcores: each port needs an lcore of its own; give "
     "EAL more with -l, or name fewer ports with --port"},
};

static void try_row(const struct row *row, unsigned number)
{
    struct nj_lcore_node lcore[NJ_SHARDS_MAX];
    struct nj_port_request port[PORTS_MAX];
    uint32_t n_lcores = 0, n_ports = 0;
    uint8_t port_of[NJ_SHARDS_MAX];
    char said[256] = "";
    cpu_set_t ids;

    cr_assert(nj_cpus_parse(row->lcores, &ids));
    for (unsigned id = 0; id < 64; id++)
        if (CPU_ISSET(id, &ids))
            lcore[n_lcores++] = (struct nj_lcore_node){id, id < 8 ? 0 : 1};
    for (; n_ports < PORTS_MAX && row->named[n_ports]; n_ports++) {
        port[n_ports].id = 10 + (int)n_ports;
        port[n_ports].node = row->node[n_ports];
        cr_assert(nj_cpus_parse(row->named[n_ports], &port[n_ports].lcores));
    }
    if (nj_port_lcores_assign(lcore, n_lcores, port, n_ports, port_of, said, sizeof said) == 0) {
        for (uint32_t i = 0; i < n_lcores; i++)
            said[i] = (char)('0' + port_of[i]);
        said[n_lcores] = '\0';
    }
    cr_expect_str_eq(said, row->port_of, "row %u: %s, not %s", number, said, row->port_of);
}

Test(topo_port_lcores, each_has_its_own)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        try_row(&rows[i], i);
}
