/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets and reads fields of a configuration by name, for the command line and the file. */
#pragma once

#include <stdint.h>

#include <nightjar/server.h>

#include "config/option_table.h"

/* The i-th option whose key sets its field, or NULL. */
const struct nj_option *nj_config_file_option_at(uint32_t i);

/* The place of a word in "one|two|three", or -1. */
int nj_config_word_index(const char *words, const char *value);

/* Parse a number in the unit of the option, or the place of a word plus `min`, if it is in the
 * range. All of them are exact as a double. */
bool nj_option_parse_number(const struct nj_option *o, const char *value, double *out);
/* Describe what the option accepts, for an error with `value`, which may be NULL. */
void nj_option_format_expected(const struct nj_option *o, const char *value, char *text, size_t n);

/* Number of values of an array of the configuration, which NULL ends unless it has `n_max`. */
static inline uint32_t nj_config_count_values(const char *const *list, uint32_t n_max)
{
    uint32_t n = 0;

    while (n < n_max && list[n])
        n++;
    return n;
}

/* Did the program set the field: by name, or to another value than the default? */
bool nj_config_is_set(const struct nj_server_config *config, const char *name);
/* Has the field another value than the default? */
bool nj_config_differs(const struct nj_server_config *config, const struct nj_option *o);
/* Format the value in the syntax of the file, lists joined by ", ". False if it is not set and 0.
 */
bool nj_config_format_option(const struct nj_server_config *config, const char *name, char *text,
                             size_t n);

/* Check that each value is in its range. Returns 0, or -1 with the first invalid one in `why`. 0
 * means unset where 0 is the default. */
int nj_config_check_ranges(const struct nj_server_config *config, char *why, size_t why_bytes);
/* Set the field from text of the file. Returns 0, or -1 with the expected syntax in `why`.
 */
int nj_config_set_file_option(struct nj_server_config *config, const char *name, const char *value,
                              char *why, size_t why_bytes);
/* Copy fields of keys from `file`, where `config` does not set them. */
void nj_config_fill_unset_from_file(struct nj_server_config *config,
                                    const struct nj_server_config *file);
/* Do the fields differ such that a reload cannot change one to the other? */
bool nj_config_needs_restart(const struct nj_option *o, const struct nj_server_config *from,
                             const struct nj_server_config *to);
