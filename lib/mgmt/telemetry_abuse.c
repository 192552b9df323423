/* SPDX-License-Identifier: BSD-3-Clause */
/* `/nightjar/abuse`: protective actions against clients, by reason. `/nightjar/refused`:
 * connections and requests of clients that were refused before a transaction, by reason. */
#include <rte_telemetry.h>

#include "dpdk/compat.h"
#include "log/abuse_log.h"
#include "log/address_text.h"
#include "mgmt/telemetry_commands.h"
#include "mgmt/telemetry_dict.h"
#include "telem/counters.h"

static bool add_reasons(const struct nj_mgmt_view *v, const char *params, bool refusals,
                        struct rte_tel_data *d)
{
    const struct nj_abuse *of[NJ_SHARDS_MAX];
    char text[NJ_ADDRESS_TEXT_BYTES];

    if (params)
        return false;
    for (uint32_t i = 0; i < v->n_shards; i++)
        of[i] = &v->shard[i]->conns.abuse;
    for (nj_counter i = 0; i < NJ_COUNTERS_MAX; i++) {
        struct nj_abuse_view sum;
        if (nj_abuse_is_refusal(i) != refusals || !nj_abuse_sum(of, v->n_shards, i, &sum))
            continue;
        struct rte_tel_data *one = nj__telemetry_add_dict(d, "%s", nj_counter_info[i].name);
        if (!one)
            return true;
        rte_tel_data_add_dict_uint(one, "count", sum.n);
        rte_tel_data_add_dict_string(one, "client", nj_address_text(&sum.client, text));
        rte_tel_data_add_dict_string(one, "others", sum.others ? "yes" : "no");
    }
    return true;
}

bool nj__telemetry_abuse(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d)
{
    return add_reasons(v, params, false, d);
}

bool nj__telemetry_refused(const struct nj_mgmt_view *v, const char *params, struct rte_tel_data *d)
{
    return add_reasons(v, params, true, d);
}
