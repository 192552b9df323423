/* SPDX-License-Identifier: BSD-3-Clause */
/* What the file of the configuration says now, against what runs. */
#pragma once

#include "config/policy_snapshots.h"

struct nj_config_change {
    bool is_limit; /* changed at run time: `section` is the class, "" for the whole server */
    const char *section, *key;
    const char *running, *file_has; /* values, several joined by ", "; NULL: not set */
    const char *file;               /* where the file has it; NULL: nowhere */
    uint32_t line;
};

/* The strings are valid during the call. */
typedef void nj_config_change_fn(void *of, const struct nj_config_change *change);

/* Calls `see` for each key with other values in `next` than in `running`, as the files have them:
 * a key that the command line overrides is named, too. Secrets are not told. */
void nj_config_diff_files(const struct nj_policy_file *running, const struct nj_policy_file *next,
                          nj_config_change_fn *see, void *of);

/* Calls `see` for each limit in force that is not that of the file in force. `minute` of the day;
 * no nj_policies_install() meanwhile. Without memory it calls nothing, and returns false. */
bool nj_config_diff_limits(struct nj_policies *p, uint32_t minute, nj_config_change_fn *see,
                           void *of);
