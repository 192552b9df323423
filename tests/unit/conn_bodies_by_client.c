/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for bodies of requests is divided between clients, not between connections. */
#include <criterion/criterion.h>

#include <nightjar/handler.h>

#include "http/handlers/exchange_state.h"
#include "support/handlers_rig.h"
#include "telem/counters.h"

#define OTHER(i) (RIG_PEER_IP + 20 + (i))

enum { ATTACKERS = 110, ATTACKERS_BYTES = 300000, HONEST_BYTES = 500000 };

static void holds(struct nj_request *req, struct nj_response *resp, void *arg)
{
    nj_sleep(3600 * NJ_SEC);
}

/* The whole body is held meanwhile. */
static void reads_late(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static uint8_t piece[16384];
    int64_t n;

    nj_sleep(NJ_SEC);
    while ((n = nj_request_read(req, piece, sizeof piece)) > 0)
        ;
    nj_response_write(resp, n == 0 ? "all" : "not", 3);
}

static const struct nj_route routes[] = {
    {.path = "/holds", .type = NJ_BLOCKING, .handle = holds},
    {.path = "/late", .type = NJ_BLOCKING, .handle = reads_late},
};

static struct hr *start(void)
{
    struct hr *h = hr_start(hr_new(routes, NJ_ARRAY_LEN(routes)));
    struct nj_exchanges *set = h->r->s->conns.handlers.exchanges;

    nj_block_pool_close(set->bodies);
    set->bodies = nj_block_pool_new(16); /* 22 MiB */
    return h;
}

static struct hr_client *connect_and_post(struct hr *h, uint32_t ip, const char *path, uint64_t n)
{
    struct hr_client *c = hr_connect_from(h, ip, &(struct hr_options){0});

    hr_settle(h);
    hr_post(c, path, n);
    hr_settle(h);
    return c;
}

/* Many connections of a few addresses, with a body each that no handler reads, want more than there
 * is. The body of another client is longer than each of theirs, and is not dropped. */
static void attacked_from(uint32_t n_addresses)
{
    struct hr *h = start();

    for (uint32_t i = 0; i < ATTACKERS; i++)
        connect_and_post(h, OTHER(i % n_addresses), "/holds", ATTACKERS_BYTES);
    const struct hr_reply *a = &connect_and_post(h, OTHER(100), "/late", HONEST_BYTES)->reply[0];
    hr_run(h, 2 * NJ_SEC);
    cr_expect(a->status == 200 && !strcmp(a->body, "all"), "%u addresses: %d, error %u",
              n_addresses, a->status, a->error);
    cr_expect_gt(rig_count(h->r, NJ_C_body_limit), 0);
    cr_expect_eq(rig_count(h->r, NJ_C_exchange_full), 0);
    hr_free(h);
}

Test(conn_bodies_by_client, many_connections)
{
    static const uint32_t n_addresses[] = {1, 2, 8};

    for (size_t i = 0; i < NJ_ARRAY_LEN(n_addresses); i++)
        attacked_from(n_addresses[i]);
}

/* A client with one connection has as much as one with many. */
Test(conn_bodies_by_client, connections_do_not_count)
{
    struct hr *h = start();
    const struct nj_held_shares *held = &h->r->s->conns.handlers.exchanges->held_bodies;

    for (uint32_t i = 0; i < 50; i++)
        connect_and_post(h, OTHER(0), "/holds", ATTACKERS_BYTES);
    struct hr_client *c = connect_and_post(h, OTHER(1), "/holds", HONEST_BYTES);
    for (int i = 0; i < 12; i++) {
        hr_post(c, "/holds", HONEST_BYTES);
        hr_settle(h);
    }
    cr_expect_eq(held->n_clients, 2);
    uint32_t most = 0;
    for (uint32_t i = 0; i < NJ_HELD_CLIENTS; i++)
        most = held->of_client[i] > most ? held->of_client[i] : most;
    uint32_t least = held->n_held - most;
    cr_expect_gt(least * 10, most * 8, "%u and %u units", least, most);
    hr_free(h);
}
