/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as tests write them. */
#pragma once

#include <arpa/inet.h>
#include <criterion/criterion.h>

#include "base/types.h"

static inline struct nj_addr addr(const char *text)
{
    struct in_addr v4;
    struct nj_addr a;

    if (inet_pton(AF_INET, text, &v4) == 1)
        return nj_addr_from_v4(v4.s_addr);
    cr_assert_eq(inet_pton(AF_INET6, text, a.b), 1);
    return a;
}
