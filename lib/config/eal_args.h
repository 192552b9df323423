/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL arguments of the file ([eal]) and of the command line. Main thread. */
#pragma once

#include "config/eal_preset.h"
#include "config/policy_file.h"

/* As nj_presets_expand_eal_args(), for the arguments of the file, if there is one, and those of the
 * command line behind them. An argument of the command line replaces all of its name in the file.
 * -l, -c and --lcores count as one name, and so do the names of devices and presets. */
int nj_eal_args_expand(struct nj_presets *out, const struct nj_policy_file *f, int argc,
                       char **argv, char *why, size_t n);
