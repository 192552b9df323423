/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets and reads fields of a configuration by name, for the command line and the policy file. */
#ifndef NJ_CONFIG_OPTION_SET_H
#define NJ_CONFIG_OPTION_SET_H

#include <stdint.h>

#include <nightjar/server.h>

/* A field that the policy file may set, too: in section [`section`], with '_' for each '-'. */
struct nj_config_name {
    const char *name, *section;
};

/* The i-th of them; NULL when there are no more. */
const struct nj_config_name *nj_config_file_name(uint32_t i);

/* Was anything said about the field of that name? */
bool nj_config_has(const struct nj_server_config *config, const char *name);
/* What was said, as the policy file would say it, with ", " between several; false when nothing
 * was.
 */
bool nj_config_show(const struct nj_server_config *config, const char *name, char *text, size_t n);

/* Is each value in its range? 0, or -1 with the first that is not. 0 is none where it is the
 * default.
 */
int nj_config_check(const struct nj_server_config *config, char *why, size_t why_bytes);
/* Set it from the policy file's text. 0, or -1 with what was expected in `why`. */
int nj_config_set_from_file(struct nj_server_config *config, const char *name, const char *value,
                            char *why, size_t why_bytes);
/* Take over from `file` what `config` is silent about, of what a policy file may set. */
void nj_config_take(struct nj_server_config *config, const struct nj_server_config *file);
/* Do both say the same of what a policy file may set? */
bool nj_config_same(const struct nj_server_config *a, const struct nj_server_config *b);

#endif
