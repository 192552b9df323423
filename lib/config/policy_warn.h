/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a policy file says that is no fault, and is probably not what was meant: text that looks
 * like a comment or a pattern, classes that no request reaches, rates that are promised twice, keys
 * without effect. For --check, the start and SIGHUP. Pure.
 */
#ifndef NJ_CONFIG_POLICY_WARN_H
#define NJ_CONFIG_POLICY_WARN_H

#include "config/policy_file.h"

/* A line each, "FILE:LINE: warning: ...", in the order of lines. `path` is the file's name; `given`
 * is what the command line said, which wins over the file. */
void nj_policy_warn(const struct nj_policy_file *f, const char *path,
                    const struct nj_server_config *given, struct nj_faults *warnings);

#endif
