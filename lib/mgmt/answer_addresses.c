/* SPDX-License-Identifier: BSD-3-Clause */
/* `addresses`: what is served. */
#include <stdio.h>

#include "log/address_state_log.h"
#include "log/address_text.h"
#include "mgmt/answers.h"
#include "mgmt/view.h"

static void add_address(const struct nj_iface_addr *a, uint32_t number, struct nj__doc list)
{
    char line[NJ_ADDRESS_TEXT_BYTES + 32], text[NJ_ADDRESS_TEXT_BYTES];
    const char *address = nj_address_text(&a->ip, text), *state = nj_address_state_text(a);

    /* Names of telemetry have no dots or colons, and its lists have texts only. */
    if (nj__doc_is_telemetry(list)) {
        snprintf(line, sizeof line, "%s/%u %s", address, a->prefix_bits, state);
        nj__doc_item_text(list, number, line);
        return;
    }
    struct nj__doc one = nj__doc_item(list, number);
    nj__doc_text(one, "address", address);
    nj__doc_uint(one, "prefix", a->prefix_bits);
    nj__doc_text(one, "state", state);
}

/* As the first shard of their port sees them: it runs their duplicate address detection. */
bool nj__answer_addresses(const struct nj_mgmt_view *v, const char *params, struct nj__doc d)
{
    struct nj__doc list = nj__doc_list(d, "addresses", "address");
    uint32_t number = 0;

    for (uint32_t k = 0; k < v->n_ports; k++) {
        const struct nj_iface *iface = &v->shard[v->port[k].first]->cfg.iface;
        unsigned n = __atomic_load_n(&iface->n_addrs, __ATOMIC_ACQUIRE);
        for (unsigned i = 0; i < n; i++) {
            struct nj_iface_addr a;
            nj_iface_addr_read_published(&iface->addr[i], &a);
            add_address(&a, number++, list);
        }
    }
    return true;
}
