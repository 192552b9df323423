/* SPDX-License-Identifier: BSD-3-Clause */
/* The RSS key (Toeplitz hash) that assigns connections to lcores: given by --rss-key, or random. */
#pragma once

#include "net/rss_flow_owner.h"

/* 80 hexadecimal digits, not all zero; colons between bytes are allowed. */
bool nj_rss_key_parse(const char *text, struct nj_rss_key *key);

/* A random key that spreads (nj_rss_key_spreads()). False: no random numbers available. */
bool nj_rss_key_generate(struct nj_rss_key *key);
