/* SPDX-License-Identifier: BSD-3-Clause */
/* `abuse`: protective actions against clients, by reason. `refused`: connections and requests of
 * clients that were refused before a transaction, by reason. */

#include "log/abuse_log.h"
#include "log/address_text.h"
#include "mgmt/answers.h"
#include "mgmt/view.h"
#include "telem/counters.h"

static bool add_reasons(const struct nj_mgmt_view *v, const char *params, bool refusals,
                        struct nj__doc d)
{
    struct nj__doc list = nj__doc_list(d, "reasons", "");
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
        struct nj__doc one = nj__doc_named_item(list, nj_counter_info[i].name);
        nj__doc_uint(one, "count", sum.n);
        nj__doc_text(one, "client", nj_address_text(&sum.client, text));
        nj__doc_bool(one, "others", sum.others);
    }
    return true;
}

bool nj__answer_abuse(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    return add_reasons(v, params, false, d);
}

bool nj__answer_refused(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    return add_reasons(v, params, true, d);
}
