/* SPDX-License-Identifier: BSD-3-Clause */
/* The intrusive list. */
#include <criterion/criterion.h>

#include "base/list.h"

/* Is the list exactly these nodes, in both directions? */
static void expect(struct nj_list *head, struct nj_list *const *node, unsigned n)
{
    struct nj_list *at = head;
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(at->next, node[i]);
        cr_assert_eq(node[i]->prev, at);
        at = node[i];
    }
    cr_assert_eq(at->next, head);
    cr_assert_eq(head->prev, at);
}

Test(base_list, push_delete_pop)
{
    struct nj_list h, n[3];
    nj_list_init(&h);
    for (unsigned i = 0; i < 3; i++) {
        nj_list_init(&n[i]);
        cr_expect_not(nj_list_linked(&n[i]));
        nj_list_push_back(&h, &n[i]);
        cr_expect(nj_list_linked(&n[i]));
    }
    expect(&h, (struct nj_list *[]){&n[0], &n[1], &n[2]}, 3);
    nj_list_del(&n[1]);
    nj_list_del(&n[1]); /* harmless */
    expect(&h, (struct nj_list *[]){&n[0], &n[2]}, 2);
    cr_expect_eq(nj_list_pop(&h), &n[0]);
    cr_expect_not(nj_list_linked(&n[0]));
    cr_expect_eq(nj_list_pop(&h), &n[2]);
    cr_expect_null(nj_list_pop(&h));
    cr_expect(nj_list_empty(&h));
}

Test(base_list, splice)
{
    struct nj_list a, b, n[4];
    nj_list_init(&a);
    nj_list_init(&b);
    nj_list_splice(&a, &b);
    cr_expect(nj_list_empty(&a));
    for (unsigned i = 0; i < 4; i++)
        nj_list_push_back(i < 2 ? &a : &b, &n[i]);
    nj_list_splice(&a, &b);
    expect(&a, (struct nj_list *[]){&n[0], &n[1], &n[2], &n[3]}, 4);
    expect(&b, NULL, 0);
    nj_list_splice(&b, &a);
    expect(&b, (struct nj_list *[]){&n[0], &n[1], &n[2], &n[3]}, 4);
    expect(&a, NULL, 0);
}
