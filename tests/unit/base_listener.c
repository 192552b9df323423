/* SPDX-License-Identifier: BSD-3-Clause */
/* Which listener accepts a connection: by port, and the one with the address before all others. */
#include <criterion/criterion.h>

#include "base/listener.h"

Test(base_listener, find)
{
    static const struct nj_addr a = {{1}}, b = {{2}}, zero;
    const struct nj_listeners l = {
        3, {{.addr = a, .port = 80, .has_addr = true}, {.port = 80}, {.port = 443, .addr = b}}};
    const struct nj_listeners turned = {2, {l.at[1], l.at[0]}};

    cr_expect_eq(nj_listener_find(&l, &a, 80), &l.at[0]);
    cr_expect_eq(nj_listener_find(&l, &b, 80), &l.at[1]);
    cr_expect_eq(nj_listener_find(&turned, &a, 80), &turned.at[1], "in any order");
    cr_expect_eq(nj_listener_find(&turned, &b, 80), &turned.at[0]);
    cr_expect_eq(nj_listener_find(&l, &a, 443), &l.at[2], "has_addr is false");
    cr_expect_null(nj_listener_find(&l, &a, 81));
    cr_expect_null(nj_listener_find(&(struct nj_listeners){0}, &zero, 0));
}
