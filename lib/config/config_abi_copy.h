/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts a configuration of a program that was built with another version of nightjar/server.h.
 */
#pragma once

#include <nightjar/server.h>

/* Size of the first version that had size_bytes. */
#define NJ_CONFIG_BYTES_MIN offsetof(struct nj_server_config, log)

/*
 * Copy `from` into a struct of this version. Fields that a shorter one lacks get their defaults;
 * bytes that only a longer one has must be zero. Returns 0, or -1 with the reason in `why`.
 */
int nj_config_convert_version(struct nj_server_config *to, const struct nj_server_config *from,
                              char *why, size_t why_bytes);
