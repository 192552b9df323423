/* SPDX-License-Identifier: BSD-3-Clause */
/* The accept filter: a refused peer costs no state, whether the backlog has room or cookies are
 * due. */
#include "support/tcp_dsl.h"
#include "telem/counters.h"

static enum nj_tcp_accept answer;
static struct nj_addr asked;
static uint32_t n_asked;

static enum nj_tcp_accept accept_filter(void *ctx, const struct nj_addr *remote)
{
    asked = *remote;
    n_asked++;
    return answer;
}

static void begin(struct world *w, const struct dsl_options *o, enum nj_tcp_accept says)
{
    nj_dsl_init(w, o);
    w->tcp.cfg.accept_filter = accept_filter;
    answer = says;
    n_asked = 0;
}

Test(tcp_accept_filter, silence)
{
    struct world w;
    begin(&w, NULL, NJ_TCP_ACCEPT_DROP);
    SEND(&w, .flags = S);
    NOTHING(&w);
    NO_CONNECTION(&w);
    cr_expect(nj_addr_eq(&asked, &w.tuple.remote));
    cr_expect_eq(w.tcp.syns.n_touched, 0);
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w); /* nor a RST for the missing connection */
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_denied), 2);
    answer = NJ_TCP_ACCEPT_ALLOW;
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .seq = 0, .ack = 1, .wnd = 65535);
    nj_dsl_fini(&w);
}

Test(tcp_accept_filter, a_reset)
{
    struct world w;
    begin(&w, NULL, NJ_TCP_ACCEPT_RESET);
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = RA, .seq = 0 - w.iss, .ack = 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_denied), 1);
    cr_expect_eq(w.tcp.syns.n_touched, 0);
    nj_dsl_fini(&w);
}

/* RFC 4987 3.6: refused peers get no cookie, and their cookies are not accepted. */
Test(tcp_accept_filter, cookies)
{
    struct world w;
    begin(&w, &(struct dsl_options){.half_open_max = 1}, NJ_TCP_ACCEPT_ALLOW);
    w.tuple.rport = 999;
    SEND(&w, .flags = S);
    w.tuple.rport = 40000;
    w.next_out = w.n_out;
    SEND(&w, .flags = S);
    EXPECT(&w, .flags = SA, .seq = 0, .ack = 1, .wnd = 65535);
    cr_assert_eq(nj_dsl_count(&w, NJ_C_tcp_cookie_sent), 1);
    answer = NJ_TCP_ACCEPT_DROP;
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    NOTHING(&w);
    NO_CONNECTION(&w);
    SEND(&w, .flags = S);
    NOTHING(&w);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_tcp_cookie_sent), 1);
    cr_expect_eq(nj_dsl_count(&w, NJ_C_drop_tcp_denied), 2);
    answer = NJ_TCP_ACCEPT_ALLOW;
    SEND(&w, .flags = A, .seq = 1, .ack = 1);
    STATE(&w, ESTABLISHED);
    n_asked = 0;
    SEND(&w, .flags = A, .seq = 1, .ack = 1, .len = 10);
    cr_expect_eq(n_asked, 0, "the filter is not called for an open connection");
    nj_dsl_fini(&w);
}
