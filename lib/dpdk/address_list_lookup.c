/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks up the lists that an address is on, with rte_acl (DPDK's multi-field classifier). Each
 * list is one category of the ACL, so one lookup answers for all lists.
 */
#include "dpdk/address_list_lookup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_byteorder.h>
#include <rte_errno.h>

#include "base/set_error.h"
#include "shape/request_policy.h"

/* The first field of a rule is one byte wide (rte_acl.h); ours is the address family, so that
 * a lookup in one family never walks the rules of the other. The address follows, in words. */
enum { FIELD_FAMILY, FIELD_WORD, N_FIELDS = FIELD_WORD + 4 };

struct input {
    uint8_t family, pad[3];
    uint8_t addr[16];
};

RTE_ACL_RULE_DEF(rule, N_FIELDS);

struct nj_acl {
    struct rte_acl_ctx *ctx;
    uint32_t n_networks;
};

_Static_assert(NJ_LISTS_MAX == RTE_ACL_MAX_CATEGORIES, "a category for each list");

static int cmp_network(const void *x, const void *y)
{
    const struct nj_network *a = x, *b = y;
    int c = memcmp(&a->addr, &b->addr, sizeof a->addr);
    return c ? c : (int)a->bits - (int)b->bits;
}

/* Keeps one entry for each network, with the lists of all its duplicates. */
static uint32_t sort_and_merge(struct nj_network *net, uint32_t n)
{
    uint32_t kept = 0;

    if (n > 0)
        qsort(net, n, sizeof *net, cmp_network);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && cmp_network(&net[kept - 1], &net[i]) == 0)
            net[kept - 1].lists |= net[i].lists;
        else
            net[kept++] = net[i];
    }
    return kept;
}

/* Is the network inside ::ffff:0:0/96? A shorter prefix covers IPv6 addresses only. */
static bool is_v4(const struct nj_network *net)
{
    return net->bits >= 96 && nj_addr_is_v4(&net->addr);
}

static void make_rule(const struct nj_network *net, struct rule *r)
{
    *r = (struct rule){.data = {.category_mask = net->lists, .priority = 1, .userdata = 1}};
    r->field[FIELD_FAMILY].value.u8 = is_v4(net) ? 4 : 6;
    r->field[FIELD_FAMILY].mask_range.u8 = 8;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t word;
        unsigned left = net->bits > 32 * i ? net->bits - 32 * i : 0;
        memcpy(&word, &net->addr.b[4 * i], sizeof word);
        r->field[FIELD_WORD + i].value.u32 = rte_be_to_cpu_32(word);
        r->field[FIELD_WORD + i].mask_range.u32 = left > 32 ? 32 : left;
    }
}

static int build(struct rte_acl_ctx *ctx, const struct nj_network *net, uint32_t n)
{
    struct rte_acl_config config = {.num_categories = NJ_LISTS_MAX, .num_fields = N_FIELDS};
    struct rule r;
    int rc = 0;

    config.defs[FIELD_FAMILY] =
        (struct rte_acl_field_def){RTE_ACL_FIELD_TYPE_MASK, sizeof(uint8_t), FIELD_FAMILY,
                                   FIELD_FAMILY, offsetof(struct input, family)};
    for (unsigned i = 0; i < 4; i++)
        config.defs[FIELD_WORD + i] = (struct rte_acl_field_def){
            RTE_ACL_FIELD_TYPE_MASK, sizeof(uint32_t), (uint8_t)(FIELD_WORD + i),
            (uint8_t)(FIELD_WORD + i), (uint32_t)(offsetof(struct input, addr) + 4 * i)};
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        make_rule(&net[i], &r);
        rc = rte_acl_add_rules(ctx, (const struct rte_acl_rule *)&r, 1);
    }
    return rc ? rc : rte_acl_build(ctx, &config);
}

struct nj_acl *nj_acl_new(struct nj_network *networks, uint32_t n, char *why, size_t why_bytes)
{
    static _Atomic uint32_t number; /* rte_acl_create() returns the existing ACL of a name */
    struct nj_acl *acl = calloc(1, sizeof *acl);
    char name[RTE_ACL_NAMESIZE];

    n = sort_and_merge(networks, n);
    snprintf(name, sizeof name, "nj_lists_%u", atomic_fetch_add(&number, 1));
    struct rte_acl_param param = {.name = name,
                                  .socket_id = SOCKET_ID_ANY,
                                  .rule_size = RTE_ACL_RULE_SZ(N_FIELDS),
                                  .max_rule_num = n > 0 ? n : 1};
    if (acl)
        acl->ctx = rte_acl_create(&param);
    if (!acl || !acl->ctx) {
        nj_set_error(why, why_bytes, "no memory for lists of %u networks: %s", n,
                     rte_strerror(rte_errno));
        free(acl);
        return NULL;
    }
    acl->n_networks = n;
    int rc = n > 0 ? build(acl->ctx, networks, n) : 0;
    if (rc == 0)
        return acl;
    nj_set_error(why, why_bytes, "lists of %u networks cannot be built: %s", n, rte_strerror(-rc));
    nj_acl_free(acl);
    return NULL;
}

void nj_acl_free(struct nj_acl *acl)
{
    if (!acl)
        return;
    rte_acl_free(acl->ctx);
    free(acl);
}

uint32_t nj_acl_lookup(const void *acl, const struct nj_addr *addr)
{
    const struct nj_acl *a = acl;
    struct input in = {.family = nj_addr_is_v4(addr) ? 4 : 6};
    const uint8_t *data = (const uint8_t *)&in;
    uint32_t found[NJ_LISTS_MAX] = {0}, lists = 0;

    if (a->n_networks == 0)
        return 0;
    memcpy(in.addr, addr->b, sizeof in.addr);
    rte_acl_classify(a->ctx, &data, found, 1, NJ_LISTS_MAX);
    for (uint32_t i = 0; i < NJ_LISTS_MAX; i++)
        lists |= (found[i] != 0 ? 1u : 0u) << i;
    return lists;
}
