/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs changes of the states of the interface's IPv6 addresses. */
#include "log/address_state_log.h"

#include "base/compiler.h"
#include "log/address_text.h"
#include "log/log.h"

const char *nj_address_state_text(const struct nj_iface_addr *a)
{
    static const char *const words[] = {[NJ_ADDR_READY] = "ready",
                                        [NJ_ADDR_TENTATIVE] = "tentative",
                                        [NJ_ADDR_DUPLICATE] = "duplicate",
                                        [NJ_ADDR_EXPIRED] = "expired"};
    return a->state < NJ_ARRAY_LEN(words) ? words[a->state] : "?";
}

static void log_address(const struct nj_iface_addr *a)
{
    char text[NJ_ADDRESS_TEXT_BYTES];

    nj_address_text(&a->ip, text);
    if (a->state == NJ_ADDR_READY)
        nj_log(NJ_LEVEL_INFO, "address %s/%u is ready", text, a->prefix_bits);
    if (a->state == NJ_ADDR_EXPIRED)
        nj_log(NJ_LEVEL_WARNING, "address %s/%u has expired: no router renewed it", text,
               a->prefix_bits);
    if (a->state == NJ_ADDR_DUPLICATE)
        nj_log(NJ_LEVEL_ERROR,
               "address %s/%u is not used: duplicate, another host on the link has it", text,
               a->prefix_bits);
}

void nj_address_log_changes(struct nj_address_logged *prev, const struct nj_iface *iface)
{
    unsigned n = __atomic_load_n(&iface->n_addrs, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < n; i++) {
        struct nj_iface_addr a;
        nj_iface_addr_read_published(&iface->addr[i], &a);
        struct nj_iface_addr *told = &prev->told[i];
        bool same = i < prev->n_logged && told->state == a.state && nj_addr_eq(&told->ip, &a.ip);
        if (!same && !nj_addr_is_v4(&a.ip))
            log_address(&a);
        *told = a;
    }
    prev->n_logged = n;
}
