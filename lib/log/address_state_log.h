/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of the interface's IPv6 addresses, as text and as log lines. */
#pragma once

#include "wire/iface.h"

/* "ready", "tentative", "duplicate", "expired". */
const char *nj_address_state_text(const struct nj_iface_addr *a);

/* The states that were logged last. Zero-initialized. */
struct nj_address_logged {
    unsigned n_logged;
    struct nj_iface_addr told[NJ_ADDRS_MAX];
};

/* Log a line for each IPv6 address whose state changed since the last call. Another thread may
 * write `iface` concurrently. */
void nj_address_log_changes(struct nj_address_logged *prev, const struct nj_iface *iface);
