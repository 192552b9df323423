/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the EAL arguments that select lcores and a device. */
#include "dpdk/eal_selection.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/set_error.h"
#include "dpdk/eal.h"
#include "topo/cpus.h"

/* Inserts an lcore, sorted by number, as queues are. */
static bool add_lcore(struct nj_eal_selection *w, uint32_t *id, uint32_t lcore, uint32_t cpu)
{
    uint32_t i = w->n_lcores;

    if (i == NJ_SHARDS_MAX)
        return false;
    for (; i > 0 && id[i - 1] > lcore; i--) {
        id[i] = id[i - 1];
        w->cpu[i] = w->cpu[i - 1];
    }
    id[i] = lcore;
    w->cpu[i] = cpu;
    w->n_lcores++;
    return true;
}

/* "CPU", "CPU-CPU" or "LCORE@CPU", several of them with commas. */
static bool parse_lcores(const char *text, struct nj_eal_selection *w)
{
    uint32_t id[NJ_SHARDS_MAX];

    w->n_lcores = 0;
    for (;; text++) {
        uint32_t first, last, cpu;
        if (!nj_cpu_parse(&text, &first))
            return false;
        last = cpu = first;
        if (*text == '@' && (text++, !nj_cpu_parse(&text, &cpu)))
            return false;
        if (*text == '-' && (text++, !nj_cpu_parse(&text, &last)))
            return false;
        for (uint32_t lcore = first; lcore <= last; lcore++)
            if (!add_lcore(w, id, lcore, cpu + lcore - first))
                return false;
        if (*text != ',')
            return *text == '\0';
    }
}

int nj_eal_selection_parse(int argc, char **argv, struct nj_eal_selection *out, char *why, size_t n)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < argc; i++) {
        const char *lcores = nj_eal_option_value(argc, argv, &i, "-l");
        if (!lcores)
            lcores = nj_eal_option_value(argc, argv, &i, "--lcores");
        const char *nic = lcores ? NULL : nj_eal_option_value(argc, argv, &i, "-a");
        if (!lcores && !nic)
            nic = nj_eal_option_value(argc, argv, &i, "--allow");
        if (lcores && !parse_lcores(lcores, out))
            return nj_set_error(
                why, n,
                "%s: cannot draw it; give at most %u lcores, each with one CPU, such as "
                "-l 2-5,8",
                lcores, NJ_SHARDS_MAX);
        if (nic && out->nic[0] == '\0')
            snprintf(out->nic, sizeof out->nic, "%.*s", (int)strcspn(nic, ","), nic);
    }
    return 0;
}
