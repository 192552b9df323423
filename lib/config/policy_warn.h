/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Warnings about valid settings that are probably not intended: text that looks like a comment or a
 * pattern, unreachable classes, oversubscribed rates, keys without effect or that contradict each
 * other. For --check, start and SIGHUP. Looks whether files of sites are there.
 */
#pragma once

#include "config/policy_file.h"

/* Adds lines "FILE:LINE: warning: ..." to `warnings`. `path` is the name of the file; `given` is
 * the configuration of the command line, which overrides the file. */
void nj_policy_warn(const struct nj_policy_file *f, const char *path,
                    const struct nj_server_config *given, struct nj_diags *warnings);

/* A warning for w->out at the line of an entry or a section, which is evaluated twice. */
#define nj__warn(w, at, ...) nj_diag_at((w)->out, at, "warning: " __VA_ARGS__)

/* site_warn.c: those about sites and paths. */
void nj__site_warn(const struct nj_policy_file *f, const struct nj_server_config *given,
                   struct nj_diags *warnings);
