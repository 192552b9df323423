/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of counters, and sums over it. */
#include <ctype.h>
#include <criterion/criterion.h>
#include <string.h>

#include "telem/counters.h"

Test(telem_counters, names)
{
    unsigned n = 0;

    for (unsigned i = 0; i < NJ_COUNTERS_MAX; i++) {
        const struct nj_counter_info *a = &nj_counter_info[i];
        if (!a->name)
            continue;
        n++;
        for (const char *p = a->name; *p; p++)
            cr_expect(islower((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '_',
                      "%s: a name of other software's telemetry", a->name);
        cr_expect(strlen(a->what) > 0 && strlen(a->name) < 64, "%s", a->name); /* rte_telemetry */
        bool is_drop = a->kind == NJ_KIND_RX_DROP || a->kind == NJ_KIND_TX_DROP;
        cr_expect_eq(strncmp(a->name, "drop_", 5) == 0, is_drop, "%s", a->name);
        for (unsigned j = 0; j < i; j++)
            cr_expect(!nj_counter_info[j].name || strcmp(a->name, nj_counter_info[j].name) != 0,
                      "%s is there twice", a->name);
    }
    cr_expect_eq(n, NJ_N_COUNTERS);
    cr_expect_str_eq(nj_counter_info[NJ_C_rx_packets].name, "rx_packets");
    cr_expect_str_eq(nj_counter_info[NJ_C_tx_queued].name, "tx_queued");
    cr_expect_eq(nj_counter_info[NJ_C_tx_queued].kind, NJ_KIND_GAUGE);
}

Test(telem_counters, sums)
{
    struct nj_counters c = {{0}};
    uint64_t want[NJ_KIND_GAUGE + 1] = {0};

    for (unsigned i = 0; i < NJ_COUNTERS_MAX; i++) {
        if (!nj_counter_info[i].name)
            continue;
        nj_count_n(&c, i, 1000 + i);
        want[nj_counter_info[i].kind] += 1000 + i;
    }
    for (unsigned k = 0; k <= NJ_KIND_GAUGE; k++)
        cr_expect_eq(nj_counters_sum_of_kind(&c, (enum nj_counter_kind)k), want[k], "kind %u", k);
    nj_count(&c, NJ_C_rx_arp);
    cr_expect_eq(nj_counters_sum_of_kind(&c, NJ_KIND_RX_OUT), want[NJ_KIND_RX_OUT] + 1);
    nj_gauge_set(&c, NJ_C_connections, 5);
    cr_expect_eq(nj_counter_read(&c, NJ_C_connections), 5);
}

Test(telem_counters, alone_on_their_cache_lines)
{
    cr_expect_eq(_Alignof(struct nj_counters), NJ_CACHE_LINE);
    cr_expect_eq(sizeof(struct nj_counters) % NJ_CACHE_LINE, 0);
}
