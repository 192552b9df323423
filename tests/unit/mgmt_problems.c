/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "mgmt/problems.h"
#include "mgmt/routes.h"
#include "support/metrics_view.h"
#include "support/scratch.h"
#include "telem/counters_conn.h"
#include "telem/counters_packet.h"

static struct metrics_view *m;

static void start(void)
{
    scratch_make();
    m = metrics_view_new(scratch, 1);
}

static void finish(void)
{
    metrics_view_free(m);
    scratch_remove();
}

TestSuite(mgmt_problems, .init = start, .fini = finish);

/* Checks status and body of /ready. */
static void expect(unsigned status, const char *body)
{
    char allowed[NJ__MGMT_ALLOWED_BYTES], *text = NULL;
    struct nj__mgmt_request r = {.view = &m->v};
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    cr_expect_eq(nj__mgmt_route_find("/ready", "GET", allowed)->answer(&r, out), status);
    fclose(out);
    cr_expect_str_eq(text, body);
    free(text);
}

Test(mgmt_problems, none)
{
    expect(200, "ready\n");
    cr_expect(nj__mgmt_is_healthy(&m->v));
}

Test(mgmt_problems, kinds_have_names_of_their_own)
{
    for (unsigned i = 0; i < NJ__PROBLEM_N_KINDS; i++)
        for (unsigned k = 0; k < i; k++)
            cr_expect_str_neq(nj__problem_name((enum nj__problem_kind)i),
                              nj__problem_name((enum nj__problem_kind)k));
}

Test(mgmt_problems, grave_ones_come_first)
{
    atomic_store(&m->reloads.has_failed, true);
    atomic_store(&m->is_stopping, true);
    atomic_store(&m->unpolled[0], 312 * NJ_MS);
    m->stats.link_up = false;
    expect(503, "the server stops\n"
                "port 2 (net_tap0) has no link\n"
                "lcore 5 has not polled for 312 ms\n"
                "warning: the last reload failed: the former configuration is in force\n");
}

Test(mgmt_problems, states_of_the_server)
{
    atomic_store(&m->is_yielding, true);
    expect(503, "another process takes new connections\n");
    atomic_store(&m->supervised_at, 0);
    expect(503, "the server starts\n");
    atomic_store(&m->supervised_at, 1);
    expect(503, "the supervisor does not run\n");
    cr_expect_not(nj__mgmt_is_healthy(&m->v));
}

Test(mgmt_problems, an_lcore_polls_within_the_bound)
{
    atomic_store(&m->unpolled[0], 300 * NJ_MS);
    expect(200, "ready\n");
}

Test(mgmt_problems, full_tables)
{
    struct nj_counters *c = &m->r->s->counters;
    uint32_t n = m->r->s->cfg.conns_max;
    char text[256];

    nj_gauge_set(c, NJ_C_connections, n - n / 32 - 1);
    expect(200, "ready\n");
    nj_gauge_set(c, NJ_C_connections, n - n / 32);
    snprintf(text, sizeof text, "ready\nwarning: connections: %u of %u in use on lcore 5\n",
             n - n / 32, n);
    expect(200, text);
    nj_gauge_set(c, NJ_C_connections, 0);
    atomic_store(&m->r->s->conns.handlers.n_fibers, 256);
    expect(200, "ready\nwarning: stacks of handlers: 256 of 256 in use on lcore 5\n");
}

Test(mgmt_problems, clients_without_an_entry)
{
    static struct nj_client others;

    m->v.other_clients = &others;
    expect(200, "ready\n");
    atomic_store(&others.n_streams, 1);
    expect(200, "ready\nwarning: clients: some have no entry of their own\n");
}
