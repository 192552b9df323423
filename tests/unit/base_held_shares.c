/* SPDX-License-Identifier: BSD-3-Clause */
/* The account of what clients hold. */
#include <criterion/criterion.h>

#include "base/compiler.h"
#include "base/held_shares.h"
#include "base/prng.h"

enum { HOLDERS = 12 };

static struct nj_held_shares a;
static struct nj_holder holder[HOLDERS];

static void begin(void)
{
    cr_assert(nj_held_shares_init(&a));
    for (uint32_t i = 0; i < HOLDERS; i++) {
        holder[i] = (struct nj_holder){.n = 0};
        nj_list_init(&holder[i].node);
    }
}

static void end(void)
{
    nj_held_shares_fini(&a);
}

TestSuite(base_held_shares, .init = begin, .fini = end);

Test(base_held_shares, nobody_exceeds_an_equal_share)
{
    cr_expect_null(nj_held_worst(&a, 100, HOLDERS, 0));
    nj_held_set(&a, &holder[0], 1, 50);
    nj_held_set(&a, &holder[1], 2, 50);
    cr_expect_null(nj_held_worst(&a, 100, HOLDERS, 0));
    cr_expect_eq(a.n_held, 100);
    cr_expect_eq(a.n_clients, 2);
}

/* Of two connections of the client that has most; its smaller one is not worse than that of a
 * client that has less. */
Test(base_held_shares, the_largest_of_the_largest_client)
{
    nj_held_set(&a, &holder[0], 1, 60);
    nj_held_set(&a, &holder[1], 2, 30);
    nj_held_set(&a, &holder[2], 2, 40);
    cr_expect_eq(nj_held_worst(&a, 100, HOLDERS, 0), &holder[2]);
    nj_held_set(&a, &holder[2], 2, 0);
    cr_expect_eq(nj_held_worst(&a, 100, HOLDERS, 0), &holder[0]);
}

/* One that began to wait later is passed over, also when the number of ms overflows. */
Test(base_held_shares, those_that_wait_for_long)
{
    nj_held_set(&a, &holder[0], 1, 60);
    holder[0].since_ms = 3;
    nj_held_set(&a, &holder[1], 1, 50);
    holder[1].since_ms = UINT32_MAX;
    cr_expect_null(nj_held_worst(&a, 100, HOLDERS, UINT32_MAX - 1));
    cr_expect_eq(nj_held_worst(&a, 100, HOLDERS, 2), &holder[1]);
    cr_expect_eq(nj_held_worst(&a, 100, HOLDERS, 3), &holder[0]);
}

/* Only some are looked at, and all in turn. */
Test(base_held_shares, every_holder_has_its_turn)
{
    for (uint32_t i = 0; i + 1 < HOLDERS; i++)
        nj_held_set(&a, &holder[i], i, 1);
    nj_held_set(&a, &holder[HOLDERS - 1], HOLDERS, 100);
    struct nj_holder *found = NULL;
    uint32_t n = 0;
    for (; !found && n < HOLDERS; n++)
        found = nj_held_worst(&a, 24, 3, 0);
    cr_expect_eq(found, &holder[HOLDERS - 1]);
    cr_expect_eq(n, HOLDERS / 3);
}

Test(base_held_shares, a_share_of_less_than_one)
{
    for (uint32_t i = 0; i < HOLDERS; i++)
        nj_held_set(&a, &holder[i], i, 1);
    cr_expect_eq(nj_held_worst(&a, HOLDERS - 1, HOLDERS, 0), &holder[0], "the first one");
}

/* Against sums made anew; clients may change. */
Test(base_held_shares, sums)
{
    struct nj_prng p;
    uint64_t key[HOLDERS] = {0};

    nj_prng_init(&p, 7);
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t k = nj_prng_below(&p, HOLDERS), n = nj_prng_below(&p, 4), sum = 0;
        uint32_t of_client[4] = {0}, n_clients = 0, n_listed = 0;
        key[k] = nj_prng_below(&p, 4);
        nj_held_set(&a, &holder[k], key[k], n);
        for (uint32_t j = 0; j < HOLDERS; j++) {
            of_client[key[j]] += holder[j].n;
            sum += holder[j].n;
            n_listed += nj_list_linked(&holder[j].node);
            cr_assert_eq(nj_list_linked(&holder[j].node), holder[j].n > 0);
        }
        for (uint32_t j = 0; j < 4; j++) {
            n_clients += of_client[j] > 0;
            cr_assert_eq(a.of_client[j], of_client[j]);
        }
        cr_assert_eq(a.n_held, sum);
        cr_assert_eq(a.n_clients, n_clients);
    }
}
