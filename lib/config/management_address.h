/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the management listener accepts TCP connections of the kernel. Pure. */
#pragma once

#include <stdbool.h>

#include "base/types.h"

struct nj_management_address {
    struct nj_addr ip;
    uint16_t port; /* in host byte order */
    bool is_loopback;
};

/* "ADDRESS:PORT", with an IPv6 address in brackets. False: it is something else. */
bool nj_management_address_parse(const char *text, struct nj_management_address *out);
