/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Warnings about valid settings that are probably not intended: text that looks like a comment or a
 * pattern, unreachable classes, oversubscribed rates, keys without effect. For --check, start and
 * SIGHUP. Pure.
 */
#pragma once

#include "config/policy_file.h"

/* Adds lines "FILE:LINE: warning: ..." to `warnings`. `path` is the name of the file; `given` is
 * the configuration of the command line, which overrides the file. */
void nj_policy_warn(const struct nj_policy_file *f, const char *path,
                    const struct nj_server_config *given, struct nj_diags *warnings);
