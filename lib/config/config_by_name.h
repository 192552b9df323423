/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets and reads fields of a configuration by name, for the command line and the policy file. */
#pragma once

#include <stdint.h>

#include <nightjar/server.h>

#include "config/option_table.h"

/* The i-th option that the policy file can set, or NULL. */
const struct nj_option *nj_config_file_option_at(uint32_t i);

/* Number of values of an array of the configuration, which NULL ends unless it has `n_max`. */
static inline uint32_t nj_config_count_values(const char *const *list, uint32_t n_max)
{
    uint32_t n = 0;

    while (n < n_max && list[n])
        n++;
    return n;
}

/* Is the field set? */
bool nj_config_is_set(const struct nj_server_config *config, const char *name);
/* Format the value in the syntax of the policy file, lists joined by ", ". False if it is not set.
 */
bool nj_config_format_option(const struct nj_server_config *config, const char *name, char *text,
                             size_t n);

/* Check that each value is in its range. Returns 0, or -1 with the first invalid one in `why`. 0
 * means unset where 0 is the default. */
int nj_config_check_ranges(const struct nj_server_config *config, char *why, size_t why_bytes);
/* Set the field from text of the policy file. Returns 0, or -1 with the expected syntax in `why`.
 */
int nj_config_set_file_option(struct nj_server_config *config, const char *name, const char *value,
                              char *why, size_t why_bytes);
/* Copy fields that the policy file can set from `file`, where `config` does not set them. */
void nj_config_fill_unset_from_file(struct nj_server_config *config,
                                    const struct nj_server_config *file);
/* Are all fields that the policy file can set equal? */
bool nj_config_equals_in_file_options(const struct nj_server_config *a,
                                      const struct nj_server_config *b);
