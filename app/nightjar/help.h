/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of --help, of which docs/options.md and the manual pages consist, too. */
#pragma once

#include <stdio.h>

#include "config/option_table.h"
#include "options.h"

#define HELP_TEXT_BYTES 512

/* Exit statuses, {NULL} last. */
struct help_exit_status {
    const char *status, *meaning;
};
extern const struct help_exit_status help_exit_statuses[];

/* The name of the value in the help text, or "" if the option takes none. */
const char *help_value(const struct nj_option *o);
/* The same for the key. */
const char *help_key_value(const struct nj_option *o);
/* Format "HELP (RANGE) [DEFAULT]". The range of a time, or of a limit that can be "none", is left
 * out. */
void help_describe(const struct nj_option *o, char text[HELP_TEXT_BYTES]);
/* The short help. Returns 0. */
int help_print(FILE *out, const struct nj_app *app);
/* The options and keys of a group, or of `all`. Returns the exit status. */
int help_print_topic(const struct nj_app *app, const char *topic);
